"""Audits: one document of what a product's speech, or a dataset, discloses of its speakers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.lab.audit.audit import Audit, AuditConfig
    from monitor.lab.audit.corpus import audit_corpus, extract_corpus
    from monitor.lab.audit.label import Label, make_label
    from monitor.lab.audit.recorded import audit_attack, audit_runs

__all__ = [
    "Audit",
    "AuditConfig",
    "Label",
    "audit_attack",
    "audit_corpus",
    "audit_runs",
    "extract_corpus",
    "make_label",
]

_HOMES = {
    "audit": "Audit AuditConfig",
    "corpus": "audit_corpus extract_corpus",
    "recorded": "audit_attack audit_runs",
    "label": "Label make_label",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
