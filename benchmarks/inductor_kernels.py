"""How often ``--policy inductor`` counts the kernels that Inductor calls: ``python benchmarks/inductor_kernels.py FOLDER``.

FOLDER has folders of nets, each with one ``torch_compile_debug`` (docs/formats/inductor.md says how to get one). It may have
``truth.jsonl``, a line for each net, ``{"net", "graphs": [{"folder", "calls", "extern_calls"}]}``: the generated and the extern kernels
that each graph calls. Without it the calls of ``output_code.py`` are the truth.

The policy of the release that wrote the folder plans ``fx_graph_transformed.py`` of each graph. A graph is right where both numbers are; a
net where all its graphs are. Loop nests are printed beside, to show what a count of them instead of calls would give.
"""
from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from inductor_recorded import policy_of, sized

import irscope
from irscope.fleet import compile_folder
from irscope.fleet.compile_record import read_record
from irscope.fleet.dump_folder import DumpFolder, read_folder
from irscope.lint.planned import Planned
from irscope.source import UserError


class Counts(NamedTuple):
    """Calls of generated kernels and of extern ones."""

    fused: int
    extern: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    graphs, nets = [], []
    for net, folder, truth in _nets(parser.parse_args().folder):
        right = []
        for name, counts in truth.items():
            found, nests = planned(folder, name)
            right.append(found == counts)
            said = found if isinstance(found, str) else f"{found.fused:4} + {found.extern:<4} with {nests} loop nests"
            row = f"{net:32} {name.removeprefix('model__'):18} {counts.fused:4} + {counts.extern:<4} policy {said}"
            print(row if right[-1] else f"{row}  wrong")
        graphs += right
        nets.append(all(right))
    print(f"graphs {sum(graphs)} of {len(graphs)}, nets {sum(nets)} of {len(nets)}")


def _nets(root: Path) -> Iterator[tuple[str, DumpFolder, dict[str, Counts]]]:
    """Each net with its folder, and the counts of its graphs."""
    known = root / "truth.jsonl"
    told = {}
    if known.is_file():
        for line in known.read_text().splitlines():
            row = json.loads(line)
            told[row["net"]] = {g["folder"].rpartition("/")[2]: Counts(len(g["calls"]), len(g["extern_calls"]))
                                for g in row["graphs"] if "folder" in g}
    for path in sorted(root.glob(f"*/{compile_folder.ROOT}")):
        folder = read_folder(str(path))
        net = path.parent.name
        if told:
            yield net, folder, told[net]
        elif (record := read_record(folder)) is not None:
            kinds = {name: [kernel.kind for kernel in graph.kernels] for name, graph in record.graphs.items()}
            yield net, folder, {name: Counts(found.count("fused"), found.count("extern")) for name, found in kinds.items()}


def planned(folder: DumpFolder, name: str) -> tuple[Counts | str, int]:
    """What the policy counts of one graph, or why it does not plan it; and its loop nests."""
    module = next(module for module in folder.modules if module.name == name)
    text = next(stage.path for stage in module.stages if stage.name == compile_folder.AFTER and not stage.text)
    try:
        found = Planned(sized(irscope.load(text).module()), policy_of(text).version).calls
    except (UserError, ValueError) as error:
        return f"not planned: {str(error).splitlines()[-1].strip()}", 0
    assert found is not None
    return Counts(int(found.generated), int(found.extern)), int(found.loop_nests)


if __name__ == "__main__":
    main()
