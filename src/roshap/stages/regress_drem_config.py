"""The schema of ``conf/regression/drem_*.yaml``."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from roshap.stages.strict import Strict

#: Studies that sweep a quantity of the data, and therefore need its values.
SWEEPS = ("noise", "rows", "features")


class DremConfig(Strict):
    """An experiment with DREM and its rivals."""

    method: Literal["drem"]
    name: str
    study: Literal["epochs", "noise", "rows", "features", "criteria", "classify", "signals"]
    seed: int = Field(ge=0)
    repeats: int = Field(ge=1)
    epochs: int = Field(ge=1)
    test_share: float = Field(gt=0, lt=1)
    values: tuple[int, ...]
    optimisers: dict[str, dict[str, Any]]

    @property
    def reads_table(self) -> bool:
        """Whether the experiment needs the data set of the configuration."""
        return self.study != "signals"

    @model_validator(mode="after")
    def _values_are_given(self) -> DremConfig:
        if self.study in (*SWEEPS, "criteria") and not self.values:
            raise ValueError(f"values: the numbers to try are missing (study {self.study})")
        if any(value < 1 for value in self.values):
            raise ValueError(f"values={list(self.values)}: numbers of at least 1")
        return self
