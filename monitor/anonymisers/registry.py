"""Anonymisers by name, such as ``mcadams:0.8``; `register` adds one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from monitor.anonymisers.filters import DRAWN, McAdams, Noise, Unchanged, Utterance
from monitor.anonymisers.program import Program
from monitor.errors import UsageError
from monitor.protocols import Anonymiser

SCOREBOARD = Path(__file__).with_name("scoreboard.json")
"""Bits measured by attackers on each method (benchmarks/voice_changers.py)."""
ANONYMISERS: dict[str, Callable[[str, Utterance], Anonymiser]] = {}  # factories by name


def register(name: str, makes: Callable[[str, Utterance], Anonymiser]) -> None:
    """Register an anonymiser by name, also for ``monitor protect``.

    Args:
        name: lower-case letters, digits and hyphens; replaces one of the same name.
        makes: factory, called with the text after the colon (may be empty) and the recording.
    """
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise UsageError(f"{name!r} must be a word of lower-case letters, such as mcadams")
    ANONYMISERS[name] = makes


def make(method: str, utterance: Utterance) -> Anonymiser:
    """Make the anonymiser ``NAME`` or ``NAME:SETTING`` for a recording.

    Raises:
        UsageError: if the name or its setting is invalid.
    """
    name, colon, setting = method.partition(":")
    if name == "laplace":
        raise UsageError(
            "laplace is for embeddings, not for audio: use monitor protect FRAMES --method "
            "laplace:15"
        )
    if name == "tokens":
        raise UsageError(
            "tokens are frames, not audio: use monitor protect VOICES -o FRAMES --method tokens:15"
        )
    if name not in ANONYMISERS:
        names = ", ".join(repr(word) for word in ANONYMISERS if word != "command")
        raise UsageError(
            f"unknown anonymiser {name!r}: use {names} for audio, or 'laplace' for embeddings"
        )
    anonymiser = ANONYMISERS[name](setting, utterance)
    if colon and not setting:  # a script's empty variable must not mean "no noise"
        raise UsageError(f"no setting after {method!r}: add one, or remove the colon")
    return anonymiser


def attacked_bits(method: str) -> tuple[float, float] | None:
    """Return the strongest attacker's bits for 10 s of protected and of clear speech.

    The shipped scoreboard has them for 16 readers. Return None if the method was not measured.
    """
    rows = json.loads(SCOREBOARD.read_text(encoding="utf-8"))["rows"]
    strongest = {row["how"]: max(bits for bits, *_ in row["bits"].values()) for row in rows}
    bits = strongest.get(f"monitor protect --method {method}")
    return None if bits is None else (bits, strongest["nothing"])


def _none(setting: str, utterance: Utterance) -> Anonymiser:
    if setting:
        raise UsageError("none takes no setting")
    return Unchanged(utterance.rate)


def _mcadams(setting: str, utterance: Utterance) -> Anonymiser:
    if draws := _draws("mcadams", setting, utterance):
        return McAdams(draws.uniform(*DRAWN), utterance.rate)
    words = "mcadams:0.8, mcadams:random (one per recording) or mcadams:speaker"
    return McAdams(_number(setting, words), utterance.rate)


def _voice(setting: str, utterance: Utterance, *, name: str = "voice") -> Anonymiser:
    """Return the anonymiser for pitch, formants or both."""
    from monitor.anonymisers.vocoder import DRAWN_RATIOS, DRAWN_SEMITONES, Vocoder

    examples = {
        "pitch": "pitch:4 (semitones)",
        "formant": "formant:1.15 (a ratio)",
        "voice": "voice:4,1.15 (semitones, ratio of formants)",
    }
    words = f"{examples[name]}, {name}:random (one per recording) or {name}:speaker"
    if draws := _draws(name, setting, utterance):
        up, wider = draws.choice((-1, 1), 2)
        semitones = up * draws.uniform(*DRAWN_SEMITONES)
        ratio = draws.uniform(*DRAWN_RATIOS) ** wider
    else:
        texts = setting.split(",") if name == "voice" else [setting]
        if name == "voice" and len(texts) != 2:
            raise UsageError(f"invalid setting {setting!r}: use {words}")
        numbers = [_number(text, words, of=setting) for text in texts]
        semitones, ratio = numbers[0], numbers[-1]
    return Vocoder(
        0.0 if name == "formant" else semitones, 1.0 if name == "pitch" else ratio, utterance
    )


def _whisper(setting: str, utterance: Utterance) -> Anonymiser:
    from monitor.anonymisers.vocoder import Vocoder

    if setting:
        raise UsageError("whisper takes no setting")
    return Vocoder(None, 1.0, utterance)


def _usc(setting: str, utterance: Utterance) -> Anonymiser:
    from monitor.anonymisers.usc import Usc
    from monitor.networks.usc import shipped_codec

    epsilon = _number(setting, "usc:15 (epsilon of a token) or usc (no noise)") if setting else None
    return Usc(epsilon, utterance, shipped_codec())


def _draws(name: str, setting: str, utterance: Utterance) -> np.random.Generator | None:
    """Return the generator for ``random`` or ``speaker``; None for other settings."""
    if setting not in ("random", "speaker"):
        return None
    if setting == "speaker" and utterance.speaker is None:
        raise UsageError(
            f"{name}:speaker needs the speaker: add --speaker NAME, or use {name}:random"
        )
    key = utterance.name if setting == "random" else utterance.speaker
    return utterance.random(name, setting, key)


def _number(text: str, example: str, *, of: str | None = None) -> float:
    try:
        return float(text)
    except ValueError:
        setting = text if of is None else of
        raise UsageError(f"invalid setting {setting!r}: use {example}") from None


ANONYMISERS |= {
    "none": _none,
    "mcadams": _mcadams,
    "pitch": partial(_voice, name="pitch"),
    "formant": partial(_voice, name="formant"),
    "voice": _voice,
    "whisper": _whisper,
    "noise": lambda setting, utterance: Noise(_number(setting, "noise:10 (dB)"), utterance),
    "usc": _usc,
    "command": lambda line, utterance: Program(line, utterance.rate, utterance.timeout_seconds),
}
