"""One operator run in every way there is: by its numpy reference, and by its meaning as code, through LLVM.

The operator is the root of the entry of a small HLO text; its operands are the entry's parameters, or constants.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from irscope.analysis.reference import evaluate, flatten
from irscope.backends.executable import Executable, Port
from irscope.formats import hlo
from irscope.graph import Module, Node, TensorType
from irscope.lower.build import KernelBuilder
from irscope.lower.interpret import interpret_program
from irscope.lower.program import Launch, Program, Slot
from irscope.source import SourceText

Array = Any


def read(text: str) -> Module:
    """The module of a text that must be sound; bare instructions become an entry."""
    reading = hlo.read(SourceText("test.hlo", text))
    assert reading.ok, [f.message for f in reading.findings]
    return reading.module()


def typed(module: Module) -> Module:
    """The same, after inference has agreed with every declared type."""
    from irscope.ops.shapes import fits
    for graph in module.graphs.values():
        for node in graph.nodes:
            if node.op.infer is not None:
                inferred = node.op.infer(node)
                assert fits(inferred, node.type), f"{node}: inferred {inferred}"
    return module


def leaves(node: Node) -> list[TensorType]:
    """The types of a node's results."""
    return [t for t in node.type.leaves() if isinstance(t, TensorType)]


def reference(module: Module, *arrays: Array) -> list[Array]:
    """The results by numpy, one for each that the type has."""
    found = [np.asarray(a) for a in flatten(evaluate(module.main(), list(arrays)))]
    assert len(found) == len(leaves(module.main().result()))
    return found


def kernel_of(node: Node, name: str = "op") -> Program:
    """A program of one kernel: the operator's own meaning over row-major arrays."""
    k = KernelBuilder(name)
    sources = [leaves(o)[0] for o in node.operands]
    results = leaves(node)
    ins = [k.view(k.buffer(f"in{i}", t.dtype, t.dims(), "in")) for i, t in enumerate(sources)]
    outs = [k.view(k.buffer(f"out{i}", t.dtype, t.dims(), "out")) for i, t in enumerate(results)]
    if node.op.nest is not None and (node.op.element is None or (node.op.whole is not None and node.op.whole(node))):
        node.op.nest(k, node, ins, outs)
    else:
        _loops(k, node, ins, outs)
    slots = [Slot(f"in{i}", t.dtype, t.elements, "input", i) for i, t in enumerate(sources)]
    targets = [Slot(f"out{i}", t.dtype, t.elements, "output", i) for i, t in enumerate(results)]
    program = Program(name, slots, targets)
    program.steps = [Launch(k.finish(), [(s, 0) for s in (*slots, *targets)])]
    return program


def _loops(k: KernelBuilder, node: Node, ins: list[Any], outs: list[Any]) -> None:
    from contextlib import ExitStack
    assert node.op.element is not None or node.op.scalar is not None, f"{node.op.name} has no meaning as code"
    with ExitStack() as stack:
        index = [stack.enter_context(k.loop(0, n)) for n in outs[0].shape]
        if node.op.element is not None:
            values = node.op.element(k, node, index, lambda i, at: ins[i].load(at))
        else:
            assert node.op.scalar is not None
            values = node.op.scalar(k, node, *(view.load(index) for view in ins))
        for out, value in zip(outs, values if isinstance(values, list) else [values], strict=True):
            out.store(index, value)


def compiled(module: Module, *arrays: Array, interpret: bool = True) -> list[Array]:
    """The results by machine code."""
    node = module.main().result()
    given = {p.index: a for p, a in zip(module.main().params, arrays, strict=True)}
    operands = [given[o.index] if o.index in given else o.attrs["literal"].value() for o in node.operands]
    return compiled_node(node, *operands, interpret=interpret)


def compiled_node(node: Node, *operands: Array, interpret: bool = True) -> list[Array]:
    """The results of one node by machine code; the (slow) interpreter of the tile IR gives the same, and makes no misstep."""
    inputs = [Port(f"in{i}", t.dtype, t.dims()) for i, t in enumerate(leaves(o)[0] for o in node.operands)]
    outputs = [Port(f"out{i}", t.dtype, t.dims()) for i, t in enumerate(leaves(node))]
    program = kernel_of(node)
    given = [np.asarray(v) for v in operands]
    results = list(Executable.of(program, inputs, outputs, use_cache=False)(*given))
    for result, port, slow in zip(results, outputs, interpret_program(program, given) if interpret else results, strict=True):
        same(result, slow.reshape(port.shape), 1e-13 if port.dtype.name in ("f64", "c128") else 1e-5)
    return results


def reference_of(node: Node, *operands: Array) -> list[Array]:
    """The results of one node by numpy."""
    assert node.op.reference is not None
    return [np.asarray(a) for a in flatten(node.op.reference(evaluate, node, *operands))]


def same(got: Array, want: Array, tolerance: float = 0.0) -> None:
    """Equal bits apart from NaN payloads, or close: relative to the largest value."""
    assert got.shape == want.shape and got.dtype == want.dtype, f"{got.dtype}{got.shape} and {want.dtype}{want.shape}"
    if not want.size:
        return
    kind = "complex128" if want.dtype.kind == "c" else "float64"
    if want.dtype.kind in "iub" or want.dtype.name.startswith(("int", "uint")):
        assert np.array_equal(got, want), f"{got} and {want}"
        return
    with np.errstate(all="ignore"):
        g, w = got.astype(kind), want.astype(kind)
        assert np.array_equal(np.isnan(g), np.isnan(w)), f"NaN in other places: {got} and {want}"
        finite = np.isfinite(w)
        assert np.array_equal(g[~finite & ~np.isnan(w)], w[~finite & ~np.isnan(w)]), f"{got} and {want}"
        g, w = g[finite], w[finite]
        limit = tolerance * max(1e-30, float(np.abs(w).max())) if w.size else 0.0
        assert not w.size or float(np.abs(g - w).max()) <= limit, f"off by {np.abs(g - w).max()}: {got} and {want}"


def check(text: str, *arrays: Array, tolerance: float = 1e-6, interpret: bool = True) -> list[Array]:
    """Inference agrees with the text, and reference, interpreter and machine code with each other; gives the reference's results."""
    module = typed(read(text))
    want = reference(module, *arrays)
    for got, w in zip(compiled(module, *arrays, interpret=interpret), want, strict=True):
        same(got, w, tolerance)
    return want
