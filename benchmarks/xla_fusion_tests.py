"""How often irscope decides as XLA's own tests of its fusion passes want: ``python -m benchmarks.xla_fusion_tests CORPUS``.

CORPUS has a folder for each case, called FAMILY__TEST, with ``before.hlo`` and ``expected.json``: whether the pass changed the module
(``pass_changed_module``), what functions answered (``predicate_results``), the test's assertions and FileCheck lines, verbatim.
(``xla_test_cases`` of the ground truth that was handed to the project; Apache-2.0, read in place.)

Three things are judged, where the test states them: whether the module changed; what assertions say of the result that can be read
mechanically (matchers of the root, of what a fusion computes, its kind, counts of opcodes); FileCheck lines, against the module
printed as XLA prints it. A case agrees when all of them do. What is not read (the verifier, tiles, shardings) is counted.
"""
from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.xla_tests import gemm, older
from benchmarks.xla_tests.any_rules import AnyRules
from benchmarks.xla_tests.matchers import fits, opcode, parsed
from benchmarks.xla_tests.predicates import answer, is_answered
from benchmarks.xla_tests.printing import Checked, Metadata, check, no_metadata, printed
from irscope.api import load
from irscope.fusion.xla import cpu, gpu, softmax
from irscope.fusion.xla.copying import fuse_copies
from irscope.fusion.xla.gemm.products import GemmSettings, rewrite
from irscope.fusion.xla.gpu_cost import CostModel
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.gpu_outputs import has_outputs, join_kernels, kind
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.stage import computations
from irscope.fusion.xla_gpu import marked
from irscope.graph import Module
from irscope.ops import hlo

DEVICE = DEVICES["h100"]
GEMM = "gpu-gemm"


@dataclass
class Result:
    """The module behind a pass: its computations, the entry last, and whether anything was done."""

    computations: list[Computation]
    changed: bool
    told: dict[str, Instruction] = field(default_factory=dict)
    decisions: list[tuple[str, str]] = field(default_factory=list)
    metadata: Metadata = no_metadata

    @property
    def root(self) -> Instruction:
        return self.computations[-1].root

    def fusions(self) -> list[Instruction]:
        return [i for c in self.computations for i in c.post_order() if i.op is hlo.fusion]


def by_cpu(module: Module) -> Result:
    made = [Computation.of(graph) for graph in computations(module)]
    done = [cpu.run(computation).fused for computation in made]
    return Result(made, any(done))


def by_any(module: Module) -> Result:
    """The pass that compilers derive theirs from, by its own rules."""
    made = [Computation.of(graph) for graph in computations(module)]
    done = [cpu.run(computation, rules=AnyRules(computation)).fused for computation in made]
    return Result(made, any(done))


def by_gpu(module: Module) -> Result:
    made = [marked(module, Computation.of(graph)) for graph in computations(module)]
    done = [pair for computation in made for pair in gpu.run(computation, DEVICE).fused]
    return Result(made, bool(done), decisions=done)


def by_joining(module: Module) -> Result:
    made = [marked(module, Computation.of(graph)) for graph in computations(module)]
    done = [join_kernels(computation, CostModel(DEVICE)) for computation in made]
    return Result(made, any(done))


def by_softmax(module: Module) -> Result:
    """The rewriter of normalisations, without its cost model, as the tests run it."""
    made = [marked(module, Computation.of(graph)) for graph in computations(module)]
    done = [softmax.rewrite(computation, DEVICE) for computation in made]
    return Result(made, any(done))


def by_products(module: Module, settings: GemmSettings) -> Result:
    """The rewriter of matrix products, on the device that its tests run it for."""
    made = [marked(module, Computation.of(graph)) for graph in computations(module)]
    done = [product for computation in made for product in rewrite(computation, DEVICES["a100"], settings) if product.is_made]
    return Result(made, bool(done), metadata=lambda node: str(module.raw(node).get("metadata", "")))


def by_copying(module: Module) -> Result:
    made = [marked(module, Computation.of(graph)) for graph in computations(module)]
    return Result(made, bool(fuse_copies(made[-1], DEVICE)))


PASSES: dict[str, Callable[[Module], Result]] = {
    "cpu-instruction": by_cpu, "cpu-multi-output": by_cpu, "generic-instruction": by_any, "gpu-priority": by_gpu,
    "gpu-multi-output": by_joining, "gpu-copy": by_copying, "gpu-softmax": by_softmax}

RUN = re.compile(r"^\s*(EXPECT|ASSERT)_(TRUE|FALSE)\(.*\.Run\(|^\s*(?:EXPECT|ASSERT)_THAT\(.*\.Run\(.*IsOkAndHolds\((true|false)\)",
                 re.DOTALL)
SETUP = re.compile(r"_ASSIGN\(.*(?:ParseAndReturn\w*Module\(|::Execute\(|\.Run\()", re.DOTALL)
"""What an assertion reads a module with, or keeps the answer of."""
MATCH = re.compile(r"^\s*(?:EXPECT|ASSERT)_THAT\(\s*([^,]+?),\s*(?:GmockMatch\(\s*)?\(?((?:op|m)::.*)$", re.DOTALL)
KIND = re.compile(r"EXPECT_EQ\((\w+)->fusion_kind\(\), HloInstruction::FusionKind::(k\w+)\)")
TRITON = re.compile(r"(?:EXPECT|ASSERT)_TRUE\(IsGenericTritonFusion\(\*(\w+)\)\)")
SEVERAL = re.compile(r"(?:EXPECT|ASSERT)_TRUE\((\w+)->IsMultiOutputFusion\(\)\)")
COUNT = re.compile(r"EXPECT_EQ\(Count\(\*module, HloOpcode::k(\w+)\), (\d+)\)")
OUTPUTS = re.compile(r"EXPECT_EQ\((\d+), (?:CountMultiOutputFusions\(.*|multi_output_fusion_count)\)")
HELD = re.compile(r"EXPECT_EQ\((\d+), operand(\d)->fused_instruction_count\(\)\)")
KINDS = re.compile(r"EXPECT_EQ\((input|loop)_fusion_count, (\d+)\)|EXPECT_EQ\(.*->instructions\(\), IsFusion\), (\d+)\)")
SAME = re.compile(r"EXPECT_(EQ|NE)\((\w+), (\w+)\)")
PRE_AMPERE = replace(DEVICE, capability="sm_70")
"""A device that ``kVolta, 0`` stands for."""
DECISIONS = re.compile(r'HasSubstr\(\s*"([^"]+)"')
MATCHED = re.compile(r"EXPECT_EQ\((un)?matched, (\d+)\)")


def subject(text: str, result: Result) -> Instruction | None:
    """The instruction that an assertion speaks of."""
    whole = re.sub(r"\s+", "", text)
    for end in ("->fused_expression_root()", "->fused_instructions_computation()->root_instruction()"):
        if whole.endswith(end):
            inner = subject(whole.removesuffix(end), result)
            return inner.body.root if inner is not None and inner.body is not None else None
    operand = re.fullmatch(r"(.+)->operand\((\d+)\)", whole)
    if operand:
        outer = subject(operand[1], result)
        return outer.operands[int(operand[2])] if outer is not None else None
    if whole in result.told:
        return result.told[whole]
    if whole in ("root", "entry_root", "module->entry_computation()->root_instruction()"):
        return result.root
    if whole == "called_root":
        return result.computations[0].root
    several = [f for f in result.fusions() if has_outputs(f)] or result.fusions()
    return several[0] if whole in ("fusion", "fused_convert_fusion") and several else None


def judged(assertion: str, result: Result) -> str | None:
    """What is wrong by one assertion: empty where nothing is, None where it is not read."""
    if found := MATCH.match(assertion):
        instruction = subject(found[1], result)
        if instruction is None:
            return None
        return "" if fits(instruction, parsed(found[2]), result.told) else f"{found[1]} is {shown(instruction)}, not {found[2][:90]}"
    if found := KIND.search(assertion):
        instruction = subject(found[1], result)
        if instruction is None:
            return None
        return "" if kind_of(instruction) == found[2] else f"{found[1]} is {kind_of(instruction)}, not {found[2]}"
    if found := TRITON.search(assertion):
        instruction = subject(found[1], result)
        return None if instruction is None else "" if instruction.kind == "triton" else f"{found[1]} is no Triton kernel"
    if found := SEVERAL.search(assertion):
        instruction = subject(found[1], result)
        return None if instruction is None else "" if has_outputs(instruction) else f"{found[1]} has one result"
    if found := COUNT.search(assertion):
        bodies = [*result.computations, *(f.body for f in result.fusions() if f.body is not None)]
        count = sum(i.op.name == opcode(found[1]) for c in bodies for i in c.instructions)
        return "" if count == int(found[2]) else f"{count} {opcode(found[1])}, not {found[2]}"
    if found := OUTPUTS.search(assertion):
        count = sum(map(has_outputs, result.fusions()))
        return "" if count == int(found[1]) else f"{count} kernels of several results, not {found[1]}"
    if found := HELD.search(assertion):
        body = result.root.operands[int(found[2])].body
        return None if body is None else "" if len(body.instructions) == int(found[1]) else f"{len(body.instructions)}, not {found[1]}"
    if found := KINDS.search(assertion):
        wanted, limit = "k" + (found[1] or "").capitalize(), int(found[2] or found[3])
        count = sum(f.kind.startswith(wanted) for f in result.fusions() if f in result.computations[-1].instructions)
        return "" if count == limit else f"{count} fusions {wanted}, not {limit}"
    if found := SAME.search(assertion):
        both = result.told.get(found[2]), result.told.get(found[3])
        return None if None in both else "" if (both[0] is both[1]) == (found[1] == "EQ") else f"{found[2]} and {found[3]}"
    return None


def kind_of(fusion: Instruction) -> str:
    return "kCustom" if fusion.kind == "triton" else kind(fusion)


def shown(instruction: Instruction) -> str:
    return f"{instruction.op.name}({', '.join(o.op.name for o in instruction.operands)})"


def is_run(assertion: str) -> bool:
    """Whether an assertion runs the pass: the verifier and the removal of dead code are run too."""
    return RUN.search(assertion) is not None and older.FUSED_BEFORE not in assertion \
        and not re.search(r"verifier\(\)|HloDCE\(\)|TupleSimplifier\(\)", assertion)


def runs(assertions: list[str]) -> list[list[str]]:
    """The assertions of each run of the pass, beginning with the one that runs it."""
    made: list[list[str]] = [[]]
    for assertion in assertions:
        if is_run(assertion) and any(map(is_run, made[-1])):
            made.append([])
        made[-1].append(assertion)
    return made


@dataclass
class Verdict:
    """What was judged of a case, what is wrong, how many assertions were not read, and why the case is not judged at all."""

    stated: int = 0
    wrong: list[str] = field(default_factory=list)
    unread: int = 0
    left_out: str = ""


def needs_a_flag(text: str, expected: dict[str, Any]) -> bool:
    """Whether a test wants Triton kernels where the text has none: by default XLA adds to those that there are."""
    wanted = any(TRITON.search(a) for a in expected["assertions"]) or any("kind=kCustom" in line for line in expected["check_lines"])
    return wanted and "__triton" not in text


def is_stated_by_a_run(expected: dict[str, Any]) -> bool:
    """Whether a test runs the pass, and says whether anything changed or what came out."""
    return bool(expected["check_lines"]) or expected["pass_changed_module"] is not None or (expected["predicate_results"] is not None \
        and any("Run(" in a for a in expected["assertions"]))


def by_device(assertions: list[str]) -> list[str]:
    """Of two configurations of one loop the second is that of a B200."""
    first = next((a for a in assertions if "EXPECT_EQ(config," in a), None)
    return [a if a is first else a.replace("EXPECT_EQ(config,", "EXPECT_EQ(config_on_b200,") for a in assertions]


def by_answers(module: Module, assertions: list[str]) -> Verdict:
    """What the rewriter of normalisations answers for each instruction, and whether it refuses a device."""
    verdict = Verdict()
    instructions = Computation.of(computations(module)[-1]).post_order()
    matcher = softmax.DiamondFinder()
    refused = [d.words for d in map(matcher.decide, instructions) if isinstance(d, softmax.NoDiamond)]
    for assertion in assertions:
        wanted = DECISIONS.findall(assertion)
        if "FAILED_PRECONDITION" in assertion:
            verdict.stated += 1
            words = "".join(re.findall(r'"([^"]+)"', assertion))
            if words not in softmax.bails_out(PRE_AMPERE):
                verdict.wrong.append(f"{softmax.bails_out(PRE_AMPERE)!r}, not {words!r}")
        elif wanted:
            verdict.stated += 1
            verdict.wrong += [f"{words!r}, none of {wanted}" for words in refused if not any(one in words for one in wanted)]
        elif counted := MATCHED.search(assertion):
            verdict.stated += 1
            count = len(refused) if counted[1] else len(instructions) - len(refused)
            if count != int(counted[2]):
                verdict.wrong.append(f"{count} {counted[1] or ''}matched, not {counted[2]}")
        else:
            verdict.unread += 1
    return verdict


def judge(folder: Path) -> Verdict:
    family, test = folder.name.split("__")
    expected = json.loads((folder / "expected.json").read_text())
    verdict = Verdict()
    module = load((folder / "before.hlo").read_text()).module()
    if family == GEMM:
        return of_products(module, test, expected)
    if needs_a_flag((folder / "before.hlo").read_text(), expected):
        verdict.left_out = "it wants Triton kernels of a text without any: a flag that is off by default (triton_heroless_priority_fusion)"
        return verdict
    if family == "gpu-fusible":
        for assertion in by_device(expected["assertions"]):
            told = answer(assertion, module, test)
            verdict.stated += told is not None
            verdict.unread += told is None and is_answered(assertion)
            if told:
                verdict.wrong.append(told)
        return verdict
    if family == "gpu-softmax" and expected["pass_changed_module"] is None:
        return by_answers(module, expected["assertions"])
    if not is_stated_by_a_run(expected):
        verdict.left_out = "it runs no pass whose outcome it states"
        return verdict
    if family in older.FAMILIES:
        made, done = older.run(family, module, expected["assertions"])
        result = Result(made, bool(done), decisions=done)
    else:
        result = PASSES[family](module)
    hold_against(result, test, expected, verdict, judged)
    return verdict


def of_products(module: Module, test: str, expected: dict[str, Any]) -> Verdict:
    """A test of GemmFusion, by every version of the pass that it runs: each has to agree."""
    verdict = Verdict()
    if test.startswith("DISABLED_"):
        verdict.left_out = "a test that XLA does not run: it states what the pass did before dynamic slices were turned off in it"
        return verdict
    if not is_stated_by_a_run(expected):
        analysed = [Computation.of(graph) for graph in computations(module)]
        for assertion in expected["assertions"]:
            told = gemm.told(assertion, analysed)
            verdict.stated += told is not None
            verdict.unread += told is None
            verdict.wrong += [told] if told else []
        return verdict
    for settings in gemm.settings_of(expected["test"]):
        result = by_products(module, settings)
        hold_against(result, test, expected, verdict, judged_product)
    return verdict


def judged_product(assertion: str, result: Result) -> str | None:
    """What is wrong by an assertion of a test of GemmFusion."""
    told = gemm.told(assertion, result.computations)
    return judged(assertion, result) if told is None else told


def hold_against(result: Result, test: str, expected: dict[str, Any], verdict: Verdict,
                 judged: Callable[[str, Result], str | None]) -> None:
    """Hold what a pass made against all that a test states; what was found goes into ``verdict``."""
    parts = runs(expected["assertions"])
    number = re.search(r"_(\d)$", test)
    part = parts[int(number[1])] if number and len(parts) > int(number[1]) else parts[0]
    changed = expected["pass_changed_module"]
    if changed == "several-runs":
        run = next((found for a in part if is_run(a) and (found := RUN.search(a))), None)
        changed = None if run is None else "TRUE" in (run[2], str(run[3]).upper())
    elif changed is None and (expected["predicate_results"] or [None])[0] is not None and "fused_something" in " ".join(part):
        changed = expected["predicate_results"][0]
    if changed is not None:
        verdict.stated += 1
        if changed != result.changed:
            pairs = ", ".join(f"{a} into {b}" for a, b in result.decisions[:4])
            verdict.wrong.append(f"fused: {pairs or 'something'}" if result.changed else "nothing is fused")
    if expected["pass_changed_module"] != "several-runs" or changed:
        for assertion in part:
            told = judged(assertion, result)
            verdict.stated += told is not None
            verdict.unread += told is None and RUN.search(assertion) is None and SETUP.search(assertion) is None
            if told:
                verdict.wrong.append(told)
    lines = expected["check_lines"]
    if lines:
        checked: Checked = check(lines, printed(result.computations, kind_of, result.metadata))
        verdict.stated += 1
        if checked.failed:
            verdict.wrong.append(f"FileCheck: {checked.failed}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    args = parser.parse_args()
    families: dict[str, list[Path]] = {}
    for folder in sorted(args.corpus.iterdir()):
        if (folder / "expected.json").is_file():
            families.setdefault(folder.name.split("__")[0], []).append(folder)
    print(f"{'family':28} {'cases':>5} {'stated':>6} {'agree':>5}  not read")
    total = [0, 0, 0]
    told: list[str] = []
    left_out: list[str] = []
    for family in sorted(families, key=lambda f: (f.startswith("legacy"), f)):
        folders = families[family]
        verdicts = {folder: judge(folder) for folder in folders}
        stated = [v for v in verdicts.values() if v.stated]
        agree = sum(not v.wrong for v in stated)
        print(f"{family:28} {len(folders):5} {len(stated):6} {agree:5}  {sum(v.unread for v in verdicts.values())} assertions")
        total = [a + b for a, b in zip(total, (len(folders), len(stated), agree), strict=True)]
        told += [f"{folder.name}: {'; '.join(v.wrong)}" for folder, v in verdicts.items() if v.wrong]
        left_out += [f"{folder.name}: {v.left_out or 'it states nothing that is read'}" for folder, v in verdicts.items() if not v.stated]
    print(f"{'all':28} {total[0]:5} {total[1]:6} {total[2]:5}  {total[2] / max(1, total[1]):.1%}")
    for title, lines in (("differ", told), ("not judged", left_out)):
        print(f"\n{title}:")
        print("\n".join(lines))


if __name__ == "__main__":
    main()
