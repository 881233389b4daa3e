"""``irscope compile-and-run``: compile a graph to native code, run it, check and time it."""
from __future__ import annotations

import click

from irscope.cli.input import binding_options, from_option

STAGES = ("loops", "llvm", "asm", "obj", "so")


@click.command()
@click.argument("file")
@click.option("--inputs", multiple=True, metavar="X.npz", help="Arrays by input name, or arg0, arg1, ... in the entry's order.")
@click.option("--weights", multiple=True, metavar="W.npz", help="Arrays (.npz, .safetensors) fixed at load: packed and folded.")
@click.option("--constants", metavar="C.npz", help="Values of constants that the text elides, by name.")
@click.option("--fill-elided", is_flag=True, help="Draw the values of elided constants.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of what is drawn.")
@click.option("--save-outputs", metavar="O.npz", help="Write out0, out1, ... in order.")
@click.option("--expect", metavar="E.npz", help="Compare with out0, out1, ... of this file; exit 1 when they differ.")
@click.option("--check", is_flag=True, help="Compare with the reference interpreter; exit 1 when they differ.")
@click.option("--rtol", type=click.FloatRange(0), default=None, help="Relative tolerance (default: by element type).")
@click.option("--atol", type=click.FloatRange(0), default=None, help="Absolute tolerance (default: rtol of the largest value).")
@click.option("--engine", type=click.Choice(["llvm", "reference"]), default="llvm", show_default=True,
              help="Compiled code, or the numpy interpreter.")
@click.option("--threads", type=click.IntRange(1, 512), default=None, help="Threads (default: the cores this process may use).")
@click.option("--cpu", default="", metavar="NAME",
              help="Compile for this processor (default: the one here); v2, v3, v4 are levels of x86-64.")
@click.option("--precision", type=click.Choice(["exact", "default", "fast"]), default="default", show_default=True,
              help="How near to the definition results are.")
@click.option("--autotune", is_flag=True, help="Try schedules and keep the fastest.")
@click.option("--partitions", type=click.IntRange(1, 1024), default=1, show_default=True, metavar="N",
              help="Simulate N devices. Input x is given to all, x@1 to device 1; outputs are out0, out1, ..., "
              "all of device 0 first; --expect also takes result 0 of device 1 as out0@1.")
@click.option("--no-cache", is_flag=True, help="Neither read nor write the cache of compiled kernels.")
@click.option("--bench", is_flag=True, help="Time the compiled program.")
@click.option("--bench-seconds", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True, help="How long to time it.")
@click.option("--warmup", type=click.IntRange(0), default=3, show_default=True, help="Runs before the clock starts.")
@click.option("--runs", type=click.IntRange(1), default=None, help="Time exactly so many runs.")
@click.option("--emit", type=click.Choice(STAGES), default=None, help="Write this stage instead of running.")
@click.option("--target", metavar="TRIPLE", default="", help="Emit code for another machine.")
@click.option("-o", "--output", default="-", metavar="FILE", help="Where --emit writes.")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True,
              help="How to tell what happened.")
@from_option
@binding_options
def command(**options: object) -> int:
    """Compile a graph to native code, run it, check and time it.

    Inputs that are not given are drawn from --seed.

    \b
    Examples:
      irscope compile-and-run model.hlo --check
      irscope compile-and-run model.hlo --inputs x.npz --weights w.npz --save-outputs y.npz
      irscope compile-and-run model.hlo --bench --threads 1
      irscope compile-and-run model.hlo --emit loops | less
    """
    from irscope.cli.run_request import Request
    from irscope.cli.running import run

    return run(Request(**options))  # type: ignore[arg-type]
