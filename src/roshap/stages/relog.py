"""``roshap relog [STUDY | FOLDER]``: log finished stages from their files, each once.

After ``dvc pull``, or where DVC takes a result from its cache, MLflow knows nothing of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from roshap.errors import RoshapError
from roshap.stages.pipeline import read_pipeline
from roshap.stages.study import Study, compose_study, load_study
from roshap.stages.trace import recorded_by
from roshap.stages.workspace import Workspace
from roshap.tracking import JOURNAL, TrackSettings, read_journal, read_record, tracking_uri
from roshap.tracking.find import RELOGGED_TAG, find_run
from roshap.tracking.lock import Pipeline
from roshap.tracking.origins import load
from roshap.tracking.provenance import LINEAGE
from roshap.tracking.record import write_record
from roshap.tracking.runs import MAIN_LIBRARIES, log_again
from roshap.tracking.store import LOCK_FOLDER, Store, open_store, without_password

BY_HAND = "by hand"


def relog_command(arguments: Sequence[str], workspace: Workspace) -> int:
    """Log every finished stage of a study, or below a folder, that the store does not have yet."""
    from filelock import FileLock

    if len(arguments) > 1 or any(word.startswith("-") for word in arguments):
        raise RoshapError(f"roshap relog [STUDY | FOLDER], got {' '.join(arguments)}")
    name, folders = _chosen(arguments[0] if arguments else None, workspace)
    results = [path.parent for folder in folders for path in sorted(folder.rglob(JOURNAL))]
    if not results:
        raise RoshapError(f"no finished stage of {name} here: `dvc pull` or `dvc repro` first")
    values = load(workspace.conf / "tracking" / "mlflow.yaml") or {}
    uri = tracking_uri(TrackSettings(uri=values.get("uri")), workspace.root)
    store = open_store(uri, workspace.root)
    pipeline = read_pipeline(workspace)
    locks = workspace.root / LOCK_FOLDER
    locks.mkdir(parents=True, exist_ok=True)
    # two at once would both find that a run is not there yet
    with FileLock(locks / "relog.lock"):
        logged = [_relog(store, folder, name, pipeline, workspace) for folder in results]
    new = sum(logged)
    print(
        f"{name}: {new} stages logged to {without_password(uri)}, "
        f"{len(logged) - new} were there already"
    )
    return 0


def _chosen(word: str | None, workspace: Workspace) -> tuple[str, list[Path]]:
    """Return the study's name and the folders of its results; a folder stands for itself."""
    selected = load_study(workspace.params) if workspace.params.is_file() else None
    if word is None and selected is None:
        raise RoshapError("which study? roshap relog STUDY")
    if word is None or (selected and word == selected.study):
        assert selected is not None
        return selected.study, _folders(selected, workspace)
    if (workspace.conf / "study" / f"{word}.yaml").is_file():
        return word, _folders(compose_study(word, [], workspace), workspace)
    if Path(word).is_dir():
        return BY_HAND, [Path(word).resolve()]
    names = ", ".join(sorted(path.stem for path in (workspace.conf / "study").glob("*.yaml")))
    raise RoshapError(f"{word!r} is neither a study (valid: {names}) nor a folder")


def _folders(study: Study, workspace: Workspace) -> list[Path]:
    """Return where a study's results lie: tables first, the report last."""
    experiments = [
        name for group in study.model_dump().values() if isinstance(group, dict) for name in group
    ]
    return [
        *(workspace.data(name) for name in study.datasets),
        *(workspace.root / "results" / name for name in experiments),
        workspace.root / "reports" / study.study,
    ]


def _relog(
    store: Store, folder: Path, study: str, pipeline: Pipeline, workspace: Workspace
) -> bool:
    """Log one finished stage unless the store has it; return whether it was logged."""
    journal = read_journal(folder)
    assert journal is not None
    if find_run(store, journal.stage, journal.digest()) is not None:
        return False
    root = workspace.root.resolve()
    run_id = log_again(
        store,
        journal,
        folder,
        study=study,
        root=root,
        tags={RELOGGED_TAG: "true", **dict(_known(folder, pipeline))},
    )
    if read_record(root, journal.stage, journal.experiment) is None:
        record = {"run_id": run_id, "tracking_uri": without_password(store.uri), "study": study}
        write_record(root, journal.stage, journal.experiment, record)
    print(f"{journal.stage} {journal.experiment}: run {run_id}")
    return True


def _known(folder: Path, pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    """Yield tags of what the files tell about the execution."""
    path = folder.relative_to(pipeline.root).as_posix()
    if stage := pipeline.producer(path):
        yield from ((f"dvc.md5.{dep}", md5) for dep, md5 in _data(stage.deps.items()))
        if commit := recorded_by(stage.outs.get(path, ""), pipeline.root):
            yield from (("git.commit", commit), ("mlflow.source.git.commit", commit))
    if (folder / LINEAGE).is_file():
        versions = json.loads((folder / LINEAGE).read_text())["versions"]
        yield "versions", json.dumps(versions, sort_keys=True)
        yield from (
            (f"version.{name}", versions[name]) for name in MAIN_LIBRARIES if name in versions
        )


def _data(deps: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Leave out the code: the stages do not tag it either."""
    return ((path, md5) for path, md5 in deps if not path.startswith("src/"))
