"""Families of models, told apart by the names of their types.

No library is imported for it: an estimator whose class comes from, say, LightGBM is recognised by
the module and the name of a class among its ancestors, so that subclasses count as well.
"""

from __future__ import annotations

from typing import Any, Literal

Family = Literal["xgboost", "lightgbm", "catboost", "tree", "linear", "other"]

# (first part of the module, class name) of an ancestor -> family
_FAMILIES: dict[tuple[str, str], Family] = {
    ("xgboost", "XGBModel"): "xgboost",
    ("lightgbm", "LGBMModel"): "lightgbm",
    ("catboost", "CatBoost"): "catboost",
    ("sklearn", "BaseDecisionTree"): "tree",
    ("sklearn", "BaseForest"): "tree",
    ("sklearn", "BaseGradientBoosting"): "tree",
    ("sklearn", "BaseHistGradientBoosting"): "tree",
    ("sklearn", "LinearModel"): "linear",
    ("sklearn", "LinearClassifierMixin"): "linear",
    ("sklearn", "BaseSGDRegressor"): "linear",
    ("sklearn", "_GeneralizedLinearRegressor"): "linear",
}

# Transformers that map each column on its own to the column at the same place, so that an
# attribution to a transformed column is the attribution to the original one.
_COLUMNWISE = frozenset(
    {
        "MaxAbsScaler",
        "MinMaxScaler",
        "PowerTransformer",
        "QuantileTransformer",
        "RobustScaler",
        "SimpleImputer",
        "StandardScaler",
    }
)


def type_names(model: object) -> set[tuple[str, str]]:
    """Return (top-level package, class name) of the type of `model` and of all its ancestors."""
    kind = model if isinstance(model, type) else type(model)
    return {(cls.__module__.partition(".")[0], cls.__name__) for cls in kind.__mro__}


def is_pipeline(model: object) -> bool:
    """Whether `model` is a scikit-learn pipeline (or a subclass of it)."""
    return ("sklearn", "Pipeline") in type_names(model)


def final_step(model: Any) -> Any:
    """Return the estimator that predicts: the last step of a pipeline, or `model` itself."""
    while is_pipeline(model):
        model = model.steps[-1][1]
    return model


def columnwise_steps(model: Any) -> Any | None:
    """Return the transforming part of a pipeline when it keeps each feature in its place.

    Returns
    -------
    sklearn.pipeline.Pipeline or None
        The steps before the last one when each of them maps columns one by one (scalers,
        imputers); ``None`` for anything else, including a model that is no pipeline.
    """
    if not is_pipeline(model) or len(model.steps) < 2 or is_pipeline(model.steps[-1][1]):
        return None
    for _, step in model.steps[:-1]:
        if step in (None, "passthrough"):
            continue
        if not any(pkg == "sklearn" and name in _COLUMNWISE for pkg, name in type_names(step)):
            return None
    return model[:-1]


def family(model: object) -> Family:
    """Return the family of an estimator (class or instance); sees through pipelines.

    ``"tree"`` are scikit-learn's trees, forests and boosted trees; ``"linear"`` are its models
    with coefficients.
    """
    names = type_names(final_step(model))
    return next((kind for key, kind in _FAMILIES.items() if key in names), "other")


def handles_nan(model: Any) -> bool:
    """Whether `model` takes NaN in its features.

    Asks scikit-learn's tags of every step: a pipeline takes NaN when each step does, up to an
    imputer, after which there are none.
    """
    from sklearn.utils import get_tags

    if is_pipeline(model):
        for _, step in model.steps:
            if step in (None, "passthrough"):
                continue
            if not handles_nan(step):
                return False
            if any("Imputer" in name for _, name in type_names(step)):
                return True
        return True
    return family(model) == "catboost" or bool(get_tags(model).input_tags.allow_nan)


def handles_categorical(model: Any) -> bool:
    """Whether `model` takes columns of pandas' category dtype as they are.

    True for the three boosting libraries and for scikit-learn's histogram gradient boosting, and
    for a pipeline whose first step says by its tags that it takes categories (an encoder).
    """
    from sklearn.utils import get_tags

    if is_pipeline(model):
        first = next((s for _, s in model.steps if s not in (None, "passthrough")), None)
        return first is not None and handles_categorical(first)
    if family(model) in ("xgboost", "lightgbm", "catboost"):
        return True
    if ("sklearn", "BaseHistGradientBoosting") in type_names(model):
        return getattr(model, "categorical_features", None) == "from_dtype"
    return bool(get_tags(model).input_tags.categorical)
