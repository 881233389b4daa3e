"""The attributes of modules, as typed records: ``HloModule.of(module).is_scheduled``."""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from irscope.graph.attributes import Attributes, attribute


class HloModule(Attributes):
    """The attributes in the header of an HLO module."""

    __slots__ = ()
    is_scheduled = attribute[bool](False)
    frontend_attributes = attribute[object]("")
    entry_computation_layout = attribute[object](None)
    input_output_alias = attribute[Any](None)
    buffer_donor = attribute[object](None)
    num_partitions = attribute[object](1)
    replica_count = attribute[object](1)


class Prepared(Attributes):
    """The attributes that preparation for a run adds: arrays that became numbers, inputs that are weights, simulated devices.

    ``measured``: sizes were computed from the values of the inputs. ``symbols`` are the values of symbolic sizes that are bound by
    given shapes.
    """

    __slots__ = ()
    consumed = attribute[Collection[str]](())
    weights = attribute[Collection[str]](())
    partitions = attribute[int](1)
    measured = attribute[bool](False)
    symbols = attribute[Mapping[str, int]]({})


class Interface(Attributes):
    """How the user of a program calls it, where the dump tells.

    ``input_paths`` has the place in the call of each input by name (``d['b'][0]``), ``result_paths`` the place in what the call returns of
    each result that a run gives. ``ranges`` are the smallest and the largest value of symbolic sizes as written (``int_oo``: no limit),
    ``hints`` their values in the call for which the program was made, ``guards`` conditions on the inputs as Python texts.
    """

    __slots__ = ()
    input_paths = attribute[Mapping[str, str]]({})
    result_paths = attribute[Sequence[str]](())
    ranges = attribute[Mapping[str, tuple[str, str]]]({})
    hints = attribute[Mapping[str, int]]({})
    guards = attribute[Sequence[str]](())


class WrittenBy(Attributes):
    """The release of the framework that wrote a dump, where the dump tells."""

    __slots__ = ()
    torch_version = attribute[str]("")
