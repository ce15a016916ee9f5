"""What a stage logs, kept beside its results, so that ``roshap relog`` can log it again.

After ``dvc pull``, or where DVC takes a result from its cache, no MLflow server knows of it. The
journal is a file in the stage's output folder with everything that the stage has said: parameters,
metrics with their steps, tags, note, inputs and the artifacts' paths. It holds nothing that differs
between executions (times, commit, run ids), so that the output stays byte-stable.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from roshap.compute.files import write_json
from roshap.errors import TrackingError
from roshap.tracking.data import DataInput

JOURNAL = "mlflow.json"
FORMAT = "roshap.journal/1"
DIGEST_TAG = "journal"
"""Tag of a run with its journal's digest: by it a result finds its run in any store."""


def is_time(metric: str) -> bool:
    """Tell whether a metric differs in every execution, e.g. ``seconds.lime`` or ``time.x``."""
    return not {"seconds", "milliseconds", "time"}.isdisjoint(metric.split("."))


@dataclass
class Journal:
    """Everything that one run says, children included.

    Attributes
    ----------
    metrics
        Name -> ``[step, value]`` in the order of logging, without :func:`is_time`.
    artifacts
        ``[path, folder]``: path below the journal's folder, ``"."`` for all of it.
    """

    stage: str
    experiment: str
    command: str
    params: dict[str, Any] = field(default_factory=dict)
    data: list[dict[str, Any]] = field(default_factory=list)
    metrics: dict[str, list[list[Any]]] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    note: str | None = None
    artifacts: list[list[str | None]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    children: list[Journal] = field(default_factory=list)

    def add(self, name: str, step: int, value: float) -> None:
        """Keep one value of a metric."""
        if not is_time(name):
            self.metrics.setdefault(name, []).append([int(step), float(value)])

    def inputs(self) -> list[DataInput]:
        """Return the data sets that the run read."""
        return [DataInput(**one) for one in self.data]

    def last(self, metric: str) -> float | None:
        """Return the value of a metric at its highest step; the later one if two have it."""
        points = self.metrics.get(metric)
        return max(enumerate(points), key=lambda at: (at[1][0], at[0]))[1][1] if points else None

    def write(self, folder: Path) -> Path:
        """Write ``folder/mlflow.json``; return its path."""
        path = folder / JOURNAL
        write_json(path, {"format": FORMAT, **_encode(asdict(self))})
        return path

    def digest(self) -> str:
        """Return the SHA-256 of the content."""
        text = json.dumps(_encode(asdict(self)), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


def read_journal(folder: Path) -> Journal | None:
    """Return the journal of a result, or ``None`` where there is none.

    Raises
    ------
    TrackingError
        Where the file is not a journal.
    """
    path = folder / JOURNAL
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.pop("format") != FORMAT:
            raise TrackingError(f"{path} has an unknown format")
        return _journal(content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TrackingError(f"{path} is not a stage's journal: {error}") from error


def _journal(content: Mapping[str, Any]) -> Journal:
    fields = dict(content)
    fields["children"] = [_journal(child) for child in fields["children"]]
    fields["metrics"] = {
        name: [[step, float(value)] for step, value in points]
        for name, points in fields["metrics"].items()
    }
    return Journal(**fields)


def _encode(value: Any) -> Any:
    """Return ``value`` for JSON, which has no infinity: those become text."""
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


class Recorder:
    """Keeps a journal of what a stage logs.

    Parameters
    ----------
    folder
        Folder of the stage's output; artifacts outside it are not in the journal.
    """

    def __init__(self, journal: Journal, folder: Path | None) -> None:
        self.journal = journal
        self.folder = folder.resolve() if folder else None

    def metrics(self, points: Iterable[tuple[str, float, int]]) -> None:
        """Keep ``(name, value, step)``."""
        for name, value, step in points:
            self.journal.add(name, step, value)

    def artifacts(self, paths: Iterable[Path], folder: str | None) -> None:
        """Keep the paths of files and folders."""
        for path in paths:
            inside = path.resolve()
            if self.folder and inside.is_relative_to(self.folder):
                self.journal.artifacts.append([inside.relative_to(self.folder).as_posix(), folder])

    @contextlib.contextmanager
    def child(self, name: str, params: Mapping[str, Any] | None) -> Iterator[Recorder]:
        """Keep what a nested run says."""
        journal = Journal(self.journal.stage, name, "", params=dict(params or {}))
        self.journal.children.append(journal)
        yield Recorder(journal, self.folder)


def series(
    name: str, steps: Sequence[int], values: Sequence[float]
) -> Iterator[tuple[str, float, int]]:
    """Return ``(name, value, step)`` of one metric against its steps."""
    return ((name, value, step) for step, value in zip(steps, values, strict=True))
