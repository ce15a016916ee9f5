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
    return [_section(name, folder / regress_stage.FOLDER) for name, folder in folders.items()]


def _section(name: str, folder: Path) -> dict[str, Any]:
    try:
        summary = json.loads((folder / regress_stage.SUMMARY).read_text())
        lineage = json.loads((folder / "lineage.json").read_text())
    except FileNotFoundError as error:
        raise DataError(
            f"experiment {name} has no results ({error.filename} is missing): "
            "`dvc repro` runs what is missing"
        ) from None
    captions = summary["captions"]
    order = {stem: place for place, stem in enumerate(captions)}
    paths = sorted(
        (folder / "figures").glob("*.png"), key=lambda p: (order.get(p.stem, 99), p.stem)
    )
    return {
        **summary,
        "name": name,
        "figures": [figure_card(path, name, captions) for path in paths],
        "lineage": json.dumps(lineage, indent=1, ensure_ascii=False),
    }
