"""The numbers that Inductor compares with, by device: torch 2.13, ``torch/_inductor/config.py`` unless said otherwise."""
from __future__ import annotations

from dataclasses import dataclass

from irscope.graph import Op
from irscope.ops import hlo


@dataclass(frozen=True, slots=True)
class Limits:
    """What decides when a value is stored, and what the scheduler joins.

    ``operations``: a value of more operations than this is stored when it is read twice, or has accumulated
    (``realize_cpu_opcount_threshold``, ``_realize_opcount_threshold_default``); ``reads``: one that reads more elements than this is stored
    when it is read twice (``realize_reads_threshold``); ``accumulated``: one that reads more is stored anyway
    (``realize_cpu_acc_reads_threshold``, ``_realize_acc_reads_threshold_default``); ``most_operations``: one of more operations is stored
    anyway (graph.py, ``run_node``); ``heavy``: operations whose result is stored when it is read twice (ir.py,
    ``should_realize_on_reuse``; CPU only).
    ``unrolled``: a reduction of fewer elements is written out (``unroll_reductions_threshold``); ``two_steps``: up to so many elements a
    variance is two sums, beyond it is Welford's (``cpp.use_two_step_variance_threshold``); ``window``: a pooling window of more elements is
    a library call (lowering.py, ``avg_pool2d`` and ``max_pool2d``).
    ``rounds``: how often the scheduler tries (scheduler.py, ``fuse_nodes``); ``group``: kernels of more nodes are not made
    (``max_fusion_size``); ``horizontal``: the same where neither node reads the other (``cpp.max_horizontal_fusion_size``);
    ``attempts``: how many later readers of a buffer each reader is tried with (``max_fusion_buffer_group_pairwise_attempts``); ``shared``:
    bytes that two nodes must share to be joined side by side (``score_fusion_memory_threshold``); ``distance``: how far apart they may
    stand (scheduler.py, ``are_long_distant_nodes``); ``overhead``: elements kept longer may be so many times the bytes that are saved
    (``can_fusion_increase_peak_memory``).
    """

    device: str
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


CPU = Limits("cpu", operations=50, accumulated=12, unrolled=8, two_steps=1024, horizontal=16,
             heavy=hlo.named("exponential log log-plus-one logistic tanh"))
