"""Operators that change the element type, or read the same bits as another type."""
from __future__ import annotations
