"""Ledger of a voice's disclosure over all its sessions: one SQLite file without audio."""

from __future__ import annotations

from monitor.ledger.ledger import Ledger
from monitor.ledger.session import LedgerSession

__all__ = ["Ledger", "LedgerSession"]
