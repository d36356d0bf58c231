"""Recordings of speech by speaker and session, from folders and tables.

Supported are folders, manifests, and the layouts of LibriSpeech, Kaldi, VoicePrivacy, Common Voice,
Hugging Face and lhotse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.corpus.folders import find
    from monitor.corpus.recordings import Corpus, Recording
    from monitor.datasets.rows import AS_STATED, Columns

__all__ = ["AS_STATED", "Columns", "Corpus", "Recording", "find"]

__getattr__, __dir__ = lazily(__name__)
