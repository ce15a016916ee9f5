"""DVC's pipeline, read with DVC: ``dvc.lock`` and what ``dvc.yaml`` says now."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roshap.stages.workspace import Workspace
from roshap.tracking.lock import Pipeline, PresentStage, read_lock


def read_pipeline(workspace: Workspace) -> Pipeline:
    """Return the locked and the present pipeline of a checkout.

    Where the folder is under no DVC, or ``dvc.yaml`` cannot be resolved, there is no present one.
    """
    root = workspace.root.resolve()
    locked = read_lock(root)
    if not (root / ".dvc").is_dir():
        return Pipeline(root, locked)
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    try:
        # fixed: DVC looks for the repository that the variable of a running pipeline names
        repo = Repo(str(root))
        present = {
            stage.name: _present(stage, _raw(root)) for stage in repo.index.stages if stage.name
        }
    except DvcException:
        return Pipeline(root, locked)
    cache = repo.cache.local

    def ignored(path: Path) -> bool:
        return bool(repo.dvcignore.is_ignored_file(str(path)))

    def listing_path(md5: str) -> Path | None:
        return Path(cache.oid_to_path(md5)) if cache else None

    return Pipeline(root, locked, present, ignored, listing_path)


def _present(stage: Any, raw: Mapping[str, Any]) -> PresentStage:
    from dvc.dependency import ParamsDependency

    entry = raw.get(str(stage.name).partition("@")[0], {})
    found = re.fullmatch(r"\$\{(\w+)\}", str(entry.get("foreach", "")).strip())
    whole = (
        str(dep.def_path)
        for dep in stage.deps
        if isinstance(dep, ParamsDependency) and not dep.params
    )
    return PresentStage(
        command=str(stage.cmd),
        template=str(entry.get("do", entry).get("cmd", "")),
        foreach=found[1] if found else "",
        whole_files=frozenset(whole),
    )


def _raw(root: Path) -> dict[str, Any]:
    import yaml

    stages: dict[str, Any] = yaml.safe_load((root / "dvc.yaml").read_text()).get("stages", {})
    return stages
