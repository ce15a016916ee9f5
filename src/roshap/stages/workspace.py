"""Where things lie in a checkout, and how an output takes the place of the old one."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from roshap.errors import OutputError, RoshapError

ROOT_VARIABLE = "ROSHAP_ROOT"

#: How long a job waits for another that fetches the same data (a slow download, not a dead one).
TURN_SECONDS = 3600.0

#: Folders that are being written by :meth:`Workspace.output` in this context, innermost last.
_OPEN: ContextVar[tuple[Path, ...]] = ContextVar("open outputs", default=())


def open_output() -> Path | None:
    """Return the folder that the innermost ``with workspace.output(...)`` block writes to."""
    return _OPEN.get()[-1] if _OPEN.get() else None


def find_root(start: Path | None = None) -> Path:
    """Return the checkout's root: the nearest folder at or above ``start`` that has a ``conf``.

    Raises
    ------
    RoshapError
        Where no such folder exists.
    """
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        if (folder / "conf" / "config.yaml").is_file() and (folder / "dvc.yaml").is_file():
            return folder
    raise RoshapError(
        f"no roshap checkout at or above {start}: run the command inside one "
        "(a folder with conf/config.yaml and dvc.yaml)"
    )


@dataclass(frozen=True)
class Workspace:
    """The folders of one checkout."""

    root: Path

    @property
    def conf(self) -> Path:
        """Hydra's configuration folder."""
        return self.root / "conf"

    @property
    def cache(self) -> Path:
        """Local state that is never versioned: checkpoints, locks, downloads."""
        return self.root / ".roshap"

    @property
    def store_root(self) -> Path:
        """The checkout whose MLflow store is used.

        DVC runs queued experiments in a copy of the checkout that it removes afterwards, and says
        in ``DVC_ROOT`` where the original is.
        """
        original = os.environ.get("DVC_ROOT")
        if original and (Path(original) / "dvc.yaml").is_file():
            return Path(original)
        return self.root

    @property
    def params(self) -> Path:
        """DVC's parameter file: the selected study."""
        return self.root / "params.yaml"

    def data(self, name: str) -> Path:
        """Folder of a data set's canonical table."""
        return self.root / "data" / name

    def resolve(self, path: str | Path) -> Path:
        """Return ``path`` as an absolute path; relative ones are relative to the root."""
        return (self.root / path).resolve()

    def relative(self, path: Path) -> str:
        """Return ``path`` relative to the root, or its name alone: no path of a machine."""
        path = path.resolve()
        return (
            path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.name
        )

    def shown(self, path: Path) -> str:
        """Return ``path`` as a person in the current folder would type it."""
        path, here = path.resolve(), Path.cwd().resolve()
        return path.relative_to(here).as_posix() if path.is_relative_to(here) else str(path)

    @contextlib.contextmanager
    def turn(self, folder: Path) -> Iterator[None]:
        """Wait until no other process is in this block for ``folder``.

        For what several jobs of a sweep need at once and one of them makes.

        Raises
        ------
        OutputError
            Where another process has been in it for :data:`TURN_SECONDS`.
        """
        from filelock import FileLock, Timeout

        locks = self.cache / "locks"
        try:
            locks.mkdir(parents=True, exist_ok=True)
            lock = FileLock(locks / f"{_lock_name(folder)}.turn.lock")
            lock.acquire(timeout=TURN_SECONDS)
        except Timeout:
            raise OutputError(
                f"another process has been making {folder} for {TURN_SECONDS:.0f} s: stop it"
            ) from None
        except OSError as error:
            raise _cannot_write(locks, error) from error
        try:
            yield
        finally:
            lock.release()

    @contextlib.contextmanager
    def output(self, folder: Path) -> Iterator[Path]:
        """Yield an empty folder that takes the place of ``folder`` when the block ends well.

        The output is locked meanwhile: a killed ``dvc`` can leave a stage alive, and two processes
        must not write the same result. Where the block fails, what was there stays as it was.
        A ``lineage.json`` in it gets the checksums of the files beside it.

        Raises
        ------
        OutputError
            Where another process writes this output, or the folder cannot be written.
        """
        from filelock import FileLock, Timeout

        from roshap.tracking import seal

        folder = folder.resolve()
        name = _lock_name(folder)
        fresh = folder.with_name(f".{folder.name}.{os.getpid()}.new")
        try:
            locks = self.cache / "locks"
            locks.mkdir(parents=True, exist_ok=True)
            folder.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(locks / f"{name}.lock")
            lock.acquire(timeout=0)
        except Timeout:
            raise OutputError(
                f"{folder} is being written by another process: wait for it, or stop it"
            ) from None
        except OSError as error:
            raise _cannot_write(folder, error) from error
        try:
            _remove_leftovers(folder)
            try:
                fresh.mkdir()
            except OSError as error:
                raise _cannot_write(folder, error) from error
            token = _OPEN.set((*_OPEN.get(), fresh))
            try:
                yield fresh
            finally:
                _OPEN.reset(token)
            seal(fresh)
            _replace(fresh, folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
            lock.release()


def _lock_name(folder: Path) -> str:
    return hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]


def _cannot_write(folder: Path, error: OSError) -> OutputError:
    return OutputError(
        f"cannot write {folder}: {error.strerror or error} (choose another with out=DIR)"
    )


def _remove_leftovers(folder: Path) -> None:
    """Remove what a killed process left beside ``folder``; the lock says that nobody uses it."""
    for old in folder.parent.glob(f".{folder.name}.*.new"):
        shutil.rmtree(old, ignore_errors=True)


def _replace(fresh: Path, folder: Path) -> None:
    """Put ``fresh`` in the place of ``folder``; the old one is removed last."""
    if not folder.exists():
        fresh.rename(folder)
        return
    old = fresh.with_suffix(".old")
    folder.rename(old)
    fresh.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
