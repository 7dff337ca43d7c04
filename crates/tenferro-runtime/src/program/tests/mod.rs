//! Operations of the tests and what the tests share.

mod errors;
mod passes;
mod runs;

use super::{Program, fuse::fuse, graph::Graph};
use smallvec::smallvec;
use std::cell::{Cell, RefCell};
use tenferro_core_ops::{
    Aval, Dim, Extent, Fresh, Kernels, Operand, Out, Outs, Primitive, Var, apply1, input, ops::Fused,
};
use tenferro_cpu::CpuBackend;
use tenferro_tensor::{DType, Result, Tensor, Value};

fn sym(name: &str) -> Dim {
    Dim::symbol(name)
}

fn f64s(shape: impl IntoIterator<Item = Dim>) -> Var {
    input(Aval::new(DType::F64, shape))
}

fn tensor(shape: &[usize], data: &[f64]) -> Tensor {
    Tensor::from_vec_col_major(shape, data.to_vec()).unwrap()
}

/// Distinct numbers in (0, 2).
fn numbers(shape: &[usize]) -> Tensor {
    let n: usize = shape.iter().product();
    tensor(shape, &(0..n).map(|i| 0.1 + (i * 37 % 101) as f64 / 60.0).collect::<Vec<_>>())
}

fn run(p: &Program, x: &[&Tensor]) -> Vec<Vec<f64>> {
    let y = p.run(&mut CpuBackend::with_threads(1), x).unwrap();
    y.into_iter().map(|t| t.into_vec_col_major().unwrap()).collect()
}

/// The names of the operations after fusion, in order.
fn names(p: &Program) -> Vec<&'static str> {
    fused(p).nodes.iter().filter_map(|n| n.op()).map(|op| op.name()).collect()
}

fn fused(p: &Program) -> Graph {
    fuse(&p.0.graph, |_, _, _| true)
}

/// Number of steps of every fused group.
fn groups(g: &Graph) -> Vec<usize> {
    let ops = g.nodes.iter().filter_map(|n| n.op());
    ops.filter_map(|op| op.as_any().downcast_ref::<Fused>()).map(|f| f.steps().len()).collect()
}

/// The leading positive elements of a vector.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Leading;

impl Primitive for Leading {
    const NAME: &'static str = "leading";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], fresh: Fresh) -> Result<Outs<Aval<D>>> {
        Ok(smallvec![Aval::new(x[0].dtype, [D::data(fresh, 0, 0, &x[0].shape[0])])])
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, _>(&[DType::F64], leading);
    }
}

fn leading(
    _: &Leading,
    _: &CpuBackend,
    x: &mut [Operand<'_>],
    _: &[Aval],
    _: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    let x = x[0].read().to_tensor()?;
    let kept: Vec<f64> = x.as_slice::<f64>()?.iter().copied().take_while(|&v| v > 0.0).collect();
    Ok(smallvec![Tensor::from_vec_col_major([kept.len()], kept)?])
}

thread_local! {
    static KEPT: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
    static REUSED: Cell<usize> = const { Cell::new(0) };
    static RUNS: Cell<usize> = const { Cell::new(0) };
}

/// `x + 1`, in the buffer of `x` where that is given away.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Next;

impl Primitive for Next {
    const NAME: &'static str = "next";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        Ok(smallvec![x[0].clone()])
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, _>(&[DType::F64], next);
    }
}

fn next(
    _: &Next,
    _: &CpuBackend,
    x: &mut [Operand<'_>],
    y: &[Aval],
    _: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    assert_eq!(x[0].shape(), &y[0].shape[..]);
    RUNS.set(RUNS.get() + 1);
    let mut t = match x[0].take() {
        Some(t) => {
            REUSED.set(REUSED.get() + 1);
            t
        }
        None => x[0].read().to_tensor()?,
    };
    t.as_slice_mut::<f64>()?.iter_mut().for_each(|v| *v += 1.0);
    Ok(smallvec![t])
}

fn next_of(x: &Var) -> Var {
    apply1(&Next, &[x])
}

/// A copy of its operand, of which it keeps a share.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Kept;

impl Primitive for Kept {
    const NAME: &'static str = "kept";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        Ok(smallvec![x[0].clone()])
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, _>(&[DType::F64], |_: &Kept, _, x, _, _| {
            // SAFETY: no test writes what a program reads.
            let own = unsafe { Value::borrowed(x[0].read()) };
            KEPT.with_borrow_mut(|kept| kept.push(own));
            Ok(smallvec![x[0].read().to_tensor()?])
        });
    }
}

/// `log(1 + exp(x))`, given by its decomposition alone.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Softplus;

impl Primitive for Softplus {
    const NAME: &'static str = "softplus";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        Ok(smallvec![x[0].clone()])
    }
    fn decompose(&self, x: &[Var]) -> Option<Outs<Var>> {
        Some(smallvec![x[0].exp().log1p()])
    }
}

/// The leading positive elements plus one, by decomposition, with an extent of its own name.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct LeadingNext;

impl Primitive for LeadingNext {
    const NAME: &'static str = "leading_next";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], fresh: Fresh) -> Result<Outs<Aval<D>>> {
        Ok(smallvec![Aval::new(x[0].dtype, [D::data(fresh, 0, 0, &x[0].shape[0])])])
    }
    fn decompose(&self, x: &[Var]) -> Option<Outs<Var>> {
        Some(smallvec![next_of(&apply1(&Leading, &[&x[0]]))])
    }
}

/// Twice its operand: elementwise, but not one of the backend's own.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Twice;

impl Primitive for Twice {
    const NAME: &'static str = "twice";
    const ELEMENTWISE: bool = true;
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        Ok(smallvec![x[0].clone()])
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, _>(&[DType::F64], twice);
    }
}

fn twice(
    _: &Twice,
    _: &CpuBackend,
    x: &mut [Operand<'_>],
    _: &[Aval],
    _: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    let mut t = x[0].read().to_tensor()?;
    t.as_slice_mut::<f64>()?.iter_mut().for_each(|v| *v *= 2.0);
    Ok(smallvec![t])
}
