//! QR factorizations and products of reflections.

use super::{
    systems::{FORMS, Form, system},
    *,
};
use crate::{
    array::Elem,
    info::{op, surface},
};
use tenferro_core_ops::Var;
use tenferro_linalg::{LinalgOps, LinalgRecorded, QrOptions, TypedLinalgOps, ops};
use tenferro_tensor::C64;

pub(super) fn list() -> Vec<OpInfo> {
    vec![
        qr(),
        full(),
        with_options(),
        invariants(),
        pivoted(),
        pivoted_with(),
        exchanged(),
        householder(),
        product(),
        apply(),
        append(),
    ]
}

/// Householder's reflections by their definition: R with the tails of the reflectors below it, and tau.
fn reflected(a: &Matrix) -> (Matrix, Vec<C64>) {
    let (m, n) = (a.rows, a.columns);
    let (mut a, mut taus) = (a.clone(), Vec::new());
    for k in 0..m.min(n) {
        let alpha = a.at(k, k);
        let tail: f64 = (k + 1..m).map(|i| a.at(i, k).norm_sqr()).sum();
        if tail == 0.0 && alpha.im == 0.0 {
            taus.push(C64::new(0.0, 0.0));
            continue;
        }
        let beta = -(alpha.norm_sqr() + tail).sqrt().copysign(alpha.re);
        let tau = (beta - alpha) / beta;
        let v = |i: usize| if i == k { C64::new(1.0, 0.0) } else { a.at(i, k) / (alpha - beta) };
        let reflector: Vec<C64> = (k..m).map(v).collect();
        let next = Matrix::from_fn(m, n, |i, j| {
            if i < k || j < k {
                a.at(i, j)
            } else if j == k {
                if i == k { beta.into() } else { reflector[i - k] }
            } else {
                let along: C64 = (k..m).map(|l| reflector[l - k].conj() * a.at(l, j)).sum();
                a.at(i, j) - tau.conj() * reflector[i - k] * along
            }
        });
        a = next;
        taus.push(tau);
    }
    (a, taus)
}

/// `(1 - tau_1 v_1 v_1^H) .. (1 - tau_k v_k v_k^H)` as a square matrix.
fn multiplied(packed: &Matrix, tau: &[C64]) -> Matrix {
    let m = packed.rows;
    (tau.iter().enumerate()).fold(Matrix::identity(m), |q, (k, &t)| {
        let v = |i: usize| match i.cmp(&k) {
            std::cmp::Ordering::Less => C64::new(0.0, 0.0),
            std::cmp::Ordering::Equal => C64::new(1.0, 0.0),
            std::cmp::Ordering::Greater => packed.at(i, k),
        };
        let one = Matrix::identity(m);
        q.times(&Matrix::from_fn(m, m, |i, j| one.at(i, j) - t * v(i) * v(j).conj()))
    })
}

/// Q and R.
fn expected(a: &Array, o: &QrOptions) -> Vec<Array> {
    let a = a.cast(floating(a.dtype));
    let [m, n] = extents(&a).0;
    let k = if o.full { m } else { m.min(n) };
    let both = |a: &Matrix| {
        let (packed, tau) = reflected(a);
        let sign = |i: usize| if o.positive && i < m.min(n) && packed.at(i, i).re < 0.0 { -1.0 } else { 1.0 };
        let q = multiplied(&packed, &tau).leading(k).scaled(&(0..k).map(sign).collect::<Vec<_>>());
        let zero = C64::new(0.0, 0.0);
        (q, Matrix::from_fn(k, n, |i, j| if i <= j { packed.at(i, j) * sign(i) } else { zero }))
    };
    vec![each_matrix(&a, [m, k], |a| both(&a).0), each_matrix(&a, [k, n], |a| both(&a).1)]
}

const THIN: QrOptions = QrOptions { full: false, positive: false };
const FULL: QrOptions = QrOptions { full: true, positive: false };
const POSITIVE: QrOptions = QrOptions { full: false, positive: true };

const NOT_FINITE: &[f64] = &[1.0, f64::NAN, 0.0, 1.0];

fn qr() -> OpInfo {
    op("qr", |_: &(), x: &[Var]| <[Var; 2]>::from(ops::qr(&x[0])), |_, x| expected(&x[0], &THIN))
        .surface(surface!((); LinalgOps, TypedLinalgOps; qr()))
        // See `dominant`.
        .tolerance(bound(33, 2.5))
        .each(FLOATS, |o, d| {
            o.sample((), vec![dominant(d, &[3, 3], 1)])
                .sample((), vec![dominant(d, &[4, 2], 2)])
                .sample((), vec![dominant(d, &[2, 4], 3)])
                .sample((), vec![dominant(d, &[3, 2, 2], 4)])
                .sample((), vec![any(d, &[0, 3], 5)])
                .sample((), vec![any(d, &[3, 0], 6)])
                .sample((), vec![any(d, &[2, 2, 0], 7)])
                .kink((), vec![dominant(d, &[1, 1], 8)])
                .kink((), vec![dominant(d, &[33, 33], 9)])
        })
        .each([I64, I32], |o, d| o.kink((), vec![any(d, &[3, 2], 10)]))
        .symbolic((), &[&["n", "m"]])
        .symbolic((), &[&["n", "n", "m"]])
        .skip("rank_0", "a matrix is needed")
        .error((), vec![any(F64, &[3], 1)], &["1", "at least 2"])
        .error((), vec![f64s(&[2, 2], NOT_FINITE)], &["[1, 0]", "not finite"])
        .error(
            (),
            vec![f64s(&[1, 2, 2], &[1.0, 1.0, 1.0, f64::INFINITY])],
            &["[0, 1] of matrix [1]", "finite"],
        )
        .done()
}

/// What completes Q is arbitrary, which derivatives of it are not compared for.
fn full() -> OpInfo {
    let why = "what completes Q is arbitrary; the derivative is checked on qr_invariants";
    op("qr_full", |_: &(), x: &[Var]| <[Var; 2]>::from(ops::qr_full(&x[0])), |_, x| expected(&x[0], &FULL))
        .surface(surface!((); LinalgOps, TypedLinalgOps; qr_full()))
        // See `dominant`.
        .tolerance(bound(5, 2.5))
        .each(FLOATS, |o, d| {
            o.sample((), vec![dominant(d, &[3, 3], 1)])
                .sample((), vec![dominant(d, &[5, 2], 2)])
                .sample((), vec![dominant(d, &[2, 4], 3)])
                .sample((), vec![dominant(d, &[3, 2, 2], 4)])
                .sample((), vec![any(d, &[0, 3], 5)])
                .sample((), vec![any(d, &[3, 0], 6)])
        })
        .symbolic((), &[&["n", "m"]])
        .skip("rank_0", "a matrix is needed")
        .skip("jvp", why)
        .skip("second_order", why)
        .error((), vec![any(F64, &[3], 1)], &["1", "at least 2"])
        .error_at(["qr_full", "qr"], (), vec![f64s(&[2, 2], NOT_FINITE)], &["[1, 0]", "not finite"])
        .done()
}

fn with_options() -> OpInfo {
    op(
        "qr_with",
        |o: &QrOptions, x: &[Var]| <[Var; 2]>::from(ops::qr_with(&x[0], *o)),
        |o, x| expected(&x[0], o),
    )
    .surface(surface!(QrOptions; LinalgOps, TypedLinalgOps; qr_with() |o| *o))
    // See `dominant`.
    .tolerance(bound(5, 2.5))
    .each(FLOATS, |o, d| {
        o.sample(POSITIVE, vec![dominant(d, &[3, 3], 1)])
            .sample(POSITIVE, vec![dominant(d, &[4, 2], 2)])
            .sample(POSITIVE, vec![dominant(d, &[2, 4], 3)])
            .sample(POSITIVE, vec![dominant(d, &[2, 2, 3], 4)])
            .sample(QrOptions { full: true, positive: true }, vec![dominant(d, &[2, 3], 5)])
            .sample(POSITIVE, vec![any(d, &[2, 0], 6)])
    })
    .symbolic(POSITIVE, &[&["n", "m"]])
    .skip("rank_0", "a matrix is needed")
    .error(POSITIVE, vec![any(F64, &[3], 1)], &["1", "at least 2"])
    .done()
}

/// Functions of full factors that do not depend on what completes Q: the projector on the complement of the
/// columns, the span, and R.
fn invariants() -> OpInfo {
    op(
        "qr_invariants",
        |_: &(), x: &[Var]| {
            let (q, r) = ops::qr_full(&x[0]);
            let (m, k) = (q.extent(0), r.extent(1));
            let rest = q.slice_axis(1, k.clone(), m);
            [rest.matmul(&rest.adjoint()), q.slice_axis(1, 0, k), r]
        },
        |_, x| {
            let [m, n] = extents(&x[0]).0;
            let mut y = expected(&x[0], &FULL);
            let span = each_matrix(&y[0], [m, n], |q| q.leading(n));
            let outside = |q: Matrix| Matrix::identity(q.rows).plus(-1.0, &q.times(&q.adjoint()));
            y[0] = span.clone();
            y.insert(0, each_matrix(&span, [m, m], outside));
            y
        },
    )
    // See `dominant`.
    .tolerance(bound(5, 2.5))
    .each(FLOATS, |o, d| {
        o.sample((), vec![dominant(d, &[4, 2], 1)])
            .sample((), vec![dominant(d, &[3, 2, 2], 2)])
            .sample((), vec![any(d, &[2, 0], 3)])
    })
    .symbolic((), &[&["n", "1"]])
    .skip("rank_0", "a matrix is needed")
    .skip("surfaces", COMPOSED)
    .error_of("qr_full", (), vec![any(F64, &[2], 1)], &["1", "at least 2"])
    .done()
}

/// The order of columns in which each is the longest of those left, outside of the span of those before.
fn order(a: &Matrix) -> Vec<usize> {
    let (mut left, mut p): (Vec<usize>, Vec<usize>) = ((0..a.columns).collect(), Vec::new());
    while !left.is_empty() {
        let rank = p.len().min(a.rows);
        let q = Matrix::from_fn(a.rows, rank, |i, j| a.at(i, p[j])).basis().leading(rank);
        let length = |&j: &usize| {
            let x = Matrix::from_fn(a.rows, 1, |i, _| a.at(i, j));
            let x = x.plus(-1.0, &q.times(&q.adjoint().times(&x)));
            (0..a.rows).map(|i| x.at(i, 0).norm_sqr()).sum::<f64>()
        };
        // Of no rows, the order stays.
        let longest = match rank < a.rows {
            true => (0..left.len()).fold(0, |b, j| if length(&left[j]) > length(&left[b]) { j } else { b }),
            false => 0,
        };
        // The columns are exchanged, not moved along.
        let last = left[longest];
        left[longest] = left[0];
        left.remove(0);
        p.push(last);
    }
    p
}

fn expected_exchanged(a: &Array, o: &QrOptions) -> Vec<Array> {
    let p: Vec<Vec<usize>> = matrices(a).iter().map(order).collect();
    let exchanged: Vec<Matrix> = (matrices(a).iter().zip(&p))
        .map(|(a, p)| Matrix::from_fn(a.rows, a.columns, |i, j| a.at(i, p[j])))
        .collect();
    let mut y = expected(&stack(a.dtype, extents(a).0, extents(a).1, &exchanged), o);
    let flat: Vec<i64> = p.into_iter().flatten().map(|i| i as i64).collect();
    y.push(Array::ints(I64, &a.shape[1..], &flat));
    y
}

fn pivoted() -> OpInfo {
    op(
        "qr_pivoted",
        |_: &(), x: &[Var]| <[Var; 3]>::from(ops::qr_pivoted(&x[0])),
        |_, x| expected_exchanged(&x[0].cast(floating(x[0].dtype)), &THIN),
    )
    .surface(surface!((); LinalgOps, TypedLinalgOps; qr_pivoted()))
    // See `dominant`.
    .tolerance(bound(9, 2.5))
    .each(FLOATS, |o, d| {
        o.sample((), vec![dominant(d, &[4, 4], 1)])
            .sample((), vec![any(d, &[5, 3], 2)])
            .sample((), vec![any(d, &[2, 4], 3)])
            .sample((), vec![any(d, &[3, 2, 2], 4)])
            .sample((), vec![any(d, &[0, 3], 5)])
            .sample((), vec![any(d, &[3, 0], 6)])
            .kink((), vec![dominant(d, &[9, 9], 7)])
    })
    .kink((), vec![any(I32, &[3, 3], 8)])
    .symbolic((), &[&["n", "m"]])
    .skip("rank_0", "a matrix is needed")
    .error((), vec![any(F64, &[3], 1)], &["1", "at least 2"])
    .error((), vec![f64s(&[2, 2], NOT_FINITE)], &["[1, 0]", "not finite"])
    .done()
}

fn pivoted_with() -> OpInfo {
    op(
        "qr_pivoted_with",
        |o: &QrOptions, x: &[Var]| <[Var; 3]>::from(ops::qr_pivoted_with(&x[0], *o)),
        |o, x| expected_exchanged(&x[0], o),
    )
    .surface(surface!(QrOptions; LinalgOps, TypedLinalgOps; qr_pivoted_with() |o| *o))
    // See `dominant`.
    .tolerance(bound(5, 2.5))
    .each(FLOATS, |o, d| {
        o.sample(POSITIVE, vec![dominant(d, &[3, 3], 1)])
            .sample(POSITIVE, vec![dominant(d, &[4, 2], 2)])
            .sample(POSITIVE, vec![dominant(d, &[2, 2, 3], 3)])
            .sample(QrOptions { full: true, positive: true }, vec![dominant(d, &[2, 3], 4)])
            .sample(POSITIVE, vec![any(d, &[2, 0], 5)])
    })
    .symbolic(POSITIVE, &[&["n", "m"]])
    .skip("rank_0", "a matrix is needed")
    .error(POSITIVE, vec![any(F64, &[3], 1)], &["1", "at least 2"])
    .error_at(
        ["qr_pivoted_with", "qr_pivoted"],
        POSITIVE,
        vec![f64s(&[2, 2], NOT_FINITE)],
        &["[1, 0]", "not finite"],
    )
    .done()
}

/// The differentiable results alone.
fn exchanged() -> OpInfo {
    op(
        "qr_pivoted_factors",
        |_: &(), x: &[Var]| {
            let (q, r, _) = ops::qr_pivoted(&x[0]);
            [q, r]
        },
        |_, x| expected_exchanged(&x[0], &THIN)[..2].to_vec(),
    )
    // See `dominant`.
    .tolerance(bound(5, 2.5))
    .each(FLOATS, |o, d| {
        o.sample((), vec![dominant(d, &[3, 3], 1)])
            .sample((), vec![dominant(d, &[4, 2], 2)])
            .sample((), vec![dominant(d, &[2, 4], 3)])
            .sample((), vec![dominant(d, &[2, 2, 3], 4)])
            .sample((), vec![any(d, &[0, 2], 5)])
    })
    .symbolic((), &[&["n", "m"]])
    .skip("rank_0", "a matrix is needed")
    .skip("surfaces", COMPOSED)
    .error_of("qr_pivoted", (), vec![any(F64, &[2], 1)], &["1", "at least 2"])
    .done()
}

/// The reflectors of a stack: packed, and tau.
fn reflectors(a: &Array) -> [Array; 2] {
    let ([m, n], batch) = extents(a);
    let k = m.min(n);
    let taus = each_matrix(a, [k, 1], |a| {
        let tau = reflected(&a).1;
        Matrix::from_fn(k, 1, |i, _| tau[i])
    });
    let shape: Vec<usize> = std::iter::once(k).chain(batch.iter().copied()).collect();
    [each_matrix(a, [m, n], |a| reflected(&a).0), taus.reshape(&shape)]
}

/// The products of reflections, from packed and tau.
fn products(packed: &Array, tau: &Array) -> Array {
    let ([m, _], k) = (extents(packed).0, tau.shape[0]);
    let taus = tau.reshape(&[&[k, 1], &tau.shape[1..]].concat());
    each_pair(packed, &taus, [m, m], |v, t| multiplied(v, &(0..k).map(|i| t.at(i, 0)).collect::<Vec<_>>()))
}

/// As [`products`], in a common dtype and batch.
fn batched_products(packed: &Array, tau: &Array) -> Array {
    let d = floating(DType::promote(packed.dtype, tau.dtype));
    let batch = common_batch([&packed.shape[2..], &tau.shape[1..]]);
    products(&repeated(&packed.cast(d), 2, &batch), &repeated(&tau.cast(d), 1, &batch))
}

fn householder() -> OpInfo {
    op(
        "householder",
        |_: &(), x: &[Var]| <[Var; 2]>::from(ops::householder(&x[0])),
        |_, x| reflectors(&x[0].cast(floating(x[0].dtype))).to_vec(),
    )
    .surface(surface!((); LinalgOps, TypedLinalgOps; householder()))
    // See `dominant`.
    .tolerance(bound(33, 2.5))
    .each(FLOATS, |o, d| {
        o.sample((), vec![dominant(d, &[3, 3], 1)])
            .sample((), vec![dominant(d, &[4, 2], 2)])
            .sample((), vec![dominant(d, &[2, 4], 3)])
            .sample((), vec![dominant(d, &[3, 2, 2], 4)])
            .sample((), vec![any(d, &[0, 3], 5)])
            .sample((), vec![any(d, &[3, 0], 6)])
            .kink((), vec![dominant(d, &[33, 33], 7)])
    })
    .kink((), vec![any(I64, &[3, 2], 8)])
    .symbolic((), &[&["n", "m"]])
    .symbolic((), &[&["n", "n", "k"]])
    .skip("rank_0", "a matrix is needed")
    .error((), vec![any(F64, &[3], 1)], &["1", "at least 2"])
    .error((), vec![f64s(&[2, 2], NOT_FINITE)], &["[1, 0]", "not finite"])
    .done()
}

fn product() -> OpInfo {
    op(
        "householder_product",
        |_: &(), x: &[Var]| ops::householder_product(&x[0], &x[1]),
        |_, x| {
            let [m, n] = extents(&x[0]).0;
            each_matrix(&batched_products(&x[0], &x[1]), [m, m.min(n)], |q| q.leading(m.min(n)))
        },
    )
    .surface(surface!((); LinalgOps, TypedLinalgOps; householder_product(1)))
    .overlooks(|_, x, i| i == 0 && x[1].data.is_empty(), "without tau there are no reflectors")
    // The elements of a product of three reflections that are not unitary are below 100.
    .tolerance(bound(3, 15.0))
    .each(FLOATS, |o, d| {
        let two = |v: &[usize], tau: &[usize], seed| vec![any(d, v, seed), any(d, tau, seed + 1)];
        o.sample((), two(&[3, 3], &[3], 1))
            .sample((), two(&[4, 3], &[2], 3))
            .sample((), two(&[2, 4], &[2], 5))
            .sample((), two(&[3, 2, 2], &[2, 2], 7))
            .sample((), two(&[3, 2], &[0], 9))
            .sample((), two(&[0, 2], &[0], 11))
            .sample((), two(&[3, 2, 2], &[2], 17))
            .sample((), two(&[3, 2], &[2, 3], 19))
            .sample((), two(&[3, 2, 1, 2], &[1, 2], 21))
            .sample((), reflectors(&any(d, &[4, 3], 13)).to_vec())
            .kink((), vec![any(d, &[3, 2], 15), Array::reals(d, &[2], &[0.0, 0.0])])
    })
    // On and above the diagonal, nothing is read.
    .value((), vec![f64s(&[2, 1], &[f64::NAN, 1.0]), f64s(&[1], &[1.0])], f64s(&[2, 1], &[0.0, -1.0]))
    .symbolic((), &[&["n", "m"], &["1"]])
    .symbolic((), &[&["n", "n"], &["n"]])
    .skip("rank_0", "a matrix is needed")
    .error((), vec![any(F64, &[3, 2], 1), any(F64, &[3], 2)], &["3", "at most 2"])
    .error((), vec![any(F64, &[3, 2], 1), any(F64, &[], 2)], &["0", "at least 1"])
    .error((), vec![any(F64, &[3, 2, 2], 1), any(F64, &[2, 3], 2)], &["3", "2"])
    .error((), vec![any(F64, &[3], 1), any(F64, &[2], 2)], &["1", "at least 2"])
    .promotes()
    .done()
}

/// The form of the product.
fn apply() -> OpInfo {
    op(
        "householder_apply",
        |&f: &Form, x: &[Var]| ops::householder_apply(&x[0], &x[1], &x[2], system(f)),
        |&(right, form), x| {
            let d = floating(x.iter().fold(x[0].dtype, |d, x| DType::promote(d, x.dtype)));
            let q = batched_products(&x[0].cast(d), &x[1].cast(d));
            with_batch(&q, &x[2].cast(d), right, |q, c| {
                let q = match form {
                    0 => q.clone(),
                    1 => q.transposed(),
                    _ => q.adjoint(),
                };
                if right { c.times(&q) } else { q.times(c) }
            })
        },
    )
    .surface(surface!(Form; LinalgOps, TypedLinalgOps; householder_apply(1, 2) |p| system(*p)))
    .promotes()
    // As householder_product.
    .tolerance(bound(3, 15.0))
    .each(FLOATS, |o, d| {
        let three =
            |v: &[usize], tau: &[usize], c: &[usize]| vec![any(d, v, 1), any(d, tau, 2), any(d, c, 3)];
        o.each([(false, 0), (false, 2)], |o, f| {
            o.sample(f, three(&[3, 3], &[3], &[3, 2]))
                .sample(f, three(&[4, 3], &[2], &[4, 1]))
                .sample(f, three(&[2, 4], &[2], &[2, 3]))
                .sample(f, three(&[3, 2, 2], &[2, 2], &[3, 1, 2]))
                .sample(f, three(&[3, 2], &[2], &[3, 0]))
                .sample(f, three(&[0, 2], &[0], &[0, 2]))
        })
        .each(FORMS, |o, f| {
            let c: &[usize] = if f.0 { &[2, 3] } else { &[3, 2] };
            o.sample(f, three(&[3, 2], &[2], c)).sample(f, three(&[3, 2, 2], &[2], &[3]))
        })
        // A batch that one of the operands has alone.
        .sample((false, 0), three(&[3, 2, 2], &[2], &[3, 1]))
        .sample((false, 0), three(&[3, 2], &[2, 2], &[3, 1]))
        .sample((false, 0), three(&[3, 2], &[2], &[3, 1, 2]))
    })
    .symbolic((false, 0), &[&["n", "m"], &["1"], &["n", "k"]])
    .symbolic((true, 2), &[&["n", "n"], &["n"], &["m", "n"]])
    .skip("rank_0", "a matrix is needed")
    .error((false, 0), vec![any(F64, &[3, 2], 1), any(F64, &[2], 2), any(F64, &[2, 1], 3)], &["2", "3"])
    .error((true, 0), vec![any(F64, &[3, 2], 1), any(F64, &[2], 2), any(F64, &[3, 1], 3)], &["1", "3"])
    .error(
        (false, 2),
        vec![any(F64, &[3, 2], 1), any(F64, &[3], 2), any(F64, &[3, 1], 3)],
        &["3", "at most 2"],
    )
    .error((false, 2), vec![any(F64, &[3, 2, 2], 1), any(F64, &[2], 2), any(F64, &[3, 1, 3], 3)], &["3", "2"])
    .done()
}

fn append() -> OpInfo {
    op(
        "householder_append",
        |_: &(), x: &[Var]| <[Var; 2]>::from(ops::householder_append(&x[0], &x[1], &x[2])),
        |_, x| {
            let d = floating(x.iter().fold(x[0].dtype, |d, x| DType::promote(d, x.dtype)));
            let column = if x[2].rank() == 1 { x[2].reshape(&[x[2].shape[0], 1]) } else { x[2].clone() };
            let batch = common_batch([&x[0].shape[2..], &x[1].shape[1..], &column.shape[2..]]);
            let x =
                [(&x[0], 2), (&x[1], 1), (&column, 2)].map(|(x, axes)| repeated(&x.cast(d), axes, &batch));
            let ([m, n], [_, p], k) = (extents(&x[0]).0, extents(&x[2]).0, x[1].shape[0]);
            let q = products(&x[0], &x[1]);
            let below = each_pair(&q, &x[2], [m, p], |q, b| q.adjoint().times(b));
            let rest = each_matrix(&below, [m - k, p], |c| Matrix::from_fn(m - k, p, |i, j| c.at(i + k, j)));
            let [packed, tau] = reflectors(&rest);
            let right = each_pair(&below, &packed, [m, p], |c, r| {
                Matrix::from_fn(m, p, |i, j| if i < k { c.at(i, j) } else { r.at(i - k, j) })
            });
            let all = each_pair(&x[0], &right, [m, n + p], |a, b| {
                Matrix::from_fn(m, n + p, |i, j| if j < n { a.at(i, j) } else { b.at(i, j - n) })
            });
            let columns = |t: &Array| t.reshape(&[&[t.shape[0], 1], &t.shape[1..]].concat());
            let (first, more) = (columns(&x[1]), columns(&tau));
            let length = k + tau.shape[0];
            let taus = each_pair(&first, &more, [length, 1], |a, b| {
                Matrix::from_fn(length, 1, |i, _| if i < k { a.at(i, 0) } else { b.at(i - k, 0) })
            });
            vec![all, taus.reshape(&[&[length], &x[1].shape[1..]].concat())]
        },
    )
    .surface(surface!((); LinalgOps, TypedLinalgOps; householder_append(1, 2)))
    // As householder_product.
    .tolerance(bound(3, 15.0))
    .each(FLOATS, |o, d| {
        // New columns that are far from the old ones, whose unit vectors are nearly the first ones.
        let of = |a: &[usize], b: &[usize]| {
            let [packed, tau] = reflectors(&dominant(d, a, 1));
            let new = any(d, b, 2);
            let new = Array::from_fn(d, b, |i| {
                let far = if i[0] == i[1] + a[1] { 4.0 } else { 0.0 };
                new.at(i).plus(Elem::real(far))
            });
            vec![packed, tau, new]
        };
        o.sample((), of(&[4, 2], &[4, 1]))
            .sample((), of(&[3, 1], &[3, 3]))
            .sample((), of(&[2, 2], &[2, 2]))
            .sample((), of(&[2, 3], &[2, 1]))
            .sample((), of(&[3, 1, 2], &[3, 1, 2]))
            .sample((), of(&[3, 0], &[3, 2]))
            .sample((), of(&[3, 2], &[3, 0]))
            .sample((), of(&[3, 1, 2], &[3, 1]))
            .sample((), of(&[3, 1], &[3, 2, 2]))
            .sample((), vec![any(d, &[3, 1], 3), any(d, &[1], 4), any(d, &[3], 5)])
    })
    .promotes()
    .symbolic((), &[&["n", "1"], &["1"], &["n", "2"]])
    .skip("rank_0", "a matrix is needed")
    .error((), vec![any(F64, &[3, 2], 1), any(F64, &[1], 2), any(F64, &[3, 1], 3)], &["1", "2"])
    .error((), vec![any(F64, &[3, 2], 1), any(F64, &[2], 2), any(F64, &[2, 1], 3)], &["2", "3"])
    .done()
}
