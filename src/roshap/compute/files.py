"""Files that are there whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from roshap.errors import OutputError


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary neighbour of ``path``, which takes its place when the block ends well.

    Folders are made as needed.

    Raises
    ------
    OutputError
        One line, where the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as stream:
            yield stream
        temporary.replace(path)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if temporary.is_file():
            temporary.unlink()


def write_bytes(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path``, whole or not at all (see :func:`writing`)."""
    with writing(path) as stream:
        stream.write(content)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write ``content`` as sorted, indented JSON, the same bytes for the same content."""
    text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False)
    write_bytes(path, f"{text}\n".encode())
