"""Draw the README's picture: PYTHONPATH=tools python -m docsite.picture."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

import armwise as aw
from armwise.models.ridge import Ridge
from armwise.racing import Result
from armwise.racing.report import pictures

TARGET = Path(__file__).parent.parent.parent / "docs" / "images" / "regret.png"


def linear() -> Result:
    """Four ways to explore over one ridge model."""
    agents = {
        "EpsilonGreedy": aw.EpsilonGreedy(model=Ridge(20), epsilon=0.05),
        "LinThompson": aw.LinThompson(20, v=0.2),
        "SquareCB": aw.SquareCB(20, gamma=100.0),
        "LinUCB": aw.LinUCB(20, alpha=0.3),
    }
    return aw.race(agents, aw.environments.Linear(n_arms=10, dim=20, noise=0.1), horizon=5_000, seeds=20)


def adversarial() -> Result:
    """Rewards that change sides, and agents whose bounds hold whoever chooses them."""
    T = 20_000
    agents = {
        "Doubling Exp3": aw.Doubling("Exp3.theoretical", {"n_arms": 5}),
        "Exp3": aw.Exp3.theoretical(5, T),
    }
    return aw.race(agents, aw.environments.Switching(n_arms=5), horizon=T, seeds=20)


def main() -> None:
    """Write the picture: regret with bands on the left, regret beside its bounds on the right."""
    panels = []
    drawn: list[tuple[Result, pictures.Kind, str]] = [
        (linear(), "regret", "Linear rewards: regret of four agents"),
        (adversarial(), "bounds", "Adversarial rewards: regret beside its bound"),
    ]
    for result, kind, title in drawn:
        figure = pictures.draw(result, kind)
        figure.set_facecolor("white")
        figure.suptitle(title, fontsize=10, color=pictures.INK)
        figure.subplots_adjust(top=0.92, right=0.96)  # room for the title, and for the last tick's label
        path = TARGET.with_name(f"{kind}.part.png")
        figure.savefig(path, dpi=150)
        panels.append(Image.open(path).convert("RGB"))
        path.unlink()
        print(result.table()[["agent", "regret", "regret_max", "bound"]].to_string())
    wide = Image.new("RGB", (sum(panel.width for panel in panels), max(panel.height for panel in panels)), "white")
    wide.paste(panels[0], (0, 0))
    wide.paste(panels[1], (panels[0].width, 0))
    wide.quantize(64).save(TARGET, optimize=True)


if __name__ == "__main__":
    main()
