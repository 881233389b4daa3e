"""XLA's tests of GemmFusion: which version of the pass they run, and what they say of its analysis (for ``xla_fusion_tests.py``)."""
from __future__ import annotations

import re

from benchmarks.xla_gemm.search import searched
from irscope.fusion.xla.gemm.grow import LIMIT
from irscope.fusion.xla.gemm.orders import Stride
from irscope.fusion.xla.gemm.products import SMALL, GemmSettings
from irscope.fusion.xla.gemm.rules import No
from irscope.fusion.xla.gemm.steps import SteppedScope, operand_steps
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.ops import hlo

SCOPES = {"LHS": 0, "RHS": 1}
SPEC = re.compile(r"analysis\.IterSpec\(TritonFusionAnalysis::Scope::(LHS|RHS), computation->parameter_instruction\((\d+)\), (\d+)\), "
                  r"ElementsAre\((.*)\)\)", re.DOTALL)
FIELDS = re.compile(r"FieldsAre\((.*?ElementsAre\([^)]*\).*?)\)")
PARAMETERS = re.compile(r"EXPECT_EQ\(analysis\.ScopeParameters\(TritonFusionAnalysis::Scope::(LHS|RHS)\)\.size\(\), (\d+)\)")
OPCODE = re.compile(r"EXPECT_EQ\(module->entry_computation\(\)->root_instruction\(\)->opcode\(\), HloOpcode::k(\w+)\)")
KIND = re.compile(r"EXPECT_EQ\(module->entry_computation\(\)->root_instruction\(\)->fusion_kind\(\), HloInstruction::FusionKind::kCustom\)")
OPERANDS = re.compile(r"EXPECT_LE\(module->entry_computation\(\)->root_instruction\(\)->operand_count\(\), "
                      r"TritonFusionAnalysis::kMaxParameterPerDotOperand ([*+]) (\d+)\)")


def settings_of(test: str) -> list[GemmSettings]:
    """The options that a test's fixture sets, once for each version of the pass that it runs. Its name is that of the fixture, a dot, and
    its own; the fixture's base turns off kernels of bare products and takes products of any size."""
    fixture = test.split(".")[0]
    if fixture == "SmallDotGemmFusionTest":
        return [GemmSettings(any_product=False, small=SMALL)]
    first, second = GemmSettings(any_product=False, small=0), GemmSettings(any_product=False, small=0, search=searched)
    return {"GemmFusionTestVersioned": [first, second], "GemmFusionTestV2": [second]}.get(fixture, [first])


def told(assertion: str, computations: list[Computation]) -> str | None:
    """What is wrong by an assertion on the analysis of a kernel, or on the root; None where it is of another kind."""
    if found := SPEC.search(assertion):
        dot = _dot(computations[0])
        scope = operand_steps(dot, SCOPES[found[1]])
        if isinstance(scope, No):
            return scope.words
        wanted = [_numbers(fields) for fields in FIELDS.findall(found[4])]
        mine = [[s.stride, s.count, s.start, s.sliced, *s.parts, 1] for s in _stretches(scope, int(found[2]), int(found[3]))]
        return "" if mine == wanted else f"steps {mine}, not {wanted}"
    root = computations[-1].root
    if found := PARAMETERS.search(assertion):
        scope = operand_steps(_dot(computations[-1]), SCOPES[found[1]])
        is_so = isinstance(scope, SteppedScope) and len(scope.parameters) == int(found[2])
        return "" if is_so else f"not {found[2]} parameters of {found[1]}"
    if found := OPCODE.search(assertion):
        return "" if root.op.name == found[1].lower() else f"the root is a {root.op.name}"
    if KIND.search(assertion):
        return "" if root.kind == "kCustom" else "the root is no Triton kernel"
    if found := OPERANDS.search(assertion):
        most = LIMIT * int(found[2]) if found[1] == "*" else LIMIT + int(found[2])
        return "" if len(root.operands) <= most else f"{len(root.operands)} operands > {most}"
    return None


def _dot(computation: Computation) -> Instruction:
    """The product of a computation, or of the kernel that it calls."""
    bodies = [computation, *(i.body for i in computation.instructions if i.body is not None)]
    return next(i for body in bodies for i in body.instructions if i.op is hlo.dot)


def _stretches(scope: SteppedScope, parameter: int, dimension: int) -> list[Stride]:
    read = [p for p in scope.strides if p.op is hlo.parameter]
    assert parameter == 0 and len(read) == 1
    return list(scope.strides[read[0]].get(dimension, ()))


def _numbers(fields: str) -> list[int]:
    return [int(n) for n in re.findall(r"-?\d+", re.sub(r"/\*.*?\*/", "", fields))]

