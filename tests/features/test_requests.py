"""What is read in one compiled call is what the general reader makes of it, to the bit; the rest is left to that."""

from __future__ import annotations

import hashlib
import json
import random
import string
from typing import Any

import msgspec
import pytest

from armwise.features.encoding import requests
from armwise.features.encoding.arms import ArmColumns, _checked, read_arm
from armwise.features.encoding.tokens import InvalidInput, Part, _part
from armwise.native.requests import blake, read_decision, read_offered, read_part
from armwise.service.web import v1

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


def generally(text: str) -> Part | None:
    try:
        return _part(text.encode(), "c")
    except InvalidInput:
        return None


def test_what_is_read_is_what_the_general_reader_reads():
    chance, read, refused = random.Random(5), 0, 0
    for _ in range(6_000):
        text = any_object(chance) if chance.random() < 0.9 else any_value(chance)
        expected, found = generally(text), read_part(text.encode(), b"c")
        if found is not None:
            read += 1
            assert expected is not None and found == (expected.counted, expected.n_keys), text
        refused += expected is None
    assert read > 2_000 and refused > 600  # the chances are such that both are tried


def test_texts_that_are_cut_or_changed_are_read_as_the_general_reader_reads_them():
    chance = random.Random(6)
    whole = b'{"hour": 9.25, "city": "Oslo \xc3\xa9", "tags": ["new", 3, {"a": null}], "vip": true, "n": -1e-3}'
    assert read_part(whole, b"c") is not None
    for _ in range(6_000):
        text = bytearray(whole)
        for _ in range(chance.randrange(1, 3)):
            text[chance.randrange(len(text))] = chance.randrange(256)
        text = text[: chance.choice([len(text), chance.randrange(len(text))])]
        found = read_part(bytes(text), b"c")
        if found is not None:
            expected = _part(bytes(text), "c")
            assert found == (expected.counted, expected.n_keys), bytes(text)


def test_numbers_have_the_same_bits():
    chance = random.Random(7)
    for _ in range(6_000):
        digits = "".join(chance.choices(string.digits, k=chance.randrange(1, 20)))
        text = f"{chance.choice(['', '-'])}{int(digits)}.{chance.randrange(10 ** chance.randrange(1, 19))}"
        text += chance.choice(["", f"e{chance.randrange(-330, 140)}", f"E+{chance.randrange(120)}"])
        found, expected = read_part(b'{"x":%b}' % text.encode(), b"c"), generally(f'{{"x":{text}}}')
        if found is not None:
            assert expected is not None and found[0] == expected.counted, text


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


def test_arms_are_read_as_the_general_reader_reads_them():
    chance, read = random.Random(8), 0
    for _ in range(3_000):
        texts = tuple(arm(chance).encode() for _ in range(chance.randrange(1, 5)))
        found = read_offered(texts)
        if found is not None:
            read += 1
            expected = _checked([read_arm(text) for text in texts])
            assert found == (expected.ids, expected.tail.words, expected.n_keys), texts
    assert read > 600
    assert read_offered(()) is None and read_offered((b'"a","b"',)) is None and read_offered((b'"a"', b' "b"')) is None


def stored(name: str) -> ArmColumns:
    """A catalogue of one arm."""
    if len(name) != 32 or not set(name.lower()) <= set(string.hexdigits):
        raise InvalidInput("no hash")
    return ArmColumns((name,), None, [], None)  # type: ignore[arg-type]


def outcome(read: Any, body: bytes) -> Any:
    """What a reader makes of a body, or what it says of it."""
    try:
        asked = read(body, stored)
    except InvalidInput as error:
        return str(error)
    tail = None if asked.arms.tail is None else asked.arms.tail.words
    raws = [] if tail is None else [bytes(raw) for raw in asked.arms.raws]
    return (
        asked.context,
        asked.tokens,
        asked.arms.ids,
        tail,
        raws,
        asked.id,
        list(asked.excluded),
        asked.deferred,
        asked.catalogue,
    )


def test_a_body_is_read_the_same_both_ways():
    chance, plain = random.Random(9), 0
    for _ in range(3_000):
        members = [f'"arms":[{", ".join(arm(chance) for _ in range(chance.randrange(4)))}]']
        if chance.random() < 0.8:
            members.append(f'"context": {any_object(chance)}')
        if chance.random() < 0.2:
            members.append(f'"id": {json.dumps(chance.choice(TEXTS))}')
        if chance.random() < 0.2:
            members.append(f'"defer":{chance.choice(["true", "false", "null"])}')
        if chance.random() < 0.1:
            members.append(f'"excluded": {json.dumps([chance.choice("abc")])}')
        if chance.random() < 0.1:
            members[0] = f'"catalogue": "{chance.choice(["ab" * 16, "AB" * 16, "7", "zz" * 16])}"'
        if chance.random() < 0.05:
            members.append(chance.choice(members))
        chance.shuffle(members)
        body = (" {" + ",".join(members) + chance.choice(["}", "} ", "", "}}"])).encode()
        plain += requests.read_plain(body) is not None
        assert outcome(v1.read, body) == outcome(v1.read_any, body), body
    assert plain > 100


def plainly(body: str) -> requests.PlainRequest:
    found = requests.read_plain(body.encode())
    assert found is not None
    return found


def test_a_long_set_that_comes_again_is_found_by_its_text():
    arms = [{"id": f"item {i}", "features": {f"f{k}": i / (k + 1) for k in range(20)}} for i in range(100)]
    text = json.dumps(arms)
    first = plainly('{"context": {"hour": 9}, "arms": ' + text + "}")
    second = plainly('{"arms": ' + text + ', "context": {"hour": 10}}')
    assert first.arms is second.arms is not None and second.context == b'{"hour": 10}'
    other = plainly('{"arms": ' + text.replace("item 99", "item x") + "}").arms
    assert other is not None and other.ids[-1] == "item x" and other.tail != second.arms.tail
    assert requests.read_plain(b'{"arms": %b' % text.encode()) is None
    assert requests.read_plain(b'{"arms": %b "context": {}}' % text.encode()) is None


def test_long_sets_are_kept_within_bounds():
    sets = requests._Sets()
    body = b'{"arms": [%b]}'
    for i in range(40):
        sets.read(body % ",".join(f'"{i} {k:0>200}"' for k in range(60)).encode())
    assert len(sets._both[0]) == len(sets._both[1]) == requests.MOST_SETS
    for i in range(4):
        sets.read(body % ",".join(f'"{i} {k:0>240}"' for k in range(30_000)).encode())
    assert sum(map(len, sets._both[0])) <= requests.MOST_BYTES and len(sets._both[0]) == len(sets._both[1])


def test_the_hash_is_blake2b():
    chance = random.Random(10)
    for size in [*range(300), 1000, 4096]:
        token = chance.randbytes(size)
        assert blake(token) == int.from_bytes(hashlib.blake2b(token, digest_size=8).digest(), "little")


def test_what_is_no_bytes_is_refused():
    with pytest.raises(ValueError, match="texts must be bytes"):
        read_offered(("a",))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="before must have bytes"):
        read_decision(b"{}", ["a"])  # type: ignore[list-item]


def test_many_names_are_known_to_differ():
    names = {f"name {i}": i for i in range(3000)}
    assert read_part(msgspec.json.encode(names), b"c") is not None
    twice = msgspec.json.encode(names)[:-1] + b',"name 7":1}'
    assert read_part(twice, b"c") is None


def test_a_list_of_more_objects_than_are_accepted_is_refused_though_nothing_is_in_them():
    assert read_part(b"[" + b"{}," * 3999 + b"{}]", b"c") is not None
    for objects in (b"[" + b"{}," * 4096 + b"{}]", b"[" + b'{"a":null},' * 4096 + b"{}]"):
        assert read_part(objects, b"c") is None
        for body in (b'{"arms": ["a"], "context": %b}', b'{"arms": [{"id": "a", "features": %b}]}'):
            assert outcome(v1.read, body % objects) == "more than 4096 features; at most 4096 are accepted"


def test_a_text_that_has_to_be_hashed_again_and_again_is_left_to_the_reader_that_lets_others_run():
    tags = b'{"%b": [%b]}'
    assert read_part(tags % (b"k" * 60, b",".join([b'"z"'] * 3000)), b"c") is not None
    long = tags % (b"k" * 3000, b",".join([b'"z"'] * 300))  # a megabyte, from four kilobytes
    assert read_part(long, b"c") is None and read_offered((b'{"id": "a", "features": %b}' % long,)) is None
    body = b'{"arms": ["a"], "context": %b}' % long
    assert read_decision(body, []) is None
    assert outcome(v1.read, body)[:2] == (long, _part(long, "c"))


def place(id: str) -> int:
    """Where the compiled reader begins to look for an id; its tables have some low bits of it."""
    z = blake(b"a\x1ei" + id.encode()) * 0x9E3779B97F4A7C15 % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


def test_ids_that_were_chosen_to_meet_are_left_to_a_reader_for_which_nobody_can_choose():
    names = [f"{i}" for i in range(12_000)]
    body = b'{"arms": %b}'
    assert read_decision(body % msgspec.json.encode(names), []) is not None
    met = [name for name in names if place(name) % 2048 < 128][:600]  # all go through one sixteenth of a table
    assert len(met) == 600 and read_decision(body % msgspec.json.encode(met), []) is None
    assert outcome(v1.read, body % msgspec.json.encode(met))[2] == tuple(met)
