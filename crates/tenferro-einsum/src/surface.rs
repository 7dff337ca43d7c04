//! The einsum on all four tiers.

use crate::einsum::{Einsum, Subscripts, einsum};
use smallvec::SmallVec;
use tenferro_core_ops::Var;
use tenferro_runtime::tier::{Direct, Lifted, Lower, Recorded, Target, run_direct1};
use tenferro_tensor::{Result, Scalar, Tensor, TypedTensor};

/// Einstein summation of eager and traced tensors.
///
/// ```
/// use tenferro_ad::EagerTensorAdExt;
/// use tenferro_cpu::CpuBackend;
/// use tenferro_einsum::prelude::*;
/// use tenferro_runtime::{DType, Dim, EagerRuntime, EagerTensor, GraphCompiler, Tensor, TracedTensor};
///
/// // x^T A x
/// let mut cpu = CpuBackend::new();
/// let runtime = EagerRuntime::new(&cpu);
/// let a = runtime.from_vec_col_major([2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
/// let x = runtime.from_vec_col_major([2], vec![1.0, 1.0])?.requires_grad()?;
/// let y = EagerTensor::einsum("i,ij,j->", &[&x, &a, &x])?;
/// y.backward()?;
/// assert_eq!(y.item::<f64>()?, 10.0);
/// assert_eq!(x.grad().unwrap().to_tensor()?.as_slice::<f64>()?, [7.0, 13.0]);
///
/// // The trace of a product, of matrices of any size.
/// let n = Dim::symbol("n");
/// let [p, q] = [0, 1].map(|_| TracedTensor::input(DType::F64, &[n.clone(), n.clone()]));
/// let program = GraphCompiler::new().compile(&TracedTensor::einsum("ij,ji->", &[&p, &q])?)?;
/// let eye = Tensor::eye(DType::F64, 5)?;
/// assert_eq!(program.run(&mut cpu, &[&eye, &eye])?[0].item::<f64>()?, 5.0);
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
pub trait EinsumRecorded: Recorded {
    /// The einsum of `x`, promoted to a common dtype, `y[out] = Σ Π_j x_j[in_j]`: every label that the output
    /// lacks is summed, a label twice in one operand takes its diagonal, a label twice in the output makes
    /// one. An extent known to be 1 is repeated against another one in another operand. Conjugate with
    /// `conj`. For ellipsis, parentheses and output without arrow see
    /// [`Expression::parse`](crate::Expression::parse).
    ///
    /// # Errors
    /// `Label`, with the position, for text that is none; another number or rank of operands; `Shape`, naming
    /// label and operands, for different extents of one label; operands that are no numbers, or do not live
    /// together.
    fn einsum(subscripts: impl Subscripts, x: &[&Self]) -> Result<Self> {
        let op = subscripts.einsum()?;
        let Some(first) = x.first() else { return Err(no_operands(&op)) };
        let vars: SmallVec<[&Var; 4]> = x.iter().map(|x| x.var()).collect();
        subscripts.accepts(&vars)?;
        first.apply1(op.name(), &x[1..], || einsum(&op, &vars))
    }

    /// As [`einsum`](Self::einsum), with the labels of the operands and of the output as numbers: an extent known
    /// to be 1 is repeated here, too.
    ///
    /// # Errors
    /// As [`einsum`](Self::einsum).
    fn einsum_labels(inputs: &[&[u32]], output: &[u32], x: &[&Self]) -> Result<Self> {
        Self::einsum(Einsum::labels(inputs, output)?, x)
    }

    /// The contraction of a tensor network with the labels of ncon, see [`Einsum::ncon`]. No extent is repeated.
    ///
    /// # Errors
    /// Those of [`Einsum::ncon`] and of [`einsum`](Self::einsum); `Shape`, naming label and operands, for a bond
    /// whose ends have different extents, also if one is 1.
    fn ncon(labels: &[&[i32]], x: &[&Self]) -> Result<Self> {
        Self::einsum(Einsum::ncon(labels)?, x)
    }
}

impl<X: Recorded> EinsumRecorded for X {}

/// Einstein summation of typed and dynamic tensors, which runs on the backend it is given.
///
/// ```
/// use tenferro_cpu::CpuBackend;
/// use tenferro_einsum::prelude::*;
/// use tenferro_runtime::{Tensor, TypedTensor};
///
/// let mut cpu = CpuBackend::new();
/// let a = TypedTensor::from_vec_col_major([2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
/// let b = TypedTensor::from_vec_col_major([2], vec![1.0, -1.0])?;
/// assert_eq!(TypedTensor::einsum("ij,j->i", &[&a, &b], &mut cpu)?.as_slice()?, [-2.0, -2.0]);
/// assert_eq!(TypedTensor::einsum("ii->i", &[&a], &mut cpu)?.as_slice()?, [1.0, 4.0]);
/// assert_eq!(TypedTensor::einsum_labels(&[&[0, 1]], &[], &[&a], &mut cpu)?.item()?, 10.0);
///
/// // Dynamic tensors are promoted.
/// let n = Tensor::from_vec_col_major([2], vec![1_i64, 2])?;
/// let y = Tensor::einsum("i,i->", &[&b.into_tensor(), &n], &mut cpu)?;
/// assert_eq!(y.item::<f64>()?, -1.0);
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
pub trait EinsumTensor: Sized {
    /// The einsum of `x`, promoted to a common dtype, `y[out] = Σ Π_j x_j[in_j]`: every label that the output
    /// lacks is summed, a label twice in one operand takes its diagonal, a label twice in the output makes
    /// one. An extent known to be 1 is repeated against another one in another operand. Conjugate with
    /// `conj`. For ellipsis, parentheses and output without arrow see
    /// [`Expression::parse`](crate::Expression::parse).
    ///
    /// # Errors
    /// `Label`, with the position, for text that is none; another number or rank of operands; `Shape`, naming
    /// label and operands, for different extents of one label; operands that are no numbers, or are placed
    /// elsewhere.
    fn einsum(subscripts: impl Subscripts, x: &[&Self], backend: &mut (impl Target + ?Sized))
    -> Result<Self>;

    /// As [`einsum`](Self::einsum), with the labels of the operands and of the output as numbers: an extent known
    /// to be 1 is repeated here, too.
    ///
    /// # Errors
    /// As [`einsum`](Self::einsum).
    fn einsum_labels(
        inputs: &[&[u32]],
        output: &[u32],
        x: &[&Self],
        backend: &mut (impl Target + ?Sized),
    ) -> Result<Self> {
        Self::einsum(Einsum::labels(inputs, output)?, x, backend)
    }

    /// The contraction of a tensor network with the labels of ncon, see [`Einsum::ncon`]. No extent is repeated.
    ///
    /// # Errors
    /// Those of [`Einsum::ncon`] and of [`einsum`](Self::einsum); `Shape`, naming label and operands, for a bond
    /// whose ends have different extents, also if one is 1.
    fn ncon(labels: &[&[i32]], x: &[&Self], backend: &mut (impl Target + ?Sized)) -> Result<Self> {
        Self::einsum(Einsum::ncon(labels)?, x, backend)
    }
}

fn direct(
    subscripts: impl Subscripts,
    x: &[&impl Direct],
    backend: &mut (impl Target + ?Sized),
) -> Result<Tensor> {
    let op = subscripts.einsum()?;
    if x.is_empty() {
        return Err(no_operands(&op));
    }
    let lifted: SmallVec<[Lifted<'_>; 4]> = x.iter().map(|x| x.lift()).collect();
    let refs: SmallVec<[&Var; 4]> = lifted.iter().map(|x| &**x).collect();
    subscripts.accepts(&refs)?;
    run_direct1(backend, || einsum(&op, &refs))
}

#[cold]
fn no_operands(op: &Einsum) -> tenferro_tensor::Error {
    let none = op.plan(&[]);
    none.expect_err("an einsum has at least one operand")
}

impl EinsumTensor for Tensor {
    fn einsum(
        subscripts: impl Subscripts,
        x: &[&Self],
        backend: &mut (impl Target + ?Sized),
    ) -> Result<Self> {
        direct(subscripts, x, backend)
    }
}

impl<T: Scalar> EinsumTensor for TypedTensor<T> {
    fn einsum(
        subscripts: impl Subscripts,
        x: &[&Self],
        backend: &mut (impl Target + ?Sized),
    ) -> Result<Self> {
        Lower::lower("einsum", direct(subscripts, x, backend)?)
    }
}
