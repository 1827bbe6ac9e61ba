import os
import stat
from pathlib import Path

import pytest

from clipup.errors import FileFault
from clipup.runs.lock import DirectoryLock


def test_a_lock_is_held_by_one_and_names_its_process(tmp_path: Path) -> None:
    first, second = DirectoryLock(tmp_path), DirectoryLock(tmp_path)
    assert first.owner() == "unknown" and not first.is_held()
    assert first.acquire() and second.is_held() and not second.acquire()
    assert second.owner() == str(os.getpid())
    first.release()
    first.release()
    assert not second.is_held() and second.acquire()
    second.release()


def test_removing_the_lock_file_lets_no_second_process_in(tmp_path: Path) -> None:
    first, second = DirectoryLock(tmp_path), DirectoryLock(tmp_path)
    assert first.acquire()
    (tmp_path / "lock").unlink()
    assert not second.acquire() and second.is_held()
    (tmp_path / "lock").write_bytes(b"another\n")
    assert not second.acquire() and second.is_held() and second.owner() == "unknown"
    first.check()
    first.release()
    assert second.acquire()
    second.release()


def test_where_a_directory_cannot_be_locked_a_replaced_lock_file_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    flock = fcntl.flock

    def on_nfs(descriptor: int, operation: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(9, "Bad file descriptor")
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", on_nfs)
    first, second = DirectoryLock(tmp_path), DirectoryLock(tmp_path)
    assert first.acquire() and second.is_held() and not second.acquire()
    first.check()
    (tmp_path / "lock").unlink()
    with pytest.raises(FileFault, match="its lock was removed"):
        first.check()
    assert second.acquire()
    with pytest.raises(FileFault, match="its lock was removed"):
        first.check()
    first.release()
    second.release()
