"""What records say of transcripts: whose words they are, and how well they fit the speech."""

from __future__ import annotations

from monitor.records.keys import COUNT, FLAG, MAYBE_TEXT, PROBABILITY, TEXT

__all__ = ["TRANSCRIPTS_END", "TRANSCRIPTS_START"]

TRANSCRIPTS_START = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "recording": TEXT,
            "transcript": TEXT,
            "words": {**COUNT, "type": ["integer", "null"]},
            "spread": {**FLAG, "type": ["boolean", "null"]},
            "speaker": MAYBE_TEXT,
        },
        "required": ["recording", "transcript", "words", "spread", "speaker"],
    },
}
"""Of the ``start`` record."""
TRANSCRIPTS_END = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "recording": TEXT,
            "words": COUNT,
            "words_in_speech": PROBABILITY,
            "speech_with_words": PROBABILITY,
            "as_well_elsewhere": PROBABILITY,
        },
        "required": ["recording", "words", "words_in_speech", "speech_with_words"],
    },
}
"""Of the ``end`` record."""
