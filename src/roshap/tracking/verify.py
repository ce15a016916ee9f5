"""Hash everything behind a result again, and say what no longer matches."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roshap.datasets import load as load_table
from roshap.errors import RoshapError
from roshap.tracking.lineage import Lineage, Node, Parameter
from roshap.tracking.lock import LockedStage, Pipeline, PresentStage, is_within
from roshap.tracking.origins import (
    IN_CODE,
    IN_COMMAND,
    MISSING,
    load,
    lookup,
    overrides,
    study_keys,
)
from roshap.tracking.parameters import flatten
from roshap.tracking.provenance import (
    LINEAGE,
    file_md5,
    folder_listing,
    library_versions,
    listing_md5,
    path_md5,
)

_SHOWN = 10  # characters of a checksum in messages


@dataclass(frozen=True)
class Mismatch:
    """One thing that is not what it was: a file or a value, and how it differs."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True)
class Verification:
    """What :func:`verify` found.

    Attributes
    ----------
    mismatches
        Files and values that are not what the result was made from.
    versions
        Libraries whose version here is another one; the result's own bytes do not depend on it,
        making it again may.
    files, values
        How many were compared.
    """

    mismatches: tuple[Mismatch, ...]
    versions: tuple[Mismatch, ...]
    files: int
    values: int


def verify(lineage: Lineage, pipeline: Pipeline) -> Verification:
    """Hash every file and compare every value behind a result."""
    check = _Check(pipeline)
    if lineage.original is not None and lineage.copied:
        check.copy(lineage)
    elif lineage.original is None:
        check.add(
            str(lineage.file),
            "no record of its bytes in this checkout: only its parameters can be compared",
        )
    for node in lineage.nodes.values():
        if node.locked:
            check.locked(node.locked)
        else:
            check.by_hand(node)
    if lineage.original is not None and lineage.inside is not None:
        check.inside(lineage)
    versions = {name: text for node in lineage.nodes.values() for name, text in _versions(node)}
    return Verification(
        mismatches=tuple(dict.fromkeys(check.found)),
        versions=tuple(Mismatch(name, text) for name, text in versions.items()),
        files=check.files,
        values=check.values,
    )


class _Check:
    """Collects mismatches; each file is hashed once."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._root = pipeline.root
        self._seen: set[tuple[str, str]] = set()
        self.found: list[Mismatch] = []
        self.files = 0
        self.values = 0

    def add(self, where: str, what: str) -> None:
        self.found.append(Mismatch(where, what))

    def locked(self, stage: LockedStage) -> None:
        """Compare everything that ``dvc.lock`` says of a stage."""
        for path, md5 in stage.outs.items():
            self._path(path, md5)
        for path, md5 in stage.deps.items():
            self._dependency(stage, path, md5)
        present = self._pipeline.present.get(stage.name)
        whole = present.whole_files if present else frozenset()
        for file, values in stage.params.items():
            self._params(file, values, whole=file in whole)
        if self._pipeline.present:
            self._command(stage, present)

    def _path(self, path: str, md5: str) -> None:
        """Compare a file or folder with its recorded MD5; name the files that differ."""
        if (path, md5) in self._seen:
            return
        self._seen.add((path, md5))
        where = self._root / path
        if not where.exists():
            self.add(path, "is missing (`dvc pull` brings it, `dvc repro` makes it)")
        elif where.is_dir():
            now = folder_listing(where, self._pipeline.ignored)
            self.files += len(now)
            if listing_md5(now) != md5:
                was = self._pipeline.listing(md5) or _sealed(where)
                self._listings(path, now, was)
        else:
            self.files += 1
            self._compare_md5(path, file_md5(where), md5)

    def _listings(self, folder: str, now: Mapping[str, str], was: Mapping[str, str] | None) -> None:
        before = len(self.found)
        for name in sorted({*now, *(was or now)}):
            path = f"{folder}/{name}"
            if was is None or (name == LINEAGE and name not in was):
                continue
            if name not in now:
                self.add(path, "is missing")
            elif name not in was:
                self.add(path, "is new: the stage did not write it")
            else:
                self._compare_md5(path, now[name], was[name])
        if len(self.found) == before:
            self.add(folder, "its content is not what was recorded")

    def _compare_md5(self, path: str, now: str, was: str) -> None:
        if now != was:
            self.add(path, f"md5 is {now[:_SHOWN]}, was {was[:_SHOWN]}")

    def _dependency(self, stage: LockedStage, path: str, md5: str) -> None:
        """Compare what a stage read: with its producer's record, or with the files of the code."""
        producers = [
            (other, out)
            for other in self._pipeline.parents(stage)
            for out in other.outs
            if is_within(path, out) or is_within(out, path)
        ]
        exact = [other for other, out in producers if out == path]
        if exact:
            recorded = exact[0].outs[path]
            if recorded != md5:
                self.add(
                    path,
                    f"{stage.name} was made from an older one "
                    f"({md5[:_SHOWN]}; now {recorded[:_SHOWN]}): `dvc repro` renews it",
                )
        elif not producers:
            self._path(path, md5)
        elif (
            # the folder around other stages' results: they are compared one by one
            not self.found
            and (self._root / path).exists()
            and path_md5(self._root / path, self._pipeline.ignored) != md5
        ):
            self.add(path, f"{stage.name} was made from other results: `dvc repro` renews it")

    def _params(self, file: str, values: Mapping[str, Any], *, whole: bool) -> None:
        now = load(self._root / file)
        if not isinstance(now, Mapping):
            self.add(file, "is missing or no longer a parameter file")
            return
        if whole:
            present = flatten(now)
        else:
            # a key may be nested ("a.b") or a whole group
            kept = {key: lookup(now, key) for key in values}
            present = flatten({k: v for k, v in kept.items() if v is not MISSING})
        recorded = flatten(values)
        self.values += len(recorded)
        for key in sorted({*present, *recorded}):
            self._value(file, key, present.get(key), recorded.get(key))

    def _value(self, file: str, key: str, now: str | None, was: str | None) -> None:
        if now is None:
            self.add(f"{file}: {key}", f"is gone, was {was}")
        elif was is None:
            self.add(f"{file}: {key}", f"is new: {now}")
        elif now != was:
            self.add(f"{file}: {key}", f"is {now}, was {was}")

    def _command(self, stage: LockedStage, present: PresentStage | None) -> None:
        """Compare the command; a word that ``params.yaml`` fills in is named by its key there."""
        if present is None:
            self.add("params.yaml", f"the study no longer has {stage.name}")
            return
        if present.command == stage.command:
            return
        keys = study_keys(present, stage.item)
        was, now = dict(overrides(stage.command)), dict(overrides(present.command))
        for word in sorted({*was, *now}):
            if was.get(word) != now.get(word):
                key = keys.get(word)
                file, name = ("params.yaml", key) if key else ("dvc.yaml", f"{stage.name} {word}")
                self._value(file, name, now.get(word), was.get(word))
        if was == now:
            self.add("dvc.yaml", f"the command of {stage.name} is {present.command!r}")

    def by_hand(self, node: Node) -> None:
        """Compare a result that DVC does not know with its sealed list and the configuration."""
        folder = self._root / node.folder
        was = _sealed(folder) if node.folder else None
        if was is not None:
            now = folder_listing(folder)  # DVC's exclusions are not about what it does not track
            now.pop(LINEAGE, None)
            self.files += len(now)
            if now != was:
                self._listings(node.folder, now, was)
        for parameter in node.parameters:
            self._parameter(parameter)
        self._table(node)

    def _parameter(self, parameter: Parameter) -> None:
        """Compare a value with its configuration file."""
        origin = parameter.origin
        if origin.file in {IN_CODE, IN_COMMAND}:
            return
        now = lookup(load(self._root / origin.file), origin.key)
        if _is_composed(now):
            return
        self.values += 1
        text = None if now is MISSING else flatten({"value": now})["value"]
        if text is None or not _same(text, parameter.value):
            self._value(origin.file, origin.key, text, parameter.value)

    def _table(self, node: Node) -> None:
        if node.stage == "fetch" and node.folder:
            self.files += 1
            try:
                load_table(self._root / node.folder)
            except RoshapError as error:
                self.add(f"{node.folder}/table.parquet", " ".join(str(error).split()))
            return
        own = next((p.value for p in node.parameters if p.key == "dataset.path"), "null")
        if own != "null":
            self._own_file(own, node)

    def _own_file(self, path: str, node: Node) -> None:
        """Compare a person's own file with the one that the table was read from."""
        where = self._root / path
        if not where.is_file():
            self.add(path, "is missing")
            return
        table = next(iter(self._tables_of(node)), None)
        recorded = {one["sha256"] for one in (table or {}).get("source", {}).get("files", ())}
        with where.open("rb") as stream:
            now = hashlib.file_digest(stream, "sha256").hexdigest()
        self.files += 1
        if recorded and now not in recorded:
            self.add(path, f"sha256 is {now[:_SHOWN]}, was {next(iter(recorded))[:_SHOWN]}")

    def _tables_of(self, node: Node) -> Iterator[dict[str, Any]]:
        for digest in node.data.values():
            for path in sorted(self._root.glob(".roshap/data/*/table.json")):
                table = json.loads(path.read_text())
                if table["digest"] == digest:
                    yield table

    def copy(self, lineage: Lineage) -> None:
        """Compare a copied file's bytes with what was recorded of its original."""
        assert lineage.original is not None
        if not lineage.file.is_file():
            return
        self.files += 1
        recorded = self._recorded(lineage.original)
        now = file_md5(lineage.file)
        if recorded is None:
            recorded = file_md5(self._root / lineage.original)
        if now != recorded:
            self.add(
                str(lineage.file),
                f"is not {lineage.original} as it was recorded: md5 is {now[:_SHOWN]}, "
                f"was {recorded[:_SHOWN]}",
            )

    def _recorded(self, path: str) -> str | None:
        stage = self._pipeline.producer(path)
        for out, md5 in (stage.outs if stage else {}).items():
            if out == path:
                return md5
            listing = self._pipeline.listing(md5) or _sealed(self._root / out) or {}
            if is_within(path, out) and path[len(out) + 1 :] in listing:
                return listing[path[len(out) + 1 :]]
        for folder in (self._root / path).parents:
            sealed = _sealed(folder)
            if sealed is not None:
                return sealed.get((self._root / path).relative_to(folder).as_posix())
        return None

    def inside(self, lineage: Lineage) -> None:
        """Compare what a figure says inside with the ``lineage.json`` of its result."""
        assert lineage.inside is not None
        path = self._root / lineage.node.folder / LINEAGE
        if not path.is_file():
            return
        beside = json.loads(path.read_text())
        beside.pop("files", None)
        said = {key: value for key, value in lineage.inside.items() if key != "figure"}
        now, was = flatten(beside), flatten(said)
        self.values += len(was)
        shown = f"{lineage.node.folder}/{LINEAGE}"
        for key in sorted({*now, *was}):
            if now.get(key) != was.get(key):
                self.add(
                    f"{lineage.file}: {key}", f"is {was.get(key)} inside, {now.get(key)} in {shown}"
                )


def _is_composed(value: Any) -> bool:
    """Tell whether a value in a file is not the value that the stage sees.

    Hydra puts ``${...}`` in, and the schema completes groups (the sources of a data set, which its
    table's digest covers).
    """
    if isinstance(value, list):
        return any(isinstance(one, Mapping) for one in value)
    return isinstance(value, Mapping) or (isinstance(value, str) and "${" in value)


def _same(now: str, was: str) -> bool:
    """Tell whether two texts are one value: ``1e-3`` is text to YAML 1.1, a number to Hydra."""
    try:
        return now == was or float(now) == float(was)
    except ValueError:
        return False


def _sealed(folder: Path) -> dict[str, str] | None:
    """Return the list of files that a result was sealed with, if it was."""
    path = folder / LINEAGE
    if not path.is_file():
        return None
    try:
        files = json.loads(path.read_text()).get("files")
    except ValueError:
        return None
    return files if isinstance(files, dict) else None


def _versions(node: Node) -> Iterator[tuple[str, str]]:
    now = library_versions(name for name in node.versions if name != "python")
    for name, was in node.versions.items():
        if now.get(name) != was:
            yield name, f"is {now.get(name, 'not installed')}, was {was}"
