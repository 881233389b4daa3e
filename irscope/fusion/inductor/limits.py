"""Inductor's thresholds on a CPU: torch 2.13, ``torch/_inductor/config.py`` unless noted otherwise."""
from __future__ import annotations

from dataclasses import dataclass

from irscope.graph import Op
from irscope.ops import hlo


@dataclass(frozen=True, slots=True)
class Limits:
    """The thresholds for realizing values and for joins in the scheduler.

    ``operations``: a value with more operations is realized if it is read twice, or has accumulated
    (``realize_cpu_opcount_threshold``, ``_realize_opcount_threshold_default``); ``reads``: a value with more reads is realized
    if it is read twice (``realize_reads_threshold``); ``accumulated``: a value with more reads is always realized
    (``realize_cpu_acc_reads_threshold``, ``_realize_acc_reads_threshold_default``); ``most_operations``: one with more operations is always
    realized (graph.py, ``run_node``); ``heavy``: operations whose result is realized if it is read twice (ir.py,
    ``should_realize_on_reuse``).
    ``unrolled``: a reduction of fewer elements is unrolled (``unroll_reductions_threshold``); ``two_steps``: up to this many elements a
    variance is two sums, beyond it uses Welford's algorithm (``cpp.use_two_step_variance_threshold``); ``window``: a pooling window of more
    elements is a library call (lowering.py, ``avg_pool2d`` and ``max_pool2d``).
    ``rounds``: the number of scheduler rounds (scheduler.py, ``fuse_nodes``); ``group``: the most nodes in a kernel
    (``max_fusion_size``); ``horizontal``: the same if neither node reads the other (``cpp.max_horizontal_fusion_size``);
    ``attempts``: how many later readers of a buffer each reader is tried with (``max_fusion_buffer_group_pairwise_attempts``); ``shared``:
    bytes that two nodes must share to be joined horizontally (``score_fusion_memory_threshold``); ``distance``: the maximum distance in
    program order (scheduler.py, ``are_long_distant_nodes``); ``overhead``: the maximum ratio of elements kept longer to the bytes saved
    (``can_fusion_increase_peak_memory``).
    """

    operations: int
    accumulated: int
    unrolled: int
    two_steps: int
    horizontal: int
    heavy: frozenset[Op] = frozenset()
    reads: int = 4
    most_operations: int = 100
    window: int = 25
    rounds: int = 10
    group: int = 64
    attempts: int = 64
    shared: int = 10
    distance: int = 64
    overhead: int = 32


CPU = Limits(operations=50, accumulated=12, unrolled=8, two_steps=1024, horizontal=16,
             heavy=hlo.named("exponential log log-plus-one logistic tanh"))
