"""Shapes and layouts as HLO text: ``(f32[2,<=3]{1,0:T(8,128)}, s32[])``."""
from __future__ import annotations

from collections.abc import Iterator

from irscope.formats.hlo_pb.record import Record

UNBOUNDED = -(1 << 63)
_WORDS = {"TUPLE": "tuple", "OPAQUE_TYPE": "opaque", "PRIMITIVE_TYPE_INVALID": "invalid"}
_LEVELS = {"DIM_DENSE": "D", "DIM_COMPRESSED": "C", "DIM_SINGLETON": "S", "DIM_LOOSE_COMPRESSED": "H"}


def shape_text(shape: Record, layouts: bool = True) -> str:
    """A shape as HLO writes it. Tuples are not deeper than messages may be nested."""
    if not layouts:
        return _shape(shape, False)
    if shape.printed is None:
        shape.printed = _shape(shape, True)
    return shape.printed


def _shape(shape: Record, layouts: bool) -> str:
    kind = shape.word("element_type")
    if kind == "TUPLE":
        return "(" + ", ".join(shape_text(element, layouts) for element in shape.records("tuple_shapes")) + ")"
    if kind == "BUFFER":
        return "b(" + "".join(shape_text(element, layouts) for element in shape.records("tuple_shapes")[:1]) + ")"
    if kind in ("TOKEN", "OPAQUE_TYPE"):
        return element_name(kind) + "[]"
    dynamic = shape.numbers("is_dynamic_dimension")
    sizes = shape.numbers("dimensions")
    dims = [_size(size, i < len(dynamic) and dynamic[i] != 0) for i, size in enumerate(sizes)]
    layout = _layout(shape.record("layout"), len(dims)) if layouts and shape.has("layout") else ""
    return f"{element_name(kind)}[{','.join(dims)}]{layout}"


def element_name(word: str) -> str:
    """The name of an element type."""
    return _WORDS.get(word, word.lower())


def _size(size: int, dynamic: bool) -> str:
    if size == UNBOUNDED:
        return "?"
    return f"<={size}" if dynamic else str(size)


def _layout(layout: Record, rank: int) -> str:
    order = ",".join(map(str, layout.numbers("minor_to_major")))
    more = "".join(_extras(layout, rank))
    return "{" + order + (":" + more if more else "") + "}" if order or more else ""


def _extras(layout: Record, rank: int) -> Iterator[str]:
    """What follows the order of the dimensions, in XLA's order."""
    levels = layout.words("dim_level_types")
    unique, ordered = layout.numbers("dim_unique"), layout.numbers("dim_ordered")
    if any(level != "DIM_DENSE" for level in levels):
        yield "D(" + ",".join(_LEVELS.get(level, level) + ("" if _flag(unique, i) else "+") + ("" if _flag(ordered, i) else "~")
                              for i, level in enumerate(levels[:rank])) + ")"
    tiles = layout.records("tiles")
    if tiles:
        yield "T" + "".join("(" + ",".join("*" if n == UNBOUNDED else str(n) for n in tile.numbers("dimensions")) + ")" for tile in tiles)
    tail = layout.number("tail_padding_alignment_in_elements")
    if tail > 1:
        yield f"L({tail})"
    for mark, name in (("#", "index_primitive_type"), ("*", "pointer_primitive_type")):
        if layout.number(name):
            yield f"{mark}({element_name(layout.word(name))})"
    if layout.number("element_size_in_bits"):
        yield f"E({layout.number('element_size_in_bits')})"
    if layout.number("memory_space"):
        yield f"S({layout.number('memory_space')})"
    splits = layout.records("split_configs")
    if splits:
        yield "SC" + "".join(f"({s.number('dimension')}:{','.join(map(str, s.numbers('split_indices')))})" for s in splits)
    if layout.has("physical_shape"):
        yield f"P({shape_text(layout.record('physical_shape'))})"
    if layout.number("dynamic_shape_metadata_prefix_bytes"):
        yield f"M({layout.number('dynamic_shape_metadata_prefix_bytes')})"


def _flag(flags: list[int], i: int) -> bool:
    return i >= len(flags) or flags[i] != 0
