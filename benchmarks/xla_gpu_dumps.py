"""How often the policy ``xla-gpu`` decides as XLA did, over folders with XLA's dumps.

``python benchmarks/xla_gpu_dumps.py DEVICE FOLDER...``. A folder is what
``XLA_FLAGS="--xla_dump_to=FOLDER --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.*fusion.*"`` leaves of programs that are compiled for a GPU
(jaxlib 0.10.2's plugin compiles without a device for a target text, too). DEVICE is h100, a100, b200 or a target text. Told of all
programs whose dumps have ``before_priority-fusion``:

* **fused**: whether the kernels behind ``priority-fusion`` hold the same instructions, by their opcodes, and give the same results;
* **joined**: the same behind ``multi_output_fusion``; XLA has removed equal instructions in between, so only which opcodes, not how often;
* **times**: of the producers in ``priority_fusion_dump.txt``, before anything is fused, how many have XLA's times, fused and unfused.
"""
from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Hashable
from pathlib import Path

import irscope
from irscope.fusion.xla import gpu
from irscope.fusion.xla.gpu_cost import CostModel
from irscope.fusion.xla.gpu_device import Device, device_named
from irscope.fusion.xla.gpu_outputs import has_outputs, join_kernels
from irscope.fusion.xla.instructions import Computation
from irscope.fusion.xla.stage import computations
from irscope.fusion.xla_gpu import marked
from irscope.ops import hlo

NAME = re.compile(r"(module_\d+\..+?)\.\d{4}\.(.*)\.txt")
UPDATE = re.compile(r'update_priority \{\s+producer_name: "([^"]*)"(.*?)\n  \}', re.DOTALL)
NOTHING = (hlo.parameter, hlo.constant, hlo.get_tuple_element, hlo.tuple, hlo.bitcast)
CLOSE = 0.0001
"""Microseconds: XLA logs quarters of a nanosecond."""


def read(path: Path) -> list[Computation]:
    module = irscope.load(path.read_text()).module()
    return [marked(module, Computation.of(graph)) for graph in computations(module)]


def kernels(made: list[Computation], counted: bool) -> Counter[Hashable]:
    """Kernels by what they give and hold; ``counted``: how often they hold it too."""
    found: Counter[Hashable] = Counter()
    for kernel in (i for computation in made for i in computation.post_order()):
        if kernel.body is None:
            found[kernel.op.name, kernel.dims] += kernel.op not in NOTHING
            continue
        outputs = kernel.body.root.operands if has_outputs(kernel) else [kernel.body.root]
        held = Counter(i.op.name for i in kernel.body.instructions if i.op not in NOTHING)
        found[tuple(sorted((o.op.name, o.dims) for o in outputs)), tuple(sorted(held.items() if counted else held))] += 1
    return +found


def times(log: Path, made: Computation, device: Device) -> tuple[int, int]:
    """Producers whose first times are XLA's, of how many."""
    text = log.read_text()
    first = text.find("\n  fusion {")
    queue, by_name, right, count = gpu._Queue(made, device), {i.name: i for i in made.instructions}, 0, 0
    for update in UPDATE.finditer(text[:first] if first > 0 else text):
        logged = [re.search(rf"us_{which}: ([\d.]+)", update[2]) for which in ("unfused", "fused")]
        if update[1] in by_name and all(logged):
            count += 1
            gain = queue.cost.gain(by_name[update[1]])
            right += all(found is not None and abs(ours / 1000 - float(found[1])) < CLOSE for ours, found in zip(gain, logged, strict=True))
    return right, count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device")
    parser.add_argument("folder", type=Path, nargs="+")
    args = parser.parse_args()
    device = device_named(args.device)
    total: Counter[str] = Counter()
    for folder in args.folder:
        stages: dict[str, dict[str, Path]] = {}
        for path in sorted(folder.glob("*.txt")):
            if found := NAME.fullmatch(path.name):
                stages.setdefault(found[1], {})[found[2]] = path
        for name, dumps in stages.items():
            stage = {key: path for want in ("before_priority-fusion", "after_priority-fusion", "after_multi_output_fusion")
                     for what, path in dumps.items() if want in what for key in (want,)}
            if "before_priority-fusion" not in stage:
                continue
            log = folder / f"{name}.priority_fusion_dump.txt"
            right, count = times(log, read(stage["before_priority-fusion"])[-1], device) if log.is_file() else (0, 0)
            made = read(stage["before_priority-fusion"])
            for computation in made:
                gpu.run(computation, device)
            truth = stage.get("after_priority-fusion", stage["before_priority-fusion"])
            fused = kernels(made, True) == kernels(read(truth), True)
            for computation in made:
                join_kernels(computation, CostModel(device))
            joined = kernels(made, False) == kernels(read(stage.get("after_multi_output_fusion", truth)), False)
            total += Counter(programs=1, fused=fused, joined=joined, right=right, times=count)
            if not fused or not joined:
                print(f"{name}: {'other kernels are fused' if not fused else 'other kernels are joined'}")
    print(f"{device.name}: {total['programs']} programs, fused alike {total['fused']}, joined alike {total['joined']}, "
          f"times {total['right']} of {total['times']}")


if __name__ == "__main__":
    main()
