"""fetch on a person's own tables, and the roles and promises of a DatasetSpec."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from roshap.datasets import Dataset, DatasetSpec, fetch, load
from roshap.errors import ConfigError, DataError, FetchError

Fetch = Callable[..., Dataset]


@pytest.fixture
def own(tmp_path: Path) -> Fetch:
    """Write a table as a file and fetch it as ``dataset=csv`` would."""

    def run(content: pd.DataFrame | str | bytes, name: str = "my.csv", **spec: Any) -> Dataset:
        path = tmp_path / name
        if isinstance(content, pd.DataFrame):
            content = content.to_csv(index=False)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        options = {"name": "csv", "reader": "csv", "path": str(path), "target": "y", **spec}
        return fetch(
            DatasetSpec.model_validate(options), tmp_path / "out", cache=tmp_path / "cache"
        )

    return run


def test_a_csv_with_a_text_target(own: Fetch, frame: pd.DataFrame, tmp_path: Path) -> None:
    data = own(frame)
    assert (data.task, data.classes, data.n, data.p) == ("binary", ("no", "yes"), 20, 3)
    np.testing.assert_array_equal(data.X, frame[["a", "b", "c"]])  # exact: no bit is lost
    assert data.source["task_inferred"] == "a text target with 2 classes"
    sha = hashlib.sha256((tmp_path / "my.csv").read_bytes()).hexdigest()
    assert data.source["files"] == [{"file": "my.csv", "sha256": sha}]
    again = load(tmp_path / "out")
    assert again.digest == data.digest
    assert str(tmp_path) not in (tmp_path / "out" / "table.json").read_text()


def test_every_double_is_read_exactly(own: Fetch) -> None:
    rng = np.random.default_rng(5)
    hard = rng.normal(size=(500, 4)) * 10.0 ** rng.integers(-30, 30, size=(500, 4))
    table = pd.DataFrame(hard, columns=list("abcd")).assign(y=np.arange(500) % 2)
    np.testing.assert_array_equal(own(table).X, hard)


def test_formats_of_text(own: Fetch, frame: pd.DataFrame) -> None:
    plain = own(frame).digest
    assert own(frame.to_csv(index=False, sep=";")).digest == plain
    assert own(frame.to_csv(index=False, sep="\t"), "my.tsv").digest == plain
    assert own(frame.to_csv(index=False, sep="|")).digest == plain
    assert own("\ufeff" + frame.to_csv(index=False)).digest == plain
    assert own(frame.to_csv(index=False).replace("\n", "\r\n")).digest == plain
    assert own(gzip.compress(frame.to_csv(index=False).encode()), "my.csv.gz").digest == plain
    german = frame.to_csv(index=False, sep=";", decimal=",")
    assert own(german, reader_options={"decimal": ","}).digest == plain
    assert own(frame.to_csv(index=False, sep=":"), reader_options={"separator": ":"}).p == 3


def test_parquet(own: Fetch, frame: pd.DataFrame) -> None:
    assert own(frame.to_parquet(), "my.parquet").digest == own(frame).digest
    typed = frame.assign(cat=pd.Categorical(["u", "v"] * 10), flag=[True, False] * 10)
    data = own(typed.to_parquet(), "my.pq")
    assert data.X["flag"].tolist() == [1.0, 0.0] * 10
    assert list(data.X["cat"].cat.categories) == ["u", "v"]
    with pytest.raises(DataError, match=r"my.parquet: cannot be read as a table"):
        own(b"no parquet", "my.parquet")


def test_integer_column_names(own: Fetch, frame: pd.DataFrame) -> None:
    numbered = frame.set_axis([0, 1, 2, 3], axis=1)
    assert own(numbered, target=3, drop=[1]).features == ("0", "2")


def test_three_classes_and_a_number(own: Fetch, frame: pd.DataFrame) -> None:
    assert own(frame.assign(y=["u", "v", "w", "v"] * 5)).task == "multiclass"
    data = own(frame.assign(y=frame["a"] * 2))
    assert data.task == "regression"
    assert data.source["task_inferred"] == "a numeric target with 20 distinct values"
    assert "task_inferred" not in own(frame, task="binary").source


def test_roles(own: Fetch, frame: pd.DataFrame) -> None:
    table = frame.assign(
        patient=[f"p{i // 2}" for i in range(20)], w=np.arange(20) + 1, colour=["r", "g"] * 10
    )
    data = own(table, group="patient", weight="w", categorical=["colour"], drop=["c"])
    assert data.features == ("a", "b", "colour")
    assert data.groups[2] == "p1"
    assert data.weights[2] == 3.0
    assert list(data.X["colour"].cat.categories) == ["g", "r"]


@pytest.mark.parametrize(
    "spec, message",
    [
        ({"target": "Y"}, r"dataset.target: no column 'Y'; did you mean 'y'\?"),
        ({"target": "outcome"}, "no column 'outcome'; the columns are 'a', 'b', 'c', 'y'"),
        ({"drop": ["zz"]}, "dataset.drop: no column 'zz'"),
        ({"categorical": ["zz"]}, "dataset.categorical: no column 'zz'"),
        ({"group": "zz"}, "dataset.group: no column 'zz'"),
        ({"weight": "zz"}, "dataset.weight: no column 'zz'"),
        ({"drop": ["y"]}, "column 'y' is both dataset.target and dataset.drop"),
        ({"drop": ["a", "b", "c"]}, "no feature column is left"),
        ({"task": "regression"}, "wrong type for regression"),
        ({"shape": (20, 4)}, "20 rows x 3 features, expected 20 x 4.*dataset.shape=null"),
        ({"digest": "0" * 64}, "has digest .*, expected 000.*dataset.digest=null"),
    ],
)
def test_wrong_roles_and_promises(
    own: Fetch, frame: pd.DataFrame, tmp_path: Path, spec: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message) as caught:
        own(frame, **spec)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_required_values_are_asked_for(tmp_path: Path, committed_spec) -> None:
    spec = committed_spec("csv")
    with pytest.raises(ConfigError, match=r"dataset.path is not set.*dataset.path=my.csv"):
        fetch(spec, tmp_path, cache=tmp_path)
    with pytest.raises(ConfigError, match=r"dataset.target is not set.*dataset.target=y"):
        fetch(spec.model_copy(update={"path": "my.csv"}), tmp_path, cache=tmp_path)


@pytest.mark.parametrize(
    "content, message",
    [
        ("a,a,y\n1,2,0\n", "my.csv: duplicate column names: 'a'"),
        ("a, a,y\n1,2,0\n", "duplicate column names: 'a'"),
        ("", "cannot be read as a table"),
        ("a,y\n1,0\n1,2,3\n", "cannot be read as a table: .*line 3"),
        ("a,y\n" + "r,1,0\n" * 12, "2 column names for rows of 3 fields"),
        (",a,y\n" + "1,2,0\n1,2,1\n" * 6, r"without a name .*dataset.drop=\['Unnamed: 0'\]"),
        ("a,y\n1,0\n2,1\n3,0\n", "3 rows are too few"),
        ("a,y\n" + "?,0\n1,1\n2,1\n" * 5, r"dataset.reader_options.missing=\['\?'\]"),
        ("a,b,y\n" + "1,,0\n1,,1\n" * 5, "columns without any value: 'b'"),
        ("a,y\n" + "1,\n2,1\n" * 6, "target 'y' has 6 missing values"),
        ("a,y\n" + "2020-01-31,0\n2020-02-29,1\n" * 6, "column 'a' holds text"),
        (b"a,y\n" + b"\xe4,0\nx,1\n" * 6, "not utf-8 text.*encoding, e.g. latin-1"),
        (b"\xe4,y\n" + b"1,0\n2,1\n" * 6, "not utf-8 text"),
    ],
)
def test_bad_files_are_one_clear_line(own: Fetch, content: str | bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        own(content)
    assert "\n" not in str(caught.value)


def test_bad_files_can_be_read_with_the_options_that_errors_name(own: Fetch) -> None:
    text = "a,b,y\n" + "?,5,0\n1,6,1\n2,7,1\n" * 5
    assert own(text, reader_options={"missing": ["?"]}).X["a"].isna().sum() == 5
    latin = "ä,y\n".encode("latin-1") + b"1,0\n2,1\n" * 6
    assert own(latin, reader_options={"encoding": "latin-1"}).features == ("ä",)
    unnamed = ",a,y\n" + "1,2,0\n1,2,1\n" * 6
    assert own(unnamed, drop=["Unnamed: 0"]).features == ("a",)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    for path, message in ((tmp_path / "no.csv", "no such file: "), (tmp_path, "is a folder")):
        spec = DatasetSpec(name="csv", reader="csv", path=str(path), target="y")
        with pytest.raises(DataError, match=f"dataset.path: {message}"):
            fetch(spec, tmp_path / "out", cache=tmp_path / "cache")


@pytest.mark.parametrize(
    "options, message",
    [
        ({"seperator": ";"}, r"unknown option 'seperator' .*did you mean 'separator'.*valid: sep"),
        ({"separator": ";;"}, "dataset.reader_options.separator: .*at most 1 character"),
        ({"missing": 3}, "dataset.reader_options.missing"),
        ({"encoding": "utf-99"}, "unknown encoding 'utf-99'"),
    ],
)
def test_wrong_reader_options(
    own: Fetch, frame: pd.DataFrame, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        own(frame, reader_options=options)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"reader": "cvs"}, "unknown reader 'cvs'; valid: auto_mpg, bundled, csv"),
        ({"name": "../x"}, "name"),
        ({"tarket": "y"}, "tarket"),
        ({"digest": "abc"}, "digest"),
        ({"sources": [{"file": "../../etc/passwd", "sha256": "0" * 64}]}, "stays inside"),
        ({"sources": [{"file": "/etc/passwd", "sha256": "0" * 64}]}, "stays inside"),
        ({"sources": [{"file": "f", "urls": ["file:///etc/passwd"]}]}, "not an http"),
        ({"sources": [{"file": "f", "urls": ["http://h/f"]}]}, "f has no sha256"),
        ({"path": "f.csv", "sources": [{"file": "f", "sha256": "0" * 64}]}, "not both"),
        ({"task": "ranking"}, "task"),
    ],
)
def test_the_schema_refuses(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        DatasetSpec.model_validate({"name": "n", "reader": "csv", **change})


def test_labels_of_yaml_become_text() -> None:
    spec = DatasetSpec.model_validate(
        {"name": "n", "reader": "csv", "target": 3, "drop": [0, True], "classes": [0, 1]}
    )
    assert (spec.target, spec.drop, spec.classes) == ("3", ("0", "True"), ("0", "1"))


def lines(ending: str) -> bytes:
    rows = "".join(f"{i % 7},{i % 2}{ending}" for i in range(40))
    return ("a,y" + ending + rows).encode()


def test_a_download_is_judged_by_its_table_where_bytes_may_differ(server, tmp_path: Path) -> None:
    """As for spambase, whose line ends differ between hosts."""
    known = hashlib.sha256(lines("\n")).hexdigest()

    def spec(address: str, digest: str | None) -> DatasetSpec:
        other = {"url": address, "sha256": None}
        file = {"file": "t.csv", "sha256": known, "urls": [other]}
        return DatasetSpec.model_validate(
            {"name": "t", "reader": "csv", "target": "y", "sources": [file], "digest": digest}
        )

    def run(spec: DatasetSpec, cache: str) -> Dataset:
        return fetch(spec, tmp_path / "out", cache=tmp_path / cache)

    trusted = spec(server.add("/unix", lines("\n")), None)
    with pytest.raises(FetchError, match="no checksum to verify it"):
        run(trusted, "1")
    mirror = tmp_path / "mirror" / "t"
    mirror.mkdir(parents=True)
    (mirror / "t.csv").write_bytes(lines("\n"))
    expected = fetch(trusted, tmp_path / "out", mirror=mirror.parent, cache=tmp_path / "2").digest

    address = server.add("/dos", lines("\r\n"))
    data = run(spec(address, expected), "3")
    assert data.digest == expected
    assert data.source["obtained"]["t.csv"]["from"] == address
    assert run(spec(address, expected), "3").source["obtained"]["t.csv"]["from"] == "cache"

    wrong = server.add("/wrong", lines("\n").replace(b"6,", b"8,"))
    with pytest.raises(FetchError, match="refused: its table has digest"):
        run(spec(wrong, expected), "4")
    with pytest.raises(FetchError, match=r"refused: t: dataset.target: no column 'y'"):
        run(spec(server.add("/html", b"<html>\n</html>"), expected), "5")


def test_a_large_csv_is_read_within_bounds(tmp_path: Path) -> None:
    """Peak memory of the process stays a small multiple of the table's 10 MB."""
    import subprocess
    import sys

    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(50_000, 25)).round(4)).assign(y=np.arange(50_000) % 3)
    table.to_csv(tmp_path / "big.csv", index=False)
    script = """
import resource, sys
from roshap.datasets import DatasetSpec, fetch
import pandas, pyarrow.parquet, requests
from roshap.datasets import fetching
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
spec = DatasetSpec(name="big", reader="csv", path=sys.argv[1] + "/big.csv", target="y")
fetch(spec, sys.argv[1] + "/out", cache=sys.argv[1])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 150
