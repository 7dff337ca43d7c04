//! An operation of your own crate: the cumulative sum along axis 0, on all four tiers, with derivatives of any order.

use smallvec::smallvec;
use tenferro_ad::prelude::*;
use tenferro_core_ops::{
    Arg, Aval, Extent, Fresh, Kernels, Operand, Out, Outs, Primitive, Saves, Tangent, Var, apply1,
    ops::expect,
};
use tenferro_cpu::CpuBackend;
use tenferro_runtime::{Error, Result, prelude::*, surfaces};

/// `y[i, ..] = sum over j <= i of x[j, ..]`; if `backward`, over j >= i. Equal values are the same operation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct CumSum {
    backward: bool,
}

impl Primitive for CumSum {
    const NAME: &'static str = "cumsum";

    // Dtype and extents of the result, for extents that are numbers or symbols.
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, &[DType::F64])?;
        if x[0].rank() == 0 {
            return Err(Error::rank(Self::NAME, "rank", 0, "at least 1"));
        }
        Ok(smallvec![x[0].clone()])
    }

    // It is linear: its tangent is that of the operand, summed. `None` is a tangent that is zero.
    fn jvp(&self, _: &[Var], _: &[Var], tangents: &[Tangent]) -> Outs<Tangent> {
        smallvec![tangents[0].as_ref().map(|t| apply1(self, &[t]))]
    }

    // Its adjoint sums from the other end.
    fn transpose(&self, cotangents: &[Tangent], _: &[Arg]) -> Outs<Tangent> {
        let adjoint = CumSum { backward: !self.backward };
        smallvec![cotangents[0].as_ref().map(|c| apply1(&adjoint, &[c]))]
    }

    // The derivative reads neither operand nor result.
    fn saves(&self) -> Saves {
        Saves::NONE
    }

    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(&[DType::F64], on_cpu);
    }
}

/// Returns a new tensor. Its operand may be strided, so it is copied to be compact.
fn on_cpu(
    op: &CumSum,
    _: &CpuBackend,
    x: &mut [Operand<'_>],
    _: &[Aval],
    _: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    let mut y = x[0].read().to_tensor()?;
    let column = y.shape()[0].max(1);
    for column in y.as_slice_mut::<f64>()?.chunks_mut(column) {
        let mut sum = 0.0;
        let mut add = |y: &mut f64| {
            sum += *y;
            *y = sum;
        };
        match op.backward {
            true => column.iter_mut().rev().for_each(&mut add),
            false => column.iter_mut().for_each(&mut add),
        }
    }
    Ok(smallvec![y])
}

surfaces! {
    traits CumSumRecorded, CumSumTensor, CumSumTyped;
    /// The cumulative sum along axis 0.
    fn cumsum(x) -> [T] = apply1(&CumSum { backward: false }, &[x]);
}

fn main() -> Result<()> {
    let mut cpu = CpuBackend::new();
    let x = TypedTensor::<f64>::from_vec_col_major([3], vec![1.0, 2.0, 3.0])?;
    assert_eq!(x.cumsum(&mut cpu)?.as_slice()?, [1.0, 3.0, 6.0]);

    let runtime = EagerRuntime::new(&cpu);
    let x = runtime.from_vec_col_major([3], vec![1.0, 2.0, 3.0])?.requires_grad()?;
    let y = x.cumsum()?;
    (&y * &y)?.reduce_sum(None)?.backward()?;
    assert_eq!(x.grad().unwrap().to_tensor()?.as_slice::<f64>()?, [20.0, 18.0, 12.0]);

    let x = TracedTensor::input(DType::F64, &[Dim::symbol("n")]);
    let y = x.cumsum()?;
    let gradient = (&y * &y)?.reduce_sum(None)?.grad(&x)?;
    let program = GraphCompiler::new().compile(&gradient)?;
    let x = Tensor::from_vec_col_major([2], vec![1.0, 2.0])?;
    assert_eq!(program.run(&mut cpu, &[&x])?[0].as_slice::<f64>()?, [8.0, 6.0]);
    println!("the gradient of the squared norm of the sums: [8, 6]");
    Ok(())
}
