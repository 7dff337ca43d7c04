#!/usr/bin/env python3
"""Times NumPy, PyTorch and JAX on the benchmark cases that they have; one JSON line per case and peer.

    python3 -m venv V && V/bin/pip install numpy torch jax
    V/bin/python benchmarks/peers.py [--only CASE,..] [--peers numpy,torch,jax] [--quick]

Each peer is a process of its own, pinned to one core before it imports anything (the only limit that JAX
heeds). Rounds go round-robin over the peers, so that a disturbance meets all of them; a peer that waits is
blocked on a pipe. In a round each sample is an inner loop of at least 200 us; `ns` is the least of the
rounds' medians. All data is float64, random and seeded; the peers' results are compared before timing.

Fields: case, peer, version, api (eager | jit), ns, rounds (the medians), check (the projection of the result).

With --serve the caller leads: each line `CASE NS` of standard input asks every peer once and is answered by a line
of JSON, the median time by peer after NS nanoseconds of samples; NS = 0 asks for the projections. The operands are
then the caller's, row-major, in the files CASE.0, CASE.1 of the folder given by --data.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

PEERS = ["numpy", "torch", "jax"]
SAMPLE_NS = 200_000
GEMM = [64, 128, 256, 512, 1024]
FACTOR = [2, 4, 8, 16, 32, 64, 128, 256]
EINSUM = {
    "einsum_product": ("ij,jk->ik", [(2, 2), (2, 2)]),
    "einsum_batch": ("bij,bjk->bik", [(4, 2, 2), (4, 2, 2)]),
    "einsum_outer": ("i,j->ij", [(2,), (2,)]),
    "einsum_inner": ("ij,ij->", [(2, 2), (2, 2)]),
    "einsum_trace": ("ii->", [(2, 2)]),
    "einsum_reverse": ("ijk->kji", [(2, 2, 2)]),
    "einsum_chain": ("ij,jk,kl->il", [(2, 2), (2, 2), (2, 2)]),
    "einsum_outer_1000": ("i,j->ij", [(1000,), (1000,)]),
    "einsum_ellipsis": ("...ij,...jk->...ik", [(4, 2, 2), (2, 2)]),
}
EIGEN = [2, 8, 32, 128, 256]
VALUES = [2, 8, 32, 128]
CHOLESKY = [2, 8, 32, 128, 256]
INVERSE = [2, 8, 32]
QR = [2, 8, 32, 128, 256]
CASES = (
    ["add_1", "matmul_2x2", "solve_2x2_grad", "svd_2x2_grad"]
    + [f"{view}_view_2x2" for view in ("transpose", "slice", "reverse", "broadcast", "diagonal")]
    + list(EINSUM)
    + [f"gemm_{n}" for n in GEMM]
    + ["exp_4M", "tanh_4M", "sum_4M", "transpose_copy_2048", "rotate_copy_16"]
    + [f"{family}_{n}" for family in ("svd", "solve") for n in FACTOR]
    + [f"eigh_{n}" for n in EIGEN]
    + [f"{family}_{n}" for family in ("svdvals", "eigvalsh", "eigvals") for n in VALUES]
    + [f"cholesky_{n}" for n in CHOLESKY]
    + [f"inv_{n}" for n in INVERSE]
    + [f"qr_{n}" for n in QR]
)


def shapes(case):
    """The shapes of the operands of a case."""
    if case in EINSUM:
        return EINSUM[case][1]
    family, size = case.removesuffix("_grad").rsplit("_", 1)
    if size == "1":
        return [(1,), (1,)]
    if size == "4M":
        return [(1 << 22,)]
    if family == "rotate_copy":
        return [(16,) * 6]
    if family == "broadcast_view":
        return [(1, 2)]
    n = int(size.split("x")[0])
    if case == f"solve_{n}":
        return [(n, n), (n, 1)]
    factored = ("cholesky", "inv", "qr", "eigh", "svdvals", "eigvalsh", "eigvals")
    unary = family.endswith(("_view", "_copy")) or family in factored or case == f"svd_{n}"
    return [(n, n)] * (1 if unary else 2)


def data(case, folder):
    """The operands of a case as NumPy arrays: the caller's if there is a folder, else random."""
    import numpy

    if folder:
        return [numpy.fromfile(f"{folder}/{case}.{k}").reshape(s) for k, s in enumerate(shapes(case))]
    rng = numpy.random.default_rng(7)
    operands = [rng.standard_normal(shape) for shape in shapes(case)]
    if case.startswith("cholesky"):
        return [a @ a.T + len(a) * numpy.eye(len(a)) for a in operands]
    return operands


def projection(case, result):
    """The product of a result with a fixed vector, which tells results apart as a sum would not."""
    import numpy

    values = numpy.asarray(result).ravel()
    if case.startswith("eigvals_"):
        # Each peer has them in an order of its own.
        values = numpy.sort(numpy.abs(values))
    return float(values @ numpy.cos(numpy.arange(values.size)))


class Numpy:
    """Functions of a case's operands, by the case's name without its size."""

    api = "eager"

    def __init__(self):
        import numpy as np

        self.version = np.__version__
        self.functions = {
            "add": np.add,
            "matmul": np.matmul,
            "gemm": np.matmul,
            "transpose_view": np.transpose,
            "slice_view": lambda a: a[1:],
            "reverse_view": lambda a: a[::-1],
            "broadcast_view": lambda a: np.broadcast_to(a, (3, 2)),
            "diagonal_view": np.diagonal,
            "solve": np.linalg.solve,
            "svd": lambda a: np.linalg.svd(a)[1],
            "eigh": lambda a: np.linalg.eigh(a)[0],
            "svdvals": lambda a: np.linalg.svd(a, compute_uv=False),
            "eigvalsh": np.linalg.eigvalsh,
            "eigvals": np.linalg.eigvals,
            "cholesky": np.linalg.cholesky,
            "inv": np.linalg.inv,
            "qr": lambda a: np.linalg.qr(a)[1],
            "exp": np.exp,
            "tanh": np.tanh,
            "sum": np.sum,
            "transpose_copy": lambda a: np.ascontiguousarray(a.T),
            "rotate_copy": lambda a: np.ascontiguousarray(np.moveaxis(a, -1, 0)),
        }

    def load(self, array, differentiate):
        return array

    def einsum(self, text):
        import numpy

        return lambda *operands: numpy.einsum(text, *operands)

    def gradient(self, family):
        return None


class Torch:
    api = "eager"

    def __init__(self):
        import torch

        torch.set_num_threads(1)
        self.torch, self.version = torch, torch.__version__
        self.functions = {
            "add": torch.add,
            "matmul": torch.matmul,
            "gemm": torch.matmul,
            "transpose_view": torch.t,
            "slice_view": lambda a: a[1:],
            "reverse_view": lambda a: torch.flip(a, (0,)),
            "broadcast_view": lambda a: a.expand(3, 2),
            "diagonal_view": torch.diagonal,
            "solve": torch.linalg.solve,
            "svd": lambda a: torch.linalg.svd(a)[1],
            "eigh": lambda a: torch.linalg.eigh(a)[0],
            "svdvals": torch.linalg.svdvals,
            "eigvalsh": torch.linalg.eigvalsh,
            "eigvals": torch.linalg.eigvals,
            "cholesky": torch.linalg.cholesky,
            "inv": torch.linalg.inv,
            "qr": lambda a: torch.linalg.qr(a)[1],
            "exp": torch.exp,
            "tanh": torch.tanh,
            "sum": torch.sum,
            "transpose_copy": lambda a: a.t().contiguous(),
            "rotate_copy": lambda a: a.movedim(-1, 0).contiguous(),
        }

    def load(self, array, differentiate):
        return self.torch.from_numpy(array).requires_grad_(differentiate)

    def einsum(self, text):
        return lambda *operands: self.torch.einsum(text, *operands)

    def gradient(self, family):
        """Forward and backward, as a training loop would call them; the gradient of the first operand."""
        loss = losses(self.torch)[family]

        def run(a, b):
            a.grad = b.grad = None
            loss(a, b).backward()
            return a.grad

        return run


class Jax:
    api = "jit"

    def __init__(self):
        import jax

        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_platforms", "cpu")
        import jax.numpy as jnp

        self.jax, self.jnp, self.version = jax, jnp, jax.__version__
        functions = {
            "add": jnp.add,
            "matmul": jnp.matmul,
            "gemm": jnp.matmul,
            "solve": jnp.linalg.solve,
            "svd": lambda a: jnp.linalg.svd(a)[1],
            "eigh": lambda a: jnp.linalg.eigh(a)[0],
            "svdvals": lambda a: jnp.linalg.svd(a, compute_uv=False),
            "eigvalsh": jnp.linalg.eigvalsh,
            "eigvals": jnp.linalg.eigvals,
            "cholesky": jnp.linalg.cholesky,
            "inv": jnp.linalg.inv,
            "exp": jnp.exp,
            "tanh": jnp.tanh,
            "sum": jnp.sum,
            "transpose_copy": jnp.transpose,
            "rotate_copy": lambda a: jnp.moveaxis(a, -1, 0),
        }
        self.functions = {name: self.compiled(f) for name, f in functions.items()}
        # Of R alone, the compiler would drop Q.
        qr = jax.jit(jnp.linalg.qr)
        self.functions["qr"] = lambda a: jax.block_until_ready(qr(a))[1]

    def compiled(self, f):
        f = self.jax.jit(f)
        return lambda *operands: f(*operands).block_until_ready()

    def load(self, array, differentiate):
        return self.jnp.asarray(array)

    def einsum(self, text):
        return self.compiled(lambda *operands: self.jnp.einsum(text, *operands))

    def gradient(self, family):
        gradient = self.jax.jit(self.jax.grad(losses(self.jnp)[family], argnums=(0, 1)))

        def run(a, b):
            da, db = gradient(a, b)
            db.block_until_ready()
            return da.block_until_ready()

        return run


def losses(xp):
    """Scalar losses of two operands; that of svd needs U and V and is independent of their gauge."""

    def svd(a, weight):
        u, s, vh = xp.linalg.svd(a)
        return s.sum() + (weight * (u @ vh)).sum()

    return {"solve": lambda a, b: (xp.linalg.solve(a, b) ** 2).sum(), "svd": svd}


def closure(peer, case, folder):
    """The case as a call without arguments, or None where the peer lacks it."""
    if case in EINSUM:
        operands = [peer.load(array, False) for array in data(case, folder)]
        f = peer.einsum(EINSUM[case][0])
        return lambda: f(*operands)
    differentiate = case.endswith("_grad")
    family = case.removesuffix("_grad").rsplit("_", 1)[0]
    f = peer.gradient(family) if differentiate else peer.functions.get(family)
    if f is None:
        return None
    operands = [peer.load(array, differentiate) for array in data(case, folder)]
    return lambda: f(*operands)


def median_ns(f, budget_ns):
    """The median over samples of the time of one call."""
    clock = time.perf_counter_ns

    def sample(calls):
        start = clock()
        for _ in range(calls):
            f()
        return clock() - start

    calls = 1
    while (elapsed := sample(calls)) < SAMPLE_NS:
        calls = max(2 * calls, int(calls * SAMPLE_NS / max(elapsed, 1)))
    samples, end = [], clock() + budget_ns
    while len(samples) < 3 or clock() < end:
        samples.append(sample(calls) / calls)
    return statistics.median(samples)


def worker(name, folder):
    """Answers each line `case budget_ns` of standard input with a line of JSON; no budget: the check only."""
    peer = {"numpy": Numpy, "torch": Torch, "jax": Jax}[name]()
    answer = lambda value: print(json.dumps(value), flush=True)
    answer({"peer": name, "version": peer.version, "api": peer.api})
    closures = {}
    for line in sys.stdin:
        case, budget_ns = line.split()
        if case not in closures:
            closures[case] = closure(peer, case, folder)
        f = closures[case]
        if f is None:
            answer(None)
        elif int(budget_ns) == 0:
            answer(projection(case, f()))
        else:
            answer(median_ns(f, int(budget_ns)))


class Worker:
    """A peer's process."""

    def __init__(self, name, core, folder):
        environment = dict(os.environ)
        # Set for the library under test on some machines; a peer's own OpenBLAS chooses for itself.
        for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
            environment.pop(variable, None)
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            environment[variable] = "1"
        command = [sys.executable, __file__, "--worker", name, "--core", str(core)]
        command += ["--data", folder] if folder else []
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=environment, **pipes)
        self.identity = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"peers: a peer ended with status {self.process.wait()}")
        return json.loads(line)

    def ask(self, case, budget_ns):
        print(case, budget_ns, file=self.process.stdin, flush=True)
        return self.answer()


def ask_all(workers, case, budget_ns):
    """The answers of the peers that have the case, by name."""
    answers = {w.identity["peer"]: w.ask(case, budget_ns) for w in workers}
    return {peer: answer for peer, answer in answers.items() if answer is not None}


def serve(workers):
    print(json.dumps([w.identity for w in workers]), flush=True)
    for line in sys.stdin:
        case, budget_ns = line.split()
        print(json.dumps(ask_all(workers, case, int(budget_ns))), flush=True)


def pin(core):
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def listed(known):
    def parse(text):
        names = text.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
        return names

    return parse


def main():
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--only", type=listed(CASES), default=CASES, metavar="CASE,..", help=" ".join(CASES))
    parser.add_argument("--peers", type=listed(PEERS), default=PEERS, metavar="PEER,..", help=" ".join(PEERS))
    parser.add_argument("--core", type=int, default=cores[-1], help="the core to pin the peers to")
    parser.add_argument("--quick", action="store_true", help="two rounds of 20 ms instead of five of 100 ms")
    parser.add_argument("--serve", action="store_true", help="time the cases that standard input asks for")
    parser.add_argument("--data", metavar="FOLDER", help="the folder of the operands")
    parser.add_argument("--worker", choices=PEERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    pin(options.core)
    if options.worker:
        return worker(options.worker, options.data)

    workers = [Worker(name, options.core, options.data) for name in options.peers]
    if options.serve:
        return serve(workers)

    rounds, budget_ns = (2, 20_000_000) if options.quick else (5, 100_000_000)
    for case in options.only:
        checks = ask_all(workers, case, 0)
        values = checks.values()
        if values and max(values) - min(values) > 1e-8 * max(1.0, *map(abs, values)):
            sys.exit(f"peers: {case}: the peers disagree: {checks}")
        timed = [w for w in workers if w.identity["peer"] in checks]
        medians = [[] for _ in timed]
        for _ in range(rounds):
            for w, times in zip(timed, medians):
                times.append(round(w.ask(case, budget_ns), 1))
        for w, times in zip(timed, medians):
            found = {"ns": min(times), "rounds": times, "check": checks[w.identity["peer"]]}
            print(json.dumps({"case": case, **w.identity, **found}), flush=True)


if __name__ == "__main__":
    main()
