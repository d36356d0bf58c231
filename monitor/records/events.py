"""What happens between readings: a loss, a change of speaker or channel, an alert."""

from __future__ import annotations

from monitor.records.keys import (
    FLAG,
    MAYBE_SECONDS,
    NUMBER,
    SECONDS,
    TEXT,
    TEXTS,
    VALUE,
    Key,
    Record,
)
from monitor.records.reading import OPEN_CHANGE
from monitor.records.start import FALSE_ALARMS
from monitor.types import GAP_REASONS, NOTICE_KINDS

__all__ = ["ALERT", "CHANGE", "CROSSING", "GAP", "NOTICE"]

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
            "and were heard again), under the law of this kind of `session`; `beyond` is true "
            "after that time, of which nothing is known. See [alarms](alarms.md)",
            required=False,
        ),
        Key(
            "seconds_left",
            MAYBE_SECONDS,
            "only of a forecast: stream seconds until the threshold at this rate; null where there "
            "is none any more",
            required=False,
        ),
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
            "bought_seconds",
            VALUE,
            "with the crossing of the second side: how much later the protected side was",
        ),
    ),
)
