"""From the operation tree of an MLIR text to irscope's graphs, on the primitives that HLO has too.

Functions and regions become computations, several results and the state of a loop become tuples. A node that the text does not write
(a parameter, a tuple, a part of one, a step of an operation that takes several primitives) is synthetic: neither shown nor counted.
"""
