"""Arguments that several commands take: which part of an experiment matrix is meant, and whole numbers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

FILE: Final = Path("experiments.yaml")
# The wheel brings the project's own, for a folder that has none.
PACKAGED: Final = Path(__file__).parents[1] / FILE.name
DIGITS_MAX: Final = 19


def whole(low: int, high: int) -> Callable[[str], int]:
    """Plain digits, within bounds; anything else is refused with what is allowed."""

    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or len(text) > DIGITS_MAX or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"it must be a whole number from {low:,} to {high:,}, not {text!r}")
        return int(text)

    return parse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", type=Path, help=f"default: {FILE}, or the one that was installed")
    parser.add_argument("--profile", default="steady", help="one of the file's profiles; default: %(default)s")
    parser.add_argument(
        "--only", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="a part of it; may be repeated"
    )
    parser.add_argument(
        "--messages", type=whole_of_profile("messages"), metavar="N",
        help="messages of each trial, in place of the profile's length",
    )  # fmt: skip


def whole_of_profile(key: str) -> Callable[[str], Any]:
    """Takes what the file takes for that key of a profile."""

    def parse(text: str) -> Any:
        from workloads.spec.keys import PROFILE

        try:
            return PROFILE[key].kind.parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{error}; not {text!r}") from error

    return parse


def file_and_only(options: argparse.Namespace) -> tuple[Path, list[str]]:
    """The file, and the parts that `--only` keeps. argparse takes the file's name for one of those where it stands
    behind them. Raises `PlanError` for any other word that is none."""
    from workloads.errors import PlanError

    only = list(options.only)
    if options.file is None and len(only) > 1 and "=" not in only[-1] and Path(only[-1]).exists():
        return Path(only.pop()), only
    for word in only:
        if "=" not in word:
            raise PlanError(
                f"--only {word}: must be key=value, such as architecture=dsbs; "
                "if it is the file, write it before --only"
            )
    return options.file or _default_file(), only


def _default_file() -> Path:
    return PACKAGED if PACKAGED.exists() and not FILE.exists() else FILE
