//! Host arrays of the references: plain values in column-major order, addressed by index tuples.

use tenferro_tensor::{C32, C64, DType, Scalar, Tensor};

/// An element: an integer or truth value, or a real or complex number in double precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Elem {
    /// An integer; 0 or 1 for a truth value.
    Int(i64),
    /// A number; without imaginary part in arrays of real dtypes.
    Float(C64),
}

impl Elem {
    /// A real number.
    pub fn real(x: f64) -> Elem {
        Elem::Float(C64::new(x, 0.0))
    }

    /// As a complex number.
    pub fn c(self) -> C64 {
        match self {
            Elem::Int(i) => C64::new(i as f64, 0.0),
            Elem::Float(z) => z,
        }
    }

    /// Real part.
    pub fn re(self) -> f64 {
        self.c().re
    }

    /// As an integer; of a number that is not one, the saturating part before the point.
    pub fn int(self) -> i64 {
        match self {
            Elem::Int(i) => i,
            Elem::Float(z) => z.re as i64,
        }
    }

    /// `self + o`; integers wrap around.
    pub fn plus(self, o: Elem) -> Elem {
        match (self, o) {
            (Elem::Int(a), Elem::Int(b)) => Elem::Int(a.wrapping_add(b)),
            (a, b) => Elem::Float(a.c() + b.c()),
        }
    }

    /// `self o`; integers wrap around.
    pub fn times(self, o: Elem) -> Elem {
        match (self, o) {
            (Elem::Int(a), Elem::Int(b)) => Elem::Int(a.wrapping_mul(b)),
            (a, b) => Elem::Float(a.c() * b.c()),
        }
    }
}

/// An array of [`Elem`]s in column-major order, which are representable in its dtype.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<usize>,
    /// Elements.
    pub data: Vec<Elem>,
}

/// The index tuples of a shape in column-major order.
pub(crate) fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let (shape, n) = (shape.to_vec(), shape.iter().product());
    (0..n).map(move |mut k: usize| {
        let digit = |&n: &usize| {
            let i = k % n;
            k /= n;
            i
        };
        shape.iter().map(digit).collect()
    })
}

/// A generator of reproducible numbers in `[0, 1)` (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 * 0.5_f64.powi(53)
    }
}

/// `e` as the nearest value of `dtype`.
fn settle(dtype: DType, e: Elem) -> Elem {
    match dtype {
        DType::Bool => Elem::Int((e.c() != C64::new(0.0, 0.0)) as i64),
        DType::I32 => Elem::Int(e.int() as i32 as i64),
        DType::I64 => Elem::Int(e.int()),
        DType::F32 => Elem::real(e.re() as f32 as f64),
        DType::F64 => Elem::real(e.re()),
        DType::C32 => Elem::Float(C32::from_c64(e.c()).to_c64()),
        DType::C64 => Elem::Float(e.c()),
    }
}

impl Array {
    /// The array with `f(index)` everywhere.
    pub fn from_fn(dtype: DType, shape: &[usize], mut f: impl FnMut(&[usize]) -> Elem) -> Array {
        let data = indices(shape).map(|i| settle(dtype, f(&i))).collect();
        Array { dtype, shape: shape.to_vec(), data }
    }

    /// The array of real numbers in column-major order.
    pub fn reals(dtype: DType, shape: &[usize], data: &[f64]) -> Array {
        assert_eq!(data.len(), shape.iter().product::<usize>(), "elements of {shape:?}");
        let mut it = data.iter();
        Array::from_fn(dtype, shape, |_| Elem::real(*it.next().expect("counted above")))
    }

    /// The array of complex numbers `(re, im)` in column-major order.
    pub fn complexes(dtype: DType, shape: &[usize], data: &[(f64, f64)]) -> Array {
        assert_eq!(data.len(), shape.iter().product::<usize>(), "elements of {shape:?}");
        let mut it = data.iter();
        Array::from_fn(dtype, shape, |_| {
            let &(re, im) = it.next().expect("counted above");
            Elem::Float(C64::new(re, im))
        })
    }

    /// The array of integers in column-major order.
    pub fn ints(dtype: DType, shape: &[usize], data: &[i64]) -> Array {
        assert_eq!(data.len(), shape.iter().product::<usize>(), "elements of {shape:?}");
        let mut it = data.iter();
        Array::from_fn(dtype, shape, |_| Elem::Int(*it.next().expect("counted above")))
    }

    /// A real scalar of a dtype.
    pub fn scalar(dtype: DType, x: f64) -> Array {
        Array::reals(dtype, &[], &[x])
    }

    /// Reproducible elements between `low` and `high`, real and imaginary parts alike. Integers include both
    /// ends.
    pub fn uniform(dtype: DType, shape: &[usize], seed: u64, low: f64, high: f64) -> Array {
        let mut random = Random(seed.wrapping_mul(0xd134_2543_de82_ef95));
        Array::from_fn(dtype, shape, |_| {
            let mut draw = || low + (high - low) * random.next();
            match dtype {
                DType::Bool => Elem::Int((draw() > 0.5 * (low + high)) as i64),
                DType::I32 | DType::I64 => Elem::Int((draw() + 0.5).floor() as i64),
                DType::C32 | DType::C64 => Elem::Float(C64::new(draw(), draw())),
                _ => Elem::real(draw()),
            }
        })
    }

    /// Reproducible elements between -1 and 1 in the dtype and shape of `self`.
    pub fn direction(&self, seed: u64) -> Array {
        Array::uniform(self.dtype, &self.shape, seed, -1.0, 1.0)
    }

    /// The elements of a tensor in host memory.
    pub fn from_tensor(t: &Tensor) -> Array {
        fn read<T: Scalar>(t: &Tensor, f: impl Fn(&T) -> Elem) -> Vec<Elem> {
            t.as_slice::<T>().expect("a host tensor of this dtype").iter().map(f).collect()
        }
        let data = match t.dtype() {
            DType::F32 => read(t, |&x: &f32| Elem::real(x as f64)),
            DType::F64 => read(t, |&x: &f64| Elem::real(x)),
            DType::C32 => read(t, |x: &C32| Elem::Float(x.to_c64())),
            DType::C64 => read(t, |&x: &C64| Elem::Float(x)),
            DType::I32 => read(t, |&x: &i32| Elem::Int(x as i64)),
            DType::I64 => read(t, |&x: &i64| Elem::Int(x)),
            DType::Bool => read(t, |&x: &bool| Elem::Int(x as i64)),
        };
        Array { dtype: t.dtype(), shape: t.shape().to_vec(), data }
    }

    /// As a tensor.
    pub fn to_tensor(&self) -> Tensor {
        fn write<T: Scalar>(a: &Array, f: impl Fn(Elem) -> T) -> Tensor {
            let data = a.data.iter().map(|&e| f(e)).collect();
            Tensor::from_vec_col_major(&a.shape[..], data).expect("as many elements as the shape has")
        }
        match self.dtype {
            DType::F32 => write(self, |e| e.re() as f32),
            DType::F64 => write(self, |e| e.re()),
            DType::C32 => write(self, |e| C32::from_c64(e.c())),
            DType::C64 => write(self, |e| e.c()),
            DType::I32 => write(self, |e| e.int() as i32),
            DType::I64 => write(self, |e| e.int()),
            DType::Bool => write(self, |e| e.int() != 0),
        }
    }

    /// The element at an index tuple.
    pub fn at(&self, index: &[usize]) -> Elem {
        let position = |(k, step), (&i, &n)| (k + i * step, step * n);
        self.data[index.iter().zip(&self.shape).fold((0, 1), position).0]
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The elements as another dtype, where floats are truncated to integers.
    pub fn cast(&self, dtype: DType) -> Array {
        let mut it = self.data.iter();
        Array::from_fn(dtype, &self.shape, |_| *it.next().expect("the same shape"))
    }

    /// `f` of every element.
    pub fn map(&self, dtype: DType, f: impl Fn(Elem) -> Elem) -> Array {
        Array::from_fn(dtype, &self.shape, |i| f(self.at(i)))
    }

    /// Another shape over the same elements.
    pub fn reshape(&self, shape: &[usize]) -> Array {
        Array { shape: shape.to_vec(), ..self.clone() }
    }

    /// Axis `i` of the result is axis `perm[i]`.
    pub fn permuted(&self, perm: &[usize]) -> Array {
        let shape: Vec<usize> = perm.iter().map(|&p| self.shape[p]).collect();
        Array::from_fn(self.dtype, &shape, |i| {
            let mut from = vec![0; i.len()];
            perm.iter().zip(i).for_each(|(&p, &i)| from[p] = i);
            self.at(&from)
        })
    }

    /// Repeated to a shape that this one is right-aligned with.
    pub fn broadcast(&self, shape: &[usize]) -> Array {
        let skip = shape.len() - self.rank();
        Array::from_fn(self.dtype, shape, |i| {
            let from: Vec<usize> = i[skip..].iter().zip(&self.shape).map(|(&i, &n)| i.min(n - 1)).collect();
            self.at(&from)
        })
    }

    /// `self + s t`, elementwise.
    pub fn moved(&self, s: f64, t: &Array) -> Array {
        let mut at = self.data.iter().zip(&t.data);
        Array::from_fn(self.dtype, &self.shape, |_| {
            let (a, b) = at.next().expect("the same shape");
            Elem::Float(a.c() + s * b.c())
        })
    }

    /// `Re sum(conj(self) o)`
    pub fn dot(&self, o: &Array) -> f64 {
        self.data.iter().zip(&o.data).map(|(a, b)| (a.c().conj() * b.c()).re).sum()
    }

    /// The largest modulus of an element.
    pub fn norm(&self) -> f64 {
        self.data.iter().map(|e| e.c().norm()).fold(0.0, f64::max)
    }

    /// Whether the elements are `want` up to `rtol |want| + atol`. NaN is NaN, an infinity only itself,
    /// integers are equal.
    ///
    /// # Errors
    /// The first difference, in words.
    pub fn close(&self, want: &Array, rtol: f64, atol: f64) -> Result<(), String> {
        if (self.dtype, &self.shape) != (want.dtype, &want.shape) {
            return Err(format!(
                "got {}{:?}, expected {}{:?}",
                self.dtype, self.shape, want.dtype, want.shape
            ));
        }
        for i in indices(&self.shape) {
            let (got, want) = (self.at(&i), want.at(&i));
            let equal = match (got, want) {
                (Elem::Int(a), Elem::Int(b)) => a == b,
                (a, b) => same(a.c(), b.c(), rtol, atol),
            };
            if !equal {
                return Err(format!("at {i:?}: got {got:?}, expected {want:?}"));
            }
        }
        Ok(())
    }
}

fn same(a: C64, b: C64, rtol: f64, atol: f64) -> bool {
    let nan = |z: C64| z.re.is_nan() || z.im.is_nan();
    if nan(a) || nan(b) {
        return nan(a) && nan(b);
    }
    if !a.is_finite() || !b.is_finite() {
        return a == b;
    }
    (a - b).norm() <= atol + rtol * b.norm()
}
