"""The recipes run: two views of each web framework, a batch job, a consumer of a queue."""

import asyncio
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def beside_the_examples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.syspath_prepend(str(EXAMPLES / "web"))
    monkeypatch.delenv("ARMWISE", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def views(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    module = importlib.import_module(request.param)
    yield module
    module.SHOP.close()
    del sys.modules[request.param]


def check(shown: dict[str, Any], clicks: list[dict[str, Any]], stranger: int) -> None:
    assert shown["banner"] in ("spring", "sale", "newsletter")
    assert ([click["reward"] for click in clicks], stranger) == (["taken", "repeated"], 404)


@pytest.mark.parametrize("views", ["shop_django"], indirect=True)
def test_django(views: ModuleType) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "shop_django"
    import django
    from django.test import Client

    django.setup()
    visitor = Client()
    shown = visitor.get("/banner", {"device": "phone"}).json()
    clicks = [visitor.post(f"/clicked/{shown['decision']}").json() for _ in range(2)]
    check(shown, clicks, visitor.post("/clicked/nobody").status_code)
    assert visitor.get(f"/clicked/{shown['decision']}").status_code == 405
    del os.environ["DJANGO_SETTINGS_MODULE"]


@pytest.mark.parametrize("views", ["shop_flask"], indirect=True)
def test_flask(views: ModuleType) -> None:
    visitor = views.app.test_client()
    shown = visitor.get("/banner?device=phone").get_json()
    clicks = [visitor.post(f"/clicked/{shown['decision']}").get_json() for _ in range(2)]
    check(shown, clicks, visitor.post("/clicked/nobody").status_code)


@pytest.mark.parametrize("views", ["shop_fastapi"], indirect=True)
def test_fastapi(views: ModuleType) -> None:
    async def visit() -> None:
        transport = httpx.ASGITransport(app=views.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as visitor:
            shown = (await visitor.get("/banner", params={"device": "phone"})).json()
            clicks = [(await visitor.post(f"/clicked/{shown['decision']}")).json() for _ in range(2)]
            check(shown, clicks, (await visitor.post("/clicked/nobody")).status_code)

    asyncio.run(visit())


def test_a_batch_job_earns_more_night_after_night() -> None:
    import batch_job

    paid = batch_job.main(nights=4, size=150)
    assert paid[-1] > paid[0]  # 0.33 by chance at first; 0.58 once it is known who likes what


def test_a_queue_delivers_every_reward_once() -> None:
    import queue_rewards

    assert queue_rewards.main() == {"taken": 150, "repeated": 15, "refused": 1}
