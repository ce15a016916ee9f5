"""The canonical table: what is written comes back, byte for byte the same each time."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from roshap.datasets import Dataset, from_frame, load
from roshap.datasets.table import write
from roshap.errors import DataError, OutputError


def rich() -> Dataset:
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(24, 3)), columns=["x", "ü [1]", "z"])
    X.iloc[2, 0] = np.nan
    X.iloc[3, 0] = -0.0
    # First seen last in the sorted order, one missing: the file's own dictionary differs.
    X.insert(1, "cat", ["v", "u", None] * 8)
    return from_frame(
        X,
        ["c", "a", "b"] * 8,
        name="rich",
        target="kind",
        categorical=["cat"],
        groups=[f"p{i // 2}" for i in range(24)],
        weights=rng.random(24),
        held_out=np.arange(24) > 20,
        source={"reader": "csv", "obtained": {"f": {"from": "mirror"}}},
    )


def regression() -> Dataset:
    X = np.random.default_rng(2).normal(size=(15, 4))
    return from_frame(X, X[:, 0] * 2.0, groups=np.arange(15) // 3)


@pytest.mark.parametrize("make", [rich, regression])
def test_round_trip(tmp_path: Path, make) -> None:
    data = make()
    write(data, tmp_path / "deep" / "er")
    again = load(tmp_path / "deep" / "er")
    pd.testing.assert_frame_equal(again.X, data.X)
    for name in ("y", "groups", "weights", "held_out"):
        ours, theirs = getattr(again, name), getattr(data, name)
        assert (ours is None) == (theirs is None)
        if theirs is not None:
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
    for name in ("name", "task", "target", "classes", "digest"):
        assert getattr(again, name) == getattr(data, name)
    assert "obtained" not in again.source


def test_files_are_byte_stable_and_nothing_else_is_left(tmp_path: Path) -> None:
    write(rich(), tmp_path / "1")
    write(rich(), tmp_path / "2")
    write(rich(), tmp_path / "2")  # over an older one
    for name in ("table.parquet", "table.json"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    assert sorted(p.name for p in (tmp_path / "2").iterdir()) == ["table.json", "table.parquet"]


def test_the_parquet_is_readable_by_others(tmp_path: Path) -> None:
    data = rich()
    write(data, tmp_path)
    table = pq.read_table(tmp_path / "table.parquet").to_pandas()
    assert table["kind"].astype(str).tolist() == ["c", "a", "b"] * 8
    assert table["__held_out__"].sum() == 3
    assert np.isnan(table["x"][2])


def test_a_missing_table(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no table.json in .*: fetch"):
        load(tmp_path)


def test_files_that_do_not_belong_together(tmp_path: Path) -> None:
    write(rich(), tmp_path / "1")
    changed = rich()
    changed.X.iloc[0, 0] += 1.0
    write(changed, tmp_path / "2")
    (tmp_path / "2" / "table.parquet").replace(tmp_path / "1" / "table.parquet")
    with pytest.raises(DataError, match=r"has digest .*, table.json says"):
        load(tmp_path / "1")
    write(regression(), tmp_path / "3")
    (tmp_path / "3" / "table.parquet").replace(tmp_path / "1" / "table.parquet")
    with pytest.raises(DataError, match="do not belong together"):
        load(tmp_path / "1")


@pytest.mark.parametrize("name", ["table.parquet", "table.json"])
def test_a_cut_file(tmp_path: Path, name: str) -> None:
    write(rich(), tmp_path)
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match="damaged table") as caught:
        load(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_foreign_json(tmp_path: Path) -> None:
    write(rich(), tmp_path)
    (tmp_path / "table.json").write_text(json.dumps({"format": "other"}))
    with pytest.raises(DataError, match=r"not a roshap.table/1 file"):
        load(tmp_path)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match=r"cannot write .*table.parquet"):
        write(rich(), tmp_path / "file")


def test_an_interrupted_write_leaves_the_old_table(tmp_path: Path, monkeypatch) -> None:
    write(rich(), tmp_path)
    before = (tmp_path / "table.parquet").read_bytes()

    def stop(table: object, stream, **options: object) -> None:
        stream.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(pq, "write_table", stop)
    with pytest.raises(KeyboardInterrupt):
        write(regression(), tmp_path)
    assert (tmp_path / "table.parquet").read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["table.json", "table.parquet"]
