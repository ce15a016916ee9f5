"""DREM on signals and for classes."""

from __future__ import annotations

import numpy as np
import pandas as pd

from roshap.plots import save_figure
from roshap.plots.solvers import decay, sweep, trajectories
from roshap.plots.style import shorten
from roshap.regression.design import Array
from roshap.regression.drem import Delay, FirstOrder, SignalDREM, excitation
from roshap.regression.drem.comparison import classifier_curves, split, summarise
from roshap.stages.config import RootConfig
from roshap.stages.regress import Findings, Job, ShownTable
from roshap.stages.regress_drem_config import DremConfig
from roshap.stages.regress_drem_sweeps import key, log_children, repeat_seed, write_table
from roshap.tracking import StageRun

TRUTH = np.array([2.0, -1.0])
STEP = np.pi / 200
GAIN = 1.0


def classify(config: RootConfig, job: Job, run: StageRun) -> Findings:
    """Log-loss and wrong labels on test rows, by epoch."""
    chosen, data = config.regression, job.data
    assert isinstance(chosen, DremConfig)
    assert data is not None
    X, y = data.X.to_numpy(dtype=np.float64), data.y
    frame = pd.concat(
        [
            classifier_curves(
                chosen.optimisers,
                split(X, y, chosen.test_share, repeat_seed(chosen, repeat)),
                chosen.epochs,
            )
            for repeat in range(chosen.repeats)
        ],
        ignore_index=True,
    )
    write_table(frame.drop(columns="seconds"), job.folder / "tables" / "curves.csv")
    losses = summarise(frame, "epoch", "loss")
    figure = sweep(
        losses.rename(columns={"optimiser": "solver"}),
        x="epoch",
        panels={"one class against the rest": list(chosen.optimisers)},
        reference=None,
        xlabel="epoch",
        ylabel="test log-loss [nats]",
        title=f"Test loss by epoch: {shorten(data.name)}",
    )
    save_figure(figure, job.folder / "figures" / "loss", {**job.lineage, "figure": "loss"})
    log_children(run, chosen.optimisers, losses, "epoch", "test_log_loss")
    means = frame.groupby(["optimiser", "epoch"])[["loss", "error"]].mean().reset_index()
    write_table(means, job.folder / "tables" / "means.csv")
    shown = sorted({1, 2, 5, chosen.epochs} & set(range(1, chosen.epochs + 1)))
    loss = means.pivot_table(index="optimiser", columns="epoch", values="loss")
    last = means[means["epoch"] == chosen.epochs].set_index("optimiser")["error"]
    final = {name: float(last[name]) for name in chosen.optimisers}
    rows = [
        [name, *(f"{value:.3f}" for value in loss.loc[name, shown].to_numpy()), f"{wrong:.1%}"]
        for name, wrong in final.items()
    ]
    parts = "; ".join(f"{name} {value:.1%}" for name, value in final.items())
    return Findings(
        metrics={f"test_error.{key(name)}": value for name, value in final.items()},
        sentence=f"Wrong labels on {shorten(data.name)} after {chosen.epochs} epochs: {parts}.",
        facts={
            "Data": f"{shorten(data.name)}: {data.n} rows x {data.p} features",
            "Classes": str(len(data.classes)),
            "Repeats": f"{chosen.repeats}, seed {chosen.seed}",
        },
        captions={
            "loss": "Mean log-loss of the one-vs-rest problems; median over seeds, band from the "
            "smallest to the largest."
        },
        tables=[
            ShownTable(
                "Test log-loss after some epochs, and wrong labels after the last (means over "
                "seeds).",
                "tables/means.csv",
                ["Optimiser", *(f"Epoch {epoch}" for epoch in shown), "Wrong labels"],
                rows,
            )
        ],
    )


def signals(config: RootConfig, job: Job, run: StageRun) -> Findings:
    """Two parameters in continuous time: every weight goes straight to its value."""
    cases: dict[str, Delay | FirstOrder] = {
        "delay pi/2": Delay(np.pi / 2),
        "filter 1/(s+1)": FirstOrder(1.0),
    }
    times = STEP * np.arange(1, 1001)
    m = np.array([_wave(t) for t in times - STEP])
    y = m @ TRUTH
    paths = {
        f"DREM, {name}": SignalDREM([operator], law="continuous", gain=GAIN, interval=STEP).run(
            y, m
        )
        for name, operator in cases.items()
    }
    theory = {
        name: np.exp(-GAIN * excitation(_wave, [operator], times))
        for name, operator in cases.items()
    }
    some = slice(49, None, 50)
    measured = {
        name: (times[some], ((TRUTH - paths[f"DREM, {name}"]) / TRUTH)[some, 0]) for name in cases
    }
    figures = {
        "trajectories": trajectories(
            times,
            {"gradient descent": _gradient_path(m, y), **paths},
            TRUTH,
            title="Two weights of y = m'w, m = (sin t, cos t)",
        ),
        "decay": decay(
            times,
            theory,
            measured,
            title="Error of a weight against exp(-gain int D^2)",
            ylabel="error as a share of the first error",
        ),
    }
    for name, figure in figures.items():
        save_figure(figure, job.folder / "figures" / name, {**job.lineage, "figure": name})
    table = pd.DataFrame({"t": times, **theory})
    write_table(table, job.folder / "tables" / "theory.csv")
    ends = {name: (float(theory[name][-1]), float(measured[name][1][-1])) for name in cases}
    for name in cases:
        with run.child(name) as child:
            steps = list(range(50, 1001, 50))
            child.log_series("error_share", steps, measured[name][1].tolist())
    return Findings(
        metrics={f"error_share.{key(name)}": seen for name, (_, seen) in ends.items()},
        sentence="With a delay or a filter every weight approaches its value monotonically, as "
        "exp(-gain int D^2) says; plain gradient descent goes its way through the other weight.",
        facts={"Weights": "2, -1", "Gain": f"{GAIN:g}", "Sample": f"{STEP:.4f} time units"},
        captions={
            "trajectories": "Dashed: the true weights. DREM moves each weight by itself.",
            "decay": "Lines: the theory, integrated; dots: the streaming estimator.",
        },
        tables=[
            ShownTable(
                f"Error left at t = {times[-1]:.2f}, as a share of the first error.",
                "tables/theory.csv",
                ["Extension", "Theory", "Samples"],
                [[name, f"{a:.4g}", f"{b:.4g}"] for name, (a, b) in ends.items()],
            )
        ],
    )


def _wave(t: float) -> Array:
    return np.array([np.sin(t), np.cos(t)])


def _gradient_path(m: Array, y: Array) -> Array:
    """Return the weights of ``dw/dt = gain m (y - m'w)``, solved exactly over a held sample."""
    w, path = np.zeros(m.shape[1]), []
    for row, value in zip(m, y, strict=True):
        square = row @ row
        w = w - np.expm1(-GAIN * STEP * square) / square * row * (value - row @ w)
        path.append(w)
    return np.array(path)
