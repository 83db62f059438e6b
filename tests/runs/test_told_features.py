"""What a run makes of its target is said before it learns, and not where nothing is made."""

import pytest

from command import filtax

pytestmark = pytest.mark.x64


@pytest.mark.parametrize(("more", "told"), [((), True), (("--no-features",), False)])
def test_made_features_are_shown(tmp_path, more, told):
    rows = "".join(f"2024-01-{1 + t // 24:02d}T{t % 24:02d}:00,{t % 5}.5\n" for t in range(96))
    (tmp_path / "t.csv").write_text("when,load\n" + rows)
    done = filtax("run", "t.csv", "--target", "load", "--time", "when", *more, "--method", "LG+C-Static", home=tmp_path)
    assert done.returncode == 0, done.stderr
    said = "27 features are made of load: its latest changes, those 24 steps ago and 168 steps ago, the calendar; "
    assert (said in done.stderr.splitlines()[0]) == told
    assert "features are made" not in done.stdout
