"""Operators that talk to other devices; alone, each has the meaning of one partition."""
from __future__ import annotations
