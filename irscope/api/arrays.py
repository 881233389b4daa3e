"""The arrays of one run: read from their files once, matched to the graph's parameters, and drawn at random if not given."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from irscope.api.array_files import Files
from irscope.api.options import RunOptions
from irscope.api.watching import Watcher
from irscope.backends.arguments import GivenArrays, by_name, drawn, missing_near
from irscope.backends.executable import Port
from irscope.backends.model import ports_of
from irscope.graph import Module, TupleType
from irscope.lazy import Array
from irscope.lower.values import leaf_paths
from irscope.ops.module_attributes import Interface, Prepared
from irscope.render.units import some
from irscope.source import UserError
from irscope.source.arrays import Joined, Renamed, read_arrays

MOST_NAMED = 6
"""How many names a note lists; the others are counted."""


def read_files(options: RunOptions, given: Files, watch: Watcher) -> Files:
    """The given arrays, which take precedence over those of the option files; where several files have a name, the last one wins."""

    def all_of(paths: Sequence[str], own: Mapping[str, Array]) -> Mapping[str, Array]:
        files = [given.opened[path] if path in given.opened else read_arrays(path) for path in paths]
        for path, arrays in zip(paths, files, strict=True):
            _note_unread(path, getattr(arrays, "unread", {}), watch)
        return Joined([own, *files[::-1]])

    constants = [options.constants] if options.constants is not None else []
    return Files(all_of(options.inputs, given.inputs), all_of(options.weights, given.weights), all_of(constants, given.constants))


def with_arguments(files: Files, module: Module, arguments: Sequence[Array], watch: Watcher) -> Files:
    """The arrays of a run, and those that the dump itself holds for inputs that are not given."""
    if not arguments or not module.entry:
        return files
    names = [param.name for param in module.main().params]
    named = names if len(names) == len(arguments) else [""] * len(arguments)
    own = {f"arg{i}": array for i, (array, name) in enumerate(zip(arguments, named, strict=True))
           if not any(key in given for given in (files.inputs, files.weights) for key in (f"arg{i}", name))}
    watch.note(f"{len(own)} of {len(arguments)} inputs are those of the snapshot")
    return Files(Joined([files.inputs, own]), files.weights, files.constants)


def by_graph_names(files: Files, module: Module) -> Files:
    """The arrays under the graph's own names, where they were given by their path in the user's call, such as ``d['b'][0]``."""
    names = {path: name for name, path in Interface.of(module).input_paths.items()}
    return Files(Renamed(files.inputs, names), Renamed(files.weights, names), files.constants) if names else files


class Arrays:
    """An array for every tensor parameter of a module. ``weights`` are the fixed ones, by parameter number; ``given_names`` are the names
    under which inputs were given, by their number."""

    def __init__(self, options: RunOptions, module: Module, files: Files, watch: Watcher) -> None:
        prepared = Prepared.of(module)
        ports = ports_of(module)[0]
        inputs, weights = files.inputs, files.weights
        if prepared.partitions > 1:
            inputs, weights = _for_all_devices(inputs, ports), _for_all_devices(weights, ports)
        fixed = by_name(weights, ports, " and ".join(options.weights) or "weights")
        given = by_name(inputs, ports, " and ".join(options.inputs) or "inputs")
        both = sorted(fixed.arrays.keys() & given.arrays.keys())
        if both:
            raise UserError(f"{ports[both[0]].name} is given as an input and as a weight", "give it once")
        _note_ignored((name for name in fixed.unknown if name not in prepared.consumed), watch)
        found = {**fixed.arrays, **given.arrays}
        missing_near(GivenArrays(found, given.unknown), ports, inputs)
        _note_ignored((name for name in given.unknown if name not in prepared.consumed), watch)
        absent = [n for n in range(len(ports)) if n not in found]
        self.given_names = given.names
        self.drawn_names = [ports[n].name for n in absent]
        self._by_port = {**found, **drawn(ports, absent, options.seed, prepared.weights)}
        # The number of the parameter of each tensor that the entry takes: a tuple has several tensors.
        self._params = [number for number, param in enumerate(module.main().params) for _ in leaf_paths(param.type)]
        self.weights = self._whole_params(module, fixed.arrays)

    def inputs(self) -> list[Array]:
        """The arrays that are not weights, in order."""
        return [self._by_port[n] for n in self.input_numbers()]

    def input_numbers(self) -> list[int]:
        """The numbers of the tensors that are not weights."""
        return [n for n, param in enumerate(self._params) if param not in self.weights]

    def all(self) -> list[Array]:
        """All arrays, in order."""
        return [self._by_port[n] for n in range(len(self._params))]

    def _whole_params(self, module: Module, arrays: dict[int, Array]) -> dict[int, Array]:
        """Weights by the number of their parameter; a parameter that is a tuple cannot be fixed in part."""
        found: dict[int, Array] = {}
        for port, array in arrays.items():
            param = module.main().params[self._params[port]]
            if isinstance(param.type, TupleType):
                raise UserError(f"%{param.name} is a tuple, which cannot be a weight", "give it with --inputs")
            found[self._params[port]] = array
        return found


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
    """Arrays by number of the output: ``out1@2`` is result 1 of device 2. All results of device 0 come first, then those of device 1."""
    each = count // devices
    numbers = {f"out{result}@{device}": f"out{device * each + result}" for device in range(devices) for result in range(each)}
    return arrays if devices == 1 else {numbers.get(name, name): array for name, array in arrays.items()}


def _note_unread(path: str, unread: Mapping[str, str], watch: Watcher) -> None:
    """Report which tensors of a file have unsupported types."""
    if unread:
        watch.note(f"{path}: these tensors are not read: {some([f'{name} ({kind})' for name, kind in unread.items()], MOST_NAMED)}")


def _note_ignored(names: Iterable[str], watch: Watcher) -> None:
    """Report in one note the given names that the graph does not have."""
    unknown = list(names)
    if unknown:
        watch.note(f"not inputs of the graph, and ignored: {some(unknown, MOST_NAMED)}")
