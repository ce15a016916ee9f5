"""Data that every replicate reads: written to disk once, memory-mapped by the workers.

The objects are pickled with their large buffers out of band (pickle protocol 5); each buffer lies
in a file of its own, so that all workers of a machine share one copy of it in the page cache.
The folder is private to the process that made it: nothing from outside is ever read.
"""

from __future__ import annotations

import functools
import pickle
from pathlib import Path
from typing import Any

import cloudpickle  # type: ignore[import-untyped]  # ships no types
import numpy as np

MIN_MAPPED_BYTES = 64 * 1024
PAYLOAD = "payload.pickle"


def dump(value: object, folder: Path) -> None:
    """Write ``value`` into ``folder``; functions of a notebook or a script go by value."""
    count = 0

    def store(buffer: pickle.PickleBuffer) -> bool:
        """Keep large buffers out of the pickle (False); leave small ones in (True)."""
        nonlocal count
        raw = buffer.raw()
        if raw.nbytes < MIN_MAPPED_BYTES:
            return True
        (folder / f"{count:04d}.bin").write_bytes(raw)
        count += 1
        return False

    payload = cloudpickle.dumps(value, protocol=5, buffer_callback=store)
    (folder / PAYLOAD).write_bytes(payload)


@functools.lru_cache(maxsize=1)
def load(folder: Path) -> Any:
    """Return the value that :func:`dump` wrote; its large arrays are read-only memory maps.

    A process keeps the last value, so that a worker reads it once and not with every replicate.
    """
    buffers = [np.memmap(path, mode="r") for path in sorted(folder.glob("*.bin"))]
    return pickle.loads((folder / PAYLOAD).read_bytes(), buffers=buffers)
