"""monitor replay: a recording in, bits against length out."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import click

from monitor.cli.monitor_options import (
    Alerting,
    JsonLog,
    LedgerOptions,
    MonitorOptions,
    Protecting,
    Shown,
    alert_options,
    hearing_options,
    jsonl_options,
    ledger_options,
    protecting_options,
    shown_options,
)
from monitor.cli.options import (
    Raw,
    Seconds,
    Speed,
    check_not_scheduled,
    grouped,
    in_options,
    jobs_option,
    say,
    scheduler_option,
)
from monitor.cli.transcript_options import (
    Transcribing,
    say_unused_words,
    transcribing_options,
)
from monitor.errors import MonitorError, UsageError

if TYPE_CHECKING:
    from monitor.protocols import Source
    from monitor.run import Run
    from monitor.run.each import SummaryRow
    from monitor.run.run import Unfinished

# ------------------------------------------------------------------------------------ each options
# The part of monitor replay that hears every recording by itself, and sums up in a table.

SUFFIXES = (".csv", ".parquet")
MOST_NAMED = 20
"""Recordings with an alert that are named; the summary has all."""
MOST_TOLD = 5
"""Recordings that a note names; the summary has all."""


@dataclass(frozen=True, slots=True)
class OneOfMany:
    """Opens the run of one recording; may be sent to another process.

    Attributes:
        options, protecting, alerting, transcribing: as asked for; rules and actions are made anew
            for each run.
        start, end: the part of each recording to hear, in seconds; None to its end.
        allow_overlap: hear audio that was enrolled.
        top: how many speakers a reading names.
    """

    options: MonitorOptions
    protecting: Protecting
    alerting: Alerting
    transcribing: Transcribing
    start: float
    end: float | None
    allow_overlap: bool
    top: int

    def __call__(self, path: Path, unfinished: Unfinished | None) -> Run:
        """The run of a recording, not yet entered."""
        from monitor.cli.inputs import open_all
        from monitor.sources.chain import Chain

        def opened() -> Source:
            sources = open_all([str(path)], None, self.start, self.end)
            self.options.check_channel(sources[0])
            return Chain(self._with_words(sources, path))

        return self._run(opened, unfinished, allow_overlap=self.allow_overlap)

    @property
    def words(self) -> bool:
        """Whether the words beside a recording are heard."""
        return self.transcribing.wanted(self.options.features)

    def _with_words(self, sources: Sequence[Source], path: Path) -> Sequence[Source]:
        if not self.words:
            return sources
        return self.transcribing.beside(sources, [str(path)], self.start)

    def beside(self, path: Path) -> list[Path]:
        """What is read beside this recording alone: its transcript, where words are heard."""
        found = self.transcribing.choice.found(path) if self.words else None
        return [] if found is None else [found]

    def part_of(self, seconds: float) -> float:
        """How much is heard of a recording of that length."""
        end = seconds if self.end is None else min(seconds, self.end)
        return max(0.0, end - self.start)

    def elsewhere(self) -> OneOfMany:
        """As it is sent to workers of a cluster, which have another working folder.

        Raises:
            UsageError: alerts shall do something.
        """
        acting = [name for name, given in self.alerting.receivers.items() if given]
        if acting:
            raise UsageError(
                f"{acting[0]} acts where the command runs: leave it out with --scheduler"
            )
        store, rank_model_file = map(_absolute, (self.options.store, self.options.rank_model_file))
        known = _absolute(self.protecting.protected_population)
        return replace(
            self,
            options=replace(self.options, store=store, rank_model_file=rank_model_file),
            protecting=replace(self.protecting, protected_population=known),
        )

    def needs(self) -> list[Path]:
        """What is read beside the recording."""
        files = [*self.options.files, *self.protecting.files]
        return [Path(name) for name in files if Path(name).exists()]

    def marks(self) -> object:
        """Of the networks that make what is heard, where this is called."""
        from monitor.features.registry import defaults, marks_of

        return marks_of(self.options.features or defaults())

    def notices(self, recordings: Sequence[Path]) -> list[str]:
        """What is to be said before any is heard, from opening one that can be opened.

        What holds of that one alone is left out: `tell` says it of those that were heard.

        Raises:
            MonitorError: the options do not fit together, or a file that they name cannot be used.
        """
        from monitor.errors import SourceError
        from monitor.sources.registry import open_source

        for path in recordings:
            try:
                sources = self._with_words([open_source(path)], path)
                with self._run(sources[0], allow_overlap=True) as run:
                    return [str(each) for each in run.notices if each.kind != "enrolled too"]
            except SourceError:  # it will be a line of the summary
                continue
        return []

    def _run(
        self, opened: object, unfinished: Unfinished | None = None, *, allow_overlap: bool
    ) -> Run:
        from monitor.run import Run

        class InOptions(Run):
            """One whose refusals, which the summary keeps, name options."""

            def __enter__(self) -> Self:
                try:
                    return super().__enter__()
                except MonitorError as error:
                    error.args = (in_options(error),)
                    raise

        alerting = deepcopy(self.alerting)
        return InOptions(
            opened,  # type: ignore[arg-type]
            lambda source: self.options.monitor(source, top=self.top, again=True),
            rules=alerting.rules_for,
            actions=alerting.actions(),
            until=alerting.until,
            allow_overlap=allow_overlap,
            protect=self.protecting.protection(None),
            unfinished=unfinished,
        )

    def settings(self) -> str:
        """A mark of everything but the recording that its figures depend on.

        Raises:
            StoreError: a file cannot be read.
        """
        from monitor.errors import StoreError
        from monitor.features.registry import defaults
        from monitor.version import __version__

        options, alerting = asdict(self.options), self.alerting
        options["features"] = self.options.features or defaults()
        options |= asdict(self.protecting)
        for name in ("store", "rank_model_file", "protected_population"):
            if options[name] is not None:
                try:
                    content = Path(options[name]).read_bytes()
                except OSError as error:
                    raise StoreError(f"{options[name]}: {error.strerror}; check the name") from None
                options[name] = hashlib.sha256(content).hexdigest()
        rules = [rule.rule for rule in alerting.rules], alerting.open_rules, alerting.stop
        alarms = alerting.share, alerting.horizon_seconds, alerting.warn_seconds
        part = self.start, self.end, self.allow_overlap
        words = (self.transcribing.speaker_in_transcript, self.marks()) if self.words else ()
        text = repr((__version__, sorted(options.items()), rules, alarms, part, *words))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Each:
    """What was asked for; a command gets it as ``each``.

    Attributes:
        wanted: ``--each``.
        summary: the table, or None.
    """

    wanted: bool
    summary: Path | None

    def asked(self, of_one_run: Mapping[str, object]) -> bool:
        """Whether every recording is a run of its own.

        Args:
            of_one_run: options that go with one run alone, and what was given for each.

        Raises:
            UsageError: the options do not go together.
        """
        if not self.wanted:
            if self.summary is not None:
                raise UsageError("--summary has a line for each recording: add --each")
            return False
        for option, given in of_one_run.items():
            if given:
                raise UsageError(f"{option} is for one run: leave it out, or leave out --each")
        if self.summary is None:
            raise UsageError("--each writes a line for each recording: add --summary out.csv")
        if self.summary.suffix.lower() not in SUFFIXES:
            raise UsageError(
                f"{self.summary}: a summary is a table: name it {' or '.join(SUFFIXES)}"
            )
        return True

    def hear(
        self,
        names: Sequence[str],
        one: OneOfMany,
        jobs: int | None,
        *,
        resume: bool,
        replace: bool,
    ) -> int:
        """Hear all recordings, and tell what came of them.

        Returns:
            the exit status, the worst of all.
        """
        from monitor.cli.options import UNKNOWN_SECONDS, processes_for, progress_over, seconds_of
        from monitor.run.each import SummaryFile, hear_each, known_already, recordings_of
        from monitor.run.status import worst
        from monitor.sinks.jsonl import refuse_overwrite

        assert self.summary is not None
        if resume and replace:
            raise UsageError("--resume goes on with a summary, --replace begins it anew: give one")
        recordings = recordings_of(names)
        refuse_overwrite(self.summary, [*recordings, *one.options.files, *one.protecting.files])
        for notice in one.notices(recordings):
            say(f"monitor: note: {notice}")
        known = [seconds_of(path) for path in recordings]
        lengths = {
            path: one.part_of(seconds or UNKNOWN_SECONDS)
            for path, seconds in zip(recordings, known, strict=True)
        }
        workers, began, rows = processes_for(jobs, known), time.monotonic(), []
        sent = one if isinstance(workers, int) else one.elsewhere()
        with SummaryFile(self.summary, one.settings(), resume=resume, replace=replace) as summary:
            there, left = known_already(recordings, summary, one.beside)
            minutes = sum(lengths[path] for path in left) / 60
            heard = hear_each(
                left,
                sent,
                summary,
                workers,
                unfinished=summary.unfinished if isinstance(workers, int) else None,
                reads=sent.needs(),
                beside=sent.beside,
                alike=sent.marks,
            )
            try:
                with progress_over(minutes, "measuring", "min") as step, closing(heard) as done:
                    for count, row in enumerate(done, 1):
                        step(f"{count} of {len(left)}: {row.path.name}", lengths[row.path] / 60)
                        rows.append(row)
            except (KeyboardInterrupt, MonitorError):
                say("monitor: to go on later, run the same command with --resume")
                raise
        tell(there, rows, time.monotonic() - began)
        say(f"monitor: the summary is {self.summary}")
        return worst(row.status for row in (*there, *rows))


def _absolute(name: str | None) -> str | None:
    """The path of a file; what is none, such as ``reference``, stays."""
    from monitor.jobs import absolute

    return name if name is None or not Path(name).exists() else str(absolute(Path(name)))


def tell(there: Sequence[SummaryRow], heard: Sequence[SummaryRow], took: float) -> None:
    """Say what came of the recordings, those with an error or an alert by name.

    Args:
        there: those that were in the summary already.
        heard: those that were heard now.
        took: wall seconds.
    """
    from monitor.phrases import clock_time, plural
    from monitor.run.each import delay_over
    from monitor.sinks.summary import number

    every = [row.cells for row in (*there, *heard)]
    for cells in every:
        if cells["error"]:
            say(f"monitor: {cells['recording']}: {cells['error']}")
    noticed = [cells for cells in every if cells["notices"]]
    for cells in noticed[:MOST_NAMED]:
        say(f"monitor: note: {cells['recording']}: {cells['notices']}")
    if len(noticed) > MOST_NAMED:
        say(f"monitor: note: of {len(noticed) - MOST_NAMED} more; the summary has their notices")
    for line in _enrolled_too(every):
        say(f"monitor: note: {line}")
    over = [cells for cells in every if cells["first_alert_seconds"]]
    for cells in over[:MOST_NAMED]:
        at = clock_time(float(cells["first_alert_seconds"]))
        last = f"; {number(float(cells['bits']))} bits at its end" if cells["bits"] else ""
        say(f"monitor: {cells['recording']}: an alert at {at}{last}")
    if len(over) > MOST_NAMED:
        say(f"monitor: and {len(over) - MOST_NAMED} more, which are in the summary")
    open_still = [cells for cells in every if cells["undecided"]]
    for cells in open_still[:MOST_NAMED]:
        say(f"monitor: {cells['recording']}: {cells['undecided']}")
    if len(open_still) > MOST_NAMED:
        say(f"monitor: and {len(open_still) - MOST_NAMED} more, which are in the summary")
    seconds = sum(float(row.cells["seconds"] or 0.0) for row in heard)
    speed = f", {seconds / took:.0f} times real time" if seconds and took else ""
    known = f"; {len(there)} there already" if there else ""
    lost = sum(not row.cells["seconds"] for row in heard)
    failed = f"; {lost} could not be measured" if lost else ""
    say(
        f"measured {plural(len(heard) - lost, 'recording')} ({seconds / 60:.1f} min{speed})"
        f"{failed}{known}; an alert was raised in {len(over)}"
        + (f", not decided in {len(open_still)}" if open_still else "")
    )
    for line in delay_over(every):
        say(line)


def _enrolled_too(every: Sequence[Mapping[str, str]]) -> list[str]:
    """Of recordings of which another part was enrolled, by the rank model that weighs them."""
    from monitor.phrases import plural

    lines = []
    for session, told in (
        ("same", "the same-session rank model is used; another day's recording discloses less"),
        (
            "cross",
            "there is no same-session rank model: the cross-session rank model used here makes "
            "light of what they disclose",
        ),
    ):
        found = [c for c in every if c["enrolled_too"] == "true" and c["session"] == session]
        if found:
            names = ", ".join(cells["recording"] for cells in found[:MOST_TOLD])
            rest = f", ... ({plural(len(found), 'recording')})" if len(found) > MOST_TOLD else ""
            lines.append(f"enrolled too: {names}{rest}: {told}")
    return lines


each_options = grouped(
    "each",
    Each,
    (
        click.option(
            "--each",
            "wanted",
            is_flag=True,
            help="Hear every recording by itself, and all in a DIR: a line of --summary each, also "
            "of one that is broken. The exit status is the worst of all.",
        ),
        click.option(
            "--summary",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE.csv|.parquet",
            help="The table that --each writes; Parquet needs the extra 'tables'.",
        ),
    ),
)
"""Adds ``--each`` and ``--summary`` to a command, as its argument ``each``."""


# ------------------------------------------------------------------------------------------ replay
# monitor replay: a recording in, bits against length out.


@click.command("replay", short_help="Measure a recording: bits of identity against length heard.")
@click.argument("recordings", nargs=-1, required=True, metavar="RECORDING...")
@hearing_options
@protecting_options
@transcribing_options
@click.option(
    "--speed",
    type=Speed(),
    default="max",
    show_default=True,
    help="As fast as possible, or K times real time.",
)
@click.option("--start", type=Seconds(), default="0", help="Begin here in the (one) recording.")
@click.option("--end", type=Seconds(), help="Stop here in the (one) recording.")
@click.option("--raw", type=Raw(), help="Headerless PCM on standard input, such as 16000:1:s16le.")
@click.option(
    "--allow-overlap",
    is_flag=True,
    help="Go on although this very audio was enrolled (its figures are far too high).",
)
@alert_options(least_speech_seconds=10.0)
@ledger_options
@jsonl_options
@click.option(
    "--plot",
    metavar="FILE.png|.svg|.pdf",
    type=click.Path(path_type=Path),
    help="Draw the curve when done.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with an interrupted run in --jsonl FILE; with --each, with --summary FILE.",
)
@each_options
@jobs_option
@scheduler_option
@shown_options
def command(
    recordings: tuple[str, ...],
    options: MonitorOptions,
    protecting: Protecting,
    transcribing: Transcribing,
    speed: float,
    start: float,
    end: float | None,
    raw: tuple[int, int, str] | None,
    allow_overlap: bool,
    alerting: Alerting,
    of_ledger: LedgerOptions,
    log: JsonLog,
    plot: Path | None,
    resume: bool,
    each: Each,
    jobs: int | None,
    shown: Shown,
) -> int:
    """Measure how many bits of identity a RECORDING discloses, second by second.

    Any format libsndfile reads (wav, flac, ogg, opus, mp3, ...), ready-made frames (.npz, .jsonl),
    or - for a WAV or raw PCM on standard input. Several recordings are heard as one long one, or
    each by itself, a folder's too (--each).

    \b
    monitor replay talk.flac --plot talk.png
    monitor replay talk.flac -p us.npz --watch me --jsonl talk.jsonl
    monitor replay talk.flac -p us.npz --watch me --protect mcadams:0.8 --plot both.png
    monitor replay talks/ --each --summary talks.csv --alert 'bits>3'
    ffmpeg -i film.mkv -f wav - | monitor replay - --alert 'bits>3'

    One bit halves the people an attacker has to consider: among 50 people 3 bits leave about 6.
    """
    from monitor.cli.inputs import open_all
    from monitor.cli.run_reporter import RunReporter
    from monitor.run import Run
    from monitor.sinks.terminal import ReplayProgress
    from monitor.sources.chain import Chain, Paced

    words = transcribing.wanted(options.features)

    def opened() -> Source:
        sources = open_all(recordings, raw, start, end)
        for source in sources:
            options.check_channel(source)
        if words:
            sources = transcribing.beside(sources, recordings, start)
        chain = Chain(sources)
        return chain if math.isinf(speed) else Paced(chain, speed)

    if each.asked(
        {
            "--jsonl": log.jsonl,
            "--plot": plot,
            "--web": shown.web,
            "--ledger": of_ledger.ledger,
            "--raw": raw,
            "--speed": math.isfinite(speed),
            "--transcript": transcribing.transcript,
        }
    ):
        one = OneOfMany(
            options, protecting, alerting, transcribing, start, end, allow_overlap, shown.top or 1
        )
        return each.hear(recordings, one, jobs, resume=resume, replace=log.replace)
    check_not_scheduled("add --each")
    alerting.check_ledger(of_ledger.ledger)
    protection = protecting.protection(of_ledger.ledger)
    read = [
        *(*recordings, *options.files, *protecting.files, *transcribing.files, of_ledger.ledger),
    ]
    file = log.file(read, resume=resume)
    run_reporter = RunReporter(file, plot)
    with Run(
        opened,
        lambda source: options.monitor(source, top=shown.named),
        rules=lambda monitor: alerting.rules_for(monitor, of_ledger.rules()),
        actions=alerting.actions(),
        sinks=shown.pages(alerting.thresholds),
        log=file,
        ledger=of_ledger.file(),
        until=alerting.until,
        allow_overlap=allow_overlap,
        protect=protection,
        jobs=jobs,
    ) as run:
        say_unused_words(
            run.monitor.features, run.source.stream_info.tracks, transcribing.transcript
        )
        run_reporter.hear(run, ReplayProgress(run.source.seconds))
    return run_reporter.status(run)
