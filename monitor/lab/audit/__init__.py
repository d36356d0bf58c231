"""Audits: one document on what a product's speech, or a dataset, discloses about its speakers."""

from monitor.lab.audit.audit import Audit, AuditConfig
from monitor.lab.audit.auditing import audit_attack, audit_corpus, audit_runs, extract_corpus
from monitor.lab.audit.document import Label, make_label

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
