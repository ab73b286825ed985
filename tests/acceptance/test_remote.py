"""Commands that ask a service: whom they ask, as whom, and what they do when it is not there."""

from __future__ import annotations

import json
import re
import select
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from anubis.settings import original

from .conftest import Home
from .serving import PATIENCE, Service, serving

pytestmark = pytest.mark.acceptance

STEPS = """\
echo begun
until [ -e go ]; do sleep 0.1; done
echo "loss=0.5"
exit 3
"""


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Service]:
    """A service of one test, which may kill it."""
    with serving(tmp_path) as made:
        yield made


def registered(folder: Path, service: Service) -> Home:
    home = Home(folder, runs=service.home)
    home.ask("register", service.endpoint)
    return home


def finish(command: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, err = command.communicate(timeout=PATIENCE)
    return command.returncode, out.decode(), err.decode()


@pytest.mark.parametrize("verb", ["run", "watch"])
def test_a_service_killed_and_restarted_changes_nothing_for_who_follows_a_run(
    tmp_path: Path, mortal: Service, verb: str
) -> None:
    home = registered(tmp_path, mortal)
    file = home.descriptor(STEPS)
    if verb == "watch":
        home.ask("submit", file)
    command = home.start(verb, *([file] if verb == "run" else []))
    home.wait_for("begun", "logs")
    assert command.stdout is not None
    select.select([command.stdout], [], [], PATIENCE)  # it follows when it has told something
    mortal.kill()
    (home.folder / "go").touch()
    time.sleep(1.0)  # the program ends while there is no service
    mortal.start()
    code, out, err = finish(command)
    assert code == 1, err
    told = [line.split()[1] for line in out.splitlines() if re.match(r"\d\d:\d\d:\d\d ", line)]
    states = [word for word in told if word != "metrics"]
    assert states[0] == "SUBMITTED"
    assert states[-1] == "FAILED"
    assert len(states) == len(set(states)), "nothing is told twice"
    assert "code 3" in out
    assert f"{mortal.endpoint} went away" in err
    assert f"{mortal.endpoint} answers again" in err
    assert home.ask("logs") == "begun\nloss=0.5\n"


def test_a_service_that_is_stopped_politely_is_waited_for_as_well(
    tmp_path: Path, mortal: Service
) -> None:
    home = registered(tmp_path, mortal)
    home.ask("submit", home.descriptor(STEPS))
    watching = home.start("watch", "--json")
    home.wait_for("begun", "logs")
    mortal.stop()
    (home.folder / "go").touch()
    mortal.start()
    code, out, _ = finish(watching)
    assert code == 1
    events = [event for line in out.splitlines() for event in json.loads(line)["events"]]
    assert [event["number"] for event in events] == list(range(1, len(events) + 1))
    assert json.loads(out.splitlines()[-1])["run"]["state"] == "FAILED"


def test_output_is_followed_over_a_restart(tmp_path: Path, mortal: Service) -> None:
    home = registered(tmp_path, mortal)
    home.ask("submit", home.descriptor(STEPS))
    following = home.start("logs", "-f")
    assert following.stdout is not None
    assert following.stdout.readline() == b"begun\n"
    mortal.kill()
    mortal.start()
    (home.folder / "go").touch()
    code, out, err = finish(following)
    assert (code, out) == (0, "loss=0.5\n"), err


@pytest.mark.parametrize(
    "words", [["list"], ["run", "bench.toml"], ["watch", "0190"], ["ping"], ["token", "list"]]
)
def test_a_service_that_is_not_there_is_said_soon_and_nothing_is_done_here(
    tmp_path: Path, words: list[str]
) -> None:
    with socket.socket() as nobody:  # bound, and never listens: no other program answers there
        nobody.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{nobody.getsockname()[1]}"
        home = Home(tmp_path)
        home.descriptor("echo never")
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "service_endpoint").write_text(f"{endpoint}\n")
        began = time.monotonic()
        result = home.call(*words)
        took = time.monotonic() - began
    assert result.returncode == 3
    said = result.stderr.decode()
    assert said.count("\n") == 1
    assert f"the service at {endpoint} does not answer (Connection refused)" in said
    assert took < PATIENCE / 2
    assert not (home.own / "anubis.sqlite").exists(), "it must not fall back to this machine"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that requires tokens."""
    with serving(tmp_path_factory.mktemp("guarded"), "--require-tokens") as made:
        yield made


def shell(folder: Path, service: Service, user: str, role: str) -> Home:
    """A shell of a user with a token, registered through a file."""
    folder.mkdir()
    home = Home(folder, runs=service.home)
    (folder / "token").write_text(service.token(user, role) + "\n")
    said = home.ask("register", service.endpoint, "--token-file", "token")
    assert f"you are {user} ({role})" in said
    return home


def test_two_users_have_their_own_history_and_may_not_stop_each_other(
    tmp_path: Path, guarded: Service
) -> None:
    ann = shell(tmp_path / "ann", guarded, "ann", "submitter")
    bob = shell(tmp_path / "bob", guarded, "bob", "submitter")
    viewer = shell(tmp_path / "eve", guarded, "eve", "viewer")
    run_id = ann.ask("submit", ann.descriptor("sleep 60")).strip()
    assert ann.ask("history").split(" : ")[0] == run_id
    assert bob.ask("history") == ""
    assert bob.ask("list", "--ids").strip() == run_id
    assert "by ann" in bob.ask("status")
    for other in (bob, viewer):
        refused = other.call("cancel", run_id)
        assert refused.returncode == 2
        assert b"Traceback" not in refused.stderr
    assert b"belongs to ann" in bob.call("cancel", run_id).stderr
    assert b"needs the role submitter" in viewer.call("cancel", run_id).stderr
    assert b"needs the role submitter" in viewer.call("run", viewer.descriptor("true")).stderr
    assert bob.call("token", "list").returncode == 2
    assert ann.ask("cancel", run_id, "--wait") == f"{run_id} CANCELED\n"
    ann.ask("purge", run_id)


def test_an_admin_makes_and_revokes_tokens_from_afar(tmp_path: Path, guarded: Service) -> None:
    admin = shell(tmp_path / "root", guarded, "root", "admin")
    made = json.loads(admin.ask("token", "create", "zoe", "--role", "viewer", "--json"))
    zoe = Home(tmp_path, runs=guarded.home)
    zoe.environment |= {"ANUBIS_ENDPOINT": guarded.endpoint, "ANUBIS_TOKEN": made["secret"]}
    assert json.loads(zoe.ask("ping", "--json"))["user"] == "zoe"
    assert "zoe" in admin.ask("token", "list")
    admin.ask("token", "revoke", made["token"]["id"])
    refused = zoe.call("list")
    assert refused.returncode == 2
    assert made["secret"].encode() not in refused.stderr


def test_a_wrong_token_is_refused_and_nothing_is_registered(
    tmp_path: Path, guarded: Service
) -> None:
    home = Home(tmp_path)
    wrong = home.call("register", guarded.endpoint, environment={"ANUBIS_TOKEN": "anb_wrong"})
    assert wrong.returncode == 2
    assert b"anb_wrong" not in wrong.stderr + wrong.stdout
    nothing = home.call("register", guarded.endpoint)
    assert nothing.returncode == 2
    assert b"expected a token" in nothing.stderr
    assert not (home.own / "service_endpoint").exists()


def test_a_token_may_come_by_standard_input_or_in_the_endpoint_and_is_kept_apart(
    tmp_path: Path, guarded: Service
) -> None:
    secret = guarded.token("ann", "submitter")
    home = Home(tmp_path)
    typed = home.call("register", guarded.endpoint, given=f"{secret}\n".encode())
    assert typed.returncode == 0, typed.stderr
    assert "ann" in home.ask("ping")
    home.ask("unregister")
    assert secret not in (home.own / "tokens.toml").read_text()
    written = home.ask("register", f"ann:{secret}@{guarded.endpoint}")
    assert home.ask("ping").startswith(f"{guarded.endpoint} is ready")
    assert (home.own / "service_endpoint").read_text() == f"{guarded.endpoint}\n"
    assert (home.own / "tokens.toml").stat().st_mode & 0o777 == 0o600
    assert secret not in written
    assert secret not in home.ask("doctor")


def test_the_environment_wins_over_what_is_registered(
    tmp_path: Path, service: Service, guarded: Service
) -> None:
    home = registered(tmp_path, service)
    for here in ("local", "", "LOCAL"):
        result = home.call("run", home.descriptor("true"), environment={"ANUBIS_ENDPOINT": here})
        assert result.returncode == 0, result.stderr
    assert home.ask("list") == "no runs\n"
    other = {"ANUBIS_ENDPOINT": guarded.endpoint}
    assert home.call("list", environment=other).returncode == 2
    other["ANUBIS_TOKEN"] = guarded.token("ann", "viewer")
    assert home.call("list", environment=other).returncode == 0
    other["ANUBIS_ENDPOINT"] = "nonsense"
    refused = home.call("list", environment=other)
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert b"expected host:port" in refused.stderr
    Home(tmp_path).stop()


def test_the_files_are_those_of_the_original_client(tmp_path: Path, service: Service) -> None:
    home = Home(tmp_path, runs=service.home)
    home.own.mkdir()
    file = home.own / "service_endpoint"
    file.write_text(f"{service.endpoint}\nold.example:80\n")  # as the original left it
    assert home.ask("--show-registered-service-endpoint") == "old.example:80\n"
    home.ask("--register", service.endpoint)
    assert file.read_text() == f"old.example:80\n{service.endpoint}\n"
    history = home.ask("--show-registered-service-endpoint-history")
    assert history == f"old.example:80\n{service.endpoint}\n"
    assert home.ask("--ping").startswith(f"{service.endpoint} is ready")
    run_id = home.ask("--submit", home.descriptor("true")).strip()
    home.call("watch")
    [line] = (home.own / "action_ids").read_text().splitlines()
    assert re.fullmatch(f"{run_id} : {tmp_path}/bench.toml : [A-Z][a-z]{{2}} .* [0-9]{{4}}", line)
    home.ask("purge", run_id)
    home.ask("--unregister")
    assert file.read_text() == "old.example:80\n"
    backup = home.own / "service_endpoint.bak"
    assert backup.read_text() == f"old.example:80\n{service.endpoint}\n"
    home.ask("--unregister", "old.example:80")
    assert file.read_text() == ""
    nothing = home.call("--ping")
    assert (nothing.returncode, nothing.stdout) == (2, b"")


def test_the_client_id_is_the_original_one_until_another_is_set(tmp_path: Path) -> None:
    home = Home(tmp_path)
    host = subprocess.run(["hostname"], capture_output=True, text=True, check=True).stdout.strip()
    user = subprocess.run(["whoami"], capture_output=True, text=True, check=True).stdout.strip()
    usual = original.client_id(home.own, user=user, host=host)
    assert home.ask("--get-client-id") == f"{usual}\n"
    home.ask("--set-client-id", "team-a")
    assert home.ask("--get-client-id") == "team-a\n"
    assert (home.own / "client_id").read_text() == "team-a\n"
    home.ask("--unset-client-id")
    assert home.ask("--get-client-id") == f"{usual}\n"


def test_a_folder_that_the_service_has_not_is_told_once(tmp_path: Path, service: Service) -> None:
    home = registered(tmp_path, service)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / home.descriptor("true")).rename(elsewhere / "bench.toml")
    run_id = home.ask("submit", "elsewhere/bench.toml").strip()
    shutil.rmtree(elsewhere)
    again = home.call("submit", run_id)
    assert again.returncode == 0
    said = again.stderr.decode()
    assert said.count("expected a folder on the machine of the service") == 1
    home.call("watch")
    home.ask("purge", run_id, again.stdout.decode().strip())


def test_an_encrypted_service_must_be_trusted(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    certificate.private_key_and_cert_chain_pem.write_to_path(tmp_path / "service.pem")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    pem = str(tmp_path / "service.pem")
    with serving(tmp_path, "--tls-certificate", pem, "--tls-key", pem) as service:
        home = Home(tmp_path, runs=service.home)
        endpoint = f"https://localhost:{service.port}"
        refused = home.call("register", endpoint)
        assert refused.returncode == 3
        assert b"ANUBIS_CA_FILE" in refused.stderr
        home.environment["ANUBIS_CA_FILE"] = str(tmp_path / "ca.pem")
        assert home.ask("register", endpoint).startswith(f"{endpoint} is asked")
        assert home.call("run", home.descriptor("echo loss=1")).returncode == 0
        assert home.ask("logs") == "loss=1\n"
        plain = home.call("ping", environment={"ANUBIS_ENDPOINT": f"localhost:{service.port}"})
        assert plain.returncode == 3
        assert b"Traceback" not in plain.stderr


def test_the_doctor_has_a_line_about_the_service(tmp_path: Path, service: Service) -> None:
    home = registered(tmp_path, service)
    findings = {one["name"]: one for one in json.loads(home.ask("doctor", "--json"))["findings"]}
    assert findings["service"]["level"] == "ok"
    assert service.endpoint in findings["service"]["found"]
    away = home.call("doctor", "--json", environment={"ANUBIS_ENDPOINT": "127.0.0.1:1"})
    assert away.returncode == 3


def test_nothing_of_the_shell_s_environment_reaches_the_service(
    tmp_path: Path, service: Service
) -> None:
    home = registered(tmp_path, service)
    file = home.descriptor('echo "secret is ${SECRET:-unknown}"')
    assert home.call("run", file, environment={"SECRET": "xyzzy"}).returncode == 0
    assert home.ask("logs") == "secret is unknown\n"
    home.ask("purge", "last")
