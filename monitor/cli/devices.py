"""monitor devices: what could be heard."""

from __future__ import annotations

import click

from monitor.cli.options import say


@click.command("devices", short_help="List the inputs that `monitor listen` can hear.")
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON instead.")
def command(as_json: bool) -> int:
    """List the sound inputs of this machine; the default one is marked with a star.

    Exit status 1 where there is none.
    """
    import json
    from dataclasses import asdict

    from monitor.phrases import plural
    from monitor.sources.microphone import choose, devices

    inputs = devices()
    if as_json:
        click.echo(json.dumps([asdict(device) for device in inputs], indent=1))
        return 0 if inputs else 1
    choose(inputs, None)  # says what to do where there is none
    width = max(len(device.name) for device in inputs)
    for device in inputs:
        channels = plural(device.channels, "channel")
        star = "*" if device.default else " "
        say(
            f"{star} {device.index:>3}  {device.name:<{width}}  {channels:>11}  "
            f"{device.rate:>6} Hz  {device.host}",
            err=False,
        )
    return 0
