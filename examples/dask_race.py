"""A race on a Dask cluster: the same call, with the address of a scheduler.

    python examples/dask_race.py                        # starts a small cluster on this machine
    python examples/dask_race.py --scheduler host:8786  # one that runs already, with armwise installed on its workers

Each world and seed is a task; a worker that dies has its tasks run elsewhere. The numbers do not depend on where a
task ran: the same race on one core gives the same regrets, to the last bit.
"""

import argparse

import armwise as aw

AGENTS = {"LinUCB": aw.LinUCB(dim=10, alpha=0.3), "LinThompson": aw.LinThompson(dim=10, v=0.1), "Exp3": aw.Exp3(8)}
WORLD = aw.environments.Linear(n_arms=8, dim=10, noise=0.1)


def race(scheduler, rounds, seeds):
    return aw.race(AGENTS, WORLD, horizon=rounds, seeds=seeds, engine=f"dask://{scheduler}")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scheduler", metavar="HOST:PORT", help="a running scheduler; default: start one here")
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=8)
    options = parser.parse_args(arguments)
    if options.scheduler:
        result = race(options.scheduler, options.rounds, options.seeds)
    else:
        from distributed import LocalCluster

        # Any free port for the dashboard: without an address it asks for 8787, which another cluster here may have.
        here = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
        with LocalCluster(n_workers=2, threads_per_worker=1, **here) as cluster:
            address = cluster.scheduler_address.removeprefix("tcp://")
            result = race(address, options.rounds, options.seeds)
    print(result.table()[["agent", "runs", "regret", "std_error"]].round(2).to_string(index=False))
    return result


if __name__ == "__main__":
    main()
