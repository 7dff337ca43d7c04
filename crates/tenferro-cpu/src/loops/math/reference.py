"""Writes reference.txt: `function x y rest`, with x and y as the bits of doubles and `rest` what y lacks, in
thousandths of its last place. Needs mpmath: python3 reference.py > reference.txt"""
import math, random, struct
from mpmath import mp, mpf

mp.dps = 400  # 40 digits remain after the reduction of the largest arguments
random.seed(1)
FUNCTIONS = {name: getattr(mp, name) for name in "exp expm1 log log1p sin cos tan tanh".split()}


def bits(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def log_uniform(a, b):
    return math.exp(random.uniform(math.log(a), math.log(b)))


def arguments(name):
    tiny = [5e-324, 1e-310, 2.2250738585072014e-308, 1e-300, 1e-20, 2.0**-53, 1e-9, 1.0000001e-9]
    if name == "log":
        yield from tiny + [1 - 2.0**-53, 1 + 2.0**-52, math.sqrt(0.5), math.sqrt(2), 1.7976931348623157e308]
        for _ in range(60):
            yield random.uniform(0.5, 2)
            yield 1 + random.choice((-1, 1)) * log_uniform(1e-16, 0.4)
            yield log_uniform(1e-308, 1e308)
        return
    yield from tiny + [-x for x in tiny]
    for _ in range(30):
        yield random.choice((-1, 1)) * log_uniform(1e-12, 1)
        yield random.uniform(-1.5, 1.5)
    if name == "log1p":
        yield from [-1 + 2.0**-53, math.sqrt(2) - 1, math.sqrt(0.5) - 1, 1.7976931348623157e308]
        for _ in range(60):
            yield random.uniform(-0.99, 3)
            yield -1 + log_uniform(1e-16, 0.5)
            yield log_uniform(1e-3, 1e308)
    elif name in ("sin", "cos", "tan"):
        yield from [1e6, 999999.999, 1e22, 1.7976931348623157e308]
        for _ in range(60):
            n = random.randint(1, 630000)
            yield float(n * mp.pi / 2)
            yield float(n * mp.pi / 2 + random.choice((-1, 1)) * log_uniform(1e-15, 0.1))
            yield float(random.randint(1, 9) * mp.pi / 4) * (1 + random.randint(-2, 2) * 2.0**-52)
            yield random.uniform(-10, 10)
            yield log_uniform(1e5, 1e300)
    else:
        yield from [22.0, 19.06, 37.5, -37.5, -40.5, 708.9, -708.9, 709.5, 709.78, -744.4, -745.1]
        for _ in range(60):
            k = random.randint(-20, 20)
            yield float((k + 0.5) * mp.log(2)) * (1 + random.randint(-2, 2) * 2.0**-52)
            yield random.uniform(-40, 40)
            yield random.uniform(-745, 709.7)


for name, f in FUNCTIONS.items():
    for x in arguments(name):
        if name == "log1p" and x <= -1:
            continue
        exact = f(mpf(x))
        if abs(exact) > mpf(1.7976931348623157e308):
            continue
        # The last place of the result, subnormal ones included; then the nearest multiple of it.
        exponent = mp.frexp(exact)[1] if exact else -1074
        place = mpf(2) ** max(exponent - 53, -1074)
        y = mp.nint(exact / place)
        rest = mp.nint((exact / place - y) * 1000)
        print(f"{name} {bits(x):x} {bits(math.ldexp(int(y), int(mp.log(place, 2)))):x} {int(rest)}")
