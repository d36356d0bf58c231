"""The privacy label of a speech dataset: a card in Markdown for its page, and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitor import crowds
from monitor.errors import UsageError
from monitor.files import write_text
from monitor.lab.audit.audit import (
    CONDITION_NAMES,
    SESSIONS,
    Audit,
    TestRow,
    format_bits,
    format_interval,
    format_matches,
    summarise,
)
from monitor.lab.audit.document import (
    audit_json,
    describe_sound_difference,
    format_condition,
    list_exposed,
)
from monitor.lab.report.model import Figure, format_value
from monitor.phrases import length_in_words, plural
from monitor.version import __version__

SCHEMA = 1


@dataclass(frozen=True)
class Label:
    """Disclosure of a published dataset's speakers.

    Attributes:
        audit: of its recordings.
        salt: of the hashes that stand for speakers.
        uniqueness: the test that says how often the right person comes first among so many.
    """

    audit: Audit
    salt: str = ""
    uniqueness: TestRow | None = None


def make_label(audit: Audit, salt: str = "") -> Label:
    """Make the label of an audited corpus.

    Raises:
        UsageError: the audit is of something else than a corpus.
    """
    if audit.kind != "corpus":
        raise UsageError("a label is of a corpus: give a folder of recordings by speaker")
    several = max((test.tested for test in audit.tests if test.session == "cross"), default=0)
    tests = [test for test in audit.tests if 2 * test.tested >= several]  # few say little of crowds
    tests = [test for test in tests if test.session == "cross"] or tests
    return Label(audit, salt, max(tests, key=lambda test: test.bits, default=None))


def save_label(label: Label, path: Path) -> Path:
    """Write the card, ``.md``, and a JSON of its name beside it, mode 0600; returns the latter.

    Raises:
        StoreError: one of them cannot be written.
    """
    json_path = path.with_suffix(".json")
    write_text(json.dumps(label_json(label), allow_nan=False, indent=1) + "\n", json_path)
    write_text(label_markdown(label), path)
    return json_path


def label_json(label: Label) -> dict[str, Any]:
    """Return the card's content, for ``json.dumps(..., allow_nan=False)``."""
    contents = audit_json(label.audit, label.salt)
    return contents | {
        "kind": "label",
        "schema": SCHEMA,
        "uniqueness": [
            {"people": people, "first": value, "low": low, "high": high, "supported": is_supported}
            for people, value, low, high, is_supported in list_uniqueness(label)
        ],
        "confounds": list(_confounds(label)),
    }


def list_uniqueness(
    label: Label,
) -> Iterator[tuple[int, float | None, float | None, float | None, bool]]:
    """Return crowds, the share of first ranks with limits, and whether it is supported.

    Up to as many as are enrolled it is measured; beyond there is only a bracket, without a value.
    """
    test = label.uniqueness
    if test is None:
        return
    for key, figure in test.figures.items():
        if not key.startswith("among.idr_") or not key.removeprefix("among.idr_").isdigit():
            continue
        people = int(key.removeprefix("among.idr_"))
        yield people, figure.value, figure.low, figure.high, figure.text != "unsupported"


# -------------------------------------------------------------------------------------------- card


def label_markdown(label: Label) -> str:
    """Return the card, a section of a dataset's page."""
    audit = label.audit
    lines = [f"## What the voices of {_plain(audit.name)} disclose", ""]
    lines += [
        "Attackers without any knowledge of the speakers but a known recording of each were tried. "
        "A stronger one learns more; no figure here is a promise, and none says whether the data "
        "are anonymous in law.",
        "",
    ]
    lines += _table(
        ["of these recordings", ""], [(name, _plain(text)) for name, text in audit.facts.items()]
    )
    lines += _headline(audit)
    lines += _unique(label)
    lines += _exposed(label)
    lines += ["### Same-session confounds", "", *_bullets(_confounds(label))]
    lines += _attributes(audit)
    lines += _conditions(audit)
    lines += ["### Not tested", "", *_bullets(audit.not_tested)]
    if audit.notes:
        lines += ["### To know", "", *_bullets(audit.notes)]
    lines += ["", f"Made by monitor {__version__} (`monitor audit --card`); limits are 95 %."]
    return "\n".join(lines) + "\n"


def _headline(audit: Audit) -> list[str]:
    row, exposures = audit.headline, audit.exposures
    if row is None or exposures is None:
        return []
    lines = [f"### What an attacker with {length_in_words(row.seconds)} of speech learns", ""]
    if exposures.kind != "evidence":
        most = math.log2(exposures.candidates)
        bits = format_bits(row.mean)
        return [*lines, f"{bits} of {most:.1f} among the {exposures.candidates} enrolled are told "
                "on average.", ""]  # fmt: skip
    crowd = crowds.people(audit.among)
    rows = [
        ("on average", format_bits(row.mean, least=row.clipped > 0.05),
         _left(row.mean.value or 0.0, audit)),
        ("one stretch in ten, at least", f"{row.exposed:.1f} bits", _left(row.exposed, audit)),
        ("the most telling stretch", f"{'at least ' * row.most_at_least}{row.most:.1f} bits",
         _left(row.most, audit)),
    ]  # fmt: skip
    lines += _table(["", "evidence", f"people of {crowd} who fit as well"], rows)
    depth = "" if exposures.template_seconds is None else f"{exposures.template_seconds:g} s of "
    lines += [
        f"{row.stretches} stretches of {row.speakers} speakers; the attacker has {depth}known "
        f"speech of each, from {SESSIONS[exposures.session]}. Evidence of k bits: the speech is "
        "2^k times as likely of this person as of anybody else, which leaves one of 2^k people.",
        "",
    ]
    return lines


def _left(bits: float, audit: Audit) -> str:
    return format_matches(bits, audit.among).removesuffix(f" of {crowds.people(audit.among)}")


def _unique(label: Label) -> list[str]:
    test = label.uniqueness
    rows = []
    for people, value, low, high, is_supported in list_uniqueness(label):
        if value is not None:
            interval = format_interval(Figure("", "", value, "share", low=low, high=high))
            rows.append((crowds.people(people), interval, "measured"))
        elif low is not None and high is not None:
            between = f"{format_value(low, 'share')} to {format_value(high, 'share')}"
            basis = "extrapolated" if is_supported else "not supported by so few speakers"
            rows.append((crowds.people(people), between, basis))
    if test is None or not rows:
        return []
    return [
        "### How unique a voice is",
        "",
        f"How often the right person comes first among so many, by {test.seconds:g} s of speech "
        f"({test.feature}, {SESSIONS[test.session]}, {plural(test.trials, 'trial')} of "
        f"{plural(test.tested, 'speaker')}). Among the {test.speakers} enrolled it is measured; of "
        "more people there is only a bracket, which spans what ways of extrapolation say.",
        "",
        *_table(["people", "right one first", "how it is known"], rows),
    ]


def _exposed(label: Label) -> list[str]:
    speakers = list_exposed(label.audit, label.salt)
    if not speakers or label.audit.headline is None:
        return []
    rows = [(f"`{name}`", f"{bits:.1f}", str(count)) for name, bits, count in speakers]
    salted = "with a salt that is not published" if label.salt else (
        "and no secret to who has the list of speakers; `--salt` makes it one"
    )  # fmt: skip
    return [
        "### The most exposed speakers",
        "",
        f"Mean bits by stretches of {label.audit.headline.seconds:g} s. A speaker is shown as the "
        f"first twelve digits of the SHA-256 of the name, {salted}.",
        "",
        *_table(["speaker", "bits", "stretches"], rows),
    ]


def _confounds(label: Label) -> Iterator[str]:
    """Yield what separates people in these recordings besides their voices."""
    audit = label.audit
    tests = [t for t in audit.tests if t.feature == (label.uniqueness or t).feature]
    by = {session: [t for t in tests if t.session == session] for session in SESSIONS}
    if not by["cross"]:
        yield (
            "Nobody has two sessions with enough speech: all figures are within one session, where "
            "room, microphone and day are the speaker's own. They are an upper end."
        )
    for same in by["same"]:
        for cross in by["cross"]:
            if cross.seconds == same.seconds:
                first, other = same.figures.get("srd.idr"), cross.figures.get("srd.idr")
                if first and other and first.value is not None and other.value is not None:
                    less = first.value <= other.value
                    shown = other.high is None or first.value > other.high
                    yield (
                        f"By {same.seconds:g} s the right one of {same.speakers} comes first in "
                        f"{format_interval(first)} of the trials within a session, and of "
                        f"{cross.speakers} in {format_interval(other)} across sessions"
                        + (", no less than within one." if less
                           else ": what is more within one is told by room, microphone and day."
                           if shown else ": too few speakers to show a difference.")
                    )  # fmt: skip
    if difference := describe_sound_difference(audit):
        yield difference


def _attributes(audit: Audit) -> list[str]:
    rows = [
        (_plain(name), _plain(row.value), format_interval(row.judgement.error), row.feature,
         f"{row.judgement.readers_with} / {row.judgement.readers_without}")
        for name, rows in audit.attributes.items() for row in rows
    ]  # fmt: skip
    if not rows:
        return ["### Attributes", "", *_bullets(summarise(audit)["inference"])]
    return [
        "### Attributes that a voice tells",
        "",
        "Learnt on some of the speakers, judged on the others; 50 % would be a guess.",
        "",
        *_table(["attribute", "told", "equal error rate", "by", "speakers with / without"], rows),
    ]


def _conditions(audit: Audit) -> list[str]:
    if not audit.conditions:
        return []
    rows = [
        (CONDITION_NAMES[row.name][0], format_condition(row, 1),
         f"{format_condition(row, 0)} to {format_condition(row, 2)}", str(row.sessions))
        for row in audit.conditions
    ]  # fmt: skip
    return ["### Acoustic conditions", "",
            *_table(["of a session", "median", "four in five", "sessions"], rows)]  # fmt: skip


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(head)} |",
        f"|{' --- |' * len(head)}",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]


def _bullets(lines: Iterable[str]) -> list[str]:
    return [*(f"- {_plain(line)}" for line in lines), ""]


def _plain(text: str) -> str:
    """Escape Markdown: a folder's name may hold anything."""
    for mark in "\\`*_[]<>|#":
        text = text.replace(mark, f"\\{mark}")
    return text
