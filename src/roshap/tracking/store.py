"""The MLflow store: where it is, how a fresh one is made, and what its failures look like.

MLflow is imported inside functions only (about one second), and with it the settings that keep it
quiet: no telemetry, no migration messages.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import logging
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from roshap.errors import TrackingError
from roshap.tracking.spec import TrackSettings

URI_VARIABLE = "MLFLOW_TRACKING_URI"
LOCK_FOLDER = Path(".roshap") / "locks"

_SQLITE = "sqlite:///"
_CREATE_TIMEOUT = 120.0  # seconds; the migrations of a fresh store take about 3.5
_BUSY_TIMEOUT = 20.0  # seconds to wait for another writer; MLflow's own value
_QUIET_VARIABLES = (
    "MLFLOW_DISABLE_TELEMETRY",
    "DO_NOT_TRACK",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT",  # standard output belongs to the stage
)
_QUIET_LOGGERS = {
    "alembic": logging.WARNING,
    # logs the traceback of every error that it raises as well; errors are reported once, by us
    "mlflow.store.db.utils": logging.CRITICAL,
    "urllib3.connectionpool": logging.ERROR,  # one warning per retry
}
# MLflow's own defaults wait about four minutes for a server that is not there.
_SHORT_RETRIES = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_JITTER": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
}


def default_uri(root: Path) -> str:
    """Return the URI of the SQLite store at the repository's root."""
    return f"{_SQLITE}{root.resolve() / 'mlflow.db'}"


def tracking_uri(settings: TrackSettings, root: Path) -> str:
    """Return the tracking URI: environment, then settings, then :func:`default_uri`.

    A relative SQLite path is anchored at ``root``, so that a command finds the same store from any
    folder of the checkout.
    """
    uri = os.environ.get(URI_VARIABLE) or settings.uri
    if not uri:
        return default_uri(root)
    path = uri.removeprefix(_SQLITE)
    if uri.startswith(_SQLITE) and path and not Path(path).is_absolute():
        return f"{_SQLITE}{root.resolve() / path}"
    return uri


def without_password(uri: str) -> str:
    """Return ``uri`` with its user and password masked, fit for messages and files."""
    parts = urlsplit(uri)
    if "@" not in parts.netloc:
        return uri
    return urlunsplit(parts._replace(netloc=f"***@{parts.netloc.rpartition('@')[2]}"))


@dataclass(frozen=True)
class Store:
    """An open MLflow store.

    Attributes
    ----------
    client
        ``mlflow.MlflowClient`` of the store.
    artifact_root
        Where experiments keep their artifacts, as a URI; ``None`` leaves it to the server.
    """

    uri: str
    client: Any
    artifact_root: str | None

    def errors(self) -> contextlib.AbstractContextManager[None]:
        """Turn MLflow's exceptions into :class:`TrackingError` for the length of a block."""
        return _as_tracking_error(self.uri)

    def experiment_id(self, name: str) -> str:
        """Return the id of the MLflow experiment ``name``, made on first use.

        An experiment that was deleted in the UI is restored: its name stays taken until
        ``mlflow gc``, so that nothing could be logged under it otherwise.
        """
        with self.errors():
            experiment = self.client.get_experiment_by_name(name)
            if experiment is None:
                return self._create_experiment(name)
            if experiment.lifecycle_stage == "deleted":
                self.client.restore_experiment(experiment.experiment_id)
            return str(experiment.experiment_id)

    def _create_experiment(self, name: str) -> str:
        from mlflow.exceptions import MlflowException

        location = f"{self.artifact_root}/{name}" if self.artifact_root else None
        try:
            return str(self.client.create_experiment(name, artifact_location=location))
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
            # another process was quicker
            return str(self.client.get_experiment_by_name(name).experiment_id)


def open_store(uri: str, root: Path) -> Store:
    """Open the store at ``uri``; a SQLite store that does not exist yet is created.

    Raises
    ------
    TrackingError
        Within a few seconds where a server cannot be reached, and where the store cannot be used.
    """
    root = root.resolve()
    ensure_store(uri, root)
    is_server = uri.startswith(("http://", "https://"))
    with _as_tracking_error(uri), short_retries():
        mlflow = import_mlflow()
        client = mlflow.MlflowClient(tracking_uri=uri)
        if is_server:
            client.search_experiments(max_results=1)
    return Store(uri, client, None if is_server else _artifact_root(root))


def ensure_store(uri: str, root: Path) -> None:
    """Create the SQLite store of ``uri`` unless it exists; others are their server's job.

    Processes that start together on a fresh store would lose each other inside MLflow's
    migrations. The database is therefore made once, under a lock, at a temporary path, and renamed:
    that it exists means that it is complete, so an existing store costs a millisecond here and no
    look at its schema (MLflow looks at it once, when the client is made).

    A checkout that was moved or copied takes its artifacts along: see :func:`_follow_move`.

    Raises
    ------
    TrackingError
        Where the store cannot be created.
    """
    if not uri.startswith(_SQLITE):
        return
    path = Path(uri.removeprefix(_SQLITE).partition("?")[0])
    if not _exists(path):
        _create_under_lock(path, root.resolve())
        return
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=_BUSY_TIMEOUT)) as database:
            # fails at once on what is no database; MLflow would try for 100 s
            database.execute("SELECT count(*) FROM sqlite_master")
            if uri == default_uri(root):
                _follow_move(database, root.resolve())
    except sqlite3.Error as error:
        raise TrackingError(
            f"cannot use the MLflow store {path}: {error} (move the file aside to start a new one)"
        ) from error


def _exists(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def _create_under_lock(path: Path, root: Path) -> None:
    from filelock import FileLock, Timeout

    name = hashlib.sha256(str(path).encode()).hexdigest()[:16]
    try:
        locks = root / LOCK_FOLDER
        locks.mkdir(parents=True, exist_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(locks / f"mlflow-{name}.lock", timeout=_CREATE_TIMEOUT):
            if not _exists(path):
                _create(path, root)
    except Timeout:
        raise TrackingError(
            f"another process has been creating the MLflow store {path} for more than "
            f"{_CREATE_TIMEOUT:.0f} s: stop it and try again"
        ) from None
    except OSError as error:
        raise TrackingError(
            f"cannot create the MLflow store {path}: {error.strerror or error} "
            "(give another with tracking.uri=..., or log nothing with tracking=none)"
        ) from error


def _create(path: Path, root: Path) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with _as_tracking_error(f"{_SQLITE}{path}"):
            import_mlflow()
            from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

            # The client would anchor the default experiment's artifacts at the working directory.
            SqlAlchemyStore(f"{_SQLITE}{fresh}", _artifact_root(root)).engine.dispose()
        os.replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)


def _artifact_root(root: Path) -> str:
    return (root / "mlruns").as_uri()


def _follow_move(database: sqlite3.Connection, root: Path) -> None:
    """Point the artifact paths of a moved or copied checkout at its present root.

    MLflow stores them absolute and has no call to change them: new artifacts would appear in the
    old place. The default experiment, whose location :func:`_create` has set, tells the old root.
    """
    new = _artifact_root(root)
    columns = {
        "experiments": "artifact_location",
        "runs": "artifact_uri",
        "logged_models": "artifact_location",
    }
    query = "SELECT artifact_location FROM experiments WHERE experiment_id = 0"
    location = (database.execute(query).fetchone() or ("",))[0] or ""
    old, _, last = location.rpartition("/")
    if last != "0" or old == new or not old.endswith("/mlruns"):
        return
    with database:  # one transaction
        for table, column in columns.items():
            database.execute(
                f"UPDATE {table} SET {column} = ? || substr({column}, ?) "
                f"WHERE substr({column}, 1, ?) = ?",
                (new, len(old) + 1, len(old) + 1, f"{old}/"),
            )


def import_mlflow() -> Any:
    """Import MLflow without telemetry and without its messages."""
    for variable in _QUIET_VARIABLES:
        os.environ.setdefault(variable, "true")
    with _collector_paused():
        import mlflow
    for name, level in _QUIET_LOGGERS.items():
        logging.getLogger(name).setLevel(level)
    return mlflow


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause the garbage collector: it finds nothing in an import and takes a tenth of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextlib.contextmanager
def short_retries() -> Iterator[None]:
    """Bound what MLflow waits for a server to a few seconds, unless the user has said otherwise."""
    added = {name: value for name, value in _SHORT_RETRIES.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextlib.contextmanager
def _as_tracking_error(uri: str) -> Iterator[None]:
    try:
        yield
    except TrackingError:
        raise
    except Exception as error:
        # MLflow lets through what requests, SQLAlchemy, boto ... raise, depending on the store.
        raise TrackingError(_explain(uri, error)) from error


def _explain(uri: str, error: Exception) -> str:
    reason = " ".join(str(error).split()) or type(error).__name__
    if "Max retries exceeded" in reason or "Connection" in type(error).__name__:
        reason = _root_cause(error)
        advice = f"start it, or change tracking.uri or {URI_VARIABLE}, or use tracking=none"
        return f"cannot reach the MLflow server {without_password(uri)}: {reason} ({advice})"
    if len(reason) > 400:
        reason = f"{reason[:400]}..."
    return f"MLflow store {without_password(uri)}: {reason}"


def _root_cause(error: BaseException) -> str:
    """Return what the operating system said below requests' and urllib3's wrappers."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        if isinstance(cause, TimeoutError):
            return "no answer in time"
        cause = cause.__cause__ or cause.__context__
    return "no connection"
