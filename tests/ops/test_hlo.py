"""Operators of HLO as objects."""
from __future__ import annotations

import pytest

from irscope.ops import all_ops, get, hlo


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
