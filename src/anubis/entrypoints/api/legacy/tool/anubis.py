#!/usr/bin/env python3
"""anubis: submit benchmarks to an Anubis service and follow them.

A client for the service's original interface, in one file that needs Python 3.8 and nothing else.
It understands the flags of the original client, keeps the same files under ~/.anubis, and takes its
place when that asks the service for a newer version (--sync-version, --upgrade).
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import io
import json
import os
import pwd
import re
import socket
import sys
import tarfile
import time
import urllib.parse
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Event = dict[str, Any]

VERSION = "0.6.2"
"""Of the interface: services of the same first two numbers understand us."""

DEFAULT_ENDPOINT = "localhost:8080"
WATCH_SECONDS, RETRY_SECONDS, TIMEOUT_SECONDS = 5.0, 2.0, 60.0
STATE = Path.home() / ".anubis"
try:
    USER = pwd.getpwuid(os.geteuid()).pw_name
except KeyError:  # as in some containers
    USER = str(os.geteuid())
UUID = re.compile(r"[a-f0-9]{8}-(?:[a-f0-9]{4}-){3}[a-f0-9]{12}")
SCRIPT_VALUE = re.compile(r'(?m)(^\[ml\.script\][^\[]*?^script[ ]*=[ ]*)"[^"\n]*"')
SCRIPT_BLOCK = """
### --- beginning of anubis generated entry --- ###
[ml.script]
script = "{}"
### --- ending of anubis generated entry --- ###

"""
SIGNS = """
anubis-client=♎ bai-bff=✊ fetcher-dispatcher=🐕 anubis-cron-job=📅 executor=⚡ sm-executor=🔮
watcher=👀 bai-bff-error=💔 FAIL=❌ SUCCESS=✅ WAIT=🕝 GOOD=😎 WARN=🔥 ERROR=💥 SUCESS_ALL=🎉
SEARCH=🔍 WTF=💩
"""
LEGEND = dict(pair.split("=") for pair in SIGNS.split())
USAGE = """usage: anubis FLAGS

  --submit FILE|ACTION_ID [--script PATH] [--force]
                        submit a descriptor, with code beside it; --force sends the code again
  --status [ACTION_ID]  what has happened; to the last submission unless an id is given
    --watch, --terminate  go on until interrupted, or until the benchmark has ended
    --tail, --sync-data   only what is new; everything, fetched again
  --results [ACTION_ID] the output of the benchmark
  --inspect MESSAGE_ID [ACTION_ID], --show-descriptor [ACTION_ID], --write-descriptor [ACTION_ID]
  --cancel ACTION_ID, --purge ACTION_ID
                        stop a benchmark or a schedule; with all runs that a schedule has started
  --history, --last-action-id
  --register HOST:PORT, --unregister [HOST:PORT], --ping
  --show-registered-service-endpoint, --show-registered-service-endpoint-history
  --get-client-id, --set-client-id ID, --unset-client-id
  --sync-version, --upgrade
                        replace this file by the one that the service has
  --legend, --version, --banner, --check-prerequisites, --verbose, --debug, --help

A service that needs a token is registered as NAME:TOKEN@HOST:PORT, one with TLS as https://HOST.
"""


class Failure(Exception):
    """A sentence for people. Our exit status follows, if it is not 9."""


def say(text: str, end: str = "\n") -> None:
    """For whoever reads our output."""
    sys.stdout.write(text + end)
    sys.stdout.flush()


def tell(text: str) -> None:
    """For the person in front of the terminal."""
    sys.stderr.write(text + "\n")


def sha1(content: bytes) -> str:
    """As things are named here; nothing is kept secret by it."""
    return hashlib.sha1(content).hexdigest()  # noqa: S324 - Python 3.8 cannot be told so


def lines_of(name: str) -> list[str]:
    """The lines of one of our files."""
    return [line for line in (STATE / name).read_text("utf-8").splitlines() if line.strip()]


def write_lines(name: str, lines: Iterable[str]) -> None:
    """Replace one of our files."""
    (STATE / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")


def client_id() -> str:
    """Who we are to the service: as chosen, or made of the user's and the machine's name."""
    chosen = lines_of("client_id")
    return chosen[-1].strip() if chosen else sha1(f"{USER}+{socket.gethostname()}".encode())


def action_id(given: str = "") -> str:
    """The action meant: the last one unless given. Only what looks like one becomes a path."""
    history = lines_of("action_ids")
    if not given and not history:
        raise Failure("nothing was submitted yet: give an action id")
    wanted = given or history[-1].split()[0]
    if not UUID.fullmatch(wanted):
        raise Failure(f"{wanted}: incorrect action-id format: expecting a UUID")
    return wanted


def path_of(action: str, kind: str = "") -> str:
    """Where the service has something about an action of ours."""
    return f"/api/job/{kind}{urllib.parse.quote(client_id(), safe='')}/{action}"


def folder_of(action: str) -> Path:
    """Where we keep what we know of an action."""
    folder = STATE / "db" / client_id().replace("/", "_") / action
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def known_events(action: str) -> list[Event]:
    """The messages that were fetched before: JSON objects one after the other."""
    data = folder_of(action) / "data"
    text = data.read_text("utf-8").strip() if data.exists() else ""
    events: list[Event] = []
    while text:
        event, end = json.JSONDecoder().raw_decode(text)
        events.append(event)
        text = text[end:].lstrip()
    return events


def request(
    path: str, method: str = "GET", body: bytes | None = None, kind: str = ""
) -> tuple[int, bytes]:
    """Ask the service. Gives status and body; raises Failure if it cannot be reached."""
    place = [DEFAULT_ENDPOINT, *lines_of("service_endpoint")][-1].strip()
    scheme, _, rest = place.rpartition("://")
    secret, _, host = rest.rpartition("@")
    headers = {"Content-Type": kind} if kind else {}
    if secret:
        headers["Authorization"] = f"Basic {base64.b64encode(secret.encode()).decode()}"
    connect = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
    try:
        with contextlib.closing(connect(host, timeout=TIMEOUT_SECONDS)) as connection:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise Failure(f"no connection to the service at {host}: {error}") from None
    theirs = answer.headers.get("X-Service-Version") or "unknown"
    if theirs.split(".")[:2] != VERSION.split(".")[:2]:
        tell(f"[WARNING] we speak version {VERSION}, the service {theirs}: see --sync-version")
    return answer.status, content


def fetched(path: str) -> bytes:
    """What the service has at a path. Raises Failure if it has nothing."""
    status, body = request(path)
    if status != 200:
        raise Failure(f"the service answers {status}: {body.decode('utf-8', 'replace')[:2000]}")
    return body


def message(payload: Event) -> bytes:
    """A message to the service."""
    now = int(time.time())
    content = {
        "message_id": str(uuid.uuid4()),
        "client_id": client_id(),
        "client_version": VERSION,
        "client_sha1": sha1(Path(__file__).read_bytes()),
        "client_username": USER,
        "date": time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(now)),
        "visited": [{"svc": "anubis-client", "tstamp": now * 1000, "version": VERSION}],
        "payload": payload,
    }
    return json.dumps(content).encode()


def packed(path: Path) -> Path:
    """The archive of a file or folder, named by its content: the same for the same content."""
    if not path.exists():
        raise Failure(f"{path}: the script does not exist", 99)

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mtime = member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        archive.add(str(path.resolve()), path.resolve().name, filter=plain)
    file = STATE / "script_staging" / f"{sha1(content.getvalue())}.tar"
    file.write_bytes(content.getvalue())
    return file


def name_script(descriptor: Path, archive: str) -> None:
    """Let the descriptor name the archive, in the file itself, as the original client does."""
    text = descriptor.read_text("utf-8")
    named = SCRIPT_VALUE.sub(lambda found: f'{found.group(1)}"{archive}"', text)
    if not SCRIPT_VALUE.search(text):
        named = text + SCRIPT_BLOCK.format(archive)
    descriptor.write_text(named, "utf-8")


def form(parts: list[tuple[str, bytes]]) -> tuple[bytes, str]:
    """A multipart body and its type, of parts with their names."""
    boundary, body = uuid.uuid4().hex, b""
    for name, content in parts:
        head = f"--{boundary}\r\nContent-Disposition: form-data; {name}\r\n\r\n"
        body += head.encode() + content + b"\r\n"
    return body + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


def submit(given: str, script: str, force: bool) -> str:
    """Submit a descriptor, or again what was submitted before, and give the action id."""
    descriptor = write_descriptor(given) if UUID.fullmatch(given) else Path(given)
    if not descriptor.is_file():
        raise Failure(f"file [{descriptor}], does not exist", 1)
    archive = packed(Path(script)) if script else None
    if archive:
        name_script(descriptor, archive.name)
    content = descriptor.read_bytes()
    doc = base64.b64encode(content).decode()
    toml = {"descriptor_filename": descriptor.name, "sha1": sha1(content), "doc": doc}
    parts = [('name="submit-event"', message({"toml": toml}))]
    if archive and (force or fetched(f"/api/job/script/{archive.name}") != b"true"):
        parts.append((f'name="script"; filename="{archive.name}"', archive.read_bytes()))
    named = f" and {archive.name}" if len(parts) > 1 and archive else ""
    tell(f"{LEGEND['anubis-client']} |00000000|sending {descriptor}{named} to anubis service")
    body, kind = form(parts)
    taken = request("/api/job/descriptor", "POST", body, kind)[1].decode("utf-8", "replace")
    if not UUID.fullmatch(taken):
        raise Failure(f"Submission was NOT successful - rejected by service:\n{taken}")
    with (STATE / "action_ids").open("a", encoding="utf-8") as history:
        history.write(f"{taken} : {descriptor} : {time.strftime('%a %b %d %H:%M:%S %Z %Y')}\n")
    say(taken)
    return taken


def cancel(given: str, more: Event) -> None:
    """Stop something."""
    if not given:
        raise Failure("an action id is needed")
    args = {"target_action_id": action_id(given), **more}
    sent = message({"command": "cancel", "args": args})
    status, answer = request(path_of(given), "DELETE", sent)
    say(answer.decode("utf-8", "replace"))
    if status != 200:
        raise Failure("the command was rejected by the service")


def show(events: list[Event], is_new: bool = False) -> None:
    """Messages, one a line; new ones stand out where people look at them."""
    colour = ("\033[01;33m" if is_new else "\033[00;33m", "\033[0m")
    before, after = colour if sys.stderr.isatty() else ("", "")
    for event in events:
        sign = LEGEND.get(event["visited"][-1]["svc"], "")
        tell(f"{sign} |{before}{event['message_id'][:8]}{after}|{event['payload'].get('message')}")


def news(action: str) -> list[Event]:
    """Fetch the messages that we have not seen, and keep them."""
    found: list[Event] = []
    data, place = folder_of(action) / "data", folder_of(action) / "latest_tstamp"
    while True:
        since = place.read_text("utf-8").strip().replace('"', "") if place.exists() else ""
        quoted = urllib.parse.quote(since or "0", safe="")
        status, body = request(f"{path_of(action)}?since={quoted}")
        if status not in (200, 404):
            raise Failure(f"the service answers {status}" + (": a token?" if status == 401 else ""))
        events = json.loads(body or b"[]")
        if not events:
            return found
        with data.open("a" if since else "w", encoding="utf-8") as file:
            file.writelines(json.dumps(event, indent=2) + "\n" for event in events)
        last = events[-1]
        place.write_text(f'{last["visited"][-1]["tstamp"]}:"{last["message_id"]}"\n', "utf-8")
        found += events


def verdict(events: list[Event]) -> int | None:
    """How the benchmark ended, as an exit status; None while it goes on."""
    texts = " ".join(str(event["payload"].get("message")) for event in events)
    if "Benchmark failed" in texts or "Benchmark cancelled" in texts:
        return 1
    return 0 if "Benchmark finished" in texts else None


def status(given: str, flags: Iterable[str]) -> int:
    """What has happened, and with --watch what happens."""
    action = action_id(given)
    say(f"Status: [{action}]")
    for name in ("data", "latest_tstamp") if "--sync-data" in flags else ():
        if (folder_of(action) / name).exists():
            (folder_of(action) / name).replace(folder_of(action) / f"{name}.bkup")
    events = known_events(action)
    if "--tail" not in flags:
        show(events)
    if "--watch" not in flags:
        show(news(action), is_new=True)
        return 0
    pause = 0.0
    while "--terminate" not in flags or verdict(events) is None:
        time.sleep(pause)
        try:
            fresh, pause = news(action), WATCH_SECONDS
            say(".", end="")
        except Failure as error:
            fresh, pause = [], RETRY_SECONDS
            say(f"[{error.args[0]}]\n" if "--verbose" in flags else "x", end="")
        show(fresh, is_new=True)
        events += fresh
    return verdict(events) or 0


def results(given: str) -> None:
    """The output of a benchmark."""
    for hit in json.loads(fetched(path_of(action_id(given), "results/"))):
        say(hit["_source"]["log"], end="")


def inspect(name: str, given: str) -> None:
    """Messages in full."""
    for event in known_events(action_id(given)):
        if event["message_id"].startswith(name):
            say(json.dumps(event, indent=2, ensure_ascii=False))


def write_descriptor(given: str) -> Path:
    """Write the descriptor of an action into a file; it is asked for if nobody has yet."""
    action = action_id(given)
    events = known_events(action) or news(action)
    if not events or "toml" not in events[0]["payload"]:
        raise Failure(f"no descriptor is known of {action}")
    file = folder_of(action) / "descriptor.toml"
    file.write_bytes(base64.b64decode(events[0]["payload"]["toml"]["doc"]))
    return file


def show_descriptor(given: str) -> None:
    """The descriptor, and its digest."""
    content = write_descriptor(given).read_bytes()
    say(content.decode("utf-8", "replace"), end="")
    say(f"{'-' * 25}\nActionID: [{action_id(given)}]\nsha1sum : {sha1(content)}\n{'-' * 25}")


def register(place: str) -> None:
    """Use this service from now on."""
    if not place:
        raise Failure("the HOST:PORT of a service is needed")
    unregister(place)
    write_lines("service_endpoint", [*lines_of("service_endpoint"), place])
    show_endpoint()


def unregister(place: str) -> None:
    """Forget a service."""
    known = lines_of("service_endpoint")
    write_lines("service_endpoint.bak", known)
    gone = (place or "".join(known[-1:])).rpartition("@")[2]
    write_lines("service_endpoint", [one for one in known if one.rpartition("@")[2] != gone])


def endpoints() -> list[str]:
    """The services that were registered, without their tokens, the one in use last."""
    known = [place.rpartition("@")[2] for place in lines_of("service_endpoint")]
    if not known:
        raise Failure("no service endpoint is registered (use --register to set one)", 1)
    return known


def show_endpoint() -> None:
    """The service in use."""
    tell(f"Current service endpoint is: [{endpoints()[-1]}]")


def ping() -> None:
    """Whether the service is there."""
    show_endpoint()
    try:
        fetched("/ready")
    except Failure:
        raise Failure(f"{LEGEND['FAIL']}  Anubis Service Endpoint NOT AVAILABLE", 1) from None
    tell(f"{LEGEND['GOOD']}  Ready And Willing like Big Daddy Kane")


def set_client_id(name: str) -> None:
    """Choose who we are; the default again if nothing is given."""
    write_lines("client_id", [name] if name else [])
    say(f"{client_id()} has been set as client-id")


def replace_self() -> None:
    """Put what the service has in our own place, if it is a program."""
    content, own = fetched("/api/tools/anubis"), Path(__file__).resolve()
    if not content.startswith(b"#!"):
        raise Failure("the service has no client to offer; this one stays")
    fresh = own.with_name(f"{own.name}.new")
    fresh.write_bytes(content)
    fresh.chmod(0o755)
    fresh.replace(own)
    tell(f"{own} is up to date")


MODIFIERS = ("--force", "--verbose", "--debug", "--tail", "--sync-data", "--watch", "--terminate")
OTHER_NAMES = """
--result=--results --abort=--cancel --cancel*=--purge --abort*=--purge -i=--inspect -h=--help
--show-desc=--show-descriptor --write-desc=--write-descriptor --ping-service-endpoint=--ping
--upgrade=--sync-version --reset-client-id=--unset-client-id -v=--version
"""
ALIASES = dict(pair.split("=") for pair in OTHER_NAMES.split())
ACTIONS: dict[str, Callable[[str, str], object]] = {
    "--results": lambda given, _: results(given),
    "--cancel": lambda given, _: cancel(given, {}),
    "--purge": lambda given, _: cancel(given, {"cascade": True}),
    "--inspect": inspect,
    "--show-descriptor": lambda given, _: show_descriptor(given),
    "--write-descriptor": lambda given, _: say(str(write_descriptor(given))),
    "--history": lambda *_: say("\n".join(lines_of("action_ids"))),
    "--last-action-id": lambda *_: say(action_id()),
    "--register": lambda given, _: register(given),
    "--unregister": lambda given, _: unregister(given),
    "--show-registered-service-endpoint": lambda *_: show_endpoint(),
    "--show-registered-service-endpoint-history": lambda *_: say("\n".join(endpoints())),
    "--ping": lambda *_: ping(),
    "--get-client-id": lambda *_: say(client_id()),
    "--set-client-id": lambda given, _: set_client_id(given),
    "--unset-client-id": lambda *_: set_client_id(""),
    "--sync-version": lambda *_: replace_self(),
    "--legend": lambda *_: say("\n".join(f"{sign} = {name}" for name, sign in LEGEND.items())),
    "--version": lambda *_: say(VERSION),
    "--banner": lambda *_: say(f"anubis {LEGEND['anubis-client']} (v{VERSION})"),
    "--check-prerequisites": lambda *_: say(f"Python {sys.version.split()[0]}: nothing is missing"),
    "--env-setup": lambda *_: say("nothing to set up: this client needs Python only"),
    "--help": lambda *_: say(USAGE, end=""),
}


def main(arguments: list[str]) -> int:
    """Do what the flags say. As ever, the first one that is an action of its own is the last."""
    for folder in ("db", "script_staging"):
        (STATE / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ("action_ids", "history", "service_endpoint", "client_id"):
        (STATE / name).touch(mode=0o600)
    values: dict[str, str] = {}
    words = list(arguments)
    while words:
        flag = ALIASES.get(words[0], words[0])
        given = [word for word in words[1:3] if not word.startswith("--")]
        first, second = (*given, "", "")[:2] if words[1:2] == given[:1] else ("", "")
        if flag in ACTIONS:
            ACTIONS[flag](first, second)
            return 0
        if flag in ("--submit", "--script", "--status"):
            values[flag] = first
        elif flag not in MODIFIERS:
            tell(f"=> Unknown flag [{flag}]")
        words = words[2:] if first else words[1:]
    if "--submit" in values:
        action = submit(values["--submit"], values.get("--script", ""), "--force" in arguments)
        return status(action, arguments) if "--status" in values else 0
    if "--status" in values or "--watch" in arguments:
        return status(values.get("--status", ""), arguments)
    say(USAGE, end="")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failure as failure:
        tell(f"[ERROR] {failure.args[0]}")
        sys.exit(*failure.args[1:] or (9,))
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(130)
