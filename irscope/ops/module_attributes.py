"""The attributes of modules, as typed records: ``HloModule.of(module).is_scheduled``."""
from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from irscope.graph.attributes import Attributes, attribute


class HloModule(Attributes):
    """The attributes in the header of an HLO module."""

    __slots__ = ()
    is_scheduled = attribute[bool](False)
    frontend_attributes = attribute[Any]("")
    entry_computation_layout = attribute[Any](None)
    input_output_alias = attribute[Any](None)
    buffer_donor = attribute[Any](None)
    num_partitions = attribute[Any](1)
    replica_count = attribute[Any](1)


class Prepared(Attributes):
    """The attributes that preparation for a run adds: arrays that became numbers, inputs that are weights, simulated devices.

    ``symbols`` are the values of symbolic sizes that are bound by given shapes.
    """

    __slots__ = ()
    consumed = attribute[Collection[str]](())
    weights = attribute[Collection[str]](())
    partitions = attribute[int](1)
    symbols = attribute[Mapping[str, int]]({})
