"""The version of irscope."""

__version__ = "0.1.0"
