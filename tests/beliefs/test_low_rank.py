"""LoFi's belief against dense numpy: precision diagonal plus low rank, its drift, its cuts and its samples."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import filtax as fx
from filtax.beliefs import Diagonal, LowRank
from filtax.beliefs._low_rank_algebra import leading

pytestmark = pytest.mark.x64
D, RANK = 7, 3
rng = np.random.default_rng(11)
V = rng.uniform(0.5, 2.0, size=D)
M = rng.normal(size=D)
NIGHT = ((0, True), (2, False))
exact = dict(rtol=1e-10, atol=1e-12)


condition = jax.jit(lambda b, J, B, r: b.condition(J, B, r))


def told(b, J):
    """After unit-noise data that agree with the mean."""
    return condition(b, jnp.asarray(J), jnp.eye(len(J)), jnp.zeros(len(J))).belief


def belief(spare=6, spherical=False, rank=RANK, data=3, seed=0):
    """A belief with `data` columns of a factor in it, and that factor."""
    W = np.random.default_rng(seed).normal(size=(D, data))
    var = np.full(D, 0.8) if spherical else V
    start = LowRank.start(jnp.asarray(M), jnp.asarray(var), rank, spare, spherical)
    for column in W.T:
        start = told(start, column[None])
    return start, W, var


def precision(b):
    """What the belief says of itself, read off its two published parts."""
    return np.diag(np.broadcast_to(b.upsilon, D)) + np.asarray(b.factor) @ np.asarray(b.factor).T


def thesis_update(mean, upsilon, W, H, R, y, rank, spherical=False):
    """algo:lofi-update with the errata, by the singular value decomposition of the tall factor."""
    root = np.linalg.inv(np.linalg.cholesky(R))
    tall = np.concatenate([W, (root @ H).T], axis=1)
    P = np.diag(upsilon) + tall @ tall.T
    mean = mean + np.linalg.solve(P, H.T @ np.linalg.solve(R, y - H @ mean))
    left, size, _ = np.linalg.svd(tall, full_matrices=False)
    dropped = np.sum((left[:, rank:] * size[rank:]) ** 2, axis=1)
    return mean, upsilon + (dropped.mean() if spherical else dropped), left[:, :rank] * size[:rank]


@pytest.mark.parametrize("spherical", [False, True])
def test_precision_covariance_and_spread_are_dense_algebra(spherical):
    b, W, var = belief(spherical=spherical)
    want = np.diag(1.0 / var) + W @ W.T
    np.testing.assert_allclose(precision(b), want, **exact)
    np.testing.assert_allclose(b.cov, np.linalg.inv(want), **exact)
    np.testing.assert_allclose(b.var, np.diag(np.linalg.inv(want)), **exact)
    J = rng.normal(size=(2, D))
    np.testing.assert_allclose(b.project_cov(jnp.asarray(J)), J @ np.linalg.inv(want) @ J.T, **exact)


MOVES = {
    "add": (1.0, 0.3),
    "inflate": (np.sqrt(1.5), 0.0),
    "dynamics": (0.8, 0.2),
    "mix": (0.7, (1.0 - 0.49) * 0.8),
    "forget": (0.0, 0.8),
}


@pytest.mark.parametrize("spherical", [False, pytest.param(True, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("move", MOVES)
def test_drift_is_exact(move, spherical):
    """[(Υ + WWᵀ)⁻¹ k² + q]⁻¹ in dense numpy, for each way to move; then another datum, which meets what is left."""
    b, W, var = belief(spherical=spherical)
    keep, q = MOVES[move]
    home = LowRank.start(jnp.ones(D), jnp.full(D, 0.8), RANK, 6, spherical)
    moved = {
        "add": lambda: b.add(jnp.asarray(q)),
        "inflate": lambda: b.inflate(jnp.asarray(1.5)),
        "dynamics": lambda: b.affine(jnp.asarray(keep), jnp.asarray(2.0), jnp.sqrt(q)),
        "mix": lambda: b.mix(home, jnp.asarray(keep)),
        "forget": lambda: b.mix(home, jnp.asarray(0.0)),
    }[move]()
    shift = {"dynamics": 2.0, "mix": 0.3, "forget": 1.0}.get(move, 0.0)
    np.testing.assert_allclose(moved.mean, (M if move in ("add", "inflate") else keep * M) + shift, **exact)
    cov = keep**2 * np.linalg.inv(np.diag(1.0 / var) + W @ W.T) + q * np.eye(D)
    np.testing.assert_allclose(moved.cov, cov, **exact)
    np.testing.assert_allclose(precision(moved), np.linalg.inv(cov), **exact)
    H = rng.normal(size=(2, D))
    later = condition(moved, jnp.asarray(H), jnp.eye(2), jnp.ones(2))
    np.testing.assert_allclose(precision(later.belief), np.linalg.inv(cov) + H.T @ H, **exact)
    S = np.eye(2) + H @ cov @ H.T
    np.testing.assert_allclose(later.log_det, np.linalg.slogdet(S)[1], **exact)
    np.testing.assert_allclose(np.sum(later.innovation**2), np.ones(2) @ np.linalg.solve(S, np.ones(2)), **exact)
    np.testing.assert_allclose(later.belief.mean, moved.mean + cov @ H.T @ np.linalg.solve(S, np.ones(2)), **exact)


def test_drift_with_a_number_for_each_parameter():
    b, W, _ = belief()
    F, q = rng.uniform(-1.0, 1.0, size=D), rng.uniform(0.0, 1.0, size=D)
    F[0], q[1] = 0.0, 0.0
    cov = F[:, None] * np.linalg.inv(np.diag(1.0 / V) + W @ W.T) * F + np.diag(q)
    np.testing.assert_allclose(b.affine(jnp.asarray(F), None, jnp.sqrt(q)).cov, cov, **exact)
    np.testing.assert_allclose(b.add(jnp.asarray(q)).cov, b.cov + np.diag(q), **exact)


@pytest.mark.parametrize(
    ("spare", "spherical"), [(0, False), (2, True), *(pytest.param(*c, marks=pytest.mark.nightly) for c in NIGHT)]
)
def test_with_room_for_one_datum_it_is_the_thesis(spare, spherical):
    """Twelve data of two outputs, a cut after each: mean, diagonal and precision of algo:lofi-update."""
    R = np.array([[1.0, 0.3], [0.3, 0.5]])
    form = "spherical" if spherical else "diagonal"
    lofi = fx.method(f"LoFi(rank=3, spare={spare}, form={form})+C-Static", model=fx.models.linear(noise=R))
    X, Y = rng.normal(size=(12, 2, D)), rng.normal(size=(12, 2))
    state, _ = lofi.scan(lofi.init(mean=M, cov=0.8), X, Y)
    mean, upsilon, W = M, np.full(D, 1.25), np.zeros((D, 0))
    for H, y in zip(X, Y, strict=True):
        mean, upsilon, W = thesis_update(mean, upsilon, W, H, R, y, 3, spherical)
    b = lofi.belief(state)
    np.testing.assert_allclose(b.mean, mean, **exact)
    np.testing.assert_allclose(np.broadcast_to(b.upsilon, D), upsilon, **exact)
    np.testing.assert_allclose(precision(b), np.diag(upsilon) + W @ W.T, **exact)
    assert int(b.used) == 3


@pytest.mark.parametrize("spherical", [False, True])
def test_a_cut_keeps_the_diagonal_of_the_precision(spherical):
    """What a cut changes are off-diagonal entries of what it drops; a spherical one keeps the trace."""
    b, W, var = belief(spare=5, spherical=spherical, data=7)  # room for 8: the last column is there, the next is not
    full = np.diag(1.0 / var) + W @ W.T
    np.testing.assert_allclose(precision(b), full, **exact)
    H = rng.normal(size=(1, D))
    after = told(b, H)
    assert int(after.used) == RANK
    full += H.T @ H
    left, size, _ = np.linalg.svd(np.concatenate([W, H.T], axis=1), full_matrices=False)
    dropped = (left[:, RANK:] * size[RANK:]) @ (left[:, RANK:] * size[RANK:]).T
    gone = np.eye(D) * np.trace(dropped) / D if spherical else np.diag(np.diag(dropped))
    np.testing.assert_allclose(precision(after), full - dropped + gone, **exact)
    np.testing.assert_allclose(after.cov, np.linalg.inv(precision(after)), **exact)


def test_rank_zero_is_the_diagonal_filter():
    prior = Diagonal.start(jnp.asarray(M), jnp.asarray(V).at[2].set(0.0))
    b = LowRank.start(prior.mean, prior.var, rank=0)
    H, r = jnp.asarray(rng.normal(size=(2, D))), jnp.asarray([1.0, -2.0])
    B = jnp.asarray([[1.0, 0.0], [0.4, 2.0]])
    for _ in range(3):
        a, c = condition(prior, H, B, r), condition(b, H, B, r)
        prior, b = a.belief.add(jnp.asarray(0.1)), c.belief.add(jnp.asarray(0.1))
        np.testing.assert_allclose(b.mean, prior.mean, rtol=1e-13)
        np.testing.assert_allclose(b.var, prior.var, rtol=1e-13)
        np.testing.assert_allclose(c.log_det, a.log_det, rtol=1e-13)
    assert b.factor.shape == (D, 0)
    np.testing.assert_allclose(b.cov, prior.cov, rtol=1e-13)
    assert b.sample(jax.random.key(0), (3,)).shape == (3, D)


def test_a_rotated_factor_is_the_same_belief():
    b, W, _ = belief()
    Q = scipy.stats.ortho_group(3, seed=1).rvs()
    other = LowRank.start(jnp.asarray(M), jnp.asarray(V), RANK, 6)
    other = told(other, (W @ Q).T)
    H = jnp.asarray(rng.normal(size=(2, D)))
    for _ in range(4):  # through a drift and a cut
        b, other = (condition(one.add(jnp.asarray(0.1)), H, jnp.eye(2), jnp.ones(2)).belief for one in (b, other))
    np.testing.assert_allclose(b.mean, other.mean, **exact)
    np.testing.assert_allclose(precision(b), precision(other), **exact)


@pytest.mark.parametrize("spherical", [False, True])
def test_samples_have_its_covariance(spherical):
    """The map from unit noise to a draw, column by column: its square is the covariance, to rounding."""
    b, W, var = belief(spare=2, spherical=spherical, data=2)
    want = np.linalg.inv(np.diag(1.0 / var) + W @ W.T)
    drawn = np.asarray(b.sample(jax.random.key(3), (40000,)))
    np.testing.assert_allclose(drawn.mean(0), M, atol=5 * np.sqrt(want.max() / 40000))
    np.testing.assert_allclose(np.cov(drawn.T), want, atol=6 * want.max() * np.sqrt(2 / 40000))


def test_a_certain_parameter_stays_certain():
    start = LowRank.start(jnp.asarray(M), jnp.asarray(V).at[4].set(0.0), 2, 2)
    for column in rng.normal(size=(5, 1, D)):  # through cuts
        start = condition(start, jnp.asarray(column), jnp.eye(1), jnp.ones(1)).belief
    assert float(start.mean[4]) == M[4]
    assert float(start.cov[4, 4]) == 0.0
    assert np.all(np.isfinite(start.cov))
    assert np.all(np.asarray(start.sample(jax.random.key(0), (4,)))[:, 4] == M[4])
    np.testing.assert_allclose(start.add(jnp.asarray(0.1)).cov, start.cov + 0.1 * np.eye(D), **exact)


def test_nothing_seen_and_failure_leave_it_bit_for_bit():
    for b in (belief(spare=5, data=7)[0], belief(spare=0)[0]):  # full but for one column; and always cut
        J = jnp.asarray(rng.normal(size=(1, D)))
        nothing = condition(b, J, jnp.zeros((1, 1)), jnp.zeros(1))
        failed = [condition(b, 1e200 * J, jnp.eye(1), jnp.ones(1)), condition(b, J * jnp.nan, jnp.eye(1), jnp.ones(1))]
        assert bool(nothing.ok)
        assert float(nothing.log_det) == 0.0
        assert not any(bool(one.ok) for one in failed)
        for after in (nothing, *failed):
            for old, new in zip(jax.tree.leaves(b), jax.tree.leaves(after.belief), strict=True):
                np.testing.assert_array_equal(new, old)
        for far in (
            b.add(jnp.asarray(np.inf)),
            b.affine(jnp.asarray(1e200), None, None),
            b.inflate(jnp.asarray(np.inf)),
        ):
            assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(far))


@pytest.mark.nightly
def test_derivatives_of_a_cut_are_differences():
    """Also where eigenvalues meet, at zero among columns not used."""
    b, *_ = belief(spare=1, data=3)
    H = jnp.asarray(rng.normal(size=(1, D)))

    @jax.jit
    def total(scale):
        after = b.condition(scale * H, jnp.eye(1), jnp.ones(1)).belief
        return jnp.sum(jnp.sin(after.add(0.1 * scale).condition(H, jnp.eye(1), jnp.ones(1)).belief.cov))

    slope, step = jax.jit(jax.grad(total))(1.0), 1e-5
    np.testing.assert_allclose(slope, (total(1.0 + step) - total(1.0 - step)) / (2 * step), rtol=1e-6)
    for scaled in (False, True):
        assert np.isfinite(jax.grad(lambda s: jnp.sum(leading(s * jnp.zeros((3, 3)), 1, 3, scaled)))(1.0))  # noqa: B023


@pytest.mark.parametrize("spherical", [False, True])
def test_rows_that_are_not_used_are_not_read(spherical):
    """Any finite numbers there, even such whose squares are not, give the same belief, bit for bit."""
    b, *_ = belief(spare=5, spherical=spherical, data=3)
    far = eqx.tree_at(lambda b: b.rows, b, b.rows.at[int(b.used) :].set(1e200))
    H, key = jnp.asarray(rng.normal(size=(2, D))), jax.random.key(0)
    for _ in range(4):  # through a drift and a cut
        for view in (lambda b: b.cov, lambda b: b.var, lambda b: b.factor, lambda b: b.sample(key, (3,))):
            np.testing.assert_array_equal(view(far), view(b))
        b, far = (condition(one.add(jnp.asarray(0.1)), H, jnp.eye(2), jnp.ones(2)).belief for one in (b, far))
        np.testing.assert_array_equal(far.mean, b.mean)
        np.testing.assert_array_equal(far.rows[: int(b.used)], b.rows[: int(b.used)])


def test_a_mean_that_would_leave_the_numbers_stays():
    start = LowRank.start(jnp.full(D, 1.7e308), jnp.ones(D), 2, 2)
    after = condition(start, jnp.ones((1, D)), jnp.eye(1), jnp.asarray([1e308]))
    assert not bool(after.ok)
    np.testing.assert_array_equal(after.belief.mean, start.mean)
    assert int(after.belief.used) == 0


def test_more_outputs_than_there_is_room_for_are_refused_and_room_is_made():
    """Eight single outputs leave one column of nine; three need a cut, and the next three are taken."""
    b, *_ = belief(rank=6, spare=3, data=8)
    H = jnp.asarray(rng.normal(size=(3, D)))
    first = condition(b, H, jnp.eye(3), jnp.ones(3))
    assert not bool(first.ok)
    np.testing.assert_array_equal(first.belief.mean, b.mean)
    assert int(first.belief.used) == 6
    np.testing.assert_allclose(np.diag(precision(first.belief)), np.diag(precision(b)), **exact)
    nothing = condition(b, H, jnp.zeros((3, 3)), jnp.zeros(3))
    assert bool(nothing.ok)
    np.testing.assert_array_equal(nothing.belief.rows, b.rows)
    second = condition(first.belief, H, jnp.eye(3), jnp.ones(3))
    assert bool(second.ok)
    want = precision(first.belief) + np.asarray(H.T @ H)
    np.testing.assert_allclose(np.diag(precision(second.belief)), np.diag(want), **exact)
    cov = np.linalg.inv(precision(first.belief))
    gain = cov @ H.T @ np.linalg.inv(np.eye(3) + H @ cov @ H.T)
    np.testing.assert_allclose(second.belief.mean, first.belief.mean + gain @ np.ones(3), **exact)
