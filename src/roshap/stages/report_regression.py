"""What the report shows of the regression experiments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roshap.errors import DataError
from roshap.stages import regress as regress_stage
from roshap.stages.report_figures import figure_card


def regression_sections(folders: Mapping[str, Path]) -> list[dict[str, Any]]:
    """Return what ``templates/regression.html.j2`` shows of each experiment.

    Parameters
    ----------
    folders
        Experiment -> folder that holds its ``regress`` results.

    Raises
    ------
    DataError
        Where an experiment has no results.
    """
    return [_section(name, folder) for name, folder in folders.items()]


def _section(name: str, folder: Path) -> dict[str, Any]:
    results = folder / regress_stage.FOLDER
    try:
        summary = json.loads((results / regress_stage.SUMMARY).read_text())
        lineage = json.loads((results / "lineage.json").read_text())
    except FileNotFoundError as error:
        raise DataError(
            f"experiment {name} has no results ({error.filename} is missing): "
            "`dvc repro` runs what is missing"
        ) from None
    return {
        **summary,
        "name": name,
        # measured times are not on the page: its bytes must be the same in every execution
        "tables": _tables(results, summary),
        "figures": _figures(results, name, summary),
        "lineage": json.dumps(lineage, indent=1, ensure_ascii=False),
    }


def _tables(folder: Path, summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{**table, "file": f"{folder.name}/{table['file']}"} for table in summary["tables"]]


def _figures(folder: Path, name: str, summary: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the figures in the order of their captions."""
    captions = summary["captions"]
    return [figure_card(folder / "figures" / f"{stem}.png", name, captions) for stem in captions]
