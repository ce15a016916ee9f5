"""The base of every group of the configuration's schema."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """A group of values: unknown keys are refused, and nothing changes after the check."""

    model_config = ConfigDict(extra="forbid", frozen=True)
