"""A policy as tables and one view, for SQLite (3.35 or later, with its mathematical functions) and PostgreSQL (12 or
later): insert requests, and select their probabilities.

SQL adds up in an order of its own, so that probabilities equal the agent's to 1e-12 and not to the bit. Both databases
hash in plain SQL (``blake2b_sql``); hashes that ``policy_tokens`` has are not worked out again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from armwise.core.policy_document import Policy
from armwise.export.blake2b_sql import hash_ctes
from armwise.export.dialects import DIALECTS, Dialect, signed

_LARGEST = "1e150"


def sql(policy: Policy, dialect: str) -> str:
    """The script that makes the policy's tables, ``policy_requests`` to fill, and the view ``policy_probabilities``.

    >>> import armwise as aw, sqlite3, tempfile, os
    >>> policy = aw.UCB1(n_arms=2).export(os.path.join(tempfile.mkdtemp(), "policy.json"), arms=["red", "green"])
    >>> database = sqlite3.connect(":memory:")
    >>> _ = database.executescript(sql(policy, "sqlite"))
    >>> _ = database.execute("INSERT INTO policy_requests VALUES ('r1', '{}', NULL)")
    >>> database.execute("SELECT arm, probability FROM policy_probabilities").fetchall()
    [('red', 0.5), ('green', 0.5)]
    """
    if dialect not in DIALECTS:
        raise ValueError(f"dialect must be one of {sorted(DIALECTS)}, got {dialect!r}")
    d, made = DIALECTS[dialect], policy.document
    hashed = made["encoder"] is not None and made["encoder"]["kind"] == "hashed" and made["sees"] != "nothing"
    about = {"checksum": policy.checksum, "application": made["application"] or "", "version": made["version"],
             "position": str(made["position"] or ""), "agent": made["agent"]}  # fmt: skip
    parts = [
        f"-- A learnt policy: {made['agent']}, made by {made['made_by']}; see docs/edge.md.".replace("\n", " "),
        "-- INSERT INTO policy_requests VALUES ('r1', '{\"hour\": 9}', '[\"red\", \"green\"]');",
        "-- SELECT * FROM policy_probabilities WHERE request = 'r1';",
        "BEGIN;",
        "CREATE TABLE policy_about (name TEXT PRIMARY KEY, value TEXT);",
        *_insert("policy_about", about.items()),
        "CREATE TABLE policy_requests (id TEXT PRIMARY KEY, context TEXT NOT NULL, arms TEXT);",
        f"CREATE TABLE policy_arms (place INTEGER PRIMARY KEY, id TEXT NOT NULL, p {d.real});",
        *_insert("policy_arms", _fixed_arms(made)),
        f"CREATE TABLE policy_weights (model INTEGER, position INTEGER, weight {d.real}, PRIMARY KEY (model, "
        f"position));",
        *_insert("policy_weights", _weights(made)),
        f"CREATE TABLE policy_widths (model INTEGER, width INTEGER, alpha {d.real}, PRIMARY KEY (model, width));",
        *_insert("policy_widths", _alphas(made)),
        f"CREATE TABLE policy_factors (model INTEGER, width INTEGER, place INTEGER, position INTEGER, weight {d.real}, "
        "PRIMARY KEY (model, position, width, place));",
        *_insert("policy_factors", _factors(made)),
    ]
    if hashed:
        scale = ((signed(int(name, 16)), *both) for name, both in made["encoder"]["scale"].items())
        parts += [
            f"CREATE TABLE policy_scale (hash BIGINT PRIMARY KEY, mean {d.real}, deviation {d.real});",
            *_insert("policy_scale", scale),
            "CREATE TABLE policy_tokens (token TEXT PRIMARY KEY, hash BIGINT NOT NULL);",
            *_drawn_before(made.get("ramp")),
            _view("policy_read_tokens", _tokens(d)),
            _view(
                "policy_hashes",
                "WITH RECURSIVE new_tokens(token) AS (SELECT DISTINCT token FROM policy_read_tokens WHERE token NOT IN "
                f"(SELECT token FROM policy_tokens)),\n{hash_ctes(d)}\nSELECT token, hash FROM policy_tokens\n"
                "UNION ALL SELECT token, hash FROM hashes",
            ),
            "-- Where the same tokens come again, keep their hashes (in PostgreSQL after SET jit = off):\n"
            "-- INSERT INTO policy_tokens SELECT * FROM policy_hashes WHERE token NOT IN (SELECT token FROM "
            "policy_tokens);",
            _view("policy_rows", _hashed_rows(d, made)),
        ]
    elif made["sees"] != "nothing":
        parts += [
            "CREATE TABLE policy_columns (position INTEGER PRIMARY KEY, name TEXT NOT NULL);",
            *_insert("policy_columns", enumerate(made["encoder"]["columns"])),
            _view("policy_rows", _plain_rows(d, made)),
        ]
    parts += [d.answer(_probabilities(d, made)), "COMMIT;"]
    return "\n".join(parts) + "\n"


def _view(name: str, query: str) -> str:
    return f"CREATE VIEW {name} AS\n{query};"


def _insert(table: str, rows: Iterable[Iterable[Any]]) -> list[str]:
    texts = [f"({', '.join(_literal(value) for value in row)})" for row in rows]
    return [f"INSERT INTO {table} VALUES\n" + ",\n".join(texts[i : i + 500]) + ";" for i in range(0, len(texts), 500)]


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)


def _fixed_arms(made: dict[str, Any]) -> list[tuple[Any, ...]]:
    names, p = made["arms"] or [], made["rule"].get("p")
    return [(k, name, None if p is None else p[k]) for k, name in enumerate(names)]


def _drawn_before(ramp: dict[str, Any] | None) -> list[str]:
    """The table of the arms that are not new, by the hash of their ids."""
    if ramp is None:
        return []
    rows = [(signed(int(name, 16)), known) for known, kind in enumerate(("tried", "known")) for name in ramp[kind]]
    return ["CREATE TABLE policy_drawn (hash BIGINT PRIMARY KEY, known INTEGER);", *_insert("policy_drawn", rows)]


def _weights(made: dict[str, Any]) -> Iterable[tuple[Any, ...]]:
    for m, model in enumerate(made["models"]):
        yield from ((m, i, weight) for i, weight in enumerate(model["weights"]))


def _alphas(made: dict[str, Any]) -> Iterable[tuple[Any, ...]]:
    for m, model in enumerate(made["models"]):
        yield from ((m, k, width["alpha"]) for k, width in enumerate(model["widths"]))


def _factors(made: dict[str, Any]) -> Iterable[tuple[Any, ...]]:
    for m, model in enumerate(made["models"]):
        for k, width in enumerate(model["widths"]):
            for place, row in enumerate(width["factor"]):
                yield from ((m, k, place, i, weight) for i, weight in enumerate(row) if weight)


# ---------------------------------------------------------------------- tokens and rows


def _offered(d: Dialect) -> str:
    """Request, place and JSON of each arm that was offered."""
    return (
        f"SELECT r.id AS request, {d.whole('a.key')} AS arm, a.type, a.value "
        f"FROM policy_requests r, {d.items('r.arms')} a"
    )


def _tokens(d: Dialect) -> str:
    """Every token of every request: of its context (arm -1) and of its arms, each with the constant."""
    number = f"w.type IN {d.numbers}"
    return f"""WITH RECURSIVE parts(request, arm, id, node) AS (
  SELECT id, -1, CAST(NULL AS TEXT), {d.document("context")} FROM policy_requests
  UNION ALL SELECT request, arm, CASE type WHEN 'text' THEN {d.text("value")} ELSE {d.member("value", "id")} END,
    CASE type WHEN 'object' THEN {d.node("value", "features")} END FROM ({_offered(d)}) o),
walk(request, arm, path, outermost, type, value) AS (
  SELECT request, arm, CASE arm WHEN -1 THEN 'c' ELSE 'a' END, 1, {d.type_of("node")}, node FROM parts
  WHERE node IS NOT NULL
  UNION ALL
  SELECT w.request, w.arm, CASE WHEN w.type = 'object' THEN w.path || CASE w.outermost WHEN 1 THEN '' ELSE
      {d.chr(31)} END
    || j.key WHEN j.type IN {d.numbers} THEN w.path || {d.chr(31)} || j.key ELSE w.path END,
    CASE w.type WHEN 'array' THEN w.outermost ELSE 0 END, j.type, j.value
  FROM walk w, {d.children("w.value", "w.type")} j WHERE w.type IN ('object', 'array'))
SELECT request, arm, CASE WHEN {number} THEN path WHEN w.type = 'text' THEN path || {d.chr(30)} || 's' ||
    {d.text("value")}
  ELSE path || {d.chr(30)} || 'b' || w.type END AS token,
  CASE WHEN {number} THEN {d.number("value")} ELSE 1.0 END AS number, CASE WHEN {number} THEN 1 ELSE 0 END AS
      scaled, 0 AS constant
FROM walk w WHERE {number} OR w.type IN ('text', 'true', 'false')
UNION ALL SELECT request, arm, 'a' || {d.chr(30)} || 'i' || id, 1.0, 0, 0 FROM parts WHERE arm >= 0
UNION ALL SELECT request, arm, '1', 1.0, 0, 1 FROM parts"""


def _hashed_rows(d: Dialect, made: dict[str, Any]) -> str:
    """Request, arm, position and value of the non-zeros in each normalised row."""
    dim, crossed = made["encoder"]["dim"], "1 = 1" if made["encoder"]["interactions"] else "c.constant = 1"
    if made["sees"] == "shared":  # the context alone, with the constant
        theirs = "SELECT request, arm, hash, value, constant FROM tokens WHERE arm = -1 AND constant = 1"
        of_arm = "a.arm = -1"
    else:
        theirs, of_arm = "SELECT request, arm, hash, value, constant FROM tokens WHERE arm >= 0", "a.arm >= 0"
    steps = d.mix_steps("pairs", "request, arm, value")
    position = f"({d.low63('z')} % {dim})"
    return f"""WITH tokens AS MATERIALIZED (
  SELECT t.request, t.arm, h.hash, t.constant, CASE WHEN t.scaled = 0 THEN t.number WHEN s.deviation IS NULL THEN 0.0
    WHEN (t.number - s.mean) / (3.0 * s.deviation) > 1.0 THEN 1.0 WHEN (t.number - s.mean) / (3.0 * s.deviation) < -1.0
    THEN -1.0 ELSE (t.number - s.mean) / (3.0 * s.deviation) END AS value
  FROM policy_read_tokens t JOIN policy_hashes h ON h.token = t.token
  LEFT JOIN policy_scale s ON t.scaled = 1 AND s.hash = h.hash
  WHERE t.scaled = 0 OR (t.number < {_LARGEST} AND t.number > -{_LARGEST})),
theirs AS MATERIALIZED ({theirs}),
pairs AS MATERIALIZED (
  SELECT c.request, a.arm, c.hash AS hc, a.hash AS ha, c.value * a.value AS value
  FROM tokens c JOIN theirs a ON a.request = c.request AND {of_arm}
  WHERE c.arm = -1 AND (a.constant = 1 OR (c.value <> 0.0 AND (c.constant = 1 OR {crossed})))),
{steps},
sums AS MATERIALIZED (
  SELECT request, arm, {position} AS position, SUM(CASE WHEN z < 0 THEN -value ELSE value END) AS value
  FROM mixed GROUP BY 1, 2, 3),
lengths AS MATERIALIZED (SELECT request, arm, sqrt(SUM(value * value)) AS length FROM sums GROUP BY 1, 2)
SELECT s.request, s.arm, s.position, CASE WHEN l.length > 0.0 THEN s.value / l.length ELSE 0.0 END AS value
FROM sums s JOIN lengths l ON l.request = s.request AND l.arm = s.arm WHERE s.value <> 0.0"""


def _plain_rows(d: Dialect, made: dict[str, Any]) -> str:
    """Request, arm, position and value of columns; of an object by their names, of a list by their places."""
    if made["sees"] == "shared":
        rows = f"SELECT id AS request, -1 AS arm, {d.document('context')} AS node FROM policy_requests"
    else:
        rows = (
            f"SELECT request, {_place('o')} AS arm, CASE WHEN type = 'object' AND {d.node('value', 'features')} "
            f"IS NOT NULL "
            f"THEN {d.node('value', 'features')} ELSE value END AS node FROM ({_offered_with_ids(d)}) o"
        )
    return f"""WITH nodes AS ({rows}), typed AS (SELECT request, arm, {d.type_of("node")} AS type, node FROM nodes)
SELECT t.request, t.arm, c.position, {d.number("j.value")} AS value
FROM typed t, {d.children("t.node", "t.type")} j, policy_columns c
WHERE t.type IN ('object', 'array') AND j.type IN {d.numbers}
  AND c.name = CASE t.type WHEN 'object' THEN j.key ELSE (SELECT name FROM policy_columns WHERE position =
      {d.whole("j.key")}) END"""


def _offered_with_ids(d: Dialect) -> str:
    return (
        f"SELECT request, arm, type, value, CASE type WHEN 'text' THEN {d.text('value')} WHEN 'object' THEN "
        f"{d.member('value', 'id')} END AS id FROM ({_offered(d)}) every"
    )


def _place(alias: str) -> str:
    """The index of an offered arm in the policy: its own place where arms are fixed, and named."""
    return f"COALESCE((SELECT f.place FROM policy_arms f WHERE f.id = {alias}.id), {alias}.arm)"


# ---------------------------------------------------------------------- the rule


def _probabilities(d: Dialect, made: dict[str, Any]) -> str:
    """Request, arm (its id), place and probability."""
    fixed, rule = made["arms"] is not None, made["rule"]
    if fixed:
        offered = f"""SELECT request, arm AS place, id, {_place("o")} AS arm FROM ({_offered_with_ids(d)}) o
  UNION ALL SELECT r.id, f.place, f.id, f.place FROM policy_requests r, policy_arms f WHERE r.arms IS NULL"""
        arms = "SELECT r.id AS request, r.id AS base, f.place AS arm FROM policy_requests r, policy_arms f"
    else:
        offered = (
            f"SELECT request, arm AS place, COALESCE(id, CAST(arm AS TEXT)) AS id, arm FROM ({_offered_with_ids(d)}) o"
        )
        arms = "SELECT request, request AS base, arm FROM offered"
    shared, several = made["sees"] == "shared", len(made["models"]) > 1
    row, model = "-1" if shared else "a.arm", "a.arm" if several else "0"
    ramp = made.get("ramp")
    ctes = [f"offered AS MATERIALIZED ({offered})"]
    if ramp is not None:  # the arms that are not new are asked about once more, alone
        ctes += _marks(d)
        arms += f" UNION ALL SELECT {_alone('m.request', d)}, m.request, m.arm FROM marks m JOIN ramps r "
        arms += "ON r.request = m.request WHERE m.is_new = 0"
    ctes.append(f"arms AS MATERIALIZED ({arms})")
    if rule["kind"] == "fixed":
        ctes.append("drawn AS (SELECT a.request, a.arm, f.p FROM arms a JOIN policy_arms f ON f.place = a.arm)")
    else:
        ctes += [
            "rows_of AS MATERIALIZED (SELECT request, arm, position, value FROM policy_rows)",
            f"sums AS MATERIALIZED (SELECT a.request, a.arm, SUM(w.weight * x.value) AS mean, SUM(x.value * "
            f"x.value) AS square "
            f"FROM arms a JOIN rows_of x ON x.request = a.base AND x.arm = {row} "
            f"JOIN policy_weights w ON w.model = {model} AND w.position = x.position GROUP BY 1, 2)",
            f"means AS MATERIALIZED (SELECT a.request, a.arm, {model} AS model, COALESCE(s.mean, 0.0) AS mean, "
            "COALESCE(s.square, 0.0) AS square FROM arms a LEFT JOIN sums s ON s.request = a.request AND s.arm = "
            "a.arm)",
            f"turned AS MATERIALIZED (SELECT a.request, a.arm, f.width, f.place, SUM(f.weight * x.value) AS value "
            f"FROM arms a JOIN rows_of x ON x.request = a.base AND x.arm = {row} "
            f"JOIN policy_factors f ON f.model = {model} AND f.position = x.position GROUP BY 1, 2, 3, 4)",
            "roots AS MATERIALIZED (SELECT request, arm, width, sqrt(SUM(value * value)) AS root FROM turned "
            "GROUP BY 1, 2, 3)",
            "known AS MATERIALIZED (SELECT m.request, m.arm, m.mean, m.square, COALESCE(SUM(w.alpha * r.root), "
            "0.0) AS margin, "
            "COALESCE(MAX(r.root), 0.0) AS root, COALESCE(MAX(w.alpha), 0.0) AS alpha FROM means m "
            "LEFT JOIN roots r ON r.request = m.request AND r.arm = m.arm "
            "LEFT JOIN policy_widths w ON w.model = m.model AND w.width = r.width GROUP BY m.request, m.arm, "
            "m.mean, m.square)",
            *_rule(rule, d),
        ]
    floors = "p"
    for floor in made["floors"]:
        floors = f"((1.0 - {floor!r}) * {floors} + {floor!r} / COUNT(*) OVER (PARTITION BY request))"
    ctes.append(f"floored AS MATERIALIZED (SELECT request, arm, {floors} AS p FROM drawn)")
    if ramp is not None:
        ctes += _ramped(ramp["share"], d)
    answers = "floored" if ramp is None else "ramped"
    ctes.append(
        "given AS MATERIALIZED (SELECT o.request, o.id AS arm, o.place, f.p, SUM(f.p) OVER (PARTITION BY "
        "o.request) AS total, "
        "COUNT(*) OVER (PARTITION BY o.request) AS n FROM offered o "
        f"LEFT JOIN {answers} f ON f.request = o.request AND f.arm = o.arm)"
    )
    whole = "(SELECT COUNT(*) FROM policy_arms)"
    p = f"CASE WHEN n = {whole} THEN p WHEN total > 0.0 THEN p / total ELSE 1.0 / n END" if fixed else "p"
    return (
        "WITH "
        + ",\n".join(ctes)
        + f"\nSELECT request, arm, place, {p} AS probability FROM given ORDER BY request, place"
    )


def _alone(request: str, d: Dialect) -> str:
    """The name of a request of which only the arms that are not new are asked about."""
    return f"{request} || {d.chr(31)} || 'known'"


def _marks(d: Dialect) -> list[str]:
    """CTEs ``marks``: which offered arms are new, which known; and ``ramps``: requests that have some of each."""
    token = f"'a' || {d.chr(30)} || 'i' || o.id"
    return [
        "marks AS MATERIALIZED (SELECT o.request, o.arm, CASE WHEN t.hash IS NULL THEN 1 ELSE 0 END AS is_new, "
        f"COALESCE(t.known, 0) AS known FROM offered o JOIN policy_hashes h ON h.token = {token} "
        "LEFT JOIN policy_drawn t ON t.hash = h.hash)",
        "ramps AS MATERIALIZED (SELECT request FROM marks GROUP BY request HAVING MAX(known) = 1 AND MAX(is_new) = 1)",
    ]


def _ramped(share: float, d: Dialect) -> list[str]:
    """CTEs up to ``ramped``: at most a share for the new arms that the rule wants, where a known one is on offer."""
    wanted = "CASE WHEN b.is_new = 1 AND b.p > b.least THEN"
    return [
        "both_p AS MATERIALIZED (SELECT f.request, f.arm, f.p, m.is_new, k.p AS alone, MIN(f.p) OVER (PARTITION BY "
        "f.request) AS least, MIN(k.p) OVER (PARTITION BY f.request) AS lowest, r.request AS ramp FROM floored f "
        "JOIN marks m ON m.request = f.request AND m.arm = f.arm LEFT JOIN ramps r ON r.request = f.request "
        f"LEFT JOIN floored k ON k.request = {_alone('f.request', d)} AND k.arm = f.arm)",
        f"sides AS MATERIALIZED (SELECT b.*, SUM({wanted} b.p ELSE 0.0 END) OVER w AS wanted, "
        f"SUM({wanted} 1 ELSE 0 END) OVER w AS n_wanted, SUM({wanted} b.p - b.least ELSE 0.0 END) OVER w AS excess, "
        "SUM(b.alone - b.lowest) OVER w AS above, COUNT(b.alone) OVER w AS n_known, COUNT(*) OVER w AS n_arms "
        "FROM both_p b WINDOW w AS (PARTITION BY b.request))",
        f"rooms AS MATERIALIZED (SELECT s.*, {d.greatest('0.0', f'{share!r} - least * n_wanted')} AS room "
        "FROM sides s)",
        "ramped AS MATERIALIZED (SELECT request, arm, CASE WHEN ramp IS NULL OR NOT wanted > "
        f"{d.greatest(repr(share), 'least * n_wanted')} THEN p "
        "WHEN is_new = 1 THEN least + (p - least) * (room / excess) "
        "ELSE least + CASE WHEN above > 0.0 THEN (alone - lowest) / above ELSE 1.0 / n_known END "
        "* (1.0 - room - least * n_arms) END AS p FROM rooms)",
    ]


def _rule(rule: dict[str, Any], d: Dialect) -> list[str]:
    """CTEs from ``known`` to ``drawn``: request, arm, p."""
    leader = (
        "SELECT k.*, FIRST_VALUE(root) OVER (PARTITION BY request ORDER BY mean DESC, arm) AS leader, "
        "COUNT(*) OVER (PARTITION BY request) AS n FROM known k"
    )
    bar = f"({rule.get('beyond', 1.0)!r} * leader * leader)"
    ratio = f"CASE WHEN {bar} > 0.0 THEN {d.least(f'root * root / {bar}', _LARGEST)} ELSE 1.0 END"
    less = f"CASE WHEN {ratio} > 1.0 THEN ln({ratio}) ELSE 0.0 END"
    if rule["kind"] == "random optimism":
        return _drawn_multipliers(rule)
    ctes = [f"led AS MATERIALIZED ({leader})"]
    if rule["kind"] == "bounds":
        log = f"sqrt({rule['excess']!r} * ln(n * {float(rule['t'])!r}))"
        ctes.append(f"radii AS MATERIALIZED (SELECT led.*, {log} AS radius FROM led)")
        margin = "radius * root"
        if rule["extra"] > 0.0:
            margin = f"sqrt(root * root * (radius * radius + {rule['extra']!r} * {less}))"
        least, most = repr(float(rule["least"])), repr(float(rule["most"]))
        blank = f"square > 0.0 AND {rule['lam']!r} * root * root >= (1.0 - 1e-9) * square"
        low, high = (d.least(most, d.greatest(least, f"mean {sign} {margin}")) for sign in "-+")
        ctes.append(
            f"ends AS MATERIALIZED (SELECT request, arm, CASE WHEN {blank} THEN {least} ELSE "
            f"{low} END AS low, "
            f"CASE WHEN {blank} THEN {most} ELSE {high} END AS score FROM radii)"
        )
        if rule["elimination"]:
            ctes.append(
                "bars AS MATERIALIZED (SELECT request, arm, CASE WHEN score >= MAX(low) OVER (PARTITION BY "
                "request) - 1e-12 "
                "THEN 1.0 ELSE 0.0 END AS ties FROM ends)"
            )
        else:
            ctes.append(_ties("ends"))
        return [*ctes, _shares()]
    score = "mean + margin" if rule["kind"] == "optimism" else "mean"
    if rule["extra"] > 0.0:
        score = f"mean + sqrt(root * root * (alpha * alpha + {rule['extra']!r} * {less}))"
    if rule.get("losses"):
        score = d.least(d.greatest("mean", "0.0"), repr(1.0 - rule["losses"]))
    ctes.append(f"scored AS MATERIALIZED (SELECT request, arm, n, {score} AS score FROM led)")
    if rule["kind"] == "optimism":
        return [*ctes, _ties("scored"), _shares()]
    gamma = repr(rule["gamma"]) + (" / (1.0 - best)" if rule.get("losses") else "")
    ctes += [
        "best AS MATERIALIZED (SELECT request, arm, n, score, MAX(score) OVER (PARTITION BY request) AS best "
        "FROM scored)",
        f"gaps AS MATERIALIZED (SELECT request, arm, CASE WHEN score >= best - 1e-12 THEN 0.0 "
        f"ELSE 1.0 / (n + {gamma} * (best - score)) END AS p, CASE WHEN score >= best - 1e-12 THEN 1 ELSE 0 END "
        f"AS ties FROM best)",
        "drawn AS (SELECT request, arm, CASE WHEN ties = 0 THEN p ELSE (1.0 - SUM(p) OVER (PARTITION BY request)) "
        "/ SUM(ties) OVER (PARTITION BY request) END AS p FROM gaps)",
    ]
    return ctes


def _drawn_multipliers(rule: dict[str, Any]) -> list[str]:
    """The weight of each multiplier goes to the arms that tie for the largest score at it."""
    rows = ", ".join(f"({j}, {z!r}, {w!r})" for j, (z, w) in enumerate(zip(rule["multipliers"], rule["weights"])))
    return [
        f"multipliers(j, z, w) AS (VALUES {rows})",
        "tried AS MATERIALIZED (SELECT k.request, k.arm, m.j, m.w, k.mean + m.z * k.margin AS score "
        "FROM known k, multipliers m)",
        "bars AS MATERIALIZED (SELECT request, arm, j, w, CASE WHEN score >= MAX(score) OVER (PARTITION BY request, j) "
        "- 1e-12 THEN 1.0 ELSE 0.0 END AS ties FROM tried)",
        "shares AS MATERIALIZED (SELECT request, arm, w * ties / SUM(ties) OVER (PARTITION BY request, j) AS p "
        "FROM bars)",
        "won AS MATERIALIZED (SELECT request, arm, SUM(p) AS p FROM shares GROUP BY request, arm)",
        "drawn AS (SELECT request, arm, p / SUM(p) OVER (PARTITION BY request) AS p FROM won)",
    ]


def _ties(of: str) -> str:
    return (
        "bars AS MATERIALIZED (SELECT request, arm, CASE WHEN score >= MAX(score) OVER (PARTITION BY request) - 1e-12 "
        f"THEN 1.0 ELSE 0.0 END AS ties FROM {of})"
    )


def _shares() -> str:
    return "drawn AS (SELECT request, arm, ties / SUM(ties) OVER (PARTITION BY request) AS p FROM bars)"
