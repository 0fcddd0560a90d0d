"""Where partitions lie in a broker's data_dir, and how they come and go there.

  logs/<topic>/<life>/<partition>/   one log
  deleted/<number>/                  what was a life of a topic, with all of its logs, until it is removed

Topics that have one name after another have different lives, so their folders never share a path: whatever still works
for a former one reaches nothing of the present one. A deletion is one rename, whole topics at a time; what is left to
remove after it is no topic's any more, and the next start goes on with it.

Every call blocks and belongs into a thread. Folders of topics are made and renamed by one thread at a time.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Final

from brokers.log.files import OS_FILES, Files, sync_directory
from coordinators.errors import JournalFailed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from coordinators.model import Topic

LOGS_FOLDER: Final = "logs"
DELETED_FOLDER: Final = "deleted"


def lives_on_disk(data_dir: Path, topic: str, files: Files = OS_FILES) -> list[str]:
    """The lives of a topic's name that have a folder. Raises `JournalFailed` where the disk does not say."""
    folder = data_dir / LOGS_FOLDER / topic
    try:
        return files.list_names(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise JournalFailed(f"cannot list {folder}: {error}") from error


class PartitionFolders:
    """`durable` syncs names to the disk itself before a call returns. Calls raise OSError where the disk refuses."""

    def __init__(self, data_dir: Path, *, durable: bool, files: Files = OS_FILES) -> None:
        self._logs, self._deleted = data_dir / LOGS_FOLDER, data_dir / DELETED_FOLDER
        self._durable = durable
        self._files = files
        self._changing = Lock()
        self._made: set[Path] = set()
        self._stopped = False

    def of(self, topic: Topic, partition: int) -> Path:
        return self._of_topic(topic) / str(partition)

    def _of_topic(self, topic: Topic) -> Path:
        assert topic.life, "a topic without a life would lie among the lives of its name"
        return self._logs / topic.name / topic.life

    def make(self, topic: Topic) -> None:
        """Have the folder for a topic's logs."""
        folder = self._of_topic(topic)
        with self._changing:
            if folder in self._made:
                return
            self._files.make_directory(folder)
            if self._durable and not self._files.list_names(folder):
                for parent in (self._logs.parent, self._logs, folder.parent):
                    sync_directory(self._files, parent)
            self._made.add(folder)

    def set_apart(self, topic: Topic) -> Path | None:
        """Delete a topic in one step; what is left to `remove`. None where there is nothing of it."""
        folder = self._of_topic(topic)
        with self._changing:
            self._made.discard(folder)
            self._files.make_directory(self._deleted)
            numbers = [int(name) for name in self._files.list_names(self._deleted) if name.isdecimal()]
            apart = self._deleted / str(max(numbers, default=0) + 1)
            try:
                self._files.rename(folder, apart)
            except FileNotFoundError:
                return None
            if self._durable:
                for parent in (self._deleted, folder.parent):
                    sync_directory(self._files, parent)
            with suppress(OSError):  # another life of the name is there
                self._files.remove_directory(folder.parent)
        return apart

    def remove_deleted(self) -> None:
        """Finish the deletions of an earlier process."""
        for name in self._names(self._deleted):
            self.remove(self._deleted / name)

    def remove(self, path: Path) -> None:
        """Remove a folder with all that is in it. After `stop` it leaves off, and the next start goes on."""
        try:
            names = self._files.list_names(path)
        except NotADirectoryError:
            self._files.unlink(path)
            return
        for name in names:
            if not self._stopped:
                self.remove(path / name)
        if not self._stopped:
            self._files.remove_directory(path)

    def stop(self) -> None:
        self._stopped = True

    def not_of(self, topics: Mapping[str, Topic]) -> list[Path]:
        """The folders of topics that are none of these: deleted, or created again, while the broker was away."""
        lives = [(name, life) for name in self._names(self._logs) for life in self._names(self._logs / name)]
        known = {(topic.name, topic.life) for topic in topics.values()}
        return [self._logs / name / life for name, life in sorted(lives) if (name, life) not in known]

    def _names(self, folder: Path) -> list[str]:
        try:
            return self._files.list_names(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
