"""Packages that only some work needs: if one is missing, the error names the extra and the command that installs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

# The extra that most people want who meet this import; a caller who knows better says so.
EXTRA_OF = {
    "dask": "dask", "distributed": "dask", "httptools": "serve", "joblib": "race", "matplotlib": "race",
    "pandas": "race", "psycopg": "serve", "pyarrow": "offline", "scipy": "scipy",
    "sklearn": "sklearn", "threadpoolctl": "race", "tqdm": "race", "uvicorn": "serve", "uvloop": "serve",
}  # fmt: skip


class MissingExtra(ModuleNotFoundError):
    """A package is not installed that this needs.

    >>> print(MissingExtra("tqdm", "race"))
    tqdm is not installed, which this needs: pip install 'armwise[race]'
    """

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(f"{module} is not installed, which this needs: pip install 'armwise[{extra}]'", name=module)
        self.extra = extra


def expect(module: str, extra: str | None = None) -> None:
    """Refuse now what would miss a package later, in the middle of its work.

    >>> expect("numpy")
    >>> expect("no_such_package")
    Traceback (most recent call last):
    ...
    armwise.core.extras.MissingExtra: no_such_package is not installed, which this needs: pip install 'armwise[all]'
    """
    if find_spec(module) is None:
        raise MissingExtra(module, extra or EXTRA_OF.get(module, "all"))


@contextmanager
def needs(extra: str | None = None) -> Iterator[None]:
    """Around the imports of an extra's packages.

    >>> with needs("race"):
    ...     import no_such_package
    Traceback (most recent call last):
    ...
    armwise.core.extras.MissingExtra: no_such_package is not installed, which this needs: pip install 'armwise[race]'
    """
    try:
        yield
    except MissingExtra:
        raise
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module == "armwise" or (extra is None and module not in EXTRA_OF):
            raise
        raise MissingExtra(module, extra or EXTRA_OF[module]) from None
