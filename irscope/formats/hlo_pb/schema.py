"""The fields of XLA's protos that irscope reads, by number and by name.

The numbers and names are those of ``xla/service/hlo.proto`` and ``xla/xla_data.proto`` (jaxlib 0.10 to 0.12). Numbers are never re-used, so
that files of older releases have the same ones. A field that is missing here is stepped over.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

# MESSAGE: NUMBER NAME TYPE, ...   (* repeated; int is int32 or int64, uint the unsigned ones)
_MESSAGES = """
HloProto: 1 hlo_module HloModuleProto, 3 buffer_assignment BufferAssignmentProto
HloSnapshot: 1 hlo HloProto, 2 arguments LiteralProto*, 3 result LiteralProto, 4 execution_platform string
HloUnoptimizedSnapshot: 1 hlo_module HloModuleProto, 2 partitions HloInputs*, 3 version int
HloModuleProto: 1 name string, 2 entry_computation_name string, 3 computations HloComputationProto*, 4 host_program_shape
  ProgramShapeProto, 5 id int, 6 entry_computation_id int, 7 schedule HloScheduleProto, 8 input_output_alias HloInputOutputAliasProto,
  11 is_dynamic bool, 12 spmd_output_sharding OpSharding, 14 spmd_parameters_shardings OpSharding*, 16 use_auto_spmd_partitioning bool,
  17 stack_frame_index StackFrameIndexProto, 18 buffer_donor HloBufferDonorProto, 19 frontend_attributes FrontendAttributes, 21
  device_type string, 23 pjrt_id int, 25 backend_config bytes
BufferAssignmentProto: 1 logical_buffers LogicalBufferProto*, 3 buffer_allocations BufferAllocationProto*
LiteralProto: 1 shape ShapeProto, 2 preds bool*, 3 u8s bytes, 4 s32s int*, 5 s64s int*, 6 u32s uint*, 7 u64s uint*, 8 f32s float*, 9
  f64s double*, 10 tuple_literals LiteralProto*, 11 f16s bytes, 12 c64s float*, 13 bf16s bytes, 14 sparse_indices int*, 15 s8s bytes, 16
  u16s bytes, 17 s16s bytes, 18 c128s double*, 19 f8e5m2s bytes, 20 f8e4m3fns bytes, 21 s4s bytes, 22 u4s bytes, 23 f8e4m3b11fnuzs
  bytes, 24 f8e5m2fnuzs bytes, 25 f8e4m3fnuzs bytes, 26 s2s bytes, 27 u2s bytes, 28 f8e4m3s bytes, 29 f8e3m4s bytes, 30 s1s bytes, 31
  u1s bytes, 32 f4e2m1fns bytes, 33 f8e8m0fnus bytes, 34 dynamic_sizes int*, 35 f6e3m2fns bytes, 36 f6e2m3fns bytes
HloInputs: 1 arguments LiteralProto*
HloComputationProto: 1 name string, 2 instructions HloInstructionProto*, 4 program_shape ProgramShapeProto, 5 id int, 6 root_id int, 7
  is_fusion_computation bool, 8 execution_thread string, 9 backend_config bytes
ProgramShapeProto: 1 parameters ShapeProto*, 2 result ShapeProto, 3 parameter_names string*
HloScheduleProto: 1 sequences HloScheduleProto.SequencesEntry*
HloInputOutputAliasProto: 1 entries HloInputOutputAliasProto.AliasEntryProto*
OpSharding: 1 type OpSharding.Type, 2 tile_shape ShapeProto, 3 tile_assignment_dimensions int*, 4 tile_assignment_devices int*, 5
  tuple_shardings OpSharding*, 6 replicate_on_last_tile_dim bool, 7 metadata OpMetadata*, 8 last_tile_dims OpSharding.Type*, 9
  iota_reshape_dims int*, 10 iota_transpose_perm int*, 11 is_shard_group bool, 12 shard_group_id int, 13 shard_group_type
  OpSharding.ShardGroupType, 14 named_sharding NamedShardingProto
StackFrameIndexProto: 1 file_names string*, 2 function_names string*, 3 file_locations StackFrameIndexProto.FileLocation*, 4
  stack_frames StackFrameIndexProto.StackFrame*
HloBufferDonorProto: 1 entries HloBufferDonorProto.BufferDonorEntryProto*
FrontendAttributes: 1 map FrontendAttributes.MapEntry*
LogicalBufferProto: 1 id int, 2 size int, 3 defined_at LogicalBufferProto.Location, 4 color int
BufferAllocationProto: 1 index int, 2 size int, 3 is_thread_local bool, 11 is_tuple bool, 5 is_entry_computation_parameter bool, 12
  is_constant bool, 6 parameter_number int, 10 parameter_shape_index int*, 13 is_parameter_aliased_with_output bool, 7 maybe_live_out
  bool, 8 color int, 9 assigned BufferAllocationProto.Assigned*
ShapeProto: 2 element_type PrimitiveType, 3 dimensions int*, 4 tuple_shapes ShapeProto*, 5 layout LayoutProto, 6 is_dynamic_dimension
  bool*
HloInstructionProto: 1 name string, 2 opcode string, 3 shape ShapeProto, 7 metadata OpMetadata, 8 literal LiteralProto, 9
  parameter_number int, 11 fusion_kind string, 13 tuple_index int, 14 dimensions int*, 15 window Window, 16
  convolution_dimension_numbers ConvolutionDimensionNumbers, 17 slice_dimensions HloInstructionProto.SliceDimensions*, 18 exponent_bits
  int, 19 mantissa_bits int, 20 dynamic_slice_sizes int*, 21 padding_config PaddingConfig, 22 outfeed_config bytes, 23 distribution
  RandomDistribution, 24 epsilon float, 25 feature_index int, 26 channel_id int, 27 infeed_config bytes, 28 custom_call_target string,
  29 outfeed_shape ShapeProto, 30 dot_dimension_numbers DotDimensionNumbers, 31 fft_type FftType, 32 fft_length int*, 33
  gather_dimension_numbers GatherDimensionNumbers, 34 gather_slice_sizes int*, 35 id int, 36 operand_ids int*, 37
  control_predecessor_ids int*, 38 called_computation_ids int*, 40 sharding OpSharding, 43 backend_config bytes, 45 all_reduce_id int,
  47 is_host_transfer bool, 48 scatter_dimension_numbers ScatterDimensionNumbers, 49 replica_groups ReplicaGroup*, 50
  feature_group_count int, 51 precision_config PrecisionConfig, 52 source_target_pairs SourceTarget*, 54 domain_entry_sharding
  OpSharding, 55 domain_exit_sharding OpSharding, 56 constrain_layout bool, 57 operand_shapes_with_layout ShapeProto*, 58
  batch_group_count int, 59 triangular_solve_options TriangularSolveOptions, 60 is_stable bool, 61 parameter_replication
  ParameterReplication, 62 cholesky_options CholeskyOptions, 63 comparison_direction string, 65 custom_call_has_side_effect bool, 66
  delta int, 67 indices_are_sorted bool, 68 frontend_attributes FrontendAttributes, 69 unique_indices bool, 70 rng_algorithm
  RandomAlgorithm, 71 use_global_device_ids bool, 72 comparison_type string, 73 is_cross_program_prefetch bool, 74
  output_operand_aliasing OutputOperandAliasing*, 75 padding_type PaddingType, 76 custom_call_schedule CustomCallSchedule, 77
  custom_call_api_version CustomCallApiVersion, 79 async_execution_thread string, 80 cross_program_prefetch_index int, 81 k int, 82
  statistics_viz StatisticsViz, 85 largest bool, 87 collective_device_list CollectiveDeviceListProto, 88 original_value
  OriginalValueProto, 89 is_composite bool, 90 ragged_dot_dimension_numbers RaggedDotDimensionNumbers, 91 result_accuracy
  ResultAccuracy, 92 iota_collective_device_list IotaReplicaGroupListProto, 93 mesh_axes_replica_group_list
  MeshAxesReplicaGroupListProto, 94 is_reverse bool, 95 num_carries int, 96 is_associative TriState, 97 conv_kind ConvolutionKind, 98
  sparsity_config SparsityConfig, 100 has_dynamic_root bool, 102 comparison_order string
HloScheduleProto.SequencesEntry: 1 key int, 2 value HloScheduleProto.InstructionSequence
HloInputOutputAliasProto.AliasEntryProto: 1 output_shape_index int*, 2 parameter_number int, 3 parameter_shape_index int*, 4 kind
  HloInputOutputAliasProto.Kind
OpMetadata: 1 op_type string, 2 op_name string, 3 source_file string, 4 source_line int, 8 size_of_generated_code_in_bytes int, 9
  size_of_memory_working_set_in_bytes int, 12 deduplicated_name string, 15 stack_frame_id int, 16 scheduling_name string, 17
  source_end_line int, 18 source_column int, 19 source_end_column int
NamedShardingProto: 2 mesh MeshProto, 3 dim_shardings NamedShardingProto.DimensionSharding*, 4 replicated_axes AxisRefProto*, 5
  unreduced_axes AxisRefProto*, 7 manual_axes AxisRefProto*, 6 metadata OpMetadata*
StackFrameIndexProto.FileLocation: 1 file_name_id int, 2 function_name_id int, 3 line int, 4 column int, 5 end_line int, 6 end_column
  int
StackFrameIndexProto.StackFrame: 1 file_location_id int, 2 parent_frame_id int
HloBufferDonorProto.BufferDonorEntryProto: 1 parameter_number int, 2 parameter_shape_index int*
FrontendAttributes.MapEntry: 1 key string, 2 value string
LogicalBufferProto.Location: 2 instruction_name string, 4 instruction_id int, 3 shape_index int*
BufferAllocationProto.Assigned: 1 logical_buffer_id int, 2 offset int, 3 size int, 4 element_type PrimitiveType
LayoutProto: 1 minor_to_major int*, 6 tiles TileProto*, 7 element_size_in_bits int, 8 memory_space int, 9 dim_level_types DimLevelType*,
  10 physical_shape ShapeProto, 11 index_primitive_type PrimitiveType, 12 pointer_primitive_type PrimitiveType, 13 dim_unique bool*, 14
  dim_ordered bool*, 15 dynamic_shape_metadata_prefix_bytes int, 16 tail_padding_alignment_in_elements int, 17 split_configs
  SplitConfigProto*
Window: 1 dimensions WindowDimension*
ConvolutionDimensionNumbers: 3 kernel_input_feature_dimension int, 4 kernel_output_feature_dimension int, 6 kernel_spatial_dimensions
  int*, 7 input_batch_dimension int, 8 input_feature_dimension int, 9 output_batch_dimension int, 10 output_feature_dimension int, 11
  input_spatial_dimensions int*, 12 output_spatial_dimensions int*
HloInstructionProto.SliceDimensions: 1 start int, 2 limit int, 3 stride int
PaddingConfig: 1 dimensions PaddingConfig.PaddingConfigDimension*
DotDimensionNumbers: 1 lhs_contracting_dimensions int*, 2 rhs_contracting_dimensions int*, 3 lhs_batch_dimensions int*, 4
  rhs_batch_dimensions int*
GatherDimensionNumbers: 1 offset_dims int*, 2 collapsed_slice_dims int*, 3 start_index_map int*, 4 index_vector_dim int, 5
  operand_batching_dims int*, 6 start_indices_batching_dims int*
ScatterDimensionNumbers: 1 update_window_dims int*, 2 inserted_window_dims int*, 3 scatter_dims_to_operand_dims int*, 4 index_vector_dim
  int, 5 input_batching_dims int*, 6 scatter_indices_batching_dims int*
ReplicaGroup: 1 replica_ids int*
PrecisionConfig: 1 operand_precision PrecisionConfig.Precision*, 2 algorithm PrecisionConfig.Algorithm
SourceTarget: 1 source int, 2 target int
TriangularSolveOptions: 1 left_side bool, 2 lower bool, 3 unit_diagonal bool, 4 transpose_a TriangularSolveOptions.Transpose
ParameterReplication: 1 replicated_at_leaf_buffers bool*
CholeskyOptions: 1 lower bool
OutputOperandAliasing: 1 output_shape_index int*, 2 operand_index int, 3 operand_shape_index int*
StatisticsViz: 1 stat_index_to_visualize int, 2 statistics Statistic*
CollectiveDeviceListProto: 1 replica_groups ReplicaGroup*, 2 iota_replica_group_list IotaReplicaGroupListProto
OriginalValueProto: 1 elements OriginalValueElementProto*, 2 is_synthetic_call bool, 3 call_hierarchy string
RaggedDotDimensionNumbers: 1 dot_dimension_numbers DotDimensionNumbers, 2 lhs_ragged_dimensions int*, 3 rhs_group_dimensions int*
ResultAccuracy: 1 mode ResultAccuracy.Mode, 2 tolerance ResultAccuracy.Tolerance
IotaReplicaGroupListProto: 1 num_replica_groups int, 2 num_devices_per_group int, 3 iota_reshape_dims int*, 4 iota_transpose_perm int*
MeshAxesReplicaGroupListProto: 1 mesh MeshProto, 2 axes AxisRefProto*
SparsityConfig: 1 lhs SparsityConfig.TensorSparsityConfig, 2 rhs SparsityConfig.TensorSparsityConfig
HloScheduleProto.InstructionSequence: 1 instruction_ids int*
MeshProto: 1 axes MeshProto.MeshAxis*, 2 device_ids int*, 3 iota_transform MeshProto.IotaTransform
NamedShardingProto.DimensionSharding: 1 axes AxisRefProto*, 2 is_closed bool
AxisRefProto: 1 mesh_axis_index int, 2 sub_axis_info AxisRefProto.SubAxis
TileProto: 1 dimensions int*
SplitConfigProto: 1 dimension int, 2 split_indices int*
WindowDimension: 1 size int, 2 stride int, 3 padding_low int, 4 padding_high int, 5 window_dilation int, 6 base_dilation int, 7
  window_reversal bool
PaddingConfig.PaddingConfigDimension: 1 edge_padding_low int, 2 edge_padding_high int, 3 interior_padding int
Statistic: 1 stat_name string, 2 stat_val double
OriginalValueElementProto: 1 shape_index int*, 2 original_array OriginalArrayProto
ResultAccuracy.Tolerance: 1 atol double, 2 rtol double, 3 ulps int
SparsityConfig.TensorSparsityConfig: 1 num_non_zero int, 2 block_size int, 3 dimension int, 4 stride int
MeshProto.MeshAxis: 1 name string, 2 size int
MeshProto.IotaTransform: 1 reshape_dims int*, 2 transpose_perm int*
AxisRefProto.SubAxis: 1 pre_size int, 2 size int
OriginalArrayProto: 1 instruction_name string, 2 shape_index int*
"""

# ENUM: NUMBER NAME, ...
_ENUMS = """
ConvolutionKind: 0 CONVOLUTION_KIND_UNSET, 1 CONVOLUTION_KIND_FPROP, 2 CONVOLUTION_KIND_DGRAD, 3 CONVOLUTION_KIND_WGRAD
CustomCallApiVersion: 0 API_VERSION_UNSPECIFIED, 1 API_VERSION_ORIGINAL, 2 API_VERSION_STATUS_RETURNING, 3
  API_VERSION_STATUS_RETURNING_UNIFIED, 4 API_VERSION_TYPED_FFI
CustomCallSchedule: 0 SCHEDULE_NONE, 1 SCHEDULE_LATEST, 2 SCHEDULE_EARLIEST
DimLevelType: 0 DIM_DENSE, 1 DIM_COMPRESSED, 2 DIM_SINGLETON, 3 DIM_LOOSE_COMPRESSED
FftType: 0 FFT, 1 IFFT, 2 RFFT, 3 IRFFT
HloInputOutputAliasProto.Kind: 0 UNDEFINED_ALIAS, 1 MAY_ALIAS, 2 MUST_ALIAS
OpSharding.ShardGroupType: 0 AS, 1 LIKE
OpSharding.Type: 0 REPLICATED, 1 MAXIMAL, 2 TUPLE, 3 OTHER, 4 MANUAL, 5 UNKNOWN, 6 UNREDUCED
PaddingType: 0 PADDING_INVALID, 1 PADDING_VALID, 2 PADDING_SAME
PrecisionConfig.Algorithm: 0 ALG_UNSET, 1 ALG_DOT_ANY_F8_ANY_F8_F32, 2 ALG_DOT_ANY_F8_ANY_F8_F32_FAST_ACCUM, 3 ALG_DOT_F16_F16_F16, 4
  ALG_DOT_F16_F16_F32, 5 ALG_DOT_BF16_BF16_BF16, 6 ALG_DOT_BF16_BF16_F32, 7 ALG_DOT_BF16_BF16_F32_X3, 8 ALG_DOT_BF16_BF16_F32_X6, 9
  ALG_DOT_TF32_TF32_F32, 10 ALG_DOT_TF32_TF32_F32_X3, 11 ALG_DOT_F32_F32_F32, 12 ALG_DOT_F64_F64_F64, 13 ALG_DOT_BF16_BF16_F32_X9
PrecisionConfig.Precision: 0 DEFAULT, 1 HIGH, 2 HIGHEST, 3 PACKED_NIBBLE
PrimitiveType: 0 PRIMITIVE_TYPE_INVALID, 1 PRED, 30 S1, 26 S2, 21 S4, 2 S8, 3 S16, 4 S32, 5 S64, 31 U1, 27 U2, 22 U4, 6 U8, 7 U16, 8
  U32, 9 U64, 10 F16, 11 F32, 16 BF16, 12 F64, 19 F8E5M2, 28 F8E4M3, 20 F8E4M3FN, 23 F8E4M3B11FNUZ, 29 F8E3M4, 24 F8E5M2FNUZ, 25
  F8E4M3FNUZ, 32 F4E2M1FN, 33 F8E8M0FNU, 35 F6E3M2FN, 36 F6E2M3FN, 15 C64, 18 C128, 13 TUPLE, 14 OPAQUE_TYPE, 17 TOKEN, 34 BUFFER
RandomAlgorithm: 0 RNG_DEFAULT, 1 RNG_THREE_FRY, 2 RNG_PHILOX
RandomDistribution: 0 RNG_INVALID, 1 RNG_UNIFORM, 2 RNG_NORMAL
ResultAccuracy.Mode: 0 DEFAULT, 1 HIGHEST
TriState: 0 TRI_STATE_UNSPECIFIED, 1 TRI_STATE_TRUE, 2 TRI_STATE_FALSE
TriangularSolveOptions.Transpose: 0 TRANSPOSE_INVALID, 1 NO_TRANSPOSE, 2 TRANSPOSE, 3 ADJOINT
"""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message. ``kind`` is a scalar type, ``enum``, or ``message``; the latter two have the name of their ``type``."""

    number: int
    name: str
    kind: str
    repeated: bool
    type: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """The fields of a message, by number and by name."""

    name: str
    numbers: Mapping[int, Field]
    names: Mapping[str, Field]


SCALARS = frozenset("int uint bool float double string bytes".split())


@cache
def _rows(text: str) -> dict[str, str]:
    """``NAME: rest``, where an indented line continues the one before."""
    return dict(line.split(": ", 1) for line in re.sub(r"\n +", " ", text).split("\n") if line)


@cache
def enum(name: str) -> Mapping[int, str]:
    """The words of an enum, by number."""
    return {int(number): word for number, word in (pair.split() for pair in _rows(_ENUMS)[name].split(", "))}


@cache
def message(name: str) -> Message:
    """The fields of a message."""
    fields = []
    for number, field, written in (entry.split() for entry in _rows(_MESSAGES)[name].split(", ")):
        type = written.rstrip("*")
        kind = type if type in SCALARS else "enum" if type in _rows(_ENUMS) else "message"
        fields.append(Field(int(number), field, kind, written.endswith("*"), "" if kind == type else type))
    return Message(name, {field.number: field for field in fields}, {field.name: field for field in fields})
