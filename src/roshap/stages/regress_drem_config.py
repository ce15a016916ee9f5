"""The schema of ``conf/regression/drem_*.yaml``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from roshap.stages.strict import Strict


class DremConfig(Strict):
    """An experiment with DREM and its rivals."""

    method: Literal["drem"]
    name: str
    seed: int = Field(ge=0)

    @property
    def reads_table(self) -> bool:
        """Whether the experiment needs the data set of the configuration."""
        return True
