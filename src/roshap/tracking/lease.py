"""Who is alive: a lock that a run's process holds, and that the kernel frees when it dies.

A process id is not enough to tell a killed run from a live one (ids are used again, and a container
that starts anew has another host name and may have the same id). A lock on a file below the
repository's root has neither problem.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path

from roshap.tracking.store import LOCK_FOLDER


@contextlib.contextmanager
def held_lease(root: Path) -> Iterator[str]:
    """Hold a fresh lease for the length of a block; yields its token."""
    from filelock import FileLock

    token = uuid.uuid4().hex
    path = _path(root, token)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(path):
            yield token
    finally:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def dead_lease(root: Path, token: str) -> Iterator[bool]:
    """Yield whether the holder of ``token`` is known to be dead; if so, the lease is then removed.

    Only one process at a time is told ``True``. A lease that is not in this checkout belongs to a
    run from elsewhere (a shared tracking server), of which nothing is known: ``False``.
    """
    from filelock import FileLock, Timeout

    path = _path(root, token)
    if not path.is_file():
        yield False
        return
    try:
        lock = FileLock(path)
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    try:
        yield True
        path.unlink(missing_ok=True)
    finally:
        lock.release()


def _path(root: Path, token: str) -> Path:
    return root / LOCK_FOLDER / f"run-{token}.lock"
