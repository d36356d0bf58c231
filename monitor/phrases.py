"""Wording of figures for all views, including the page in a browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

IMPOSTOR = "probably not enrolled"
AT_ALL = "Is the speaker enrolled at all?"
FEWEST = 1.95  # minimum number of people for "1 in k"; "1 in 1.4" would not help readers
ACCUMULATES = "Evidence accumulates across one person's recordings, but is not a sum."
VOICED = ("f0", "f0_robust")
"""Features that use only voiced speech, and therefore have fewer usable seconds."""
ONE = 1.1
MOST_PEOPLE = 1e9
MISLED_BITS = -0.05

STYLE_CAVEAT = "style identifies the person who chose the words, which in read text is its author"
"""Shown with every figure that includes the feature ``style``."""


def clock_time(seconds: float) -> str:
    """Format seconds as a clock shows them: ``1:01``, ``1:00:00``."""
    total = int(seconds)
    if total < 3600:
        return f"{total // 60}:{total % 60:02}"
    return f"{total // 3600}:{total % 3600 // 60:02}:{total % 60:02}"


def rough_time(seconds: float) -> str:
    """Format a predicted duration.

    Example:
        >>> rough_time(20), rough_time(700), rough_time(9000)
        ('less than 1 min', 'about 12 min', 'about 2.5 h')
    """
    if seconds < 60:
        return "less than 1 min"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"


def plural(count: int, singular: str, several: str | None = None) -> str:
    """Format a count with its noun: ``1 speaker``, ``1,200 trials``."""
    return f"{count:,} {singular if count == 1 else several or f'{singular}s'}"


def format_names(names: Sequence[str], maximum: int = 5) -> str:
    """List the first few names: ``ann, bob, ...``."""
    return ", ".join(names[:maximum]) + (", ..." if len(names) > maximum else "")


def length_in_words(seconds: float) -> str:
    """Format a duration, in minutes if it is a whole number of them."""
    if seconds >= 60 and seconds % 60 == 0:
        return plural(round(seconds / 60), "minute")
    return f"{seconds:,g} second{'' if seconds == 1 else 's'}"


def format_odds(probability: float) -> str:
    """Format a probability of one person: ``1 in 30``, ``97 % sure``."""
    if probability * FEWEST > 1:
        return f"{probability:.0%} sure".replace("%", " %")
    return f"1 in {_count(1 / max(probability, 1e-15))}"


def percent(fraction: float) -> str:
    """Format a fraction: ``12.5 %``."""
    return f"{100 * fraction:.4g} %"


def odds(bits: float, ceiling: float, *, assumed: bool = False, short: bool = False) -> str:
    """Format what bits mean, in a few words.

    The bits of a watched speaker are a probability, ``2^(bits - ceiling)``. Without a watched
    speaker (``assumed``), the attacker's confidence is a number of equally likely people,
    ``2^(ceiling - bits)``. ``short`` leaves out "sure".

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
    """Format the attacker's conclusion in one clause; ``watch`` is the watched speaker or None.

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


def sure(fraction: float) -> str:
    """Format a probability as a percentage, never as 100 %."""
    return "over 99 %" if fraction > 0.995 else f"{100 * fraction:.0f} %"


FEATURE_NAMES = {
    "f0": "pitch",
    "phones": "the sounds of the language",
    "voice": "speaker embedding",
}
"""Plain descriptions of features."""


def usable_in_words(feature: str, seconds: float) -> str:
    """Format the usable speech of a feature: ``8.8 s voiced``."""
    length = f"{seconds:.1f}" if seconds < 9.95 else f"{seconds:.0f}"
    return f"{length} s {'voiced' if feature in VOICED else 'usable'}"


def format_best_feature(
    joint_bits: float, single_bits: Mapping[str, float], name: str = "joint"
) -> str:
    """Warn that one feature alone gives more bits than all combined; empty if none does.

    Example:
        >>> format_best_feature(2.94, {"f0": 1.2, "voice": 3.24})
        'joint gives 2.94 bits, voice alone 3.24: rely on voice, as an attacker would'
    """
    best = max(single_bits, key=single_bits.__getitem__, default=None)
    if best is None or round(single_bits[best] - joint_bits, 2) <= 0:
        return ""
    return (
        f"{name} gives {joint_bits:.2f} bits, {best} alone {single_bits[best]:.2f}: rely on "
        f"{best}, as an attacker would"
    )


def _people(bits: float) -> float:
    return float(2.0 ** min(max(bits, -1000.0), 1000.0))


def _count(k: float) -> str:
    if k > MOST_PEOPLE:
        return "over a billion"
    return f"{k:,.0f}" if k >= 9.95 else f"{k:.1f}".removesuffix(".0")


CAVEAT = "low bits do not mean safe"
"""Shown beside the headline if the audio is bad or unlike the templates."""

Conditions: TypeAlias = "Mapping[str, float | None]"
"""Figures of audio conditions, by their keys in records."""
_TELEPHONE_HZ = 4200.0
_WIDE_HZ = 7500.0
_LOUD_DB = 30.0
_DRY_SECONDS = 0.25
_CLIPPED = 0.0005
_QUIET_DB = -60.0
_LOST = 0.005
_TOO_LOW = "Bits may read too low"
_ADVICE = {
    "bandwidth_hz": "Use a microphone with the full bandwidth of speech.",
    "snr_db": "Reduce the noise.",
    "reverberation_seconds": "Speak closer to the microphone.",
    "clipping": "Lower the input level.",
    "level_db": "Raise the input level.",
    "lost": "Use a connection that loses fewer packets.",
}


def condition_in_words(condition: Conditions | None) -> str:
    """Format the ``conditions`` of a record; empty if unknown.

    Example:
        >>> condition_in_words({"bandwidth_hz": 3600.0, "snr_db": 14.2, "clipping": 0.02})
        'telephone band, 14 dB above noise, 2 % clipped'
    """
    figures = ((name, (condition or {}).get(name)) for name in _ADVICE)
    texts = (_describe_condition(name, value) for name, value in figures if value is not None)
    return ", ".join(filter(None, texts))


def _describe_condition(name: str, value: float) -> str:
    match name:
        case "bandwidth_hz" if value < _TELEPHONE_HZ:
            return "telephone band"
        case "bandwidth_hz":
            return "wide band" if value >= _WIDE_HZ else f"band up to {value / 1000:.1f} kHz"
        case "snr_db":
            return "little noise" if value >= _LOUD_DB else f"{value:.0f} dB above noise"
        case "reverberation_seconds":
            return "dry" if value < _DRY_SECONDS else f"an echo of {value:.1f} s"
        case "clipping" if value >= _CLIPPED:
            return f"{100 * value:.2g} % clipped"
        case "level_db" if value < _QUIET_DB:
            return f"very quiet ({value:.0f} dB)"
        case "lost" if value >= _LOST:
            return f"{100 * value:.2g} % lost"
    return ""


def stretches_in_words(voice: str, seconds: float, bits: float) -> str:
    """Warn that another voice alternates with the watched one, and give the watched one's bits.

    Example:
        >>> stretches_in_words("Ann", 4.5, 7.52)
        "another voice is mixed in: Ann's stretches alone (4 s of speech) read 7.5 bits"
    """
    stretches = f"{voice}'s stretches alone ({seconds:.0f} s of speech)"
    return f"another voice is mixed in: {stretches} read {round(bits, 1) or 0.0:.1f} bits"


def budget_in_words(
    budget_bits: float, sent_bits: float, kept_bits: float, held_bits: float, *, is_muted: bool
) -> str:
    """Format what a relay has sent of its budget, what it keeps back, and why it is muted.

    Example:
        >>> budget_in_words(8.0, 5.0, 1.5, 0.0, is_muted=False)
        'sent 5.0 of 8 bits; 1.5 kept back'
        >>> budget_in_words(8.0, 5.0, 1.5, 0.0, is_muted=True)
        'muted: sent 5.0 of 8 bits; 1.5 kept back'
        >>> budget_in_words(8.0, 5.0, 1.5, 7.2, is_muted=True)
        'muted: the next words could exceed your 8 bits (5.0 sent, 2.2 requested, 1.5 left)'
    """
    if is_muted and held_bits:
        return (
            f"muted: the next words could exceed your {budget_bits:g} bits ({sent_bits:.1f} sent, "
            f"{held_bits - sent_bits:.1f} requested, "
            f"{max(0.0, budget_bits - kept_bits - sent_bits):.1f} left)"
        )
    muted = "muted: " if is_muted else ""
    return f"{muted}sent {sent_bits:.1f} of {budget_bits:g} bits; {kept_bits:g} kept back"


def mismatch_in_words(
    which: Sequence[str], stream: Conditions, templates: Conditions, matching: float | None = None
) -> str:
    """Warn that the conditions of stream and templates differ, with the figures.

    ``matching`` is the mean bits of 10 s of speech with templates in the stream's conditions.

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
        informed = f": with templates of such sound, 10 s give {matching:.1f} bits on average"
    return (
        f"This audio is {stream_text}, the templates {template_text}. {_TOO_LOW}{informed}. Enrol "
        "over the same channel."
    )


def voicing_in_words(stream: float, templates: float) -> str:
    """Warn that the voiced fraction of a stream's speech is unlike that of the templates.

    Example:
        >>> voicing_in_words(0.002, 0.4).partition(":")[0]
        'This audio has pitch in 0.2 % of its speech, the templates in 40 %'
    """
    percent, usual = (f"{100 * fraction:.2g} %" for fraction in (stream, templates))
    return (
        f"This audio has pitch in {percent} of its speech, the templates in {usual}: a whisper, a "
        f"small loudspeaker, an echo or a voice changer. {_TOO_LOW}: templates of such speech may "
        "read more. Enrol such speech."
    )


def poor_in_words(which: Sequence[str], stream: Conditions) -> str:
    """Warn of a stream's poor sound; ``which`` names the bad figures.

    Example:
        >>> poor_in_words(["snr_db"], {"snr_db": 1.2})
        'Speech is 1 dB above noise. Bits may read too low. Reduce the noise.'
    """
    sound = condition_in_words({name: stream[name] for name in which})
    advice = next((text for name, text in _ADVICE.items() if name in which), "")
    return f"Speech is {sound}. {_TOO_LOW}. {advice}".rstrip()


def unknown_in_words(seconds: float) -> str:
    """Warn that conditions could not be estimated from these seconds of audio."""
    return (
        f"No voice rises above the noise in {seconds:g} s of sound: its noise and echo are "
        f"unknown. {_TOO_LOW}. Reduce the noise, or use another microphone."
    )


def allowed_in_words(bits: float) -> str:
    """Format the bits of evidence that a guarantee allows."""
    text = f"{bits:,.0f}" if bits >= 100 else f"{bits:.1f}".removesuffix(".0")
    return f"{text} bit{'' if text == '1' else 's'}"


IGNORANT = "ignorant"
NO_MEASURE = "no measure of protection"
ATTACKERS = {
    IGNORANT: "who does not know the anonymiser",
    "lazy-informed": "who has enrolled protected speech",
}


def attacker_in_words(name: str | None) -> str:
    """Name the attacker of a protected figure."""
    return f"an attacker {ATTACKERS[name]}" if name in ATTACKERS else f"the attacker {name}"


def level_in_words(bits: float) -> str:
    """Format a level of the headline."""
    return f"{bits:g} bit{'' if bits == 1 else 's'}"
