"""Dosing as a bandit: choose low, medium or high for each patient, and see only whether that dose was right.

    python examples/dosing.py

The patients are made up after what is published on warfarin: the weekly dose a patient needs falls with age and with
two genes and rises with weight; what is known at the first visit explains most of it. Doctors start most
patients on the medium dose. A bandit learns from outcomes alone: it never hears what another dose would have done.
"""

import argparse

import numpy as np

import armwise as aw

DOSES = ("low", "medium", "high")  # under 21 mg a week, 21 to 49 mg, over 49 mg


def patients(n, seed=0):
    """What is known of n patients (n, 7), and for each the dose that was right (0, 1 or 2)."""
    rng = np.random.default_rng(seed)
    age, weight = rng.integers(2, 10, n), rng.normal(80, 18, n)
    vkorc1, cyp2c9 = rng.binomial(2, 0.4, n), rng.binomial(2, 0.15, n)  # copies of the sensitive variants
    amiodarone, enzyme_inducer = rng.random(n) < 0.07, rng.random(n) < 0.03
    height = 165 + 0.25 * (weight - 80) + rng.normal(0, 8, n)
    root = 7.3 - 0.26 * age + 0.012 * weight - 1.1 * vkorc1 - 0.8 * cyp2c9 - 0.5 * amiodarone + enzyme_inducer
    dose = np.clip(root + rng.normal(0, 0.6, n), 1, None) ** 2
    known = np.column_stack([age, weight, height, vkorc1, cyp2c9, amiodarone, enzyme_inducer]).astype(float)
    return known, np.digitize(dose, [21, 49])


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--patients", type=int, default=5000)
    parser.add_argument("--orders", type=int, default=10, help="in how many orders they arrive")
    options = parser.parse_args(arguments)
    known, right = patients(options.patients)
    world = aw.environments.Classification(known, right)  # scaled columns and a constant; the right arm pays 1
    dim = world.width("shared")
    agents = {
        "LinUCB": aw.LinUCB(dim, alpha=0.2, n_arms=3),
        "LinThompson": aw.LinThompson(dim, v=0.1, n_arms=3),
        "UCB1 (no context)": aw.UCB1(3),
    }
    result = aw.race(agents, world, horizon=options.patients, seeds=options.orders, name="dosing")
    share = {name: result.reward(name)[:, -1].mean() / options.patients for name in agents}
    share["always medium"] = float((right == 1).mean())
    for name, value in sorted(share.items(), key=lambda pair: -pair[1]):
        print(f"{name:18s} right for {value:.1%} of {options.patients:,} patients")
    counts = {dose: int((right == arm).sum()) for arm, dose in enumerate(DOSES)}
    print("patients by the dose they needed:", ", ".join(f"{dose} {n:,}" for dose, n in counts.items()))
    return share


if __name__ == "__main__":
    main()
