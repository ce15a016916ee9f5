"""MLflow runs and provenance. Importing it is quick: MLflow is imported when a run is opened."""

from __future__ import annotations

from roshap.tracking.data import DataInput
from roshap.tracking.journal import JOURNAL, Journal, read_journal
from roshap.tracking.provenance import (
    GitState,
    command_line,
    file_md5,
    git_state,
    library_versions,
    path_md5,
    provenance,
    seal,
    without_root,
    write_lineage,
)
from roshap.tracking.record import read_record, record_path
from roshap.tracking.runs import StageRun, track
from roshap.tracking.spec import TrackSettings
from roshap.tracking.store import default_uri, ensure_store, tracking_uri

__all__ = [
    "JOURNAL",
    "DataInput",
    "GitState",
    "Journal",
    "StageRun",
    "TrackSettings",
    "command_line",
    "default_uri",
    "ensure_store",
    "file_md5",
    "git_state",
    "library_versions",
    "path_md5",
    "provenance",
    "read_journal",
    "read_record",
    "record_path",
    "seal",
    "track",
    "tracking_uri",
    "without_root",
    "write_lineage",
]
