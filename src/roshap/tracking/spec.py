"""The settings of tracking, as ``conf/tracking/*.yaml`` gives them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class TrackSettings(BaseModel):
    """Whether and where runs are logged.

    Attributes
    ----------
    enabled
        ``False`` logs nothing: :func:`roshap.tracking.track` yields a run that records nothing.
    uri
        MLflow tracking URI; ``None`` means the SQLite store at the repository's root. The
        environment variable ``MLFLOW_TRACKING_URI`` wins over both.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = True
    uri: str | None = None
