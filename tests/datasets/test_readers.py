"""Every reader of the catalogue, on the committed configurations and on small made files."""

from __future__ import annotations

import inspect
import zipfile
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from roshap.datasets import check_dataset, fetch, load, reader_names
from roshap.datasets.readers import READERS, read_raw
from roshap.errors import ConfigError, DataError

CONF = Path(__file__).parents[2] / "conf" / "dataset"
NAMES = sorted(path.stem for path in CONF.glob("*.yaml"))
OFFLINE = {
    "breast_cancer": ("binary", ("benign", "malignant"), (569, 30)),
    "diabetes": ("regression", (), (442, 10)),
    "digits": ("multiclass", tuple("0123456789"), (1797, 64)),
    "make_regression": ("regression", (), (500, 50)),
    "simulation": ("binary", ("0", "1"), (600, 1000)),
    "wine": ("multiclass", ("class_0", "class_1", "class_2"), (178, 13)),
}


@pytest.mark.parametrize("name", NAMES)
def test_committed_configurations_are_valid_and_named_as_their_file(name: str, committed_spec):
    spec = committed_spec(name)
    assert spec.name == name
    text = (CONF / f"{name}.yaml").read_text()
    assert text.startswith("# ")
    for source in spec.sources:
        assert source.urls
        assert source.sha256


def test_every_reader_is_used_by_a_configuration(committed_spec) -> None:
    assert {committed_spec(name).reader for name in NAMES} == set(reader_names())


@pytest.mark.parametrize("name", sorted(READERS))
def test_readers_keep_the_contract(name: str) -> None:
    read = import_module(f"roshap.datasets.readers.{READERS[name]}").read
    first, *options = inspect.signature(read).parameters.values()
    assert first.name == "files"
    assert all(option.kind is inspect.Parameter.KEYWORD_ONLY for option in options)
    assert read.__doc__


@pytest.mark.parametrize("name", sorted(OFFLINE))
def test_offline_data_sets(name: str, committed_spec, tmp_path: Path) -> None:
    task, classes, shape = OFFLINE[name]
    data = fetch(committed_spec(name), tmp_path / "out", cache=tmp_path / "cache")
    assert (data.task, data.classes, data.X.shape) == (task, classes, shape)
    assert load(tmp_path / "out").digest == data.digest
    constant = check_dataset(data, allow_nan=False, allow_categorical=False)
    assert len(constant) == (3 if name == "digits" else 0)
    assert not (tmp_path / "cache").exists()


def test_the_simulation_follows_its_definition() -> None:
    table = read_raw("simulation", {}, {"n": 4000, "p": 14, "signals": 4, "seed": 1}).frame
    y = table.pop("y").to_numpy()
    assert y.sum() == 2000
    assert list(table)[:5] == ["signal_01", "signal_02", "signal_03", "signal_04", "noise_0001"]
    X = table.to_numpy()
    share = (X == 0).mean(axis=0)
    np.testing.assert_allclose(share, 0.5, atol=0.05)  # 6 standard errors
    delta = np.array([1.5, 1.5 - 1.1 / 3, 0.4 + 1.1 / 3, 0.4, *[0.0] * 10])
    for j, column in enumerate(X.T):
        for label, sign in ((1, 0.5), (0, -0.5)):
            drawn = column[(y == label) & (column != 0)]
            assert abs(drawn.mean() - sign * delta[j]) < 0.16  # 5 standard errors
            assert abs(drawn.std() - 1) < 0.12


def test_generated_data_depend_on_their_seed_only() -> None:
    for reader in ("simulation", "make_regression"):
        one, same, other = (read_raw(reader, {}, {"seed": seed}).frame for seed in (0, 0, 1))
        pd.testing.assert_frame_equal(one, same)
        assert not one.equals(other)


def test_make_regression_names_its_informative_features() -> None:
    options = {"n": 400, "p": 12, "informative": 3, "noise": 0.0}
    table = read_raw("make_regression", {}, options).frame
    y = table.pop("y")
    weights = np.linalg.lstsq(table.to_numpy(), y, rcond=None)[0]
    assert [name for name, w in zip(table, weights, strict=True) if abs(w) > 1e-6] == [
        "signal_01",
        "signal_02",
        "signal_03",
    ]


@pytest.mark.parametrize(
    "reader, options, message",
    [
        ("simulation", {"signals": 20, "p": 10}, "signals=20 exceeds p=10"),
        ("simulation", {"zero_probability": 1.0}, "zero_probability: .*less than 1"),
        ("simulation", {"n": "many"}, "dataset.reader_options.n: .*'many'"),
        ("make_regression", {"informative": 20, "p": 10}, "informative=20 exceeds p=10"),
        (
            "bundled",
            {"dataset": "boston"},
            "'breast_cancer', 'diabetes', 'digits', 'iris' or 'wine'",
        ),
        ("bundled", {}, "dataset"),
        ("musk", {"x": 1}, "unknown option 'x' of reader 'musk'; valid: none"),
    ],
)
def test_wrong_options(reader: str, options: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_raw(reader, {}, options)


def golub_files(folder: Path) -> dict[str, Path]:
    """Two probes, patients out of order and split over two files, as in the real ones."""
    train = folder / "data_set_ALL_AML_train.csv"
    train.write_text(
        "Gene Description,Gene Accession Number,3,call,1,call\nd,P1,30,A,10,P\nd,P2,31,A,11,A\n"
    )
    independent = folder / "data_set_ALL_AML_independent.csv"
    independent.write_text("Gene Description,Gene Accession Number,2,call\nd,P2,21,A\nd,P1,20,M\n")
    actual = folder / "actual.csv"
    actual.write_text("patient,cancer\n1,ALL\n2,AML\n3,ALL\n")
    return {path.name: path for path in (train, independent, actual)}


def test_golub_aligns_patients_and_probes(tmp_path: Path) -> None:
    files = golub_files(tmp_path)
    table = read_raw("golub", files, {}).frame
    assert table["P1"].tolist() == [10, 20, 30]
    assert table["P2"].tolist() == [11, 21, 31]
    assert table["class"].tolist() == ["ALL", "AML", "ALL"]
    files["actual.csv"].write_text("patient,cancer\n1,ALL\n2,AML\n")
    with pytest.raises(DataError, match=r"patients of .*differ"):
        read_raw("golub", files, {})


def test_ujiindoorloc_recodes_and_marks_the_held_out_rows(tmp_path: Path) -> None:
    path = tmp_path / "u.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "UJIndoorLoc/trainingData.csv",
            "WAP001,WAP002,LONGITUDE,FLOOR\n100,-50,-7541.264300000034,2\n0,100,-7300.5,1\n",
        )
        archive.writestr(
            "UJIndoorLoc/validationData.csv", "WAP001,WAP002,LONGITUDE,FLOOR\n-104,100,100,0\n"
        )
    raw = read_raw("ujiindoorloc", {"u.zip": path}, {"not_detected": -110})
    assert raw.frame["WAP001"].tolist() == [-110, 0, -104]
    assert raw.frame["WAP002"].tolist() == [-50, -110, -110]
    assert raw.frame["LONGITUDE"].tolist() == [-7541.264300000034, -7300.5, 100]
    assert raw.held_out.tolist() == [False, False, True]


def test_auto_mpg_keeps_or_drops_incomplete_rows(tmp_path: Path) -> None:
    path = tmp_path / "auto-mpg.data"
    path.write_text(
        '18.0   8   307.0      130.0      3504.      12.0   70  1\t"chevrolet chevelle malibu"\n'
        '25.0   4   98.00      ?          2046.      19.0   71  1\t"ford pinto"\n'
    )
    table = read_raw("auto_mpg", {path.name: path}, {}).frame
    assert table["car_name"].tolist() == ["chevrolet chevelle malibu"]
    kept = read_raw("auto_mpg", {path.name: path}, {"complete_rows": False}).frame
    assert kept["horsepower"].isna().tolist() == [False, True]


REAL = {
    "auto_mpg": 7,
    "golub": 7129,
    "musk": 166,
    "salary": 1,
    "spambase": 57,
    "ujiindoorloc": 520,
}


@pytest.mark.mirror
@pytest.mark.parametrize("name", sorted(REAL))
def test_real_data_match_the_committed_shape_and_digest(
    name: str, committed_spec, tmp_path: Path, mirror: Path
) -> None:
    spec = committed_spec(name)
    assert spec.digest
    assert spec.shape
    data = fetch(spec, tmp_path / "out", mirror=mirror, cache=tmp_path / "cache")
    assert data.p == REAL[name]
    assert data.digest == load(tmp_path / "out").digest == spec.digest
    assert {found["from"] for found in data.source["obtained"].values()} == {"mirror"}
    check_dataset(data, allow_nan=False, allow_categorical=False)


@pytest.mark.mirror
def test_facts_of_the_real_data(committed_spec, tmp_path: Path, mirror: Path) -> None:
    def get(name: str):
        return fetch(committed_spec(name), tmp_path / name, mirror=mirror, cache=tmp_path)

    golub = get("golub")
    assert dict(zip(golub.classes, np.bincount(golub.y), strict=True)) == {"ALL": 47, "AML": 25}
    assert golub.X["AFFX-BioB-5_at"].iloc[38] == -342  # patient 39, first of the second file
    musk = get("musk")
    counts = dict(zip(musk.classes, np.bincount(musk.y), strict=True))
    assert counts == {"non-musk": 5581, "musk": 1017}
    spam = get("spambase")
    assert dict(zip(spam.classes, np.bincount(spam.y), strict=True)) == {"ham": 2788, "spam": 1813}
    uji = get("ujiindoorloc")
    assert uji.held_out.sum() == 1111
    assert not uji.held_out[:19937].any()
    assert (uji.X.min().min(), uji.X.max().max()) == (-105, 0)
    assert uji.features[0] == "WAP001"
    assert uji.features[-1] == "WAP520"
