"""From a :class:`DatasetSpec` to the canonical table in a folder."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from roshap.datasets.checks import listed
from roshap.datasets.dataset import Dataset, from_frame
from roshap.datasets.download import Limits, Obtained, Progress, obtain
from roshap.datasets.readers import read_raw
from roshap.datasets.spec import DatasetSpec, SourceSpec
from roshap.datasets.table import write
from roshap.errors import ConfigError, DataError, RoshapError


def fetch(
    spec: DatasetSpec,
    directory: Path | str,
    *,
    mirror: Path | str | None = None,
    cache: Path | str,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Get the files, verify them, read them, and write the canonical table.

    Parameters
    ----------
    spec
        The data set.
    directory
        Gets ``table.parquet`` and ``table.json``.
    mirror
        Folder that is tried before any URL, as ``MIRROR/<dataset>/<file>``.
    cache
        Folder of verified downloads, by data set.
    limits
        Patience with each server.
    progress
        Called with (file, bytes so far, total or ``None``) while a file comes.

    Returns
    -------
    Dataset
        As :func:`roshap.datasets.load` would read it; ``source["obtained"]`` says in addition
        what served each file (a mirror, the cache or an address).

    Raises
    ------
    FetchError
        No source of a file served.
    DataError
        The table is not fit, or not the one that ``shape`` and ``digest`` promise.
    ConfigError
        A required value is not set, or an option of the reader is wrong.
    OutputError
        A folder cannot be written.
    """
    _check_required(spec)
    # Only a data set of one file can be judged by its table.
    single = len(spec.sources) == 1 and spec.digest is not None
    judge = partial(_table_differs, spec, spec.sources[0].file) if single else None
    obtained: dict[str, Obtained] = {}
    for source in spec.sources:
        obtained[source.file] = obtain(
            source,
            spec.name,
            mirror=None if mirror is None else Path(mirror),
            cache=Path(cache),
            accept=judge,
            limits=limits,
            progress=progress,
        )
    if spec.path is not None:
        files = {Path(spec.path).name: Path(spec.path)}
    else:
        files = {name: found.path for name, found in obtained.items()}
    data = assemble(spec, files, obtained)
    _check_promises(spec, data)
    write(data, Path(directory))
    return data


def assemble(
    spec: DatasetSpec, files: Mapping[str, Path], obtained: Mapping[str, Obtained] | None = None
) -> Dataset:
    """Read verified files and give each column its role.

    Parameters
    ----------
    spec
        The data set.
    files
        Source name -> path.
    obtained
        What served each file, for ``source["obtained"]``.
    """
    raw = read_raw(spec.reader, files, spec.reader_options)
    frame = raw.frame.set_axis(pd.Index([str(c) for c in raw.frame.columns], dtype=object), axis=1)
    assert spec.target is not None  # by _check_required
    _check_columns(spec, list(frame.columns))
    features = frame.drop(columns=_not_features(spec))
    _refuse_unnamed(features, spec.name)
    source: dict[str, Any] = _provenance(spec, files)
    if obtained:
        source["obtained"] = {
            name: {"from": found.origin, "sha256": found.sha256} for name, found in obtained.items()
        }
    return from_frame(
        features,
        frame[spec.target],
        task=spec.task,
        name=spec.name,
        target=spec.target,
        classes=spec.classes,
        categorical=spec.categorical,
        groups=None if spec.group is None else frame[spec.group],
        weights=None if spec.weight is None else frame[spec.weight],
        held_out=raw.held_out,
        source=source,
    )


def _not_features(spec: DatasetSpec) -> list[str]:
    roles = [spec.target, spec.group, spec.weight]
    return [*spec.drop, *(role for role in roles if role is not None and role not in spec.drop)]


def _check_required(spec: DatasetSpec) -> None:
    if spec.reader == "csv" and spec.path is None and not spec.sources:
        raise ConfigError("dataset.path is not set: give the file, e.g. dataset.path=my.csv")
    if spec.target is None:
        raise ConfigError("dataset.target is not set: give the column to predict, dataset.target=y")


def _check_columns(spec: DatasetSpec, columns: Sequence[str]) -> None:
    """Every column that the configuration names is there, and has one role."""
    named: dict[str, Sequence[str | None]] = {
        "target": [spec.target],
        "group": [spec.group],
        "weight": [spec.weight],
        "drop": spec.drop,
        "categorical": spec.categorical,
    }
    taken: dict[str, str] = {}
    for option, names in named.items():
        for name in names:
            if name is None:
                continue
            if name not in columns:
                raise DataError(f"{spec.name}: dataset.{option}: {_no_column(name, columns)}")
            if name in taken and taken[name] != option:
                raise DataError(
                    f"{spec.name}: column {name!r} is both dataset.{taken[name]} and "
                    f"dataset.{option}"
                )
            taken[name] = option


def _no_column(name: str, columns: Sequence[str]) -> str:
    folded = {column.lower(): column for column in columns}
    close = difflib.get_close_matches(name.lower(), list(folded), n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(repr(folded[c]) for c in close)}?" if close else ""
    return f"no column {name!r}; {hint or f'the columns are {listed(columns)}'}"


def _refuse_unnamed(features: pd.DataFrame, name: str) -> None:
    unnamed = [str(c) for c in features.columns if str(c).startswith("Unnamed: ")]
    if unnamed:
        raise DataError(
            f"{name}: a column without a name (an index that was saved with the table?); leave it "
            f"out: dataset.drop=[{', '.join(repr(c) for c in unnamed[:5])}]"
        )


def _provenance(spec: DatasetSpec, files: Mapping[str, Path]) -> dict[str, Any]:
    """Where the table comes from, in terms that are the same on every machine."""
    source: dict[str, Any] = {"reader": spec.reader, "reader_options": dict(spec.reader_options)}
    if spec.path is not None:
        import pooch

        source["files"] = [
            {"file": name, "sha256": pooch.file_hash(str(path), alg="sha256")}
            for name, path in files.items()
        ]
    elif spec.sources:
        source["files"] = [_declared(file) for file in spec.sources]
    return source


def _declared(file: SourceSpec) -> dict[str, Any]:
    return {
        "file": file.file,
        "sha256": file.sha256,
        "urls": [candidate.url for candidate in file.candidates],
        **({"members": dict(file.members)} if file.members else {}),
    }


def _table_differs(spec: DatasetSpec, name: str, path: Path) -> str | None:
    """Judge a file without a checksum by the table that it gives."""
    try:
        digest = assemble(spec, {name: path}).digest
    except RoshapError as error:
        return f"refused: {error}"
    if digest != spec.digest:
        return f"refused: its table has digest {digest}, expected {spec.digest}"
    return None


def _check_promises(spec: DatasetSpec, data: Dataset) -> None:
    hint = "if you changed how it is read on purpose, set dataset.shape=null dataset.digest=null"
    if spec.shape is not None and (data.n, data.p) != spec.shape:
        raise DataError(
            f"{spec.name}: the table has {data.n} rows x {data.p} features, expected "
            f"{spec.shape[0]} x {spec.shape[1]}; {hint}"
        )
    if spec.digest is not None and data.digest != spec.digest:
        raise DataError(
            f"{spec.name}: the table has digest {data.digest}, expected {spec.digest}; {hint}"
        )
