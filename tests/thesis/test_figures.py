"""Every result figure of the thesis is drawn by one experiment, and lies there as two whole files."""

import os
import struct
import zlib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from thesis import find, names, reproduce

ROOT = Path(__file__).parents[2]
LABELS = {label for label in (ROOT / "docs" / "thesis-labels.txt").read_text().split() if label.startswith("fig:")}
DIAGRAMS = {"fig:diagram-bone-ssm"}  # of the framework: no result

DRAWN = [label for name in names() for label in find(name).figures]
OF_THE_THESIS = {label for label in DRAWN if label.startswith("fig:")}


def faulty_files(folders: list[Path], labels: set[str]) -> list[str]:
    """Files of labelled figures that are in none of the folders, in several of them, or not whole."""
    wanted = [f"{label.removeprefix('fig:')}.{ending}" for label in sorted(labels) for ending in ("png", "svg")]
    there = {name: [folder / name for folder in folders if (folder / name).is_file()] for name in wanted}
    return [name for name, paths in there.items() if len(paths) != 1 or not is_whole(paths[0])]


def is_whole(path: Path) -> bool:
    """An SVG is whole if it can be parsed, a PNG if its chunks, with their checksums, lead to the last one."""
    content = path.read_bytes()
    if path.suffix == ".svg":
        try:
            return ElementTree.fromstring(content).tag.endswith("svg")
        except ElementTree.ParseError:
            return False
    at, kind = 8, b""
    while kind != b"IEND" and len(content) >= at + 12:
        (length,) = struct.unpack(">I", content[at : at + 4])
        body, kind = content[at + 4 : at + 8 + length], content[at + 4 : at + 8]
        if content[at + 8 + length : at + 12 + length] != struct.pack(">I", zlib.crc32(body)):
            return False
        at += 12 + length
    return content[:8] == b"\x89PNG\r\n\x1a\n" and kind == b"IEND" and at == len(content)


def test_the_thesis_has_38_result_figures():
    assert len(LABELS - DIAGRAMS) == 38


def test_every_figure_is_drawn():
    assert LABELS - DIAGRAMS - OF_THE_THESIS == set()


def test_no_figure_is_drawn_twice_and_each_label_exists():
    assert len(DRAWN) == len(set(DRAWN))
    assert OF_THE_THESIS <= LABELS


def test_a_file_that_is_missing_cut_or_changed_is_found(tmp_path):
    from matplotlib.figure import Figure

    labels, folders = {"fig:a", "fig:b"}, [tmp_path / "one", tmp_path / "two"]
    for folder, label in zip(folders, sorted(labels), strict=True):
        folder.mkdir()
        for ending in ("png", "svg"):
            Figure(figsize=(1, 1)).savefig(folder / f"{label.removeprefix('fig:')}.{ending}")
    assert faulty_files(folders, labels) == []
    assert faulty_files(folders, {*labels, "fig:c"}) == ["c.png", "c.svg"]
    assert faulty_files([*folders, folders[0]], labels) == ["a.png", "a.svg"]
    for path in (folders[0] / "a.png", folders[1] / "b.svg"):
        whole = path.read_bytes()
        for content in (b"", whole[:100], whole[:-8], whole[:60] + b"<\x00" + whole[62:]):
            path.write_bytes(content)
            assert faulty_files(folders, labels) == [path.name]
        path.unlink()
        assert faulty_files(folders, labels) == [path.name]
        path.write_bytes(whole)


@pytest.mark.nightly
@pytest.mark.skipif("FILTAX_DATA" not in os.environ, reason="name the folder of data sets in FILTAX_DATA")
def test_every_figure_of_the_thesis_has_its_files(tmp_path):
    found = reproduce([name for name in names() if OF_THE_THESIS & set(find(name).figures)], out=tmp_path)
    assert faulty_files([one.folder for one in found], LABELS - DIAGRAMS) == []
