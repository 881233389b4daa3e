"""The primitives that programs become, as text in golden files, beside what the programs give: also what changes no value is seen."""
from __future__ import annotations

import textwrap
from collections.abc import Callable

import pytest

import irscope
from irscope.expand import expand
from irscope.expand.dynamic import pad_dynamic
from irscope.formats.hlo.printer import print_module
from irscope.graph import Module
from irscope.source import UserError
from tests.backends.test_dynamic_sizes import PROGRAMS as DYNAMIC
from tests.expand.dynamic_programs import PROGRAMS as MORE
from tests.expand.fx_texts import PROGRAMS as FX
from tests.expand.hlo_programs import PROGRAMS as HLO
from tests.expand.input_texts import PROGRAMS as INPUTS
from tests.expand.relay_control_programs import PROGRAMS as RELAY
from tests.expand.test_relay_programs import PROGRAMS as RECORDED
from tests.expand.test_relay_programs import module_of
from tests.expand.torchscript_texts import PROGRAMS as TORCHSCRIPT

Golden = Callable[[str, str], None]
TORCH = {**TORCHSCRIPT, **INPUTS, **FX}


def listed(made: Module) -> str:
    """The computations of a module, without its header, and the nodes of the text that nodes of other names stand for (-: none)."""
    stands = [f"{node.name} < {' '.join(origin.name for origin in node.origin) or '-'}" for graph in made.graphs.values() for node in graph.nodes
              if [origin.name for origin in node.origin] != [node.name]]
    return print_module(made).partition("\n\n")[2].rstrip() + "\n" + textwrap.fill("; ".join(stands), 140) + "\n"


def attempt(make: Callable[[], Module]) -> str:
    """The primitives, or why there are none."""
    try:
        return listed(make())
    except UserError as fault:
        findings = "".join(f"  {finding.message} | {finding.help}\n" for finding in fault.findings)
        return f"refused: {fault.message} | {fault.help}\n{findings}"


def test_programs_with_dynamic_sizes(golden: Golden) -> None:
    golden("dynamic.txt", "".join(f"==== {name}\n{attempt(lambda text=text: pad_dynamic(expand(irscope.load(text).module())))}"  # type: ignore[misc]
                                  for name, text in {**DYNAMIC, **MORE}.items()))


def test_programs_of_hlo(golden: Golden) -> None:
    golden("hlo.txt", "".join(f"==== {name}\n{attempt(lambda text=text: expand(irscope.load(text).module()))}" for name, text in HLO.items()))  # type: ignore[misc]


CONTROL = ("call_", "closure", "duplicate", "fn_", "identity", "if_", "let_", "named_", "nested_", "prog_course", "prog_layer", "recursion", "return_", "scalar_",
           "un_isnan", "meshgrid", "split_", "topk_", "image_", "qnn_chain")


def test_programs_of_relay(golden: Golden) -> None:
    recorded = [f"==== {name}\n{listed(expand(module_of(name)))}" for name in sorted(RECORDED) if name.startswith(CONTROL)]
    others = [f"==== {name}\n{attempt(lambda text=text: expand(irscope.load(text, format='relay').module()))}" for name, text in RELAY.items()]  # type: ignore[misc]
    golden("relay.txt", "".join([*recorded, *others]))


@pytest.mark.parametrize("name", [name for name, program in TORCH.items() if program.results])
def test_a_program_of_torch_gives_what_numpy_gives(name: str) -> None:
    TORCH[name].check()


@pytest.mark.parametrize("name", [name for name, program in TORCH.items() if not program.results])
def test_a_program_of_torch_is_refused(name: str) -> None:
    with pytest.raises(UserError):
        TORCH[name].primitives()


def test_programs_of_torch(golden: Golden) -> None:
    golden("torch.txt", "".join(f"==== {name}\n{attempt(program.primitives)}" for name, program in TORCH.items()))
