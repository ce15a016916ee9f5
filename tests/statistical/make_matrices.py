"""Make the cached attributions of 1000 runs that the statistical tests draw from.

Run it in the repository's root after a change of what a replicate is (minutes):
``python tests/statistical/make_matrices.py``.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from roshap.attribution.attributions import Attributions

HERE = Path(__file__).parent / "matrices"
STUDIES = {
    "breast_cancer": ["dataset=breast_cancer", "model=xgboost"],
    "diabetes": ["dataset=diabetes", "model=xgboost"],
    # few trees use few features: up to 83 % of the runs are zero
    "sparse": [
        "dataset=breast_cancer",
        "model=xgboost",
        "model.classification.n_estimators=6",
    ],
}


def main() -> None:
    """Compute each study and keep its S (1000, p) as float32."""
    for name, overrides in STUDIES.items():
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "roshap", "attribute", *overrides]
            command += ["bootstrap.runs=1000", "bootstrap.row_level=false"]
            subprocess.run([*command, "tracking=none", f"out={folder}"], check=True)
            found = Attributions.load(Path(folder) / "attribute")
        np.savez_compressed(HERE / f"{name}.npz", S=found.scores.astype(np.float32))


if __name__ == "__main__":
    main()
