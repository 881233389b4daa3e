"""Relay programs with their functions inlined and their operators expanded: what is left is a primitive graph."""

from irscope.expand.relay.program import run_program

__all__ = ["run_program"]
