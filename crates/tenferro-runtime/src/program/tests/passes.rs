//! What compiling makes of calls.

use super::*;
use tenferro_core_ops::{Rewrite, Term, constant, ops};
use tenferro_tensor::Value;

fn program(x: &[&Var], y: &[Var]) -> Program {
    Program::new(&x.iter().map(|&v| v.clone()).collect::<Vec<_>>(), y).unwrap()
}

#[test]
fn equal_calls_become_one() {
    let x = f64s([sym("n")]);
    let y = (&x * &x).exp() + (&x * &x).exp() + (&x * 2.0) * (&x * 2.0);
    let p = program(&[&x], &[y]);
    let mut steps = p.0.graph.nodes.iter().filter_map(|n| n.op()).map(|op| op.name()).collect::<Vec<_>>();
    steps.sort();
    assert_eq!(steps, ["add", "add", "broadcast_in_dim", "exp", "mul", "mul", "mul"]);
}

#[test]
fn sums_and_products_merge_in_either_order() {
    let (x, y) = (f64s([sym("n")]), f64s([sym("n")]));
    let p = program(&[&x, &y], &[&x + &y, &y + &x, &x - &y, &y - &x]);
    assert_eq!(p.0.graph.nodes.iter().filter(|n| n.op().is_some()).count(), 3);
}

#[test]
fn constants_given_while_tracing_never_merge_and_numbers_do() {
    let x = f64s([2.into()]);
    let c = || constant(Value::new(tensor(&[2], &[1.0, 2.0])));
    let p = program(&[&x], &[&x + &c(), &x + &c(), &x + 3.0, &x + 3.0]);
    let count = |name| p.0.graph.nodes.iter().filter_map(|n| n.op()).filter(|o| o.name() == name).count();
    assert_eq!((count("add"), count("broadcast_in_dim")), (3, 1));
    assert_eq!(p.digest(), p.clone().digest());
    assert_ne!(p.digest(), program(&[&x], &[&x + &c()]).digest());
    assert_eq!(program(&[&x], &[&x + 3.0]).digest(), program(&[&x], &[&x + 3.0]).digest());
}

#[test]
fn what_no_output_needs_is_dropped_but_inputs_stay() {
    let (x, y) = (f64s([sym("n")]), f64s([sym("m")]));
    let _unused = x.exp().reduce_sum(None);
    let p = program(&[&x, &y], &[x.neg_twice()]);
    assert!(names(&p).is_empty());
    assert_eq!(p.inputs().len(), 2);
    assert_eq!(run(&p, &[&tensor(&[1], &[-0.0]), &numbers(&[3])])[0][0].to_bits(), (-0.0f64).to_bits());
}

trait NegTwice {
    fn neg_twice(&self) -> Var;
}
impl NegTwice for Var {
    fn neg_twice(&self) -> Var {
        -&-self
    }
}

#[test]
fn identities_vanish() {
    let (n, m) = (sym("n"), sym("m"));
    let x = f64s([n.clone(), m.clone()]);
    let flat = n.mul(&m);
    for y in [
        &x * 1.0,
        &x / 1.0,
        &x - 0.0,
        &x + -0.0,
        x.transpose(&[1, 0]).transpose(&[1, 0]),
        x.reshape(std::slice::from_ref(&flat)).reshape(&[n.clone(), m.clone()]),
        x.slice_axis(0, 0, n.clone()),
        x.reverse(&[0]).reverse(&[0]),
        x.complex().real(),
        x.reduce_sum(Some(&[])),
        apply1(&ops::Copy, &[&x]),
    ] {
        assert!(names(&program(&[&x], &[y])).is_empty());
    }
}

#[test]
fn rewrites_keep_signed_zeros_and_infinities() {
    let x = f64s([1.into()]);
    let z = input(Aval::new(DType::C64, [1.into()]));
    assert_eq!(names(&program(&[&x], &[&x + 0.0])).last(), Some(&"add"));
    assert_eq!(names(&program(&[&x], &[&x - -0.0])).last(), Some(&"sub"));
    assert_eq!(names(&program(&[&x], &[&x * 0.0])).last(), Some(&"mul"));
    assert_eq!(names(&program(&[&z], &[&z * 1.0])).last(), Some(&"mul"));
    let p = program(&[&x], &[&x + 0.0, &x - -0.0]);
    let y = run(&p, &[&tensor(&[1], &[-0.0])]);
    assert_eq!([y[0][0].to_bits(), y[1][0].to_bits()], [0, 0]);
}

#[test]
fn a_reshape_that_checks_an_extent_stays() {
    let x = f64s([sym("n")]);
    let y = x.reshape(&[sym("k"), 2.into()]).reshape(&[sym("n")]);
    let k = f64s([sym("k")]);
    let p = program(&[&x, &k], &[y]);
    assert_eq!(names(&p), ["reshape", "reshape"]);
    let e = p.run(&mut CpuBackend::with_threads(1), &[&numbers(&[6]), &numbers(&[2])]).unwrap_err();
    assert!(e.to_string().contains("[6]") && e.to_string().contains("[2, 2]"), "{e}");
}

#[test]
fn what_a_rewrite_drops_had_nothing_to_check() {
    let (x, y) = (f64s([sym("n")]), f64s([sym("m")]));
    let ones = |shape: &[Dim]| constant(Value::new(tensor(&[1], &[1.0]))).reshape(shape);
    let number = |shape: &[Dim]| constant(Value::new(tensor(&[1], &[1.0]))).broadcast_in_dim(shape, &[0]);
    // The comparison needs n = m, the reshape n = 1, the second broadcast n = 5.
    for checked in [
        x.less(&y).select(&x, &x),
        &x * &ones(&[sym("n")]),
        &x * &number(&[5.into()]).broadcast_in_dim(&[sym("n")], &[0]),
    ] {
        let p = program(&[&x, &y], &[checked]);
        assert!(p.run(&mut CpuBackend::with_threads(1), &[&numbers(&[3]), &numbers(&[4])]).is_err(), "{p:?}");
    }
    // Each of these is x, whatever the extents.
    for free in [
        &x * &number(&[sym("n")]),
        &x * &ones(&[1.into(), 1.into()]).transpose(&[1, 0]).reshape::<Dim>(&[]),
        &x * &number(&[sym("n")]).reverse(&[0]),
    ] {
        let p = program(&[&x, &y], &[free]);
        let out = p.run(&mut CpuBackend::with_threads(1), &[&numbers(&[3]), &numbers(&[4])]).unwrap();
        assert_eq!(out[0], numbers(&[3]), "{p:?}");
    }
    assert!(names(&program(&[&x], &[&x * &number(&[sym("n")])])).is_empty());
}

#[test]
fn transposes_and_conjugates_fold_into_contractions() {
    let (n, m) = (sym("n"), sym("m"));
    let a = input(Aval::new(DType::C64, [n.clone(), m.clone()]));
    let p = program(&[&a], &[a.adjoint().matmul(&a), a.matmul(&a.adjoint())]);
    assert_eq!(names(&p), ["dot_general", "dot_general"]);
    // Two free axes in another order are not what a contraction can give.
    let t = f64s([n.clone(), m.clone(), sym("k")]);
    let p = program(&[&t], &[t.transpose(&[1, 0, 2]).tensordot(&t, 1)]);
    assert_eq!(names(&p), ["transpose", "dot_general"]);
}

/// The elements moved round by some places.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Turned {
    by: usize,
}

impl Primitive for Turned {
    const NAME: &'static str = "turned";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        Ok(smallvec![x[0].clone()])
    }
    fn simplify<'a>(&self, x: &[Term<'a>], _: &[Aval<Dim>]) -> Option<Rewrite<'a>> {
        if self.by == 0 {
            return Some(Rewrite::Same(x[0]));
        }
        let (inner, x) = x[0].made_by::<Turned>()?;
        Some(Rewrite::call(Turned { by: self.by + inner.by }, x))
    }
}

#[test]
fn operations_bring_their_own_rewrites() {
    let x = f64s([sym("n")]);
    let turned = |x: &Var, by| apply1(&Turned { by }, &[x]);
    let p = program(&[&x], &[turned(&turned(&turned(&x, 2), 0), 3), turned(&x, 5)]);
    assert_eq!(p.0.graph.nodes.iter().filter_map(|n| n.op()).count(), 1, "{}", p.explain());
}

/// The first element, and a rewrite that forgets to take it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct First;

impl Primitive for First {
    const NAME: &'static str = "first";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        Ok(smallvec![Aval::new(x[0].dtype, [])])
    }
    fn simplify<'a>(&self, x: &[Term<'a>], _: &[Aval<Dim>]) -> Option<Rewrite<'a>> {
        Some(Rewrite::Same(x[0]))
    }
}

#[test]
fn a_call_never_becomes_a_value_of_other_extents() {
    let x = f64s([sym("n")]);
    assert_eq!(names(&program(&[&x], &[apply1(&First, &[&x])])), ["first"]);
}

#[test]
fn elementwise_chains_fuse_across_uses_and_around_reductions() {
    let x = f64s([sym("n"), sym("m")]);
    // softmax: exp(x - max) is read by the sum and by the quotient
    let e = (&x - &x.reduce_max_keepdims(Some(&[0]))).exp();
    let y = &e / &e.reduce_sum_keepdims(Some(&[0]));
    let late = (&x * &x).tanh() + y;
    let p = program(&[&x], &[late]);
    let g = fused(&p);
    // sub + exp before the sum; the quotient after it takes along x * x and tanh, which nothing before needs.
    assert_eq!(groups(&g), [2, 4], "{}", p.explain());
}

#[test]
fn a_group_never_waits_for_itself() {
    let x = f64s([4.into()]);
    let a = &x + 1.0;
    let b = a.reduce_sum_keepdims(Some(&[0]));
    let c = &a * &b;
    let d = &c.exp() + &a;
    let p = program(&[&x], &[d]);
    let data = [0.5, -1.0, 2.0, 0.25];
    let sum: f64 = data.iter().map(|v| v + 1.0).sum();
    let want: Vec<f64> = data.iter().map(|v| ((v + 1.0) * sum).exp() + (v + 1.0)).collect();
    let got = run(&p, &[&tensor(&[4], &data)]);
    assert!(got[0].iter().zip(&want).all(|(g, w)| (g - w).abs() <= 1e-14 * w.abs()), "{got:?} {want:?}");
}

#[test]
fn long_chains_are_cut() {
    let x = f64s([sym("n")]);
    let y = (0..100).fold(x.clone(), |y, _| y.sin());
    let p = program(&[&x], &[y]);
    assert_eq!(groups(&fused(&p)), [32, 32, 32, 4]);
    let want = (0..100).fold(0.7f64, |v, _| v.sin());
    assert!((run(&p, &[&tensor(&[1], &[0.7])])[0][0] - want).abs() < 1e-14);
}

#[test]
fn fused_groups_give_the_bits_of_single_calls() {
    let x = f64s([sym("n"), sym("m")]);
    let c = f64s([sym("n"), 1.into()]);
    let s = &(&x * &c) + 0.3;
    let all = [s.exp(), s.tanh(), (&s.exp() * &s.tanh()), s.less(&x).select(&s.sqrt(), &(&x / &s))];
    let p = program(&[&x, &c], &all);
    assert!(groups(&fused(&p)).iter().any(|&n| n > 5), "{}", p.explain());
    let (xt, ct) = (numbers(&[37, 5]), numbers(&[37, 1]));
    let together = run(&p, &[&xt, &ct]);
    let cpu = CpuBackend::with_threads(1);
    let alone = tenferro_core_ops::with_backend(&cpu, || {
        let now = |t: &Tensor| Var::Now(tenferro_core_ops::Now::new(Value::new(t.duplicate().unwrap())));
        let (x, c) = (now(&xt), now(&ct));
        let s = &(&x * &c) + 0.3;
        [s.exp(), s.tanh(), (&s.exp() * &s.tanh()), s.less(&x).select(&s.sqrt(), &(&x / &s))]
    });
    for (a, b) in together.iter().zip(alone) {
        let b = b.into_value().unwrap().duplicate().unwrap();
        let bits = |v: &[f64]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(a), bits(b.as_slice().unwrap()));
    }
}

#[test]
fn the_listing_counts_operations_and_bytes() {
    let (m, k) = (sym("m"), sym("k"));
    let (a, b) = (f64s([m.clone(), k.clone()]), f64s([k, 3.into()]));
    let p = program(&[&a, &b], &[(a.matmul(&b) * 2.0).exp()]);
    let s = p.explain();
    assert!(s.contains("dot_general(%0, %1) : f64[m, 3]  [6*k*m flops, 24*k + 8*k*m + 24*m bytes]"), "{s}");
    assert!(s.contains("fused(") && s.contains(".1 = exp(.0)  -> output 0"), "{s}");
}
