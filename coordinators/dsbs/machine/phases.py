"""The life of a broker in its cluster. Pure.

NEW     -> JOINING  started: say hello to all that are known, fetch their tables
JOINING -> MEMBER   all of them answered, or `join_ms` passed
JOINING -> OUT      another live broker has this id
MEMBER  -> LEAVING  told to stop: this broker's row says so, and peers inherit what it led
MEMBER  -> OUT      peers know another live broker under this id
LEAVING -> OUT      all peers know, or `acknowledge_ms` passed
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class Phase(Enum):
    NEW = "new"
    JOINING = "joining"
    MEMBER = "member"
    LEAVING = "leaving"
    OUT = "out"


TRANSITIONS: Final = {
    (Phase.NEW, Phase.JOINING),
    (Phase.JOINING, Phase.MEMBER),
    (Phase.JOINING, Phase.OUT),
    (Phase.MEMBER, Phase.LEAVING),
    (Phase.MEMBER, Phase.OUT),
    (Phase.LEAVING, Phase.OUT),
}
