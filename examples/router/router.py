"""Which language model for which prompt, under a budget in dollars per thousand prompts.

The router is a ``Decider`` with an agent that estimates quality and cost: prompts in, a model's name out, quality and
dollars back whenever they are known. Models come and go by being offered or not; a price that changes is learnt from
what answers cost. Everything is in the journal, which answers what other rules would have cost and scored.

Run it: python examples/router/router.py
"""

from __future__ import annotations

import math
import re
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import armwise as aw

BUCKETS = 32  # of hashed words


def shape(prompt: str) -> dict[str, float]:
    """What a prompt looks like, each number in -2 to 2: an arithmetic problem, a list of choices and code differ.

    >>> {name: round(value, 2) for name, value in shape("Is 7 prime?").items() if name in ("digits", "asks")}
    {'digits': 0.45, 'asks': 1.0}
    """
    text = prompt[:4000]
    n, words, lines = max(len(text), 1), text.split(), text.split("\n")
    found = {
        "length": 0.5 * (math.log1p(len(prompt)) - 5.5),
        "digits": 5.0 * sum(map(str.isdigit, text)) / n,
        "capitals": 5.0 * sum(map(str.isupper, text)) / n,
        "signs": 3.0 * sum(not each.isalnum() and not each.isspace() for each in text) / n,
        "foreign": 5.0 * sum(each > "\x7f" for each in text) / n,
        "breaks": 20.0 * text.count("\n") / n,
        "questions": 5.0 * text.count("?") / max(len(words), 1),
        "word length": sum(map(len, words)) / max(len(words), 1) / 5.0 - 1.0,
        "different words": len(set(text.lower().split())) / max(len(words), 1) - 0.7,
        "lines": math.log1p(len(lines)) - 1.0,
        "asks": float(lines[-1].strip().endswith((":", "?"))),
        "choices": float(bool(re.search(r"\b[A-D][).:]", text))),
        "code": float("def " in text or "```" in text or "function" in text.lower()),
        "begins": float(text[:1].isupper()),
    }
    found |= {f"sign {sign}": 20.0 * text.count(sign) / n for sign in '\\$(=_,"'}
    return {name: min(max(value, -2.0), 2.0) for name, value in found.items()}


def hashed_words(prompt: str, buckets: int = BUCKETS) -> list[float]:
    """Signed counts of words, in buckets, of length 1."""
    counts = [0.0] * buckets
    for word in re.findall(r"[a-z]+|[0-9]|[^\sa-z0-9]", prompt.lower()[:2000]):
        code = zlib.crc32(word.encode("utf-8", "surrogatepass"))
        counts[code % buckets] += 1.0 if code >> 31 else -1.0
    length = max(math.hypot(*counts), 1e-9)
    return [each / length for each in counts]


def features(prompt: str) -> dict[str, float]:
    """What the router sees of a prompt: its shape, and its words; an embedding may do better, if there is one."""
    words = hashed_words(prompt)
    return shape(prompt) | {f"w{i}": 0.5 * value for i, value in enumerate(words) if value}


def agent_of(
    dollars: float, prompts: int, explore: float = 0.0, prices: Sequence[float] | None = None
) -> dict[str, Any]:
    """The agent, as a configuration has it: a mean of ``dollars`` per thousand over this many prompts, less 4 %.

    ``prices`` are what a thousand answers of each model are expected to cost, in dollars, in the order in which models
    are offered, always the same ones: a model ten times as dear is then expected to be better by 0.15, until answers
    say otherwise. Without, every model is tried, and paid for, before it is known as dear.

    >>> agent_of(4.0, 1000, prices=[0.5, 50.0])["prior"]
    [0.2, 0.5]
    """
    agent: dict[str, Any] = {
        "class": "LagrangeCB", "oracle": {"class": "LinUCB", "alpha": 1.0, "lam": 10.0}, "horizon": prompts,
        "budget": 0.99 * dollars * prompts / 1000.0, "aim": 0.97, "weighting": "wins", "scale": 1.2, "prior": 0.96,
    }  # fmt: skip
    if prices is not None:
        better = [max(0.5 + 0.15 * math.log10(price / max(prices)), 0.0) for price in prices]
        agent |= {"expected_costs": [price / 1000.0 for price in prices], "prior": [round(each, 9) for each in better]}
    return {"class": "Explore", "agent": agent, "epsilon": explore} if explore else agent


def budget_of(dollars: float, most: float) -> dict[str, Any]:
    """The agent of an application that holds a budget for several: ``most`` is the most that one request can cost."""
    return {
        "class": "HardStop", "agent": {"class": "UCB1", "n_arms": 1}, "budget": dollars, "max_cost": most,
    }  # fmt: skip


class Tickets:
    """A budget in dollars that several proxies share: it is an application (see ``budget_of``) of one service.

    A ticket is a decision of that application, which sets ``most`` dollars aside until it is told what was spent; one
    that is never told stays paid in full.

    >>> tickets = Tickets(aw.Decider(agent=budget_of(1.0, 0.4)), 0.4)
    >>> first, second = tickets.take(), tickets.take()
    >>> tickets.give(first, 0.1); third = tickets.take()
    >>> tickets.take()
    Traceback (most recent call last):
    ...
    armwise.agents.budget.accounts.BudgetSpent: the budget 1.0 does not cover another decision: [0.1] \
spent ([0.8] set aside for costs to come)
    """

    def __init__(self, decider: aw.Decider | aw.Client, most: float) -> None:
        self.decider, self.most = decider, most

    def take(self) -> str:
        """Set ``most`` aside; ``aw.BudgetSpent`` if that much is not left."""
        return self.decider.decide({}, arms=["ask"]).id

    def give(self, id: str, dollars: float) -> None:
        """What it did cost, in the place of what was set aside."""
        self.decider.reward(id, 1.0, cost=dollars)

    def close(self) -> None:
        """Let the connection go."""
        self.decider.close()


class Router:
    """Choose a model for a prompt; ``dollars`` is the budget per thousand prompts, held on average.

    ``storage`` is a folder for the journal (None: in memory); with ``service``, the address of an ``armwise serve``
    whose application (``application``, where it has several) has such an agent (see ``agent_of``), the journal is
    there. ``embed`` turns a prompt into numbers of its own. ``prompts`` is how many the budget is for. A share
    ``explore`` of the prompts goes to any model: what another rule would have earned can be told only from models that
    were tried. ``prices`` are what a thousand answers of each model are expected to cost, by name, in dollars: nothing
    is then spent to learn what is dear. The models are those, all of them for every prompt.
    """

    def __init__(
        self,
        models: Sequence[str],
        dollars: float,
        storage: Any = None,
        *,
        service: str | None = None,
        key: str | None = None,
        application: str | None = None,
        embed: Callable[[str], Sequence[float]] | None = None,
        prompts: int = 100_000,
        explore: float = 0.0,
        prices: Mapping[str, float] | None = None,
        seed: int = 1,
    ) -> None:
        if isinstance(models, str) or not models or not all(isinstance(name, str) for name in models):
            raise ValueError(f"models must be a list of names, at least one, got {models!r:.80}")
        is_number("dollars", dollars)
        if not dollars > 0.0:
            raise ValueError(f"dollars must be above 0, got {dollars!r}")
        if isinstance(prompts, bool) or not isinstance(prompts, int) or prompts < 1:
            raise ValueError(f"prompts must be a whole number from 1 on, got {prompts!r:.80}")
        self.models, self.embed = list(models), embed
        self.priced = None if prices is None else list(models)
        listed = None if prices is None else prices_of(prices, models)
        if listed is not None and service is not None:
            raise ValueError("prices are for the agent of a router of its own: give those of a service to agent_of")
        self.decider: aw.Decider | aw.Client = (
            aw.Decider(storage, agent=agent_of(dollars, prompts, explore, listed), learn="arrival", seed=seed)
            if service is None
            else aw.Client(service, key=key, app=application)
        )

    def route(self, prompt: str, models: Sequence[str] | None = None) -> aw.Decided:
        """The model for a prompt, among all or these: ``.arm`` is its name, ``.id`` what its outcome belongs to."""
        if not isinstance(prompt, str):
            raise ValueError(f"prompt must be a text, got {type(prompt).__name__} {prompt!r:.60}")
        if self.embed is None:
            context: Mapping[str, float] = features(prompt)
        else:
            values = np.asarray(self.embed(prompt), dtype=object)
            if values.ndim != 1 or not len(values):
                raise ValueError(f"embed must give a list of numbers for a prompt, got {values!r:.80}")
            for i, value in enumerate(values):
                is_number(f"number {i} of the prompt's embedding", value)
            context = {f"e{i}": float(value) for i, value in enumerate(values)}
        offered = self.models if models is None else models
        if self.priced is not None and list(offered) != self.priced:
            raise ValueError(
                f"prices were given for {', '.join(self.priced)}: a router whose models come and go has none"
            )
        return self.decider.decide(context, arms=offered)

    def outcome(self, id: str, quality: float, dollars: float) -> None:
        """What came of it, now or days later; the first outcome of a decision counts."""
        is_number("dollars", dollars)
        if dollars < 0.0:
            raise ValueError(f"dollars must be from 0 on, got {dollars!r}")
        self.decider.reward(id, quality, cost=dollars)

    def close(self) -> None:
        """Let the journal go."""
        self.decider.close()

    def log(self) -> aw.offline.Log:
        """The journal by the models' names: arm k of the log is ``log.arm_names[k]``, whichever were offered when.

        (The decider's own log counts the arms of each decision in the order in which they were offered.) First come the
        models of now, then those that are gone.
        """
        rows = self.decider.log()
        if rows.costs is None or not np.isfinite(rows.costs).any():
            raise ValueError("no decision of the journal has an outcome yet")
        named = [(row, [arm["id"] for arm in row["arms"]]) for row in rows.decisions()]
        names = list(dict.fromkeys([*self.models, *(name for _, offered in named for name in offered)]))
        return aw.offline.Log(
            rows.contexts, [names.index(row["arm"]) for row, _ in named], rows.rewards, rows.probabilities,
            available=[[name in offered for name in names] for _, offered in named],
            n_arms=len(names), arm_names=names, costs=rows.costs,
        )  # fmt: skip

    def what_if(self, tables: Mapping[str, Mapping[str, float] | Sequence[float]]) -> aw.offline.Tradeoff:
        """What other rules would have scored and cost: each is shares by model, or in the order of ``models``.

        Where a model was not on offer, its share goes to the rule's others. Decisions at which a rule had no model at
        all on offer say nothing of it: all rules are judged on the others, and a warning says how many were left out.
        """
        judged, left_out = self.judge(tables)
        if left_out:
            warnings.warn(left_out, stacklevel=2)
        return judged

    def judge(self, tables: Mapping[str, Mapping[str, float] | Sequence[float]]) -> tuple[aw.offline.Tradeoff, str]:
        """As ``what_if``, and what is to be said of decisions that were left out."""
        log = self.log()
        names = log.arm_names or []
        offered = np.ones((len(log), len(names)), bool) if log.available is None else log.available
        if not tables:
            raise ValueError("no rule is given: a rule is a name with shares by model")
        rules = {name: shares_of(name, table, self.models, names) for name, table in tables.items()}
        judged = np.all([(offered * rule).sum(axis=1) > 0.0 for rule in rules.values()], axis=0)
        if not judged.any():
            raise ValueError(
                "no decision of the journal had a model of every rule on offer: ask for one rule at a time"
            )
        left_out = (
            ""
            if judged.all()
            else (f"{(~judged).sum()} of the {len(judged)} decisions offered no model of some rule, and are left out")
        )
        return aw.offline.tradeoff(log.take(judged), rules), left_out


def is_number(name: str, value: Any) -> None:
    """ValueError if this is no finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r:.80}")


def prices_of(prices: Any, models: Sequence[str]) -> list[float]:
    """The prices in the order of the models; ValueError says what is wrong with them.

    >>> prices_of({"large": 15.0, "small": 0.03}, ["small", "large"])
    [0.03, 15.0]
    """
    if not isinstance(prices, Mapping) or set(prices) != set(models):
        raise ValueError(f"prices must be dollars per thousand answers for each of {list(models)}, got {prices!r:.80}")
    for name, price in prices.items():
        is_number(f"the price of {name!r:.80}", price)
        if not price > 0.0:
            raise ValueError(f"the price of {name!r:.80} must be above 0, got {price!r}")
    return [float(prices[name]) for name in models]


def shares_of(rule: str, table: Any, models: Sequence[str], names: Sequence[str]) -> np.ndarray:
    """The shares of a rule in the order of ``names``; ValueError says what is wrong with it.

    >>> shares_of("mine", {"large": 1.0}, ["small", "large"], ["small", "large", "gone"])
    array([0., 1., 0.])
    """
    if not isinstance(table, Mapping):
        if isinstance(table, str) or not isinstance(table, Sequence) or len(table) != len(models):
            raise ValueError(f"the rule {rule!r:.80} must be shares by model, or one for each of {list(models)}, "
                             f"got {table!r:.80}")  # fmt: skip
        table = dict(zip(models, table))
    for name, share in table.items():
        if name not in names:
            raise ValueError(f"the rule {rule!r:.80} names {name!r:.80}; the journal has {', '.join(names)}")
        is_number(f"the share of {name!r:.80} in the rule {rule!r:.80}", share)
    shares = np.array([float(table.get(name, 0.0)) for name in names])
    if shares.min() < 0.0 or abs(shares.sum() - 1.0) > 1e-6:
        raise ValueError(
            f"the shares of the rule {rule!r:.80} must be from 0 on and come to 1, got {dict(table)!r:.80}"
        )
    return shares


def main() -> None:
    rng = np.random.default_rng(1)
    router = Router(["small", "large"], dollars=4.0, prompts=600, explore=0.1)
    quality, dollars = {"small": 0.7, "large": 0.9}, {"small": 0.001, "large": 0.010}
    spent = 0.0
    for i in range(600):
        decided = router.route(f"What is {i} plus {i + 1}?" if i % 2 else f"Write a poem about number {i}")
        paid = dollars[decided.arm] * rng.uniform(0.5, 1.5)
        spent += paid
        router.outcome(decided.id, min(1.0, quality[decided.arm] * rng.uniform(0.9, 1.1)), paid)
    print(f"spent {1000 * spent / 600:.2f} dollars per thousand prompts, budget 4")
    print(router.what_if({"always small": [1, 0], "always large": [0, 1], "half and half": [0.5, 0.5]}))


if __name__ == "__main__":
    main()
