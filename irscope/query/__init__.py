"""A small language that picks nodes: ``op=dot and bytes>1MB and not fused``."""
from irscope.query.columns import COLUMNS, Column
from irscope.query.language import Query, parse

__all__ = ["COLUMNS", "Column", "Query", "parse"]
