"""Other people's Kalman filters on the tracking problem, each as {outputs: call}."""

import numpy as np

MEANS, FULL = "means", "means, covs, loglik"


def dynamax(package, setting, Y):
    """`lgssm_filter`, jitted and vmapped. Its initial belief is the one predicted for the first datum."""
    import jax
    import jax.numpy as jnp

    F, Q, H, R, m0, P0 = setting
    parameters, _ = package.LinearGaussianSSM(4, 2).initialize(
        dynamics_weights=jnp.asarray(F),
        dynamics_covariance=jnp.asarray(Q),
        emission_weights=jnp.asarray(H),
        emission_covariance=jnp.asarray(R),
        initial_mean=jnp.asarray(F @ m0),
        initial_covariance=jnp.asarray(F @ P0 @ F.T + Q),
    )
    data = jnp.asarray(Y)

    def full(y):
        post = package.lgssm_filter(parameters, y)
        return post.filtered_means, post.filtered_covariances, post.marginal_loglik

    runs = {MEANS: jax.jit(jax.vmap(lambda y: full(y)[:1])), FULL: jax.jit(jax.vmap(full))}
    return {group: lambda run=run: jax.block_until_ready(run(data)) for group, run in runs.items()}


def simdkalman(package, setting, Y):
    F, Q, H, R, m0, P0 = (a.astype(np.float64) for a in setting)
    kf = package.KalmanFilter(state_transition=F, process_noise=Q, observation_model=H, observation_noise=R)
    start = {"initial_value": F @ m0, "initial_covariance": F @ P0 @ F.T + Q}

    def call():
        found = kf.compute(Y, 0, smoothed=False, filtered=True, observations=False, **start)
        return found.filtered.states.mean, found.filtered.states.cov

    return {FULL: call}


def statsmodels(package, setting, Y):
    F, Q, H, R, m0, P0 = (a.astype(np.float64) for a in setting)

    def one(y):
        kf = package.KalmanFilter(k_endog=2, k_states=4)
        kf.bind(np.ascontiguousarray(y, np.float64))
        kf["transition"], kf["state_cov"], kf["selection"] = F, Q, np.eye(4)
        kf["design"], kf["obs_cov"] = H, R
        kf.initialize_known(F @ m0, F @ P0 @ F.T + Q)
        found = kf.filter()
        return found.filtered_state.T, found.filtered_state_cov.transpose(2, 0, 1), found.llf

    def call():
        means, covs, loglik = zip(*(one(y) for y in Y), strict=True)
        return np.stack(means), np.stack(covs), np.array(loglik)

    return {FULL: call}


def cuthbert(package, setting, Y):
    """The sequential filter, jitted and vmapped; what it stores are square roots of the covariances."""
    import importlib

    import jax
    import jax.numpy as jnp

    run_filter = importlib.import_module("cuthbert.filtering").filter
    F, Q, H, R, m0, P0 = (jnp.asarray(a) for a in setting)
    root_Q, root_R, root_P0 = (jnp.linalg.cholesky(A) for A in (Q, R, P0))
    kf = package.build_filter(m0, root_P0, lambda y: (F, jnp.zeros(4), root_Q), lambda y: (H, jnp.zeros(2), root_R, y))

    @jax.jit
    @jax.vmap
    def run(y):
        found = run_filter(kf, y, kf.init_prepare(m0=m0, chol_P0=root_P0))
        return found.mean[1:], found.chol_cov[1:], found.log_normalizing_constant[-1]

    data = jnp.asarray(Y)
    return {FULL: lambda: jax.block_until_ready(run(data))}


# (name in the table, module to import, form, dtype, builder)
PEERS = (
    ("dynamax", "dynamax.linear_gaussian_ssm", "covariance", "float32", dynamax),
    ("simdkalman (no loglik)", "simdkalman", "covariance", "float64", simdkalman),
    ("statsmodels", "statsmodels.tsa.statespace.kalman_filter", "covariance", "float64", statsmodels),
    ("cuthbert", "cuthbert.gaussian.kalman", "root", "float32", cuthbert),
)
