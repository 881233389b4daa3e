"""Calls of programs whose arrays vary in size: pads arguments to the bound, and cuts results to their real sizes."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irscope.analysis.reference import results
from irscope.backends.executable import BoundCall, Executable, InputMismatch, Port
from irscope.expand import expand
from irscope.expand.dynamic import KEY, Varying, is_dynamic, pad_dynamic
from irscope.graph import Module
from irscope.graph.attributes import Attributes, attribute
from irscope.lazy import Array, np
from irscope.lower.values import leaf_paths


class Padded(Attributes):
    """The sizes of a padded module; None for a module of fixed sizes."""

    __slots__ = ()
    varying = attribute[Varying | None](None, KEY)


def padded(arrays: Sequence[Array], ports: Sequence[Port], varying: Varying) -> list[Array]:
    """The arguments of a padded program for these arrays: each as large as its port, then the sizes. Raises InputMismatch."""
    if len(arrays) != len(ports):
        raise InputMismatch(f"the program takes {len(ports)} arrays ({', '.join(map(str, ports))}), not {len(arrays)}")
    given = [np.asarray(array) for array in arrays]
    made = []
    for number, (array, port) in enumerate(zip(given, ports, strict=True)):
        if not port.takes(array.shape):
            raise InputMismatch(f"input {number} is {port}, not {array.dtype}[{','.join(map(str, array.shape))}]")
        if array.shape != port.shape:
            whole = np.zeros(port.shape, array.dtype)
            whole[tuple(slice(0, n) for n in array.shape)] = array
            array = whole
        made.append(array)
    return [*made, *(np.asarray(given[number].shape[d], np.int32) for number, d in varying.inputs)]


def trimmed(arrays: Sequence[Array], varying: Varying) -> list[Array]:
    """The results of a padded program, cut to their sizes, which follow them."""
    n = len(arrays) - len(varying.outputs)
    counts: list[dict[int, int]] = [{} for _ in range(n)]
    for (number, d), size in zip(varying.outputs, arrays[n:], strict=True):
        counts[number][d] = int(size)
    return [array[tuple(slice(0, max(0, sizes[d])) if d in sizes else slice(None) for d in range(array.ndim))] if sizes else array
            for array, sizes in zip(arrays[:n], counts, strict=True)]


def reference_results(module: Module, arrays: Sequence[Array], flush_denormals: bool | None = None) -> list[Array]:
    """The results of the reference interpreter for a module, whose sizes may vary. ``flush_denormals``: None as the module has it."""
    if not is_dynamic(module):
        return results(module, arrays, flush_denormals)
    expanded = expand(module)
    if not is_dynamic(expanded):
        return results(expanded, arrays, flush_denormals)
    made = pad_dynamic(expanded)
    varying = Padded.of(made).varying
    assert varying is not None
    types = [type for param in made.main().params for _, type in leaf_paths(param.type)]
    ports = _told([Port(f"input {i}", t.dtype, t.dims()) for i, t in enumerate(types)], varying.inputs)
    return trimmed(results(made, padded(arrays, ports, varying), flush_denormals), varying)


def _told(ports: Sequence[Port], sizes: Sequence[tuple[int, int]]) -> list[Port]:
    """The ports without those of sizes, which are at the end."""
    n = len(ports) - len(sizes)
    return [replace(port, varying=tuple(d for which, d in sizes if which == number)) for number, port in enumerate(ports[:n])]


class VaryingBound:
    """A call whose arrays are checked and padded; ``outputs`` are the results of the last run, cut to their sizes."""

    def __init__(self, bound: BoundCall, varying: Varying) -> None:
        self._bound, self._varying = bound, varying

    def __call__(self) -> None:
        self._bound()

    @property
    def outputs(self) -> list[Array]:
        return trimmed(self._bound.outputs, self._varying)


class VaryingExecutable:
    """An executable of a padded program, called with the inputs and outputs of the text."""

    def __init__(self, executable: Executable, varying: Varying) -> None:
        self.executable, self.varying = executable, varying
        self.inputs = _told(executable.inputs, varying.inputs)
        self.outputs = _told(executable.outputs, varying.outputs)

    def __call__(self, *arrays: Array) -> list[Array]:
        return trimmed(self.executable(*padded(arrays, self.inputs, self.varying)), self.varying)

    def bind(self, arrays: Sequence[Array]) -> VaryingBound:
        return VaryingBound(self.executable.bind(padded(arrays, self.inputs, self.varying)), self.varying)


def executable_of(executable: Executable, places: tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]) -> VaryingExecutable:
    """The executable of a stored program; ``places`` are those of the sizes among inputs and outputs."""
    return VaryingExecutable(executable, Varying(*places))
