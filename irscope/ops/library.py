"""Custom calls: what the library functions behind them mean."""
from __future__ import annotations
