"""Where a result comes from: commit, versions, digests, and the block that figures carry inside.

What goes into files (:func:`provenance`, :func:`write_lineage`) is the same in every execution: no
time, no commit, no run id, no path of the machine. What differs is logged to MLflow.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import re
import shlex
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from roshap.compute.files import write_json
from roshap.errors import TrackingError

LINEAGE = "lineage.json"
"""File beside a stage's tables: the provenance block and, once sealed, checksums."""

LIBRARIES = (
    "catboost",
    "dvc",
    "hydra-core",
    "joblib",
    "lightgbm",
    "matplotlib",
    "mlflow",
    "numba",
    "numpy",
    "pandas",
    "pyarrow",
    "roshap",
    "scikit-learn",
    "scipy",
    "shap",
    "timm",
    "torch",
    "xgboost",
)
"""Distributions whose version may change a result or says how it was made; sorted."""


@dataclass(frozen=True)
class GitState:
    """The state of a checkout.

    Attributes
    ----------
    commit, branch
        ``None`` outside a repository; ``branch`` also with a detached head.
    dirty
        Whether anything but ``dvc.lock`` differs from the commit or is not in it (files that git
        ignores do not count). ``dvc.lock`` is what a pipeline run writes, not what it reads.
    """

    commit: str | None
    branch: str | None
    dirty: bool


def git_state(root: Path) -> GitState:
    """Return commit, branch and dirty flag of the checkout at ``root``.

    Without git or outside a repository nothing is known: ``GitState(None, None, False)``.
    """
    command = ["git", "-C", str(root), "status", "--porcelain=v2", "--branch", "--", "."]
    command.append(":(exclude)dvc.lock")
    # no lock on the index: a stage must not get in the way of a person's git command
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        answer = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return GitState(None, None, False)
    lines = answer.stdout.splitlines()
    head = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# "))
    commit, branch = head.get("branch.oid"), head.get("branch.head")
    return GitState(
        commit=None if commit == "(initial)" else commit,
        branch=None if branch == "(detached)" else branch,
        dirty=any(not line.startswith("#") for line in lines),
    )


def library_versions(names: Iterable[str] = LIBRARIES) -> dict[str, str]:
    """Return the version of each installed distribution in ``names``, and Python's."""
    versions = {name: _version(name) for name in names}
    found = {name: version for name, version in versions.items() if version}
    return {"python": platform.python_version(), **found}


@functools.cache
def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def path_md5(path: Path, ignored: Callable[[Path], bool] | None = None) -> str:
    """Return the MD5 that DVC 3 records for a file or folder.

    A folder's is the MD5 of the JSON list of its files' MD5s and relative paths, followed by
    ``.dir``.

    Parameters
    ----------
    ignored
        Whether a file is left out, as ``.dvcignore`` says; ``None`` leaves out nothing.

    Raises
    ------
    TrackingError
        Where ``path`` does not exist.
    """
    try:
        if path.is_dir():
            return listing_md5(folder_listing(path, ignored))
        return file_md5(path)
    except FileNotFoundError as error:
        raise TrackingError(f"cannot hash {path}: no such file or folder") from error


def file_md5(path: Path) -> str:
    """Return the MD5 of a file's bytes, as DVC 3 records it."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, _md5).hexdigest()


def folder_listing(folder: Path, ignored: Callable[[Path], bool] | None = None) -> dict[str, str]:
    """Return the MD5 of each file of a folder, by its path in it."""
    files = (path for path in folder.rglob("*") if path.is_file())
    kept = (path for path in files if ignored is None or not ignored(path))
    return {path.relative_to(folder).as_posix(): file_md5(path) for path in kept}


def listing_md5(listing: Mapping[str, str]) -> str:
    """Return the MD5 of a folder with these files."""
    entries = [{"md5": md5, "relpath": path} for path, md5 in sorted(listing.items())]
    content = json.dumps(entries, sort_keys=True).encode()  # dvc_data.hashfile.tree.Tree.as_bytes
    return f"{_md5(content).hexdigest()}.dir"


def _md5(content: bytes = b"") -> Any:
    return hashlib.md5(content, usedforsecurity=False)  # DVC's choice; also under FIPS


def command_line(argv: Sequence[str], root: Path) -> str:
    """Return ``argv`` as the command that does the same from ``root`` on any machine.

    The program becomes ``roshap``, absolute paths at or below ``root`` become relative ones, and
    words are quoted where a shell needs it.
    """
    words = ("roshap", *(without_root(word, root) for word in argv[1:]))
    return shlex.join(words)


def without_root(text: str, root: Path) -> str:
    """Return ``text`` with every path below ``root`` relative to it, and ``root`` itself as ``.``.

    Only whole paths are replaced: ``root=/a/b`` leaves ``/a/bc`` alone.
    """
    here = re.escape(root.resolve().as_posix())
    inside, whole = r"/(?=[^\s,\]])", r"/?(?![\w/.-])"
    return re.sub(
        rf"(?<![\w/.-]){here}(?:({inside})|{whole})",
        lambda match: "" if match[1] else ".",
        text,
    )


def provenance(
    *,
    stage: str,
    experiment: str,
    command: str,
    params: Mapping[str, Any],
    data_digests: Mapping[str, str],
    versions: Mapping[str, str],
) -> dict[str, str]:
    """Return the block that a figure carries in its metadata and that lies beside tables.

    Parameters
    ----------
    command
        As :func:`command_line` gives it.
    params
        The nested configuration.
    data_digests
        SHA-256 of the canonical table of each data set, by name.
    versions
        As :func:`library_versions` gives them.

    Returns
    -------
    dict
        ``stage``, ``experiment``, ``command`` as text; ``parameters``, ``data``, ``versions`` as
        JSON with sorted keys. Equal input gives equal text, byte for byte.
    """
    return {
        "stage": stage,
        "experiment": experiment,
        "command": command,
        "parameters": _canonical(params),
        "data": _canonical(data_digests),
        "versions": _canonical(versions),
    }


def write_lineage(folder: Path, block: Mapping[str, str]) -> Path:
    """Write ``folder/lineage.json``, the readable form of a provenance block; return its path."""
    path = folder / LINEAGE
    write_json(path, readable(block))
    return path


def readable(block: Mapping[str, str]) -> dict[str, Any]:
    """Return a provenance block with its JSON parts as values."""
    structured = {"parameters", "data", "versions"}
    return {key: json.loads(text) if key in structured else text for key, text in block.items()}


def seal(folder: Path) -> None:
    """Write the MD5 of every file of ``folder`` into its ``lineage.json``, if it has one.

    A result of a person's own command is in no ``dvc.lock``: this says what its files were.
    """
    path = folder / LINEAGE
    if not path.is_file():
        return
    listing = folder_listing(folder)
    del listing[LINEAGE]
    write_json(path, {**json.loads(path.read_text(encoding="utf-8")), "files": listing})


def _canonical(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
