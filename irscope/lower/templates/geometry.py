"""The geometry of a convolution in memory: its axes with their strides, and the room that its padding needs around the image."""
from __future__ import annotations

from dataclasses import dataclass

from irscope.fusion.views import row_major
from irscope.graph import Node
from irscope.lazy import Array, np
from irscope.lower.storage import LayoutConstraint, Storage
from irscope.lower.templates.affine import Affine, Axis
from irscope.lower.view import Address, View
from irscope.ops.convolution import Conv


@dataclass(slots=True)
class ConvolutionGeometry:
    """A convolution that has results, each of them a sum. ``spatial`` is the size of the operand with its holes."""

    conv: Conv
    lhs: Node
    rhs: Node
    spatial: tuple[int, ...]

    @staticmethod
    def of(node: Node) -> ConvolutionGeometry | None:
        """The convolution of a node, or None when it has no results or nothing to sum."""
        conv = Conv.of(node)
        if not all((*conv.out_spatial, *conv.window.size, *conv.spatial, conv.features, conv.outputs, conv.batch)):
            return None
        spatial = tuple((n - 1) * hole + 1 for n, hole in zip(conv.spatial, conv.window.lhs_dilate))
        return ConvolutionGeometry(conv, node.operands[0], node.operands[1], spatial)

    @property
    def groups(self) -> int:
        """The number of groups, of features or of batches; the other number is 1."""
        return max(self.conv.feature_groups, self.conv.batch_groups)

    @property
    def holes(self) -> tuple[int, ...]:
        """For each dimension of the operand, the distance of its elements in the dilated image."""
        found = dict(zip(self.conv.dims.lhs_spatial, self.conv.window.lhs_dilate))
        return tuple(found.get(d, 1) for d in range(len(self.spatial) + 2))

    def room(self, tile: int = 1) -> tuple[tuple[int, int], ...]:
        """Elements of zeros before and after each spatial dimension that the taps reach, when results come in tiles of ``tile``."""
        conv, found = self.conv, []
        for i, size in enumerate(self.spatial):
            window = conv.window
            results = -(-conv.out_spatial[i] // tile) * tile
            reach = (results - 1) * window.stride[i] + (window.size[i] - 1) * window.rhs_dilate[i] + 1
            found.append((max(0, window.pad_low[i]), max(0, reach - window.pad_low[i] - size)))
        return tuple(found)

    def has_room(self, storage: Storage, tile: int = 1) -> bool:
        """Whether the taps of every result find zeros where they leave the image, and in its holes."""
        if any(hole > 1 for hole in self.conv.window.lhs_dilate):
            return False
        spatial = self.conv.dims.lhs_spatial
        have = [storage.room[d] if storage.room else (0, 0) for d in spatial]
        return all(mine[0] >= low and mine[1] >= high for mine, (low, high) in zip(have, self.room(tile)))

    def image_constraint(self, tile: int = 1) -> LayoutConstraint:
        """Requests the operand with that room, and with the dimension of the lanes last: its channels, or its groups of batches."""
        dims = self.conv.dims
        rank = len(dims.lhs_spatial) + 2
        low, high = [0] * rank, [0] * rank
        if all(hole == 1 for hole in self.holes):
            for d, (before, after) in zip(dims.lhs_spatial, self.room(tile)):
                low[d], high[d] = before, after
        first, last = dims.lhs_batch, dims.lhs_feature
        if self.has_lanes_of_groups:
            first, last = last, first
        return LayoutConstraint((first, *dims.lhs_spatial, last), tuple(low), tuple(high))

    def result_constraint(self) -> LayoutConstraint:
        """Requests the result channels last."""
        dims = self.conv.dims
        return LayoutConstraint.dense((dims.out_batch, *dims.out_spatial, dims.out_feature))

    @property
    def has_lanes_of_groups(self) -> bool:
        """Whether each group of batches has one image and one result, as in a depthwise convolution's gradient: lanes walk the groups."""
        return self.conv.outputs == self.conv.batch == self.conv.batch_groups > 1

    def kernel_constraint(self) -> LayoutConstraint:
        """Requests the kernel with its result channels last."""
        dims = self.conv.dims
        return LayoutConstraint.dense((dims.rhs_input, *dims.rhs_spatial, dims.rhs_output))

    def first_tap(self, image: View) -> Address:
        """The address of the first tap of the first result: in the zeros around the operand, where it is padded."""
        return image.origin + -sum(low * image.strides[d] for d, low in zip(self.conv.dims.lhs_spatial, self.conv.window.pad_low))

    # ---- as a contraction

    def order(self, storage: Storage) -> tuple[int, ...]:
        """The sum axes (spatial numbers, and -1 for the features) in the order of the operand's memory."""
        dims, window = self.conv.dims, self.conv.window
        stride = {i: storage.strides[d] * window.rhs_dilate[i] for i, d in enumerate(dims.lhs_spatial)}
        stride[-1] = storage.strides[dims.lhs_feature]
        return tuple(sorted(stride, key=lambda i: (-abs(stride[i]), i == -1)))

    def affine(self, lhs: Storage, rhs: Storage | None, views: list[tuple[int, ...]]) -> Affine:
        """The axes; ``rhs`` None: the kernel's elements are in the order of :meth:`arranged`."""
        conv, dims, window, groups = self.conv, self.conv.dims, self.conv.window, self.groups
        order, outputs, batch = self.order(lhs), conv.outputs // groups, conv.batch // conv.batch_groups
        sizes = {**dict(enumerate(window.size)), -1: conv.features}
        if rhs is None:
            made = row_major([groups, *(sizes[i] for i in order), outputs])
            kernel = dict(zip(order, made[1:-1]))
            group_stride, column_stride = made[0], made[-1]
        else:
            column_stride = rhs.strides[dims.rhs_output]
            group_stride = outputs * column_stride
            kernel = {i: rhs.strides[d] * (-1 if window.rhs_reversal[i] else 1) for i, d in enumerate(dims.rhs_spatial)}
            kernel[-1] = rhs.strides[dims.rhs_input]
        group = batch * lhs.strides[dims.lhs_batch] if conv.batch_groups > 1 else conv.features * lhs.strides[dims.lhs_feature]
        axes = [Axis("batch", groups, group, group_stride, dims.out_feature, outputs),
                Axis("row", batch, lhs.strides[dims.lhs_batch], 0, dims.out_batch)]
        axes += [Axis("row", conv.out_spatial[i], lhs.strides[dims.lhs_spatial[i]] * window.stride[i], 0, dims.out_spatial[i])
                 for i in range(len(dims.lhs_spatial))]
        axes += [Axis("sum", sizes[i], lhs.strides[dims.lhs_feature] if i < 0 else lhs.strides[dims.lhs_spatial[i]] * window.rhs_dilate[i],
                      kernel[i]) for i in order]
        axes.append(Axis("column", outputs, 0, column_stride, dims.out_feature))
        return Affine(axes, views)

    def first_weight(self, rhs: View) -> Address:
        """The address of the first tap's weight: at the far end of reversed dimensions."""
        dims, window = self.conv.dims, self.conv.window
        turned = [(n, d) for n, d, reverse in zip(window.size, dims.rhs_spatial, window.rhs_reversal) if reverse]
        return rhs.origin + sum((n - 1) * rhs.strides[d] for n, d in turned)

    def arranged(self, array: Array, order: tuple[int, ...]) -> Array:
        """A constant kernel as [group, sums in ``order``, outputs of the group], each tap in the operand's order."""
        conv, dims = self.conv, self.conv.dims
        turned = tuple(d for d, reverse in zip(dims.rhs_spatial, conv.window.rhs_reversal) if reverse)
        array = np.flip(array, turned) if turned else array
        places = [dims.rhs_input if i < 0 else dims.rhs_spatial[i] for i in order]
        array = array.transpose(dims.rhs_output, *places)
        split = array.reshape(self.groups, conv.outputs // self.groups, *array.shape[1:])
        return np.moveaxis(split, 1, -1)
