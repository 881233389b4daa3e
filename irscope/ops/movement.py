"""Operators that move elements and compute nothing."""
from __future__ import annotations
