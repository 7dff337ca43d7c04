//! `y = alpha einsum(x) + beta y` with factors 0 and 1 beside NaN and infinities, for every kind of last step.

use tenferro_cpu::CpuBackend;
use tenferro_einsum::Einsum;
use tenferro_runtime::{TensorExt, prelude::*};
use tenferro_tensor::{C64, Tensor, TensorRead};

/// Einsums with their shapes, of one operand or two: matrix products of own loops and of the provider, products of
/// a matrix and a vector, batches, permuted results, outer and elementwise products, a sum, a trace, a diagonal, a
/// permutation, a copy, and a result that is zero but on a diagonal.
const CASES: [(&str, &[&[usize]]); 15] = [
    ("ij,jk->ik", &[&[2, 2], &[2, 2]]),
    ("ij,jk->ik", &[&[4, 4], &[4, 4]]),
    ("ij,jk->ik", &[&[9, 17], &[17, 24]]),
    ("ij,jk->ki", &[&[9, 7], &[7, 9]]),
    ("ij,j->i", &[&[30, 5], &[5]]),
    ("i,i->", &[&[7], &[7]]),
    ("bij,bjk->bik", &[&[3, 2, 5], &[3, 5, 2]]),
    ("i,j->ij", &[&[5], &[6]]),
    ("ij,ij->ji", &[&[3, 4], &[3, 4]]),
    ("ij->i", &[&[3, 5]]),
    ("ii->", &[&[6, 6]]),
    ("ii->i", &[&[6, 6]]),
    ("ij->ji", &[&[3, 5]]),
    ("ij->ij", &[&[3, 5]]),
    ("i->ii", &[&[4]]),
];

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::C32, DType::C64];

fn full(dtype: DType, shape: &[usize], value: f64) -> Tensor {
    let n = shape.iter().product();
    let t = Tensor::from_vec_col_major(shape, vec![value; n]).unwrap();
    t.cast(dtype, &mut CpuBackend::new()).unwrap()
}

/// Of each distinct element, its two parts, as text.
fn values(t: &Tensor) -> Vec<String> {
    let t = t.cast(DType::C64, &mut CpuBackend::new()).unwrap();
    let mut all: Vec<String> =
        t.as_slice::<C64>().unwrap().iter().map(|z| format!("{} {}", z.re, z.im)).collect();
    all.sort();
    all.dedup();
    all
}

/// The einsum written into a tensor, and `alpha einsum(x) + beta y`, with all elements of the operands and of `y` equal.
fn both(
    (text, shapes): (&str, &[&[usize]]),
    dtype: DType,
    (alpha, x): (f64, f64),
    (beta, y): (f64, f64),
) -> [Tensor; 2] {
    let mut cpu = CpuBackend::new();
    let prepared = Einsum::parse(text).unwrap().prepare(shapes).unwrap();
    let x: Vec<Tensor> = shapes.iter().map(|shape| full(dtype, shape, x)).collect();
    let mut new = prepared.run(&x.iter().collect::<Vec<_>>(), &mut cpu).unwrap();
    let reads: Vec<TensorRead<'_>> = x.iter().map(Into::into).collect();
    prepared.run_into(&reads, new.as_view_mut().unwrap(), &mut cpu).unwrap();
    let mut destination = full(dtype, new.shape(), y);
    prepared.accumulate(alpha, &reads, beta, destination.as_view_mut().unwrap(), &mut cpu).unwrap();
    [new, destination]
}

fn accumulated(
    case: (&str, &[&[usize]]),
    dtype: DType,
    result: (f64, f64),
    destination: (f64, f64),
) -> Vec<String> {
    values(&both(case, dtype, result, destination)[1])
}

fn everywhere(expected: impl Fn(&str, DType, (&str, &[&[usize]]))) {
    for case in CASES {
        for dtype in DTYPES {
            expected(&format!("{} of {:?}, {dtype}", case.0, case.1), dtype, case);
        }
    }
}

#[test]
fn a_product_whose_factor_is_zero_is_not_read() {
    everywhere(|what, dtype, case| {
        for x in [f64::NAN, f64::INFINITY] {
            assert_eq!(accumulated(case, dtype, (0.0, x), (2.0, 3.0)), ["6 0"], "{what}");
            assert_eq!(accumulated(case, dtype, (0.0, x), (1.0, f64::INFINITY)), ["inf 0"], "{what}");
            assert_eq!(accumulated(case, dtype, (0.0, x), (0.0, f64::NAN)), ["0 0"], "{what}");
        }
        // Zero as a number of the dtype.
        if dtype.size() == 4 {
            assert_eq!(accumulated(case, dtype, (1e-60, f64::NAN), (1.0, 3.0)), ["3 0"], "{what}");
        }
    });
}

#[test]
fn a_destination_whose_factor_is_zero_is_not_read() {
    everywhere(|what, dtype, case| {
        let zero = accumulated(case, dtype, (-1.0, 0.0), (0.0, f64::NAN));
        assert!(
            zero.iter().all(|v| ["0 0", "-0 0", "0 -0", "-0 -0"].contains(&v.as_str())),
            "{what}: {zero:?}"
        );
    });
}

#[test]
fn a_factor_of_one_multiplies_nothing() {
    everywhere(|what, dtype, case| {
        // A product overflows, whatever the kernel makes of the imaginary part then.
        let large = match case.1.len() {
            1 => f64::INFINITY,
            _ if dtype.real() == DType::F32 => 1e30,
            _ => 1e200,
        };
        let [new, same] = both(case, dtype, (1.0, large), (0.0, f64::NAN));
        assert_eq!(values(&same), values(&new), "{what}");
        // The provider multiplies complex sums by 1 before it adds them, and what they are added to where neither
        // rows nor columns are contiguous.
        let product = dtype.is_complex() && case.1.len() == 2;
        if !product {
            let [new, sum] = both(case, dtype, (1.0, large), (1.0, 2.0));
            let two = full(dtype, new.shape(), 2.0);
            assert_eq!(values(&sum), values(&new.add(&two, &mut CpuBackend::new()).unwrap()), "{what}");
        }
        if !(product && case.0.starts_with('b')) {
            assert_eq!(accumulated(case, dtype, (1.0, 1.0), (1.0, f64::INFINITY)), ["inf 0"], "{what}");
            assert_eq!(accumulated(case, dtype, (3.0, 0.0), (1.0, f64::INFINITY)), ["inf 0"], "{what}");
        }
    });
}
