"""One application as a configuration describes it."""

from __future__ import annotations

from typing import Any

import msgspec

from armwise.features.encoding.arms import check_id
from armwise.features.encoding.tokens import InvalidInput
from armwise.service.journal.events import DEFAULT_AGENT, DEFAULT_MAX_PAIRS, FORGET, MIN_MAX_PAIRS, Creation, Settings
from armwise.service.model.build import build_model
from armwise.service.model.model import Model

MAX_VARIANTS = 100
_KINDS = {bool: "boolean", str: "string", int: "number", float: "number", dict: "object"}


class Application(msgspec.Struct, forbid_unknown_fields=True):
    """One application: its agent and how it learns. Every field may be left out."""

    agent: dict[str, Any] = msgspec.field(default_factory=lambda: dict(DEFAULT_AGENT))
    features: dict[str, Any] = {}
    arms: list[str] = []
    rewards: list[float] = []  # lowest and highest; an agent that takes [0, 1] learns them mapped onto it
    seed: int = 1
    window: float = 600.0
    default: float = 0.0
    rule: str = "earliest"
    learn: str = ""
    apprentice: bool = False
    drift: str = FORGET
    new_arms: float = 0.1  # at most this share of a decision for arms that are new beside known ones; 1: no limit
    max_pairs: int = DEFAULT_MAX_PAIRS  # of a context's and an arm's features in one request
    policies: dict[str, dict[str, Any]] = {}  # what the page compares with, each described like an agent
    variants: dict[str, Any] = {}  # as a feature flag: the value of each arm
    control: str = ""  # as a feature flag: the arm of the units that experiments hold out, which teach it nothing

    def __post_init__(self) -> None:
        if self.max_pairs < MIN_MAX_PAIRS:
            raise ValueError(f"max_pairs must be at least {MIN_MAX_PAIRS}, got {self.max_pairs}")

    def check(self) -> None:
        """Raise InvalidInput if the application's agent, or a policy to compare it with, cannot be built."""
        for arm in self.arms:
            check_id("an arm's id", arm)
        check_flag_variants(self.variants)
        if self.variants and self.arms and sorted(self.variants) != sorted(self.arms):
            raise InvalidInput(f"variants must be the arms {self.arms}, got {list(self.variants)}")
        if self.control and self.control not in (names := list(self.variants) or self.arms):
            raise InvalidInput(f"control must be one of the arms {names}, got {self.control!r:.60}")
        build_model(self.creation())
        rivals(self.creation())

    def creation(self) -> Creation:
        """The event that creates the application."""
        settings = Settings(
            self.window, self.default, self.rule, self.learn, self.apprentice, max_pairs=self.max_pairs,
            policies=self.policies, drift=self.drift, new_arms=self.new_arms,
            extra={name: each for name in ("variants", "control") if (each := getattr(self, name))},
        )  # fmt: skip
        return Creation(self.agent, self.features, self.arms, self.seed, settings, self.rewards)


def check_flag_variants(variants: dict[str, Any], what: str = "variants") -> None:
    """InvalidInput unless these are values of one type, by variant; ``what`` is the name of the argument."""
    if not variants:
        return
    kinds = []
    for name, value in variants.items():
        if not isinstance(name, str):
            raise InvalidInput(f"{what} must be named by texts, got {name!r:.60}")
        check_id("a variant", name)
        if (kind := _KINDS.get(value.__class__)) is None:
            raise InvalidInput(f"{what}.{name} must be a boolean, a string, a number or an object, got {value!r:.60}")
        kinds.append(kind)
    if len(set(kinds)) > 1:
        raise InvalidInput(f"{what} must have values of one type, got {' and '.join(sorted(set(kinds)))}")
    if len(variants) > MAX_VARIANTS:
        raise InvalidInput(f"{what} must be at most {MAX_VARIANTS}, got {len(variants)}")


def rivals(creation: Creation) -> dict[str, Model]:
    """The untrained policies to compare with, by name; InvalidInput names a bad one."""
    found = {}
    for name, agent in creation.settings.policies.items():
        try:
            found[name] = build_model(msgspec.structs.replace(creation, agent=agent))
        except (InvalidInput, MemoryError, OverflowError) as error:
            raise InvalidInput(f"policies.{name}: {error}") from None
    return found
