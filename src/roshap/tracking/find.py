"""Which MLflow run a result belongs to, in whatever store is at hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from roshap.errors import TrackingError
from roshap.tracking.journal import DIGEST_TAG
from roshap.tracking.spec import TrackSettings
from roshap.tracking.store import Store, default_uri, open_store, tracking_uri, without_password

RELOGGED_TAG = "relogged"
_LOOKED_AT = 20


@dataclass(frozen=True)
class FoundRun:
    """A run in a store.

    Attributes
    ----------
    url
        Its page on a server; for a local store, its place in what ``roshap ui`` shows.
    commit, dirty
        Of the checkout that computed the result; ``None`` where the run does not say.
    """

    run_id: str
    store: str
    url: str
    commit: str | None
    dirty: bool | None


def existing_store(settings: TrackSettings, root: Path) -> Store | None:
    """Open the store, but never make one: ``None`` where there is none yet.

    Raises
    ------
    TrackingError
        Where a server cannot be reached.
    """
    uri = tracking_uri(settings, root)
    if uri == default_uri(root) and not (root / "mlflow.db").is_file():
        return None
    return open_store(uri, root)


def find_run(store: Store, stage: str, journal: str) -> FoundRun | None:
    """Return the finished run of ``stage`` whose journal has this digest.

    Runs of the process that computed the result come before those that were logged again, and
    later ones before earlier ones.

    Raises
    ------
    TrackingError
        Where the store fails.
    """
    with store.errors():
        experiment = store.client.get_experiment_by_name(stage)
        if experiment is None:
            return None
        runs = store.client.search_runs(
            [experiment.experiment_id],
            f"tags.{DIGEST_TAG} = '{journal}' and attributes.status = 'FINISHED'",
            order_by=["attributes.start_time DESC"],
            max_results=_LOOKED_AT,
        )
    if not runs:
        return None
    run = sorted(runs, key=lambda one: RELOGGED_TAG in one.data.tags)[0]
    page = f"#/experiments/{experiment.experiment_id}/runs/{run.info.run_id}"
    is_server = store.artifact_root is None
    base = without_password(store.uri).rstrip("/") if is_server else "http://127.0.0.1:5000"
    tags = run.data.tags
    return FoundRun(
        run_id=run.info.run_id,
        store=without_password(store.uri),
        url=f"{base}/{page}",
        # a run that was logged again carries the commit of the lock, not of the computation
        commit=None if RELOGGED_TAG in tags else tags.get("git.commit"),
        dirty=tags["git.dirty"] == "true" if "git.dirty" in tags else None,
    )


def find_or_none(store: Store | None, stage: str, journal: str | None) -> FoundRun | None:
    """Return :func:`find_run`'s answer; ``None`` also where the store does not answer."""
    if store is None or journal is None:
        return None
    try:
        return find_run(store, stage, journal)
    except TrackingError:
        return None
