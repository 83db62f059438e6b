from itertools import pairwise

import numpy as np
import pytest

from filtax.streams import linked_parabolas


def test_pieces_meet_and_have_coefficients_of_their_own():
    stream = linked_parabolas(4, key=5, hazard=0.05)
    x = stream.X[:, 0]
    assert np.all(np.abs(x) <= 5.0)
    starts = (0, *stream.changes)
    assert len(starts) == 4
    for before, now in pairwise(starts):
        d = x[now] - x[before]
        assert stream.truth[now] == pytest.approx(stream.theta[now - 1] @ [1.0, d, d * d])
        assert not np.isclose(stream.theta[now], stream.theta[now - 1])[1:].any()
    assert np.array_equal(stream.y, linked_parabolas(4, key=5, hazard=0.05).y)


def test_lengths_and_noise_have_their_laws():
    streams = [linked_parabolas(key=i) for i in range(300)]
    assert np.mean([len(stream) for stream in streams]) == pytest.approx(500, rel=0.06)
    noise = np.concatenate([stream.y - stream.truth for stream in streams])
    assert noise.std() == pytest.approx(0.2, rel=0.01)
    with pytest.raises(ValueError, match="one over a mean length"):
        linked_parabolas(key=0, hazard=0.0)
