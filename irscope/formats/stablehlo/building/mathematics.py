"""Linear algebra, Fourier transforms, random numbers and normalization: one primitive each."""
from __future__ import annotations

from irscope.formats.stablehlo.building.work import Work, builds
from irscope.ops import hlo
from irscope.ops.faults import TypeFault

GENERATORS = {"DEFAULT": "rng_default", "THREE_FRY": "rng_three_fry", "PHILOX": "rng_philox"}
DISTRIBUTIONS = {"UNIFORM": "rng_uniform", "NORMAL": "rng_normal"}


@builds("fft mhlo.fft")
def _fft(work: Work) -> None:
    work.emit(hlo.fft, {"fft_type": work.fields.word("fft_type"), "fft_length": work.fields.ints("fft_length")})


@builds("cholesky mhlo.cholesky")
def _cholesky(work: Work) -> None:
    work.emit(hlo.cholesky, {"lower": True} if work.fields.flag("lower") else {})


@builds("triangular_solve mhlo.triangular_solve")
def _triangular_solve(work: Work) -> None:
    fields = work.fields
    flags = {name: True for name in ("left_side", "lower", "unit_diagonal") if fields.flag(name)}
    work.emit(hlo.triangular_solve, {**flags, "transpose_a": fields.word("transpose_a", "NO_TRANSPOSE")})


@builds("rng mhlo.rng")
def _rng(work: Work) -> None:
    """The third operand is the shape, which the result type has too."""
    work.count(2, 3)
    distribution = DISTRIBUTIONS.get(work.fields.word("rng_distribution"))
    if distribution is None:
        raise TypeFault(f"rng_distribution of '{work.operation.name}' must be UNIFORM or NORMAL")
    work.emit(hlo.rng, {"distribution": distribution}, work.operands[:2])


@builds("rng_bit_generator mhlo.rng_bit_generator")
def _rng_bit_generator(work: Work) -> None:
    algorithm = GENERATORS.get(work.fields.word("rng_algorithm"))
    if algorithm is None:
        raise TypeFault(f"rng_algorithm of '{work.operation.name}' must be one of {', '.join(GENERATORS)}")
    work.emit(hlo.rng_bit_generator, {"algorithm": algorithm})


@builds("batch_norm_training mhlo.batch_norm_training batch_norm_inference mhlo.batch_norm_inference batch_norm_grad mhlo.batch_norm_grad")
def _batch_norm(work: Work) -> None:
    ops = {"training": hlo.batch_norm_training, "inference": hlo.batch_norm_inference, "grad": hlo.batch_norm_grad}
    fields = work.fields
    attrs = {"epsilon": fields.real("epsilon"), "feature_index": fields.integer("feature_index")}
    work.emit(ops[work.operation.name.rpartition("_")[2]], attrs)
