"""Operators that make one element of many with a body."""
from __future__ import annotations
