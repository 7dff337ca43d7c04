//! Finite differences along one direction.

use crate::array::Array;

/// Derivatives below this are compared with it.
pub(crate) const SMALLEST: f64 = 1e-3;

/// Checks `dy` against central differences of `f` at `x` along `t`.
///
/// The quotient at step h has the error c h^2 + O(h^4). So halving the step must divide the error by four,
/// unless rounding hides it, and the extrapolation `(4 d(h/2) - d(h)) / 3` must agree with `dy` to `rtol` of
/// its largest element.
///
/// # Errors
/// What `f` reports, and the difference in words.
pub fn central(
    f: impl Fn(&[Array]) -> Result<Vec<Array>, String>,
    x: &[Array],
    t: &[Array],
    dy: &[Array],
    rtol: f64,
) -> Result<(), String> {
    const STEP: f64 = 1.0 / 512.0;
    let at = |h: f64| f(&x.iter().zip(t).map(|(x, t)| x.moved(h, t)).collect::<Vec<_>>());
    let quotient = |h: f64| -> Result<Vec<Array>, String> {
        let (plus, minus) = (at(h)?, at(-h)?);
        let scaled = |(p, m): (&Array, &Array)| zero(p).moved(0.5 / h, p).moved(-0.5 / h, m);
        Ok(plus.iter().zip(&minus).map(scaled).collect())
    };
    let (coarse, fine) = (quotient(STEP)?, quotient(0.5 * STEP)?);
    for ((coarse, fine), dy) in coarse.iter().zip(&fine).zip(dy) {
        let best = zero(fine).moved(4.0 / 3.0, fine).moved(-1.0 / 3.0, coarse);
        let scale = dy.norm().max(best.norm()).max(SMALLEST);
        dy.close(&best, 0.0, rtol * scale).map_err(|e| format!("derivative {e} (by differences)"))?;
        let error = |d: &Array| d.moved(-1.0, dy).norm();
        if error(fine) > 0.3 * error(coarse) && error(fine) > 0.1 * rtol * scale {
            return Err(format!(
                "halving the step turns the error {:e} into {:e}, not a quarter of it",
                error(coarse),
                error(fine)
            ));
        }
    }
    Ok(())
}

fn zero(like: &Array) -> Array {
    Array::from_fn(like.dtype, &like.shape, |_| crate::array::Elem::real(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenferro_tensor::DType::F64;

    fn at(x: f64) -> Vec<Array> {
        vec![Array::scalar(F64, x)]
    }

    #[test]
    fn a_derivative_is_accepted_and_one_that_is_off_by_a_millionth_is_not() {
        let cube = |x: &[Array]| Ok(at(x[0].data[0].re().powi(3)));
        assert!(central(cube, &at(0.7), &at(1.0), &at(3.0 * 0.49), 1e-8).is_ok());
        assert!(central(cube, &at(0.7), &at(1.0), &at(3.0 * 0.49 + 1e-6), 1e-8).is_err());
    }

    #[test]
    fn a_kink_does_not_pass_for_a_derivative() {
        let modulus = |x: &[Array]| Ok(at((x[0].data[0].re() - 1e-4).abs()));
        assert!(central(modulus, &at(0.0), &at(1.0), &at(-1.0), 1e-8).is_err());
    }
}
