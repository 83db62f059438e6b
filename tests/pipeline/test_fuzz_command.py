"""`filtax run` on files that nobody would write: exit code 0 or 2, a sentence or a run; never a traceback."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from command import filtax
from filtax.pipeline import open_run

pytestmark = pytest.mark.x64
ROWS = b"".join(b"2024-01-%02dT%02d:00,%d.25,w%d\n" % (1 + i // 24, i % 24, i % 7, i % 2) for i in range(60))
HEAD = b"when,a,c\n"
ODD = [
    b"\0",
    b"\xff",
    b"\r",
    b"\n\n",
    b'"',
    b",",
    b"e400",
    b"nan",
    b"-",
    b"9" * 400,
    b"2024-01-01T00:00,1,w\n",
    "１".encode(),
]
PLACES = st.lists(st.tuples(st.integers(0, len(ROWS)), st.integers(0, 9), st.sampled_from(ODD)), min_size=1, max_size=5)


def edited(data, edits):
    for at, length, new in edits:
        data = data[:at] + new + data[at + length :]
    return data


@settings(
    max_examples=settings.default.max_examples, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(edits=PLACES, timed=st.booleans(), on_error=st.sampled_from(["reject", "stop"]))
def test_a_damaged_file_is_a_run_or_a_sentence(tmp_path_factory, edits, timed, on_error):
    home = tmp_path_factory.mktemp("fuzz")
    (home / "t.csv").write_bytes(HEAD + edited(ROWS, edits))
    asked = ["--target", "a", *(["--time", "when"] if timed else ["--features", "c"]), "--task", "regress"]
    ended = filtax("run", "t.csv", *asked, "--on-error", on_error, "--block", 64, "--out", "run", home=home)
    assert ended.returncode in (0, 2), ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr
    if ended.returncode == 2:
        assert ended.stdout == ""
        last = ended.stderr.splitlines()[-1]
        assert last.startswith("filtax: ")
        assert last.endswith((".", "?"))
        return
    told = json.loads((home / "run" / "metrics.json").read_text())
    lines = (home / "t.csv").read_bytes().replace(b"\r", b"\n").split(b"\n")
    assert told["rows"] <= told["rows"] + told["rejected"] <= len(lines)
    for records in open_run(home / "run").records():
        assert not np.isinf(records["forecast"]).any()
        assert np.isfinite(records["y"]).sum() <= len(records)
