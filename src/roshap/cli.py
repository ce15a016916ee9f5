"""The command line: ``roshap <stage> [overrides] [-m]`` and a few plain subcommands.

Only what a call needs is imported, so that ``roshap --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from roshap import __version__
from roshap.errors import RoshapError
from roshap.stages.workspace import Workspace, find_root

STAGES = {
    "run": "one experiment by hand: attribute, rank and a report, e.g. on your own CSV",
    "fetch": "read a data set from its source, check it, write the canonical table",
    "attribute": "bootstrap the model and collect the attributions of the out-of-bag rows",
    "rank": "score the features and draw the figures",
    "select": "compare rankers by the models that their leading features make",
    "simulate": "the paper's simulation study: where do rankers put the ten signals?",
    "regress": "one experiment with the regression solvers: regression=drem_... or spectral_...",
    "report": "one self-contained HTML page of a study",
}
COMMANDS = {
    "study": "choose the experiments that `dvc repro` runs: roshap study NAME [overrides]",
    "trace": "say where a figure, table or array comes from: roshap trace FILE [--verify] [--json]",
    "relog": "log finished stages again, e.g. to another MLflow server: roshap relog [STUDY]",
    "compare": "what changed between two results, and is it more than noise: roshap compare A B",
    "where": "say where the selected study's report is and how to open MLflow",
    "ui": "open MLflow's pages on this machine only: roshap ui [PORT]",
    "clean": "remove checkpoints and other local state (never results): roshap clean [--dry-run]",
}
GROUPS = (
    "dataset",
    "model",
    "bootstrap",
    "explainer",
    "selection",
    "compute",
    "tracking",
    "regression",
)

USER_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code (2 for a user's mistake, said in one line)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given or os.environ.get("HYDRA_FULL_ERROR") == "1"
    given = [word for word in given if word != "--debug"]
    try:
        return _dispatch(given)
    except RoshapError as error:
        if debug:
            traceback.print_exc()
        print(f"roshap: {_one_line(error)}", file=sys.stderr)
        return USER_ERROR
    except BrokenPipeError:
        # the reader of a pipe has left (`roshap ... | head`): nothing more to say, and no complaint
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print(
            "roshap: interrupted; finished runs are kept, the same command goes on", file=sys.stderr
        )
        return 130


def _dispatch(given: list[str]) -> int:
    if not given or given[0] in {"-h", "--help", "help"}:
        print(_help())
        return 0
    name, *rest = given
    if name in {"-V", "--version"}:
        print(f"roshap {__version__}")
        return 0
    if name not in STAGES and name not in COMMANDS:
        import difflib

        known = [*STAGES, *COMMANDS]
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise RoshapError(f"unknown command {name!r} ({hint}valid: {', '.join(known)})")
    if name == "trace" and not any(word in {"-h", "--help"} for word in rest):
        return _trace(rest)
    workspace = Workspace(find_root())
    if any(word in {"-h", "--help"} for word in rest):
        print(_stage_help(name, workspace) if name in STAGES else _command_help(name, workspace))
        return 0
    if name in STAGES:
        from roshap.stages.app import run_stage

        run_stage(name, rest, workspace)
        return 0
    if name == "study":
        from roshap.stages.study import study_command

        return study_command(rest, workspace)
    if name == "relog":
        from roshap.stages.relog import relog_command

        return relog_command(rest, workspace)
    if name == "compare":
        from roshap.stages.compare import compare_command

        return compare_command(rest, workspace)
    if name in {"where", "ui"}:
        from roshap.stages import pages

        return pages.where(workspace) if name == "where" else pages.serve(rest, workspace)
    from roshap.stages.clean import clean_command

    return clean_command(rest, workspace)


def _trace(arguments: list[str]) -> int:
    """Trace a file; a figure outside every checkout still says what is inside it."""
    from roshap.stages.trace import trace_command

    try:
        workspace: Workspace | None = Workspace(find_root())
    except RoshapError:
        workspace = None
    return trace_command(arguments, workspace)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _help() -> str:
    def table(rows: dict[str, str]) -> str:
        return "\n".join(f"  {name:<10} {text}" for name, text in rows.items())

    return f"""roshap {__version__}: which features can you trust, and how sure is that ranking?

usage: roshap <stage> [key=value ...] [-m]     -m sweeps over comma-separated values
       roshap <command> ...

stages
{table(STAGES)}

commands
{table(COMMANDS)}

examples
  roshap run dataset=csv dataset.path=my.csv dataset.target=y model=lightgbm bootstrap.runs=50
  roshap attribute -m dataset=breast_cancer model=xgboost,lightgbm bootstrap.runs=50,100
  roshap study quick && dvc repro

roshap <stage> --help lists the configuration groups and their options.
--debug shows the traceback behind an error."""


def _stage_help(stage: str, workspace: Workspace) -> str:
    lines = []
    for group in GROUPS:
        options = sorted(path.stem for path in (workspace.conf / group).glob("*.yaml"))
        lines.append(f"  {group:<10} {', '.join(options)}")
    groups = "\n".join(lines)
    return f"""roshap {stage}: {STAGES[stage]}

usage: roshap {stage} [group=option ...] [key=value ...] [-m]

configuration groups (group=option); each option is a commented file conf/<group>/<option>.yaml
{groups}

often set
  bootstrap.runs=B         number of refits
  bootstrap.stop=settled   stop when the selection.k=K best features are settled
  seed=N                   same seed, same result, bit for bit
  out=DIR                  where results go (by default a new folder below outputs/)
  experiment=NAME          the run's name in MLflow and in reports
  compute.workers=N        processes; 0 = one per core

roshap {stage} --cfg job [overrides] prints the composed configuration and runs nothing."""


def _command_help(command: str, workspace: Workspace) -> str:
    if command == "study":
        studies = ", ".join(sorted(path.stem for path in (workspace.conf / "study").glob("*.yaml")))
        return f"""roshap study: {COMMANDS["study"]}

studies: {studies}

  roshap study paper runs=20                       fewer runs for every experiment
  roshap study paper --estimate                    and say how long it will take
  roshap study paper 'only=[golub-*,musk-xgboost]' some of its experiments
  roshap study quick experiments.diabetes-ridge.runs=500

It writes params.yaml; `dvc repro` then runs what changed."""
    return f"roshap {command}: {COMMANDS[command]}"
