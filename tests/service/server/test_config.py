"""The configuration file: what is wrong with it is said, with its place, before anything is stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from armwise.cli.main import main
from armwise.features.encoding.tokens import InvalidInput
from armwise.service.engine.application import Application
from armwise.service.engine.engine import Engine
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.events import Creation, Settings
from armwise.service.model import build
from armwise.service.model.build import build_model
from armwise.service.server.config import Config, load_config, open_store
from armwise.service.web.keys import Key, digest

KEY = f'[[keys]]\nname = "site"\nsha256 = "{digest("x")}"\nroles = ["decide"]\n'
NEWS = "[applications.shop]\n[applications.news]\n"


def key(name: str = "k", secret: str = "s", **rest: Any) -> Key:
    return Key(name=name, sha256=digest(secret), **({"roles": ["read"]} | rest))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (NEWS + 'agent = {class = "LinUBC"}', "applications.news: agent: .*'LinUBC'; did you mean 'LinUCB'?"),
        (NEWS + "agent = {alpha = 1}", "applications.news: agent must say which one.*'alpha': 1"),
        (NEWS + "agent = 7", "applications.news: agent: Expected `object`, got `int`"),
        (NEWS + 'agent = {class = "LinUCB", alhpa = 1}', "applications.news: agent: .*'alhpa'"),
        (NEWS + 'agent = {class = "Ridge"}', "applications.news: agent: .*Ridge"),
        (NEWS + "window = -1", "applications.news: window must be seconds above 0"),
        (NEWS + 'window = "soon"', "applications.news: window: Expected `float`"),
        (NEWS + 'rule = "last"', "applications.news: rule must be earliest, latest, sum, mean, max or min"),
        (NEWS + "rewards = [1, 0]", "applications.news: rewards must be the lowest and the highest"),
        (NEWS + "default = nan", "applications.news: default: .*nan"),
        (NEWS + "rewards = [0, 1]\ndefault = 2", r"applications.news: default: .*\[0.0, 1.0\], got 2"),
        (NEWS + 'features = {interactions = "no"}', "applications.news: features: interactions must be true or false"),
        (NEWS + 'arms = ["a", ""]\nagent = {class = "UCB1", n_arms = 2}', "applications.news: an arm's id must have"),
        (NEWS + 'agent = {class = "Explore", epsilon = 0.1, agent = {alpha = 1}}', "applications.news: agent: .*alpha"),
        (NEWS + "colour = 1", "applications.news: there is no setting 'colour'$"),
        (NEWS + "features = {dims = 3}", "applications.news: features: .*dims"),
        (NEWS + "features = {dim = 1000000000}", "applications.news: features: dim must be at most 8192.*1000000000"),
        (NEWS + 'agent = {class = "LinUCB", dim = 99999999}', "applications.news: agent: dim must be .* to 8192"),
        (NEWS + 'agent = {class = "LinUCB", n_arms = 999999999999}', "applications.news: agent: .*memory"),
        (
            NEWS + 'features = {dim = 2000}\nagent = {class = "LinUCB", n_arms = 3}',
            "applications.news: agent: it takes 9. MB of memory, at most 64 are accepted: lower the dim .* 2000",
        ),
        (
            NEWS + 'arms = ["a", "b", "a"]\nagent = {class = "UCB1", n_arms = 3}',
            "applications.news: arms: 'a' is named twice",
        ),
        (NEWS + 'policies.bold = {class = "LinUBC"}', "applications.news: policies.bold: agent: .*LinUBC"),
        (NEWS + "policies.bold = 3", "applications.news: policies.*Expected `object`"),
        ("[applications]\nnews = 3", "applications.news: Expected `object`, got `int`"),
        ('[applications."a\\u0007"]', "applications.*control characters"),
        ("applications = 3", "applications: Expected `object`"),
        ("[applications]", "at least one application"),
        ("snapshot_every = -5", "snapshot_every must be seconds above 0, got -5"),
        ("snapshot_every = nan", "snapshot_every must be seconds above 0, got nan"),
        ("snapshot_every = inf", "snapshot_every must be seconds above 0, got inf"),
        ('log_level = "loud"', "log_level must be debug, info, warning or error, got 'loud'"),
        ("max_body = 3", "max_body must be at least 1024"),
        ('listen = "127.0.0.1"', "listen must be address:port, such as 127.0.0.1:8484, got '127.0.0.1'"),
        ('listen = "localhost"', "listen must be address:port"),
        ('listen = "127.0.0.1:"', "listen must be address:port"),
        ('listen = "127.0.0.1:99999"', "listen must be address:port"),
        ('listen = "127.0.0.1:²"', "listen must be address:port"),
        ('listen = "[::1]"', "listen must be address:port"),
        ('listen = "0.0.0.0:80"', "others can reach"),
        (KEY.replace('"decide"', ""), "roles of key 'site' must name at least one of read, decide, reward, admin"),
        (KEY + 'applications = ["shpo"]\n[applications.shop]', "key 'site' is for the application 'shpo'.*only shop"),
        (KEY + KEY.replace(digest("x"), digest("y")), "two keys have the name 'site'"),
        (KEY + KEY.replace("site", "other"), "the keys 'site' and 'other' have the same sha256"),
        (KEY.replace("name", "nmae"), r"keys\[0\]: there is no setting 'nmae'; did you mean 'name'\?"),
        ('storage = "postgresq://user:hunter2@host/db"', "storage must be a folder.*got postgresq://..."),
        ('storage = ""', "storage must be a folder.*got nothing"),
        ('storage = ["postgresql://host/a", 3]', r"storage\[1\]: Expected `str`, got `int`"),
        (NEWS + 'arms = ["a", 3]', r"applications.news: arms\[1\]: Expected `str`, got `int`"),
        (KEY.replace('sha256 = "', 'hash = "'), r"keys\[0\]: there is no setting 'hash'"),
        (KEY.replace('roles = ["decide"]', ""), r"keys\[0\]: Object missing required field `roles`"),
        ("listen = ", "Invalid value"),
    ],
)
def test_what_is_wrong_is_said_with_its_place_and_nothing_is_stored(
    text: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert build.MAX_MEMORY == 1 << 30
    monkeypatch.setattr(build, "MAX_MEMORY", 1 << 26)  # less, so that what is refused is soon made
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.toml").write_text(text, "utf-8")
    with pytest.raises(ValueError, match=f"(?s)^shop.toml: .*{why}") as raised:
        load_config("shop.toml")
    assert "hunter2" not in str(raised.value)
    assert "$" not in str(raised.value)
    assert main(["serve", "shop.toml"]) == 2
    assert "shop.toml: " in capfd.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["shop.toml"]


def test_a_name_that_reads_like_a_place_is_shown_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "shop.toml").write_text(NEWS + '"colour - at `$.drift" = 1', "utf-8")
    with pytest.raises(ValueError, match=r"applications.news: there is no setting 'colour - at `\$.drift'$"):
        load_config(tmp_path / "shop.toml")


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "shop.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"shop.toml: expected a TOML file, .* byte 0 is not"):
        load_config(tmp_path / "shop.toml")


def test_every_line_that_the_documentation_lists_is_honoured(tmp_path: Path, run: Callable[..., Any]) -> None:
    (tmp_path / "shop.toml").write_text(
        f"""
        listen = "localhost:7"
        storage = "{tmp_path}/here/journal.db"
        max_body = 2000
        snapshot_every = 7
        log_level = "error"
        {KEY}
        applications = ["news"]
        [applications.shop]
        [applications.news]
        agent = {{class = "UCB1", n_arms = 2}}
        features = {{dim = 16, interactions = false}}
        arms = ["a", "b"]
        rewards = [-1, 1]
        window = 60
        default = -0.5
        rule = "sum"
        apprentice = true
        seed = 5
        max_pairs = 2000000
        policies.other = {{class = "Exp3", n_arms = 2}}
        """
    )
    config = load_config(tmp_path / "shop.toml")
    assert (config.host, config.port, config.max_body, config.log_level) == ("localhost", 7, 2000, "error")
    assert str(config.stores()[0]) == f"{tmp_path}/here/journal.db"
    news = config.creations()["news"]
    assert (news.rewards, news.seed, news.arms) == ([-1.0, 1.0], 5, ["a", "b"])
    assert config.applications["news"].max_pairs == 2_000_000
    running = run(config)
    assert running.service.engine.learner._snapshot_every == 7.0
    model = running.service.engine.models["news"]
    assert (model.encoder.dim, model.encoder.interactions, repr(model.agent)) == (
        16,
        False,
        repr(build_model(news).agent),
    )
    head = {"Authorization": "Bearer x"}
    sent = {"arms": ["b", "a"]}  # without /apps, the key's own application
    answer = running.client.post("/v1/decisions", json=sent, headers=head).json()
    assert (answer["arm"], answer["probability"]) == ("b", 1.0)  # an apprentice
    policies = {"other": {"class": "Exp3", "n_arms": 2}}
    settings = Settings(window=60.0, default=-0.5, rule="sum", apprentice=True, max_pairs=2_000_000, policies=policies)
    assert model.settings == settings
    large = running.client.post("/v1/decisions", content=b" " * 2001, headers=head)
    assert large.status_code == 413


def test_the_example_is_accepted() -> None:
    config = load_config(Path(__file__).parents[3] / "deploy" / "armwise.toml")
    assert (config.port, list(config.applications)) == (8484, ["shop"])


def test_two_keys_alike_are_refused_in_code_too() -> None:
    Config(keys=[key("a", "1"), key("b", "2", applications=["default"])])
    with pytest.raises(ValueError, match="same sha256"):
        Config(keys=[key("a"), key("b")])
    with pytest.raises(ValueError, match="the name 'a'"):
        Config(keys=[key("a", "1"), key("a", "2")])


@pytest.mark.parametrize("storage", ["sqlite:///x.db", "postgresq://user:hunter2@host/db", "http://x"])
def test_no_folder_is_made_of_a_url(storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for opening in (open_store, lambda url: Config(storage=url)):
        with pytest.raises(ValueError, match=r"got \w+://\.\.\.$"):
            opening(storage)
    assert main(["journal", "verify", "--storage", storage]) == 2
    assert list(tmp_path.iterdir()) == []


def test_one_application_that_cannot_be_built_changes_no_other(tmp_path: Path) -> None:
    """Also where no file was read: a typo in the second must not begin the model of the first anew."""
    shop = Application(seed=1).creation()
    engine = Engine(SQLite(tmp_path / "journal.db"), {"shop": shop})
    engine.start()
    engine.stop()
    broken = {"shop": Application(seed=2).creation(), "news": Creation(agent={"class": "LinUBC"})}
    engine = Engine(SQLite(tmp_path / "journal.db"), broken)
    with pytest.raises(InvalidInput, match="LinUBC"):
        engine.start()
    engine.stop()
    rows = SQLite(tmp_path / "journal.db").connect().execute("SELECT kind FROM events")
    assert rows == [("create",)]


@pytest.mark.parametrize("dim", [1, 128, 4096])
def test_usual_sizes_are_accepted(dim: int) -> None:
    Application(features={"dim": dim}).check()
