"""Tables in memory, of whatever library, as the same numpy arrays by name; what is no table is refused."""

import datetime
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pyarrow as pa
import pytest

from filtax import io

DAY = datetime.date(2024, 1, 31)
TABLE = pa.table(
    {
        "count": pa.array([1, None], pa.int32()),
        "load": pa.array([0.5, None], pa.float32()),
        "price": pa.array([Decimal("0.10"), None]),
        "on": [True, None],
        "nothing": pa.nulls(2),
        "site": ["a", None],
        "kind": pa.array(["x", None]).dictionary_encode(),
        "day": [DAY, None],
        "zoned": pa.array([0, None], pa.timestamp("ms", "+02:00")),
    }
)
WANT = {
    "count": [1.0, np.nan], "load": [0.5, np.nan], "price": [0.1, np.nan], "on": [1.0, np.nan], "nothing": [np.nan] * 2,
    "site": ["a", None], "kind": ["x", None], "day": ["2024-01-31", "NaT"], "zoned": ["1970-01-01", "NaT"],
}  # fmt: skip


class Stream:
    """Anything that Arrow can read, such as a relation of DuckDB."""

    def __init__(self, table):
        self.__arrow_c_stream__ = table.__arrow_c_stream__


def same(found):
    assert list(found) == list(WANT)
    for name, values in found.items():
        kind = {"day": "datetime64[us]", "zoned": "datetime64[us]", "site": "O", "kind": "O"}.get(name, "float64")
        assert values.dtype == kind, name
        np.testing.assert_array_equal(values, np.array(WANT[name], kind), err_msg=name)


@pytest.mark.parametrize("chunks", [1, 2])
@pytest.mark.parametrize("make", [pa.Table.to_reader, Stream, lambda table: table])
def test_what_arrow_reads(make, chunks):
    same(io.columns(make(pa.concat_tables([TABLE[i : i + 2 // chunks] for i in range(chunks)]))))


@pytest.mark.parametrize("library", [name for name in ("pandas", "polars") if find_spec(name)])
def test_frames(library):
    frame = TABLE.to_pandas() if library == "pandas" else import_module(library).from_arrow(TABLE)
    same(io.columns(frame))
    same(io.columns({name: frame[name] for name in TABLE.column_names}))


def test_arrays():
    found = io.columns(
        {"a": np.arange(2), "b": [True, False], "c": ["x", None], "d": [1, None], "e": np.array(["u", "v"])}
    )
    want = {"a": [0.0, 1.0], "b": [1.0, 0.0], "c": ["x", None], "d": [1.0, np.nan], "e": ["u", "v"]}
    for name, values in want.items():
        np.testing.assert_array_equal(found[name], values)
    matrix = np.arange(6).reshape(2, 3)
    assert list(io.columns(matrix)) == ["x0", "x1", "x2"]
    assert io.columns(matrix, ["a", "b", "c"])["b"].tolist() == [1.0, 4.0]
    assert io.columns(np.arange(2.0), ["a"])["a"].tolist() == [0.0, 1.0]
    times = np.array(["2024-01-31T10"], "datetime64[h]")
    assert io.columns({"t": times})["t"].dtype == "datetime64[us]"
    assert list(io.columns(TABLE, ["site", "load"])) == ["site", "load"]


@pytest.mark.parametrize(
    ("table", "names", "words"),
    [
        (5, None, "got a int; give an object with __arrow_c_stream__"),
        ([1, 2], None, "got a list; give"),
        ({"a": np.zeros((2, 2))}, None, r"a has shape \(2, 2\)"),
        ({"a": [1, 2], "b": [1]}, None, "must be equally long, got {'a': 2, 'b': 1}"),
        ({"a": [1, "x"]}, None, "a holds neither numbers, text nor times"),
        ({"a": np.array([1j])}, None, "a holds neither numbers"),
        (pa.table({"a": [[1]]}), None, "a holds neither numbers, text nor times, but list"),
        ({"a": np.array([2**62], "datetime64[s]")}, None, "a holds a time too far from 1970, in row 0"),
        (pa.table([[1], [2]], names=["a", "a"]), None, "two columns have one name"),
        (TABLE, ["lad"], "there is no column 'lad'; there are count, load"),
        (np.zeros((2, 2)), ["a"], r"give 2 different names for an array of shape \(2, 2\)"),
        (np.zeros((2, 2, 2)), None, r"must be of shape \(T,\) or \(T, D\)"),
    ],
)
def test_what_is_no_table_is_refused_in_a_sentence(table, names, words):
    with pytest.raises(ValueError, match=words) as told:
        io.columns(table, names)
    assert "\n" not in str(told.value)
