"""Results of several worlds raced in one call: by name, with tables and figures across worlds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from armwise.core.tools.extras import needs
from armwise.environments.environment import Environment
from armwise.racing.results import archive
from armwise.racing.results.result import Result
from armwise.racing.results.tables import paper_table
from armwise.racing.run.heat import Player

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from armwise.racing.report.pictures import Kind


class Results(Mapping[str, Result]):
    """The results of several worlds, by the world's name, in the order they were raced.

    >>> import armwise as aw
    >>> worlds = {"two arms": aw.environments.Switching(n_arms=2), "five arms": aw.environments.Switching(n_arms=5)}
    >>> results = aw.race(lambda world: [aw.UCB1(world.n_arms)], worlds, horizon=100, seeds=2)
    >>> list(results), results["five arms"].world.n_arms
    (['two arms', 'five arms'], 5)
    """

    def __init__(self, results: list[Result]) -> None:
        self._results = {result.label: result for result in results}
        if len(self._results) < len(results):
            raise ValueError(f"worlds must have different names, got {[result.label for result in results]}")

    def __getitem__(self, name: str) -> Result:
        return self._results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def table(self) -> pd.DataFrame:
        """The tables of all worlds, one below the other, with the world in the first column."""
        return self._stacked("table")

    def curves(self) -> pd.DataFrame:
        """The curves of all worlds (see ``Result.curves``)."""
        with needs("race"):
            import pandas as pd

        return pd.concat([result.curves() for result in self.values()], ignore_index=True)

    def differences(self, against: str | None = None) -> pd.DataFrame:
        """Paired differences on every world (see ``Result.differences``)."""
        return self._stacked("differences", against)

    def wins(self, level: float = 0.05) -> pd.DataFrame:
        """On how many worlds the agent of a row beats the agent of a column significantly (see ``Result.wins``)."""
        tables = [result.wins(level) for result in self.values()]
        names = list(dict.fromkeys(name for table in tables for name in table.index))
        whole = [table.reindex(index=names, columns=names, fill_value=0) for table in tables]
        total: pd.DataFrame = sum(whole[1:], whole[0])
        return total

    def _stacked(self, method: str, *args: Any) -> pd.DataFrame:
        with needs("race"):
            import pandas as pd

        frames = {name: getattr(result, method)(*args) for name, result in self.items()}
        for name, frame in frames.items():
            frame.insert(0, "world", name)
        stacked: pd.DataFrame = pd.concat(list(frames.values()), ignore_index=True)
        return stacked

    def to_latex(self, caption: str = "", label: str = "") -> str:
        """A booktabs table, one row per agent and one column per world (see ``Result.to_latex``)."""
        return paper_table(list(self.values()), "latex", caption, label)

    def to_markdown(self, caption: str = "") -> str:
        """The same in Markdown."""
        return paper_table(list(self.values()), "markdown", caption)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write ``curves()`` as Parquet."""
        self.curves().to_parquet(path, index=False)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write ``curves()`` as CSV."""
        self.curves().to_csv(path, index=False)

    def plot(
        self, path: str | os.PathLike[str] | None = None, kind: Kind = "regret", width: float | str = "page"
    ) -> Figure:
        """One panel per world, side by side under one legend; ``width`` as in ``Result.plot``.

        >>> import armwise as aw
        >>> results = aw.race([aw.UCB1(3)], [aw.environments.Switching(3)] * 3, horizon=100, seeds=2)
        >>> len(results.plot().axes)
        3
        """
        with needs("race"):
            from armwise.racing.report import paper

        figure = paper.panels(list(self.values()), kind, width)
        if path is not None:
            paper.write(figure, path)
        return figure

    def report(self, path: str | os.PathLike[str], title: str = "A race of bandits") -> Path:
        """Write one self-contained page for all worlds (see ``Result.report``)."""
        with needs("race"):
            from armwise.racing.report.report import write_report

        return write_report(list(self.values()), path, title)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything into one file (see ``Result.save``)."""
        archive.save(list(self.values()), path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        agents: Mapping[str, Player] | None = None,
        world: Mapping[str, Environment] | None = None,
    ) -> Self:
        """Read what ``save`` wrote (see ``Result.load``)."""
        return cls(archive.load(path, agents, world))

    def merge(self, other: Results) -> Results:
        """Merge two collections: results of worlds with the same name are merged (see ``Result.merge``)."""
        merged = [self[name].merge(other[name]) if name in other else self[name] for name in self]
        return Results([*merged, *(other[name] for name in other if name not in self)])

    def __str__(self) -> str:
        return "\n\n".join(str(result) for result in self.values())

    def __repr__(self) -> str:
        return f"Results({', '.join(self)})"
