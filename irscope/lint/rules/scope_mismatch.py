"""MEM004: a value is copied between devices or memory scopes."""

from __future__ import annotations

from irscope.formats.relay.attributes import DeviceCopy
from irscope.graph import Node, TensorType
from irscope.lint import Context, Findings, Fixture, Note, Rule, RuleFinding, Severity, human_bytes, saving
from irscope.ops import hlo
from irscope.ops.sets import relay

COPIES = relay("device_copy annotation.copy")


class ScopeMismatch(Rule):
    """A value is copied to another device or memory scope, or there and back.

    ## What it does
    Finds `device_copy` in Relay, with the bytes that it moves; reports a copy and a copy back with at most elementwise operators between
    them as a pair.

    ## Why is this bad?
    The copy goes over a bus that is ten to a hundred times slower than memory, and neither side computes meanwhile.

    ## Use instead
    Run the operators between two copies on the device of their operands; place whole parts of a model on a device, not single operators.

    ## Known false positives
    A model larger than one device's memory must be split somewhere; the first and last copies transfer the input and the result.
    """

    code, name, severity = "MEM004", "scope-mismatch", Severity.WARNING
    bad = (
        Fixture.relay(
            """
            def @main(%x: Tensor[(256, 1024), float32]) {
              %0 = negative(%x);
              %1 = device_copy(%0, src_virtual_device=meta[VirtualDevice][0], dst_virtual_device=meta[VirtualDevice][1]);
              %2 = nn.relu(%1);
              %3 = device_copy(%2, src_virtual_device=meta[VirtualDevice][1], dst_virtual_device=meta[VirtualDevice][0]);
              %4 = abs(%3);
              %4
            }
        """,
            "3",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(256, 1024), float32]) {
              %0 = negative(%x);
              %1 = device_copy(%0, src_virtual_device=meta[VirtualDevice][0], dst_virtual_device=meta[VirtualDevice][1]);
              %2 = abs(%1);
              %2
            }
        """,
            "1",
        ),
    )
    good = (
        Fixture.relay("""
            def @main(%x: Tensor[(256, 1024), float32]) {
              %0 = device_copy(%x, src_virtual_device=meta[VirtualDevice][0], dst_virtual_device=meta[VirtualDevice][1]);
              %1 = abs(%0);
              %1
            }
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(256, 1024), float32]) {
              %0 = negative(%x);
              %1 = copy(%0);
              %1
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for graph in context.view.array_graphs:
            copies = [node for node in context.view.with_op(COPIES, graph) if node.operands]
            paired = {before for node in copies if (before := _there(node)) is not None}
            for node in copies:
                if node not in paired and node.operands[0].op is not hlo.parameter and node is not graph.root:
                    yield self._finding(context, node, _there(node))

    def _finding(self, context: Context, node: Node, before: Node | None) -> RuleFinding:
        size = node.type.bytes if isinstance(node.type, TensorType) and node.type.is_static else 0
        notes = () if before is None else (Note(f"%{before.name} moved it there", before.loc),)
        what = "is copied back to its first device" if before is not None else "is copied to another device between two operators"
        return self.finding(
            context, node,
            f"%{node.operands[0].name} {what} ({human_bytes(size)})",
            notes=notes,
            help="run the operators between on the device of their operands" if before is not None else "run both operators on one device",
            saves=saving(bytes=float(2 * size * (2 if before is not None else 1)), kernels=2.0 if before is not None else 1.0),
        )


def _there(node: Node) -> Node | None:
    """The copy that moved the value to this copy's source device, found through elementwise operators."""
    at = node.operands[0]
    while at.op not in COPIES:
        if len(at.operands) != 1:
            return None
        at = at.operands[0]
    source = DeviceCopy.of(at).src_virtual_device
    return at if source is not None and source == DeviceCopy.of(node).dst_virtual_device else None
