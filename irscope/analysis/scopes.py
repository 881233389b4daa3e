"""The hierarchy of the user's program, from the names that the compiler kept."""
from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice

from irscope.graph import Graph, Module, Node
from irscope.ops import hlo

Scope = tuple[str, ...]
LEVELS = 100
"""The levels of a scope that count, those of the program's outermost parts: more are in no program, and each becomes a section."""


@lru_cache(maxsize=65536)
def split_scope(name: str) -> Scope:
    """The components of a name path; slashes inside brackets belong to a component.

    >>> split_scope("jit(f)/transpose(jvp(a/b))/layer_0/dot_general")
    ('jit(f)', 'transpose(jvp(a/b))', 'layer_0', 'dot_general')
    """
    if "(" not in name and "[" not in name:
        return tuple(part for part in name.split("/") if part)
    parts: list[str] = []
    depth = begin = 0
    for i, c in enumerate(name):
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth = max(0, depth - 1)
        elif c == "/" and depth == 0:
            parts.append(name[begin:i])
            begin = i + 1
    parts.append(name[begin:])
    return tuple(part for part in parts if part)


def scope_of(module: Module, node: Node) -> Scope:
    """The scope of the node in the user's program, without the name of the operation itself; empty where the text has none.

    It has at most :data:`LEVELS` levels.
    """
    name = module.scope(node)
    if not name:
        return ()
    if ";" in name:
        # Operations merged from several have all their names; the most specific one determines the scope.
        name = max(name.split(";"), key=lambda part: part.count("/"))
    parts = split_scope(name)
    if module.dialect.scope_ends_with_operator:
        return parts[:-1][:LEVELS]  # and a parameter has only the name of the argument
    separator = module.dialect.scope_separator
    return (tuple(parts[0].split(separator)) if separator != "/" and len(parts) == 1 else parts)[:LEVELS]


def scopes(module: Module, graph: Graph) -> list[Scope]:
    """The scope of each node of a graph, by index. A node without one (a constant, a broadcast) takes that of its first user."""
    found = [scope_of(module, node) for node in graph.nodes]
    users: list[Node | None] = [None] * len(graph.nodes)
    for node in reversed(graph.nodes):
        for operand in node.operands:
            users[operand.index] = node
    for node in reversed(graph.nodes):
        first = users[node.index]
        if not found[node.index] and first is not None and node.op is not hlo.parameter:
            found[node.index] = found[first.index]
    return found


_WRAPPED = re.compile(r"(\w*)\((.*)\)$", re.DOTALL)
_NUMBERED = re.compile(r"(\d+)([a-z]?)(?=[_.\-]|$)")
_PLUMBING = frozenset(("while", "body", "cond", "closed_call", "checkpoint", "rematted_computation", "shard_map", "pallas_call"))
"""Components that transformations of jax add."""


@lru_cache(maxsize=65536)
def is_forward(scope: Scope) -> bool:
    """Whether a scope is of the forward pass of a differentiated function: jax writes ``jvp(...)``."""
    return any(part.startswith("jvp(") for part in scope)


@lru_cache(maxsize=65536)
def is_backward(scope: Scope) -> bool:
    """Whether a scope is of the backward pass: jax writes ``transpose(jvp(...))``."""
    return any(part.startswith("transpose(") for part in scope)


@lru_cache(maxsize=65536)
def layers(scope: Scope) -> Scope:
    """The layers that a scope names: without what transformations add, numbered names split into their levels.

    >>> layers(("jit(step)", "transpose(jvp(GPT))", "h_0", "jit(gelu)", "bhts,bhsd->bhtd"))
    ('step', 'GPT', 'h_0', 'gelu')
    >>> layers(("conv2_block1_0_bn",)), layers(("block1a_bn",))
    (('conv2', 'conv2_block1', 'conv2_block1_0', 'conv2_block1_0_bn'), ('block1', 'block1a', 'block1a_bn'))
    """
    found: list[str] = []
    for part in scope:
        while (wrapped := _WRAPPED.match(part)) is not None:
            part = wrapped[2]
        if part and "->" not in part and part not in _PLUMBING:
            for number in islice(_NUMBERED.finditer(part), LEVELS):
                found += [part[:number.end(1)]] if number[2] else []
                found += [part[:number.end()]] if number.end() < len(part) else []
            found.append(part)
    return tuple(found[:LEVELS])
