"""Estimators from conf/model/: right class, one thread, seeded, quiet; mistakes are named."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from roshap.errors import ModelError
from roshap.models import CLASSIFIERS, REGRESSORS, ModelSpec, build, final_step, fit

CONF = Path(__file__).parents[2] / "conf" / "model"
NAMES = sorted(path.stem for path in CONF.glob("*.yaml"))


def spec_of(name, **changes):
    return ModelSpec(**(yaml.safe_load((CONF / f"{name}.yaml").read_text()) | changes))


def spec(target, task="classification", **parameters):
    return ModelSpec(name="t", **{task: {"_target_": target, **parameters}})


def table(task, n=90, p=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    signal = X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=n)
    if task == "regression":
        return X, signal
    edges = [0.0] if task == "binary" else [-0.7, 0.7]
    return X, np.digitize(signal, edges).astype(np.int64)


def test_the_lists_of_models_are_those_of_the_configuration():
    specs = [spec_of(name) for name in NAMES if name != "custom"]
    assert tuple(s.name for s in specs if s.classification) == CLASSIFIERS
    assert tuple(s.name for s in specs if s.regression) == REGRESSORS
    assert all(path.stem == yaml.safe_load(path.read_text())["name"] for path in CONF.glob("*.y*"))


@pytest.mark.parametrize(
    "name, task",
    [(m, t) for m in CLASSIFIERS for t in ("binary", "multiclass")]
    + [(m, "regression") for m in REGRESSORS],
)
def test_every_model_builds_fits_and_repeats_itself(name, task, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = table(task)
    model = build(spec_of(name), task, seed=3)
    again = fit(build(spec_of(name), task, seed=3), X, y)
    fitted = fit(model, X, y)
    outputs = np.ravel(fitted.predict(X))  # CatBoost gives a column for several classes
    assert np.array_equal(outputs, np.ravel(again.predict(X)))
    quality = np.mean(outputs == y) if task != "regression" else np.corrcoef(outputs, y)[0, 1]
    assert quality > 0.7
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []  # CatBoost would write catboost_info


def test_threads_seed_and_quiet_are_set():
    boosted = build(spec_of("lightgbm"), "binary", seed=11)
    assert boosted.n_jobs == 1
    assert boosted.random_state == 11
    assert build(spec_of("xgboost", seed=4), "regression").random_state == 4
    cat = build(spec_of("catboost"), "multiclass", seed=11)
    assert cat.get_param("thread_count") == 1
    assert cat.get_param("random_seed") == 11
    forest = build(spec_of("random_forest"), "binary")
    assert (forest.n_jobs, forest.random_state) == (1, 0)


def test_the_paper_s_settings_arrive():
    model = build(spec_of("lightgbm"), "regression").get_params()
    expected = {
        "learning_rate": 0.03,
        "max_depth": 7,
        "num_leaves": 63,
        "min_child_samples": 30,
        "colsample_bytree": 0.7,
        "subsample": 0.8,
        "subsample_freq": 1,
        "reg_alpha": 0.01,
        "reg_lambda": 1.0,
        "n_estimators": 300,
    }
    assert {key: model[key] for key in expected} == expected


def test_linear_models_are_standardised():
    model = build(spec_of("ridge"), "regression")
    assert [name for name, _ in model.steps] == ["scale", "model"]
    assert type(final_step(model)).__name__ == "Ridge"


def test_nested_targets_are_built_first():
    model = build(
        spec(
            "sklearn.ensemble.BaggingClassifier",
            estimator={"_target_": "sklearn.tree.DecisionTreeClassifier", "max_depth": 2},
        ),
        "binary",
        seed=5,
    )
    assert model.estimator.max_depth == 2
    assert model.estimator.random_state == 5


@pytest.mark.parametrize(
    "model, task, words",
    [
        (spec_of("ridge"), "binary", "'ridge' has no settings for classification; .*xgboost"),
        (spec_of("logistic_regression"), "regression", "for regression; .*ridge"),
        (spec_of("custom"), "binary", "model.classification._target_=package.Class"),
        (spec("SVC"), "binary", "'SVC' is not of the form"),
        (spec("no_such_package.SVC"), "binary", "cannot import 'no_such_package'"),
        (spec("sklearn.svm.SVM"), "binary", "no class 'SVM'; did you mean"),
        (spec("os.system"), "binary", "not a class with a fit method"),
        (spec("sklearn.preprocessing.StandardScaler"), "binary", "no predict"),
        (spec("sklearn.svm.SVC", gama=1), "binary", "no parameter 'gama'; valid: .*gamma"),
        (spec("xgboost.XGBClassifier", max_dept=1), "binary", "'max_dept'; valid: .*max_depth"),
        (spec("lightgbm.LGBMClassifier", leaves=1), "binary", "'leaves'; valid: .*num_leaves"),
        (spec("catboost.CatBoostClassifier", dept=1), "binary", "'dept'; valid: .*depth"),
        (spec("xgboost.XGBClassifier", n_jobs=4), "binary", "compute.workers"),
        (spec("xgboost.XGBClassifier", random_state=4), "binary", "use model.seed"),
    ],
)
def test_mistakes_are_named_in_one_line(model, task, words):
    with pytest.raises(ModelError, match=words) as caught:
        build(model, task)
    assert "\n" not in str(caught.value)


def test_names_that_the_libraries_take_as_keywords_are_accepted():
    build(spec("lightgbm.LGBMClassifier", bagging_freq=1, path_smooth=0.1), "binary")
    row_wise = build(spec("lightgbm.LGBMClassifier", force_row_wise=True), "binary")
    assert "force_col_wise" not in row_wise.get_params()
    build(spec("xgboost.XGBClassifier", booster="dart", rate_drop=0.1), "binary")
    build(spec("xgboost.XGBRFClassifier", max_depth=3), "binary")
