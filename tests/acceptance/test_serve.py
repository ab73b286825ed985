"""``anubis serve``: starting, stopping, being killed, taking over, and who is kept out."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from .operated import PATIENCE, finishing, note, refused, serving, start, token

pytestmark = pytest.mark.acceptance


def test_a_run_goes_through_the_service(home: Any) -> None:
    with serving(home) as served:
        run_id = served.submit("echo hello")
        run = served.wait_for(run_id, "SUCCEEDED")
        assert run["outcome"]["exit_code"] == 0
        assert note(home) == {"pid": served.process.pid, "address": served.address}
        assert served.address in home.call("doctor").stdout.decode()
        assert served.end() == 0
    assert not (home.path / "service.json").exists()
    assert not (home.path / "runtime.pid").exists()


def test_the_original_client_finds_its_header_in_the_very_case(home: Any) -> None:
    with serving(home) as served:
        head = subprocess.run(
            ["curl", "-sS", "-D", "-", "-o", "/dev/null", f"{served.address}/api/v1/health"],
            capture_output=True,
            check=True,
            timeout=PATIENCE,
        ).stdout.decode()
    assert "\r\nX-Service-Version: 0.6.2\r\n" in head
    assert head.startswith("HTTP/1.1 200")
    assert "\r\nserver:" not in head.lower()


def test_commands_on_the_same_home_work_beside_the_service(home: Any) -> None:
    with serving(home) as served:
        assert home.call("run", home.descriptor("echo loss=0.5")).returncode == 0
        with served.client() as client:
            [run] = client.get("/api/v1/runs").json()["runs"]
        assert run["state"] == "SUCCEEDED"
        assert int((home.path / "runtime.pid").read_text()) == served.process.pid


def test_a_service_takes_over_from_a_background_runtime(home: Any) -> None:
    home.ask("submit", home.descriptor("sleep 3; echo loss=1"))
    home.wait_for("RUNNING", "status", "last")
    with serving(home) as served:
        assert int((home.path / "runtime.pid").read_text()) == served.process.pid
        with served.client() as client:
            [run] = client.get("/api/v1/runs").json()["runs"]
        served.wait_for(run["id"], "SUCCEEDED")
        assert "loss=1" in home.ask("logs", "last")


def test_a_second_service_of_a_home_is_told_of_the_first(home: Any) -> None:
    with serving(home) as served:
        said = refused(home, "--port", "0")
        assert str(served.process.pid) in said
        assert served.address in said
        with served.client() as client:
            assert client.get("/api/v1/ready").status_code == 200


def test_a_port_in_use_is_explained_and_nothing_is_disturbed(home: Any) -> None:
    home.ask("submit", home.descriptor("sleep 2"))
    home.wait_for("RUNNING", "status", "last")
    background = (home.path / "runtime.pid").read_text()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        said = refused(home, "--port", port)
    assert port in said
    assert "Address already in use" in said
    assert (home.path / "runtime.pid").read_text() == background
    home.wait_for("SUCCEEDED", "status", "last")


def test_a_host_that_is_not_ours_is_explained(home: Any) -> None:
    assert "192.0.2.1" in refused(home, "--host", "192.0.2.1")


def test_a_killed_service_loses_nothing_and_the_next_one_goes_on(home: Any) -> None:
    with serving(home) as served:
        long = served.submit("sh -c 'for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.5; done'")
        waiting = served.submit("echo later")
        served.wait_for(long, "RUNNING")
        served.end(signal.SIGKILL)
    with serving(home) as again:
        assert again.wait_for(long, "SUCCEEDED")["outcome"]["exit_code"] == 0
        again.wait_for(waiting, "SUCCEEDED")
        with again.client() as client:
            text = client.get(f"/api/v1/runs/{long}/logs", headers={"Accept": "text/plain"}).text
    assert text.splitlines() == [f"line {number}" for number in range(1, 9)]


def test_a_hundred_active_runs_go_on_over_a_restart_and_end_truthfully(home: Any) -> None:
    home.environment["ANUBIS_SLOTS"] = "100"
    gate = home.folder / "gate"  # programs wait in it until somebody has opened and closed it
    os.mkfifo(gate)
    with serving(home) as served:
        ids = [served.submit(f"sh -c 'cat {gate}; exit {number % 2}'") for number in range(100)]
        served.wait_for_count("RUNNING", 100)
        assert served.end() == 0
    with serving(home) as again:
        assert again.counts()["RUNNING"] == 100
        gate.write_bytes(b"")
        again.wait_for_count("SUCCEEDED", 50)
        again.wait_for_count("FAILED", 50)
        for number in (0, 1, 98, 99):
            run = again.run(ids[number])
            assert run["outcome"]["exit_code"] == number % 2


def test_who_waits_for_an_answer_gets_it_before_the_service_leaves(home: Any) -> None:
    """Watchers are told to come back; they are not cut off in the middle of a frame."""
    with serving(home) as served:
        run_id = served.submit("sleep 20")
        served.wait_for(run_id, "RUNNING")
        with served.client() as client, client.stream("GET", "/api/v1/events/stream") as stream:
            assert stream.status_code == 200
            assert served.end() == 0
            assert stream.read() is not None  # ends in order, without an error
    with serving(home) as served, served.client() as client:
        client.post(f"/api/v1/runs/{run_id}/cancel")
        served.wait_for(run_id, "CANCELED")


def test_interrupting_it_at_the_terminal_is_an_orderly_end(home: Any) -> None:
    with serving(home) as served:
        assert served.end(signal.SIGINT) == 0


def test_an_address_that_others_reach_needs_an_admin_first(home: Any) -> None:
    said = refused(home, "--host", "0.0.0.0", "--port", "0")
    assert "anubis token create" in said
    token(home, "eve", "submitter")
    assert "anubis token create" in refused(home, "--require-tokens", "--port", "0")


def test_tokens_are_required_wherever_others_can_reach_us(home: Any) -> None:
    secret = token(home, "root", "admin")
    with serving(home, "--host", "0.0.0.0") as served:
        address = served.address.replace("0.0.0.0", "127.0.0.1")
        with httpx.Client(base_url=address) as client:
            assert client.get("/api/v1/health").status_code == 200
            assert client.get("/api/v1/runs").status_code == 401
            bearer = {"Authorization": f"Bearer {secret}"}
            assert client.get("/api/v1/runs", headers=bearer).status_code == 200
            assert client.get("/api/v1/runs", auth=("root", secret)).status_code == 200
    assert secret not in (home.folder / "serve.log").read_text()
    assert secret.encode() not in (home.path / "anubis.sqlite").read_bytes()


def test_a_token_revoked_on_the_machine_opens_nothing_at_once(home: Any) -> None:
    token(home, "root", "admin")
    secret = token(home, "ada", "submitter")
    token_id = home.ask("token", "list").splitlines()[1].split()[0]
    with serving(home, "--require-tokens") as served, served.client(secret) as client:
        assert client.get("/api/v1/me").json()["user"] == "ada"
        assert "revoked" in home.ask("token", "revoke", token_id)
        assert client.get("/api/v1/me").status_code == 401


def test_runs_belong_to_their_submitter(home: Any) -> None:
    admin, ada, bob = (
        token(home, "root", "admin"),
        token(home, "ada", "submitter"),
        token(home, "bob", "submitter"),
    )
    with serving(home, "--require-tokens") as served:
        run_id = served.submit("sleep 30", ada)
        with served.client(bob) as client:
            assert client.get(f"/api/v1/runs/{run_id}").json()["submitter"] == "ada"
            refusal = client.post(f"/api/v1/runs/{run_id}/cancel")
            assert refusal.status_code == 403
            assert "ada" in refusal.json()["detail"]
            assert client.delete(f"/api/v1/runs/{run_id}").status_code == 403
        with served.client(admin) as client:
            assert client.delete(f"/api/v1/runs/{run_id}").status_code == 204
            entries = client.get("/api/v1/audit").json()["entries"]
    done = [(one["user"], one["allowed"]) for one in entries if one["target"] == run_id]
    assert ("bob", False) in done
    assert ("root", True) in done
    assert ("ada", True) in done


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def _certificate(authority: trustme.CA, folder: Path) -> tuple[str, str]:
    issued = authority.issue_cert("127.0.0.1", "localhost")
    chain, key = folder / "chain.pem", folder / "key.pem"
    chain.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    return str(chain), str(key)


def test_with_a_certificate_it_speaks_tls_and_nothing_else(
    home: Any, authority: trustme.CA
) -> None:
    chain, key = _certificate(authority, home.folder)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with serving(home, "--tls-certificate", chain, "--tls-key", key) as served:
        assert served.address.startswith("https://127.0.0.1:")
        with served.client(context=context) as client:
            assert client.get("/api/v1/health").status_code == 200
        with pytest.raises(httpx.ConnectError):
            served.client().get("/api/v1/health")
        with pytest.raises(httpx.TransportError):
            httpx.get(served.address.replace("https", "http") + "/api/v1/health")
        assert served.end() == 0


def test_a_certificate_that_cannot_be_used_is_explained(home: Any) -> None:
    nonsense = home.folder / "nonsense.pem"
    nonsense.write_text("this is no certificate")
    both = ("--tls-certificate", "nonsense.pem", "--tls-key", "nonsense.pem")
    assert str(nonsense) in refused(home, "--port", "0", *both)


def test_programs_keep_the_limit_of_open_files_that_the_service_was_started_with(
    home: Any,
) -> None:
    """The service raises its own for its connections; a measured program must not notice."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (700, before[1]))
    try:
        served = start(home)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    with finishing(served):
        run_id = served.submit("sh -c 'ulimit -Sn'")
        served.wait_for(run_id, "SUCCEEDED")
        assert home.ask("logs", run_id) == "700\n"
        limits = Path(f"/proc/{served.process.pid}/limits").read_text()
        [soft, hard] = re.findall(r"Max open files +(\d+) +(\d+)", limits)[0]
        assert soft == hard


def test_a_socket_kept_by_systemd_lets_clients_wait_over_a_restart(home: Any) -> None:
    with socket.socket() as kept:
        kept.bind(("127.0.0.1", 0))
        kept.listen()
        address = "http://{}:{}".format(*kept.getsockname())
        with finishing(start(home, inherits=kept)) as served:
            assert served.address == address
            assert served.end() == 0
        with socket.create_connection(kept.getsockname(), timeout=PATIENCE) as early:
            early.sendall(b"GET /api/v1/health HTTP/1.0\r\nHost: localhost\r\n\r\n")
            with finishing(start(home, inherits=kept)) as again:
                assert early.recv(4096).startswith(b"HTTP/1.1 200")
                run_id = again.submit("sh -c 'ls -l /proc/self/fd; env'")
                again.wait_for(run_id, "SUCCEEDED")
                assert "LISTEN_" not in home.ask("logs", run_id)


def test_heads_without_end_are_cut_off(home: Any) -> None:
    with serving(home) as served:
        host, port = served.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
            answer = b""
            try:
                for _ in range(200):
                    connection.sendall(b"x" * 4096)
                answer = connection.recv(4096)
            except (BrokenPipeError, ConnectionResetError):
                answer = answer or b"HTTP/1.1 431"  # closed while we were still sending
        assert answer.startswith(b"HTTP/1.1 431")
        with served.client() as client:
            assert client.get("/api/v1/health").status_code == 200


def test_what_is_no_http_is_answered_and_survived(home: Any) -> None:
    with serving(home) as served:
        host, port = served.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
            connection.sendall(os.urandom(64) + b"\r\n\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.1 400")
        with served.client() as client:
            assert client.get("/api/v1/ready").status_code == 200
