"""What any instruction may have, as HLO text: metadata, frontend attributes, statistics, sharding, the backend's configuration."""
from __future__ import annotations

from collections.abc import Iterator

from irscope.formats.hlo.spelling import quoted
from irscope.formats.hlo_pb.devices import sharding_text
from irscope.formats.hlo_pb.record import Record
from irscope.source.data_text import json_value

_STRINGS = ("op_type", "op_name", "source_file")
_NUMBERS = ("source_line", "source_end_line", "source_column", "source_end_column", "stack_frame_id",
            "size_of_generated_code_in_bytes", "size_of_memory_working_set_in_bytes")
_LAST = ("deduplicated_name", "scheduling_name")


COMMON = frozenset(("sharding", "frontend_attributes", "statistics_viz", "parameter_replication"))


def common_attributes(record: Record) -> Iterator[str]:
    """The attributes that do not depend on the opcode, in XLA's order."""
    if COMMON.isdisjoint(record.values):
        return
    if record.has("sharding"):
        yield f"sharding={sharding_text(record.record('sharding'))}"
    frontend = frontend_text(record.record("frontend_attributes"))
    if frontend:
        yield f"frontend_attributes={frontend}"
    statistics = record.record("statistics_viz")
    if statistics.records("statistics"):
        pairs = [f"{one.text('stat_name')}={one.real('stat_val')!r}" for one in statistics.records("statistics")]
        yield f"statistics={{visualizing_index={statistics.number('stat_index_to_visualize')},{','.join(pairs)}}}"
    replicated = record.record("parameter_replication").numbers("replicated_at_leaf_buffers")
    if replicated:
        yield "parameter_replication={" + ",".join("true" if flag else "false" for flag in replicated) + "}"


def metadata_text(metadata: Record) -> str:
    """The value of ``metadata=``; empty where nothing is said."""
    if metadata.printed is None:
        given = metadata.values
        parts = [f"{name}={quoted(text)}" for name in _STRINGS if name in given and (text := metadata.text(name))]
        parts += [f"{name}={number}" for name in _NUMBERS if name in given and (number := metadata.number(name))]
        parts += [f"{name}={quoted(text)}" for name in _LAST if name in given and (text := metadata.text(name))]
        metadata.printed = "{" + " ".join(parts) + "}" if parts else ""
    return metadata.printed


def frontend_text(attributes: Record) -> str:
    """``{key="value",...}``; empty where there are none. A value that is a JSON object is not quoted."""
    pairs = sorted((entry.text("key"), entry.text("value")) for entry in attributes.records("map"))
    return "{" + ",".join(f"{key}={config_text(value)}" for key, value in pairs) + "}" if pairs else ""


def config_text(config: str) -> str:
    """The configuration of a backend: a JSON object as it is, any other text quoted."""
    if config.startswith("{") and config.endswith("}"):
        try:
            if isinstance(json_value(config), dict):
                return config.replace("\n", " ")
        except ValueError:
            pass
    return quoted(config)
