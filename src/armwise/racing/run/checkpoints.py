"""Finished runs on disk, one file each: an interrupted race continues where it stopped."""

from __future__ import annotations

import os
import tempfile
import zipfile
from functools import cached_property
from pathlib import Path

import numpy as np

from armwise.core import saving
from armwise.racing.run.fingerprint import fingerprint
from armwise.racing.run.heat import Heat, Run


class Store:
    """A folder of finished runs. The name of a file is a hash of settings and code (``fingerprint``), so that no stale
    run is reused.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._heats: dict[
            tuple[int, str], tuple[Heat, str]
        ] = {}  # with the heat itself, so that no other object gets its id

    def _path(self, heat: Heat, name: str, seed: int) -> Path:
        known = (id(heat), name)
        if known not in self._heats:
            # All data of the world, such as what it read from a file, but no cached properties.
            held = vars(heat.world).items()
            own = {k: v for k, v in held if not isinstance(getattr(type(heat.world), k, None), cached_property)}
            world = (type(heat.world), heat.world.params(), own)
            # A clone with a fixed seed: the hash must not depend on the state of the agent's generator.
            watched = (heat.recorded, dict(heat.metrics), heat.callbacks, heat.keep)
            name_of_it = fingerprint((world, name, heat.agents[name].clone(seed=0), heat.horizon, watched))
            self._heats[known] = heat, name_of_it
        return self.folder / f"{self._heats[known][1]}-{seed}.npz"

    def load(self, heat: Heat, name: str, seed: int) -> Run | None:
        """Return the finished run, or None if there is none or its file is damaged."""
        path = self._path(heat, name, seed)
        try:
            return self._read(path, name, seed)
        except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile):  # missing or damaged
            return None

    @staticmethod
    def _read(path: Path, name: str, seed: int) -> Run:
        with np.load(path, allow_pickle=False) as data:
            return Run(
                name, seed, data["regret"], data["reward"], data["counts"], float(data["seconds"]), data["arms"],
                seconds_at=data["seconds_at"],
                metrics={each.removeprefix("metric "): data[each] for each in data.files if each.startswith("metric ")},
                final=saving.loads(data["final"].tobytes()) if "final" in data else None,
            )  # fmt: skip

    def save(self, heat: Heat, run: Run) -> None:
        """Write a run atomically; failed runs are not written, so that they are tried again."""
        if run.error:
            return
        path = self._path(heat, run.agent, run.seed)
        handle, temporary = tempfile.mkstemp(dir=self.folder, suffix=".part")
        with os.fdopen(handle, "wb") as file:
            extra = {f"metric {name}": values for name, values in run.metrics.items()}
            if run.final is not None:
                extra["final"] = np.frombuffer(saving.dumps(run.final), np.uint8)
            np.savez(file, regret=run.regret, reward=run.reward, counts=run.counts, seconds=np.float64(run.seconds),
                     seconds_at=run.seconds_at, arms=np.asarray(run.arms), **extra)  # type: ignore[arg-type]  # fmt: skip
        os.replace(temporary, path)

    def clear(self) -> None:
        """Delete the runs kept here (and only those)."""
        for path in [*self.folder.glob("*.npz"), *self.folder.glob("*.part")]:
            path.unlink()
        if not any(self.folder.iterdir()):
            self.folder.rmdir()
