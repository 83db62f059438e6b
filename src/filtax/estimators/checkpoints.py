"""Estimators on disk: what they learned as one array, and names, classes and waiting data as JSON beside it.

An estimator is looked up in a table of three lines, never by an import; nothing that is read is run.
"""

from collections import OrderedDict
from typing import Any

import numpy as np

from filtax import store
from filtax.estimators.classifier import Classifier
from filtax.estimators.engine import engine
from filtax.estimators.regressor import Regressor
from filtax.estimators.stream import Learner

__all__ = ["load", "save"]

KINDS = {"Classifier": Classifier, "Regressor": Regressor}
PLAIN = (str, int, float, bool)


def save(folder: Any, model: Learner, *, source: Any = None, held: bool = False) -> int:
    """Write an estimator as the next generation of a folder of checkpoints.

    Args:
        folder: As for `filtax.store.save`.
        model: A `Regressor` or `Classifier`; names of features, classes and ids must be texts, numbers or truth values.
        source: Position in the source, as JSON.
        held: Whether the caller holds the folder's lock.

    Returns:
        The number of the generation.

    >>> import tempfile
    >>> from filtax.estimators import Regressor
    >>> model = Regressor()
    >>> model.learn_one({"a": 1.0}, 2.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = save(folder, model, source={"row": 1})
    ...     same, manifest = load(folder)
    >>> same.predict_one({"a": 1.0}) == model.predict_one({"a": 1.0}), manifest["source"]
    (True, {'row': 1})
    """
    kind = type(model).__name__
    if KINDS.get(kind) is not type(model):
        raise ValueError(f"save(model=...) must be one of {', '.join(KINDS)}, got {kind}.")
    model._begin()
    slots = [[_plain(part) for part in key] for key in model._table.slot]  # in the order of the slots
    waiting = [[_plain(id), {_plain(name): _plain(x) for name, x in row.items()}] for id, row in model._pending.items()]
    note = {
        "kind": kind,
        "params": {name: _plain(value) for name, value in model.get_params().items()},
        "slots": slots,
        "room": model._table.room,
        "size": list(model._size),
        "labels": [_plain(label) for label in vars(model).get("_labels", [])],
        "waiting": [[id, list(row.items())] for id, row in waiting],
        "late": [model._pending.given_up, model._pending.unknown],
        "columns": vars(model).get("n_features_in_"),
        "names": [str(name) for name in vars(model).get("feature_names_in_", [])],
    }
    memory = vars(model).get("_vector", np.zeros(0))
    return store.save(folder, {"memory": np.asarray(memory)}, note=note, source=source, held=held)


def load(folder: Any) -> tuple[Any, dict]:
    """Read the newest sound generation that `save` wrote.

    Returns:
        The estimator, which goes on bit for bit as the one that was saved, and the manifest with `source`.

    >>> load("no/such/folder")
    Traceback (most recent call last):
    filtax.store.errors.Missing: no/such/folder holds no checkpoint; ...
    """
    state, manifest = store.load(folder, _like)
    note = manifest["note"]
    model: Any = KINDS[note["kind"]](**note["params"])
    model._begin()
    model._table.slot = {tuple(key): at for at, key in enumerate(note["slots"])}
    model._table.room = note["room"]
    model._size = tuple(note["size"])
    model._pending.given_up, model._pending.unknown = note["late"]
    model._pending._waiting = OrderedDict((id, dict(map(tuple, row))) for id, row in note["waiting"])
    if note["kind"] == "Classifier":
        model._labels = list(note["labels"])
    if note["columns"] is not None:
        model.n_features_in_ = note["columns"]
    if note["names"]:
        model.feature_names_in_ = np.asarray(note["names"], dtype=object)
    if state["memory"].size:
        model._vector = state["memory"]
    return model, manifest


def _like(manifest: dict) -> dict:
    """The shape that the memory must have, by what the note says it is for."""
    note = manifest["note"]
    if not isinstance(note, dict) or note.get("kind") not in KINDS:
        raise store.Foreign("it holds no estimator")
    size = tuple(note["size"])
    if size == (0, 0):
        return {"memory": np.zeros(0)}
    params = note["params"]
    return {"memory": engine(params["method"], float(params["prior"]), *size).fresh}


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, PLAIN):
        return value
    raise ValueError(f"{value!r:.40} cannot be stored: give names, classes and ids as texts, numbers or truth values.")
