"""The schema of ``conf/regression/spectral_*.yaml``."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from roshap.stages.strict import Strict

FilterName = Literal["tikhonov", "iterated_tikhonov", "tsvd", "landweber", "showalter", "nu_method"]
RuleName = Literal["discrepancy", "gcv", "l_curve", "quasi_optimality", "loo", "kfold"]
ProblemName = Literal["shaw", "phillips", "deriv2", "gravity", "heat", "foxgood", "baart", "blur"]


class ProblemsConfig(Strict):
    """Test problems with known solutions."""

    names: list[ProblemName] = Field(min_length=1)
    n: int = Field(ge=8)
    blur_n: int = Field(ge=8)
    noise: list[float] = Field(min_length=1)
    draws: int = Field(ge=1)


class PictureConfig(Strict):
    """A picture that is blurred and made noisy, then restored."""

    image: Literal["china.jpg", "flower.jpg"]
    every: int = Field(ge=1)
    blur: float = Field(gt=0)
    noise: float = Field(gt=0)
    boundary: Literal["periodic", "mirrored"]


class TableConfig(Strict):
    """Kernel regression or classification on the data set of the configuration."""

    repeats: int = Field(ge=1)
    test_share: float = Field(gt=0, lt=1)
    log: bool
    gammas: list[float] = Field(min_length=1)
    folds: int = Field(ge=2)


class SpectralConfig(Strict):
    """An experiment with spectral filters: problems, a picture or a table."""

    method: Literal["spectral"]
    name: str
    seed: int = Field(ge=0)
    filters: list[FilterName] = Field(min_length=1)
    rules: list[RuleName] = Field(min_length=1)
    levels: int = Field(ge=5)
    problems: ProblemsConfig | None = None
    picture: PictureConfig | None = None
    table: TableConfig | None = None

    @model_validator(mode="after")
    def _one_study(self) -> Self:
        given = [k for k in ("problems", "picture", "table") if getattr(self, k) is not None]
        if len(given) != 1:
            raise ValueError(f"give one of problems, picture and table, not {given or 'none'}")
        return self

    @property
    def reads_table(self) -> bool:
        """Whether the experiment needs the data set of the configuration."""
        return self.table is not None
