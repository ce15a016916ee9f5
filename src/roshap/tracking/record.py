"""Which MLflow run made a result: a small file of its own, outside everything that DVC hashes.

A run id must not sit in a file that a later stage depends on: it differs in every execution, and
DVC would re-run all that follows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from roshap.compute.files import write_json

RECORD_FOLDER = Path(".roshap") / "runs"


def record_path(root: Path, stage: str, experiment: str) -> Path:
    """Return the path of the record of the latest finished run of ``stage`` for ``experiment``."""
    return root / RECORD_FOLDER / quote(stage, safe=" ") / f"{quote(experiment, safe=' ')}.json"


def read_record(root: Path, stage: str, experiment: str) -> dict[str, Any] | None:
    """Return the record, or ``None`` where the stage has never finished here.

    Keys: ``run_id``, ``tracking_uri``, ``artifact_uri``, ``out``, ``study``, ``commit``, ``dirty``,
    ``started`` and ``ended`` (ISO 8601, UTC).
    """
    try:
        record = json.loads(record_path(root, stage, experiment).read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return record if isinstance(record, dict) else None


def write_record(root: Path, stage: str, experiment: str, record: Mapping[str, Any]) -> Path:
    """Write the record atomically and return its path."""
    path = record_path(root, stage, experiment)
    write_json(path, record)
    return path
