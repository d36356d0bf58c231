"""The last record of a run: what it came to, and whether anything was lost."""

from __future__ import annotations

from monitor.records.keys import (
    CONDITIONS,
    COUNT,
    DIFFERS,
    FIGURE,
    FLAG,
    MAYBE_SECONDS,
    MAYBE_TEXT,
    SECONDS,
    TEXT,
    TEXTS,
    TOP,
    Key,
    Record,
)
from monitor.records.protected import BOUGHT
from monitor.records.reading import BYSTANDERS
from monitor.records.transcripts import TRANSCRIPTS_END

__all__ = ["END"]

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
        Key("watch", MAYBE_TEXT, "as in `start`"),
        Key("recordings", TEXTS, "as in `start`", required=False),
        Key(
            "notices",
            TEXTS,
            "what a person should know of the recordings, one sentence each: all that was noticed "
            "in the middle of the stream (`notice`), nobody speaks in it, or it sounds like "
            "another person than what was heard before it (see [measurements](measurements.md))",
            required=False,
        ),
        Key(
            "bystanders",
            BYSTANDERS,
            "only with `--bystanders`: each of them with the largest `probability` of the run",
            required=False,
        ),
        Key(
            "bought",
            BOUGHT,
            "only with `--protect`, a row for each level of the headline (`bits`): when the clear "
            "and the protected side reached it (`clear`, `protected`: `seconds`, or, where "
            "`crossed` is false, until when it is known that they had not), and `bought_seconds`, "
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
