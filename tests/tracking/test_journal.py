from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roshap.errors import TrackingError
from roshap.tracking import DataInput, TrackSettings, read_journal, track
from roshap.tracking.find import find_run
from roshap.tracking.journal import JOURNAL
from roshap.tracking.runs import log_again
from roshap.tracking.store import default_uri, open_store

Tracker = Callable[..., Any]


def log_everything(run: Any, folder: Path) -> None:
    (folder / "figures").mkdir(exist_ok=True)
    (folder / "figures" / "a.svg").write_text("<svg/>")
    (folder / "table.csv").write_text("x\n1\n")
    run.log_metrics({"overlap.10": 0.1 + 0.2, "infinite": math.inf, "fit.seconds": 3.0})
    run.log_series("loss", [5, 1], [0.5, 1.5])
    run.set_tags({"top_feature": "proline"})
    run.note("| a |\n|---|")
    run.log_text("hello", "said.txt")
    run.log_artifacts([folder / "figures"], "pictures")
    run.log_artifacts([folder / "table.csv"])
    with run.child("shap", {"k": 3}) as child:
        child.log_series("loss", [1], [2.5])


def test_a_journal_is_the_same_in_every_execution(
    tracker: Tracker, tmp_path: Path, root: Path
) -> None:
    written = []
    data = DataInput("wine", "ab" * 32, {"reader": "bundled", "obtained": {"a": "mirror"}}, n=3)
    for name, settings in (("one", TrackSettings()), ("two", TrackSettings(enabled=False))):
        folder = tmp_path / name
        folder.mkdir()
        tracker_of = tracker.func if hasattr(tracker, "func") else track
        keywords = {**tracker.keywords, "data": [data], "journal": folder}  # type: ignore[attr-defined]
        with tracker_of(settings, **keywords) as run:
            log_everything(run, folder)
        written.append((folder / JOURNAL).read_bytes())
    assert written[0] == written[1]
    text = written[0].decode()
    for absent in ("seconds", "mirror", str(root), str(tmp_path)):
        assert absent not in text
    journal = read_journal(tmp_path / "one")
    assert journal is not None
    assert journal.last("loss") == 0.5
    assert journal.last("infinite") == math.inf
    assert journal.last("unknown") is None
    assert journal.children[0].metrics == {"loss": [[1, 2.5]]}


def test_a_run_logged_again_is_the_same_run(tracker: Tracker, tmp_path: Path, root: Path) -> None:
    folder = tmp_path / "rank"
    folder.mkdir()
    with tracker(journal=folder, params={"a": {"b": 1}}) as run:
        log_everything(run, folder)
    journal = read_journal(folder)
    assert journal is not None
    store = open_store(default_uri(root), root)
    found = find_run(store, "attribute", journal.digest())
    assert found is not None
    assert found.run_id == run.run_id
    log_again(store, journal, folder, study="quick", root=root, tags={"relogged": "true"})
    # the run of the process that computed the result comes first
    again = find_run(store, "attribute", journal.digest())
    assert again is not None
    assert again.run_id == run.run_id
    client = store.client
    experiment = client.get_experiment_by_name("attribute").experiment_id
    both = client.search_runs([experiment], "tags.journal != ''")
    assert len(both) == 2
    first, second = sorted(both, key=lambda one: "relogged" in one.data.tags)
    assert first.data.params == second.data.params == {"a.b": "1"}
    assert {k: v for k, v in first.data.metrics.items() if k != "fit.seconds"} == dict(
        second.data.metrics
    )
    history = client.get_metric_history(second.info.run_id, "loss")
    assert {(point.step, point.value) for point in history} == {(5, 0.5), (1, 1.5)}
    listed = {one.path for one in client.list_artifacts(second.info.run_id)}
    assert listed == {"pictures", "said.txt", "table.csv"}
    assert [one.path for one in client.list_artifacts(second.info.run_id, "pictures")] == [
        "pictures/a.svg"
    ]
    children = client.search_runs(
        [experiment], f"tags.`mlflow.parentRunId` = '{second.info.run_id}'"
    )
    assert [(one.info.run_name, one.data.params) for one in children] == [("shap", {"k": "3"})]


def test_a_failed_stage_leaves_no_journal_and_no_digest(tracker: Tracker, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="broken"), tracker(journal=tmp_path):
        raise ValueError("broken")
    assert not (tmp_path / JOURNAL).exists()


@pytest.mark.parametrize("text", ["not json", '{"format": "other/1"}', '{"stage": "rank"}', "[]"])
def test_a_damaged_journal_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / JOURNAL).write_text(text)
    with pytest.raises(TrackingError, match=JOURNAL):
        read_journal(tmp_path)
    (tmp_path / JOURNAL).unlink()
    assert read_journal(tmp_path) is None


def test_the_file_has_only_json_that_every_reader_knows(tracker: Tracker, tmp_path: Path) -> None:
    with tracker(journal=tmp_path) as run:
        run.log_metrics({"a": math.nan, "b": -math.inf})

    def refuse(text: str) -> None:
        raise AssertionError(text)

    content = json.loads((tmp_path / JOURNAL).read_text(), parse_constant=refuse)
    assert content["metrics"]["b"] == [[0, "-inf"]]
