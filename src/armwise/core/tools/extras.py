"""Optional packages: if one is missing, the error names the extra and the command that installs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

# The extra that provides a package, unless the caller names another one.
EXTRA_OF = {
    "dask": "dask", "distributed": "dask", "httptools": "serve", "joblib": "race", "matplotlib": "race",
    "pandas": "race", "psycopg": "serve", "pyarrow": "offline", "scipy": "scipy",
    "sklearn": "sklearn", "threadpoolctl": "race", "tqdm": "race", "uvicorn": "serve", "uvloop": "serve",
}  # fmt: skip


class MissingExtra(ModuleNotFoundError):
    """A package is not installed that the call needs."""

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(f"{module} is not installed, which this needs: pip install 'armwise[{extra}]'", name=module)
        self.extra = extra


def expect(module: str, extra: str | None = None) -> None:
    """Raise ``MissingExtra`` at once, not in the middle of the work, if a package is not installed."""
    if find_spec(module) is None:
        raise MissingExtra(module, extra or EXTRA_OF.get(module, "all"))


@contextmanager
def needs(extra: str | None = None) -> Iterator[None]:
    """Turn a failed import of an optional package into ``MissingExtra``."""
    try:
        yield
    except MissingExtra:
        raise
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module == "armwise" or (extra is None and module not in EXTRA_OF):
            raise
        raise MissingExtra(module, extra or EXTRA_OF[module]) from None
