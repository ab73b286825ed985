"""``logs -f`` shows what comes, and only that, when nothing of the past is wanted."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.acceptance
COLUMNS = ("embedded", "remote")


def test_following_without_the_past_shows_only_what_comes(home: Any) -> None:
    file = home.descriptor("echo before; until [ -e go ]; do echo tick; sleep 0.1; done; echo end")
    run_id = home.ask("submit", file).strip()
    home.wait_for("before", "logs", run_id)
    following = home.start("logs", "-f", "--tail", "0", run_id)
    assert following.stdout.readline() == b"tick\n"
    (home.folder / "go").write_text("")
    output, _ = following.communicate(timeout=60)
    assert set(output.splitlines()) <= {b"tick", b"end"}
    assert output.endswith(b"end\n")
