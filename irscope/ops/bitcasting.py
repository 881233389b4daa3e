"""bitcast-convert: the bits of elements read as another type, one to one, one to several, or several to one."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.graph import DTYPES, DType, Kind, Node, Op, TensorType, Type
from irscope.graph.dtypes import F32, F64, U32, U64
from irscope.graph.node import Emitter, Read, Run, Value
from irscope.lazy import Array, np
from irscope.ops.faults import TypeFault
from irscope.ops.formula import FormulaTerm
from irscope.ops.infer import arity, array, declared_array, plain
from irscope.ops.numerics import dtype_of_result, reinterpreted
from irscope.ops.registry import declare
from irscope.ops.shapes import same_size


def _infer(node: Node) -> Type:
    arity(node, 1)
    x, dtype = array(node, 0), declared_array(node).dtype
    if x.dtype.is_complex != dtype.is_complex:
        raise TypeFault(f"bitcast-convert does not go between complex and real types: {plain(x)} to {dtype}")
    wide, narrow = max(x.dtype.bits, dtype.bits), min(x.dtype.bits, dtype.bits)
    if not narrow or wide % narrow:
        raise TypeFault(f"bitcast-convert of {plain(x)} to {dtype}: {wide} bits are no multiple of {narrow}")
    ratio = wide // narrow
    if x.dtype.bits > dtype.bits:
        return TensorType(dtype, (*x.shape, ratio))
    if x.dtype.bits < dtype.bits:
        if not x.rank or not same_size(x.shape[-1], ratio):
            raise TypeFault(f"bitcast-convert of {plain(x)} to {dtype} needs a last dimension of {ratio}, "
                            f"but it is {x.shape[-1] if x.rank else 'missing'}", f"{ratio} elements of {x.dtype} make one {dtype}")
        return TensorType(dtype, x.shape[:-1])
    return TensorType(dtype, x.shape)


def _reference(run: Run, node: Node, x: Array) -> Array:
    x = np.asarray(x)
    source, target = array(node, 0).dtype, dtype_of_result(node)
    flat = reinterpreted(x.reshape(-1), source, target)
    dims = x.shape if source.bits == target.bits else x.shape[:-1] if source.bits < target.bits else (*x.shape, source.bits // target.bits)
    return flat.reshape(dims)


def _element(k: Emitter, node: Node, index: Sequence[Value], read: Read) -> Value:
    source, target = array(node, 0).dtype, dtype_of_result(node)
    if source is target:
        return read(0, index)
    if source.is_complex:
        return _complex_element(k, source, index, read)
    if source.bits == target.bits:
        return k.bitcast(read(0, index), target)
    if source.bits > target.bits:
        return k.bitcast(_piece(k, read(0, index[:-1]), index[-1], target.bits), target)
    word = DTYPES[f"u{target.bits}"]
    pieces = [FormulaTerm(k, k.convert(k.bitcast(read(0, [*index, k.index(i)]), DTYPES[f"u{source.bits}"]), word)) << i * source.bits
              for i in range(target.bits // source.bits)]
    total = pieces[0]
    for piece in pieces[1:]:
        total = total | piece
    return k.bitcast(total.value, target)


def _piece(k: Emitter, x: Value, number: Value, bits: int) -> Value:
    """Piece ``number`` (an index) of the bits of ``x``, counted from the low end."""
    word = DTYPES[f"u{x.dtype.bits}"]
    shifted = FormulaTerm(k, k.bitcast(x, word)) >> FormulaTerm(k, k.convert(number * bits, word))
    return k.convert(shifted.value, DTYPES[f"u{bits}"])


def _complex_element(k: Emitter, source: DType, index: Sequence[Value], read: Read) -> Value:
    """Between c64 and c128: a part of the wide number contains both parts of a narrow one."""
    if source.bits == 128:
        x = read(0, index[:-1])
        part = k.select(k.compare("EQ", index[-1], k.index(0)), k.unary("real", x), k.unary("imag", x))
        return k.complex(*(k.bitcast(_piece(k, part, k.index(i), 32), F32) for i in range(2)))
    parts = []
    for i in range(2):
        x = read(0, [*index, k.index(i)])
        low, high = (FormulaTerm(k, k.convert(k.bitcast(k.unary(w, x), U32), U64)) for w in ("real", "imag"))
        parts.append(k.bitcast((low | high << 32).value, F64))
    return k.complex(*parts)


bitcast_convert = declare(Op(
    "bitcast-convert", doc="The bits as another type; a wider one takes, a narrower one gives a last dimension, low bits first.",
    kind=Kind.INJECTIVE, infer=_infer, reference=_reference, element=_element))
