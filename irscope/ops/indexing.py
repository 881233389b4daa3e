"""Indexing by values: gather, scatter, dynamic slices."""
from __future__ import annotations
