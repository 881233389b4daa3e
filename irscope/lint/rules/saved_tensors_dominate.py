"""MEM005: tensors saved for the backward pass are most of what a training step keeps in memory."""

from __future__ import annotations

from irscope.formats.inductor.attributes import OutputCodeModule
from irscope.graph import Module, Node, bytes_of
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity, human_bytes, plural

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


def _graph(saved: str, rows: int) -> str:
    return f"""
        class GraphModule(torch.nn.Module):
            def forward(self, primals_1: "f32[8, 8]", {saved}: "f32[{rows}, 1024]", tangents_1: "f32[8, {rows}]"):
                out: "f32[8, 1024]" = torch.ops.aten.mm.default(tangents_1, {saved})
                return (out,)
    """


class SavedTensorsDominate(Rule):
    """Tensors saved for the backward pass dominate the memory of a training step.

    ## What it does
    Looks at the inputs of a backward graph, in output code or as FX prints it (`TORCH_LOGS=aot_graphs`): what the forward graph saved,
    without inputs and parameters, which live anyway. Reports them where they are more than a megabyte, and more than half of all inputs of
    the backward graph.

    ## Why is this bad?
    They live from the forward to the backward pass, all layers at once, and limit the batch.

    ## Use instead
    `torch.utils.checkpoint` around a block, or `torch._functorch.config.activation_memory_budget` below 1, which lets the partitioner
    recompute; bfloat16 activations (`torch.autocast`) halve them.

    ## Known false positives
    A model that has memory to spare.
    """

    code, name, severity = "MEM005", "saved-tensors-dominate", Severity.INFO
    timed = False
    bad = (
        Fixture.inductor(_code("addmm", "1024"), "addmm"),
        Fixture.inductor(_code("relu", "512"), "relu"),
        Fixture.fx(_graph("tanh", 1024), "tanh"),
        Fixture.fx(_graph("gelu", 2048), "gelu"),
    )
    good = (
        Fixture.inductor(_code("addmm", "8")),
        Fixture.inductor(_code("addmm", "1024", "0_forward")),
        Fixture.fx(_graph("tanh", 8)),
        Fixture.fx(_graph("primals_2", 1024)),
    )

    def check(self, context: Context) -> Findings:
        if not _is_backward(context.module):
            return
        params = context.module.main().params
        saved = sorted((p for p in params if not p.name.startswith(("primals", "tangents"))), key=_bytes, reverse=True)
        total, kept = sum(map(_bytes, params)), sum(map(_bytes, saved))
        if kept < WORTH_BYTES or kept < SHARE * total:
            return
        largest = tuple(Note(f"%{p.name} has {human_bytes(_bytes(p))}", p.loc) for p in saved[1:LISTED])
        yield self.finding(
            context, saved[0],
            f"{plural(len(saved), 'tensor')} saved for the backward pass: {human_bytes(kept)} of the {human_bytes(total)} that it takes, "
            f"%{saved[0].name} {human_bytes(_bytes(saved[0]))} of them",
            notes=largest, help="torch.utils.checkpoint around a block, or torch._functorch.config.activation_memory_budget below 1")


def _is_backward(module: Module) -> bool:
    """Whether a graph is the backward half of a program that AOTAutograd cut in two: output code says so, FX graphs name the gradients."""
    compiled = OutputCodeModule.of(module).aot_id
    return compiled.endswith("_backward") if compiled else any(p.name.startswith("tangents") for p in module.main().params)


def _bytes(node: Node) -> int:
    return bytes_of(node.type)
