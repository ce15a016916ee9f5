"""Which routine explains which model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from roshap.attribution.explainers.base import Explainer, TransformedExplainer, transformed
from roshap.attribution.explainers.catboost_native import catboost_explainer
from roshap.attribution.explainers.lightgbm_native import lightgbm_explainer
from roshap.attribution.explainers.linear import linear_explainer
from roshap.attribution.explainers.permutation import permutation_explainer
from roshap.attribution.explainers.shap_tree import shap_tree_explainer
from roshap.attribution.explainers.tree_kernel import compile_kernel, kernel_explainer
from roshap.attribution.explainers.xgboost_native import xgboost_explainer
from roshap.errors import ModelError
from roshap.models import Task, columnwise_steps, family, final_step, is_pipeline

if TYPE_CHECKING:
    from roshap.attribution.explainers.base import Table

Method = Literal["auto", "native", "kernel", "shap", "permutation"]
Factory = Callable[..., Explainer | None]


def _kernel(model: Any, background: Table, task: Task, *, chunk_mb: float) -> Explainer | None:
    """Give the kernel what it works on: it has no use for a background, nor for categories."""
    if not isinstance(background, np.ndarray):
        return None
    return kernel_explainer(model, task, chunk_mb=chunk_mb)


_NATIVE: tuple[Factory, ...] = (
    linear_explainer,
    xgboost_explainer,
    lightgbm_explainer,
    catboost_explainer,
)

#: The routines of each method in the order in which they are tried. A factory returns ``None``
#: for a model that it does not explain; permutation sampling, which explains all, is apart.
FACTORIES: dict[str, tuple[Factory, ...]] = {
    "auto": (_kernel, *_NATIVE, shap_tree_explainer),
    "native": _NATIVE,
    "kernel": (_kernel,),
    "shap": (shap_tree_explainer,),
    "permutation": (),
}

_EXPLAINS = {
    "native": "xgboost, lightgbm, catboost and linear models",
    "kernel": "tree models without categorical splits",
    "shap": "tree models",
}


def make_explainer(
    fitted: Any,
    X_background: Table,
    task: Task,
    *,
    method: Method = "auto",
    chunk_mb: float = 64.0,
    rng: np.random.Generator | None = None,
) -> Explainer:
    """Return the explainer of a fitted model.

    Parameters
    ----------
    fitted : estimator
        A fitted model, or a pipeline that ends in one. Steps that map features one by one
        (scalers, imputers) are looked through; any other pipeline is explained as a whole, by
        permutation sampling.
    X_background : (m, p) float64 array or DataFrame with category columns
        The rows that the model was fitted to. Linear models and permutation sampling measure
        against them; tree routines use the covers inside the trees.
    task : {"binary", "multiclass", "regression"}
        What the model predicts.
    method : {"auto", "native", "kernel", "shap", "permutation"}
        ``"auto"`` takes the first that explains the model: the tree kernel, the library's own
        routine or exact coefficients, shap's TreeExplainer, permutation sampling.
    chunk_mb : float
        Cap on the size of the arrays of attributions inside sums, MiB.
    rng : numpy.random.Generator, optional
        Draws the permutations and the background rows; only permutation sampling uses it. A
        generator with seed 0 by default.

    Raises
    ------
    ModelError
        Unknown method, a method that cannot explain this model, or a model that lacks a class.
    """
    if method not in get_args(Method):
        raise ModelError(
            f"unknown explainer method {method!r}; valid: {', '.join(get_args(Method))}"
        )
    if not chunk_mb > 0:
        raise ModelError(f"chunk_mb must be positive, got {chunk_mb!r}")
    model, background, transform = _look_through(fitted, X_background)
    for factory in () if is_pipeline(model) else FACTORIES[method]:
        explainer = factory(model, background, task, chunk_mb=chunk_mb)
        if explainer is not None:
            return explainer if transform is None else TransformedExplainer(explainer, transform)
    if method in ("auto", "permutation"):
        return permutation_explainer(fitted, X_background, task, chunk_mb=chunk_mb, rng=rng)
    raise ModelError(
        f"explainer method {method!r} cannot explain {type(final_step(fitted)).__name__} here; "
        f"it explains {_EXPLAINS[method]}; use method 'auto'"
    )


def prepare(model: Any, method: Method, say: Callable[[str], None]) -> None:
    """Compile what the explainer of a model needs, once, before many processes need it.

    Parameters
    ----------
    model : estimator
        Fitted or not.
    method : {"auto", "native", "kernel", "shap", "permutation"}
        As for :func:`make_explainer`.
    say : callable
        Told, in one line, what takes a while.
    """
    if _kernel in FACTORIES[method] and family(model) in ("tree", "xgboost", "lightgbm"):
        compile_kernel(say)


def _look_through(fitted: Any, X: Table) -> tuple[Any, Table, Any | None]:
    """Return the model inside a pipeline, its background and the transform before it.

    A pipeline that moves, adds or drops features is returned as it is, without a transform.
    """
    steps = columnwise_steps(fitted)
    if steps is None or not isinstance(X, np.ndarray):
        return fitted, X, None
    background = transformed(steps, X)
    if background.shape[1] != X.shape[1]:
        return fitted, X, None
    return final_step(fitted), background, steps
