"""One MLflow run per executed stage: what it records, how it ends, and what if it is killed.

Runs are written through ``MlflowClient`` with an explicit run id. There is no global active run, so
that ``MLFLOW_RUN_ID`` and ``MLFLOW_EXPERIMENT_ID``, which ``mlflow run`` puts in the environment,
cannot make several stages write into one run.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from roshap.errors import TrackingError
from roshap.tracking import lease
from roshap.tracking.data import DataInput, dataset_input, without_origin
from roshap.tracking.journal import DIGEST_TAG, JOURNAL, Journal, Recorder, series
from roshap.tracking.parameters import MAX_TAG, flatten, safe_key, shorten
from roshap.tracking.provenance import GitState, git_state, library_versions
from roshap.tracking.record import write_record
from roshap.tracking.spec import TrackSettings
from roshap.tracking.store import (
    Store,
    open_store,
    short_retries,
    tracking_uri,
    without_password,
)

LEASE_TAG = "process.lease"
MAIN_LIBRARIES = ("catboost", "lightgbm", "numpy", "scikit-learn", "shap", "torch", "xgboost")
"""Libraries whose version is a tag of its own, to filter runs by."""

_PARAMS_PER_BATCH = 100
_METRICS_PER_BATCH = 1000
_MAX_RUNNING = 1000


class StageRun:
    """A run that only keeps a journal: what stages write to where tracking is off.

    Where tracking is on, :func:`track` yields a subclass that logs to MLflow as well, and every
    method raises :class:`~roshap.errors.TrackingError` if the store refuses or cannot be reached.

    Attributes
    ----------
    run_id, tracking_uri, artifact_uri, url
        Of the MLflow run; ``url`` is its page for stores that are servers. All ``None`` here.
    """

    run_id: str | None = None
    tracking_uri: str | None = None
    artifact_uri: str | None = None
    url: str | None = None

    def __init__(self, recorder: Recorder | None = None) -> None:
        self.recorder = recorder or Recorder(Journal("", "", ""), None)

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Log several metrics at once, at ``step`` (0 if ``None``)."""
        self._log_points([(name, value, step or 0) for name, value in metrics.items()])

    def log_series(self, name: str, steps: Sequence[int], values: Sequence[float]) -> None:
        """Log one metric against k, epochs, size ...: ``values[i]`` at the integer ``steps[i]``."""
        self._log_points(list(series(name, steps, values)))

    def _log_points(self, points: Sequence[tuple[str, float, int]]) -> None:
        """Log ``(name, value, step)``."""
        self.recorder.metrics(points)

    def log_artifacts(self, paths: Iterable[Path], folder: str | None = None) -> None:
        """Copy files, and the content of folders, into ``folder`` of the run's artifacts."""
        self.recorder.artifacts(paths, folder)

    def log_text(self, text: str, file: str) -> None:
        """Store ``text`` as the artifact ``file``."""
        self.recorder.journal.texts[file] = text

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags; a value is cut to MLflow's 8000 characters."""
        self.recorder.journal.tags |= {key: str(value) for key, value in tags.items()}

    def note(self, markdown: str) -> None:
        """Set the description that the UI shows on the run's page."""
        self.recorder.journal.note = markdown

    @contextlib.contextmanager
    def child(self, name: str, params: Mapping[str, Any] | None = None) -> Iterator[StageRun]:
        """Open a nested run, e.g. for one method, to compare in the UI."""
        with self.recorder.child(name, params) as recorder:
            yield StageRun(recorder)


class _MlflowRun(StageRun):
    """A run in an MLflow store; what its methods do is said by :class:`StageRun`."""

    def __init__(
        self,
        store: Store,
        experiment_id: str,
        name: str,
        tags: Mapping[str, str],
        recorder: Recorder | None = None,
    ) -> None:
        super().__init__(recorder)
        self._store = store
        self._experiment_id = experiment_id
        self._tags = dict(tags)
        with store.errors():
            # all tags in one transaction: a run that is killed at once can still be recognised
            run = store.client.create_run(experiment_id, run_name=name, tags=_fit_tags(tags))
        self.run_id: str = run.info.run_id
        self.artifact_uri: str = run.info.artifact_uri
        self.tracking_uri: str = without_password(store.uri)
        if store.artifact_root is None:
            page = f"#/experiments/{experiment_id}/runs/{self.run_id}"
            self.url = f"{self.tracking_uri.rstrip('/')}/{page}"

    def _log_points(self, points: Sequence[tuple[str, float, int]]) -> None:
        from mlflow.entities import Metric

        super()._log_points(points)
        now = int(time.time() * 1000)
        metrics = [Metric(safe_key(name), float(v), now, int(step)) for name, v, step in points]
        for batch in _chunks(metrics, _METRICS_PER_BATCH):
            with self._store.errors():
                self._store.client.log_batch(self.run_id, metrics=batch, synchronous=True)

    def log_params(self, params: Mapping[str, Any]) -> None:
        """Log nested ``params`` flattened; values above MLflow's limit whole in an artifact."""
        from mlflow.entities import Param

        flat = flatten(params)
        logged = [Param(safe_key(key), shorten(value)) for key, value in flat.items()]
        for batch in _chunks(logged, _PARAMS_PER_BATCH):
            with self._store.errors():
                self._store.client.log_batch(self.run_id, params=batch, synchronous=True)
        long = {key: value for key, value in flat.items() if value != shorten(value)}
        if long:
            self._send_text(json.dumps(long, indent=2, sort_keys=True), "long_params.json")

    def log_artifacts(self, paths: Iterable[Path], folder: str | None = None) -> None:
        paths = list(paths)
        super().log_artifacts(paths, folder)
        for path in paths:
            if not path.exists():
                raise TrackingError(f"cannot log {path}: no such file or folder")
            log = (
                self._store.client.log_artifacts
                if path.is_dir()
                else self._store.client.log_artifact
            )
            with self._store.errors():
                log(self.run_id, str(path), folder)

    def log_text(self, text: str, file: str) -> None:
        super().log_text(text, file)
        self._send_text(text, file)

    def _send_text(self, text: str, file: str) -> None:
        with self._store.errors():
            self._store.client.log_text(self.run_id, text, file)

    def log_data(self, data: Iterable[DataInput]) -> None:
        """Log data sets as inputs of the run."""
        inputs = [dataset_input(one) for one in data]
        if inputs:
            with self._store.errors():
                self._store.client.log_inputs(self.run_id, datasets=inputs)

    def set_tags(self, tags: Mapping[str, str]) -> None:
        super().set_tags(tags)
        self.send_tags(tags)

    def send_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags that are of this execution only: they are not in the journal."""
        from mlflow.entities import RunTag

        entities = [RunTag(key, value) for key, value in _fit_tags(tags).items()]
        for batch in _chunks(entities, _PARAMS_PER_BATCH):
            with self._store.errors():
                self._store.client.log_batch(self.run_id, tags=batch, synchronous=True)

    def note(self, markdown: str) -> None:
        super().note(markdown)
        if len(markdown) > MAX_TAG:
            # whole lines, so that a table in it stays a table
            markdown = f"{markdown[: MAX_TAG - 2].rpartition(chr(10))[0]}\n…"
        self.send_tags({"mlflow.note.content": markdown})

    @contextlib.contextmanager
    def child(self, name: str, params: Mapping[str, Any] | None = None) -> Iterator[StageRun]:
        tags = {**self._tags, "mlflow.parentRunId": self.run_id}
        with self.recorder.child(name, params) as recorder:
            run = _MlflowRun(self._store, self._experiment_id, name, tags, recorder)
        with run.ended():
            run.log_params(params or {})
            yield run

    @contextlib.contextmanager
    def ended(self) -> Iterator[None]:
        """End the run with the block: FINISHED, FAILED on an error, KILLED on Ctrl-C."""
        try:
            yield
        except BaseException as error:
            self._end_badly(error)
            raise
        with self._store.errors():
            self._store.client.set_terminated(self.run_id, "FINISHED")

    def _end_badly(self, error: BaseException) -> None:
        status = "KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED"
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        # What matters is the error of the block: a store that fails as well must not hide it.
        with contextlib.suppress(TrackingError), short_retries():
            self.send_tags({"error": reason})
            with self._store.errors():
                self._store.client.set_terminated(self.run_id, status)


@contextlib.contextmanager
def track(
    settings: TrackSettings,
    *,
    stage: str,
    experiment: str,
    study: str,
    params: Mapping[str, Any],
    command: str,
    root: Path,
    out: Path | None = None,
    data: Iterable[DataInput] = (),
    dependencies: Mapping[str, str] | None = None,
    journal: Path | None = None,
    store_root: Path | None = None,
) -> Iterator[StageRun]:
    """Record the block as one MLflow run of the experiment ``stage``, named ``experiment``.

    Runs of the same stage whose process was killed are closed as KILLED first; those that are
    alive, or belong to another checkout, are left alone. When the block has ended well,
    ``.roshap/runs/<stage>/<experiment>.json`` says which run it was.

    Parameters
    ----------
    params
        The nested configuration; logged flattened (``bootstrap.runs``).
    command
        The command that makes the result again.
    root
        The repository's root.
    out
        The folder that the stage writes; a tag, relative to ``root`` where it lies below it.
    data
        The data sets that the stage reads.
    dependencies
        MD5 (as DVC has it) of each path that the stage depends on.
    journal
        Folder that gets the journal (:mod:`roshap.tracking.journal`), tracking on or off.
    store_root
        The checkout whose store is used, where it is not ``root``: DVC runs queued experiments in
        a copy, which is removed afterwards.

    Yields
    ------
    StageRun
        The run to log to; one that only keeps a journal if ``settings.enabled`` is false.

    Raises
    ------
    TrackingError
        Before the block starts, within a few seconds, where the store cannot be used; later, where
        the store stops answering.
    """
    root, data = root.resolve(), list(data)
    store_root = (store_root or root).resolve()
    kept = Journal(
        stage, experiment, command, params=dict(params), data=[without_origin(one) for one in data]
    )
    recorder = Recorder(kept, journal)
    if not settings.enabled:
        yield StageRun(recorder)
        if journal:
            kept.write(journal)
        return
    store = open_store(tracking_uri(settings, store_root), store_root)
    experiment_id = store.experiment_id(stage)
    close_killed(store, experiment_id, store_root)
    git = git_state(root)
    where = _relative(out, root) if out else None
    tags = {
        "stage": stage,
        "experiment": experiment,
        "study": study,
        **({"out": where} if where else {}),
        **_origin_tags(command, git),
        **{f"data.{one.name}": one.digest for one in data},
        **{f"dvc.md5.{path}": md5 for path, md5 in (dependencies or {}).items()},
    }
    started = _now()
    with lease.held_lease(store_root) as token:
        run = _MlflowRun(store, experiment_id, experiment, {**tags, LEASE_TAG: token}, recorder)
        with run.ended():
            run.log_params(params)
            run.log_data(data)
            yield run
            if journal:
                kept.write(journal)
            run.send_tags({DIGEST_TAG: kept.digest()})
    record = {
        "run_id": run.run_id,
        "tracking_uri": run.tracking_uri,
        "artifact_uri": run.artifact_uri,
        "out": where,
        "study": study,
        "commit": git.commit,
        "dirty": git.dirty,
        "started": started,
        "ended": _now(),
    }
    write_record(root, stage, experiment, record)


def log_again(
    store: Store,
    journal: Journal,
    folder: Path,
    *,
    study: str,
    root: Path,
    tags: Mapping[str, str],
) -> str:
    """Log a finished stage from its journal and its files; return the run's id.

    Parameters
    ----------
    journal, folder
        What the stage logged, and its output, which holds the artifacts.
    tags
        What is known of the execution, e.g. the commit. There are no times: MLflow shows when the
        run was logged again.
    """
    experiment_id = store.experiment_id(journal.stage)
    close_killed(store, experiment_id, root)
    all_tags = {
        "stage": journal.stage,
        "experiment": journal.experiment,
        "study": study,
        "out": _relative(folder.parent, root),
        "command": journal.command,
        "mlflow.source.name": journal.command,
        "mlflow.source.type": "LOCAL",
        **{f"data.{one.name}": one.digest for one in journal.inputs()},
        **tags,
    }
    with lease.held_lease(root) as token:
        all_tags[LEASE_TAG] = token
        run = _MlflowRun(store, experiment_id, journal.experiment, all_tags)
        with run.ended():
            run.log_data(journal.inputs())
            _replay(run, journal, folder)
            run.send_tags({DIGEST_TAG: journal.digest()})
    return run.run_id


def _replay(run: _MlflowRun, journal: Journal, folder: Path) -> None:
    """Log everything in a journal to an open run, its children in theirs."""
    run.log_params(journal.params)
    for name, points in journal.metrics.items():
        run.log_series(name, [step for step, _ in points], [value for _, value in points])
    run.set_tags(journal.tags)
    if journal.note is not None:
        run.note(journal.note)
    for path, target in journal.artifacts:
        for file in _files(folder / str(path)):
            # what stood in a logged folder keeps its place below the folder that it went to
            inside = (
                file.parent.relative_to(folder / str(path))
                if file != folder / str(path)
                else Path()
            )
            where = (Path(target or "") / inside).as_posix()
            run.log_artifacts([file], None if where == "." else where)
    for file_name, text in journal.texts.items():
        run.log_text(text, file_name)
    for child in journal.children:
        with run.child(child.experiment) as nested:
            assert isinstance(nested, _MlflowRun)
            _replay(nested, child, folder)


def _files(path: Path) -> list[Path]:
    """Return a file, or the files of a folder without the journal itself."""
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [file for file in found if file.is_file() and file.name != JOURNAL]


def close_killed(store: Store, experiment_id: str, root: Path) -> list[str]:
    """Close the runs whose process has died without ending them; returns their ids.

    Children carry the lease of their parent and are closed with it.
    """
    with store.errors():
        running = store.client.search_runs(
            [experiment_id], "attributes.status = 'RUNNING'", max_results=_MAX_RUNNING
        )
    by_lease: dict[str, list[str]] = {}
    for run in running:
        if token := run.data.tags.get(LEASE_TAG):
            by_lease.setdefault(token, []).append(run.info.run_id)
    closed = []
    for token, run_ids in by_lease.items():
        with lease.dead_lease(root, token) as dead, store.errors():
            # A run may have ended well between the search and the look at its lease.
            lost = [i for i in run_ids if dead and _is_running(store, i)]
            for run_id in lost:
                store.client.set_terminated(run_id, "KILLED")
            closed += lost
    return closed


def _is_running(store: Store, run_id: str) -> bool:
    return bool(store.client.get_run(run_id).info.status == "RUNNING")


def _origin_tags(command: str, git: GitState) -> dict[str, str]:
    """Return the tags that say which code, libraries, person and process made a run."""
    versions = library_versions()
    tags = {
        "command": command,
        "versions": json.dumps(versions, sort_keys=True),
        "process": f"pid {os.getpid()} on {socket.gethostname()}",
        **{f"version.{name}": versions[name] for name in MAIN_LIBRARIES if name in versions},
        # what the UI shows in its columns Source, Version and User
        "mlflow.source.name": command,
        "mlflow.source.type": "LOCAL",
    }
    with contextlib.suppress(OSError, KeyError):  # a container without a user entry
        tags["mlflow.user"] = getpass.getuser()
    if git.commit:
        tags |= {
            "git.commit": git.commit,
            "git.dirty": str(git.dirty).lower(),
            "mlflow.source.git.commit": git.commit,
        }
    if git.branch:
        tags |= {"git.branch": git.branch, "mlflow.source.git.branch": git.branch}
    if exp := os.environ.get("DVC_EXP_NAME"):
        tags["dvc.exp"] = exp
    return tags


def _fit_tags(tags: Mapping[str, str]) -> dict[str, str]:
    return {safe_key(key): shorten(str(value), MAX_TAG) for key, value in tags.items()}


def _relative(path: Path, root: Path) -> str:
    path = path.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _chunks(items: list[Any], size: int) -> Iterator[list[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
