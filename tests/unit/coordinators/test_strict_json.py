from __future__ import annotations

import pytest

from coordinators.strict_json import decoded, encoded


def test_json_is_written_without_spaces_and_in_ascii() -> None:
    assert encoded({"a": [1, None, True], "b": "é"}) == b'{"a":[1,null,true],"b":"\\u00e9"}'


def test_what_is_written_is_read_back() -> None:
    value = {"a": [1, None, {"b": "é"}], "c": {}}
    assert decoded(encoded(value)) == value


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"a":1,"a":1}', "key 'a' stands twice"),
        (b'[{"a":{"b":1,"c":2,"b":3}}]', "key 'b' stands twice"),
        (b"[" * 100_000, "nests too deep"),
        (b"", "Expecting value"),
        (b"\xff", "codec can't decode"),
    ],
)
def test_what_no_program_of_ours_writes_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        decoded(content)
