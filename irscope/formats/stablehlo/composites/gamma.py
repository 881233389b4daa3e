"""The gamma function's relatives: its logarithm, digamma, polygamma and Hurwitz' zeta function."""
from __future__ import annotations

from math import inf, log, nan, pi

from irscope.formats.stablehlo.composites.terms import Formula, Term, declare_formula
from irscope.lazy import np

GAMMA = 7
"""g of Lanczos' approximation (C. Lanczos, 1964), for which the coefficients hold."""
BASE = 0.99999999999980993227684700473478
COEFFICIENTS = (676.520368121885098567009190444019, -1259.13921672240287047156078755283, 771.3234287776530788486528258894,
                -176.61502916214059906584551354, 12.507343278686904814458936853, -0.13857109526572011689554707,
                9.984369578019570859563e-6, 1.50563273514931155834e-7)
ZETA = (-7.1661652561756670113e18, 1.8152105401943546773e17, -4.5979787224074726105e15, 1.1646782814350067249e14, -2.950130727918164224e12,
        7.47242496e10, -1.8924375803183791606e9, 47900160.0, -1209600.0, 30240.0, -720.0, 12.0)
"""(2k)! / B(2k) for k = 12 .. 1, with the Bernoulli numbers of Euler and Maclaurin's sum (Cephes, zeta.c)."""
STEPS = 9
"""Terms of the zeta function that are summed before the Euler-Maclaurin correction."""


def _log_of_base(z: Term) -> tuple[Term, Term]:
    """t = z + g + 1/2, and its logarithm."""
    base = z.like(GAMMA + 0.5)
    return base + z, z.like(log(GAMMA + 0.5)) + (z / base).unary("log-plus-one")


def log_gamma(x: Term) -> Term:
    """log |gamma(x)|: Lanczos' approximation, reflected below one half."""
    reflects = x.compare("LT", 0.5)
    z = reflects.where(-x, x - 1)
    a = x.like(BASE)
    for i, coefficient in enumerate(COEFFICIENTS):
        a = a + coefficient / (z + (i + 1))
    t, log_t = _log_of_base(z)
    direct = x.like((log(2) + log(pi)) / 2) + (z + 0.5 - t / log_t) * log_t + a.unary("log")
    size = abs(x)
    part = size - size.unary("floor")
    part = part.like(0.5).compare("LT", part).where(1 - part, part)
    sine = (pi * part).unary("sine").unary("log")
    mirrored = sine.unary("is-finite").where(log(pi) - sine - direct, -sine)
    return is_infinite(x).where(x.like(inf), reflects.where(mirrored, direct))


def is_infinite(x: Term) -> Term:
    """Whether x is an infinity."""
    return abs(x).compare("EQ", inf)


def digamma(x: Term) -> Term:
    """The derivative of log gamma."""
    reflects = x.compare("LT", 0.5)
    z = reflects.where(-x, x - 1)
    a, slope = x.like(BASE), x.like(0)
    for i, coefficient in enumerate(COEFFICIENTS):
        term = z + (i + 1)
        slope = slope - coefficient / (term * term)
        a = a + coefficient / term
    t, log_t = _log_of_base(z)
    direct = log_t + slope / a - GAMMA / t
    reduced = pi * (x + abs((x + 0.5).unary("floor")))
    mirrored = direct - pi * reduced.unary("cosine") / reduced.unary("sine")
    pole = x.compare("LE", 0) & x.compare("EQ", x.unary("floor"))
    return pole.where(x.like(nan), reflects.where(mirrored, direct))


def zeta(x: Term, q: Term) -> Term:
    """Hurwitz' zeta function: the sum of (q + k) ** -x over all k from 0."""
    exponent = -x
    acc, total = q, q.binary("power", exponent)
    for _ in range(STEPS):
        acc = acc + 1
        total = total + acc.binary("power", exponent)
    acc = acc + 1
    last = acc.binary("power", exponent)
    correction = last * acc / (x - 1)
    inverse = 1 / (acc * acc)
    horner, product = q.like(0), q.like(1)
    for i in range(len(ZETA) - 1):
        odd = 2 * len(ZETA) - 1
        product = (x + (odd - 1 - 2 * i)) * (x + (odd - 2 - 2 * i))
        horner = product * (inverse * (horner + 1 / ZETA[i]))
    tail = last * (last.like(0.5) + x / acc * (acc.like(1 / ZETA[-1]) + horner))
    tiny = float(np.nextafter(np.zeros((), x.dtype.numpy()), np.ones((), x.dtype.numpy())))
    result = abs(last).compare("LT", abs(total) * tiny).where(total, total + correction + tail)
    result = x.compare("LT", 1).where(x.like(nan), result)
    low, whole = q.compare("LE", 0), x.compare("EQ", x.unary("floor"))
    result = (low & x.compare("NE", x.unary("floor"))).where(x.like(nan), result)
    even = whole & x.binary("remainder", 2).compare("EQ", 0)
    result = (low & q.compare("EQ", q.unary("floor"))).where(even.where(x.like(inf), nan), result)
    return x.compare("EQ", 1).where(x.like(inf), result)


def polygamma(n: Term, x: Term) -> Term:
    """The derivative of order n of digamma."""
    sign = 2 * n.binary("remainder", 2) - 1
    after = n + 1
    result = sign * log_gamma(after).unary("exponential") * zeta(after, x)
    result = n.compare("EQ", 0).where(digamma(x), result)
    unnatural = n.compare("NE", n.unary("floor")) | n.compare("LT", 0)
    return unnatural.where(x.like(nan), result)


LGAMMA = declare_formula("lgamma", "log |gamma(x)|.", Formula(log_gamma), weight=100)
DIGAMMA = declare_formula("digamma", "The derivative of log gamma.", Formula(digamma), weight=120)
POLYGAMMA = declare_formula("polygamma", "The derivative of order n of digamma.", Formula(polygamma, 2), weight=400)
ZETA_OP = declare_formula("zeta", "Hurwitz' zeta function.", Formula(zeta, 2), weight=250)
