"""The live view, looked at through a real terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

import pytest

from .conftest import ANUBIS, PATIENCE, Home

pytestmark = pytest.mark.acceptance
COLUMNS = ("embedded", "remote")

HIDE, SHOW = b"\x1b[?25l", b"\x1b[?25h"
PROGRAM = """\
echo "epoch 1 loss=0.75"
while [ ! -e go ]; do sleep 0.1; done
echo "epoch 2 loss=0.25"
"""


class Terminal:
    """A pseudo-terminal of 80 by 24 cells with a command in it."""

    def __init__(self, home: Home, *words: str, term: str = "xterm-256color") -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = {**home.environment, "TERM": term}
        environment.pop("NO_COLOR", None)
        self.command = subprocess.Popen(
            [ANUBIS, *words],
            cwd=home.folder,
            env=environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            # So that Ctrl-C reaches it. Safe: no thread of this process holds a lock it needs.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        )
        os.close(slave)
        self.seen = b""

    def read_until(self, text: str) -> None:
        give_up = time.monotonic() + PATIENCE
        while text not in plain(self.seen):
            assert time.monotonic() < give_up, f"never showed {text!r}: {plain(self.seen)}"
            self._read()

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def finish(self) -> int:
        while self._read():
            pass
        os.close(self._master)
        return self.command.wait(PATIENCE)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], 1.0)
        if not ready:
            return self.command.poll() is None
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other side is closed
            return False
        self.seen += data
        return bool(data)


def plain(seen: bytes) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())


def screen(seen: bytes) -> list[str]:
    """What remains visible, for a program that only moves up, erases lines and starts again."""
    lines, row = [""], 0
    for token in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", seen.decode()):
        if token == "\n":
            row += 1
            lines.extend([""] * (row + 1 - len(lines)))
        elif token == "\x1b[2K":
            lines[row] = ""
        elif up := re.fullmatch(r"\x1b\[(\d*)A", token):
            row -= int(up[1] or 1)
        elif not token.startswith(("\x1b", "\r")):
            lines[row] += token
    return [line.rstrip() for line in lines]


def test_a_terminal_shows_the_run_live_and_keeps_only_the_results(home: Home) -> None:
    terminal = Terminal(home, "run", home.descriptor(PROGRAM))
    terminal.read_until("RUNNING")
    terminal.read_until("loss (nats)")
    terminal.read_until("› epoch 1 loss=0.75")
    terminal.read_until("Ctrl-C cancels the run")
    (home.folder / "go").touch()
    assert terminal.finish() == 0
    assert terminal.seen.count(HIDE) == terminal.seen.count(SHOW) == 1
    left = screen(terminal.seen)
    assert left[0].startswith("✔ SUCCEEDED  bench in")
    assert not any("Ctrl-C" in line or "RUNNING" in line for line in left)
    assert any(line.split()[:3] == ["loss", "(nats)", "2"] for line in left)


def test_ctrl_c_at_the_terminal_cancels_the_run(home: Home) -> None:
    terminal = Terminal(home, "run", home.descriptor(PROGRAM))
    terminal.read_until("› epoch 1")
    terminal.press(b"\x03")
    assert terminal.finish() == 130
    assert terminal.seen.count(HIDE) == terminal.seen.count(SHOW)
    assert "■ CANCELED  bench" in plain(terminal.seen)
    assert b"Traceback" not in terminal.seen


def test_ctrl_c_on_watch_gives_the_terminal_back_and_leaves_the_run(home: Home) -> None:
    home.ask("submit", home.descriptor(PROGRAM))
    terminal = Terminal(home, "watch")
    terminal.read_until("Ctrl-C stops watching")
    terminal.press(b"\x03")
    assert terminal.finish() == 130
    assert terminal.seen.count(HIDE) == terminal.seen.count(SHOW)
    assert "the run goes on: anubis watch" in plain(terminal.seen)
    (home.folder / "go").touch()
    assert home.call("watch").returncode == 0


def test_a_dumb_terminal_gets_plain_lines(home: Home) -> None:
    (home.folder / "go").touch()
    terminal = Terminal(home, "run", home.descriptor(PROGRAM), term="dumb")
    assert terminal.finish() == 0
    assert b"\x1b" not in terminal.seen
    assert "SUCCEEDED  benchmark exited with code 0" in terminal.seen.decode()


def test_a_list_on_a_terminal_is_coloured_and_fits(home: Home) -> None:
    (home.folder / "go").touch()
    home.ask("run", home.descriptor(PROGRAM))
    terminal = Terminal(home, "list")
    assert terminal.finish() == 0
    assert b"\x1b[32m" in terminal.seen
    assert all(len(line) <= 80 for line in plain(terminal.seen).splitlines())
