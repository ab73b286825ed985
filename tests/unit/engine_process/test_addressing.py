"""Ports of this machine are given to one run at a time, and stay with it."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from anubis.adapters.engine.process import addressing, directories
from anubis.adapters.engine.process.addressing import PortBook
from anubis.adapters.engine.process.directories import Directories
from anubis.adapters.engine.process.guardian import files, journal
from anubis.domain.errors import EngineUnavailable, NotPossible
from anubis.domain.plan import Limits, Plan, Unit
from anubis.testing.contracts.engine import a_new_run


@pytest.fixture
def book(directory: Path) -> Iterator[PortBook]:
    with contextlib.closing(PortBook(Directories(directory))) as book:
        yield book


@pytest.fixture
def free() -> int:
    """A port that nobody has now."""
    return next(filter(addressing.is_free, addressing._spare()))


@pytest.fixture
def taken() -> Iterator[int]:
    """A port where somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def a_plan(**ports: int) -> Plan:
    units = tuple(
        Unit(name=name, command=("true",), environment={}, ports=(port,))
        for name, port in ports.items()
    )
    return Plan(units=units, deciding=units[0].name, limits=Limits())


def test_the_declared_port_is_given_when_it_is_free(book: PortBook, free: int) -> None:
    assert book.allot(a_new_run(), a_plan(server=free)) == {f"port server {free}": free}


def test_where_somebody_listens_another_port_is_given(book: PortBook, taken: int) -> None:
    """One that the kernel gives to nobody who connects."""
    [port] = book.allot(a_new_run(), a_plan(server=taken)).values()
    assert port != taken
    assert port not in addressing._ephemeral()
    assert addressing.is_free(port)


def test_whoever_listens_at_any_address_has_the_port() -> None:
    with socket.create_server(("127.0.0.2", 0)) as server:
        assert not addressing.is_free(server.getsockname()[1])


def test_what_former_connections_left_behind_does_not_take_a_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            server.accept()[0].close()  # who closes first must remember the connection for a while
    assert addressing.is_free(port)


def test_a_run_keeps_its_ports_whoever_asks(book: PortBook, directory: Path, free: int) -> None:
    """Its later units, and a service that was started again, though the server listens by now."""
    run_id = a_new_run()
    given = book.allot(run_id, a_plan(server=free))
    with socket.create_server(("127.0.0.1", free)):
        again = PortBook(Directories(directory))  # which claims nothing: all is written down
        assert again.allot(run_id, a_plan(server=free)) == given == again.known(run_id)


def test_units_of_a_run_that_declare_the_same_port_get_different_ones(
    book: PortBook, free: int
) -> None:
    ports = book.allot(a_new_run(), a_plan(first=free, second=free))
    assert ports[f"port first {free}"] == free
    assert ports[f"port second {free}"] != free


def test_two_runs_never_get_the_same_port(directory: Path, free: int) -> None:
    """Even if they ask at the same moment, and nobody listens yet."""

    def allot(book: PortBook) -> int:
        return next(iter(book.allot(a_new_run(), a_plan(server=free)).values()))

    with contextlib.ExitStack() as stack, ThreadPoolExecutor(8) as pool:
        books = [PortBook(Directories(directory)) for _ in range(24)]
        for book in books:
            stack.enter_context(contextlib.closing(book))
        ports = list(pool.map(allot, books))
    assert len(set(ports)) == 24
    assert free in ports


def test_two_homes_never_get_the_same_port(book: PortBook, tmp_path: Path, free: int) -> None:
    """Though nobody listens yet: the second client would measure the first server."""
    run_id = a_new_run()
    assert list(book.allot(run_id, a_plan(server=free)).values()) == [free]
    with contextlib.closing(PortBook(Directories(tmp_path / "other home"))) as other:
        assert list(other.allot(a_new_run(), a_plan(server=free)).values()) != [free]
        book.release(run_id)
        assert list(other.allot(a_new_run(), a_plan(server=free)).values()) == [free]


@pytest.mark.parametrize("end", ["it ended", "it was removed"])
def test_the_port_of_a_run_that_is_over_is_free_again(
    book: PortBook, directory: Path, free: int, end: str
) -> None:
    run_id = a_new_run()
    book.allot(run_id, a_plan(server=free))
    place = directory / f"{run_id}.server"
    place.mkdir()
    journal.Journal.create(str(place)).close()
    assert list(book.allot(a_new_run(), a_plan(server=free)).values()) != [free]
    if end == "it ended":
        files.write_durably(str(place), files.STATUS, b"{}", sync=False)
    else:
        (directory / run_id / addressing.FILE).unlink()
    assert list(book.allot(a_new_run(), a_plan(server=free)).values()) == [free]


def test_a_machine_without_free_ports_says_so(
    book: PortBook, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addressing, "SPARE", range(taken, taken + 1))
    with pytest.raises(EngineUnavailable):
        book.allot(a_new_run(), a_plan(server=taken))


@pytest.mark.parametrize(
    ("written", "expected"),
    [("20000\t20009\n", range(20_000, 20_010)), ("", addressing.USUAL_EPHEMERAL)],
)
def test_the_kernel_is_asked_which_ports_it_gives_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, expected: range
) -> None:
    (tmp_path / "range").write_text(written)
    monkeypatch.setattr(addressing, "EPHEMERAL", tmp_path / "range")
    assert addressing._ephemeral() == expected
    assert not set(expected) & set(addressing._spare())


@pytest.mark.parametrize("name", ["", "Server", "a.b", "../x", "a/b", "x" * 41, "a b", "ä"])
def test_a_unit_cannot_be_named_like_a_path(directory: Path, name: str) -> None:
    with pytest.raises(NotPossible):
        Directories(directory).unit(a_new_run(), name)


def test_directories_are_found_by_run_whatever_else_lies_there(directory: Path) -> None:
    places = Directories(directory)
    assert places.runs() == []
    one, other = a_new_run(), a_new_run()
    names = [f"{one}.worker-1", one, f"{one}.server", f"{other}.server"]
    for name in names:
        (directory / name).mkdir(parents=True)
    (directory / "file").touch()
    assert places.runs() == sorted([one, other])
    found = [place.name for place in places.of(one)]
    assert found == [f"{one}.server", f"{one}.worker-1", one]
    assert places.unit(one, "server") == directory / f"{one}.server"
    assert places.unit(one, "benchmark") == places.run(one) == directory / one
    assert not any(map(directories.is_used, places.of(one)))
