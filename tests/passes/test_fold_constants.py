"""fold-constants: what becomes a constant, what does not, and that a known condition leaves one branch."""
from __future__ import annotations

import numpy as np
import pytest

import irscope
from irscope.formats.relay import print_module
from irscope.formats.relay.operators import names
from irscope.graph import Module
from irscope.passes import fold_constants, pass_named
from irscope.passes.manager import run_passes
from irscope.source import UserError
from tests.passes.relay_runs import meaning_stays, outputs

X = "%x: Tensor[(2, 3), float32]"
QNN = "qnn.quantize([1f, 2f], 0.5f, 0, out_dtype=\"int8\")"


def folded(body: str, name: str = "fold-constants", signature: str = X) -> Module:
    module = irscope.load(f"def @main({signature}) {{\n{body}\n}}\n").module()
    made = pass_named(name).run(module)
    meaning_stays(module, made, 0, 0)
    again = irscope.load(print_module(made)).module()
    for got, wanted in zip(outputs(again, 0, module), outputs(made, 0, module), strict=True):
        np.testing.assert_array_equal(got, wanted)
    return made


def left(module: Module) -> list[str]:
    return [n.op.name for n in module.main().nodes if n.op.name not in ("parameter", "constant")]


@pytest.mark.parametrize(("body", "ops"), [
    ("  shape_of(%x)", []),
    ("  (ndarray_size(%x), shape_of(tanh(%x), dtype=\"int64\"))", ["tuple"]),
    ("  %0 = split([1f, 2f, 3f, 4f], indices_or_sections=2);\n  add(%0.0, %0.1)", []),
    ("  %0 = split([1f, 2f, 3f, 4f, 5f, 6f], indices_or_sections=2);\n  add(%x, %0.1)", ["add"]),
    ("  %0 = (%x, tanh(%x));\n  add(%0.0, %0.1)", ["tanh", "add"]),
    ("  %0 = cast([1f, 2f], dtype=\"uint8\");\n  cast(add(%0, %0), dtype=\"float32\")", []),
    ("  nn.dense([[1f, 2f], [3f, 4f]], [[1f, 2f]], units=1)", []),
    ("  %0 = zeros(shape=[2, 3], dtype=\"float32\");\n  add(%x, %0)", ["zeros", "add"]),
    ("  %0 = add(1f, 2f);\n  %1 = add(%0, 3f);\n  (multiply(%x, %0), %1)", ["multiply", "tuple"]),
    (f"  {QNN}", ["qnn.quantize"]),
    ("  %0 = if (less(1f, 2f)) {\n    tanh(%x)\n  } else {\n    exp(%x)\n  };\n  nn.relu(%0)", ["tanh", "nn.relu"]),
    ("  if (False) {\n    tanh(%x)\n  } else {\n    %x\n  }", []),
    ("  %0 = if (True) {\n    add(1f, 2f)\n  } else {\n    3f\n  };\n  %1 = if (less(%0, 1f)) {\n    exp(%x)\n  } else {\n    multiply(%x, %0)\n  };\n  %1",
     ["multiply"]),
])
def test_what_is_left_of_relay(body: str, ops: list[str]) -> None:
    assert left(folded(body)) == ops


def test_quantised_operators_fold_when_asked() -> None:
    assert left(folded(f"  {QNN}", "fold-constants{qnn}")) == []


def test_weights_that_other_passes_compute_with() -> None:
    """The arithmetic on statistics, and the wider weights of layers taken together, are constants when their parts are."""
    module = irscope.load("""
def @main(%x: Tensor[(1, 2, 4, 4), float32], %y: Tensor[(3, 2), float32]) {
  %0 = nn.batch_norm(%x, [1f, 2f], [0.5f, 0f], [0.1f, 0.2f], [1f, 4f]);
  %1 = nn.dense(%y, [[1f, 2f], [3f, 4f]], units=2);
  %2 = nn.relu(%1);
  %3 = nn.dense(%y, [[5f, 6f]], units=1);
  %4 = nn.relu(%3);
  (%0.0, %2, %4)
}
""").module()
    made = module
    for step in run_passes(module, ["simplify-inference", "combine-parallel{min-branches=2}", "fold-constants"]):
        made = step.after
    assert sorted(left(made)) == ["add", "multiply", "nn.dense", "nn.relu", "strided_slice", "strided_slice", "tuple"]
    meaning_stays(module, made)


def test_a_branch_that_is_not_taken_is_no_function_of_the_module() -> None:
    made = folded("  %0 = if (True) {\n    tanh(%x)\n  } else {\n    exp(%x)\n  };\n  %0")
    assert list(made.graphs) == ["main"]
    assert made.main().nodes[-1].origin


@pytest.mark.parametrize(("selector", "taken"), [("pred[] constant(true)", "tanh"), ("pred[] constant(false)", "exponential"),
                                                 ("s32[] constant(1)", "exponential"), ("s32[] constant(7)", "exponential")])
def test_a_known_conditional_of_hlo(selector: str, taken: str) -> None:
    module = irscope.load(f"""HloModule m
a {{
  p = f32[4] parameter(0)
  ROOT t = f32[4] tanh(p)
}}
b {{
  q = f32[4] parameter(0)
  ROOT e = f32[4] exponential(q)
}}
ENTRY main {{
  x = f32[4] parameter(0)
  c = {selector}
  n = f32[4] negate(x)
  ROOT r = f32[4] conditional(c, x, n), {'true_computation=a, false_computation=b' if 'pred' in selector else 'branch_computations={a, b}'}
}}
""").module()
    made = pass_named("fold-constants").run(module)
    assert [n.op.name for n in made.main().nodes if n.op.name != "parameter"] == (["tanh"] if taken == "tanh" else ["negate", "exponential"])
    assert list(made.graphs) == ["main"]
    meaning_stays(module, made, 0, 0)


def test_nothing_to_fold_gives_the_same_module() -> None:
    module = irscope.load(f"def @main({X}) {{\n  tanh(%x)\n}}\n").module()
    assert pass_named("fold-constants").run(module) is module


def test_one_operator_without_a_value_does_not_keep_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values are computed all at once, and one by one when that fails."""
    whole = fold_constants.evaluated

    def fails_for_tanh(wanted: object, inner: list[object], values: object) -> object:
        if any(node.op.name == "tanh" for node in inner):  # type: ignore[attr-defined]
            raise UserError("no value")
        return whole(wanted, inner, values)  # type: ignore[arg-type]
    monkeypatch.setattr(fold_constants, "evaluated", fails_for_tanh)
    made = folded("  %0 = exp(2f);\n  %1 = tanh(%0);\n  %2 = multiply(3f, 4f);\n  multiply(add(%x, %1), %2)")
    assert left(made) == ["tanh", "add", "multiply"]
    assert sum(n.op.name == "constant" for n in made.main().nodes) == 2


def test_quantised_operators_are_all_listed() -> None:
    assert [name for _, name in fold_constants.QUANTISED] == [name for name in names() if name.startswith("qnn.")]


@pytest.mark.parametrize("call", [
    "f32[4] all-reduce(c), replica_groups={{0,1}}, to_apply=sum",
    "f32[8] all-gather(c), replica_groups={{0,1}}, dimensions={0}",
    "f32[2] reduce-scatter(c), replica_groups={{0,1}}, dimensions={0}, to_apply=sum",
    "f32[4] collective-permute(c), source_target_pairs={{0,1}}",
    "f32[4] all-reduce-start(c), replica_groups={{0,1}}, to_apply=sum",
    "f32[4] opt-barrier(c)",
])
def test_other_devices_and_barriers_are_no_constants(call: str) -> None:
    """A run has one device: the sum of two is not what it computes. What stands behind a barrier stays there."""
    module = irscope.load(f"""HloModule m, replica_count=2
sum {{ a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT r = f32[] add(a, b) }}
ENTRY e {{ c = f32[4] constant({{1,2,3,4}})
          n = f32[4] negate(c)
          ROOT d = {call.replace("(c)", "(n)")} }}
""").module()
    assert left(pass_named("fold-constants").run(module)) == [call.split()[1].partition("(")[0]]


def test_a_size_wraps_to_the_type_of_the_query() -> None:
    """300 is 44 in eight bits, as the program computes it."""
    body = '  (shape_of(%x, dtype="int8"), ndarray_size(%x, dtype="uint8"))'
    assert left(folded(body, signature="%x: Tensor[(300, 2), float32]")) == ["tuple"]


def test_a_fill_beyond_its_type_is_an_infinity_without_a_warning() -> None:
    signature = "%x: Tensor[(3), float32]"
    made = folded('  add(%x, full(1e300f64, shape=[3], dtype="float32"))', "simplify-algebra", signature)
    assert left(made) == ["add"]
