"""E-mail targeting, judged offline: what would another campaign have earned, from the CSV of the last one?

    python examples/mailing.py [--csv FILE]     # without --csv, a campaign is made up and written to mailing.csv

The CSV has a row per customer: what was known, which e-mail was sent (drawn at random, more often to some than to
others), with which probability, and whether the customer came. New campaigns are judged on it, and one that the log
knows too little about is refused. The made-up world knows what each would really have earned: its truth is printed
beside the estimates.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import armwise as aw

EMAILS = ["none", "mens", "womens", "catalogue"]
KNOWN = ["months_since_visit", "spent", "bought_mens", "bought_womens", "newcomer"]


def visit_chance(known):
    """The chance of a visit after each e-mail (n, 4): the truth, of which the log shows one draw per row."""
    quiet = 0.10 - 0.004 * known["months_since_visit"] + 0.02 * np.tanh(known["spent"] / 500)
    mens = quiet + 0.02 + 0.20 * known["bought_mens"] - 0.06 * known["newcomer"]
    womens = quiet + 0.03 + 0.10 * known["bought_womens"]
    return np.clip(np.column_stack([quiet, mens, womens, quiet + 0.05]), 0.01, 0.99)


def campaign(n=20_000, seed=7):
    """A past campaign: e-mails drawn with known probabilities that depend on the customer; few got the catalogue."""
    rng = np.random.default_rng(seed)
    bought = rng.choice(3, n, p=[0.35, 0.35, 0.30])  # mens, womens, both
    frame = pd.DataFrame(
        {
            "months_since_visit": rng.integers(1, 13, n),
            "spent": rng.exponential(240, n).round(2),
            "bought_mens": (bought != 1).astype(int),
            "bought_womens": (bought != 0).astype(int),
            "newcomer": rng.integers(0, 2, n),
        }
    )
    newcomer = frame["newcomer"].to_numpy()[:, None] == 1
    p = np.where(newcomer, [0.596, 0.2, 0.2, 0.004], [0.196, 0.4, 0.4, 0.004])
    sent = np.minimum((p.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1), len(EMAILS) - 1)
    frame["email"] = np.array(EMAILS)[sent]
    frame["probability"] = p[np.arange(n), sent]
    frame["visited"] = (rng.random(n) < visit_chance(frame)[np.arange(n), sent]).astype(int)
    return frame


def read(path):
    """The log as armwise reads it."""
    return aw.offline.Log.from_csv(path, contexts=KNOWN, arms="email", rewards="visited", arm_names=EMAILS)


def same_department(customer):
    """The marketing department's rule: the e-mail of the department where the customer bought before."""
    return 2 if customer[KNOWN.index("bought_womens")] else 1


def truth(policy, frame):
    """What a policy really earns in the made-up world."""
    sent = [int(policy(customer)) for customer in frame[KNOWN].to_numpy(float)]
    return visit_chance(frame)[np.arange(len(sent)), sent].mean()


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path, help=f"your log: {', '.join(KNOWN)}, email, probability, visited")
    options = parser.parse_args(arguments)
    path = options.csv or Path("mailing.csv")
    if options.csv is None:
        campaign().to_csv(path, index=False)
        print(f"wrote a made-up campaign to {path}")
    log, frame = read(path), pd.read_csv(path)
    print(f"{len(log):,} customers; {log.rewards.mean():.4f} of them came\n")

    # The best rule that asks one question, chosen on 70 % of the rows and judged on the others.
    stumps = [aw.Stump(j, 0.5, no, yes) for j in (2, 3, 4) for no in range(3) for yes in range(3)]
    fitted = aw.offline.fit(log, aw.FinitePolicies(stumps, len(EMAILS)))
    policies = {"womens for all": aw.Constant(2), "same department": same_department, "best question": fitted.policy}
    found = {}
    for name, policy in policies.items():
        judged = fitted.estimate if name == "best question" else aw.offline.evaluate(log, policy, ["snips", "dr"])
        found[name] = judged["dr"]
        known = "" if options.csv else f"   truth {truth(policy, frame):.4f}"
        print(f"{name:16s} {found[name].value:.4f}  [{found[name].low:.4f}, {found[name].high:.4f}]{known}")

    print("\nis the rule better than the women's e-mail for all?")
    print(aw.offline.compare(log, same_department, aw.Constant(2)).table())

    print("\nand the catalogue for all?")  # one customer in 250 got it: armwise answers, and warns
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", aw.offline.WeakLogWarning)
        print(aw.offline.evaluate(log, aw.Constant(3), ["ips", "dr"]).table())
    if options.csv is None:
        print(f"(rightly: the truth is {truth(aw.Constant(3), frame):.4f})")
    return found, [str(warning.message) for warning in said]


if __name__ == "__main__":
    main()
