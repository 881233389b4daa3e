"""Running the Relay programs of tests on the plain reading of the primitives."""
from __future__ import annotations

from typing import Any

import numpy as np

from irscope.analysis.reference import evaluate, flatten
from irscope.expand import expand
from irscope.graph import Module
from tests.formats.relay_texts import parsed


def primitive(text: str) -> Module:
    """The primitive graph of a text."""
    return expand(parsed(text).module())


def run(text: str, *arrays: Any) -> list[Any]:
    """The results of a program, in order."""
    return [np.asarray(a) for a in flatten(evaluate(primitive(text).main(), list(arrays)))]
