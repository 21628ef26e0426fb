"""News recommendation: a visitor comes, ten articles could lead the page, and only the one shown gets an answer.

    python examples/news.py                                    # made-up ratings, shaped like MovieLens
    python examples/news.py --data ml-latest-small/ratings.csv # the real ones (grouplens.org/datasets/movielens)

Each round draws a reader and ten articles that the reader has rated; the article shown pays its rating, scaled to
[0, 1]. Because all ten ratings are known, regret can be measured; the agents learn one per round.
"""

import argparse

import numpy as np

import armwise as aw


def made_up_ratings(n_users=300, n_items=200, rank=4, seed=0):
    """Columns user, item, rating: hidden tastes, a few items that everyone rates, ratings from 0.5 to 5 in halves."""
    rng = np.random.default_rng(seed)
    tastes, topics = rng.normal(size=(n_users, rank)), rng.normal(size=(n_items, rank))
    liked = 3.4 + rng.normal(0, 0.4, n_items) + tastes @ topics.T / rank**0.5
    fame = (1 + np.arange(n_items)) ** -0.7  # as in MovieLens, a few items have most of the ratings
    rated = rng.random((n_users, n_items)) < np.minimum(0.95, 60 * fame / fame.sum())
    users, items = np.nonzero(rated)
    ratings = np.clip(2 * liked[users, items] + rng.normal(size=users.size), 1, 10).round() / 2
    return users, items, ratings


def race(world, horizon, seeds=5):
    """Three learners beside one that picks at random, all on the same visitors."""
    dim = world.width("features")
    agents = {
        "LinUCB": aw.LinUCB(dim, alpha=0.3),
        "LinThompson": aw.LinThompson(dim, v=0.1),
        "SquareCB": aw.SquareCB(dim),
        "random": aw.EpsilonGreedy(world.n_arms, epsilon=1.0),
    }
    return aw.race(agents, world, horizon=horizon, seeds=seeds, name="news")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="MovieLens's ratings.csv (or .parquet): userId, movieId, rating")
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--report", help="write a page with pictures to this file")
    options = parser.parse_args(arguments)
    if options.data:
        world = aw.environments.Ratings.from_file(options.data)
    else:
        world = aw.environments.Ratings(*made_up_ratings())
    result = race(world, options.rounds)
    table = result.table()
    table["stars"] = 0.5 + 4.5 * table["reward"] / options.rounds
    print(table[["agent", "regret", "std_error", "stars", "us_per_decision"]].round(2).to_string(index=False))
    if options.report:
        print("report:", result.report(options.report))
    return result


if __name__ == "__main__":
    main()
