"""BLAKE2b with an 8-byte digest in plain SQL: a recursion of small steps over a row of 64-bit words.

A step does half of one mixing function G, on the first word of each of the four rows a, b, c and d of the state. After
G each row moves on by one word, and between columns and diagonals rows b, c and d move as BLAKE2b's diagonals want, so
that every step works on the same columns. 4 x 8 x 12 = 384 steps make a block of 128 bytes; one more folds it in.
"""

from __future__ import annotations

from armwise.export.dialects import Dialect, signed

_IV = (
    0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
    0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
)  # fmt: skip
_SIGMA = "0123456789abcdefea489fd61c02b753b8c052fdae3671947931dcbe265a40f8905724afe1bc683d2c6a0b834d75fe19" \
         "c51fed4a0763928bdb7ec13950f4862a6fe9b308c2d714a5a2847615fb9e3cd0"  # fmt: skip
_STEPS = 384
_WIDTH = 21  # characters of a word of the message, written down


def hash_ctes(d: Dialect) -> str:
    """CTEs from ``new_tokens(token)`` to ``hashes(token, hash)``; the query begins with WITH RECURSIVE."""
    h = [f"h{i}" for i in range(8)]
    a, b, c, e = ([f"{row}{i}" for i in range(4)] for row in "abcd")
    start = [signed(_IV[0] ^ 0x01010008), *map(signed, _IV[1:])]
    blocks = "CASE WHEN digits = 0 THEN 1 ELSE (digits + 255) / 256 END"
    return f"""hash_texts AS MATERIALIZED (SELECT token, bytes, length(bytes) AS digits FROM (
  SELECT token, {d.hex("token")} AS bytes FROM new_tokens) every),
hash_sizes AS MATERIALIZED (SELECT token, bytes, digits / 2 AS size, {blocks} AS blocks FROM hash_texts),
hash_words(token, bytes, size, blocks, k, words) AS (
  SELECT token, bytes, size, blocks, 0, CAST('' AS TEXT) FROM hash_sizes
  UNION ALL SELECT token, bytes, size, blocks, k + 1, words || {_padded(d)} FROM hash_words WHERE k < 16 * blocks),
hash_messages AS MATERIALIZED (SELECT token, size, blocks, words FROM hash_words WHERE k = 16 * blocks),
hash_steps(token, size, blocks, words, block, n, {", ".join(h + a + b + c + e)}) AS (
  SELECT token, size, blocks, words, -1, {_STEPS}, {", ".join(map(d.big, map(str, start)))},
      {", ".join([d.big("0")] * 16)} FROM hash_messages
  UNION ALL
  SELECT token, size, blocks, words, CASE n WHEN {_STEPS} THEN block + 1 ELSE block END,
    CASE n WHEN {_STEPS} THEN 0 ELSE n + 1 END,
    {_columns(d)}
  FROM hash_steps WHERE block < blocks),
hashes AS MATERIALIZED (SELECT token, h0 AS hash FROM hash_steps WHERE block = blocks)"""


def _word(d: Dialect) -> str:
    """Word k of the message: eight bytes, the lowest first; 0 beyond the text."""
    digits = "'123456789ABCDEF'"
    terms = []
    for byte in range(8):
        for half, shift in ((1, 8 * byte + 4), (2, 8 * byte)):
            digit = f"substr(bytes, 16 * k + {2 * byte + half}, 1)"
            found = d.find(digits, digit)
            value = d.big(f"CASE WHEN {digit} = '' THEN 0 ELSE {found} END")
            terms.append(f"({value} << {shift})")
    return " | ".join(terms)


def _padded(d: Dialect) -> str:
    return d.last(f"'{' ' * _WIDTH}' || CAST(({_word(d)}) AS TEXT)", _WIDTH)


def _message(place: str) -> str:
    """A word of this block's message, by its place in the order of rounds."""
    index = (
        f"(CASE substr('{_SIGMA}', 1 + ({place}) % 160, 1) "
        + " ".join(f"WHEN '{digit}' THEN {value}" for value, digit in enumerate("0123456789abcdef"))
        + " END)"
    )
    return f"CAST(substr(words, 1 + {_WIDTH} * (16 * block + {index}), {_WIDTH}) AS BIGINT)"


def _columns(d: Dialect) -> str:
    """Every column after a step: of G's quarters 0 to 3, of a row's move after quarter 3, or of the fold of a block."""
    quarter, g = "(n % 4)", "((n / 4) % 8)"
    words = {0: _message("16 * (n / 32) + 2 * ((n / 4) % 8)"), 2: _message("16 * (n / 32) + 2 * ((n / 4) % 8) + 1")}
    sums = {q: d.add("a0", "b0", word) for q, word in words.items()}
    added = d.add("c0", "d0")
    turned = d.rotated(f"({d.xor('b0', added)})", 63)
    after = {
        "a": (["a1", "a2", "a3", "a0"], {}),
        "b": (["b1", "b2", "b3", turned], {3: 1, 7: 3}),
        "c": (["c1", "c2", "c3", added], {3: 2, 7: 2}),
        "d": (["d1", "d2", "d3", "d0"], {3: 3, 7: 1}),
    }
    early = {
        "a0": {0: sums[0], 2: sums[2]},
        "b0": {1: d.rotated(f"({d.xor('b0', added)})", 24)},
        "c0": {1: added},
        "d0": {0: d.rotated(f"({d.xor('d0', sums[0])})", 32), 2: d.rotated(f"({d.xor('d0', sums[2])})", 16)},
    }
    counted = "CASE WHEN block + 2 = blocks THEN size ELSE 128 * (block + 2) END"
    last = "CASE WHEN block + 2 = blocks THEN -1 ELSE 0 END"
    fresh = {**{f"a{i}": i for i in range(4)}, **{f"b{i}": 4 + i for i in range(4)}}
    found = []
    for i in range(8):
        row, other = ("a", "c") if i < 4 else ("b", "d")
        folded = d.xor(d.xor(f"h{i}", f"{row}{i % 4}"), f"{other}{i % 4}")
        found.append(f"CASE WHEN n = {_STEPS} AND block >= 0 THEN {folded} ELSE h{i} END")
    for row in "abcd":
        for i in range(4):
            name = f"{row}{i}"
            if name in fresh:  # the chain so far, which has just been folded
                k = fresh[name]
                of, other = ("a", "c") if k < 4 else ("b", "d")
                folded = d.xor(d.xor(f"h{k}", f"{of}{k % 4}"), f"{other}{k % 4}")
                start = f"CASE WHEN block >= 0 THEN {folded} ELSE h{k} END"
            else:
                start = str(signed(_IV[i if row == "c" else 4 + i]))
                if name == "d0":
                    start = d.xor(start, d.big(counted))
                if name == "d2":
                    start = d.xor(start, d.big(last))
            moves, turns = after[row]
            move = f"CASE {g}"
            for at, by in turns.items():
                move += f" WHEN {at} THEN {moves[(i + by) % 4]}"
            move = f"{move} ELSE {moves[i]} END" if turns else moves[i]
            cases = "".join(f" WHEN {q} THEN {value}" for q, value in early.get(name, {}).items())
            found.append(
                f"CASE WHEN n = {_STEPS} THEN {start} ELSE CASE {quarter}{cases} WHEN 3 THEN {move} ELSE {name} END END"
            )
    return ",\n    ".join(found)
