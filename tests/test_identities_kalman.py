"""(A.1) The linear-Gaussian update: identities that hold for any numbers, and a joint Gaussian that shares no code."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import filtax as fx
from drive import FORMS, close, in_turn, run, same_belief, tracker
from generators import LARGE, SHAPES, systems
from oracles import joint_conditioning, kalman_filter, ridge

pytestmark = pytest.mark.x64
every_shape = pytest.mark.parametrize(("D", "O"), SHAPES)
every_form = pytest.mark.parametrize("form", FORMS)
# All pairs every day where the joint Gaussian is the judge, and where the forms are compared; else each in turn.
form_and_shape = pytest.mark.parametrize(("form", "D", "O"), in_turn(FORMS, SHAPES))
data = given(data=st.data())


def check_against_the_joint(system, got):
    """Mean, covariance and evidence of the last step from one big matrix."""
    want = joint_conditioning(*system.parts)
    close(got.mean[-1], want.mean, system.units, floor=1.0)
    close(got.cov[-1], want.cov, np.outer(system.units, system.units))
    close(got.log_evidence.sum(), want.log_evidence, floor=system.y.size)
    assert got.ok.all()


@every_form
@pytest.mark.parametrize(("D", "O"), [*SHAPES, pytest.param(*LARGE, marks=pytest.mark.nightly)])
@data
def test_filter_is_conditioning_of_the_stacked_gaussian(form, D, O, data):
    """9, 10: F, b, Q, H, R change with time and elements are missing; the evidences add up to the joint density."""
    system = data.draw(systems(D, O, missing=0.3, form=form))
    got = run(system, form)
    check_against_the_joint(system, got)
    want = kalman_filter(*system.parts)
    close(got.forecast_mean, want.forecast_mean, system.unit_y, floor=1.0)
    close(got.forecast_cov, want.forecast_cov, system.unit_y**2)
    close(got.log_evidence, want.log_evidence, floor=O)


@jax.jit
def regress(kf, state, X, y):
    state, infos = kf.scan(state, X, y, keep=("log_evidence",), complete=True)
    belief = kf.belief(state)
    return belief.mean, belief.cov, infos.log_evidence


@every_form
@pytest.mark.parametrize("D", [1, 5, *(pytest.param(D, marks=pytest.mark.nightly) for D in (2, 20))])
@data
def test_static_filter_is_ridge_regression(form, D, data):
    """1, 2: mean (XᵀX + λI)⁻¹Xᵀy and covariance β²(XᵀX + λI)⁻¹, with λ = β²/α²."""
    system = data.draw(systems(D, 1, T=12, drifting=False))
    X, y, noise = system.H[:, 0] * system.units / system.unit_y, system.y[:, 0], float(system.R[0, 0, 0])
    unit = system.unit_y
    alpha = 10.0 ** data.draw(st.floats(-1, 1, allow_subnormal=False)) * unit**2
    kf = fx.method(f"LG(form={form})+C-Static", model=fx.models.linear(noise=noise))
    mean, cov, log_evidence = regress(kf, kf.init(mean=jnp.zeros(D), cov=alpha), jnp.asarray(X), jnp.asarray(y))
    close(mean, ridge(X, y, noise / alpha), unit, floor=1.0)
    close(cov, noise * np.linalg.inv(X.T @ X + noise / alpha * np.eye(D)), unit**2)
    every = np.tile(np.eye(D), (12, 1, 1))
    parts = np.zeros(D), alpha * np.eye(D), every, np.zeros((12, D)), 0 * every, X[:, None], np.tile(noise, (12, 1, 1))
    close(log_evidence.sum(), joint_conditioning(*parts, y[:, None]).log_evidence, floor=12)


@form_and_shape
@data
def test_order_of_the_data_does_not_matter_without_drift(form, D, O, data):
    """3: so late labels are exact for static models."""
    system = data.draw(systems(D, O, drifting=False))
    order = np.array(data.draw(st.permutations(range(len(system.y)))))
    shuffled = system._replace(H=system.H[order], R=system.R[order], y=system.y[order])
    got = run(shuffled, form)
    same_belief(got, run(system, form), system.units)
    check_against_the_joint(system, got)


@pytest.mark.parametrize(("form", "D", "O"), in_turn(FORMS, [(2, 5), (5, 2)]))
@data
def test_vector_datum_with_independent_noise_is_a_sequence_of_scalars(form, D, O, data):
    """4."""
    system = data.draw(systems(D, O, drifting=False, diagonal=True))
    steps = system.y.size
    R = system.R[:, np.arange(O), np.arange(O)].reshape(steps, 1, 1)
    still = dict(F=np.tile(np.eye(D), (steps, 1, 1)), b=np.zeros((steps, D)), Q=np.zeros((steps, D, D)))
    scalars = system._replace(H=system.H.reshape(steps, 1, D), R=R, y=system.y.reshape(steps, 1), **still)
    got, want = run(scalars, form), run(system, form)
    same_belief(got, want, system.units)
    close(got.log_evidence.sum(), want.log_evidence.sum(), floor=steps)
    check_against_the_joint(system, got)


@form_and_shape
@data
def test_whitened_data_lead_to_the_same_belief(form, D, O, data):
    """5: (L⁻¹y, L⁻¹H, I) with R = LLᵀ; the evidence changes by the volume of L."""
    system = data.draw(systems(D, O, form=form))
    L = np.linalg.cholesky(system.R)
    H, y = np.linalg.solve(L, system.H), np.linalg.solve(L, system.y[..., None])[..., 0]
    white = system._replace(H=H, R=np.tile(np.eye(O), (len(y), 1, 1)), y=y)
    got, want = run(white, form), run(system, form)
    same_belief(got, want, system.units)
    volume = np.log(np.diagonal(L, axis1=1, axis2=2)).sum()
    close(got.log_evidence.sum(), want.log_evidence.sum() + volume, floor=system.y.size + abs(volume))


@jax.jit
def update(kf, state, x, y):
    """One step, and the gain as the derivative of the new mean."""
    gain = jax.jacfwd(lambda y: kf.belief(kf.step(state, x, y)[0]).mean)(y)
    after, info = kf.step(state, x, y)
    forecast = kf.predict(state, x)
    return kf.belief(after).mean, kf.belief(after).cov, forecast.mean, forecast.cov, gain, info.log_evidence


@form_and_shape
@data
def test_one_update_satisfies_the_algebra_of_gaussians(form, D, O, data):
    """6, 7, 8, 61, 63, 64: gain, innovation covariance, Joseph's form, conditional covariance, shrinking, volumes."""
    system = data.draw(systems(D, O, T=1, drifting=False))
    kf = tracker(form, system.F[0], system.b[0], system.Q[0], system.R[0])
    state = kf.init(mean=jnp.asarray(system.m0), cov=jnp.asarray(system.P0))
    mean, cov, forecast, S, K, _ = map(
        np.asarray, update(kf, state, jnp.asarray(system.H[0]), jnp.asarray(system.y[0]))
    )
    U, c = system.units, system.unit_y
    m, mean, forecast, y = system.m0 / U, mean / U, forecast / c, system.y[0] / c
    P, cov = system.P0 / np.outer(U, U), cov / np.outer(U, U)
    H, R, S, K = system.H[0] * U / c, system.R[0] / c**2, S / c**2, K * c / U[:, None]
    close(mean, m + K @ (y - H @ m), floor=1.0)
    close(forecast, H @ m, floor=1.0)
    close(K, cov @ np.linalg.solve(R, H).T)
    close(K, np.linalg.solve(S, H @ P).T)
    R_inv = np.linalg.inv(R)
    close(np.linalg.inv(S), R_inv - R_inv @ H @ cov @ H.T @ R_inv, floor=np.abs(R_inv).max())
    left = np.eye(D) - K @ H
    for formula in (left @ P, P - K @ S @ K.T, left @ P @ left.T + K @ R @ K.T):
        close(cov, formula, floor=np.abs(P).max())
    joint = np.block([[P, P @ H.T], [H @ P, H @ P @ H.T + R]])
    close(cov, np.linalg.inv(np.linalg.inv(joint)[:D, :D]), floor=np.abs(P).max())
    assert np.linalg.eigvalsh(P - cov).min() >= -1e-12 * np.abs(P).max()
    volumes = [np.linalg.slogdet(A)[1] for A in (P, cov, S, R)]
    close(volumes[0] - volumes[1], volumes[2] - volumes[3], floor=D + O)


@every_shape
@data
def test_forms_agree(D, O, data):
    """6: square root, covariance and precision carry the same belief, forecast and evidence."""
    system = data.draw(systems(D, O, missing=0.2, form="precision"))
    root, *others = (run(system, form) for form in FORMS)
    for other in others:
        same_belief(other, root, system.units)
        close(other.forecast_cov, root.forecast_cov, system.unit_y**2)
        close(other.log_evidence, root.log_evidence, floor=O)


@form_and_shape
@data
def test_change_of_basis(form, D, O, data):
    """11: theta → T theta moves the belief and nothing else."""
    system = data.draw(systems(D, O, form=form))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    T = np.linalg.qr(rng.normal(size=(D, D)))[0] * rng.uniform(0.5, 2.0, size=D)
    U = system.units
    inward, outward = T / U, np.linalg.inv(T) * U[:, None]  # from units of the system to those of the new basis
    moved = system._replace(
        m0=inward @ system.m0,
        P0=inward @ system.P0 @ inward.T,
        F=inward @ system.F @ outward,
        b=system.b @ inward.T,
        Q=inward @ system.Q @ inward.T,
        H=system.H @ outward,
        units=np.ones(D),
    )
    got, want = run(moved, form), run(system, form)
    close(got.mean[-1], inward @ want.mean[-1], floor=1.0)
    close(got.cov[-1], inward @ want.cov[-1] @ inward.T)
    close(got.log_evidence, want.log_evidence, floor=O)
    check_against_the_joint(moved, got)


@form_and_shape
@data
def test_units_of_the_data_do_not_matter(form, D, O, data):
    """12: (y, H, R) → (cy, cH, c²R); any constant added to R or S fails here."""
    system, c = data.draw(systems(D, O, form=form)), 10.0 ** data.draw(st.floats(-6, 6, allow_subnormal=False))
    scaled = system._replace(H=c * system.H, R=c**2 * system.R, y=c * system.y)
    got, want = run(scaled, form), run(system, form)
    same_belief(got, want, system.units)
    close(got.log_evidence, want.log_evidence - O * np.log(c), floor=O * (1 + abs(np.log(c))))


@form_and_shape
@data
def test_missing_datum_lets_time_pass_and_tells_nothing(form, D, O, data):
    """13: the transition alone; evidence exactly 0; and the limit of a noise without bound."""
    system = data.draw(systems(D, O, form=form))
    got = run(system._replace(y=np.full_like(system.y, np.nan)), form)
    m, P = system.m0, system.P0
    for F, b, Q in zip(system.F, system.b, system.Q, strict=True):
        m, P = F @ m + b, F @ P @ F.T + Q
    close(got.mean[-1], m, system.units, floor=1.0)
    close(got.cov[-1], P, np.outer(system.units, system.units))
    assert (got.log_evidence == 0).all()
    assert got.ok.all()
    deaf = run(system._replace(R=1e20 * system.R), form)
    same_belief(deaf, got, system.units)


@pytest.mark.parametrize(("form", "D", "O"), in_turn(FORMS, [(2, 5), (5, 2)]))
@data
def test_missing_element_is_a_dropped_row(form, D, O, data):
    """14: of H, y, and row and column of a full R."""
    system, gone = data.draw(systems(D, O, form=form)), data.draw(st.integers(0, O - 1))
    left = np.delete(np.arange(O), gone)
    dropped = system._replace(H=system.H[:, left], R=system.R[:, left][:, :, left], y=system.y[:, left])
    y = system.y.copy()
    y[:, gone] = np.nan
    got, want = run(system._replace(y=y), form), run(dropped, form)
    same_belief(got, want, system.units)
    close(got.log_evidence, want.log_evidence, floor=O)
    check_against_the_joint(dropped, want)
