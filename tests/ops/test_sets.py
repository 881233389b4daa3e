"""Sets of operators name operators that exist."""
from __future__ import annotations

import pkgutil
from importlib import import_module

import irscope
from irscope.analysis.classes import CLASSES
from irscope.formats.torchscript import operators
from irscope.graph import Kind, Op, unknown_op
from irscope.ops import all_ops, get, lookup
from irscope.ops import hlo as ops
from irscope.ops.sets import ALL, hlo, relay, torchscript


def test_a_set_tells_dialects_apart() -> None:
    operators.load()
    both = hlo("add") | torchscript("add")
    assert get("add") in both and get("aten::add", "torchscript") in both
    assert Op("add", "relay") not in both
    assert Op("add", "relay") in both | relay("add")
    assert Op("add") not in both - hlo("add")
    assert list(both) == [("hlo", "add"), ("torchscript", "aten::add")] and len(both) == 2


def test_every_named_operator_is_declared() -> None:
    for module in pkgutil.walk_packages(irscope.__path__, "irscope."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    operators.load()
    unknown = sorted({key for named in ALL for key in named if lookup(key[1], key[0]) is None})
    assert not unknown, unknown


def test_operators_named_like_functions_of_python_do_not_hide_them() -> None:
    assert ops.map is get("map") and ops.tuple is get("tuple")
    assert ops.named("map tuple") == {get("map"), get("tuple")}


def test_what_rooms_ask_of_every_operator_stands_in_its_declaration() -> None:
    """A class of work and a weight follow from a declaration alone: no table beside it lists operators by name."""
    for op in all_ops():
        assert op.work in CLASSES and op.weight >= 1, op.name
    new = Op("new", kind=Kind.ELEMENTWISE)
    assert (new.work, new.weight) == ("elementwise", 1)
    assert unknown_op("other", "relay").work == "unknown"
