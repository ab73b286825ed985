"""One connection to an FTP server: blocking, for threads, with the standard library.

Work is given to ``do``, by one thread at a time. ``abandon`` may be called by another: it wakes the
one that waits, which then closes the connection. Closing is left to it because TLS goes on with the
number of a closed socket, which may be that of another file by then.
"""

from __future__ import annotations

import contextlib
import dataclasses
import ftplib
import netrc
import pathlib
import socket
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from anubis.adapters.dataset_source.names import check_count
from anubis.domain.dataset import refuse_secrets, shown
from anubis.domain.errors import DatasetInvalid, SourceUnavailable
from anubis.ports.dataset_source import Item

DEEPEST = 32
"""Folders in folders. A link to a folder above leads down without end; Linux stops at 40, and then
some servers tell the link as a file."""
PIECE_BYTES = 1024**2
_UNKNOWN = ("500", "501", "502", "504")
"""What a server answers that does not know a command or its argument."""


T = TypeVar("T")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """What a URI names."""

    scheme: str
    host: str
    port: int
    path: str  #: relative to where the login leads, unless it begins with a slash

    @property
    def server(self) -> str:
        """As people may see it."""
        return f"{self.scheme}://{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.server}/{self.path}"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A file or folder of a server."""

    path: str
    is_folder: bool
    size_bytes: int | None
    changed: str  #: a time in the server's words; empty if it does not tell


def place_of(uri: str) -> Place:
    """Read a URI as RFC 1738 says. Raises DatasetInvalid."""
    refuse_secrets(uri)
    try:
        parts = urllib.parse.urlsplit(uri)
        port = parts.port or ftplib.FTP_PORT
        path = urllib.parse.unquote(parts.path.removeprefix("/"), errors="strict")
    except UnicodeDecodeError:
        raise DatasetInvalid(f"{uri}: the path is not UTF-8 behind its % signs") from None
    except ValueError:
        raise DatasetInvalid(
            f"{uri}: found no number as the port, or no name as the host"
        ) from None
    if not parts.hostname or "@" in parts.netloc:
        raise DatasetInvalid(
            f"{uri}: expected {parts.scheme}://host/path. Users are named in ~/.netrc"
        )
    if parts.query or parts.fragment:
        raise DatasetInvalid(f"{shown(uri)}: write '?' and '#' of a path as %3F and %23")
    if any(ord(character) < 32 for character in path):
        raise DatasetInvalid(f"{uri}: found a control character in the path")
    return Place(scheme=parts.scheme.lower(), host=parts.hostname, port=port, path=path)


class Session:
    """A login. Every wait of it ends after ``seconds``."""

    def __init__(self, place: Place, environment: Mapping[str, str], seconds: float) -> None:
        self._place = place
        self._environment = environment
        self._seconds = seconds
        self._ftp: _PlainFtp | _SecureFtp | None = None
        self._data: socket.socket | None = None
        self._is_abandoned = False
        self._working = threading.Lock()

    def do(self, work: Callable[..., T], *arguments: object) -> T:
        """Run ``work``, which may use this session."""
        try:
            with self._working:
                return work(*arguments)
        finally:
            if self._is_abandoned:
                self._close()

    def abandon(self) -> None:
        """End it, in the middle of whatever is being done."""
        self._is_abandoned = True
        if self._ftp is not None:
            self._ftp.is_abandoned = True
        for one in self._sockets():
            with contextlib.suppress(OSError):
                # Not that of SSLSocket, which changes what a waiting thread uses.
                socket.socket.shutdown(one, socket.SHUT_RDWR)
        self._close()

    def login(self) -> None:
        """Connect, with TLS where the scheme says so."""
        place = self._place
        user, password = _credentials(place.host, self._environment)
        with translated(place):
            ftp = _SecureFtp() if place.scheme == "ftps" else _PlainFtp()
            self._ftp = ftp
            ftp.is_abandoned = self._is_abandoned
            ftp.connect(place.host, place.port, timeout=self._seconds)
            ftp.login(user, password)
            if isinstance(ftp, _SecureFtp):
                ftp.prot_p()
            ftp.voidcmd("TYPE I")

    def entry(self, path: str) -> Entry | None:
        """What is there; None if the server says that nothing is."""
        if not path:
            return Entry(path="", is_folder=True, size_bytes=None, changed="")
        size = self._asked(f"SIZE {path}")
        if not size and self._is_folder(path):
            return Entry(path=path, is_folder=True, size_bytes=None, changed="")
        changed = self._asked(f"MDTM {path}")
        if not size and not changed:
            return None
        return Entry(path=path, is_folder=False, size_bytes=_number(size), changed=changed)

    def files_below(self, folder: str) -> Iterator[Entry]:
        """All files, in folders of folders."""
        waiting, count = [(folder, 0)], 0
        while waiting:
            path, depth = waiting.pop()
            if depth > DEEPEST:
                raise DatasetInvalid(f"{self._place}: found more than {DEEPEST} folders in folders")
            for entry in self._children(path):
                count += 1
                check_count(count, str(self._place))
                if entry.is_folder:
                    waiting.append((entry.path, depth + 1))
                else:
                    yield entry

    def begin(self, path: str, start: int) -> None:
        """Ask for a file from ``start`` on."""
        with translated(self._place):
            self._data = self._connected.transfercmd(f"RETR {path}", rest=start or None)

    def piece(self, most: int) -> bytes:
        """The next bytes, about as many as a piece should have; empty at the end of the file."""
        assert self._data is not None
        parts: list[bytes] = []
        left = min(most, PIECE_BYTES)
        with translated(self._place):
            while left and (part := self._data.recv(min(left, 256 * 1024))):
                parts.append(part)
                left -= len(part)
        return b"".join(parts)

    def finish(self, *, is_whole: bool) -> None:
        """Hear from the server whether all was sent. It complains if we stopped before."""
        assert self._data is not None
        with translated(self._place):
            if is_whole and self._data.recv(1):
                raise SourceUnavailable(f"{self._place} became longer while it was read")
            self._data.close()
            try:
                self._connected.voidresp()
            except (ftplib.error_temp, ftplib.error_perm):
                if is_whole:
                    raise

    def _sockets(self) -> list[socket.socket]:
        both = (self._data, self._ftp.sock if self._ftp else None)
        return [one for one in both if one is not None]

    def _close(self) -> None:
        """Unless somebody works: then he does it."""
        if not self._working.acquire(blocking=False):
            return
        try:
            for one in self._sockets():
                with contextlib.suppress(OSError):
                    one.close()
            if self._ftp is not None:
                with contextlib.suppress(OSError):
                    self._ftp.close()
        finally:
            self._working.release()

    @property
    def _connected(self) -> ftplib.FTP:
        assert self._ftp is not None
        return self._ftp

    def _asked(self, command: str) -> str:
        """The answer; empty if there is none."""
        with translated(self._place):
            try:
                answer = self._connected.sendcmd(command)
            except ftplib.error_perm:
                return ""
        return answer[3:].strip() if answer.startswith("213") else ""

    def _is_folder(self, path: str) -> bool:
        with translated(self._place):
            home = self._connected.pwd()
            try:
                self._connected.cwd(path)
            except ftplib.error_perm:
                return False
            self._connected.cwd(home)
        return True

    def _children(self, folder: str) -> list[Entry]:
        with translated(self._place):
            try:
                lines = list(self._connected.mlsd(folder, ["type", "size", "modify"]))
            except ftplib.error_perm as error:
                if not str(error).startswith(_UNKNOWN):
                    raise
                return self._children_of_old_server(folder)
        return [
            Entry(
                path=_joined(folder, name),
                is_folder=facts.get("type", "").lower() == "dir",
                size_bytes=_number(facts.get("size", "")),
                changed=facts.get("modify", ""),
            )
            for name, facts in lines
            if facts.get("type", "").lower() not in {"cdir", "pdir"} and name not in {".", ".."}
        ]

    def _children_of_old_server(self, folder: str) -> list[Entry]:
        """Names alone, and a question for each: some servers know no MLSD (RFC 3659)."""
        try:
            listed = self._connected.nlst(*([folder] if folder else []))
        except ftplib.error_perm:
            return []  # their answer for an empty folder
        finally:
            self._connected.voidcmd("TYPE I")  # lists are text, and sizes of text are other sizes
        names = {path.rpartition("/")[2] for path in listed} - {"", ".", ".."}
        entries = (self.entry(_joined(folder, name)) for name in sorted(names))
        return [entry for entry in entries if entry is not None]


class _PlainFtp(ftplib.FTP):
    """One that may be abandoned while it connects, when there is no socket to wake it by yet."""

    is_abandoned = False

    def getresp(self) -> str:
        if self.is_abandoned:
            raise OSError("given up")
        return super().getresp()


class _SecureFtp(ftplib.FTP_TLS):
    """With a verified certificate, and one TLS session for both connections.

    Many servers refuse a data connection that does not continue the session of the commands.
    """

    is_abandoned = False

    def __init__(self) -> None:
        super().__init__(context=ssl.create_default_context())

    def getresp(self) -> str:
        if self.is_abandoned:
            raise OSError("given up")
        return super().getresp()

    def ntransfercmd(
        self, cmd: str, rest: int | str | None = None
    ) -> tuple[socket.socket, int | None]:
        plain, size = ftplib.FTP.ntransfercmd(self, cmd, rest)  # noqa: S321 - TLS follows
        session = self.sock.session if isinstance(self.sock, ssl.SSLSocket) else None
        wrapped = self.context.wrap_socket(plain, server_hostname=self.host, session=session)
        return wrapped, size


def version_of(entry: Entry) -> str:
    """Time and size: all that FTP tells. Without parts of seconds, which not all answers have."""
    return f"{entry.changed[:14]} {entry.size_bytes}" if entry.changed else ""


def item_of(place: Place, entry: Entry, name: str) -> Item:
    """An entry as the port wants it."""
    return Item(
        name=name,
        address=f"{place.server}/{urllib.parse.quote(entry.path)}",
        size_bytes=entry.size_bytes,
        version=version_of(entry),
    )


@contextlib.contextmanager
def translated(place: Place) -> Iterator[None]:
    """Our errors for those of the library."""
    try:
        yield
    except ftplib.error_perm as error:
        code = str(error)[:3]
        if code in {"530", "532", "331"}:
            raise DatasetInvalid(
                f"{place}: the server refused the login ({code}). User and password come from "
                f"~/.netrc or the file that NETRC names, else the login is anonymous"
            ) from error
        raise DatasetInvalid(f"{place} cannot be read; the server says: {error}") from error
    except ssl.SSLCertVerificationError as error:
        raise DatasetInvalid(
            f"{place.server} has a certificate that is not trusted: {error.verify_message}. "
            f"SSL_CERT_FILE can name the authority"
        ) from error
    except (ftplib.Error, OSError, EOFError, ValueError) as error:
        words = str(error) or type(error).__name__
        raise SourceUnavailable(f"{place.server} did not answer well: {words}") from error


def _credentials(host: str, environment: Mapping[str, str]) -> tuple[str, str]:
    home = environment.get("HOME") or "/nonexistent"
    file = pathlib.Path(environment.get("NETRC") or f"{home}/.netrc")
    if not file.exists():
        return "anonymous", "anonymous@"
    try:
        found = netrc.netrc(str(file)).authenticators(host)
    except (netrc.NetrcParseError, OSError, UnicodeDecodeError) as error:
        # Its text may quote the file.
        raise DatasetInvalid(f"{file} cannot be read: {type(error).__name__}") from None
    return (found[0], found[2] or "") if found else ("anonymous", "anonymous@")


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def _joined(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if folder else name
