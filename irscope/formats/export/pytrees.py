"""The pytrees of a call in archives: for each tensor of the arguments and of the result the expression by which a user reaches it.

    [1, {"type": "builtins.dict", "context": "[\\"a\\", \\"b\\"]", "children_spec": [{"type": null, ...}, {"type": "builtins.list", ...}]}]

    ['a'], ['b'][0]
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from irscope.formats.export.records import BadRecord, Record
from irscope.formats.export.signature import USER_INPUT, Signature
from irscope.source.budget import tick
from irscope.source.data_text import json_value

PROTOCOL = 1
"""The version of torch's format (torch/utils/_pytree.py), which comes first."""
DICTS = ("builtins.dict", "collections.OrderedDict")
NAMED_TUPLE = "collections.namedtuple"
LONGEST = 500
"""The maximal length of a path."""
WITHOUT_VALUE = ("as_none", "as_string")
"""Kinds of constants that a run does not give."""

Fields = Mapping[str, Sequence[object]]
"""The fields of named tuples by the name of their type."""


def call_paths(held: Record, signature: Signature) -> dict[str, object]:
    """``input_paths`` and ``result_paths`` of a graph module; nothing where the archive tells them in another way."""
    calls = held.records("module_call_graph") if held.has("module_call_graph") else iter(())
    top = next((entry for entry in calls if entry.values.get("fqn") == "" and entry.has("signature")), None)
    if top is None:
        return {}
    call, users = top.record("signature"), [port.name for port in signature.inputs if port.kind == USER_INPUT]
    names = [str(name) for name in call.items("forward_arg_names")] if call.has("forward_arg_names") else []
    outputs = [each.record("user_output") for each in held.record("signature").records("output_specs") if each.only() == "user_output"]
    kinds = [output.record("arg").only() for output in outputs if output.has("arg")]
    try:
        inputs = _arguments(_tree(call.text("in_spec")), names, _fields(held))
        results = _leaves(_tree(call.text("out_spec")), "", _fields(held))
    except BadRecord:  # specs of another protocol, or of types with a context of their own
        return {}
    found: dict[str, object] = {}
    if len(inputs) == len(users):
        found["input_paths"] = dict(zip(users, inputs, strict=True))
    if len(results) == len(kinds):
        found["result_paths"] = tuple(path for path, kind in zip(results, kinds, strict=True) if kind not in WITHOUT_VALUE)
    return found


def _fields(held: Record) -> Fields:
    if not held.has("treespec_namedtuple_fields"):
        return {}
    types = held.record("treespec_namedtuple_fields")
    return {name: types.record(name).items("field_names") for name in types.values}


def _tree(spec: str) -> Record:
    try:
        held = json_value(spec)
    except ValueError:
        raise BadRecord("the pytree is not JSON") from None
    if not isinstance(held, list) or len(held) != 2 or held[0] != PROTOCOL:
        raise BadRecord(f"the pytree is not of the protocol {PROTOCOL}")
    return Record(held[1], "pytree")


def _arguments(tree: Record, names: Sequence[str], fields: Fields) -> list[str]:
    """The leaves of a call: a tuple of the positional arguments, and a dict of the others."""
    parts = list(tree.records("children_spec"))
    keys = _listed(parts[1]) if len(parts) == 2 else []
    if len(parts) != 2 or len(keys) != len(parts[1].items("children_spec")):
        raise BadRecord("the pytree is none of a call")
    found: list[str] = []
    for i, child in enumerate(parts[0].records("children_spec")):
        found += _leaves(child, names[i] if i < len(names) else f"args[{i}]", fields)
    for key, child in zip(keys, parts[1].records("children_spec"), strict=True):
        found += _leaves(child, str(key), fields)
    return found


def _leaves(tree: Record, prefix: str, fields: Fields) -> list[str]:
    """The paths of the leaves in order."""
    found: list[str] = []
    stack = [(tree, prefix)]
    while stack:
        tick()
        node, path = stack.pop()
        if len(path) > LONGEST:  # a long key would be in the path of every leaf below it
            raise BadRecord(f"a path in the pytree is longer than {LONGEST}")
        if not node.has("type"):
            found.append(path)
            continue
        children = list(node.records("children_spec"))
        steps = _steps(node, len(children), fields)
        stack += [(child, path + step) for child, step in reversed(list(zip(children, steps, strict=True)))]
    return found


def _steps(node: Record, count: int, fields: Fields) -> list[str]:
    """How a user reaches each child: by key, by attribute, or by number where the type does not say."""
    kind = node.text("type")
    steps: list[str] = []
    if kind in DICTS:
        steps = [f"[{key!r}]" for key in _listed(node)]
    elif kind == NAMED_TUPLE:
        steps = [f".{name}" for name in fields.get(node.text("context"), ())]
    elif not kind.startswith(("builtins.", "collections.")):  # a dataclass: the names of its fields, and those of fields that are None
        named = next(iter(_listed(node)), None)
        steps = [f".{name}" for name in named] if isinstance(named, list) else []
    return steps if len(steps) == count else [f"[{i}]" for i in range(count)]


def _listed(node: Record) -> list[object]:
    """The list that the context of a node is, as JSON in a text; empty for another context."""
    context = node.values.get("context")
    try:
        held = json_value(context) if isinstance(context, str) else context
    except ValueError:
        return []
    return held if isinstance(held, list) else []
