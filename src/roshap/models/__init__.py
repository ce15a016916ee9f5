"""Estimators from a configuration, how they are fitted, and what family they belong to.

Importing this package is light: scikit-learn and the boosting libraries are imported where a
model of theirs is built, and families are told apart by the names of types.
"""

from roshap.models.build import build
from roshap.models.family import (
    Family,
    columnwise_steps,
    family,
    final_step,
    handles_categorical,
    handles_nan,
    is_pipeline,
    type_names,
)
from roshap.models.fit import fit
from roshap.models.spec import CLASSIFIERS, REGRESSORS, ModelSpec, Task

__all__ = [
    "CLASSIFIERS",
    "REGRESSORS",
    "Family",
    "ModelSpec",
    "Task",
    "build",
    "columnwise_steps",
    "family",
    "final_step",
    "fit",
    "handles_categorical",
    "handles_nan",
    "is_pipeline",
    "type_names",
]
