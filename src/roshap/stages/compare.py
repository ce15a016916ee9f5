"""``roshap compare A B``: what changed between two results, and is it more than refit noise."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from roshap.attribution.comparison import (
    MIN_RUNS,
    RESAMPLES,
    Comparison,
    compare_rankings,
)
from roshap.compute.files import write_bytes, write_json
from roshap.errors import RoshapError
from roshap.plots import save_figure
from roshap.plots.comparison import SURE, slopes
from roshap.stages.sides import Chosen, Side, choose, experiments_of, read_side
from roshap.stages.workspace import Workspace, open_output
from roshap.tracking import (
    TrackSettings,
    library_versions,
    provenance,
    track,
    write_lineage,
)
from roshap.tracking.origins import load

USAGE = "roshap compare A B [experiment=NAME] [top=15] [out=DIR] [tracking=none]"
KINDS = ("parameters", "data", "versions", "code")
#: Keys that may differ while both sides still draw the same bags.
NOT_THE_DRAW = ("aggregate", "screening", "keep", "row_level", "row_values")
SHOWN_ROWS = 15
SEED = 0


@dataclass(frozen=True)
class Options:
    """What stands behind A and B on the command line."""

    experiment: str | None
    top: int
    out: Path | None
    tracked: bool


def compare_command(arguments: Sequence[str], workspace: Workspace) -> int:
    """Compare two runs, experiments, folders or revisions; print, write and log the result."""
    words = [word for word in arguments if "=" not in word]
    options = _options([word for word in arguments if "=" in word])
    if len(words) != 2:
        raise RoshapError(f"two results to compare, got {len(words)}: {USAGE}")
    a, b = (choose(word, workspace) for word in words)
    pairs = _pairs(a, b, options, workspace)
    for number, (left, right) in enumerate(pairs):
        if number:
            print()
        one = read_side(a, left, workspace)
        other = read_side(b, right, workspace)
        _compare(one, other, arguments, options, workspace)
    return 0


def _options(words: Sequence[str]) -> Options:
    given = dict(word.split("=", 1) for word in words)
    unknown = sorted(set(given) - {"experiment", "top", "out", "tracking"})
    if unknown:
        raise RoshapError(f"unknown option {unknown[0]!r}: {USAGE}")
    top = given.get("top", "15")
    if not top.isdecimal() or int(top) < 1:
        raise RoshapError(f"top={top}: a number of features, at least 1")
    if given.get("tracking", "mlflow") not in {"mlflow", "none"}:
        raise RoshapError(f"tracking={given['tracking']}: mlflow or none")
    return Options(
        experiment=given.get("experiment"),
        top=int(top),
        out=Path(given["out"]).resolve() if "out" in given else None,
        tracked=given.get("tracking") != "none",
    )


def _pairs(a: Chosen, b: Chosen, options: Options, workspace: Workspace) -> list[tuple[str, str]]:
    """Return the experiments to compare: two bare revisions are compared in all they share."""
    if options.experiment:
        return [(options.experiment, options.experiment)]
    if a.experiment or b.experiment:
        return [(str(a.experiment or b.experiment), str(b.experiment or a.experiment))]
    shared = sorted(experiments_of(a, workspace) & experiments_of(b, workspace))
    if not shared:
        raise RoshapError(f"{a.word} and {b.word} have no experiment with results in common")
    return [(name, name) for name in shared]


def _compare(
    a: Side, b: Side, arguments: Sequence[str], options: Options, workspace: Workspace
) -> None:
    """Compare one pair and print where the rest is."""
    changes = {kind: differences(getattr(a, kind), getattr(b, kind)) for kind in KINDS}
    if not (a.code and b.code):
        changes["code"] = {}
    found = compare_rankings(
        a.attributions.scores,
        a.attributions.features,
        b.attributions.scores,
        b.attributions.features,
        rng=np.random.default_rng(SEED),
        paired=same_draws(a, b),
    )
    title = f"{a.label} -> {b.label}"
    folder = options.out or workspace.root / "outputs" / "compare" / _file_name(title)
    if options.out and a.experiment == b.experiment:
        folder = options.out / a.experiment
    metrics = summarise(found)
    command = shlex.join(["roshap", "compare", *arguments])
    lineage = provenance(
        stage="compare",
        experiment=title,
        command=command,
        params={"a": dict(a.parameters), "b": dict(b.parameters)},
        data_digests={f"{name} ({side})": digest for side, of in (("a", a), ("b", b))
                      for name, digest in of.data.items()},
        versions=library_versions(),
    )  # fmt: skip
    text = "\n".join(_lines(title, changes, found, a, b))
    with (
        workspace.output(folder) as fresh,
        _tracked(title, command, changes, options, workspace, folder) as run,
    ):
        write_lineage(fresh, lineage)
        write_json(fresh / "changes.json", {"a": a.label, "b": b.label, **changes})
        found.table.to_csv(fresh / "ranks.csv", index=False, lineterminator="\n")
        write_bytes(fresh / "compare.txt", f"{text}\n".encode())
        figure = slopes(
            found.table,
            labels=(a.label, b.label),
            top=options.top,
            title=f"Change of rank: {a.experiment}"
            + (f" and {b.experiment}" if b.experiment != a.experiment else ""),
        )
        save_figure(figure, fresh / "slopes", {**lineage, "figure": "slopes"})
        run.log_metrics({name: value for name, value in metrics.items() if np.isfinite(value)})
        run.note(f"```\n{text}\n```")
        run.log_artifacts([fresh])
    print(text)
    print(f"written to {workspace.shown(folder)}")


def _tracked(
    title: str,
    command: str,
    changes: Mapping[str, Any],
    options: Options,
    workspace: Workspace,
    folder: Path,
) -> Any:
    values = load(workspace.conf / "tracking" / "mlflow.yaml") or {}
    return track(
        TrackSettings(enabled=options.tracked, uri=values.get("uri")),
        stage="compare",
        experiment=title,
        study="by hand",
        params={"changed": changes, "seed": SEED, "resamples": RESAMPLES},
        command=command,
        root=workspace.root,
        out=folder.parent,
        journal=open_output(),
        store_root=workspace.store_root,
    )


def differences(a: Mapping[str, str], b: Mapping[str, str]) -> dict[str, list[str | None]]:
    """Return ``[before, after]`` of each key whose value differs; ``None`` where it is missing."""
    keys = sorted({*a, *b})
    return {key: [a.get(key), b.get(key)] for key in keys if a.get(key) != b.get(key)}


def same_draws(a: Side, b: Side) -> bool:
    """Tell whether run b of both sides drew the same bag of the same rows."""

    def draw(side: Side) -> dict[str, str]:
        keys = (key for key in side.parameters if key == "seed" or key.startswith("bootstrap."))
        return {key: side.parameters[key] for key in keys if key[10:] not in NOT_THE_DRAW}

    return a.data == b.data and draw(a) == draw(b)


def summarise(found: Comparison) -> dict[str, float]:
    """Return the numbers that are logged."""
    table = found.table
    moved = table["change"] != 0
    return {
        "rank_correlation": found.spearman,
        "overlap_5": found.overlap(5),
        "overlap_10": found.overlap(10),
        "features_moved": float(moved.sum()),
        "features_moved_beyond_noise": float((moved & (table["beyond_noise"] >= SURE)).sum()),
    }


def _lines(
    title: str, changes: Mapping[str, Any], found: Comparison, a: Side, b: Side
) -> Iterator[str]:
    yield title
    for kind, differing in changes.items():
        if kind == "code" and not (a.code and b.code):
            yield f"  {kind:<11} not recorded: not both are results of the pipeline"
            continue
        yield f"  {kind:<11} {'the same' if not differing else ''}".rstrip()
        for key, (before, after) in differing.items():
            width = 12 if kind in {"data", "code"} else 40  # a checksum's first figures suffice
            yield f"    {key}: {_short(before, width)} -> {_short(after, width)}"
    for label, names in (("only in A", found.only_a), ("only in B", found.only_b)):
        if names:
            yield f"  {label}: {', '.join(names[:10])}{', ...' if len(names) > 10 else ''}"
    numbers = summarise(found)
    yield (
        f"  ranks       Spearman {numbers['rank_correlation']:.3f}; of the first 10, "
        f"{numbers['overlap_10']:.0%} are in both"
    )
    yield f"              {_noise(found, a, b)}"
    yield ""
    yield from _table(found.table)


def _noise(found: Comparison, a: Side, b: Side) -> str:
    if found.table["beyond_noise"].isna().all():
        runs = f"{a.attributions.runs} and {b.attributions.runs}"
        return f"{runs} runs: too few to tell a change from noise ({MIN_RUNS} are needed)"
    moved = int((found.table["change"] != 0).sum())
    sure = int(summarise(found)["features_moved_beyond_noise"])
    how = "same bags on both sides" if found.paired else "bags drawn apart"
    return (
        f"{moved} of {len(found.table)} features moved, {sure} by more than refit noise "
        f"(P >= {SURE:.2f} each; {how})"
    )


def _table(table: pd.DataFrame) -> Iterator[str]:
    """Yield the leading features, one a line."""
    head = table[(table["rank_a"] <= SHOWN_ROWS) | (table["rank_b"] <= SHOWN_ROWS)]
    width = max(len("feature"), *head["feature"].str.len())
    yield f"  {'feature':<{width}}  rank A  rank B  change  more than noise"
    for row in head.to_dict("records"):
        sure = "-" if pd.isna(row["beyond_noise"]) else f"{row['beyond_noise']:.2f}"
        change = f"{row['change']:+d}" if row["change"] else "0"
        ranks = f"{row['rank_a']:>6}  {row['rank_b']:>6}"
        yield f"  {row['feature']:<{width}}  {ranks}  {change:>6}  {sure:>15}"


def _short(value: str | None, width: int) -> str:
    if value is None:
        return "(none)"
    return value if len(value) <= width else f"{value[: width - 1]}…"


def _file_name(title: str) -> str:
    return re.sub(r"[^\w.@+-]+", "_", title.replace(" -> ", "--"))[:120]
