"""Which language model for which prompt, under a budget in dollars per thousand prompts.

The router is a ``Decider`` with an agent that estimates quality and cost: prompts in, a model's name out, quality and
dollars back whenever they are known. Models come and go by being offered or not; a price that changes is learnt from
what answers cost. Everything is in the journal, which answers what other rules would have cost and scored.

Run it: python examples/router/router.py
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import armwise as aw

BUCKETS = 32  # of hashed words


def hashed_words(prompt: str) -> dict[str, float]:
    """How often words of each bucket occur, and how long the prompt is; an embedding does better, if there is one."""
    features = {"length": float(np.log1p(len(prompt)))}
    words = re.findall(r"[a-z]+|[0-9]|[^\sa-z0-9]", prompt.lower()[:4000])
    for word in words:
        name = f"w{zlib.crc32(word.encode()) % BUCKETS}"
        features[name] = features.get(name, 0.0) + 1.0 / len(words)
    return features


def agent_of(dollars: float, prompts: int, explore: float = 0.0) -> dict[str, Any]:
    """The agent, as a configuration has it: a mean of ``dollars`` per thousand over this many prompts, less 3 %."""
    agent: dict[str, Any] = {
        "class": "LagrangeCB", "oracle": {"class": "SquareCB"}, "horizon": prompts, "scale": 0.5, "prior": 0.96,
        "budget": 0.97 * dollars * prompts / 1000.0,
    }  # fmt: skip
    return {"class": "Explore", "agent": agent, "epsilon": explore} if explore else agent


class Router:
    """Choose a model for a prompt; ``dollars`` is the budget per thousand prompts, held on average.

    ``storage`` is a folder for the journal (None: in memory); with ``service``, the address of an ``armwise serve``
    whose application has such an agent (see ``agent_of``), the journal is there. ``embed`` turns a prompt into numbers
    of its own. ``prompts`` is how many the budget is for. A share ``explore`` of the prompts goes to any model: what
    another rule would have earned can be told only from models that were tried.
    """

    def __init__(
        self,
        models: Sequence[str],
        dollars: float,
        storage: Any = None,
        *,
        service: str | None = None,
        key: str | None = None,
        embed: Callable[[str], Sequence[float]] | None = None,
        prompts: int = 100_000,
        explore: float = 0.0,
        seed: int = 1,
    ) -> None:
        self.models, self.embed = list(models), embed
        self.decider: aw.Decider | aw.Client = (
            aw.Decider(storage, agent=agent_of(dollars, prompts, explore), seed=seed)
            if service is None
            else aw.Client(service, key=key)
        )

    def route(self, prompt: str, models: Sequence[str] | None = None) -> aw.Decided:
        """The model for a prompt, among all or these: ``.arm`` is its name, ``.id`` what its outcome belongs to."""
        if self.embed is None:
            context: Mapping[str, float] = hashed_words(prompt)
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
