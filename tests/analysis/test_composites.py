"""Every composite of the pattern programs and of near misses of them: its parts, result and oddity, in a golden file."""
from __future__ import annotations

from collections.abc import Callable

from irscope.analysis.recognise import RECOGNISERS
from irscope.analysis.recognise.parts import Composite
from tests.analysis.test_recognise import FORMATS, FOUND, ODD, OTHER, found, primitives

EPSILON = "%2 = add(%1, 1e-06f);\n  %3 = rsqrt(%2);\n  %4 = multiply(%x, %3);"
HALVES = """begin=[8], end=[16], strides=[1], axes=[2]);
  %1 = negative(%0);
  %2 = strided_slice(%x, begin=[0], end=[8], strides=[1], axes=[2]);
  %3 = (%1, %2);
  %4 = concatenate(%3, axis=-1);"""
VARIANTS = [
    # (program, text in it, text instead)
    ("attention.relay", "nn.batch_matmul(%2, %v", "%3 = cast(%2, dtype=\"float16\");\n  %4 = cast(%3, dtype=\"float32\");\n  nn.batch_matmul(%4, %v"),
    ("attention.relay", "nn.batch_matmul(%2, %v", "%3 = tanh(%2);\n  nn.batch_matmul(%3, %v"),
    ("rmsnorm.relay", EPSILON, "%2 = maximum(%1, 1e-06f);\n  %3 = rsqrt(%2);\n  %4 = multiply(%3, %x);"),
    ("rmsnorm.relay", EPSILON, "%2 = add(%1, 1e-06f);\n  %3 = sqrt(%2);\n  %4 = divide(%x, %3);"),
    ("rmsnorm.relay", EPSILON, "%2 = sqrt(%1);\n  %4 = divide(%x, %2);"),
    ("rmsnorm.relay", EPSILON, "%2 = rsqrt(%1);\n  %4 = multiply(%x, %2);"),
    ("rmsnorm.relay", EPSILON, "%2 = add(%1, 1e-06f);\n  %3 = sqrt(%2);\n  %4 = divide(%3, %x);"),
    ("rmsnorm.relay", EPSILON, "%2 = add(%1, 1e-06f);\n  %3 = rsqrt(%2);\n  %4 = divide(%x, %3);"),
    ("swiglu.relay", "%1 = sigmoid(%0);", "%9 = negative(%0);\n  %8 = exp(%9);\n  %7 = add(1f, %8);\n  %1 = divide(1f, %7);"),
    ("swiglu.relay", "%2 = multiply(%0, %1);", "%2 = multiply(%1, %1);"),
    ("swiglu.relay", "%2 = multiply(%0, %1);", "%2 = multiply(%1, %0);"),
    ("linear_gelu.relay", "%w: Tensor[(32, 16), float32], %b: Tensor[(32), float32]) {\n  %0 = nn.dense(%x, %w);\n  %1 = nn.bias_add(%0, %b);",
     "%w: Tensor[(8, 16), float32], %b: Tensor[(8), float32]) {\n  %0 = nn.dense(%x, %w);\n  %1 = nn.bias_add(%0, %b, axis=0);"),
    ("conv_bn_relu.relay", "nn.relu(%2)", "%3 = add(%2, 1f);\n  nn.relu(%3)"),
    ("conv_bn_relu.relay", "nn.relu(%2)", "%3 = transpose(%2, axes=[0, 2, 3, 1]);\n  nn.relu(%3)"),
    ("conv_bn_relu.relay", "nn.relu(%2)", "%3 = reshape(%2, newshape=[-1]);\n  nn.relu(%3)"),
    ("conv_bn_relu.relay", "nn.relu(%2)", "%3 = nn.relu(%2);\n  add(%3, %2)"),
    ("rope.hlo", "concatenate(neg.1, split.2)", "concatenate(split.2, neg.1)"),
    ("rope.relay", HALVES, HALVES.replace("[8]", "[6]")),
    ("rope.relay", HALVES, HALVES.replace("axes=[2]", "axes=[1]").replace("axis=-1", "axis=1").replace("[8]", "[4]").replace("[16]", "[8]")),
    ("rope.relay", HALVES, HALVES.replace("%1 = negative(%0);\n", "").replace("%3 = (%1, %2)", "%1 = negative(%2);\n  %3 = (%0, %1)")),
    ("rope.relay", HALVES, HALVES.replace("%3 = (%1, %2)", "%9 = negative(%2);\n  %3 = (%1, %9)")),
    ("rope.relay", HALVES, HALVES.replace("begin=[0], end=[8]", "begin=[8], end=[16]")),
    ("rope.relay", HALVES, HALVES.replace("begin=[0], end=[8]", "begin=[4], end=[12]")),
    ("rope.relay", HALVES, HALVES.replace("begin=[8], end=[16]", "begin=[4], end=[12]")),
    ("rope.relay", HALVES, HALVES.replace("strided_slice(%x, begin=[0]", "strided_slice(tanh(%x), begin=[0]")),
    ("rope.relay", "add(%5, %6)", "subtract(%5, %6)"),
    ("rope.relay", "add(%5, %6)", "subtract(%6, %5)"),
    ("rope.relay", "add(%5, %6)", "multiply(%5, %6)"),
    ("rope.relay", "%5 = multiply(%x, %c);", "%5 = multiply(%4, %c);"),
    ("layernorm.hlo", "constant.14 = s32[] constant(0)", "constant.14 = s32[] constant(1)"),
    ("layernorm.hlo", "constant.14 = s32[] constant(0)", "constant.14 = s32[] constant(3)"),
    *(("layernorm.hlo", "constant.10 = f32[] constant(16)", f"constant.10 = f32[] constant({count})") for count in ("15.6", "15.4", "14.6", "14.4", "17")),
    ("attention.relay", "nn.batch_matmul(%2, %v", "%3 = multiply(%2, tanh(%1));\n  nn.batch_matmul(%3, %v"),
    ("layernorm.hlo", "rsqrt(add.5)", "rsqrt(jit__var_.1)"),
]


def line(one: Composite) -> str:
    """A composite with the names of its nodes."""
    text = f"{one.article} {one.what}: {one.result.op.name} of {' '.join(f'{node.op.name}:{node.name}' for node in one.nodes)}"
    if one.odd is None:
        return text
    others = "".join(f"; {node.name} {says}" for node, says in one.odd.others)
    return f"{text}\n    {'wrong' if one.odd.wrong else 'odd'} at {one.odd.node.name}: {one.odd.says} | {one.odd.help}{others}"


def test_composites(golden: Callable[[str, str], None]) -> None:
    lines: list[str] = []
    plain = [(f"{name}.{suffix}", "", "") for name in FOUND for suffix in FORMATS]
    for name, before, after in [*plain, *((row[0], row[1], row[2]) for row in ODD), *OTHER, *VARIANTS]:
        graph = primitives(name, before=before, after=after) if before else primitives(name)
        lines.append(f"== {name} {before!r} -> {after!r}" if before else f"== {name}")
        lines += [line(composite) for row in RECOGNISERS for composite in found(graph, row.recognise)]
    golden("composites.txt", "\n".join(lines) + "\n")
