"""Real HTTP servers on loopback."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver:
    """What a server was sent, and how it answers.

    Attributes:
        answers: status and headers for each request in turn; the last one for all further ones.
        got: the JSON bodies.
        headers: of each request.
        hold: where set, requests wait for it before they are answered.
    """

    def __init__(self, *answers: tuple[int, dict[str, str]]) -> None:
        self.answers = list(answers) or [(204, {})]
        self.got: list[Any] = []
        self.methods: list[str] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.hold: threading.Event | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/alerts?token=hush"


@contextmanager
def receiving(*answers: tuple[int, dict[str, str]]) -> Iterator[Receiver]:
    receiver = Receiver(*answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            number = len(receiver.got)
            receiver.methods.append(self.command)
            receiver.paths.append(self.path)
            receiver.headers.append(dict(self.headers))
            receiver.got.append(json.loads(body) if body else None)
            if receiver.hold is not None:
                receiver.hold.wait(30)
            status, headers = receiver.answers[min(number, len(receiver.answers) - 1)]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:  # a client that has hung up
            pass

    server = Server(("127.0.0.1", 0), Handler)
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        if receiver.hold is not None:
            receiver.hold.set()
        server.shutdown()
        server.server_close()
        thread.join()


START = {"type": "start", "watch": "me"}


def alert(seconds: float = 41.0, **more: Any) -> dict[str, Any]:
    return {
        "type": "alert",
        "seconds": seconds,
        "speech": 30.0,
        "rule": "bits>3 for 5 s",
        "field": "bits",
        "threshold": 3.0,
        "level": "alert",
        "state": "raised",
        "value": 3.42,
        **more,
    }
