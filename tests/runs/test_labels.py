"""A run whose target is a label: chances that sum to one, resumed bit for bit, and a label that nobody expected."""

import json

import numpy as np
import pytest

from filtax.runs import Config, carry_on, open_run, scores
from filtax.runs.outputs import write_outputs
from filtax.runs.predictions import columns_of

pytestmark = pytest.mark.x64


@pytest.mark.parametrize("classes", [2, 3])
def test_labels(classes, tmp_path):
    rng = np.random.default_rng(6)
    x = rng.normal(size=(400, 2))
    corners = np.array([[0.0, 1.0], [0.9, -0.5], [-0.9, -0.5]])[:classes]
    code = np.argmax(x @ corners.T, axis=1)
    names = np.array(["ham", "spam", "eggs"])[code]
    rows = [f"{a!r},{b!r},{name}\n" for (a, b), name in zip(x.tolist(), names, strict=True)]
    (tmp_path / "t.csv").write_text("a,b,what\n" + "".join(rows))
    carry_on(Config(str(tmp_path / "t.csv"), "what", method="LG+C-Static", block=128, every=128), tmp_path / "run")
    run = open_run(tmp_path / "run")
    [records] = run.records()
    assert run.config.task == "classify"
    columns = columns_of(run, records)
    assert columns["what"].tolist() == names.tolist()
    assert np.mean(columns["forecast"][100:] == names[100:]) > 0.9
    chances = np.stack([columns[f"p({label})"] for label in run.note["labels"]])
    n, k = np.arange(10, 400), float(classes)
    np.testing.assert_allclose(chances[:, 10:].sum(axis=0), 1.0 - k * (k + 1.0) / (n * n + n + 2.0 * k))  # Ristad's law
    assert scores(run)["table"]["last-class"]["accuracy"] == np.mean(names[1:] == names[:-1])
    assert (write_outputs(tmp_path / "run").report).read_text().count("<svg") >= 2
    stopped = iter([True])
    carry_on(Config.read(tmp_path / "run"), tmp_path / "other", stop=lambda: next(stopped))
    carry_on(Config.read(tmp_path / "other"), tmp_path / "other")
    [again] = open_run(tmp_path / "other").records()
    assert again.tobytes() == records.tobytes()


def test_a_label_too_many_is_told_of(tmp_path):
    words = ["yes", "no"] * 80 + ["maybe"] + ["yes"] * 10
    (tmp_path / "t.csv").write_text("a,what\n" + "".join(f"{i % 2},{word}\n" for i, word in enumerate(words)))
    carry_on(Config(str(tmp_path / "t.csv"), "what", method="LG+C-Static", block=128), tmp_path / "run")
    events = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    assert [(e["line"], e["label"]) for e in events if e["event"] == "unexpected label"] == [(162, "maybe")]


def learned(folder, X, words):
    folder.mkdir()
    rows = [f"{a!r},{b!r},{word}\n" for (a, b), word in zip(X.tolist(), words, strict=True)]
    (folder / "t.csv").write_text("a,b,what\n" + "".join(rows))
    carry_on(Config(str(folder / "t.csv"), "what", block=128), folder / "run")
    run = open_run(folder / "run")
    [records] = run.records()
    return run, records


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    """A table of four labels, of which the third and the fourth come late; and what a run made of it."""
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(400, 2)), rng.normal(size=(2, 4))
    words = np.array(["a", "b", "c", "d"])[np.argmax(X @ W + rng.gumbel(size=(400, 4)), axis=1)]
    words[:30] = np.where(np.arange(30) % 3, "a", "b")
    words[30:60] = np.where(X[30:60, 0] > 0, "c", "a")
    return X, words, *learned(tmp_path_factory.mktemp("four") / "whole", X, words)


def test_no_forecast_of_labels_is_certain(four):
    """The second one was: p = 1 for the one label that was known, and 0 for each when it came first."""
    _, words, run, records = four
    assert np.isnan(records["p_true"][0])
    told = np.concatenate([records[name][1:] for name in ("p_true", "probability", "p0")])
    assert 0.0 < told.min() < told.max() < 1.0
    firsts = [int(np.flatnonzero(words == label)[0]) for label in run.note["labels"][1:]]
    for known, row in enumerate(firsts, 1):  # a label that nobody knew has the chance of any such
        law = known * (known + 1.0) / (row * row + row + 2.0 * known)
        np.testing.assert_allclose(records["p_true"][row], law)
        assert np.isnan(records[f"p{known}"][: row + 1]).all()
        assert np.isfinite(records[f"p{known}"][row + 1 :]).all()
    assert scores(run)["log_score"] > -1.6


@pytest.mark.parametrize("cut", [5, 29, 45, 75])
def test_a_forecast_looks_at_no_later_label(cut, four, tmp_path):
    """Of three and more labels another method was the default, and one label that was known had another chance.

    One filter, and the same as one of four, are two programs: they may round the last bit differently.
    """
    X, words, _, whole = four
    _, part = learned(tmp_path / "part", X, np.where(np.arange(400) < cut, words, ""))
    for name in ("forecast", "probability", "p_true", "p0", "p1", "trust", "change_probability"):
        np.testing.assert_allclose(part[name][:cut], whole[name][:cut], rtol=1e-12, err_msg=name)
