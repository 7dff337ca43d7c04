//! Tensors made of their positions, and chains of elementwise operations.

use super::{C64 as C64_, *};
use crate::{
    array::Elem,
    info::{OpInfo, Surface, listed, op},
};
use std::sync::Arc;
use tenferro_core_ops::{Aval, Dim, Op, Var, apply_n, build, ops};
use tenferro_runtime::{TensorExt, TracedTensor, TypedTensorExt};
use tenferro_tensor::{C64, Scalar, Tensor, TypedTensor, dispatch};

fn dims(shape: &[usize]) -> Vec<Dim> {
    shape.iter().map(|&n| Dim::Lit(n)).collect()
}

fn iota() -> OpInfo {
    type P = (DType, Vec<usize>, usize);
    op(
        "iota",
        |(d, s, axis): &P, _: &[Var]| {
            build::iota(*d, &dims(s), *axis)
        },
        |(d, s, axis), _| Array::from_fn(*d, s, |i| Elem::Int(i[*axis] as i64)),
    )
    .surface(Surface {
        direct: |(d, s, axis), _, backend| listed(<Tensor as TensorExt>::iota(*d, s, *axis, backend)),
        typed: |(d, s, axis), _, backend| {
            dispatch!(*d, T => listed(<TypedTensor<T> as TypedTensorExt<T>>::iota(s, *axis, backend)))
        },
        eager: |(d, s, axis), runtime, _| listed(runtime.iota(*d, s, *axis)),
        traced: |(d, s, axis), _| listed(TracedTensor::iota(*d, &dims(s), *axis)),
    })
    .order(0)
    .each(NUMBERS, |o, d| {
        o.sample((d, vec![5], 0), vec![])
            .sample((d, vec![2, 3, 4], 1), vec![])
            .sample((d, vec![2, 0], 0), vec![])
    })
    .symbolic_call(&[(F64, &["n", "m"])], |x| build::iota(F64, &x[0].shape(), 1))
    .skip("rank_0", "an axis is needed")
    .error((F64, vec![2], 1), vec![], &["1"])
    .error((Bool, vec![2], 0), vec![], &["bool"])
    .done()
}

fn eye() -> OpInfo {
    op(
        "eye",
        |&(d, n): &(DType, usize), _: &[Var]| build::eye(d, &Dim::Lit(n)),
        |&(d, n), _| Array::from_fn(d, &[n, n], |i| Elem::Int((i[0] == i[1]) as i64)),
    )
    .surface(Surface {
        direct: |&(d, n), _, _| listed(Tensor::eye(d, n)),
        typed: |&(d, n), _, _| dispatch!(d, T => listed(TypedTensor::<T>::eye(n))),
        eager: |&(d, n), runtime, _| listed(runtime.eye(d, n)),
        traced: |&(d, n), _| listed(TracedTensor::eye(d, &Dim::Lit(n))),
    })
    .order(0)
    .each(EVERY, |o, d| o.sample((d, 3), vec![]).sample((d, 1), vec![]).sample((d, 0), vec![]))
    .symbolic_call(&[(F64, &["n"])], |x| build::eye(F64, &x[0].extent(0)))
    .skip("rank_0", "a matrix")
    .skip("errors", "there is one of every dtype and size")
    .done()
}

fn linspace() -> OpInfo {
    type P = (DType, f64, f64, usize);
    op(
        "linspace",
        |&(d, a, b, n): &P, _: &[Var]| build::linspace(d, a, b, &Dim::Lit(n)),
        |&(d, a, b, n), _| {
            Array::from_fn(d, &[n], |i| match n {
                1 => Elem::real(a),
                _ if i[0] == n - 1 => Elem::real(b),
                _ => Elem::real(a + i[0] as f64 * (b - a) / (n - 1) as f64),
            })
        },
    )
    .surface(Surface {
        direct: |&(d, a, b, n), _, backend| listed(<Tensor as TensorExt>::linspace(d, a, b, n, backend)),
        typed: |&(d, a, b, n), _, backend| {
            dispatch!(d, T => listed(<TypedTensor<T> as TypedTensorExt<T>>::linspace(a, b, n, backend)))
        },
        eager: |&(d, a, b, n), runtime, _| listed(runtime.linspace(d, a, b, n)),
        traced: |&(d, a, b, n), _| listed(TracedTensor::linspace(d, a, b, &Dim::Lit(n))),
    })
    .order(0)
    .each(FLOATS, |o, d| {
        o.sample((d, 0.0, 1.0, 5), vec![])
            .sample((d, -1.0, 0.3, 7), vec![])
            .sample((d, 2.0, -2.0, 2), vec![])
            .sample((d, 0.7, 3.0, 1), vec![])
            .sample((d, 0.7, 3.0, 0), vec![])
            .sample((d, 1.0, 1.0, 3), vec![])
    })
    .symbolic_call(&[(F64, &["n"])], |x| build::linspace(F64, 0.3, 1.7, &x[0].extent(0)))
    .symbolic_call(&[(F64, &["n"])], |x| build::linspace(C64_, 0.3, 1.7, &x[0].extent(0)))
    .skip("rank_0", "an axis is made")
    .error((I64, 0.0, 1.0, 3), vec![], &["i64"])
    .done()
}

/// Both ends are exact, whatever the step rounds to.
fn linspace_ends() -> OpInfo {
    op(
        "linspace_ends",
        |&n: &usize, _: &[Var]| {
            let y = build::linspace(F64, 0.1, 0.7, &Dim::Lit(n));
            let last = y.slice_axis(0, n - 1, n).equal(&y.slice_axis(0, 0, 1).like(0.7));
            let first = y.slice_axis(0, 0, 1).equal(&y.slice_axis(0, 0, 1).like(0.1));
            last.minimum(&first)
        },
        |_, _| Array::ints(Bool, &[1], &[1]),
    )
    .order(0)
    .each(2..40, |o, n| o.sample(n, vec![]))
    .skip("rank_0", "as linspace")
    .skip("zero_size", "as linspace")
    .skip("errors", "as linspace")
    .skip("symbolic", "as linspace")
    .skip("surfaces", "as linspace")
    .done()
}

fn full() -> OpInfo {
    type P = (DType, Vec<usize>, (f64, f64));
    op(
        "full",
        |(d, s, c): &P, _: &[Var]| {
            Var::full(&Aval::new(*d, dims(s)), C64::new(c.0, c.1))
        },
        |(d, s, c), _| Array::from_fn(*d, s, |_| Elem::Float(C64::new(c.0, c.1))),
    )
    .surface(Surface {
        direct: |(d, s, c), _, _| listed(Tensor::full(*d, &s[..], C64::new(c.0, c.1))),
        typed: |(d, s, c), _, _| {
            dispatch!(*d, T => listed(TypedTensor::<T>::full(&s[..], T::from_c64(C64::new(c.0, c.1)))))
        },
        eager: |(d, s, c), runtime, _| listed(runtime.full(*d, s, C64::new(c.0, c.1))),
        traced: |(d, s, c), _| listed(TracedTensor::full(*d, &dims(s), C64::new(c.0, c.1))),
    })
    .order(0)
    .each(EVERY, |o, d| {
        let number = if d.is_complex() { (1.5, 2.0) } else { (if d.is_float() { 1.5 } else { 3.0 }, 0.0) };
        o.sample((d, vec![2, 3], number), vec![])
            .sample((d, vec![], (-2.0, 0.0)), vec![])
            .sample((d, vec![0, 2], (1.0, 0.0)), vec![])
    })
    .symbolic_call(&[(F64, &["n", "m"])], |x| x[0].like(2.5))
    .skip("errors", "a typed tensor takes a number of its own type; the others: tests of their crates").done()
}

/// The chain of `steps`, each an operation and the numbers of its arguments.
fn chain(inputs: usize, steps: Vec<(Arc<dyn Op>, Vec<u32>)>, outputs: &[u32]) -> ops::Fused {
    let steps = steps.into_iter().map(|(op, x)| ops::Step { op, x: x.into() }).collect();
    ops::Fused::new(inputs, steps, outputs.into())
}

fn fused() -> OpInfo {
    // exp(x y) + x, and x y.
    let smooth = || {
        chain(
            2,
            vec![
                (Arc::new(ops::Mul) as Arc<dyn Op>, vec![0, 1]),
                (Arc::new(ops::Exp), vec![2]),
                (Arc::new(ops::Add), vec![3, 0]),
            ],
            &[2, 0],
        )
    };
    // x < y ? x : -y, through other dtypes on the way.
    let choice = || {
        chain(
            2,
            vec![
                (Arc::new(ops::Compare { relation: ops::Relation::Less }) as Arc<dyn Op>, vec![0, 1]),
                (Arc::new(ops::Neg), vec![1]),
                (Arc::new(ops::Select), vec![2, 0, 3]),
            ],
            &[2],
        )
    };
    op(
        "fused",
        |p: &ops::Fused, x: &[Var]| apply_n(p, &x.iter().collect::<Vec<_>>(), p.outputs().len()),
        |p, x| {
            let of = |f: &dyn Fn(C64, C64) -> C64| {
                Array::from_fn(x[0].dtype, &x[0].shape, |i| Elem::Float(f(x[0].at(i).c(), x[1].at(i).c())))
            };
            if p.outputs().len() == 2 {
                vec![of(&|a, b| (a * b).exp() + a), of(&|a, b| a * b)]
            } else {
                vec![of(&|a, b| if a.re < b.re { a } else { -b })]
            }
        },
    )
    .each(FLOATS, |o, d| {
        let two = |shape: &[usize]| vec![any(d, shape, 1), any(d, shape, 2)];
        o.sample(smooth(), two(&[3, 4])).sample(smooth(), two(&[])).sample(smooth(), two(&[0, 2]))
    })
    .sample(choice(), vec![any(F64, &[3, 4], 3), any(F64, &[3, 4], 4)])
    .kink(smooth(), vec![any(F64, &[5000], 5), any(F64, &[5000], 6)])
    .symbolic(smooth(), &[&["n", "m"], &["n", "m"]])
    .error(smooth(), vec![any(F64, &[2], 1), any(F64, &[3], 2)], &["[3]", "[2]"])
    .error(smooth(), vec![any(F64, &[2], 1)], &["1", "2"])
    .error(chain(0, vec![], &[0]), vec![], &["0", "at least 1"])
    .error(chain(1, vec![(Arc::new(ops::Exp), vec![4])], &[0]), vec![any(F64, &[2], 1)], &["4"])
    .error(chain(1, vec![(Arc::new(ops::Exp), vec![0])], &[3]), vec![any(F64, &[2], 1)], &["3"])
    .error_of("exp", chain(1, vec![(Arc::new(ops::Exp), vec![0])], &[0]), vec![any(I64, &[2], 1)], &["i64"])
    .skip("surfaces", IN_RULES)
    .done()
}

pub(super) fn list() -> Vec<OpInfo> {
    vec![iota(), eye(), linspace(), linspace_ends(), full(), fused()]
}
