"""monitor view: a recorded run in the page."""

from __future__ import annotations

from pathlib import Path

import click

from monitor.cli.monitor_options import LOOPBACK, Address, token_option
from monitor.cli.options import say

_WAIT_SECONDS = 2.0
"""For a run to be read before its page is shown."""


@click.command("view", short_help="Open a recorded run in a browser.")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN.jsonl")
@click.option(
    "--web",
    type=Address(),
    default=(LOOPBACK, 0),
    help="Where to serve it. [default: any free port, on this machine alone]",
)
@token_option
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def command(run: Path, web: tuple[str, int], web_token: str | None, no_browser: bool) -> int:
    """Show RUN.jsonl in the page of a live run, until Ctrl-C.

    \b
    monitor view talk.jsonl
    monitor view talk.jsonl --web 8000 --no-browser

    Prints the address of the page. Needs the extra 'web'.
    """
    import threading
    import time
    import webbrowser

    from monitor.cli.monitor_options import open_page
    from monitor.records.schema import follow_run

    records = follow_run(run)
    first = next(records)  # what is no run is refused before anything is opened
    with open_page(web, web_token, recorded=True) as page:

        def show() -> None:
            say(page.url, err=False)
            if not no_browser:
                webbrowser.open(page.url)

        page.write(first)
        shown, until = False, time.monotonic() + _WAIT_SECONDS
        try:
            for record in records:
                page.write(record)
                if not shown and time.monotonic() > until:
                    show()  # a run of days takes minutes to read: the rest comes as if it were live
                    shown = True
            if not shown:
                show()
            threading.Event().wait()
        except KeyboardInterrupt:
            return 0
    return 0
