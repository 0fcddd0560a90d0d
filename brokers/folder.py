"""A broker's data_dir: one process's at a time, and one broker's for ever.

Both are about the same mistake, a config that names another broker's folder. While that one runs, two would destroy
it; while it is stopped, the wrong one would find none of its own partitions in it, start empty beside them, and
acknowledge messages that are lost once the folders are put right.
"""

from __future__ import annotations

import fcntl
import json
import logging
from typing import TYPE_CHECKING, ClassVar, Final

from brokers.log.files import OS_FILES, Files, is_read_only, read_file, replace_file
from coordinators.strict_json import decoded

if TYPE_CHECKING:
    from pathlib import Path

LOCK: Final = "lock"
OWNER: Final = "broker.json"
EARLIER_LAYOUT: Final = "topics"
_LOG: Final = logging.getLogger(__name__)


class FolderInUse(Exception):
    """Another broker has the data folder; two would destroy it. Definite: nothing was started."""

    definite: ClassVar[bool] = True


class FolderOfAnother(Exception):
    """The data folder is that of a broker with another id. Definite: nothing was started."""

    definite: ClassVar[bool] = True


class FolderOfEarlierVersion(Exception):
    """The data folder is laid out as an earlier version did. Definite: nothing was started."""

    definite: ClassVar[bool] = True


def locked(folder: Path, files: Files = OS_FILES) -> int:
    """The data folder, which is made if it is missing, for this process alone until the handle is closed.

    Raises `FolderInUse`, OSError.
    """
    files.make_directory(folder)
    handle = _opened(folder, files)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        files.close(handle)
        raise FolderInUse(f"another process has {folder}: a broker's data_dir is its own") from None
    return handle


def _opened(folder: Path, files: Files) -> int:
    """The lock: a file, for reading where its file system is read-only, and the folder where there is none."""
    try:
        return files.open_append(folder / LOCK)
    except OSError as error:
        if not is_read_only(error):
            raise
        _LOG.warning("broker: what is in %s can be read, and nothing written: %s", folder, error.strerror)
    try:
        return files.open_read(folder / LOCK)
    except FileNotFoundError:
        return files.open_directory(folder)


def owned(folder: Path, broker: int, files: Files = OS_FILES) -> None:
    """See that a locked folder is the broker's, and note it there if nobody did. Raises `FolderOfAnother`, OSError.

    A disk that takes no note is no reason not to serve what is on it: the next start notes it.
    """
    path = folder / OWNER
    content = read_file(files, path)
    if content is None:
        try:
            # Synced whatever `fsync` says: it is written once, and a half of it would keep the broker from starting.
            replace_file(files, path, json.dumps({"broker": broker}).encode() + b"\n", durable=True)
        except OSError as error:
            _LOG.warning("broker: cannot note that %s is the folder of broker %s: %s", folder, broker, error)
        return
    owner = _owner(content)
    if owner is None:
        raise FolderOfAnother(
            f"{path} holds {content[:100]!r}, which is not whose folder it is: remove it to give the folder to who "
            "starts next"
        )
    if owner != broker:
        raise FolderOfAnother(
            f"{folder} holds the data of broker {owner}, and this is broker {broker}: a broker's data_dir is its own"
        )


def _owner(content: bytes) -> int | None:
    try:
        owner = decoded(content)["broker"]
    except (ValueError, TypeError, KeyError):
        return None
    return owner if type(owner) is int else None


def of_this_layout(folder: Path, files: Files = OS_FILES) -> None:
    """See that no logs lie where an earlier version had them: they would be there, and nobody would be served of them.

    Raises `FolderOfEarlierVersion`, OSError.
    """
    earlier = folder / EARLIER_LAYOUT
    try:
        found = files.list_names(earlier)
    except FileNotFoundError:
        return
    if found:
        raise FolderOfEarlierVersion(
            f"{earlier} holds {len(found)} logs as an earlier version laid them out, and this one would not find them: "
            "start that version on them, or move each as docs/broker.md says (Folder, Earlier versions)"
        )
