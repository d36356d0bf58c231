"""A run as server-sent events. Records have ids, with which a reconnecting reader continues."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping

import orjson

from monitor.web.hub import Hub, NumberedRecord, Wakeup

MOST_BEHIND = 256
PAUSE_SECONDS = 0.05
HEARTBEAT_SECONDS = 10.0
RETRY_MILLISECONDS = 1000


def since_of(hub: Hub, text: str | None) -> int:
    """Return the number in an id (``RUN-NUMBER``, or a number); 0 for another run.

    Example:
        >>> hub = Hub()
        >>> since_of(hub, f"{hub.run}-7"), since_of(hub, "00000000-7"), since_of(hub, "7")
        (7, 0, 7)
    """
    run, dash, number = (text or "").rpartition("-")
    if dash and run != hub.run:
        return 0
    return int(number) if number.isascii() and number.isdigit() and len(number) < 16 else 0


def hello(hub: Hub, guarded: bool) -> dict[str, object]:
    """Return the page's initial data, including whether the reader can log out."""
    thresholds = [[f.field, f.threshold] for f in hub.state().forecast]
    return {
        "run": hub.run,
        "recorded": hub.recorded,
        "thresholds": thresholds,
        "guarded": guarded,
        "relayed": hub.relayed,
    }


async def events(
    hub: Hub,
    wakeup: Wakeup,
    since: int,
    clock: Callable[[], float] = time.monotonic,
    *,
    guarded: bool = False,
) -> AsyncIterator[bytes]:
    """Yield the stream of one client.

    All stored records after ``since`` come first. A client that reads more slowly than records
    arrive then gets a selection that always ends with the newest. Nothing is queued for it.
    """
    yield f"retry: {RETRY_MILLISECONDS}\n".encode() + _event("hello", hello(hub, guarded))
    async for batch in batches(hub, since, hub.last):
        yield _records(hub, batch)
        since = batch[-1].id
    state_time: float | None = None
    while True:
        closed = hub.closed
        if batch := hub.batch(since, MOST_BEHIND):
            yield _records(hub, batch)
            since, state_time = batch[-1].id, None
            await asyncio.sleep(0)
        elif state_time is None:
            yield _event("state", state_of(hub))
            state_time = clock()
            # the next ones are sent together
            await asyncio.sleep(0 if closed else PAUSE_SECONDS)
        elif closed:
            return
        elif clock() - state_time >= HEARTBEAT_SECONDS:
            state_time = None
        else:
            await wakeup.wait(HEARTBEAT_SECONDS)


async def batches(hub: Hub, since: int, last: int) -> AsyncIterator[list[NumberedRecord]]:
    """Yield the records with ids after ``since`` up to ``last``, in order, in batches.

    No lock or memory is held between two batches, even for a slow client.
    """
    while since < last and (batch := hub.batch(since)):
        yield [entry for entry in batch if entry.id <= last] if batch[-1].id > last else batch
        since = batch[-1].id
        await asyncio.sleep(0)


def _records(hub: Hub, batch: list[NumberedRecord]) -> bytes:
    return b"".join(
        b'id: %s-%d\nevent: record\ndata: %s,"said":%s}\n\n'
        % (hub.run.encode(), entry.id, entry.data[:-1], entry.words)
        for entry in batch
    )


def state_of(hub: Hub) -> dict[str, object]:
    """Return the changing state that is not part of any record."""
    return {
        "forecast": [time_left._asdict() for time_left in hub.state().forecast],
        "last": hub.last,
    }


def _event(name: str, data: Mapping[str, object]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(data))
