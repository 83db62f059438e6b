"""Damaged checkpoints: whatever became of a file, it is refused, and the generation before it is used."""

import hashlib
import json
import shutil
import struct

import pytest

from filtax import io
from stored import SMALL, same


def damage(folder, change):
    """Apply a change of bytes to each file in turn; `change` yields the damaged contents."""
    for path in sorted([*folder.glob("*.json"), *folder.glob("*.safetensors")]):
        whole = path.read_bytes()
        for content in change(whole):
            path.write_bytes(content)
            yield path, content
        path.write_bytes(whole)


def flips(whole):
    for at in range(len(whole)):
        for bit in (0, at % 7 + 1):
            yield whole[:at] + bytes([whole[at] ^ (1 << bit)]) + whole[at + 1 :]


def cuts(whole):
    yield from (whole[:length] for length in range(len(whole)))
    yield from (whole + b"\0", whole + b"\n", whole * 2, b"hello", b"\x80\x04K\x01.")


@pytest.mark.parametrize("change", [cuts, flips])
def test_every_truncation_and_every_bit_flip_is_refused(tmp_path, change):
    io.save(tmp_path, SMALL, config={"c": 1}, source={"row": 3})
    tried = 0
    for path, _ in damage(tmp_path, change):
        with pytest.raises(io.Damaged) as refusal:
            io.load(tmp_path, SMALL, config={"c": 1})
        assert not isinstance(refusal.value, io.Foreign), path
        text = str(refusal.value)
        assert "000001" in text
        assert "\n" not in text
        tried += 1
    assert tried > 700
    same(io.load(tmp_path, SMALL, config={"c": 1})[0], SMALL)


def test_the_generation_before_is_used_and_reported(tmp_path):
    for row in range(4):
        io.save(tmp_path, {**SMALL, "t": row}, source={"row": row})
    assert io.generations(tmp_path) == [3, 4]
    assert len(list(tmp_path.glob("*.safetensors"))) == 2
    (tmp_path / "000004.safetensors").write_bytes(b"")
    state, manifest = io.load(tmp_path, SMALL)
    assert (state["t"], manifest["source"], manifest["generation"]) == (2, {"row": 2}, 3)
    assert len(manifest["skipped"]) == 1
    assert "000004" in manifest["skipped"][0]
    (tmp_path / "000003.json").unlink()
    with pytest.raises(io.Damaged, match="no older checkpoint is sound"):
        io.load(tmp_path, SMALL)


def test_files_may_not_be_swapped_or_renamed(tmp_path):
    """Two sound files that do not belong together; and a generation under the number of another."""
    io.save(tmp_path / "a", SMALL)
    io.save(tmp_path / "b", {**SMALL, "t": 8})
    shutil.copy(tmp_path / "b" / "000001.safetensors", tmp_path / "a" / "000001.safetensors")
    with pytest.raises(io.Damaged, match="checksum"):
        io.load(tmp_path / "a", SMALL)
    for suffix in (".json", ".safetensors"):
        (tmp_path / "b" / f"000001{suffix}").rename(tmp_path / "b" / f"000002{suffix}")
    with pytest.raises(io.Damaged, match="it is the manifest of generation 1, and was renamed"):
        io.load(tmp_path / "b", SMALL)


def forge(folder, **changed):
    """Change a manifest, and its checksum with it."""
    path = folder / "000001.json"
    manifest = json.loads(path.read_bytes()) | changed
    del manifest["digest"]
    manifest["digest"] = io.digest(manifest)
    path.write_bytes(json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode())


def test_a_newer_format_is_refused_clearly(tmp_path):
    io.save(tmp_path, SMALL)
    forge(tmp_path, format=2)
    with pytest.raises(io.Foreign, match=r"format 2 .* reads 1"):
        io.load(tmp_path, SMALL)


def test_a_header_that_promises_too_much_costs_nothing(tmp_path):
    """A foreign safetensors file whose header claims 8 EiB, in a manifest forged to fit it."""
    io.save(tmp_path, SMALL)
    bomb = struct.pack("<Q", 2**60) + b"{}"
    (tmp_path / "000001.safetensors").write_bytes(bomb)
    forge(tmp_path, bytes=len(bomb), sha256=hashlib.sha256(bomb).hexdigest())
    with pytest.raises(io.Damaged, match="cannot be read"):
        io.load(tmp_path, SMALL)
