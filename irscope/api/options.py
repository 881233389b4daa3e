"""The options of every function and command, each declared once: name, type, default, and its help on the command line.

The command line builds its options from these fields (``irscope/cli/options.py``); a field without metadata is for Python only.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from operator import index
from typing import Any

from irscope.formats import FORMATS
from irscope.graph import DTYPES
from irscope.render.categories import COLOUR_MODES
from irscope.source import UserError, did_you_mean
from irscope.source.sizes import parse_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """The command-line option of a field. ``flags`` replace ``--name-of-the-field``; ``parse`` converts the argument.

    ``parse`` raises ValueError with a message about the value. ``least`` and ``most`` bound a number, ``above`` without the bound itself.
    """

    help: str
    flags: Sequence[str] = ()
    metavar: str | None = None
    choices: Sequence[str] = ()
    least: float | None = None
    most: float | None = None
    above: float | None = None
    parse: Callable[[Any], Any] | None = None
    multiple: bool = False
    pair: bool = False
    file: bool = False
    shown: bool = True


def option(default: Any, help: str, *flags: str, **more: Any) -> Any:
    """A field that is also an option of the command line. ``more`` are fields of :class:`Option`."""
    metadata = {"option": Option(help=help, flags=flags, **more)}
    return field(default_factory=dict, metadata=metadata) if default is dict else field(default=default, metadata=metadata)


def read_shapes(given: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """``("x=8,3", "s=")``: shapes by the names of inputs. Raises ValueError."""
    shapes: dict[str, tuple[int, ...]] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        try:
            dims = tuple(int(d) for d in text.strip("[]() ").split(",") if d.strip())
        except ValueError:
            dims = (-1,)
        if not name or not equals or any(d < 0 for d in dims):
            raise ValueError(f"{pair!r} is not NAME=DIM,DIM,... with sizes from 0 (x=8,3,224,224; x= for a scalar)")
        shapes[name] = dims
    return shapes


def read_dtypes(given: Sequence[str]) -> dict[str, str]:
    """``("x=f32",)``: element types by the names of inputs. Raises ValueError."""
    dtypes: dict[str, str] = {}
    for pair in given:
        name, equals, dtype = pair.partition("=")
        if not name or not equals:
            raise ValueError(f"{pair!r} is not NAME=DTYPE, such as x=f32")
        if dtype not in DTYPES:
            raise ValueError(f"there is no dtype {dtype!r}; {did_you_mean(dtype, DTYPES) or 'known are ' + ', '.join(DTYPES)}")
        dtypes[name] = dtype
    return dtypes


def words(given: Sequence[str]) -> tuple[str, ...]:
    """``("DTY,BRD", "ALG")``: options that may be repeated, or contain several words separated by commas."""
    return tuple(word.strip() for text in given for word in text.split(",") if word.strip())


@dataclass(frozen=True, kw_only=True)
class Checked:
    """Options whose numbers are in their ranges and whose words are among the choices. Raises UserError for others."""

    def __post_init__(self) -> None:
        for name, declared in option_fields(type(self)).items():
            value = getattr(self, name)
            if value is None or declared.parse is not None:
                continue
            for word in value if isinstance(value, tuple | list) else (value,):
                if declared.choices and word not in declared.choices:
                    known = did_you_mean(str(word), declared.choices) or f"it is one of {', '.join(declared.choices)}"
                    raise UserError(f"{name} is {word!r}", known)
            if declared.above is not None and not value > declared.above:
                raise UserError(f"{name} is {value}", f"it is a number above {declared.above:g}")
            if declared.least is not None and not value >= declared.least:
                raise UserError(f"{name} is {value}", f"it is a number from {declared.least:g}")
            if declared.most is not None and not value <= declared.most:
                raise UserError(f"{name} is {value}", f"it is a number up to {declared.most:g}")


@dataclass(frozen=True, kw_only=True)
class FormatOptions(Checked):
    """``source_format`` is the format to read an input as; None detects it by content."""

    source_format: str | None = option(None, "Read the input as this format instead of detecting it.", "--from", choices=FORMATS)


@dataclass(frozen=True, kw_only=True)
class InputOptions(FormatOptions):
    """``shapes`` and ``dtypes`` bind what a text leaves open, by the names of inputs of the entry."""

    shapes: Mapping[str, tuple[int, ...]] = option(dict, "Bind the shape of an input that the text leaves open.", "--shape",
                                                   metavar="NAME=8,3,224", multiple=True, parse=read_shapes)
    dtypes: Mapping[str, str] = option(dict, "Bind the dtype of an input that the text leaves open.", "--dtype",
                                       metavar="NAME=f32", multiple=True, parse=read_dtypes)

    def __post_init__(self) -> None:
        """Sizes may be integers of any type, such as numpy's: everything behind reads Python's."""
        super().__post_init__()
        object.__setattr__(self, "shapes", {name: tuple(map(index, shape)) for name, shape in self.shapes.items()})
        for name, shape in self.shapes.items():
            if any(size < 0 for size in shape):
                raise UserError(f"the shape of {name} is {list(shape)}", "sizes are whole numbers from 0")
        for name, dtype in self.dtypes.items():
            if dtype not in DTYPES:
                known = did_you_mean(str(dtype), DTYPES) or f"known are {', '.join(DTYPES)}"
                raise UserError(f"the element type of {name} is {dtype!r}", known)


# ---------------------------------------------------------------------- show, stats

class View(Enum):
    """How a dump is shown. Text views may contain several files, drawings show one."""

    TREE = "tree"
    TEXT = "text"
    JSON = "json"
    DOT = "dot"
    SVG = "svg"
    PNG = "png"
    PDF = "pdf"
    HTML = "html"

    @property
    def is_text(self) -> bool:
        """Whether it can contain several files one after the other."""
        return self in (View.TREE, View.TEXT, View.JSON)

    @property
    def is_drawing(self) -> bool:
        """Whether it is a picture of the graph."""
        return self in (View.DOT, View.SVG, View.PNG, View.PDF)


@dataclass(frozen=True, kw_only=True)
class ShowOptions(InputOptions):
    """What :func:`irscope.show` shows. ``radius`` counts edges from ``around``, ``depth`` levels of the tree, ``width`` columns.

    At most one of ``around``, ``between`` and ``where`` is given. ``policy``, ``device``, ``against`` and ``numbers`` are for drawings and
    pages, ``oom`` for pages, ``ops`` for trees.
    """

    view: View = View.TREE
    around: str | None = option(None, "Only the neighbourhood of a node: %name, or graph/name.", metavar="NODE")
    radius: int = option(2, "The radius of the neighbourhood, in edges.", least=0)
    through: tuple[str, ...] = option((), "With --around: go through tuples, or through values with very many users, too.",
                                      choices=("tuples", "fan-out"))
    between: tuple[str, str] | None = option(None, "Only the nodes on paths between two nodes.", metavar="A B", pair=True)
    where: str | None = option(None, "Only the nodes that a query selects: 'op=dot and bytes>1MB'.", metavar="QUERY")
    graph: str | None = option(None, "Look at this computation instead of the entry.", metavar="NAME")
    module: str | None = option(None, "The module to show, of a folder or of a text with several.", metavar="NAME")
    snapshot: str | None = option(None, "In a log of passes: what this pass changed and its result, or the N-th snapshot.",
                                  "--pass", metavar="PASS|N")
    depth: int | None = option(None, "How many levels of the tree, or of a drawing, to open.", metavar="N", least=0)
    ops: bool = option(False, "Let the tree end in operators: those of each open section, the costliest first.")
    by: str = option("auto", "Tree by the scopes of the user's program, or by computation.", choices=("auto", "scope", "graph"))
    color_by: str = option("class", "What the colours of a drawing mean.", choices=COLOUR_MODES)
    against: str | None = option(None, "Compare with this dump of the same program; --color-by diff shows what was added and changed.",
                               metavar="DUMP")
    lint: bool = option(False, "Lint it too, and mark the findings: in drawings, on the page, above the tree.")
    policy: str | None = option(None, "Frame the kernels of this fusion policy in drawings and on the page (of several: a,b), and mark "
                                "what it does not fuse (irscope list policies, or auto).", metavar="NAME")
    device: str | None = option(None, "With --policy xla-gpu: h100, a100, b200, or a file with XLA's target text.", metavar="NAME")
    numbers: str | None = option(None, "Numbers per node, for the page or a drawing: JSON or CSV of names and numbers, or a Chrome trace.",
                                 metavar="FILE")
    oom: str | None = option(None, "On the page, find the buffers of an out-of-memory error of XLA.", metavar="LOG")
    dark: bool = option(False, "Draw on a dark background.")
    max_nodes: int | None = option(None, "How many boxes a drawing may have before it is folded.", metavar="N", least=1)
    everything: bool = option(False, "No limit on the rows of trees and lists.", "--all")


@dataclass(frozen=True, kw_only=True)
class CaptureOptions(Checked):
    """What :func:`irscope.api.capture` has dumped. ``max_size`` is in bytes."""

    keep: str | None = option(None, "Keep the dumps in this folder (default: they are removed).", metavar="DIR")
    functions: str | None = option(None, "Of XLA only modules whose names match: '.*train_step.*' (jit_NAME is jax's).", metavar="REGEX")
    passes: bool = option(False, "Of XLA a dump after every pass too: what each of them changed.")
    max_size: int = option(1 << 30, "End the program when its dumps take more.", metavar="SIZE", parse=parse_size, shown=False)


@dataclass(frozen=True, kw_only=True)
class StatsOptions(FormatOptions):
    """What :func:`irscope.stats` counts, and with how many processes."""

    signature: bool = option(False, "Also the inputs and outputs of the entry.")
    jobs: int | None = option(None, "Processes for many files (default: the cores of this machine).", metavar="N", least=1)


# ---------------------------------------------------------------------- lint, check

@dataclass(frozen=True, kw_only=True)
class LintOptions(InputOptions):
    """What :func:`irscope.lint` looks for. Sizes are bytes; empty fields defer to the project's settings (``config``).

    ``pair`` names two nodes and restricts ``why`` to the edge between them.
    """

    select: tuple[str, ...] = option((), "Only these rules: codes, names or families (DTY), repeated or with commas.",
                                     metavar="CODE", parse=words)
    ignore: tuple[str, ...] = option((), "All but these rules.", metavar="CODE", parse=words)
    strict_relay: bool = option(False, "Also report what TVM's own Relay parser would reject.")
    fail_on: str | None = option(None, "Exit 1 from this severity on (warning).", choices=("error", "warning", "info"))
    statistics: bool = option(False, "Count the findings by rule.")
    baseline: str | None = option(None, "Leave out the findings that this file accepts.", metavar="FILE")
    write_baseline: str | None = option(None, "Accept the current findings in later runs.", metavar="FILE")
    track_fusion: bool = option(False, "Store kernels and traffic in the baseline; later runs report what grew.")
    why: bool = option(False, "Say why each edge is fused or not; with A B after the file, only that edge.", "--why-not-fused")
    pair: tuple[str, str] | None = None
    policy: str | None = option(None, "Whose fusion rules: irscope list policies (default: auto, the compiler that the text comes from).")
    fusion_log: str | None = option(None, "With --why-not-fused: take the verdicts from the compiler's own log.", metavar="FILE")
    device: str | None = option(None, "The device of a GPU policy: h100, a100, b200.")
    machine: str | None = option(None, "The machine for time estimates: cpu, h100, a100, b200, or a FILE.toml (default: by the policy).",
                                 metavar="NAME")
    max_kernels: int | None = option(None, "Report an entry with more than N kernels.", metavar="N", least=0)
    max_traffic: int | None = option(None, "Report kernels that move more than SIZE (200MiB) in a run.",
                                     metavar="SIZE", parse=parse_size)
    max_memory: int | None = option(None, "Report more than SIZE of live memory.", metavar="SIZE", parse=parse_size)
    require_fused: tuple[str, ...] = option((), "Report a chain such as 'dot,add,max*' that is not one kernel.", metavar="PATTERN")
    expect_dtype: str | None = option(None, "Report operators that run in another dtype.", choices=("f32", "f16", "bf16", "int8"))
    where: str | None = option(None, "With --expect-dtype: only the nodes that the query selects.", metavar="QUERY")
    config: str | None = option(None, "Settings (default: the nearest irscope.toml or pyproject.toml).", metavar="FILE")
    isolated: bool = option(False, "Ignore all settings of the project.")


@dataclass(frozen=True, kw_only=True)
class CheckOptions(Checked):
    """How :func:`irscope.check` checks the models that a project's settings name."""

    config: str | None = option(None, "Settings (default: the nearest irscope.toml or pyproject.toml).", metavar="FILE")
    write_baseline: bool = option(False, "Store the current findings, kernels and traffic in the baseline that the settings name.")
    statistics: bool = option(False, "Count the findings by rule.")


# ---------------------------------------------------------------------- opt, diff

@dataclass(frozen=True, kw_only=True)
class OptOptions(InputOptions):
    """Which passes :func:`irscope.opt` runs, whether it compares the numbers, and how the result is printed.

    ``rtol`` is relative to the largest value of a result; None for the tolerance of the passes and of the element types. ``print_before``
    and ``print_after`` name the passes before and after which a watcher gets the graph.
    """

    passes: str = option("", "The passes, in order, with options in braces (irscope list passes).", metavar="a,b{x=1},c")
    infer: bool = option(False, "Infer all types first, and print them with the graph (Relay).")
    load: tuple[str, ...] = option((), "Load plug-in passes from a file.", metavar="FILE.py")
    opt_level: int | None = option(None, "Skip passes above this level.", metavar="N")
    require: tuple[str, ...] = option((), "Run this pass whatever the level.", metavar="PASS")
    disable: tuple[str, ...] = option((), "Skip this pass.", metavar="PASS")
    print_before: tuple[str, ...] = option((), "Print the graph before a pass, on standard error.", metavar="PASS|all")
    print_after: tuple[str, ...] = option((), "Print the graph after a pass, on standard error.", metavar="PASS|all")
    verify: bool = option(False, "Run both graphs on the same random inputs; exit 1 when they differ.")
    bisect: bool = option(False, "Verify after every pass, and name the first that breaks types or numbers.")
    rtol: float | None = option(None, "How far --verify lets values differ, relative to the largest "
                                "(default: 1e-4, more for types narrower than f32 and passes that narrow).", least=0)
    seed: int = option(0, "The seed of the random inputs.", least=0)
    to: str | None = option(None, "Print in another IR: the primitives as HLO, or irscope's own.", choices=("hlo", "relay"))
    style: str | None = option(None, "Print Relay as courses write it, or as TVM parses it.", choices=("course", "relay"))
    types: bool = option(False, "Print the type of every value (Relay).")
    snapshot: str | None = option(None, "In a log of passes: the graph after this pass, or the N-th (default: the first).",
                                  "--pass", metavar="PASS|N")
    page: bool = option(False, "Instead of the result, a page with the graph before and after each pass (also: -o FILE.html).")


@dataclass(frozen=True, kw_only=True)
class DiffOptions(FormatOptions):
    """The gates of :func:`irscope.diff`, and what its json lists."""

    fail_if: tuple[str, ...] = option((), "Exit 1 when it holds: 'kernels>+0', 'bytes>+5%', 'ops.transpose>0'.", metavar="CONDITION")
    matches: bool = option(False, "In json, also list all pairs of nodes that are on both sides.")


# ---------------------------------------------------------------------- run

@dataclass(frozen=True, kw_only=True)
class RunOptions(InputOptions):
    """How :func:`irscope.run` compiles, runs, compares and times. Files of arrays are .npz or .safetensors.

    ``bench_seconds`` is in seconds. ``rtol`` and ``atol`` are None for the tolerance of the element type.
    """

    inputs: tuple[str, ...] = option((), "Arrays by input name, or arg0, arg1, ... in the entry's order.", metavar="X.npz")
    weights: tuple[str, ...] = option((), "Arrays (.npz, .safetensors) fixed at load: packed and folded.", metavar="W.npz")
    constants: str | None = option(None, "Values of constants that the text elides, by name.", metavar="C.npz")
    fill_elided: bool = option(False, "Draw the values of elided constants.")
    seed: int = option(0, "The seed of the drawn values.", least=0)
    save_outputs: str | None = option(None, "Write out0, out1, ... in order.", metavar="O.npz")
    expect: str | None = option(None, "Compare with out0, out1, ... of this file; exit 1 when they differ.", metavar="E.npz")
    expect_from: str | None = option(None, "Compare with what this dump of the same program computes from the same inputs.", metavar="DUMP")
    check: bool = option(False, "Compare with the reference interpreter; exit 1 when they differ.")
    rtol: float | None = option(None, "Relative tolerance (default: by element type).", least=0)
    atol: float | None = option(None, "Absolute tolerance (default: rtol of the largest value).", least=0)
    engine: str = option("llvm", "Compiled code, or the numpy interpreter.", choices=("llvm", "reference"))
    threads: int | None = option(None, "Threads (default: the cores this process may use).", least=1, most=512)
    cpu: str = option("", "Compile for this processor (default: this machine's); v2, v3, v4 are levels of x86-64.", metavar="NAME")
    precision: str = option("default", "How closely results follow the definition of each operator.", choices=("exact", "default", "fast"))
    autotune: bool = option(False, "Try schedules and keep the fastest.")
    partitions: int = option(1, "Simulate N devices. Input x is given to all, x@1 to device 1; outputs are out0, out1, ..., "
                                "all of device 0 first; --expect also takes result 0 of device 1 as out0@1.",
                             metavar="N", least=1, most=1024)
    no_cache: bool = option(False, "Neither read nor write the cache of compiled programs and kernels.")
    cache_weights: bool = option(False, "Keep packed weights of up to 256 MiB in the cache (default: 4 MiB), so that later runs need not "
                                 "pack them.")
    bench: bool = option(False, "Time the compiled program.")
    bench_seconds: float = option(1.0, "How long to time it, in seconds.", above=0)
    warmup: int = option(3, "Runs before timing starts.", least=0)
    runs: int | None = option(None, "Time exactly N runs.", least=1)
    kernel: str = option("", "With --emit loops, llvm or asm: only this kernel.", metavar="NAME")
    profile: bool = option(False, "Time each kernel inside a call, and show what its machine code does.")
    peak: str = option("measured", "With --profile: measure the peak of the roofline, or take it from a table of processor families.",
                       choices=("measured", "table"))
    target: str = option("", "Emit code for another machine: x86_64-..., aarch64-..., riscv64-..., armv7-...", metavar="TRIPLE")

    @property
    def files(self) -> list[str]:
        """The files of arrays that are read."""
        return [*self.inputs, *self.weights, *(path for path in (self.constants, self.expect, self.expect_from) if path is not None)]


def option_fields(record: type[Any]) -> dict[str, Option]:
    """The fields of a record that are options of the command line, by name."""
    return {f.name: f.metadata["option"] for f in fields(record) if "option" in f.metadata}
