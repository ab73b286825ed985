"""Which source reads a URI, and what is said where there is none."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

from anubis.adapters.dataset_source import available
from anubis.adapters.dataset_source.file import FileSource
from anubis.adapters.dataset_source.http import HttpSource
from anubis.adapters.dataset_source.object_store import ObjectStoreSource
from anubis.adapters.dataset_source.plugins import GROUP
from anubis.domain.errors import DatasetInvalid
from anubis.testing.contracts.dataset_source import content, listing

SOURCE = """
    from anubis.ports.dataset_source import Item, Listing

    class GreetingSource:
        schemes = frozenset({"greeting"})

        async def list(self, uri):
            name = uri.partition("://")[2]
            item = Item(name=name, address=name, size_bytes=None)
            return Listing(items=(item,), is_directory=False, has_ranges=False)

        async def read(self, item, start, end):
            yield f"Hello, {item.address}!".encode()
"""


def install(folder: pathlib.Path, name: str, module: str, source: str, points: str) -> None:
    """What an installer leaves of a distribution with one module and its entry points."""
    (folder / f"{module}.py").write_text(textwrap.dedent(source))
    facts = folder / f"{name}-1.2.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (facts / "entry_points.txt").write_text(f"[{GROUP}]\n{points}\n")


@pytest.fixture
def site(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A folder in which Python finds distributions."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_each_scheme_has_its_source_and_schemes_of_one_technology_share_it() -> None:
    ways = available.sources()

    assert isinstance(ways.choose("/data/x"), FileSource)
    assert isinstance(ways.choose("file:///data/x"), FileSource)
    assert isinstance(ways.choose("HTTPS://host/x"), HttpSource)
    assert isinstance(ways.choose("s3://bucket/x"), ObjectStoreSource)
    assert ways.choose("gs://bucket/x") is ways.choose("az://container/x")
    assert ways.choose("ftp://host/x") is ways.choose("ftps://host/x")
    assert {"", "file", "http", "https", "ftp", "ftps", "s3", "gs", "az"} <= set(ways)
    assert len(ways) == len(set(ways))


def test_nothing_heavy_is_loaded_before_a_scheme_is_asked_for() -> None:
    program = (
        "import sys; from anubis.adapters.dataset_source.available import sources; sources(); "
        "print(sorted({'obstore', 'httpx', 'ftplib', 'ssl', 'asyncio', 'importlib.metadata'} "
        "& sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True,
                          env={"PYTHONPATH": ":".join(sys.path)}, check=True)  # fmt: skip

    assert done.stdout == "[]\n"


def test_an_unknown_scheme_is_told_together_with_the_known_ones() -> None:
    with pytest.raises(DatasetInvalid, match=r"'gopher', expected one of: az, .*file.* s3"):
        available.sources().choose("gopher://host/x")


def test_a_password_is_refused_before_anything_else_is_looked_at() -> None:
    with pytest.raises(DatasetInvalid, match="password") as caught:
        available.sources().check("gopher://me:hunter2@host/x")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(("scheme", "extra"), [("s3", "s3"), ("gs", "gs"), ("az", "azure")])
def test_a_missing_library_is_told_by_the_name_of_its_extra(
    monkeypatch: pytest.MonkeyPatch, scheme: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(DatasetInvalid, match=rf"pip install 'anubis\[{extra}\]'"):
        available.sources().choose(f"{scheme}://bucket/x")


async def test_a_source_of_another_distribution_is_found_by_its_entry_point(
    site: pathlib.Path,
) -> None:
    install(site, "greetings", "greetings_a", SOURCE, "greeting = greetings_a:GreetingSource")
    ways = available.sources()
    ways.check("greeting://world")
    assert "greetings_a" not in sys.modules, "planning must not run foreign code"
    source = ways.choose("greeting://world")
    found = await listing(source, "greeting://world")

    assert await content(source, found.items[0]) == b"Hello, world!"
    assert ways.choose("GREETING://you") is source
    with pytest.raises(DatasetInvalid, match="greeting"):
        ways.choose("gopher://host/x")


async def test_the_plug_in_that_our_documents_show_works(site: pathlib.Path) -> None:
    text = (pathlib.Path(__file__).parents[3] / "docs/how-to/fetch-data.md").read_text()
    _, source = re.findall(r"```(?:ini|python)\n(.*?)```", text, flags=re.DOTALL)
    install(site, "anubis-noise", "anubis_noise", source, "noise = anubis_noise:NoiseSource")
    noise = available.sources().choose("noise://7/3000000")
    found = await listing(noise, "noise://7/3000000")
    whole = await content(noise, found.items[0])

    assert len(whole) == 3_000_000
    assert await content(noise, found.items[0], 1_500_000, 1_500_010) == whole[1_500_000:1_500_010]
    with pytest.raises(DatasetInvalid, match="SEED/SIZE"):
        await noise.list("noise://7")


def test_a_plug_in_cannot_take_over_a_scheme_of_ours(site: pathlib.Path) -> None:
    install(site, "thief", "thief", SOURCE, "https = thief:GreetingSource")

    assert isinstance(available.sources().choose("https://host/x"), HttpSource)


@pytest.mark.parametrize(
    ("source", "point", "words"),
    [
        ("import no_such_module_at_all", "broken_a:Source", "ModuleNotFoundError"),
        ("x = 1", "broken_b:Source", "AttributeError"),
        ("Source = dict", "broken_c:Source", "gave a dict, expected a source"),
        ("def Source(): raise RuntimeError('no')", "broken_d:Source", "RuntimeError: no"),
    ],
)
def test_a_plug_in_that_cannot_be_loaded_is_named(
    site: pathlib.Path, source: str, point: str, words: str
) -> None:
    install(site, "broken", point.partition(":")[0], source, f"broken = {point}")
    with pytest.raises(DatasetInvalid, match=f"broken 1.2 for broken:// .*{words}"):
        available.sources().choose("broken://x")


def test_two_plug_ins_for_one_scheme_are_both_named(site: pathlib.Path) -> None:
    install(site, "one", "one_a", SOURCE, "twice = one_a:GreetingSource")
    install(site, "two", "two_a", SOURCE, "twice = two_a:GreetingSource")
    with pytest.raises(DatasetInvalid, match=r"(one 1.2 and two 1.2|two 1.2 and one 1.2) both"):
        available.sources().choose("twice://x")
