"""Builds the module of an operation tree: its functions, callees before callers, and the regions in them, inner before outer."""
from __future__ import annotations

from collections.abc import Mapping

from irscope.formats.families import import_families
from irscope.formats.faults import Fault, Faults, Span
from irscope.formats.stablehlo.building.alike import Alike, alike
from irscope.formats.stablehlo.building.faults import OPERATION_TYPE, RECURSION, RETURN_TYPE, UNKNOWN_CALLEE, UNSUPPORTED
from irscope.formats.stablehlo.building.names import body_name, module_attributes, region_name
from irscope.formats.stablehlo.building.order import callees_first, inner_first
from irscope.formats.stablehlo.building.quantised import check_not_quantised
from irscope.formats.stablehlo.building.raw import RawAttributes, raw_of
from irscope.formats.stablehlo.building.regions import INSIDE, scalars
from irscope.formats.stablehlo.building.scope import Inner, Scope, result_type
from irscope.formats.stablehlo.building.sharding import read_mesh
from irscope.formats.stablehlo.building.work import BUILDERS, UnknownCallee, Unsupported, Work
from irscope.formats.stablehlo.dialect import STABLEHLO
from irscope.formats.stablehlo.lexer import VALUE
from irscope.formats.stablehlo.operations import Block, Defined, Function, Operation, ParsedModule, Region, Template, nested
from irscope.graph import NO_ATTRS, UNKNOWN, Effect, Graph, Module, Node, Op, TensorType, TupleType, unknown_op
from irscope.ops import hlo
from irscope.ops.attrs import Literal
from irscope.ops.faults import TypeFault
from irscope.ops.infer import plain
from irscope.ops.shapes import fits
from irscope.source import SourceText, did_you_mean
from irscope.source.budget import tick

import_families("irscope.formats.stablehlo.building")  # each module registers its builders
RETURNS = frozenset(("func.return", "stablehlo.return", "mhlo.return", "sdy.return"))
CONSTANTS = frozenset(("stablehlo.constant", "mhlo.constant"))
UNDEFINED = Op("undefined", effect=Effect.CONTROL, known=False)
"""Stands in for a value that the text does not define, so that the rest of the graph can be built."""
SPOILT = "?"
"""The suffix of the operator name of an operation that cannot be built as its operator asks."""


def build_module(parsed: ParsedModule, source: SourceText, faults: Faults) -> tuple[Module, RawAttributes]:
    """The graphs of a module, and the attributes that stay text, by the offset of their node. Reports what does not fit."""
    program = _Program(parsed, source, faults)
    program.run()
    return program.module, program.raw


NO_REGIONS = Inner()


class _Program:
    """One module under construction."""

    def __init__(self, parsed: ParsedModule, source: SourceText, faults: Faults) -> None:
        self.parsed, self.source, self.faults = parsed, source, faults
        self.module = Module(parsed.name, STABLEHLO, attrs=module_attributes(parsed.attributes), source=source)
        self.raw: RawAttributes = {}
        self.functions: dict[str, Graph] = {}
        self.inside: dict[Operation, Inner] = {}
        self.outside: dict[Region, list[Defined]] = {}
        self.constants: dict[Defined, Operation] = {}
        self.meshes: dict[str, Mapping[str, int]] = {}
        self.ops: dict[str, Op] = {}
        self.alike: dict[Template | None, Alike] = {}
        self.verified: dict[tuple[object, ...], Node] = {}
        self.function = ""

    # ---- functions

    def run(self) -> None:
        """Build all functions, and choose the entry: ``main``, or the first public function."""
        for operation in self.parsed.operations:
            if operation.name == "sdy.mesh":
                read_mesh(operation, self.meshes)
        for name in callees_first(self.parsed.functions):
            function = self.parsed.functions[name]
            self._function(function)
            self._register(self.functions[name])
        named = self.parsed.functions
        public = [name for name, function in named.items() if function.visibility != "private" and name in self.functions]
        entry = "main" if "main" in self.functions else next(iter(public), next(iter(named), ""))
        self.module.entry = self.functions[entry].name if entry in self.functions else ""

    def _register(self, graph: Graph) -> None:
        if graph.name in self.module.graphs:
            graph.name = self.module.fresh_name(graph.name)
        self.module.graphs[graph.name] = graph

    def _function(self, function: Function) -> None:
        self.function = function.name
        scope = Scope(function.name, function.operation.at)
        places = self._places(function)
        for argument, at in zip(function.arguments, places, strict=True):
            scope.nodes[argument] = scope.param(argument.type, argument.name, at)
        for attributes, at in zip(function.argument_attributes, places, strict=False):
            if attributes and (raw := raw_of(attributes)):
                self.raw[at] = raw
        if function.body is None:
            results = function.results
            external = results[0] if len(results) == 1 else TupleType(tuple(results))
            scope.graph.root = scope.step(self.opaque("external"), scope.graph.params, external)
        else:
            self._regions(function.body)
            returned = self._block(scope, function.body)
            if returned is not None:
                self._check_return(function, returned)
                scope.graph.root = scope.together(returned)
        self.functions[function.name] = scope.graph

    def _places(self, function: Function) -> list[int]:
        """The offsets of the arguments."""
        at = function.operation.at
        end = begin_of(function.body.operations[0]) if function.body is not None and function.body.operations else function.operation.end
        found: dict[str, int] = {}
        for m in VALUE.finditer(self.source.text, at, end) if function.arguments else ():
            found.setdefault(m[1], m.start())
        return [found.get(argument.name, at) for argument in function.arguments]

    def _check_return(self, function: Function, returned: list[Node]) -> None:
        given = [node.type for node in returned]
        if len(given) != len(function.results) or not all(UNKNOWN in (a, b) or _agree(a, b)
                                                          for a, b in zip(given, function.results, strict=True)):
            assert function.body is not None
            operation = function.body.operations[-1]
            assert isinstance(operation, Operation)
            shown = ", ".join(str(plain(type)) for type in given)
            wanted = ", ".join(str(plain(type)) for type in function.results)
            self.tell(RETURN_TYPE, f"@{function.name} returns ({shown}), but its signature declares ({wanted})", operation)

    # ---- blocks and operations

    def _regions(self, body: Block) -> None:
        """Build the regions of all operations in a block, inner ones first."""
        owners = list(inner_first(body))
        for operations in nested(body.operations) if owners else ():
            self.constants.update((each.results[0], each) for each in operations if each.name in CONSTANTS and each.results
                                  and isinstance(each.attributes.get("value"), Literal))
        for operation in owners:
            if isinstance(operation, Node):
                graph, = operation.bodies
                graph.name = body_name(self.function, operation)
                self._register(graph)
                continue
            try:
                inner = self.inside[operation] = INSIDE.get(operation.name, scalars)(self, operation)
            except TypeFault as fault:
                self._tell(fault, operation)
            else:
                for graph in inner.graphs:
                    self._register(graph)

    def _block(self, scope: Scope, block: Block) -> list[Node] | None:
        """Build the operations of a block; returns the nodes that it returns."""
        returned: list[Node] | None = None
        values, find, names, nodes = scope.nodes, self.alike.get, scope.names, scope.graph.nodes
        index, value_of, append = len(nodes), values.__getitem__, nodes.append
        for operation in block.operations:
            if isinstance(operation, Node):
                given = [values.get(value) or self._given(scope, value, operation.loc) for value in operation.operands]
                operation.operands, index = tuple(given), len(nodes)
                if operation.name in names:
                    operation.name = scope.name(operation.name)
                names.add(operation.name)
                operation.index = index
                values[operation] = operation
                append(operation)
                index += 1
                if not index & 255:
                    tick(256)
                continue
            like = find(operation.template)
            if like is not None:
                try:
                    operands = tuple(map(value_of, operation.operands))
                    bodies = self.inside[operation].graphs if operation.regions else like.bodies
                except KeyError:
                    pass
                else:
                    result, = operation.results
                    if like.steps:
                        operands, index = like.prepare(scope, operation, operands), len(nodes)
                    name = result.name if result.name not in names else scope.name(result.name)
                    names.add(name)
                    node = values[result] = Node(like.op, name, result.type, operands, like.attrs, bodies, operation.begin, index)
                    append(node)
                    index += 1
                    if not index & 255:
                        tick(256)
                    continue
            tick()
            for operand in operation.operands:
                self._given(scope, operand, operation.begin)
            if operation.name in RETURNS:
                returned = [values[operand] for operand in operation.operands]
            else:
                self._operation(scope, operation)
            index = len(nodes)
        scope.operation = None
        return returned

    def _operation(self, scope: Scope, operation: Operation) -> None:
        """Build an operation, and remember what it became by its template."""
        scope.operation = operation
        made = len(scope.graph.nodes)
        if self._built(scope, operation, made) and operation.template is not None and operation.begin not in self.raw:
            inner = self.inside.get(operation, NO_REGIONS)
            like = alike(operation, [scope.nodes[value] for value in operation.operands], scope.graph.nodes[made:], inner.graphs)
            if like is not None:
                self.alike[operation.template] = like

    def _built(self, scope: Scope, operation: Operation, made: int) -> bool:
        """Build an operation by its row in the table; returns whether it could be built."""
        build = BUILDERS.get(operation.name)
        try:
            check_not_quantised(operation)
            if build is None or (operation.regions and operation not in self.inside):
                self._opaque(scope, operation)
                return False
            inner = self.inside.get(operation, NO_REGIONS)
            for value in inner.captured:
                self._given(scope, value, operation.begin)
            build(Work(self, scope, operation, inner))
        except TypeFault as fault:
            self._tell(fault, operation)
            self._opaque(scope, operation, made)
            return False
        for result in operation.results:
            if result not in scope.nodes:
                scope.nodes[result] = scope.graph.nodes[-1]
        if raw := raw_of(operation.attributes):
            self.raw[operation.begin] = {**raw, **self.raw.get(operation.begin, {})}
        return True

    def _opaque(self, scope: Scope, operation: Operation, made: int | None = None) -> None:
        """The operation as an opaque node. Nodes from ``made`` on, of an attempt to build it, are no longer shown."""
        for node in scope.graph.nodes[made:] if made is not None else ():
            node.synthetic = True
        results = operation.results
        op = self.opaque(operation.name + (SPOILT if made is not None else ""))
        node = scope.add(op, [scope.nodes[value] for value in operation.operands], result_type(operation))
        for number, result in enumerate(results):
            scope.nodes[result] = node if len(results) == 1 else scope.part(node, number, result.name)

    def _given(self, scope: Scope, value: Defined, at: int) -> Node:
        """The node of a value; a stand-in, for what is at an offset, where the value is undefined."""
        node = scope.nodes.get(value)
        if node is None:
            node = scope.graph.add(Node(UNDEFINED, scope.name(value.name), value.type, (), NO_ATTRS, (), at, synthetic=True))
            scope.nodes[value] = node
        return node

    def opaque(self, name: str) -> Op:
        """The opaque operator of a name."""
        found = self.ops.get(name)
        if found is None:
            found = self.ops[name] = unknown_op(name, "stablehlo")
        return found

    # ---- what regions need

    def constant_of(self, value: Defined) -> Operation | Node | None:
        return self.constants.get(value) if not isinstance(value, Node) else value if value.op is hlo.constant else None

    def open(self, operation: Operation, number: int) -> Scope:
        return Scope(region_name(self.function, operation, number), operation.begin)

    def close(self, scope: Scope, region: Region) -> list[Node]:
        return self._block(scope, region.body) or []

    def constant(self, scope: Scope, operation: Operation | Node) -> None:
        if isinstance(operation, Node):
            scope.nodes[operation] = scope.copy_constant(operation)
            return
        scope.operation = operation
        attrs = {"literal": operation.attributes["value"]}
        node = scope.add(hlo.constant, (), operation.results[0].type, attrs)
        node.synthetic = True
        scope.nodes[operation.results[0]] = node
        scope.operation = None

    def region(self, region: Region, operation: Operation) -> None:
        if len(region.blocks) != 1:
            raise TypeFault(f"a region of '{operation.name}' must have one block, but has {len(region.blocks)}")

    # ---- what operations need

    def callee(self, name: str) -> Graph:
        graph = self.functions.get(name)
        if graph is None and name in self.parsed.functions:
            raise Unsupported(f"@{name} calls itself, directly or not", "XLA compiles no recursive functions")
        if graph is None:
            raise UnknownCallee(f"'{name}' does not reference a valid function", did_you_mean(name, self.parsed.functions) or "")
        return graph

    def adopt(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            node.synthetic = True
        self._register(graph)
        return graph

    def mesh(self, name: str) -> Mapping[str, int]:
        if name not in self.meshes:
            raise TypeFault(f"there is no mesh @{name}", did_you_mean(name, self.meshes) or "")
        return self.meshes[name]

    def keep(self, node: Node, raw: Mapping[str, str]) -> None:
        self.raw[node.loc] = {**self.raw.get(node.loc, {}), **raw}

    def verify(self, node: Node) -> None:
        """Infer the type of a node and compare it with the declared one; a signature that was checked once is not checked again."""
        op = node.op
        if op.infer is None:
            return
        operands = node.operands
        key: tuple[object, ...] = op, id(node.type), id(node.attrs), *map(id, node.bodies), *[id(o.type) for o in operands]
        if key in self.verified:
            return
        if all(_is_sized(o) for o in operands) and _is_sized(node):
            inferred = op.infer(node)
            if not fits(node.type, inferred):
                given = ", ".join(str(plain(o.type)) for o in operands)
                raise TypeFault(f"{op.name}({given}) gives {inferred}, but the result is declared {plain(node.type)}")
        self.verified[key] = node

    def tell(self, fault: Fault, message: str, operation: Operation, help: str = "") -> None:
        name = operation.results[0].name if operation.results else ""
        self.faults.add(fault, message, Span(operation.at, len(operation.name), name, self.function), help)

    def _tell(self, fault: TypeFault, operation: Operation) -> None:
        kind = UNKNOWN_CALLEE if isinstance(fault, UnknownCallee) else UNSUPPORTED if isinstance(fault, Unsupported) else OPERATION_TYPE
        if kind is UNSUPPORTED and "itself" in fault.message:
            kind = RECURSION
        self.tell(kind, fault.message, operation, fault.help)


def begin_of(operation: Operation | Node) -> int:
    """The offset at which an operation begins."""
    return operation.loc if isinstance(operation, Node) else operation.begin


def _is_sized(node: Node) -> bool:
    """Whether all sizes in the type of a node are known."""
    type = node.type
    if isinstance(type, TensorType):
        return type.is_static
    return type is not UNKNOWN and all(not isinstance(leaf, TensorType) or leaf.is_static for leaf in type.leaves())


def _agree(one: object, other: object) -> bool:
    """Whether two types are equal, where sizes that are open agree with all."""
    if one == other:
        return True
    return isinstance(one, TensorType) and isinstance(other, TensorType) and one.dtype is other.dtype and one.rank == other.rank \
        and not (one.is_static and other.is_static)
