"""A paper's figure and its table: four agents over three worlds, 20 seeds (python examples/paper_figure.py)."""

import armwise as aw

NAMES = ["LinUCB", "LinThompson", "SquareCB", "Exp4"]


def main(horizon=5_000, seeds=20):
    worlds = {name: aw.environments.published(name) for name in ("suplinucb", "mushroom", "shuttle")}
    results = aw.race(lambda world: {name: aw.racing.enter(name, world, horizon) for name in NAMES}, worlds,
                      horizon=horizon, seeds=seeds, workers=2)  # fmt: skip
    results.plot("figure.pdf", width="page")
    print(results.to_latex())
    return results


if __name__ == "__main__":
    main()
