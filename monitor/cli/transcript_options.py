"""Options for words: a recording's transcript, and the speaker of the words."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from monitor.cli.help import Setting
from monitor.cli.options import (
    Seconds,
    columns_option,
    feature_setup,
    in_options,
    note,
    option,
    setting,
    shared,
    speaker_model_option,
)
from monitor.errors import SourceError, UsageError

if TYPE_CHECKING:
    from monitor.corpus import Columns, Corpus
    from monitor.protocols import LiveSource, Source
    from monitor.transcripts.choice import TranscriptChoice


in_transcript_option = click.option(
    "--speaker-in-transcript",
    metavar="NAME",
    help="Speaker label to take words from. [default: all words if a transcript has at most one "
    "label, otherwise the label named as in the corpus]",
)


@dataclass(frozen=True, slots=True)
class CorpusOptions:
    """Options of a corpus: its network, and the speaker of transcripts' words."""

    speaker_model: ClassVar[Any] = speaker_model_option
    speaker_in_transcript: str | None = shared(in_transcript_option)
    columns: Columns = shared(columns_option)

    def find(self, path: Path) -> Corpus:
        """Find a corpus, with the chosen speaker of its transcripts."""
        from monitor.corpus import find
        from monitor.transcripts.choice import TranscriptChoice

        corpus = find(path, columns=self.columns)
        speaker = self.speaker_in_transcript
        return corpus if speaker is None else corpus.with_words(TranscriptChoice(speaker=speaker))


def say_unused_words(
    features: Iterable[str], ready_made: Iterable[str] = (), transcript: str | None = None
) -> None:
    """Report that a transcript does not change ready-made frames."""
    from monitor.features.registry import takes

    of_words = {name for name in features if takes(name) == "words"}
    ready = ", ".join(sorted(of_words.intersection(ready_made)))
    if ready and transcript is not None:
        note(f"--transcript is ignored because the frames of {ready} are ready-made")


@dataclass(frozen=True, slots=True)
class TranscriptOptions:
    """Transcripts."""

    transcript: str | None = option(
        "--transcript FILE|-",
        "Words with times, for the feature style. Formats are .vtt, .srt, Whisper's .json, .tsv, "
        ".ctm and JSON lines (.words). Use - for a live recogniser. [default: with --features "
        "style, the file beside each recording]",
    )
    speaker_in_transcript: str | None = shared(in_transcript_option)

    @property
    def files(self) -> list[str]:
        """Files that are read."""
        return [self.transcript] if self.transcript not in (None, "-") else []

    @property
    def choice(self) -> TranscriptChoice:
        """Transcript, and the speaker of its words."""
        from monitor.transcripts.choice import TranscriptChoice

        path = Path(self.transcript) if self.transcript not in (None, "-") else None
        return TranscriptChoice(path, self.speaker_in_transcript)

    def wanted(self, features: Iterable[str] | None) -> bool:
        """Return whether words are used with these features, None for the usual ones."""
        from monitor.features.registry import takes

        of_words = features is not None and "words" in map(takes, features)
        useless = ["--transcript"] * (self.transcript is not None)
        useless += ["--speaker-in-transcript"] * (self.speaker_in_transcript is not None)
        if features is not None and not of_words and useless:
            raise UsageError(
                f"{useless[0]} needs words, which --features {','.join(features)} lacks: add style"
            )
        if self.transcript is None and not of_words and self.speaker_in_transcript is not None:
            raise UsageError("--speaker-in-transcript needs --transcript, or --features style")
        return of_words or self.transcript is not None

    def enrolling(
        self, corpus: Corpus | None, features: Sequence[str] | None, among: Iterable[str] | None
    ) -> tuple[Corpus | None, tuple[str, ...] | None]:
        """Return the corpus with its words, and the features to enrol; None for the defaults."""
        from monitor.features.registry import FEATURES, defaults, takes
        from monitor.sources.registry import is_frames

        if corpus is None:
            if self.transcript is not None or self.speaker_in_transcript is not None:
                raise UsageError("--transcript is for recordings: leave out --microphone")
        elif self.wanted(features):
            corpus = corpus.with_words(self.choice)
        if features is not None:
            return corpus, tuple(features)
        if among is None:
            of_words = [name for name, feature in FEATURES.items() if feature.takes == "words"]
            usual = defaults(setup=feature_setup())
            return corpus, (*usual, *of_words) if self.transcript is not None else None
        usual = defaults(among, feature_setup())
        if corpus is None or not all(is_frames(r.path) or r.words.find(r.path) for r in corpus):
            usual = tuple(name for name in usual if takes(name) != "words")
        if self.transcript is not None and "words" not in map(takes, usual):
            raise UsageError(
                "the speakers enrolled before have no templates of words: leave out --transcript"
            )
        return corpus, usual

    def beside(
        self, sources: Sequence[Source], recordings: Sequence[str], start_seconds: float
    ) -> list[Source]:
        """Join recordings and their words."""
        from monitor.sources.beside import with_words

        if self.transcript is not None and len(recordings) > 1:
            raise UsageError(
                "--transcript is for one recording. For several, put NAME.vtt beside each NAME "
                "and add style to --features."
            )
        if self.transcript == "-":
            check_pipe("--transcript", "JSON lines of words", recordings)
            return [_piped(sources[0], self.choice, start_seconds)]
        if self.transcript is None and "-" in recordings:
            raise UsageError("standard input has no transcript beside it: add --transcript FILE")
        return [
            with_words(source, name, self.choice, start_seconds=start_seconds)
            for source, name in zip(sources, recordings, strict=True)
        ]

    def live(self, source: LiveSource, report: Callable[[str], object]) -> LiveSource:
        """Join a live source and the words of a recogniser on standard input."""
        from monitor.sources.beside import LiveWords
        from monitor.transcripts.live import WordPipe, lines_from

        if self.transcript != "-":
            raise UsageError(
                "live words come from standard input: use --transcript - with a recogniser's JSON "
                "lines"
            )
        check_pipe("--transcript", "JSON lines of words")
        pipe = WordPipe(
            lines_from(sys.stdin.fileno()),
            speaker=self.speaker_in_transcript,
            label="standard input",
            report=lambda line: report(in_options(line)),
        )
        return LiveWords(source, pipe, self.speaker_in_transcript)


def check_pipe(option: str, what: str, recordings: Sequence[str] = ()) -> None:
    """Refuse standard input for an option if it is also a recording, or a terminal."""
    if "-" in recordings:
        raise UsageError(
            f"standard input (-) is either the recording or the input of {option}: use a file for "
            "one"
        )
    if sys.stdin.isatty():
        raise UsageError(f"{option} - is standard input: pipe {what} into it")


alert_for_option = click.option(
    "--alert-for",
    cls=Setting,
    metavar="LABEL",
    multiple=True,
    help="Apply alerts only to this label of the turns. May be repeated. [default: all]",
)


@dataclass(frozen=True, slots=True)
class LiveTurns:
    """Turns of a live source."""

    turns: str | None = option(
        "--turns -",
        "Measure each person separately, by turns in RTTM that a live diariser writes to standard "
        "input.",
    )
    turns_delay: float | None = setting(
        "turns-delay SECONDS",
        "Longest delay of turns after their sound. It delays the readings. [default: 5]",
        type=Seconds(),
    )

    alert_for: tuple[str, ...] = shared(alert_for_option)

    def __post_init__(self) -> None:
        if self.turns not in (None, "-"):
            raise UsageError(
                "live turns come from standard input: use --turns - with lines of RTTM"
            )
        if self.turns_delay is not None and self.turns is None:
            raise UsageError("turns-delay needs --turns -")
        if self.alert_for and self.turns is None:
            raise UsageError("alert-for needs --turns -")

    def split(self, source: LiveSource, report: Callable[[str], object]) -> LiveSource:
        """Split a source by live turns; without ``--turns`` it is unchanged."""
        if self.turns is None:
            return source
        from monitor.sources.people import LiveDiarised
        from monitor.transcripts.live import TurnPipe, lines_from

        check_pipe("--turns", "RTTM")
        lines = lines_from(sys.stdin.fileno())
        pipe = TurnPipe(lines, label="standard input", report=report)
        return LiveDiarised(
            source, pipe, delay_seconds=5.0 if self.turns_delay is None else self.turns_delay
        )


def _piped(source: Source, choice: TranscriptChoice, start_seconds: float) -> Source:
    """Join a recording and the words on standard input, which are all read first."""
    from monitor.sources.beside import SideInputSource
    from monitor.transcripts.formats import read_word_lines

    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig")
    except ValueError:
        what = "standard input is not UTF-8 text: --transcript - takes JSON lines"
        raise SourceError(what) from None
    read = read_word_lines("standard input", text)
    if not read.timed_words:
        raise SourceError("standard input has no words")
    return SideInputSource(source, words=choice.select_words(read), start_seconds=start_seconds)
