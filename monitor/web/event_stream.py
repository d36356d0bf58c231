"""A run as server-sent events: every record has an id, and a reader that comes back goes on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import orjson

from monitor.web.hub import Hub, NumberedRecord
from monitor.web.wakeup import Wakeup

__all__ = ["batches", "events", "hello", "since_of"]

MOST_BEHIND = 256
PAUSE_SECONDS = 0.05
HEARTBEAT_SECONDS = 10.0
RETRY_MILLISECONDS = 1000


def since_of(hub: Hub, text: str | None) -> int:
    """The number in an id (``RUN-NUMBER``, or a number); 0 where it is of another run.

    Example:
        >>> hub = Hub()
        >>> since_of(hub, f"{hub.run}-7"), since_of(hub, "00000000-7"), since_of(hub, "7")
        (7, 0, 7)
    """
    run, dash, number = (text or "").rpartition("-")
    if dash and run != hub.run:
        return 0
    return int(number) if number.isascii() and number.isdigit() and len(number) < 16 else 0


def hello(hub: Hub, guarded: bool) -> dict[str, Any]:
    """What a page needs to know before the first record; of a guarded run, that it can be left."""
    thresholds = [[each["field"], each["threshold"]] for each in hub.state()["forecast"]]
    return {
        "run": hub.run,
        "recorded": hub.recorded,
        "thresholds": thresholds,
        "guarded": guarded,
    }


async def events(
    hub: Hub,
    wakeup: Wakeup,
    since: int,
    clock: Callable[[], float] = time.monotonic,
    *,
    guarded: bool = False,
) -> AsyncIterator[bytes]:
    """The stream of one client.

    Everything kept that is newer than ``since`` comes first, all of it. From then on a client
    that takes its records more slowly than they come gets a choice of them that always ends with
    the newest: nothing is queued for it.
    """
    yield f"retry: {RETRY_MILLISECONDS}\n".encode() + _event("hello", hello(hub, guarded))
    async for part in batches(hub, since, hub.last):
        yield _records(hub, part)
        since = part[-1].id
    said: float | None = None
    while True:
        closed = hub.closed
        if part := hub.batch(since, MOST_BEHIND):
            yield _records(hub, part)
            since, said = part[-1].id, None
            await asyncio.sleep(0)
        elif said is None:
            yield _event("state", state_of(hub))
            said = clock()
            # the next ones are sent together
            await asyncio.sleep(0 if closed else PAUSE_SECONDS)
        elif closed:
            return
        elif clock() - said >= HEARTBEAT_SECONDS:
            said = None
        else:
            await wakeup.wait(HEARTBEAT_SECONDS)


async def batches(hub: Hub, since: int, last: int) -> AsyncIterator[list[NumberedRecord]]:
    """The records kept with ids after ``since`` up to ``last``, in order, a little at a time.

    Between two of them nothing is held, however slowly a client takes them.
    """
    while since < last and (part := hub.batch(since)):
        yield [each for each in part if each.id <= last] if part[-1].id > last else part
        since = part[-1].id
        await asyncio.sleep(0)


def _records(hub: Hub, part: list[NumberedRecord]) -> bytes:
    return b"".join(
        b"id: %s-%d\nevent: record\ndata: %s\n\n" % (hub.run.encode(), each.id, each.data)
        for each in part
    )


def state_of(hub: Hub) -> dict[str, Any]:
    """What changes without being part of any record."""
    return {"forecast": hub.state()["forecast"], "last": hub.last}


def _event(name: str, data: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(data))
