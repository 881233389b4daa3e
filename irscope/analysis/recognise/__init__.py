"""Well-known composites, recognised by their structure; names, order and spelling do not count. One file a family."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from irscope.analysis.recognise.attention import attentions
from irscope.analysis.recognise.epilogues import biased_gelus, normalised_convolutions
from irscope.analysis.recognise.gated import swiglus
from irscope.analysis.recognise.gelu import gelus
from irscope.analysis.recognise.norms import normalisations
from irscope.analysis.recognise.parts import Composite, Users
from irscope.analysis.recognise.rope import rotations_of_halves, rotations_of_pairs
from irscope.analysis.recognise.softmax import softmaxes
from irscope.graph import Node, Op
from irscope.ops import hlo


class Recogniser(NamedTuple):
    """``recognise(node, users)`` gives the composites that are known by a node of one of ``ops``.

    ``in_fusions``: also in what a compiler has fused already.
    """

    ops: tuple[Op, ...]
    recognise: Callable[[Node, Users], Iterator[Composite]]
    in_fusions: bool = False


_GELU = (hlo.tanh, hlo.erf, hlo.constant)
RECOGNISERS = (
    Recogniser((hlo.divide,), softmaxes),
    Recogniser((hlo.divide,), attentions),
    Recogniser((hlo.rsqrt, hlo.sqrt), normalisations),
    Recogniser(_GELU, gelus, in_fusions=True),
    Recogniser((hlo.logistic, hlo.divide), swiglus),
    Recogniser((hlo.concatenate,), rotations_of_halves),
    Recogniser((hlo.subtract,), rotations_of_pairs),
    Recogniser(_GELU, biased_gelus),
    Recogniser((hlo.convolution,), normalised_convolutions),
)
