"""Going on from a position: the rows after any row are the rows that would have come; a changed file is refused."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from filtax.io import InputError, Position, open_table

LINES = ["when,a,s"] + [f"2024-01-{i + 1:02d},{i}.5,w{i % 3}" for i in range(20)]
LINES[4] = "2024-01-04,bad,w0"  # rejected
LINES[9] = "2024-01-02,8.5,w1"  # goes backwards
LINES[12] = ""


def rows(table):
    """Every row with its place, and what was rejected."""
    found = []
    for chunk in table:
        moments = chunk.time.tolist()
        found += list(zip(chunk.line.tolist(), moments, chunk.numbers[:, 0].tolist(), chunk.texts["s"], strict=True))
        found += [str(each) for each in chunk.rejected]
    return sorted(found, key=lambda row: (row[0] if isinstance(row, tuple) else int(row.split(":")[1]), str(row)))


def positions(source, **options):
    table = open_table(source, target="a", time="when", **options)
    for chunk in table:
        for row in range(len(chunk)):
            yield chunk.line[row], table.position(chunk, row)


def written(folder, name, text):
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "bom.csv", "crlf.csv", "t.jsonl"])
@pytest.mark.parametrize("block", [64, 1 << 20])
def test_from_every_row_the_rest_is_the_same(tmp_path, name, block):
    text = "\n".join(LINES) + "\n"
    if name == "bom.csv":
        text = "\ufeff" + text
    if name == "crlf.csv":
        text = text.replace("\n", "\r\n")
    if name == "t.jsonl":
        fields = [line.split(",") for line in LINES[1:] if line]
        text = "".join(json.dumps({"when": w, "a": a, "s": s}) + "\n" for w, a, s in fields)
    path = written(tmp_path, name, text)
    whole = rows(open_table(path, target="a", time="when", block=block))
    assert sum(isinstance(row, str) for row in whole) == 2
    for count, (line, place) in enumerate(positions(path, block=block), 1):
        place = Position.from_json(json.loads(json.dumps(place.to_json())))
        assert place.rows == count
        rest = rows(open_table(path, target="a", time="when", start=place))
        assert rest == [r for r in whole if (r[0] if isinstance(r, tuple) else int(r.split(":")[1])) > line]


def test_in_a_pattern_of_files_and_in_parquet(tmp_path):
    for i in range(3):
        text = "when,a\n" + "".join(f"{10 * i + j},{i + j / 10}\n" for j in range(4))
        written(tmp_path, f"t{i}.csv", text)
        pq.write_table(
            pa.table({"when": [10 * i + j for j in range(4)], "a": [i + j / 10 for j in range(4)]}),
            tmp_path / f"t{i}.parquet",
        )
    for source in (tmp_path / "t*.csv", tmp_path / "t*.parquet"):
        whole = [float(v) for chunk in open_table(source, target="a", time="when") for v in chunk.numbers[:, 0]]
        for count, (_, place) in enumerate(positions(source), 1):
            rest = open_table(source, target="a", time="when", start=place)
            assert [float(v) for chunk in rest for v in chunk.numbers[:, 0]] == whole[count:]


def test_a_changed_file_is_refused(tmp_path):
    path = written(tmp_path, "t.csv", "when,a\n1,10\n2,20\n3,30\n")
    first, second, _ = (place for _, place in positions(path))
    path.write_text("when,a\n1,10\n2,21\n3,30\n")
    assert [chunk.numbers[:, 0].tolist() for chunk in open_table(path, target="a", time="when", start=first)] == [
        [21, 30]
    ]
    for text in ("when,a\n1,10\n2,21\n3,30\n", "when,a\n1,10\n", "", "when,b\n1,10\n2,20\n3,30\n"):
        path.write_text(text)
        with pytest.raises(InputError, match=r"t.csv has changed since it was read"):
            list(open_table(path, target="a", time="when", start=second))


def test_a_file_that_grew_goes_on_and_a_row_that_grew_is_refused(tmp_path):
    path = written(tmp_path, "t.csv", "when,a\n1,10\n2,20")
    *_, (_, place) = positions(path)
    path.write_text("when,a\n1,10\n2,20\n3,30\n")
    assert [chunk.numbers[:, 0].tolist() for chunk in open_table(path, target="a", time="when", start=place)] == [
        [30.0]
    ]
    path.write_text("when,a\n1,10\n2,205\n3,30\n")
    with pytest.raises(InputError, match="line 3, the last then, goes on"):
        list(open_table(path, target="a", time="when", start=place))


def test_other_files_and_pipes_are_refused(tmp_path):
    for i in range(2):
        written(tmp_path, f"t{i}.csv", f"when,a\n{i},1\n")
    *_, (_, place) = positions(tmp_path / "t*.csv")
    (tmp_path / "t0.csv").write_text("when,a\n0,1.0\n")
    with pytest.raises(InputError, match=r"t0.csv has changed since it was read: it had 11 bytes"):
        open_table(tmp_path / "t*.csv", target="a", time="when", start=place)
    (tmp_path / "t0.csv").unlink()
    with pytest.raises(InputError, match="is no longer file 1"):
        open_table(tmp_path / "t*.csv", target="a", time="when", start=place)
    with pytest.raises(InputError, match="standard input cannot be read on"):
        open_table("-", target="a", start=place)
    with pytest.raises(ValueError, match="not a position"):
        Position.from_json({"offset": 3})


def test_the_order_of_times_is_kept(tmp_path):
    """A row that repeats a time is rejected on the way and from any row before it, also of a key not seen for long."""
    path = written(tmp_path, "t.csv", "when,a,k\n10,1,A\n5,2,B\n10,3,A\n6,4,B\n6,5,B\n11,6,A\n")
    for block in (5, 1 << 20):
        table = open_table(path, target="a", time="when", key="k", block=block)
        places = [table.position(chunk, row) for chunk in table for row in range(len(chunk))]
        assert [place.line for place in places] == [3, 4, 6, 8]
        for place, rest, left in zip(places, [[2, 4, 6], [4, 6], [6], []], [[4, 6], [4, 6], [6], []], strict=True):
            chunks = list(open_table(path, target="a", time="when", key="k", start=place))
            assert [a for chunk in chunks for a in chunk.numbers[:, 0].tolist()] == rest
            assert [each.line for chunk in chunks for each in chunk.rejected] == left


def test_kinds_are_kept(tmp_path):
    """The first rows say text; read on from later rows alone, the column would look like numbers."""
    path = written(tmp_path, "t.csv", "when,a,s\n1,1,x\n2,1,x\n3,1,7\n4,1,8\n")
    places = [place for _, place in positions(path)]
    [chunk] = open_table(path, target="a", time="when", start=places[1])
    assert chunk.texts["s"].tolist() == ["7", "8"]
    np.testing.assert_array_equal(chunk.time, [3.0, 4.0])
