"""The pipeline as ``dvc.lock`` has it: what every stage read and wrote, by MD5."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from roshap.errors import TrackingError


@dataclass(frozen=True)
class LockedStage:
    """One stage's entry.

    Attributes
    ----------
    name
        ``rank@wine-xgboost``; without ``@`` for a stage that is not one of many.
    deps, outs
        Path relative to the root -> MD5.
    params
        Parameter file -> what the stage read of it.
    """

    name: str
    command: str
    deps: Mapping[str, str]
    outs: Mapping[str, str]
    params: Mapping[str, Mapping[str, Any]]

    @property
    def stage(self) -> str:
        """The stage's own name, e.g. ``rank``."""
        return self.name.partition("@")[0]

    @property
    def item(self) -> str:
        """What the stage is for, e.g. ``wine-xgboost``; empty for a stage that stands alone."""
        return self.name.partition("@")[2]


@dataclass(frozen=True)
class PresentStage:
    """The same stage as ``dvc.yaml`` and ``params.yaml`` describe it now.

    Attributes
    ----------
    template
        The command before values were put in, for naming where a word comes from.
    foreach
        Key of ``params.yaml`` whose items the stage runs for; empty if none.
    whole_files
        Parameter files of which every value counts.
    """

    command: str
    template: str = ""
    foreach: str = ""
    whole_files: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Pipeline:
    """The lock, the pipeline as it is now, and what is needed to compare both.

    Attributes
    ----------
    present
        Stages as they are now; a stage that is missing here is no longer in the study.
    ignored
        Whether DVC leaves a file out of hashes.
    listing_path
        Where DVC's cache keeps the list of files of a folder, by the folder's MD5.
    """

    root: Path
    locked: Mapping[str, LockedStage] = field(default_factory=dict)
    present: Mapping[str, PresentStage] = field(default_factory=dict)
    ignored: Callable[[Path], bool] = lambda _: False
    listing_path: Callable[[str], Path | None] = lambda _: None

    def producer(self, path: str) -> LockedStage | None:
        """Return the stage that writes ``path`` or a folder above it."""
        for stage in self.locked.values():
            if any(is_within(path, out) for out in stage.outs):
                return stage
        return None

    def parents(self, stage: LockedStage) -> list[LockedStage]:
        """Return the stages whose outputs ``stage`` reads, in the lock's order.

        Results of experiments that the study no longer has stay on the disk; they are no parents
        of a stage that reads the folder around them.
        """
        found = []
        for other in self.locked.values():
            exact = any(is_within(dep, out) for dep in stage.deps for out in other.outs)
            around = any(is_within(out, dep) for dep in stage.deps for out in other.outs)
            if other.name != stage.name and (exact or (around and other.name in self.present)):
                found.append(other)
        return found

    def closure(self, stage: LockedStage) -> list[LockedStage]:
        """Return ``stage`` and every stage behind it, each once, nearest first."""
        found = {stage.name: stage}
        queue = [stage]
        while queue:
            for parent in self.parents(queue.pop(0)):
                if parent.name not in found:
                    found[parent.name] = parent
                    queue.append(parent)
        return list(found.values())

    def listing(self, md5: str) -> dict[str, str] | None:
        """Return path -> MD5 of a folder's files, or ``None`` where DVC's cache has no list."""
        path = self.listing_path(md5) if md5.endswith(".dir") else None
        if path is None or not path.is_file():
            return None
        return {entry["relpath"]: entry["md5"] for entry in json.loads(path.read_text())}


def is_within(path: str, folder: str) -> bool:
    """Tell whether ``path`` is ``folder`` or below it."""
    return PurePosixPath(path).is_relative_to(folder)


def read_lock(root: Path) -> dict[str, LockedStage]:
    """Return the stages in ``dvc.lock``; none where there is no such file.

    Raises
    ------
    TrackingError
        Where the file is not a lock that DVC 3 writes.
    """
    import yaml

    path = root / "dvc.lock"
    if not path.is_file():
        return {}
    try:
        content = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        return {name: _stage(name, entry) for name, entry in content["stages"].items()}
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise TrackingError(f"{path} cannot be read: {' '.join(str(error).split())}") from error


def _stage(name: str, entry: Mapping[str, Any]) -> LockedStage:
    return LockedStage(
        name=name,
        command=entry["cmd"],
        deps=_hashes(entry.get("deps", ())),
        outs=_hashes(entry.get("outs", ())),
        params=entry.get("params", {}),
    )


def _hashes(entries: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {entry["path"]: str(entry.get("md5", "")) for entry in entries}
