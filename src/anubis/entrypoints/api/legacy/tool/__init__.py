"""The client that the service hands out: one file that needs nothing but Python 3.8."""

from __future__ import annotations

from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).with_name("anubis.py")
