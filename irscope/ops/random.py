"""Random bits: rng-bit-generator and its state."""
from __future__ import annotations
