"""TorchScript's structural operators: constants, attributes, containers, numbers, control flow, calls.

They have no schema in the table of operators. Readers keep them opaque and in order until a program is run.
"""
from __future__ import annotations

from irscope.graph import Effect, Op
from irscope.ops.registry import declare


def _opaque(name: str, doc: str, work: str = "") -> Op:
    return declare(Op(name, "torchscript", doc, effect=Effect.CONTROL, known=False, work=work))


CONSTANT = _opaque("prim::Constant", "A literal.", "constant")
CONSTANT_MKLDNN = _opaque("prim::ConstantMKLDNNTensor", "A literal tensor in the layout of oneDNN.")
GET_ATTR = _opaque("prim::GetAttr", "An attribute of an object: a weight, a submodule, a number.", "constant")
SET_ATTR = _opaque("prim::SetAttr", "Writes an attribute of an object.")
CREATE_OBJECT = _opaque("prim::CreateObject", "A new object of a class.")
UNINITIALIZED = _opaque("prim::Uninitialized", "A value that no path of the program reads.", "constant")
LIST_CONSTRUCT = _opaque("prim::ListConstruct", "A list of values.", "free")
TUPLE_CONSTRUCT = _opaque("prim::TupleConstruct", "A tuple of values.", "free")
DICT_CONSTRUCT = _opaque("prim::DictConstruct", "A dictionary of keys and values.")
LIST_UNPACK = _opaque("prim::ListUnpack", "The elements of a list.", "free")
TUPLE_UNPACK = _opaque("prim::TupleUnpack", "The elements of a tuple.", "free")
TUPLE_INDEX = _opaque("prim::TupleIndex", "One element of a tuple.", "free")
TUPLE_SLICE = _opaque("prim::TupleSlice", "A range of the elements of a tuple.")
NUM_TO_TENSOR = _opaque("prim::NumToTensor", "A tensor of rank 0 that holds a number.", "free")
UNCHECKED_CAST = _opaque("prim::unchecked_cast", "The same value as another type.", "free")
DATA = _opaque("prim::data", "The tensor without its history of gradients.", "free")
DEVICE = _opaque("prim::device", "The device of a tensor.")
DTYPE = _opaque("prim::dtype", "The element type of a tensor.")
CONSTANT_CHUNK = _opaque("prim::ConstantChunk", "``chunk`` with a constant number of parts.")
IF = _opaque("prim::If", "One of two blocks, by a bool.", "control")
LOOP = _opaque("prim::Loop", "A block, trip by trip: operands are the largest number of trips, whether to begin, and what is carried.",
               "control")
RAISE_EXCEPTION = _opaque("prim::RaiseException", "Ends the program with an error.")
PRINT = _opaque("prim::Print", "Prints its operands.")
CALL_FUNCTION = _opaque("prim::CallFunction", "Calls a function that is operand 0.")
CALL_METHOD = _opaque("prim::CallMethod", "Calls a method of the object that is operand 0.")
PYTHON_OP = _opaque("prim::PythonOp", "Calls a function of Python.")
FUSION_GROUP = _opaque("prim::FusionGroup", "A group that a fuser of torch made.")
FALLBACK_GRAPH = _opaque("prim::FallbackGraph", "The graph to run where the types of an optimised one are wrong.")
FALLBACK_FUNCTION = _opaque("prim::fallback_function", "The function to run where the types of an optimised one are wrong.")
BAIL_OUT = _opaque("prim::BailOut", "Leaves an optimised graph where a type is wrong.")
BAILOUT_TEMPLATE = _opaque("prim::BailoutTemplate", "The graph that a bail-out runs.")
BOOL = _opaque("aten::Bool", "A tensor of rank 0, or a number, as a bool.", "free")
INT = _opaque("aten::Int", "A tensor of rank 0, or a number, as an integer.", "free")
FLOAT = _opaque("aten::Float", "A tensor of rank 0, or a number, as a float.")
INT_IMPLICIT = _opaque("aten::IntImplicit", "A tensor of rank 0 as an integer, where the program does not say so.")
FLOAT_IMPLICIT = _opaque("aten::FloatImplicit", "A tensor of rank 0 as a float, where the program does not say so.")
SCALAR_IMPLICIT = _opaque("aten::ScalarImplicit", "A tensor of rank 0 as a number, where the program does not say so.", "free")
ITEM = _opaque("aten::item", "A tensor of rank 0 as a number.")
IS_NONZERO = _opaque("aten::is_nonzero", "A tensor of rank 0 as a bool.")
GETITEM = _opaque("aten::__getitem__", "An element of a list, a dictionary or a string.", "free")
APPEND = _opaque("aten::append", "Appends to a list.")
IS_NOT = _opaque("aten::__isnot__", "Whether a value is not None, or not the same as another.")
SCALAR_TENSOR = _opaque("aten::scalar_tensor", "A tensor of rank 0 with a number, in an element type.")
RELU_ = _opaque("aten::relu_", "``relu`` in place.", "elementwise")
ADD_ = _opaque("aten::add_", "``add`` in place.", "elementwise")
FLOORDIV = _opaque("aten::floordiv", "A number divided by another, rounded down.")
RAND = _opaque("aten::rand", "Random numbers from 0 to 1.")
RAND_LIKE = _opaque("aten::rand_like", "Random numbers from 0 to 1, as many as a tensor has.")
RANDN = _opaque("aten::randn", "Normally distributed random numbers.")
RANDN_LIKE = _opaque("aten::randn_like", "Normally distributed random numbers, as many as a tensor has.")
RANDINT = _opaque("aten::randint", "Random integers.")
BERNOULLI = _opaque("aten::bernoulli", "Zeros and ones, drawn with the probabilities in a tensor.")
NORMAL = _opaque("aten::normal", "Normally distributed random numbers of given means and deviations.")
NATIVE_DROPOUT = _opaque("aten::native_dropout", "Dropout, and the mask that it drew.")
