"""The arrays of one ``compile-and-run``: read from their files once, matched to what the graph takes, drawn where none is given."""
from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irscope.graph import Module
from irscope.lazy import Array
from irscope.source import UserError

if TYPE_CHECKING:

    from irscope.backends.executable import Port
    from irscope.cli.run_request import Request


@dataclass(frozen=True, slots=True)
class Files:
    """What ``--inputs``, ``--weights`` and ``--constants`` hold, by name."""

    inputs: Mapping[str, Array]
    weights: Mapping[str, Array]
    constants: Mapping[str, Array]


def read_files(request: Request) -> Files:
    """Read the files of arrays that a request names; of equal names in several files the last counts."""
    from irscope.source.arrays import Joined, read_arrays

    def all_of(paths: Sequence[str]) -> Mapping[str, Array]:
        files = [read_arrays(path) for path in paths]
        for path, arrays in zip(paths, files, strict=True):
            _note_unread(path, getattr(arrays, "unread", {}))
        return Joined(files[::-1])

    return Files(all_of(request.inputs), all_of(request.weights), all_of([request.constants] if request.constants else []))


class Arrays:
    """An array for every tensor that a module takes. ``weights`` are those that are fixed, by number of parameter."""

    def __init__(self, request: Request, module: Module, files: Files) -> None:
        from irscope.backends.arguments import Given, by_name, drawn, missing_near
        from irscope.backends.model import ports_of

        ports = ports_of(module)[0]
        inputs, weights = files.inputs, files.weights
        if "partitions" in module.attrs:
            inputs, weights = _for_all_devices(inputs, ports), _for_all_devices(weights, ports)
        fixed = by_name(weights, ports, " and ".join(request.weights))
        given = by_name(inputs, ports, " and ".join(request.inputs))
        both = sorted(fixed.arrays.keys() & given.arrays.keys())
        if both:
            raise UserError(f"{ports[both[0]].name} is given as an input and as a weight", "give it once")
        consumed = module.attrs.get("consumed", ())
        _note_ignored(name for name in fixed.unknown if name not in consumed)
        found = {**fixed.arrays, **given.arrays}
        missing_near(Given(found, given.unknown), ports, inputs)
        _note_ignored(name for name in given.unknown if name not in consumed)
        absent = [n for n in range(len(ports)) if n not in found]
        self.drawn_names = [ports[n].name for n in absent]
        self._by_port = {**found, **drawn(ports, absent, request.seed, module.attrs.get("weights", ()))}
        self._params = _params_of_ports(module)
        self.weights = self._whole_params(module, fixed.arrays)

    def inputs(self) -> list[Array]:
        """The arrays that are no weights, in order."""
        return [self._by_port[n] for n, param in enumerate(self._params) if param not in self.weights]

    def all(self) -> list[Array]:
        """All arrays, in order."""
        return [self._by_port[n] for n in range(len(self._params))]

    def _whole_params(self, module: Module, arrays: dict[int, Array]) -> dict[int, Array]:
        """Weights by the number of their parameter; a parameter that is a tuple cannot be fixed in part."""
        from irscope.graph import TupleType

        found: dict[int, Array] = {}
        for port, array in arrays.items():
            param = module.main().params[self._params[port]]
            if isinstance(param.type, TupleType):
                raise UserError(f"%{param.name} is a tuple, which cannot be a weight", "give it with --inputs")
            found[self._params[port]] = array
        return found


def _params_of_ports(module: Module) -> list[int]:
    """For each tensor that the entry takes the number of the parameter that it is part of."""
    from irscope.lower.values import leaf_paths

    return [number for number, param in enumerate(module.main().params) for _ in leaf_paths(param.type)]


def _for_all_devices(arrays: Mapping[str, Array], ports: list[Port]) -> dict[str, Array]:
    """Arrays for every device: ``x`` is given to all, ``x@1`` to one; ``argN`` counts the inputs of one device."""
    bases = list(dict.fromkeys(port.name.rpartition("@")[0] for port in ports))
    plain = {f"arg{i}": base for i, base in enumerate(bases)} | {base: base for base in bases}
    spread = {port.name: array for name, array in arrays.items() if name in plain for port in ports
              if port.name.rpartition("@")[0] == plain[name]}
    alone = {f"{plain[base]}@{device}": array for name, array in arrays.items() for base, at, device in [name.rpartition("@")]
             if at and base in plain}
    rest = {name: array for name, array in arrays.items() if name not in plain and name.rpartition("@")[0] not in plain}
    return {**rest, **spread, **alone}


def results_by_number(arrays: Mapping[str, Array], count: int, devices: int) -> Mapping[str, Array]:
    """Arrays by number of the output: ``out1@2`` is result 1 of device 2, whose results stand behind those of the devices before it."""
    each = count // devices
    numbers = {f"out{result}@{device}": f"out{device * each + result}" for device in range(devices) for result in range(each)}
    return arrays if devices == 1 else {numbers.get(name, name): array for name, array in arrays.items()}


def _note_unread(path: str, unread: Mapping[str, str]) -> None:
    """Say which tensors of a file are of kinds that are not read."""
    if unread:
        shown = ", ".join(f"{name} ({kind})" for name, kind in [*unread.items()][:6])
        shown += f" and {len(unread) - 6} more" if len(unread) > 6 else ""
        print(f"note: {path}: these tensors are not read: {shown}", file=sys.stderr)


def _note_ignored(names: Iterable[str]) -> None:
    """Say once which names of the files the graph does not have."""
    unknown = list(names)
    if unknown:
        shown = ", ".join(unknown[:6]) + (f" and {len(unknown) - 6} more" if len(unknown) > 6 else "")
        print(f"note: not inputs of the graph, and ignored: {shown}", file=sys.stderr)
