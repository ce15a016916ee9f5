"""The committed configs: each composes, passes the schema, and agrees with the pipeline."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from roshap.attribution import bootstrap
from roshap.stages.config import RootConfig
from roshap.stages.study import compose_study, load_study, render
from roshap.stages.workspace import Workspace
from tests.conftest import REPOSITORY, Checkout

CONF = REPOSITORY / "conf"
GROUPS = sorted(path.name for path in CONF.iterdir() if path.is_dir() and path.name != "study")
OPTIONS = [
    (group, path.stem)
    for group in GROUPS
    for path in sorted((CONF / group).glob("*.yaml"))
    if (group, path.stem) != ("compute", "slurm")  # it submits jobs: tests/stages/test_slurm.py
]


@pytest.mark.parametrize(("group", "option"), OPTIONS)
def test_every_option_composes_and_passes_the_schema(
    checkout: Checkout, group: str, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[RootConfig] = []
    monkeypatch.setattr("roshap.stages.app.stage_function", lambda _: lambda c, _: seen.append(c))
    answer = checkout.roshap("attribute", f"{group}={option}")
    assert answer.code == 0, answer.err
    assert len(seen) == 1


def test_params_yaml_is_the_composed_quick_study() -> None:
    study = compose_study("quick", [], Workspace(REPOSITORY))
    assert (REPOSITORY / "params.yaml").read_text() == render(study)


@pytest.mark.parametrize("name", sorted(path.stem for path in (CONF / "study").glob("*.yaml")))
def test_every_study_composes_and_reads_back(name: str, tmp_path: Path) -> None:
    study = compose_study(name, [], Workspace(REPOSITORY))
    path = tmp_path / "params.yaml"
    path.write_text(render(study))
    assert load_study(path) == study


def test_study_overrides(checkout: Checkout) -> None:
    answer = checkout.roshap("study", "quick", "runs=7", "only=[wine-*]")
    assert answer.code == 0, answer.err
    study = load_study(checkout.root / "params.yaml")
    assert set(study.experiments) == {"wine-xgboost", "wine-random_forest"}
    assert {experiment.runs for experiment in study.experiments.values()} == {7}
    assert study.datasets == ["wine"]


def test_one_experiment_can_be_overridden_by_its_name(checkout: Checkout) -> None:
    assert checkout.roshap("study", "quick", "experiments.wine-xgboost.runs=9").code == 0
    study = load_study(checkout.root / "params.yaml")
    assert study.experiments["wine-xgboost"].runs == 9


def test_attribute_depends_on_all_code_that_decides_a_replicate() -> None:
    """The checkpoint's key and DVC must agree on what a changed file invalidates."""
    stage = yaml.safe_load((REPOSITORY / "dvc.yaml").read_text())["stages"]["attribute"]["do"]
    listed = {
        dep.removeprefix("src/").removesuffix(".py").replace("/", ".") for dep in stage["deps"]
    }
    assert set(bootstrap._CODE) <= listed


def test_the_pipeline_names_no_path_that_does_not_exist() -> None:
    text = (REPOSITORY / "dvc.yaml").read_text()
    for path in re.findall(r"- (src/[\w/.]+|conf/[\w/]+\.yaml)", text):
        assert (REPOSITORY / path).exists(), path


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from roshap.cli import main; main(['--help']); main(['attribute', '--help']); "
        "heavy = {'hydra', 'pandas', 'numpy', 'sklearn', 'mlflow', 'dvc'} & set(sys.modules); "
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "usage: roshap" in done.stdout
    assert "breast_cancer" in done.stdout
