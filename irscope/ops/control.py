"""Operators that call bodies: call, fusion, while, conditional, and the order that tokens keep."""
from __future__ import annotations
