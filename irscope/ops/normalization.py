"""Batch normalisation: each operator is defined by the primitives that it expands to."""
from __future__ import annotations
