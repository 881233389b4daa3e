"""Contractions: dot, convolution and their kin."""
from __future__ import annotations
