"""Django: one view decides, another takes the reward. Beside this file, ``django-admin runserver --pythonpath .``
``--settings shop_django`` starts it.

``SHOP`` is a ``Decider`` in a folder here. A site of several processes makes it a ``Client`` of ``armwise serve``
instead (a folder is for one process): the views stay as they are.
"""

import os

from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

import armwise as aw

SECRET_KEY, ROOT_URLCONF, ALLOWED_HOSTS, DEBUG = "change me", __name__, ["*"], False  # a site's settings, elsewhere
SHOP = aw.Client(os.environ["ARMWISE"]) if "ARMWISE" in os.environ else aw.Decider("decisions")
BANNERS = ["spring", "sale", {"id": "newsletter", "length": 2}]


@require_GET
def banner(request: HttpRequest) -> JsonResponse:
    """Which banner to show; the page keeps the id."""
    d = SHOP.decide({"device": request.GET.get("device", "unknown")}, BANNERS)
    return JsonResponse({"banner": d.arm, "decision": d.id})


@csrf_exempt  # here only: a site's own pages send Django's token
@require_POST
def clicked(request: HttpRequest, decision: str) -> JsonResponse:
    """The visitor clicked."""
    try:
        return JsonResponse({"reward": SHOP.reward(decision, 1.0).status})
    except aw.UnknownDecision as error:
        return JsonResponse({"error": str(error)}, status=404)


urlpatterns = [path("banner", banner), path("clicked/<str:decision>", clicked)]
