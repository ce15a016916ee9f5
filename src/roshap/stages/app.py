"""One entry for people, DVC and sweeps: Hydra composes, the schema checks, the stage runs."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import (
    ConfigCompositionException,
    HydraException,
    MissingConfigException,
    OverrideParseException,
)
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from roshap.errors import ConfigError, RoshapError
from roshap.stages.config import suggestion, unknown_key, validate
from roshap.stages.context import StageContext
from roshap.stages.workspace import ROOT_VARIABLE, Workspace

log = logging.getLogger(__name__)


def run_stage(stage: str, arguments: Sequence[str], workspace: Workspace) -> None:
    """Compose the configuration from ``arguments`` and run the stage, or sweep it (``-m``).

    Raises
    ------
    RoshapError
        For every mistake of the user's, Hydra's own complaints included.
    """
    failures: list[RoshapError] = []
    argv = [f"roshap {stage}", *_flags_first([*arguments, f"hydra.job.name={stage}"])]
    entry = hydra.main(version_base="1.3", config_path=str(workspace.conf), config_name="config")
    try:
        with _process_state(argv, workspace):
            entry(_Job(stage, workspace.root, failures))()
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(explain(error, arguments, workspace)) from error
    except RuntimeError as error:
        if "srun" not in str(error):
            raise
        raise ConfigError(
            "there is no Slurm on this machine (no command srun): run this on one that submits "
            "jobs, or choose compute=local"
        ) from error
    if failures:
        raise failures[0]


def _flags_first(words: Sequence[str]) -> list[str]:
    """Put overrides behind everything else: Hydra's parser wants them in one piece."""

    def is_override(word: str) -> bool:
        return word.startswith("~") or ("=" in word and not word.startswith("-"))

    return sorted(words, key=is_override)


@contextlib.contextmanager
def _process_state(argv: list[str], workspace: Workspace) -> Iterator[None]:
    """Set what Hydra reads from the process for the time of one call."""
    # Hydra would print its own words and exit with 1; this hands the exception over instead
    wanted = {ROOT_VARIABLE: str(workspace.root), "HYDRA_FULL_ERROR": "1"}
    before, old_argv = {key: os.environ.get(key) for key in wanted}, sys.argv
    os.environ.update(wanted)
    sys.argv = argv
    try:
        yield
    finally:
        sys.argv = old_argv
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value


class _Job:
    """What Hydra calls for each composed configuration; picklable, so that launchers ship it."""

    def __init__(self, stage: str, root: Path, failures: list[RoshapError]) -> None:
        self.stage = stage
        self.root = root
        self.failures = failures

    def __call__(self, composed: DictConfig) -> Any:
        hydra_config = HydraConfig.get()
        try:
            values = OmegaConf.to_container(composed, resolve=True)
            assert isinstance(values, dict)
            config = validate({str(key): value for key, value in values.items()})
            overrides = [str(item) for item in hydra_config.overrides.task]
            context = StageContext.make(self.stage, config, Workspace(self.root), overrides)
            result = stage_function(self.stage)(config, context)
            return objective(config.objective, context) if config.objective else result
        except RoshapError as error:
            # in a sweep Hydra itself says which job failed, and the others go on
            if hydra_config.mode == RunMode.MULTIRUN:
                raise
            self.failures.append(error)
            return None


def objective(metric: str, context: StageContext) -> float:
    """Return the metric that a sweeper is to optimise, as the stage has logged it.

    Raises
    ------
    ConfigError
        Where the stage logs no such metric.
    """
    if metric not in context.logged:
        valid = suggestion(metric, context.logged)
        raise ConfigError(f"objective {metric!r} is no metric of {context.stage}{valid}")
    return context.logged[metric]


def stage_function(stage: str) -> Callable[..., Any]:
    """Return the function of a stage; its libraries are imported now, not earlier."""
    function: Callable[..., Any] = getattr(importlib.import_module(f"roshap.stages.{stage}"), stage)
    return function


def explain(error: Exception, arguments: Sequence[str], workspace: Workspace) -> str:
    """Say Hydra's or OmegaConf's complaint in one line, with the valid values if there are any."""
    text = str(error)
    first = text.strip().splitlines()[0]
    if isinstance(error, MissingConfigException):
        return _unknown_option(first, workspace)
    if isinstance(error, OverrideParseException):
        bad = getattr(error, "override", None) or next(iter(arguments), "")
        return f"cannot read the override {bad!r}: write key=value, e.g. bootstrap.runs=50"
    if isinstance(error, ConfigCompositionException):
        if first.startswith("Could not override "):
            key = first.split("'")[1]
            return _unknown_override(key, workspace)
        if first.startswith("Ambiguous value"):
            value = first.split("'")[1]
            return f"{value}: several values need -m (a sweep), or [a,b] for a list"
    return " ".join(text.split())


def _unknown_option(first: str, workspace: Workspace) -> str:
    option = first.split("'")[-2]
    group, _, name = option.rpartition("/")
    if name.startswith("submitit"):
        return (
            f"{group}={name} needs the package 'hydra-submitit-launcher', which is not installed: "
            "pip install 'roshap[slurm]'"
        )
    valid = group_options(workspace.conf, group)
    if not valid:
        return f"no configuration {option!r} in {workspace.conf}"
    return f"unknown {group} {name!r}{suggestion(name, valid)}"


def _unknown_override(key: str, workspace: Workspace) -> str:
    groups = [path.name for path in workspace.conf.iterdir() if path.is_dir()]
    group, _, rest = key.partition(".")
    if group in {"model", "dataset"} and rest:
        return (
            f"unknown key {key!r}: it is not in the {group}'s file in conf/{group}/; "
            f"+{key}=... adds it"
        )
    if "." not in key and key not in groups:
        return unknown_key(key)
    return unknown_key(key)


def group_options(conf: Path, group: str) -> list[str]:
    """Return the names that a configuration group offers."""
    return sorted(path.stem for path in (conf / group).glob("*.yaml")) if group else []
