"""A nightly batch: decide for every row of a table in one commit, and learn last night's outcomes first.

    python batch_job.py

Customers get one of three letters. Each night's decisions are written beside the customers, with their ids; the
outcomes come back the next day as a table with the same ids. The folder remembers everything between the nights.
"""

import sys

import numpy as np
import pandas as pd

import armwise as aw

LETTERS = ["reminder", "discount", {"id": "gift", "cost": 4}]


def customers(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Tonight's customers, as a warehouse would give them."""
    region = rng.choice(["north", "south"], n)
    return pd.DataFrame({"region": region, "age": rng.integers(18, 80, n), "last_order": rng.integers(1, 400, n)})


def night(shop: aw.Decider, table: pd.DataFrame, outcomes: pd.DataFrame | None) -> pd.DataFrame:
    """Learn what came back, then decide for everybody; the table with letter, probability and id."""
    if outcomes is not None:
        shop.reward_many(outcomes[["decision", "paid"]].itertuples(index=False, name=None))
    made = shop.decide_many([{"context": row, "arms": LETTERS} for row in table.to_dict("records")])
    return table.assign(letter=[d.arm for d in made], probability=[d.probability for d in made],
                        decision=[d.id for d in made])  # fmt: skip


def outcomes_of(rng: np.random.Generator, sent: pd.DataFrame) -> pd.DataFrame:
    """The next day: the south pays after a discount, the north after a reminder."""
    liked = np.where(sent["region"] == "south", "discount", "reminder")
    paid = rng.random(len(sent)) < np.where(sent["letter"] == liked, 0.6, 0.2)
    return pd.DataFrame({"decision": sent["decision"], "paid": paid.astype(float)})


def main(nights: int = 5, size: int = 200, folder: str = "letters") -> list[float]:
    """The share of customers who paid, night after night."""
    rng, outcomes, paid = np.random.default_rng(1), None, []
    for _ in range(nights):
        with aw.Decider(folder) as shop:  # one process per night
            sent = night(shop, customers(rng, size), outcomes)
        outcomes = outcomes_of(rng, sent)
        paid.append(float(outcomes["paid"].mean()))
        print(f"{len(sent)} letters, {paid[-1]:.0%} paid")
    return paid


if __name__ == "__main__":
    main(nights=int(sys.argv[1]) if len(sys.argv) > 1 else 5)
