//! Elimination, and systems of linear equations.

use super::*;
use crate::{
    array::Elem,
    info::{op, surface},
};
use tenferro_core_ops::{Dim, Var, apply_n, apply1};
use tenferro_linalg::{
    EqualExtents, LinalgOps, LinalgRecorded, LuFactor, LuSolve, StopGradient, System, Triangular,
    TriangularSolve, TypedLinalgOps, ops,
};

pub(super) fn list() -> Vec<OpInfo> {
    vec![
        lu(),
        lu_factors(),
        lu_packed(),
        solve(),
        solve_with(),
        solve_by_hints(),
        triangle(),
        triangular_solve(),
        stop_gradient(),
        equal_extents(),
    ]
}

/// From the right, and 0 for the matrix, 1 for its transpose, 2 for its adjoint.
pub(super) type Form = (bool, u8);

pub(super) const FORMS: [Form; 6] = [(false, 0), (false, 1), (false, 2), (true, 0), (true, 1), (true, 2)];

pub(super) fn system((right, form): Form) -> System {
    let system = if right { System::right() } else { System::left() };
    match form {
        0 => system,
        1 => system.transposed(),
        _ => system.adjoint(),
    }
}

/// The solution of a system of this form.
pub(super) fn posed((right, form): Form, a: &Matrix, b: &Matrix) -> Matrix {
    let a = match form {
        0 => a.clone(),
        1 => a.transposed(),
        _ => a.adjoint(),
    };
    if right { a.transposed().solve(&b.transposed()).transposed() } else { a.solve(b) }
}

/// p, L and U.
pub(super) fn eliminated(a: &Array) -> [Array; 3] {
    let a = a.cast(floating(a.dtype));
    let ([m, n], batch) = extents(&a);
    let k = m.min(n);
    let p: Vec<i64> = matrices(&a).iter().flat_map(|a| a.lu().0).map(|i| i as i64).collect();
    let shape: Vec<usize> = std::iter::once(m).chain(batch.iter().copied()).collect();
    [
        Array::ints(I64, &shape, &p),
        each_matrix(&a, [m, k], |a| a.lu().1),
        each_matrix(&a, [k, n], |a| a.lu().2),
    ]
}

/// The strict part of L and U in one matrix.
pub(super) fn packed(a: &Array) -> Array {
    each_matrix(a, extents(a).0, |a| {
        let (_, l, u) = a.lu();
        Matrix::from_fn(a.rows, a.columns, |i, j| if i > j { l.at(i, j) } else { u.at(i, j) })
    })
}

fn lu() -> OpInfo {
    op("lu", |_: &(), x: &[Var]| -> [Var; 3] { ops::lu(&x[0]).into() }, |_, x| eliminated(&x[0]).to_vec())
        .surface(surface!((); LinalgOps, TypedLinalgOps; lu()))
        // Below 2.5 for order 33, and below 15 for order 4.
        .tolerance(bound(33, 2.5))
        .each(FLOATS, |o, d| {
            o.sample((), vec![any(d, &[4, 4], 1)])
                .sample((), vec![any(d, &[5, 3], 2)])
                .sample((), vec![any(d, &[2, 4], 3)])
                .sample((), vec![any(d, &[1, 1], 4)])
                .sample((), vec![any(d, &[3, 2, 2], 5)])
                .sample((), vec![any(d, &[0, 3], 6)])
                .sample((), vec![any(d, &[3, 0], 7)])
                .sample((), vec![any(d, &[2, 2, 0], 8)])
                .kink((), vec![dominant(d, &[33, 33], 9)])
        })
        .kink((), vec![any(I32, &[3, 3], 10)])
        .symbolic((), &[&["n", "m"]])
        .skip("rank_0", "a matrix is needed")
        .error((), vec![any(F64, &[3], 1)], &["1", "at least 2"])
        .error((), vec![f64s(&[2, 2], &[1.0, f64::NAN, 0.0, 1.0])], &["[1, 0]", "not finite"])
        .done()
}

/// The differentiable results alone.
fn lu_factors() -> OpInfo {
    op(
        "lu_factors",
        |_: &(), x: &[Var]| {
            let (_, l, u) = ops::lu(&x[0]);
            [l, u]
        },
        |_, x| eliminated(&x[0])[1..].to_vec(),
    )
    // See `dominant`.
    .tolerance(bound(5, 2.5))
    .each(FLOATS, |o, d| {
        o.sample((), vec![dominant(d, &[3, 3], 1)])
            .sample((), vec![dominant(d, &[4, 2], 2)])
            .sample((), vec![dominant(d, &[2, 4], 3)])
            // Linear, so that a second derivative is nothing but rounding.
            .kink((), vec![dominant(d, &[1, 1], 4)])
            .sample((), vec![dominant(d, &[3, 2, 2], 5)])
            .sample((), vec![dominant(d, &[2, 0], 6)])
    })
    .symbolic((), &[&["n", "m"]])
    .symbolic((), &[&["n", "n", "m"]])
    .skip("rank_0", "a matrix is needed")
    .skip("surfaces", COMPOSED)
    .error_of("lu", (), vec![any(F64, &[2], 1)], &["1", "at least 2"])
    .done()
}

/// Whether the factors are hints.
fn lu_packed() -> OpInfo {
    op(
        "lu_packed",
        |&hint: &bool, x: &[Var]| apply_n(&LuFactor { hint }, &[&x[0]], 2),
        |_, x| vec![packed(&x[0]), eliminated(&x[0])[0].clone()],
    )
    // That of the random matrix of order 3.
    .tolerance(bound(3, 15.0))
    .each(FLOATS, |o, d| {
        o.each([false, true], |o, hint| {
            let shapes = [(&[3, 3][..], 3), (&[4, 2], 2), (&[2, 4], 3), (&[2, 2, 3], 4), (&[0, 0], 5)];
            o.each(shapes, |o, (shape, seed)| {
                let a = vec![any(d, shape, seed)];
                // A hint of how to solve a system is a constant: differences know nothing of that.
                if hint { o.kink(hint, a) } else { o.sample(hint, a) }
            })
        })
    })
    // A singular matrix has factors, though none with a derivative.
    .kink(true, vec![f64s(&[2, 2], &[2.0, 1.0, 4.0, 2.0])])
    .skip("rank_0", "a matrix is needed")
    .error_of("lu", false, vec![any(I64, &[2, 2], 1)], &["i64", "f32 | f64"])
    .error_of("solve", true, vec![any(F64, &[2], 1)], &["1", "at least 2"])
    .skip("surfaces", IN_RULES)
    .symbolic(false, &[&["n", "m"]])
    .symbolic(true, &[&["n", "n", "k"]])
    .done()
}

fn solve() -> OpInfo {
    op(
        "solve",
        |_: &(), x: &[Var]| ops::solve(&x[0], &x[1]),
        |_, x| {
            let d = floating(x[0].dtype);
            with_batch(&x[0].cast(d), &x[1].cast(d), false, Matrix::solve)
        },
    )
    .surface(surface!((); LinalgOps, TypedLinalgOps; solve(1)))
    .promotes()
    // See `dominant`.
    .tolerance(bound(33, 2.5))
    .each(FLOATS, |o, d| {
        let ab = |a: &[usize], b: &[usize], seed| vec![dominant(d, a, seed), any(d, b, seed + 1)];
        o.sample((), ab(&[3, 3], &[3, 2], 1))
            .sample((), ab(&[3, 3], &[3], 3))
            .sample((), ab(&[1, 1], &[1, 1], 5))
            .sample((), ab(&[2, 2, 3], &[2, 1, 3], 7))
            .sample((), ab(&[2, 2, 2], &[2, 1], 9))
            .sample((), ab(&[2, 2], &[2, 2, 3], 11))
            // One vector for every matrix.
            .sample((), ab(&[2, 2, 3], &[2], 12))
            .sample((), ab(&[2, 2, 2, 1], &[2], 14))
            .sample((), ab(&[2, 2, 0], &[2], 16))
            .sample((), ab(&[2, 2, 1, 2], &[2, 1, 3], 13))
            .sample((), ab(&[0, 0], &[0, 2], 15))
            .sample((), ab(&[2, 2], &[2, 0], 17))
            .sample((), ab(&[2, 2, 0], &[2, 1, 0], 19))
            .kink((), ab(&[33, 33], &[33, 5], 21))
            // A first pivot that is zero.
            .sample((), vec![Array::reals(d, &[2, 2], &[0.0, 2.0, 3.0, 1.0]), any(d, &[2, 2], 23)])
    })
    .kink((), vec![Array::ints(I64, &[2, 2], &[2, 1, 1, 3]), Array::ints(I64, &[2], &[1, 4])])
    .symbolic((), &[&["n", "n"], &["n", "m"]])
    .symbolic((), &[&["n", "n"], &["n"]])
    .symbolic((), &[&["n", "n", "m"], &["n", "2"]])
    .symbolic((), &[&["n", "n", "m"], &["n"]])
    // X = A^-1 B pulls ct back to A^-H ct and -(A^-H ct) X^H.
    .closed(
        (),
        vec![f64s(&[2, 2], &[2.0, 0.0, 0.0, 4.0]), f64s(&[2], &[1.0, 1.0])],
        f64s(&[2], &[1.0, 0.0]),
        vec![f64s(&[2, 2], &[-0.25, 0.0, -0.125, 0.0]), f64s(&[2], &[0.5, 0.0])],
    )
    .closed(
        (),
        vec![Array::complexes(C64_, &[1, 1], &[(0.0, 2.0)]), Array::complexes(C64_, &[1], &[(4.0, 0.0)])],
        Array::complexes(C64_, &[1], &[(1.0, 0.0)]),
        // X = -2i, A^-H ct = i/2.
        vec![Array::complexes(C64_, &[1, 1], &[(1.0, 0.0)]), Array::complexes(C64_, &[1], &[(0.0, 0.5)])],
    )
    .skip("rank_0", "a matrix is needed")
    .error((), vec![f64s(&[2, 2], &[1.0, 2.0, 2.0, 4.0]), any(F64, &[2], 1)], &["pivot 1", "zero", "inverse"])
    .error((), vec![any(F64, &[2, 3], 1), any(F64, &[2], 2)], &["[2, 3]", "square"])
    .error((), vec![any(F64, &[2, 2], 1), any(F64, &[3], 2)], &["3", "2"])
    .error((), vec![any(F64, &[2], 1), any(F64, &[2], 2)], &["1", "at least 2"])
    .error((), vec![any(F64, &[2, 2, 2], 1), any(F64, &[2, 1, 3], 2)], &["3", "2"])
    .error((), vec![f64s(&[1, 1], &[f64::NAN]), any(F64, &[1], 2)], &["[0, 0]", "not finite"])
    .done()
}

/// Every form of a system.
fn solve_with() -> OpInfo {
    op(
        "solve_with",
        |&p: &Form, x: &[Var]| ops::solve_with(&x[0], &x[1], system(p)),
        |&p, x| with_batch(&x[0], &x[1], p.0, |a, b| posed(p, a, b)),
    )
    .surface(surface!(Form; LinalgOps, TypedLinalgOps; solve_with(1) |p| system(*p)))
    .promotes()
    // See `dominant`.
    .tolerance(bound(5, 2.5))
    .each(FLOATS, |o, d| {
        let ab = |a: &[usize], b: &[usize], seed| vec![dominant(d, a, seed), any(d, b, seed + 1)];
        o.each(FORMS, |o, p| {
            let b: &[usize] = if p.0 { &[2, 3] } else { &[3, 2] };
            o.sample(p, ab(&[3, 3], b, 1)).sample(p, ab(&[3, 3], &[3], 3)).sample(p, ab(&[2, 2, 2], &[2], 4))
        })
        .sample((true, 0), ab(&[2, 2, 3], &[1, 2, 3], 5))
        .sample((true, 2), ab(&[2, 2, 2], &[1, 2], 7))
        .sample((false, 1), ab(&[2, 2], &[2, 2, 3], 9))
        .sample((true, 1), ab(&[0, 0], &[2, 0], 11))
        .sample((true, 0), ab(&[2, 2], &[0, 2], 13))
    })
    .symbolic((true, 0), &[&["n", "n"], &["m", "n"]])
    .symbolic((false, 1), &[&["n", "n"], &["n", "m"]])
    .symbolic((true, 2), &[&["n", "n"], &["n"]])
    .skip("rank_0", "a matrix is needed")
    .error((true, 0), vec![any(F64, &[2, 2], 1), any(F64, &[2, 3], 2)], &["3", "2"])
    .error((true, 1), vec![any(F64, &[2], 1), any(F64, &[2], 2)], &["1", "at least 2"])
    .error_at(
        ["solve_with", "solve"],
        (true, 2),
        vec![f64s(&[2, 2], &[1.0, 2.0, 2.0, 4.0]), any(F64, &[2], 1)],
        &["pivot 1", "zero", "inverse"],
    )
    .done()
}

/// A^-1 B, or A^-H B, from A, its packed factors and permutation, and B.
fn solve_by_hints() -> OpInfo {
    op(
        "solve_by_hints",
        |&adjoint: &bool, x: &[Var]| apply1(&LuSolve { adjoint }, &[&x[0], &x[1], &x[2], &x[3]]),
        |&adjoint, x| {
            each_pair(
                &x[0],
                &x[3],
                extents(&x[3]).0,
                |a, b| {
                    if adjoint { a.adjoint().solve(b) } else { a.solve(b) }
                },
            )
        },
    )
    // That of the random matrix of order 3.
    .tolerance(bound(3, 15.0))
    .each(FLOATS, |o, d| {
        let operands = |a: Array, b: Array| {
            let [p, ..] = eliminated(&a);
            vec![a.clone(), packed(&a), p, b]
        };
        o.each([false, true], |o, adjoint| {
            o.sample(adjoint, operands(dominant(d, &[3, 3], 1), any(d, &[3, 2], 2)))
                .sample(adjoint, operands(any(d, &[3, 3], 3), any(d, &[3, 1], 4)))
                .sample(adjoint, operands(dominant(d, &[2, 2, 3], 5), any(d, &[2, 1, 3], 6)))
                .sample(adjoint, operands(dominant(d, &[0, 0], 7), any(d, &[0, 1], 8)))
        })
    })
    .skip("rank_0", "a matrix is needed")
    .skip("jvp", HINTS)
    .skip("second_order", HINTS)
    .error_of(
        "solve",
        false,
        vec![any(F64, &[2, 2], 1), any(F64, &[2, 2], 2), i64s(&[0, 1]), any(F64, &[3, 1], 3)],
        &["3", "2"],
    )
    .skip("surfaces", IN_RULES)
    // The positions are all 0, which is a permutation of one.
    .symbolic_of(false, &[(F64, &["n", "n"]), (F64, &["n", "n"]), (I64, &["n"]), (F64, &["n", "m"])])
    .each(
        [
            (any(F64, &[2, 3], 2), i64s(&[0, 1]), ["f64[2, 3]", "f64[2, 2]"]),
            (any(F64, &[2, 2, 1], 2), i64s(&[0, 1]), ["f64[2, 2, 1]", "f64[2, 2]"]),
            (any(C64_, &[2, 2], 2), i64s(&[0, 1]), ["c64[2, 2]", "f64[2, 2]"]),
            (any(F64, &[2, 2], 2), i64s(&[0]), ["i64[1]", "i64[2]"]),
            (any(F64, &[2, 2], 2), Array::ints(I32, &[2], &[0, 1]), ["i32[2]", "i64[2]"]),
            (any(F64, &[2, 2], 2), Array::ints(I64, &[2, 1], &[0, 1]), ["i64[2, 1]", "i64[2]"]),
            (any(F64, &[2, 2], 2), i64s(&[0, 2]), ["2 at position 1", "permutation of 0..2"]),
            (any(F64, &[2, 2], 2), i64s(&[-1, 0]), ["-1 at position 0", "permutation of 0..2"]),
            (any(F64, &[2, 2], 2), i64s(&[1, 1]), ["1 at position 1", "permutation of 0..2"]),
            (any(F64, &[70, 70], 2), i64s(&[0; 70]), ["0 at position 1", "permutation of 0..70"]),
        ],
        |o, (factors, p, parts)| {
            let n = if p.data.len() == 70 { 70 } else { 2 };
            o.error_of("solve", true, vec![any(F64, &[n, n], 1), factors, p, any(F64, &[n, 1], 3)], &parts)
        },
    )
    .done()
}

/// What a system with a triangle reads of a matrix.
fn part(lower: bool, unit: bool, t: &Matrix) -> Matrix {
    Matrix::from_fn(t.rows, t.columns, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Equal if unit => 1.0.into(),
        std::cmp::Ordering::Equal => t.at(i, j),
        o if o.is_gt() == lower => t.at(i, j),
        _ => 0.0.into(),
    })
}

/// Lower, with a diagonal of 1, and the form of the system.
fn triangular_solve() -> OpInfo {
    type P = (bool, bool, Form);
    fn form(&(lower, unit, (right, form)): &P) -> Triangular {
        let t = if lower { Triangular::lower() } else { Triangular::upper() };
        let t = if unit { t.unit_diagonal() } else { t };
        let t = if right { t.right() } else { t };
        match form {
            0 => t,
            1 => t.transposed(),
            _ => t.adjoint(),
        }
    }
    op(
        "triangular_solve",
        |p: &P, x: &[Var]| ops::triangular_solve(&x[0], &x[1], form(p)),
        |&(lower, unit, p), x| {
            let d = floating(DType::promote(x[0].dtype, x[1].dtype));
            with_batch(&x[0].cast(d), &x[1].cast(d), p.0, |t, b| posed(p, &part(lower, unit, t), b))
        },
    )
    .surface(surface!(P; LinalgOps, TypedLinalgOps; triangular_solve(1) |p| form(p)))
    .promotes()
    // As the whole matrix; see `dominant`.
    .tolerance(bound(5, 2.5))
    .each(FLOATS, |o, d| {
        let ab = |a: &[usize], b: &[usize], seed| vec![dominant(d, a, seed), any(d, b, seed + 1)];
        o.each([(true, true), (true, false), (false, true), (false, false)], |o, (lower, unit)| {
            o.each(FORMS, |o, p| {
                let b: &[usize] = if p.0 { &[2, 3] } else { &[3, 2] };
                o.sample((lower, unit, p), ab(&[3, 3], b, 1))
                    .sample((lower, unit, p), ab(&[2, 2, 2], &[2], 4))
            })
        })
        .sample((true, false, (true, 0)), ab(&[3, 3], &[3], 3))
        .sample((false, false, (false, 1)), ab(&[3, 3], &[3], 5))
        .sample((true, false, (true, 2)), ab(&[2, 2, 2], &[1, 2], 7))
        .sample((false, true, (false, 0)), ab(&[2, 2], &[2, 2, 3], 9))
        .sample((true, false, (true, 1)), ab(&[0, 0], &[2, 0], 11))
    })
    .kink((true, false, (false, 0)), vec![Array::ints(I64, &[2, 2], &[2, 1, 5, 3]), i64s(&[1, 4])])
    // X = T^-1 B pulls ct back to the triangle of -(T^-H ct) X^H.
    .closed(
        (true, false, (false, 0)),
        vec![f64s(&[2, 2], &[2.0, 1.0, 0.0, 3.0]), f64s(&[2, 1], &[4.0, 5.0])],
        f64s(&[2, 1], &[1.0, 1.0]),
        vec![
            f64s(&[2, 2], &[-2.0 / 3.0, -2.0 / 3.0, 0.0, -1.0 / 3.0]),
            f64s(&[2, 1], &[1.0 / 3.0, 1.0 / 3.0]),
        ],
    )
    .symbolic((true, false, (true, 0)), &[&["n", "n"], &["m", "n"]])
    .symbolic((false, true, (false, 1)), &[&["n", "n"], &["n"]])
    .skip("rank_0", "a matrix is needed")
    .error(
        (true, false, (true, 0)),
        vec![f64s(&[2, 2], &[1.0, 0.0, 0.0, 0.0]), any(F64, &[2], 1)],
        &["pivot 1", "zero"],
    )
    .error((true, false, (false, 0)), vec![any(F64, &[2, 3], 1), any(F64, &[2], 1)], &["[2, 3]", "square"])
    .error((true, false, (true, 0)), vec![any(F64, &[2, 2], 1), any(F64, &[2, 3], 1)], &["3", "2"])
    .error((true, false, (true, 0)), vec![any(F64, &[2], 1), any(F64, &[2], 1)], &["1", "at least 2"])
    .done()
}

/// Lower, with a diagonal of 1, and adjoint.
fn triangle() -> OpInfo {
    type P = (bool, bool, bool);
    op(
        "triangle_solve",
        |&(lower, unit_diagonal, adjoint): &P, x: &[Var]| {
            apply1(&TriangularSolve { lower, unit_diagonal, adjoint }, &[&x[0], &x[1]])
        },
        |p, x| {
            each_pair(&x[0], &x[1], extents(&x[1]).0, |t, b| {
                let t = part(p.0, p.1, t);
                if p.2 { t.adjoint().solve(b) } else { t.solve(b) }
            })
        },
    )
    // As the whole matrix; see `dominant`.
    .tolerance(bound(33, 2.5))
    .each(FLOATS, |o, d| {
        let two = |t: &[usize], b: &[usize]| vec![dominant(d, t, 1), any(d, b, 2)];
        let all = (0..8).map(|k| (k & 1 > 0, k & 2 > 0, k & 4 > 0));
        o.each(all, |o, p| o.sample(p, two(&[3, 3], &[3, 2])).sample(p, two(&[2, 2, 2], &[2, 1, 2])))
            .sample((true, false, false), two(&[1, 1], &[1, 1]))
            .sample((true, false, false), two(&[0, 0], &[0, 2]))
            .sample((false, false, true), two(&[2, 2], &[2, 0]))
            .kink((false, false, false), two(&[33, 33], &[33, 3]))
    })
    // What is not of the triangle is not read.
    .value(
        (true, true, false),
        vec![f64s(&[2, 2], &[f64::NAN, 2.0, f64::NAN, f64::NAN]), f64s(&[2, 1], &[1.0, 5.0])],
        f64s(&[2, 1], &[1.0, 3.0]),
    )
    .symbolic((true, false, false), &[&["n", "n"], &["n", "m"]])
    .symbolic((false, true, true), &[&["n", "n", "k"], &["n", "m", "k"]])
    .skip("rank_0", "a matrix is needed")
    .error_of(
        "triangular_solve",
        (true, false, false),
        vec![f64s(&[2, 2], &[1.0, 0.0, 0.0, 0.0]), any(F64, &[2, 1], 1)],
        &["pivot 1", "zero"],
    )
    .error_of(
        "triangular_solve",
        (true, false, false),
        vec![any(F64, &[2, 3], 1), any(F64, &[2, 1], 2)],
        &["[2, 3]", "square"],
    )
    .error_of(
        "triangular_solve",
        (true, false, false),
        vec![any(F64, &[2, 2], 1), any(F64, &[3, 1], 2)],
        &["3", "2"],
    )
    .error_of(
        "triangular_solve",
        (true, false, false),
        vec![any(F64, &[2, 2], 1), any(C64_, &[2, 1], 2)],
        &["c64", "f64"],
    )
    .skip("surfaces", IN_RULES)
    .done()
}

fn equal_extents() -> OpInfo {
    let of = |got, expected| EqualExtents {
        op: "equal_extents",
        what: "rows",
        extents: [Dim::Lit(got), Dim::Lit(expected)],
    };
    op("equal_extents", |op: &EqualExtents, x: &[Var]| apply1(op, &[&x[0]]), |_, x| x[0].clone())
        .each(FLOATS, |o, d| {
            o.sample(of(2, 2), vec![any(d, &[3, 4], 1)])
                .sample(of(2, 2), vec![any(d, &[], 2)])
                .sample(of(2, 2), vec![any(d, &[0, 2], 3)])
        })
        .symbolic_call(&[(F64, &["n", "n"])], |x| {
            let extents = [x[0].extent(0), x[0].extent(1)];
            apply1(&EqualExtents { op: "equal_extents", what: "rows", extents }, &[&x[0]])
        })
        .skip("surfaces", IN_RULES)
        .error(of(2, 3), vec![any(F64, &[1], 1)], &["rows", "2", "3"])
        .done()
}

fn stop_gradient() -> OpInfo {
    op("stop_gradient", |_: &(), x: &[Var]| apply1(&StopGradient, &[&x[0]]), |_, x| x[0].clone())
        .order(0)
        .each(EVERY, |o, d| {
            o.sample((), vec![any(d, &[3, 4], 1)])
                .sample((), vec![any(d, &[], 2)])
                .sample((), vec![any(d, &[0, 2], 3)])
        })
        .kink((), vec![Array::from_fn(F64, &[2], |i| Elem::real([f64::NAN, f64::INFINITY][i[0]]))])
        .symbolic((), &[&["n", "m"]])
        .skip("errors", ANY_TENSOR)
        .skip("surfaces", IN_RULES)
        .done()
}
