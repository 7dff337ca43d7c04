//! Traced calls whose parameters are symbolic extents: one program, run at several extents.

use tenferro_core_ops::Extent;
use tenferro_cpu::CpuBackend;
use tenferro_runtime::{DType, Dim, Error, GraphCompiler, Result, Tensor, TracedTensor};

fn dim(n: usize) -> Dim {
    Dim::Lit(n)
}

/// `[n]` and `[n, m]` inputs of f64.
fn inputs() -> (TracedTensor, TracedTensor) {
    let (n, m) = (Dim::symbol("n"), Dim::symbol("m"));
    (TracedTensor::input(DType::F64, std::slice::from_ref(&n)), TracedTensor::input(DType::F64, &[n, m]))
}

/// `1, 2, ..` in a shape.
fn counting(shape: &[usize]) -> Tensor {
    let data = (1..=shape.iter().product()).map(|i: usize| i as f64).collect();
    Tensor::from_vec_col_major(shape, data).unwrap()
}

/// What the one program that computes `y` gives for each list of arguments.
fn runs(x: &[&TracedTensor], y: &TracedTensor, arguments: &[Vec<Tensor>]) -> Vec<(Vec<usize>, Vec<f64>)> {
    let program = GraphCompiler::new().compile_with(x, &[y]).unwrap();
    let run = |arguments: &Vec<Tensor>| {
        let arguments: Vec<&Tensor> = arguments.iter().collect();
        let y = program.run(&mut CpuBackend::with_threads(1), &arguments).unwrap().remove(0);
        (y.shape().to_vec(), y.as_slice::<f64>().unwrap().to_vec())
    };
    arguments.iter().map(run).collect()
}

#[test]
fn broadcast_in_dim() -> Result<()> {
    let (x, like) = inputs();
    let m = like.shape()[1].clone();
    let y = x.broadcast_in_dim_dims(&[m, x.shape()[0].clone()], &[1])?;
    let of = |n: usize, m: usize| vec![counting(&[n]), counting(&[n, m])];
    assert_eq!(
        runs(&[&x, &like], &y, &[of(2, 3), of(3, 1)]),
        [(vec![3, 2], vec![1.0, 1.0, 1.0, 2.0, 2.0, 2.0]), (vec![1, 3], vec![1.0, 2.0, 3.0])]
    );
    assert!(matches!(x.broadcast_in_dim_dims(&[dim(2)], &[1]), Err(Error::Axis(_))));
    Ok(())
}

#[test]
fn slice() -> Result<()> {
    let (_, x) = inputs();
    let [n, m] = [0, 1].map(|i| x.shape()[i].clone());
    // Every second row from the second on, without the last column.
    let y = x.slice_dims(&[dim(1), dim(0)], &[n.clone(), m.sub(&dim(1), "slice")?], &[2, 1])?;
    assert_eq!(
        runs(&[&x], &y, &[vec![counting(&[4, 3])], vec![counting(&[3, 2])]]),
        [(vec![2, 2], vec![2.0, 4.0, 6.0, 8.0]), (vec![1, 1], vec![2.0])]
    );
    assert!(matches!(x.slice_dims(&[dim(0)], &[n, m], &[1, 1]), Err(Error::Axis(_))));
    Ok(())
}

#[test]
fn dynamic_slice() -> Result<()> {
    let (_, x) = inputs();
    let starts = TracedTensor::input(DType::I64, &[dim(2)]);
    let n = x.shape()[0].clone();
    // One column of all rows but one.
    let y = x.dynamic_slice_dims(&starts, &[n.sub(&dim(1), "dynamic_slice")?, dim(1)])?;
    let of = |n: usize, m: usize, starts: [i64; 2]| {
        vec![counting(&[n, m]), Tensor::from_vec_col_major([2], starts.to_vec()).unwrap()]
    };
    assert_eq!(
        runs(&[&x, &starts], &y, &[of(3, 2, [1, 1]), of(4, 3, [0, 2])]),
        [(vec![2, 1], vec![5.0, 6.0]), (vec![3, 1], vec![9.0, 10.0, 11.0])]
    );
    assert!(x.dynamic_slice_dims(&x, &[dim(1), dim(1)]).is_err());
    Ok(())
}

#[test]
fn pad() -> Result<()> {
    let (x, like) = inputs();
    let m = like.shape()[1].clone();
    let zero = TracedTensor::scalar(0.0)?;
    let y = x.pad_dims(&zero, &[dim(1)], std::slice::from_ref(&m), &[0])?;
    let of = |n: usize, m: usize| vec![counting(&[n]), counting(&[n, m])];
    assert_eq!(
        runs(&[&x, &like], &y, &[of(2, 2), of(1, 3)]),
        [(vec![5], vec![0.0, 1.0, 2.0, 0.0, 0.0]), (vec![5], vec![0.0, 1.0, 0.0, 0.0, 0.0])]
    );
    assert!(matches!(x.pad_dims(&zero, &[], &[m], &[0]), Err(Error::Axis(_))));
    Ok(())
}
