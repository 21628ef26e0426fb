"""What clients ask for, and what they remember of it.

Every kind of request is a method of ``Client`` whose name is in ``KINDS``. A request that may be sent again (its
decision has an id of the client's, or it has an idempotency key) is, to any process, until it is answered; the network
may send it twice. Values of rewards are unique, so that the journal says which request a reward is from.
"""

from __future__ import annotations

from typing import Any

from tests.service.simulation.cluster import Answer, Cluster
from tests.service.simulation.kernel import Owner

TRIES = 8
WELL = (200, 201, 204)
KINDS = {
    "decide": 10, "decide_with_key": 3, "decide_once": 1, "decide_many": 3, "defer": 2, "rank": 2, "slots": 1,
    "flag": 2,
    "reward": 12, "reward_many": 4, "reward_again": 1, "look": 4, "export": 1, "conflict": 1, "version": 1,
    "settings": 1, "teach": 1, "catalogue": 1, "erase": 1, "explain": 1, "probe": 1,
}  # fmt: skip


class History:
    """What was asked for, what was answered, and what was seen."""

    def __init__(self) -> None:
        self.asked: dict[tuple[str, str], bool] = {}  # every decision that may be there; whether it is acknowledged
        self.decided: dict[tuple[str, str], tuple[str, float]] = {}  # what was answered: arm and probability
        self.keyed: dict[tuple[str, str], set[str]] = {}  # by idempotency key, the ids that were answered
        self.nameless: dict[str, int] = {}  # decisions without an id or a key that may be there
        self.rewards: dict[tuple[str, str, float], tuple[int, int]] = {}  # how often at least and at most it is there
        self.lessons: dict[tuple[str, float], tuple[int, int]] = {}
        self.subjects: dict[tuple[str, str], str] = {}  # of decisions whose subject may be erased
        self.erased: set[str] = set()  # subjects whose erasure was asked for
        self.problems: list[str] = []
        self.acknowledged = 0

    def wrong(self, problem: str) -> None:
        self.problems.append(problem)

    def decision(self, app: str, id: str, arm: str, probability: float) -> None:
        """A decision is acknowledged: every answer to it must be the same."""
        self.acknowledged += 1
        self.asked[app, id] = True
        before = self.decided.setdefault((app, id), (arm, probability))
        if before != (arm, probability):
            self.wrong(f"{id} of {app} was answered {before}, then {(arm, probability)}")


class Client(Owner):
    """One client: asks for one thing after the other."""

    def __init__(self, cluster: Cluster, history: History, name: str, requests: int) -> None:
        super().__init__(name)
        self.cluster, self.history, self.kernel = cluster, history, cluster.kernel
        self.left, self.n = requests, 0
        self.mine: list[tuple[str, str]] = []  # decisions that were acknowledged
        self.task = self.kernel.spawn(self, name, self.work, delay=2.0)

    def work(self) -> None:
        chance = self.kernel.random
        while self.left:
            self.left -= 1
            self.kernel.sleep(chance.expovariate(6.0))
            kind = chance.choices(list(KINDS), list(KINDS.values()))[0]
            getattr(self, kind)(chance.choice(("shop", "sums")))

    # ------------------------------------------------------------------ sending

    def fresh(self) -> str:
        """A name that no other request has."""
        self.n += 1
        return f"{self.name}.{self.n}"

    def value(self) -> float:
        """A number that no other reward of this schedule has."""
        self.n += 1
        return round(self.n / 4096.0 + int(self.name[1:]) / 1_048_576.0, 9)

    def send(
        self, method: str, path: str, body: Any = None, key: str = "", again: bool = True,
        allowed: tuple[int, ...] = (), header: str = "idempotency-key",
    ) -> Answer | None:  # fmt: skip
        """Send until there is an answer; None if there was none that says what became of it."""
        chance = self.kernel.random
        headers = {header: key} if key else {}
        for attempt in range(TRIES if again else 1):
            if attempt:
                self.kernel.sleep(chance.uniform(0.05, 2.0))
            place = chance.randrange(len(self.cluster.places))
            answer = self.cluster.ask(place, method, path, body, headers, twice=again and chance.random() < 0.05)
            if answer is None or answer.status == 503:
                continue
            if answer.status not in (*WELL, *allowed):
                self.history.wrong(f"{method} {path} {body}: {answer.status} {answer.body[:200]!r}")
                return None
            return answer
        return None

    # ------------------------------------------------------------------ decisions

    def body(self, id: str = "") -> dict[str, Any]:
        chance = self.kernel.random
        arms: list[Any] = ["a", {"id": "b", "features": {"size": chance.randrange(4)}}, "c"][: chance.randint(2, 3)]
        asked = {"context": {"hour": chance.randrange(3), "user": chance.choice("xyz")}, "arms": arms}
        return asked | ({"id": id} if id else {})

    def took(self, app: str, told: Any, asked: dict[str, Any]) -> None:
        self.history.decision(app, told["id"], told["arm"], told["probability"])
        self.history.subjects[app, told["id"]] = asked["context"]["user"]
        self.mine.append((app, told["id"]))

    def may_be(self, app: str, id: str, asked: dict[str, Any]) -> None:
        self.history.asked.setdefault((app, id), False)
        self.history.subjects[app, id] = asked["context"]["user"]

    def decide(self, app: str, key: str = "", **more: Any) -> None:
        asked = self.body(self.fresh()) | more
        self.may_be(app, asked["id"], asked)
        if (answer := self.send("POST", f"/apps/{app}/v1/decisions", asked, key)) is not None:
            self.took(app, answer.json, asked)

    def defer(self, app: str) -> None:
        self.decide(app, defer=True)
        if self.mine and self.mine[-1][0] == app:
            self.send("POST", f"/apps/{app}/v1/decisions/{self.mine[-1][1]}/activate", key=self.fresh(), allowed=(404,))

    def decide_with_key(self, app: str) -> None:
        asked, key = self.body(), self.fresh()
        self.history.nameless[app] = self.history.nameless.get(app, 0) + 1
        if (answer := self.send("POST", f"/apps/{app}/v1/decisions", asked, key)) is not None:
            self.took(app, answer.json, asked)
            self.history.keyed.setdefault((app, key), set()).add(answer.json["id"])
            again = self.send("POST", f"/apps/{app}/v1/decisions", asked, key)
            if again is not None and self.history.subjects[app, answer.json["id"]] not in self.history.erased:
                self.history.keyed[app, key].add(again.json["id"])

    def decide_once(self, app: str) -> None:
        asked = self.body()
        self.history.nameless[app] = self.history.nameless.get(app, 0) + 1
        if (answer := self.send("POST", f"/apps/{app}/v1/decisions", asked, again=False)) is not None:
            self.took(app, answer.json, asked)

    def decide_many(self, app: str) -> None:
        many = [self.body(self.fresh()) for _ in range(self.kernel.random.randint(1, 4))]
        for asked in many:
            self.may_be(app, asked["id"], asked)
        key = self.fresh() if self.kernel.random.random() < 0.5 else ""
        if (answer := self.send("POST", f"/apps/{app}/v1/batch/decisions", {"decisions": many}, key)) is not None:
            for told, asked in zip(answer.json["decisions"], many, strict=True):
                self.took(app, told, asked)

    def catalogue(self, app: str) -> None:
        arms = [{"id": f"arm{k}", "features": {"text": "x" * 100, "k": k}} for k in range(45)]
        stored = self.send("POST", f"/apps/{app}/v1/catalogues", {"arms": arms})
        if stored is not None:
            asked = {"id": self.fresh(), "context": {"user": "x"}, "catalogue": stored.json["catalogue"]}
            self.may_be(app, asked["id"], asked)
            answer = self.send("POST", f"/apps/{app}/v1/decisions", asked, allowed=(404,))
            if answer is not None and answer.status != 404:  # an erasure takes catalogues that nobody uses
                self.took(app, answer.json, asked)

    def rank(self, app: str) -> None:
        """The same through the adapter of Personalizer."""
        id, base = self.fresh(), f"/apps/{app}/personalizer/v1.0"
        asked = {
            "eventId": id, "contextFeatures": [{"user": "z"}, {"hour": 1}],
            "actions": [{"id": "a", "features": [{"size": 1}]}, {"id": "b", "features": []}],
        }  # fmt: skip
        self.may_be(app, id, {"context": {"user": "z"}})
        if (answer := self.send("POST", f"{base}/rank", asked)) is not None:
            told = answer.json
            chances = {each["id"]: each["probability"] for each in told["ranking"]}
            self.history.decision(app, id, told["rewardActionId"], chances[told["rewardActionId"]])
            value, key = self.value(), self.fresh()
            self._given(app, id, value, 0)
            path, header = f"{base}/events/{id}/reward", "x-ms-client-request-id"
            sent = self.send("POST", path, {"value": value}, key, header=header, allowed=(404,))
            if sent is not None and sent.status == 204:
                self._given(app, id, value, 1)

    def slots(self, app: str) -> None:
        """Several decisions of one event, through the adapter."""
        id, base = self.fresh(), f"/apps/{app}/personalizer/v1.1-preview.3/multislot"
        asked = {
            "eventId": id, "contextFeatures": [{"user": "z"}],
            "actions": [{"id": "a", "features": []}, {"id": "b", "features": []}, {"id": "c", "features": []}],
            "slots": [{"id": "top", "baselineAction": "a"}, {"id": "side", "baselineAction": "b"}],
        }  # fmt: skip
        for k in range(2):
            self.may_be(app, f"{id}\x1f{k}", {"context": {"user": "z"}})
        if (answer := self.send("POST", f"{base}/rank", asked)) is not None:
            for k in range(len(answer.json["slots"])):
                self.history.asked[app, f"{id}\x1f{k}"] = True
            self.history.acknowledged += 1

    def flag(self, app: str) -> None:
        """A unit's variant of a flag, through the adapter of OpenFeature: one decision in each window."""
        self.history.nameless["banner"] = self.history.nameless.get("banner", 0) + 2 * TRIES
        asked = {"context": {"targetingKey": self.fresh(), "plan": "pro"}}
        for _ in range(2):
            answer = self.send("POST", "/ofrep/v1/evaluate/flags/banner", asked)
            if answer is not None:
                told = answer.json["metadata"]
                self.history.decision("banner", told["decision"], answer.json["variant"], told["probability"])
                self.history.subjects["banner", told["decision"]] = "nobody"

    # ------------------------------------------------------------------ rewards

    def _some(self, app: str) -> str:
        mine = [id for owner, id in self.mine if owner == app]
        if not mine:
            self.decide(app)
            mine = [id for owner, id in self.mine if owner == app]
        return self.kernel.random.choice(mine[-5:]) if mine else ""

    def _given(self, app: str, id: str, value: float, least: int) -> None:
        before = self.history.rewards.get((app, id, value), (0, 0))
        self.history.rewards[app, id, value] = max(before[0], least), max(before[1], 1)
        self.history.acknowledged += least

    def reward(self, app: str, sent_again: bool = False) -> None:
        id, value, key = self._some(app), self.value(), self.fresh()
        if not id:
            return
        self._given(app, id, value, 0)
        for _ in range(2 if sent_again else 1):
            answer = self.send("POST", f"/apps/{app}/v1/decisions/{id}/reward", {"value": value}, key, allowed=(404,))
            if answer is not None and answer.status == 200:
                self._given(app, id, value, 1)
            self.kernel.sleep(self.kernel.random.uniform(0.0, 3.0))

    def reward_again(self, app: str) -> None:
        self.reward(app, sent_again=True)

    def reward_many(self, app: str) -> None:
        given: list[dict[str, Any]] = [
            {"id": id, "value": self.value()} for id in {self._some(app): 0, self._some(app): 0} if id
        ]
        key, path = self.fresh(), f"/apps/{app}/v1/batch/rewards"
        for each in given:
            self._given(app, each["id"], each["value"], 0)
        for order in (given, given[::-1]):  # a retry in another order is the same request
            answer = self.send("POST", path, {"rewards": order}, key, allowed=(404,))
            if answer is not None and answer.status == 200:
                for each in given:
                    self._given(app, each["id"], each["value"], 1)

    def conflict(self, app: str) -> None:
        """The same id with other content is refused, or the subject is erased and it is another decision."""
        if id := self._some(app):
            other = {"id": id, "context": {"user": "other"}, "arms": ["never", "offered"]}
            answer = self.send("POST", f"/apps/{app}/v1/decisions", other, again=False, allowed=(409,))
            if answer is not None and answer.status != 409:
                if self.history.subjects.get((app, id)) not in self.history.erased:
                    self.history.wrong(f"{id} of {app} was decided with other content: {answer.body!r}")
                self.history.decided.pop((app, id), None)
                self.mine.remove((app, id))

    # ------------------------------------------------------------------ looking

    def look(self, app: str) -> None:
        """What is acknowledged is seen at once, by whichever process is asked."""
        if not (id := self._some(app)):
            return
        history = self.history
        least = sum(low for (owner, name, _), (low, _) in history.rewards.items() if (owner, name) == (app, id))
        told = history.decided.get((app, id))
        answer = self.send("GET", f"/apps/{app}/v1/decisions/{id}", allowed=(404,))
        gone = history.subjects.get((app, id)) in history.erased
        if answer is None or gone:
            return
        if answer.status == 404:
            history.wrong(f"{id} of {app} was acknowledged and is not found")
        elif told is not None and (answer.json["arm"], answer.json["probability"]) != told:
            history.wrong(f"{id} of {app} was answered {told}, and is seen as {answer.body[:200]!r}")
        elif len(answer.json["outcomes"]) < least:
            history.wrong(f"{id} of {app}: {least} rewards were acknowledged, {answer.json['outcomes']} are seen")

    def export(self, app: str) -> None:
        """An export has all that was acknowledged before it was asked for."""
        before = [key for key, acknowledged in self.history.asked.items() if acknowledged and key[0] == app]
        answer = self.send("GET", f"/apps/{app}/v1/log?format=dsjson")
        if answer is None:
            return
        seen = {line.partition(b'"EventId":"')[2].partition(b'"')[0].decode() for line in answer.body.splitlines()}
        for _, id in before:
            if id not in seen and "\x1f" not in id and self.history.subjects[app, id] not in self.history.erased:
                self.history.wrong(f"{id} of {app} was acknowledged before an export that lacks it")

    def explain(self, app: str) -> None:
        self.send("POST", f"/apps/{app}/v1/explanations", self.body(), again=False)

    def probe(self, app: str) -> None:
        self.send("GET", "/readyz", again=False)

    # ------------------------------------------------------------------ changes

    def version(self, app: str) -> None:
        name = self.fresh()
        made = self.send("POST", f"/apps/{app}/v1/versions", {"name": name, "share": 0.25}, again=False, allowed=(409,))
        if made is not None and made.status != 409:
            if self.kernel.random.random() < 0.5:
                self.send("POST", f"/apps/{app}/v1/versions/{name}/promote", again=False, allowed=(404, 409))
            else:
                self.send("DELETE", f"/apps/{app}/v1/versions/{name}", again=False, allowed=(404, 409))

    def settings(self, app: str) -> None:
        change = {"default": self.kernel.random.choice((0.0, -0.25, -0.5))}
        self.send("PATCH", f"/apps/{app}/v1/settings", change, allowed=(409,))

    def teach(self, app: str) -> None:
        value, key = self.value(), self.fresh()
        row = {"context": {"hour": 1}, "arms": ["a", "b"], "arm": "a", "probability": 0.5, "reward": value}
        self.history.lessons[app, value] = 0, 1
        if self.send("POST", f"/apps/{app}/v1/lessons", {"rows": [row]}, key) is not None:
            self.history.lessons[app, value] = 1, 1

    def erase(self, app: str) -> None:
        """Rarely, since a subject that is erased is one of which little can be said."""
        if self.kernel.random.random() < 0.25:
            user = self.kernel.random.choice("xyz")
            self.history.erased.add(user)
            self.send("POST", f"/apps/{app}/v1/erasures", {"key": "user", "value": user})
