import json
import multiprocessing
import os
import stat

import numpy as np
import pytest

from roshap.compute import CheckpointStore, code_digest, prune
from roshap.errors import CheckpointError, OutputError

PARTS = {"data": "d1", "seed": "0", "settings.keep": "5"}


def make(root, label="golub", **changes):
    return CheckpointStore(root, {**PARTS, **changes}, label)


def test_what_is_written_is_found_and_read(tmp_path):
    store = make(tmp_path)
    with store.open():
        assert store.done() == set()
        store.write(12, {"S": np.arange(6.0).reshape(3, 2), "name": np.asarray("kernel")})
    again = make(tmp_path)
    with again.open():
        assert again.done() == {12}
        with again.read(12) as arrays:
            np.testing.assert_array_equal(arrays["S"], np.arange(6.0).reshape(3, 2))
            assert str(arrays["name"]) == "kernel"


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty"])
def test_damaged_replicate_is_said_and_removed(tmp_path, damage):
    store = make(tmp_path)
    said = []
    with store.open():
        for index in range(3):
            store.write(index, {"S": np.full(1000, float(index))})
        path = store.path(1)
        content = bytearray(path.read_bytes())
        if damage == "truncated":
            del content[len(content) // 2 :]
        elif damage == "flipped":
            content[len(content) // 2] ^= 1
        else:
            content.clear()
        path.write_bytes(content)
        assert store.done(say=said.append) == {0, 2}
        assert not path.exists()
    assert said == ["replicate 1 on disk is damaged: it is computed again"]


def test_partial_file_of_a_killed_process_does_not_count(tmp_path):
    store = make(tmp_path)
    with store.open():
        pass
    leftover = store.folder / ".000003.npz.999.tmp"
    leftover.write_bytes(b"half")
    with store.open():
        assert store.done() == set()
        assert not leftover.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": "1"}, "seed changed since the last run of this label: starting afresh"),
        (
            {"data": "d2", "settings.keep": "6"},
            "data and settings.keep changed since the last run of this label: starting afresh",
        ),
        ({"new": "x"}, "new changed since the last run of this label: starting afresh"),
    ],
)
def test_change_is_said_once_and_nothing_is_shared(tmp_path, changes, message):
    first = make(tmp_path)
    with first.open():
        first.write(0, {"S": np.zeros(1)})
    said = []
    changed = make(tmp_path, **changes)
    with changed.open(say=said.append):
        assert changed.done() == set()
    assert said == [message]
    with make(tmp_path, **changes).open(say=said.append):
        assert len(said) == 1


def test_going_back_finds_the_old_replicates(tmp_path):
    with make(tmp_path).open():
        make(tmp_path).write(0, {"S": np.zeros(1)})
    with make(tmp_path, seed="1").open():
        pass
    said = []
    with make(tmp_path).open(say=said.append):
        assert make(tmp_path).done() == {0}
    (line,) = said
    assert line.startswith("seed changed since the last run of this label: going on with earlier")


def test_labels_share_equal_computations(tmp_path):
    with make(tmp_path, label="runs=5").open():
        make(tmp_path).write(0, {"S": np.zeros(1)})
    said = []
    other = make(tmp_path, label="runs/5")
    with other.open(say=said.append):
        assert other.done() == {0}
    assert said == []
    assert len(list((tmp_path / "labels").iterdir())) == 2


def _hold(root, held, release):
    with make(root).open():
        held.set()
        release.wait(30)


def test_two_processes_do_not_write_the_same_store(tmp_path):
    context = multiprocessing.get_context("fork")
    held, release = context.Event(), context.Event()
    child = context.Process(target=_hold, args=(tmp_path, held, release))
    child.start()
    assert held.wait(30)
    said = []
    with (
        pytest.raises(CheckpointError, match="another process has been computing") as caught,
        make(tmp_path).open(wait=0.1, say=said.append),
    ):
        pass
    assert "\n" not in str(caught.value)
    assert said == ["waiting for another process that computes the same runs"]
    with make(tmp_path, seed="1").open():
        pass  # another computation is not held up
    release.set()
    child.join(30)
    with make(tmp_path).open(wait=30):
        pass


def test_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with (
        pytest.raises(OutputError, match=r"cannot write checkpoints in .*file") as caught,
        make(tmp_path / "file").open(),
    ):
        pass
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_read_only_folder(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(OutputError, match="cannot write checkpoints"), make(tmp_path / "s").open():
        pass


def test_failed_write_leaves_no_file(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    store = make(tmp_path)
    with store.open():
        monkeypatch.setattr(np, "savez", full)
        with pytest.raises(OutputError, match="No space left on device"):
            store.write(0, {"S": np.zeros(1)})
        assert store.done() == set()
        assert not list(store.folder.glob(".*.tmp"))


def test_missing_replicate_is_named(tmp_path):
    store = make(tmp_path)
    with store.open(), pytest.raises(CheckpointError, match="replicate 4 cannot be read"):
        store.read(4)


def test_prune_removes_what_no_label_used_last(tmp_path):
    old, busy, new = (make(tmp_path, seed=seed) for seed in "123")
    for store in (old, busy, new):
        with store.open():
            store.write(0, {"S": np.zeros(10)})
    (tmp_path / "labels" / "broken.json").write_text("{")
    with busy.open():
        with new.open():
            pass  # the label's last computation is again the new one
        ((folder, size),) = prune(tmp_path)
    assert folder == old.folder
    assert size > 80
    assert not old.folder.exists()
    assert busy.done() == new.done() == {0}


def test_key_is_readable(tmp_path):
    store = make(tmp_path)
    with store.open():
        pass
    assert json.loads((store.folder / "key.json").read_text()) == PARTS


def test_code_digest_follows_the_source(tmp_path, monkeypatch):
    package = tmp_path / "some_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "part.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = code_digest("some_package")
    assert before == code_digest("some_package")
    (package / "part.py").write_text("x = 2\n")
    assert code_digest("some_package") != before
    with pytest.raises(CheckpointError, match="no_such_module"):
        code_digest("no_such_module")
