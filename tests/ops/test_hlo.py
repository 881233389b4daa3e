"""Operators of HLO as objects."""
from __future__ import annotations

import pytest

from irscope.ops import all_ops, get, hlo
from irscope.ops.module_attributes import HloModule, Prepared
from tests.ops.running import read


def test_every_operator_is_an_attribute() -> None:
    for op in all_ops("hlo"):
        assert getattr(hlo, op.name.replace("-", "_")) is op
    assert hlo.while_ is get("while")
    assert hlo.named("map get-tuple-element") == {get("map"), get("get-tuple-element")}, "operators do not hide what the module uses"


def test_a_name_that_no_operator_has_is_refused() -> None:
    with pytest.raises(AttributeError, match="no operator 'adde'"):
        hlo.adde  # noqa: B018
    with pytest.raises(KeyError):
        hlo.named("add adde")


def test_a_module_that_was_not_prepared_for_a_run() -> None:
    """Its sizes are those of the text, not measured from the values of inputs, and no input has become a number or a weight."""
    prepared = Prepared.of(read("ENTRY e {\n ROOT x = f32[2] parameter(0)\n}\n"))
    assert prepared.measured is False
    assert (*prepared.consumed, *prepared.weights, *prepared.symbols) == () and prepared.partitions == 1


def test_a_header_without_attributes() -> None:
    header = HloModule.of(read("HloModule m\nENTRY e {\n ROOT x = f32[2] parameter(0)\n}\n"))
    assert header.is_scheduled is False and (header.num_partitions, header.replica_count) == (1, 1)
    assert header.input_output_alias is None and header.buffer_donor is None
