"""The client that the service hands out: one file that needs nothing but Python 3.8."""

from __future__ import annotations

from pathlib import Path
from typing import Final

NAME: Final = "anubis"
"""What the original client calls itself when it asks for a newer one."""

FILE: Final = Path(__file__).with_name("anubis.py")
