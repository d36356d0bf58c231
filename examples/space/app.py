"""The page of the demo's run, for a public container behind a proxy that speaks https.

It shows published data only and takes no microphone, so it needs no token and allows any host name.
"""

import os

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import monitor
from monitor.population import DEMO_SPEAKER, demo_frames
from monitor.web.hub import Hub
from monitor.web.page import make_app

FRAME = b"frame-ancestors https://huggingface.co"


class Public:
    """Answer under every host name, and let the Space's own site frame the page."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    (name, value.replace(b"frame-ancestors 'none'", FRAME))
                    for name, value in message["headers"]
                    if name != b"x-frame-options"
                ]
            await send(message)

        if scope["type"] == "http":
            headers = [pair for pair in scope["headers"] if pair[0] != b"host"]
            scope = {**scope, "headers": [*headers, (b"host", b"localhost")]}
            await self._app(scope, receive, answer)


if __name__ == "__main__":
    hub = Hub(recorded=True)
    for event in monitor.measure(demo_frames(), watch=DEMO_SPEAKER).events:
        hub.write(event)
    page = Public(make_app(hub, "localhost", None))
    port = int(os.environ.get("PORT", "7860"))
    uvicorn.run(page, host="0.0.0.0", port=port, ws="none", lifespan="off", access_log=False)
