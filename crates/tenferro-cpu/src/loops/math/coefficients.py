"""Prints the polynomials of this folder, lowest coefficient first, with the error that they leave.

Those for f64 interpolate at the Chebyshev nodes in 60 digits; those for f32 have the least maximal error, by
Lawson's algorithm (Rice, "The Approximation of Functions", vol. 2, 1969, 13-9). Needs mpmath and numpy."""
import numpy as np
from mpmath import mp, mpf, factorial

mp.dps = 60
HALF_LOG_2 = mp.log(2) / 2 * mpf("1.0001")
SQRT_2 = mp.sqrt(2)


def series(coefficient, terms=60):
    return lambda x: mp.fsum(coefficient(k) * x**k for k in range(terms))


exp2 = series(lambda k: 1 / factorial(k + 2))  # (exp r - 1 - r) / r^2
exp3 = series(lambda k: 1 / factorial(k + 3))
atanh = series(lambda k: mpf(2) / (2 * k + 3))  # (2 atanh s - 2 s) / s^3 of s^2
sin = series(lambda k: (-1) ** (k + 1) / factorial(2 * k + 3))  # (sin r - r) / r^3 of r^2
cos = series(lambda k: (-1) ** k / factorial(2 * k + 4))  # (cos r - 1 + r^2/2) / r^4 of r^2


def tan(z):  # (tan r - r) / r^3 of r^2
    r = mp.sqrt(z)
    return (mp.tan(r) / r - 1) / z if z > 1e-12 else mpf(1) / 3 + 2 * z / 15


def log3(f):  # (log(1 + f) - f + f^2/2) / f^3
    return (mp.log1p(f) - f + f * f / 2) / f**3 if abs(f) > 1e-12 else mpf(1) / 3 - f / 4


def nodes(a, b, n):
    return [(a + b) / 2 + (b - a) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]


def interpolate(f, weight, a, b, n):
    x = nodes(a, b, n)
    return mp.lu_solve(mp.matrix([[v**j for j in range(n)] for v in x]), mp.matrix([f(v) for v in x]))


def lawson(f, weight, a, b, n):
    x = nodes(a, b, 1001)
    w = np.array([float(weight(v)) for v in x])
    basis = np.array([[float(v**j) for j in range(n)] for v in x]) * w[:, None]
    target = np.array([float(f(v)) for v in x]) * w
    p = np.full(len(x), 1 / len(x))
    for _ in range(400):
        s = np.sqrt(p)
        c = np.linalg.lstsq(basis * s[:, None], target * s, rcond=None)[0]
        p *= np.abs(basis @ c - target)
        p /= p.sum()
    return c


def show(name, method, f, weight, a, b, n, kind=float):
    c = [kind(float(v)) for v in method(f, weight, mpf(a), mpf(b), n)]
    p = [mpf(float(v)) for v in reversed(c)]
    error = max(abs(weight(x) * (mp.polyval(p, x) - f(x))) for x in nodes(mpf(a), mpf(b), 301))
    print(name, [str(v) for v in c], "error 2^%.1f" % mp.log(error, 2))


def relative(f, power):  # the error of 1 + x^power f(x) relative to it
    return lambda x: x**power / (1 + x**power * f(x))


quarter, half, eighth = [(mp.pi / d * mpf("1.00001")) ** 2 for d in (4, 2, 8)]
exp_weight = lambda power: lambda r: r**power / mp.exp(r)
show("exp SERIES", interpolate, exp3, exp_weight(3), -HALF_LOG_2, HALF_LOG_2, 10)
show("exp SERIES_SINGLE", lawson, exp2, exp_weight(2), -HALF_LOG_2, HALF_LOG_2, 5)
show("exp SERIES_SHORT", lawson, exp3, exp_weight(3), -HALF_LOG_2, HALF_LOG_2, 4, np.float32)
largest = ((SQRT_2 - 1) / (SQRT_2 + 1)) ** 2 * mpf("1.0002")
show("log SERIES", interpolate, atanh, lambda z: z, 0, largest, 7)
log_weight = lambda f: f**3 / mp.log1p(f)
show("log SERIES_SINGLE", lawson, log3, log_weight, 1 / SQRT_2 - 1, SQRT_2 - 1, 8, np.float32)
show("trig SIN", interpolate, sin, relative(sin, 1), 0, quarter, 6)
show("trig COS", interpolate, cos, lambda z: z * z / mp.cos(mp.sqrt(z)), 0, quarter, 6)
show("trig TAN", interpolate, tan, relative(tan, 1), 0, eighth, 10)
show("trig SIN_SINGLE, after 1", lawson, sin, relative(sin, 1), 0, half, 4)
show("trig TAN_SINGLE, after 1", interpolate, tan, relative(tan, 1), 0, quarter, 7)
