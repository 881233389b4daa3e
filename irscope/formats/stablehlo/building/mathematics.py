"""Linear algebra, Fourier transforms, random numbers and normalization: one primitive each."""
from __future__ import annotations

from collections.abc import Mapping

from irscope.formats.stablehlo.building.fields import Fields
from irscope.formats.stablehlo.building.work import Work, builds, primitive
from irscope.ops import hlo
from irscope.ops.faults import TypeFault

GENERATORS = {"DEFAULT": "rng_default", "THREE_FRY": "rng_three_fry", "PHILOX": "rng_philox"}
DISTRIBUTIONS = {"UNIFORM": "rng_uniform", "NORMAL": "rng_normal"}


@builds("rng")
def _rng(work: Work) -> None:
    """The third operand is the shape, which the result type has too."""
    work.count(2, 3)
    distribution = _word_of(work.fields, "rng_distribution", DISTRIBUTIONS, "UNIFORM or NORMAL")
    work.emit(hlo.rng, {"distribution": distribution}, work.operands[:2])


def _word_of(fields: Fields, name: str, words: Mapping[str, str], wanted: str) -> str:
    """HLO's word for the word of an attribute. Raises TypeFault for a word that ``words`` does not have; ``wanted`` lists them."""
    found = words.get(fields.word(name))
    if found is None:
        raise TypeFault(f"{name} of '{fields.owner}' must be {wanted}")
    return found


primitive("rng_bit_generator", hlo.rng_bit_generator, lambda fields: {
    "algorithm": _word_of(fields, "rng_algorithm", GENERATORS, f"one of {', '.join(GENERATORS)}")})


primitive("fft", hlo.fft, lambda fields: {"fft_type": fields.word("fft_type"), "fft_length": fields.ints("fft_length")})
primitive("cholesky", hlo.cholesky, lambda fields: fields.true_flags("lower"))
primitive("triangular_solve", hlo.triangular_solve, lambda fields: {
    **fields.true_flags("left_side", "lower", "unit_diagonal"), "transpose_a": fields.word("transpose_a", "NO_TRANSPOSE")})
for _name, _op in (("training", hlo.batch_norm_training), ("inference", hlo.batch_norm_inference), ("grad", hlo.batch_norm_grad)):
    primitive(f"batch_norm_{_name}", _op, lambda fields: {
        "epsilon": fields.real("epsilon"), "feature_index": fields.integer("feature_index")})
