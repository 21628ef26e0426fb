"""A consumer of a message queue that delivers rewards, hours after the decisions, some of them twice, some for nobody.

    python queue_rewards.py

Queues deliver *at least once*: the same message may come again, after a crash for example. A reward is given by the
decision's id, so that a second delivery is told apart (``repeated``) and never learnt twice. The queue here is Python's
own; with RabbitMQ, Kafka or SQS only ``receive`` and ``acknowledge`` differ.
"""

import json
import queue
from collections import Counter

import armwise as aw

BATCH = 100


def consume(shop: aw.Decider | aw.Client, messages: "queue.Queue[bytes]") -> Counter[str]:
    """Take what is there, a batch per commit; what came of each message."""
    came: Counter[str] = Counter()
    while not messages.empty():
        batch: list[dict[str, object]] = []
        while not messages.empty() and len(batch) < BATCH:
            batch.append(json.loads(messages.get()))
        came += deliver(shop, batch)
        for _ in batch:  # only now: what crashes before is delivered again, and then repeated
            messages.task_done()
    return came


def deliver(shop: aw.Decider | aw.Client, batch: list[dict[str, object]]) -> Counter[str]:
    """Reward a batch in one commit; one with a bad message in it, message by message."""
    pairs = [(str(message["decision"]), float(str(message["value"]))) for message in batch]
    try:
        return Counter(receipt.status for receipt in shop.reward_many(pairs))
    except (aw.UnknownDecision, ValueError):
        if len(batch) == 1:
            return Counter({"refused": 1})  # to the dead-letter queue
        return sum((deliver(shop, [message]) for message in batch), Counter())


def main(folder: str = "decisions") -> Counter[str]:
    """Decide, lose sight of it, and let the queue bring the rewards; in any order."""
    messages: queue.Queue[bytes] = queue.Queue()
    with aw.Decider(folder) as shop:
        for hour in range(150):
            d = shop.decide({"hour": hour % 24}, ["push", "mail"])
            message = json.dumps({"decision": d.id, "value": float(d.arm == "mail")}).encode()
            messages.put(message)
            if hour % 10 == 0:
                messages.put(message)  # at least once
        messages.put(b'{"decision": "of somebody else", "value": 1.0}')
        came = consume(shop, messages)
    print(dict(came))
    return came


if __name__ == "__main__":
    main()
