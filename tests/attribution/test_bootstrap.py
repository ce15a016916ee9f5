import os

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier, XGBRegressor

from roshap.attribution.attributions import Attributions
from roshap.attribution.bootstrap import BootstrapSettings, bootstrap_attributions, key_parts
from roshap.attribution.splitter import BootstrapOOB
from roshap.compute import Executor
from roshap.datasets import from_frame
from roshap.errors import ConfigError, DataError, ModelError

NATIVE = BootstrapSettings(explainer="native")


def table(n=60, p=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def boosted(kind=XGBClassifier, **parameters):
    return kind(n_estimators=4, max_depth=2, random_state=0, n_jobs=1, subsample=0.8, **parameters)


def binary(n=60, **arguments):
    X = table(n)
    return from_frame(X, (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int), **arguments)


def three_classes():
    X = table(90)
    return from_frame(X, np.array(["low", "mid", "top"])[np.digitize(X[:, 0], [-0.4, 0.4])])


def numeric():
    X = table()
    return from_frame(X, 2 * X[:, 0] + X[:, 1], task="regression")


def with_categories():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"kind": pd.Categorical(rng.choice(list("abc"), 60)), "x": rng.normal(size=60)}
    )
    return from_frame(X, (X["kind"] == "a").to_numpy(dtype=int))


def run(data, model, runs=4, settings=NATIVE, workers=1, **arguments):
    return bootstrap_attributions(
        data,
        model,
        runs=runs,
        seed=arguments.pop("seed", 0),
        settings=settings,
        executor=Executor(workers=workers),
        **arguments,
    )


def files(attributions, directory):
    attributions.save(directory)
    return {path.name: path.read_bytes() for path in directory.iterdir()}


STUDIES = {
    "binary": (binary, boosted),
    "classes": (three_classes, boosted),
    "regression": (numeric, lambda: boosted(XGBRegressor)),
    "linear": (binary, lambda: make_pipeline(StandardScaler(), LogisticRegression())),
    "categories": (with_categories, boosted),
}


@pytest.mark.parametrize("study", STUDIES)
def test_same_bytes_for_any_number_of_workers(study, tmp_path):
    data, model = (make() for make in STUDIES[study])
    serial = run(data, model)
    assert files(serial, tmp_path / "1") == files(run(data, model, workers=2), tmp_path / "2")
    n_outputs = 3 if study == "classes" else 1
    assert serial.S.shape == (4, data.p, n_outputs)
    assert serial.rows.mean.shape == (data.n, data.p, n_outputs)
    assert serial.classes == (("low", "mid", "top") if n_outputs == 3 else ())
    assert serial.scores.mean(axis=0).argmax() == 0
    assert (serial.S[0] != serial.S[1]).any()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("aggregate", ["sum", "mean"])
@pytest.mark.parametrize("row_values", [10**6, 30])
def test_runs_are_those_written_by_hand(weighted, aggregate, row_values):
    weights = np.random.default_rng(1).uniform(0.5, 2, 60) if weighted else None
    data = binary(weights=weights)
    settings = BootstrapSettings(explainer="native", aggregate=aggregate, row_values=row_values)
    found = run(data, boosted(), settings=settings)
    X, y = data.X.to_numpy(), data.y
    unit = np.ones(60) if weights is None else weights
    splits = BootstrapOOB(4, random_state=0).split(X, y)
    for S, n_oob, (bag, oob) in zip(found.S, found.n_oob, splits, strict=True):
        model = boosted().fit(X[bag], y[bag], sample_weight=unit[bag] if weighted else None)
        phi = model.get_booster().predict(_matrix(X[oob]), pred_contribs=True)[:, :-1]
        expected = (unit[oob, None] * np.abs(phi.astype(float))).sum(axis=0)
        if aggregate == "mean":
            expected /= unit[oob].sum()
        np.testing.assert_allclose(S[:, 0], expected, rtol=1e-6)
        assert n_oob == oob.size


def _matrix(X):
    from xgboost import DMatrix

    return DMatrix(X)


def test_row_summaries_add_up_to_the_runs():
    found = run(binary(), boosted(), runs=12)
    rows = found.rows
    assert rows.complete
    assert rows.n_oob.sum() == found.n_oob.sum()
    assert rows.quantiles.shape == (60, 6, 1, 3)
    # a feature that is zero in every run is zero in every row
    never = found.scores.max(axis=0) == 0
    assert (rows.p0[:, never] == 1).all()
    assert (rows.var_sum[~never] > 0).all()


def test_rows_can_be_left_out():
    without = run(
        binary(), boosted(), settings=BootstrapSettings(explainer="native", row_level=False)
    )
    with_rows = run(binary(), boosted(), settings=NATIVE)
    assert without.rows is None
    np.testing.assert_allclose(without.S, with_rows.S, rtol=1e-12)


def test_screened_features_have_no_attribution_in_that_run():
    settings = BootstrapSettings(explainer="native", screening="univariate", keep=2)
    found = run(binary(), boosted(), runs=8, settings=settings)
    assert ((found.scores > 0).sum(axis=1) <= 2).all()
    assert (found.scores[:, 0] > 0).all()
    assert found.rows.mean.shape == (60, 6, 1)


def test_rare_class_is_in_every_bag_and_redraws_are_counted():
    y = np.repeat([0, 1], [54, 6])
    settings = BootstrapSettings(explainer="native", min_per_class=4)
    found = run(from_frame(table(), y), boosted(), runs=20, settings=settings)
    assert found.redraws.sum() > 0
    assert (found.n_oob > 0).all()


def test_plain_bag_of_one_class_is_an_error_that_says_what_to_do():
    y = np.repeat([0, 1], [58, 2])
    settings = BootstrapSettings("plain", explainer="native")
    with pytest.raises(ModelError, match=r"^run \d+: .*class") as caught:
        run(from_frame(table(), y), boosted(), runs=40, settings=settings)
    assert "\n" not in str(caught.value)


def test_groups_are_drawn_whole():
    groups = np.repeat(np.arange(12), 5)
    found = run(binary(groups=groups), boosted(), runs=6)
    assert (found.n_oob % 5 == 0).all()
    assert found.meta["grouped"]


def test_missing_values_reach_a_model_that_takes_them_and_no_other():
    X = table()
    y = (X[:, 0] > 0).astype(int)
    X[::7, 1] = np.nan
    assert np.isfinite(run(from_frame(X, y), boosted()).S).all()
    with pytest.raises(DataError, match="takes no missing values"):
        run(from_frame(X, y), LogisticRegression())


def test_held_out_rows_are_never_seen():
    held_out = np.arange(60) % 3 == 0
    X, y = table(), binary().y
    spoiled = X.copy()
    spoiled[held_out] = 1e6
    clean, dirty = (
        run(from_frame(values, y, held_out=held_out), boosted()) for values in (X, spoiled)
    )
    np.testing.assert_array_equal(clean.S, dirty.S)
    np.testing.assert_array_equal(clean.rows.rows, np.flatnonzero(~held_out))
    assert clean.rows.n_rows_total == 40


def test_column_names_and_index_do_not_matter():
    X, y = table(), binary().y
    index = np.random.default_rng(3).permutation(60)
    frame = pd.DataFrame(X, columns=range(6), index=index)
    by_name = run(from_frame(frame, pd.Series(y, index=index)), boosted())
    np.testing.assert_array_equal(by_name.S, run(from_frame(X, y), boosted()).S)
    assert by_name.features == ("0", "1", "2", "3", "4", "5")


def test_order_of_columns_moves_the_scores_along():
    data, order = binary(), np.array([3, 1, 5, 0, 2, 4])
    permuted = from_frame(data.X.iloc[:, order], data.y)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    first, second = run(data, model), run(permuted, model)
    np.testing.assert_allclose(second.S, first.S[:, order], rtol=1e-6)


def test_read_only_memory_map(tmp_path):
    np.save(tmp_path / "X.npy", table())
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    mapped = run(from_frame(X, binary().y), boosted(), workers=2)
    np.testing.assert_array_equal(mapped.S, run(binary(), boosted()).S)


def test_first_runs_do_not_depend_on_their_number():
    few, many = run(binary(), boosted(), runs=3), run(binary(), boosted(), runs=6)
    np.testing.assert_array_equal(few.S, many.S[:3])


def test_permutation_explainer_is_repeatable_in_parallel(tmp_path):
    settings = BootstrapSettings(explainer="permutation")
    data, model = from_frame(table(20, 3), table(20, 1)[:, 0]), Ridge()
    serial = files(run(data, model, 3, settings), tmp_path / "1")
    assert serial == files(run(data, model, 3, settings, workers=2), tmp_path / "2")


def test_warnings_of_a_library_are_counted_not_repeated(capfd):
    data = binary()
    found = run(data, LogisticRegression(max_iter=1), workers=2)
    ((line, count),) = found.meta["warnings"].items()
    assert line.startswith("ConvergenceWarning: lbfgs failed to converge")
    assert count == 4
    assert "Convergence" not in capfd.readouterr().err


def test_description_of_the_result():
    found = run(three_classes(), boosted())
    assert found.explainer == "xgboost native"
    assert found.meta["class_aggregate"] == "mean over classes"
    assert found.meta["model"]["max_depth"] == "2"
    assert found.meta["settings"]["strategy"] == "redraw"
    assert {"numpy", "xgboost", "roshap"} <= set(found.meta["versions"])
    assert isinstance(found, Attributions)


def test_no_run_works_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(binary(), boosted(), workers=2)
    assert os.listdir() == []


class Moody(DummyRegressor):
    """A regressor of a user's own."""


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"seed": 1}, {"seed"}),
        ({"settings": BootstrapSettings(keep=7)}, {"settings.keep"}),
        ({"settings": BootstrapSettings(aggregate="mean")}, set()),
        ({"model": boosted(gamma=1)}, {"model.gamma"}),
        ({"data": binary(weights=np.full(60, 2.0))}, {"data"}),
        ({"data": binary(groups=np.arange(60) % 7)}, {"data"}),
        ({"data": from_frame(table(seed=1), binary().y)}, {"data"}),
        ({"data": from_frame(table(), binary().y, target="other")}, set()),
    ],
)
def test_key_changes_with_what_decides_a_run(change, parts):
    base = {"data": binary(), "model": boosted(), "seed": 0, "settings": BootstrapSettings()}

    def key(data, model, **rest):
        return key_parts(data, model, **rest)

    before, after = key(**base), key(**{**base, **change})
    assert {name for name in before | after if before.get(name) != after.get(name)} == parts


def test_key_follows_categories_and_the_source_of_own_models():
    data = with_categories()
    renamed = from_frame(
        data.X.assign(kind=data.X["kind"].cat.rename_categories({"a": "z"})), data.y
    )
    settings = {"seed": 0, "settings": NATIVE}
    assert key_parts(data, Ridge(), **settings) != key_parts(renamed, Ridge(), **settings)
    assert "model source" in key_parts(data, Moody(), **settings)
    assert "model source" not in key_parts(data, Ridge(), **settings)


@pytest.mark.parametrize("runs", [-1, 0, 1])
def test_fewer_than_two_runs_are_refused(runs):
    with pytest.raises(ConfigError, match=f"runs={runs}: .* at least 2"):
        run(binary(), boosted(), runs=runs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strategy": "some"}, r"unknown strategy 'some' \(valid: plain, stratified, redraw\)"),
        ({"aggregate": "max"}, r"unknown aggregate 'max' \(valid: sum, mean\)"),
        ({"screening": "lasso"}, "unknown screening 'lasso'"),
        ({"explainer": "tree"}, "unknown explainer 'tree'"),
        ({"keep": 0}, "keep=0"),
        ({"row_values": 0}, "row_values=0"),
        ({"chunk_mb": 0.0}, r"chunk_mb=0\.0"),
    ],
)
def test_wrong_settings_name_the_value(arguments, message):
    with pytest.raises(ConfigError, match=message):
        BootstrapSettings(**arguments)


def test_negative_seed():
    with pytest.raises(ConfigError, match="seed=-1"):
        run(binary(), boosted(), seed=-1)
