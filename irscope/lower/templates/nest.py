"""The loops around the register tile: panels, row tiles, blocks of the summed axis, and the epilogue of each result."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from math import prod

from irscope.graph.node import Index
from irscope.lower.build import KernelBuilder
from irscope.lower.schedule import ContractionSchedule
from irscope.lower.templates.affine import AffineNest, Axis
from irscope.lower.templates.micro import Ahead, Tile, accumulate, line_of, total_type
from irscope.lower.templates.pack import Strip, in_panel, pack_copy, pack_gather, pack_transpose
from irscope.lower.templates.shares import runs, stepped
from irscope.lower.tile import Expr
from irscope.lower.view import Address

PACKERS = {"copy": pack_copy, "transpose": pack_transpose, "gather": pack_gather}


@dataclass(slots=True)
class ContractionNest(AffineNest):
    """The loops of a contraction whose ``affine`` is merged. Its last column axis is the vector axis.

    Where ``schedule.pack`` is ``load``, ``rhs`` is in panels [batch...][panel][sum...][width], as
    :func:`irscope.lower.templates.pack.panels` packs them. ``parallel``: the outermost loops are ``par``. ``packed_columns`` is
    the number of columns of a packed operand, where this nest computes only some of them (0: it computes all).
    """

    schedule: ContractionSchedule
    parallel: bool = True
    packed_columns: int = 0

    # ---- the axes, by their part in the loops

    @property
    def rows(self) -> list[Axis]:
        return self.affine.of("row") or [Axis("row", 1, 0, 0)]

    @property
    def outer(self) -> list[Axis]:
        """Batches, and columns other than the vector axis."""
        return self.affine.of("batch") + self.affine.of("column")[:-1]

    @property
    def column(self) -> Axis:
        return self.affine.of("column")[-1]

    @property
    def sums(self) -> list[Axis]:
        return self.affine.of("sum") or [Axis("sum", 1, 0, 0)]

    @property
    def width(self) -> int:
        """Elements of a panel's row."""
        return self.schedule.vectors * self.lanes

    @property
    def depth(self) -> int:
        return prod(a.size for a in self.sums)

    # ---- writing

    def _par(self, size: int) -> AbstractContextManager[Expr]:
        return (self.k.par if self.parallel else self.k.loop)(0, size)

    def write(self) -> None:
        """Emit all loops."""
        if self.schedule.rows_outer:
            self._rows_then_panels()
        else:
            self._panels_then_rows()

    def _panels_then_rows(self) -> None:
        with ExitStack() as stack:
            index, lhs, rhs = self._enter_outer(stack)
            for j, columns in stepped(self.k, self.column.size, self.width, self.parallel):
                self._panel(index, lhs, rhs, j, columns, None)

    def _rows_then_panels(self) -> None:
        k, s = self.k, self.schedule
        *before, last = self.rows
        zero: list[Index] = [k.index(0) for _ in range(self.rank)]
        with ExitStack() as stack:
            index, lhs, rhs = self._enter_outer(stack)
            for axis in before:
                i = stack.enter_context(self._par(axis.size))
                lhs, index = lhs + i * axis.lhs, axis.walk(index, i)
            for i, height in stepped(k, last.size, s.rows, self.parallel):
                rows = (lhs + i * last.lhs, last.walk(zero, i), height)
                for j, columns in stepped(k, self.column.size, self.width, False):
                    self._panel(index, lhs, rhs, j, columns, rows)

    def _enter_outer(self, stack: ExitStack) -> tuple[list[Index], Address, Address]:
        """Open loops over batches and outer columns; returns (index of the result, left address, right address)."""
        k = self.k
        index: list[Index] = [k.index(0) for _ in range(self.rank)]
        lhs, rhs = self.lhs, self.rhs
        packed = self.schedule.pack == "load"
        step = prod(a.size for a in self.outer if a.rhs or a.role == "column") if packed else 0
        panel_elements = -(-(self.packed_columns or self.column.size) // self.width) * self.depth * self.width
        for axis in self.outer:
            i = stack.enter_context(self._par(axis.size))
            lhs, index = lhs + i * axis.lhs, axis.walk(index, i)
            if packed and axis.rhs:
                step //= axis.size
                rhs = rhs + i * (step * panel_elements)
            elif not packed:
                rhs = rhs + i * axis.rhs
        return index, lhs, rhs

    def _panel(self, index: list[Index], lhs: Address, rhs: Address, j: Index, columns: int,
               rows: tuple[Address, list[Index], int] | None) -> None:
        """Emit one panel of columns, from ``j`` on: over all rows, or over the one tile ``rows`` (address, index, height)."""
        k, s, lanes = self.k, self.schedule, self.lanes
        vectors, rest = -(-columns // lanes), columns % lanes
        mask = k.first_lanes(rest, lanes) if rest else None
        sums, address = self.sums, rhs + j * self.column.rhs
        if s.pack == "load":
            sums, address = in_panel(self.sums, self.width), rhs + j * self.depth
        tile = Tile(lhs, address, (), vectors, lanes, sums, mask if s.pack == "none" else None)
        # A panel that is summed in blocks is packed in blocks, where a block is contiguous in it.
        in_blocks = s.pack in PACKERS and bool(s.sum_block) and (s.pack == "copy" or len(sums) == 1)
        unpacked = tile
        if s.pack in PACKERS and not in_blocks:
            tile = self._with_panel(tile, columns)
        at = self.column.walk(index, j)
        if rows is not None:
            self._tile(replace(tile, lhs=rows[0], rows=self._offsets(1, rows[2])), self._joined(rows[1], at), 1, rows[2], mask)
        elif s.sum_block:
            self._blocked(tile, at, mask, columns if in_blocks else 0)
        else:
            for base, where, across, height, number in self._row_tiles():
                ahead = self._ahead(tile, unpacked, self.width * self.column.rhs, number) if s.prefetch else None
                here = replace(tile, lhs=lhs + base, rows=self._offsets(across, height), ahead=ahead)
                self._tile(here, self._joined(where, at), across, height, mask)

    def _with_panel(self, tile: Tile, columns: int) -> Tile:
        """The tile, reading a panel that is packed here."""
        panel, sums = PACKERS[self.schedule.pack](self.k, Strip(tile.rhs, tile.sums, self.column, columns, tile.lanes))
        return replace(tile, rhs=panel, sums=sums)

    def _row_tiles(self) -> Iterator[tuple[Expr, list[Index], int, int, Expr]]:
        """(left address, index, across, height, number) of tiles that cover all rows; a loop is open while each is emitted."""
        k, s = self.k, self.schedule
        *before, second, last = [Axis("row", 1, 0, 0), *self.rows]
        zero: list[Index] = [k.index(0) for _ in range(self.rank)]
        with ExitStack() as stack:
            base, where, number = k.index(0), zero, k.index(0)
            per_group = -(-last.size // s.rows)
            groups = -(-second.size // s.across)
            for axis in before:
                i = stack.enter_context(k.loop(0, axis.size))
                base, where, number = base + i * axis.lhs, axis.walk(where, i), number * axis.size + i
            for o_first, o_count, across in runs(second.size, s.across):
                with k.loop(o_first, o_first + o_count, across) as o:
                    for i_first, i_count, height in runs(last.size, s.rows):
                        with k.loop(i_first, i_first + i_count, height) as i:
                            here = last.walk(second.walk(where, o), i)
                            count = (number * groups + o // s.across) * per_group + i // s.rows
                            yield base + o * second.lhs + i * last.lhs, here, across, height, count

    def _offsets(self, across: int, height: int) -> list[int]:
        """The rows of a tile, as distances from the first in the left operand."""
        *_, second, last = [Axis("row", 1, 0, 0), *self.rows]
        return [o * second.lhs + i * last.lhs for o in range(across) for i in range(height)]

    def _tile(self, tile: Tile, index: list[Index], across: int, height: int, mask: Expr | None) -> None:
        acc = accumulate(self.k, tile, self.dtype)
        for r, row in enumerate(acc):
            for v, register in enumerate(row):
                self._out(register.get(), index, divmod(r, height), v, tile.vectors, mask)

    def _out(self, value: Expr, index: list[Index], row: tuple[int, int], vector: int, vectors: int, mask: Expr | None) -> None:
        """Pass one vector of a tile whose first element is at ``index`` to ``finish``."""
        *_, second, last = [Axis("row", 1, 0, 0), *self.rows]
        where = last.walk(second.walk(index, self.k.index(row[0])), self.k.index(row[1]))
        where = self.column.walk(where, self.k.index(vector * self.lanes))
        self.finish(value, where, mask if vector == vectors - 1 else None)

    def _blocked(self, tile: Tile, at: list[Index], mask: Expr | None, pack: int) -> None:
        """Emit the summed axis in blocks: results stay in scratch memory until all blocks are summed.

        A block continues the accumulated sum; where the sum is long, it starts from zero and is added to a total in f64.
        ``pack``: this many columns of each block are packed first (0: none).
        """
        k, lanes, s = self.k, self.lanes, self.schedule
        long = total_type(self.dtype, self.depth)
        kept = long or self.dtype
        partial = k.scratch(kept, (prod(a.size for a in self.rows), tile.vectors * lanes)).origin
        width = tile.vectors * lanes

        def place(number_of_row: Index, vector: int) -> Address:
            address: Address = partial + (number_of_row * width + vector * lanes)
            return address

        with k.loop(0, prod(a.size for a in self.rows)) as i:
            for v in range(tile.vectors):
                place(i, v).store(k.splat(k.const(0, kept), lanes))
        for lhs, rhs, sums, stack in _blocks(k, tile, s.sum_block):
            with stack:
                unpacked = block = replace(tile, rhs=rhs, sums=sums)
                if pack:
                    block = self._with_panel(block, pack)
                for base, where, across, height, number in self._row_tiles():
                    rows = self._row_numbers(where, across, height)
                    here = replace(block, lhs=lhs + base, rows=self._offsets(across, height))
                    if s.prefetch:
                        here.ahead = self._ahead(block, unpacked, sums[0].size * sums[0].rhs, number)

                    def before(r: int, v: int, rows: list[Index] = rows) -> Expr:
                        return place(rows[r], v).load(lanes)

                    acc = accumulate(k, here, self.dtype, None if long else before)
                    for r, row in enumerate(acc):
                        for v, register in enumerate(row):
                            done = k.binary("add", before(r, v), k.convert(register.get(), long)) if long else register.get()
                            place(rows[r], v).store(done)
        for _, where, across, height, _ in self._row_tiles():
            rows = self._row_numbers(where, across, height)
            for r in range(across * height):
                for v in range(tile.vectors):
                    value = k.convert(place(rows[r], v).load(lanes), self.dtype)
                    self._out(value, self._joined(where, at), divmod(r, height), v, tile.vectors, mask)

    def _row_numbers(self, where: list[Index], across: int, height: int) -> list[Index]:
        """The rows of a tile, counted through all row axes."""
        first = self.k.index(0)
        for axis in self.rows:
            first = first * axis.size + (where[axis.out] // axis.step if axis.out >= 0 else 0)
        return [first + (o * self.rows[-1].size + i) for o in range(across) for i in range(height)]

    def _ahead(self, tile: Tile, unpacked: Tile, next_panel: int, number: Index) -> Ahead:
        """The prefetches of tile ``number`` of a panel: its share of the next panel.

        Panels that were packed before the run are contiguous. One that will be copied is ``next_panel`` elements further, in rows
        as wide as a panel: each tile prefetches one line of every row.
        """
        line = line_of(self.rhs.dtype)
        if self.schedule.pack != "load":
            return Ahead(unpacked.rhs + next_panel + number % tile.vectors * line, [a.rhs for a in unpacked.sums], 1)
        sizes, lines = [a.size for a in tile.sums], self.schedule.prefetch
        address = tile.rhs + prod(sizes) * self.width + number * (prod(sizes) * line * lines)
        return Ahead(address, [prod(sizes[i + 1:]) * line * lines for i in range(len(sizes))], lines)

    @staticmethod
    def _joined(a: list[Index], b: list[Index]) -> list[Index]:
        """Two indices along different dimensions, combined."""
        return [x + y for x, y in zip(a, b)]


def _blocks(k: KernelBuilder, tile: Tile, block: int) -> Iterator[tuple[Address, Address, Sequence[Axis], ExitStack]]:
    """(left address, right address, axes, open loops) of blocks of about ``block`` steps.

    Whole inner axes are kept together: the outermost axis is split where its inner part is small enough, else the innermost is.
    """
    axes = list(tile.sums)
    cut = 0
    while cut < len(axes) - 1 and prod(a.size for a in axes[cut + 1:]) > block:
        cut += 1
    inner = prod(a.size for a in axes[cut + 1:])
    for first, count, step in runs(axes[cut].size, min(axes[cut].size, max(1, block // inner))):
        stack = ExitStack()
        lhs, rhs = tile.lhs, tile.rhs
        for axis in axes[:cut]:
            i = stack.enter_context(k.loop(0, axis.size))
            lhs, rhs = lhs + i * axis.lhs, rhs + i * axis.rhs
        i = stack.enter_context(k.loop(first, first + count, step))
        sums = [replace(axes[cut], size=step), *axes[cut + 1:]]
        yield lhs + i * axes[cut].lhs, rhs + i * axes[cut].rhs, sums, stack
