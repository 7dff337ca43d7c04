//! Element types: the one table they are stated in, and the macros that branch over them.
//!
//! Adding an element type adds one row to the table below (and its numeric conversions in
//! `scalar.rs`); the enums of views, [`dispatch!`](crate::dispatch) and its narrower forms follow.

use crate::{C64, Error, Result};

/// Calls `$then!` with the table, grouped by kind: `Variant: scalar, real part, complex type`, these two as variant
/// and scalar.
macro_rules! dtype_table {
    ($then:ident) => {
        $then! { ($)
            real { F32: f32, F32 f32, C32 $crate::C32; F64: f64, F64 f64, C64 $crate::C64; }
            complex {
                C32: $crate::C32, F32 f32, C32 $crate::C32;
                C64: $crate::C64, F64 f64, C64 $crate::C64;
            }
            integer { I32: i32, I32 i32, C64 $crate::C64; I64: i64, I64 i64, C64 $crate::C64; }
            boolean { Bool: bool, Bool bool, C32 $crate::C32; }
        }
    };
}

macro_rules! define_dtype {
    (($d:tt)
        real { $($F:ident: $f:ty, $FR:ident $Fr:ty, $FC:ident $Fc:ty;)* }
        complex { $($C:ident: $c:ty, $CR:ident $Cr:ty, $CC:ident $Cc:ty;)* }
        integer { $($I:ident: $i:ty, $IR:ident $Ir:ty, $IC:ident $Ic:ty;)* }
        boolean { $($B:ident: $b:ty, $BR:ident $Br:ty, $BC:ident $Bc:ty;)* }
    ) => {
        /// The element type of a tensor.
        ///
        /// ```
        /// use tenferro_tensor::DType;
        /// assert_eq!(DType::promote(DType::F64, DType::C32), DType::C64);
        /// assert_eq!(DType::C32.to_string(), "c32");
        /// ```
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum DType {
            $(#[doc = concat!("`", stringify!($f), "`")] $F,)*
            $(#[doc = concat!("Complex of `", stringify!($c), "`")] $C,)*
            $(#[doc = concat!("`", stringify!($i), "`")] $I,)*
            $(#[doc = concat!("`", stringify!($b), "`")] $B,)*
        }

        impl DType {
            /// Every element type.
            pub const ALL: &'static [DType] =
                &[$(DType::$F,)* $(DType::$C,)* $(DType::$I,)* $(DType::$B,)*];

            /// Bytes of one element.
            pub const fn size(self) -> usize {
                match self {
                    $(DType::$F => size_of::<$f>(),)* $(DType::$C => size_of::<$c>(),)*
                    $(DType::$I => size_of::<$i>(),)* $(DType::$B => size_of::<$b>(),)*
                }
            }

            /// A complex number.
            pub const fn is_complex(self) -> bool { matches!(self, $(DType::$C)|*) }

            /// A real floating-point number.
            pub const fn is_float(self) -> bool { matches!(self, $(DType::$F)|*) }

            /// An integer (not `Bool`).
            pub const fn is_integer(self) -> bool { matches!(self, $(DType::$I)|*) }

            /// The type of the real part; a type that is not complex is its own.
            pub const fn real(self) -> DType {
                match self {
                    $(DType::$F => DType::$FR,)* $(DType::$C => DType::$CR,)*
                    $(DType::$I => DType::$IR,)* $(DType::$B => DType::$BR,)*
                }
            }

            /// The smallest complex type that holds it (integers: C64; Bool: C32).
            pub const fn complex(self) -> DType {
                match self {
                    $(DType::$F => DType::$FC,)* $(DType::$C => DType::$CC,)*
                    $(DType::$I => DType::$IC,)* $(DType::$B => DType::$BC,)*
                }
            }

            const fn name(self) -> &'static str {
                match self {
                    $(DType::$F => stringify!($F),)* $(DType::$C => stringify!($C),)*
                    $(DType::$I => stringify!($I),)* $(DType::$B => stringify!($B),)*
                }
            }
        }

        /// `dispatch!(dtype, T => expr)`: evaluates `expr` with `T` the element type of `dtype`.
        ///
        /// ```
        /// use tenferro_tensor::{DType, Scalar, dispatch};
        /// let bytes = dispatch!(DType::C64, T => size_of::<T>());
        /// assert_eq!(bytes, 16);
        /// ```
        #[macro_export]
        macro_rules! dispatch {
            ($d dtype:expr, $d T:ident => $d body:expr) => {
                match $d dtype {
                    $($crate::DType::$F => { #[allow(dead_code)] type $d T = $f; $d body })*
                    $($crate::DType::$C => { #[allow(dead_code)] type $d T = $c; $d body })*
                    $($crate::DType::$I => { #[allow(dead_code)] type $d T = $i; $d body })*
                    $($crate::DType::$B => { #[allow(dead_code)] type $d T = $b; $d body })*
                }
            };
        }

        /// [`dispatch!`](crate::dispatch) over real and complex floats:
        /// `dispatch_float!(dtype, T => expr, else other)`.
        #[macro_export]
        macro_rules! dispatch_float {
            ($d dtype:expr, $d T:ident => $d body:expr, else $d other:expr) => {
                match $d dtype {
                    $($crate::DType::$F => { #[allow(dead_code)] type $d T = $f; $d body })*
                    $($crate::DType::$C => { #[allow(dead_code)] type $d T = $c; $d body })*
                    _ => $d other,
                }
            };
        }

        /// [`dispatch!`](crate::dispatch) over real floats:
        /// `dispatch_real!(dtype, T => expr, else other)`.
        #[macro_export]
        macro_rules! dispatch_real {
            ($d dtype:expr, $d T:ident => $d body:expr, else $d other:expr) => {
                match $d dtype {
                    $($crate::DType::$F => { #[allow(dead_code)] type $d T = $f; $d body })*
                    _ => $d other,
                }
            };
        }

        /// [`dispatch!`](crate::dispatch) over complex floats:
        /// `dispatch_complex!(dtype, T => expr, else other)`.
        #[macro_export]
        macro_rules! dispatch_complex {
            ($d dtype:expr, $d T:ident => $d body:expr, else $d other:expr) => {
                match $d dtype {
                    $($crate::DType::$C => { #[allow(dead_code)] type $d T = $c; $d body })*
                    _ => $d other,
                }
            };
        }

        /// [`dispatch!`](crate::dispatch) over all but `Bool`:
        /// `dispatch_number!(dtype, T => expr, else other)`.
        #[macro_export]
        macro_rules! dispatch_number {
            ($d dtype:expr, $d T:ident => $d body:expr, else $d other:expr) => {
                match $d dtype {
                    $($crate::DType::$F => { #[allow(dead_code)] type $d T = $f; $d body })*
                    $($crate::DType::$C => { #[allow(dead_code)] type $d T = $c; $d body })*
                    $($crate::DType::$I => { #[allow(dead_code)] type $d T = $i; $d body })*
                    _ => $d other,
                }
            };
        }

        /// [`dispatch!`](crate::dispatch) over what has an order (all but complex floats):
        /// `dispatch_ordered!(dtype, T => expr, else other)`.
        #[macro_export]
        macro_rules! dispatch_ordered {
            ($d dtype:expr, $d T:ident => $d body:expr, else $d other:expr) => {
                match $d dtype {
                    $($crate::DType::$F => { #[allow(dead_code)] type $d T = $f; $d body })*
                    $($crate::DType::$I => { #[allow(dead_code)] type $d T = $i; $d body })*
                    $($crate::DType::$B => { #[allow(dead_code)] type $d T = $b; $d body })*
                    _ => $d other,
                }
            };
        }
    };
}

dtype_table!(define_dtype);

impl DType {
    /// Derivatives exist: real and complex floats.
    pub const fn is_differentiable(self) -> bool {
        self.is_float() || self.is_complex()
    }

    /// Whether a number is one of this type, up to rounding to its precision: of an integer type, an integral number
    /// in its range; of a real one, any without an imaginary part. For bool, every number has a truth value.
    ///
    /// ```
    /// use tenferro_tensor::{C64, DType};
    ///
    /// assert!(DType::I32.holds(C64::new(-7.0, 0.0)) && DType::F32.holds(C64::new(0.1, 0.0)));
    /// assert!(!DType::I32.holds(C64::new(0.5, 0.0)) && !DType::F64.holds(C64::new(0.0, 1.0)));
    /// ```
    pub fn holds(self, value: C64) -> bool {
        if self.is_integer() {
            // The bounds are powers of 2, which an f64 holds exactly; the upper one is no longer in the range.
            let bound = 2f64.powi(8 * self.size() as i32 - 1);
            return value.im == 0.0 && value.re.fract() == 0.0 && (-bound..bound).contains(&value.re);
        }
        !self.is_float() || value.im == 0.0
    }

    /// [`Error::Argument`] of the operation `op` if this does not [hold](DType::holds) its `value`.
    pub(crate) fn check_holds(self, op: &'static str, value: C64) -> Result<()> {
        if self.holds(value) {
            return Ok(());
        }
        let expected =
            if self.is_float() { "a real number" } else { "an integral number in the range of the dtype" };
        Err(Error::argument(op, format!("value for {self}"), value, expected))
    }

    /// The type that a binary operation of `a` and `b` computes in.
    ///
    /// Bool gives way to anything; two integers take the wider; otherwise the result is complex when
    /// either is, and double precision when either is an integer or has a 64-bit real part.
    pub const fn promote(a: DType, b: DType) -> DType {
        if a as u8 == b as u8 || matches!(b, DType::Bool) {
            return a;
        }
        if matches!(a, DType::Bool) {
            return b;
        }
        if a.is_integer() && b.is_integer() {
            return if a.size() >= b.size() { a } else { b };
        }
        let double = a.needs_double() || b.needs_double();
        let real = if double { DType::F64 } else { DType::F32 };
        if a.is_complex() || b.is_complex() { real.complex() } else { real }
    }

    const fn needs_double(self) -> bool {
        self.is_integer() || self.real().size() == 8
    }

    /// `convert` may go from `self` to `to`: promotion of the two gives `to`.
    pub const fn can_convert_to(self, to: DType) -> bool {
        DType::promote(self, to) as u8 == to as u8
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.name().to_ascii_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::DType::{self, *};

    #[test]
    fn promotion_follows_the_stated_lattice() {
        let table = [
            (Bool, F32, F32),
            (Bool, I32, I32),
            (I32, I64, I64),
            (I32, F32, F64),
            (I64, F64, F64),
            (I32, C32, C64),
            (I64, C64, C64),
            (F32, F64, F64),
            (F64, C32, C64),
            (F32, C32, C32),
            (F64, C64, C64),
            (C32, C64, C64),
        ];
        for (a, b, expected) in table {
            assert_eq!(DType::promote(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn promotion_is_a_join() {
        for &a in DType::ALL {
            assert_eq!(DType::promote(a, a), a);
            for &b in DType::ALL {
                let ab = DType::promote(a, b);
                assert_eq!(ab, DType::promote(b, a));
                assert!(a.can_convert_to(ab) && b.can_convert_to(ab), "{a} {b}");
            }
        }
        assert!(!F64.can_convert_to(F32) && !C32.can_convert_to(F64));
    }

    #[test]
    fn kinds_partition_the_types() {
        for &d in DType::ALL {
            let kinds = [d.is_float(), d.is_complex(), d.is_integer(), d == Bool];
            assert_eq!(kinds.iter().filter(|&&k| k).count(), 1, "{d}");
            assert_eq!(dispatch!(d, T => size_of::<T>()), d.size());
            assert_eq!(dispatch!(d, T => <T as crate::Scalar>::DTYPE), d);
            assert_eq!(dispatch_float!(d, T => size_of::<T>() > 0, else false), d.is_differentiable());
            assert_eq!(dispatch_real!(d, T => size_of::<T>() > 0, else false), d.is_float());
            assert_eq!(dispatch_complex!(d, T => size_of::<T>() > 0, else false), d.is_complex());
            assert_eq!(dispatch_number!(d, T => size_of::<T>() > 0, else false), d != Bool);
            assert_eq!(dispatch_ordered!(d, T => size_of::<T>() > 0, else false), !d.is_complex());
        }
    }
}
