"""The policy of a text for which none is named is that of the compiler that it comes from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import irscope
from irscope.fusion import origin_of
from irscope.lint import Context, all_rules
from irscope.lint.run import lint_context
from tests.conftest import Cli

PLAIN = """HloModule m{header}

ENTRY e {{
  x = f32[32,128] parameter(0)
  w = f32[128,64] parameter(1)
  d = f32[32,64] {product}
  ROOT r = f32[32,64] tanh(d)
}}
"""
DOT = "dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
STABLEHLO = """module @m {{
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {{
    %0 = stablehlo.{call} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }}
}}
"""


def hlo(product: str = DOT, header: str = "") -> str:
    return PLAIN.format(product=product, header=header)


@pytest.mark.parametrize(("text", "policy", "sign"), [
    (hlo(), "xla-cpu", "nothing in it shows a GPU"),
    (hlo('custom-call(x, w), custom_call_target="my_call"'), "xla-cpu", ""),
    (hlo('custom-call(x, w), custom_call_target="__cublas$gemm"'), "xla-gpu", "%d calls __cublas$gemm"),
    (hlo(DOT + ', backend_config={"operation_queue_id":"0","force_earliest_schedule":false}'), "xla-gpu", "operation_queue_id"),
    (hlo(DOT + ', backend_config={"outer_dimension_partitions":["4"]}'), "xla-cpu", ""),
    (hlo(header=', is_scheduled=true, frontend_attributes={fingerprint_before_lhs="1e6d"}'), "xla-gpu", "fingerprint_before_lhs"),
    (STABLEHLO.format(call="tanh %arg0").replace("(tensor<4xf32>) -> ", "", 1).replace(": (tensor<4xf32>) ->", ":"), "xla-cpu", ""),
    (STABLEHLO.format(call="custom_call @cusolver_potrf_ffi(%arg0)"), "xla-gpu", "cusolver_potrf_ffi"),
    ("graph(%x : Float(4)):\n  %y : Float(4) = aten::tanh(%x)\n  return (%y)\n", "inductor", "a TorchScript graph"),
    ('#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) {\n  tanh(%x)\n}\n', "tvm", "a Relay module"),
])
def test_a_text_chooses_the_policy_of_its_compiler(text: str, policy: str, sign: str) -> None:
    module = irscope.load(text).module()
    origin = origin_of(module)
    assert (origin.policy, sign in origin.why) == (policy, True), origin
    assert Context(module).settings.policy == policy


def test_a_device_chooses_the_policy_of_gpus() -> None:
    origin = origin_of(irscope.load(hlo()).module(), "a100")
    assert (origin.policy, origin.why) == ("xla-gpu", "an HLO module of a GPU (--device a100)")


def test_the_first_line_says_which_policy_was_taken_and_why(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "m.hlo"
    file.write_text(hlo())
    for more in ((), ("--why-not-fused",), ("--why-not-fused", "d", "r"), ("--statistics",)):
        first = cli("lint", file, "--isolated", *more).stdout.splitlines()[0]
        assert first == "policy xla-cpu@jaxlib-0.12.0.1: an HLO module, and nothing in it shows a GPU"
    assert cli("lint", file, "--isolated", "--policy", "irscope").stdout == "no findings\n"
    assert "policy xla-gpu@" in cli("lint", file, "--isolated", "--device", "a100", "--format", "markdown").stdout
    (report,) = json.loads(cli("lint", file, "--isolated", "--format", "json").stdout)["files"]
    assert report["policy"] == "xla-cpu@jaxlib-0.12.0.1"


def test_files_of_several_compilers_have_a_line_each(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.hlo").write_text(hlo())
    (tmp_path / "b.hlo").write_text(hlo())
    (tmp_path / "c.txt").write_text("graph(%x : Float(4)):\n  %y : Float(4) = aten::tanh(%x)\n  return (%y)\n")
    first, second, *_ = cli("lint", tmp_path, "--isolated").stdout.splitlines()
    assert first.endswith("nothing in it shows a GPU (2 files)")
    assert second.startswith("policy inductor@") and second.endswith(f"a TorchScript graph ({tmp_path / 'c.txt'})")


def test_check_and_drawings_follow_the_text(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.hlo").write_text(hlo())
    (tmp_path / "irscope.toml").write_text('[check]\nmodels = ["m.hlo"]\nmax-kernels = 1\n')
    monkeypatch.chdir(tmp_path)
    checked = cli("check")
    assert checked.stdout.startswith("policy xla-cpu@jaxlib-0.12.0.1: an HLO module")
    assert "xla-cpu makes 2 kernels" in checked.stdout
    (tmp_path / "irscope.toml").write_text('policy = "auto"\n\n[check]\nmodels = ["m.hlo"]\nmax-kernels = 2\n')
    assert cli("check").exit_code == 0
    assert cli("show", "m.hlo", "--policy", "auto", "-o", "m.dot").exit_code == 0
    assert "xla-cpu" in (tmp_path / "m.dot").read_text()


def test_an_unknown_policy_is_refused_whatever_is_asked(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(hlo())
    refused = cli("lint", tmp_path / "m.hlo", "--isolated", "--policy", "xla")
    assert refused.exit_code == 2 and "there is no fusion policy 'xla'" in refused.stderr


def test_no_rule_speaks_of_kernels_that_irscope_would_make_of_hlo(samples: Path) -> None:
    for path in sorted(samples.glob("*.hlo")):
        context = Context(irscope.load(path).module())
        assert context.settings.compiler == "xla-cpu"
        for finding in lint_context(context, all_rules()):
            assert "irscope" not in finding.message + finding.help, finding.headline()


def test_a_selected_rule_that_is_about_another_compiler_says_so(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(hlo())
    said = cli("lint", tmp_path / "m.hlo", "--isolated", "--select", "VEC001").stdout
    assert "note: VEC001 is about the kernels of irscope, not of xla-cpu: --policy names one" in said
    assert "note" not in cli("lint", tmp_path / "m.hlo", "--isolated", "--select", "VEC001", "--policy", "irscope").stdout
    assert "note" not in cli("lint", tmp_path / "m.hlo", "--isolated", "--select", "ALL").stdout
