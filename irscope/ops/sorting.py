"""Sorting: sort and topk."""
from __future__ import annotations
