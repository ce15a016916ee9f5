"""Every command in the README and the docs runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.conftest import REPOSITORY, copy_checkout

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
SMALL_STUDY = "roshap study quick runs=3 'only=[wine-xgboost]'"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

#: Commands that a test of their own, or CI itself, runs; and those that need the network or hours.
ELSEWHERE = {
    "make run": ".ci/run",
    "make test": ".ci/run",
    "make ui": "a server: tests/stages/test_pages.py",
    "source .venv/bin/activate": "the environment of this test",
    "roshap fetch dataset=golub": "needs the network: tests/datasets/test_readers.py with a mirror",
    "roshap run dataset=golub": "the same",
    "roshap run dataset=musk": "the same",
    "roshap run dataset=ujiindoorloc": "the same",
}


def blocks(language: str) -> list[tuple[str, str]]:
    """Return (page, text) of each fenced block of a language."""
    return [
        (page.relative_to(REPOSITORY).as_posix(), text)
        for page in PAGES
        for found, text in FENCE.findall(page.read_text())
        if found == language
    ]


def commands(text: str) -> list[str]:
    """Return the commands of a block that this test runs: continued lines joined, comments off."""
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    words = [re.sub(r"\s+#.*$", "", line).strip() for line in lines]
    return [word for word in words if word and not word.startswith(("#", *ELSEWHERE))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout under git and DVC, with a small study and a CSV of a person's own."""
    root = tmp_path_factory.mktemp("checkout")
    copy_checkout(root)
    for name in ("MLproject", "python_env.yaml", ".dvcignore", ".gitignore"):
        (root / name).write_bytes((REPOSITORY / name).read_bytes())
    (root / "src").symlink_to(REPOSITORY / "src")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, 5)), columns=[f"x{i}" for i in range(5)])
    table.assign(y=(table["x0"] > 0).astype(int)).to_csv(root / "my.csv", index=False)
    for command in ("git init -q", "dvc init -q", SMALL_STUDY):
        run(command, root)
    return root


def run(command: str, root: Path) -> None:
    """Run a shell command as a reader would, with this test's environment first on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "DVC_NO_ANALYTICS": "1"}
    done = subprocess.run(
        command, shell=True, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


def of_page(language: str) -> list[str]:
    """Return the pages that have blocks of a language."""
    return sorted({page for page, _ in blocks(language)})


@pytest.mark.pipeline
@pytest.mark.parametrize("page", of_page("bash"))
def test_commands(page: str, folder: Path) -> None:
    # another page may have chosen a study that takes minutes
    run(SMALL_STUDY, folder)
    for where, text in blocks("bash"):
        if where == page:
            for command in commands(text):
                run(command, folder)


@pytest.mark.pipeline
@pytest.mark.parametrize("page", of_page("python"))
def test_python(page: str, folder: Path) -> None:
    run(f"{SMALL_STUDY} && dvc repro", folder)
    for where, text in blocks("python"):
        if where == page:
            (folder / "block.py").write_text(text)
            run("python block.py", folder)


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
