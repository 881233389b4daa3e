"""``output_code.py``: from text to records of what ``call`` does.

    buf0 = empty_strided_cpu((32, 1), (1, 32), torch.float32)
    buf1 = buf0; del buf0  # reuse
    # [Provenance debug handles] cpp_fused_add_0:1
    cpp_fused_add_0(buf1, arg0_1)
    extern_kernels.mm(buf1, reinterpret_tensor(arg1_1, (4, 5), (1, 4), 0), out=buf2)
    buf4 = torch.ops.aten.sort.stable(arg0_1, stable=False)
    buf5 = buf4[0]
    return (buf5, )
"""
from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from irscope.formats.inductor.kernels import KernelSource, kernel_source
from irscope.formats.inductor.layouts import BufferLayout, dims_of, dtype_named
from irscope.formats.inductor.python_text import DEEP, PythonFault, constant_text, dotted, parse_module, text_of
from irscope.formats.syntax import SyntaxFault
from irscope.source import SourceText
from irscope.source.budget import tick

EXTERN = ("extern_kernels.", "torch.ops.", "aten.", "inductor_ops.", "_quantized.", "quantized.", "prims.")
"""The prefixes of the names of kernels that Inductor did not generate."""
NO_KERNEL = ("torch.ops.inductor._alloc_from_pool", "torch.ops.inductor._reinterpret_tensor")
IN_PLACE = frozenset(("copy_", "zero_", "fill_"))
"""Methods that output code calls on buffers."""
ENTRY = "call"
SIGNATURES = (["args"], ["self", "args"])
"""The parameters of ``call``, and of what it calls: partitions, and the graphs of control flow."""
_HANDLE = re.compile(r"\[Provenance debug handles\] (.*)")
_SOURCES = re.compile(r"Topologically Sorted Source Nodes: \[([^\]]*)\], Original ATen: \[([^\]]*)\]")
_AOT_ID = re.compile(r"^# AOT ID: \['([^']*)'\]", re.MULTILINE)
VIEWS = ("reinterpret_tensor", "_reinterpret_tensor")


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument as written; the buffer in it, and the layout under which the call sees that buffer, if they are stated."""

    text: str
    buffer: str = ""
    view: BufferLayout | None = None

    @property
    def is_read(self) -> bool:
        """Whether the call may read the buffer: it does not read the one that ``out=`` names."""
        return bool(self.buffer) and not self.text.startswith("out=")


@dataclass(frozen=True, slots=True)
class Allocation:
    """``buf0 = empty_strided_cpu(...)``."""

    name: str
    layout: BufferLayout
    offset: int


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name for a buffer or a part of it: ``buf1 = buf0; del buf0  # reuse``, a view, or one of several results."""

    name: str
    of: str
    offset: int
    view: BufferLayout | None = None
    item: int | None = None
    reuses: bool = False


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A call of a kernel. ``written`` are the buffers that it writes, ``handle`` the key of the provenance file (``NAME:3``)."""

    kernel: str
    is_extern: bool
    args: tuple[Argument, ...]
    result: str
    written: tuple[str, ...]
    offset: int
    line: int
    handle: str = ""
    source_nodes: tuple[str, ...] = ()
    original: tuple[str, ...] = ()

    def buffers(self) -> tuple[str, ...]:
        """The buffers that it reads or writes, each once."""
        names = [argument.buffer for argument in self.args if argument.buffer]
        return tuple(dict.fromkeys([*names, *([self.result] if self.result else ())]))


Statement = Allocation | Alias | KernelCall


@dataclass(slots=True)
class Function:
    """``call``, or a function that it calls: a partition, or a branch of control flow. ``places`` is where the inputs are named."""

    name: str
    offset: int
    inputs: tuple[str, ...] = ()
    places: dict[str, int] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    results: tuple[Argument, ...] = ()

    def calls(self) -> list[KernelCall]:
        """The calls of kernels, in order."""
        return [s for s in self.statements if isinstance(s, KernelCall)]

    def aliases(self) -> list[Alias]:
        """The other names of buffers, in order."""
        return [s for s in self.statements if isinstance(s, Alias)]


@dataclass(slots=True)
class OutputCode:
    """The kernels by name, the functions (``call`` first), and the layouts of the inputs."""

    aot_id: str = ""
    kernels: dict[str, KernelSource] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    inputs: dict[str, BufferLayout] = field(default_factory=dict)

    def calls(self) -> list[KernelCall]:
        """The calls of kernels in all functions."""
        return [call for function in self.functions.values() for call in function.calls()]


def read_code(source: SourceText, faults: list[SyntaxFault]) -> OutputCode | None:
    """The records of a text; None where it is not Python. Adds what is wrong to ``faults``."""
    try:
        tree = parse_module(source.text)
    except PythonFault as fault:
        begin = source.starts()[min(fault.line, len(source.starts())) - 1]
        ends = "the text ends too early: " if fault.cut else "this is not output code: "
        faults.append(SyntaxFault(begin, ends + fault.message, length=max(1, len(source.line(fault.line)))))
        return None
    code = OutputCode()
    named = _AOT_ID.search(source.text)
    code.aot_id = named[1] if named else ""
    functions = list(_definitions(tree, code, source))
    for function in functions:
        _inputs(function, code.inputs)
    reader = _Reader(source, code)
    for function in functions:
        if [argument.arg for argument in function.args.args] in SIGNATURES:
            code.functions[function.name] = reader.function(function)
    if ENTRY not in code.functions:
        faults.append(SyntaxFault(0, "this output code defines no function call: the text ends before it, or is another program"))
    code.functions = dict(sorted(code.functions.items(), key=lambda item: item[0] != ENTRY))
    return code


def _definitions(tree: ast.Module, code: OutputCode, source: SourceText) -> Iterator[ast.FunctionDef]:
    """The functions of a module and of its classes; kernels are added to ``code``."""
    for statement in tree.body:
        tick()
        if isinstance(statement, ast.FunctionDef):
            yield statement
        elif isinstance(statement, ast.ClassDef):
            yield from (inner for inner in statement.body if isinstance(inner, ast.FunctionDef))
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            kernel = kernel_source(name, statement.value, source.starts()[statement.lineno - 1])
            if kernel is not None:
                code.kernels[name] = kernel


def _inputs(function: ast.FunctionDef, found: dict[str, BufferLayout]) -> None:
    """The layouts of inputs, from the code that draws random ones: ``arg0_1 = rand_strided((4, 5), (5, 1), device='cpu', dtype=...)``."""
    for statement in function.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call) and isinstance(statement.targets[0], ast.Name):
            call = statement.value
            if dotted(call.func).endswith("rand_strided"):
                given = {word.arg: word.value for word in call.keywords}
                device, dtype = given.get("device"), given.get("dtype")
                size, stride = (dims_of(call.args[i] if len(call.args) > i else None) for i in (0, 1))
                found[statement.targets[0].id] = BufferLayout(
                    "input", constant_text(device) if isinstance(device, ast.Constant) else "",
                    dtype_named(dotted(dtype)) if dtype is not None else None, size, stride)


class _Reader:
    """Reads the statements of functions. Blocks (``with``, ``if``, ``for``) are read in the order of the text."""

    def __init__(self, source: SourceText, code: OutputCode) -> None:
        self.code = code
        self.starts = source.starts()
        self.lines = source.text.split("\n")
        self.made = Function("", 0)
        self.fresh: set[str] = set()
        self.said: dict[int, tuple[str, tuple[str, ...], tuple[str, ...]]] = {}
        """What is said above each line that has calls: one line may have thousands."""

    def function(self, tree: ast.FunctionDef) -> Function:
        """The records of one function."""
        self.made = Function(tree.name, self.starts[tree.lineno - 1])
        self.fresh = set()
        stack: list[tuple[int, ast.stmt]] = [(0, s) for s in reversed(tree.body)]
        while stack:
            depth, statement = stack.pop()
            tick()
            inner: list[ast.stmt] = []
            if isinstance(statement, ast.With | ast.If | ast.For | ast.While | ast.Try):
                inner = [*statement.body, *getattr(statement, "orelse", [])]
            if depth < DEEP:
                stack.extend((depth + 1, s) for s in reversed(inner))
            self._statement(statement)
        return self.made

    def _statement(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Name):
                self._assign(target.id, statement.value)
            elif isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Name):
                self.made.inputs = self.made.inputs or tuple(e.id for e in target.elts if isinstance(e, ast.Name))
                # Names are ASCII, so that columns in bytes and in characters agree.
                self.made.places |= {e.id: self.starts[e.lineno - 1] + e.col_offset for e in target.elts if isinstance(e, ast.Name)}
            elif isinstance(statement.value, ast.Call):
                self._call("", statement.value)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            self._call("", statement.value)
        elif isinstance(statement, ast.Return) and statement.value is not None:
            values = statement.value.elts if isinstance(statement.value, ast.Tuple) else [statement.value]
            self.made.results = tuple(_argument(value) for value in values)

    def _assign(self, name: str, value: ast.expr) -> None:
        offset = self.starts[value.lineno - 1]
        add = self.made.statements.append
        if isinstance(value, ast.Call):
            function = dotted(value.func)
            last = function.rpartition(".")[2]
            if last.startswith("empty_strided"):
                device = last.removeprefix("empty_strided").strip("_")
                size, stride = (dims_of(a) for a in value.args[:2]) if len(value.args) > 1 else ((), ())
                dtype = dtype_named(dotted(value.args[2])) if len(value.args) > 2 else None
                add(Allocation(name, BufferLayout("allocated", device, dtype, size, stride), offset))
                self.fresh.add(name)
            elif last in VIEWS or last == "alloc_from_pool":
                seen = _argument(value)
                add(Alias(name, seen.buffer, offset, seen.view, reuses=True))
            else:
                self._call(name, value)
        elif isinstance(value, ast.Name):
            add(Alias(name, value.id, offset, reuses=True))
        elif isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name):
            given = value.slice.value if isinstance(value.slice, ast.Constant) else None
            index = given if type(given) is int and given < 1 << 16 else None
            if value.value.id == "args" and index is not None:
                self.made.inputs += (name,)
            else:
                add(Alias(name, value.value.id, offset, item=index))

    def _call(self, result: str, call: ast.Call) -> None:
        name = dotted(call.func)
        owner, _, method = name.rpartition(".")
        source = self.code.kernels.get(owner if method == "run" else name)
        if source is not None or (method == "run" and owner and "." not in owner):
            self._add(owner if method == "run" else name, False, result, call, source)
        elif name.startswith(EXTERN) and not name.startswith(NO_KERNEL):
            self._add(name, True, result, call, None)
        elif method in IN_PLACE and owner:
            self._add(f"aten.{method}", True, result, call, None)

    def _add(self, kernel: str, is_extern: bool, result: str, call: ast.Call, source: KernelSource | None) -> None:
        args = tuple(_argument(a) for a in call.args)
        written = [word.value for word in call.keywords if word.arg == "out"]
        given = args + tuple(Argument(f"{w.arg}={text_of(w.value)}", _argument(w.value).buffer) for w in call.keywords if w.arg != "stream")
        names = [_argument(w).buffer for w in written]
        if source is not None and source.written:
            names += [args[i].buffer for i in source.written if i < len(args)]
        elif not is_extern:
            names += [a.buffer for a in args if a.buffer in self.fresh]
        elif dotted(call.func).rpartition(".")[2] in IN_PLACE:
            names += [dotted(call.func).rpartition(".")[0]]
        self.fresh.difference_update(names)
        handle, sources, original = self._said(call.lineno)
        self.made.statements.append(KernelCall(kernel, is_extern, given, result, tuple(dict.fromkeys(n for n in names if n)),
                                               self.starts[call.lineno - 1], call.lineno, handle, sources, original))

    def _said(self, line: int) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        if line not in self.said:
            self.said[line] = self._said_above(line)
        return self.said[line]

    def _said_above(self, line: int) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """What the comments directly above a line say: provenance handle, nodes of the traced program, operators of aten.

        The statement that asks for the stream of a launch (``raw_stream0 = get_raw_stream(0)``) may stand between.
        """
        handle = ""
        sources: tuple[str, ...] = ()
        original: tuple[str, ...] = ()
        at = line - 1
        if at > 0 and "get_raw_stream(" in self.lines[at - 1]:
            at -= 1
        while at > 0 and self.lines[at - 1].lstrip().startswith("#"):
            said = self.lines[at - 1]
            if (found := _HANDLE.search(said)) is not None:
                handle = found[1].strip()
            elif (listed := _SOURCES.search(said)) is not None:
                sources, original = (tuple(part.strip() for part in group.split(",") if part.strip()) for group in listed.groups())
            at -= 1
        return handle, sources, original


def _argument(value: ast.expr) -> Argument:
    """An argument with the buffer in it: a name, or a view of one, however often it is wrapped."""
    text, view, node = text_of(value), None, value
    for _ in range(DEEP):
        if isinstance(node, ast.Call) and node.args and dotted(node.func).rpartition(".")[2] in VIEWS:
            if view is None and len(node.args) > 2:
                offset = text_of(node.args[3]) if len(node.args) > 3 else "0"
                view = BufferLayout("view", "", None, dims_of(node.args[1]), dims_of(node.args[2]), offset)
            node = node.args[0]
        elif isinstance(node, ast.Call) and node.args and dotted(node.func).rpartition(".")[2] == "alloc_from_pool":
            node = node.args[0]
        else:
            break
    return Argument(text, node.id if isinstance(node, ast.Name) else "", view)
