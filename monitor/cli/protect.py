"""monitor protect: write recordings anew so that they tell less about who speaks."""

from __future__ import annotations

from pathlib import Path

import click

from monitor.cli.saying import say

__all__ = ["command"]

_ANY_RATE = 16_000


@click.command("protect", short_help="Write recordings anew, the voice made harder to recognise.")
@click.argument("recordings", type=click.Path(path_type=Path), metavar="FILE|DIR")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="The file to write, .wav or .flac; of a folder the folder (files of mode 0600).",
)
@click.option(
    "--method",
    metavar="NAME[:SETTING]",
    help="mcadams:0.8 bends formants (1 leaves them); pitch:4 moves the pitch by semitones, "
    "formant:1.15 multiplies all formants, voice:4,1.15 does both, whisper takes the voice away; "
    "of each but whisper NAME:random draws how far for each recording, NAME:speaker for each "
    "speaker; noise:10 adds white noise at 10 dB; none changes nothing.",
)
@click.option(
    "--protector-command",
    metavar="CMD",
    help="Another program instead, run for each channel: WAV on its stdin, WAV on its stdout.",
)
@click.option(
    "--speaker",
    metavar="NAME",
    help="Who speaks in all of it, for NAME:speaker. [default: what the folder's layout says]",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="N",
    help="The same draws as with this number before: who knows it can draw them, too. [default: "
    "new draws]",
)
@click.option("--replace", is_flag=True, help="Replace files that are there already.")
def command(
    recordings: Path,
    output: Path,
    method: str | None,
    protector_command: str | None,
    speaker: str | None,
    seed: int | None,
    replace: bool,
) -> int:
    """Write FILE, or every recording below DIR under the same name, with the voice protected.

    \b
    monitor protect talk.flac -o safe.flac --method mcadams:0.8
    monitor protect voices/ -o safe/ --method mcadams:random
    monitor protect talk.wav -o safe.wav --protector-command my-anonymiser

    WAV and FLAC stay what they are, others become WAV. What a protector is worth is for you to
    measure: enroll and calibrate on clear speech, replay the protected; then enroll protected
    speech, as an attacker does who knows the method. A broken file is named and skipped (exit
    status 4).
    """
    import secrets

    from monitor.cli.jobs import seconds_of
    from monitor.cli.progress import progress_over
    from monitor.errors import SourceError, UsageError
    from monitor.phrases import plural
    from monitor.protectors.recording import protect
    from monitor.protectors.registry import make
    from monitor.protectors.targets import orders
    from monitor.protectors.utterance import Utterance
    from monitor.run.status import INCOMPLETE

    if (method is None) == (protector_command is None):
        raise UsageError("give either --method, such as mcadams:0.8, or --protector-command")
    method = f"command:{protector_command}" if method is None else method
    wanted = orders(recordings, output, speaker=speaker, replace=replace)
    for order in wanted:  # what makes no sense is refused before anything is written
        make(method, Utterance(_ANY_RATE, order.name, order.speaker))
    seed = secrets.randbits(128) if seed is None else seed
    lengths = [(seconds_of(order.source) or 0.0) / 60 for order in wanted]
    problems, seconds, clipped = [], 0.0, 0
    with progress_over(sum(lengths), "protecting", "min") as step:
        for order, minutes in zip(wanted, lengths, strict=True):
            try:
                made = protect(
                    order.source, order.target, method,
                    name=order.name, speaker=order.speaker, seed=seed,
                )  # fmt: skip
            except SourceError as error:
                problems.append(str(error))
            else:
                seconds, clipped = seconds + made.seconds, clipped + made.clipped
            step(order.name, minutes)
    if len(problems) == len(wanted):
        raise SourceError("nothing was protected: " + "; ".join(problems[:3]))
    for problem in problems:
        say(f"monitor: skipped: {problem}")
    if clipped:
        say(f"monitor: note: {plural(clipped, 'sample')} clipped; give quieter recordings")
    count = plural(len(wanted) - len(problems), "recording")
    say(f"protected {count} ({seconds / 60:.1f} min) with {method.partition(':')[0]}")
    return INCOMPLETE if problems else 0
