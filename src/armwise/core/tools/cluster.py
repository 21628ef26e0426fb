"""Dask clusters: make a client from an address, a client or a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from armwise.core.tools.extras import needs

ENGINES = '"dask" (for the client that is open), "dask://host:port", a Dask Client or a Dask cluster'


def is_dask(engine: Any) -> bool:
    """Return whether an engine is a Dask cluster and not this machine."""
    return not isinstance(engine, str) or engine == "dask" or engine.startswith("dask://")


def check_dask(engine: Any, accepted: str = ENGINES) -> None:
    """Raise ValueError for an engine that is not a Dask cluster; ``accepted`` describes valid ones."""
    if isinstance(engine, str) and is_dask(engine):
        return
    with needs("dask"):
        from distributed import Client
        from distributed.deploy.cluster import Cluster

    if not isinstance(engine, (Client, Cluster)):
        raise ValueError(f"engine must be {accepted}, got {type(engine).__name__} {engine!r:.80}")


@contextmanager
def dask_client(engine: Any) -> Iterator[Any]:
    """Open a client of the cluster; a client that was passed in is left open."""
    with needs("dask"):
        from distributed import Client

    if isinstance(engine, Client):
        yield engine
        return
    if isinstance(engine, str) and engine == "dask":
        try:
            client = Client.current()  # type: ignore[no-untyped-call]
        except ValueError:
            raise ValueError(
                "engine='dask' means the Dask client that is open, and none is: open one with "
                "distributed.Client('host:port'), or say engine='dask://host:port'"
            ) from None
        yield client
        return
    where = "tcp://" + engine.removeprefix("dask://") if isinstance(engine, str) else engine
    with Client(where) as client:  # type: ignore[no-untyped-call]
        yield client
