"""``roshap study NAME``: compose ``conf/study/NAME.yaml`` and write it as DVC's ``params.yaml``."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from roshap.compute.files import write_bytes
from roshap.errors import ConfigError, RoshapError
from roshap.stages.config import Strict, suggestion
from roshap.stages.workspace import Workspace


class Experiment(Strict):
    """One experiment of a study and the few knobs that it may override."""

    dataset: str
    model: str
    runs: int = Field(ge=2)
    seed: int = Field(ge=0)
    top_k: int = Field(ge=1)
    stop: Literal["fixed", "settled"] = "fixed"
    randomness: int = Field(ge=0, default=0)


class Problem(Strict):
    """A regression experiment that brings its own problem."""

    regression: str
    seed: int = Field(ge=0)


class Regression(Problem):
    """A regression experiment on a data set."""

    dataset: str


class Selected(Strict):
    """A comparison of rankers by the models of their leading features."""

    dataset: str
    model: str
    runs: int = Field(ge=2)
    seed: int = Field(ge=0)
    upto: int = Field(ge=1)
    folds: int = Field(ge=0)


class Simulated(Strict):
    """The simulation study with one model."""

    model: str
    runs: int = Field(ge=2)
    seed: int = Field(ge=0)
    seeds: int = Field(ge=1)


#: Knobs of a study that hold for every experiment that does not name its own.
SHARED = ("runs", "seed", "top_k", "stop", "randomness", "upto", "folds")

#: What a study consists of, and the schema of each kind.
KINDS: dict[str, type[Strict]] = {
    "experiments": Experiment,
    "regressions": Regression,
    "problems": Problem,
    "selections": Selected,
    "simulations": Simulated,
}


class Study(Strict):
    """A study as DVC reads it: every experiment complete, data sets listed once."""

    study: str
    datasets: list[str]
    experiments: dict[str, Experiment]
    regressions: dict[str, Regression] = Field(default_factory=dict)
    problems: dict[str, Problem] = Field(default_factory=dict)
    selections: dict[str, Selected] = Field(default_factory=dict)
    simulations: dict[str, Simulated] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, values: Any) -> Any:
        """Give each experiment the study's own values where it names none."""
        if not isinstance(values, Mapping) or "experiments" not in values:
            return values
        filled = dict(values)
        shared = {key: filled.pop(key) for key in SHARED if key in filled}
        only = filled.pop("only", None) or ["*"]
        known = {kind: filled.get(kind) or {} for kind in KINDS}
        for kind, experiments in known.items():
            taken = {key: value for key, value in shared.items() if key in KINDS[kind].model_fields}
            filled[kind] = {
                name: {**taken, **knobs}
                for name, knobs in experiments.items()
                if any(fnmatch.fnmatchcase(name, pattern) for pattern in only)
            }
        chosen = [knobs for kind in KINDS for knobs in filled[kind].values()]
        if not chosen:
            names = ", ".join(name for experiments in known.values() for name in experiments)
            raise ValueError(f"only={only} matches no experiment (valid: {names})")
        filled["datasets"] = sorted({knobs["dataset"] for knobs in chosen if "dataset" in knobs})
        return filled

    @property
    def names(self) -> list[str]:
        """Every experiment's name, of all kinds."""
        return list(dict.fromkeys(name for kind in KINDS for name in getattr(self, kind)))


ESTIMATE = "--estimate"

HEADER = """\
# The selected study: which experiments exist and the few knobs they override.
# Written by `roshap study {name}`; `dvc exp run -S experiments.<name>.runs=...` edits it natively.
"""


def study_command(arguments: Sequence[str], workspace: Workspace) -> int:
    """Write ``params.yaml`` for the named study; print what changed to whom."""
    names = sorted(path.stem for path in (workspace.conf / "study").glob("*.yaml"))
    if not arguments:
        raise ConfigError(f"which study? roshap study NAME (valid: {', '.join(names)})")
    name, *overrides = [word for word in arguments if word != ESTIMATE]
    if name not in names:
        raise ConfigError(f"unknown study {name!r}{suggestion(name, names)}")
    study = compose_study(name, overrides, workspace)
    write_bytes(workspace.params, render(study).encode())
    print(f"params.yaml: study {name}, {len(study.names)} experiments; run them: dvc repro")
    if ESTIMATE in arguments:
        from roshap.stages.estimate import print_estimate

        print_estimate(study, workspace)
    return 0


def _runs_of_all(values: Any, overrides: Sequence[str]) -> Any:
    """Let ``runs=20`` on the command line hold for experiments with runs of their own as well.

    ``experiments.<name>.runs=...`` still has the last word.
    """
    if isinstance(values, dict) and any(word.startswith("runs=") for word in overrides):
        for kind in KINDS:
            for name, knobs in (values.get(kind) or {}).items():
                if not any(word.startswith(f"{kind}.{name}.runs=") for word in overrides):
                    knobs.pop("runs", None)
    return values


def compose_study(name: str, overrides: Sequence[str], workspace: Workspace) -> Study:
    """Compose a study with Hydra and check it, its names included.

    Raises
    ------
    ConfigError
        For an unknown key, data set or model.
    """
    from hydra import compose, initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    from roshap.stages.app import explain, group_options

    try:
        with initialize_config_dir(version_base="1.3", config_dir=str(workspace.conf / "study")):
            # an experiment's own runs are not in the file yet where it takes the study's
            own = tuple(f"{kind}." for kind in KINDS)
            words = [f"++{word}" if word.startswith(own) else word for word in overrides]
            values = OmegaConf.to_container(compose(name, words), resolve=True)
            values = _runs_of_all(values, overrides)
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(explain(error, overrides, workspace)) from error
    try:
        study = Study.model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"study {name}: {_first(error)}") from None
    for kind, schema in KINDS.items():
        for key, experiment in getattr(study, kind).items():
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", key):
                raise ConfigError(f"experiment name {key!r}: use letters, digits, '.', '_' and '-'")
            for group in {"dataset", "model", "regression"} & schema.model_fields.keys():
                word = getattr(experiment, group)
                valid = group_options(workspace.conf, group)
                if word not in valid:
                    raise ConfigError(
                        f"{kind}.{key}.{group}: unknown {group} {word!r}{suggestion(word, valid)}"
                    )
    return study


def render(study: Study) -> str:
    """Return the text of ``params.yaml``."""
    import yaml

    body = yaml.safe_dump(study.model_dump(), sort_keys=False, default_flow_style=None, width=120)
    return HEADER.format(name=study.study) + body


def load_study(path: Any) -> Study:
    """Read a ``params.yaml``.

    Raises
    ------
    RoshapError
        Where the file is missing or not a study.
    """
    import yaml

    try:
        values = yaml.safe_load(path.read_text())
    except FileNotFoundError:
        raise RoshapError(f"no {path}: choose a study first, roshap study quick") from None
    except yaml.YAMLError as error:
        raise RoshapError(f"{path} is not YAML: {error}") from None
    try:
        return Study.model_validate(values)
    except ValidationError as error:
        raise RoshapError(f"{path} is not a study: {_first(error)}") from None


def _first(error: ValidationError) -> str:
    """Say the first finding, and how many there are besides (one override can break them all)."""
    first, *others = error.errors()
    place = ".".join(str(part) for part in first["loc"])
    text = first["msg"].removeprefix("Value error, ")
    more = f" (and {len(others)} more like it)" if others else ""
    return f"{place}: {text}{more}" if place else f"{text}{more}"
