"""How often irscope makes the Triton kernels of products that XLA makes, over folders with XLA's dumps.

``python -m benchmarks.xla_gemm_kernels DEVICE FOLDER...``. A FOLDER has a folder for each program with dumps from before and after XLA's
pass ``triton-gemm-rewriter`` (``XLA_FLAGS="--xla_dump_to=D --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.*triton-gemm-rewriter.*"``;
jaxlib 0.10.2's plugin compiles without a device for a target text, too). DEVICE is h100, a100, b200 or a target text. Told of all programs:

* **kernels**: programs whose Triton kernels hold the same instructions, read as many arrays and give the same results;
* **words**: where the folder has XLA's log (``vlog.txt``, of ``TF_CPP_VMODULE=gemm_fusion=5``), how many of its refusals are told in
  its words of the same instruction, and how many are told that it does not log.

* **hoisted**: where the folder has the dump from behind ``hoist-fused-bitcasts``, programs whose kernels are the same behind that, too;
* **early**: where the folder has the text that the compiler was given (``raw.hlo``), programs of which irscope, which rewrites that
  text first, makes as many kernels that hold the same arithmetic.

``--second`` judges the second version of the pass (compiled with ``--xla_gpu_experimental_gemm_fusion_v2=true``), which logs no words.
"""
from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Hashable
from pathlib import Path

import irscope
from benchmarks.xla_gemm.hoist import hoist_bitcasts
from benchmarks.xla_gemm.search import searched
from irscope.fusion.xla.early_gpu import rewritten
from irscope.fusion.xla.gemm.products import PRODUCTS, GemmSettings, Product, rewrite
from irscope.fusion.xla.gpu_device import Device, device_named
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.multiplied import products_of
from irscope.fusion.xla.stage import computations
from irscope.fusion.xla_gpu import marked
from irscope.ops import hlo

REFUSED = re.compile(r"gemm_fusion\.cc:\d+\] Not fusing %(\S+) = .*? to the (?:out|in)put due to the decision: (.*)")
MOVES = hlo.named("parameter bitcast reshape transpose copy constant broadcast")
LEFT = re.compile(r"gemm_fusion\.cc:\d+\] Not fusing: (.*)")


def read(path: Path) -> list[Computation]:
    module = irscope.load(path.read_text()).module()
    return [marked(module, Computation.of(graph)) for graph in computations(module)]


def kernels(made: list[Computation]) -> Counter[Hashable]:
    """The Triton kernels with a product, by what they hold, read and give."""
    found: Counter[Hashable] = Counter()
    for kernel in (i for computation in made for i in computation.instructions if i.body is not None):
        assert kernel.body is not None
        inside = list(kernel.body.instructions)
        if any(i.op in PRODUCTS for i in inside):
            held = Counter((i.op.name, i.dtype, i.dims) for i in inside if i.op is not hlo.parameter)
            found[kernel.dims, tuple(sorted(held.items())), tuple(sorted((p.dtype, p.dims) for p in kernel.operands))] += 1
    return found


def arithmetic(body: Computation) -> Hashable:
    """What a kernel computes, movement and constants left out."""
    return tuple(sorted(Counter(i.op.name for i in body.instructions if i.op not in MOVES).items()))


def is_alike_early(raw: Path, device: Device, theirs: list[Computation]) -> bool:
    """Whether the kernels of a text from before XLA's rewriting compute what XLA's compute."""
    module = irscope.load(raw.read_text()).module()
    _, canonical = rewritten(module, device)
    told = products_of(module, device, canonical.module if canonical is not None else None)
    ours = Counter(arithmetic(p.kernel.body) for p in told.products if p.is_made and p.kernel is not None)
    made = [i.body for computation in theirs for i in computation.instructions if i.body is not None]
    return ours == Counter(arithmetic(body) for body in made if any(i.op in PRODUCTS for i in body.instructions))


def words(products: list[Product]) -> Counter[tuple[str, str]]:
    """What is refused around products, by instruction and XLA's words, where it has any."""
    told: Counter[tuple[str, str]] = Counter()
    for product in products:
        if product.no is not None and product.no.words:
            told["", product.no.words] += 1
        for asked in product.asked:
            if asked.no is not None and asked.no.words:
                told[named(asked.consumer if asked.behind else asked.producer), asked.no.words] += 1
    return told


def logged(text: str) -> Counter[tuple[str, str]]:
    """The same of XLA's log."""
    told: Counter[tuple[str, str]] = Counter()
    for line in text.splitlines():
        if found := REFUSED.search(line):
            told[found[1], found[2]] += 1
        elif found := LEFT.search(line):
            told["", found[1]] += 1
    return told


def named(instruction: Instruction) -> str:
    """The name that XLA gives a kernel that it has made by then; of anything else its own."""
    if instruction.body is None:
        return instruction.name
    return next((f"gemm_fusion_{i.name}" for i in instruction.body.instructions if i.op in PRODUCTS), instruction.name)


def judged(folder: Path, device: Device, settings: GemmSettings) -> tuple[bool, Counter[str], list[str]] | None:
    """Whether the kernels are the same, the counts of words, and what differs; None where a dump is missing."""
    before = next(iter(sorted(folder.glob("*before_triton-gemm-rewriter*.txt"))), None)
    if before is None:
        return None
    after = next(iter(sorted(folder.glob("*after_triton-gemm-rewriter*.txt"))), before)
    made = read(before)
    products = [product for computation in made for product in rewrite(computation, device, settings)]
    outcome = read(after)
    ours, theirs = kernels(made), kernels(outcome)
    same = ours == theirs
    told = [f"only here: {key}" for key in ours - theirs] + [f"only XLA: {key}" for key in theirs - ours]
    count = Counter(kernels=sum(theirs.values()), products=len(products))
    hoisted = next(iter(sorted(folder.glob("*after_hoist-fused-bitcasts*.txt"))), None)
    if hoisted is not None:
        for computation in made:
            hoist_bitcasts(computation)
        ours, theirs = kernels(made), kernels(read(hoisted))
        count += Counter(dumped=1, hoisted=ours == theirs)
        told += [f"hoisted only here: {key}" for key in ours - theirs] + [f"hoisted only XLA: {key}" for key in theirs - ours]
    if (raw := folder / "raw.hlo").is_file():
        alike = is_alike_early(raw, device, outcome)
        count += Counter(raw=1, early=alike)
        told += [] if alike else ["early: other kernels"]
    log = folder / "vlog.txt"
    if log.is_file() and settings.search is None:
        mine, its = words(products), logged(log.read_text(errors="replace"))
        count += Counter(right=sum((mine & its).values()), logged=sum(its.values()), more=sum((mine - its).values()))
        told += [f"words only here: {key}" for key in mine - its] + [f"words only XLA: {key}" for key in its - mine]
    return same, count, told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device")
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--second", action="store_true")
    args = parser.parse_args()
    device = device_named(args.device)
    total: Counter[str] = Counter()
    for folder in (program for top in args.folder for program in sorted(top.iterdir()) if program.is_dir()):
        found = judged(folder, device, GemmSettings(search=searched if args.second else None))
        if found is None:
            continue
        same, count, told = found
        total += Counter(programs=1, same=same) + count
        if told:
            print(f"{folder.name}:")
            print("\n".join(f"    {line}" for line in told))
    print(f"{device.name}: {total['programs']} programs, kernels alike in {total['same']}; {total['kernels']} kernels; XLA's words "
          f"{total['right']} of {total['logged']}, {total['more']} more"
          + (f"; hoisted alike in {total['hoisted']} of {total['dumped']}" if total["dumped"] else "")
          + (f"; early texts alike in {total['early']} of {total['raw']}" if total["raw"] else ""))


if __name__ == "__main__":
    main()
