"""Write files for users without ever destroying one of theirs."""

from __future__ import annotations

from pathlib import Path

from anubis.domain.errors import UserError


def write_new(path: Path, content: bytes, *, force: bool = False, remedy: str) -> None:
    """Create a file. Raises UserError if it exists, unless forced, or cannot be written.

    ``remedy`` says what a user can do about a file that exists.
    """
    try:
        with path.open("wb" if force else "xb") as file:
            file.write(content)
    except FileExistsError:
        raise UserError(f"{path}: exists, and is not overwritten; {remedy}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error
