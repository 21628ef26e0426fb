"""Tests import their helpers (checks, cases) by name, from wherever pytest is started; and share a Dask cluster."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "tools")]

collect_ignore = ["typing"]  # code for type checkers to read: make check does


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """host:port of a Dask scheduler with two workers, as processes of their own."""
    from distributed import Client

    import armwise

    folder = tmp_path_factory.mktemp("dask")
    where, written = folder / "scheduler.json", folder / "dask.log"
    environment = os.environ | {"PYTHONPATH": str(Path(armwise.__file__).parents[1])}
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
               "--no-dashboard", "--dashboard-address", "127.0.0.1:0",  # its HTTP server starts even so, on 8787
               "--scheduler-file", str(where)]  # fmt: skip
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(where), "--nthreads", "1",
              "--no-nanny", "--no-dashboard"]  # fmt: skip
    with written.open("w") as log:
        processes = [subprocess.Popen(each, stdout=log, stderr=log, env=environment, cwd=folder)
                     for each in (command, worker, worker)]  # fmt: skip
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
            for process in reversed(processes):
                process.terminate()
                process.wait(timeout=30)
