"""monitor replay: measure recordings."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self

import click

from monitor.cli.help import HelpCommand
from monitor.cli.inputs import open_all
from monitor.cli.monitor_options import refuse_beside
from monitor.cli.options import (
    NOTE,
    UNKNOWN_SECONDS,
    JobOptions,
    Part,
    Raw,
    Speed,
    argument,
    check_new,
    feature_setup,
    group,
    guides_setting,
    in_options,
    note,
    option,
    progress_over,
    say,
    seconds_of,
    setting,
    shared,
    with_options,
)
from monitor.cli.run_options import RunOptions, RunReporter
from monitor.cli.transcript_options import alert_for_option, check_pipe, say_unused_words
from monitor.errors import MonitorError, SourceError, StoreError, UsageError
from monitor.phrases import clock_time, plural
from monitor.run import worst
from monitor.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

    from monitor.features.registry import FeatureSetup
    from monitor.protocols import Sink, Source
    from monitor.run import Run
    from monitor.run.each import SummaryRow


SUFFIXES = (".csv", ".parquet")
MOST_NAMED = 20  # recordings with an alert that are named; the summary has all
MOST_TOLD = 5  # recordings that a note names; the summary has all


@dataclass(frozen=True, slots=True)
class OneOfMany:
    """Opens the run of one recording; may be sent to another process."""

    command_options: ReplayOptions
    setup: FeatureSetup

    def __call__(self, path: Path) -> Run:
        """Make the run of a recording, not yet entered."""
        from monitor.sources.base import Chain

        def opened() -> Source:
            sources = open_all([str(path)], None, self.command_options.interval)
            self.command_options.options.check_channel(sources[0])
            return Chain(self._with_words(sources, path))

        return self._run(opened, allow_overlap=self.command_options.allow_overlap)

    @property
    def words(self) -> bool:
        """True if the words beside a recording are used."""
        return self.command_options.transcribing.wanted(self.command_options.options.features)

    def _with_words(self, sources: Sequence[Source], path: Path) -> Sequence[Source]:
        if not self.words:
            return sources
        return self.command_options.transcribing.beside(
            sources, [str(path)], self.command_options.interval[0]
        )

    def beside(self, path: Path) -> list[Path]:
        """List the files used for this recording alone: its transcript, if words are used."""
        transcript = self.command_options.transcribing.choice.find(path) if self.words else None
        return [] if transcript is None else [transcript]

    def elsewhere(self) -> OneOfMany:
        """Return a copy for a cluster's workers, which have another working folder."""
        receivers = self.command_options.alerting.receivers
        if acting := [name for name, addresses in receivers.items() if addresses]:
            raise UsageError(f"{acting[0]} acts on this machine: leave it out, or use --jobs N")
        options, protecting = self.command_options.options, self.command_options.protecting
        store, rank_model_file = map(_absolute, (options.store, options.rank_model_file))
        protected = _absolute(protecting.protected_population)
        command_options = replace(
            self.command_options,
            options=replace(options, store=store, rank_model_file=rank_model_file),
            protecting=replace(protecting, protected_population=protected),
        )
        return OneOfMany(command_options, self.setup.elsewhere())

    def needs(self) -> list[Path]:
        """List the files used for every recording."""
        files = [*self.command_options.options.files, *self.command_options.protecting.files]
        return [Path(name) for name in files if Path(name).exists()]

    def marks(self) -> object:
        """Return the marks of the features' networks on this machine."""
        from monitor.features.registry import list_marks

        return list_marks(self._features(), self.setup)

    def _features(self) -> tuple[str, ...]:
        from monitor.features.registry import defaults

        return self.command_options.options.features or defaults(setup=self.setup)

    def notices(self, recordings: Sequence[Path]) -> list[str]:
        """Return the notices common to all recordings, by opening one of them."""
        from monitor.sources.registry import open_source

        for path in recordings:
            try:
                sources = self._with_words([open_source(path)], path)
                with self._run(sources[0], allow_overlap=True) as run:
                    alone = ("enrolled too", "protected recording")
                    return [str(notice) for notice in run.notices if notice.kind not in alone]
            except SourceError:  # the summary reports it
                continue
        return []

    def _run(self, opened: Source | Callable[[], Source], *, allow_overlap: bool) -> Run:
        from monitor.run import Run, RunSettings

        class InOptions(Run):
            """A run with options in its error messages, which the summary stores."""

            def __enter__(self) -> Self:
                try:
                    return super().__enter__()
                except MonitorError as error:
                    error.args = (in_options(error),)
                    raise

        alerting, top = self.command_options.alerting, self.command_options.shown.top or 1
        return InOptions(
            opened,
            lambda source: self.command_options.options.monitor(source, setup=self.setup, top=top),
            rules=alerting.rules_for,
            actions=alerting.actions(),
            settings=RunSettings(
                until=alerting.until,
                allow_overlap=allow_overlap,
                allow_idle_alerts=alerting.allow_idle,
                protect=self.command_options.protecting.protection(None),
            ),
        )

    def settings(self) -> str:
        """Return a hash of all that the figures depend on, except the recording."""
        command_options, alerting = self.command_options, self.command_options.alerting
        options = asdict(command_options.options) | {
            "watch": command_options.options.watched,
            "features": self._features(),
            **asdict(command_options.protecting),
        }
        for name in ("store", "rank_model_file", "protected_population"):
            if options[name] is not None:
                try:
                    content = Path(options[name]).read_bytes()
                except OSError as error:
                    raise StoreError(
                        f"cannot read {options[name]}: {error.strerror}. Check the name."
                    ) from None
                options[name] = hashlib.sha256(content).hexdigest()
        rules = [rule.rule for rule in alerting.rules], alerting.open_rules, alerting.stop
        alarms = alerting.false_alarms, alerting.horizon_seconds, alerting.warn_seconds
        selection = *command_options.interval, command_options.allow_overlap
        words = (
            (command_options.transcribing.speaker_in_transcript, self.marks()) if self.words else ()
        )
        text = repr((__version__, sorted(options.items()), rules, alarms, selection, *words))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """Options of ``--each``; a command gets them as ``batch``."""

    wanted: bool = option(
        "--each",
        "Measure each recording separately. A DIR stands for all in it. Needs --summary or "
        "--alert. The exit status is the worst of all.",
    )
    summary: Path | None = option(
        "--summary FILE.csv|.parquet",
        "Write a table, one row per recording or person. It needs --each or --turns. Parquet "
        "needs the extra 'tables'.",
        type=click.Path(path_type=Path, dir_okay=False),
    )

    def asked(self, of_one_run: Mapping[str, object], *, split: bool, alerts: bool) -> bool:
        """Return whether each recording is a separate run; ``split`` if one is split by person.

        A separate run needs a summary or ``alerts``.
        """
        if self.wanted:
            if clashing := next((name for name, value in of_one_run.items() if value), None):
                raise UsageError(f"{clashing} is for one run: leave it out, or leave out --each")
            if self.summary is None and not alerts:
                raise UsageError(
                    "--each writes one row per recording: add --summary out.csv, or an --alert"
                )
        elif self.summary is not None and not split:
            raise UsageError("--summary has one row per recording: add --each")
        if self.summary is not None and self.summary.suffix.lower() not in SUFFIXES:
            raise UsageError(
                f"invalid summary {self.summary}: use a name ending in {' or '.join(SUFFIXES)}"
            )
        return self.wanted


def _measure_each(options: ReplayOptions) -> int:
    path, resume = options.batch.summary, options.resume
    if path is None:
        if resume:
            raise UsageError("--resume continues a summary: add --summary out.csv")
        with TemporaryDirectory(prefix="monitor-") as folder:
            return _measure_into(Path(folder, "summary.csv"), options)
    status = _measure_into(path, options)
    say(f"monitor: the summary is {path}")
    return status


def _measure_into(path: Path, options: ReplayOptions) -> int:
    from monitor.run.each import SummaryFile, find_recordings, process_each, split_by_summary
    from monitor.sinks.jsonl import refuse_overwrite

    resume = options.resume
    if resume and options.log.replace:
        raise UsageError(
            "use --resume to continue a summary or --replace to start it again, not both"
        )
    shown = replace(options.shown, web_token=None)  # workers get no secret
    sent_options = replace(options, workers=JobOptions(None), shown=shown)
    open_run = OneOfMany(sent_options, feature_setup())
    recordings = find_recordings(options.recordings)
    refuse_overwrite(path, [*recordings, *options.options.files, *options.protecting.files])
    note(*open_run.notices(recordings))
    headers = [seconds_of(recording) for recording in recordings]
    start, end = options.interval
    lengths = {  # of the measured part
        recording: max(
            0.0, min(seconds or UNKNOWN_SECONDS, math.inf if end is None else end) - start
        )
        for recording, seconds in zip(recordings, headers, strict=True)
    }
    jobs, began, rows = options.workers.for_lengths(headers), time.monotonic(), []
    sent = open_run if isinstance(jobs, int) else open_run.elsewhere()
    with SummaryFile(
        path, open_run.settings(), resume=resume, replace=options.log.replace
    ) as summary:
        earlier, remaining = split_by_summary(recordings, summary, open_run.beside)
        minutes = sum(lengths[recording] for recording in remaining) / 60
        measured = process_each(
            remaining,
            sent,
            summary,
            jobs,
            reads=sent.needs(),
            side_files=sent.beside,
            alike=sent.marks,
        )
        try:
            with progress_over(minutes, "measuring", "min") as step, closing(measured) as done:
                for count, row in enumerate(done, 1):
                    step(f"{count} of {len(remaining)}: {row.path.name}", lengths[row.path] / 60)
                    rows.append(row)
        except (KeyboardInterrupt, MonitorError):
            if options.batch.summary is not None:
                say("monitor: to continue later, run the same command with --resume")
            raise
    report_batch(earlier, rows, time.monotonic() - began)
    return worst(row.status for row in (*earlier, *rows))


def _absolute(name: str | None) -> str | None:
    """Return the absolute path of a file; a name such as ``reference`` stays."""
    from monitor.jobs import absolute

    return name if name is None or not Path(name).exists() else str(absolute(Path(name)))


def report_batch(
    earlier: Sequence[SummaryRow], measured: Sequence[SummaryRow], took: float
) -> None:
    """Report the outcome of the recordings, naming those with an error or an alert."""
    from monitor.run.each import average_delays

    every = [row.cells for row in (*earlier, *measured)]
    for cells in every:
        if cells["error"]:
            say(f"monitor: {cells['recording']}: {cells['error']}")
    noticed = [f"{c['recording']}: {c['notices']}" for c in every if c["notices"]]
    _say_some(noticed, f"{NOTE} ", "and {} more have notices: see --summary")
    note(*_enrolled_too(every))
    over = [cells for cells in every if cells["first_alert_seconds"]]
    _say_some(map(_describe_alert, over), "monitor: ", "and {} more; --summary has them")
    open_still = [f"{c['recording']}: {c['undecided']}" for c in every if c["undecided"]]
    _say_some(open_still, "monitor: ", "and {} more; --summary has them")
    seconds = sum(float(row.cells["seconds"] or 0.0) for row in measured)
    speed = f", {seconds / took:.0f} times real time" if seconds and took else ""
    resumed = f"; {len(earlier)} there already" if earlier else ""
    lost = sum(not row.cells["seconds"] for row in measured)
    failed = f"; {lost} could not be measured" if lost else ""
    say(
        f"measured {plural(len(measured) - lost, 'recording')} ({seconds / 60:.1f} min{speed})"
        f"{failed}{resumed}; an alert was raised in {len(over)}"
        + (f", not decided in {len(open_still)}" if open_still else "")
    )
    say(*average_delays(every))


def _say_some(lines: Iterable[str], before: str, ending: str) -> None:
    lines = list(lines)
    for line in lines[:MOST_NAMED]:
        say(before + line)
    if len(lines) > MOST_NAMED:
        say(before + ending.format(len(lines) - MOST_NAMED))


def _describe_alert(cells: Mapping[str, str]) -> str:
    from monitor.events.phrases import number

    at = clock_time(float(cells["first_alert_seconds"]))
    prefix = "at least " if cells["at_least"] == "true" else ""
    last = f"; {prefix}{number(float(cells['bits']))} bits at its end" if cells["bits"] else ""
    if not cells["watch"]:
        likely = f" ({float(cells['enrolled']):.0%} likely)" if cells["enrolled"] else ""
        last += f", if the speaker is enrolled{likely}"
    short = f"; incomplete: {cells['incomplete']}" if cells["incomplete"] else ""
    return f"{cells['recording']}: an alert at {at}{last}{short}"


def _enrolled_too(every: Sequence[Mapping[str, str]]) -> list[str]:
    lines = []
    for session, consequence in (
        ("same", "The same-session rank model is used. A recording of another day discloses less."),
        (
            "cross",
            "There is no same-session rank model. The cross-session one used here understates "
            "what they disclose.",
        ),
    ):
        rows = [c for c in every if c["enrolled_too"] == "true" and c["session"] == session]
        if rows:
            names = ", ".join(cells["recording"] for cells in rows[:MOST_TOLD])
            suffix = f", ... ({plural(len(rows), 'recording')})" if len(rows) > MOST_TOLD else ""
            lines.append(f"enrolled too ({names}{suffix}). {consequence}")
    return lines


@dataclass(frozen=True, slots=True)
class SpeakerTurnOptions:
    """Options of people told apart; a command gets them as ``apart``."""

    turns: str | None = option(
        "--turns FILE|-",
        "Speaker turns, to measure each person separately. Formats are RTTM, Audacity labels, "
        "ELAN or Praat with one tier per person, and transcripts with speaker names.",
    )
    per_channel: bool = option(
        "--per-channel",
        "Measure each channel separately. Use it for calls with one person per channel.",
    )
    alert_for: tuple[str, ...] = shared(alert_for_option)

    def __post_init__(self) -> None:
        if self.turns is not None and self.per_channel:
            raise UsageError("use --turns or --per-channel, not both")
        if self.alert_for and not self.wanted:
            raise UsageError("alert-for needs --turns or --per-channel")

    @property
    def wanted(self) -> bool:
        """Return whether a recording is split by person."""
        return self.turns is not None or self.per_channel

    @property
    def name(self) -> str:
        """The option that was given."""
        return "--per-channel" if self.per_channel else "--turns"

    def split(self, source: Source, recording: str, start_seconds: float) -> Source:
        """Split a recording by its turns or channels."""
        from monitor.sources.people import Diarised, PerChannel
        from monitor.transcripts.turn_formats import read_turns

        if self.turns is None:
            return PerChannel(source)
        turns = read_turns(self.turns, recording=recording)
        return Diarised(source, turns, start_seconds=start_seconds)


@dataclass(frozen=True, slots=True)
class ReplayOptions(RunOptions):
    """Options of the command."""

    recordings: tuple[str, ...] = argument("RECORDING...", nargs=-1, required=True)
    speed: float = option(
        "--speed",
        "Replay at K times real time. max is as fast as possible.",
        type=Speed(),
        default="max",
    )
    interval: tuple[float, float | None] = option(
        "--part",
        "Measure only this part of one recording.",
        type=Part(),
        default="0",
        show_default=False,
    )
    apart: SpeakerTurnOptions = group(SpeakerTurnOptions, "Words and turns")
    raw: tuple[int, int, str] | None = option(
        "--raw", "Headerless PCM on standard input, such as 16000:1:s16le.", type=Raw()
    )
    allow_overlap: bool = setting(
        "allow-overlap", "Accept audio that was itself enrolled. Its bits are far too high."
    )
    plot: Path | None = option("--plot FILE.png|.svg|.pdf", "Draw the curve when done.")
    guides: bool = guides_setting()
    resume: bool = option(
        "--resume",
        "Continue an interrupted run of --jsonl FILE. With --each, continue --summary FILE. A run "
        "interrupted before it saved anything starts again.",
    )
    batch: BatchOptions = group(BatchOptions, "Many recordings")
    workers: JobOptions = group(JobOptions, "Many recordings")

    @property
    def picture(self) -> tuple[Path, bool] | None:
        """The picture to draw, and whether it has guides."""
        if self.plot is None and self.guides:
            raise UsageError("guides is for a picture: add --plot FILE.png")
        return None if self.plot is None else (self.plot, self.guides)


@click.command("replay", cls=HelpCommand, short_help="Measure recordings.")
@with_options(ReplayOptions)
def command(options: ReplayOptions) -> int:
    """Measure how many bits of identity a RECORDING discloses, second by second.

    A RECORDING is a sound file (wav, flac, ogg, opus, mp3, ...), ready-made frames (.npz, .jsonl),
    or - for a WAV on standard input. Several recordings are joined, or measured separately with
    --each.

    \b
    monitor replay talk.flac --plot talk.png
    monitor replay talk.flac -p us.npz --watch me --protect mcadams:0.8 --plot both.png
    ffmpeg -i film.mkv -f wav - | monitor replay -

    \b
    monitor replay meeting.wav -p us.npz --turns meeting.rttm --plot meeting.png
    monitor replay talks/ --each --summary talks.csv --alert 'bits>3'
    """
    from monitor.sinks.progress import ReplayProgress
    from monitor.sources.base import Chain, Paced

    words = options.transcribing.wanted(options.options.features)
    split = options.apart.wanted
    if split:
        _check_split(options, words=words)

    def opened() -> Source:
        sources = open_all(options.recordings, options.raw, options.interval)
        for source in sources:
            options.options.check_channel(source)
        if words:
            sources = options.transcribing.beside(sources, options.recordings, options.interval[0])
        joined = sources[0] if split else Chain(sources)
        paced = joined if math.isinf(options.speed) else Paced(joined, options.speed)
        if not split:
            return paced
        return options.apart.split(paced, options.recordings[0], options.interval[0])

    of_one_run = {
        "--jsonl": options.log.jsonl,
        "--plot": options.plot,
        "--web": options.shown.web,
        "--ledger": options.of_ledger.ledger,
        "--raw": options.raw,
        "--speed": math.isfinite(options.speed),
        "--transcript": options.transcribing.transcript,
        options.apart.name: split,
    }
    alerts = bool(options.alerting.alerts)
    if options.batch.asked(of_one_run, split=split, alerts=alerts):
        return _measure_each(options)
    if options.workers.scheduler is not None:
        raise UsageError(f"--jobs {options.workers.scheduler} is for many recordings: add --each")
    read = [*options.recordings, *options.transcribing.files, options.apart.turns]
    reporter = RunReporter(
        options, read, plot=options.picture, resume=options.resume, split=split,
        alert_for=options.apart.alert_for,
    )  # fmt: skip
    jobs = options.workers.processes
    with reporter.run(opened, allow_overlap=options.allow_overlap, jobs=jobs) as run:
        say_unused_words(
            run.monitor.features, run.source.stream_info.tracks, options.transcribing.transcript
        )
        if split:
            from monitor.sinks.progress import PeopleProgress

            view: Sink = PeopleProgress(run.source.seconds)
        else:
            view = ReplayProgress(run.source.seconds)
        reporter.follow(run, view)
    if split and options.batch.summary is not None:
        from monitor.tables import write_people

        write_people(options.batch.summary, run.end)
        say(f"monitor: the summary is {options.batch.summary}")
    return reporter.status(run)


def _check_split(options: ReplayOptions, *, words: bool) -> None:
    if len(options.recordings) > 1:
        raise UsageError(f"{options.apart.name} is for one recording: name one")
    if options.apart.turns == "-":
        check_pipe("--turns", "RTTM", options.recordings)
    refuse_beside(
        options.apart.name,
        {
            "--protect": options.protecting.protect,
            "--ledger": options.of_ledger.ledger,
            "--resume": options.resume,
            "style" if options.transcribing.transcript is None else "--transcript": words,
            "--channel": options.options.channel is not None and options.apart.per_channel,
        },
    )
    if options.alerting.false_alarms is not None and options.options.watch[1:]:
        raise UsageError("--false-alarms works out a threshold for one --watch: name one")
    if options.batch.summary is not None and not options.batch.wanted and not options.log.replace:
        check_new(options.batch.summary, "--summary")
