"""On a Dask cluster: evaluations (to 1e-12), fits and races on two workers give the numbers of one machine."""

# mypy: disable-error-code="arg-type, call-overload"

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import cloudpickle
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import armwise as aw
import tests.offline.learning.test_fit_log as fits
from armwise.offline import Log, WeakLogWarning, compare, evaluate
from armwise.offline.intervals.intervals import Blocks, Clusters, Moments, block_size
from tests.offline.worlds import K, draw_arms, expected, logging, target

for name in (__name__, "tests.offline.worlds"):  # as if it were the user's script, which workers cannot import
    cloudpickle.register_pickle_by_value(sys.modules[name])

QUIET = {  # what its processes do while they wait
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "false",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "500ms",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "5s",
}
# A scheduler and two workers, forked from a process that has imported what all of them need but armwise itself; they
# end with it, and not in order: how Dask ends is its own affair.
LAUNCH = """
import json, os, signal, sys

import pandas, pyarrow.dataset, pyarrow.parquet, scipy.sparse, scipy.stats, sklearn.linear_model
from distributed.cli import dask_scheduler, dask_worker

pids = []
signal.signal(signal.SIGTERM, lambda *_: [os.kill(pid, signal.SIGKILL) for pid in pids])
for program, arguments in json.loads(sys.argv[1]):
    pids.append(os.fork())
    if pids[-1] == 0:
        {"scheduler": dask_scheduler, "worker": dask_worker}[program].main(arguments)
        os._exit(0)
for pid in pids:
    os.waitpid(pid, 0)
"""
EVERY = ["ips", "snips", "dm", "dr", "sndr", "switch-dr", "dros"]


def table(n, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    p = logging(x)
    arms = draw_arms(p, rng)
    columns = {f"x{j}": x[:, j] for j in range(3)} | {
        "arm": arms, "reward": (rng.random(n) < expected(x)[np.arange(n), arms]).astype(float),
        "probability": p[np.arange(n), arms], "channel": rng.choice(["app", "web"], n),
        "user": rng.integers(0, n // 5, n),
    }  # fmt: skip
    return pa.table(columns)


class Soft:
    """A policy that can travel."""

    def many(self, contexts):
        return target(np.asarray(contexts))


def flat(value, path=""):
    """Every number of a result by its place."""
    if isinstance(value, dict):
        return {k: v for name, each in value.items() for k, v in flat(each, f"{path}/{name}").items()}
    if isinstance(value, (list, tuple)):
        return {k: v for i, each in enumerate(value) for k, v in flat(each, f"{path}/{i}").items()}
    return {path: value}


def same(here, there, leave=("ess_over_time",)):
    one, other = flat(here.to_dict()), flat(there.to_dict())
    one, other = ({k: v for k, v in each.items() if not any(word in k for word in leave)} for each in (one, other))
    assert one.keys() == other.keys()
    for place, value in one.items():
        if isinstance(value, float):
            assert other[place] == pytest.approx(value, rel=1e-12, abs=1e-12), place
        else:
            assert other[place] == value, place


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """host:port of a Dask scheduler with two workers, as processes of their own; for this file alone, since they take
    a twentieth of a core each for as long as they live."""
    from distributed import Client

    folder = tmp_path_factory.mktemp("dask")
    where, written = folder / "scheduler.json", folder / "dask.log"
    environment = os.environ | {"PYTHONPATH": str(Path(aw.__file__).parents[1])} | QUIET
    # without a dashboard its HTTP server starts even so, on 8787 unless it is told where
    scheduler = ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(where),
                 "--no-dashboard", "--dashboard-address", "127.0.0.1:0"]  # fmt: skip
    worker = ["--scheduler-file", str(where), "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    programs = json.dumps([("scheduler", scheduler), ("worker", worker), ("worker", worker)])
    with written.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, programs], stdout=log, stderr=log, env=environment, cwd=folder
        )
        try:
            deadline = time.monotonic() + 60
            while not where.exists() or not where.read_text().strip():
                assert time.monotonic() < deadline, written.read_text()
                time.sleep(0.1)
            address = json.loads(where.read_text())["address"]
            with Client(address) as client:
                client.wait_for_workers(2, timeout=60)
            yield address.removeprefix("tcp://")
        finally:
            process.terminate()
            process.wait(timeout=30)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    """Two files in row groups that fit no part of the log."""
    folder = tmp_path_factory.mktemp("log")
    whole = table(30_000)
    pq.write_table(whole.slice(0, 17_001), folder / "a.parquet", row_group_size=4999)
    pq.write_table(whole.slice(17_001), folder / "b.parquet", row_group_size=3001)
    return folder


MAPPING = {"contexts": ["x0", "x1", "x2"], "n_arms": K}


def test_every_estimator_is_the_same_on_two_workers(cluster, parquet):
    log = Log.from_parquet(parquet, **MAPPING)
    asked = {"by": "channel", "baseline": "logged", "reward_range": (0.0, 1.0)}
    policies = {"soft": Soft(), "always 0": aw.Constant(0), "uniform": aw.Uniform(K)}
    same(evaluate(log, policies, EVERY, warn=False, **asked),
         evaluate(log, policies, EVERY, warn=False, **asked, engine=f"dask://{cluster}"))  # fmt: skip


@pytest.mark.parametrize("interval", ["cressie-read", "normal", "bootstrap", "bernstein"])
def test_every_interval_that_can_be_split_is_the_same(cluster, parquet, interval):
    from distributed import Client

    log = Log.from_parquet(parquet, **MAPPING)
    here = evaluate(log, Soft(), ["ips", "snips", "dr"], interval=interval, resamples=50)
    with Client(cluster) as client:
        same(here, evaluate(log, Soft(), ["ips", "snips", "dr"], interval=interval, resamples=50, engine="dask"))
        assert client.status == "running"  # the caller's own: left open


@pytest.mark.parametrize("interval", ["auto", "bootstrap"])
def test_policies_whose_estimates_share_nothing_or_everything_are_the_same(cluster, tmp_path, interval):
    # Rounding turns the eigenvectors of a correlation that is 0 or 1 between the policies; the level must not turn.
    pq.write_table(table(600), tmp_path / "log.parquet")
    log, every = Log.from_parquet(tmp_path / "log.parquet", **MAPPING), np.eye(K)
    for policies in (
        {"a": every[0], "b": every[1]},
        {"a": every[0], "again": every[0], "b": every[1] / 2 + every[0] / 2},
    ):
        asked = {"interval": interval, "baseline": "logged", "resamples": 50, "warn": False}
        same(
            evaluate(log, policies, EVERY, **asked), evaluate(log, policies, EVERY, **asked, engine=f"dask://{cluster}")
        )


def test_clusters_clips_and_comparisons_are_the_same(cluster, parquet):
    log = Log.from_parquet(parquet, **MAPPING)
    engine = f"dask://{cluster}"
    asked = {"cluster": "user", "cap": 5.0, "clip": 0.06, "warn": False}
    same(
        evaluate(log, Soft(), ["snips", "dr"], **asked), evaluate(log, Soft(), ["snips", "dr"], **asked, engine=engine)
    )
    same(compare(log, Soft(), aw.Uniform(K)), compare(log, Soft(), aw.Uniform(K), engine=engine))


def test_a_log_in_memory_travels_in_parts_with_arrays_models_and_columns(cluster):
    from sklearn.linear_model import LinearRegression

    rows = table(3000)
    log, engine = Log.from_arrow(rows, **MAPPING), f"dask://{cluster}"
    probabilities = target(np.column_stack([rows[f"x{j}"].to_numpy() for j in range(3)]))
    model = np.random.default_rng(3).random((3000, K))
    for policy, reward_model in ((probabilities, model), (Soft(), LinearRegression())):
        asked = {"reward_model": reward_model, "by": "channel", "cluster": rows["user"].to_numpy(), "warn": False}
        same(evaluate(log, policy, "dr", **asked), evaluate(log, policy, "dr", **asked, engine=engine))


def test_a_dataset_in_hive_folders_is_split_by_its_row_groups(cluster, tmp_path):
    pa.dataset.write_dataset(table(8000), tmp_path / "log", format="parquet", partitioning=["channel"],
                             partitioning_flavor="hive", max_rows_per_group=900, max_rows_per_file=2100)  # fmt: skip
    log = Log.from_parquet(tmp_path / "log", **MAPPING)
    same(evaluate(log, Soft(), by="channel", warn=False),
         evaluate(log, Soft(), by="channel", warn=False, engine=f"dask://{cluster}"))  # fmt: skip


def test_what_is_wrong_with_a_row_is_said_with_its_number(cluster, tmp_path):
    rows = table(4000)
    rewards = rows["reward"].to_numpy().copy()
    rewards[3210] = np.nan
    pq.write_table(rows.set_column(4, "reward", pa.array(rewards)), tmp_path / "log.parquet", row_group_size=500)
    log = Log.from_parquet(tmp_path / "log.parquet", **MAPPING)
    with pytest.raises(aw.offline.LogError, match=r"the log has 1 problem:\n  row 3210: reward is missing"):
        evaluate(log, Soft(), "ips", engine=f"dask://{cluster}")


def test_what_cannot_be_split_is_refused(tmp_path):
    from distributed import LocalCluster
    from sklearn.linear_model import Ridge

    rows = table(300)
    log = Log.from_arrow(rows, **MAPPING)
    with pytest.raises(ValueError, match="engine='dask' means the Dask client that is open, and none is"):
        evaluate(log, Soft(), "ips", engine="dask")
    with pytest.raises(ValueError, match=r'engine must be "dask" .* got int 3'):
        evaluate(log, Soft(), "ips", engine=3)
    with pytest.raises(ValueError, match=r'engine must be "dask" .* got str'):
        evaluate(log, Soft(), "ips", engine="threads")
    pq.write_table(rows, tmp_path / "log.parquet")
    streamed = Log.from_parquet(tmp_path / "log.parquet", **MAPPING)
    pa.csv.write_csv(rows, tmp_path / "log.csv")
    text = Log.from_csv(tmp_path / "log.csv", **MAPPING)
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster:
        with pytest.raises(ValueError, match="interval='betting' takes the rows one after the other"):
            evaluate(log, Soft(), "ips", interval="betting", engine=cluster)
        with pytest.raises(ValueError, match="reward_model is a Ridge, which is fitted in memory"):
            evaluate(streamed, Soft(), "dr", reward_model=Ridge(), engine=cluster)
        with pytest.raises(ValueError, match="can only be read from its beginning"):
            evaluate(text, Soft(), "ips", engine=cluster)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WeakLogWarning)
            same(evaluate(log, Soft()), evaluate(log, Soft(), engine=cluster))


def test_the_command_line_reads_parts_on_a_cluster(cluster, parquet, capsys):
    from armwise.cli.main import main

    command = ["evaluate", str(parquet), "--contexts", "x0,x1,x2", "--policy", "arm:1", "--estimators", "snips,dr"]
    assert main(command) == 0
    here = capsys.readouterr().out
    assert main([*command, "--engine", f"dask://{cluster}"]) == 0
    assert capsys.readouterr().out == here


@pytest.mark.parametrize("n", [3, 40, 1000])
@pytest.mark.parametrize("cut", [0.0, 0.3, 1.0])
def test_sums_of_parts_are_those_of_the_whole(n, cut):
    rng = np.random.default_rng(n)
    X, names = rng.normal(size=(n, 2)) + 100.0, rng.integers(0, 7, n)
    size = block_size(n, limit=16)
    at = int(cut * n) // size * size
    for make, rows in ((lambda: Moments(2), ()), (lambda: Blocks(2, limit=16), ()), (lambda: Clusters(2), (names,))):
        whole, first, later = make(), make(), make()
        whole.add(X, *rows)
        first.add(X[:at], *(each[:at] for each in rows))
        later.add(X[at:], *(each[at:] for each in rows))
        first.merge(later)
        for name in ("mean", "covariance") if isinstance(whole, Moments) else ("sums", "counts"):
            np.testing.assert_allclose(getattr(first, name), getattr(whole, name), rtol=1e-12, err_msg=name)


def test_on_a_scheduler_with_two_workers_it_is_one_pass(cluster, tmp_path):
    from distributed import Client

    with Client(f"tcp://{cluster}"):
        for agent, log in fits.AGENTS:
            here = aw.fit_log(agent.clone(seed=1), log)
            there = aw.fit_log(agent.clone(seed=1), log, engine="dask", part=400)  # eight parts
            assert here.t == there.t == fits.N + 1
            for mine, expected in zip(fits.learnt(there, log), fits.learnt(here, log), strict=True):
                np.testing.assert_allclose(mine, expected, rtol=1e-9, atol=1e-9)
    paths = [tmp_path / f"{i}.parquet" for i in range(3)]
    columns = {f"x{j}": fits.X[:, 0, j] for j in range(fits.D)} | {
        "arm": fits.ARMS,
        "reward": fits.REWARDS,
        "probability": fits.P,
    }
    for path, part in zip(paths, np.array_split(np.arange(fits.N), 3)):
        pd.DataFrame(columns).iloc[part].to_parquet(path)
    logs = [aw.offline.Log.from_parquet(path, n_arms=fits.K) for path in paths]
    there = aw.fit_log(aw.LinUCB(n_arms=fits.K, alpha=0.3), logs, engine=f"dask://{cluster}")
    here = aw.fit_log(aw.LinUCB(n_arms=fits.K, alpha=0.3), fits.SHARED)
    np.testing.assert_allclose(there.estimate(fits.X[0, 0]), here.estimate(fits.X[0, 0]), rtol=1e-9)


def test_dask_cluster_gives_the_same_numbers(cluster, tmp_path):
    agents = {"LinUCB": aw.LinUCB(dim=5, alpha=0.3), "Exp3": aw.Exp3(n_arms=4)}
    world = aw.environments.Linear(n_arms=4, dim=5)
    here = aw.race(agents, world, horizon=500, seeds=4)
    there = aw.race(agents, world, horizon=500, seeds=4, engine=f"dask://{cluster}", checkpoint=tmp_path / "runs")
    for name in agents:
        np.testing.assert_array_equal(here.regret(name), there.regret(name))
    assert len(list((tmp_path / "runs").glob("*.npz"))) == 8
