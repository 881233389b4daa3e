"""XLA's pass that makes Triton kernels of matrix products, before it fuses anything else.

The words and kernels are those that jaxlib 0.10.2 logged for these texts.
"""
from __future__ import annotations

import pytest

from irscope.fusion.xla.gemm.products import Product, Settings, rewrite
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.instructions import Computation
from tests.fusion.xla_texts import ADD, module

H100, A100 = DEVICES["h100"], DEVICES["a100"]
DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def products(text: str, device: str = "h100", settings: Settings | None = None) -> tuple[Computation, list[Product]]:
    """The computation behind the pass, and what became of each product."""
    computation = Computation.of(module(text, ADD).main())
    return computation, rewrite(computation, DEVICES[device], settings or Settings())


def kernel(text: str, device: str = "h100") -> str:
    """The opcodes of the one kernel, without parameters, and what it reads; "" where none is made."""
    computation, made = products(text, device)
    if not made[0].is_made:
        return ""
    fusion = next(i for i in computation.instructions if i.kind == "triton")
    assert fusion.body is not None
    inside = " ".join(i.op for i in fusion.body.post_order() if i.op != "parameter")
    return f"{inside} of {' '.join(o.name for o in fusion.operands)}"


def words(text: str, device: str = "h100", settings: Settings | None = None) -> dict[str, str]:
    """XLA's words for each instruction that stays outside, and for a product that becomes no kernel; the rule's name where it has none."""
    told: dict[str, str] = {}
    for product in products(text, device, settings)[1]:
        if product.no is not None:
            told[product.dot.name] = product.no.words or product.no.rule.name
        for asked in product.asked:
            if asked.no is not None:
                told[(asked.consumer if asked.behind else asked.producer).name] = asked.no.words or asked.no.rule.name
    return told


def test_casts_and_biases_go_into_the_kernel() -> None:
    text = f"""a = s8[512,256] parameter(0)
c = bf16[512,256] convert(a)
b = bf16[256,512] parameter(1)
d = bf16[512,512] dot(c, b), {DOT}
v = bf16[512] parameter(2)
vb = bf16[512,512] broadcast(v), dimensions={{1}}
s = bf16[512,512] add(d, vb)
z = bf16[] constant(0)
zb = bf16[512,512] broadcast(z), dimensions={{}}
ROOT r = bf16[512,512] maximum(s, zb)"""
    assert kernel(text) == "convert dot broadcast add constant broadcast maximum of a b v"
    assert words(text) == {"r": "gemm-several-readers"} or words(text) == {"r": "gemm-nothing-read"}
