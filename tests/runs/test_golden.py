"""Run folders that were written once, in the middle of a run, by format 1: today's code reads, reports, finishes them.

`python tests/runs/test_golden.py NAME` wrote them; a golden folder is never written again, a new format gets a new one.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from command import filtax, sentence
from filtax.runs import Config, carry_on, open_run
from filtax.runs.outputs import write_outputs

pytestmark = pytest.mark.x64
GOLDEN = Path(__file__).parent / "golden"
METHOD = "WoLF-Huber(c=2.5)+NIG(form=covariance)+RL[1]-OUPR(hazard=0.001)"
RUNS = {
    "timed": Config("timed.csv", "load", time="when", key="site", method=METHOD, block=32, every=32),
    "labels": Config("labels.csv", "kind", method="LG+C-Static", block=32, every=32),
    "elder": Config("elder.csv", "kind", method="LG(form=covariance)+RL[1]-OUPR(hazard=0.001)", block=32, every=32),
    "heads": Config("heads.csv", "kind", method="LG(form=covariance)+RL[1]-OUPR(hazard=0.001)", block=32, every=32),
    "course": Config("course.csv", "load", time="when", method=METHOD, block=32, every=32),
    "patient": Config("patient.csv", "load", time="when", method=METHOD, block=32, every=32),
    "recurring": Config("recurring.csv", "load", time="when", method=METHOD, block=32, every=32),
}


@pytest.fixture(scope="module", params=RUNS)
def home(request, tmp_path_factory):
    """A copy of a golden folder beside its source; what the finished run said is kept in `finished.parquet`."""
    folder = tmp_path_factory.mktemp(request.param)
    shutil.copytree(GOLDEN, folder, dirs_exist_ok=True)
    return folder, request.param


def test_a_golden_run_is_read_reported_compared_and_finished(home):
    folder, name = home
    run = open_run(folder / name)
    assert (run.rows, run.note["done"]) == (64, False)
    assert run.config == Config.from_json({**RUNS[name].to_json(), **filled(run.config)})
    [before] = run.records()

    reported = filtax("report", name, home=folder)
    assert reported.returncode == 0, reported.stderr
    assert (folder / name / "report.html").read_text().startswith("<!doctype html>")

    resumed = filtax("resume", name, home=folder)
    assert resumed.returncode == 0, resumed.stderr
    [after] = open_run(folder / name).records()
    assert after[:64].tobytes() == before.tobytes()
    got, want = (
        pyarrow.parquet.read_table(folder / path) for path in (f"{name}/predictions.parquet", f"{name}.parquet")
    )
    assert got.column_names == want.column_names
    for column in want.column_names:
        new, old = got[column].to_numpy(), want[column].to_numpy()
        if old.dtype.kind == "f":
            np.testing.assert_allclose(new, old, rtol=1e-9, atol=1e-12, err_msg=column)
        else:
            assert new.tolist() == old.tolist(), column
    events = [json.loads(line) for line in (folder / name / "events.jsonl").read_text().splitlines()]
    assert [event["line"] for event in events if event["event"] == "rejected"] == [42]
    if name == "course":  # the line bends at line 62: what was known of it came through the checkpoint
        assert [66 <= event["line"] <= 80 for event in events if event["event"] == "change"] == [True]

    if name == "patient":  # a level moved at line 52; two of four errors in a row had come
        assert [(event["line"], event["began"]) for event in events if event["event"] == "change"] == [(62, 50)]
        assert [event["line"] for event in events if event["event"] == "distrusted"] == [65, 66, 67, 68]

    if name == "recurring":  # what keeps coming back is trusted, and a value that is none of the two is not
        assert [event["line"] for event in events if event["event"] == "distrusted" and event["line"] > 60] == [82]

    compared = filtax("compare", name, name, home=folder)
    assert compared.returncode == 0, compared.stderr


def test_a_golden_run_of_another_source_or_format_is_refused_in_a_sentence(home):
    folder, name = home
    for changed, words in ((f"{name}.csv", "change"), (f"{name}/checkpoint/000003.json", "format")):
        shutil.rmtree(folder / name)
        shutil.copytree(GOLDEN / name, folder / name)
        path = folder / changed
        text = path.read_text()
        if words == "format":
            path.write_text(with_format(text, 2))
        else:
            path.write_text("#" + text[1:])
        assert words in sentence(filtax("resume", name, home=folder), 3)
        path.write_text(text)


def with_format(text, number):
    """A manifest of another format, as sound as any."""
    from filtax.store.digest import canonical, digest

    manifest = {**json.loads(text), "format": number}
    del manifest["digest"]
    return canonical({**manifest, "digest": digest(manifest)}).decode()


def filled(config):
    """What the first rows decided."""
    return {name: getattr(config, name) for name in ("task", "method", "prior", "version")}


def sources():
    """Small tables: hours of load at two sites, with a gap, a gross error and a bad row; kinds of things; bent days."""
    rng, lines, things = np.random.default_rng(0), [], []
    for t in range(48):
        for site, level in (("a", 20), ("b", 50)):
            value = level + 3 * np.cos(2 * np.pi * t / 24) + 0.5 * rng.normal() + 400 * (t == 18)
            lines.append(f"2024-03-{1 + t // 24:02d}T{t % 24:02d}:00,{site},{'' if t == 12 else round(value, 2)}\n")
        for kind, where in (("oak", -1), ("elm", 1)):
            things.append(f"{round(where + rng.normal(), 2)},{'wet' if rng.random() < 0.5 else 'dry'},{kind}\n")
    days = [
        f"{np.datetime64('2024-01-01') + t},{0.5 * t - 1.5 * max(t - 60, 0) + 0.5 * rng.normal():.2f}\n"
        for t in range(96)
    ]
    days[40] = "2024-02-10,lots\n"
    hours = [
        f"2024-03-{1 + t // 24:02d}T{t % 24:02d}:00,"
        f"{9999 if 63 <= t < 67 else 20 + 3 * np.cos(2 * np.pi * t / 24) + 9 * (t >= 50) + 0.5 * rng.normal():.2f}\n"
        for t in range(96)
    ]
    hours[40] = "2024-03-02T16:00,lots\n"
    switch = [
        f"2024-03-{1 + t // 24:02d}T{t % 24:02d}:00,{7 if t == 80 else int(rng.random() < 0.2)}\n" for t in range(96)
    ]
    switch[40] = hours[40]
    lines[40], things[40] = "2024-03-01T20:00,a,lots\n", "1.5e,wet,oak\n"
    kinds = "size,soil,kind\n" + "".join(things)
    three = kinds.replace("wet,oak", "wet,ash")
    of_labels = {"labels": kinds, "elder": kinds, "heads": three}
    of_loads = {"course": days, "patient": hours, "recurring": switch}
    of_loads = {name: "when,load\n" + "".join(rows) for name, rows in of_loads.items()}
    return {"timed": "when,site,load\n" + "".join(lines), **of_loads, **of_labels}


def write(name):
    (GOLDEN / f"{name}.csv").write_text(sources()[name])
    whole, half = Path("whole"), Path(name)  # relative, as the report names its folder
    carry_on(RUNS[name], whole)
    write_outputs(whole)
    (whole / "predictions.parquet").rename(GOLDEN / f"{name}.parquet")
    shutil.rmtree(whole)
    blocks = iter([False, True])
    carry_on(RUNS[name], half, stop=lambda: next(blocks))
    write_outputs(half)
    for old in ("lock", "000002.json", "000002.safetensors"):  # the lock names the process that wrote
        (half / "checkpoint" / old).unlink()


if __name__ == "__main__":
    import os

    import jax

    jax.config.update("jax_enable_x64", True)
    os.chdir(GOLDEN)
    write(sys.argv[1])
