"""Typed records of the attributes of what Inductor writes."""
from __future__ import annotations

from irscope.formats.inductor.kernels import KernelSource
from irscope.formats.inductor.scheduler import SchedulerNode
from irscope.graph.attributes import Attributes, attribute


class Scheduled(Attributes):
    """A scheduler node of an IR text."""

    __slots__ = ()
    scheduler = attribute[SchedulerNode]()
    device = attribute[str]("")
    parts = attribute[tuple[str, ...]](())


class Called(Attributes):
    """A call in output code: of a kernel that Inductor generated, whose ``source`` it has, or of an extern kernel."""

    __slots__ = ()
    kernel = attribute[str]()
    source = attribute[KernelSource | None](None)
    args = attribute[tuple[str, ...]](())
    handle = attribute[str]("")


class OutputCodeModule(Attributes):
    """A module of output code: ``aot_id`` is the name of its graph (``0_backward``); empty for other modules."""

    __slots__ = ()
    aot_id = attribute[str]("")
