"""XLA's ``GemmFusion``: matrix products that become Triton kernels with what stands before and behind them, before ``priority-fusion``."""
