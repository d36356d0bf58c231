"""The JSON Schema of every record of a run, and reading a run back."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from monitor.errors import SchemaError, StoreError
from monitor.records.keys import (
    CONDITIONS,
    COUNT,
    DIFFERS,
    FIGURE,
    FLAG,
    HEADLINES,
    MAYBE_SECONDS,
    MAYBE_TEXT,
    NUMBER,
    PROBABILITY,
    SECONDS,
    TEXT,
    TEXTS,
    TOP,
    VALUE,
    Key,
    Record,
    limits,
    misfit,
    object_of,
)
from monitor.records.reading import (
    BYSTANDERS,
    DISCLOSURE_DELAY,
    FALSE_ALARMS,
    LABEL,
    OPEN_CHANGE,
    READING,
    SCHEMA_VERSION,
    START,
    TRANSCRIPTS_END,
    WATCH,
)
from monitor.safe_text import file_name, printable
from monitor.types import GAP_REASONS, NOTICE_KINDS

# --- What happens between readings: a loss, a change of speaker or channel, an alert.

GAP = Record(
    "gap",
    (
        Key("seconds", SECONDS, "where on the stream it was noticed"),
        Key(
            "reason",
            TEXT,
            "a few words: "
            + "; ".join(f'`"{reason}"` ({meaning})' for reason, meaning in GAP_REASONS.items())
            + ". A source of your own may have others",
        ),
        Key(
            "lost_seconds",
            MAYBE_SECONDS,
            "audio lost, or not heard by a thinned feature; null where nobody can know",
        ),
        Key("recording", TEXT, "which recording"),
        Key("detail", TEXT, "one line for a person"),
        LABEL,
    ),
)

NOTICE = Record(
    "notice",
    (
        Key("seconds", SECONDS, "where on the stream it was noticed"),
        Key(
            "kind",
            TEXT,
            "; ".join(f'`"{kind}"` ({meaning})' for kind, meaning in NOTICE_KINDS.items()),
        ),
        Key("text", TEXT, "one line for a person: what is so, and what to do"),
        Key("recording", TEXT, "which recording"),
        Key(
            "level",
            {"enum": ["warning", "info"]},
            '`"warning"` where figures may mislead, else `"info"`',
        ),
        Key("fields", {"type": "object"}, "the figures behind it, by name"),
        LABEL,
    ),
)

CHANGE = Record(
    "change",
    (
        Key("seconds", SECONDS, "where on the stream it was noticed"),
        Key("since_seconds", SECONDS, "where the new voice seems to have begun"),
        Key(
            "features",
            TEXTS,
            'which of them noticed; `"channel"` alone means another microphone, room, line or '
            "gain, or a voice that came with one",
        ),
        Key(
            "margin_before",
            NUMBER,
            "how much the newest speech was like the voice so far rather than like anybody, on "
            "average up to there: nats a frame (histograms), cosine (embeddings) or bels from the "
            "usual levels, negative (`channel`)",
        ),
        Key("margin_after", NUMBER, "the same since then"),
        Key(
            "action",
            {"enum": ["note", "reset", "split"]},
            'what was done: `"note"` carries on, `"reset"` forgets the evidence and keeps the '
            'peak, `"split"` begins another stream',
        ),
        Key(
            "back",
            FLAG,
            'only true, and only with `"note"`: nobody new, the first voice is back. The margins '
            "are those under it: the level that says so, and since then",
            required=False,
        ),
        LABEL,
    ),
)

ALERT = Record(
    "alert",
    (
        Key("seconds", SECONDS, "when, in audio seconds heard"),
        Key("speech", SECONDS, "when, in speech seconds"),
        Key(
            "rule",
            TEXT,
            "as it can be given to `--alert`; `bits>4.5 (5 % false alarms in 10 minutes)` where "
            "the threshold was worked out (`--false-alarms`); `bits>3 within 30 s` for a forecast "
            "(`--warn`), `budget of 8 bits nearly spent` and `budget of 8 bits spent` for a budget "
            "(`--budget`)",
        ),
        Key("field", TEXT, "the figure it watches"),
        Key("threshold", NUMBER, "its threshold, bits"),
        Key(
            "level",
            {"enum": ["alert", "warning"]},
            '`"alert"`, or `"warning"` for a forecast and a budget nearly spent: these give no '
            "exit status and stop nothing",
        ),
        Key("state", {"enum": ["raised", "cleared"]}, '`"raised"` or `"cleared"`'),
        Key("value", VALUE, "the figure at that moment"),
        Key(
            "least_speech_seconds",
            SECONDS,
            "only with a rule that waits for speech (`after 10 s`): T of the first reading "
            "that counts",
            required=False,
        ),
        Key("recording", TEXT, "the name of the one it fell in", required=False),
        Key(
            "change",
            OPEN_CHANGE,
            "only where a change ended it: its `since_seconds` and `features`",
            required=False,
        ),
        Key(
            "false_alarms",
            FALSE_ALARMS,
            "only with `--false-alarms`: at most this `share` of other people's streams of "
            "`horizon_seconds` sets it off, by so many `speakers` (`repeated` of whom said less "
            "and were heard again), under the rank model of this kind of `session`; `beyond` is "
            "true after that time, of which nothing is known. See [alarms](alarms.md)",
            required=False,
        ),
        Key(
            "seconds_left",
            MAYBE_SECONDS,
            "only of a forecast: stream seconds until the threshold at this rate; null where there "
            "is none any more",
            required=False,
        ),
        LABEL,
        WATCH,
    ),
)

CROSSING = Record(
    "crossing",
    (
        Key("seconds", SECONDS, "where on the stream it was certain"),
        Key("bits", NUMBER, "the level of the headline"),
        Key("side", {"enum": ["clear", "protected"]}, '`"clear"` or `"protected"`'),
        Key(
            "since_seconds",
            SECONDS,
            "since when the figure has stayed at or above it, for as long as an alert is held",
        ),
        Key(
            "delay_seconds",
            VALUE,
            "with the crossing of the second side: how much later the protected side was",
        ),
    ),
)


_PERSON = object_of(
    label=TEXT,
    person=MAYBE_TEXT,
    probability=PROBABILITY,
    enrolled=PROBABILITY,
    seconds=MAYBE_SECONDS,
    overlap_seconds=MAYBE_SECONDS,
    speech=SECONDS,
    watch=MAYBE_TEXT,
    **limits("bits"),
    headline={"enum": [*HEADLINES, None]},
    at_least={"type": ["boolean", "null"]},
    peak_bits=FIGURE,
    purity=PROBABILITY,
    changes=COUNT,
    alerts=COUNT,
    first_alert_seconds=MAYBE_SECONDS,
    differs=DIFFERS,
)

# --- The last record of a run: what it came to, and whether anything was lost.

END = Record(
    "end",
    (
        Key("time", TEXT, "time of day, UTC"),
        Key("seconds", SECONDS, "audio seconds heard, at the last reading"),
        Key("speech", SECONDS, "T, speech seconds, at the last reading"),
        Key("bits", FIGURE, "the headline of the last reading"),
        Key("peak_bits", FIGURE, "the largest headline of the run"),
        Key("top", TOP, "of the last reading"),
        Key("readings", COUNT, "how many readings"),
        Key("conditions", CONDITIONS, "of the last reading, or null", required=False),
        Key("differs", DIFFERS, "of the last reading, empty where nothing does", required=False),
        Key("gaps", COUNT, "how many gaps"),
        Key("changes", COUNT, "how many changes"),
        Key("lost_seconds", MAYBE_SECONDS, "audio lost, as far as known"),
        Key("alerts", COUNT, 'alerts raised, of `level` `"alert"`'),
        Key("warnings", COUNT, 'alerts raised, of `level` `"warning"`'),
        Key("failures", TEXTS, "what an action or the ledger could not do, a line each"),
        Key(
            "undecided",
            TEXTS,
            "alerts of which a stream so short says nothing, a line each: it had less speech than "
            "the rule needs (`after 10 s`), or ended while a rule's figure was held (`for 5 s`)",
        ),
        Key(
            "repeated_seconds",
            SECONDS,
            "only where there was any: speech that repeats what was heard before in this stream, "
            "and was left out of all figures",
            required=False,
        ),
        Key("stopped", MAYBE_TEXT, "the rule that ended the stream (`--stop-on-alert`), or null"),
        Key("complete", FLAG, "false where anything was lost"),
        Key(
            "incomplete",
            TEXTS,
            "what keeps the run from being complete, a line each: lost audio, a recording without "
            "speech, an undecided alert, a ledger that lacks part of it. With `alerts` the exit "
            "status is 3, else 4",
            required=False,
        ),
        Key("watch", MAYBE_TEXT, "as in `start`"),
        Key("recordings", TEXTS, "as in `start`", required=False),
        Key(
            "notices",
            TEXTS,
            "what a person should know of the recordings, one sentence each: all that was noticed "
            "in the middle of the stream (`notice`), nobody speaks in it, or it sounds like "
            "another person than what was heard before it "
            "(see [measurements](../benchmarks/results/recordings.md))",
            required=False,
        ),
        Key(
            "bystanders",
            BYSTANDERS,
            "only with `--bystanders`: each of them with the largest `probability` of the run",
            required=False,
        ),
        Key(
            "people",
            {"type": "array", "items": _PERSON},
            "only of several [people](people.md), a row each: who it most probably is (`person`, "
            "null: nobody enrolled) and how probable that is, `seconds` alone by the turns, and "
            "the figures of the last reading. The run's own `bits` are then the largest",
            required=False,
        ),
        Key(
            "overlap_seconds",
            MAYBE_SECONDS,
            "only of several people: seconds in which more than one speaks, which count for nobody",
            required=False,
        ),
        Key(
            "disclosure_delay",
            DISCLOSURE_DELAY,
            "only with `--protect`, a row for each level of the headline (`bits`): when the clear "
            "and the protected side reached it (`clear`, `protected`: `seconds`, or, where "
            "`crossed` is false, until when it is known that they had not), and `delay_seconds`, "
            "the difference, which is `at_least` so much where the protected side had not; null "
            "where the clear side had not. Empty where nobody is watched",
            required=False,
        ),
        Key(
            "transcripts",
            TRANSCRIPTS_END,
            "only with words: of each `recording` how many `words` came, the share of their time "
            "in which somebody speaks (`words_in_speech`), the share of the speech in which a word "
            "is said (`speech_with_words`), and the share of the other places along the recording "
            "where the words would lie in speech as well (`as_well_elsewhere`: near 0 for the "
            "recording's own, anything for another's; null where pauses are too few to tell)",
            required=False,
        ),
    ),
)


RECORDS = (START, READING, GAP, NOTICE, CHANGE, ALERT, CROSSING, END)
"""Every type of record, as declared."""

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "One record of a run of the disclosure monitor",
    "oneOf": [record.schema for record in RECORDS],
}
"""JSON Schema of every record. Figures are in bits or seconds."""

_KINDS = {kind["title"]: kind for kind in SCHEMA["oneOf"]}
_MOST_LINE_BYTES = 50_000_000
"""Of a record; among a hundred thousand people one has a tenth of that."""
_NEEDED = {
    "reading": ("seconds", "speech"),
    "gap": ("seconds",),
    "notice": ("seconds", "text"),
    "change": ("seconds", "since_seconds"),
    "alert": ("seconds", "rule", "field", "threshold", "state"),
    "crossing": ("seconds", "bits", "side", "since_seconds"),
}
"""What nothing can be drawn without; a key of a later version may be missing in an older run."""


def read_run(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    r"""Read back the records of a run; a last line that was torn off in writing is left out.

    Raises:
        StoreError: the file is missing, or something other than a run.
        SchemaError: another version of the program wrote it.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "run.jsonl")
        ...     _ = path.write_text('{"type":"start","schema":2}\n{"type":"rea')
        ...     read_run(path)
        [{'type': 'start', 'schema': 2}]
    """
    return list(follow_run(path))


def follow_run(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The same one by one, so that a run of days takes no more memory than a short one.

    Raises:
        StoreError: as `read_run`; what is wrong further on is found when it is reached.
        SchemaError: a newer version wrote it.
    """
    name = file_name(path)
    count = 0
    try:
        with Path(path).open("rb") as file:
            for number in itertools.count(1):
                line = file.readline(_MOST_LINE_BYTES)
                if not line:
                    break
                if not line.strip():
                    continue
                record = _record(name, number, line, first=not count)
                if record is None:
                    break
                count += 1
                yield record
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StoreError(f"cannot open {name}: {reason}; check the name") from None
    if not count:
        raise StoreError(f"{name} does not begin with a start record; give a run's JSON lines")


def _record(name: str, number: int, line: bytes, *, first: bool) -> dict[str, Any] | None:
    """The record of a line; None where it was torn off, or begins no run."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        record = None
    if record is None and not first and not line.endswith(b"\n") and len(line) < _MOST_LINE_BYTES:
        return None
    if not isinstance(record, dict) or not isinstance(record.get("type"), str):
        raise StoreError(f"{name} line {number} is no record; give a run's JSON lines")
    if first:
        if record["type"] != "start":
            return None
        _check_version(name, record.get("schema"))
    wrong = wrong_in(record)
    if wrong is not None:
        raise StoreError(
            f"{name} line {number}: {printable(wrong)[:40]} of this {record['type']} is "
            "missing or makes no sense; is the file damaged?"
        )
    return record


def wrong_in(record: Mapping[str, Any]) -> str | None:
    """The first key that no run holds so, or that is missing and nothing is drawn without.

    Examples:
        >>> wrong_in({"type": "gap", "seconds": 1.0}), wrong_in({"type": "gap", "seconds": -1})
        (None, 'seconds')
        >>> wrong_in({"type": "of a later version"})
    """
    kind = _KINDS.get(record["type"])
    if kind is None:
        return None
    missing = (key for key in _NEEDED.get(record["type"], ()) if key not in record)
    return next(missing, None) or misfit(record, kind)


def _check_version(name: str, schema: Any) -> None:
    if type(schema) is not int or schema < 1:
        raise StoreError(f"{name} does not say its schema; give a run's JSON lines")
    if schema > SCHEMA_VERSION:
        raise SchemaError(f"{name} is of schema {schema}, newer than {SCHEMA_VERSION}; upgrade")
    if schema < SCHEMA_VERSION:
        raise SchemaError(
            f"{name} is of schema {schema}, in which `bits` was another figure than in "
            f"{SCHEMA_VERSION}; replay the recording again"
        )
