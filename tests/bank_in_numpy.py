"""The bank in plain numpy: one series, row by row, nothing shared with the package. Slow and easy to follow."""

import numpy as np


def kalman(mean, cov, x, error, drift):
    """Condition on one error with unit noise, then add a drift to the diagonal."""
    gain = cov @ x / (1.0 + x @ cov @ x)
    return mean + gain * error, cov - np.outer(gain, x @ cov) + drift * np.eye(len(x))


def bounded(error, usual, key):
    """Clip an error at three times its usual size, and learn that size."""
    size = usual.get(key, 0.0)
    out = np.sign(error) * min(abs(error), 3.0 * size) if size > 0 else error
    usual[key] = abs(error) if size == 0 else size + 0.02 * (min(abs(error), 6.0 * size) - size)
    return out


class Running:
    """A mean that forgets over so many rows, without bias at the start."""

    def __init__(self, rows):
        self.rate, self.sum, self.weight = -np.expm1(-1.0 / rows), 0.0, 0.0

    def add(self, value):
        self.sum = (1 - self.rate) * self.sum + self.rate * value
        self.weight = (1 - self.rate) * self.weight + self.rate

    @property
    def value(self):
        return self.sum / self.weight if self.weight > 0 else 0.0


class Poly:
    """ML-Poly over K experts for each of H heads."""

    def __init__(self, H, K, keep):
        self.R, self.S, self.keep = np.zeros((H, K)), np.zeros((H, K)), keep

    def weights(self, h, awake):
        w = np.where(awake & (self.S[h] > 0), np.maximum(self.R[h], 0) / np.where(self.S[h] > 0, self.S[h], 1), 0.0)
        return w / w.sum() if w.sum() > 0 else awake / max(awake.sum(), 1)

    def learn(self, regret, arrived):
        self.R[arrived] = self.keep * self.R[arrived] + regret[arrived]
        self.S[arrived] = self.keep * self.S[arrived] + regret[arrived] ** 2


class Slots:
    """A filter for each slot and group of targets on regressors x, and one on the size of their effects."""

    def __init__(self, slow, fast, groups, share):
        self.slow, self.fast, self.groups, self.share = slow * share, fast, np.asarray(groups), share
        self.d = self.groups.max() + 2
        self.W, self.A, self.visits, self.usual = {}, {}, {}, {}

    def at(self, key):
        D, d = len(self.groups), self.d
        w = self.W.get(key, (np.zeros(D), np.eye(D)))
        return w, self.A.get(key, (np.r_[0.0, np.ones(d - 1)], 0.1 * np.eye(d)))

    def says(self, key, x):
        (w, _), (a, _) = self.at(key)
        effects = np.r_[1.0, [np.sum((w * x)[self.groups == j]) for j in range(self.d - 1)]]
        return np.array([w @ x, a @ effects] if self.fast else [w @ x]), effects

    def learn(self, slot, X, z):
        """Errors of group 0; NaN where z is missing."""
        if np.isnan(z):
            return np.full(2 if self.fast else 1, np.nan)
        self.visits[slot] = self.visits.get(slot, 0) + 1
        first, sizes = None, dict(self.usual)
        for group, x in enumerate(X):
            key = (group, slot)
            said, effects = self.says(key, x)
            errors = z - said
            usual = dict(sizes)  # all groups are clipped by the size before the row, which the first one moves
            clipped = [bounded(error, usual, k) for k, error in enumerate(errors)]
            if group == 0:
                first, self.usual = errors, usual
            w, a = self.at(key)
            self.W[key] = kalman(*w, x, clipped[0], self.slow)
            if self.fast and self.visits[slot] > 14 / self.share:
                self.A[key] = kalman(*a, effects, clipped[1], self.fast * self.share)
        return first


class Heads:
    """Weights of each horizon on the latest errors, with one gain for all."""

    def __init__(self, H, D):
        self.W, self.P, self.m2, self.issued, self.usual = np.zeros((H, D)), np.eye(D), np.zeros(D), {}, {}

    def issue(self, origin, base, x):
        gain = self.P @ x / (1.0 + x @ self.P @ x)
        said = base + self.W @ x
        self.P = self.P - np.outer(gain, x @ self.P)
        self.m2 = self.m2 + max(1e-3, 1.0 / (origin + 2)) * (x * x - self.m2)
        self.P += np.diag(np.minimum(1e-6 / (self.m2 + 1e-9), 1e-2))
        self.issued[origin] = (base, x, gain)
        return said

    def learn(self, row, steps, z):
        for h, step in enumerate(steps):
            if row - step in self.issued and not np.isnan(z):
                base, x, gain = self.issued[row - step]
                if not np.isnan(base[h]):
                    self.W[h] = self.W[h] + gain * bounded(z - base[h] - self.W[h] @ x, self.usual, h)


def run(y, slot, week, calendar, groups, *, steps, season, weeks, center, spread, wakes):
    """Forecasts (T, H) and weights (T, K) of the default bank without known columns; origin of row t is t - 1.

    `slot`, `week`, `calendar` reach beyond the last row as far as the targets do. Regular clocks only: the last known
    value in the slot of a target h rows ahead lies ceil(h / season) seasons before it.
    """
    T, H, K = len(y), len(steps), 10
    G = (max(steps) - 1) // season + 1
    lags, by_week, recent, low, high = {}, {}, [0.0] * 25, 0.0, 0.0
    means = [Running(4.0), Running(max(season, 12)), Running(1e9)]
    filters = [Slots(0.03, None, [0], 1.0), Slots(1e-4, 0.01, groups, 1.0)]
    errors, previous = np.zeros(3), np.zeros(3)
    error_means = [[Running(4.0), Running(max(season, 12))] for _ in range(3)]
    heads, walk = [Heads(H, 4) for _ in range(3)], Heads(H, 27)
    polys, top = [Poly(H, K, 1 - 1 / 300), Poly(H, K, 1.0)], Poly(H, 2, 1.0)
    forecasts, weights, kept = np.full((T, H), np.nan), np.zeros((T, K)), {}
    seen, deviation, judged, size = 0, 0.0, 0, 0.0
    regret, second, arrived = np.zeros((2, H, K)), np.zeros((H, 2)), np.zeros(H, bool)
    for t in range(T):
        origin = t - 1
        for poly, r in zip(polys, regret, strict=True):
            poly.learn(r, arrived)
        top.learn(second, arrived)
        regret, second, arrived = np.zeros((2, H, K)), np.zeros((H, 2)), np.zeros(H, bool)
        said = np.full((K, H), np.nan)
        base = np.full((3, H), np.nan)
        for h, step in enumerate(steps):
            target = origin + step
            s, w = slot[target], week[target]
            lag = lags.get(s, [np.nan])[0]
            said[:6, h] = recent[0], means[2].value, np.median(recent), lag, by_week.get(w, np.nan), lag + deviation
            group = (step - 1) // season
            x = np.r_[1.0, np.nan_to_num([lag, by_week.get(w, np.nan)]), calendar[target]]
            base[:, h] = np.r_[filters[0].says((0, s), x[:1])[0], filters[1].says((group, s), x)[0]]
        for k in range(3):
            x = np.array([errors[k], error_means[k][0].value, error_means[k][1].value, previous[k]])
            said[6 + k] = heads[k].issue(origin, base[k], x)
        x = np.r_[-np.diff(recent), recent[0] - np.array([m.value for m in means])]
        said[9] = walk.issue(origin, np.full(H, recent[0]), x)
        said = np.clip(said, low - 0.5 * (high - low), high + 0.5 * (high - low))
        listened = np.array([wakes[0]] * 6 + [wakes[1]] * 4)
        said[(t < listened) | (seen == 0)] = np.nan
        mixed = np.full((2, H), np.nan)
        for h in range(H):
            awake = ~np.isnan(said[:, h])
            if awake.any():
                both = [poly.weights(h, awake) for poly in polys]
                mixed[:, h] = [np.nansum(w * np.nan_to_num(said[:, h])) for w in both]
                upper = top.weights(h, np.ones(2, bool))
                forecasts[t, h] = upper @ mixed[:, h]
                if h == 0:
                    weights[t] = upper @ np.array(both)
        kept[origin] = (said, mixed, forecasts[t].copy())

        z = (y[t] - center) / spread
        for h, step in enumerate(steps):
            if t - step in kept and not np.isnan(z) and not np.isnan(kept[t - step][2][h]):
                said, mixed, issued = (part[..., h] for part in kept[t - step])
                arrived[h] = True
                for m in range(2):
                    sign = 1.0 if mixed[m] > z else -1.0
                    regret[m, h] = np.where(np.isnan(said), 0.0, sign * (mixed[m] - said))
                second[h] = (1.0 if issued > z else -1.0) * (issued - mixed)
        due = kept[t - steps[0]][2][0] if t - steps[0] in kept else np.nan
        reach = 20.0 * (1.0 if judged < 10 else size)
        error, expected = abs(z - due), recent[0] if np.isnan(due) else due
        z = min(max(z, expected - reach), expected + reach)  # only the mixture and the intervals see gross errors
        if not np.isnan(error):
            judged += 1
            size = error if judged == 1 else size + max(0.05, 1.0 / judged) * (min(error, 10.0 * size) - size)
        for k in range(3):
            heads[k].learn(t, steps, z)
        walk.learn(t, steps, z)
        s, w = slot[t], week[t]
        past = [*lags.get(s, []), *[np.nan] * G]
        lag_week = by_week.get(w, np.nan)
        X = [np.r_[1.0, np.nan_to_num([past[g], lag_week]), calendar[t]] for g in range(G)]
        fresh = np.r_[filters[0].learn(s, [X[0][:1]], z), filters[1].learn(s, X, z)]
        previous, errors = errors, np.where(np.isnan(fresh), errors, fresh)
        for k in range(3):
            for mean in error_means[k]:
                mean.add(errors[k])
        value = recent[0] if np.isnan(z) else z
        recent = [value] * 25 if t == 0 else [value, *recent[:-1]]
        low, high = (value, value) if t == 0 else (min(low, value), max(high, value))
        for mean in means:
            mean.add(value)
        deviation = 0.0 if np.isnan(past[0]) else value - past[0]
        lags[s] = [past[0] if np.isnan(z) else z, *past[:G]]
        by_week[w] = lag_week if np.isnan(z) else z
        seen += not np.isnan(z)
    return center + spread * forecasts, weights


def intervals(z, forecasts, slot, steps, miss=0.1):
    """Bounds (T, H) of forecasts (T, H) of z (T,), all in units; the origin of row t is t - 1."""
    T, H = forecasts.shape
    bounds = np.full((2, T, H), np.nan)
    for h, step in enumerate(steps):
        log, errors, count, ratio, visits = np.full(2, np.log(2.0)), [0.0, 0.0], 0, {}, {}
        for t in range(T):
            if count:
                width = np.sqrt(errors[0] * errors[1]) * max(ratio.get(slot[t - 1 + step], 1.0), 0.1)
                bounds[:, t, h] = forecasts[t, h] + np.exp(log) * width * [-1, 1]
            origin, s = t + 1 - step, slot[t]
            error = abs(z[t] - forecasts[origin, h]) if origin >= 0 else np.nan
            if np.isnan(error):
                continue
            low, high = bounds[:, origin, h]
            if not np.isnan(low):
                log = log + 0.25 / np.sqrt(step) * (np.array([z[t] < low, z[t] > high]) - miss / 2)
            running = errors[0] if count else error
            if running > 0:
                visits[s] = visits.get(s, 0) + 1
                rate = max(0.01, 1 / (visits[s] + 15))
                ratio[s] = ratio.get(s, 1.0) + rate * (min(error / running, 10) - ratio.get(s, 1.0))
            count += 1
            for k, (slowest, bound) in enumerate([(0.05, 10), (0.005, 1000)]):
                before = errors[k] if count > 1 else error
                bounded = min(error, bound * before) if before > 0 else error
                errors[k] = before + max(slowest, 1 / count) * (bounded - before)
    return bounds
