"""The canonical table on disk: ``table.parquet`` (values) and ``table.json`` (meaning, digest)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from roshap.compute.files import writing
from roshap.datasets.dataset import Dataset
from roshap.datasets.digest import GROUP, HELD_OUT, WEIGHT, table_digest
from roshap.errors import DataError

TABLE, ABOUT = "table.parquet", "table.json"
FORMAT = "roshap.table/1"


def write(data: Dataset, directory: Path) -> None:
    """Write both files, each whole or not at all; the same data gives the same bytes.

    Neither file holds a time, a path or a version. The digest ties one to the other: after a
    crash between the two renames :func:`load` refuses the pair.

    Raises
    ------
    OutputError
        The folder cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {}
    for name, column in data.X.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            columns[str(name)] = _dictionary(column.cat.codes.to_numpy(), column.cat.categories)
        else:
            columns[str(name)] = pa.array(column.to_numpy(), from_pandas=True)
    columns[data.target] = _dictionary(data.y, data.classes) if data.classes else pa.array(data.y)
    for name, values in _companions(data).items():
        columns[name] = pa.array(values)
    with writing(directory / TABLE) as stream:
        pq.write_table(pa.table(columns), stream, compression="zstd", write_statistics=False)
    text = json.dumps(_about(data), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    with writing(directory / ABOUT) as stream:
        stream.write(text.encode() + b"\n")


def load(directory: Path | str) -> Dataset:
    """Read a canonical table and verify its digest.

    Raises
    ------
    DataError
        There is none, it is damaged, or the two files do not belong together.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    directory = Path(directory)
    try:
        about = json.loads((directory / ABOUT).read_bytes())
        table = pq.read_table(directory / TABLE)
    except FileNotFoundError as error:
        raise DataError(
            f"no {Path(error.filename).name} in {directory}: fetch the data set"
        ) from None
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"{directory}: damaged table ({reason}): fetch the data set again"
        ) from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise DataError(f"{directory / ABOUT}: not a {FORMAT} file: fetch the data set again")
    try:
        data = _dataset(table, about)
    except (KeyError, TypeError, pa.ArrowException) as error:
        raise DataError(
            f"{directory}: {TABLE} and {ABOUT} do not belong together ({error}): fetch again"
        ) from None
    if data.digest != about["digest"]:
        raise DataError(
            f"{directory}: {TABLE} has digest {data.digest[:12]}, {ABOUT} says "
            f"{str(about['digest'])[:12]}: fetch the data set again"
        )
    return data


def _dictionary(found: np.ndarray, labels: Any) -> Any:
    import pyarrow as pa

    indices = pa.array(found.astype(np.int32), mask=found < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array([str(x) for x in labels], pa.string()))


def _companions(data: Dataset) -> dict[str, np.ndarray]:
    named = {GROUP: data.groups, WEIGHT: data.weights, HELD_OUT: data.held_out}
    return {name: values for name, values in named.items() if values is not None}


def _about(data: Dataset) -> dict[str, Any]:
    categories = {
        str(name): [str(label) for label in column.cat.categories]
        for name, column in data.X.items()
        if isinstance(column.dtype, pd.CategoricalDtype)
    }
    # "obtained" (which mirror or address served the files) differs between machines.
    source = {key: value for key, value in data.source.items() if key != "obtained"}
    return {
        "format": FORMAT,
        "name": data.name,
        "digest": data.digest,
        "n": data.n,
        "p": data.p,
        "task": data.task,
        "target": data.target,
        "classes": list(data.classes),
        "categorical": categories,
        "companions": list(_companions(data)),
        "source": source,
    }


def _dataset(table: Any, about: dict[str, Any]) -> Dataset:
    target, companions = about["target"], about["companions"]
    classes, categories = tuple(about["classes"]), about["categorical"]
    names = [c for c in table.column_names if c != target and c not in companions]
    numeric = [name for name in names if name not in categories]
    block = np.empty((len(numeric), table.num_rows))
    for row, name in zip(block, numeric, strict=True):
        row[:] = table[name].to_numpy()  # nulls become NaN
    X = pd.DataFrame(block.T, columns=pd.Index(numeric, dtype=object), copy=False)
    if categories:
        kept = {
            name: pd.Categorical.from_codes(
                _codes(table[name], labels), categories=pd.Index(labels, dtype=object)
            )
            for name, labels in categories.items()
        }
        X = pd.concat([X, pd.DataFrame(kept)], axis=1)[names]
    y = _codes(table[target], classes) if classes else table[target].to_numpy()
    groups = table[GROUP].to_numpy() if GROUP in companions else None
    parts: dict[str, Any] = {
        "target": target,
        "classes": classes,
        "groups": groups.astype(np.str_)
        if groups is not None and groups.dtype == object
        else groups,
        "weights": table[WEIGHT].to_numpy() if WEIGHT in companions else None,
        "held_out": table[HELD_OUT].to_numpy() if HELD_OUT in companions else None,
    }
    return Dataset(
        name=about["name"],
        X=X,
        y=y,
        task=about["task"],
        digest=table_digest(X, y, **parts),
        source=about["source"],
        **parts,
    )


def _codes(column: Any, labels: Any) -> np.ndarray:
    """Codes in the order of ``labels``, whatever order the file's own dictionary has."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = column.cast(pa.string())
    found = pc.index_in(text, value_set=pa.array(list(labels), pa.string()))
    return pc.fill_null(found, -1).to_numpy().astype(np.int64)
