"""Archives of code: the same content has the same name, and what cannot travel is refused."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import string
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anubis.adapters.script_store import inspecting, packing
from anubis.adapters.script_store.memory import MemoryScriptStore
from anubis.domain.errors import UserError
from anubis.testing.clock import ManualClock

File = tuple[bytes, bool]  # what is in it, and whether it is executable
Tree = Mapping[str, File]  # by the path of each file

NAMES = st.text(string.ascii_letters + string.digits + "._-äß ", min_size=1, max_size=12).filter(
    lambda name: name not in {".", "..", *packing.LEFT_OUT}
)
CONTENT = st.binary(max_size=2000)


@st.composite
def trees(draw: st.DrawFn) -> dict[str, File]:
    """Folders begin with another letter than files, so that no path is both."""
    folders = draw(st.lists(NAMES.map(lambda name: f"d{name}"), max_size=3, unique=True))
    paths = st.builds(lambda folder, name: f"{folder}f{name}", _folder(folders), NAMES)
    files = st.tuples(CONTENT, st.booleans())
    return draw(st.dictionaries(paths, files, min_size=1, max_size=8))


def _folder(names: list[str]) -> st.SearchStrategy[str]:
    return st.sampled_from(["", *(f"{name}/" for name in names)])


def make(folder: Path, tree: Iterable[tuple[str, File]], *, umask: int, moment: float) -> Path:
    """Write the files in this order, under this umask, and let them all be this old."""
    root = folder / "src"
    before = os.umask(umask)
    try:
        root.mkdir()
        for path, (content, is_executable) in tree:
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            place.chmod(place.stat().st_mode | (0o100 if is_executable else 0))
        for place in [root, *root.rglob("*")]:
            os.utime(place, (moment, moment))
    finally:
        os.umask(before)
    return root


def name_of(path: Path | str) -> str:
    with contextlib.closing(packing.pack(str(path))) as archive:
        return archive.name


@contextlib.contextmanager
def folders(count: int) -> Iterator[list[Path]]:
    with contextlib.ExitStack() as stack:
        temporary = (tempfile.TemporaryDirectory() for _ in range(count))
        yield [Path(stack.enter_context(one)) for one in temporary]


@given(tree=trees(), chance=st.randoms(use_true_random=False))
def test_order_times_and_rights_of_others_change_nothing(tree: Tree, chance: object) -> None:
    shuffled = list(tree.items())
    chance.shuffle(shuffled)  # type: ignore[attr-defined] # Hypothesis' own kind of random.Random
    with folders(2) as (one, other):
        first = make(one, tree.items(), umask=0o077, moment=1e9)
        second = make(other, shuffled, umask=0o002, moment=1.5e9)
        assert name_of(first) == name_of(second)


@given(tree=trees(), data=st.data())
def test_any_change_of_content_changes_the_name(tree: Tree, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(tree)))
    content, is_executable = tree[path]
    change: dict[str, Tree] = {
        "content": {**tree, path: (content + b"\0", is_executable)},
        "executable": {**tree, path: (content, not is_executable)},
        "one more": {**tree, "g": (b"", False)},
        "one less": {one: file for one, file in tree.items() if one != path},
    }
    changed = change[data.draw(st.sampled_from(sorted(change)))]
    with folders(2) as (one, other):
        first = make(one, tree.items(), umask=0o022, moment=1e9)
        second = make(other, changed.items(), umask=0o022, moment=1e9)
        assert name_of(first) != name_of(second)


@given(tree=trees())
async def test_a_store_takes_every_archive_and_gives_back_what_was_packed(tree: Tree) -> None:
    store = MemoryScriptStore(ManualClock())
    with folders(2) as (place, unpacked):
        root = make(place, tree.items(), umask=0o022, moment=1e9)
        brought = await packing.bring(str(root), store)
        await store.unpack(brought.name, str(unpacked))
        found = {
            str(path.relative_to(unpacked / "src")): path.read_bytes()
            for path in unpacked.rglob("*")
            if path.is_file()
        }
    assert found == {path: content for path, (content, _) in tree.items()}
    assert brought.files == len(tree)


async def test_what_is_there_is_not_sent_again(tmp_path: Path) -> None:
    store = MemoryScriptStore(ManualClock())
    (tmp_path / "train.py").write_text("print(1)")
    first = await packing.bring(str(tmp_path / "train.py"), store)
    second = await packing.bring(str(tmp_path / "train.py"), store)
    assert (first.was_there, second.was_there) == (False, True)
    assert first.name == second.name


async def unpacked(path: Path, into: Path) -> Path:
    store = MemoryScriptStore(ManualClock())
    brought = await packing.bring(str(path), store)
    into.mkdir()
    await store.unpack(brought.name, str(into))
    return into


async def test_a_file_and_a_folder_keep_their_names(tmp_path: Path) -> None:
    (tmp_path / "src" / "empty").mkdir(parents=True)
    (tmp_path / "src" / "train.py").write_text("1")
    alone = await unpacked(tmp_path / "src" / "train.py", tmp_path / "a")
    folder = await unpacked(tmp_path / "src" / "empty" / "..", tmp_path / "b")
    assert [path.name for path in alone.iterdir()] == ["train.py"]
    assert {str(path.relative_to(folder)) for path in folder.rglob("*")} == {
        "src",
        "src/empty",
        "src/train.py",
    }


async def test_the_folder_that_is_meant_need_not_be_written_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "src"
    source.mkdir()
    (source / "train.py").write_text("1")
    monkeypatch.chdir(source)
    assert name_of(".") == name_of("../src/") == name_of(source)


async def test_a_link_to_a_folder_is_packed_under_the_name_of_the_link(tmp_path: Path) -> None:
    (tmp_path / "version-7").mkdir()
    (tmp_path / "version-7" / "train.py").write_text("1")
    (tmp_path / "src").symlink_to("version-7")
    found = await unpacked(tmp_path / "src", tmp_path / "out")
    assert (found / "src" / "train.py").read_text() == "1"


def packed(source: Path, into: Path) -> Path:
    """An archive of ``source`` as a file, under the name that it must have."""
    with contextlib.closing(packing.pack(str(source))) as archive:
        archive.content.seek(0)
        made = into / archive.name
        made.write_bytes(archive.content.read())
    return made


async def test_an_archive_that_is_called_by_its_fingerprint_is_handed_on_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make(tmp_path, {"a": (b"1", True), "b/c": (b"2", False)}.items(), umask=0, moment=1e9)
    archive = packed(source, tmp_path)
    (tmp_path / "link").mkdir()
    link = tmp_path / "link" / archive.name
    link.symlink_to(archive)  # as volumes of pods have them
    no_room = "no temporary file may be needed: pods have no room for one"
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: pytest.fail(no_room))
    store = MemoryScriptStore(ManualClock())
    brought = await packing.bring(str(link), store)
    assert (brought.name, brought.files) == (archive.name, 2)
    assert await store.read(archive.name, most=brought.size) == archive.read_bytes()
    assert archive.exists()


def test_an_archive_under_the_name_of_another_is_refused(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    archive = packed(tmp_path / "src", tmp_path)
    archive.write_bytes(archive.read_bytes()[:-512])
    with pytest.raises(UserError, match=r"found content that must be called [0-9a-f]{64}\.tar"):
        packing.pack(str(archive))


def test_an_archive_that_leads_out_of_its_folder_is_refused_whatever_its_name(
    tmp_path: Path,
) -> None:
    made = tmp_path / "x.tar"
    with tarfile.open(made, "w") as archive:
        archive.addfile(tarfile.TarInfo("../evil"))
    named = made.rename(tmp_path / f"{hashlib.sha256(made.read_bytes()).hexdigest()}.tar")
    with pytest.raises(UserError, match=r"leads out of the archive's folder"):
        packing.pack(str(named))


@pytest.mark.parametrize("name", ["code.tar", f"{'0' * 40}.tar"])
async def test_any_other_archive_is_code_like_any_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"whatever it is")
    found = await unpacked(tmp_path / name, tmp_path / "out")
    assert (found / name).read_bytes() == b"whatever it is"


def test_what_tools_keep_beside_the_code_is_left_out(tmp_path: Path) -> None:
    source = tmp_path / "src"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "train.py").write_text("1")
    before = name_of(source)
    for name in packing.LEFT_OUT:
        (source / "deep" / name).mkdir()
        (source / "deep" / name / "thing").write_text("2")
    (source / ".git").write_text("gitdir: elsewhere")  # as submodules have it
    assert name_of(source) == before


async def test_links_within_the_folder_stay_links(tmp_path: Path) -> None:
    source = tmp_path / "src"
    (source / "a").mkdir(parents=True)
    (source / "a" / "data").write_text("1")
    (source / "file").symlink_to("./a/data")
    (source / "a" / "up").symlink_to("../file")
    found = await unpacked(source, tmp_path / "out")
    assert (found / "src" / "file").readlink() == Path("a/data")
    assert (found / "src" / "a" / "up").read_text() == "1"


@pytest.mark.parametrize("target", ["/etc/hostname", "../../outside", "a/../../../outside"])
def test_a_link_out_of_the_folder_is_refused_by_name(tmp_path: Path, target: str) -> None:
    source = tmp_path / "src"
    source.mkdir()
    (source / "out").symlink_to(target)
    with pytest.raises(UserError, match="'src/out' is a link out of the archive's folder"):
        packing.pack(str(source))


def test_what_is_no_file_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("src").mkdir()
    os.mkfifo("src/pipe")
    with pytest.raises(UserError, match=r"^src/pipe: found a pipe, expected files"):
        packing.pack("src")
    Path("src/pipe").unlink()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("src/socket")
        with pytest.raises(UserError, match=r"^src/socket: found a socket"):
            packing.pack("src/")
    with pytest.raises(UserError, match=r"^/dev/null: found a device"):
        packing.pack("/dev/null")


@pytest.mark.parametrize("path", ["nothing", "nothing/at/all", ""])
def test_what_is_not_there_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if not path:
        (tmp_path / "loose").symlink_to("nowhere")
        path = "loose"
    with pytest.raises(UserError, match=f"^{path}: found nothing, expected a file or folder"):
        packing.pack(path)


def test_no_path_is_not_the_folder_that_one_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "private").write_text("x")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="expected the path of a file or folder"):
        packing.pack("")


def test_all_files_of_a_machine_are_not_code() -> None:
    with pytest.raises(UserError, match="root of all files"):
        packing.pack("/")


def test_what_may_not_be_read_is_said(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("nothing is hidden from root")
    (tmp_path / "secret").write_text("1")
    (tmp_path / "secret").chmod(0)
    with pytest.raises(UserError, match="it cannot be packed: Permission denied"):
        packing.pack(str(tmp_path / "secret"))


def test_too_many_files_are_refused_while_they_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspecting, "MOST_MEMBERS", 10)
    for number in range(10):
        (tmp_path / f"{number}").touch()
    with pytest.raises(UserError, match="more than 10 files, expected code; is there a virtual"):
        packing.pack(str(tmp_path))
    (tmp_path / "9").unlink()
    assert name_of(tmp_path)


def test_too_many_bytes_are_refused_before_they_are_read(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(inspecting.MOST_PACKED + 1)
    with pytest.raises(UserError, match=r"more than 268,435,456 bytes.*data\.sources"):
        packing.pack(str(tmp_path))


def test_a_path_that_is_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspecting, "LONGEST_PATH", 50)
    place = tmp_path / "src" / ("a" * 30) / ("b" * 30)
    place.mkdir(parents=True)
    with pytest.raises(UserError, match="a path of more than 50 bytes"):
        packing.pack(str(tmp_path / "src"))


def test_a_file_that_shrinks_meanwhile_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log").write_bytes(b"12345")
    member = packing._member

    def shrinking(name: str, kind: bytes, rights: int) -> object:
        if name.endswith("log"):
            os.truncate(tmp_path / "log", 2)
        return member(name, kind, rights)

    monkeypatch.setattr(packing, "_member", shrinking)
    with pytest.raises(UserError, match="log: it changed while it was packed"):
        packing.pack(str(tmp_path))


def test_names_that_are_no_text_are_packed(tmp_path: Path) -> None:
    source = tmp_path / "src"
    source.mkdir()
    (source / os.fsdecode(b"\xff.py")).write_text("1")
    assert name_of(source)
    os.mkfifo(source / os.fsdecode(b"\xfe"))
    with pytest.raises(UserError, match=r"\?: found a pipe"):
        packing.pack(str(source))


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "train.py").write_text("1")
    name_of(tmp_path / "train.py")
    with pytest.raises(UserError):
        packing.pack(str(tmp_path / "nothing"))
    assert list((tmp_path / "tmp").iterdir()) == []
