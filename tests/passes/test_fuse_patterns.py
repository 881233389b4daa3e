"""What stands behind a layer joins it as long as it makes the result no larger."""
from __future__ import annotations

import irscope
from irscope.passes import pass_named
from tests.passes.relay_runs import meaning_stays

HEAD = "def @main(%x: Tensor[(1, 4), float32], %w: Tensor[(8, 4), float32], %r: Tensor[({rows}, 8), float32]) {{\n"
BODY = "  %0 = nn.dense(%x, %w, units=8);\n  %1 = add(%0, %r);\n  nn.relu(%1)\n}\n"


def composites(rows: int) -> list[str]:
    module = irscope.load(HEAD.format(rows=rows) + BODY).module()
    made = pass_named("fuse-patterns").run(pass_named("infer-types").run(module))
    meaning_stays(module, made)
    return [node.attrs["Composite"] for node in made.main().nodes if node.op.name == "fn"]


def test_a_residual_sum_of_the_same_shape_joins() -> None:
    assert composites(1) == ["dense_add_relu"]


def test_a_sum_that_makes_the_result_larger_stays_outside() -> None:
    assert composites(5) == []
