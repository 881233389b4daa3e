"""The templates, a file a kind of work; importing this package enters them all in ``TEMPLATES``."""
from tests.grid.programs import contractions, control, convolutions, indexing, movement, pointwise, reductions, whole, windows

__all__ = ["contractions", "control", "convolutions", "indexing", "movement", "pointwise", "reductions", "whole", "windows"]
