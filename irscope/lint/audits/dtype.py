"""The dtypes of operators, and the cost of the casts between them."""

from __future__ import annotations

from collections import Counter, defaultdict

from irscope.analysis.calls import is_fusion
from irscope.analysis.cost import is_free
from irscope.analysis.survey import Survey
from irscope.graph import Module, TensorType
from irscope.lint.audits.table import Table
from irscope.lint.islands import CASTS
from irscope.lint.savings import human_bytes


def audit(module: Module) -> Table:
    """One row per dtype: operators by class, bytes of their results; then one row per pair of dtypes with casts between them."""
    survey = Survey(module)
    classes: dict[str, Counter[str]] = defaultdict(Counter)
    written: Counter[str] = Counter()
    casts: Counter[tuple[str, str]] = Counter()
    cast_bytes: Counter[tuple[str, str]] = Counter()
    fused: Counter[tuple[str, str]] = Counter()
    for graph in survey.calls.order:
        if graph in survey.calls.scalar:
            continue
        times, alone = survey.calls.times[graph], survey.calls.runs_alone(graph)
        for node in graph.nodes:
            if is_fusion(node) and alone:
                for leaf in node.type.leaves():
                    if isinstance(leaf, TensorType):
                        written[leaf.dtype.name] += round(leaf.bytes * times)
            if not isinstance(node.type, TensorType) or is_free(node) or is_fusion(node):
                continue
            dtype = node.type.dtype.name
            source = node.operands[0].type if node.operands else None
            if node.op in CASTS and isinstance(source, TensorType):
                pair = source.dtype.name, dtype
                casts[pair] += 1
                fused[pair] += not alone
                cast_bytes[pair] += round((source.bytes + node.type.bytes) * times) if alone else 0
                continue
            classes[dtype][node.op.work] += 1
            written[dtype] += round(node.type.bytes * times) if alone else 0
    total = sum(cast_bytes.values())
    n = sum(casts.values())
    title = f"{', '.join(sorted(classes)) or 'no tensors'}; {n} casts move {human_bytes(total)} in a run"
    table = Table("dtype", title, ("dtype", "operators", "which", "bytes written"))
    for dtype in sorted(classes, key=lambda d: -sum(classes[d].values())):
        which = ", ".join(f"{count} {name}" for name, count in classes[dtype].most_common(6))
        table.rows.append((dtype, sum(classes[dtype].values()), which, human_bytes(written[dtype])))
    for pair, count in casts.most_common():
        inside = f"casts, {fused[pair]} of them inside fusions" if fused[pair] else "casts"
        table.rows.append((f"{pair[0]} -> {pair[1]}", count, inside, human_bytes(cast_bytes[pair])))
    leaves = [leaf for p in (survey.entry.params if survey.entry else ()) for leaf in p.type.leaves()]
    parameters = sorted({leaf.dtype.name for leaf in leaves if isinstance(leaf, TensorType)})
    table.notes.append(f"parameters are {', '.join(parameters) or 'none'}; inside a fusion a cast moves nothing")
    return table
