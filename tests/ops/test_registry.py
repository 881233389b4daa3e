"""Every opcode of HLO has one declaration, which says all that irscope needs of it."""
from __future__ import annotations

from irscope.formats.hlo.opcodes import OPCODES
from irscope.ops import all_ops, lookup

# Taken apart by expand, steps of the compiled program, or talking to somebody who is not there.
WITHOUT_MEANING = frozenset((
    "parameter tuple get-tuple-element call fusion while conditional opt-barrier domain add-dependency after-all async-start async-update "
    "async-done all-reduce-start all-reduce-done all-gather-start collective-permute-start copy-start copy-done send send-done recv "
    "recv-done infeed outfeed custom-call rng rng-get-and-update-state set-dimension-size dynamic-reshape").split())


def test_every_opcode_is_declared() -> None:
    assert [name for name in OPCODES if lookup(name) is None] == []


def test_every_declaration_is_whole() -> None:
    for op in all_ops("hlo"):
        assert op.doc.strip().endswith("."), op.name
        assert op.infer is not None, op.name
        if op.name not in WITHOUT_MEANING:
            assert op.reference is not None, op.name
            assert any((op.scalar, op.element, op.nest, op.expand)), op.name
