"""What clients ask for, and what they remember of it.

Every kind of request is a method of ``Client`` whose name is in ``KINDS``; together they ask for every route of the
service (``test_simulation.py`` says which are left out, and why). A request that may be sent again (its
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
    "decide": 10, "decide_with_key": 3, "decide_once": 1, "decide_many": 3, "defer": 2, "spend": 3,
    "reward": 12, "reward_many": 4, "reward_again": 1, "look": 4, "export": 1, "conflict": 1,
    "ranking": 3, "rank": 2, "slots": 1, "flag": 3, "assign": 4, "outcome": 3, "expose": 1, "experiment": 1,
    "version": 1, "settings": 1, "teach": 1, "catalogue": 1, "erase": 1, "explain": 1, "probe": 1,
    "personalizer": 2, "evaluation": 1, "application": 1,
}  # fmt: skip
MARK = "\x1f"  # between the id of a list and the number of a slot
UNITS = 6  # of each experiment; the last one may be erased
EXPERIMENTS = {  # by name; in the second a unit counts when it is exposed
    name: {
        "arms": ["control", "blue"], "start": 2, "planned": 20, "exposure": name == "seen",
        "metrics": [{"name": "revenue", "kind": "amount", "window": 5.0},
                    {"name": "harm", "guardrail": True, "tolerance": 0.1, "window": 4.0}],
    }
    for name in ("test", "seen")
}  # fmt: skip
LEARNING = '{"class": "LinUCB", "alpha": %s}'  # learning settings in Personalizer's sense


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
        self.units: dict[tuple[str, str], str | None] = {}  # of experiments: the arm that was answered; None: none was
        self.unit_rewards: dict[tuple[str, str, float], int] = {}  # how often at least it is there
        self.anew: set[str] = set()  # applications whose log was deleted, or that were retired
        self.when: dict[tuple[str, str], float] = {}  # when a decision was first asked for
        self.now = lambda: 0.0
        self.retained = 0.0  # seconds after which a decision may be dropped; 0: it is kept
        self.routes: set[tuple[str, str]] = set()  # method and path of every route that was asked
        self.problems: list[str] = []
        self.acknowledged = 0

    def wrong(self, problem: str) -> None:
        self.problems.append(problem)

    def may_be(self, app: str, id: str, subject: str = "") -> None:
        """A decision is asked for: from now on it may be there."""
        self.asked.setdefault((app, id), False)
        self.when.setdefault((app, id), self.now())
        if subject:
            self.subjects[app, id] = subject

    def gone(self, app: str, id: str) -> bool:
        """Whether a decision may have been dropped, or its application be gone."""
        aged = self.retained > 0.0 and self.now() - self.when.get((app, id), 0.0) > 0.8 * self.retained
        return aged or app in self.anew or self.subjects.get((app, id)) in self.erased

    def decision(self, app: str, id: str, arm: str, probability: float) -> None:
        """A decision is acknowledged: every answer to it must be the same."""
        self.acknowledged += 1
        self.may_be(app, id)
        self.asked[app, id] = True
        before = self.decided.setdefault((app, id), (arm, probability))
        if before != (arm, probability) and not self.gone(app, id):
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
        self.history.routes.add(self.cluster.route(method, path))
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
        self.history.may_be(app, told["id"], asked["context"]["user"])
        self.history.decision(app, told["id"], told["arm"], told["probability"])
        self.mine.append((app, told["id"]))

    def may_be(self, app: str, id: str, asked: dict[str, Any]) -> None:
        self.history.may_be(app, id, asked["context"]["user"])

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
            if again is not None and not self.history.gone(app, answer.json["id"]):
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
        asked: dict[str, Any] = {
            "eventId": id, "contextFeatures": [{"user": "z"}, {"hour": 1}],
            "actions": [{"id": "a", "features": [{"size": 1}]}, {"id": "b", "features": []}],
            "deferActivation": self.kernel.random.random() < 0.3,
        }  # fmt: skip
        self.may_be(app, id, {"context": {"user": "z"}})
        if (answer := self.send("POST", f"{base}/rank", asked)) is not None:
            told = answer.json
            if asked["deferActivation"]:
                self.send("POST", f"{base}/events/{id}/activate", allowed=(404,))
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
        asked: dict[str, Any] = {
            "eventId": id, "contextFeatures": [{"user": "z"}],
            "actions": [{"id": "a", "features": []}, {"id": "b", "features": []}, {"id": "c", "features": []}],
            "slots": [{"id": "top", "baselineAction": "a"}, {"id": "side", "baselineAction": "b"}],
        }  # fmt: skip
        asked["deferActivation"] = deferred = self.kernel.random.random() < 0.5
        for k in range(2):
            self.may_be(app, f"{id}{MARK}{k}", {"context": {"user": "z"}})
        if self.send("POST", f"{base}/rank", asked) is None:
            return
        for k in range(2):
            self.history.asked[app, f"{id}{MARK}{k}"] = True
        self.history.acknowledged += 1
        header = "x-ms-client-request-id"
        if deferred:
            self.send("POST", f"{base}/events/{id}/activate", key=self.fresh(), header=header, allowed=(404,))
        value, key, body = self.value(), self.fresh(), {"reward": [{"slotId": "side", "value": 0.0}]}
        body["reward"][0]["value"] = value
        self._given(app, f"{id}{MARK}1", value, 0)
        sent = self.send("POST", f"{base}/events/{id}/reward", body, key, header=header, allowed=(404,))
        if sent is not None and sent.status == 204:
            self._given(app, f"{id}{MARK}1", value, 1)

    def ranking(self, app: str) -> None:
        """A list: each slot is a decision, and is rewarded by its arm or its number."""
        id, chance = self.fresh(), self.kernel.random
        arms = ["a", {"id": "b", "features": {"size": 1}}, "c"]
        asked: dict[str, Any] = {"id": id, "context": {"user": "z", "hour": chance.randrange(3)}, "arms": arms, "k": 2}
        for k in range(2):
            self.may_be(app, f"{id}{MARK}{k}", asked)
        answer = self.send("POST", f"/apps/{app}/v1/rankings", asked)
        if answer is None:
            return
        slots = answer.json["slots"]
        for k, each in enumerate(slots):
            self.history.decision(app, f"{id}{MARK}{k}", each["arm"], each["probability"])
        if len({each["arm"] for each in slots}) != 2:
            self.history.wrong(f"the list {id} of {app} shows an arm twice: {answer.body!r}")
        slot, value, key = chance.randrange(2), self.value(), self.fresh()
        self._given(app, f"{id}{MARK}{slot}", value, 0)
        given = {"slots": {str(slot): value}} if chance.random() < 0.5 else {"rewards": {slots[slot]["arm"]: value}}
        sent = self.send("POST", f"/apps/{app}/v1/rankings/{id}/rewards", given, key, allowed=(404,))
        if sent is not None and sent.status == 200:
            self._given(app, f"{id}{MARK}{slot}", value, 1)
        found = self.send("GET", f"/apps/{app}/v1/rankings/{id}", allowed=(404,))
        if found is None or self.history.gone(app, f"{id}{MARK}0"):
            return
        if found.status == 404:
            self.history.wrong(f"the list {id} of {app} was acknowledged and is not found")
        elif [each["arm"] for each in found.json["slots"]] != [each["arm"] for each in slots]:
            self.history.wrong(f"the list {id} of {app} was {answer.body!r}, and is seen as {found.body!r}")

    def spend(self, app: str) -> None:
        """A decision that a hard budget of all processes must cover; its true cost comes with its reward."""
        asked: dict[str, Any] = {"id": self.fresh(), "context": {"user": "nobody"}, "arms": ["free", "dear"]}
        self.may_be("paid", asked["id"], asked)
        answer = self.send("POST", "/apps/paid/v1/decisions", asked)
        if answer is None:
            return
        self.history.decision("paid", answer.json["id"], answer.json["arm"], answer.json["probability"])
        if self.kernel.random.random() < 0.5:
            value, cost = self.value(), 0.2 if answer.json["arm"] == "dear" else 0.0
            self._given("paid", asked["id"], value, 0)
            path = f"/apps/paid/v1/decisions/{asked['id']}/reward"
            sent = self.send("POST", path, {"value": value, "cost": cost}, self.fresh(), allowed=(404,))
            if sent is not None and sent.status == 200:
                self._given("paid", asked["id"], value, 1)

    def flag(self, app: str) -> None:
        """A unit's variant of a flag, through the adapter of OpenFeature: one decision in each window."""
        self.history.nameless["banner"] = self.history.nameless.get("banner", 0) + 3 * TRIES
        chance, history, context = self.kernel.random, self.history, {"plan": "pro"}
        context["targetingKey"] = chance.choice([self.fresh(), "unit1", "unit2"])
        ids = []
        for path in ("ofrep/v1/evaluate/flags/banner", "apps/banner/ofrep/v1/evaluate/flags"):
            answer = self.send("POST", f"/{path}", {"context": context})
            if answer is not None:
                told = answer.json if "key" in answer.json else answer.json["flags"][0]
                it = told["metadata"]
                history.may_be("banner", it["decision"], "nobody")
                history.decision("banner", it["decision"], told["variant"], it["probability"])
                ids.append(it["decision"])
        if not ids:
            return
        if chance.random() < 0.3:
            body: dict[str, Any] = {"name": "exposure", "context": context, "details": {"flag": "banner"}}
            self.send("POST", "/ofrep/v1/track", body, allowed=(404,))
        value = self.value()
        body = {"name": "sale", "context": context, "details": {"flag": "banner", "decision": ids[-1], "value": value}}
        self._given("banner", ids[-1], value, 0)
        sent = self.send("POST", "/ofrep/v1/track", body, self.fresh(), allowed=(404,))
        if sent is not None and sent.status == 200:
            self._given("banner", ids[-1], value, 1)

    # ------------------------------------------------------------------ experiments

    def _test(self) -> tuple[str, str, str]:
        """The name of an experiment, made by now if it can be; its path; a unit."""
        name = self.kernel.random.choice(list(EXPERIMENTS))
        path = f"/v1/experiments/{name}"
        self.send("PUT", path, EXPERIMENTS[name], allowed=(409,))
        return name, path, f"unit{self.kernel.random.randrange(UNITS)}"

    def assign(self, app: str) -> None:
        """A unit keeps its arm, whichever process is asked."""
        name, path, unit = self._test()
        units = [unit, f"unit{self.kernel.random.randrange(UNITS - 1)}"]
        for each in units:
            self.history.units.setdefault((name, each), None)
        body = {"units": [{"unit": each, "context": {"hour": self.kernel.random.randrange(2)}} for each in units]}
        answer = self.send("POST", f"{path}/assignments", body, allowed=(404,))  # it is not known there yet
        if answer is None or answer.status == 404:
            return
        for told in answer.json["assignments"]:
            if told["reason"] == "assigned" and told["unit"] != f"unit{UNITS - 1}":
                self.history.acknowledged += 1
                before = self.history.units[name, told["unit"]] or told["arm"]
                self.history.units[name, told["unit"]] = before
                if before != told["arm"] and not self.history.retained:
                    self.history.wrong(f"{told['unit']} of {name} had {before}, and now {told['arm']}")

    def expose(self, app: str) -> None:
        name, path, unit = self._test()
        self.history.units.setdefault((name, unit), None)
        self.send("POST", f"{path}/exposures", {"units": [unit]}, allowed=(404,) if name == "seen" else (400, 404))

    def outcome(self, app: str) -> None:
        """An outcome with an id counts once."""
        name, path, unit = self._test()
        value = self.value()
        self.history.unit_rewards[name, unit, value] = 0
        body = {"outcomes": [{"unit": unit, "value": value, "id": self.fresh()}]}
        for _ in range(2):
            answer = self.send("POST", f"{path}/outcomes", body, allowed=(404,))
            if answer is None or answer.status == 404:
                continue
            if answer.json["outcomes"][0]["status"] != "not in the experiment":
                self.history.unit_rewards[name, unit, value] = 1
                self.history.acknowledged += 1

    def experiment(self, app: str) -> None:
        """Look at one, or change it."""
        _, path, _ = self._test()
        chance = self.kernel.random
        change = {"ramp": chance.choice((0.5, 1.0)), "mode": chance.choice(("split", "adaptive")),
                  "split": {"control": 0.5, "blue": 0.5}, "force": {"tester": "blue"}}  # fmt: skip
        what = chance.choice(("verdict", "report?format=json", "report", "", "list", "erase", *change))
        if what in change:
            self.send("PATCH", path, {what: change[what], "why": "to see"}, allowed=(404, 409))
        elif what == "erase":
            self.send("POST", f"{path}/erasures", {"unit": f"unit{UNITS - 1}"}, allowed=(404,))
        else:
            self.send("GET", "/v1/experiments" if what == "list" else f"{path}/{what}".rstrip("/"), allowed=(404,))

    # ------------------------------------------------------------------ Personalizer's administration

    def _note(self) -> None:
        """A decision of the application that is configured, imported and begun anew."""
        asked: dict[str, Any] = {"id": self.fresh(), "context": {"user": "nobody"}, "arms": ["a", "b"]}
        self.may_be("notes", asked["id"], asked)
        answer = self.send("POST", "/apps/notes/v1/decisions", asked)
        if answer is not None:
            self.history.decision("notes", answer.json["id"], answer.json["arm"], answer.json["probability"])

    def personalizer(self, app: str) -> None:
        self._note()
        chance, base = self.kernel.random, "/apps/notes/personalizer/v1.0"
        for _ in range(3):
            method, path, body = chance.choice(self._administration(chance.choice((0.5, 1.0))))
            if (method, path) == ("DELETE", "logs"):
                self.history.anew.add("notes")
            self.send(method, f"{base}/{path}", body, allowed=(404, 409), again=method != "DELETE")
        if (model := self.send("GET", f"{base}/model")) is not None and chance.random() < 0.5:
            self.send("PUT", f"{base}/model", model.body, allowed=(400, 409))  # it may be of another agent now

    def _administration(self, number: float) -> list[tuple[str, str, Any]]:
        policy = {"name": "mine", "arguments": LEARNING % number}
        return [
            ("GET", "configurations/service", None), ("PUT", "configurations/service", {"defaultReward": -number}),
            ("GET", "configurations/policy", None), ("PUT", "configurations/policy", policy),
            ("DELETE", "configurations/policy", None), ("DELETE", "model", None), ("GET", "model/properties", None),
            ("GET", "logs/properties", None), ("DELETE", "logs", None),
        ]  # fmt: skip

    def evaluation(self, app: str) -> None:
        """An offline evaluation, looked at until it is done, put in force, and deleted."""
        self._note()
        base, dated = "/apps/notes/personalizer/v1.0", "?api-version=2022-09-01-preview"
        policy = {"name": "mine", "arguments": LEARNING % 0.25}
        body = {"name": "one", "startTime": "2020-01-01", "endTime": "2030-01-01", "policies": [policy]}
        id, header = self.fresh(), "x-ms-client-request-id"
        if self.kernel.random.random() < 0.5:
            made = self.send("PUT", f"/apps/notes/personalizer/evaluations/{id}{dated}", body, allowed=(400, 409))
        else:
            made = self.send("POST", f"{base}/evaluations", body, id, header=header, allowed=(400, 409))
        if made is None or made.status >= 400:  # as many are kept as may be
            return
        id = made.json["id"]
        self.send("GET", f"{base}/evaluations")
        self.kernel.sleep(1.0)
        if self.send("GET", f"{base}/evaluations/{id}", allowed=(404,)) is not None:
            chosen = {"evaluationId": id, "policyName": "mine"}
            self.send("POST", f"{base}/configurations/applyFromEvaluation", chosen, allowed=(404, 409))
            self.send("DELETE", f"{base}/evaluations/{id}", again=False, allowed=(404, 409))

    def application(self, app: str) -> None:
        """An application that is made by request, used, and retired."""
        name = f"extra{self.name}"
        self.send("PUT", f"/v1/apps/{name}", {"features": {"dim": 8}, "window": 3.0}, allowed=(409,))
        asked: dict[str, Any] = {"id": self.fresh(), "context": {"user": "nobody"}, "arms": ["a", "b"]}
        self.may_be(name, asked["id"], asked)
        answer = self.send("POST", f"/apps/{name}/v1/decisions", asked, allowed=(404,))  # it is not known there yet
        if answer is not None and answer.status != 404:
            self.history.decision(name, answer.json["id"], answer.json["arm"], answer.json["probability"])
        if self.kernel.random.random() < 0.3:
            self.send("DELETE", f"/v1/apps/{name}", again=False, allowed=(404, 409))

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
                if not self.history.gone(app, id):
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
        if answer is None or history.gone(app, id):
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
            if id not in seen and MARK not in id and not self.history.gone(app, id):
                self.history.wrong(f"{id} of {app} was acknowledged before an export that lacks it")

    def explain(self, app: str) -> None:
        self.send("POST", f"/apps/{app}/v1/explanations", self.body(), again=False)

    def probe(self, app: str) -> None:
        paths = ("/readyz", "/healthz", "/metrics", "/openapi.json", "/v1/agents", f"/apps/{app}/v1/versions", "/")
        self.send("GET", self.kernel.random.choice(paths), again=False)

    # ------------------------------------------------------------------ changes

    def version(self, app: str) -> None:
        name, may = self.fresh(), (400, 404, 409)  # others may have all of the decisions, or have changed it meanwhile
        path = f"/apps/{app}/v1/versions"
        made = self.send("POST", path, {"name": name, "share": 0.25}, again=False, allowed=may)
        if made is not None and made.status < 400:
            if self.kernel.random.random() < 0.5:
                self.send("PATCH", f"{path}/{name}", {"share": 0.5}, again=False, allowed=may)
                self.send("POST", f"{path}/{name}/promote", again=False, allowed=may)
                if self.kernel.random.random() < 0.5:
                    self.send("POST", f"/apps/{app}/v1/rollback", again=False, allowed=may)
            else:
                self.send("DELETE", f"{path}/{name}", again=False, allowed=may)

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
