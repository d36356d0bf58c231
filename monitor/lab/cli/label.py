"""monitor label: a card that says what publishing a speech dataset tells of its speakers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from monitor.cli.help import Command
from monitor.cli.options import argument, check_outputs, given, group, option, say
from monitor.lab.cli.audit import CorpusAuditOptions, extract_and_audit


@dataclass(frozen=True, slots=True)
class LabelOptions:
    """Options of the command."""

    corpus: Path = argument("CORPUS")
    output: Path | None = option(
        "-o, --output FILE.md",
        "The card; FILE.json is written beside it (mode 0600). [default: standard output, no JSON]",
    )
    salt: str = option(
        "--salt TEXT",
        "Goes into the hashes that stand for speakers: without it who has the list of speakers "
        "can find the most exposed.",
        default="",
    )
    replace: bool = option("--replace", "Overwrite the files if they exist.")
    how: CorpusAuditOptions = group(CorpusAuditOptions, "Options")


@click.command("label", cls=Command, short_help="Write the privacy card of a speech dataset.")
@given(LabelOptions)
def command(asked: LabelOptions) -> int:
    """Write a card for the page of a speech dataset: what its voices disclose.

    \b
    monitor label corpus/ -o label.md
    monitor label corpus/ --salt "$(cat secret)" >> README.md

    What an attacker with a minute of speech learns, how unique a voice is in crowds of growing
    size, the most exposed speakers (by hash), what the recordings tell besides the voice (one
    session, one room, one microphone), attributes that a voice tells where manifest.csv has them,
    acoustic conditions, and what was not tested. Measured as `monitor audit` does it.

    The card names nobody and is made to be published; with --salt, keep the salt to yourself. A
    file that is broken is named and skipped (exit status 4).
    """
    from monitor.errors import UsageError
    from monitor.lab.audit.audit import AuditConfig
    from monitor.lab.audit.label import label_markdown, make_label, save_label
    from monitor.run.status import INCOMPLETE

    if asked.output is not None:
        if asked.output.suffix.lower() != ".md":
            raise UsageError(f"-o {asked.output.name}: let the name end in .md")
        files = [asked.output, asked.output.with_suffix(".json")]
        check_outputs(files, replace=asked.replace)
    audit = extract_and_audit(asked.corpus, asked.how, AuditConfig().budget)
    label = make_label(audit, asked.salt)
    for problem in audit.problems:
        say(f"monitor: note: {problem}")
    if asked.output is None:
        click.echo(label_markdown(label), nl=False)
    else:
        json_path = save_label(label, asked.output)
        say(f"{asked.output} is the card; {json_path.name} holds its figures")
    return INCOMPLETE if audit.skipped else 0
