"""Odd output code, IR and FX listings are findings, and reading them takes linear time."""
from __future__ import annotations

from time import process_time

import pytest

import irscope
from irscope.formats.inductor import read
from irscope.formats.inductor.dependencies import parse_dependencies
from irscope.formats.inductor.kernels import _PARAMETER
from irscope.formats.inductor.provenance import Provenance
from irscope.formats.inductor.recorded_kernels import recorded_kernels
from irscope.formats.inductor.scheduler import HEADER, SchedulerNode
from irscope.formats.inductor.wrapper import read_code
from irscope.graph import Reading
from irscope.source import SourceText

HEAD = "# AOT ID: ['0_forward']\nasync_compile = AsyncCompile()\n"
CALL = "def call(args):\n    return (b,)\n"
LISTING = "graph():\n    %x : [num_users=1] = placeholder[target=x]\n"
IR = """op0: SchedulerNode(ComputedBuffer)
op0.writes = []
op0.unmet_dependencies = []
op0.met_dependencies = []
op0.outputs = [
    buf0: ComputedBuffer
    buf0.layout = FixedLayout(DEVICE, torch.float32, size=[64], stride=[1])
]
op0.sizes = ([64], [])
class op0_loop_body:
    var_ranges = {RANGES}
    def body(self, ops):
        t = ops.tanh(a)
        return t
"""


def reading(text: str) -> Reading:
    return read(SourceText("x.py", text))


def ir(device: str = "'cpu'", ranges: str = "p0: 64") -> str:
    return IR.replace("DEVICE", device).replace("RANGES", ranges)


def test_a_lone_carriage_return_ends_no_line() -> None:
    assert not reading(HEAD + "x = 1\r" * 50 + CALL).ok


def test_a_giant_number_is_no_device() -> None:
    giant = "0x" + "f" * 5000
    assert reading(HEAD + CALL + f"def c():\n    a = rand_strided((1,), (1,), device={giant})\n").ok
    assert reading(ir(device=giant)).modules


def test_loops_of_too_many_iterations_are_refused() -> None:
    found = reading(ir(ranges=", ".join(f"p{i}: {10 ** 17}" for i in range(30))))
    assert not found.ok
    assert "2**256" in found.findings[0].message


@pytest.mark.parametrize("body", ["    x = y['q']\n" * 6000, "#\n" * 20_000 + "    " + ";".join(["k.run(b)"] * 5000) + "\n"])
def test_output_code_is_read_in_linear_time(body: str) -> None:
    begin = process_time()
    reading(HEAD + "def call(args):\n" + body + "    return (b,)\n")
    assert process_time() - begin < 5


def test_the_parts_of_a_buffer_are_read_once_per_call() -> None:
    views = "".join(f"    v{i} = reinterpret_tensor(v{i - 1}, (4,), (1,), 0)\n" for i in range(1, 62))
    body = "    v0 = args[0]\n" + views + "    w = reinterpret_tensor(v60, (4,), (1,), 0)\n" + "    torch.ops.x(out=v61)\n" * 500
    begin = process_time()
    assert reading(HEAD + "def call(args):\n" + body + "    torch.ops.y(" + "w," * 5000 + ")\n    return (v0,)\n").ok
    assert process_time() - begin < 5


def test_patterns_take_linear_time() -> None:
    begin = process_time()
    assert HEADER.match("x: " + "Fused" * 12_000) is None
    assert _PARAMETER.search("a" * 60_000) is None
    assert process_time() - begin < 2


def test_the_header_of_a_fused_node() -> None:
    for kind in ("SchedulerNode", "FusedSchedulerNode", "ForeachKernelSchedulerNode", "FusedMixOrderReductions"):
        found = HEADER.match(f"op0: {kind}(A,B)")
        assert found is not None
        assert found[2] == kind
    assert HEADER.match("op0: Other(A)") is None


@pytest.mark.parametrize("line", [
    "%g : [num_users=1] = call_function[target=torch.ops.aten.gelu.default](args = (%x, (1.2.3j)), kwargs = {})",
    "%g : " + "[] = a[target=](" * 3000 + "x",
    "%g : [num_users=1] = call_function[target=a](" + ", kwargs = {" * 7000])
def test_a_broken_line_of_a_listing_is_a_finding(line: str) -> None:
    begin = process_time()
    assert not irscope.load(LISTING + f"    {line}\n    return (g,)\n", format="export").ok
    assert process_time() - begin < 5


def test_nodes_without_a_call_are_placed_in_linear_time() -> None:
    code = read_code(SourceText("x.py", HEAD + "def call(args):\n" + "    torch.ops.x(b)\n" * 2000 + "    k.run(c)\n    return (b,)\n"), [])
    assert code is not None
    nodes = [SchedulerNode(f"op{i}", "SchedulerNode", ("ComputedBuffer",), 0, unmet=parse_dependencies("StarDep('c')")) for i in range(2000)]
    begin = process_time()
    kernels = recorded_kernels(nodes, code, Provenance())
    assert process_time() - begin < 2
    assert len(kernels[2000].ops) == 2000
