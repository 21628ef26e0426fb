"""Merge the models of several databases: their sums are added, the prior counts once.

Every database's own model stays the fold of its own journal. What decisions are made from is a view: the merged agent
and the merged scale of numbers, with the version and the settings of the database that the decision is journaled in.
A journaled decision names the scale it was made with, so whoever folds it need not know the others' numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise.core.capabilities.merging import can_merge, why_not_merged
from armwise.features.encoding.running_scale import Scaler
from armwise.features.encoding.tokens import InvalidInput
from armwise.service.journal.events import Creation
from armwise.service.model.build import build_model
from armwise.service.model.drawing.draws import Draws
from armwise.service.model.inside import copied, counts_choices
from armwise.service.model.model import Model
from armwise.service.model.versions import Challenger, by_role, role


def check_merges(app: str, creation: Creation) -> None:
    """Raise InvalidInput if the model of an application cannot be merged over several databases."""
    agent = build_model(creation).agent
    if can_merge(agent) and not counts_choices(agent):
        return
    why = "choosing changes it, and several choose at once" if can_merge(agent) else why_not_merged(agent)
    raise InvalidInput(
        f"applications.{app}: {type(agent).__name__} cannot be sharded over several databases: {why}; give it an agent "
        "that merges, such as a LinUCB or LinThompson that forgets nothing, or keep it in one database"
    )


def merge(parts: list[Model]) -> list[Model]:
    """A view for each database, in order, and one of the whole; ValueError if the models were not made alike.

    Versions are merged as the leading one is.
    """
    roles = [by_role(part) for part in parts]
    if any(role(part.name) != role(parts[0].name) for part in parts) or any(set(r) != set(roles[0]) for r in roles):
        raise ValueError("they have other versions")
    scaler = parts[0].scaler if len(parts) == 1 else merged_scaler([part.scaler for part in parts])
    views = _views(parts, scaler)
    for key in sorted(roles[0], key=lambda each: list(parts[0].versions).index(roles[0][each])):
        own = [part.versions[each[key]] for part, each in zip(parts, roles)]
        broken = max(one.broken for one in own)
        if not broken and any(one.share != own[0].share for one in own):
            raise ValueError("their versions have other shares")
        for view, model in zip(views, _views([one.model for one in own], scaler)):
            view.versions[model.name] = beside = Challenger(model)
            beside.broken = broken
            beside.share = 0.0 if broken else own[0].share
    return views


def _views(parts: list[Model], scaler: Scaler) -> list[Model]:
    """The same for models without versions."""
    agent: Any = parts[0].agent
    if len(parts) > 1:
        agent = copied(agent)
        for part in parts[1:]:
            if (part.encoder.dim, part.encoder.interactions) != (parts[0].encoder.dim, parts[0].encoder.interactions):
                raise ValueError("their features differ")
            agent.merge(part.agent)
    alone = None if parts[0].alone is None else parts[0].alone.copy()
    for part in parts[1:]:
        if alone is not None and part.alone is not None:
            alone.merge(part.alone)
    counts = parts[0].counts.copy()
    for part in parts[1:]:
        counts.merge(part.counts)
    views = []
    for part in [*parts, parts[0]]:
        view = Model(agent, part.encoder, part.arms, part.rewards)
        view.scaler, view.settings, view.counts, view.alone = scaler, part.settings, counts, alone
        view.draws = Draws(agent, part.draws)
        view.version, view.since, view.versions_changed_at = part.version, part.since, part.versions_changed_at
        view.assumed = part.assumed
        view.name, view.previous = part.name, part.previous
        view.lessons, view.refused = sum(p.lessons for p in parts), sum(p.refused for p in parts)
        view.drift, view.reward_ends = part.drift, part.reward_ends
        views.append(view)
    whole = views[-1]
    whole.version = sum(part.version for part in parts)
    whole.drift = max((part.drift for part in parts), key=lambda drift: drift.evidence).copy()
    whole.drift.alarms = [alarm for part in parts for alarm in part.drift.alarms]
    return views


def merged_scaler(parts: list[Scaler]) -> Scaler:
    """The scale of numbers from the parts that several models saw (Chan, Golub, LeVeque 1979)."""
    whole = Scaler()
    whole.names = np.unique(np.concatenate([part.names for part in parts]))
    whole.counts, whole.means, whole.squares = (np.zeros(len(whole.names)) for _ in range(3))
    for part in parts:
        at = np.searchsorted(whole.names, part.names)
        n, mean, delta = whole.counts[at], whole.means[at], part.means - whole.means[at]
        total = np.maximum(n + part.counts, 1.0)
        whole.counts[at] = n + part.counts
        whole.means[at] = mean + delta * part.counts / total
        whole.squares[at] += part.squares + delta * delta * n * part.counts / total
    return whole
