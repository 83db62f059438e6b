"""Parameters, copies and locks of an estimator, and what river and scikit-learn ask of each other's objects.

Neither library is imported by filtax. Where one has been imported, its own code calls these methods.
"""

import copy
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, wraps
from threading import RLock
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from filtax import _validation as checks
from filtax.estimators import _frames as frames

Verb = TypeVar("Verb", bound=Callable[..., Any])


def one_at_a_time(verb: Verb) -> Verb:
    """Let threads that share an estimator wait for each other."""

    @wraps(verb)
    def run(self: Any, *arguments: Any, **settings: Any) -> Any:
        with self._lock:
            return verb(self, *arguments, **settings)

    return cast(Verb, run)


class Estimator:
    """Parameters are what the constructor takes; everything else is learned, in attributes that begin with `_`."""

    __slots__ = ("__dict__", "__weakref__", "_lock")  # the lock is no attribute that is copied or stored

    n_features_in_: int
    kind = ""  # the class of river that this is one of

    def __new__(cls, *arguments: Any, **settings: Any):
        """Register the class with river where river is imported, as its pipelines and checks ask by type."""
        river = sys.modules.get("river.base")
        for name in ("MiniBatch" + cls.kind, cls.kind) if cls.kind else ():
            if name in vars(river or object):
                vars(river)[name].register(cls)
                break
        made = super().__new__(cls)
        made._lock = RLock()
        return made

    def __getstate__(self) -> dict[str, Any]:
        return vars(self)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._signature()}

    def set_params(self, **params: Any):
        """Change parameters by name; they hold from the next `fit` or the first datum on."""
        for name, value in params.items():
            if name not in self._signature():
                known = checks.nearest(name, self._signature())
                raise ValueError(f"Invalid parameter {name!r} for estimator {type(self).__name__}. {known}")
            setattr(self, name, value)
        return self

    def clone(self, new_params: dict | None = None, include_attributes: bool = False):
        """An estimator with the same parameters that has learned nothing, unless `include_attributes`.

        Args:
            new_params: Parameters that are to differ.
            include_attributes: Copy what was learned, too.
        """
        params = copy.deepcopy({**self.get_params(), **(new_params or {})})
        twin = copy.deepcopy(self) if include_attributes else type(self)(**params)
        vars(twin).update(params)
        return twin

    def __repr__(self) -> str:
        defaults = {name: parameter.default for name, parameter in self._signature().items()}
        given = [
            f"{name}={getattr(self, name)!r}" for name in defaults if _differs(getattr(self, name), defaults[name])
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    @classmethod
    @cache
    def _signature(cls) -> dict[str, inspect.Parameter]:
        return dict(list(inspect.signature(cls.__init__).parameters.items())[1:])

    # What river asks of an estimator. It looks for these names, and they are no part of our own.

    _tags: ClassVar[set[str]] = set()
    _mutable_attributes: ClassVar[set[str]] = set()
    _is_stochastic = False

    def mutate(self, new_attrs: dict[str, Any]) -> None:
        """Change parameters of a running estimator, as river does: none of ours may."""
        for name in new_attrs:
            raise ValueError(
                f"{name!r} is not a mutable attribute of {type(self).__name__}; use clone(new_params=...)."
            )

    def _get_params(self) -> dict[str, Any]:
        return self.get_params()

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}

    def _unit_test_skips(self) -> set[str]:
        return set()

    @property
    def _supervised(self) -> bool:
        return bool(self.kind)

    # What was learned.

    def _forget(self, *names: str) -> None:
        """Forget the columns that were fitted, and these attributes."""
        for name in (*names, "n_features_in_", "feature_names_in_"):
            vars(self).pop(name, None)

    def _columns(self) -> dict[str, Any]:
        """What scikit-learn knows of the columns that were fitted, as JSON can hold it."""
        return {
            "n_features_in": vars(self).get("n_features_in_"),
            "feature_names_in": list(vars(self).get("feature_names_in_", [])),
        }

    def _resume(self, note: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Go on with what `_state` gave."""
        if note["n_features_in"] is not None:
            self.n_features_in_ = note["n_features_in"]
        if note["feature_names_in"]:
            self.feature_names_in_ = np.array(note["feature_names_in"], dtype=object)

    # What scikit-learn asks.

    def _fitted(self, X: Any) -> frames.Frame:
        """A table with the columns that were fitted; where scikit-learn is imported, it checks its own containers."""
        frame, first = frames.frame_of(X), "n_features_in_" not in vars(self)
        plain: Any = X if frame.index is not None or (not frame.named and not frames.are_dicts(X)) else None
        if plain is not None and "sklearn" in sys.modules:
            from sklearn.utils.validation import validate_data

            validate_data(self, plain, reset=first, skip_check_array=True)
        texts = frame.named and all(isinstance(name, str) for name in frame.names)
        if first:
            self.n_features_in_ = len(frame.names)
            if texts:
                self.feature_names_in_ = np.array(frame.names, dtype=object)
        known = list(vars(self).get("feature_names_in_", frame.names))
        if len(frame.names) != self.n_features_in_ or (texts and frame.names != known):
            raise ValueError(f"X has the columns {frame.names}; give those that were fitted, {known}.")
        return frame

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn wants to know; only its own code calls this."""
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        regressor, classifier = self.kind == "Regressor", self.kind == "Classifier"
        return Tags(
            estimator_type=self.kind.lower() or None,
            target_tags=TargetTags(required=bool(self.kind)),
            transformer_tags=None,
            classifier_tags=ClassifierTags() if classifier else None,
            regressor_tags=RegressorTags() if regressor else None,
            input_tags=InputTags(allow_nan=True),
        )


def _differs(value: Any, default: Any) -> bool:
    if isinstance(value, np.ndarray) or type(value) is not type(default):
        return True
    return bool(value != default)
