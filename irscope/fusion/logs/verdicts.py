"""The verdicts of a compiler's own log on the edges of a module, compared with those of irscope's policy for that compiler.

The log is authoritative: its decision on an edge is reported. The root cause and the smallest edit are the policy's if it agrees; if it
does not, the verdict says so.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType

from irscope.expand import expand
from irscope.formats.detect import decode
from irscope.fusion.inductor.policy import InductorPolicy
from irscope.fusion.inductor.report import written
from irscope.fusion.logs import torch_log, xla_dump, xla_vlog
from irscope.fusion.logs.events import FusionLog, LoggedStep
from irscope.fusion.logs.torch_replay import matched, replayed
from irscope.fusion.logs.xla_replay import Replay
from irscope.fusion.plan import APPLIED, EdgeVerdict, applied_bodies
from irscope.fusion.policy import AsWritten, policy_for
from irscope.fusion.recorded import record_of_log, recorded_plans, with_record
from irscope.graph import Module, Node, callees_first
from irscope.ops import hlo
from irscope.source import UserError
from irscope.source.files import read_bytes

INSIDE = APPLIED | {hlo.fusion}
"""Operators whose computations the pass does not fuse in: kernels of the text, and functions of elements."""
UNSEEN = "the log's operations here were not matched: this is the policy's own verdict"
READERS = (xla_dump, xla_vlog, torch_log)


def read_log(text: str, name: str) -> FusionLog:
    """Read a log, recognised by its content. Raises UserError for any other text, and for one without a run of a fusion pass."""
    reader: ModuleType | None = next((r for r in READERS if r.sniff(text)), None)
    if reader is None:
        raise UserError(f"{name} is not a fusion log", "XLA's VLOG (TF_CPP_VMODULE=instruction_fusion=5,cpu_instruction_fusion=3), "
                        "a priority_fusion_dump.txt, or TORCH_LOGS=fusion")
    log: FusionLog = reader.read(text, name)
    if not log.runs:
        raise UserError(f"{name} holds no decision", "the log may be cut off, or its level too low")
    return log


def load_log(path: str) -> FusionLog:
    """A log from a file (``-``: standard input; ``.gz`` is unpacked)."""
    return read_log(decode(read_bytes(path), path).text, path)


def verdicts_by_log(module: Module, log: FusionLog, device: str | None = None) -> tuple[list[EdgeVerdict], list[str]]:
    """The log's verdicts on the edges of a module, and remarks on how they were matched."""
    policy = policy_for(log.policy, module)
    assert isinstance(policy, AsWritten)
    if log.policy == "inductor":
        recorded = record_of_log(module, log)
        if recorded is not None:
            plans = recorded_plans(with_record(module, recorded)) or []
            return [v for plan in plans for v in plan.verdicts], [f"the verdicts are those of {log.name}, which names these nodes"]
        return _by_inductor(module, log)
    own = [v for plan in policy.plan_module(module, device or log.device or None) for v in plan.verdicts]
    bodies = applied_bodies(module, INSIDE)
    graphs = [g for g in callees_first(module, module.main()) if g not in bodies]
    runs = [Replay(graphs, steps) for steps in log.runs]
    run = max(runs, key=lambda r: len(r.known) - len(r.unknown))
    looked_at = {graph.name for graph in graphs}
    logged = [_xla(v, run, module, policy.version) if v.graph.name in looked_at else v for v in own]
    remarks = [f"the verdicts are those of {log.name}; causes and edits are those of {policy.version} where it agrees"]
    if run.unknown:
        some = ", ".join(f"%{name}" for name in sorted(run.unknown)[:3])
        remarks.append(f"{len(run.unknown)} instructions of the log are not in this text ({some}): it may not be what the pass saw")
    return logged, remarks + _agreement(own, logged, policy.version)


def _xla(own: EdgeVerdict, run: Replay, module: Module, version: str) -> EdgeVerdict:
    if not run.knows(own.consumer):
        return own
    fused = run.fused(own.producer, own.consumer)
    words, more = _words(run, own.producer, own.consumer) if fused == "none" else (None, "")
    return _merged(own, fused, words, module, version, more)


def _words(run: Replay, producer: Node, consumer: Node) -> tuple[str | None, str]:
    """The log's reason for an edge that is not fused, and the times that it compared."""
    step = run.pairs.get((producer, consumer)) or run.producers.get(producer)
    if step is not None:
        return step.words, ""
    priority: LoggedStep | None = run.priorities.get(producer)
    if priority is not None and priority.times is not None and priority.times[0] > priority.times[1]:
        return None, f"XLA expects a loss: {priority.times[0]:g} us fused, {priority.times[1]:g} us apart"
    return None, ""


def _merged(own: EdgeVerdict, fused: str, words: str | None, module: Module, version: str, more: str = "") -> EdgeVerdict:
    """The log's verdict with the policy's cause, or with the policy's own verdict if they differ."""
    agrees = own.fused == fused
    if fused != "none":
        note = "" if agrees else f"{version} disagrees: fused {own.fused}" + (f", {own.reason}" if own.reason else "")
        return EdgeVerdict(own.graph, own.producer, own.consumer, fused, None, "" if agrees else "disagreement", note)
    parts = [more] if more else []
    if agrees and own.cause:
        parts.append(own.cause)
    if not agrees:
        parts.append(f"{version} would have fused it (fused {own.fused})")
    elif words is not None and own.reason is not None and own.reason != words and not words.startswith("Operand ("):
        parts.append(f"{version} gives another reason: {own.reason}")
    places = _places(module, own.producer, own.consumer)
    if places:
        parts.append(places)
    return replace(own, fused=fused, reason=words, rule=own.rule if agrees else "disagreement", cause="; ".join(parts))


def _places(module: Module, *ends: Node) -> str:
    """Where in the user's program the two nodes come from."""
    said = []
    for node in ends:
        stack = module.call_stack(node)
        if stack:
            said.append(f"%{node.name} is from {stack[0]}")
    return ", ".join(said)


def _agreement(own: Sequence[EdgeVerdict], logged: Sequence[EdgeVerdict], version: str) -> list[str]:
    """On how many edges the policy agrees with the log, and on how many of those that are not fused: most edges fuse in both."""
    right = sum(a.fused == b.fused for a, b in zip(own, logged))
    apart = [a.fused for a, b in zip(own, logged) if b.fused == "none"]
    kept = f", and on {apart.count('none')} of the {len(apart)} that are not fused" if apart else ""
    return [f"{version} agrees with the log on {right} of {len(own)} edges{kept}"] if own else []


# ---------------------------------------------------------------- Inductor

def _by_inductor(module: Module, log: FusionLog) -> tuple[list[EdgeVerdict], list[str]]:
    policy = InductorPolicy()
    graph = expand(module, outline=True).main()
    own = policy.plan(graph).verdicts
    prepared = policy.prepared(graph)
    kernels = prepared.scheduler.kernels
    found, place = max(((matched(operations, kernels), -i) for i, operations in enumerate(log.operations)), key=lambda f: (len(f[0]), f[1]))
    operations, steps = log.operations[-place], log.runs[-place]
    again = set(found.values())
    seen = {written(node) for kernel in kernels if kernel.buffers[0].name in again for node in kernel.buffers[0].members}
    replayed(prepared.scheduler, found, steps)
    by_log = {(v.producer, v.consumer): v for v in prepared.plan().verdicts}
    merged: list[EdgeVerdict] = []
    covered: list[tuple[EdgeVerdict, EdgeVerdict]] = []
    for verdict in own:
        said = by_log.get((verdict.producer, verdict.consumer))
        if said is None or verdict.producer not in seen or verdict.consumer not in seen:
            merged.append(replace(verdict, cause="; ".join(part for part in (verdict.cause, UNSEEN) if part)))
            continue
        merged.append(_merged(verdict, said.fused, said.reason, module, policy.version))
        covered.append((verdict, merged[-1]))
    remarks = [f"the verdicts are those of {log.name}; causes and edits are those of {policy.version} where it agrees",
               f"{len(found)} of the {len(operations)} operations of the log were matched in irscope's lowering of this text"]
    if 2 * len(found) < len(operations):
        remarks.append("less than half: the log may be of another program, or of a GPU")
    return merged, remarks + _agreement([mine for mine, _ in covered], [theirs for _, theirs in covered], policy.version)
