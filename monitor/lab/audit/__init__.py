"""Audits: one document of what a product's speech, or a dataset, discloses of its speakers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.lab.audit.audit import (
        Audit,
        AuditConfig,
        audit_attack,
        audit_corpus,
        audit_runs,
        hear_corpus,
    )
    from monitor.lab.audit.label import Label, label_of

__all__ = [
    "Audit",
    "AuditConfig",
    "Label",
    "audit_attack",
    "audit_corpus",
    "audit_runs",
    "hear_corpus",
    "label_of",
]

_HOMES = {
    "audit": "Audit AuditConfig audit_attack audit_corpus audit_runs hear_corpus",
    "label": "Label label_of",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
