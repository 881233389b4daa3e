"""The requirements and guarantees of HLO's operators."""
from irscope.formats.hlo.gpu import gpu_sign
from irscope.graph import Dialect

HLO = Dialect("hlo", primitive=True, broadcasts=False, flushes_denormals=True, default_policy="xla-cpu", gpu_policy="xla-gpu",
              gpu_sign=gpu_sign, scope_ends_with_operator=True, instruction="instruction", computation="computation", module="HLO module",
              whole_text="XLA prints large constants with --xla_dump_large_constants=true, jax with print_large_constants")
