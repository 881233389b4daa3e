"""The results of another dump of the same program, such as the text before a compiler's optimisation, for the inputs of a run."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from irscope.analysis.rounding import coarsest_types, step
from irscope.api.arrays import Arrays
from irscope.api.loading import first_module, whole
from irscope.api.options import RunOptions
from irscope.api.watching import Watcher
from irscope.backends.arguments import fitted
from irscope.backends.comparison import ResultComparison, compare_all
from irscope.backends.model import ports_of
from irscope.graph import Module, Reading
from irscope.lazy import Array
from irscope.ops.module_attributes import Prepared
from irscope.source import UserError


@dataclass(frozen=True, slots=True)
class Ran:
    """A program that ran: its module with everything bound, the arrays of its parameters, and its outputs."""

    module: Module
    arrays: Arrays
    outputs: list[Array]


def compare_with_dump(options: RunOptions, one: Ran, run: Callable[[Reading, RunOptions, Mapping[str, Array]], Ran],
                      watch: Watcher) -> list[ResultComparison]:
    """Compare outputs with those of the dump ``options.expect_from``, which gets the same inputs.

    Inputs have the same names in both, or the same order; weights have the same names. A tolerance that is not given allows for the
    coarsest rounding of both programs. ``run`` runs a reading of the other dump with some options and inputs: the dump is read once, as
    it may be a pipe. Raises UserError where the inputs or the outputs do not correspond.
    """
    name = options.expect_from
    assert name is not None
    if options.partitions > 1:
        raise UserError("--expect-from compares the programs of one device", "leave out --partitions")
    own = replace(options, inputs=(), expect=None, check=False, bench=False, profile=False, save_outputs=None, autotune=False,
                  source_format=None)
    with watch.stage("reading"):
        reading = whole(name)
    try:
        other = run(reading, own, _shared(first_module(reading), one))
    except UserError as error:
        raise UserError(f"{name}: {error.message}", error.help, error.findings) from error
    if other.arrays.drawn_names:
        raise UserError(f"{name} takes inputs that the other program does not: {', '.join(other.arrays.drawn_names[:4])}",
                        "inputs are matched by name where all names are equal, else by position; weights by name")
    if len(other.outputs) != len(one.outputs):
        raise UserError(f"{name} has {len(other.outputs)} outputs, not {len(one.outputs)}: it is not the same program")
    expected = [fitted(array, port, f"{name}: {port.name}") for array, port in zip(other.outputs, ports_of(one.module)[1], strict=True)]
    types = zip(coarsest_types(one.module), coarsest_types(other.module), strict=True)
    ways = [max(pair, key=lambda dtype: step(dtype) if dtype is not None else 0.0) for pair in types]
    flushed = one.module.flushes_denormals or other.module.flushes_denormals
    return compare_all(one.outputs, expected, options.rtol, options.atol, ways, flushed)


def _shared(other: Module, one: Ran) -> dict[str, Array]:
    """The arrays of a run without those of --weights, under the names that the other dump has for them."""
    params = {param.name for param in other.main().params}
    weights = Prepared.of(one.module).weights
    fixed = {one.module.main().params[number].name for number in one.arrays.weights}
    values = {port.name: array for port, array in zip(ports_of(one.module)[0], one.arrays.all(), strict=True)}
    inputs = [name for name in values if name not in weights]
    named = params.issuperset(inputs)
    under = {name: name if named else f"arg{number}" for number, name in enumerate(inputs)}
    return {under.get(name, name): array for name, array in values.items() if name not in fixed}
