"""A race that is killed halfway and started again ends as if nothing had happened; and the same on a Dask cluster."""

# mypy: disable-error-code="call-overload, func-returns-value"

import importlib
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import armwise as aw
from armwise.cli.main import main

SOURCE = str(Path(aw.__file__).parents[1])
ENVIRONMENT = os.environ | {"PYTHONPATH": SOURCE}
RACE = ["race", "--world", "linear", "--set", "n_arms=4", "--set", "dim=5", "--agents", "linucb,exp3,linrel",
        "--horizon", "2000", "--seeds", "6", "--workers", "1"]  # fmt: skip
COMMAND = [sys.executable, "-c", "import sys; from armwise.cli.main import main; sys.exit(main())"]


def numbers(folder):
    return pd.read_csv(folder / "race.csv").drop(columns="seconds")


def kept(folder):
    return list((folder / ".unfinished").glob("*.npz"))


def test_killed_and_started_again_it_ends_the_same_to_the_last_bit(tmp_path, capsys):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert main([*RACE, "--out", str(whole)]) == 0
    race = subprocess.Popen([*COMMAND, *RACE, "--out", str(broken)], env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(kept(broken)) < 3 and race.poll() is None:
        assert time.monotonic() < deadline, "the race did not keep its first runs"
        time.sleep(0.01)
    race.send_signal(signal.SIGKILL)
    race.wait()
    left = len(kept(broken))
    assert 3 <= left < 18, "killed too late to show anything"
    assert not (broken / "report.html").exists()
    assert main([*RACE, "--out", str(broken)]) == 0
    assert capsys.readouterr().out.rstrip().endswith("report.html")
    pd.testing.assert_frame_equal(numbers(broken), numbers(whole), check_exact=True)
    assert not (broken / ".unfinished").exists()


def test_checkpoint_reuses_only_what_is_the_same_race(tmp_path):
    world = aw.environments.Switching(n_arms=3)

    def race(horizon=200, world=world, gamma=0.1):
        return aw.race({"Exp3": aw.Exp3(n_arms=3, gamma=gamma)}, world, horizon=horizon, seeds=2, checkpoint=tmp_path)

    first = race()
    assert len(list(tmp_path.glob("*.npz"))) == 2
    again = race()
    assert [run.seconds for run in again.runs] == [run.seconds for run in first.runs]  # read, not run
    np.testing.assert_array_equal(again.regret("Exp3"), first.regret("Exp3"))
    race(horizon=201)
    race(gamma=0.2)
    race(world=aw.environments.Switching(n_arms=3, gap=0.3))
    assert len(list(tmp_path.glob("*.npz"))) == 8


OWN_AGENT = """
import armwise as aw, numpy as np
from helper import tilt

class Own(aw.Agent):
    sees = "nothing"
    def __init__(self, n_arms, *, seed=None):
        super().__init__(seed=seed)
        self.n_arms = n_arms
    def _probabilities(self, context):
        p = np.ones(self.n_arms)
        p[{arm}] += tilt()
        return p / p.sum()
    def _learn(self, context, choice, reward):
        pass
"""
HELPER = "def tilt(): return {weight}"


def test_checkpoint_follows_the_code_of_an_edited_agent_and_of_what_it_calls(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def race(arm, weight, checkpoint=tmp_path / "runs"):
        (tmp_path / "edited_agent.py").write_text(OWN_AGENT.format(arm=arm))
        (tmp_path / "helper.py").write_text(HELPER.format(weight=weight))
        importlib.invalidate_caches()
        for name in ("edited_agent", "helper"):
            sys.modules.pop(name, None)
        agent = importlib.import_module("edited_agent").Own(3)
        world = aw.environments.Switching(n_arms=3)
        return aw.race({"own": agent}, world, horizon=60, seeds=1, checkpoint=checkpoint)

    first = race(0, 9)
    assert race(0, 9).runs[0].seconds == first.runs[0].seconds  # the same code: read, not run
    for arm, weight in ((1, 9), (0, 99)):
        np.testing.assert_array_equal(race(arm, weight).regret("own"), race(arm, weight, None).regret("own"))
    assert len(list((tmp_path / "runs").glob("*.npz"))) == 3


LOCKED = "import functools, threading\nlock = threading.Lock()\nclass S:\n  @functools.cached_property\n  "
EDITS = {  # what a run may depend on besides the text of the agent's class: each with an edit that changes the run
    "a number of a module": ("ARM = 0", "ARM = 1", "import settings", "settings.ARM"),
    "a list of a module": ("ARMS = [0]", "ARMS = [1]", "import settings", "settings.ARMS[0]"),
    "an import inside": ("def arm(): return 0", "def arm(): return 1", "", "settings.arm()"),
    "a from-import inside": ("def arm(): return 0", "def arm(): return 1", "", "arm()"),
    "a cached function": (
        "import functools\n@functools.cache\ndef arm(): return 0",
        "import functools\n@functools.cache\ndef arm(): return 1",
        "from settings import arm",
        "arm()",
    ),
    "a cached property beside a lock": (
        LOCKED + "def arm(self): return 0",
        LOCKED + "def arm(self): return 1",
        "import settings",
        "settings.S().arm",
    ),
    "an attribute of a function": (
        "def arm(): return arm.it\narm.it = 0",
        "def arm(): return arm.it\narm.it = 1",
        "from settings import arm",
        "arm()",
    ),
}
ONE_ARM = """
import armwise as aw, numpy as np
{top}

class Own(aw.Agent):
    sees = "nothing"
    def __init__(self, n_arms, *, seed=None):
        super().__init__(seed=seed)
        self.n_arms = n_arms
    def _probabilities(self, context):
        {inside}
        return np.eye(self.n_arms)[{arm}]
    def _learn(self, context, choice, reward):
        pass
"""


@pytest.mark.parametrize("what", EDITS)
def test_checkpoint_reuses_nothing_stale_whatever_was_edited(what, tmp_path, monkeypatch):
    before, after, top, arm = EDITS[what]
    inside = {"an import inside": "import settings", "a from-import inside": "from settings import arm"}.get(
        what, "pass"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "one_arm.py").write_text(ONE_ARM.format(top=top, inside=inside, arm=arm))

    def race(text, checkpoint=tmp_path / "runs"):
        (tmp_path / "settings.py").write_text(text)
        importlib.invalidate_caches()
        for name in ("one_arm", "settings"):
            sys.modules.pop(name, None)
        agent = importlib.import_module("one_arm").Own(3)
        return aw.race({"own": agent}, aw.environments.Switching(n_arms=3), horizon=60, seeds=1, checkpoint=checkpoint)

    first = race(before)
    assert race(before).runs[0].seconds == first.runs[0].seconds  # the same code: read, not run
    edited = race(after)
    np.testing.assert_array_equal(edited.regret("own"), race(after, None).regret("own"))
    assert (edited.regret("own") != first.regret("own")).any(), "an edit that changes nothing shows nothing"


class FromFile(aw.environments.Environment):
    """Chances that are read from a file when the world is made."""

    def __init__(self, path):
        self.n_arms, self.path = 3, path
        self._chances = np.loadtxt(path)

    def _blocks(self, horizon, rng):
        clicks = (rng.random((horizon, 3)) < self._chances).astype(float)
        yield aw.environments.Block({}, clicks, expected=np.tile(self._chances, (horizon, 1)))


def test_checkpoint_follows_the_data_that_a_world_has_read_and_survives_a_damaged_file(tmp_path):
    path, found = tmp_path / "chances.txt", []
    for chances in ((0.1, 0.5, 0.9), (0.9, 0.5, 0.1)):
        np.savetxt(path, chances)
        world = FromFile(str(path))
        for checkpoint in (tmp_path / "runs", None):
            found.append(aw.race([aw.UCB1(3)], world, horizon=99, seeds=1, checkpoint=checkpoint).regret("UCB1"))
    np.testing.assert_array_equal(found[2], found[3])
    assert len(list((tmp_path / "runs").glob("*.npz"))) == 2
    for damage in (b"", b"PK"):  # a full disk, a machine that lost power
        for kept_run in (tmp_path / "runs").glob("*.npz"):
            kept_run.write_bytes(damage)
        again = aw.race([aw.UCB1(3)], world, horizon=99, seeds=1, checkpoint=tmp_path / "runs")
        np.testing.assert_array_equal(again.regret("UCB1"), found[3])


def test_checkpoint_takes_lambdas_and_tells_them_apart(tmp_path):
    world = aw.environments.Linear(n_arms=2, dim=2)

    def race(policy):
        agent = aw.PolicyArms(aw.Exp3(n_arms=2), [lambda x: 0, policy], n_arms=2)
        return aw.race({"arms": agent}, world, horizon=40, seeds=1, checkpoint=tmp_path).runs[0].seconds

    least = 0.0
    assert race(lambda x: int(x[0] > least)) == race(lambda x: int(x[0] > least))
    least = 0.5  # a value that the lambda encloses
    race(lambda x: int(x[0] > least))
    race(lambda x: int(x[0] < least))
    assert len(list(tmp_path.glob("*.npz"))) == 3


def test_runs_that_failed_are_tried_again(tmp_path):
    with pytest.raises(aw.racing.RaceError, match="all 1 runs failed: bad on Linear"):
        aw.race({"bad": aw.LinUCB(dim=9)}, aw.environments.Linear(dim=4), horizon=10, seeds=1, checkpoint=tmp_path)
    assert not list(tmp_path.glob("*.npz"))


def test_a_dask_client_or_cluster_is_an_engine_and_data_goes_there_once():
    from distributed import Client, LocalCluster

    rng = np.random.default_rng(0)
    world = aw.environments.Classification(rng.standard_normal((2000, 40)), rng.integers(3, size=2000))
    agents = {"Exp3": aw.Exp3(n_arms=3)}
    here = aw.race(agents, world, horizon=30, seeds=5).regret("Exp3")
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster:
        np.testing.assert_array_equal(aw.race(agents, world, horizon=30, seeds=5, engine=cluster).regret("Exp3"), here)
        with Client(cluster) as client:
            sent = []
            submit = client.submit
            client.submit = lambda *args, **options: sent.append(args) or submit(*args, **options)
            there = aw.race(agents, world, horizon=30, seeds=5, engine=client).regret("Exp3")
            assert client.status == "running"  # it is the caller's: left open
        np.testing.assert_array_equal(there, here)
    assert len(sent) == 5 and max(len(pickle.dumps(args[3:])) for args in sent) < 1000
    assert {type(args[2]).__name__ for args in sent} == {"Future"}
    with pytest.raises(ValueError, match=r"engine must be .* a Dask Client .* got int 3"):
        aw.race(agents, world, horizon=30, engine=3)


def test_ctrl_c_ends_the_workers_without_a_traceback(tmp_path):
    # A shell starts what runs in its background deaf to Ctrl-C, and so all that these start: here it must be heard.
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); " + COMMAND[-1]
    command = [*COMMAND[:-1], heard, "race", "--world", "linear", "--agents", "linucb,exp3", "--horizon", "20000",
               "--seeds", "400", "--workers", "2", "--engine", "processes", "--out", str(tmp_path)]  # fmt: skip
    race = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            start_new_session=True)  # fmt: skip
    deadline = time.monotonic() + 90
    while len(kept(tmp_path)) < 12 and race.poll() is None:  # both workers are at it
        assert time.monotonic() < deadline, "the race did not keep its first runs"
        time.sleep(0.01)
    os.killpg(race.pid, signal.SIGINT)  # as a terminal does: to the workers too
    printed, _ = race.communicate(timeout=60)
    assert race.returncode == 130
    assert printed.strip() == f"armwise race: stopped; the same command goes on from {tmp_path / '.unfinished'}"
