"""Which file each parameter of a result comes from."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roshap.tracking.lock import PresentStage

IN_CODE = "default in the code"
IN_COMMAND = "the command"
MISSING = object()


@dataclass(frozen=True)
class Origin:
    """Where a value stands.

    Attributes
    ----------
    file
        Path relative to the root, or :data:`IN_COMMAND`, or :data:`IN_CODE`.
    key
        Dotted key in that file.
    """

    file: str
    key: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.key}" if self.key else self.file


class Origins:
    """Finds the origin of the parameters of one command.

    Parameters
    ----------
    conf
        Hydra's configuration folder.
    command
        ``roshap rank dataset=wine ...``
    present, item
        Of the DVC stage that gives the command; by them a word leads back to ``params.yaml``.
    """

    def __init__(
        self, conf: Path, command: str, present: PresentStage | None = None, item: str = ""
    ) -> None:
        self._conf = conf
        self._words = dict(overrides(command))
        self._from_study = study_keys(present, item) if present else {}
        self._main = load(conf / "config.yaml")
        self._choices = {**_defaults(self._main), **self._words}

    def of(self, key: str) -> Origin:
        """Return where the value of a dotted key comes from."""
        if key in self._words:
            study = self._from_study.get(key)
            return Origin("params.yaml", study) if study else Origin(IN_COMMAND, key)
        group, _, rest = key.partition(".")
        option = self._choices.get(group)
        file = self._conf / group / f"{option}.yaml"
        if option and rest and file.is_file():
            inside = lookup(load(file), rest) is not MISSING
            return Origin(f"{self._conf.name}/{group}/{option}.yaml", rest) if inside else _CODE
        if lookup(self._main, key) is not MISSING:
            return Origin(f"{self._conf.name}/config.yaml", key)
        return _CODE


_CODE = Origin(IN_CODE)


def overrides(command: str) -> Iterator[tuple[str, str]]:
    """Return key and value of each override in a command."""
    for word in shlex.split(command):
        key, equals, value = word.lstrip("+").partition("=")
        if equals:
            yield key, value


def study_keys(present: PresentStage, item: str) -> dict[str, str]:
    """Return, for each override that a DVC stage fills in, its key in ``params.yaml``."""
    found = {}
    for key, value in overrides(present.template):
        if value.startswith("${item.") and value.endswith("}"):
            found[key] = f"{present.foreach}.{item}.{value[len('${item.') : -1]}"
        elif value in {"${item}", "${key}"}:
            found[key] = present.foreach
        elif value.startswith("${") and value.endswith("}"):
            found[key] = value[2:-1]
    return found


def load(path: Path) -> Any:
    """Return a YAML file's content; ``None`` where there is no such file or it is no YAML."""
    import yaml

    try:
        return yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError):
        return None


def lookup(content: Any, key: str) -> Any:
    """Return the value at a dotted key, or :data:`MISSING`."""
    for part in key.split("."):
        if not isinstance(content, Mapping) or part not in content:
            return MISSING
        content = content[part]
    return content


def _defaults(main: Any) -> dict[str, str]:
    """Return the chosen option of each group in a defaults list."""
    entries = main.get("defaults", []) if isinstance(main, Mapping) else []
    return {
        str(group): str(option)
        for entry in entries
        if isinstance(entry, Mapping)
        for group, option in entry.items()
        if option is not None
    }
