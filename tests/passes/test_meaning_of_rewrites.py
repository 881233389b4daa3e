"""Random programs made for the rewriting passes: the numbers stay, to the last bit where a pass says so, and no layer is computed twice.

Planted bugs show that these properties notice what they should.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import irscope
from irscope.diff import compare
from irscope.formats.relay import print_module
from irscope.formats.relay.attributes import StridedSlice
from irscope.graph import Graph, Module
from irscope.graph.numbering import Numbering
from irscope.ops.sets import relay
from irscope.passes import combine_parallel_followers, fold_constants_branches, share_equal
from irscope.passes.algebra import relay_casts, relay_movement
from irscope.passes.canonicalize_cast import is_widening
from irscope.passes.combine_parallel import MEMBERS, _Combining
from irscope.passes.manager import run_passes
from irscope.passes.visitor import GraphMutator
from tests.passes.relay_rewrites import random_rewrites
from tests.passes.relay_runs import outputs

SEEDS = range(32)
EXACT = ("simplify-algebra", "share-equal", "remove-dead", "fold-constants", "canonicalize-cast", "move-cast", "cancel-transposes")
CLOSE = ("simplify-algebra{inexact}", "fold-constants{qnn}", "combine-parallel{min-branches=2}", "combine-parallel{min-branches=2,to-batch}",
         "simplify-inference", "fast-math", "fuse-conv-relu")
LAYERS = MEMBERS | relay("nn.conv2d_relu")


@cache
def programs() -> tuple[Module, ...]:
    return tuple(irscope.load(random_rewrites(seed)).module() for seed in SEEDS)


@cache
def outputs_before(seed: int) -> Sequence[np.ndarray[Any, Any]]:
    """What the program of a seed gives: passes return new graphs, so that it is the same before each of them."""
    return outputs(programs()[seed])


@cache
def unchanged_after(name: str) -> tuple[Module, ...]:
    """What a pass makes of each program, where no test has changed the pass."""
    return tuple(after(module, name) for module in programs())


def after(module: Module, name: str) -> Module:
    *_, last = run_passes(module, [name])
    assert not last.broke, [f.message for f in last.broke]
    return last.after


def same_numbers(got: Sequence[np.ndarray[Any, Any]], wanted: Sequence[np.ndarray[Any, Any]], exactly: bool) -> bool:
    """Equal types, and equal values: but for the sign of zeros, or within some roundings of the largest."""
    for a, b in zip(got, wanted, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        x, y = a.astype(np.float64), b.astype(np.float64)
        finite = np.isfinite(x) & np.isfinite(y)
        largest = float(np.max(np.abs(y[finite]), initial=1.0))
        away = np.abs(np.subtract(x, y, out=np.full(x.shape, np.inf), where=finite))
        if not np.all((x == y) | (np.isnan(x) & np.isnan(y)) | (away <= (0 if exactly else 1e-4 * largest))):
            return False
    return True


def layers(module: Module) -> Counter[str]:
    """How often something heavy is computed, by the sizes of its weights: a wider layer counts as those that it stands for."""
    count: Counter[str] = Counter()
    for graph in module.graphs.values():
        for node in graph.nodes:
            if node.op in LAYERS:
                weight = node.operands[1].type
                count["elements"] += weight.elements  # type: ignore[attr-defined]
    return count


def keeps(seed: int, made: Module, name: str) -> bool:
    module = programs()[seed]
    if layers(made)["elements"] > layers(module)["elements"]:
        return False
    return same_numbers(outputs(made, 0, module), outputs_before(seed), name in EXACT)


@pytest.mark.parametrize("name", (*EXACT, *CLOSE))
def test_numbers_stay_and_no_layer_is_computed_twice(name: str) -> None:
    for seed, made in enumerate(unchanged_after(name)):
        assert keeps(seed, made, name), f"seed {seed}"


@pytest.mark.parametrize("name", (*EXACT, *CLOSE))
def test_what_is_printed_reads_back_as_the_same(name: str) -> None:
    for seed, made in enumerate(unchanged_after(name)):
        assert compare(made, irscope.load(print_module(made)).module()).same, f"seed {seed}"


@pytest.mark.parametrize("name", ["simplify-algebra", "simplify-algebra{inexact}", "fold-constants{qnn}", "share-equal", "cancel-transposes"])
def test_doing_it_again_changes_nothing(name: str) -> None:
    for seed, once in enumerate(unchanged_after(name)):
        assert compare(once, after(once, name)).same, f"seed {seed}"


def test_the_programs_give_every_pass_something_to_do() -> None:
    for name in {*EXACT, *CLOSE} - {"remove-dead"}:  # the reader has left out what nobody needs
        changed = sum(not compare(module, made).same for module, made in zip(programs(), unchanged_after(name), strict=True))
        assert changed >= 2, name


# ---- planted bugs


def caught(name: str) -> bool:
    return not all(keeps(seed, after(module, name), name) for seed, module in enumerate(programs()))


def test_a_key_without_operands_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(Numbering):
        def values(self, graph: Graph, alone: Any, bodies: Any = None) -> list[int]:
            numbers: dict[object, int] = {}
            return [numbers.setdefault(n if alone(n) else self.shape_of(n), len(numbers)) for n in graph.nodes]
    monkeypatch.setattr(share_equal, "Numbering", Wrong)
    assert caught("share-equal")


def test_a_missing_guard_for_other_users_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A convolution that somebody else needs too would be computed once more inside of the fused operator."""
    monkeypatch.setattr(GraphMutator, "needed_elsewhere", lambda self, node, by: [])
    assert caught("fuse-conv-relu")


def test_a_branch_that_others_read_and_is_taken_along_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def first_reader(self: Any, node: Any) -> Any:
        readers = self.users[node.index]
        return readers[0] if readers and readers[0] not in self.place else None
    monkeypatch.setattr(_Combining, "_next", first_reader)
    assert wrong("combine-parallel{min-branches=2}")


def wrong(name: str) -> bool:
    """Whether a pass gives other numbers, or fails."""
    try:
        return caught(name)
    except Exception:
        return True


@pytest.mark.parametrize(("name", "where", "what", "instead"), [
    ("combine-parallel{min-branches=2}", combine_parallel_followers, "same_value", lambda nodes: True),
    ("simplify-algebra", relay_casts, "passes_through", lambda source, middle, target: True),
    ("simplify-algebra", relay_casts, "_holds", lambda dtype, limited: True),
    ("simplify-algebra", relay_casts, "SCALES", (-1e30, 1e30)),
    ("simplify-algebra", relay_movement, "_order", lambda d, rank, right=relay_movement._order: inverse(right(d, rank))),
    ("simplify-algebra", relay_movement, "_ranges", lambda x, given, right=relay_movement._ranges: right(x, StridedSlice({**given.attrs, "strides": [1]}))),
    ("fold-constants", fold_constants_branches, "_choice", lambda node: 0 if node.op.name == "if" else None),
])
def test_rules_without_their_conditions_are_caught(monkeypatch: pytest.MonkeyPatch, name: str, where: Any, what: str, instead: Any) -> None:
    monkeypatch.setattr(where, what, instead)
    assert wrong(name)


def inverse(order: list[int] | None) -> list[int] | None:
    """The permutation that undoes one."""
    return None if order is None else [order.index(n) for n in range(len(order))]


def test_every_reader_of_a_widened_value_may_have_its_own() -> None:
    for module in programs():
        graph = after(module, "canonicalize-cast").main()
        users = graph.users()
        for node in graph.nodes:
            near = [u for u in users[node.index] if u.op.kind.name in ("ELEMENTWISE", "BROADCAST") and not u.bodies]
            assert not is_widening(node) or len(near) <= 1
