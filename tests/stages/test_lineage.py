"""``roshap trace``, ``relog`` and ``compare`` on a small study under git and DVC."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from roshap.cli import main
from roshap.stages.pipeline import read_pipeline
from roshap.stages.workspace import Workspace
from roshap.tracking.lineage import trace
from roshap.tracking.verify import verify
from tests.conftest import COMMIT, make_repository, succeed

# one worker: the study below takes a minute
pytestmark = [pytest.mark.pipeline, pytest.mark.xdist_group("lineage")]

OUT = "results/wine-lr"
FIGURE = f"{OUT}/rank/figures/ranking.png"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which the study has run once, pushed to a remote of its own."""
    root = make_repository(tmp_path_factory.mktemp("lineage") / "checkout")
    remote = root.parent / "remote"
    for command in (
        "dvc repro -q",
        f"dvc remote add -q -d store {remote}",
        f"{COMMIT} results",
        "dvc push -q",
    ):
        succeed(command, root)
    return root


@pytest.fixture
def here(study: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(study)
    for name in ("MLFLOW_TRACKING_URI", "DVC_ROOT"):
        monkeypatch.delenv(name, raising=False)
    return study


def say(*arguments: str) -> tuple[int, str]:
    """Run a command in this process; return its exit code and what it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main(list(arguments))
    return code, out.getvalue()


def mismatches(file: str | Path) -> list[str]:
    """Return what ``--verify`` names; its exit code must agree."""
    code, out = say("trace", str(file), "--verify", "--json")
    found = [one["where"] for one in json.loads(out)["verification"]["mismatches"]]
    assert code == (1 if found else 0)
    return found


@contextlib.contextmanager
def changed(path: Path, change: Callable[[bytes], bytes]) -> Iterator[None]:
    before = path.read_bytes()
    assert change(before) != before
    path.write_bytes(change(before))
    try:
        yield
    finally:
        path.write_bytes(before)


def one_byte(content: bytes) -> bytes:
    at = len(content) // 2
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def test_everything_that_the_pipeline_writes_traces_and_verifies(here: Path) -> None:
    pipeline = read_pipeline(Workspace(here))
    folders = (here / name for name in ("results", "reports", "data/wine"))
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    kinds = {path.suffix for path in files}
    assert {".png", ".svg", ".csv", ".parquet", ".npz", ".json", ".html"} <= kinds
    for file in files:
        lineage = trace(file, pipeline)
        assert lineage.original == file.relative_to(here).as_posix()
        assert not lineage.copied
        assert "fetch@wine" in lineage.nodes
        found = verify(lineage, pipeline)
        assert found.mismatches == (), file
        assert found.files > 0
        assert found.values > 0


def test_trace_says_where_everything_comes_from(here: Path) -> None:
    code, out = say("trace", FIGURE)
    assert code == 0
    for text in (
        "made by     rank@wine-lr",
        "again       dvc repro rank@wine-lr",
        "command     roshap rank dataset=wine",
        "clean tree); dvc.lock has it since ",
        "MLflow run  ",
        "bootstrap.runs = 4 ",
        "params.yaml: experiments.wine-lr.runs",
        "conf/model/logistic_regression.yaml: classification.max_iter",
        "conf/config.yaml: rank.top",
        "libraries   ",
        "source      generated or shipped with a library (reader bundled)",
    ):
        assert text in out, text
    assert out.index("rank@wine-lr") < out.index("attribute@wine-lr") < out.index("fetch@wine")


def test_trace_as_json(here: Path) -> None:
    found = json.loads(say("trace", FIGURE, "--json")[1])
    assert found["made_by"] == "rank@wine-lr"
    assert found["figure"] == "ranking"
    stages = found["stages"]
    assert stages["rank@wine-lr"]["parents"] == ["attribute@wine-lr"]
    assert stages["attribute@wine-lr"]["parents"] == ["fetch@wine"]
    digest = json.loads((here / "data/wine/table.json").read_text())["digest"]
    assert stages["fetch@wine"]["data"] == {"wine": digest}
    run = stages["rank@wine-lr"]["mlflow_run"]
    record = json.loads((here / ".roshap/runs/rank/wine-lr.json").read_text())
    assert run["run_id"] == record["run_id"]
    head = succeed("git rev-parse HEAD~1 HEAD", here).split()
    assert stages["rank@wine-lr"]["commit"] == {
        "computed_at": head[0],
        "dirty": False,
        "recorded_by": head[1],
    }


@pytest.mark.parametrize(
    "path",
    [
        "data/wine/table.parquet",
        "data/wine/table.json",
        f"{OUT}/attribute/attributions.npz",
        f"{OUT}/rank/ranking.parquet",
        FIGURE,
    ],
)
def test_a_changed_byte_is_named_and_nothing_else(here: Path, path: str) -> None:
    with changed(here / path, one_byte):
        assert mismatches(FIGURE) == [path]
    assert mismatches(FIGURE) == []


@pytest.mark.parametrize(
    ("path", "before", "after", "named"),
    [
        (
            "conf/model/logistic_regression.yaml",
            "max_iter: 200",
            "max_iter: 201",
            "conf/model/logistic_regression.yaml: classification.max_iter",
        ),
        (
            "conf/bootstrap/default.yaml",
            "strategy: redraw",
            "strategy: plain",
            "conf/bootstrap/default.yaml: strategy",
        ),
        ("conf/config.yaml", "top: 15", "top: 14", "conf/config.yaml: rank.top"),
        ("params.yaml", "runs: 4", "runs: 5", "params.yaml: experiments.wine-lr.runs"),
        (
            "conf/dataset/wine.yaml",
            "name: wine",
            "name: wine\ndrop: [ash]",
            "conf/dataset/wine.yaml: drop",
        ),
    ],
)  # fmt: skip
def test_a_changed_value_is_named_and_nothing_else(
    here: Path, path: str, before: str, after: str, named: str
) -> None:
    with changed(here / path, lambda text: text.replace(before.encode(), after.encode(), 1)):
        assert mismatches(FIGURE) == [named]


def test_what_never_changes_a_result_is_no_mismatch(here: Path) -> None:
    path = here / "conf" / "compute" / "local.yaml"
    with changed(path, lambda text: text.replace(b"workers: 0", b"workers: 1")):
        assert mismatches(FIGURE) == []


def test_missing_and_new_files_are_named(here: Path) -> None:
    table, extra = here / OUT / "rank" / "ranking.csv", here / OUT / "rank" / "mine.txt"
    content = table.read_bytes()
    try:
        table.unlink()
        extra.write_text("hello")
        assert mismatches(FIGURE) == [f"{OUT}/rank/mine.txt", f"{OUT}/rank/ranking.csv"]
    finally:
        table.write_bytes(content)
        extra.unlink()


def test_without_the_cache_the_files_are_named_all_the_same(here: Path, tmp_path: Path) -> None:
    """What lies beside a result's tables says what the files were."""
    aside = tmp_path / "cache"
    shutil.move(here / ".dvc" / "cache", aside)
    try:
        with changed(here / FIGURE, one_byte):
            assert mismatches(FIGURE) == [FIGURE]
    finally:
        shutil.move(aside, here / ".dvc" / "cache")


def test_a_figure_copied_out_of_the_repository(here: Path, tmp_path: Path) -> None:
    copy = tmp_path / "for the paper.png"
    shutil.copy(here / FIGURE, copy)
    found = json.loads(say("trace", str(copy), "--json")[1])
    assert (found["original"], found["copied"]) == (FIGURE, True)
    assert mismatches(copy) == []
    with changed(here / "conf/config.yaml", lambda text: text.replace(b"top: 15", b"top: 9")):
        assert mismatches(copy) == ["conf/config.yaml: rank.top"]
    with changed(copy, lambda text: text[:-20] + one_byte(text[-20:])):
        assert mismatches(copy) == [str(copy)]


def test_a_copied_table_is_known_by_its_bytes(here: Path, tmp_path: Path) -> None:
    copy = tmp_path / "table.csv"
    shutil.copy(here / OUT / "rank" / "ranking.csv", copy)
    assert json.loads(say("trace", str(copy), "--json")[1])["original"] == f"{OUT}/rank/ranking.csv"
    assert mismatches(copy) == []


def test_a_figure_outside_every_checkout_says_what_is_inside(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(here / OUT / "rank" / "figures" / "ranking.svg", tmp_path / "r.svg")
    monkeypatch.chdir(tmp_path)
    code, out = say("trace", "r.svg")
    assert code == 0
    assert "copy of     (not in this checkout)" in out
    assert "attribute.bootstrap.runs = 4" in out
    # that it is what it was cannot be said here, and so it is not said
    assert mismatches("r.svg") == ["r.svg"]


def test_a_file_that_nobody_knows(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "params.yaml"]) == 2
    assert "nothing is known about params.yaml" in capsys.readouterr().err
    assert main(["trace", "nowhere.png"]) == 2
    assert "no such file: nowhere.png" in capsys.readouterr().err
    assert main(["trace", FIGURE, "--verfy"]) == 2
    assert "--verfy" in capsys.readouterr().err


def test_other_versions_are_said_and_fail_only_when_asked(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "roshap.tracking.verify.library_versions", lambda names: dict.fromkeys(names, "0.0.1")
    )
    code, out = say("trace", FIGURE, "--verify")
    assert code == 0
    assert "other version  numpy: is 0.0.1, was " in out
    assert say("trace", FIGURE, "--verify", "--strict")[0] == 1


def test_after_a_move_of_the_folder(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(here, moved, symlinks=True)
    monkeypatch.chdir(tmp_path)
    assert mismatches(moved / FIGURE) == []


def test_a_result_made_by_hand(here: Path) -> None:
    common = ("dataset=wine", "model=logistic_regression", "bootstrap.runs=3")
    assert say("run", *common, "out=outputs/mine", "compute.workers=1", "tracking=none")[0] == 0
    figure = here / "outputs/mine/rank/figures/ranking.svg"
    found = json.loads(say("trace", str(figure), "--json")[1])
    assert found["made_by"] == "rank in outputs/mine/rank"
    assert list(found["stages"]) == [
        "rank in outputs/mine/rank", "attribute in outputs/mine/attribute", "fetch@wine",
    ]  # fmt: skip
    assert found["again"].startswith("roshap run dataset=wine model=logistic_regression")
    assert mismatches(figure) == []
    with changed(figure, one_byte):
        assert mismatches(figure) == ["outputs/mine/rank/figures/ranking.svg"]
    model = "conf/model/logistic_regression.yaml"
    with changed(here / model, lambda text: text.replace(b"max_iter: 200", b"max_iter: 9")):
        assert mismatches(figure) == [f"{model}: classification.max_iter"]


def logged(uri: str) -> dict[tuple[str, str], Any]:
    """Return what MLflow shows of each run: parameters, every metric's history, note, artifacts."""
    import mlflow

    client = mlflow.MlflowClient(uri)
    found = {}
    for experiment in client.search_experiments():
        for run in client.search_runs([experiment.experiment_id]):
            run_id = run.info.run_id
            history = {
                name: [
                    (point.step, point.value) for point in client.get_metric_history(run_id, name)
                ]
                for name in run.data.metrics
            }
            tags = run.data.tags
            shown = ("mlflow.note.content", "command", "top_feature", "explainer", "journal")
            key = (experiment.name, run.info.run_name)
            assert key not in found
            found[key] = {
                "status": run.info.status,
                "params": run.data.params,
                "metrics": history,
                "tags": {name: tags.get(name) for name in shown},
                "data": [
                    (one.dataset.name, one.dataset.digest) for one in run.inputs.dataset_inputs
                ],
                "artifacts": artifacts(client, run_id),
            }
    return found


def artifacts(client: Any, run_id: str, folder: str = "") -> set[str]:
    paths: set[str] = set()
    for one in client.list_artifacts(run_id, folder or None):
        paths |= artifacts(client, run_id, one.path) if one.is_dir else {one.path}
    return paths


def test_a_clone_with_pull_and_relog_shows_the_same(here: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    for command in (f"git clone -q {here} {clone}", f"cd {clone} && dvc pull -q"):
        succeed(command, here)
    assert "4 stages logged" in succeed("roshap relog", clone)
    theirs = logged(f"sqlite:///{clone}/mlflow.db")
    ours = {key: run for key, run in logged(f"sqlite:///{here}/mlflow.db").items()
            if key in theirs}  # fmt: skip
    assert set(theirs) == {
        ("fetch", "wine"), ("attribute", "wine-lr"), ("rank", "wine-lr"), ("report", "quick"),
    }  # fmt: skip
    assert theirs == ours
    assert "0 stages logged" in succeed("roshap relog", clone)
    assert logged(f"sqlite:///{clone}/mlflow.db") == theirs
    out = json.loads(succeed(f"roshap trace {FIGURE} --verify --json", clone))
    assert out["verification"]["ok"]
    assert out["stages"]["rank@wine-lr"]["mlflow_run"]["run_id"]


def test_relog_adds_nothing_where_the_runs_are(here: Path) -> None:
    assert "0 stages logged" in say("relog")[1]


def test_relog_of_what_is_not_there(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["relog", "nonsense"]) == 2
    assert "valid: " in capsys.readouterr().err


@pytest.fixture(scope="module")
def trial(study: Path) -> str:
    """A queued DVC experiment with more runs, run to its end; returns its name."""
    succeed("dvc exp run --queue -n trial -S experiments.wine-lr.runs=5", study)
    succeed("dvc exp run --run-all -j 1", study)
    assert "trial" in succeed("dvc exp show --csv --only-changed", study)
    return "trial"


def test_a_queued_run_logs_to_the_store_of_the_checkout(here: Path, trial: str) -> None:
    import mlflow

    client = mlflow.MlflowClient(f"sqlite:///{here}/mlflow.db")
    experiment = client.get_experiment_by_name("attribute")
    runs = client.search_runs([experiment.experiment_id], "params.`bootstrap.runs` = '5'")
    assert [run.info.status for run in runs] == ["FINISHED"]
    assert runs[0].data.tags["dvc.exp"] == trial


def test_dvc_says_what_changed(here: Path, trial: str) -> None:
    metrics = json.loads(succeed(f"dvc metrics diff HEAD {trial} --json", here))
    found = metrics["diff"][f"{OUT}/metrics/rank.json"] if "diff" in metrics else metrics[
        f"{OUT}/metrics/rank.json"
    ]  # fmt: skip
    assert found["top_score"]["old"] != found["top_score"]["new"]
    plots = succeed(f"dvc plots diff HEAD {trial} --json --split", here)
    assert f"{OUT}/plots/rank.csv" in plots
    assert "proline" in plots
    assert trial in plots


def test_compare_revisions(here: Path, trial: str) -> None:
    code, out = say("compare", "HEAD", trial, "out=outputs/c")
    assert code == 0
    assert "wine-lr (HEAD) -> wine-lr (trial)" in out
    assert "bootstrap.runs: 4 -> 5" in out
    assert "4 and 5 runs: too few to tell a change from noise (20 are needed)" in out
    folder = here / "outputs" / "c" / "wine-lr"
    assert {"slopes.png", "slopes.svg", "ranks.csv", "changes.json"} <= {
        path.name for path in folder.iterdir()
    }
    changes = json.loads((folder / "changes.json").read_text())
    assert changes["parameters"] == {"bootstrap.runs": ["4", "5"]}
    assert changes["data"] == {}
    assert changes["code"] == {}
    assert mismatches(folder / "slopes.png") == []
    import mlflow

    client = mlflow.MlflowClient(f"sqlite:///{here}/mlflow.db")
    experiment = client.get_experiment_by_name("compare")
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.run_name == "wine-lr (HEAD) -> wine-lr (trial)"
    assert {"rank_correlation", "overlap_10", "features_moved"} <= set(run.data.metrics)


def test_compare_a_run_with_an_experiment(here: Path) -> None:
    record = json.loads((here / ".roshap/runs/rank/wine-lr.json").read_text())
    code, out = say("compare", record["run_id"], "wine-lr", "tracking=none")
    assert code == 0
    assert "parameters  the same" in out
    assert "Spearman 1.000" in out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("wine-lr",), "two results to compare"),
        (("wine-lr", "wine-svm"), "'wine-svm' is no experiment with results (valid: wine-lr)"),
        (("wine-lr", "wine-lr", "tpo=3"), "unknown option 'tpo'"),
        (("wine-lr", "0" * 32), "0" * 32),
        (("HEAD~1", "HEAD"), "no experiment with results in common"),
    ],
)
def test_compare_says_what_is_wrong(
    here: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], complaint: str
) -> None:
    assert main(["compare", *words]) == 2
    assert complaint in capsys.readouterr().err
