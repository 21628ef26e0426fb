"""The result of a race on one world: regret, reward and time, as tables, files, pictures and a page."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.core.agent import fraction
from armwise.core.tools.extras import needs
from armwise.core.tools.text_tables import html_table, text_table
from armwise.environments.environment import Environment
from armwise.racing.results import archive, paired
from armwise.racing.results.certificates import certify
from armwise.racing.results.matching_bound import Bound, bound
from armwise.racing.results.measured import Measured
from armwise.racing.results.tables import paper_table
from armwise.racing.run.heat import Heat, Player, Run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from armwise.racing.report.pictures import Kind
    from armwise.theory.certificate import Certificate


class Result(Measured):
    """The runs of one heat, with their summaries.

    >>> import armwise as aw
    >>> result = aw.race([aw.Exp3(n_arms=3)], aw.environments.Switching(n_arms=3), horizon=200, seeds=4)
    >>> result.regret("Exp3").shape == (4, len(result.rounds))
    True
    """

    def __init__(self, heat: Heat, seeds: list[int], runs: list[Run], command: str = "") -> None:
        super().__init__(heat, seeds, runs)
        self.command = command
        self._certificates: dict[tuple[str, float], Certificate | str] = {}
        self._theorems: dict[str, Bound | str] = {}

    def theorem(self, name: str) -> Bound | str:
        """The regret bound of this agent on this world, or one sentence that says why there is none.

        >>> import armwise as aw
        >>> result = aw.race([aw.Exp3(3, gamma=1.0)], aw.environments.Switching(n_arms=3), horizon=200, seeds=1)
        >>> result.theorem("Exp3")
        'its bound asks for gamma = 0.0979 at T = 200 (Exp3.theoretical), and gamma is 1'
        """
        if name not in self._theorems:
            self._theorems[name] = bound(self.agents[name], self.world, self.horizon, self.heat.letters.get(name))
        return self._theorems[name]

    def bound(self, name: str) -> tuple[Callable[[int], float] | None, str]:
        """The agent's regret bound as a function of T, or None and the reason why there is none.

        >>> import armwise as aw
        >>> result = aw.race([aw.Exp3.theoretical(3, 200)], aw.environments.Switching(n_arms=3), horizon=200, seeds=1)
        >>> round(result.bound("Exp3")[0](200))
        68
        """
        found = self.theorem(name)
        return (None, found) if isinstance(found, str) else (found.curve, "")

    def verdict(self, name: str) -> tuple[str, str]:
        """Compare the bound with these runs: "below", "above", "vacuous" or "none", and a sentence.

        A high-probability bound is compared with every seed, a bound in expectation with the mean.

        >>> import armwise as aw
        >>> result = aw.race([aw.Exp3.theoretical(3, 20)], aw.environments.Switching(n_arms=3), horizon=20, seeds=1)
        >>> result.verdict("Exp3")
        ('vacuous', 'vacuous until T = 23')
        """
        found = self.theorem(name)
        if isinstance(found, str) or name not in self.finishers:
            return "none", found if isinstance(found, str) else "no run finished"
        until = found.vacuous_until
        if until is not None:
            return "vacuous", f"vacuous until T = {round_number(until)}"
        final = self.regret(name)[:, -1]
        measured = final.mean() if found.holds == "in expectation" else final.max()
        return ("below", f"holds, {found.holds}") if measured <= found.curve(self.horizon) else ("above", "above it")

    def certificate(self, name: str, delta: float = 0.05) -> Certificate | str:
        """Certify the regret of the first seed from its own rounds, or say why that is impossible.

        See ``aw.certificate``. The certificate assumes the reward model that this world states.

        >>> import armwise as aw
        >>> result = aw.race([aw.LinUCB(3, alpha=0.3)], aw.environments.Linear(4, 3), horizon=500, seeds=1)
        >>> bool(result.regret("LinUCB")[0, -1] < result.certificate("LinUCB").regret)
        True
        """
        fraction("delta", delta)
        if (name, delta) not in self._certificates:
            self._certificates[name, delta] = certify(self.heat, self._recorded(name), delta)
        return self._certificates[name, delta]

    def _recorded(self, name: str) -> Run | None:
        return next((run for run in self.runs_of(name) if run.arms is not None), None)

    def differences(self, against: str | None = None) -> pd.DataFrame:
        """Mean difference of final regret between agents, paired by seed, with standard error, interval and p-value.

        All pairs, or all against one. ``unpaired_std_error`` is the error that independent worlds would give;
        ``adjusted_p`` is Holm's adjusted p-value over the rows of this table.

        >>> import armwise as aw
        >>> agents = {"wide": aw.LinUCB(4, alpha=2.0), "narrow": aw.LinUCB(4, alpha=0.1)}
        >>> table = aw.race(agents, aw.environments.Linear(5, 4), horizon=300, seeds=6).differences()
        >>> bool(table.loc[0, "adjusted_p"] < 0.05)
        True
        """
        with needs("race"):
            import pandas as pd

        rows = []
        for pair in paired.differences(self, against):
            low, high = pair.interval()
            rows.append({"agent": pair.agent, "other": pair.other, "difference": pair.mean,
                         "std_error": pair.std_error, "low": low, "high": high,
                         "unpaired_std_error": pair.unpaired_std_error, "seeds": pair.seeds,
                         "p": pair.p_value, "adjusted_p": pair.adjusted})  # fmt: skip
        names = ["agent", "other", "difference", "std_error", "low", "high", "unpaired_std_error", "seeds", "p",
                 "adjusted_p"]  # fmt: skip
        return pd.DataFrame(rows, columns=names)

    def wins(self, level: float = 0.05) -> pd.DataFrame:
        """1 where the agent of a row has significantly less regret than the agent of a column (paired t-test, Holm).

        >>> import armwise as aw
        >>> agents = {"wide": aw.LinUCB(4, alpha=2.0), "narrow": aw.LinUCB(4, alpha=0.1)}
        >>> aw.race(agents, aw.environments.Linear(5, 4), horizon=300, seeds=6).wins().loc["narrow", "wide"].item()
        1
        """
        with needs("race"):
            import pandas as pd

        table = pd.DataFrame(0, index=self.finishers, columns=self.finishers)
        for pair in paired.differences(self):
            if pair.adjusted < level:
                better, worse = (pair.agent, pair.other) if pair.mean < 0 else (pair.other, pair.agent)
                table.loc[better, worse] = 1
        return table

    def table(self) -> pd.DataFrame:
        """One row per agent, the smallest regret first: mean, standard error, quantiles, time, bound.

        A certificate is about one run: ``certified_seed`` and ``certified_regret`` are that run's seed and regret.

        >>> import armwise as aw
        >>> result = aw.race([aw.Exp3(n_arms=3)], aw.environments.Switching(n_arms=3), horizon=200, seeds=4)
        >>> result.table().loc[0, "runs"].item()
        4
        """
        with needs("race"):
            import pandas as pd

        rows: list[dict[str, Any]] = []
        for name in self.agents:
            failed = sum(1 for run in self.runs if run.agent == name and run.error)
            row: dict[str, Any] = {"agent": name, "runs": len(self.runs_of(name)), "failed": failed}
            if name in self.finishers:
                final = self.regret(name)[:, -1]
                curve, _ = self.bound(name)
                proved = self.certificate(name)
                row |= {
                    "regret": final.mean(),
                    "std_error": final.std(ddof=1) / np.sqrt(len(final)) if len(final) > 1 else np.nan,
                    "regret_q05": np.quantile(final, 0.05),
                    "regret_median": np.median(final),
                    "regret_q95": np.quantile(final, 0.95),
                    "regret_max": final.max(),
                    "bound": np.nan if curve is None else curve(self.horizon),
                    "bound_note": self.verdict(name)[1],
                    "certified_seed": recorded.seed if (recorded := self._recorded(name)) else None,
                    "certified_regret": recorded.regret[-1] if recorded else np.nan,
                    "certificate": np.nan if isinstance(proved, str) else proved.regret,
                    "certificate_note": proved if isinstance(proved, str) else str(proved),
                    "reward": self.reward(name)[:, -1].mean(),
                    **{each: self.metric(each, name)[:, -1].mean() for each in self.costs},
                    **({"stopped_at": self._median_stop(name)} if self.searchers else {}),
                    "us_per_decision": 1e6 * self.seconds_per_decision(name),
                }
            rows.append(row)
        frame = pd.DataFrame(rows)
        if "regret" in frame:
            frame = frame.sort_values("regret", kind="stable", na_position="last")
        return frame.reset_index(drop=True)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write ``curves()`` as Parquet.

        >>> import armwise as aw, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "race.parquet"
        >>> aw.race([aw.Exp3(n_arms=3)], aw.environments.Switching(n_arms=3), horizon=20, seeds=1).to_parquet(path)
        >>> path.stat().st_size > 0
        True
        """
        self.curves().to_parquet(path, index=False)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write ``curves()`` as CSV (see ``to_parquet``)."""
        self.curves().to_csv(path, index=False)

    def to_latex(self, caption: str = "", label: str = "") -> str:
        """A booktabs table: mean final regret and its standard error; the best agent and ties with it in bold.

        >>> import armwise as aw
        >>> print(aw.race([aw.UCB1(3)], aw.environments.Switching(3), horizon=20, seeds=2).to_latex().splitlines()[0])
        \\begin{table}
        """
        return paper_table([self], "latex", caption, label)

    def to_markdown(self, caption: str = "") -> str:
        """The same table in Markdown.

        >>> import armwise as aw
        >>> aw.race([aw.UCB1(3)], aw.environments.Switching(3), horizon=20, seeds=2).to_markdown()[:9]
        '| agent |'
        """
        return paper_table([self], "markdown", caption)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the runs and how to repeat them into one file, without pickle.

        A world or agent without a file format (one that holds a lambda) is left out, and ``load`` asks for it. The
        values of ``metrics`` are saved, their functions are not.

        >>> import armwise as aw, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "race.aw"
        >>> aw.race([aw.UCB1(3)], aw.environments.Switching(3), horizon=20, seeds=2).save(path)
        >>> aw.racing.Result.load(path)
        Result(Switching: UCB1; T=20, 2 seeds)
        """
        archive.save([self], path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        agents: Mapping[str, Player] | None = None,
        world: Environment | None = None,
    ) -> Result:
        """Read what ``save`` wrote; ``agents`` and ``world`` replace what could not be saved."""
        found = archive.load(path, agents, world)
        if len(found) != 1:
            raise ValueError(f"{os.fspath(path)} holds {len(found)} worlds: use Results.load")
        return found[0]

    def merge(self, other: Result) -> Result:
        """Merge the runs of two results of one world: more seeds, or other agents.

        >>> import armwise as aw
        >>> world = aw.environments.Switching(3)
        >>> first = aw.race([aw.UCB1(3)], world, horizon=20, seeds=[0, 1])
        >>> first.merge(aw.race([aw.UCB1(3)], world, horizon=20, seeds=[2])).seeds
        [0, 1, 2]
        """
        return archive.merge(self, other)

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        kind: Kind = "regret",
        width: float | str | None = None,
    ) -> Figure:
        """Draw a picture and return its matplotlib figure: regret, loglog, bounds, arms, time, cost,
        stopping (the share of runs whose search for the best arm has stopped) or clicks (by slot of a list).

        ``width`` ("column", "page" or inches) makes it a figure for print: that wide, small text, a band of two
        standard errors. A path that ends in .pdf, .svg or .eps is written as vectors.

        >>> import armwise as aw
        >>> result = aw.race([aw.Exp3(n_arms=3)], aw.environments.Switching(n_arms=3), horizon=200, seeds=4)
        >>> len(result.plot(kind="loglog").axes)
        1
        """
        with needs("race"):
            from armwise.racing.report import paper, pictures

        if width is not None:
            figure: Figure = paper.panels([self], kind, width)
            if path is not None:
                paper.write(figure, path)
            return figure
        figure = pictures.draw(self, kind)
        if path is not None:
            figure.savefig(path, dpi=150, bbox_inches="tight")
        return figure

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write one self-contained page: pictures, a sortable table, and how to repeat the race.

        >>> import armwise as aw, tempfile, pathlib
        >>> result = aw.race([aw.Exp3(n_arms=3)], aw.environments.Switching(n_arms=3), horizon=200, seeds=4)
        >>> result.report(pathlib.Path(tempfile.mkdtemp()) / "report.html").name
        'report.html'
        """
        with needs("race"):
            from armwise.racing.report.report import write_report

        return write_report([self], path)

    def _summary(self) -> tuple[list[str], list[list[str]], str]:
        """Headings, one row per agent with the smallest regret first, and a line that describes the race."""
        regret = {name: self.regret(name)[:, -1] for name in self.finishers}
        rows = []
        for name in sorted(regret, key=lambda name: float(regret[name].mean())):
            final, (curve, _) = regret[name], self.bound(name)
            error = f"{final.std(ddof=1) / np.sqrt(len(final)):.1f}" if len(final) > 1 else "-"
            reward = float(self.reward(name)[:, -1].mean()) / self.horizon
            bound = "-" if curve is None else f"{curve(self.horizon):,.0f}"
            paid = [f"{self.metric(each, name)[:, -1].mean() / self.horizon:.4g}" for each in self.costs]
            stop = [f"{self._median_stop(name):,.0f}".replace("nan", "-")] if self.searchers else []
            rows.append([name, f"{final.mean():,.1f}", error, f"{reward:.3f}", bound, *paid, *stop])
        blank = [""] * (3 + len(self.costs) + bool(self.searchers))
        rows += [[name, "failed", *blank] for name in self.agents if name not in regret]
        about = f"{self.label}, T = {self.horizon:,}, {self._n_seeds}; regret against {self.world.comparator}"
        extra = [f"{each} per decision" for each in self.costs] + ["median stop"] * bool(self.searchers)
        earned = "reward per decision" if self.world.n_slots is None else "reward per list"
        return ["agent", "regret", "std. error", earned, "bound", *extra], rows, about

    def _median_stop(self, name: str) -> float:
        """The median round at which the search stopped; NaN where half of the runs or more went on."""
        if name not in self.searchers:
            return math.nan
        times = self.stopping_times(name)
        median = float(np.median(np.where(np.isnan(times), np.inf, times)))
        return median if median < math.inf else math.nan

    @property
    def _n_seeds(self) -> str:
        return f"{len(self.seeds)} seed{'s' * (len(self.seeds) > 1)}"

    def __str__(self) -> str:
        """A table of at most 80 columns for a handful of agents; ``table()`` has everything.

        >>> import armwise as aw
        >>> print(aw.race([aw.UCB1(3)], aw.environments.Switching(n_arms=3), horizon=200, seeds=4))
        agent  regret  std. error  reward per decision  bound
        UCB1    ...
        """
        headings, rows, about = self._summary()
        return f"{text_table(headings, rows)}\n{about}"

    def _repr_html_(self) -> str:
        headings, rows, about = self._summary()
        return html_table(headings, rows, note=about)

    def __repr__(self) -> str:
        return f"Result({self.label}: {', '.join(self.agents)}; T={self.horizon}, {self._n_seeds})"


def round_number(value: int) -> str:
    """Format a round number in full, or above a million by its power."""
    return f"{value:,}" if value < 10**6 else f"{value:.1e}"
