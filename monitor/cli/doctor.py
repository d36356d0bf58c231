"""monitor doctor: whether everything is there that a run may need."""

from __future__ import annotations

import click

from monitor.cli.saying import say

__all__ = ["command"]


@click.command("doctor", short_help="Check sound, models, extras and disk, and say what to do.")
@click.option(
    "--hear",
    is_flag=True,
    help="Also open the default input for a second, and say how loud it is.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON instead.")
def command(hear: bool, as_json: bool) -> int:
    """Check PortAudio, inputs, the phone recogniser, every extra and the disk.

    Exit status 1 where something is broken. What is only not installed, and not needed, is a note.
    """
    import json
    from dataclasses import asdict

    from monitor.cli.checks import examine
    from monitor.run.status import FAILED

    findings = []
    for finding in examine(hear=hear):
        findings.append(finding)
        if not as_json:
            mark = {"ok": "  ok  ", "note": " note ", "broken": "BROKEN"}[finding.state]
            say(f"{mark}  {finding.what}: {finding.words}", err=False)
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=1))
    broken = sum(finding.state == "broken" for finding in findings)
    if broken and not as_json:
        say(f"{broken} broken: see above")
    return FAILED if broken else 0
