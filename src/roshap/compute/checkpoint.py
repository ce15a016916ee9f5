"""Finished replicates on disk, so that a killed study goes on and a longer one repeats nothing.

Layout below the root::

    <key>/000037.npz      the arrays of replicate 37
    <key>/key.json        the parts that the key is made of
    <key>.lock            held by the process that writes the folder
    labels/<label>.json   the parts of the key that this label used last
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import re
import shutil
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NoReturn

import numpy as np
from filelock import FileLock, Timeout

from roshap.compute.files import write_json, writing
from roshap.errors import CheckpointError, OutputError

LABELS = "labels"
_SUFFIX = ".npz"

Arrays = Mapping[str, np.ndarray]


class CheckpointStore:
    """The finished replicates of one computation.

    Parameters
    ----------
    root
        Folder of all stores.
    key_parts
        Everything that the result of a replicate depends on, by name. Two computations share
        replicates exactly where all parts are equal.
    label
        Name under which a person knows the computation (the experiment). It only serves to say
        what changed since the last time.

    Attributes
    ----------
    folder
        Where this store's replicates lie.
    changed
        Names of the key parts that differ from the last computation of this label; empty where
        nothing changed or the label is new.
    """

    def __init__(self, root: Path, key_parts: Mapping[str, str], label: str) -> None:
        self.root = root
        self.label = label
        self.key_parts = dict(sorted(key_parts.items()))
        self.folder = root / _digest(self.key_parts)
        self._label_file = root / LABELS / f"{_file_name(label)}.json"
        self.changed = _differences(_read_parts(self._label_file), self.key_parts)

    @contextlib.contextmanager
    def open(
        self, *, wait: float = 600.0, say: Callable[[str], None] | None = None
    ) -> Iterator[None]:
        """Hold the store for writing, and make this computation the label's last one.

        Parameters
        ----------
        wait
            Seconds to wait for another process that computes the same replicates.
        say
            Told, in one line, what changed since the last run of the label, or who is waited for.

        Raises
        ------
        CheckpointError
            Where the other process is still at work after ``wait`` seconds.
        OutputError
            Where the folder cannot be written.
        """
        say = say or (lambda message: None)
        lock = FileLock(self.folder.with_suffix(".lock"))
        with self._writing():
            self.folder.mkdir(parents=True, exist_ok=True)
            self._acquire(lock, wait, say)
        try:
            if self.changed:
                earlier = any(self.folder.glob(f"*{_SUFFIX}"))
                how = (
                    "going on with earlier runs of just this kind" if earlier else "starting afresh"
                )
                say(f"{_enumerate(self.changed)} changed since the last run of this label: {how}")
            with self._writing():
                for leftover in self.folder.glob(".*.tmp"):  # of a killed process
                    leftover.unlink()
            for path in (self.folder / "key.json", self._label_file):
                write_json(path, self.key_parts)
            yield
        finally:
            lock.release()

    def done(self, *, say: Callable[[str], None] | None = None) -> set[int]:
        """Return the replicates that are there and whole; damaged files are removed and said."""
        found = set()
        for path in sorted(self.folder.glob(f"*{_SUFFIX}")):
            if _is_whole(path):
                found.add(int(path.stem))
                continue
            if say is not None:
                say(f"replicate {int(path.stem)} on disk is damaged: it is computed again")
            path.unlink()
        return found

    def write(self, index: int, arrays: Arrays) -> None:
        """Write a finished replicate, whole or not at all.

        Raises
        ------
        OutputError
            Where the file cannot be written, e.g. because the disk is full.
        """
        with writing(self.path(index)) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # no array has its name

    def read(self, index: int) -> np.lib.npyio.NpzFile:
        """Open a replicate's arrays; each is read from disk when it is asked for.

        Raises
        ------
        CheckpointError
            Where it is missing or damaged.
        """
        try:
            return np.load(self.path(index), allow_pickle=False)
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise CheckpointError(
                f"replicate {index} cannot be read from {self.folder}: {error}"
            ) from error

    def path(self, index: int) -> Path:
        """Return the file of a replicate."""
        return self.folder / f"{index:06d}{_SUFFIX}"

    def _acquire(self, lock: FileLock, wait: float, say: Callable[[str], None]) -> None:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            say("waiting for another process that computes the same runs")
            try:
                lock.acquire(timeout=wait)
            except Timeout:
                raise CheckpointError(
                    f"another process has been computing the runs of {self.label!r} for more "
                    f"than {wait:g} s ({lock.lock_file}): wait for it, or stop it"
                ) from None

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            _refuse(self.root, error)


def prune(root: Path) -> list[tuple[Path, int]]:
    """Remove the stores that no label used last, i.e. those of former data, settings or versions.

    Stores that a process is writing are left alone.

    Returns
    -------
    list of (pathlib.Path, int)
        The folders removed and the bytes that each held.
    """
    labels = (_read_parts(path) for path in sorted((root / LABELS).glob("*.json")))
    current = {_digest(parts) for parts in labels if parts is not None}
    removed = []
    for key in sorted(root.glob("*/key.json")):
        folder = key.parent
        if folder.name in current:
            continue
        lock = FileLock(folder.with_suffix(".lock"))
        with contextlib.suppress(Timeout), lock.acquire(timeout=0):
            size = sum(path.stat().st_size for path in folder.iterdir())
            shutil.rmtree(folder)
            removed.append((folder, size))
    return removed


def code_digest(*modules: str) -> str:
    """Return the sha256 of the source of modules; of a package, that of all its files.

    Part of a key, so that replicates made by other code are never mixed in.
    """
    digest = hashlib.sha256()
    for name in sorted(modules):
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise CheckpointError(f"module {name!r} has no source to take a digest of")
        origin = Path(spec.origin)
        files = sorted(origin.parent.rglob("*.py")) if origin.name == "__init__.py" else [origin]
        for path in files:
            digest.update(f"{name}/{path.name}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _digest(parts: Mapping[str, str]) -> str:
    text = json.dumps(dict(parts), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _differences(old: Mapping[str, str] | None, new: Mapping[str, str]) -> tuple[str, ...]:
    if old is None:
        return ()
    return tuple(sorted(name for name in {*old, *new} if old.get(name) != new.get(name)))


def _enumerate(names: tuple[str, ...]) -> str:
    shown = [*names[:4], f"{len(names) - 4} more"] if len(names) > 5 else list(names)
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _read_parts(path: Path) -> dict[str, str] | None:
    """Return a label's last key parts; None where there are none that can be read."""
    try:
        parts = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return parts if isinstance(parts, dict) else None


def _is_whole(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except (OSError, EOFError, ValueError, RuntimeError, struct.error, zipfile.BadZipFile):
        return False


def _file_name(label: str) -> str:
    """Return a name for the label's file: readable, and different for different labels."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", label)[:60]
    return f"{readable}-{hashlib.sha256(label.encode()).hexdigest()[:8]}"


def _refuse(root: Path, error: OSError) -> NoReturn:
    raise OutputError(f"cannot write checkpoints in {root}: {error.strerror or error}") from error
