"""The exceptions of roshap: every one derives from :class:`RoshapError`.

A ``RoshapError`` is a user's mistake or an obstacle outside the program. Its message is one line
that says what was wrong, where, and what would be right; the command line prints it and exits
with code 2.
"""

from __future__ import annotations


class RoshapError(Exception):
    """Base of all errors that roshap raises on purpose."""


class ConfigError(RoshapError):
    """A configuration value is unknown, misspelt or of the wrong type."""


class DataError(RoshapError):
    """A table cannot be used: missing, malformed, or unfit for the task."""


class FetchError(DataError):
    """No source of a data set could be read, or what came is not what was promised."""


class InputError(RoshapError, ValueError):
    """A scikit-learn estimator of roshap cannot use a parameter, X or y: a ``ValueError`` too."""


class ModelError(RoshapError):
    """A model cannot be built, fitted or explained with what it was given."""


class OutputError(RoshapError):
    """A result cannot be written, or an output is in use by another process."""


class CheckpointError(RoshapError):
    """A checkpoint store is in use, damaged, or belongs to something else."""


class TrackingError(RoshapError):
    """The tracking store cannot be reached or refuses what is sent."""
