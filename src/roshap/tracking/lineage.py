"""From a file to everything behind it: stages, commands, parameters, data and their sources."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from roshap.errors import DataError, TrackingError
from roshap.plots.save import read_provenance
from roshap.tracking.journal import read_journal
from roshap.tracking.lock import LockedStage, Pipeline, is_within
from roshap.tracking.origins import IN_CODE, Origin, Origins, overrides
from roshap.tracking.parameters import flatten
from roshap.tracking.provenance import LINEAGE, file_md5, readable

TABLE = "table.json"
#: Folders in a checkout that hold copies of results, never results.
COPIES = ("mlruns", "mlartifacts", ".dvc")


@dataclass(frozen=True)
class Parameter:
    """One value that decided a result, as text, and where it stands."""

    key: str
    value: str
    origin: Origin


@dataclass(frozen=True)
class Node:
    """One execution of a stage, as the files say.

    Attributes
    ----------
    name
        DVC's name of the stage (``rank@wine-xgboost``); else the stage and its folder.
    folder
        Where the results lie, relative to the root; empty where only a figure's inside is known.
    data
        SHA-256 of each canonical table, by the data set's name.
    sources
        The source files of a data set's table: file, sha256, urls.
    versions
        Of Python and the libraries.
    journal
        Digest by which the MLflow run is found.
    locked
        The entry in ``dvc.lock``; ``None`` for results made by hand.
    parents
        Names of the nodes that this one was made from.
    """

    name: str
    stage: str
    experiment: str
    command: str
    folder: str
    parameters: tuple[Parameter, ...] = ()
    data: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[Mapping[str, Any], ...] = ()
    reader: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    journal: str | None = None
    locked: LockedStage | None = None
    parents: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lineage:
    """Where a file comes from.

    Attributes
    ----------
    file
        The file that was asked about.
    original
        The same result in the checkout, relative to the root; ``None`` where it is not there.
    copied
        Whether ``file`` lies somewhere else than ``original``.
    inside
        The provenance inside a figure file; ``None`` where there is none.
    nodes
        What it was made by, and everything behind that; nearest first.
    """

    file: Path
    original: str | None
    copied: bool
    inside: Mapping[str, Any] | None
    nodes: Mapping[str, Node]

    @property
    def node(self) -> Node:
        """The stage that wrote the file."""
        return next(iter(self.nodes.values()))


def trace(file: Path, pipeline: Pipeline) -> Lineage:
    """Find out where a figure, table, array or folder comes from.

    Raises
    ------
    TrackingError
        Where nothing is known about the file.
    """
    if not file.exists():
        raise TrackingError(f"no such file: {file}")
    inside = _inside(file)
    here = _relative(file.resolve(), pipeline.root)
    original = here if here and _is_result(here, pipeline) else _original(file, inside, pipeline)
    if original is not None:
        nodes = _Builder(pipeline).nodes(original)
        return Lineage(file, original, original != here, inside, nodes)
    if inside is None:
        raise TrackingError(
            f"nothing is known about {file}: it is no result of this checkout (by path or "
            "content), and there is no provenance inside it"
        )
    return Lineage(file, None, True, inside, {"figure": _from_block(inside, pipeline)})


def _inside(file: Path) -> dict[str, Any] | None:
    if file.suffix.lower() not in {".svg", ".png"}:
        return None
    try:
        return readable(read_provenance(file))
    except (DataError, ValueError):
        return None  # a damaged figure is found by its path


def _relative(path: Path, root: Path) -> str | None:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else None


def _is_result(path: str, pipeline: Pipeline) -> bool:
    if path.partition("/")[0] in COPIES:
        return False
    return pipeline.producer(path) is not None or _lineage_folder(path, pipeline.root) is not None


def _lineage_folder(path: str, root: Path) -> Path | None:
    """Return the nearest folder at or above ``path`` that has a ``lineage.json`` or a table."""
    for folder in ((root / path), *(root / path).parents):
        if folder == root or not folder.is_relative_to(root):
            return None
        if (folder / LINEAGE).is_file() or (folder / TABLE).is_file():
            return folder
    return None


def _original(file: Path, inside: Mapping[str, Any] | None, pipeline: Pipeline) -> str | None:
    """Return the result that ``file`` is a copy of: by the figure's command, or by its bytes."""
    out = dict(overrides(inside["command"])).get("out") if inside else None
    if inside and out and "figure" in inside:
        folder = pipeline.root / out
        for path in sorted(folder.rglob(f"{inside['figure']}{file.suffix.lower()}")):
            block = _inside(path)
            if block and block["stage"] == inside["stage"]:
                return _relative(path.resolve(), pipeline.root)
    if file.is_dir():
        return None
    md5 = file_md5(file)
    for stage in pipeline.locked.values():
        for out, recorded in stage.outs.items():
            if recorded == md5:
                return out
            for inner, inner_md5 in (pipeline.listing(recorded) or {}).items():
                if inner_md5 == md5:
                    return f"{out}/{inner}"
    return None


class _Builder:
    """Makes the nodes behind one result."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._root = pipeline.root

    def nodes(self, path: str) -> dict[str, Node]:
        stage = self._pipeline.producer(path)
        if stage is not None:
            return {one.name: self._locked(one) for one in self._pipeline.closure(stage)}
        folder = _lineage_folder(path, self._root)
        assert folder is not None
        return {node.name: node for node in self._by_hand(folder)}

    def _locked(self, stage: LockedStage) -> Node:
        parents = self._pipeline.parents(stage)
        present = self._pipeline.present.get(stage.name)
        # metrics and plots are single files beside the folder with everything else
        folders = [out for out, md5 in stage.outs.items() if md5.endswith(".dir")]
        folder = next(iter(folders or stage.outs), "")
        block = _read(self._root / folder / LINEAGE) or {}
        table = _read(self._root / folder / TABLE) or {}
        origins = Origins(self._root / "conf", stage.command, present, stage.item)
        if block:
            parameters = _parameters(block["parameters"], origins, {one.stage for one in parents})
        else:
            parameters = tuple(
                Parameter(key, value, Origin(file, key))
                for file, values in stage.params.items()
                for key, value in flatten(values).items()
            )
        return Node(
            name=stage.name,
            stage=stage.stage,
            experiment=block.get("experiment", stage.item),
            command=stage.command,
            folder=folder,
            parameters=parameters,
            data=block.get("data") or _digest(table),
            **_source(table),
            versions=block.get("versions", {}),
            journal=_journal_digest(self._root / folder),
            locked=stage,
            parents=tuple(one.name for one in parents),
        )

    def _by_hand(self, folder: Path) -> Iterator[Node]:
        """Yield the nodes of a result that no ``dvc.lock`` has, nearest first."""
        where = folder.relative_to(self._root).as_posix()
        if not (folder / LINEAGE).is_file():
            yield self._table(folder)
            return
        block = _read(folder / LINEAGE) or {}
        others = [key for key in block["parameters"] if key != folder.name]
        siblings = [folder.parent / key for key in others]
        behind = [self._by_hand(one) for one in siblings if (one / LINEAGE).is_file()]
        parents = [list(nodes) for nodes in behind]
        if not parents:
            parents = [self._tables(name, digest) for name, digest in block["data"].items()]
        heads = [nodes[0] for nodes in parents if nodes]
        origins = Origins(self._root / "conf", block["command"])
        yield Node(
            name=f"{block['stage']} in {where}",
            stage=block["stage"],
            experiment=block["experiment"],
            command=block["command"],
            folder=where,
            parameters=_parameters(block["parameters"], origins, {node.stage for node in heads}),
            data=block["data"],
            versions=block["versions"],
            journal=_journal_digest(folder),
            parents=tuple(node.name for node in heads),
        )
        for nodes in parents:
            yield from nodes

    def _tables(self, name: str, digest: str) -> list[Node]:
        """Return the node of the table with a digest, wherever it lies."""
        for pattern in (f"data/{name}/{TABLE}", f".roshap/data/*/{TABLE}"):
            for path in sorted(self._root.glob(pattern)):
                if (_read(path) or {}).get("digest") == digest:
                    stage = self._pipeline.producer(path.relative_to(self._root).as_posix())
                    return [self._locked(stage) if stage else self._table(path.parent)]
        return []

    def _table(self, folder: Path) -> Node:
        table = _read(folder / TABLE) or {}
        where = folder.relative_to(self._root).as_posix()
        return Node(
            name=f"table in {where}",
            stage="fetch",
            experiment=str(table.get("name", "")),
            command=shlex.join(["roshap", "fetch", f"dataset={table.get('name', '')}"]),
            folder=where,
            data=_digest(table),
            **_source(table),
            journal=_journal_digest(folder),
        )


def _from_block(block: Mapping[str, Any], pipeline: Pipeline) -> Node:
    """Return what a figure itself says."""
    return Node(
        name=f"{block['stage']} of {block['experiment']}",
        stage=block["stage"],
        experiment=block["experiment"],
        command=block["command"],
        folder="",
        parameters=_parameters(
            block["parameters"], Origins(pipeline.root / "conf", block["command"]), set()
        ),
        data=block["data"],
        versions=block["versions"],
    )


def _parameters(
    values: Mapping[str, Any], origins: Origins, parents: set[str]
) -> tuple[Parameter, ...]:
    """Return the values of a block; those of its parents are said where the parents are."""
    own = {key: value for key, value in values.items() if key not in parents}
    return tuple(
        Parameter(key, value, origins.of(key))
        for key, value in flatten(own).items()
        if not (value in {"null", "[]", "{}"} and origins.of(key).file == IN_CODE)
    )


def _digest(table: Mapping[str, Any]) -> dict[str, str]:
    return {table["name"]: table["digest"]} if table else {}


def _source(table: Mapping[str, Any]) -> dict[str, Any]:
    source = table.get("source", {})
    return {"sources": tuple(source.get("files", ())), "reader": source.get("reader", "")}


def _journal_digest(folder: Path) -> str | None:
    try:
        journal = read_journal(folder)
    except TrackingError:
        return None
    return journal.digest() if journal else None


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def holds(node: Node, path: str) -> bool:
    """Tell whether a node wrote ``path``."""
    outs = node.locked.outs if node.locked else (node.folder,)
    return any(is_within(path, out) for out in outs)
