"""Temporary folders that are removed even where the process that made them was killed."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from roshap.errors import OutputError

PREFIX = "scratch-"


@contextlib.contextmanager
def scratch_folder(parent: Path | None = None) -> Iterator[Path]:
    """Yield a private empty folder below ``parent``, removed when the block ends.

    The owner holds a lock on the folder for as long as it lives. What processes killed earlier
    left in ``parent`` is recognised by its free lock and removed first.

    Parameters
    ----------
    parent
        Where the folder is made; the system's temporary folder by default.

    Raises
    ------
    OutputError
        Where ``parent`` cannot be written.
    """
    parent = Path(tempfile.gettempdir()) / "roshap" if parent is None else parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with FileLock(parent / f"{PREFIX}guard.lock"):
            _remove_abandoned(parent)
            folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
            owner = FileLock(_lock_of(folder))
            owner.acquire(timeout=0)
    except OSError as error:
        raise OutputError(
            f"cannot write temporary files in {parent}: {error.strerror or error}"
        ) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        owner.release()
        _lock_of(folder).unlink(missing_ok=True)


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")


def _remove_abandoned(parent: Path) -> None:
    """Remove the folders whose owner is gone. Call with the guard held."""
    for folder in parent.glob(f"{PREFIX}*/"):
        lock = FileLock(_lock_of(folder))
        with contextlib.suppress(Timeout), lock.acquire(timeout=0):
            shutil.rmtree(folder, ignore_errors=True)
            _lock_of(folder).unlink(missing_ok=True)
