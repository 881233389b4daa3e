"""XLA's ``GemmFusion``: turns dots, with what is before and after them, into Triton kernels, before ``priority-fusion``."""
