"""Relay programs with their functions inlined and their operators expanded: what is left is a primitive graph."""

from irscope.expand.relay.binding import rebound
from irscope.expand.relay.parameters import parameter_names
from irscope.expand.relay.program import run_program

__all__ = ["parameter_names", "rebound", "run_program"]
