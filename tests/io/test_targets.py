"""Reading that is to end at the first fault ends at a row without a target too; otherwise such a row is handed on."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from filtax.io import InputError, open_table

FILLED = "Fill it in, or have such rows kept and not learned (a run forecasts them): --on-error reject."
BLANK = {
    "csv": ("t.csv", "x,y\n5,1\n6,{}\n7,3\n", "t.csv:3:3"),
    "tsv": ("t.tsv", "y\tx\n1\t5\n{}\t6\n3\t7\n", "t.tsv:3:1"),
    "json": ("t.jsonl", '{{"x": 5, "y": 1}}\n{{"x": 6, "y": {}}}\n{{"x": 7, "y": 3}}\n', "t.jsonl:2:10"),
}


def ended(path, **options):
    """The rows before the fault, and its sentence."""
    lines: list[int] = []
    chunks = open_table(path, **{"target": "y", "on_error": "stop", **options})
    with pytest.raises(InputError) as fault:
        lines.extend(line for chunk in chunks for line in chunk.line.tolist())
    return lines, str(fault.value)


@pytest.mark.parametrize("form", BLANK)
@pytest.mark.parametrize("value", ["", "NA", " nan ", "null"])
def test_reading_ends_at_a_row_without_a_target(tmp_path, form, value):
    name, text, where = BLANK[form]
    value = {"": "null", "NA": '"NA"', " nan ": '"nan"'}.get(value, value) if form == "json" else value
    (tmp_path / name).write_text(text.format(value))
    lines, said = ended(tmp_path / name)
    assert lines == ([1] if form == "json" else [2])
    assert said == f"{tmp_path}/{where}: y: there is no target. {FILLED}"
    [chunk] = open_table(tmp_path / name, target="y")
    np.testing.assert_array_equal(chunk.column("y"), [1.0, np.nan, 3.0])
    assert not chunk.rejected


def test_a_missing_feature_and_a_table_without_a_target_are_no_fault(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n,1\n6,\n7,3\n")
    assert ended(tmp_path / "t.csv")[0] == [2]
    [chunk] = open_table(tmp_path / "t.csv", features=["x"], perhaps=["y"], on_error="stop")
    assert len(chunk) == 3  # rows that are only to be forecast


def test_a_label_is_missing_only_where_there_is_nothing(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,ash\n2,NA\n3,\n4,oak\n")
    lines, said = ended(tmp_path / "t.csv")
    assert lines == [2, 3]
    assert f"t.csv:4:3: y: there is no target. {FILLED}" in said


def test_a_row_of_json_without_the_name_and_one_of_parquet_have_a_place(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"x": 5, "y": 1}\n{"x": 6}\n')
    assert "t.jsonl:2:1: y: there is no target." in ended(tmp_path / "t.jsonl")[1]
    pq.write_table(pa.table({"x": [5, 6, 7], "y": [1.0, None, 3.0]}), tmp_path / "t.parquet")
    lines, said = ended(tmp_path / "t.parquet")
    assert lines == [1]
    assert "t.parquet:2:2: y: there is no target." in said  # the second row, the second column


@pytest.mark.parametrize(
    ("rows", "kept", "where"),
    [
        ("1,5\n2,\n3,x\n", [2], "3:3: y: there is no target"),
        ("1,5\n2,x\n3,\n", [2], "3:3: y: 'x' is not a number"),
        ("1,5\n0,6\n3,\n", [2], "3:1: t: 0.0 goes backwards"),
        ("1,5\n2,\n0,6\n", [2], "3:3: y: there is no target"),
        ("1,\n", [], "2:3: y: there is no target"),
        ("1,5\n2,", [2], "3:3: y: there is no target"),
    ],
)
def test_the_first_fault_counts_whatever_it_is(tmp_path, rows, kept, where):
    (tmp_path / "t.csv").write_text(f"t,y\n{rows}")
    lines, said = ended(tmp_path / "t.csv", time="t", types={"y": "number"})
    assert lines == kept
    assert f"t.csv:{where}" in said


def test_reading_goes_on_behind_the_rows_before_it_once_it_is_filled_in(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n5,1\n6,2\n7,")  # also a last line that is not written to its end
    chunks = iter(table := open_table(path, target="y", on_error="stop"))
    place = table.position(next(chunks))
    with pytest.raises(InputError, match="there is no target"):
        list(chunks)
    path.write_text("x,y\n5,1\n6,2\n7,3\n")
    [rest] = open_table(path, target="y", on_error="stop", start=place)
    assert (rest.column("y").tolist(), rest.line.tolist()) == ([3.0], [4])
