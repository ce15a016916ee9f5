from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roshap.errors import TrackingError
from roshap.tracking import DataInput, StageRun, TrackSettings, read_record, track

HANG = Path(__file__).with_name("hang.py")
Tracker = Callable[..., Any]


def test_run_says_where_it_comes_from(tracker: Tracker, client: Any, root: Path) -> None:
    with tracker(out=root / "results" / "w", dependencies={"data/wine": "0123.dir"}) as run:
        assert client.get_run(run.run_id).info.status == "RUNNING"
    logged = client.get_run(run.run_id)
    assert logged.info.status == "FINISHED"
    assert logged.info.run_name == "wine-xgboost"
    assert client.get_experiment(logged.info.experiment_id).name == "attribute"
    expected = {
        "stage": "attribute",
        "experiment": "wine-xgboost",
        "study": "quick",
        "out": "results/w",
        "command": "roshap attribute dataset=wine",
        "dvc.md5.data/wine": "0123.dir",
        "mlflow.source.name": "roshap attribute dataset=wine",
    }
    assert expected.items() <= logged.data.tags.items()
    versions = json.loads(logged.data.tags["versions"])
    assert versions["xgboost"] == logged.data.tags["version.xgboost"]


def test_run_records_the_commit_of_the_checkout(
    tracker: Tracker, client: Any, root: Path, git_repository: str
) -> None:
    with tracker() as run:
        pass
    tags = client.get_run(run.run_id).data.tags
    assert tags["git.commit"] == tags["mlflow.source.git.commit"] == git_repository
    assert tags["git.branch"] == "main"
    assert tags["git.dirty"] == "true"  # mlflow.db is not in the commit
    record = read_record(root, "attribute", "wine-xgboost")
    assert record is not None
    assert record["commit"] == git_repository


def test_parameters_are_flattened_and_long_values_kept(tracker: Tracker, client: Any) -> None:
    long = ["x" * 5000, "y" * 5000]
    params = {
        "model": {"name": "xgboost", "params": {"max_depth": 6, "seed": None}},
        "columns": long,
        "many": {f"k{i}": i for i in range(250)},
        "a=b": True,
    }
    with tracker(params=params) as run:
        pass
    logged = client.get_run(run.run_id).data.params
    assert logged["model.name"] == "xgboost"
    assert logged["model.params.max_depth"] == "6"
    assert logged["model.params.seed"] == "null"
    assert logged["many.k249"] == "249"
    assert [value for key, value in logged.items() if key.startswith("a_b-")] == ["true"]
    assert len(logged["columns"]) == 6000
    whole = json.loads(Path(client.download_artifacts(run.run_id, "long_params.json")).read_text())
    assert json.loads(whole["columns"]) == long


def test_series_keep_their_steps(tracker: Tracker, client: Any) -> None:
    steps = list(range(0, 5002, 2))
    with tracker() as run:
        run.log_series("accuracy", steps, [step / 10 for step in steps])
        run.log_metrics({"final": 3, "missing": math.nan}, step=7)
    history = client.get_metric_history(run.run_id, "accuracy")
    assert {point.step: point.value for point in history} == {step: step / 10 for step in steps}
    assert [(m.step, m.value) for m in client.get_metric_history(run.run_id, "final")] == [(7, 3)]
    assert math.isnan(client.get_run(run.run_id).data.metrics["missing"])


def test_series_of_unequal_length_is_refused(tracker: Tracker) -> None:
    with tracker() as run, pytest.raises(ValueError, match="shorter"):
        run.log_series("accuracy", [1, 2, 3], [0.5, 0.6])


def test_series_is_sent_in_batches(tracker: Tracker, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    with tracker() as run:
        log_batch = run._store.client.log_batch

        def counted(*args: Any, **kwargs: Any) -> None:
            if "metrics" in kwargs:
                sizes.append(len(kwargs["metrics"]))
            log_batch(*args, **kwargs)

        monkeypatch.setattr(run._store.client, "log_batch", counted)
        run.log_series("accuracy", range(2500), [0.0] * 2500)
    assert sizes == [1000, 1000, 500]


def test_artifacts_text_tags_and_note(tracker: Tracker, client: Any, tmp_path: Path) -> None:
    table, figures = tmp_path / "table.csv", tmp_path / "figures"
    table.write_text("a,b\n")
    figures.mkdir()
    (figures / "one.svg").write_text("<svg/>")
    with tracker() as run:
        run.log_artifacts([table, figures], "results")
        run.log_text("hello", "notes/hello.txt")
        run.set_tags({"winner": "x" * 9000})
        run.note("| rank |\n" * 2000)
        with pytest.raises(TrackingError, match=r"cannot log .*nothing\.csv: no such file"):
            run.log_artifacts([tmp_path / "nothing.csv"])
    assert {f.path for f in client.list_artifacts(run.run_id, "results")} == {
        "results/table.csv",
        "results/one.svg",
    }
    text = Path(client.download_artifacts(run.run_id, "notes/hello.txt")).read_text()
    assert text == "hello"
    tags = client.get_run(run.run_id).data.tags
    assert len(tags["winner"]) == 8000
    assert set(tags["mlflow.note.content"].splitlines()) == {"| rank |", "…"}


def test_child_is_nested(tracker: Tracker, client: Any) -> None:
    with tracker() as run:
        with run.child("shap", params={"method": {"k": 3}}) as child:
            child.log_series("auc", [1, 2], [0.5, 0.7])
            assert client.get_run(child.run_id).info.status == "RUNNING"
        assert client.get_run(run.run_id).info.status == "RUNNING"
    logged = client.get_run(child.run_id)
    assert logged.info.status == "FINISHED"
    assert logged.info.run_name == "shap"
    assert logged.data.tags["mlflow.parentRunId"] == run.run_id
    assert logged.data.tags["study"] == "quick"
    assert logged.data.params == {"method.k": "3"}


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ({"reader": "golub", "url": "https://example.org/g.csv"}, "http"),
        ({"reader": "csv", "path": "my.csv"}, "local"),
        ({"reader": "bundled", "name": "wine"}, "code"),
    ],
)
def test_data_set_is_an_input(
    tracker: Tracker, client: Any, source: dict[str, str], kind: str
) -> None:
    import mlflow.data

    digest = "0123456789abcdef" * 4
    with tracker(data=[DataInput("wine", digest, source, n=178, p=13)]) as run:
        pass
    logged = client.get_run(run.run_id)
    (found,) = logged.inputs.dataset_inputs
    assert (found.dataset.name, found.dataset.digest) == ("wine", digest[:36])
    assert found.dataset.source_type == kind
    assert json.loads(found.dataset.profile) == {
        "num_rows": 178,
        "num_features": 13,
        "sha256": digest,
        "source": source,
    }
    assert [(tag.key, tag.value) for tag in found.tags] == [("mlflow.data.context", "training")]
    assert logged.data.tags["data.wine"] == digest
    assert mlflow.data.get_source(found).to_json() == found.dataset.source


@pytest.mark.parametrize(
    ("error", "status"), [(ValueError("no\nluck"), "FAILED"), (KeyboardInterrupt(), "KILLED")]
)
def test_error_ends_the_run_and_its_child(
    tracker: Tracker, client: Any, root: Path, error: BaseException, status: str
) -> None:
    with pytest.raises(type(error)), tracker() as run, run.child("method") as child:
        raise error
    assert client.get_run(run.run_id).info.status == status
    assert client.get_run(child.run_id).info.status == status
    if status == "FAILED":
        assert client.get_run(run.run_id).data.tags["error"] == "ValueError: no luck"
    assert read_record(root, "attribute", "wine-xgboost") is None


def test_killed_run_is_closed_by_the_next_start_and_a_live_one_is_not(
    tracker: Tracker, client: Any, root: Path
) -> None:
    with subprocess.Popen([sys.executable, HANG, root], stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            lost = other.stdout.readline().split()
            with tracker() as run:
                assert {client.get_run(i).info.status for i in lost} == {"RUNNING"}
        finally:
            os.kill(other.pid, signal.SIGKILL)
    assert {client.get_run(i).info.status for i in lost} == {"RUNNING"}
    with tracker() as run:
        assert {client.get_run(i).info.status for i in lost} == {"KILLED"}
        assert client.get_run(run.run_id).info.status == "RUNNING"
    assert len(client.search_runs([client.get_run(run.run_id).info.experiment_id])) == 4
    assert list((root / ".roshap" / "locks").glob("run-*")) == []


def test_run_of_another_checkout_is_not_closed(tracker: Tracker, client: Any) -> None:
    with tracker():
        pass
    experiment = client.get_experiment_by_name("attribute").experiment_id
    foreign = client.create_run(experiment, tags={"process.lease": "not-in-this-checkout"})
    with tracker():
        pass
    assert client.get_run(foreign.info.run_id).info.status == "RUNNING"


def test_run_of_mlflow_run_is_not_written_to(
    tracker: Tracker, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer = client.create_run("0")
    monkeypatch.setenv("MLFLOW_RUN_ID", outer.info.run_id)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "0")
    with tracker(params={"a": 1}) as run:
        run.log_metrics({"m": 1.0})
    assert run.run_id != outer.info.run_id
    assert client.get_experiment(client.get_run(run.run_id).info.experiment_id).name == "attribute"
    untouched = client.get_run(outer.info.run_id)
    assert (untouched.data.params, untouched.data.metrics) == ({}, {})
    assert untouched.info.status == "RUNNING"


def test_record_says_which_run_made_the_result(tracker: Tracker, root: Path) -> None:
    with tracker(out=root / "results" / "w") as run:
        assert read_record(root, "attribute", "wine-xgboost") is None
    record = read_record(root, "attribute", "wine-xgboost")
    assert record is not None
    assert record["run_id"] == run.run_id
    assert record["tracking_uri"] == run.tracking_uri
    assert record["artifact_uri"] == run.artifact_uri
    assert record["out"] == "results/w"


def test_tracking_that_is_off_records_nothing(tmp_path: Path) -> None:
    settings = TrackSettings(enabled=False)
    words = {"stage": "rank", "experiment": "e", "study": "s", "command": "roshap rank"}
    with track(settings, params={}, root=tmp_path, **words) as run:
        run.log_metrics({"a": 1.0})
        run.log_series("b", [1], [2.0])
        run.log_artifacts([tmp_path / "nothing"])
        run.log_text("text", "file.txt")
        run.set_tags({"a": "b"})
        run.note("note")
        with run.child("c") as child:
            child.log_metrics({"a": 1.0})
        assert type(run) is StageRun
        assert run.run_id is run.url is None
    assert list(tmp_path.iterdir()) == []


def test_importing_tracking_does_not_import_mlflow() -> None:
    code = (
        "import sys, roshap.tracking; print({'mlflow', 'pandas', 'sqlalchemy'} & set(sys.modules))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "set()"
