"""The part of JSON Schema (draft 2020-12) that the schemas of irscope use, checked without a library."""
from __future__ import annotations

import re
from typing import Any

TYPES: dict[str, Any] = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "null": type(None), "boolean": bool}
KNOWN = {"$schema", "$id", "$defs", "$ref", "title", "description", "const", "enum", "type", "pattern", "minimum", "required", "properties",
         "additionalProperties", "items", "anyOf", "minItems", "maxItems"}


def conforms(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str = "$") -> list[str]:
    """What is wrong with a value."""
    assert set(schema) <= KNOWN, f"{at}: this checker does not know {sorted(set(schema) - KNOWN)}"
    if "$ref" in schema:
        target: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return conforms(value, target, root, at)
    faults = []
    if "const" in schema and value != schema["const"]:
        faults.append(f"{at} is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        faults.append(f"{at}: {value!r} is none of {schema['enum']}")
    if "anyOf" in schema:
        each: list[list[str]] = [conforms(value, one, root, at) for one in schema["anyOf"]]
        faults += [] if [] in each else sorted(each, key=len)[0]
    wanted = schema.get("type", [])
    wanted = [wanted] if isinstance(wanted, str) else wanted
    if wanted and not any(_is(value, name) for name in wanted):
        return [*faults, f"{at}: {value!r} is no {wanted}"]
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        faults.append(f"{at}: {value!r} does not match {schema['pattern']}")
    if "minimum" in schema and isinstance(value, int) and value < schema["minimum"]:
        faults.append(f"{at}: {value} is below {schema['minimum']}")
    if isinstance(value, dict):
        faults += _object(value, schema, root, at)
    if isinstance(value, list) and not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        faults.append(f"{at} has {len(value)} items")
    if isinstance(value, list) and "items" in schema:
        faults += [fault for i, inner in enumerate(value) for fault in conforms(inner, schema["items"], root, f"{at}[{i}]")]
    return faults


def _is(value: Any, name: str) -> bool:
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def _object(value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any], at: str) -> list[str]:
    faults = [f"{at} has no {key}" for key in schema.get("required", []) if key not in value]
    others = schema.get("additionalProperties", {})
    for key, inner in value.items():
        if key in schema.get("properties", {}):
            faults += conforms(inner, schema["properties"][key], root, f"{at}.{key}")
        elif others is False:
            faults.append(f"{at} has an unknown {key}")
        elif others is not True:
            faults += conforms(inner, others, root, f"{at}.{key}")
    return faults
