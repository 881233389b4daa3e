"""The operators of TorchScript's own structure: constants, attributes, containers, numbers, control flow, calls.

They have no schema in the table of operators. Readers keep them as they are: opaque, in order, until a program is run.
"""
from __future__ import annotations

from irscope.graph import Effect, Op
from irscope.ops.registry import declare

OPERATORS = {
    "prim::Constant": "A literal.",
    "prim::ConstantMKLDNNTensor": "A literal tensor in the layout of oneDNN.",
    "prim::GetAttr": "An attribute of an object: a weight, a submodule, a number.",
    "prim::SetAttr": "Writes an attribute of an object.",
    "prim::CreateObject": "A new object of a class.",
    "prim::Uninitialized": "A value that no path of the program reads.",
    "prim::ListConstruct": "A list of values.",
    "prim::TupleConstruct": "A tuple of values.",
    "prim::DictConstruct": "A dictionary of keys and values.",
    "prim::ListUnpack": "The elements of a list.",
    "prim::TupleUnpack": "The elements of a tuple.",
    "prim::TupleIndex": "One element of a tuple.",
    "prim::TupleSlice": "A range of the elements of a tuple.",
    "prim::NumToTensor": "A tensor of rank 0 that holds a number.",
    "prim::unchecked_cast": "The same value as another type.",
    "prim::data": "The tensor without its history of gradients.",
    "prim::device": "The device of a tensor.",
    "prim::dtype": "The element type of a tensor.",
    "prim::ConstantChunk": "``chunk`` with a constant number of parts.",
    "prim::If": "One of two blocks, by a bool.",
    "prim::Loop": "A block, trip by trip: operands are the largest number of trips, whether to begin, and what is carried.",
    "prim::RaiseException": "Ends the program with an error.",
    "prim::Print": "Prints its operands.",
    "prim::CallFunction": "Calls a function that is operand 0.",
    "prim::CallMethod": "Calls a method of the object that is operand 0.",
    "prim::PythonOp": "Calls a function of Python.",
    "prim::FusionGroup": "A group that a fuser of torch made.",
    "prim::FallbackGraph": "The graph to run where the types of an optimised one do not hold.",
    "prim::fallback_function": "The function to run where the types of an optimised one do not hold.",
    "prim::BailOut": "Leaves an optimised graph where a type does not hold.",
    "prim::BailoutTemplate": "The graph that a bail-out runs.",
    "aten::Bool": "A tensor of rank 0, or a number, as a bool.",
    "aten::Int": "A tensor of rank 0, or a number, as an integer.",
    "aten::Float": "A tensor of rank 0, or a number, as a float.",
    "aten::IntImplicit": "A tensor of rank 0 as an integer, where the program does not say so.",
    "aten::FloatImplicit": "A tensor of rank 0 as a float, where the program does not say so.",
    "aten::ScalarImplicit": "A tensor of rank 0 as a number, where the program does not say so.",
    "aten::item": "A tensor of rank 0 as a number.",
    "aten::is_nonzero": "A tensor of rank 0 as a bool.",
    "aten::__getitem__": "An element of a list, a dictionary or a string.",
    "aten::append": "Appends to a list.",
    "aten::floordiv": "A number divided by another, rounded down.",
    "aten::rand": "Random numbers from 0 to 1.",
    "aten::rand_like": "Random numbers from 0 to 1, as many as a tensor has.",
    "aten::randn": "Normally distributed random numbers.",
    "aten::randn_like": "Normally distributed random numbers, as many as a tensor has.",
    "aten::randint": "Random integers.",
    "aten::bernoulli": "Zeros and ones, drawn with the probabilities that a tensor gives.",
    "aten::normal": "Normally distributed random numbers of given means and deviations.",
    "aten::native_dropout": "Dropout, and the mask that it drew.",
}

for _name, _doc in OPERATORS.items():
    declare(Op(_name, "torchscript", _doc, effect=Effect.CONTROL, known=False))
