"""Wording of figures for people: one place for every view, the page in a browser included."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monitor.types import Record

__all__ = [
    "AT_ALL",
    "CAVEAT",
    "FEATURE_NAMES",
    "IGNORANT",
    "IMPOSTOR",
    "NO_MEASURE",
    "STYLE_CAVEAT",
    "VOICED",
    "allowed_in_words",
    "another_voice",
    "attacker_in_words",
    "attacker_of",
    "caveat_of",
    "clock_time",
    "closed_set",
    "composed_in_words",
    "condition_in_words",
    "crossing_in_words",
    "crossing_words",
    "declared_in_words",
    "delay_cells",
    "delay_in_words",
    "enrolment",
    "fewer_in_words",
    "format_attribution",
    "format_best_feature",
    "is_evidence",
    "is_headline",
    "is_impostor",
    "length_in_words",
    "level_in_words",
    "mismatch_in_words",
    "odds",
    "one_in",
    "others_in_words",
    "percent",
    "plural",
    "poor_in_words",
    "promise_now",
    "protected_figure",
    "spread_in_words",
    "uninformed",
    "usable_in_words",
    "verdict",
    "voice_since",
]


# --- The wording of figures for people.

IMPOSTOR = "probably nobody enrolled"
AT_ALL = "Is the speaker enrolled at all?"
NOBODY = 0.2
"""Below this probability of being enrolled the views say so: four to one against."""
FEWEST = 1.95
"""From so many people on "1 in k" is said; below, "1 in 1.4" would help nobody."""
VOICED = ("f0", "f0_robust")
"""Features that use voiced speech alone, a part of all speech (usable seconds are fewer)."""
ONE = 1.1
MOST_PEOPLE = 1e9
MISLED_BITS = -0.05

STYLE_CAVEAT = (
    "style tells who chose the words: of what is read aloud that is its author, not the reader"
)
"""Said wherever a figure of the feature ``style`` is shown, or one that it has a part in."""


def clock_time(seconds: float) -> str:
    """Format seconds as a clock shows them: ``1:01``, ``1:00:00``."""
    total = int(seconds)
    if total < 3600:
        return f"{total // 60}:{total % 60:02}"
    return f"{total // 3600}:{total % 3600 // 60:02}:{total % 60:02}"


def plural(count: int, singular: str, several: str | None = None) -> str:
    """Format a count with its noun: ``1 speaker``, ``1,200 trials``."""
    return f"{count:,} {singular if count == 1 else several or f'{singular}s'}"


def length_in_words(seconds: float) -> str:
    """Format a length of time, in minutes where it is a whole number of them."""
    if seconds >= 60 and seconds % 60 == 0:
        return plural(round(seconds / 60), "minute")
    return f"{seconds:,g} second{'' if seconds == 1 else 's'}"


def one_in(probability: float) -> str:
    """Format a probability of one person: ``1 in 30``, ``97 % sure``."""
    if probability * FEWEST > 1:
        return f"{probability:.0%} sure".replace("%", " %")
    return f"1 in {_count(1 / max(probability, 1e-15))}"


def percent(fraction: float) -> str:
    """Format a share of one: ``12.5 %``."""
    return f"{100 * fraction:.4g} %"


def others_in_words(alarms: Record) -> str:
    """Format how often others set an alert off, by what the alert quotes."""
    size, name = next(
        ((n, name) for n, name in _CROWDS if abs(alarms["share"] * n % 1) < 1e-9), _CROWDS[-1]
    )
    repeats = alarms.get("repeated")
    shorter = f" ({repeats} of whom said less and were heard again)" if repeats else ""
    streams = f"other people's streams of {length_in_words(alarms['horizon_seconds'])}"
    speakers = plural(alarms["speakers"], "speaker")
    return (
        f"of {name} {streams} at most {alarms['share'] * size:g} set it off, by {speakers}{shorter}"
    )


_CROWDS = ((100, "a hundred"), (1000, "a thousand"), (100_000, "a hundred thousand"))


def odds(bits: float, ceiling: float, *, assumed: bool = False, short: bool = False) -> str:
    """Format what bits mean, in a few words.

    The bits of a watched speaker are a probability, ``2^(bits - ceiling)``; the confidence of an
    attacker where nobody is watched is a number of equally likely people, ``2^(ceiling - bits)``.
    With ``assumed`` nobody is watched; ``short`` leaves out "sure".

    Example:
        >>> odds(2.06, 5.64), odds(5.58, 5.64), odds(5.64, 5.64), odds(5.2, 5.64, assumed=True)
        ('1 in 12', '96 % sure', 'over 99 % sure', '1 or 2 left')
    """
    k = _people(ceiling - bits)
    if k >= FEWEST:
        return f"1 in {_count(k)}"
    if assumed:
        return "1 or 2 left" if k >= ONE else "only 1 left"
    percentage = "over 99 %" if k < 1 / 0.995 else f"{100 / k:.0f} %"
    return percentage if short else f"{percentage} sure"


def verdict(bits: float, ceiling: float, watch: str | None) -> str:
    """Format what the attacker thinks, in one clause; nobody is watched where ``watch`` is None.

    Example:
        >>> verdict(2.06, 5.64, "ann")
        'the attacker gives ann a chance of 1 in 12'
        >>> verdict(-1.0, 5.64, "ann")
        'the attacker is misled: ann gets 1 in 100, below chance (1 in 50)'
        >>> verdict(2.06, 5.64, None)
        'the attacker has narrowed 50 people to about 12'
    """
    k, chance = _people(ceiling - bits), odds(bits, ceiling)
    if watch is None:
        people = f"{_count(_people(ceiling))} people"
        if k < ONE:
            return f"the attacker hardly doubts which of {people} it is"
        remainder = f"about {_count(k)}" if k >= FEWEST else "1 or 2"
        return f"the attacker has narrowed {people} to {remainder}"
    if k < FEWEST:
        return f"the attacker is {chance} that it is {watch}"
    if bits < MISLED_BITS:
        by_chance = odds(0.0, ceiling)
        return f"the attacker is misled: {watch} gets {chance}, below chance ({by_chance})"
    return f"the attacker gives {watch} a chance of {chance}"


def is_evidence(reading: Record) -> bool:
    """Return whether the headline of a reading is evidence."""
    return reading.get("headline") == "evidence"


def is_headline(field: str, reading: Record) -> bool:
    """Return whether a field of a reading, or of a ``start``, is the headline under any name."""
    return field in ("bits", "evidence_bits" if is_evidence(reading) else "closed_set_bits")


def closed_set(reading: Record, end: str = "") -> float | None:
    """Return bits of a reading among the N enrolled; with ``"_low"`` or ``"_high"`` a limit."""
    return reading.get(f"{'closed_set_' if is_evidence(reading) else ''}bits{end}")


def voice_since(change: Record) -> str:
    """Format what a change noticed, and since when: ``another voice since 1:47``."""
    since = f"since {clock_time(change.get('since_seconds') or 0.0)}"
    if change.get("back"):
        return f"the first voice is back {since}"
    channel = list(change.get("features") or ()) == ["channel"]
    what = "another channel or voice" if channel else "another voice"
    return f"{what} {since}"


def overlap_in_words(seconds: float) -> str:
    """Format what becomes of time in which several people speak."""
    return f"{seconds:.1f} s of overlapping speech excluded"


def people_in_words(start: Record, *, evidence: bool) -> str:
    """Explain what the bits of several people are."""
    if evidence:
        names = start.get("watched") or [start.get("watch")]
        clean = (filter(str.isprintable, str(name)[:24]) for name in names)
        whom = " or ".join(map("".join, clean))
        return f"Evidence that a voice is {whom}; below 0 it speaks against"
    return (
        f"Of at most {start.get('ceiling') or 0.0:.2f} bits among the {start.get('speakers')} "
        "enrolled: an attacker's confidence if it is one of them"
    )


def another_voice(reading: Record, watch: str | None) -> str:
    """Format whose bits these may not be, while a change is open in a reading; else empty.

    Example:
        >>> change = {"since_seconds": 107.0, "features": ["f0"]}
        >>> another_voice({"change": change}, "ann")
        "another voice since 1:47: these bits may not be ann's"
    """
    change = reading.get("change")
    return "" if change is None else f"{voice_since(change)}: {format_attribution(reading, watch)}"


def format_attribution(reading: Record, watch: str | None) -> str:
    """Format whose the bits of a reading are while a change is open."""
    if watch is not None and (left_out := reading.get("excluded_seconds")):
        return f"{left_out:.0f} s of speech are left out of {watch}'s bits"
    return f"these bits may not be {watch}'s" if watch else "these bits may be of more than one"


def is_impostor(reading: Record) -> bool:
    """Return whether the open-set figure is four to one against anybody enrolled."""
    enrolled = reading.get("enrolled")
    return enrolled is not None and enrolled < NOBODY


_BETWEEN_REASONS = "; "


def reasons_as_text(texts: Iterable[str]) -> str:
    """Join reasons why a figure is withheld, as the record of a reading holds them."""
    return _BETWEEN_REASONS.join(texts)


def reasons(reading: Record) -> list[str]:
    """Return why a reading's record does not say whether anybody enrolled speaks, if so."""
    text = reading.get("enrolled_withheld")
    return text.split(_BETWEEN_REASONS) if text else []


def enrolment(reading: Record) -> str:
    """Format whether anybody enrolled speaks, in a few words; empty where nothing was heard.

    Where it is improbable it says in one sentence how that goes with whom the voice is most like,
    whose probability assumes that one of them speaks.
    """
    enrolled = reading.get("enrolled")
    if enrolled is None:
        withheld = reasons(reading)
        return f"not known: {withheld[-1]}" if withheld else ""
    likely = f"{_percent(enrolled)} likely"
    if not is_impostor(reading):
        return likely
    top, ceiling = reading.get("top"), reading.get("ceiling")
    if not top or not ceiling:
        return f"{likely}: {IMPOSTOR}"
    name, probability = top[0]
    return (
        f"of the {round(2**ceiling):,} enrolled it is most like {name} ({_percent(probability)} if "
        f"it is one of them), but it is {IMPOSTOR} ({_percent(enrolled)} that it is one of them)"
    )


def _percent(fraction: float) -> str:
    return "over 99 %" if fraction > 0.995 else f"{100 * fraction:.0f} %"


FEATURE_NAMES = {
    "f0": "pitch",
    "phones": "the sounds of the language",
    "voice": "speaker embedding",
}
"""What a feature hears, in plain words."""


def usable_in_words(feature: str, seconds: float) -> str:
    """Format how much of the speech a feature could use: ``8.8 s voiced``."""
    length = f"{seconds:.1f}" if seconds < 9.95 else f"{seconds:.0f}"
    return f"{length} s {'voiced' if feature in VOICED else 'usable'}"


def spread_in_words(reading: Record) -> str:
    """Format how far other voices lie apart, which the limits do not say."""
    low, high = reading["spread_low"], reading["spread_high"]
    return f"9 of 10 voices of this length read between {low:.1f} and {high:.1f} bits"


def format_best_feature(
    joint_bits: float, single_bits: Mapping[str, float], name: str = "joint"
) -> str:
    """Warn that one feature gives more than all weighed together; empty where none does.

    Example:
        >>> format_best_feature(2.94, {"f0": 1.2, "voice": 3.24})
        'joint gives 2.94 bits, voice alone 3.24: go by voice, as an attacker would'
    """
    best = max(single_bits, key=single_bits.__getitem__, default=None)
    if best is None or round(single_bits[best] - joint_bits, 2) <= 0:
        return ""
    return (
        f"{name} gives {joint_bits:.2f} bits, {best} alone {single_bits[best]:.2f}: go by {best}, "
        "as an attacker would"
    )


def _people(bits: float) -> float:
    """Return how many people so many bits tell apart."""
    return float(2.0 ** min(max(bits, -1000.0), 1000.0))


def _count(k: float) -> str:
    if k > MOST_PEOPLE:
        return "over a billion"
    return f"{k:,.0f}" if k >= 9.95 else f"{k:.1f}".removesuffix(".0")


# --- The wording of conditions: what a sound is like, and that it is not like the templates'.

CAVEAT = "low bits do not mean safe"
"""Stands beside the headline where the sound is not that of the templates, or is bad."""

_TELEPHONE_HZ = 4200.0
_WIDE_HZ = 7500.0
_LOUD_DB = 30.0
_DRY_SECONDS = 0.25
_CLIPPED = 0.0005
_QUIET_DB = -60.0
_TOO_LOW = "Bits may read too low"
_ADVICE = {
    "bandwidth_hz": "Use a microphone that hears the whole voice.",
    "snr_db": "Reduce the noise.",
    "reverberation_seconds": "Speak closer to the microphone.",
    "clipping": "Lower the input level.",
    "level_db": "Raise the input level.",
}


def caveat_of(reading: Record) -> str:
    """Return what stands beside the headline of a reading of such a sound; empty of any other."""
    return CAVEAT if reading.get("differs") else ""


def condition_in_words(condition: Record | None) -> str:
    """Format what is known of a sound, by a record's ``conditions``; empty where nothing is.

    Example:
        >>> condition_in_words({"bandwidth_hz": 3600.0, "snr_db": 14.2, "clipping": 0.02})
        'telephone band, 14 dB above noise, 2 % clipped'
    """
    parts = []
    for name, words in _WORDS.items():
        value = (condition or {}).get(name)
        if value is not None and (text := words(value)):
            parts.append(text)
    return ", ".join(parts)


def _band(hertz: float) -> str:
    if hertz < _TELEPHONE_HZ:
        return "telephone band"
    return "wide band" if hertz >= _WIDE_HZ else f"band up to {hertz / 1000:.1f} kHz"


def _noise(decibels: float) -> str:
    return "little noise" if decibels >= _LOUD_DB else f"{decibels:.0f} dB above noise"


def _echo(seconds: float) -> str:
    return "dry" if seconds < _DRY_SECONDS else f"an echo of {seconds:.1f} s"


def _clipping(fraction: float) -> str:
    return f"{100 * fraction:.2g} % clipped" if fraction >= _CLIPPED else ""


def _level(decibels: float) -> str:
    return f"very quiet ({decibels:.0f} dB)" if decibels < _QUIET_DB else ""


_WORDS: Mapping[str, Callable[[float], str]] = {
    "bandwidth_hz": _band,
    "snr_db": _noise,
    "reverberation_seconds": _echo,
    "clipping": _clipping,
    "level_db": _level,
}


def mismatch_in_words(
    which: Sequence[str],
    stream: Record,
    templates: Record,
    matching: float | None = None,
) -> str:
    """Warn that a stream does not sound as the templates do, by the figures that differ.

    ``matching``: bits that templates of the stream's sound read of 10 s of speech on average.

    Example:
        >>> stream, templates = {"bandwidth_hz": 3600.0}, {"bandwidth_hz": 8000.0}
        >>> mismatch_in_words(["bandwidth_hz"], stream, templates).partition(". ")[0]
        'This audio is telephone band, the templates wide band'
    """
    stream_text, template_text = (
        condition_in_words({name: conditions[name] for name in which}) or "not clipped"
        for conditions in (stream, templates)
    )
    informed = ""
    if matching is not None:
        informed = f": templates of such sound read {matching:.1f} bits of 10 s on average"
    return (
        f"This audio is {stream_text}, the templates {template_text}. {_TOO_LOW}{informed}. Enrol "
        "over the same channel."
    )


def poor_in_words(which: Sequence[str], stream: Record) -> str:
    """Warn that a stream sounds bad, by the figures that are.

    Example:
        >>> poor_in_words(["snr_db"], {"snr_db": 1.2})
        'Speech is 1 dB above noise. Bits may read too low. Reduce the noise.'
    """
    sound = condition_in_words({name: stream[name] for name in which})
    advice = next((text for name, text in _ADVICE.items() if name in which), "")
    return f"Speech is {sound}. {_TOO_LOW}. {advice}".rstrip()


def unknown_in_words(seconds: float) -> str:
    """Warn that conditions could not be estimated from so many seconds of sound."""
    return (
        f"No voice rises above the noise in {seconds:g} s of sound: its noise and echo are "
        f"unknown. {_TOO_LOW}. Reduce the noise, or use another microphone."
    )


# --- The wording of a declared epsilon: what is promised of a voice, beside what is measured.


def declared_in_words(declared: Record) -> str:
    """Format what a mechanism declares, as the ``start`` record has it."""
    after, seconds = declared["empty_after"], declared["window_seconds"]
    return (
        f"{declared['mechanism']} promises epsilon {declared['epsilon_nats']:g} in each "
        f"{seconds:g} s; after {after:,} of them, {_short(after * seconds)} s, the bound is vacuous"
    )


def promise_now(reading: Record) -> str:
    """Format what is promised of all speech so far; empty where nothing is declared."""
    promise = reading.get("declared")
    if not promise:
        return ""
    allowed = allowed_in_words(promise["most_bits"])
    if promise["empty"]:
        return f"vacuous bound: {allowed} allowed; 33 identify anyone alive"
    return f"promised: no attacker has more than {allowed}"


def composed_in_words(start: Record, reading: Record) -> str:
    """Format what the declared epsilons come to together; empty where nothing is declared."""
    declared, promise = start.get("declared"), reading.get("declared")
    if not declared or not promise:
        return ""
    advanced = promise.get("advanced_nats")
    better = "" if advanced is None else f"{_short(advanced)} by advanced and "
    total, optimal = _short(promise["basic_nats"]), _short(promise["optimal_nats"])
    return (
        f"{promise['windows']:,} times epsilon {declared['epsilon_nats']:g} are {total} together, "
        f"{better}{optimal} by optimal composition (delta {declared['delta']:g})"
    )


def allowed_in_words(bits: float) -> str:
    """Format bits of evidence that a promise leaves room for."""
    text = f"{bits:,.0f}" if bits >= 100 else f"{bits:.1f}".removesuffix(".0")
    return f"{text} bit{'' if text == '1' else 's'}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


# --- The wording of a protected side: to which attacker, how much less, how many disclosure delay.

IGNORANT = "ignorant"
NO_MEASURE = "no measure of protection"
_KNOWS = {
    IGNORANT: "who does not know the anonymiser",
    "lazy-informed": "who has enrolled protected speech",
}


def attacker_in_words(name: str | None) -> str:
    """Name the attacker of a protected figure: it is nothing without."""
    return f"an attacker {_KNOWS[name]}" if name in _KNOWS else f"the attacker {name}"


def protected_figure(reading: Record) -> tuple[float, float, float] | None:
    """Return the headline of the protected side with its limits; None where there is none."""
    side = reading.get("protected") or {}
    value = side.get("bits")
    if value is None:
        return None
    return value, side.get("bits_low", value), side.get("bits_high", value)


def attacker_of(reading: Record) -> str:
    """Name the attacker of the protected side's figure; empty where there is none.

    Of an attacker who does not know the anonymiser, where no other was tried, it says what that is
    worth.
    """
    side = reading.get("protected") or {}
    name = side.get("by")
    if name is None:
        return ""
    if uninformed(reading):
        return f"{attacker_in_words(IGNORANT)}: {NO_MEASURE}"
    if len(side.get("attackers") or ()) < 2:
        return attacker_in_words(name)
    return f"the strongest attacker tried, {_KNOWS.get(name) or attacker_in_words(name)}"


def uninformed(reading: Record) -> bool:
    """Return whether the only attacker tried does not know the anonymiser."""
    side = reading.get("protected")
    return side is not None and set(side.get("attackers") or ()) <= {IGNORANT}


def fewer_in_words(reading: Record) -> str:
    """Format by how much the protected figure lies below the clear one; empty without either.

    A figure that was cut to what calibration supports may be more: then no difference is known. And
    what an attacker loses who does not know the anonymiser is no merit of it: nothing is said.

    Example:
        >>> side = {"bits": 1.25, "attackers": {"ignorant": {}, "lazy-informed": {}}}
        >>> fewer_in_words({"bits": 3.0, "protected": side})
        '1.8 fewer'
    """
    clear, figure = reading.get("bits"), protected_figure(reading)
    if clear is None or figure is None or uninformed(reading):
        return ""
    if reading["protected"].get("at_least"):
        return ""
    cut = is_evidence(reading) and reading.get("at_least")
    prefix = "at least " if cut and clear >= figure[0] else ""
    difference = clear - figure[0]
    return f"{prefix}{abs(difference):.1f} {'fewer' if difference >= 0 else 'more'}"


def level_in_words(bits: float) -> str:
    """Format a level of the headline."""
    return f"{bits:g} bit{'' if bits == 1 else 's'}"


def crossing_in_words(record: Record) -> str:
    """Format a crossing, in one line: ``3 bits were reached at 0:04``."""
    return f"{level_in_words(record.get('bits') or 0.0)} {crossing_words(record)}"


def crossing_words(record: Record) -> str:
    """Format the same without the level."""
    was = "was" if record.get("bits") == 1 else "were"
    through = " through the anonymiser" if record.get("side") == "protected" else ""
    delay = record.get("delay_seconds")
    suffix = "" if delay is None else f": {delay:.3g} s later"
    return f"{was} reached{through} at {clock_time(record.get('since_seconds') or 0.0)}{suffix}"


def delay_in_words(row: Record) -> str:
    """Format the delay in a row of the ``end`` record's table."""
    disclosure_delay = row.get("delay_seconds")
    if disclosure_delay is None:
        return "not known"
    return f"{'at least ' if row.get('at_least') else ''}{disclosure_delay:.3g} s"


def delay_cells(row: Record) -> tuple[str, str, str, str]:
    """Format a row of the ``end`` record's table: level, when on either side, and the delay."""
    level = level_in_words(row.get("bits") or 0.0)
    clear, protected = _when(row.get("clear") or {}), _when(row.get("protected") or {})
    return level, clear, protected, delay_in_words(row)


def _when(crossing: Record) -> str:
    time = clock_time(crossing.get("seconds") or 0.0)
    return time if crossing.get("crossed") else f"not by {time}"
