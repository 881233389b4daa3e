"""Audits: the tables of ``irscope lint --audit``, one file each with ``audit(module) -> Table``; and how they are written."""

from __future__ import annotations

from irscope.lint.audits.table import FileAudit, Table, auditor, write_audits

__all__ = ["FileAudit", "Table", "auditor", "write_audits"]
