"""Linear algebra and Fourier transforms: cholesky, triangular-solve, fft."""
from __future__ import annotations
