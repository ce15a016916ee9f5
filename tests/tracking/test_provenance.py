from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from roshap.errors import TrackingError
from roshap.tracking import (
    GitState,
    command_line,
    git_state,
    library_versions,
    path_md5,
    provenance,
    without_root,
    write_lineage,
)
from roshap.tracking.provenance import LIBRARIES


def _block(**changes: object) -> dict[str, str]:
    content: dict[str, object] = {
        "stage": "rank",
        "experiment": "wine-xgboost",
        "command": "roshap rank dataset=wine",
        "params": {"model": {"name": "xgboost"}, "runs": 20},
        "data_digests": {"wine": "abc"},
        "versions": {"numpy": "2.4.0", "xgboost": "3.2.0"},
    }
    return provenance(**{**content, **changes})  # type: ignore[arg-type]


def test_provenance_does_not_depend_on_the_order_of_keys() -> None:
    turned = _block(
        params={"runs": 20, "model": {"name": "xgboost"}},
        versions={"xgboost": "3.2.0", "numpy": "2.4.0"},
    )
    assert turned == _block()
    assert turned["parameters"] == '{"model":{"name":"xgboost"},"runs":20}'
    assert _block(params={"runs": 21}) != _block()


def test_lineage_file_is_the_block_and_byte_stable(tmp_path: Path) -> None:
    first = write_lineage(tmp_path, _block()).read_bytes()
    second = write_lineage(tmp_path, _block()).read_bytes()
    assert first == second
    content = json.loads(first)
    assert content["stage"] == "rank"
    assert content["parameters"] == {"model": {"name": "xgboost"}, "runs": 20}
    assert [path.name for path in tmp_path.iterdir()] == ["lineage.json"]


def test_digests_are_those_of_dvc(tmp_path: Path) -> None:
    from dvc_data.hashfile.build import build
    from dvc_data.hashfile.db import HashFileDB
    from dvc_objects.fs.local import LocalFileSystem

    folder = tmp_path / "data"
    (folder / "sub" / "deep").mkdir(parents=True)
    for name in ("b.csv", "a.bin", "sub.csv", "sub/x.txt", "sub/deep/é.txt"):
        (folder / name).write_bytes(f"{name}\r\n".encode())
    (folder / "empty").mkdir()
    fs = LocalFileSystem()
    store = HashFileDB(fs, str(tmp_path / "cache"))
    for path in (folder, folder / "b.csv"):
        _, _, built = build(store, str(path), fs, "md5", dry_run=True)
        assert path_md5(path) == built.hash_info.value


def test_digest_of_a_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TrackingError, match=r"cannot hash .*nothing: no such file or folder"):
        path_md5(tmp_path / "nothing")


def test_git_state_follows_the_checkout(root: Path, git_repository: str) -> None:
    (root / "mlflow.db").unlink()
    assert git_state(root) == GitState(git_repository, "main", dirty=False)
    (root / "dvc.lock").write_text("what the pipeline itself writes")
    assert not git_state(root).dirty
    (root / "conf.yaml").write_text("a: 2\n")
    assert git_state(root).dirty
    subprocess.run(["git", "checkout", "-q", "--", "conf.yaml"], cwd=root, check=True)
    (root / "new.yaml").write_text("not in the commit")
    assert git_state(root).dirty
    subprocess.run(["git", "checkout", "-q", "--detach"], cwd=root, check=True)
    assert git_state(root) == GitState(git_repository, None, dirty=True)


def test_git_state_outside_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_state(tmp_path) == GitState(None, None, dirty=False)
    monkeypatch.setenv("PATH", "")
    assert git_state(tmp_path) == GitState(None, None, dirty=False)


def test_library_versions_are_those_imported() -> None:
    import numpy as np

    versions = library_versions()
    assert versions["numpy"] == np.__version__
    assert versions["python"] == sys.version.split()[0]
    assert set(versions) <= {*LIBRARIES, "python"}
    assert library_versions(["no-such-library"]).keys() == {"python"}


def test_command_line_has_no_path_of_the_machine(tmp_path: Path) -> None:
    argv = ["/venv/bin/roshap", "rank", f"out={tmp_path}/results/a b", "top=[1,2]", "x=$y"]
    expected = "roshap rank 'out=results/a b' 'top=[1,2]' 'x=$y'"
    assert command_line(argv, tmp_path) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("out={root}", "out=."),
        ("out={root}/", "out=."),
        ("{root}/a,{root}/b", "a,b"),
        ("[{root}/a,{root}]", "[a,.]"),
        ("out={root}-other/a", "out={root}-other/a"),
        ("/elsewhere{root}/a", "/elsewhere{root}/a"),
        ("path=/elsewhere/a.csv", "path=/elsewhere/a.csv"),
    ],
)
def test_only_paths_below_the_root_change(tmp_path: Path, text: str, expected: str) -> None:
    assert without_root(text.format(root=tmp_path), tmp_path) == expected.format(root=tmp_path)
