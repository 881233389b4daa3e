"""Operators of CHLO that HLO does not have: their types, and the expansions that XLA gives them.

The formulas are those of openxla/stablehlo, stablehlo/transforms/ChloLegalizeToStablehlo.cpp, so that results agree to the last digits.
"""
