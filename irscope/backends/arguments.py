"""Arrays for a graph's inputs: matched by name, checked against the inputs, drawn at random where none is given."""
from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from irscope.backends.executable import Port
from irscope.lazy import Array, np
from irscope.source import UserError, did_you_mean
from irscope.source.budget import require


@dataclass(slots=True)
class GivenArrays:
    """Arrays and their names, by port number. ``unknown``: names that match no port."""

    arrays: dict[int, Array] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)


def by_name(arrays: Mapping[str, Array], ports: Sequence[Port], source: str) -> GivenArrays:
    """Match arrays to ports by name, or by ``arg0``, ``arg1``... in order.

    Raises UserError for an array that does not fit its port, and for two arrays of one port.
    """
    numbers = {f"arg{i}": i for i in range(len(ports))} | {port.name: i for i, port in enumerate(ports)}
    found = GivenArrays()
    for name in arrays:
        number = numbers.get(name)
        if number is None:
            found.unknown.append(name)  # its array is not read: it may be large
        elif number in found.arrays:
            raise UserError(f"{source}: {ports[number].name} is given by its name and as arg{number}", "give it once")
        else:
            found.names[number] = name
            found.arrays[number] = fitted(arrays[name], ports[number], f"{source}: {name}")
    return found


def fitted(array: Array, port: Port, what: str) -> Array:
    """The array in native byte order and with the port's element type. Raises UserError where the element type or the shape differs."""
    wanted = port.dtype.numpy()
    array = np.asarray(array)
    if not port.takes(array.shape):
        raise UserError(f"{what} has the shape {_dims(array.shape)}, but the graph takes {port.name}: {port.dtype}{_dims(port.shape)}",
                        _shape_help(array, port))
    if array.dtype == wanted:
        return array
    if array.dtype.newbyteorder("=") == wanted:
        return array.astype(wanted)
    if wanted.isbuiltin != 1 and array.dtype.kind in "uV" and array.dtype.itemsize == wanted.itemsize:
        return np.ascontiguousarray(array).view(wanted).reshape(array.shape)  # the bits of a type that .npz cannot hold
    raise UserError(f"{what} is {array.dtype}, but the graph takes {port.name}: {port.dtype}{_dims(port.shape)}",
                    f"convert it: array.astype({_numpy_word(wanted)})")


def missing_near(given: GivenArrays, ports: Sequence[Port], arrays: Iterable[str]) -> None:
    """Raise UserError when an array that matches no port has nearly the name of a port without an array."""
    absent = [port.name for number, port in enumerate(ports) if number not in given.arrays]
    for name in given.unknown:
        if name.startswith("out") and name[3:].isdigit():
            continue
        near = did_you_mean(name, [*absent, *(f"arg{i}" for i in range(len(ports)) if i not in given.arrays)])
        if near and not name.startswith("arg"):
            raise UserError(f"there is no input {name!r}", near)
        if name.startswith("arg") and name[3:].isdigit():
            known = f"they are arg0 to arg{len(ports) - 1}" if ports else ""
            raise UserError(f"there is no input {name!r}: the graph takes {len(ports)}", known)


def drawn(ports: Sequence[Port], numbers: Iterable[int], seed: int, weights: Collection[str] = ()) -> dict[int, Array]:
    """Draw arrays for ports that were given none: normal numbers, small integers, random booleans; deterministic for a seed.

    Parameters of a model, named in ``weights``, are scaled so that magnitudes stay stable through many layers.
    """
    return {n: draw_weight(ports[n], seed, n) if ports[n].name in weights else draw(ports[n], seed, n) for n in numbers}


BLOCK = 1 << 20
"""Elements of a parameter that are scaled at a time, in f64."""


def draw_weight(port: Port, seed: int, number: int) -> Array:
    """Draw a parameter: a matrix scaled by the inverse root of its fan-in, a vector around 1/2 (a variance is positive)."""
    array = draw(port, seed, number)
    if not port.dtype.is_float:
        return array
    flat, fan_in = array.reshape(-1), np.sqrt(prod(port.shape[1:]))
    for at in range(0, flat.size, BLOCK):
        wide = flat[at:at + BLOCK].astype(np.float64)
        flat[at:at + BLOCK] = wide / fan_in if array.ndim >= 2 else 0.5 + 0.1 * np.abs(wide)
    return array


def draw(port: Port, seed: int, number: int) -> Array:
    """Draw one array for a port."""
    require(8 * prod(port.shape), str(port))  # numbers are drawn as f64
    rng = np.random.default_rng([seed, number])
    dtype = port.dtype
    if dtype.kind == "pred":
        return rng.integers(0, 2, port.shape).astype(bool)
    if dtype.is_integer:
        # Small and not negative: such numbers are often indices.
        high = 10 if dtype.bits >= 8 else 1 << (dtype.bits - 1)
        return rng.integers(0, high, port.shape).astype(dtype.numpy())
    if dtype.is_complex:
        return (rng.standard_normal(port.shape) + 1j * rng.standard_normal(port.shape)).astype(dtype.numpy())
    values = rng.standard_normal(port.shape, dtype=np.float64 if dtype.bits == 64 else np.float32)
    return np.asarray(values).astype(dtype.numpy(), copy=False)


def _dims(shape: Sequence[int]) -> str:
    return "[" + ",".join(map(str, shape)) + "]"


def _numpy_word(dtype: Any) -> str:
    return f"np.{dtype.name}" if dtype.isbuiltin == 1 else f"ml_dtypes.{dtype.name}"


def _shape_help(array: Array, port: Port) -> str:
    if array.size == prod(port.shape):
        return f"array.reshape({tuple(port.shape)}) has the same elements"
    if array.ndim == len(port.shape):
        return f"--shape {port.name}={','.join(map(str, array.shape))} binds the shape, where the text leaves it open"
    return ""
