"""Data sets as inputs of MLflow runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput

_MAX_DIGEST = 36  # characters that MLflow keeps of a digest


@dataclass(frozen=True)
class DataInput:
    """A data set that a stage reads.

    Attributes
    ----------
    digest
        SHA-256 of the canonical table. MLflow keeps 36 characters; the whole one is in the
        profile and in the tag ``data.<name>``.
    source
        Where it came from, as in ``Dataset.source``: ``url``, ``file`` or ``path``, ``reader``, ...
    n, p
        Numbers of samples and features, where known.
    context
        What the stage does with it, e.g. ``"training"``.
    """

    name: str
    digest: str
    source: Mapping[str, Any] = field(default_factory=dict)
    n: int | None = None
    p: int | None = None
    context: str = "training"


def without_origin(data: DataInput) -> dict[str, Any]:
    """Return ``data`` as plain values that are the same on every machine.

    What served the files this time (a mirror, the cache) is left out.
    """
    values = {name: getattr(data, name) for name in data.__dataclass_fields__}
    return {**values, "source": {k: v for k, v in data.source.items() if k != "obtained"}}


def dataset_input(data: DataInput) -> DatasetInput:
    """Return ``data`` as MLflow's entity."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    kind, source = _mlflow_source(data.source)
    profile = {
        "num_rows": data.n,
        "num_features": data.p,
        "sha256": data.digest,
        "source": dict(data.source),
    }
    dataset = Dataset(
        name=data.name,
        digest=data.digest[:_MAX_DIGEST],
        source_type=kind,
        source=json.dumps(source, sort_keys=True, default=str),
        profile=json.dumps(profile, sort_keys=True, default=str),
    )
    return DatasetInput(dataset, tags=[InputTag("mlflow.data.context", data.context)])


def _mlflow_source(source: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the type and content of a source that ``mlflow.data.get_source`` understands."""
    urls = [url for file in source.get("files", ()) for url in file.get("urls", ())]
    if source.get("url") or urls:
        return "http", {"url": source.get("url") or urls[0]}
    for key in ("path", "file"):
        if source.get(key):
            return "local", {"uri": str(source[key])}
    return "code", {"tags": {key: str(value) for key, value in source.items()}}
