"""All ways to fetch that this installation has, each loaded when its scheme is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from anubis.adapters.dataset_source.plugins import plugins
from anubis.domain.dataset import refuse_secrets, scheme_of, shown
from anubis.domain.errors import DatasetInvalid
from anubis.ports.dataset_source import DatasetSource

EXTRAS = {"s3": "s3", "gs": "gs", "az": "azure"}
"""Schemes that need a library which a plain installation lacks, and the extra that has it."""


class Sources(Mapping[str, DatasetSource]):
    """Sources by scheme; the empty one is that of plain paths.

    Our own come first: a plug-in cannot take ``https`` over. A key can be there and its value be
    an error: DatasetInvalid, where a library is missing or a plug-in cannot be loaded.
    """

    def __init__(self) -> None:
        self._loaded: dict[str, DatasetSource] = {}

    def choose(self, uri: str) -> DatasetSource:
        """The source that reads this URI.

        Raises DatasetInvalid for an unknown scheme, a missing library, and a password in the URI.
        """
        self.check(uri)
        return self[scheme_of(uri)]

    def check(self, uri: str) -> None:
        """Raise as ``choose`` does, without loading anything; for whoever plans."""
        refuse_secrets(uri)
        scheme = scheme_of(uri)
        if scheme not in self:
            known = ", ".join(sorted(name for name in self if name))
            raise DatasetInvalid(
                f"{shown(uri)}: found the scheme {scheme!r}, expected one of: {known}. "
                f"Others come with plug-ins, see docs/how-to/fetch-data.md"
            )
        _demand_library(scheme)

    def __getitem__(self, scheme: str) -> DatasetSource:
        if scheme not in self._loaded:
            _demand_library(scheme)
            maker = _OUR_OWN.get(scheme)
            source = maker() if maker else plugins()[scheme].load()
            ours = source.schemes if maker else frozenset({scheme})
            self._loaded |= dict.fromkeys(ours, source)
        return self._loaded[scheme]

    def __contains__(self, scheme: object) -> bool:
        return scheme in _OUR_OWN or scheme in plugins()

    def __iter__(self) -> Iterator[str]:
        yield from _OUR_OWN
        yield from plugins().keys() - _OUR_OWN.keys()

    def __len__(self) -> int:
        return sum(1 for _ in self)


def sources() -> Sources:
    """Costs nothing: nothing is loaded yet."""
    return Sources()


def _file() -> DatasetSource:
    from anubis.adapters.dataset_source.file import FileSource

    return FileSource()


def _http() -> DatasetSource:
    from anubis.adapters.dataset_source.http import HttpSource

    return HttpSource()


def _ftp() -> DatasetSource:
    from anubis.adapters.dataset_source.ftp import FtpSource

    return FtpSource()


def _objects() -> DatasetSource:
    from anubis.adapters.dataset_source.object_store import ObjectStoreSource

    return ObjectStoreSource()


# Imported by functions, because a command that fetches nothing must start fast.
_OUR_OWN: Mapping[str, Callable[[], DatasetSource]] = {
    "": _file,
    "file": _file,
    "http": _http,
    "https": _http,
    "ftp": _ftp,
    "ftps": _ftp,
    "s3": _objects,
    "gs": _objects,
    "az": _objects,
}


def _demand_library(scheme: str) -> None:
    extra = EXTRAS.get(scheme)
    if extra and not _has_obstore():
        raise DatasetInvalid(
            f"{scheme}:// needs a library that is not installed: "
            f"pip install 'anubis[{extra}]', or make extras in a clone"
        )


def _has_obstore() -> bool:
    import importlib.util

    return importlib.util.find_spec("obstore") is not None
