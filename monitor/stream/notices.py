"""Notices of a stream, in the order in which they happen; and the log for programs."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from monitor.crowds import YOU
from monitor.errors import Argument, Message, OverlapError
from monitor.events.occurrences import GapEvent, NoticeEvent
from monitor.features.registry import caveats, takes
from monitor.phrases import format_best_feature, plural
from monitor.population.interpolation import same_session_bias
from monitor.population.people import SourceNote, Speaker
from monitor.population.population import Population
from monitor.protocols import Provenance, Source
from monitor.safe_text import printable
from monitor.stream.accumulator import FeatureTotals
from monitor.stream.attacker import Attacker
from monitor.stream.front_end import FrontEnd
from monitor.stream.posterior import Bystanders
from monitor.stream.speaker_changes import Recordings, describe_criterion, find_shared_features
from monitor.types import TICKS_PER_SECOND, Gap, Notice

MOST_NOTICES = 100
"""Of a stream; what comes after them is left out, so that a run that ends says all that it said."""


class EventOrder:
    """Queue that emits every loss and notice once, in order, for any cutting of the stream.

    Attributes:
        emitted_count: events emitted before the stop that the stream is resumed from.
    """

    def __init__(self) -> None:
        self.emitted_count = 0
        self._passed = self._notices = 0
        self._waiting: list[tuple[int, Gap | Notice, bool]] = []

    @property
    def count(self) -> int:
        """Number of repeatable events so far, those before a stop included."""
        return max(self._passed, self.emitted_count)

    def add(self, tick: int, event: Gap | Notice, *, again: bool = True) -> None:
        """Add an event, to be emitted once so many ticks have been learnt.

        ``again``: True if a replay of the stream brings it again.
        """
        if isinstance(event, Notice):
            self._notices += 1
            if self._notices > MOST_NOTICES:
                return
        self._waiting.append((tick, event, again))
        self._waiting.sort(key=lambda waiting: waiting[0])

    def pop_due(self, tick: int, *, last: bool = False) -> Iterator[GapEvent | NoticeEvent]:
        """Yield what is due by this tick; at the last one, everything."""
        while self._waiting and (last or self._waiting[0][0] <= tick):
            at, event, again = self._waiting.pop(0)
            self._passed += again
            if again and self._passed <= self.emitted_count:
                continue
            seconds = min(at, tick) / TICKS_PER_SECOND
            if isinstance(event, Notice):
                yield NoticeEvent.of(seconds, event)
            else:
                yield GapEvent.of(seconds, event)


def session_of(
    population: Population, parts: Iterable[Provenance], *, allow_overlap: bool = False
) -> str:
    """Return ``"same"`` where one of these recordings was enrolled too, else ``"cross"``.

    OverlapError where enrolled audio would be measured, and that is not allowed.
    """
    session = "cross"
    for part in parts:
        enrolled = population.overlapping(part.hashes)
        if enrolled:
            session = "same"
        if not allow_overlap:
            _refuse_overlap(part, enrolled)
    return session


def _refuse_overlap(part: Provenance, enrolled: Iterable[tuple[Speaker, SourceNote]]) -> None:
    end = math.inf if part.end_seconds is None else part.end_seconds
    overlaps = [
        (speaker, note)
        for speaker, note in enrolled
        if note.start_seconds < end and part.start_seconds < note.end_seconds
    ]
    if overlaps:
        speaker, note = overlaps[0]
        after = max(note.end_seconds for _, note in overlaps)
        raise OverlapError(
            Message(
                f"{part.label}: seconds {note.start_seconds:g} to {note.end_seconds:g} were "
                f"enrolled as {speaker.name}; start after them (",
                Argument("start_seconds", f"{after:g}"),
                "), or insist with ",
                Argument("allow_overlap", "True"),
            )
        )


LOGGER = logging.getLogger("monitor")
LOGGER.addHandler(logging.NullHandler())

_CONTRADICTED = 20.0  # an e-value: rejected at 5 %
_WORTH_SAYING = 0.05
_WORTH_BITS = 0.05
_EXAMPLE_SECONDS = 30.0
"""Length of speech at which features are set beside each other."""
_NAMED = 5


def log_notices(notices: Iterable[Notice]) -> None:
    """Write notices to the log: ``WARNING`` or ``INFO``, with the notice as ``record.notice``."""
    for notice in notices:
        level = logging.INFO if notice.level == "info" else logging.WARNING
        LOGGER.log(level, "%s", printable(notice), extra={"notice": notice})


class NoticedMonitor(Protocol):
    """The members of a `Monitor` that its notices describe."""

    population: Population
    attacker: Attacker
    features: tuple[str, ...]
    skipped_features: tuple[str, ...]
    watch: str | None
    session: str
    on_change: str
    mismatched: bool
    noise: str
    bystanders: Bystanders | None
    front_end: FrontEnd
    recordings: Recordings

    @property
    def all_totals(self) -> FeatureTotals:
        """Totals of everybody in this stream."""


def setup_notices(monitor: NoticedMonitor) -> list[Notice]:
    """List notices on templates, features, settings and rank model, in order of display."""
    return [*_template_notices(monitor), *_feature_notices(monitor), *rank_model_notices(monitor)]


def protected_recordings(source: Source) -> Iterator[Notice]:
    """Explain the bits of recordings whose voice this program changed."""
    for how in source.stream_info.protected:
        changed = not how.endswith((", cut)", ", silence)"))
        meaning = (
            "against templates of clear speech its bits are those of an attacker who does not know "
            "that, and no measure of protection. Test it against one who does: monitor attack"
            if changed
            else "its bits are of what was kept"
        )
        yield Notice(
            "protected recording", f"{how}: {meaning}", level="warning" if changed else "info"
        )


def evidence_against(bits: float, watch: str) -> Notice:
    """Create the notice of a run that ended with evidence against the watched speaker."""
    who = "you" if watch.lower() in YOU else watch
    return Notice(
        "evidence against",
        f"{bits:.1f} bits are evidence against {who}: another voice, or a changed one. An attacker "
        "who knows how it was changed may still recognise it. Watch who speaks, or test the "
        "change: monitor attack",
        fields={"bits": bits},
    )


def _template_notices(monitor: NoticedMonitor) -> Iterator[Notice]:
    attacker = monitor.attacker
    if attacker.withheld:
        yield Notice("bits withheld", attacker.withheld)
    yield from _report_excluded(monitor)
    if attacker.length_notice and not _mismatched(monitor):  # else both are one notice
        yield Notice("template length", attacker.length_notice, fields=_length(monitor))
    for name in monitor.features:
        if nothing := monitor.population.empty(name):
            yield Notice(
                "empty templates",
                f"the templates hold no {name} of {_format_names(nothing)}: it says nothing of "
                "them",
                fields={"speakers": list(nothing)},
            )


def _mismatched(monitor: NoticedMonitor) -> bool:
    """Return whether some of those enrolled are new to a calibration that is not the shipped."""
    return monitor.mismatched and monitor.attacker.rank_model.origin != "shipped"


def _length(monitor: NoticedMonitor) -> dict[str, float]:
    return {"template_seconds": monitor.attacker.scoring.seconds}


def _report_excluded(monitor: NoticedMonitor) -> Iterator[Notice]:
    """Report who is enrolled and not compared: before all else."""
    attacker = monitor.attacker
    names = [name for name in attacker.left_out if name != monitor.watch]  # that one is told why
    if not names:
        return
    verb = "is" if len(names) == 1 else "are"
    have = [float(monitor.population.template_seconds[monitor.population.index(n)]) for n in names]
    length = f"{min(have):g}" if min(have) == max(have) else f"{min(have):g} to {max(have):g}"
    advice = "" if monitor.watch else ", or --watch one, and all are cut to that length"
    yield Notice(
        "not compared",
        f"{_format_names(names)} {verb} not among the {attacker.speakers} compared: {length} s of "
        f"speech are enrolled, all are compared by {attacker.scoring.seconds:g} s; enrol more "
        f"(monitor enrol --add){advice}",
        fields={"speakers": names},
    )


def _feature_notices(monitor: NoticedMonitor) -> Iterator[Notice]:
    for name in monitor.features:
        for caveat in caveats([name]):
            yield Notice("feature caveat", caveat)
    yield from _report_skipped(monitor.skipped_features)
    support = monitor.attacker.support_bits
    bystanders = monitor.bystanders
    if bystanders is not None and support is not None and (text := bystanders.notice(support)):
        yield Notice("crowd unsupported", text, fields={"support_bits": support})
    if monitor.noise:
        yield Notice(
            "noisy frames",
            f"these frames have noise ({monitor.noise}): whoever knows its rank model may learn "
            "more than this attacker, who takes them for clear speech; changes of the voice are "
            "not looked for",
        )
    elif monitor.on_change != "ignore" and not monitor.front_end.get_change_sensitivities():
        mute = ", ".join(monitor.features)
        yield Notice("changes unnoticed", f"no change of the voice can be noticed by {mute}")


def _report_skipped(names: Sequence[str]) -> Iterator[Notice]:
    """Report features that an attacker may use and this run does not."""
    word_features = [name for name in names if takes(name) == "words"]
    others = [name for name in names if name not in word_features]
    if others:
        yield Notice(
            "feature not used",
            f"not used: {', '.join(others)}; an attacker who does may learn more (choose with "
            "--features)",
        )
    if word_features:
        yield Notice(
            "feature not used",
            f"not used: {', '.join(word_features)}; an attacker who knows what is said may learn "
            "more (it takes the words: --transcript FILE)",
        )


def rank_model_notices(monitor: NoticedMonitor) -> Iterator[Notice]:
    """Report the rank model's origin, and by how much it may favour the attacker."""
    attacker = monitor.attacker
    rank_model = attacker.rank_model
    yield from _session_notices(monitor)
    yield from _calibration_notices(monitor)
    if weaker := _weaker_joint(monitor):
        yield Notice("one feature alone", weaker)
    if rank_model.forgotten:
        verb = "has" if rank_model.forgotten == 1 else "have"
        yield Notice(
            "forgotten",
            "of those that the rank model was learnt from "
            f"{plural(rank_model.forgotten, 'speaker')} {verb} been forgotten since, and it is "
            "still an average with them: calibrate again (monitor calibrate) without those "
            "recordings",
            fields={"speakers": rank_model.forgotten},
        )
    yield from _evidence_notices(attacker)
    if attacker.speakers > 10 * rank_model.candidates:
        yield Notice(
            "few learnt from",
            f"{attacker.speakers} speakers are more than ten times the "
            f"{rank_model.candidates} that the rank model was learnt on",
            fields={
                "speakers": attacker.speakers,
                "rank_model_candidates": int(rank_model.candidates),
            },
        )


def _format_bias(monitor: NoticedMonitor) -> str:
    attacker = monitor.attacker
    specs = {name: monitor.population.specs[name] for name in attacker.features}
    return same_session_bias(specs, attacker.speakers, attacker.scoring.seconds)


def _session_notices(monitor: NoticedMonitor) -> Iterator[Notice]:
    """Report a rank model of another kind of session than the recordings'."""
    attacker = monitor.attacker
    if attacker.same_session_biased:
        yield Notice(
            "same-session rank model",
            "no cross-session rank model could be learnt: the same-session rank model used here "
            f"favours the attacker, {_format_bias(monitor)}; calibrate on 10 speakers or more with "
            "two sessions each",
        )
    elif attacker.session == "same":
        yield Notice(
            "enrolled too",
            "this recording was enrolled too: the same-session rank model is used; another day's "
            f"recording discloses less, {_format_bias(monitor)}",
            fields={"rank_model_session": "same"},
        )
    if monitor.session == "same" and attacker.session == "cross":
        yield Notice(
            "enrolled too",
            "this recording was enrolled too, but there is no same-session rank model: the "
            "cross-session rank model used here makes light of what it discloses",
            fields={"rank_model_session": "cross"},
        )


def _calibration_notices(monitor: NoticedMonitor) -> Iterator[Notice]:
    """Report a rank model of other people than those enrolled."""
    attacker = monitor.attacker
    rank_model = attacker.rank_model
    if rank_model.origin == "shipped":
        yield Notice(
            "shipped rank model",
            "the cross-session rank model is that of the shipped readers: too few of the speakers "
            "calibrated on have two sessions. What their one session says would favour the "
            f"attacker, {_format_bias(monitor)}",
        )
    elif _mismatched(monitor):
        text = (
            "calibration lacks some of those enrolled: people who share their microphone may read "
            "1 to 2 bits too high. Calibrate on your own speakers: monitor calibrate"
        )
        if attacker.length_notice:
            text = f"{attacker.length_notice}. {text[0].upper()}{text[1:]}"
        yield Notice(
            "mismatched rank model",
            text,
            fields=_length(monitor) if attacker.length_notice else {},
        )
        evidence, ratio = attacker.contradiction(monitor.population)
        if evidence > _CONTRADICTED:
            yield Notice(
                "calibration contradicted",
                f"those enrolled contradict this rank model: on average they show {ratio:.3g} "
                "times as much evidence of each other as chance allows (1); calibrate on 10 of "
                "them or more",
                fields={"e_value": evidence, "mean_ratio": ratio},
            )
    elif rank_model.prior_share >= _WORTH_SAYING:
        yield Notice(
            "prior",
            f"of the rank model {100 * rank_model.prior_share:.0f} % is the shipped readers', "
            f"which keeps the rest, learnt from {plural(rank_model.speakers, 'speaker')}, from "
            "claiming too much",
            level="info",
            fields={"share": rank_model.prior_share, "speakers": rank_model.speakers},
        )


def _evidence_notices(attacker: Attacker) -> Iterator[Notice]:
    """Report features that the evidence lacks."""
    if attacker.evidence_model is not None and attacker.no_evidence_reason:
        yield Notice(
            "evidence partial",
            f"evidence, and what is said of other crowds, is of "
            f"{'+'.join(attacker.evidence_model.features)} alone: {attacker.no_evidence_reason} "
            "(monitor calibrate --cohort, of people with words); an attacker who "
            "weighs what is said too may learn more",
            fields={"features": list(attacker.evidence_model.features)},
        )
    elif attacker.no_evidence_reason:
        yield Notice(
            "no evidence",
            f"nothing can be said beyond the {attacker.speakers} enrolled: "
            f"{attacker.no_evidence_reason} (monitor calibrate)",
        )


def _weaker_joint(monitor: NoticedMonitor) -> str:
    """Report one feature that discloses more on average than all together, if any."""
    attacker = monitor.attacker
    if len(attacker.features) < 2:
        return ""
    together = attacker.expected_alone(None, _EXAMPLE_SECONDS)
    alone = {name: attacker.expected_alone(name, _EXAMPLE_SECONDS) for name in attacker.features}
    if max(alone.values()) - together < _WORTH_BITS:
        return ""
    text = format_best_feature(together, alone, "all features together")
    return f"on average, after {_EXAMPLE_SECONDS:g} s of speech, {text}"


def recording_notices(monitor: NoticedMonitor, labels: Sequence[str]) -> list[Notice]:
    """List notices on the recordings of a finished stream: no speech, or another person."""
    recordings, specs = monitor.recordings, monitor.population.specs
    mismatches = recordings.mismatches + recordings.find_mismatch(monitor.all_totals)
    texts = [(number, "no speech", "no speech in it")
             for number in recordings.silent + recordings.silent_now]  # fmt: skip
    if mismatches:
        shared = find_shared_features({name: specs[name] for name in monitor.features})
        text = (
            "sounds like another person than what was heard before it, judged by "
            f"{describe_criterion(shared)}"
        )
        texts += [(number, "another person", text) for number in mismatches]
    return [
        Notice(kind, f"{labels[number]}: {text}", number)
        for number, kind, text in texts
        if number < len(labels)
    ]


def _format_names(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
