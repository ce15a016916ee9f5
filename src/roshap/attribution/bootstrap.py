"""The bootstrap distribution of attributions (Algorithm 1 of arXiv 2605.15154)."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roshap.attribution.attributions import Attributions, GroupAttributions, RowSummaries
from roshap.attribution.explainers import prepare
from roshap.attribution.groups import find_groups, group_sums
from roshap.attribution.randomness import MIN_DRAWS, seeds_of, with_second_seed
from roshap.attribution.replicate import BootstrapSettings, ReplicateInputs, run_replicate
from roshap.attribution.row_summaries import kept_rows, summarise_rows
from roshap.attribution.stopping import Decision, Look, StopRule, decide, look
from roshap.compute import CheckpointStore, Executor, Progress, code_digest, scratch_folder
from roshap.datasets import check_dataset
from roshap.errors import ConfigError
from roshap.models import final_step, handles_categorical, handles_nan

if TYPE_CHECKING:
    from roshap.attribution.explainers.base import Table
    from roshap.datasets import Dataset

__all__ = ["BootstrapSettings", "bootstrap_attributions", "key_parts"]

# Everything whose code decides what a replicate is.
_CODE = (
    "roshap.attribution.explainers",
    "roshap.attribution.replicate",
    "roshap.attribution.row_summaries",
    "roshap.attribution.screening",
    "roshap.attribution.splitter",
    "roshap.compute.seeds",
    "roshap.models",
)
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "shap", "numba", "roshap")
_DISTRIBUTIONS = {"sklearn": "scikit-learn"}
CLASS_AGGREGATE = "mean over classes"


def bootstrap_attributions(
    data: Dataset,
    model: Any,
    *,
    runs: int,
    seed: int,
    settings: BootstrapSettings | None = None,
    executor: Executor | None = None,
    store: Path | None = None,
    label: str | None = None,
    progress: Progress | None = None,
    stop: StopRule | None = None,
    randomness: int = 0,
    groups_threshold: float | None = None,
) -> Attributions:
    """Refit a model on bootstrap samples and explain the rows out of bag (OOB), run by run.

    The result depends on the data, the model, ``runs``, ``seed`` and ``settings`` only, bit for
    bit: not on workers, their order, an interruption, or on whether the first runs were made
    earlier. The model's own seed is the same in all runs, as in the paper; what varies is the
    sample.

    Parameters
    ----------
    data
        Rows that it marks as held out are left out: rankings see training rows only.
    model
        An unfitted scikit-learn estimator with a fixed seed; it is cloned for each run.
    runs
        B, the number of bootstrap samples; at least 2. With ``stop`` the most there may be.
    seed
        Non-negative integer; run b depends on ``(seed, b)`` only.
    settings
        How runs are drawn, explained and kept.
    executor
        Where they run; all cores of this machine by default.
    store
        Folder of checkpoints: finished runs found there are not repeated. None keeps nothing.
    label
        Name under which the store remembers the study, to say what changed since the last time;
        the data set's name by default.
    progress
        Told about each finished run; silent by default.
    stop
        Stop adding runs at the first of the rule's looks at which the best features are settled.
        Runs that the store has beyond a look play no part in it. ``meta["stop"]`` of the result
        holds the rule and the decision (:func:`~roshap.attribution.stopping.decision_of`).
    randomness
        R: the first R draws are fitted a second time with another model seed, to tell how much of
        the spread is the data's and how much the model's; 0 for none.
    groups_threshold
        Attribute to groups of collinear features as well
        (:func:`~roshap.attribution.groups.find_groups`); None for none. Needs ``row_level``.

    Returns
    -------
    Attributions

    Raises
    ------
    ConfigError
        Fewer than 2 runs, a negative seed, or a value out of range.
    DataError, ModelError
        Where a sample cannot be drawn, or a model not be fitted or explained.
    CheckpointError, OutputError
        Where the store is in use or cannot be written.
    """
    if runs < 2:
        raise ConfigError(f"runs={runs}: a distribution over runs needs at least 2")
    if seed < 0:
        raise ConfigError(f"seed={seed}: must be 0 or more")
    if randomness != 0 and randomness < MIN_DRAWS:
        raise ConfigError(f"randomness={randomness}: must be 0 (off) or at least {MIN_DRAWS}")
    settings = settings or BootstrapSettings()
    executor = executor or Executor()
    progress = progress or Progress(quiet=True)
    rows = np.arange(data.n) if data.held_out is None else np.flatnonzero(~data.held_out)
    data = data.training()
    check_dataset(
        data,
        allow_nan=handles_nan(model),
        allow_categorical=handles_categorical(model),
        min_per_class=max(2, settings.min_per_class),
    )
    inputs = _inputs(data, model, seed, settings)
    parts = key_parts(data, model, seed=seed, settings=settings)
    label = label or data.name
    with _open_store(store, executor, parts, label, progress) as checkpoints:
        decision = None
        if stop is None:
            _compute(inputs, runs, executor, checkpoints, progress)
        else:
            runs, decision = _until_settled(
                inputs, data.features, runs, stop, executor, checkpoints, progress
            )
        result = _assemble(data, rows, inputs, runs, checkpoints, parts, progress)
        if groups_threshold is not None:
            groups = _groups(data, inputs, runs, checkpoints, groups_threshold, progress)
            result = replace(result, groups=groups)
    if stop is not None:
        chosen = {"rule": asdict(stop), "decision": decision and decision.to_dict()}
        result = replace(result, meta={**result.meta, "stop": chosen})
    if randomness:
        draws = min(randomness, runs)
        again = _second_seed(data, inputs, draws, executor, store, label, progress)
        result = replace(
            result,
            second_seed=result.S[:draws].copy() if again is None else again,
            meta={**result.meta, "second_seed": {"draws": draws, "seeds": seeds_of(model)}},
        )
    return result


def key_parts(
    data: Dataset, model: Any, *, seed: int, settings: BootstrapSettings
) -> dict[str, str]:
    """Return all that a replicate depends on besides its number, by name.

    The number of runs and the aggregate are left out: they decide what is made of the replicates.
    """
    kept = {key: value for key, value in asdict(settings).items() if key != "aggregate"}
    return {
        "data": data_digest(data),
        "seed": str(seed),
        "code": code_digest(*_CODE),
        **{f"settings.{name}": repr(value) for name, value in kept.items()},
        **_describe_model(model),
        **{f"version of {name}": number for name, number in library_versions(model).items()},
    }


def data_digest(data: Dataset) -> str:
    """Return the sha256 of what the replicates read: values, names, target, groups, weights."""
    digest = hashlib.sha256(repr((data.task, data.classes)).encode())
    X = design_matrix(data)
    digest.update(repr([(str(name), str(kind)) for name, kind in data.X.dtypes.items()]).encode())
    if isinstance(X, np.ndarray):
        digest.update(X.data)
    else:
        import pandas as pd

        digest.update(pd.util.hash_pandas_object(X, index=False).to_numpy().tobytes())
        for name in X.select_dtypes("category"):
            digest.update(repr(X[name].cat.categories.tolist()).encode())
    for array in (data.y, _codes(data.groups), data.weights):
        digest.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def library_versions(model: Any) -> dict[str, str]:
    """Return the versions of the libraries that decide a replicate, the model's own included."""
    found = {}
    for name in sorted({*_LIBRARIES, _distribution(model)}):
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _distribution(model: Any) -> str:
    """Return the name under which the library of a model is installed."""
    package = type(final_step(model)).__module__.partition(".")[0]
    return _DISTRIBUTIONS.get(package, package)


def _inputs(data: Dataset, model: Any, seed: int, settings: BootstrapSettings) -> ReplicateInputs:
    X = design_matrix(data)
    n_outputs = len(data.classes) if data.task == "multiclass" else 1
    n, p = X.shape
    kept = kept_rows(n, p, n_outputs, settings.row_values) if settings.row_level else None
    return ReplicateInputs(
        X=X,
        y=np.asarray(data.y),
        task=data.task,
        n_outputs=n_outputs,
        groups=_codes(data.groups),
        weights=None if data.weights is None else np.asarray(data.weights, dtype=np.float64),
        model=model,
        settings=settings,
        kept=np.empty(0, dtype=np.int64) if kept is None else kept,
        seed=seed,
    )


def design_matrix(data: Dataset) -> Table:
    """Return X as the models take it: float64 in C order, or the table if it has categories."""
    if any(str(kind) == "category" for kind in data.X.dtypes):
        return data.X.reset_index(drop=True)
    return np.ascontiguousarray(data.X.to_numpy(dtype=np.float64))


def _codes(groups: np.ndarray | None) -> np.ndarray | None:
    return None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]


@contextlib.contextmanager
def _open_store(
    root: Path | None,
    executor: Executor,
    parts: Mapping[str, str],
    label: str,
    progress: Progress,
) -> Iterator[CheckpointStore]:
    """Open the store of checkpoints, or a temporary one where none is wanted."""
    with contextlib.ExitStack() as stack:
        folder = root or stack.enter_context(scratch_folder(executor.scratch))
        store = CheckpointStore(folder, parts, label)
        stack.enter_context(store.open(say=progress.say))
        yield store


def _until_settled(
    inputs: ReplicateInputs,
    features: tuple[str, ...],
    most: int,
    rule: StopRule,
    executor: Executor,
    store: CheckpointStore,
    progress: Progress,
) -> tuple[int, Decision | None]:
    """Compute up to the rule's next look, look, and so on; return the runs used and the decision.

    The decision rests on the runs up to a look alone, so that it is the same for any workers and
    after any interruption. Without a look at or below ``most`` runs there is no decision.
    """
    rule.sizes(len(features))  # an impossible k is an error before the first run, not after 70
    looks = [runs for runs in rule.looks if runs <= most]
    if not looks:
        progress.say(
            f"the first look is at {rule.looks[0]} runs, and there are to be {most}: "
            "nothing is said about whether the best features are settled"
        )
        _compute(inputs, most, executor, store, progress)
        return most, None
    seen: list[Look] = []
    for runs in looks:
        _compute(inputs, runs, executor, store, progress, resumed=not seen)
        S = _run_scores(inputs, runs, store)
        latest, _ = look(S, features, rule)
        seen.append(latest)
        progress.say(_describe_look(latest))
        if latest.settled:
            break
    return runs, decide(S, features, rule, seen)


def _describe_look(seen: Look) -> str:
    found = "settled" if seen.settled else "not settled"
    if seen.t_min is None:
        return f"look at {seen.runs} runs: the {seen.k} best are {found}"
    return (
        f"look at {seen.runs} runs: the {seen.k} best are {found} "
        f"(weakest pair at {seen.t_min:.2f}, {seen.critical:.2f} wanted)"
    )


def _compute(
    inputs: ReplicateInputs,
    runs: int,
    executor: Executor,
    store: CheckpointStore,
    progress: Progress,
    *,
    resumed: bool = True,
) -> None:
    """Compute the replicates that the store lacks; those it has may be an earlier study's."""
    done = store.done(say=progress.say)
    missing = [index for index in range(runs) if index not in done]
    if missing:
        prepare(inputs.model, inputs.settings.explainer, progress.say)
    with progress:
        progress.start(runs, runs - len(missing), resumed=resumed)
        for index, arrays in executor.run(run_replicate, inputs, missing):
            store.write(index, arrays)
            progress.advance()


def _assemble(
    data: Dataset,
    rows: np.ndarray,
    inputs: ReplicateInputs,
    runs: int,
    store: CheckpointStore,
    parts: Mapping[str, str],
    progress: Progress,
) -> Attributions:
    """Put the replicates together in their order."""
    S = _run_sums(inputs, runs, store)
    n_oob, redraws = np.empty(runs, dtype=np.int64), np.empty(runs, dtype=np.int64)
    names: dict[tuple[str, str], None] = {}
    warned: Counter[str] = Counter()
    for index in range(runs):
        with store.read(index) as arrays:
            n_oob[index], redraws[index] = arrays["n_oob"], arrays["redraws"]
            names[str(arrays["explainer"]), str(arrays["space"])] = None
            warned.update(arrays["warnings"].tolist())
    for line, count in sorted(warned.items()):
        progress.say(f"in {count} of {runs} runs: {line}")
    return Attributions(
        S=S,
        aggregate=inputs.settings.aggregate,
        features=tuple(str(name) for name in data.X.columns),
        classes=tuple(data.classes) if inputs.n_outputs > 1 else (),
        n_oob=n_oob,
        redraws=redraws,
        explainer=", ".join(explainer for explainer, _ in names),
        space=", ".join(dict.fromkeys(space for _, space in names)),
        rows=_row_summaries(inputs, rows, runs, store),
        meta={**_meta(data, inputs, runs, parts), "warnings": dict(sorted(warned.items()))},
    )


def _run_sums(inputs: ReplicateInputs, runs: int, store: CheckpointStore) -> np.ndarray:
    """Return S (B, p, K) of the first runs, aggregated as the settings say."""
    S = np.empty((runs, inputs.X.shape[1], inputs.n_outputs))
    for index in range(runs):
        with store.read(index) as arrays:
            S[index] = arrays["S"]
    return S / _run_units(inputs, runs, store)


def _run_units(inputs: ReplicateInputs, runs: int, store: CheckpointStore) -> np.ndarray:
    """Return what a run's sums are divided by, (B, 1, 1): its OOB weight for means, else 1."""
    if inputs.settings.aggregate == "sum":
        return np.ones((runs, 1, 1))
    weight = np.empty(runs)
    for index in range(runs):
        with store.read(index) as arrays:
            weight[index] = arrays["oob_weight"]
    return np.where(weight > 0, weight, 1.0)[:, None, None]


def _run_scores(inputs: ReplicateInputs, runs: int, store: CheckpointStore) -> np.ndarray:
    """Return (B, p) scores of the first runs, as :attr:`Attributions.scores` has them."""
    S = _run_sums(inputs, runs, store)
    return S[:, :, 0] if inputs.n_outputs == 1 else S.mean(axis=2)


def _groups(
    data: Dataset,
    inputs: ReplicateInputs,
    runs: int,
    store: CheckpointStore,
    threshold: float,
    progress: Progress,
) -> GroupAttributions | None:
    """Return the attributions of collinear groups; they need those of single rows."""
    if not inputs.settings.row_level:
        progress.say("no groups of collinear features: they need row_level=true")
        return None
    groups = find_groups(data.X, threshold)
    shape = (inputs.X.shape[1], inputs.n_outputs)
    S = group_sums(store, runs, groups, shape, inputs.kept, inputs.weights)
    return GroupAttributions(
        threshold=threshold,
        members=groups.members,
        copies=groups.copies,
        S=S / _run_units(inputs, runs, store),
        row_share=len(inputs.kept) / inputs.X.shape[0],
    )


def _second_seed(
    data: Dataset,
    inputs: ReplicateInputs,
    draws: int,
    executor: Executor,
    root: Path | None,
    label: str,
    progress: Progress,
) -> np.ndarray | None:
    """Return S (R, p, K) of the first draws with a second model seed; None for a model without."""
    model = with_second_seed(inputs.model)
    if model is None:
        progress.say(f"{type(final_step(inputs.model)).__name__} has no seed: all spread is data")
        return None
    settings = replace(inputs.settings, row_level=False)
    again = _inputs(data, model, inputs.seed, settings)
    parts = key_parts(data, model, seed=inputs.seed, settings=settings)
    with _open_store(root, executor, parts, f"{label} second seed", progress) as checkpoints:
        _compute(again, draws, executor, checkpoints, progress)
        return _run_sums(again, draws, checkpoints)


def _row_summaries(
    inputs: ReplicateInputs, rows: np.ndarray, runs: int, store: CheckpointStore
) -> RowSummaries | None:
    """Summarise the kept rows; ``rows`` (n,) are the numbers of the training rows."""
    if not inputs.settings.row_level:
        return None
    n, p = inputs.X.shape
    shape = (p, inputs.n_outputs)
    summaries = summarise_rows(store, runs, inputs.kept, n, shape, inputs.weights)
    return replace(summaries, rows=rows[inputs.kept])


def _meta(
    data: Dataset, inputs: ReplicateInputs, runs: int, parts: Mapping[str, str]
) -> dict[str, Any]:
    return {
        "data": {"name": data.name, "digest": data.digest, "replicates_read": parts["data"]},
        "task": data.task,
        "target": data.target,
        "target_classes": list(data.classes),
        "n": inputs.X.shape[0],
        "p": inputs.X.shape[1],
        "runs": runs,
        "seed": inputs.seed,
        "settings": asdict(inputs.settings),
        "model": {
            name.removeprefix("model."): value
            for name, value in parts.items()
            if name.startswith("model")
        },
        "versions": library_versions(inputs.model),
        "class_aggregate": CLASS_AGGREGATE if inputs.n_outputs > 1 else None,
        "weighted": inputs.weights is not None,
        "grouped": inputs.groups is not None,
    }


def _describe_model(model: Any) -> dict[str, str]:
    """Return the model's class and parameters, and the source of a class without a version."""
    kind = type(model)
    described = {"model": f"{kind.__module__}.{kind.__qualname__}"}
    for name, value in sorted(model.get_params(deep=True).items()):
        described[f"model.{name}"] = _describe_value(value)
    if _distribution(model) not in library_versions(model):
        with contextlib.suppress(OSError, TypeError):
            source = inspect.getsource(type(final_step(model))).encode()
            described["model source"] = hashlib.sha256(source).hexdigest()
    return described


def _describe_value(value: Any) -> str:
    """Return a text that is the same in every process and differs where the value does."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if hasattr(value, "get_params"):  # its parameters are listed with their own names
        return f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({', '.join(_describe_value(item) for item in value)})"
    if isinstance(value, Mapping):
        pairs = (f"{key!r}: {_describe_value(item)}" for key, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    import joblib

    return f"{type(value).__qualname__} {joblib.hash(value)}"
