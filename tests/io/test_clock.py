"""Times: how they may be written, what is refused, and the order they must have."""

import subprocess

import numpy as np
import pytest

from filtax.io import InputError, open_table


def read(folder, texts):
    """Times of the rows that were read, and the rows that were not, counted from 0."""
    path = folder / "t.csv"
    path.write_text("y;t\n" + "".join(f"{i};{text}\n" for i, text in enumerate(texts)))
    chunks = list(open_table(path, target="y", time="t", separator=";"))
    return [time for chunk in chunks for time in chunk.time], [row.line - 2 for c in chunks for row in c.rejected]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("2024-02-29", "2024-02-29T00:00"),
        ("2024-02-29T13", "2024-02-29T13:00"),
        ("2024-02-29 00", "2024-02-29T00:00"),
        ("2024-02-29 13+01:00", "2024-02-29T12:00"),
        ("2024-02-29 13:05", "2024-02-29T13:05"),
        ("2024-02-29T13:05:07.25", "2024-02-29T13:05:07.25"),
        ("2024-02-29T13:05:07Z", "2024-02-29T13:05:07"),
        ("2024-02-29T13:05:07+02:00", "2024-02-29T11:05:07"),
        ("2024-03-01 00:30 +0100", "2024-02-29T23:30"),
        ("1709211907", "2024-02-29T13:05:07"),
        ("1709211907250", "2024-02-29T13:05:07.25"),
        ("70000000000.000001", "4188-03-18T04:26:40.000001"),
        (" 2024-02-29 ", "2024-02-29T00:00"),
    ],
)
def test_a_time_is_read_as_written(tmp_path, text, want):
    assert read(tmp_path, [text]) == ([np.datetime64(want, "us")], [])


NOT_TIMES = (
    "2024-02-30 0000-01-01 29.2.2024 02/29/2024 2024-02-29T25 2024-02-29T13:05:60 now NA 2024 2024-2-9 2024-02-29T"
)
NOT_TIMES = [
    *NOT_TIMES.split(),
    "",
    "2024-02-29T1",
    "2024-02-29T13:05:07.1234567",
    "２０２４-02-29",
    "2024-02-29T13:05Z",
]


@pytest.mark.parametrize("text", NOT_TIMES)
def test_what_is_not_a_time_is_refused(tmp_path, text):
    assert read(tmp_path, ["2024-01-01", text, "2024-03-01"])[1] == [1]


def test_plain_numbers_stay_numbers(tmp_path):
    for first in ("-1", "1990", "1e18"):
        assert read(tmp_path, [first]) == ([float(first)], [])
    assert read(tmp_path, ["0", "1.5", "x", "2"]) == ([0.0, 1.5, 2.0], [2])


def test_times_that_are_missing_repeat_or_go_backwards(tmp_path):
    path = tmp_path / "t.csv"
    days = ["2024-01-01", "2024-01-03", "2024-01-03", "2024-01-02", "", "x", "2024-01-04"]
    path.write_text("a,when\n" + "".join(f"{i},{day}\n" for i, day in enumerate(days)))
    chunk, *_ = open_table(path, target="a", time="when")
    assert chunk.numbers[:, 0].tolist() == [0.0, 1.0, 6.0]
    assert [(each.line, each.column) for each in chunk.rejected] == [(4, 3), (5, 3), (6, 3), (7, 3)]
    reasons = ["repeats the time", "goes backwards", "the time is missing", "'x' is not a time"]
    assert all(reason in each.reason for reason, each in zip(reasons, chunk.rejected, strict=True))


def newest_first(folder, rows, keys=("a",), swapped=(), name="my load.csv"):
    """Lines of days, the last day first, some of them swapped with the next."""
    days = [f"2024-01-{day:02d}" for day in range(rows, 0, -1)]
    for i in swapped:
        days[i], days[i + 1] = days[i + 1], days[i]
    path = folder / name
    path.write_text("when,k,y\n" + "".join(f"{day},{key},1\n" for day in days for key in keys))
    return path


@pytest.mark.parametrize("on_error", ["reject", "stop"])
@pytest.mark.parametrize("keys", ["a", "abc"])
def test_a_file_whose_newest_row_comes_first_is_refused_with_a_way_to_turn_it(tmp_path, keys, on_error):
    path = newest_first(tmp_path, 31, keys, swapped=(20,))
    key = "k" if len(keys) > 1 else None
    with pytest.raises(InputError, match="the newest row comes first") as told:
        list(open_table(path, target="y", time="when", key=key, on_error=on_error))
    command = str(told.value).split("such as by ")[1].rstrip(".")
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    [turned] = open_table(tmp_path / "turned.csv", target="y", time="when", key=key)
    assert (len(turned), len(turned.rejected)) == (31 * len(keys) - len(keys), len(keys))


def test_a_few_times_that_go_backwards_are_rejected_as_before(tmp_path):
    times = [*range(30, 27, -1), *range(31, 70)]
    (tmp_path / "t.csv").write_text("t,y\n" + "".join(f"{t},1\n" for t in times))
    [chunk] = open_table(tmp_path / "t.csv", target="y", time="t")
    assert (len(chunk), [row.line for row in chunk.rejected]) == (40, [3, 4])
    place = open_table(tmp_path / "t.csv", target="y", time="t")
    place = place.position(next(iter(place)), -1)
    with open(tmp_path / "t.csv", "a") as file:
        file.write("".join(f"{t},1\n" for t in range(20, 10, -1)))  # behind a start that was in order
    [rest] = open_table(tmp_path / "t.csv", target="y", time="t", start=place)
    assert (len(rest), len(rest.rejected)) == (0, 10)


def test_each_key_has_its_own_order(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("k,a,when\nA,1,10\nB,2,5\nA,3,11\nB,4,5\nB,5,6\n")
    [chunk] = open_table(path, target="a", time="when", key="k")
    assert chunk.numbers[:, 0].tolist() == [1.0, 2.0, 3.0, 5.0]
    assert chunk.key.tolist() == ["A", "B", "A", "B"]
    assert [each.line for each in chunk.rejected] == [5]
