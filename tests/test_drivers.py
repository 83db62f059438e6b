"""One table through every driver: a run has the bits of a series; what is asked ahead may differ by rounding."""

import numpy as np
import pyarrow.parquet
import pytest

import filtax as fx
from filtax.forecasting import Series
from filtax.pipeline import Config, run_pipeline, write_outputs

pytestmark = pytest.mark.x64
ROWS = 300


@pytest.fixture(scope="module", params=[3, 8])
def table(request):
    F, rng = request.param, np.random.default_rng(3)
    X = rng.normal(size=(ROWS, F)) * ([1.0, 100.0, 0.01] + [1.0] * 5)[:F]
    y = X[:, :3] @ [2.0, 0.05, 30.0] + np.abs(X[:, -1]) + rng.normal(size=ROWS)
    y[::17] = np.nan
    return X, y


@pytest.fixture(scope="module")
def forecasts(table):
    X, y = table
    return Series(known=X.shape[1], season=1).learn(y, known=X)


def test_a_run_gives_the_numbers_of_a_series(table, forecasts, tmp_path):
    X, y = table
    lines = [
        ",".join(repr(float(v)) for v in row) + "," + ("" if t != t else repr(float(t)))
        for row, t in zip(X, y, strict=True)
    ]
    (tmp_path / "t.csv").write_text("\n".join([",".join([*"abcdefgh"[: X.shape[1]], "y"]), *lines]) + "\n")
    run_pipeline(Config(str(tmp_path / "t.csv"), "y", season=1, task="regress"), tmp_path / "run")
    write_outputs(tmp_path / "run")
    found = pyarrow.parquet.read_table(tmp_path / "run" / "predictions.parquet")
    for name in ("forecast", "lower", "upper"):
        numbers = found[name].to_numpy(zero_copy_only=False).astype(float)
        np.testing.assert_array_equal(numbers, getattr(forecasts, name)[:, 0])


def test_an_estimator_and_a_fleet_give_the_numbers_of_a_series(table, forecasts):
    X, y = table
    one, fleet = fx.Regressor(), fx.Fleet(fx.Regressor())
    for t in range(ROWS):
        x = dict(zip("abcdefgh", X[t].tolist(), strict=False))
        if t >= 8:
            low, high = one.predict_interval_one(x)
            said = [one.predict_one(x), fleet.predict_one("k", x), low, high]
            own = [forecasts.forecast[t, 0], forecasts.forecast[t, 0], forecasts.lower[t, 0], forecasts.upper[t, 0]]
            np.testing.assert_allclose(said, own, rtol=1e-9)
            assert said[0] == said[1]
        one.learn_one(x, y[t])
        fleet.learn_one("k", x, y[t])
