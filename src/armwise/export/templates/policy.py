"""A learnt policy, evaluated by the standard library alone: made by armwise, see docs/edge.md.

chosen = decide({"device": "phone", "hour": 21}, ["red", "green"], unit="user-7")
chosen["arm"], chosen["probability"]; file.write(event(chosen))
"""

import functools
import hashlib
import json
import math
import random
import re
import time
import uuid

POLICY = json.loads(r"""{}""")
CHECKSUM = ""

TIE, MAX_MAGNITUDE, MASK = 1e-12, 1e150, (1 << 64) - 1
_LONE = re.compile("[\ud800-\udfff]")


# ---------------------------------------------------------------------- tokens and their hashes


@functools.lru_cache(maxsize=65536)
def _hash(token):
    if _LONE.search(token):
        raise ValueError("half a surrogate pair in a string")
    return int.from_bytes(hashlib.blake2b(token.encode(), digest_size=8).digest(), "little")


_ONE = _hash("1")


def _walk(value, path, outermost, found):
    """Depth first, in the order that was written: (hash, value) of each token."""
    if value is None:
        return
    if isinstance(value, bool):
        found.append((_hash(path + "\x1eb" + ("true" if value else "false")), 1.0))
    elif isinstance(value, str):
        found.append((_hash(path + "\x1es" + value), 1.0))
    elif isinstance(value, (int, float)):
        if value != value:
            return
        if not abs(value) < MAX_MAGNITUDE:
            raise ValueError("a number beyond 1e150 in magnitude")
        hash = _hash(path)
        scale = POLICY["encoder"]["scale"].get(f"{hash:016x}")
        scaled = 0.0 if scale is None else min(max((float(value) - scale[0]) / (3.0 * scale[1]), -1.0), 1.0)
        found.append((hash, scaled))
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"a name must be a text, got {key!r}")
            _walk(item, path + ("" if outermost else "\x1f") + key, False, found)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            number = isinstance(item, (int, float)) and not isinstance(item, bool)
            _walk(item, f"{path}\x1f{i}" if number else path, outermost, found)
    else:
        raise ValueError(f"not a value of JSON: {type(value).__name__}")


def _named(value, what):
    """Return a value that has names (an object, or a list of objects), or raise ValueError."""
    if not (all(isinstance(item, dict) for item in value) if isinstance(value, list) else isinstance(value, dict)):
        raise ValueError(f"{what} must be an object or a list of objects")
    return value


@functools.lru_cache(maxsize=1 << 18)
def _place(c, a, dim):
    """SplitMix64's finaliser of a pair: the position and the sign."""
    z = (c * 0x9E3779B97F4A7C15 + a) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    z ^= z >> 31
    return (z & (MASK >> 1)) % dim, -1.0 if z >> 63 else 1.0


def _hashed_row(context, arm):
    """(position, value) of the non-zeros, in the order of the positions; an arm of None is the context alone."""
    encoder = POLICY["encoder"]
    dim, row = encoder["dim"], {}
    theirs = [] if arm is None else [(_hash("a\x1ei" + _id(arm)), 1.0)]
    if isinstance(arm, dict) and "features" in arm:
        _walk(_named(arm["features"], "an arm's features"), "a", True, theirs)

    def add(c, a, value):
        i, sign = _place(c, a, dim)
        row[i] = row.get(i, 0.0) + sign * value

    for hash, value in [(_ONE, 1.0), *context]:
        add(hash, _ONE, value)
        if value == 0.0 or (hash != _ONE and not encoder["interactions"]):
            continue
        for other, of_arm in theirs:
            add(hash, other, value * of_arm)
    pairs = [(i, row[i]) for i in sorted(row) if row[i] != 0.0]
    total = 0.0
    for _, value in pairs:
        total += value * value
    length = math.sqrt(total) if total > 0.0 else 1.0
    return [(i, value / length) for i, value in pairs]


def _plain_row(row):
    names = POLICY["encoder"]["columns"]
    if not isinstance(row, (dict, list, tuple)):
        raise ValueError("a row must be a list of numbers, or an object of them")
    if not isinstance(row, dict) and len(row) != len(names):
        raise ValueError(f"a row must have {len(names)} numbers, got {len(row)}")
    values = [row.get(name) for name in names] if isinstance(row, dict) else row
    for name, value in zip(names, values):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= MAX_MAGNITUDE:
            raise ValueError(f"{name} must be a number of at most 1e150 in size, got {value!r}")
    return [(i, float(value)) for i, value in enumerate(values) if value]


# ---------------------------------------------------------------------- the rule


def _square(factor, row):
    """||W x||^2: each row's sum in the order of the columns, then their squares in the order of the rows."""
    total = 0.0
    for weights in factor:
        most, own = len(weights), 0.0
        for i, value in row:
            if i >= most:
                break
            own += weights[i] * value
        total += own * own
    return total


def _known_less(square, bar):
    ratio = min(square / bar, MAX_MAGNITUDE) if bar > 0.0 else 1.0
    return math.log(ratio) if ratio > 1.0 else 0.0


def _widened(means, widths, alphas):
    rule = POLICY["rule"]
    leader = widths[means.index(max(means))]
    bar = rule["beyond"] * (leader * leader)
    return [
        mean + math.sqrt(width * width * (alpha * alpha + rule["extra"] * _known_less(width * width, bar)))
        for mean, width, alpha in zip(means, widths, alphas)
    ]


def _tied(scores):
    if any(score != score for score in scores):
        raise ValueError("a score is no number: did the context overflow?")
    bar = max(scores) - TIE
    ties = sum(score >= bar for score in scores)
    return [1.0 / ties if score >= bar else 0.0 for score in scores]


def _inverse_gap(means, gamma):
    best, p, others, n = max(means), [], 0.0, 0
    for mean in means:
        if mean >= best - TIE:
            n += 1
            p.append(-1.0)
        else:
            p.append(1.0 / (len(means) + gamma * (best - mean)))
            others += p[-1]
    return [(1.0 - others) / n if each < 0.0 else each for each in p]


def _bounded(means, widths, squares):
    rule, K = POLICY["rule"], len(means)
    radius = math.sqrt(rule["excess"] * math.log(float(K) * rule["t"]))
    leader = widths[means.index(max(means))]
    low, high = [], []
    for mean, width, own in zip(means, widths, squares):
        square = width * width
        untouched = own > 0.0 and rule["lam"] * square >= (1.0 - 1e-9) * own
        margin = radius * width
        if rule["extra"] > 0.0:
            known = _known_less(square, rule["beyond"] * (leader * leader))
            margin = math.sqrt(square * (radius * radius + rule["extra"] * known))
        low.append(rule["least"] if untouched else min(rule["most"], max(rule["least"], mean - margin)))
        high.append(rule["most"] if untouched else min(rule["most"], max(rule["least"], mean + margin)))
    if not rule["elimination"]:
        return _tied(high)
    floor = max(low) - TIE
    n = sum(each >= floor for each in high)
    return [1.0 / n if each >= floor else 0.0 for each in high]


def _drawn_multipliers(means, margins):
    """The weight of each multiplier goes to the arms that tie for the largest score at it."""
    rule, p, total = POLICY["rule"], [0.0] * len(means), 0.0
    for z, weight in zip(rule["multipliers"], rule["weights"]):
        shares = _tied([mean + z * margin for mean, margin in zip(means, margins)])
        p = [each + weight * share for each, share in zip(p, shares)]
    for each in p:
        total += each
    return [each / total for each in p]


def _distribution(rows):
    """Over pairs of a model and a row."""
    rule, means, widths, squares, scores, alphas = POLICY["rule"], [], [], [], [], []
    for model, row in rows:
        mean = 0.0
        for i, value in row:
            mean += model["weights"][i] * value
        score, width, alpha = mean, 0.0, 0.0
        for each in model["widths"]:
            alpha, width = each["alpha"], math.sqrt(_square(each["factor"], row))
            score += alpha * width
        length = 0.0
        for _, value in row:
            length += value * value
        for column, value in zip((means, widths, squares, scores, alphas), (mean, width, length, score, alpha)):
            column.append(value)
    if rule["kind"] == "bounds":
        return _bounded(means, widths, squares)
    if rule["kind"] == "optimism":
        return _tied(_widened(means, widths, alphas) if rule["extra"] > 0.0 else scores)
    if rule["kind"] == "random optimism":
        return _drawn_multipliers(means, [alpha * width for alpha, width in zip(alphas, widths)])
    if rule["kind"] != "inverse gap":
        raise ValueError(f"a rule that this evaluator does not know: {rule['kind']}")
    if not rule["losses"]:
        return _inverse_gap(_widened(means, widths, alphas) if rule["extra"] > 0.0 else means, rule["gamma"])
    rewards = [min(max(mean, 0.0), 1.0 - rule["losses"]) for mean in means]
    return _inverse_gap(rewards, rule["gamma"] / (1.0 - max(rewards)))


def _floored(p):
    for floor in POLICY["floors"]:
        p = [(1.0 - floor) * each + floor / len(p) for each in p]
    return p


def _ramped(ids, rows, p):
    """At most a share for the new arms that the rule wants, where a known one is on offer."""
    ramp = POLICY.get("ramp")
    if ramp is None:
        return p
    drawn = [_DRAWN.get(_hash("a\x1ei" + id)) for id in ids]  # None: a new arm; else whether it is known
    new = [each is None for each in drawn]
    if True not in drawn or True not in new:
        return p
    least, wanted, n, excess = min(p), 0.0, 0, 0.0
    for each, is_new in zip(p, new):
        if is_new and each > least:
            wanted, n, excess = wanted + each, n + 1, excess + (each - least)
    if not wanted > max(ramp["share"], least * n):
        return p
    room = max(0.0, ramp["share"] - least * n)
    known = _floored(_distribution([row for row, is_new in zip(rows, new) if not is_new]))
    lowest, above = min(known), 0.0
    for each in known:
        above += each - lowest
    rest, others = 1.0 - room - least * len(p), iter(known)
    return [
        least + (each - least) * (room / excess) if is_new
        else least + ((next(others) - lowest) / above if above > 0.0 else 1.0 / len(known)) * rest
        for each, is_new in zip(p, new)
    ]  # fmt: skip


_RAMP = POLICY.get("ramp") or {"tried": [], "known": []}
_DRAWN = {int(hash, 16): kind == "known" for kind in ("tried", "known") for hash in _RAMP[kind]}


# ---------------------------------------------------------------------- what to call


def _hashed():
    return POLICY["encoder"] is not None and POLICY["encoder"]["kind"] == "hashed"


def _is_row(arm):
    return not _hashed() and (isinstance(arm, (list, tuple)) or (isinstance(arm, dict) and "id" not in arm))


def _id(arm, place=0):
    if _is_row(arm):
        return str(place) if POLICY["arms"] is None else POLICY["arms"][place]
    id = arm.get("id") if isinstance(arm, dict) else arm
    if not isinstance(id, str) or not id:
        raise ValueError("an arm must be a text, or an object with an id")
    for name in arm if isinstance(arm, dict) else ():
        if name not in ("id", "features"):
            raise ValueError(f"an arm has an id and features: put {name} into features")
    return id


def _row(context, arm):
    if _hashed():
        return _hashed_row(context, arm)
    return _plain_row(arm if _is_row(arm) else arm.get("features") if isinstance(arm, dict) else None)


def probabilities(context=None, arms=None):
    """The probability of each arm, in the order of ``arms``; a policy with arms of its own may be asked without."""
    fixed, models = POLICY["arms"], POLICY["models"]
    given = fixed if arms is None else arms
    if not isinstance(given, (list, tuple)) or not given:
        raise ValueError("arms must be a list of at least one")
    ids = [_id(arm, place) for place, arm in enumerate(given)]
    if len(set(ids)) != len(ids):
        raise ValueError("two arms have the same id")
    context = {} if context is None else context
    if _hashed():
        found = []
        _walk(_named(context, "the context"), "c", True, found)
        context = found
    if fixed is None:
        rows = [(models[0], _row(context, arm)) for arm in given]
        return _ramped(ids, rows, _floored(_distribution(rows)))
    for id in ids:
        if id not in fixed:
            raise ValueError(f"this policy has fixed arms, and {id} is none of them")
    at = [fixed.index(id) for id in ids]
    if POLICY["rule"]["kind"] == "fixed":
        p = _floored(POLICY["rule"]["p"])
    elif POLICY["sees"] == "shared":
        row = _hashed_row(context, None) if _hashed() else _plain_row(context)
        p = _floored(_distribution([(model, row) for model in models]))
    else:
        if len(at) != len(fixed):
            raise ValueError("this policy needs all its arms in every request")
        turned = sorted(zip(at, given), key=lambda pair: pair[0])
        each = models if len(models) > 1 else models * len(fixed)
        p = _floored(_distribution([(model, _row(context, arm)) for model, (_, arm) in zip(each, turned)]))
    own = [p[place] for place in at]
    if len(own) == len(p):
        return own
    total = 0.0
    for each in own:
        total += each
    return [each / total if total > 0.0 else 1.0 / len(own) for each in own]


def uniform(unit):
    """A number in [0, 1) that a unit keeps: with it, the unit keeps its arm while the distribution stays."""
    return (_hash(f"{POLICY['application'] or ''}/{unit}") >> 11) / 2.0**53


def decide(context=None, arms=None, *, unit=None, u=None, id=None):
    """Draw an arm: with ``u`` in [0, 1), with a ``unit`` that keeps its number, or by chance."""
    p, given = probabilities(context, arms), POLICY["arms"] if arms is None else arms
    at = u if u is not None else uniform(unit) if unit is not None else random.random()
    if isinstance(at, bool) or not isinstance(at, (int, float)) or not 0.0 <= at < 1.0:
        raise ValueError(f"u must be a number in [0, 1), got {at!r}")
    arm, total = 0, 0.0
    for a, each in enumerate(p):
        if each > 0.0:
            total += each
            arm = a
            if at < total:
                break
    return {
        "id": uuid.uuid4().hex if id is None else id, "unit": unit, "context": context, "arms": given,
        "arm": _id(given[arm], arm), "probability": p[arm], "probabilities": p, "policy": CHECKSUM,
        "version": POLICY["version"], "position": POLICY["position"], "time": time.time(),
    }  # fmt: skip


def event(decision):
    """The line that reports a decision."""
    return json.dumps({"kind": "decision", "application": POLICY["application"], **decision}) + "\n"


def outcome(decision, reward):
    """The line that reports its outcome."""
    return json.dumps({"kind": "outcome", "id": decision["id"], "reward": reward, "time": time.time()}) + "\n"
