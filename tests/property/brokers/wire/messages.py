"""Hypothesis strategies for every message class, made from its own annotations."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from brokers.wire.schema import Since

_INTEGERS = {kind: st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for kind, bits in
             (("int8", 8), ("int16", 16), ("int32", 32), ("int64", 64))}  # fmt: skip
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def carried(message: type, version: int) -> list[str]:
    """The fields that `version` has, in the order of the wire."""
    hints = get_type_hints(message, include_extras=True)
    return [
        part.name
        for part in fields(message)
        if all(version in mark for mark in getattr(hints[part.name], "__metadata__", ()) if isinstance(mark, Since))
    ]


@cache
def messages(message: type, version: int) -> st.SearchStrategy[Any]:
    """Any value of `message` that `version` can carry."""
    hints = get_type_hints(message, include_extras=True)
    return st.builds(message, **{name: _values(hints[name], version) for name in carried(message, version)})


def _values(hint: Any, version: int) -> st.SearchStrategy[Any]:
    if get_origin(hint) is Annotated:
        base, kind = get_args(hint)[:2]
        return _values(base, version) if isinstance(kind, Since) else _scalars(base, kind)
    if get_origin(hint) is tuple:
        return st.lists(_values(get_args(hint)[0], version), max_size=3).map(tuple)
    members = [member for member in get_args(hint) if member is not NoneType]
    if members:
        return st.none() | _values(members[0], version)
    return messages(hint, version)


def _scalars(base: Any, kind: str) -> st.SearchStrategy[Any]:
    if kind in _INTEGERS:
        return _INTEGERS[kind]
    values: st.SearchStrategy[Any] = {"boolean": st.booleans(), "string": _TEXT, "bytes": st.binary(max_size=8)}[kind]
    return st.none() | values if NoneType in get_args(base) else values


def as_tuple(value: Any, version: int) -> Any:
    """A message as the nested tuples that the kafka-python library takes."""
    if isinstance(value, tuple):
        return [as_tuple(item, version) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        return tuple(
            _bits(getattr(value, name))
            if name.endswith("authorized_operations")
            else as_tuple(getattr(value, name), version)
            for name in carried(type(value), version)
        )
    return value


def _bits(value: int | bool) -> set[int] | bool:
    """kafka-python has a set of bit numbers where the protocol has an integer; a request's flag is none of these."""
    return value if isinstance(value, bool) else {bit for bit in range(32) if value >> bit & 1}
