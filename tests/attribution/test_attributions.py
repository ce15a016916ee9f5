import json

import numpy as np
import pytest

from roshap.attribution.attributions import Attributions, RowSummaries
from roshap.errors import DataError, OutputError


def make(n_outputs=1, *, with_rows=True):
    rng = np.random.default_rng(0)
    shape = (4, 3, n_outputs)
    rows = RowSummaries(
        rows=np.arange(4),
        n_oob=np.array([1, 2, 0, 3]),
        mean=rng.normal(size=shape).astype(np.float32),
        sd=rng.random(shape).astype(np.float32),
        p0=rng.random(shape).astype(np.float32),
        quantiles=rng.normal(size=(*shape, 3)).astype(np.float32),
        var_sum=rng.random(shape[1:]),
        abs3_sum=rng.random(shape[1:]),
        var_max=rng.random(shape[1:]),
        n_rows_total=4,
    )
    return Attributions(
        S=rng.random((5, *shape[1:])),
        aggregate="sum",
        features=("a", "größe", "0"),
        classes=("x", "y", "z") if n_outputs == 3 else (),
        n_oob=np.arange(5),
        redraws=np.zeros(5, dtype=np.int64),
        explainer="tree kernel",
        space="log-odds (margin)",
        rows=rows if with_rows else None,
        meta={"seed": 0, "settings": {"keep": 5}},
    )


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("with_rows", [True, False])
def test_what_is_saved_is_loaded(tmp_path, n_outputs, with_rows):
    saved = make(n_outputs, with_rows=with_rows)
    saved.save(tmp_path)
    loaded = Attributions.load(tmp_path)
    for name in ("aggregate", "features", "classes", "explainer", "space", "meta"):
        assert getattr(loaded, name) == getattr(saved, name)
    for name in ("S", "n_oob", "redraws"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(saved, name))
    if not with_rows:
        assert loaded.rows is None
        return
    for name, value in vars(saved.rows).items():
        np.testing.assert_array_equal(getattr(loaded.rows, name), value)
        if isinstance(value, np.ndarray):
            assert getattr(loaded.rows, name).dtype == value.dtype
    assert loaded.rows.levels == saved.rows.levels
    assert loaded.rows.complete


def test_files_are_the_same_byte_for_byte(tmp_path):
    make(3).save(tmp_path / "a")
    Attributions.load(tmp_path / "a").save(tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_former_row_summaries_do_not_stay(tmp_path):
    make().save(tmp_path)
    make(with_rows=False).save(tmp_path)
    assert sorted(contents(tmp_path)) == ["attributions.json", "attributions.npz"]


def test_score_of_several_classes_is_their_mean():
    several, single = make(3), make(1)
    np.testing.assert_array_equal(several.scores, several.S.mean(axis=2))
    np.testing.assert_array_equal(single.scores, single.S[:, :, 0])
    assert several.runs == 5


def test_missing_damaged_and_foreign_files(tmp_path):
    with pytest.raises(DataError, match="no attributions in"):
        Attributions.load(tmp_path)
    make().save(tmp_path)
    (tmp_path / "rows.npz").unlink()
    with pytest.raises(DataError, match=r"rows\.npz is missing"):
        Attributions.load(tmp_path)
    make().save(tmp_path)
    path = tmp_path / "attributions.npz"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match="are damaged"):
        Attributions.load(tmp_path)
    (tmp_path / "attributions.json").write_text(json.dumps({"format": "other"}))
    with pytest.raises(DataError, match="does not describe attributions"):
        Attributions.load(tmp_path)


def test_pickled_objects_are_refused(tmp_path):
    make().save(tmp_path)
    np.savez(tmp_path / "attributions.npz", S=np.array([object()]), n_oob=1, redraws=1)
    with pytest.raises(DataError, match="are damaged"):
        Attributions.load(tmp_path)


def test_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        make().save(tmp_path / "file")
