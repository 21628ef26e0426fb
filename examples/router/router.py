"""Which language model for which prompt, under a budget in dollars per thousand prompts.

The router is a ``Decider`` with an agent that estimates quality and cost: prompts in, a model's name out, quality and
dollars back whenever they are known. Models come and go by being offered or not; a price that changes is learnt from
what answers cost. Everything is in the journal, which answers what other rules would have cost and scored.

Run it: python examples/router/router.py
"""

from __future__ import annotations

import math
import re
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
        code = zlib.crc32(word.encode())
        counts[code % buckets] += 1.0 if code >> 31 else -1.0
    length = max(math.hypot(*counts), 1e-9)
    return [each / length for each in counts]


def features(prompt: str) -> dict[str, float]:
    """What the router sees of a prompt: its shape, and its words; an embedding may do better, if there is one."""
    words = hashed_words(prompt)
    return shape(prompt) | {f"w{i}": 0.5 * value for i, value in enumerate(words) if value}


def agent_of(dollars: float, prompts: int, explore: float = 0.0) -> dict[str, Any]:
    """The agent, as a configuration has it: a mean of ``dollars`` per thousand over this many prompts, less 3 %."""
    agent: dict[str, Any] = {
        "class": "LagrangeCB", "oracle": {"class": "SquareCB"}, "horizon": prompts, "scale": 0.5, "prior": 0.96,
        "budget": 0.97 * dollars * prompts / 1000.0,
    }  # fmt: skip
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
    armwise.budget.accounts.BudgetSpent: the budget 1.0 does not cover another decision: [0.1] spent ([0.8] set aside \
for costs to come)
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
    were tried.
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
        seed: int = 1,
    ) -> None:
        self.models, self.embed = list(models), embed
        self.decider: aw.Decider | aw.Client = (
            aw.Decider(storage, agent=agent_of(dollars, prompts, explore), seed=seed)
            if service is None
            else aw.Client(service, key=key, app=application)
        )

    def route(self, prompt: str, models: Sequence[str] | None = None) -> aw.Decided:
        """The model for a prompt, among all or these: ``.arm`` is its name, ``.id`` what its outcome belongs to."""
        if self.embed is None:
            context: Mapping[str, float] = features(prompt)
        else:
            context = {f"e{i}": float(value) for i, value in enumerate(self.embed(prompt))}
        return self.decider.decide(context, arms=self.models if models is None else models)

    def outcome(self, id: str, quality: float, dollars: float) -> None:
        """What came of it, now or days later."""
        self.decider.reward(id, quality, cost=dollars)

    def close(self) -> None:
        """Let the journal go."""
        self.decider.close()

    def what_if(self, tables: Mapping[str, Sequence[float]]) -> aw.offline.Tradeoff:
        """What other rules would have scored and cost; each is a share per model, in the order of ``models``."""
        rules = {name: [float(share) for share in shares] for name, shares in tables.items()}
        return aw.offline.tradeoff(self.decider.log(), rules)


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
