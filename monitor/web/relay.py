"""Pages of a relay: what is left of its budget, a switch, and the number for OBS."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from monitor.web.guard import Access, Answer, address_of, guarded, not_ours, too_many_tries
from monitor.web.hub import Hub

STATIC = Path(__file__).parent / "static"


class RelayControl(Protocol):
    """What a page shows of a relay, and what it may do with it.

    Attributes:
        muted: whether a person muted it; setting it does.
    """

    muted: bool

    @property
    def way(self) -> str:
        """What goes out: ``"clear"``, a method, or ``"muted"``."""

    @property
    def budget_bits(self) -> float | None:
        """The budget; None without one."""

    @property
    def left_bits(self) -> float | None:
        """What is left of it."""


class RelayPages:
    """Routes of a relay."""

    def __init__(self, relay: RelayControl) -> None:
        self._relay = relay

    async def answer(self, request: Request) -> Response:
        """Say what goes out; of a POST, mute or unmute first."""
        if request.method == "POST":
            if not request.state.ours:
                return not_ours()
            self._relay.muted = request.query_params.get("muted") != "no"
        relay = self._relay
        names = ("way", "muted", "budget_bits", "left_bits")
        return JSONResponse({name: getattr(relay, name) for name in names})

    @property
    def routes(self) -> list[BaseRoute]:
        """The route of the page's script."""
        return [Route("/relay", guarded(self.answer), methods=["GET", "POST"])]


class Overlay:
    """The newest number alone, for a picture over a picture; it has a token of its own."""

    def __init__(self, hub: Hub, token: str) -> None:
        self._hub, self._access = hub, Access(token)

    async def _refuse(self, request: Request) -> Response | None:
        address = address_of(request.scope)
        answer = await self._access.offer(request.query_params.get("token", ""), address)
        if answer is Answer.WAIT:
            return too_many_tries(self._access, address)
        if answer is Answer.WRONG:
            return PlainTextResponse("the overlay has a token of its own: ?token=...\n", 401)
        return None

    async def view(self, request: Request) -> Response:
        """The view."""
        return await self._refuse(request) or FileResponse(STATIC / "overlay.html")

    async def number(self, request: Request) -> Response:
        """The number, in bits."""
        if refusal := await self._refuse(request):
            return refusal
        reading = self._hub.state().reading
        return JSONResponse({"bits": None if reading is None else reading.bits})

    @property
    def routes(self) -> list[BaseRoute]:
        """Routes of the view and its number."""
        return [Route("/overlay", self.view), Route("/overlay/bits", self.number)]
