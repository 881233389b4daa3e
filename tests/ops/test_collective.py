"""Collectives: their types, and that alone each does what one partition does, by reference and by expansion."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.expand import expand
from irscope.ops import TypeFault
from tests.ops.running import read, reference, same, typed

ADD = "add { a = f32[] parameter(0)\nb = f32[] parameter(1)\nROOT s = f32[] add(a, b) }\n"
X = np.arange(8, dtype=np.float32).reshape(4, 2)


@pytest.mark.parametrize(("text", "want"), [
    ("ROOT r = f32[4,2] all-reduce(x), to_apply=add, replica_groups={}", X),
    ("ROOT r = (f32[4,2], f32[4,2]) all-reduce(x, x), to_apply=add", X),
    ("s = f32[4,2] all-reduce-start(x), to_apply=add\nROOT r = f32[4,2] all-reduce-done(s)", X),
    ("ROOT r = f32[8,2] all-gather(x), dimensions={0}, replica_groups={{0,1}}", np.concatenate([X, X])),
    ("s = (f32[4,2], f32[4,4]) all-gather-start(x), dimensions={1}\nROOT r = f32[4,4] all-gather-done(s)", np.concatenate([X, X], 1)),
    ("ROOT r = f32[400,2] all-gather(x), dimensions={0}", np.concatenate([X] * 100)),
    ("ROOT r = f32[4,200] all-gather(x), dimensions={1}", np.concatenate([X] * 100, 1)),
    ("ROOT r = f32[2,2] reduce-scatter(x), dimensions={0}, to_apply=add, replica_groups={{0,1}}", X[:2]),
    ("ROOT r = f32[4,2] all-to-all(x), dimensions={0}, replica_groups={{0,1}}", X),
    ("ROOT r = f32[4,2] collective-permute(x), source_target_pairs={{0,0}}", X),
    ("ROOT r = f32[4,2] collective-permute(x), source_target_pairs={{0,1},{1,0}}", X * 0),
    ("s = (f32[4,2], f32[4,2], u32[], u32[]) collective-permute-start(x), source_target_pairs={{0,0}}\n"
     "ROOT r = f32[4,2] collective-permute-done(s)", X),
    ("ROOT r = f32[4,2] collective-broadcast(x), replica_groups={{0,1}}", X),
    ("ROOT r = u32[] partition-id()", np.uint32(0)),
])
def test_alone(text: str, want: np.ndarray) -> None:
    module = typed(read(f"{ADD}ENTRY e {{ x = f32[4,2] parameter(0)\n{text} }}"))
    for got in (*reference(module, X), *reference(expand(module), X)):
        same(got, np.asarray(want))


def test_rows_to_oneself() -> None:
    module = typed(read("""ENTRY e { x = f32[4] parameter(0)
        o = f32[6] parameter(1)
        start = s32[1] constant({1})
        size = s32[1] constant({2})
        to = s32[1] constant({3})
        ROOT r = f32[6] ragged-all-to-all(x, o, start, size, to, size), replica_groups={{0}} }"""))
    [got] = reference(module, np.arange(4, dtype=np.float32), np.full(6, 9, np.float32))
    assert got.tolist() == [9, 9, 9, 1, 2, 9]


@pytest.mark.parametrize(("text", "words"), [
    ("ROOT r = f32[8,2] all-gather(x), dimensions={2}", ("out of range",)),
    ("ROOT r = f32[8,2] all-gather(x), dimensions={0}, replica_groups={{0,1,2,3}}", ("2 shards", "4 members")),
    ("ROOT r = f32[2,2] reduce-scatter(x), dimensions={0}, to_apply=add, replica_groups={{0,1,2,3}}", ("2 shards", "4 members")),
    ("ROOT r = (f32[4,2]) all-to-all(x), replica_groups={{0,1}}", ("1 operands", "2 devices")),
    ("ROOT r = f32[4,2] all-gather-start(x), dimensions={0}", ("(operand, result)",)),
])
def test_faults(text: str, words: tuple[str, ...]) -> None:
    root = read(f"{ADD}ENTRY e {{ x = f32[4,2] parameter(0)\n{text} }}").main().result()
    assert root.op.infer is not None
    with pytest.raises(TypeFault) as fault:
        root.op.infer(root)
    assert all(word in fault.value.message for word in words), fault.value.message


def test_copies_beyond_number_are_no_operands() -> None:
    """A thousand million devices in one dimension: the text may be wrong, but it is told in no time."""
    module = expand(typed(read("ENTRY e { x = f32[4,2] parameter(0)\nROOT r = f32[4,2147483648] all-gather(x), dimensions={1} }")))
    assert max(len(node.operands) for node in module.main().nodes) <= 1
