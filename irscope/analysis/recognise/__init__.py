"""Well-known composites, recognised by their structure; names, order and spelling do not matter. One file per family."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from irscope.analysis.recognise.attention import softmaxes
from irscope.analysis.recognise.epilogues import biased_gelus, normalised_convolutions
from irscope.analysis.recognise.gated import swiglus
from irscope.analysis.recognise.gelu import gelus
from irscope.analysis.recognise.norms import normalisations
from irscope.analysis.recognise.parts import Composite, Users
from irscope.analysis.recognise.rope import rotations_of_halves, rotations_of_pairs
from irscope.graph import Node, Op
from irscope.ops import hlo


class Recogniser(NamedTuple):
    """``recognise(node, users)`` yields the composites that a node with one of ``ops`` identifies.

    ``in_fusions``: also inside fusions of the compiler.
    """

    ops: tuple[Op, ...]
    recognise: Callable[[Node, Users], Iterator[Composite]]
    in_fusions: bool = False


_GELU = (hlo.tanh, hlo.erf, hlo.constant)
RECOGNISERS = (
    Recogniser((hlo.divide,), softmaxes),
    Recogniser((hlo.rsqrt, hlo.sqrt), normalisations),
    Recogniser(_GELU, gelus, in_fusions=True),
    Recogniser((hlo.logistic, hlo.divide), swiglus),
    Recogniser((hlo.concatenate,), rotations_of_halves),
    Recogniser((hlo.subtract,), rotations_of_pairs),
    Recogniser(_GELU, biased_gelus),
    Recogniser((hlo.convolution,), normalised_convolutions),
)
