"""Notices of a stream, and the log for programs."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from monitor.crowds import YOU
from monitor.errors import Argument, Message, OverlapError, StoreError, UsageError
from monitor.features.registry import caveats, takes
from monitor.phrases import format_best_feature, format_names, plural
from monitor.population.interpolation import same_session_bias
from monitor.population.people import SourceNote, Speaker
from monitor.population.population import Population
from monitor.population.templates import share
from monitor.protocols import Provenance, Source
from monitor.safe_text import printable
from monitor.stream.attacker import Attacker
from monitor.stream.front_end import FrontEnd
from monitor.stream.posterior import Bystanders
from monitor.stream.separability import APART_BITS, Verdict, compare_people
from monitor.stream.speaker_changes import Recordings, describe_criterion, find_shared_features
from monitor.stream.stream import Stream
from monitor.types import Notice


def session_of(
    population: Population, parts: Iterable[Provenance], *, allow_overlap: bool = False
) -> str:
    """Return ``"same"`` if one of these recordings was enrolled too, otherwise ``"cross"``.

    Raises OverlapError if enrolled audio would be measured, and that is not allowed.
    """
    session = "cross"
    for recording in parts:
        enrolled = population.overlapping(recording.hashes)
        if enrolled:
            session = "same"
        if not allow_overlap:
            _refuse_overlap(recording, enrolled)
    return session


def _refuse_overlap(recording: Provenance, enrolled: Iterable[tuple[Speaker, SourceNote]]) -> None:
    end = math.inf if recording.end_seconds is None else recording.end_seconds
    overlaps = [
        (speaker, note)
        for speaker, note in enrolled
        if note.start_seconds < end and recording.start_seconds < note.end_seconds
    ]
    if overlaps:
        speaker, note = overlaps[0]
        after = max(note.end_seconds for _, note in overlaps)
        raise OverlapError(
            Message(
                f"{recording.label}: seconds {note.start_seconds:g} to {note.end_seconds:g} were "
                f"enrolled as {speaker.name}. Start after them (",
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
"""Length of speech at which features are compared."""


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
    def core(self) -> Stream:
        """The stream itself."""


def setup_notices(monitor: NoticedMonitor) -> list[Notice]:
    """List notices on templates, features, settings and rank model, in order of display."""
    return [*_template_notices(monitor), *_feature_notices(monitor), *_rank_model_notices(monitor)]


def protected_recordings(source: Source) -> Iterator[Notice]:
    """Explain the bits of recordings with a voice that this program changed."""
    for protection in source.stream_info.protected:
        if protection.endswith((", cut)", ", silence)")):
            yield Notice(
                "protected recording",
                f"{protection}. Its bits describe the speech that was kept",
                level="info",
            )
            continue
        yield Notice(
            "protected recording",
            f"{protection}. With templates of clear speech, its bits describe an attacker who is "
            "unaware of this. They do not measure protection. Test an informed attacker: monitor "
            "attack",
        )


def evidence_against(bits: float, watch: str) -> Notice:
    """Create the notice of a run that ended with evidence against the watched speaker."""
    who = "you" if watch.lower() in YOU else watch
    return Notice(
        "evidence against",
        f"{bits:.1f} bits are evidence against {who}: another voice, or a changed one. An attacker "
        "who knows how it was changed may still recognise it. Watch the person who speaks, or "
        "test the change: monitor attack",
        fields={"bits": bits},
    )


def _template_notices(monitor: NoticedMonitor) -> Iterator[Notice]:
    attacker, population = monitor.attacker, monitor.population
    if attacker.withheld:
        yield Notice("bits withheld", attacker.withheld)
    # the watched speaker is in the notice of lengths
    if names := [name for name in attacker.left_out if name != monitor.watch]:
        have = [float(population.template_seconds[population.index(name)]) for name in names]
        length = f"{min(have):g}" if min(have) == max(have) else f"{min(have):g} to {max(have):g}"
        advice = "" if monitor.watch else ", or --watch one, which cuts all to that length"
        yield Notice(
            "not compared",
            f"{format_names(names)} {'is' if len(names) == 1 else 'are'} not among the "
            f"{attacker.speakers} compared: {length} s of speech enrolled, "
            f"{attacker.scoring.seconds:g} s needed. Enrol more (monitor enrol --add){advice}",
            fields={"speakers": names},
        )
    if attacker.length.notice and not _lacks_enrolled(monitor):  # otherwise both are one notice
        fields = {"template_seconds": attacker.scoring.seconds}
        yield Notice("template length", attacker.length.notice, fields=fields)
    for name in monitor.features:
        if nothing := population.empty(name):
            yield Notice(
                "empty templates",
                f"the templates have no {name} of {format_names(nothing)}: {name} cannot identify "
                "them",
                fields={"speakers": list(nothing)},
            )


def _lacks_enrolled(monitor: NoticedMonitor) -> bool:
    """Return whether a calibration other than the shipped one lacks some enrolled people."""
    return monitor.mismatched and monitor.attacker.rank_model.origin != "shipped"


def _feature_notices(monitor: NoticedMonitor) -> Iterator[Notice]:
    for caveat in caveats(monitor.features):
        yield Notice("feature caveat", caveat)
    of_words = [name for name in monitor.skipped_features if takes(name) == "words"]
    of_sound = [name for name in monitor.skipped_features if name not in of_words]
    for names, reason in (
        (of_sound, "An attacker who uses them may learn more (choose with --features)"),
        (of_words, "An attacker who knows the words may learn more (give them: "
                   "--transcript FILE)"),
    ):  # fmt: skip
        if names:
            yield Notice("feature not used", f"not used: {', '.join(names)}. {reason}")
    support, bystanders = monitor.attacker.support_bits, monitor.bystanders
    if bystanders is not None and support is not None and (text := bystanders.notice(support)):
        yield Notice("crowd unsupported", text, fields={"support_bits": support})
    if monitor.noise:
        yield Notice(
            "noisy frames",
            f"these frames have noise ({monitor.noise}). This attacker takes them for clear "
            "speech. One with a rank model of noisy frames may learn more. Changes of voice are "
            "not detected",
        )
    elif monitor.on_change != "ignore" and not monitor.front_end.get_change_sensitivities():
        used = ", ".join(monitor.features)
        yield Notice("changes unnoticed", f"a change of voice cannot be detected by {used}")


def _rank_model_notices(monitor: NoticedMonitor) -> Iterator[Notice]:
    attacker, rank_model = monitor.attacker, monitor.attacker.rank_model
    specs = {name: monitor.population.specs[name] for name in attacker.features}
    bias = partial(same_session_bias, specs, attacker.speakers, attacker.scoring.seconds)
    yield from _session_notices(monitor, bias)
    yield from _calibration_notices(monitor, bias)
    yield from _twin_notices(monitor)
    if weaker := _describe_weaker_joint(attacker):
        yield Notice("one feature alone", weaker)
    if rank_model.forgotten:
        verb = "is" if rank_model.forgotten == 1 else "are"
        yield Notice(
            "forgotten",
            f"{plural(rank_model.forgotten, 'deleted speaker')} {verb} still averaged into the "
            "rank model. Calibrate again (monitor calibrate) without those recordings",
            fields={"speakers": rank_model.forgotten},
        )
    reason, evidence_model = attacker.no_evidence_reason, attacker.evidence_model
    if reason and evidence_model is not None:
        yield Notice(
            "evidence partial",
            f"evidence, and bits in other crowds, use {'+'.join(evidence_model.features)} alone: "
            f"{reason} (use monitor calibrate --cohort, with transcripts). An attacker who also "
            "weighs the words may learn more",
            fields={"features": list(evidence_model.features)},
        )
    elif reason:
        text = f"bits apply only among the {attacker.speakers} enrolled: {reason}"
        yield Notice("no evidence", f"{text} (monitor calibrate)")
    if attacker.speakers > 10 * rank_model.candidates:
        yield Notice(
            "few learnt from",
            f"{attacker.speakers} speakers are more than ten times the {rank_model.candidates} "
            "calibrated on",
            fields={
                "speakers": attacker.speakers,
                "rank_model_candidates": int(rank_model.candidates),
            },
        )


def _session_notices(monitor: NoticedMonitor, bias: Callable[[], str]) -> Iterator[Notice]:
    """Report a rank model of another kind of session than the recordings'."""
    attacker = monitor.attacker
    if attacker.same_session_biased:
        yield Notice(
            "same-session rank model",
            f"No cross-session calibration. Bits read too high ({bias()}). Calibrate on 10 "
            "speakers with two sessions each.",
        )
    elif attacker.session == "same":
        yield Notice(
            "enrolled too",
            f"This recording was also enrolled. Another day's discloses less ({bias()}). Measure "
            "that.",
            fields={"rank_model_session": "same"},
        )
    if monitor.session == "same" and attacker.session == "cross":
        yield Notice(
            "enrolled too",
            "This recording was also enrolled, and there is no same-session calibration. Bits read "
            "too low. Measure another day's recording.",
            fields={"rank_model_session": "cross"},
        )


def _twin_notices(monitor: NoticedMonitor) -> Iterator[Notice]:
    """Report people who cannot be told apart from the watched speaker."""
    population, watch = monitor.population, monitor.watch
    bits = monitor.attacker.compare_enrolled(population)
    if watch is None or bits is None or watch in monitor.attacker.left_out:
        return
    i = np.count_nonzero(monitor.attacker.scoring.members[: population.index(watch)])
    threshold = APART_BITS
    if monitor.attacker.contradiction(population)[0] <= _CONTRADICTED:
        # by chance, at most one of the others exceeds it on average
        threshold = math.log2(max(len(bits) - 1, 1))
    if max(np.delete(bits[i], i), default=threshold) <= threshold:
        return
    if names := share(population, ("twins", watch), partial(_find_twins, population, watch)):
        yield Notice(
            "inseparable",
            f"{format_names(names, 3)} and {monitor.watch} cannot be told apart: speech of either "
            "counts for both, and bits read too low. If they are one person, delete one: "
            "monitor people",
            fields={"names": names},
        )


def _find_twins(population: Population, watch: str) -> list[str]:
    try:
        (watched,) = compare_people(population, watch)
    except (StoreError, UsageError):  # no calibration across sessions
        return []
    return [other.name for other in watched.with_verdict(Verdict.INSEPARABLE)]


def _calibration_notices(monitor: NoticedMonitor, bias: Callable[[], str]) -> Iterator[Notice]:
    """Report a rank model of other people than those enrolled."""
    attacker, rank_model = monitor.attacker, monitor.attacker.rank_model
    if rank_model.origin == "shipped":
        yield Notice(
            "shipped rank model",
            "Too few calibration speakers have two sessions, so the cross-session rank model is "
            f"the shipped readers'. The same-session one would read too high ({bias()}). "
            "Calibrate on 10 speakers with two sessions each.",
        )
    elif _lacks_enrolled(monitor):
        text = (
            "Enrolled speakers are not calibrated: bits may read 1 to 2 too high on one microphone "
            "(monitor calibrate)"
        )
        fields = {}
        if attacker.length.notice:
            text = f"{attacker.length.notice}. {text}"
            fields = {"template_seconds": attacker.scoring.seconds}
        yield Notice("mismatched rank model", text, fields=fields)
        evidence, ratio = attacker.contradiction(monitor.population)
        if evidence > _CONTRADICTED:
            yield Notice(
                "calibration contradicted",
                "the enrolled speakers contradict this rank model: their likelihood ratios for "
                f"each other average {ratio:.3g}, and chance allows 1. Calibrate on at least 10 "
                "of them",
                fields={"e_value": evidence, "mean_ratio": ratio},
            )
    elif rank_model.prior_share >= _WORTH_SAYING:
        yield Notice(
            "prior",
            f"the shipped readers are {100 * rank_model.prior_share:.0f} % of this rank model, "
            f"because {plural(rank_model.speakers, 'speaker')} alone could claim too much",
            level="info",
            fields={"share": rank_model.prior_share, "speakers": rank_model.speakers},
        )


def _describe_weaker_joint(attacker: Attacker) -> str:
    """Describe one feature that discloses more on average than all together, if any."""
    if len(attacker.features) < 2:
        return ""
    together = attacker.joint.expected.evaluate_at(_EXAMPLE_SECONDS).value
    alone = {
        name: model.expected.evaluate_at(_EXAMPLE_SECONDS).value
        for name, model in attacker.alone.items()
    }
    if max(alone.values()) - together < _WORTH_BITS:
        return ""
    text = format_best_feature(together, alone, "all features together")
    return f"on average, after {_EXAMPLE_SECONDS:g} s of speech, {text}"


def recording_notices(monitor: NoticedMonitor, labels: Sequence[str]) -> list[Notice]:
    """List notices on the recordings of a finished stream: no speech, or another person."""
    recordings, specs = monitor.recordings, monitor.population.specs
    mismatches = recordings.mismatches + recordings.find_mismatch(monitor.core.evidence.own_totals)
    texts = [(number, "no speech", "no speech in it")
             for number in recordings.silent + recordings.silent_now]  # fmt: skip
    if mismatches:
        shared = find_shared_features({name: specs[name] for name in monitor.features})
        text = (
            "sounds like another person than the audio before it, judged by "
            f"{describe_criterion(shared)}"
        )
        texts += [(number, "another person", text) for number in mismatches]
    return [
        Notice(kind, f"{labels[number]}: {text}", number)
        for number, kind, text in texts
        if number < len(labels)
    ]
