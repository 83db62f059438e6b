"""Generated curves of pieces that meet: each is a parabola that begins where the one before ends.

A pure function of its arguments; `key` is a whole number or a JAX key. Axes: T data, three coefficients.

Thesis: experiment:segmentation, after Fearnhead and Liu (2011).
"""

import jax
import numpy as np

from filtax.streams.synthetic import Stream, generator

__all__ = ["linked_parabolas"]

REACH = 5.0


def linked_parabolas(segments: int = 5, *, key: int | jax.Array, hazard: float = 0.01, noise: float = 0.04) -> Stream:
    """Pieces y = a + b d + c d² + N(0, noise), d the way from where the piece began, at sorted x uniform on [-5, 5].

    The lengths of the pieces are geometric, so T differs from key to key. The first has coefficients N(0, I); of the
    others a is where the piece before had come to, b and c are new.

    Args:
        segments: How many pieces; there is one boundary less.
        key: Whole number or JAX key.
        hazard: One over the mean length of a piece.
        noise: Variance of y around the curve.

    Returns:
        A stream with X = x of shape (T, 1), `theta` the coefficients (T, 3) in the frame of their piece, `truth` the
        curve, `changes` where pieces begin, the first left out.

    Example:
        >>> from filtax.streams import linked_parabolas
        >>> stream = linked_parabolas(key=0)
        >>> len(stream.changes), stream.X.shape[1], bool((np.diff(stream.X[:, 0]) >= 0).all())
        (4, 1, True)
    """
    if not 0.0 < hazard <= 1.0:
        raise ValueError(f"linked_parabolas(hazard=...) must lie in (0, 1], got {hazard}; one over a mean length.")
    rng = generator(key)
    lengths = rng.geometric(hazard, size=segments)
    x = np.sort(rng.uniform(-REACH, REACH, size=lengths.sum()))
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    pieces = rng.normal(size=(segments, 3))
    for i in range(1, segments):
        d = x[starts[i]] - x[starts[i - 1]]
        pieces[i, 0] = pieces[i - 1] @ np.array([1.0, d, d * d])
    which = np.repeat(np.arange(segments), lengths)
    theta, d = pieces[which], x - x[starts[which]]
    truth = np.sum(theta * np.stack([np.ones_like(d), d, d * d], axis=1), axis=1)
    y = truth + np.sqrt(noise) * rng.normal(size=len(x))
    changes = tuple(int(t) for t in starts[1:])
    return Stream(np.arange(len(x)), x[:, None], y, truth, theta, np.zeros(len(x), bool), changes)
