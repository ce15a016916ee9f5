"""``roshap trace FILE``: where a figure, table or array comes from, and whether it still holds."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from roshap.errors import RoshapError, TrackingError
from roshap.stages.pipeline import read_pipeline
from roshap.stages.workspace import Workspace, find_root
from roshap.tracking import TrackSettings
from roshap.tracking.find import FoundRun, existing_store, find_or_none
from roshap.tracking.lineage import Lineage, Node, trace
from roshap.tracking.lock import Pipeline
from roshap.tracking.origins import load
from roshap.tracking.store import Store
from roshap.tracking.verify import Verification, verify

OPTIONS = ("--verify", "--json", "--strict")


def trace_command(arguments: Sequence[str], workspace: Workspace | None) -> int:
    """Print the lineage of a file; with ``--verify`` compare it, exit code 1 where it differs.

    ``workspace`` is ``None`` outside a checkout: then the checkout around the file is used, or
    only what a figure says itself.
    """
    options = {word for word in arguments if word.startswith("-")}
    files = [word for word in arguments if not word.startswith("-")]
    unknown = sorted(options - set(OPTIONS))
    if unknown or len(files) != 1:
        what = f"unknown option {unknown[0]!r}: " if unknown else ""
        raise RoshapError(f"{what}roshap trace FILE [{'] ['.join(OPTIONS)}]")
    file = Path(files[0])
    if not file.exists():
        raise RoshapError(f"no such file: {file}")
    workspace = _checkout(file, workspace)
    pipeline = read_pipeline(workspace)
    lineage = trace(file, pipeline)
    described = _describe(lineage, pipeline)
    found = verify(lineage, pipeline) if "--verify" in options else None
    failed = bool(found and (found.mismatches or ("--strict" in options and found.versions)))
    if "--json" in options:
        checks = {"verification": {**asdict(found), "ok": not failed}} if found else {}
        print(json.dumps({**described, **checks}, indent=1, ensure_ascii=False))
    else:
        print("\n".join(_lines(described)))
        if found:
            print("\n".join(_verdict(found, failed=failed)))
    return 1 if failed else 0


def _checkout(file: Path, workspace: Workspace | None) -> Workspace:
    """Return the checkout around the file, else the one around the current folder."""
    try:
        return Workspace(find_root(file.resolve().parent))
    except RoshapError:
        # outside every checkout only the inside of the figure is known
        return workspace or Workspace(file.resolve().parent)


def _describe(lineage: Lineage, pipeline: Pipeline) -> dict[str, Any]:
    """Return the lineage as plain values, with the MLflow run and the commit of each stage."""
    store, note = _store(pipeline.root)
    stages = {
        node.name: _described(node, find_or_none(store, node.stage, node.journal), pipeline)
        for node in lineage.nodes.values()
    }
    return {
        "file": str(lineage.file),
        "original": lineage.original,
        "copied": lineage.copied,
        "figure": (lineage.inside or {}).get("figure"),
        "made_by": lineage.node.name,
        "again": _again(lineage.node),
        "mlflow": note,
        "stages": stages,
    }


def _described(node: Node, run: FoundRun | None, pipeline: Pipeline) -> dict[str, Any]:
    md5 = node.locked.outs.get(node.folder, "") if node.locked else ""
    return {
        "stage": node.stage,
        "experiment": node.experiment,
        "command": node.command,
        "folder": node.folder,
        "outputs": dict(node.locked.outs) if node.locked else {},
        "inputs": dict(node.locked.deps) if node.locked else {},
        "commit": {
            "computed_at": run.commit if run else None,
            "dirty": run.dirty if run else None,
            "recorded_by": recorded_by(md5, pipeline.root),
        },
        "mlflow_run": asdict(run) if run else None,
        "parameters": [
            {"key": p.key, "value": p.value, "from": str(p.origin)} for p in node.parameters
        ],
        "data": dict(node.data),
        "reader": node.reader,
        "sources": [dict(source) for source in node.sources],
        "versions": dict(node.versions),
        "parents": list(node.parents),
    }


def _store(root: Path) -> tuple[Store | None, str | None]:
    """Open the MLflow store if there is one; a server that does not answer is only noted."""
    values = load(root / "conf" / "tracking" / "mlflow.yaml") or {}
    uri = values.get("uri")
    try:
        store = existing_store(TrackSettings(uri=uri), root)
    except TrackingError as error:
        return None, " ".join(str(error).split())
    return store, None if store else "no MLflow store here yet (`roshap relog` fills one)"


def recorded_by(md5: str, root: Path) -> str | None:
    """Return the commit that put a result's MD5 into ``dvc.lock``."""
    if not md5:
        return None
    command = ["git", "log", "-1", "--format=%H", f"-S{md5}", "--", "dvc.lock"]
    try:
        answer = subprocess.run(
            command, cwd=root, capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None


def _again(node: Node) -> str:
    return f"dvc repro {node.name}" if node.locked else node.command


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    yield found["file"]
    if found["copied"]:
        yield f"  copy of     {found['original'] or '(not in this checkout)'}"
    yield f"  made by     {found['made_by']}"
    yield f"  again       {found['again']}"
    if found["mlflow"]:
        yield f"  MLflow      {found['mlflow']}"
    yield from _tree(found["made_by"], found["stages"], "", set())


def _tree(name: str, stages: Mapping[str, Any], indent: str, shown: set[str]) -> Iterator[str]:
    """Yield a stage and, below it, what it was made from; nothing that is in ``shown`` twice."""
    stage = stages[name]
    if name in shown:
        yield f"{indent}{name} (above)"
        return
    shown.add(name)
    yield ""
    yield f"{indent}{name}"
    inner = f"{indent}  "
    yield f"{inner}command     {stage['command']}"
    for path, md5 in stage["outputs"].items():
        yield f"{inner}output      {path}  md5 {md5}"
    yield from _origin(stage, inner)
    for data, digest in stage["data"].items():
        yield f"{inner}data        {data}  sha256 {digest}"
    yield from _sources(stage, inner)
    if stage["versions"]:
        versions = ", ".join(f"{name} {version}" for name, version in stage["versions"].items())
        yield f"{inner}libraries   {'as above' if versions in shown else versions}"
        shown.add(versions)
    if stage["parameters"]:
        yield f"{inner}parameters"
    width = max((len(f"{p['key']} = {p['value']}") for p in stage["parameters"]), default=0)
    for parameter in stage["parameters"]:
        text = f"{parameter['key']} = {parameter['value']}"
        yield f"{inner}  {text:<{min(width, 56)}}  {parameter['from']}"
    for parent in stage["parents"]:
        yield from _tree(parent, stages, f"{indent}  ", shown)


def _origin(stage: Mapping[str, Any], inner: str) -> Iterator[str]:
    commit = stage["commit"]
    words = []
    if commit["computed_at"]:
        state = "with uncommitted changes" if commit["dirty"] else "clean tree"
        words.append(f"computed at {commit['computed_at'][:12]} ({state})")
    if commit["recorded_by"]:
        words.append(f"dvc.lock has it since {commit['recorded_by'][:12]}")
    yield f"{inner}commit      {'; '.join(words) or 'not known'}"
    if run := stage["mlflow_run"]:
        yield f"{inner}MLflow run  {run['run_id']}  {run['url']}"


def _sources(stage: Mapping[str, Any], inner: str) -> Iterator[str]:
    for source in stage["sources"]:
        yield f"{inner}source      {source['file']}  sha256 {source.get('sha256')}"
        for url in source.get("urls", ()):
            yield f"{inner}            {url}"
    if stage["reader"] and not stage["sources"]:
        yield f"{inner}source      generated or shipped with a library (reader {stage['reader']})"


def _verdict(found: Verification, *, failed: bool) -> Iterator[str]:
    yield ""
    for difference in found.versions:
        yield f"other version  {difference}"
    for mismatch in found.mismatches:
        yield f"MISMATCH  {mismatch}"
    counted = f"{found.files} files hashed, {found.values} values compared"
    if found.mismatches:
        yield f"{len(found.mismatches)} no longer match ({counted})"
    elif failed:
        yield f"all match, but not the library versions (--strict; {counted})"
    else:
        yield f"verified: all match ({counted})"
