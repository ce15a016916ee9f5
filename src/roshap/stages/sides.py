"""What ``roshap compare`` is given: a run, an experiment, a folder or a revision, on the disk."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from roshap.attribution.attributions import Attributions
from roshap.errors import RoshapError
from roshap.stages.attribute import ABOUT
from roshap.stages.attribute import FOLDER as ATTRIBUTE
from roshap.stages.workspace import Workspace
from roshap.tracking import TrackSettings, read_journal
from roshap.tracking.find import existing_store
from roshap.tracking.journal import DIGEST_TAG
from roshap.tracking.lock import read_lock
from roshap.tracking.origins import load
from roshap.tracking.parameters import flatten
from roshap.tracking.provenance import LINEAGE

WORKSPACE = "workspace"
_RUN_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Side:
    """One side of a comparison, with everything that may have changed.

    Attributes
    ----------
    parameters, data, versions, code
        Flat: name -> value, digest, version, MD5. ``code`` only where DVC has recorded it.
    """

    label: str
    experiment: str
    attributions: Attributions
    parameters: Mapping[str, str]
    data: Mapping[str, str]
    versions: Mapping[str, str]
    code: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Chosen:
    """What a word on the command line stands for, before anything is read.

    Attributes
    ----------
    revision
        Commit; ``None`` for what lies on the disk.
    experiment
        ``None`` for a bare revision: the other side's, or all.
    folder
        The results' folder, relative to the root, where it is no experiment's.
    """

    word: str
    revision: str | None = None
    experiment: str | None = None
    folder: str | None = None


def choose(word: str, workspace: Workspace) -> Chosen:
    """Find out what a word stands for.

    Raises
    ------
    RoshapError
        Where it is nothing that this checkout knows.
    """
    if word == WORKSPACE:
        return Chosen(word)
    if (workspace.root / "results" / word / ATTRIBUTE).is_dir():
        return Chosen(word, experiment=word)
    if (Path(word) / ATTRIBUTE).is_dir():
        return Chosen(word, experiment=Path(word).name, folder=str(Path(word).resolve()))
    if _RUN_ID.fullmatch(word):
        return _run(word, workspace)
    revision, colon, experiment = word.rpartition(":")
    if colon:
        where = None if revision == WORKSPACE else _commit(revision, workspace)
        return Chosen(word, where, experiment)
    return Chosen(word, _commit(word, workspace))


def _run(run_id: str, workspace: Workspace) -> Chosen:
    """Return the results of an MLflow run, if they still lie where it wrote them."""
    values = load(workspace.conf / "tracking" / "mlflow.yaml") or {}
    store = existing_store(TrackSettings(uri=values.get("uri")), workspace.root)
    if store is None:
        raise RoshapError(f"no MLflow store here that could know the run {run_id}")
    with store.errors():
        tags = store.client.get_run(run_id).data.tags
    folder = workspace.root / tags.get("out", "") / tags.get("stage", "")
    journal = read_journal(folder) if "out" in tags else None
    if journal is None or journal.digest() != tags.get(DIGEST_TAG):
        raise RoshapError(
            f"the results of run {run_id} ({tags.get('experiment')}) no longer lie in "
            f"{tags.get('out')}: name the revision that has them, REVISION:EXPERIMENT"
        )
    return Chosen(run_id, experiment=tags["experiment"], folder=str(folder.parent))


def _commit(word: str, workspace: Workspace) -> str:
    """Return the commit of a git revision or the name of a DVC experiment."""
    from dvc.exceptions import DvcException
    from dvc.repo import Repo
    from dvc.scm import resolve_rev
    from scmrepo.exceptions import SCMError

    try:
        with Repo(str(workspace.root)) as repo:
            return str(resolve_rev(repo.scm, word))
    except (DvcException, SCMError) as error:
        results = workspace.root / "results"
        names = sorted(path.parent.name for path in results.glob(f"*/{ATTRIBUTE}"))
        raise RoshapError(
            f"{word!r} is no experiment with results (valid: {', '.join(names) or 'none yet'}), no "
            "folder of results, no MLflow run, and no revision of git or DVC"
        ) from error


def experiments_of(chosen: Chosen, workspace: Workspace) -> set[str]:
    """Return the experiments that a revision, or the checkout, has results of."""
    if chosen.revision is None:
        results = workspace.root / "results"
        return {path.parent.name for path in results.glob(f"*/{ATTRIBUTE}")}
    with _checked_out(chosen.revision, ("dvc.lock",), workspace) as root:
        return {stage.item for stage in read_lock(root).values() if stage.stage == ATTRIBUTE}


def read_side(chosen: Chosen, experiment: str, workspace: Workspace) -> Side:
    """Read one side.

    Raises
    ------
    RoshapError
        Where the results are not there.
    """
    path = f"results/{experiment}/{ATTRIBUTE}"
    if chosen.revision is None:
        folder = Path(chosen.folder or workspace.root / "results" / experiment) / ATTRIBUTE
        root = None if chosen.folder else workspace.root
        label = chosen.word if chosen.word != WORKSPACE else f"{experiment} ({WORKSPACE})"
        return _side(label, experiment, folder, root)
    with _checked_out(chosen.revision, ("dvc.lock", path), workspace) as root:
        word = chosen.word if ":" in chosen.word else f"{experiment} ({chosen.word[:12]})"
        return _side(word, experiment, root / path, root)


@contextlib.contextmanager
def _checked_out(revision: str, paths: tuple[str, ...], workspace: Workspace) -> Iterator[Path]:
    """Yield a temporary folder with some files of a revision, those that DVC tracks included."""
    from dvc.api import DVCFileSystem
    from dvc.exceptions import DvcException

    with TemporaryDirectory(prefix="roshap-") as temporary:
        files = DVCFileSystem(str(workspace.root), rev=revision)
        for path in paths:
            if path == "dvc.lock" and not files.exists(f"/{path}"):
                continue  # a revision in which nothing had run yet
            target = Path(temporary) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                files.get(f"/{path}", str(target), recursive=files.isdir(f"/{path}"))
            except (OSError, DvcException) as error:
                raise RoshapError(
                    f"{path} of revision {revision[:12]} cannot be read: "
                    f"{' '.join(str(error).split())} (`dvc fetch --all-commits` brings it, if it "
                    "was pushed)"
                ) from error
        yield Path(temporary)


def _side(label: str, experiment: str, folder: Path, root: Path | None) -> Side:
    if not folder.is_dir():
        raise RoshapError(f"no attributions of {experiment} in {folder.parent}: `dvc pull`?")
    block: dict[str, Any] = json.loads((folder / LINEAGE).read_text())
    stage = read_lock(root).get(f"{ATTRIBUTE}@{experiment}") if root else None
    code = {path: md5 for path, md5 in (stage.deps if stage else {}).items() if "src/" in path}
    task = json.loads((folder / ABOUT).read_text())["data"]["task"]
    unused = "model.classification" if task == "regression" else "model.regression"
    parameters = flatten(block["parameters"])
    return Side(
        label=label,
        experiment=experiment,
        attributions=Attributions.load(folder),
        parameters={key: v for key, v in parameters.items() if not key.startswith(unused)},
        data=block["data"],
        versions=block["versions"],
        code=code,
    )
