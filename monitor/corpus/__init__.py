"""What speech there is, and whose: folders and tables of recordings by speaker and session."""

from monitor.corpus.finding import find
from monitor.corpus.recordings import Corpus, Recording

__all__ = ["Corpus", "Recording", "find"]
