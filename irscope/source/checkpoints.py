"""Tensors out of PyTorch's files (``.pt``, ``.pth``): state dicts, whole modules and TorchScript archives.

Such a file is a zip archive that holds a pickle and the bytes of the storages. A pickle is a program that may call anything; here it is
read by a machine of our own that knows tensors and containers, and calls nothing: every other object is kept as a name with its parts.
"""
from __future__ import annotations

import pickletools
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from irscope.source.errors import UserError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

STATE_DICT = "torch.save(model.state_dict(), 'weights.pt') writes what irscope reads"
MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""How a file begins that torch before 1.6 wrote."""
WRAPPERS = ("state_dict", "model_state_dict", "model", "net", "weights", "module")
"""Under which names training scripts keep the state dict beside other things."""
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
    """An object of a class that is not known: its class, what it was made with, and its attributes."""

    kind: Name
    arguments: tuple[Any, ...]
    state: Any = None


@dataclass(frozen=True, slots=True)
class Storage:
    """The bytes of an archive member, in an element type (None: the tensor says it)."""

    member: str
    dtype: str | None
    elements: int


def is_checkpoint(path: str) -> bool:
    """Whether a file was written by torch.save or torch.jit.save, now or long ago."""
    with open(path, "rb") as file:
        head = file.read(512)
    if head.startswith(MAGIC) or head[257:262] == b"ustar":
        return True
    if not head.startswith(b"PK"):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith("/data.pkl") or name == "data.pkl" for name in archive.namelist())
    except (zipfile.BadZipFile, OSError):
        return False


def read_checkpoint(path: str) -> dict[str, Array]:
    """The tensors of a file by their path in the state dict. Raises UserError for a file that is old, damaged, or without tensors."""
    with open(path, "rb") as file:
        head = file.read(512)
    if head.startswith(MAGIC) or head[257:262] == b"ustar":
        raise UserError(f"{path} is in the format of torch before 1.6, which irscope does not read",
                        "load and save it again with any newer torch: torch.save(torch.load('old.pt', weights_only=True), 'new.pt')")
    try:
        with zipfile.ZipFile(path) as archive:
            found = _Archive(path, archive).tensors()
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise UserError(f"{path} is no archive of torch, or a damaged one: {error}", STATE_DICT) from None
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise UserError(f"{path}: its pickle is not what torch writes: {error}", STATE_DICT) from None
    if not found:
        raise UserError(f"{path} holds no tensors", STATE_DICT)
    return found


class _Archive:
    """One file: its pickle run by our machine, its storages read when a tensor asks."""

    def __init__(self, path: str, archive: zipfile.ZipFile) -> None:
        self.path = path
        self.archive = archive
        members = archive.namelist()
        pickle = next(name for name in sorted(members, key=len) if name.endswith("data.pkl"))
        self.root = pickle[:-len("data.pkl")]
        order = self.root + "byteorder"
        self.big = order in members and archive.read(order).strip() == b"big"
        self.pickle = pickle
        self._cache: dict[str, Any] = {}

    def tensors(self) -> dict[str, Array]:
        """All tensors by path."""
        with warnings.catch_warnings():
            # A damaged name may hold what Python takes for an escape sequence, and would tell its own author about.
            warnings.simplefilter("ignore", DeprecationWarning)
            value = Machine(self.archive.read(self.pickle), self._persistent, self._tensor).run()
        found = dict(_leaves(_state_dict(value)))
        if found and all(name.startswith("module.") for name in found):
            found = {name.removeprefix("module."): array for name, array in found.items()}  # what DataParallel puts in front
        return found

    def _persistent(self, identity: Any) -> Storage:
        """('storage', class, key, device, number of elements)."""
        if not (isinstance(identity, tuple) and len(identity) >= 5 and identity[0] == "storage" and isinstance(identity[1], Name)):
            raise ValueError(f"an unknown reference {identity!r}")
        word = identity[1].text.rpartition(".")[2].removesuffix("Storage")
        dtype = None if word == "Untyped" else DTYPES.get(word)
        if dtype is None and word != "Untyped":
            raise UserError(f"{self.path}: storages of type {word} are not supported", "convert the tensors to float32 first")
        return Storage(f"{self.root}data/{identity[2]}", dtype, int(identity[4]))

    def _tensor(self, storage: Storage, offset: int, size: tuple[int, ...], stride: tuple[int, ...], dtype: str | None) -> Array:
        import ml_dtypes
        import numpy as np
        word = dtype or storage.dtype
        if word is None:
            raise ValueError("a tensor without an element type")
        kind = np.dtype(word) if word in np.sctypeDict else np.dtype(getattr(ml_dtypes, word))
        if storage.member not in self._cache:
            self._cache[storage.member] = np.frombuffer(self.archive.read(storage.member), np.uint8)
        data = self._cache[storage.member]
        flat = data[:len(data) // kind.itemsize * kind.itemsize].view(kind.newbyteorder(">") if self.big and kind.itemsize > 1 else kind)
        if not all(isinstance(n, int) and n >= 0 for n in (*size, *stride, offset)) or len(size) != len(stride):
            raise ValueError(f"a tensor of sizes {size} and strides {stride}")
        if prod(size) and offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) >= len(flat):
            raise ValueError(f"a tensor of sizes {size} reaches beyond its {len(flat)} elements")
        if not prod(size):
            return np.zeros(size, kind)
        view = np.lib.stride_tricks.as_strided(flat[offset:], size, tuple(s * kind.itemsize for s in stride), writeable=False)
        return view.astype(kind)


class Machine:
    """Runs a pickle over names: tensors and containers become values, everything else a Thing."""

    def __init__(self, data: bytes, persistent: Any, tensor: Any) -> None:
        self.data = data
        self.persistent = persistent
        self.tensor = tensor
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        """The value at the end. Raises ValueError for an instruction that no file of torch has."""
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

    def _mark(self, _: Any) -> None:
        self.marks.append(len(self.stack))

    def _proto(self, _: Any) -> None:
        """The version of the format says nothing that the instructions do not."""

    _frame = _proto

    def _pop(self, _: Any) -> None:
        self.stack.pop()

    def _dup(self, _: Any) -> None:
        self.stack.append(self.stack[-1])

    def _tuple(self, _: Any) -> None:
        self.stack.append(tuple(self._above_mark()))

    def _list(self, _: Any) -> None:
        self.stack.append(self._above_mark())

    def _dict(self, _: Any) -> None:
        items = self._above_mark()
        self.stack.append(dict(zip(items[::2], items[1::2], strict=True)))

    def _last(self, n: int) -> None:
        items = tuple(self.stack[-n:])
        del self.stack[-n:]
        self.stack.append(items)

    def _tuple1(self, _: Any) -> None:
        self._last(1)

    def _tuple2(self, _: Any) -> None:
        self._last(2)

    def _tuple3(self, _: Any) -> None:
        self._last(3)

    def _put(self, key: int) -> None:
        self.memo[key] = self.stack[-1]

    _binput = _long_binput = _put

    def _memoize(self, _: Any) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def _get(self, key: int) -> None:
        self.stack.append(self.memo[key])

    _binget = _long_binget = _get

    def _global(self, text: str) -> None:
        self.stack.append(Name(text.replace(" ", ".", 1)))

    def _stack_global(self, _: Any) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        self.stack.append(Name(f"{module}.{name}"))

    def _binpersid(self, _: Any) -> None:
        self.stack.append(self.persistent(self.stack.pop()))

    def _append(self, _: Any) -> None:
        item = self.stack.pop()
        self.stack[-1].append(item)

    def _appends(self, _: Any) -> None:
        items = self._above_mark()
        self.stack[-1].extend(items)

    def _setitem(self, _: Any) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._entries(self.stack[-1])[_key(key)] = value

    def _setitems(self, _: Any) -> None:
        items = self._above_mark()
        self._entries(self.stack[-1]).update((_key(k), v) for k, v in zip(items[::2], items[1::2], strict=True))

    @staticmethod
    def _entries(target: Any) -> dict[Any, Any]:
        """The dict that items are set in; an object of an unknown class keeps them as its attributes."""
        if isinstance(target, Thing):
            target.state = target.state if isinstance(target.state, dict) else {}
            target = target.state
        if not isinstance(target, dict):
            raise ValueError(f"items of {type(target).__name__}")
        return target

    def _additems(self, _: Any) -> None:
        items = self._above_mark()
        self.stack[-1].extend(items)

    def _newobj(self, _: Any) -> None:
        arguments, kind = self.stack.pop(), self.stack.pop()
        self.stack.append(Thing(kind, tuple(arguments)))

    def _build(self, _: Any) -> None:
        state = self.stack.pop()
        if isinstance(self.stack[-1], Thing):
            self.stack[-1].state = state

    def _reduce(self, _: Any) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        if not isinstance(function, Name) or not isinstance(arguments, tuple):
            raise ValueError("a call of something that is no name")
        self.stack.append(self._called(function, arguments))

    def _called(self, function: Name, arguments: tuple[Any, ...]) -> Any:
        """What the few calls that are known give; any other is only remembered."""
        match function.text:
            case "collections.OrderedDict":
                return {_key(k): v for k, v in arguments[0]} if arguments else {}
            case "torch._utils._rebuild_tensor_v2" | "torch._utils._rebuild_tensor":
                return self.tensor(*arguments[:4], None)
            case "torch._utils._rebuild_tensor_v3":
                return self.tensor(*arguments[:4], TORCH_DTYPES[arguments[6].text])
            case "torch._utils._rebuild_parameter" | "torch._utils._rebuild_parameter_with_state":
                return arguments[0]
            case "torch._utils._rebuild_qtensor":
                return _dequantized(self.tensor(*arguments[:4], None), arguments[4])
            case "torch.Size":
                return tuple(arguments[0])
        return Thing(function, arguments)


def _dequantized(stored: Any, parameters: Any) -> Any:
    """The numbers that a quantised tensor stands for: (scheme, scale, zero point), or one of each a slice along an axis."""
    import numpy as np
    if len(parameters) == 3:
        _, scale, zero = parameters
        return (stored.astype(np.float32) - np.float32(zero)) * np.float32(scale)
    _, scales, zeros, axis = parameters
    shape = [-1 if i == axis else 1 for i in range(stored.ndim)]
    scales, zeros = (np.asarray(v, np.float64).reshape(shape) for v in (scales, zeros))
    return ((stored.astype(np.float64) - zeros) * scales).astype(np.float32)


LITERALS = frozenset((
    "BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "LONG4", "BINFLOAT", "FLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
    "UNICODE", "BINSTRING", "SHORT_BINSTRING", "STRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
))
CONSTANTS: dict[str, Any] = {
    "NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False, "EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple,
    "EMPTY_SET": list,
}


def _key(value: Any) -> Any:
    """A key of a dict: lists and the like cannot be one."""
    if not isinstance(value, str | int | float | bool | tuple | None):
        raise ValueError(f"a {type(value).__name__} as a key")
    return value


def _state_dict(value: Any) -> Any:
    """What holds the weights: the value itself, or the entry under which training scripts keep it."""
    while isinstance(value, dict) and not any(_is_array(v) for v in value.values()):
        inner = next((value[name] for name in WRAPPERS if isinstance(value.get(name), dict | Thing)), None)
        if inner is None:
            break
        value = inner
    return value


def _is_array(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape")


def _leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """Tensors with their path: keys of dicts, attributes of modules, places in lists."""
    stack: list[tuple[str, Any]] = [("", value)]
    seen: set[int] = set()
    while stack:
        path, part = stack.pop()
        if _is_array(part):
            yield path, part
            continue
        if not isinstance(part, dict | list | tuple | Thing) or id(part) in seen:
            continue
        seen.add(id(part))
        entries = list(_entries_of(part))
        stack.extend((f"{path}.{key}" if path else str(key), item) for key, item in reversed(entries))


def _entries_of(part: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(part, Thing):
        if not isinstance(part.state, Mapping):
            return
        state = part.state
        if "_modules" in state and "_parameters" in state:  # a module that was saved whole
            for name in ("_parameters", "_buffers", "_modules"):
                entries = state.get(name)
                yield from entries.items() if isinstance(entries, dict) else ()
            return
        yield from state.items()
    elif isinstance(part, dict):
        yield from part.items()
    else:
        yield from enumerate(part)

