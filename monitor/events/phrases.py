"""Sentences about events, shared by all views, pictures, pages and notifications."""

from __future__ import annotations

import math
from collections.abc import Sequence

from monitor.crowds import NEARLY_ONE, YOU, crowd_of, format_probability, one_of, people, rounded
from monitor.events.declaration import Event, find_first
from monitor.events.reading import Bystander, CrowdReading, OpenChange, ProtectedReading, Reading
from monitor.events.run import (
    Alert,
    Change,
    DeclaredStart,
    DelayRow,
    FalseAlarmTerms,
    GapEvent,
    LevelReached,
    NoticeEvent,
    Occurrence,
    PersonEnd,
    RunStart,
)
from monitor.maths.statistics import Crossing
from monitor.phrases import (
    ATTACKERS,
    CAVEAT,
    IGNORANT,
    IMPOSTOR,
    NO_MEASURE,
    allowed_in_words,
    attacker_in_words,
    clock_time,
    format_odds,
    length_in_words,
    level_in_words,
    odds,
    plural,
    stretches_in_words,
    sure,
    verdict,
)
from monitor.safe_text import printable


def clean(value: object, longest: int) -> str:
    """Shorten a name or reason, so that it cannot steer the terminal."""
    text = printable(value)
    return text if len(text) <= longest else text[: longest - 1] + "~"


def number(value: float | None) -> str:
    """Format with one decimal and without negative zero; a question mark for None."""
    text = "?" if value is None else f"{value:.1f}"
    return "0.0" if text == "-0.0" else text


def limits_in_words(low: float | None, high: float | None, *, cut: bool | None = False) -> str:
    """Format the 95 % interval of a figure in brackets; one that was ``cut`` has no upper limit."""
    return f"({number(low)} or more)" if cut else f"({number(low)} to {number(high)})"


def limits_of(figures: Reading | PersonEnd, name: str = "bits") -> str:
    """Format the 95 % interval of the figure with this name."""
    cut = name == "bits" and figures.headline == "evidence" and figures.at_least
    return limits_in_words(
        getattr(figures, f"{name}_low"), getattr(figures, f"{name}_high"), cut=cut
    )


def bits_or_more(source: Reading | ProtectedReading, bits: str) -> str:
    """Format bits of evidence, as a minimum if they are capped by calibration."""
    return f"at least {bits}" if source.at_least else bits


def is_headline(field: str, event: Reading | RunStart) -> bool:
    """Return whether a field is the headline under any name."""
    evidence = event.headline == "evidence"
    return field in ("bits", "evidence_bits" if evidence else "closed_set_bits")


def bits_now(reading: Reading) -> str:
    """Format the headline of a reading, or the reason why it is missing."""
    bits, care = reading.bits, caveat_of(reading)
    caveat = f" ({care})" if care and bits is not None else ""
    if nobody := nobody_speaks(reading):
        return f"{nobody}{caveat}"
    if not reading.is_evidence or bits is None or not math.isfinite(bits):
        return f"{among_enrolled(reading)}{caveat}"
    words = bits_or_more(reading, f"{number(bits)} bits")
    if reading.change is not None:
        return f"{words}, {voice_since(reading.change)}{caveat}"
    return ", ".join(filter(None, (words, format_matches(reading)))) + caveat


def among_enrolled(reading: Reading) -> str:
    """Format the closed-set figure of a reading, or the reason why it is missing."""
    bits, ceiling = reading.closed_set(), reading.ceiling
    if bits is None or ceiling is None or not math.isfinite(bits):
        withheld = f"withheld: {clean(reading.withheld, 40)}"
        return withheld if reading.withheld else "no figure yet: needs more speech"
    words = f"{number(bits)} of {number(ceiling)} bits"
    if reading.change is not None:  # the figure refers to no one in particular
        return f"{words}, {voice_since(reading.change)}"
    words = f"{words}, {odds(bits, ceiling, assumed=bool(reading.assumes_enrolled))}"
    return f"{words} if it is one of them, {IMPOSTOR}" if reading.is_impostor else words


def nobody_speaks(reading: Reading) -> str:
    """Format the headline if probably none of the enrolled people speaks; otherwise empty.

    The closed-set figure assumes an enrolled speaker, so it is no headline then. Evidence is.
    """
    claims = reading.is_evidence or reading.change is not None or reading.closed_set() is None
    if claims or not reading.is_impostor:
        return ""
    return _none_of(reading)


def _none_of(reading: Reading) -> str:
    count = f"{round(2**reading.ceiling):,} " if reading.ceiling else ""
    return f"probably none of the {count}people enrolled is speaking"


def verdict_now(reading: Reading, watch: str | None) -> str:
    """Format the attacker's conclusion among the enrolled; empty without a figure."""
    closed, ceiling = reading.closed_set(), reading.ceiling
    if closed is None or ceiling is None:
        return ""
    if nobody := nobody_speaks(reading):
        return f"{nobody}. {ENROL}"
    return _none_of(reading) if reading.is_impostor else verdict(closed, ceiling, watch)


ENROL = "Enrol to measure this voice"


def caveat_of(reading: Reading) -> str:
    """Return the warning beside the headline if the audio is bad or unlike the templates."""
    return CAVEAT if reading.differs else ""


def spread_in_words(reading: Reading) -> str:
    """Format the spread of voices, which the confidence interval excludes; empty if unknown."""
    if reading.spread_low is None:
        return ""
    low, high = number(reading.spread_low), number(reading.spread_high)
    return f"9 of 10 voices of this length read between {low} and {high} bits"


def enrolment(reading: Reading) -> str:
    """Format in a few words whether the speaker is enrolled; empty without speech.

    If that is improbable, the text also names the most similar person. That person's probability
    assumes that an enrolled person is speaking.
    """
    if reading.enrolled is None:
        withheld = reading.enrolled_withheld
        return f"not known: {withheld[-1]}" if withheld else ""
    likely = f"{sure(reading.enrolled)} likely"
    if not reading.is_impostor:
        return likely
    if not reading.top or not reading.ceiling:
        return f"{likely}: {IMPOSTOR}"
    name, probability = reading.top[0]
    return (
        f"{likely} to be one of the {round(2**reading.ceiling):,} enrolled. {name} is most similar "
        f"({sure(probability)} if it is one of them)"
    )


NARROWED = "also narrowed down"
SHOWN_BYSTANDERS = 3


def narrowed_names(bystanders: Sequence[Bystander] | None) -> str:
    """Format the first few bystanders, with their probabilities."""
    everyone = list(bystanders or ())
    shown = [
        f"{clean(b.name, 20)}, {format_odds(b.probability)}" for b in everyone[:SHOWN_BYSTANDERS]
    ]
    more = len(everyone) - len(shown)
    return "; ".join([*shown, *([f"and {more} more"] if more else [])])


def level_as_people(bits: float, ceiling: float | None = None, *, assumed: bool = False) -> str:
    """Format a level of a curve as people who match, or as odds below a ceiling.

    Example:
        >>> level_as_people(10), level_as_people(-3), level_as_people(1, 5.64)
        ('1 in 1,000', '8× less likely', '1 in 25')
    """
    if ceiling is not None:
        return odds(bits, ceiling, assumed=assumed, short=True)
    if bits == 0:
        return "no evidence"
    return one_of(bits) if bits > 0 else f"{one_of(-bits).removeprefix('1 in ')}× less likely"


# Bits of evidence apply to a crowd of any size: k bits leave one person in ``2^k``. A voice with 11
# bits leaves about 500 people of a million. All of them match as well as the speaker.

NOTHING_BITS = 0.05
WIDE_BITS = 2.0  # a wider interval is a range of people, since one number would mislead
AGAINST_BITS = -2.0
CHANGED = "another voice, or a changed one that an informed attacker may recognise"
"""Explanation of evidence that `speaks_against` the watched speaker."""


def select_largest_crowd(reading: Reading) -> CrowdReading | None:
    """Return the largest requested crowd, or None."""
    crowds = [c for c in reading.among or () if c.bits is not None and c.people is not None]
    return max(crowds, key=lambda crowd: crowd.people, default=None)


def format_matches(reading: Reading) -> str:
    """Format briefly how many people of the largest crowd match."""
    crowd = select_largest_crowd(reading)
    if crowd is None:
        return ""
    if abs(crowd.bits) < NOTHING_BITS:
        return "nothing yet"
    if crowd.bits < 0:
        return "evidence against"
    fitting = _count_matches(crowd, crowd.bits)
    if fitting < NEARLY_ONE:
        return f"hardly anyone else in {people(crowd.people)}"
    roughly = "at most" if reading.at_least else "about"
    return f"{roughly} {rounded(fitting)} in {people(crowd.people)}"


def in_a_crowd(reading: Reading, watch: str | None, enrolled: int, *, fit: bool = True) -> str:
    """Explain the evidence in the largest crowd; empty without evidence.

    It is also empty during an open change, because the evidence may be another speaker's.
    """
    if reading.change is not None:
        return ""
    if watch is None:
        return best_match(reading, enrolled)
    return narrowed_sentence(reading, watch, fit=fit)


def narrowed_sentence(reading: Reading, watch: str, *, fit: bool = True) -> str:
    """Format the meaning of a reading's evidence in the largest crowd; empty without evidence.

    Without ``fit``, the text omits the watched speaker.

    Example:
        >>> def sentence(bits, watch="ann", people=1e6):
        ...     reading = {"bits": bits, "headline": "evidence"}
        ...     reading["among"] = [{"people": people, "bits": bits}]
        ...     return narrowed_sentence(Reading.from_record(reading), watch)
        >>> sentence(11.3)
        'about 400 people in a city of a million match as well as ann'
        >>> sentence(13.1, "me", 1e4)
        'hardly anyone but you matches in a town of ten thousand'
        >>> sentence(0.01)
        'no evidence yet: everyone in a city of a million matches as well as ann'
        >>> sentence(-1.0)
        'this voice is evidence against ann'
    """
    crowd, evidence = select_largest_crowd(reading), reading.bits if reading.is_evidence else None
    if crowd is None or evidence is None:
        return ""
    person, name = "you" if watch.lower() in YOU else watch, crowd_of(crowd.people)
    if abs(evidence) < NOTHING_BITS:
        return f"no evidence yet: everyone in {name} matches as well as {person}"
    if evidence < 0:
        reason = f": {CHANGED}" if speaks_against(reading) else ""
        return f"this voice is evidence against {person}{reason}"
    if _count_matches(crowd, crowd.bits) < NEARLY_ONE:
        return f"hardly anyone but {person} matches in {name}"
    matches = _describe_matches(crowd, clipped=bool(reading.at_least))
    return f"{matches} in {name} match{f' as well as {person}' if fit else ' this voice'}"


def _describe_matches(crowd: CrowdReading, *, clipped: bool) -> str:
    low, high = crowd.bits_low, crowd.bits_high
    fitting = _count_matches(crowd, crowd.bits)
    if low is None or high is None or high - low <= WIDE_BITS or clipped:
        return f"{'at most' if clipped else 'about'} {rounded(fitting)} people"
    minimum, maximum = _count_matches(crowd, high), _count_matches(crowd, low)
    if maximum >= crowd.people:
        return f"about {rounded(fitting)} people, perhaps all,"
    return f"between {rounded(minimum)} and {rounded(maximum)} people"


def _count_matches(crowd: CrowdReading, bits: float) -> float:
    return float(crowd.people * 2.0 ** -min(max(bits, -1000.0), 1000.0))


def speaks_against(reading: Reading) -> bool:
    """Return whether the evidence of a reading is strongly against the watched speaker."""
    return reading.is_evidence and reading.bits is not None and reading.bits <= AGAINST_BITS


def best_match(reading: Reading, enrolled: int) -> str:
    """Format the best match without a watched speaker, and its probability in a crowd.

    The probability includes people who are not enrolled, because being the best match of a few
    people is not evidence.
    """
    crowd = select_largest_crowd(reading)
    if crowd is None or not crowd.favourite:
        return ""
    name, probability = crowd.favourite
    probability = 1 / crowd.favourite_one_in if crowd.favourite_one_in else probability
    match = f"that it is {name}, the best match of the {people(enrolled)} enrolled"
    return f"in {crowd_of(crowd.people)}: {format_probability(probability)} {match}"


LONGEST_NOTE = 500
ACTIONS = {
    "note": "alerts are paused until the first is back",
    "reset": "the evidence restarts",
    "split": "a new stream begins",
}
"""Actions at a change."""
_GAPS = {"thinned": "audio skipped, to keep up", "words ended": "words ended"}


def describe_event(
    event: GapEvent | NoticeEvent | Change | LevelReached | Alert,
) -> tuple[str, str]:
    """Describe an alert, gap, notice, change or crossing: a title, and its details."""
    title, words = _describe(event)
    if isinstance(event, GapEvent | Change | Alert) and event.label is not None:
        watch = event.watch if isinstance(event, Alert) else None
        of = "" if watch is None else f" as {clean(watch, 20)}"
        title = f"{clean(event.label, 20)}{of}: {title}"
    return title, words


def _describe(event: Occurrence) -> tuple[str, str]:
    match event:
        case GapEvent(reason=reason, detail=detail):
            if reason in _GAPS:
                return _GAPS[reason], clean(detail, 100)
            return "audio lost", clean(f"{reason} ({detail})" if detail else reason, 160)
        case NoticeEvent():
            return "note", clean(event.text, LONGEST_NOTE)
        case Change():
            done = ACTIONS.get(event.action, ACTIONS["note"])
            return voice_since(event), "alerts continue" if event.back else done
        case LevelReached():
            return level_in_words(event.bits), crossing_words(event)
    return _describe_alert(event)


def _describe_alert(alert: Alert) -> tuple[str, str]:
    if alert.way is not None:
        title = "muted" if alert.way == "muted" else f"protected by {clean(alert.way, 24)}"
        reason = f"the next words could exceed {alert.threshold:g} bits"
        names = "spent", "requested", "left"
        spent = [(getattr(alert, f"{name}_bits"), name) for name in names]
        parts = [f"{bits:.1f} {name}" for bits, name in spent if bits is not None]
        return title, f"{reason} ({', '.join(parts) or f'{number(alert.value)} sent'})"
    rule, level = clean(alert.rule, 60), clean(alert.level, 10)
    if alert.state != "raised":
        reason = "" if alert.change is None else f" ({voice_since(alert.change)})"
        return f"{level} over", f"{rule}{reason}"
    now, remaining = number(alert.value), alert.seconds_left
    if remaining is not None:
        soon = f"{alert.threshold:g} bits in about {max(1, round(remaining))} s"
        return level, f"{soon} ({rule}, now {now})"
    late = ""
    if alert.false_alarms is not None and alert.false_alarms.beyond:
        length = length_in_words(alert.false_alarms.horizon_seconds)
        late = f"; after the {length} for which this rate is known"
    return level, f"{rule} (now {now}{late})"


def event_in_words(event: GapEvent | NoticeEvent | Alert) -> str:
    """Format an alert, a gap or a notice in one line, with its time.

    Examples:
        >>> alert = Alert(41.0, 35.0, "bits>3 for 5 s", "bits", 3.0, "raised", 3.42)
        >>> event_in_words(alert)
        'alert at 0:41: bits>3 for 5 s (now 3.4)'
        >>> soon = {"level": "warning", "rule": "bits>3 within 30 s", "seconds_left": 28.2}
        >>> event_in_words(Alert.from_record({**alert.record(), **soon}))
        'warning at 0:41: 3 bits in about 28 s (bits>3 within 30 s, now 3.4)'
    """
    title, words = describe_event(event)
    return f"{title} at {clock_time(event.seconds or 0.0)}: {words}"


def others_in_words(alarms: FalseAlarmTerms) -> str:
    """Format the false alarm rate that an alert quotes."""
    size, name = next(
        ((n, name) for n, name in _CROWDS if abs(alarms.share * n % 1) < 1e-9), _CROWDS[-1]
    )
    shorter = ""
    if alarms.repeated:
        shorter = f" ({alarms.repeated} with less speech, which was repeated)"
    streams = f"other people's streams of {length_in_words(alarms.horizon_seconds)}"
    return (
        f"at most {alarms.share * size:g} of {name} {streams} raise it, according to "
        f"{plural(alarms.speakers, 'speaker')}{shorter}"
    )


STOP = "Stop or mute now. Past speech cannot be undone. More speech usually discloses more."
UNCHANGED = "Do not share this recording unchanged."
SHARE_FIRST = "Share only the first {}, which stays below the threshold."


def advise_sharing(events: Sequence[Event]) -> str:
    """Advise on sharing a recording of one voice; empty if it raised no alert."""
    raised = (e for e in events if isinstance(e, Alert) and e.code == "alert.raised")
    alert = next((event for event in raised if event.way is None), None)
    if alert is None:
        return ""
    start, over = find_first(events, RunStart), None
    if alert.field == "bits":
        readings = (event for event in events if isinstance(event, Reading))
        bits = ((event.seconds, event.bits) for event in readings if event.bits is not None)
        over = next((seconds for seconds, value in bits if value >= alert.threshold), None)
    if start is None or start.step_seconds is None or over is None:
        return UNCHANGED
    before = over - start.step_seconds
    return SHARE_FIRST.format(clock_time(before)) if before >= 1 else UNCHANGED


_CROWDS = ((100, "a hundred"), (1000, "a thousand"), (100_000, "a hundred thousand"))


def voice_since(change: Change | OpenChange) -> str:
    """Format a change: another voice or channel, or the first voice back, and since when."""
    since = f"since {clock_time(change.since_seconds or 0.0)}"
    if isinstance(change, Change) and change.back:
        return f"the first voice is back {since}"
    is_channel = tuple(change.features or ()) == ("channel",)
    return f"{'another channel or voice' if is_channel else 'another voice'} {since}"


def another_voice(reading: Reading, watch: str | None) -> str:
    """Warn during an open change that the bits may be another speaker's; otherwise empty."""
    if reading.change is None:
        return ""
    return f"{voice_since(reading.change)}: {format_attribution(reading, watch)}"


def mixed_voices(reading: Reading, watch: str | None) -> str:
    """Format what the watched voice's stretches read alone, once another voice is mixed in."""
    if reading.stretches_bits is None or reading.stretches_seconds is None:
        return ""
    return stretches_in_words(str(watch), reading.stretches_seconds, reading.stretches_bits)


def format_attribution(reading: Reading, watch: str | None) -> str:
    """Format the speaker of the bits during an open change."""
    if watch is not None and reading.excluded_seconds:
        return f"{reading.excluded_seconds:.0f} s of speech are excluded from {watch}'s bits"
    return f"these bits may not be {watch}'s" if watch else "these bits may be of more than one"


def overlap_in_words(seconds: float | None) -> str:
    """Format the excluded seconds of overlapping speech; empty for less than 0.05 s."""
    return f"{seconds:.1f} s of overlapping speech excluded" if (seconds or 0.0) >= 0.05 else ""


def people_in_words(start: RunStart, *, evidence: bool) -> str:
    """Explain the bits in a run of several people."""
    if evidence:
        names = start.watched or [start.watch]
        whom = " or ".join(printable(str(name)[:24], "") for name in names)
        return f"Evidence that a voice is {whom}; negative is evidence against"
    return (
        f"The attacker's confidence among the {start.speakers} enrolled, at most "
        f"{start.ceiling or 0.0:.2f} bits. It assumes that the speaker is one of them"
    )


def declared_in_words(declared: DeclaredStart) -> str:
    """Format the declared guarantee of a mechanism."""
    after, seconds = declared.empty_after, declared.window_seconds
    return (
        f"{declared.mechanism} guarantees epsilon {declared.epsilon_nats:g} in each {seconds:g} "
        f"s; after {after:,} of them, {_short(after * seconds)} s, the bound is vacuous"
    )


def promise_now(reading: Reading) -> str:
    """Format the guarantee for the stream so far; empty without a declaration."""
    promise = reading.declared
    if promise is None:
        return ""
    allowed = allowed_in_words(promise.most_bits)
    if promise.empty:
        return f"vacuous bound, since it allows {allowed}, and 33 bits identify anyone alive"
    return f"guaranteed: no attacker has more than {allowed}"


def composed_in_words(start: RunStart, reading: Reading) -> str:
    """Format the composition of the declared epsilons; empty without a declaration."""
    declared, promise = start.declared, reading.declared
    if declared is None or promise is None:
        return ""
    advanced = promise.advanced_nats
    better = "" if advanced is None else f"{_short(advanced)} by advanced and "
    return (
        f"{promise.windows:,} times epsilon {declared.epsilon_nats:g} are "
        f"{_short(promise.basic_nats)} together, {better}{_short(promise.optimal_nats)} by optimal "
        f"composition (delta {declared.delta:g})"
    )


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def protected_figure(reading: Reading) -> tuple[float, float, float] | None:
    """Return the headline of the protected side with its limits, or None."""
    side = reading.protected
    if side is None or side.bits is None:
        return None
    low, high = side.bits_low, side.bits_high
    return side.bits, side.bits if low is None else low, side.bits if high is None else high


def protected_now(reading: Reading) -> str:
    """Format the protected side of a reading, and to which attacker."""
    side, figure = reading.protected, protected_figure(reading)
    if side is None or figure is None:
        return "protected: no figure yet"
    bits = bits_or_more(side, f"{number(figure[0])} bits")
    parts = (f"protected {bits}", fewer_in_words(reading), f"to {attacker_of(reading)}")
    return ", ".join(filter(None, parts))


def attacker_of(reading: Reading) -> str:
    """Name the attacker of the protected side's figure; empty without a figure.

    If only an attacker who does not know the anonymiser was tried, the text adds that this measures
    no protection.
    """
    side = reading.protected
    if side is None or side.by is None:
        return ""
    if uninformed(reading):
        return f"{attacker_in_words(IGNORANT)}: {NO_MEASURE}"
    if len(side.attackers or ()) < 2:
        return attacker_in_words(side.by)
    return f"the strongest attacker tried, {ATTACKERS.get(side.by) or attacker_in_words(side.by)}"


def uninformed(reading: Reading) -> bool:
    """Return whether the only attacker tried does not know the anonymiser."""
    return reading.protected is not None and set(reading.protected.attackers or ()) <= {IGNORANT}


def fewer_in_words(reading: Reading) -> str:
    """Format the difference between the protected and the clear figure; empty without either.

    It is empty for a figure capped by calibration, because the difference is then unknown. It is
    also empty for an attacker who does not know the anonymiser, because that difference is not
    protection.
    """
    clear, side, figure = reading.bits, reading.protected, protected_figure(reading)
    if clear is None or side is None or figure is None or uninformed(reading) or side.at_least:
        return ""
    cut = reading.is_evidence and reading.at_least
    prefix = "at least " if cut and clear >= figure[0] else ""
    difference = clear - figure[0]
    return f"{prefix}{abs(difference):.1f} {'fewer' if difference >= 0 else 'more'}"


def crossing_words(event: LevelReached) -> str:
    """Format a crossing, without the level."""
    was = "was" if event.bits == 1 else "were"
    through = " through the anonymiser" if event.side == "protected" else ""
    delay = event.delay_seconds
    suffix = "" if delay is None else f": {delay:.3g} s later"
    return f"{was} reached{through} at {clock_time(event.since_seconds or 0.0)}{suffix}"


def delay_cells(row: DelayRow) -> tuple[str, str, str, str]:
    """Format a row of the ``end`` record's table: level, time on each side, and delay."""
    delay = "not known"
    if row.delay_seconds is not None:
        delay = f"{'at least ' if row.at_least else ''}{row.delay_seconds:.3g} s"
    return level_in_words(row.bits or 0.0), _when(row.clear), _when(row.protected), delay


def _when(crossing: Crossing | None) -> str:
    time = clock_time((crossing and crossing.seconds) or 0.0)
    return time if crossing and crossing.crossed else f"not by {time}"
