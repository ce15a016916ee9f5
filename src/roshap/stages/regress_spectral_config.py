"""The schema of ``conf/regression/spectral_*.yaml``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from roshap.stages.strict import Strict


class SpectralConfig(Strict):
    """An experiment with spectral filters."""

    method: Literal["spectral"]
    name: str
    seed: int = Field(ge=0)

    @property
    def reads_table(self) -> bool:
        """Whether the experiment needs the data set of the configuration."""
        return False
