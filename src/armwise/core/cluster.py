"""Dask clusters: a client from what users have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from armwise.core.extras import needs

ENGINES = '"dask" (for the client that is open), "dask://host:port", a Dask Client or a Dask cluster'


def is_dask(engine: Any) -> bool:
    """Whether this names a Dask cluster, rather than work on this machine.

    >>> is_dask("dask://10.0.0.1:8786"), is_dask("threads")
    (True, False)
    """
    return not isinstance(engine, str) or engine == "dask" or engine.startswith("dask://")


def check_dask(engine: Any, accepted: str = ENGINES) -> None:
    """Refuse what is no Dask cluster; ``accepted`` says what is."""
    if isinstance(engine, str) and is_dask(engine):
        return
    with needs("dask"):
        from distributed import Client
        from distributed.deploy.cluster import Cluster

    if not isinstance(engine, (Client, Cluster)):
        raise ValueError(f"engine must be {accepted}, got {type(engine).__name__} {engine!r:.80}")


@contextmanager
def dask_client(engine: Any) -> Iterator[Any]:
    """A client of the cluster; one that was open is left open."""
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
