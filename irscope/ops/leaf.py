"""Operators without work: parameters, constants, iota, tuples and their parts."""
from __future__ import annotations
