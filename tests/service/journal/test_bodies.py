"""Stored bodies: compression, references to catalogues, and damage."""

from __future__ import annotations

import pytest

from armwise.service.journal.bodies import as_array, catalogue_of, hashed, pack, pack_arms, unpack, unpack_arms


def test_a_large_body_is_compressed_and_comes_back():
    text = b'{"p":[' + b"0.001," * 5000 + b"0.5]}"
    assert len(pack(text)) < 200 and unpack(pack(text)) == text


def test_a_small_body_is_stored_as_it_is():
    assert pack(b'{"p":[1.0]}') == b'{"p":[1.0]}'


def test_a_body_names_its_catalogue():
    stored = pack(b"{}", bytes(16))
    assert (catalogue_of(stored), unpack(stored)) == (bytes(16), b"{}")
    assert catalogue_of(b"{}") == b""


def test_arms_come_back_and_their_hash_is_that_of_the_file_format():
    assert as_array(unpack_arms(pack_arms(b'["a","b"]'))) == b'["a","b"]'
    assert hashed(b'["a"]').hex() == "f53b3155b302982e196b7645b7b614b1"


def test_damage_is_a_value_error():
    with pytest.raises(ValueError, match="truncated"):
        unpack_arms(b"")
    with pytest.raises(ValueError, match="decompressing"):
        unpack(b"\x78damaged")
