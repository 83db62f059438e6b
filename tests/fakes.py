"""Stand-ins for parts of filtax that this branch does not have yet: the last value with an interval, frequencies."""

import sys
import types

import numpy as np

import filtax.forecasting as forecasting


class Out:
    def __init__(self, **parts):
        vars(self).update(parts)


class Series:
    """The last value, with an interval of three running mean absolute changes."""

    names = ("last", "other")

    def __init__(self, steps=1, *, known=0, season=None, stride=1, experts=None, miss=0.1, method=None):
        if method is not None:
            import filtax as fx

            fx.method(method, model=fx.models.linear(noise=1.0))
        self.steps = tuple(range(1, steps + 1)) if isinstance(steps, int) else tuple(steps)
        self.issued = np.full((max(self.steps), len(self.steps), 3), np.nan)
        self.known, self.last, self.error, self.count, self.x = known, np.nan, np.nan, 0, 0.0

    def _out(self, T):
        H = len(self.steps)
        return Out(forecast=np.full((T, H), np.nan), lower=np.full((T, H), np.nan), upper=np.full((T, H), np.nan),
                   weights=np.tile([0.75, 0.25], (T, 1)))  # fmt: skip

    def learn(self, y, times=None, known=None, issue=None):
        y = np.asarray(y, float)
        assert times is None or np.all(np.diff(times) > np.timedelta64(0))
        if self.known:
            assert known.shape[1] == self.known and len(known) >= len(y)
        out = self._out(len(y))
        far = max(self.steps) - 1
        for t, value in enumerate(y):
            x = 0.0 if not self.known else float(np.nan_to_num(known[min(t + far, len(known) - 1), 0]))
            out.forecast[t] = self.last + 1e-3 * x
            out.lower[t], out.upper[t] = out.forecast[t] - 3 * self.error, out.forecast[t] + 3 * self.error
            if value == value:
                change = abs(value - self.last)
                if change == change:
                    self.error = change if self.error != self.error else 0.95 * self.error + 0.05 * change
                self.last = value
            self.count += 1
        every = np.concatenate([self.issued, np.stack([out.forecast, out.lower, out.upper], axis=-1)])
        back, N = np.asarray(self.steps) - 1, len(self.issued)
        out.due = every[N + np.arange(len(y))[:, None] - back, np.arange(len(back))]
        self.issued = every[len(every) - N :]
        return out

    def predict(self, known, times=None):
        out = self._out(len(known))
        out.forecast[:] = self.last
        out.lower[:], out.upper[:] = self.last - 3 * self.error, self.last + 3 * self.error
        return out

    def settings(self):
        return {"steps": list(self.steps), "known": self.known, "count": self.count}

    def arrays(self):
        return {"state": np.array([self.last, self.error]), "issued": self.issued}

    @classmethod
    def restore(cls, settings, arrays):
        series = cls(settings["steps"], known=settings["known"])
        series.count, (series.last, series.error) = settings["count"], arrays["state"].tolist()
        series.issued = arrays["issued"]
        return series


class Labels:
    names = ("frequency",)

    def __init__(self, known=0, *, method=None, delay=0):
        self.known, self.delay, self.counts, self.waits = known, delay, [], [-1] * delay

    def learn(self, y, known=None):
        rows = []
        for code in np.asarray(y).tolist():
            rows.append(self._chances())
            self.waits.append(code)
            came = self.waits.pop(0)
            if came >= 0:
                self.counts += [0] * (came + 1 - len(self.counts))
                self.counts[came] += 1
        C = max([len(self.counts), *(code + 1 for code in y)], default=0)
        wide = np.zeros((len(rows), C))
        for t, row in enumerate(rows):
            wide[t, : len(row)] = row
        return Out(probability=wide, weights=np.ones((len(rows), 1)))

    def _chances(self):
        return np.array(self.counts) / (sum(self.counts) + 1.0) if self.counts else np.zeros(0)

    def predict(self, known):
        return np.tile(self._chances(), (len(known), 1))

    def settings(self):
        return {"known": self.known, "delay": self.delay}

    def arrays(self):
        return {"counts": np.array(self.counts, np.int64), "waits": np.array(self.waits, np.int64)}

    @classmethod
    def restore(cls, settings, arrays):
        labels = cls(settings["known"], delay=settings["delay"])
        labels.counts, labels.waits = arrays["counts"].tolist(), arrays["waits"].tolist()
        return labels


class Monitor:
    """An outlier lies ten widths off; a change is the fifth outlier in a row."""

    def __init__(self, level=0.9, false_alarms=0.001):
        self.level, self.row = level, 0

    def learn(self, y, forecast, lower, upper):
        width = np.maximum(upper - lower, 1e-9)
        with np.errstate(invalid="ignore"):
            tail = np.exp(-np.abs(y - forecast) / width)
            return self._seen(tail)

    def learn_labels(self, y, probability):
        return self._seen(np.where(y >= 0, 1.0, np.nan))

    def _seen(self, tail):
        out = np.nan_to_num(tail, nan=1.0) < 1e-4
        change, T = np.zeros(len(tail), bool), len(tail)
        for t in range(T):
            self.row = self.row + 1 if out[t] else 0
            change[t] = self.row == 2
        return Out(tail=tail, outlier=out, change_probability=change.astype(float), runlength=np.ones(T),
                   change=change, start=np.ones(T, int))  # fmt: skip

    def settings(self):
        return {"level": self.level, "row": self.row}

    def arrays(self):
        return {}

    @classmethod
    def restore(cls, settings, arrays):
        monitor = cls(settings["level"])
        monitor.row = settings["row"]
        return monitor


def blanks(clock, latest, times):
    """Steps that are missing before each time."""
    steps = np.diff(np.concatenate([latest, times])) / np.timedelta64(round(clock.step * 1e6), "us")
    return np.maximum(np.rint(steps).astype(int) - 1, 0)


def install():
    """Put them where they are missing, or are not yet as agreed."""
    if not hasattr(forecasting._clock, "blanks"):
        forecasting._clock.blanks = blanks
    if not hasattr(forecasting, "Labels"):
        forecasting.Labels, forecasting.Series = Labels, Series
    try:
        import filtax.monitoring  # noqa: F401
    except ImportError:
        room = types.ModuleType("filtax.monitoring")
        room.Monitor = Monitor
        sys.modules["filtax.monitoring"] = room


install()
