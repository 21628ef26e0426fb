"""Tokens of JSON and of Python objects are those of a naive reader, to the bit, and so is what is refused."""

from __future__ import annotations

import hashlib
import json
import random
import string
import struct
from typing import Any

import msgspec
import numpy as np
import pytest

from armwise.features.encoding.arms import read_arms
from armwise.features.encoding.from_python import read_context
from armwise.features.encoding.tokens import (
    LIMITS,
    NO_TOKENS,
    InvalidInput,
    RequestTokens,
    blake2b,
    count_keys,
    count_tokens,
    hash_id,
    named_tokens,
    part,
    part_of,
    read_json,
    refuse_twice,
    tail,
    why,
)
from armwise.native.tokens import tokens

NUMBERS = [
    "0",
    "7",
    "-3",
    "123456789012345",
    "1234567890123456789",
    "0.5",
    "-0.0",
    "-0",
    "1e3",
    "1E-7",
    "2.5e+10",
    "9e149",
    "1e150",
    "1e400",
    "0.1234567890123456789",
    "123456789.123456789",
    "5e-324",
    "0.30000000000000004",
    "1e22",
    "1e23",
    "9007199254740993.0",
    "100000000000000000000",
    "3.0e-22",
    "00",
    "1.",
    ".5",
    "+1",
    "1e",
    "0x1",
]
TEXTS = [
    "",
    "a",
    "Oslo",
    "ünïcode",
    "日本",
    "\x7f",
    "with space",
    "a" * 300,
    "q" * 5000,
    'quo"te',
    "back\\slash",
    "\n",
    "😀",
]


def any_value(chance: random.Random, depth: int = 0) -> str:
    """A JSON text, now and then one that is none."""
    kind = chance.randrange(10 if depth < 4 else 7)
    gap = chance.choice(["", " ", "\n", "  "])
    if kind < 3:
        return chance.choice(NUMBERS[:23] if chance.random() < 0.97 else NUMBERS)
    if kind < 5:
        return json.dumps(chance.choice(TEXTS), ensure_ascii=chance.random() < 0.2)
    if kind < 7:
        return chance.choice(["true", "false", "null"])
    if kind < 8:
        return "[" + f",{gap}".join(any_value(chance, depth + 1) for _ in range(chance.randrange(4))) + "]"
    return any_object(chance, depth)


def any_object(chance: random.Random, depth: int = 0) -> str:
    """A JSON object; a key of it may come twice."""
    gap = chance.choice(["", " ", "\t"])
    names = [
        chance.choice(string.ascii_letters) + chance.choice(["", "", "x", "ß"]) for _ in range(chance.randrange(6))
    ]
    members = [f'{gap}"{name}"{gap}:{gap}{any_value(chance, depth + 1)}{gap}' for name in names]
    return "{" + ",".join(members) + gap + "}"


def naive(text: str) -> tuple[list[tuple[bytes, float, bool]], int] | None:
    """The tokens of an object as ``encoder`` describes them, by Python's own reader, and its keys; None: refused."""
    n_keys, twice = 0, False

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal n_keys, twice
        n_keys += len(members)
        twice |= len(dict(members)) < len(members)
        return dict(members)

    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=refuse)
    except ValueError:
        return None
    found: list[tuple[bytes, float, bool]] = []

    def walk(path: str, value: Any, separator: str) -> bool:
        if isinstance(value, dict):
            return all(len(key) <= 4096 and walk(path + separator + key, each, "\x1f") for key, each in value.items())
        if isinstance(value, list):
            return all(
                walk(f"{path}\x1f{i}" if type(each) in (int, float) else path, each, separator)
                for i, each in enumerate(value)
            )
        if isinstance(value, str):
            found.append((f"{path}\x1es{value}".encode(), 1.0, False))
            return len(value) <= 4096
        if isinstance(value, bool):
            found.append((f"{path}\x1eb{str(value).lower()}".encode(), 1.0, False))
        elif value is not None:
            if not abs(value) < 1e150:
                return False
            found.append((path.encode(), float(value), True))
        return True

    outer = isinstance(value, dict) or (isinstance(value, list) and all(isinstance(each, dict) for each in value))
    return (found, n_keys) if outer and walk("c", value, "") and not twice and len(found) <= 4096 else None


def packed(found: list[tuple[bytes, float, bool]]) -> bytes:
    rows = [struct.pack("<8sdQ", hashlib.blake2b(token, digest_size=8).digest(), x, s) for token, x, s in found]
    return len(rows).to_bytes(8, "little") + b"".join(rows)


def check(text: str) -> bool:
    """Whether a text is read, and that it is so by both readers, to the bit."""
    expected = naive(text)
    try:
        found = part(text.encode(), "c")
    except InvalidInput:
        assert expected is None, text
        return False
    assert expected is not None and (found.counted, found.n_keys) == (packed(expected[0]), expected[1]), text
    return True


def test_what_is_read_is_what_a_naive_reader_reads():
    chance = random.Random(5)
    read = [check(any_object(chance) if chance.random() < 0.9 else any_value(chance)) for _ in range(6_000)]
    assert sum(read) > 2_000 and len(read) - sum(read) > 600  # the chances are such that both are tried


def test_texts_that_are_cut_or_changed_are_read_or_refused_alike():
    chance = random.Random(6)
    whole = '{"hour": 9.25, "city": "Oslo é", "tags": ["new", 3, {"a": null}], "vip": true, "n": -1e-3}'
    assert check(whole)
    for _ in range(6_000):
        text = list(whole)
        for _ in range(chance.randrange(1, 3)):
            text[chance.randrange(len(text))] = chance.choice(string.printable[:95])
        check("".join(text[: chance.choice([len(text), chance.randrange(len(text))])]))


def test_numbers_have_the_same_bits():
    chance = random.Random(7)
    for _ in range(6_000):
        digits = "".join(chance.choices(string.digits, k=chance.randrange(1, 20)))
        text = f"{chance.choice(['', '-'])}{int(digits)}.{chance.randrange(10 ** chance.randrange(1, 19))}"
        text += chance.choice(["", f"e{chance.randrange(-330, 140)}", f"E+{chance.randrange(120)}"])
        check(f'{{"x":{text}}}')


def arm(chance: random.Random) -> str:
    id = json.dumps(chance.choice([*TEXTS, *string.ascii_letters]), ensure_ascii=chance.random() < 0.1)
    kind = chance.randrange(5)
    if kind == 0:
        return id
    features = any_object(chance) if kind < 4 else f"[{any_object(chance)}, {any_object(chance)}]"
    members = [f'"id": {id}', f'"features":{features}']
    if chance.random() < 0.3:
        members.reverse()
    if chance.random() < 0.05:
        members.append('"more": 1')
    return "{" + ", ".join(members[: chance.choice([1, 2, 2, 2])]) + "}"


def test_arms_have_the_tokens_of_their_features_behind_the_hash_of_their_ids():
    chance, read = random.Random(8), 0
    for _ in range(2_000):
        texts = [arm(chance).encode() for _ in range(chance.randrange(1, 5))]
        try:
            found = read_arms(texts)
        except InvalidInput:
            continue
        read += 1
        words = b""
        for text, id in zip(texts, found.ids):
            sent = json.loads(text)
            features = sent.get("features", {}) if isinstance(sent, dict) else {}
            assert id == (sent["id"] if isinstance(sent, dict) else sent)
            words += hash_id(id) + part_of(features, "a").counted
        assert found.tail.words == words, texts
    assert read > 600


def test_a_batch_has_the_tokens_of_each_and_the_cache_changes_nothing():
    chance = random.Random(9)
    contexts = [json.loads(text) for _ in range(300) if check(text := any_object(chance))]
    each = [part_of(context, "c") for context in contexts]
    for _ in range(2):
        found, n_keys, kinds = tokens(contexts, b"c", None, LIMITS)
        assert found == [one.counted for one in each] and n_keys == sum(one.n_keys for one in each) and kinds is None


def test_the_cache_of_hashes_starts_again_when_it_is_full():
    for start in range(0, 200_000, 4_000):
        names = {f"name {i}": i for i in range(start, start + 4_000)}
        if start % 40_000 == 0:
            assert part_of(names, "c").counted == packed([(b"c" + name.encode(), i, True) for name, i in names.items()])
        else:
            part_of(names, "c")


def test_a_key_is_left_out_where_it_is_asked_for_and_only_outermost():
    [found], n_keys, kinds = tokens([{"id": "a", "of": {"id": 3}}], b"a", "id", LIMITS)
    assert (found, n_keys, kinds) == (packed([(b"aof\x1fid", 3.0, True)]), 3, None)


def test_what_json_has_not_is_a_type_error():
    for value in ({"a": (1, 2)}, {"a": b"x"}, {1: 2}, {"a": {3}}, {"a": complex(1)}):
        with pytest.raises(TypeError):
            tokens([value], b"c", None, LIMITS)


def test_a_dictionary_that_contains_itself_is_refused():
    looped: dict[str, Any] = {}
    looped["again"] = looped
    with pytest.raises(InvalidInput, match="nested 33 deep"):
        part_of(looped, "c")
    with pytest.raises(ValueError, match="nested too deeply, or contains itself"):
        read_context(looped)


def test_whole_numbers_beyond_64_bits_are_numbers():
    for value in (2**63 - 1, 2**63, -(2**63), 2**64 - 1, 10**30):
        assert part_of({"x": value}, "c").counted == packed([(b"cx", float(value), True)])
    with pytest.raises(InvalidInput, match="beyond 1e150"):
        part_of({"x": 10**400}, "c")


def test_many_names_are_known_to_differ():
    names = {f"name {i}": i for i in range(3000)}
    assert part(msgspec.json.encode(names), "c").n_keys == 3000
    with pytest.raises(InvalidInput, match="appears twice"):
        part(msgspec.json.encode(names)[:-1] + b',"name 7":1}', "c")


def test_a_list_of_more_objects_than_are_accepted_is_refused_though_nothing_is_in_them():
    assert part(b"[" + b"{}," * 3999 + b"{}]", "c").n_keys == 0
    for objects in (b"[" + b"{}," * 4096 + b"{}]", b"[" + b'{"a":null},' * 4096 + b"{}]"):
        with pytest.raises(InvalidInput, match="more than 4096 features; at most 4096 are accepted"):
            part(objects, "c")


def test_a_path_that_is_hashed_again_and_again_is_the_same_every_time():
    text = json.dumps({"k" * 3000: ["z"] * 300})  # a megabyte, from four kilobytes
    assert check(text)
    with pytest.raises(InvalidInput, match="bytes on the way to one value"):
        part(b'{"%b": {"%b": {"%b": 1}}}' % (b"k" * 3000, b"k" * 3000, b"k" * 3000), "c")


def test_a_key_twice_is_refused():
    with pytest.raises(InvalidInput, match="a key appears twice in one object"):
        part(b'{"a": 1, "a": 2}', "c")


def test_null_has_no_token():
    table = part(b'{"hour": 9, "city": "Oslo", "vip": null}', "c").table
    assert table.view(np.float64)[:, 1].tolist() == [9.0, 1.0]


def test_tokens_are_counted():
    assert count_tokens([part(b'{"a": 1}', "c"), NO_TOKENS]) == 1


def test_the_tokens_of_one_arm():
    two = tail([bytes(8), b"secondid"], [part(b'{"a": 1}', "a"), NO_TOKENS])
    assert two.only(1).words[:8] == b"secondid"
    assert two.only(0).n_tokens == 1


def test_the_words_of_a_request():
    request = RequestTokens(part(b'{"time": "morning"}', "c"), tail([bytes(8)], [NO_TOKENS]))
    assert request.words[[0, 1, 5, 6]].tolist() == [1, 1, 0, 0]


def test_a_request_with_one_of_its_arms():
    assert RequestTokens(NO_TOKENS, tail([bytes(8), bytes(8)], [NO_TOKENS, NO_TOKENS])).only(1).tail.n == 1


def test_texts_are_not_in_the_table_of_numbers():
    arms = tail([bytes(8)], [part(b'{"b": 2, "c": 3}', "a")])
    assert RequestTokens(part(b'{"a": 1, "d": "x"}', "c"), arms).table.shape == (3, 3)


def test_the_hash_is_blake2b_of_eight_bytes():
    assert hex(int.from_bytes(blake2b(b"1"), "little")) == "0x7637ba9f0342fcf6"


def test_an_id_is_hashed_in_its_own_space():
    assert hash_id("red") == blake2b(b"a\x1eired")


def test_a_key_that_its_reader_did_not_find_is_there_twice():
    with pytest.raises(InvalidInput, match="the body: a key appears twice in one object"):
        refuse_twice("the body", b'{"a": "b:", "a": 2}', 1)


def test_truncated_json_is_named():
    with pytest.raises(InvalidInput, match="not JSON: Input data was truncated"):
        read_json(b"[1, 2")


def test_half_a_surrogate_pair_is_named():
    text = b'{"name": "\\ud800"}'
    assert why(ValueError("Input data was truncated"), text) == "half a surrogate pair in a string"


def test_keys_of_nested_objects_are_counted():
    assert count_keys({"a": [{"b": 1}, 2]}) == 2


def test_a_dictionary_has_the_tokens_of_its_json():
    assert part_of({"hour": 9}, "c") == part(b'{"hour": 9}', "c")


def test_tokens_have_the_names_of_their_path():
    found = named_tokens(b'{"user": {"city": "Oslo"}, "tags": ["new"], "hour": 9}', "c")
    assert [token[0] for token in found] == ["user.city=Oslo", "tags=new", "hour"]
