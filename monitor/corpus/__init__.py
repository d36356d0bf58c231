"""Recordings of speech by speaker and session, in folders and tables."""

from monitor.corpus.finding import find
from monitor.corpus.recordings import Corpus, Recording

__all__ = ["Corpus", "Recording", "find"]
