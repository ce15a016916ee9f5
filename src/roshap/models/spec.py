"""What one file of ``conf/model/`` says: which estimator for which task, with which parameters."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from roshap.errors import ModelError

Task = Literal["binary", "multiclass", "regression"]

#: The models of ``conf/model/`` that classify and those that predict a number. Error messages
#: name them; a test holds them against the files.
CLASSIFIERS = (
    "catboost",
    "gradient_boosting",
    "lightgbm",
    "logistic_regression",
    "random_forest",
    "xgboost",
)
REGRESSORS = ("catboost", "gradient_boosting", "lightgbm", "random_forest", "ridge", "xgboost")


class ModelSpec(BaseModel):
    """A model by name, with the settings of each task that it can do.

    Attributes
    ----------
    name : str
        Name of the model in file names and tables.
    classification, regression : dict or None
        ``{"_target_": "package.Class", **parameters}``: the estimator's class, and the arguments
        it is built with. ``None`` where the model cannot do the task. A nested mapping with a
        ``_target_`` of its own is built first (the parts of a stack or of a pipeline).
    standardise : bool
        Put a ``StandardScaler`` in front; for models that depend on the scale of the features.
    seed : int
        The fixed model seed (attribution.md 3).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    classification: dict[str, Any] | None = None
    regression: dict[str, Any] | None = None
    standardise: bool = False
    seed: int = 0

    def settings(self, task: Task) -> dict[str, Any]:
        """Return the ``_target_`` and parameters for a task.

        Raises
        ------
        ModelError
            The model has no settings for this task, or no ``_target_`` in them.
        """
        kind = "regression" if task == "regression" else "classification"
        settings = self.regression if kind == "regression" else self.classification
        if settings is None:
            able = REGRESSORS if kind == "regression" else CLASSIFIERS
            raise ModelError(
                f"model {self.name!r} has no settings for {kind}; "
                f"models for {kind}: {', '.join(able)}, custom"
            )
        target = settings.get("_target_")
        if not isinstance(target, str) or not target:
            raise ModelError(
                f"model {self.name!r} needs model.{kind}._target_=package.Class, "
                f"e.g. sklearn.svm.{'SVR' if kind == 'regression' else 'SVC'}; got {target!r}"
            )
        return settings
