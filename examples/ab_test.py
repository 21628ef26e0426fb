"""An A/B test, replaced: the service shows the better page to each kind of visitor while it is still finding out.

    python examples/ab_test.py        # starts `armwise serve` on a free port of this machine, and stops it again

Visitors on phones prefer the short page and the others the long one, so no single winner of an A/B test is right for
all. The client below is all that a web site needs; any language that speaks HTTP will do.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from urllib.request import Request, urlopen


# ---------------------------------------------------------------- the client, in ten lines
def ask(address, path, body):
    request = Request(address + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request) as answer:
        return json.load(answer)


def decide(address, context, arms):
    return ask(address, "/v1/decisions", {"context": context, "arms": arms})


def reward(address, decision, value):
    ask(address, f"/v1/decisions/{decision['id']}/reward", {"value": value})


# ----------------------------------------------------------------


CHANCE = {("phone", "short"): 0.30, ("phone", "long"): 0.10, ("desk", "short"): 0.15, ("desk", "long"): 0.35}


def visits(address, n, seed=1):
    """n visitors, each shown the page that the service chose; how often it was the better one for that visitor."""
    chance, better = random.Random(seed), []
    for _ in range(n):
        device = chance.choice(["phone", "desk"])
        decision = decide(address, {"device": device}, ["short", "long"])
        page = decision["arm"]
        better.append(page == ("short" if device == "phone" else "long"))
        reward(address, decision, float(chance.random() < CHANCE[device, page]))
    return better


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visitors", type=int, default=2000)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        words = ["serve", "--json", "--listen", "127.0.0.1:0", "--storage", folder]
        server = subprocess.Popen([sys.executable, "-m", "armwise", *words], stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        try:
            address = json.loads(server.stdout.readline())["address"]
            better = visits(address, options.visitors)
            with urlopen(f"{address}/v1/log?limit=1") as log:
                print("every decision is in the log, ready for `armwise evaluate`:\n ", log.readline().decode().strip())
        finally:
            server.terminate()
            server.wait()
            server.stdout.close()
    tenth = max(1, len(better) // 10)
    print(f"the better page was shown to {sum(better[:tenth]) / tenth:.0%} of the first tenth of visitors, "
          f"{sum(better[-tenth:]) / tenth:.0%} of the last; an A/B test shows it to 50% of all")  # fmt: skip
    return better


if __name__ == "__main__":
    main()
