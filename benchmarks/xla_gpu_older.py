"""How often an older release of the policy ``xla-gpu`` makes the kernels that XLA made, over folders with XLA's dumps.

``python benchmarks/xla_gpu_older.py RELEASE DEVICE FOLDER...``, RELEASE as in ``xla-gpu@RELEASE``, DEVICE as for ``xla_gpu_dumps.py``.
A folder is what ``XLA_FLAGS="--xla_dump_to=FOLDER --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.*fusion.* --xla_gpu_autotune_level=0"``
leaves of programs compiled for a GPU. The plugins of jaxlib from 0.4.34 on compile without one: ``load_pjrt_plugin_dynamically``, then
``make_c_api_device_topology(..., topology="1x1x1", target_config=TEXT)`` of ``jaxlib.xla_client``, and ``jit(f).trace(...)
.lower(lowering_platforms=("cuda",)).compile()`` for the device of that topology; the text is a ``GpuTargetConfigProto`` without the fields
that a release does not know. For ``jaxlib-0.4.35-instruction-fusion`` add ``--xla_gpu_enable_priority_fusion=false``. Told of all programs:

* **fused**: whether the kernels behind the passes that fuse hold the same instructions, counted, and give the same results;
* **held**: the same, not counting how often a kernel holds an opcode;
* **joined**: as held, behind ``multi_output_fusion`` and the passes that join kernels side by side.
"""
from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from xla_gpu_dumps import NAME, kernels, read

from irscope.fusion.xla.gpu_device import device_named
from irscope.fusion.xla_gpu import RELEASES

STAGES = {
    True: ("before_priority-fusion", "after_priority-fusion.before_cse", "after_horizontal_input_fusion.before_cse"),
    False: ("after_variadic-op-splitter.before_fusion", "after_fusion_merger.before_cse", "after_horizontal_input_fusion.before_cse"),
}
"""By whether priority fusion decides: how the dumps before fusion, behind it, and behind what joins kernels are called."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release", choices=list(RELEASES))
    parser.add_argument("device")
    parser.add_argument("folder", type=Path, nargs="+")
    args = parser.parse_args()
    policy, device = RELEASES[args.release], device_named(args.device)
    total: Counter[str] = Counter()
    for folder in args.folder:
        stages: dict[str, dict[str, Path]] = {}
        for path in sorted(folder.glob("*.txt"), reverse=True):
            if found := NAME.fullmatch(path.name):
                stages.setdefault(found[1], {})[found[2]] = path
        for name, dumps in sorted(stages.items()):
            paths = [next((path for what, path in dumps.items() if what.endswith(want)), None)
                     for want in STAGES[policy.release.by_priority]]
            if paths[0] is None or paths[1] is None or paths[2] is None:
                continue
            made, truth = read(paths[0]), read(paths[1])
            for computation in made:
                policy.fuse(computation, device)
            fused, held = kernels(made, True) == kernels(truth, True), kernels(made, False) == kernels(truth, False)
            for computation in made:
                policy.join(computation, device, computation is made[-1])
            joined = kernels(made, False) == kernels(read(paths[2]), False)
            total += Counter(programs=1, fused=fused, held=held, joined=joined)
            if not joined or not fused:
                print(f"{name}: {'other kernels are joined' if fused else 'other kernels are fused' if not held else 'copied otherwise'}")
    print(f"xla-gpu@{args.release}, {device.name}: {total['programs']} programs, fused alike {total['fused']}, held alike {total['held']}, "
          f"joined alike {total['joined']}")


if __name__ == "__main__":
    main()
