"""What else learns from single events: other packages, numpy by hand, and the least that JAX asks for any call."""

import numpy as np


def numpy_kalman(setting, ys):
    F, Q, H, R, m0, P0 = setting
    held = [m0, P0]

    def event(i):
        m, P = F @ held[0], F @ held[1] @ F.T + Q
        U = H @ P
        K = np.linalg.solve(U @ H.T + R, U).T
        held[0], held[1] = m + K @ (ys[i % len(ys)] - H @ m), P - K @ U
        return held[0]

    return event


def filterpy(package, setting, ys):
    kf = package.KalmanFilter(dim_x=4, dim_z=2)
    kf.F, kf.Q, kf.H, kf.R, kf.x, kf.P = (a.astype(np.float64) for a in setting)

    def event(i):
        kf.predict()
        kf.update(ys[i % len(ys)])
        return kf.x

    return event


def floor(ys):
    """The least that JAX asks for any event: one jitted call on one array, read back."""
    import jax

    held, bump = [jax.numpy.zeros(2)], jax.jit(lambda x, y: x + y)

    def event(i):
        held[0] = bump(held[0], ys[i % len(ys)])
        return np.asarray(held[0])

    return event


def numpy_regression(xs, ys):
    held = [np.zeros(10, np.float32), np.eye(10, dtype=np.float32)]

    def event(i):
        m, P = held
        x, y = xs[i % 512], ys[i % 512]
        forecast, u = x @ m, P @ x
        gain = u / (x @ u + 0.25)
        held[0], held[1] = m + gain * (y - forecast), P - np.outer(gain, u)
        return forecast

    return event


def river(package, xs, ys):
    model = package.BayesianLinearRegression()
    rows, targets = [dict(enumerate(map(float, x))) for x in xs], [float(y) for y in ys]

    def event(i):
        forecast = model.predict_one(rows[i % 512])
        model.learn_one(rows[i % 512], targets[i % 512])
        return forecast

    return event
