"""Flask: one view decides, another takes the reward. ``flask --app shop_flask run`` beside this file.

``SHOP`` is a ``Decider`` in a folder here. An application of several processes makes it a ``Client`` of ``armwise
serve`` instead (a folder is for one process): the views stay as they are.
"""

import os
from typing import Any

from flask import Flask, request

import armwise as aw

app = Flask(__name__)
SHOP = aw.Client(os.environ["ARMWISE"]) if "ARMWISE" in os.environ else aw.Decider("decisions")
BANNERS = ["spring", "sale", {"id": "newsletter", "length": 2}]


@app.get("/banner")
def banner() -> dict[str, Any]:
    """Which banner to show; the page keeps the id."""
    d = SHOP.decide({"device": request.args.get("device", "unknown")}, BANNERS)
    return {"banner": d.arm, "decision": d.id}


@app.post("/clicked/<decision>")
def clicked(decision: str) -> tuple[dict[str, Any], int]:
    """The visitor clicked."""
    try:
        return {"reward": SHOP.reward(decision, 1.0).status}, 200
    except aw.UnknownDecision as error:
        return {"error": str(error)}, 404
