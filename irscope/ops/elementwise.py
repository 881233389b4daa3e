"""Elementwise operators: one result element from one element of each operand."""
from __future__ import annotations
