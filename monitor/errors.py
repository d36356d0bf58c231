"""What can go wrong, as one tree.

::

    MonitorError                 anything this package raises on purpose
    ├── UsageError               the call makes no sense as it stands
    ├── SourceError              a recording or a device cannot be heard
    │   └── ForeignTextError     ... because a file beside it is no transcript, but something else
    ├── StoreError               a population, rank model or checkpoint file cannot be used
    │   └── SchemaError          ... because it was written by a newer version
    ├── CorpusError              a folder or manifest cannot be read as a corpus
    │   └── UnnamedSpeakerError  ... because it does not say who speaks
    ├── CalibrationError         too little speech or too few speakers for a rank model
    └── OverlapError             the stream is the very audio that was enrolled

Every message is one line: what was wrong, and what to do about it.
"""

from __future__ import annotations

__all__ = [
    "CalibrationError",
    "CorpusError",
    "ForeignTextError",
    "MonitorError",
    "OverlapError",
    "SchemaError",
    "SourceError",
    "StoreError",
    "UnnamedSpeakerError",
    "UsageError",
]


class MonitorError(Exception):
    """Base of every error raised on purpose."""


class UsageError(MonitorError, ValueError):
    """An argument or a combination of arguments makes no sense."""


class SourceError(MonitorError):
    """A recording, a pipe or a device cannot be heard."""


class ForeignTextError(SourceError):
    """A file that could have been a transcript is whole, and something else: metadata, say."""


class StoreError(MonitorError):
    """A population, rank model or checkpoint file is damaged, foreign or cannot be written."""


class SchemaError(StoreError):
    """A store was written by a newer version of this package."""


class CorpusError(MonitorError):
    """A folder or a manifest cannot be read as a corpus of speakers."""


class UnnamedSpeakerError(CorpusError):
    """There are recordings, but nothing says whose they are.

    Attributes:
        what: the part of the message that says what is wrong, without what to do.
    """

    def __init__(self, what: str, cure: str) -> None:
        super().__init__(f"{what}; {cure}")
        self.what = what


class CalibrationError(MonitorError):
    """There are too few speakers, or too little speech, to learn a rank model."""


class OverlapError(MonitorError):
    """The stream contains audio that the templates were made from."""
