"""Sliding windows: reduce-window and select-and-scatter."""
from __future__ import annotations
