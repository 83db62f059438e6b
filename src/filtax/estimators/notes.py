"""What a `Segmenter`, or a fleet of them, tells of itself in a manifest, and the arrays beside it.

Each has three functions: to a note and arrays, from a note to the shapes that the arrays must have, and back. All that
a fleet knows in numbers is one vector, in which the arrays of one stream follow those of another.
"""

from typing import Any

import numpy as np

from filtax.estimators.memory import Layout
from filtax.estimators.reading import reader
from filtax.estimators.segmenter import Segmenter
from filtax.segmentation import Settings

__all__ = [
    "name_features",
    "of_segmenter",
    "of_segmenters",
    "params_of",
    "plain",
    "shapes_of_segmenter",
    "shapes_of_segmenters",
    "to_segmenter",
    "to_segmenters",
]

PLAIN = (str, int, float, bool)


def plain(value: Any) -> Any:
    """A text, number or truth value as JSON takes it.

    >>> plain(np.int64(3))
    3
    """
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, PLAIN):
        return value
    raise ValueError(f"{value!r:.40} cannot be stored: give names, classes and ids as texts, numbers or truth values.")


def params_of(model: Any) -> dict[str, Any]:
    """The parameters of an estimator.

    >>> params_of(Segmenter(keep=5))["keep"]
    5
    """
    return {name: plain(value) for name, value in model.get_params().items()}


def name_features(model: Any, note: dict) -> None:
    """Give an estimator the names of the columns that it has learned from.

    >>> model = Segmenter()
    >>> name_features(model, {"columns": 2, "names": ["a", "b"]})
    >>> model.feature_names_in_.tolist()
    ['a', 'b']
    """
    if note["columns"] is not None:
        model.n_features_in_ = note["columns"]
    if note["names"]:
        model.feature_names_in_ = np.asarray(note["names"], dtype=object)


def of_segmenter(model: Any) -> tuple[dict, dict]:
    """The note and the arrays of a `Segmenter`.

    >>> of_segmenter(Segmenter())[0]["readings"] is None
    True
    """
    return {"params": params_of(model), **_told(model)}, _arrays(model)


def _told(model: Any) -> dict[str, Any]:
    """What a segmenter knows beside its arrays, and how long they are."""
    if "_vigil" not in vars(model):
        return {"readings": None}
    vigil = model._vigil
    return {
        "readings": [plain(name) for name in model._names],
        "early": len(vigil.early),
        "watching": vigil.unit is not None,
        "changes": list(vigil.changes),
        "t": vigil.t,
        **{name: vigil.last[name] for name in ("alarm", "trust", "start", "new")},
        "doubted": len(vigil.doubted),
        "calm": plain(vigil.calm),
        "share": vigil.share,
        "columns": vars(model).get("n_features_in_"),
        "names": [str(name) for name in vars(model).get("feature_names_in_", [])],
    }


def _arrays(model: Any) -> dict:
    if "_vigil" not in vars(model):
        return {}
    vigil = model._vigil
    state = reader(vigil.settings, vigil.outputs).layout.unpack
    arrays: dict[str, Any] = {"odds": np.array(vigil.last["odds"])}
    if vigil.early:
        arrays["early"] = np.stack(vigil.early)
    if vigil.unit is not None:
        arrays |= {"state": state(vigil.state), "unit": np.stack(vigil.unit), "sums": np.stack(vigil.sums)}
    if vigil.doubted:
        before, sums = vigil.before
        arrays |= {"doubted": np.stack(vigil.doubted), "before": state(before), "sums before": np.stack(sums)}
    return arrays


def shapes_of_segmenter(note: dict) -> dict:
    """Arrays of the shapes that a `Segmenter` must have.

    >>> shapes_of_segmenter({"params": {}, "readings": ["a"], "early": 3, "watching": False})["early"].shape
    (3, 1)
    """
    return _shapes(note["params"], note)


def _shapes(params: dict, told: dict) -> dict:
    if told["readings"] is None:
        return {}
    width = len(told["readings"])
    arrays: dict[str, Any] = {"odds": np.zeros(())}
    if told["early"]:
        arrays["early"] = np.zeros((told["early"], width))
    if told["watching"]:
        kernels = reader(Settings(hazard=params["hazard"], noise=0.5, keep=params["keep"]), width)
        state = kernels.layout.unpack(kernels.fresh)
        arrays |= {"state": state, "unit": np.zeros((2, width)), "sums": np.zeros((3, width))}
        if told.get("doubted"):  # those of before doubted nothing
            doubted = np.zeros((told["doubted"], width))
            arrays |= {"doubted": doubted, "before": state, "sums before": np.zeros((3, width))}
    return arrays


def to_segmenter(note: dict, arrays: dict) -> Any:
    """A `Segmenter` as it was.

    >>> to_segmenter(*of_segmenter(Segmenter(keep=5)))
    Segmenter(keep=5)
    """
    return _revived(note["params"], note, arrays)


def _revived(params: dict, told: dict, arrays: dict) -> Any:
    model: Any = Segmenter(**params)
    if told["readings"] is None:
        return model
    model._begin(list(told["readings"]))
    vigil = model._vigil
    flat = reader(vigil.settings, vigil.outputs).layout.flat
    vigil.changes, vigil.t = list(told["changes"]), told["t"]
    trust = told.get("trust", 0.0 if told["alarm"] in ("missing", "outlier") else 1.0)  # once the alarm said it
    new = told.get("new", told["alarm"] == "change")  # and this
    vigil.last |= {"alarm": told["alarm"], "trust": trust, "start": told["start"], "new": new}
    vigil.last["odds"] = float(arrays["odds"])
    vigil.early = _rows(arrays["early"]) if told["early"] else []
    if told["watching"]:
        vigil.state, vigil.unit, vigil.sums = flat(arrays["state"]), tuple(arrays["unit"]), _rows(arrays["sums"])
    vigil.calm, vigil.share = told.get("calm", 0), told.get("share", 0.0)
    if told.get("doubted"):
        vigil.doubted = _rows(arrays["doubted"])
        vigil.before = (flat(arrays["before"]), _rows(arrays["sums before"]))
    name_features(model, told)
    return model


def _rows(array: Any) -> list[np.ndarray]:
    return [np.array(row) for row in array]


def of_segmenters(members: dict) -> tuple[dict, dict]:
    """The note and the arrays of a fleet of them, by key.

    >>> model = Segmenter()
    >>> model.learn_one({"volts": 3.0})
    >>> note, arrays = of_segmenters({"a": model, "b": model})
    >>> note["readings"], len(note["streams"]), arrays["numbers"].tolist()
    ([['volts']], 2, [3.0, -inf, 3.0, -inf])
    """
    streams = [_told(model) for model in members.values()]
    readings = {repr(told["readings"]): told["readings"] for told in streams}  # many streams call theirs the same
    place = {name: at for at, name in enumerate(readings)}
    for told in streams:
        told["readings"] = place[repr(told["readings"])]
    arrays = [_arrays(model) for model in members.values()]
    numbers = np.concatenate([np.zeros(0), *(Layout(found).flat(found) for found in arrays)])
    return {"readings": list(readings.values()), "streams": streams}, {"numbers": numbers}


def shapes_of_segmenters(note: dict) -> dict:
    """Arrays of the shapes that a fleet of them must have.

    >>> shapes_of_segmenters({"params": {}, "readings": [], "streams": []})["numbers"].shape
    (0,)
    """
    return {"numbers": np.zeros(sum(layout.width for _, layout in _laid_out(note)))}


def to_segmenters(note: dict, arrays: dict) -> list:
    """The streams of a fleet as they were.

    >>> to_segmenters({"params": {}, "readings": [], "streams": []}, {"numbers": np.zeros(0)})
    []
    """
    found, start = [], 0
    for told, layout in _laid_out(note):
        numbers = arrays["numbers"][start : start + layout.width]
        found.append(_revived(note["params"], told, layout.unpack(numbers)))
        start += layout.width
    return found


def _laid_out(note: dict) -> list[tuple[dict, Layout]]:
    """What each stream told, and how its arrays lie in the vector."""
    streams = [{**told, "readings": note["readings"][told["readings"]]} for told in note["streams"]]
    return [(told, Layout(_shapes(note["params"], told))) for told in streams]
