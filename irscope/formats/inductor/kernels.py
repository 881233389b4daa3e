"""The kernels that output code defines: ``NAME = async_compile.KIND(...)``, with what their text says of the launch.

    cpp_fused_add_0 = async_compile.cpp_pybinding(['const float*', 'float*'], r'''...''')
    triton_poi_fused_add_0 = async_compile.triton('triton_poi_fused_add_0', '''
        @triton_heuristics.pointwise(size_hints={'x': 256}, ..., inductor_meta={'grid_type': 'Grid1D', ...})
        @triton.jit
        def triton_poi_fused_add_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr): ...''', device_str='cuda')
"""
from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from irscope.formats.inductor.python_text import PythonFault, dotted, parse_module, strings_in, text_of

COMPILER = "async_compile"
_WRITES = re.compile(r"(?:in_)?out_ptr\d*$|(?:in_)?out_ptr\w*$")
_PARAMETER = re.compile(r"(?<![\w:])(const\s+)?[\w:]+(?:<[^<>]*>)?\s*\*\s*(?:__restrict__\s+)?(\w+)")


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A generated kernel. ``written`` are the positions of the arguments that it writes, ``n_args`` the number of all of them.

    ``template`` is Triton's heuristic (``pointwise``, ``reduction``, ``persistent_reduction``, ``template``, ``fixed_config``...);
    ``grid``, ``num_warps`` and ``num_stages`` are empty where the text leaves them to the autotuner. ``offset``: where its text begins.
    """

    name: str
    language: str
    n_args: int
    written: tuple[int, ...]
    offset: int = -1
    template: str = ""
    grid: str = ""
    num_warps: str = ""
    num_stages: str = ""
    size_hints: str = ""

    def __str__(self) -> str:
        said = [self.language, self.template, self.grid and f"grid={self.grid}", self.num_warps and f"num_warps={self.num_warps}",
                self.num_stages and f"num_stages={self.num_stages}", self.size_hints and f"sizes={self.size_hints}"]
        return " ".join(part for part in said if part)


def kernel_source(name: str, call: ast.Call, offset: int) -> KernelSource | None:
    """The kernel that ``NAME = async_compile.KIND(...)`` defines; None for another statement."""
    owner, _, kind = dotted(call.func).rpartition(".")
    if not owner.endswith(COMPILER) or kind in ("wait", "warm_pool"):
        return None
    texts = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    body = max(texts, key=len, default="")
    if kind == "triton":
        return triton_source(name, body, offset, texts[0] if texts else "")
    if kind.startswith("cpp"):
        types = strings_in(call.args[0]) if call.args else ()
        if types:
            written = tuple(i for i, type in enumerate(types) if "*" in type and not type.startswith("const"))
            return KernelSource(name, "C++", len(types), written, offset)
        found = list(_PARAMETER.finditer(body.partition("{")[0]))
        return KernelSource(name, "C++", len(found), tuple(i for i, p in enumerate(found) if not p[1]), offset)
    return KernelSource(name, kind, 0, (), offset)


def triton_source(name: str, text: str, offset: int = -1, own: str = "") -> KernelSource:
    """What the text of a Triton kernel says: the heuristic, its launch, and the pointers that it writes.

    ``own`` is the name of its function, where the user wrote the kernel and output code gives it another.
    """
    try:
        tree = parse_module(text)
    except PythonFault:
        return KernelSource(name, "Triton", 0, (), offset)
    functions = [s for s in tree.body if isinstance(s, ast.FunctionDef)]
    function = next((f for f in functions if f.name in (name, own)), functions[-1] if functions else None)
    if function is None:
        return KernelSource(name, "Triton", 0, (), offset)
    arguments = [a.arg for a in function.args.args if not _is_constexpr(a)]
    mutated: set[str] = set()
    said: dict[str, str] = {}
    template = ""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call):
            template = template or dotted(decorator.func).rpartition(".")[2]
            for key, value in _settings(decorator):
                said.setdefault(key, text_of(value))
                if key == "mutated_arg_names":
                    mutated.update(strings_in(value))
    written = tuple(i for i, arg in enumerate(arguments) if arg in mutated or _WRITES.match(arg))
    return KernelSource(name, "Triton", len(arguments), written, offset, template, said.get("grid_type", "").strip("'"),
                        said.get("num_warps", ""), said.get("num_stages", ""), said.get("size_hints", ""))


def _settings(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """The keywords of a decorator, and the entries of the dicts among them, with those of configurations (``configs=[{...}]``)."""
    stack: list[tuple[str, ast.expr]] = [(word.arg or "", word.value) for word in reversed(call.keywords)]
    while stack:
        key, value = stack.pop()
        if isinstance(value, ast.Dict):
            yield key, value
            inner = [(k.value, v) for k, v in zip(value.keys, value.values) if isinstance(k, ast.Constant) and isinstance(k.value, str)]
            stack.extend(reversed(inner))
        elif isinstance(value, ast.List) and key == "configs" and len(value.elts) == 1:
            stack.append(("", value.elts[0]))
        else:
            yield key, value


def _is_constexpr(argument: ast.arg) -> bool:
    return argument.annotation is not None and dotted(argument.annotation).endswith("constexpr")
