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
    np.testing.assert_allclose(chances[:, 10:].sum(axis=0), 1.0)
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
