"""Reads tensors from PyTorch's files (``.pt``, ``.pth``): state dicts, whole modules and TorchScript archives.

Such a file is a zip archive of a pickle and the bytes of the storages. The pickle is run by irscope's own machine, which calls
nothing (:mod:`~irscope.source.unpickling`).
"""
from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from irscope.lazy import Array, np
from irscope.source.budget import require
from irscope.source.errors import UserError
from irscope.source.unpickling import DTYPES, Name, PickleMachine, Thing, numpy_type
from irscope.source.zips import damaged

STATE_DICT = "torch.save(model.state_dict(), 'weights.pt') writes what irscope reads"
DENSE = "save dense tensors of the usual types: {name: tensor.to_dense() for name, tensor in model.state_dict().items()}"
MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""How a file begins that torch before 1.6 wrote."""
WRAPPERS = ("state_dict", "model_state_dict", "model", "net", "weights", "module")
"""Under which names training scripts keep the state dict beside other things."""
MAX_NAME = 2_000
"""The characters of the path of a tensor: keys may be repeated on every level of a deep dict."""


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """The bytes of an archive member, in an element type (None: the tensor specifies it)."""

    member: str
    dtype: str | None
    elements: int


def is_checkpoint(path: str) -> bool:
    """Whether a file was written by any version of torch.save or torch.jit.save."""
    with open(path, "rb") as file:
        head = file.read(512)
    if head.startswith(MAGIC) or head[257:262] == b"ustar":
        return True
    if not head.startswith(b"PK"):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith("/data.pkl") or name == "data.pkl" for name in archive.namelist())
    except damaged():
        return False


class Checkpoint(dict[str, "Array"]):
    """The tensors of a file by their path in the state dict. ``unread``: the torch function by path, for unsupported tensors."""

    unread: dict[str, str]


def read_checkpoint(path: str) -> Checkpoint:
    """The tensors of a file by their path in the state dict. Raises UserError for a file in an old format, damaged, or without tensors."""
    with open(path, "rb") as file:
        head = file.read(512)
    if head.startswith(MAGIC) or head[257:262] == b"ustar":
        raise UserError(f"{path} is in the format of torch before 1.6, which irscope does not read",
                        "load and save it again with any newer torch: torch.save(torch.load('old.pt', weights_only=True), 'new.pt')")
    try:
        with zipfile.ZipFile(path) as archive:
            return _Archive(path, archive).tensors()
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, SyntaxError) as error:
        raise UserError(f"{path}: its pickle is not what torch writes: {error}", STATE_DICT) from None
    except damaged() as error:
        raise UserError(f"{path} is not a torch archive, or a damaged one: {error}", STATE_DICT) from None


class _Archive:
    """One file: runs its pickle, and reads its storages on demand."""

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

    def tensors(self) -> Checkpoint:
        """All tensors by path. Raises UserError where there is none and the file is not a state dict or module, which may have none."""
        with warnings.catch_warnings():
            # A damaged name may contain an invalid escape sequence, for which Python would print a warning.
            warnings.simplefilter("ignore", DeprecationWarning)
            value = PickleMachine(self._read(self.pickle), self._persistent, self._tensor).run()
        leaves = dict(_leaves(_state_dict(value)))
        if leaves and all(name.startswith("module.") for name in leaves):
            leaves = {name.removeprefix("module."): leaf for name, leaf in leaves.items()}  # the prefix that DataParallel adds
        found = Checkpoint((name, leaf) for name, leaf in leaves.items() if not isinstance(leaf, Thing))
        found.unread = {name: leaf.kind.text for name, leaf in leaves.items() if isinstance(leaf, Thing)}
        if not found and found.unread:
            shown = ", ".join(f"{name} ({kind})" for name, kind in [*found.unread.items()][:3])
            raise UserError(f"{self.path} contains only tensors that irscope does not read: {shown}", DENSE)
        if not found and value != {} and not _is_module(value):
            raise UserError(f"{self.path} contains no tensors", STATE_DICT)
        return found

    def _read(self, member: str) -> bytes:
        require(self.archive.getinfo(member).file_size, f"{self.path}: {member}")
        return self.archive.read(member)

    def _persistent(self, identity: object) -> StoredBytes:
        """('storage', class, key, device, number of elements)."""
        if not (isinstance(identity, tuple) and len(identity) >= 5 and identity[0] == "storage" and isinstance(identity[1], Name)
                and isinstance(identity[2], str)):
            raise ValueError("a reference to something other than a storage")
        word = identity[1].text.rpartition(".")[2].removesuffix("Storage")
        dtype = None if word == "Untyped" else DTYPES.get(word)
        if dtype is None and word != "Untyped":
            raise UserError(f"{self.path}: storages of type {word} are not supported", "convert the tensors to float32 first")
        return StoredBytes(f"{self.root}data/{identity[2]}", dtype, int(identity[4]))

    def _tensor(self, storage: StoredBytes, offset: int, size: tuple[int, ...], stride: tuple[int, ...], dtype: str | None) -> Array:
        word = dtype or storage.dtype
        if word is None:
            raise ValueError("a tensor without an element type")
        kind = numpy_type(word)
        if storage.member not in self._cache:
            self._cache[storage.member] = np.frombuffer(self._read(storage.member), np.uint8)
        data = self._cache[storage.member]
        flat = data[:len(data) // kind.itemsize * kind.itemsize].view(kind.newbyteorder(">") if self.big and kind.itemsize > 1 else kind)
        if not all(isinstance(n, int) and n >= 0 for n in (*size, *stride, offset)) or len(size) != len(stride):
            raise ValueError("a tensor whose sizes, strides and offset are not counts")
        if prod(size) and offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) >= len(flat):
            raise ValueError(f"a tensor of sizes {size} reaches beyond its {len(flat)} elements")
        if not prod(size):
            return np.zeros(size, kind)
        require(prod(size) * kind.itemsize, f"{self.path}: a tensor of sizes {size}")  # with strides of zero, more than its storage
        strides = tuple(s * kind.itemsize for s in stride)
        if prod(size) > len(flat):  # a view, or a small file would become any number of large arrays
            return np.lib.stride_tricks.as_strided(flat[offset:].astype(kind, copy=False), size, strides, writeable=False)
        return np.lib.stride_tricks.as_strided(flat[offset:], size, strides, writeable=False).astype(kind)


def _state_dict(value: object) -> Any:
    """The state dict: the value itself, or the entry under which training scripts save it."""
    seen: set[int] = set()
    while isinstance(value, dict) and id(value) not in seen and not any(_is_array(v) or _is_unread(v) for v in value.values()):
        seen.add(id(value))
        inner = next((value[name] for name in WRAPPERS if isinstance(value.get(name), dict | Thing)), None)
        if inner is None:
            break
        value = inner
    return value


def _is_module(value: object) -> bool:
    """Whether an object is a whole saved module, or a scripted one."""
    if not isinstance(value, Thing):
        return False
    return value.kind.text.startswith("__torch__.") or (isinstance(value.state, dict) and "_modules" in value.state)


def _is_unread(value: object) -> bool:
    """Whether an object stands for a tensor that only torch can build: sparse, nested, without data, or a subclass with its own parts."""
    functions = ("torch._utils._rebuild_", "torch._tensor._rebuild_", "torch.nn.parameter.")
    return isinstance(value, Thing) and value.kind.text.startswith(functions)


def _is_array(value: object) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape")


def _leaves(value: object) -> Iterator[tuple[str, Any]]:
    """Tensors and placeholders of those that are not read, with their path: keys of dicts, attributes of modules, indices of lists."""
    stack: list[tuple[str, object]] = [("", value)]
    seen: set[int] = set()
    while stack:
        path, part = stack.pop()
        if _is_array(part) or _is_unread(part):
            yield path, part
            continue
        if not isinstance(part, dict | list | tuple | Thing) or id(part) in seen:
            continue
        seen.add(id(part))
        entries = [(f"{path}.{key}" if path else str(key), item) for key, item in _entries_of(part)]
        if any(len(name) > MAX_NAME for name, _ in entries):
            raise ValueError(f"a tensor is nested so deeply that its name has more than {MAX_NAME:,} characters")
        stack.extend(reversed(entries))


def _entries_of(part: Any) -> Iterator[tuple[object, object]]:
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

