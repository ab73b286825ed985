"""What an init container brings is where the pod's manifest expects it, and stays while needed."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pathlib
import tarfile
import time
from datetime import timedelta

import pytest

from anubis.adapters.clock.system import SystemClock
from anubis.adapters.dataset_cache.directory import DirectoryDatasetCache
from anubis.adapters.dataset_source.available import sources
from anubis.bootstrap import podding
from anubis.domain.dataset import Reference
from anubis.domain.run import RunId
from anubis.entrypoints.pod import __main__ as door
from anubis.entrypoints.pod import orders


class Pod:
    """The folders of an init container, and its environment."""

    def __init__(self, root: pathlib.Path, patch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.datasets = root / "datasets"
        self.scripts = root / "bai" / "scripts"
        self.scripts.mkdir(parents=True)
        self.last_words = root / "termination-log"
        self._patch = patch
        patch.setattr(door, "LAST_WORDS", self.last_words)
        self.order: dict[str, object] = {
            "run": "run-1",
            "datasets": str(self.datasets),
            "fetches": [],
            "scripts": {},
            "scripts_target": str(self.scripts),
            "hosts": [],
            "seconds": 60,
        }

    def part(self, name: str, content: bytes) -> str:
        path = self.root / name
        path.write_bytes(content)
        return str(path)

    def fetch(self, **fields: object) -> int:
        text = json.dumps({**self.order, **fields})
        self._patch.setenv("ANUBIS_FETCH", text)
        return door.main(["fetch"])

    def mount(self, link: str) -> pathlib.Path:
        """As the kubelet finds it: below the volume, wherever that is mounted."""
        return self.datasets / "mounts" / link

    @property
    def cache(self) -> DirectoryDatasetCache:
        return DirectoryDatasetCache(self.datasets, sources(), SystemClock())


@pytest.fixture
def pod(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Pod:
    return Pod(tmp_path, monkeypatch)


def wanted(uri: str, *, checksum: str = "", unpack: bool = False) -> dict[str, object]:
    fields = {"uri": uri, "checksum": checksum, "unpack": unpack}
    return {**fields, "link": orders._wanted({**fields, "link": "x"}).reference.key}  # type: ignore[typeddict-item]


def tar(**files: bytes) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name.replace("__", "/"))
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return content.getvalue()


def test_data_is_found_by_a_link_that_leads_nowhere_out_of_its_volume(pod: Pod) -> None:
    source = pod.part("train.csv", b"1,2,3")
    entry = wanted(source, checksum=f"sha256:{hashlib.sha256(b'1,2,3').hexdigest()}")
    assert pod.fetch(fetches=[entry, entry]) == 0
    mount = pod.mount(str(entry["link"]))
    assert mount.read_bytes() == b"1,2,3"
    assert not mount.readlink().is_absolute()
    moved = pod.datasets.rename(pod.root / "elsewhere")
    assert (moved / "mounts" / str(entry["link"])).read_bytes() == b"1,2,3"


def test_data_of_the_service_is_put_together_of_its_parts(pod: Pod) -> None:
    file = wanted(str(pod.root / "brought" / "1" / "words.txt"))
    folder = wanted(str(pod.root / "brought" / "2" / "images"))
    packed = tar(a=b"A", deep__b=b"B")
    parts = [pod.part("part-000", b"one "), pod.part("part-001", b"two")]
    archive = [pod.part("part-002", packed[:700]), pod.part("part-003", packed[700:])]
    entries = [
        {**file, "parts": parts, "form": "file"},
        {**folder, "parts": archive, "form": "tar"},
    ]
    for _ in range(2):  # a node that was rebooted runs it again
        assert pod.fetch(fetches=entries) == 0
        assert pod.mount(str(file["link"])).read_bytes() == b"one two"
        assert (pod.mount(str(folder["link"])) / "deep" / "b").read_bytes() == b"B"


def test_code_is_unpacked_for_whoever_the_program_runs_as(pod: Pod) -> None:
    packed = tar(train=b"#!/bin/sh", lib__x=b"")
    parts = [pod.part("part-000", packed[:1000]), pod.part("part-001", packed[1000:])]
    assert pod.fetch(scripts={"abc.tar": parts}) == 0
    assert (pod.scripts / "train").read_bytes() == b"#!/bin/sh"
    assert (pod.scripts / "lib").stat().st_mode & 0o777 == 0o777
    assert list(pod.scripts.parent.iterdir()) == [pod.scripts], "nothing is left beside it"


@pytest.mark.parametrize(
    ("checksum", "name", "cause"),
    [
        ("sha256:" + "0" * 64, "train.csv", "data_invalid"),
        ("", "nowhere.csv", "data_invalid"),
    ],
)
def test_data_that_is_not_what_it_should_be_is_told_to_the_cluster(
    pod: Pod, checksum: str, name: str, cause: str
) -> None:
    pod.part("train.csv", b"1,2,3")
    assert pod.fetch(fetches=[wanted(str(pod.root / name), checksum=checksum)]) == 1
    told = json.loads(pod.last_words.read_text())
    assert told["cause"] == cause
    assert name in told["message"]


def test_what_cannot_be_had_for_another_reason_is_told_as_that(pod: Pod) -> None:
    assert pod.fetch(fetches=[wanted("http://127.0.0.1:1/x")], seconds=0.5) == 1
    told = json.loads(pod.last_words.read_text())
    assert told["cause"] == "not_brought"


def test_a_dangerous_archive_is_refused(pod: Pod) -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("../../escaped"))
    part = pod.part("part-000", content.getvalue())
    assert pod.fetch(scripts={"abc.tar": [part]}) == 1
    assert json.loads(pod.last_words.read_text())["cause"] == "not_brought"
    assert not (pod.root.parent / "escaped").exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"run": 1}'])
def test_an_order_that_is_none_is_told_without_a_traceback(
    pod: Pod, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("ANUBIS_FETCH", text)
    assert door.main(["fetch"]) == 1
    assert "ANUBIS_FETCH" in json.loads(pod.last_words.read_text())["message"]


def test_a_link_cannot_lead_out_of_its_folder() -> None:
    fetch = {"uri": "/x", "checksum": "", "unpack": False, "link": "../escaped"}
    with pytest.raises(ValueError, match="expected a name"):
        orders._wanted(fetch)  # type: ignore[arg-type]


async def test_pins_of_a_pod_that_is_gone_are_dropped_and_those_of_others_stay(pod: Pod) -> None:
    source = pod.part("train.csv", b"1,2,3")
    order = podding.Order(
        run=RunId("new"),
        datasets=pod.datasets,
        wanted=(podding.Wanted(reference=Reference(uri=source), link="x"),),
        patience=timedelta(minutes=1),
    )
    for run in ("gone", "lives"):
        await pod.cache.fetch(Reference(uri=source), run=RunId(run), report=print)
    silent = time.time() - podding.SILENCE.total_seconds() - 1
    os.utime(pod.datasets / "pins" / "gone", (silent, silent))
    await podding.bring(order, print)
    assert set(await pod.cache.pins()) == {"lives", "new"}


def test_who_waits_for_others_goes_on_when_they_have_addresses(pod: Pod) -> None:
    assert pod.fetch(hosts=["localhost"]) == 0


def test_who_waits_too_long_for_others_goes_on_too(
    pod: Pod, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(podding, "HOSTS_SECONDS", 0.1)
    assert pod.fetch(hosts=["nobody.invalid"]) == 0
    assert "nobody.invalid" in capsys.readouterr().err


def test_another_word_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert door.main(["dance"]) == 2
    assert "dance" in capsys.readouterr().err
