"""FastAPI: one view decides, another takes the reward. ``uvicorn shop_fastapi:app`` beside this file.

``SHOP`` is a ``Decider`` in a folder here, or a ``Client`` of ``armwise serve`` where ARMWISE says where that is (a
folder is for one process). Both are awaited, so that other requests are served meanwhile.
"""

import os
from typing import Any

from fastapi import FastAPI, HTTPException

import armwise as aw

app = FastAPI()
SHOP = aw.Client(os.environ["ARMWISE"]) if "ARMWISE" in os.environ else aw.Decider("decisions")
BANNERS = ["spring", "sale", {"id": "newsletter", "length": 2}]


@app.get("/banner")
async def banner(device: str = "unknown") -> dict[str, Any]:
    """Which banner to show; the page keeps the id."""
    d = await SHOP.adecide({"device": device}, BANNERS)
    return {"banner": d.arm, "decision": d.id}


@app.post("/clicked/{decision}")
async def clicked(decision: str) -> dict[str, str]:
    """The visitor clicked."""
    try:
        return {"reward": (await SHOP.areward(decision, 1.0)).status}
    except aw.UnknownDecision as error:
        raise HTTPException(404, str(error)) from None
