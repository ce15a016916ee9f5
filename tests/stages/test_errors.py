"""Bad input: one clear line, exit code 2, and nothing that was there is lost."""

from __future__ import annotations

import socket
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.conftest import Checkout

QUICK = ("tracking=none", "bootstrap.runs=2", "compute.workers=1")


def write_csv(path: Path, **columns: object) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=40), "b": rng.normal(size=40)})
    frame["y"] = (frame["a"] > 0).astype(int)
    frame.assign(**columns).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["attribute", "dataset=golubb"], ["unknown dataset 'golubb'", "golub", "breast_cancer"]),
        (["attribute", "model=xgb"], ["unknown model 'xgb'", "xgboost", "lightgbm"]),
        (["attribute", "bootstrap.rnus=5"], ["unknown key 'rnus' in bootstrap", "'runs'"]),
        (["attribute", "sed=5"], ["unknown key 'sed'", "'seed'"]),
        (["attribute", "bootstrap.runs=1"], ["bootstrap.runs=1", "2"]),
        (["attribute", "bootstrap.runs=many"], ["bootstrap.runs='many'", "integer"]),
        (["attribute", "bootstrap.strategy=x"], ["bootstrap.strategy='x'", "'stratified'"]),
        (["attribute", "compute.backend=slrum"], ["compute.backend", "loky"]),
        (["attribute", "seed"], ["'seed'", "key=value"]),
        (["attribute", "seed=[1"], ["seed=[1", "key=value"]),
        (["attribute", "model=xgboost,lightgbm"], ["model=xgboost,lightgbm", "-m"]),
        (["attribute", "dataset=diabetes", "model=logistic_regression"], ["regression", "ridge"]),
        (["attribute", "dataset=csv"], ["dataset.path is not set"]),
        (["attribute", "dataset=csv", "dataset.path=no.csv", "dataset.target=y"], ["no.csv"]),
        (["rank", "out=nowhere"], ["nowhere/attribute", "roshap attribute"]),
        (["study", "quik"], ["unknown study 'quik'", "quick"]),
        (["study"], ["which study", "quick"]),
        (["study", "quick", "runs=one"], ["runs", "integer"]),
        (["study", "quick", "only=[zzz]"], ["zzz", "simulation-xgboost"]),
        (["study", "quick", "experiments.wine-xgboost.model=xg"], ["unknown model 'xg'"]),
        (["atribute"], ["unknown command 'atribute'", "'attribute'"]),
        (["report", "report.params=none.yaml"], ["none.yaml", "roshap study"]),
        (["ui", "http"], ["port"]),
        (["clean", "--all"], ["--all", "--dry-run"]),
    ],
)
def test_a_mistake_is_named_with_what_would_be_right(
    checkout: Checkout, arguments: list[str], parts: list[str]
) -> None:
    answer = checkout.roshap(*arguments)
    assert answer.code == 2
    for part in parts:
        assert part in answer.complaint
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    ("columns", "options", "parts"),
    [
        ({}, ["dataset.target=z"], ["no column 'z'"]),
        ({"c": "text"}, [], ["column 'c' holds text", "dataset.drop", "dataset.categorical"]),
        ({"c": np.nan}, [], ["'c'"]),
        ({"c": [np.nan] + [1.0] * 39}, ["model=logistic_regression"], ["'c'", "missing"]),
        ({"c": [np.inf] + [1.0] * 39}, [], ["'c'", "inf"]),
        ({"y": 1}, ["dataset.task=binary"], ["'y'", "class"]),
        ({"y": [1] + [0] * 39}, ["dataset.task=binary"], ["'y'", "2"]),
    ],
)
def test_a_table_that_cannot_be_used(
    checkout: Checkout, columns: dict[str, object], options: list[str], parts: list[str]
) -> None:
    path = write_csv(checkout.root / "my.csv", **columns)
    target = [] if any("target" in option for option in options) else ["dataset.target=y"]
    answer = checkout.roshap(
        "attribute", "dataset=csv", f"dataset.path={path}", *target, *options, *QUICK
    )
    assert answer.code == 2
    for part in parts:
        assert part in answer.complaint


def test_three_rows(checkout: Checkout) -> None:
    (checkout.root / "my.csv").write_text("a,y\n1,0\n2,1\n3,0\n")
    answer = checkout.roshap(
        "run", "dataset=csv", "dataset.path=my.csv", "dataset.target=y", *QUICK
    )
    assert answer.code == 2
    assert "3 rows" in answer.complaint


def test_duplicate_column_names(checkout: Checkout) -> None:
    rows = "\n".join(f"{i},{i + 1},{i % 2}" for i in range(30))
    (checkout.root / "my.csv").write_text(f"a,a,y\n{rows}\n")
    answer = checkout.roshap(
        "run", "dataset=csv", "dataset.path=my.csv", "dataset.target=y", *QUICK
    )
    assert answer.code == 2
    assert "'a'" in answer.complaint


def test_no_network_and_no_mirror(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise socket.gaierror("no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    answer = checkout.roshap("fetch", "dataset=golub", "tracking=none")
    assert answer.code == 2
    assert "raw.githubusercontent.com" in answer.complaint
    assert "ROSHAP_MIRROR" in answer.complaint
    assert not (checkout.root / "data" / "golub").exists()


def test_a_wrong_file_in_the_mirror_is_refused(checkout: Checkout) -> None:
    mirror = checkout.root / "mirror"
    (mirror / "salary").mkdir(parents=True)
    (mirror / "salary" / "Salary_Data.csv").write_text("YearsExperience,Salary\n1,2\n")
    source = checkout.root / "conf" / "dataset" / "salary.yaml"
    source.write_text(source.read_text().replace("https://", "http://127.0.0.1:9/"))
    answer = checkout.roshap("fetch", "dataset=salary", f"fetch.mirror={mirror}", "tracking=none")
    assert answer.code == 2
    assert "sha256" in answer.complaint
    assert not (checkout.root / "data" / "salary").exists()


def test_a_folder_that_cannot_be_written(checkout: Checkout) -> None:
    (checkout.root / "taken").write_text("a file, not a folder")
    answer = checkout.roshap("attribute", "dataset=wine", "out=taken/x", *QUICK)
    assert answer.code == 2
    assert "cannot write" in answer.complaint
    assert (checkout.root / "taken").read_text() == "a file, not a folder"


def test_a_failing_stage_leaves_the_old_result(checkout: Checkout) -> None:
    first = checkout.roshap("attribute", "dataset=wine", "out=x", *QUICK)
    assert first.code == 0, first.err
    before = (checkout.root / "x" / "attribute" / "attributions.npz").read_bytes()
    failed = checkout.roshap(
        "attribute", "dataset=wine", "out=x", "+model.classification.max_depth=deep", *QUICK
    )
    assert failed.code == 2
    assert (checkout.root / "x" / "attribute" / "attributions.npz").read_bytes() == before
    assert not list((checkout.root / "x").glob(".attribute*"))


def test_debug_shows_the_traceback(checkout: Checkout) -> None:
    answer = checkout.roshap("attribute", "model=xgb", "--debug")
    assert answer.code == 2
    assert "Traceback" in answer.err


def test_outside_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from roshap.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["attribute"]) == 2
