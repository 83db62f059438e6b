"""Every method x every property of the contract. A new method is one row of `catalogue/`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from catalogue import ROWS, T
from conformance import NARROW, NARROW_BAD, NIGHTLY, SHOWN, SLOPES, rows
from filtax import bone
from filtax.io import load, save
from filtax.methods import PUBLISHED
from filtax.state import INFO, with_memory

every_row = rows()
everything = (*INFO, "belief_mean", "belief_var", "belief_cov")
exact = dict(rtol=1e-10, atol=1e-12)


@pytest.fixture(scope="module")
def runs():
    """Each method run once over its stream, with a gap in row 3: (row, method, start, end, infos)."""
    done = {}

    def run(name):
        if name not in done:
            row = ROWS[name]
            method, state = row.start()
            Y = row.Y.copy()
            Y[3] = np.nan
            done[name] = (row, method, state, Y, *method.scan(state, row.X, Y, keep=everything))
        return done[name]

    return run


def at(rows, index):
    return None if rows is None else rows[index]


def plain(tree):
    """The arrays of a pytree, a random key as its numbers."""
    is_key = lambda leaf: jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return [jax.random.key_data(leaf) if is_key(leaf) else leaf for leaf in map(jnp.asarray, jax.tree.leaves(tree))]


def same(a, b, **tolerance):
    """Two pytrees agree, bit for bit unless a tolerance is given."""
    for left, right in zip(plain(a), plain(b), strict=True):
        if tolerance:
            np.testing.assert_allclose(left, right, **tolerance)
        else:
            np.testing.assert_array_equal(left, right)


@pytest.mark.x64
@every_row
def test_law_of_evidence(name, runs):
    """The density of the forecast at y is exp(log_evidence) of the step that follows."""
    row, method, state, _, end, _ = runs(name)
    for start in (state, end):
        forecast = method.predict(start, at(row.X, 0))
        _, info = method.step(start, at(row.X, 0), row.Y[0])
        np.testing.assert_allclose(forecast.log_prob(row.Y[0]), info.log_evidence, rtol=1e-10)
        np.testing.assert_allclose(forecast.mean, info.mean, **exact)
        np.testing.assert_allclose(forecast.var, info.var, **exact)


@pytest.mark.x64
@rows(night=(*NIGHTLY, *SHOWN["missing"]))
def test_missing_conditions_on_nothing_while_time_passes(name, runs):
    """A gap adds exactly 0, and two steps without data are the second row of a forecast."""
    row, method, _, _, end, infos = runs(name)
    assert float(infos.log_evidence[3]) == 0.0
    assert bool(infos.ok[3])
    gone, info = method.step(end, at(row.X, 0), np.full(np.shape(row.Y[0]), np.nan))
    assert float(info.log_evidence) == 0.0
    assert np.all(np.isnan(info.residual))
    assert int(gone.t) == int(end.t) + 1
    ahead = method.forecast(end, at(row.X, slice(0, 2))) if row.X is not None else None
    if ahead is not None:
        then = method.predict(gone, row.X[1])
        np.testing.assert_allclose(ahead.mean[1], then.mean, **exact)
        np.testing.assert_allclose(ahead.var[1], then.var, **exact)
        masked, _ = method.step(end, row.X[0], row.Y[0], mask=np.zeros(np.shape(row.Y[0]), bool))
        same(masked.hypotheses, gone.hypotheses)


@pytest.mark.x64
@every_row
def test_scan_is_loop_is_chunks(name, runs):
    """One compiled loop, two chunks and single steps give the same answer; chunks to the last bit."""
    row, method, state, Y, end, infos = runs(name)
    half = state
    for part in (slice(0, T // 2), slice(T // 2, T)):
        half, _ = method.scan(half, at(row.X, part), Y[part], keep=everything)
    same(half, end)
    looped = state
    for t in range(T):
        looped, info = method.step(looped, at(row.X, t), Y[t])
        np.testing.assert_allclose(info.log_evidence, infos.log_evidence[t], **exact)
    same(looped, end, **exact)


@pytest.mark.x64
@rows(night=(*NIGHTLY, *SHOWN["complete"]))
def test_complete_path_gives_the_same_answer(name, runs):
    """The path without masks and guards is the same filter."""
    row, method, state, *_ = runs(name)
    guarded, a = method.scan(state, row.X, row.Y)
    bare, b = method.scan(state, row.X, row.Y, complete=True)
    same(guarded.hypotheses, bare.hypotheses, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(a.log_evidence, b.log_evidence, rtol=1e-9)


@pytest.mark.x64
@rows(night=[name for name in ROWS if name not in SLOPES])
def test_vmap_is_a_loop_and_grad_a_difference(name):
    """A sweep over a hyper-parameter and over streams at once equals the runs one by one."""
    row = ROWS[name]
    settings = row.setting * np.array([0.9, 1.0])
    streams = np.stack([row.Y, row.Y[::-1]])

    def total(setting, Y):
        return row.evidence(setting, row.X, Y)

    both = jax.vmap(jax.vmap(total, (None, 0)), (0, None))(settings, streams)
    np.testing.assert_allclose(both, [[total(s, Y) for Y in streams] for s in settings], rtol=1e-9)
    slope = jax.grad(total)(row.setting, row.Y)
    step = 1e-5 * row.setting
    rise = (total(row.setting + step, row.Y) - total(row.setting - step, row.Y)) / (2.0 * step)
    np.testing.assert_allclose(slope, rise, rtol=1e-5, atol=1e-7)


@rows(narrow=NARROW_BAD)
def test_bad_rows_are_refused_and_counted(name):
    """NaN in x, infinity in y: not ok, counted, nothing learned, nothing lost."""
    row = ROWS[name]
    method, state = row.start("float32")
    bad = np.full(np.shape(row.Y[0]), np.inf)
    after, info = method.step(state, at(row.X, 0), bad)
    unseen, _ = method.step(state, at(row.X, 0), np.full(np.shape(row.Y[0]), np.nan))
    # a robust model takes infinity as the limit of what is far, believes nothing of it, and refuses no number
    taken = hasattr(method.model.likelihood, "trust") and name != "wolf-labels"
    assert bool(info.ok) == taken
    assert int(after.refused) == (not taken)
    assert float(info.log_evidence) == (-np.inf if taken else 0.0)
    assert not taken or float(info.trust) == 0.0
    same(after.hypotheses, unseen.hypotheses)
    if row.X is not None:
        after, info = method.step(state, np.full(row.X[0].shape, np.nan), row.Y[0])
        assert not bool(info.ok)
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(after.hypotheses.belief))
        same(
            (after.hypotheses.belief, after.hypotheses.log_weight),
            (unseen.hypotheses.belief, unseen.hypotheses.log_weight),
        )


@rows(night=(*NIGHTLY, *SHOWN["float32"]), narrow=NARROW)
def test_float32_stays_float32_finite_and_psd(name):
    """Over a long stream no leaf changes its dtype, none leaves the finite numbers, no variance its sign."""
    row = ROWS[name]
    method, state = row.start("float32")
    many = 100
    X = None if row.X is None else np.tile(row.X, (many,) + (1,) * (row.X.ndim - 1))
    end, infos = method.scan(state, X, np.tile(row.Y, (many,) + (1,) * (row.Y.ndim - 1)), keep=("ok", "var"))
    assert bool(infos.ok.all())
    assert bool(jnp.all(infos.var > 0.0))
    start = with_memory(method, state, None if X is None else X[0], row.Y[0])  # a memory is made at the first datum
    for before, after in zip(plain(start), plain(end), strict=True):
        assert before.dtype == after.dtype
        if after is not end.hypotheses.log_weight:
            assert bool(jnp.all(jnp.isfinite(after)))
    np.testing.assert_allclose(np.exp(end.hypotheses.log_weight).sum(), 1.0, rtol=1e-5)  # a dead slot has -inf
    cov = np.asarray(method.belief(end).cov, "float64")
    values = np.linalg.eigvalsh(cov)
    assert values[0] >= -4 * np.finfo("float32").eps * len(cov) * values[-1]


@pytest.mark.x64
@every_row
def test_compiles_once_for_a_shape(name, runs):
    """New numbers, settings included, never compile again."""
    row, method, state, *_ = runs(name)
    method.step(state, at(row.X, 0), row.Y[0])
    before = bone._step._cache_size()
    other = row.build(row.setting * 0.95)
    other_state = other.init(**row.init, **row.key)
    for t in range(3):
        other_state, _ = other.step(other_state, at(row.X, t), row.Y[t])
    assert bone._step._cache_size() <= before + 1  # the settled dtype of the first state may differ from `runs`
    settled = bone._step._cache_size()
    for t in range(3, 6):
        other_state, _ = other.step(other_state, at(row.X, t), row.Y[t])
    assert bone._step._cache_size() == settled


@pytest.mark.x64
@every_row
def test_known_change_resets(name, runs):
    """changed=True is a fresh start: the same as the first step after init."""
    row, method, state, _, end, _ = runs(name)
    again, _ = method.step(end, at(row.X, 0), row.Y[0], changed=True)
    first, _ = method.step(state, at(row.X, 0), row.Y[0])
    if row.seed is None:  # samples belong to their step, and the step is another
        same(again.hypotheses, first.hypotheses, **exact)
    not_changed, _ = method.step(end, at(row.X, 0), row.Y[0], changed=False)
    plain, _ = method.step(end, at(row.X, 0), row.Y[0])
    same(not_changed.hypotheses, plain.hypotheses, **exact)


def repeated(row, rows):
    """Its stream again and again, up to so many rows."""
    tiled = lambda A: None if A is None else jnp.asarray(np.resize(A, (rows, *A.shape[1:])))
    return tiled(row.X), tiled(row.Y)


@functools.cache
def evidence(name, rows):
    """Of so many rows, which are an argument of the program."""
    return jax.jit(ROWS[name].evidence)(ROWS[name].setting, *repeated(ROWS[name], rows))


def in_chunks(transform, row, X, Y):
    """The total evidence as a function of the setting, by a scan inside another scan, over ten chunks of rows."""
    split = lambda A: None if A is None else A.reshape(10, -1, *A.shape[1:])

    def total(setting):
        method = row.build(setting)

        def chunk(state, rows):
            state, infos = method.scan(state, *rows, keep=("log_evidence",))
            return state, infos.log_evidence.sum()

        state = with_memory(method, method.init(**row.init, **row.key), at(X, 0), Y[0])
        return jax.lax.scan(transform(chunk), state, (split(X), split(Y)))[1].sum()

    return total


# The total evidence of a stream by a jitted program that closes over its data.
CLOSED = {
    "alone": lambda total, row, X, Y: jax.jit(total)(row.setting),
    "vmap": lambda total, row, X, Y: jax.jit(jax.vmap(total))(row.setting * jnp.array([1.0, 0.9]))[0],
    "grad": lambda total, row, X, Y: jax.jit(jax.value_and_grad(total))(row.setting)[0],
    "remat": lambda total, row, X, Y: jax.jit(jax.value_and_grad(in_chunks(jax.checkpoint, row, X, Y)))(row.setting)[0],
    "scan": lambda total, row, X, Y: jax.jit(in_chunks(lambda chunk: chunk, row, X, Y))(row.setting),
}
LENGTHS = (100, 10_000, 100_000)
X64 = pytest.mark.x64


def by_day(name, how, rows):
    """A few methods in every way, short and long, and what else runs by day in one way."""
    return rows != 10_000 if name in SLOPES else (how, rows) == ("alone", 10_000) and name not in NIGHTLY


def cases(ways):
    """All but gradients of the longest stream, which keep up to 160 KB a row; those of its chunks keep a tenth."""
    every = [(name, how, rows) for name in ROWS for how in ways for rows in LENGTHS]
    some = [case for case in every if case[1:] != ("grad", 100_000) or case[0] in SLOPES]
    marks = lambda case: [*([] if by_day(*case) else [pytest.mark.nightly]), *([] if case[1] == "alone" else [X64])]
    marked = [pytest.param(*case, marks=marks(case)) for case in some]
    return pytest.mark.parametrize(("name", "how", "rows"), marked)


@cases(CLOSED)
def test_a_jitted_program_that_closes_over_its_data(name, how, rows):
    """XLA then holds the data as constants of the program."""
    row = ROWS[name]
    X, Y = repeated(row, rows)
    value = CLOSED[how](lambda setting: row.evidence(setting, X, Y), row, X, Y)
    np.testing.assert_allclose(value, evidence(name, rows), rtol=1e-9 if jax.config.jax_enable_x64 else 1e-3)


@pytest.mark.x64
@cases(["donated"])
def test_a_donated_state_gives_the_same_answer(name, how, rows):
    row = ROWS[name]
    X, Y = repeated(row, rows)
    method, state = row.start()

    def run(state):
        return method.scan(state, X, Y, keep=("log_evidence",))

    state, _ = method.step(state, at(X, 0), Y[0])
    end, infos = run(state)
    donated, others = jax.jit(run, donate_argnums=0)(jax.tree.map(jnp.copy, state))
    same(donated, end, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(others.log_evidence, infos.log_evidence, rtol=1e-9)


def test_every_published_method_is_a_row():
    assert set(PUBLISHED) <= set(ROWS)


@pytest.mark.x64
@every_row
def test_comes_back_from_a_checkpoint(name, runs, tmp_path):
    """Bit for bit, in a state of the same method that has seen a datum."""
    row, method, state, _, end, _ = runs(name)
    save(tmp_path, end)
    same(load(tmp_path, method.step(state, at(row.X, 0), row.Y[0])[0])[0], end)


@pytest.mark.x64
@every_row
def test_kept_belief_is_the_belief(name, runs):
    """What scan keeps of the belief is what `belief` shows; states are plain arrays."""
    _, method, _, _, end, infos = runs(name)
    belief = method.belief(end)
    np.testing.assert_allclose(infos.belief_mean[-1], belief.mean, **exact)
    np.testing.assert_allclose(infos.belief_cov[-1], belief.cov, **exact)
    np.testing.assert_allclose(infos.belief_var[-1], np.diag(belief.cov), rtol=1e-9, atol=1e-12)
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(end))
    leaves, structure = jax.tree.flatten(end)
    same(jax.tree.unflatten(structure, leaves), end)
