"""What shows that an HLO module was compiled for a GPU: its custom calls, the configurations of its kernels, its header."""
from __future__ import annotations

from irscope.graph import Node
from irscope.graph.dialect import Program
from irscope.ops import hlo
from irscope.ops.attributes import CustomCall
from irscope.ops.module_attributes import HloModule

TARGETS = ("__cublas$", "__cudnn$", "__cub$", "__cusolver$", "__triton", "__gpu$", "__xla_gpu_", "xla.gpu.", "xla_ffi_python_gpu_callback",
           "xla_python_gpu_callback", "triton_kernel_call", "mosaic_gpu", "cu_", "hip_", "cublas_", "hipblas_", "cudnn", "cusolver_",
           "hipsolver_", "cusparse_", "hipsparse_", "te_")
"""How the targets of custom calls begin that XLA's GPU compiler makes, or that jax's and NVIDIA's libraries for GPUs register."""
CONFIGS = ("operation_queue_id", "fusion_backend_config", "reification_cost", "gemm_backend_config", "cudnn_conv_backend_config",
           "collective_backend_config", "DEVICE_TYPE_GPU")
"""Fields of GpuBackendConfig (xla/service/gpu/backend_configs.proto), which no other backend of XLA writes."""
CONFIGURED = hlo.named("fusion custom-call dot convolution scatter sort all-reduce all-reduce-start all-gather all-gather-start "
                       "reduce-scatter all-to-all collective-permute-start async-start while")
"""Operators whose configurations are read."""
FINGERPRINT = "fingerprint_before_lhs"
"""The attribute that XLA's GPU compiler writes in the header of a scheduled module (gpu_hlo_schedule.cc)."""
MAX_READ = 2000
"""Configurations that are read of one module: in a text from after fusion, each kernel of a GPU has one."""


def gpu_sign(module: Program) -> str:
    """What shows that a module was compiled for a GPU, as ``%gemm.1 calls __cublas$gemm``; empty where nothing does."""
    if FINGERPRINT in str(HloModule.of(module).frontend_attributes):
        return f"its header has {FINGERPRINT}"
    configured: list[Node] = []
    for graph in module.graphs.values():
        for node in graph.nodes:
            if node.op is hlo.custom_call and CustomCall.of(node).custom_call_target.startswith(TARGETS):
                return f"%{node.name} calls {CustomCall.of(node).custom_call_target}"
            if node.op in CONFIGURED and len(configured) < MAX_READ:
                configured.append(node)
    for node in configured:
        config = str(module.raw(node).get("backend_config", "")) if node.loc >= 0 else ""
        field = next((field for field in CONFIGS if field in config), "")
        if field:
            return f"the backend_config of %{node.name} has {field}"
    return ""
