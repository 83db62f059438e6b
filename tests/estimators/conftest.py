"""Stand-ins for what `filtax.forecasting` and `filtax.monitoring` do not hold yet."""

import importlib.util
import sys
import types
from types import SimpleNamespace

import numpy as np

import filtax.forecasting as forecasting


class Fake:
    def __init__(self, known=0, season=None, miss=0.1, method=None, delay=0, **_):
        self.F, self.miss, self.count = known, miss, 0
        self.P, self.w = np.eye(known + 1) * 100.0, np.zeros((known + 1, 0 if type(self) is Labels else 1))
        self.last, self.error = np.zeros(known), np.array(np.nan)

    def _x(self, row):
        self_row = np.where(np.isnan(row), self.last, row)
        return np.concatenate([[1.0], self_row])

    def _learn(self, x, target):
        Px = self.P @ x
        gain = Px / (1.0 + x @ Px)
        self.w = self.w + np.outer(gain, target - x @ self.w)
        self.P = self.P - np.outer(gain, Px)

    def settings(self):
        return {"F": self.F, "miss": self.miss}

    def arrays(self):
        return {k: np.asarray(getattr(self, k)) for k in ("P", "w", "last", "error", "count")}

    @classmethod
    def restore(cls, settings, arrays):
        s = cls(known=settings["F"], miss=settings["miss"])
        vars(s).update({k: np.asarray(v) for k, v in arrays.items()})
        s.count = int(arrays["count"])
        return s


class Series(Fake):
    names = ("ridge",)

    def learn(self, y, times=None, known=None, issue=None):
        outs = []
        for row, target in zip(known, y, strict=True):
            x = self._x(row)
            f = (x @ self.w)[0] if self.count else np.nan
            outs.append((f, f - 3 * self.error, f + 3 * self.error))
            self.last = x[1:]
            self.count += 1
            if np.isfinite(target):
                self._learn(x, np.array([target]))
                if np.isfinite(f):
                    e = min(abs(target - f), 1e3)
                    self.error = np.asarray(e if np.isnan(self.error) else 0.95 * self.error + 0.05 * e)
        o = np.array(outs).reshape(-1, 3)
        return SimpleNamespace(forecast=o[:, :1], lower=o[:, 1:2], upper=o[:, 2:], weights=np.ones((len(o), 1)))

    def predict(self, known, times=None):
        f = np.array([[(self._x(row) @ self.w)[0] if self.count else np.nan] for row in known]).reshape(-1, 1)
        return SimpleNamespace(forecast=f, lower=f - 3 * self.error, upper=f + 3 * self.error)


class Labels(Fake):
    names = ("ridge",)

    def learn(self, y, known=None):
        outs = []
        for row, code in zip(known, y, strict=True):
            x = self._x(row)
            outs.append(self._p(x))
            self.last = x[1:]
            self.count += 1
            if code >= 0:
                if code == self.w.shape[1]:
                    self.w = np.pad(self.w, ((0, 0), (0, 1)))
                self._learn(x, np.eye(self.w.shape[1])[code])
        C = self.w.shape[1]
        p = np.array([np.pad(o, (0, C - len(o))) for o in outs]).reshape(len(outs), C)
        return SimpleNamespace(probability=p, weights=np.ones((len(outs), 1)))

    def _p(self, x):
        p = np.exp(4.0 * np.clip(x @ self.w, -3, 3))
        return 0.98 * p / max(p.sum(), 1e-300)

    def predict(self, known):
        return np.array([self._p(self._x(row)) for row in known]).reshape(len(known), -1)


class Monitor:
    def __init__(self, level=0.9, false_alarms=0.001):
        self.level, self.false_alarms, self.run = level, false_alarms, 0

    def learn(self, y, forecast, lower, upper):
        width = (upper - lower) / 6.0
        tail = np.where(np.isfinite(width), np.exp(-0.5 * ((y - forecast) / np.maximum(width, 1e-12)) ** 2), 1.0)
        return self._seen(np.where(np.isnan(y), 1.0, tail))

    def learn_labels(self, y, probability):
        rows = np.arange(len(y))
        p = probability[rows, np.maximum(y, 0)] if probability.shape[1] else np.ones(len(y))
        return self._seen(np.where(y < 0, 1.0, p))

    def _seen(self, tail):
        T = len(tail)
        run, self.run = self.run + 1.0 + np.arange(T), self.run + T
        no = np.zeros(T)
        return SimpleNamespace(
            tail=tail, outlier=tail < self.false_alarms, change=no > 1, change_probability=no, runlength=run, start=no
        )

    def settings(self):
        return {"level": self.level, "false_alarms": self.false_alarms}

    def arrays(self):
        return {"run": np.array(self.run)}

    @classmethod
    def restore(cls, settings, arrays):
        m = cls(**settings)
        m.run = int(arrays["run"])
        return m


if "predict" not in vars(forecasting.Series):
    forecasting.Series = Series
if "Labels" not in vars(forecasting):
    forecasting.Labels = Labels
if importlib.util.find_spec("filtax.monitoring") is None:
    module = types.ModuleType("filtax.monitoring")
    vars(module)["Monitor"] = Monitor
    sys.modules["filtax.monitoring"] = module
