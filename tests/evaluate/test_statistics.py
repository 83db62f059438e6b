"""Mean, median and unevenness of losses: what NaN, infinity and weights do to them."""

import numpy as np
import pytest
import scipy.stats

from filtax.evaluate.statistics import mean, median, unevenness

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize("values", [[1.0, 2.0, 3.0, 10.0], [5.0], [3.0, 3.0, 1.0]])
def test_equal_weights_are_no_weights(values):
    for statistic, want in ((mean, np.mean), (median, np.median)):
        assert statistic(values) == statistic(values, np.full(len(values), 0.5)) == want(values)
    share = np.array(values) / 20
    want = scipy.stats.kstest(share, "uniform").statistic
    np.testing.assert_allclose([unevenness(share), unevenness(share, np.full(len(values), 0.5))], want)


def test_whole_weights_are_repetitions():
    values, weights = np.array([0.1, 0.9, 0.4, 0.6]), np.array([1, 3, 2, 4])
    for statistic in (mean, median, unevenness):
        np.testing.assert_allclose(statistic(values, weights), statistic(np.repeat(values, weights)))


@pytest.mark.parametrize("weights", [None, [1.0, 1.0, 1.0, 0.0]])
def test_what_is_nan_or_without_weight_does_not_count(weights):
    values = [0.2, NAN, 0.4, 0.2 if weights is None else INF]
    want = (
        {mean: 0.8 / 3, median: 0.2, unevenness: 0.6} if weights is None else {mean: 0.3, median: 0.3, unevenness: 0.6}
    )
    for statistic, value in want.items():
        np.testing.assert_allclose(statistic(values, weights), value)


def test_an_infinite_loss_is_an_infinite_mean_and_no_infinite_median():
    assert mean([INF, 1.0, 2.0]) == INF
    assert median([INF, 1.0, 2.0]) == 2.0


def test_nothing_left_is_nan():
    for statistic in (mean, median, unevenness):
        assert np.isnan(statistic([NAN, NAN]))
        assert np.isnan(statistic([NAN, NAN], [1.0, 1.0]))
