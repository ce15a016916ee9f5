"""``roshap clean``: remove local state that can be made again, never results."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from roshap.errors import RoshapError
from roshap.stages.workspace import Workspace

REMOVABLE = {
    "checkpoints": "finished runs of the bootstrap (the next run starts afresh)",
    "downloads": "downloaded source files",
    "data": "tables of data sets with overridden options",
    "slurm": "files of Slurm jobs",
    "tmp": "shared memory of stopped processes",
}


def clean_command(arguments: Sequence[str], workspace: Workspace) -> int:
    """Remove what is named in :data:`REMOVABLE`; ``--dry-run`` only lists it."""
    unknown = [word for word in arguments if word != "--dry-run"]
    if unknown:
        raise RoshapError(f"unknown option {unknown[0]!r} (valid: --dry-run)")
    found = False
    for name, what in REMOVABLE.items():
        folder = workspace.cache / name
        if not folder.exists():
            continue
        found = True
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        print(f"{workspace.relative(folder)}: {what}, {size / 1e6:.1f} MB")
        if "--dry-run" not in arguments:
            shutil.rmtree(folder)
    if not found:
        print("nothing to remove")
    return 0
