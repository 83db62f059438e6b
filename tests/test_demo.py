"""The main job: its table against the filter alone, its sentences against the table, its story on several streams."""

import jax.numpy as jnp
import numpy as np
import pytest

from filtax.cli import _example as demo
from filtax.evaluate import naive_plus_change
from filtax.synthetic import hourly_load

FEW = ("LG+C-Static", "NIG+C-ACI(q=1e-06)")


@pytest.fixture(scope="module")
def stream():
    return hourly_load(400, key=0)


@pytest.fixture(scope="module")
def told():
    return []


@pytest.fixture(scope="module")
def report(stream, told):
    return demo.learn(stream, demo.build(FEW), lambda name, hours: told.append((name, hours)))


def test_the_forecasts_are_those_of_the_filter_alone(stream, report):
    """Stretch by stretch with evaluation in between, or in one scan: the same numbers."""
    for name, method in demo.build(FEW).items():
        start = method.init(mean=jnp.zeros(stream.X.shape[1]), cov=demo.SPREAD)
        _, infos = method.scan(start, stream.X, stream.y, keep=("mean", "log_evidence"))
        tolerance = {"rtol": 1e-8, "atol": 1e-10} if infos.mean.dtype == jnp.float64 else {"rtol": 2e-3, "atol": 2e-3}
        forecast = report.runs[name].forecasts[0]
        np.testing.assert_allclose(forecast.mean, infos.mean, **tolerance)
        seen = ~stream.missing
        np.testing.assert_allclose(forecast.log_prob[seen], np.asarray(infos.log_evidence)[seen], **tolerance)


def test_the_errors_in_the_table_can_be_computed_by_hand(stream, report):
    """Over the hours that every line has a forecast for: all that were written down, but the first."""
    rows = report.scored("mae")
    by_hand = np.abs(np.asarray(report.runs["LG+C-Static"].forecasts[0].mean) - stream.y)[rows].mean()
    np.testing.assert_allclose(report.table()["LG+C-Static"]["mae"], by_hand, rtol=1e-6)
    np.testing.assert_array_equal(rows[1:], ~stream.missing[1:])
    baseline = naive_plus_change(24)(stream.y).mean
    by_hand = np.abs(baseline - stream.y)[rows].mean()
    np.testing.assert_allclose(report.table()["naive-plus-change(24)"]["mae"], by_hand, rtol=1e-9)


def test_every_line_has_every_score(report):
    table = report.table()
    assert list(table) == [*FEW, "last-value", "seasonal-naive(24)", "naive-plus-change(24)"]
    assert all(np.isfinite(list(line.values())).all() for line in table.values())
    assert all(list(line) == ["mae", "log_score", "coverage(0.9)"] for line in table.values())
    assert all(report.runs[name].microseconds > 0 for name in FEW)


def test_progress_is_told_stretch_by_stretch(report, told):
    for name in FEW:
        stretches = [hours for who, hours in told if who == name]
        assert sum(stretches) == 400
        assert len(stretches) > 1
        assert len(set(stretches)) == 1  # one shape, one compilation


def test_the_winners_are_the_best_lines_of_the_table(report):
    table = report.table()
    sentence = demo.winners(report)
    error, score = sentence.removesuffix(".").split(". ")
    assert table[error.removeprefix("Smallest error: ")]["mae"] == min(line["mae"] for line in table.values())
    assert table[score.removeprefix("Best log score: ")]["log_score"] == max(
        line["log_score"] for line in table.values()
    )


def test_the_figure_is_drawn(stream, report, tmp_path):
    assert demo.draw(stream, report, tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_the_stream_is_described_as_it_is(stream):
    text = demo.describe(stream)
    assert f"misses {stream.missing.sum()} " in text
    assert f"gets {stream.outliers.sum()} " in text
    assert "on 2024-01-11 the level shifts" in text  # hour 240


@pytest.mark.parametrize(("name", "words"), [("nonsense", "POSTERIOR"), ("LG+C-ACI", "needs q"), ("LX+C-Static", "LG")])
def test_names_that_mean_nothing_are_refused(name, words):
    with pytest.raises(ValueError, match=words):
        demo.build([name])


@pytest.mark.parametrize(("hours", "size"), [(4368, 336), (400, 200), (1000, 250), (337, 336), (8760, 292)])
def test_stretches_divide_the_stream_where_they_can(hours, size):
    assert demo._stretch(hours) == size


@pytest.mark.x64
@pytest.mark.parametrize("key", [0, 1])
def test_the_story_holds_on_the_stream_it_is_about(key):
    """Who never forgets loses to a naive rule, who does beats them all, and who learns the noise judges itself best."""
    table = demo.learn(hourly_load(26 * 168, key=key), demo.build()).table()
    static, wanders, learns = (table[name] for name in demo.METHODS)
    baselines = [line for name, line in table.items() if name not in demo.METHODS]
    assert static["mae"] > min(line["mae"] for line in baselines)
    assert wanders["mae"] < 0.85 * min(line["mae"] for line in baselines)
    assert learns["mae"] < 0.9 * min(line["mae"] for line in baselines)
    assert learns["log_score"] > max(line["log_score"] for line in [*baselines, static, wanders]) + 0.1
    assert static["coverage(0.9)"] < 0.85 < 0.9 < wanders["coverage(0.9)"]
