"""A table of the user's own: delimited text or parquet."""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd
from pydantic import Field

from roshap.datasets.readers.numbers import EXACT
from roshap.datasets.readers.raw import RawTable
from roshap.errors import ConfigError, DataError

SEPARATORS = (",", ";", "\t", "|")
Character = Annotated[str, Field(min_length=1, max_length=1)]
PARQUET = (".parquet", ".pq")


def read(
    files: Mapping[str, Path],
    *,
    separator: Character | None = None,
    decimal: Character = ".",
    encoding: str = "utf-8",
    missing: Sequence[str] = (),
) -> RawTable:
    """Read the one file, as parquet if its name ends so, else as delimited text (maybe .gz, .xz).

    Parameters
    ----------
    files
        One file.
    separator
        Between columns; by default that of comma, semicolon, tab and bar which splits the header
        most.
    decimal
        The decimal mark.
    encoding
        Of the text.
    missing
        Further texts that mean "missing", beside the usual ones (empty, NA, NaN, null, ...).

    Raises
    ------
    DataError
        The file is not there, not readable as such, or has duplicate or empty column names.
    """
    (path,) = files.values()
    if not path.is_file():
        what = "is a folder, not a file" if path.is_dir() else "no such file"
        raise DataError(f"dataset.path: {what}: {str(path)!r}")
    _check_encoding(encoding)
    try:
        if path.suffix.lower() in PARQUET:
            return RawTable(_read_parquet(path))
        return RawTable(_read_text(path, separator, decimal, encoding, missing))
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path.name}: not {encoding} text (byte {error.start}); "
            "give dataset.reader_options.encoding, e.g. latin-1"
        ) from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path.name}: cannot be read as a table: {reason}") from None


def _check_encoding(encoding: str) -> None:
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise ConfigError(
            f"dataset.reader_options.encoding: unknown encoding {encoding!r}; e.g. utf-8, latin-1"
        ) from None


def _read_parquet(path: Path) -> pd.DataFrame:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        _refuse_duplicates(path, file.schema_arrow.names)
        return file.read().to_pandas()


def _read_text(
    path: Path, separator: str | None, decimal: str, encoding: str, missing: Sequence[str]
) -> pd.DataFrame:
    separator = separator or _guess_separator(path, encoding)
    # The header as data: pandas would rename a second "a" to "a.1" without a word.
    names = _first_row(path, separator, encoding)
    _refuse_duplicates(path, [name for name in names if name])
    frame = pd.read_csv(
        path,
        sep=separator,
        decimal=decimal,
        encoding=encoding,
        na_values=list(missing),
        header=0,
        names=range(len(names)),
        low_memory=False,  # one type per column, not one per chunk
        **EXACT,
    )
    if not isinstance(frame.index, pd.RangeIndex):  # pandas took surplus fields as the index
        wide = frame.shape[1] + frame.index.nlevels
        raise DataError(f"{path.name}: {len(names)} column names for rows of {wide} fields")
    frame.columns = pd.Index([name or f"Unnamed: {i}" for i, name in enumerate(names)])
    return frame


def _first_row(path: Path, separator: str, encoding: str) -> list[str]:
    row = pd.read_csv(
        path, sep=separator, header=None, nrows=1, dtype=str, encoding=encoding, na_filter=False
    ).iloc[0]
    return [name.removeprefix("\ufeff").strip() for name in row]


def _guess_separator(path: Path, encoding: str) -> str:
    return max(SEPARATORS, key=lambda separator: len(_first_row(path, separator, encoding)))


def _refuse_duplicates(path: Path, names: Sequence[str]) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        listed = ", ".join(repr(name) for name in repeated[:5])
        raise DataError(f"{path.name}: duplicate column names: {listed}; rename them in the file")
