"""The checked schema of ``conf/``: an error about a key or a type names what is valid."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, Field, ValidationError, model_validator

from roshap.datasets.spec import DatasetSpec
from roshap.errors import ConfigError
from roshap.models.spec import ModelSpec
from roshap.stages.regress_drem_config import DremConfig
from roshap.stages.regress_spectral_config import SpectralConfig
from roshap.stages.strict import Strict
from roshap.tracking.spec import TrackSettings

#: Runs of a study that does not say how many.
DEFAULT_RUNS = 100


class BootstrapConfig(Strict):
    """``conf/bootstrap``: how the runs are drawn, when there are enough, what is kept of them."""

    runs: int = Field(ge=2)
    strategy: Literal["plain", "stratified", "redraw"]
    min_per_class: int = Field(ge=1)
    aggregate: Literal["sum", "mean"]
    screening: Literal["none", "variance", "univariate"]
    keep: int = Field(ge=1)
    row_level: bool
    row_values: int = Field(ge=1)
    stop: Literal["fixed", "settled"]
    looks: list[Annotated[int, Field(ge=2)]] = Field(min_length=1)
    eps: float = Field(ge=0)
    alpha: float = Field(gt=0, lt=1)
    randomness: int = Field(ge=0)
    groups_threshold: float | None = Field(gt=0, le=1)

    @model_validator(mode="before")
    @classmethod
    def _fill_runs(cls, values: Any) -> Any:
        """Give ``runs: null`` its number: 100, or what the looks of stop=settled need."""
        if not isinstance(values, Mapping) or values.get("runs", 0) is not None:
            return values
        looks = values.get("looks")
        counts = [look for look in looks if isinstance(look, int)] if looks else []
        settled = values.get("stop") == "settled" and counts
        return {**values, "runs": max(counts) if settled else DEFAULT_RUNS}


class ExplainerConfig(Strict):
    """``conf/explainer``: which routine computes the attributions."""

    method: Literal["auto", "native", "kernel", "shap", "permutation"]
    chunk_mb: float = Field(gt=0)


class ComputeConfig(Strict):
    """``conf/compute``: where the runs execute. Never changes a result."""

    backend: str
    address: str | None
    workers: int = Field(ge=0)
    threads: int = Field(ge=1)
    resume: bool
    log_every: float = Field(gt=0)


class LimeConfig(Strict):
    """Options of the LIME ranker."""

    rows: int = Field(ge=1)
    repeats: int = Field(ge=1)
    samples: int = Field(ge=10)
    features: int = Field(ge=1)


class InformationGainConfig(Strict):
    """Options of the information gain ranker."""

    neighbors: int = Field(ge=1)
    rows: int = Field(ge=10)


class PermutationConfig(Strict):
    """Options of the permutation ranker."""

    repeats: int = Field(ge=1)
    rows: int = Field(ge=10)


class SelectionConfig(Strict):
    """``conf/selection``: how many features are taken, and how rankers are compared."""

    k: Annotated[int, Field(ge=1)] | Literal["auto"]
    k_range: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=2, max_length=2)]
    enabled: bool
    upto: int = Field(ge=1)
    runs: int | None = Field(ge=2)
    test_size: float = Field(gt=0, lt=1)
    folds: int = Field(ge=0)
    aside: float = Field(gt=0, lt=1)
    rankers: tuple[Literal["shap", "gain", "lime", "ig", "roshap", "permutation"], ...]
    lime: LimeConfig
    ig: InformationGainConfig
    permutation: PermutationConfig


class SimulationConfig(Strict):
    """``conf/simulation``: the paper's simulation study."""

    few: int = Field(ge=2)
    runs: int = Field(ge=2)
    seeds: int = Field(ge=1)
    top: int = Field(ge=1)


class RankConfig(Strict):
    """What the rank stage shows."""

    top: int = Field(ge=1)
    print: int = Field(ge=1)


class FetchConfig(Strict):
    """Where data may come from besides the sources of the data set."""

    mirror: str | None


class ReportConfig(Strict):
    """Which study is reported on."""

    params: str
    results: str


class RootConfig(Strict):
    """One experiment: everything that a stage may need."""

    dataset: DatasetSpec
    model: ModelSpec
    bootstrap: BootstrapConfig
    selection: SelectionConfig
    explainer: ExplainerConfig
    compute: ComputeConfig
    tracking: TrackSettings
    rank: RankConfig
    simulation: SimulationConfig
    fetch: FetchConfig
    report: ReportConfig
    seed: int = Field(ge=0)
    experiment: str | None
    objective: str | None
    out: str
    regression: DremConfig | SpectralConfig | None = Field(default=None, discriminator="method")


def validate(values: Mapping[str, Any]) -> RootConfig:
    """Check a composed configuration.

    Raises
    ------
    ConfigError
        One line: each wrong key with what is wrong and what is allowed.
    """
    try:
        return RootConfig.model_validate(values)
    except ValidationError as error:
        raise ConfigError("; ".join(_explain(item) for item in error.errors())) from None


def _explain(item: Mapping[str, Any]) -> str:
    """Say one of pydantic's findings in a line."""
    # where a group has several schemas, pydantic puts the name of the schema after the group's
    parts = [str(part) for part in item["loc"]]
    path = ".".join(parts[:1] + parts[2:] if parts[0] == "regression" else parts)
    if item["type"] == "extra_forbidden":
        return unknown_key(path)
    if item["type"] == "missing":
        return f"{path} is missing"
    message = item["msg"][0].lower() + item["msg"][1:]
    return f"{path}={item['input']!r}: {message}"


def unknown_key(path: str) -> str:
    """Describe an unknown configuration key with the valid ones of its group."""
    *groups, key = path.split(".")
    valid = valid_keys(groups)
    where = ".".join(groups) or "the configuration"
    if not valid:
        return f"unknown configuration key {path!r}"
    return f"unknown key {key!r} in {where}{suggestion(key, valid)}"


def valid_keys(groups: Iterable[str]) -> list[str]:
    """Return the keys that the schema knows below ``groups``; empty where it ends."""
    models: list[type[BaseModel]] = [RootConfig]
    for group in groups:
        kinds = [
            model.model_fields[group].annotation for model in models if group in model.model_fields
        ]
        members = [member for kind in kinds for member in (get_args(kind) or [kind])]
        models = [m for m in members if isinstance(m, type) and issubclass(m, BaseModel)]
    return list(dict.fromkeys(name for model in models for name in model.model_fields))


def suggestion(word: str, valid: Iterable[str]) -> str:
    """Return `` (did you mean ...; valid: ...)`` for a misspelt word."""
    names = sorted(valid)
    close = difflib.get_close_matches(word, names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f" ({hint}valid: {', '.join(names)})"
