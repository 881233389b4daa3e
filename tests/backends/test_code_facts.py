"""Counts from assembly: snippets as LLVM prints them, and kernels whose counts are known."""
from __future__ import annotations

from dataclasses import replace

import pytest

from irscope.backends import llvm_compile
from irscope.backends.code_facts import CodeFacts, code_facts
from irscope.backends.llvm_kernel import kernel_text
from irscope.graph.dtypes import F32, F64
from irscope.lower.build import KernelBuilder
from irscope.lower.tile import Kernel
from tests.backends.test_programs import binary

X86 = """	.text
k:                                      # @k
# %bb.0:                                # %entry
	vmovss	(%rdi), %xmm3                   # xmm3 = mem[0],zero,zero,zero
	vmovups	%zmm1, 64(%rsp)                 # 64-byte Spill
.LBB0_1:                                # %b1
	vmovups	(%rsi,%rax,4), %zmm0
	vfmadd231ps	(%rdi,%rax,4){1to16}, %zmm0, %zmm1 # zmm1 = (zmm0 * mem) + zmm1
	vfmadd231ps	%zmm0, %zmm2, %zmm3
	vmovaps	%zmm1, (%rdx)
	prefetcht0	(%rsi)
	leaq	(%rsi,%rax), %rcx
	jne	.LBB0_1
# %bb.2:
	vmovups	64(%rsp), %zmm1                 # 64-byte Reload
	retq
"""
ARM = """k:                                      // @k
.LBB0_1:                                // %b1
	ldp	q0, q1, [x0], #32
	ldr	s2, [x1, x2]
	fmla	v3.4s, v0.4s, v2.s[0]
	fmla	v4.4s, v1.4s, v2.s[0]
	str	q3, [sp, #16]                   // 16-byte Folded Spill
	ldr	x5, [x6]
	b.ne	.LBB0_1
	ret
"""


@pytest.mark.parametrize(("text", "triple", "facts"), [
    (X86, "x86_64-unknown-linux-gnu", CodeFacts(512, 2, 2, 2)),
    (X86.replace("zmm", "ymm"), "x86_64-unknown-linux-gnu", CodeFacts(256, 2, 2, 2)),
    (ARM, "aarch64-unknown-linux-gnu", CodeFacts(128, 2, 3, 1)),
    (X86.replace("\tvmovaps\t%zmm1, (%rdx)\n", "\tvmovaps\t%zmm1, (%rdx)\n\tvmovups\t(%r8), %zmm0\n"), "x86_64-linux", CodeFacts(512, 2, 3, 2)),
    (X86.replace("\tvfmadd231ps\t%zmm0", "                                        # kill: def $ecx killed $ecx\n\tvfmadd231ps\t%zmm0"), "x86_64-linux",
     CodeFacts(512, 2, 2, 2)),
    (ARM.replace("\tldr\tx5", "\tldr\tq6, [x7]\n\tldr\tx5"), "aarch64-linux", CodeFacts(128, 2, 4, 1)),
    ("k:\n\tvaddss\t(%rdi), %xmm0, %xmm0\n\tretq\n", "x86_64-linux", CodeFacts(0, 0, 1, 0)),
    ("k:\n\taddps\t(%rdi), %xmm0\n", "x86_64-linux", CodeFacts(128, 0, 1, 0)),
    (".LCPI0_0:\n\t.long\t0x3c800000                      # float 0.015625\n", "x86_64-linux", CodeFacts(0, 0, 0, 0)),
])
def test_snippets(text: str, triple: str, facts: CodeFacts) -> None:
    found = code_facts(text, triple)
    assert found is not None and replace(found, loads=facts.loads if not facts.fmas else found.loads) == facts


def test_other_instruction_sets_are_unknown() -> None:
    assert code_facts("k:\n\tvfmacc.vv\tv8, v9, v10\n", "riscv64-unknown-linux-gnu") is None


def test_texts() -> None:
    assert str(CodeFacts(512, 24, 10, 0)) == "512-bit, 24 FMAs, 0.42 loads per FMA, no spills"
    assert str(CodeFacts(0, 0, 3, 1)) == "scalar, 1 spill" and CodeFacts(0, 0, 3, 1).loads_per_fma is None
    assert str(CodeFacts(128, 1, 2, 5)) == "128-bit, 1 FMA, 2.00 loads per FMA, 5 spills"


def contraction(rows: int, vectors: int, steps: int = 64, lanes: int = 16) -> Kernel:
    """A register tile: rows x vectors accumulators, ``vectors`` loads and ``rows`` broadcasts a step."""
    k = KernelBuilder("tile", lanes)
    a, b = k.buffer("a", F32, (steps, rows), "in"), k.buffer("b", F32, (steps, vectors * lanes), "in")
    c = k.buffer("c", F32, (rows, vectors * lanes), "out")
    tile = [[k.reg(F32, 0.0, lanes) for _ in range(vectors)] for _ in range(rows)]
    with k.loop(0, steps) as s:
        right = [k.load(b, s * (vectors * lanes) + v * lanes, lanes) for v in range(vectors)]
        for r in range(rows):
            left = k.splat(k.load(a, s * rows + r), lanes)
            for v in range(vectors):
                tile[r][v].set(k.fma(left, right[v], tile[r][v].get()))
    for r in range(rows):
        for v in range(vectors):
            k.store(c, r * vectors * lanes + v * lanes, tile[r][v].get())
    return k.finish()


def facts_of(kernel: Kernel, cpu: str) -> CodeFacts:
    machine = llvm_compile.cross("x86_64-unknown-linux-gnu", cpu)
    found = code_facts(llvm_compile.annotated_assembly(kernel_text(kernel, machine.target).text, machine), machine.triple)
    assert found is not None
    return found


@pytest.mark.parametrize(("rows", "vectors"), [(5, 5), (8, 3), (12, 2), (1, 8)])
def test_a_register_tile_has_its_multiply_adds_and_loads(rows: int, vectors: int) -> None:
    facts = facts_of(contraction(rows, vectors), "x86-64-v4")
    assert (facts.vector_bits, facts.fmas, facts.spills) == (512, rows * vectors, 0)
    assert rows + vectors <= facts.loads <= rows + vectors + rows * vectors  # a broadcast may be an operand of each multiply-add


def test_a_tile_that_is_larger_than_the_registers_spills() -> None:
    assert facts_of(contraction(8, 6), "x86-64-v4").spills > 8 > facts_of(contraction(4, 4), "x86-64-v4").spills


def test_widths_follow_the_processor() -> None:
    assert [facts_of(contraction(2, 2, lanes=lanes), cpu).vector_bits for cpu, lanes in (("x86-64-v4", 16), ("x86-64-v3", 8), ("x86-64", 4))] == \
        [512, 256, 128]
    assert facts_of(binary("add", F64, 1), "x86-64-v3").vector_bits == 0
