"""Readers: verified files in, a raw table out. One module per family, found here by name.

A reader is a function ``read(files, **options) -> RawTable``; ``files`` maps the name of each
source to its path. Options are keyword-only and typed: the configuration's ``reader_options`` are
checked against them. Modules are imported when they are used.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roshap.errors import ConfigError

if TYPE_CHECKING:
    from roshap.datasets.readers.raw import RawTable

READERS: Mapping[str, str] = {
    "auto_mpg": "auto_mpg",
    "bundled": "bundled",
    "csv": "tabular",
    "golub": "golub",
    "make_regression": "make_regression",
    "musk": "musk",
    "simulation": "simulation",
    "spambase": "spambase",
    "ujiindoorloc": "ujiindoorloc",
}
"""Name of each reader -> its module in this package."""


def reader_names() -> tuple[str, ...]:
    """Names that ``reader:`` of a data set may have."""
    return tuple(sorted(READERS))


def read_raw(reader: str, files: Mapping[str, Path], options: Mapping[str, Any]) -> RawTable:
    """Run a reader by name, with its options checked.

    Parameters
    ----------
    reader
        A name of :func:`reader_names`.
    files
        Source name -> path; empty for generated and bundled data.
    options
        ``reader_options`` of the configuration.

    Raises
    ------
    ConfigError
        An option is unknown or has the wrong type.
    """
    from pydantic import ValidationError, validate_call

    read = import_module(f"{__name__}.{READERS[reader]}").read
    keywords = [
        p.name
        for p in inspect.signature(read).parameters.values()
        if p.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    for option in options:
        if option not in keywords:
            close = difflib.get_close_matches(option, keywords, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise ConfigError(
                f"dataset.reader_options: unknown option {option!r} of reader {reader!r}{hint}; "
                f"valid: {', '.join(keywords) or 'none'}"
            )
    try:
        table: RawTable = validate_call(read)(files, **options)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"dataset.reader_options.{where}: {first['msg']} (got {first['input']!r})"
        ) from None
    return table
