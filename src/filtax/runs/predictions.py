"""The predictions of a run as a table for others: Parquet, or CSV where pyarrow is not at hand."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from filtax.io._files import PARTIAL, drop, flush_folder, unwritten
from filtax.runs.foresight import write_csv
from filtax.runs.results import Run

__all__ = ["columns_of", "write_predictions"]

GROUP = 65536  # rows of a group in the file


def write_predictions(run: Run, form: str = "parquet") -> Path:
    """Write all records of a run, in groups of one size, so that the file depends on nothing but the rows.

    What is not known, NaN in a record, is null in Parquet and an empty field of CSV.

    Args:
        run: The run.
        form: "parquet", or "csv".

    Returns:
        The path, predictions.parquet or predictions.csv. It is put in place in one step.
    """
    try:
        import pyarrow
    except ImportError:
        pyarrow, form = None, "csv"
    path = run.root / f"predictions.{form}"
    aside = path.with_name(path.name + PARTIAL)
    try:
        drop(aside)
        with open(aside, "xb") as file:
            if form == "csv":
                _write_csv(run, file)
            else:
                _write_parquet(run, file, pyarrow)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
        flush_folder(run.root)
    except OSError as problem:
        drop(aside)
        most = f"up to {run.rows * run.kind.itemsize}"
        raise unwritten(path, problem, most, "then `filtax resume` writes it") from problem
    return path


def columns_of(run: Run, records: np.ndarray) -> dict[str, Any]:
    """Records as columns with the user's names: labels and series by their texts, times as times."""
    found: dict[str, Any] = {"line": records["line"]}
    if len(run.note["files"]) > 1:
        found["file"] = np.array(run.note["files"], object)[records["file"]]
    if run.config.key:
        found[_free(found, run.config.key)] = np.array(run.note["keys"], object)[records["series"]]
    if run.config.time:
        time = records["time"]
        found[_free(found, run.config.time)] = time.astype("datetime64[us]") if time.dtype.kind == "i" else time
    labels = run.note.get("labels")
    for name in run.stream.names:
        title, values = run.config.target if name == "y" else name, records[name]
        if labels is not None and name in ("y", "forecast", *run.rivals):
            texts = np.array([*labels, None], object)
            values = texts[np.where(np.isfinite(values), np.nan_to_num(values), len(labels)).astype(int)]
        elif labels is not None and name.startswith("p") and name[1:].isdigit():
            if int(name[1:]) >= len(labels):
                continue
            title = f"p({labels[int(name[1:])]})"
        found[_free(found, title)] = values
    return found


def _free(taken: dict[str, Any], name: str) -> str:
    """A name that is not taken: a target may be called like one of our columns."""
    while name in taken:
        name += "_"
    return name


def _write_parquet(run: Run, file: Any, pyarrow: Any) -> None:
    from pyarrow import parquet

    writer = None
    try:
        for records in run.records(GROUP):
            columns = columns_of(run, records)
            table = pyarrow.table({name: pyarrow.array(each, from_pandas=True) for name, each in columns.items()})
            writer = writer or parquet.ParquetWriter(file, table.schema, compression="zstd", use_dictionary=False)
            writer.write_table(table, row_group_size=GROUP)
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        parquet.write_table(pyarrow.table(columns_of(run, np.zeros(0, run.kind))), file)


def _write_csv(run: Run, file: Any) -> None:
    with open(file.fileno(), "w", newline="", encoding="utf-8", closefd=False) as text:
        write_csv(columns_of(run, np.zeros(0, run.kind)), text, head=True)
        for records in run.records(GROUP):
            write_csv(columns_of(run, records), text, head=False)
