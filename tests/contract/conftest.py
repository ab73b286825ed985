"""Servers that contract tests need."""

from __future__ import annotations

from tests.data_fixtures import certificate, ftp, ftps, old_ftp, s3

__all__ = ["certificate", "ftp", "ftps", "old_ftp", "s3"]
