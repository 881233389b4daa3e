"""MEM005: tensors saved for the backward pass are most of what a training step keeps in memory."""

from __future__ import annotations

from irscope.formats.inductor.attributes import OutputCodeModule
from irscope.formats.inductor.dialect import INDUCTOR
from irscope.graph import Node, bytes_of
from irscope.lint import Context, Findings, Fix, Fixture, Rule, human_bytes
from irscope.source import Note, Severity

WORTH_BYTES = 1 << 20
"""Less than this is never worth recomputing."""
SHARE = 0.5
LISTED = 3


def _code(saved: str, size: str, aot: str = "0_backward") -> str:
    return f"""
        # AOT ID: ['{aot}']
        async_compile = AsyncCompile()
        cpp_fused_0 = async_compile.cpp_pybinding(['const float*', 'float*'], r'''extern "C" void kernel()''')

        def call(args):
            primals_1, {saved}, tangents_1 = args
            buf0 = empty_strided_cpu((8, 8), (8, 1), torch.float32)
            cpp_fused_0({saved}, buf0)
            return (buf0, )

        def get_args():
            primals_1 = rand_strided((8, 8), (8, 1), device='cpu', dtype=torch.float32)
            {saved} = rand_strided(({size}, 1024), (1024, 1), device='cpu', dtype=torch.float32)
            tangents_1 = rand_strided((8, 8), (8, 1), device='cpu', dtype=torch.float32)
    """


class SavedTensorsDominate(Rule):
    """Tensors saved for the backward pass dominate the memory of a training step.

    ## What it does
    Looks at the inputs of a backward graph: what the forward graph saved, without inputs and parameters, which live anyway. Reports them
    where they are more than a megabyte, and more than half of all inputs of the backward graph.

    ## Why is this bad?
    They live from the forward to the backward pass, all layers at once, and limit the batch.

    ## Use instead
    `torch.utils.checkpoint` around a block, or `torch._functorch.config.activation_memory_budget` below 1, which lets the partitioner
    recompute; bfloat16 activations (`torch.autocast`) halve them.

    ## Known false positives
    A model that has memory to spare.
    """

    code, name, severity = "MEM005", "saved-tensors-dominate", Severity.INFO
    formats = ("inductor",)
    fix = Fix.HINT
    timed = False
    dialect = INDUCTOR
    bad = (Fixture.inductor(_code("addmm", "1024"), "addmm"), Fixture.inductor(_code("relu", "512"), "relu"))
    good = (Fixture.inductor(_code("addmm", "8")), Fixture.inductor(_code("addmm", "1024", "0_forward")))

    def check(self, context: Context) -> Findings:
        if not OutputCodeModule.of(context.module).aot_id.endswith("_backward"):
            return
        params = context.module.main().params
        saved = sorted((p for p in params if not p.name.startswith(("primals", "tangents"))), key=_bytes, reverse=True)
        total, kept = sum(map(_bytes, params)), sum(map(_bytes, saved))
        if kept < WORTH_BYTES or kept < SHARE * total:
            return
        largest = tuple(Note(f"%{p.name} has {human_bytes(_bytes(p))}", p.loc) for p in saved[1:LISTED])
        yield self.finding(
            context, saved[0],
            f"{len(saved)} tensors are saved for the backward pass: {human_bytes(kept)} of the {human_bytes(total)} that it takes, "
            f"%{saved[0].name} {human_bytes(_bytes(saved[0]))} of them",
            notes=largest, help="torch.utils.checkpoint around a block, or torch._functorch.config.activation_memory_budget below 1")


def _bytes(node: Node) -> int:
    return bytes_of(node.type)
