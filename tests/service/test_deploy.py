"""The files in ``deploy/`` as the tools that load them see them; without promtool they are only parsed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from armwise.service.engine.engine import Engine
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.events import Creation
from armwise.service.server.config import load_config
from armwise.service.server.run import MAX_GRACE, MAX_STOPPING
from armwise.service.web.metrics import Metrics
from armwise.service.web.page.watch import Watch

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"][0]["rules"]
DASHBOARD = json.loads((DEPLOY / "grafana.json").read_text())
promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed (Debian: prometheus)")


@pytest.fixture(scope="module")
def rendered() -> Iterator[str]:
    engine = Engine(SQLite.temporary(), {"shop": Creation()})
    engine.start()
    engine.decide("shop", b"{}", [b'"a"'], id="e1")
    engine.reward("shop", "e1", 1.0)
    watch = Watch(engine, "shop")
    metrics = Metrics()
    metrics.observe("POST", "v1/decisions", 201, 0.1)
    metrics.refusals["shop", "BadArgument"] += 1
    yield metrics.render(engine, look=lambda app: watch.look()).decode()
    watch.close()
    engine.stop()


def told(*words: str, text: str = "") -> str:
    """What promtool says of something that it finds right."""
    done = subprocess.run(["promtool", *words], input=text, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def expressions() -> list[str]:
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


def test_every_rule_is_whole() -> None:
    for rule in RULES:
        assert set(rule) - {"for"} == {"alert", "expr", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("page", "ticket")
    assert len({rule["alert"] for rule in RULES}) == len(RULES)


def test_the_dashboard_is_one_that_grafana_takes() -> None:
    assert DASHBOARD["schemaVersion"] >= 36
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    variables = {each["name"] for each in DASHBOARD["templating"]["list"]}
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert 0 <= place["x"] <= place["x"] + place["w"] <= 24
        assert panel["type"] in ("timeseries", "stat", "gauge", "bargauge", "table")
        assert panel["datasource"]["uid"] == "${datasource}"
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        assert set(re.findall(r"\$\{?(\w+)", json.dumps(panel))) <= variables


def test_rewards_per_decision_are_those_of_cohorts() -> None:
    """Rewards per rewarded decision are 1.000 where clicks are reported and their lack is not."""
    shown = [text for text in expressions() if "_reward_value" in text or "reward_per_decision" in text]
    assert len(shown) == 2 and all("reward_per_decision" in text for text in shown)


def test_every_label_that_the_files_use_is_there(rendered: str) -> None:
    """A label that no metric has makes an alert that can never fire."""
    labels: dict[str, set[str]] = {}
    for name, inside in re.findall(r"^(armwise_\w+)(?:\{(.*)\})? ", rendered, re.M):
        labels.setdefault(name, {"instance", "job"}).update(re.findall(r'(\w+)="', inside))
    used: list[tuple[str, str]] = []
    for text in [rule["expr"] for rule in RULES] + expressions():
        names = set(re.findall(r"\barmwise_\w+", text))
        for wanted in re.findall(r"by \(([\w, ]+)\)", text):
            used += [(name, label) for name in names for label in wanted.split(", ")]
        for name, inside in re.findall(r"(armwise_\w+)\{([^}]*)\}", text):
            used += [(name, label) for label in re.findall(r"(\w+)=", inside)]
    assert len(used) > 20
    assert [each for each in used if each[0] in labels and each[1] not in labels[each[0]]] == []


@promtool
def test_prometheus_takes_the_rules_and_the_expressions_of_the_dashboard(tmp_path: Path) -> None:
    assert f"{len(RULES)} rules found" in told("check", "rules", str(DEPLOY / "alerts.yml"))
    recorded: list[dict[str, Any]] = [
        {"record": f"panel:{i}", "expr": text.replace("$application", ".*")} for i, text in enumerate(expressions())
    ]
    (tmp_path / "panels.yml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": recorded}]}))
    assert f"{len(recorded)} rules found" in told("check", "rules", str(tmp_path / "panels.yml"))


@promtool
def test_prometheus_finds_nothing_wrong_with_the_metrics(rendered: str) -> None:
    told("check", "metrics", text=rendered)


SERIES = {  # what makes each alert fire: series, and the minute at which it does
    "ArmwiseJournalNotWritable": ({'armwise_journal_healthy{instance="a"}': "0x10"}, "2m"),
    "ArmwiseNobodyLeads": ({'armwise_leader{instance="a"}': "0x10", 'armwise_leader{instance="b"}': "0x10"}, "2m"),
    "ArmwiseLearningLags": ({'armwise_journal_lag{instance="a"}': "20000x10"}, "7m"),
    "ArmwiseQueueGrows": ({'armwise_queue_depth{instance="a"}': "6000x10"}, "3m"),
    "ArmwiseCommitsAreSlow": (
        {'armwise_commit_seconds_bucket{le="0.5"}': "0+0x20", 'armwise_commit_seconds_bucket{le="1.0"}': "0+60x20",
         'armwise_commit_seconds_bucket{le="+Inf"}': "0+60x20"}, "15m",
    ),
    "ArmwiseServerErrors": (
        {'armwise_requests_total{status="503"}': "0+2x20", 'armwise_requests_total{status="201"}': "0+60x20"}, "15m",
    ),
    # The seventeenth alarm: no more than sixteen are remembered, so that a count of them would not grow any more.
    "ArmwiseDrift": (
        {'armwise_drift_alarms{application="shop"}': "16x20", 'armwise_drift_evidence{application="shop"}': "0x20",
         'armwise_drift_last_alarm{application="shop"}': "5000x10 9000x10"}, "15m",
    ),
    "ArmwiseNoRewards": ({'armwise_decisions_total{application="shop",arm="a"}': "0+60x90"}, "80m"),
    "ArmwiseRewardsAreLate": (
        {'armwise_late_rewards_total{application="shop"}': "0+30x150",
         'armwise_rewards_total{application="shop",arm="a"}': "0+60x150"}, "140m",
    ),
    "ArmwiseLessonsRefused": ({'armwise_model_refused{application="shop"}': "0+1x20"}, "15m"),
    "ArmwiseKeysRefused": ({'armwise_refused_keys_total{instance="a"}': "0+120x20"}, "15m"),
    "ArmwiseClockJumps": ({'armwise_clock_jumps_total{instance="a"}': "0x5 1x10"}, "10m"),
}  # fmt: skip
NOBODY = {"armwise_something": "0x10"}  # every process is gone


@promtool
def test_each_alert_fires_when_it_should_and_not_when_all_is_well(tmp_path: Path) -> None:
    assert set(SERIES) == {rule["alert"] for rule in RULES}
    well = {
        'armwise_journal_healthy{instance="a"}': "1x200", 'armwise_leader{instance="a"}': "1x200",
        'armwise_leader{instance="b"}': "0x200", 'armwise_journal_lag{instance="a"}': "10x200",
        'armwise_queue_depth{instance="a"}': "3x200", 'armwise_requests_total{status="201"}': "0+60x200",
        'armwise_decisions_total{application="shop",arm="a"}': "0+60x200",
        'armwise_rewards_total{application="shop",arm="a"}': "0+6x200",
        'armwise_late_rewards_total{application="shop"}': "0x200",
        'armwise_drift_last_alarm{application="shop"}': "0x200",
        'armwise_drift_evidence{application="shop"}': "0.1x200",
    }  # fmt: skip
    cases = [([name], series, at, True) for name, (series, at) in SERIES.items()]
    cases.append((list(SERIES), well, "180m", False))
    cases.append((["ArmwiseNobodyLeads"], NOBODY, "3m", True))
    tests = [
        {
            "interval": "1m",
            "input_series": [{"series": key, "values": values} for key, values in series.items()],
            "promql_expr_test": [
                {
                    "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) > bool 0 or vector(0)',
                    "eval_time": at,
                    "exp_samples": [{"labels": "{}", "value": float(fires)}],
                }
                for name in names
            ],
        }
        for names, series, at, fires in cases
    ]
    (tmp_path / "alerts.yml").write_text((DEPLOY / "alerts.yml").read_text())
    whole = {"rule_files": [str(tmp_path / "alerts.yml")], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "test.yml").write_text(yaml.safe_dump(whole))
    told("test", "rules", str(tmp_path / "test.yml"))


# ---------------------------------------------------------------------- what runs the service


def test_the_unit_agrees_with_how_the_service_ends_and_reloads() -> None:
    unit = (DEPLOY / "armwise.service").read_text()
    told_in_docs = (DEPLOY.parent / "docs" / "operations.md").read_text()
    seconds = int(re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.M)[0])
    assert seconds > MAX_GRACE + MAX_STOPPING, "systemd would kill what still learns"
    assert f"ends a process within {MAX_GRACE + MAX_STOPPING:g} s" in told_in_docs
    assert "ExecReload=/bin/kill -HUP $MAINPID" in unit and "SIGHUP reads the file again" in told_in_docs
    started = re.findall(r"^ExecStart=\S+ serve (\S+)$", unit, re.M)
    assert started == ["/etc/armwise/armwise.toml"], "a copy of the file would never change, whatever is reloaded"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = (DEPLOY / "armwise.service").read_text().replace("/opt/armwise/bin/armwise", "/bin/true")
    (tmp_path / "armwise.service").write_text(unit)
    words = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "armwise.service")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    ours = [line for line in done.stderr.splitlines() if "armwise.service:" in line]
    assert ours == [], done.stderr


def test_the_example_is_a_configuration_whose_key_may_read_the_metrics() -> None:
    config = load_config(DEPLOY / "armwise.toml")
    assert config.keys[0].may("read", "shop") and config.keys[0].may("decide", "shop")


def test_the_manifest_is_whole(tmp_path: Path) -> None:
    secret, deployment, service = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    (tmp_path / "armwise.toml").write_text(secret["stringData"]["armwise.toml"])
    config = load_config(tmp_path / "armwise.toml")
    spec = deployment["spec"]
    pod = spec["template"]["spec"]
    [container] = pod["containers"]
    assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0 and spec["replicas"] > 1
    assert pod["terminationGracePeriodSeconds"] > MAX_GRACE + MAX_STOPPING + 5
    assert container["ports"][0]["containerPort"] == config.port == service["spec"]["ports"][0]["port"]
    paths = {container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("readiness", "liveness", "startup")}
    assert paths == {"/readyz", "/healthz"}
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"] == service["spec"]["selector"]
    assert pod["volumes"][0]["secret"]["secretName"] == secret["metadata"]["name"]
    assert container["args"][-1] == f"{container['volumeMounts'][0]['mountPath']}/{next(iter(secret['stringData']))}"


def test_the_image_has_the_source_and_no_secrets() -> None:
    ignored = (DEPLOY.parent / ".dockerignore").read_text().splitlines()
    assert {".git", ".venv", "armwise-data", "build", "**/*.so"} <= set(ignored)
    for needed in ("src", "pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE"):
        assert needed not in ignored
    image = (DEPLOY / "Dockerfile").read_text()
    assert "USER 10001" in image and "STOPSIGNAL SIGTERM" in image


@pytest.mark.parametrize("name", sorted(path.name for path in DEPLOY.iterdir()))
def test_every_file_is_mentioned_in_the_documents(name: str) -> None:
    assert f"deploy/{name}" in (DEPLOY.parent / "docs" / "operations.md").read_text()
