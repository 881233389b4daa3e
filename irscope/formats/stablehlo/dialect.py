"""The requirements and guarantees of StableHLO's operations, which become HLO's primitives when they are read."""
from irscope.formats.hlo.gpu import gpu_sign
from irscope.formats.stablehlo.composites.complex import expand_complex
from irscope.graph import Dialect

STABLEHLO = Dialect("stablehlo", primitive=True, broadcasts=False, flushes_denormals=True, default_policy="xla-cpu", gpu_policy="xla-gpu",
                    gpu_sign=gpu_sign, scope_ends_with_operator=True, instruction="operation", computation="function",
                    module="StableHLO module",
                    whole_text="as_text() of jax prints whole constants; large_elements_limit and print options of MLIR elide them",
                    translate=expand_complex)
