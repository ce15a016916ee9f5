"""Experiments with spectral filters as commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from roshap.plots import read_provenance
from tests.conftest import Checkout

pytestmark = pytest.mark.pipeline


def regress(checkout: Checkout, experiment: str, *overrides: str) -> tuple[Path, dict[str, Any]]:
    out = checkout.root / "results" / "test"
    answer = checkout.roshap(
        "regress", f"regression={experiment}", f"out={out}", "tracking=none", *overrides
    )
    assert answer.code == 0, answer.err
    folder = out / "regress"
    return folder, json.loads((folder / "summary.json").read_text())


def check_figures(folder: Path, summary: dict[str, Any]) -> None:
    names = {path.stem for path in (folder / "figures").glob("*.png")}
    assert names == set(summary["captions"])
    for name in names:
        assert read_provenance(folder / "figures" / f"{name}.svg")["figure"] == name


def test_problems(checkout: Checkout) -> None:
    folder, summary = regress(
        checkout,
        "spectral_problems",
        "regression.problems.names=[shaw,blur]",
        "regression.problems.n=24",
        "regression.problems.blur_n=12",
        "regression.problems.noise=[0.01]",
        "regression.problems.draws=2",
        "regression.levels=12",
    )
    table = pd.read_csv(folder / "tables" / "rules.csv")
    # six filters; leave-one-out needs a matrix, which the blur is not
    assert table.groupby("problem").size().to_dict() == {"shaw": 60, "blur": 48}
    assert (table["ratio"] >= 1).all()
    assert summary["metrics"]["loss_discrepancy"] < 2
    check_figures(folder, summary)
    first = (folder / "tables" / "rules.csv").read_bytes()
    picture = (folder / "figures" / "rules.svg").read_bytes()
    folder, _ = regress(
        checkout,
        "spectral_problems",
        "regression.problems.names=[shaw,blur]",
        "regression.problems.n=24",
        "regression.problems.blur_n=12",
        "regression.problems.noise=[0.01]",
        "regression.problems.draws=2",
        "regression.levels=12",
    )
    assert (folder / "tables" / "rules.csv").read_bytes() == first
    assert (folder / "figures" / "rules.svg").read_bytes() == picture


@pytest.mark.parametrize("boundary", ["periodic", "mirrored"])
def test_deblurring_gains(checkout: Checkout, boundary: str) -> None:
    folder, summary = regress(
        checkout,
        "spectral_deblur",
        "regression.picture.every=4",
        f"regression.picture.boundary={boundary}",
        "regression.filters=[tikhonov,nu_method]",
        "regression.levels=15",
    )
    metrics = summary["metrics"]
    assert metrics["psnr_tikhonov_gcv"] > metrics["psnr_blurred"] + 2
    assert metrics["psnr_nu_method_gcv"] > metrics["psnr_blurred"] + 2
    assert metrics["psnr_naive"] < metrics["psnr_blurred"]
    assert "dB" in summary["sentence"]
    check_figures(folder, summary)


def test_kernel_regression(checkout: Checkout) -> None:
    folder, summary = regress(
        checkout,
        "spectral_diabetes",
        "regression.filters=[tikhonov,landweber]",
        "regression.rules=[gcv,kfold]",
        "regression.table.repeats=2",
        "regression.table.gammas=[0.01]",
        "regression.levels=15",
    )
    scores = pd.read_csv(folder / "tables" / "scores.csv")
    assert len(scores) == 2 * (4 + 2)
    assert scores["score"].between(0.3, 0.6).all()
    check_figures(folder, summary)


def test_classification(checkout: Checkout) -> None:
    folder, summary = regress(
        checkout,
        "spectral_spam",
        "dataset=breast_cancer",
        "regression.filters=[tikhonov,tsvd]",
        "regression.levels=15",
    )
    scores = pd.read_csv(folder / "tables" / "scores.csv").set_index("method")["score"]
    assert scores["Tikhonov, leave-one-out accuracy"] > 0.93
    check_figures(folder, summary)


def test_a_wrong_filter_is_one_line(checkout: Checkout) -> None:
    answer = checkout.roshap("regress", "regression=spectral_shaw", "regression.filters=[ridge]")
    assert answer.code == 2
    assert "tikhonov" in answer.complaint
