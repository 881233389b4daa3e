"""Runs a Relay program abstractly: inlines its functions and expands its operators into a primitive graph."""

from irscope.expand.relay.binding import rebound
from irscope.expand.relay.interpreter import run_program
from irscope.expand.relay.parameters import parameter_names

__all__ = ["parameter_names", "rebound", "run_program"]
