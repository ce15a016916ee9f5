"""From a model's settings to an unfitted estimator: seeded, quiet, on one thread."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Mapping
from typing import Any

from roshap.errors import ModelError
from roshap.models.family import Family, family
from roshap.models.spec import ModelSpec, Task

# Replicates run in parallel, so a model inside one has a single thread; the number of threads is
# no setting of a model (compute.workers is).
_THREADS = ("n_jobs", "thread_count", "num_threads", "nthread")
_SEEDS = ("random_state", "random_seed", "seed")

# What is set for every model of a library unless the configuration says otherwise: no log, no
# files in the working folder, and results that depend on the seed only. LightGBM otherwise times
# row-wise against column-wise histograms and takes the faster, which changes the last bits from
# run to run; column-wise was also the fastest on one thread (9.3 s against 13.9 s on 20000 x 520).
_ALWAYS: dict[Family, dict[str, Any]] = {
    "xgboost": {"verbosity": 0},
    "lightgbm": {"verbosity": -1, "deterministic": True, "force_col_wise": True},
    "catboost": {"verbose": False, "allow_writing_files": False},
}

# Parameters of the xgboost core that its scikit-learn classes take as **kwargs only.
_XGBOOST_EXTRA = frozenset(
    {
        "aft_loss_distribution",
        "aft_loss_distribution_scale",
        "expectile_alpha",
        "feature_selector",
        "huber_slope",
        "lambdarank_num_pair_per_sample",
        "max_cached_hist_node",
        "normalize_type",
        "one_drop",
        "quantile_alpha",
        "rate_drop",
        "refresh_leaf",
        "sample_type",
        "seed_per_iteration",
        "skip_drop",
        "top_k",
        "tweedie_variance_power",
        "updater",
    }
)


def build(spec: ModelSpec, task: Task, *, seed: int | None = None) -> Any:
    """Build the unfitted estimator of a model for a task.

    Parameters
    ----------
    spec : ModelSpec
        The model's settings.
    task : {"binary", "multiclass", "regression"}
        What is predicted. The boosting libraries find the number of classes in the target.
    seed : int, optional
        Model seed; `spec.seed` by default.

    Returns
    -------
    estimator
        Unfitted, with one thread, its seed set where it has one, and no log output. A pipeline
        ``scale``, ``model`` when `spec.standardise` is on.

    Raises
    ------
    ModelError
        No settings for the task, a ``_target_`` that cannot be imported or is no estimator, or a
        parameter that it does not have; the message names the valid ones.
    """
    kind = "regression" if task == "regression" else "classification"
    estimator = _construct(
        spec.settings(task), spec.seed if seed is None else seed, f"model.{kind}"
    )
    if not hasattr(estimator, "predict"):
        raise ModelError(f"model.{kind}._target_: {type(estimator).__name__} has no predict method")
    if spec.standardise:
        from sklearn.pipeline import Pipeline
        from sklearn.preprocessing import StandardScaler

        return Pipeline([("scale", StandardScaler()), ("model", estimator)])
    return estimator


def _construct(settings: Mapping[str, Any], seed: int, where: str) -> Any:
    """Build one object from ``{"_target_": ..., **parameters}``, nested ones first."""
    target = settings["_target_"]
    cls = _resolve(target, where)
    params = {
        key: _nested(value, seed, f"{where}.{key}")
        for key, value in settings.items()
        if key != "_target_"
    }
    valid = parameter_names(cls)
    _check_names(params, valid, target, where)
    defaults = _defaults(cls, valid, seed)
    if params.get("force_row_wise"):
        defaults.pop("force_col_wise", None)  # LightGBM refuses both
    try:
        return cls(**(defaults | params))
    except Exception as error:  # any library's own complaint about a value
        raise ModelError(f"{where}: {target} refuses its parameters: {error}") from error


def _nested(value: Any, seed: int, where: str) -> Any:
    if isinstance(value, Mapping):
        if "_target_" in value:
            return _construct(value, seed, where)
        return {key: _nested(item, seed, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_nested(item, seed, f"{where}[{i}]") for i, item in enumerate(value)]
    return value


def _resolve(target: Any, where: str) -> type:
    """Import ``package.Class``; only classes with a ``fit`` method are accepted."""
    module, _, name = str(target).rpartition(".")
    if not module:
        raise ModelError(f"{where}._target_: {target!r} is not of the form package.Class")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ImportError as error:
        raise ModelError(f"{where}._target_: cannot import {module!r}: {error}") from error
    if found is None:
        close = difflib.get_close_matches(name, dir(importlib.import_module(module)), n=3)
        hint = f"; did you mean {', '.join(close)}?" if close else ""
        raise ModelError(f"{where}._target_: module {module!r} has no class {name!r}{hint}")
    if not isinstance(found, type) or not hasattr(found, "fit"):
        raise ModelError(f"{where}._target_: {target!r} is not a class with a fit method")
    return found


def parameter_names(cls: type) -> frozenset[str] | None:
    """Return the parameters that `cls` can be built with; ``None`` where it takes any name.

    Classes that pass ``**kwargs`` on take the names of their ancestors, and those that the
    library behind them knows.
    """
    names: set[str] = set()
    for ancestor in cls.__mro__:
        if "__init__" not in vars(ancestor) or ancestor is object:
            continue
        parameters = list(inspect.signature(vars(ancestor)["__init__"]).parameters.values())[1:]
        kinds = {p.kind for p in parameters}
        names.update(p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL))
        if inspect.Parameter.VAR_KEYWORD not in kinds:
            return frozenset(names)
    kind = family(cls)
    extra = _XGBOOST_EXTRA if kind == "xgboost" else None
    if kind == "lightgbm":
        extra = _lightgbm_names()
    if extra is None and any("__init__" in vars(a) for a in cls.__mro__[:-1]):
        return None
    return frozenset(names | (extra or frozenset()))


def _lightgbm_names() -> frozenset[str] | None:
    """Return LightGBM's own parameters with their aliases, as its library lists them."""
    from lightgbm import basic

    # Not a public name of lightgbm; without it no name is refused, which is what LightGBM does.
    table = getattr(basic, "_ConfigAliases", None)
    if table is None:
        return None
    aliases: dict[str, list[str]] = table._get_all_param_aliases()
    return frozenset(aliases) | {alias for group in aliases.values() for alias in group}


def _check_names(
    params: Mapping[str, Any], valid: frozenset[str] | None, target: str, where: str
) -> None:
    for name in params:
        if name in _THREADS:
            raise ModelError(
                f"{where}.{name} cannot be set: a model has one thread inside a replicate; "
                "use compute.workers for parallel replicates"
            )
        if name in _SEEDS:
            raise ModelError(f"{where}.{name} cannot be set: use model.seed")
        if valid is not None and name not in valid:
            raise ModelError(
                f"{where}: {target} has no parameter {name!r}; valid: {', '.join(sorted(valid))}"
            )


def _defaults(cls: type, valid: frozenset[str] | None, seed: int) -> dict[str, Any]:
    """Return the arguments for one thread, the seed and a quiet library."""
    kind = family(cls)
    defaults = dict(_ALWAYS.get(kind, {}))
    if kind == "catboost":
        return defaults | {"thread_count": 1, "random_seed": seed}
    names = valid if valid is not None else frozenset(inspect.signature(cls).parameters)
    # scikit-learn's linear models use no threads of joblib, and some warn when n_jobs is given.
    if "n_jobs" in names and kind != "linear":
        defaults["n_jobs"] = 1
    if "random_state" in names:
        defaults["random_state"] = seed
    return defaults
