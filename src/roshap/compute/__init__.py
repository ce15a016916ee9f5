"""How replicates are run: seeds, back ends, shared data, checkpoints and progress."""

from roshap.compute.backends import BACKENDS
from roshap.compute.checkpoint import CheckpointStore, code_digest, prune
from roshap.compute.executor import Executor
from roshap.compute.progress import Progress
from roshap.compute.scratch import scratch_folder
from roshap.compute.seeds import replicate_seed, spawn

__all__ = [
    "BACKENDS",
    "CheckpointStore",
    "Executor",
    "Progress",
    "code_digest",
    "prune",
    "replicate_seed",
    "scratch_folder",
    "spawn",
]
