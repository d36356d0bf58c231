"""Pages of a relay: its remaining budget, a mute switch, and the number for OBS."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from monitor.events import phrases
from monitor.phrases import IMPOSTOR
from monitor.protocols import MUTED, RelayControl
from monitor.web.guard import Access, Answer, address_of, guarded, not_ours, too_many_tries
from monitor.web.hub import Hub

STATIC = Path(__file__).parent / "static"


def relay_routes(relay: RelayControl) -> list[BaseRoute]:
    """Return the route of the page's switch. GET reports the relay, POST mutes or unmutes."""

    async def answer(request: Request) -> Response:
        if request.method == "POST":
            if not request.state.ours:
                return not_ours()
            relay.muted = request.query_params.get("muted") != "no"
        bits = ("budget_bits", "left_bits", "sent_bits", "kept_bits", "held_bits")
        return JSONResponse({name: getattr(relay, name) for name in ("way", "muted", *bits)})

    return [Route("/relay", guarded(answer), methods=["GET", "POST"])]


def overlay_routes(hub: Hub, token: str, relay: RelayControl | None) -> list[BaseRoute]:
    """Return routes of the newest number and its state, for OBS; they have their own token."""
    access = Access(token)

    async def refuse(request: Request) -> Response | None:
        address = address_of(request.scope)
        answer = await access.offer(request.query_params.get("token", ""), address)
        if answer is Answer.WAIT:
            return too_many_tries(access, address)
        if answer is Answer.WRONG:
            return PlainTextResponse("the overlay needs its own token: ?token=...\n", 401)
        return None

    async def view(request: Request) -> Response:
        return await refuse(request) or FileResponse(STATIC / "overlay.html")

    async def number(request: Request) -> Response:
        reading = hub.state().reading
        state, words = _overlay(hub, relay)
        shown = {"bits": reading and reading.bits, "state": state, "words": words}
        return await refuse(request) or JSONResponse(shown)

    return [Route("/overlay", view), Route("/overlay/bits", number)]


def _overlay(hub: Hub, relay: RelayControl | None) -> tuple[str, str]:
    now = hub.state()
    reading = now.reading
    if relay is not None and relay.way == MUTED:
        return "muted", "Muted"
    if reading is None:
        return "waiting", "Waiting"
    if reading.change is not None:
        return "doubt", phrases.voice_since(reading.change).capitalize()
    if reading.is_impostor:
        return "doubt", IMPOSTOR.capitalize()
    if reading.bits is None:
        return "waiting", "No figure yet"
    words = phrases.bits_or_more(reading, f"{phrases.number(reading.bits)} bits").capitalize()
    if "end" in now.counts:
        return "ended", f"{words}, ended"
    raised = any(on for rule, on in now.raised.items() if rule not in now.quiet)
    return ("alert", f"{words}, alert") if raised else ("calm", words)
