"""A machine that runs the pickles of torch's files: it builds tensors and containers, and calls nothing.

A pickle is a program that may call anything. Here every function and class is only a name: those that build tensors are known, and every
other object is kept as a name with its parts.
"""
from __future__ import annotations

import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partialmethod
from typing import Any

from irscope.lazy import Array, ml_dtypes, np

DTYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64", "Int": "int32", "Short": "int16",
    "Char": "int8", "Byte": "uint8", "Bool": "bool", "ComplexFloat": "complex64", "ComplexDouble": "complex128", "QInt8": "int8",
    "QUInt8": "uint8", "QInt32": "int32", "Float8_e4m3fn": "float8_e4m3fn", "Float8_e5m2": "float8_e5m2", "UInt16": "uint16",
    "UInt32": "uint32", "UInt64": "uint64",
}
"""torch's names of storages, and the element types that numpy or ml_dtypes has for them."""
TORCH_DTYPES = {f"torch.{name}": name for name in sorted(set(DTYPES.values()))}


@dataclass(frozen=True, slots=True)
class Name:
    """A class or function that a pickle refers to: only its name."""

    text: str


@dataclass(slots=True, eq=False)
class Thing:
    """An object of an unknown class: its class, constructor arguments and attributes."""

    kind: Name
    arguments: tuple[object, ...]
    state: Any = None


class PickleMachine:
    """Runs a pickle over names: tensors and containers become values, everything else a Thing."""

    def __init__(self, data: bytes, persistent: Callable[[Any], object], tensor: Callable[..., Array]) -> None:
        self.data = data
        self.persistent = persistent
        self.tensor = tensor
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, object] = {}

    def run(self) -> object:
        """The value at the end. Raises ValueError for an instruction that no torch file contains."""
        for opcode, argument, _ in pickletools.genops(self.data):
            name = opcode.name
            if name == "STOP":
                return self.stack.pop()
            if name in LITERALS:
                self.stack.append(argument)
            elif name in CONSTANTS:
                self.stack.append(CONSTANTS[name]())
            else:
                step = getattr(self, f"_{name.lower()}", None)
                if step is None:
                    raise ValueError(f"the instruction {name} of pickle")
                step(argument)
        raise ValueError("it ends too early")

    def _above_mark(self) -> list[Any]:
        at = self.marks.pop()
        items = self.stack[at:]
        del self.stack[at:]
        return items

    def _mark(self, _: object) -> None:
        self.marks.append(len(self.stack))

    def _proto(self, _: object) -> None:
        """Ignore the version: the instructions are sufficient."""

    _frame = _proto

    def _pop(self, _: object) -> None:
        self.stack.pop()

    def _dup(self, _: object) -> None:
        self.stack.append(self.stack[-1])

    def _tuple(self, _: object) -> None:
        self.stack.append(tuple(self._above_mark()))

    def _list(self, _: object) -> None:
        self.stack.append(self._above_mark())

    def _dict(self, _: object) -> None:
        items = self._above_mark()
        self.stack.append({_key(k): v for k, v in zip(items[::2], items[1::2], strict=True)})

    def _last(self, n: int, _: object) -> None:
        self.stack[-n:] = [tuple(self.stack[-n:])]

    _tuple1, _tuple2, _tuple3 = partialmethod(_last, 1), partialmethod(_last, 2), partialmethod(_last, 3)

    def _put(self, key: int) -> None:
        self.memo[key] = self.stack[-1]

    _binput = _long_binput = _put

    def _memoize(self, _: object) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def _get(self, key: int) -> None:
        self.stack.append(self.memo[key])

    _binget = _long_binget = _get

    def _global(self, text: str) -> None:
        self.stack.append(Name(text.replace(" ", ".", 1)))

    def _stack_global(self, _: object) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise ValueError("a name that is not a text")
        self.stack.append(Name(f"{module}.{name}"))

    def _binpersid(self, _: object) -> None:
        self.stack.append(self.persistent(self.stack.pop()))

    def _append(self, _: object) -> None:
        item = self.stack.pop()
        self.stack[-1].append(item)

    def _appends(self, _: object) -> None:
        items = self._above_mark()
        self.stack[-1].extend(items)

    _additems = _appends

    def _setitem(self, _: object) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._entries(self.stack[-1])[_key(key)] = value

    def _setitems(self, _: object) -> None:
        items = self._above_mark()
        self._entries(self.stack[-1]).update((_key(k), v) for k, v in zip(items[::2], items[1::2], strict=True))

    @staticmethod
    def _entries(target: object) -> dict[object, object]:
        """The dict that items are set in; an object of an unknown class keeps them as its attributes."""
        if isinstance(target, Thing):
            target.state = target.state if isinstance(target.state, dict) else {}
            target = target.state
        if not isinstance(target, dict):
            raise ValueError(f"items of {type(target).__name__}")
        return target

    def _newobj(self, _: object) -> None:
        arguments, kind = self.stack.pop(), self.stack.pop()
        self.stack.append(Thing(kind, tuple(arguments)))

    def _build(self, _: object) -> None:
        state = self.stack.pop()
        if isinstance(self.stack[-1], Thing):
            self.stack[-1].state = state

    def _reduce(self, _: object) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        if not isinstance(function, Name) or not isinstance(arguments, tuple):
            raise ValueError("a call of something other than a name")
        self.stack.append(self._called(function, arguments))

    def _called(self, function: Name, arguments: tuple[Any, ...]) -> object:
        """The result of a known call; any other is only recorded."""
        match function.text:
            case "collections.OrderedDict":
                return {_key(k): v for k, v in arguments[0]} if arguments else {}
            case "torch._utils._rebuild_tensor_v2" | "torch._utils._rebuild_tensor":
                return _resolved(self.tensor(*arguments[:4], None), arguments[6:7])
            case "torch._utils._rebuild_tensor_v3":
                return _resolved(self.tensor(*arguments[:4], TORCH_DTYPES[arguments[6].text]), arguments[7:8])
            case "torch._utils._rebuild_parameter" | "torch._utils._rebuild_parameter_with_state":
                return arguments[0]
            case "torch._tensor._rebuild_from_type_v2" | "torch._tensor._rebuild_from_type":
                # A tensor of another class, or with Python attributes, which are ignored: (function, class, its arguments, attributes).
                return self._called(arguments[0], arguments[2])
            case "torch._utils._rebuild_device_tensor_from_cpu_tensor":
                return arguments[0].astype(numpy_type(TORCH_DTYPES[arguments[1].text]))
            case "torch._utils._rebuild_device_tensor_from_numpy" | "torch._utils._rebuild_xla_tensor":
                return _numpy_array(arguments[0]).astype(numpy_type(TORCH_DTYPES[arguments[1].text]))
            case "_codecs.encode":  # how protocol 2 pickles bytes
                return arguments[0].encode(arguments[1])
            case "torch._utils._rebuild_qtensor":
                return _dequantized(self.tensor(*arguments[:4], None), arguments[4])
            case "torch.Size":
                return tuple(arguments[0])
        return Thing(function, arguments)


def _resolved(stored: Array, metadata: tuple[object, ...]) -> object:
    """The numbers of a tensor that was saved as the conjugate or the negative of its storage."""
    noted = metadata[0] if metadata and isinstance(metadata[0], dict) else {}
    stored = stored.conj() if noted.get("conj") else stored
    return -stored if noted.get("neg") else stored


def numpy_type(word: str) -> np.dtype[np.generic]:
    return np.dtype(word) if word in np.sctypeDict else np.dtype(getattr(ml_dtypes, word))


def _numpy_array(thing: object) -> Array:
    """A numpy array from the parts that numpy pickles: (version, sizes, element type, column order, bytes)."""
    if not isinstance(thing, Thing) or not thing.kind.text.endswith(".multiarray._reconstruct"):
        raise ValueError("an array that numpy did not write")
    _, sizes, kind, by_columns, data = thing.state
    word, order = kind.arguments[0], kind.state[1]
    if not isinstance(word, str) or "," in word:  # numpy parses lists of types, and nested ones
        raise ValueError("an array of records")
    dtype = np.dtype(word).newbyteorder(order if order in (">", "<") else "=")
    if dtype.kind not in "biufc":
        raise ValueError(f"an array of {dtype}")
    return np.frombuffer(data, dtype).reshape(sizes, order="F" if by_columns else "C")


def _dequantized(stored: Array, parameters: Any) -> object:
    """The numbers that a quantised tensor stands for: (scheme, scale, zero point), or one of each per slice along an axis."""
    if len(parameters) == 3:
        _, scale, zero = parameters
        if not isinstance(scale, int | float) or not isinstance(zero, int | float):
            raise ValueError("a scale that is not a number")
        return (stored.astype(np.float32) - np.float32(zero)) * np.float32(scale)
    _, scales, zeros, axis = parameters
    if not isinstance(scales, np.ndarray) or not isinstance(zeros, np.ndarray):
        raise ValueError("scales that are not a tensor")
    shape = [-1 if i == axis else 1 for i in range(stored.ndim)]
    scales, zeros = (np.asarray(v, np.float64).reshape(shape) for v in (scales, zeros))
    return ((stored.astype(np.float64) - zeros) * scales).astype(np.float32)


LITERALS = frozenset((
    "BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "LONG4", "BINFLOAT", "FLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
    "UNICODE", "BINSTRING", "SHORT_BINSTRING", "STRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
))
CONSTANTS: dict[str, Callable[[], object]] = {
    "NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False, "EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple,
    "EMPTY_SET": list,
}


def _key(value: object) -> object:
    """A dict key: a text, a number, or a tuple of those. Lists are not hashable, and Python hashes the parts of nested tuples each time."""
    if not all(isinstance(part, str | int | float | bool | None) for part in (value if isinstance(value, tuple) else (value,))):
        raise ValueError(f"a {type(value).__name__} as a key")
    return value
