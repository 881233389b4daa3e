"""Relay programs with their functions inlined and their operators expanded: what is left is a primitive graph."""

from irscope.expand.relay.binding import rebound
from irscope.expand.relay.interpreter import run_program
from irscope.expand.relay.parameters import parameter_names

__all__ = ["parameter_names", "rebound", "run_program"]
