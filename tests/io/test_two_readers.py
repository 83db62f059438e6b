"""The fast and the careful reader give the same rows, bit for bit, and leave out the same ones for the same reasons."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from filtax.io import open_table

NUMERALS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.from_regex(r"[+-]?[0-9]{0,4}\.?[0-9]{0,25}([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from("5e-324 -2.5e-310 NA nan NaN null 1e400 1e-400 inf -nan 1_0 0x1".split()),
    st.sampled_from(["", " 7 ", '"8"', "\t9"]),
)
TEXTS = st.sampled_from(["x", "", "é", '"a,b"', '"a""b"', 'a"b', '"open', "NA", " y ", '""', "\udcff", "n\0l"])
ROWS = st.lists(st.tuples(NUMERALS, NUMERALS, TEXTS), min_size=1, max_size=6)
ENDS = st.sampled_from(["\n", "\r\n"])


def read(path, quick):
    options = {"target": "a", "types": {"a": "number", "b": "number", "c": "text"}, "quick": quick}
    chunks = list(open_table(path, **options))
    numbers = np.concatenate([chunk.numbers for chunk in chunks])
    texts = [text for chunk in chunks for text in chunk.texts["c"].tolist()]
    where = [(line, end) for chunk in chunks for line, end in zip(chunk.line, chunk.raw.offset, strict=True)]
    return numbers, texts, where, [each for chunk in chunks for each in chunk.rejected]


def assert_same(path):
    quick, careful = read(path, True), read(path, False)
    np.testing.assert_array_equal(quick[0].view(np.int64), careful[0].view(np.int64))  # signs of zeros too
    assert quick[1:] == careful[1:]
    return careful


@pytest.fixture(autouse=True)
def small_blocks_too(monkeypatch):
    monkeypatch.setattr("filtax.io._rows.SMALL", 0)
    monkeypatch.setattr("filtax.io._rows.PIECE", 40)


@settings(max_examples=4 * settings.default.max_examples, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, end=ENDS)
def test_both_readers_agree_on_random_tables(tmp_path, rows, end):
    lines = ["a,b,c", *(",".join(row) for row in rows)]
    path = tmp_path / "t.csv"
    path.write_bytes((end.join(lines) + end).encode(errors="surrogateescape"))
    assert_same(path)


@pytest.mark.parametrize("zeros", [190, 199, 200, 230, 290])
def test_both_readers_agree_on_numbers_that_many_zeros_and_an_exponent_make_small(tmp_path, zeros):
    """None becomes 0 in silence."""
    path = tmp_path / "t.csv"
    rows = [*("1.5,2.5,w" for _ in range(1000)), f"0.{'0' * zeros}1e-99,1,w"]
    path.write_text("a,b,c\n" + "\n".join(rows) + "\n")
    numbers = assert_same(path)[0]
    assert not (numbers[:, 0] == 0.0).any()


def test_a_byte_order_mark_at_the_start_of_a_later_block_is_not_dropped(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a\n\xef\xbb\xbf2.5\n3\n")
    for quick in (True, False):
        chunks = list(open_table(path, target="a", types={"a": "number"}, quick=quick))
        assert [chunk.numbers.tolist() for chunk in chunks] == [[[3.0]]]
        assert [each.line for each in chunks[0].rejected] == [2]


@pytest.mark.parametrize("quoted", [False, True])
def test_the_fast_reader_takes_ordinary_tables(tmp_path, quoted, monkeypatch):
    """Otherwise the test above would compare the careful reader with itself."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(500, 2)) * 10.0 ** rng.integers(-90, 90, size=(500, 2))
    word = '"w,x"'.replace(",", " ") if quoted else "é"
    rows = [f"{a!r},{b!r},{word}" for a, b in numbers.tolist()]
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n" + "\n".join(rows) + "\n")
    np.testing.assert_array_equal(assert_same(path)[0], numbers)
    monkeypatch.setattr("filtax.io._rows.careful", None)
    np.testing.assert_array_equal(read(path, True)[0], numbers)


def test_numbers_are_those_of_another_library(tmp_path):
    """Against numpy's own reader: digits, exponents and rounding."""
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=(300, 3)) * 10.0 ** rng.integers(-300, 300, size=(300, 3))
    np.savetxt(tmp_path / "t.csv", numbers, delimiter=",", header="a,b,c", comments="", fmt="%.17g")
    read = np.concatenate([chunk.numbers for chunk in open_table(tmp_path / "t.csv", target="a", separator=",")])
    np.testing.assert_array_equal(read, np.loadtxt(tmp_path / "t.csv", delimiter=",", skiprows=1))
