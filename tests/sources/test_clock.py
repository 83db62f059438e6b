"""Times: how they may be written, what is refused, and the order they must have."""

import numpy as np
import pytest

from filtax.sources import open_table, read_times
from filtax.sources.clock import clock_of


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("2024-02-29", "2024-02-29T00:00"),
        ("2024-02-29 13:05", "2024-02-29T13:05"),
        ("2024-02-29T13:05:07.25", "2024-02-29T13:05:07.25"),
        ("2024-02-29T13:05:07Z", "2024-02-29T13:05:07"),
        ("2024-02-29T13:05:07+02:00", "2024-02-29T11:05:07"),
        ("2024-03-01 00:30 +0100", "2024-02-29T23:30"),
        ("1709211907", "2024-02-29T13:05:07"),
        ("1709211907250", "2024-02-29T13:05:07.25"),
        (" 2024-02-29 ", "2024-02-29T00:00"),
    ],
)
def test_a_time_is_read_as_written(text, want):
    time, faults = read_times([text], clock_of([text]))
    assert not faults
    assert time[0] == np.datetime64(want, "us")


NOT_TIMES = [
    *(
        "2024-02-30",
        "0000-01-01",
        "29.2.2024",
        "02/29/2024",
        "2024-02-29T24:00",
        "2024-02-29T13:05:60",
        "now",
        "",
        "NA",
    ),
    *("2024", "2024-2-9", "2024-02-29T13:05:07.1234567", "２０２４-02-29", "2024-02-29T13:05Z"),
]


@pytest.mark.parametrize("text", NOT_TIMES)
def test_what_is_not_a_time_is_refused_wherever_it_stands(text):
    for values in (["2024-01-01", text], [text, "2024-01-01"]):
        time, faults = read_times(values, "local")
        assert list(faults) == [values.index(text)]
        assert np.isnat(time[values.index(text)])


def test_plain_numbers_stay_numbers():
    assert clock_of(["0"]) == clock_of(["1990"]) == clock_of(["1e18"]) == "number"
    time, faults = read_times(["0", "1.5", "x"], "number")
    assert time[:2].tolist() == [0.0, 1.5]
    assert list(faults) == [2]


def test_times_that_are_missing_repeat_or_go_backwards(tmp_path):
    path = tmp_path / "t.csv"
    days = ["2024-01-01", "2024-01-03", "2024-01-03", "2024-01-02", "", "x", "2024-01-04"]
    path.write_text("a,when\n" + "".join(f"{i},{day}\n" for i, day in enumerate(days)))
    chunk, *_ = open_table(path, target="a", time="when")
    assert chunk.numbers[:, 0].tolist() == [0.0, 1.0, 6.0]
    assert [(each.line, each.column) for each in chunk.rejected] == [(4, 3), (5, 3), (6, 3), (7, 3)]
    reasons = ["repeats the time", "goes backwards", "the time is missing", "'x' is not a time"]
    assert all(reason in each.reason for reason, each in zip(reasons, chunk.rejected, strict=True))


def test_each_key_has_its_own_order(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("k,a,when\nA,1,10\nB,2,5\nA,3,11\nB,4,5\nB,5,6\n")
    [chunk] = open_table(path, target="a", time="when", key="k")
    assert chunk.numbers[:, 0].tolist() == [1.0, 2.0, 3.0, 5.0]
    assert chunk.key.tolist() == ["A", "B", "A", "B"]
    assert [each.line for each in chunk.rejected] == [5]
