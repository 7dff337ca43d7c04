//! The arguments of a record as an adapter reads them.

pub(crate) use crate::record::Arg;
use crate::record::Record;
use tenferro_core_ops::{Dim, Now, Var};
use tenferro_tensor::{C64, DType, Value};
use tenferro_testing::Array;

/// The outputs of a family's operation, or why it does not take this record.
pub(crate) type Outputs = Result<Vec<Var>, String>;

/// An operation on the arguments of a record.
pub(crate) type Adapter = fn(&Args) -> Outputs;

/// Families that one file replays: their names, separated by spaces, and the operation.
pub(crate) type Families = &'static [(&'static str, Adapter)];

/// A record's arguments, with values for its inputs.
pub(crate) struct Args<'a> {
    pub(crate) record: &'a Record,
    pub(crate) x: &'a [Var],
}

const NULL: &Arg = &Arg::Null;

pub(crate) fn present(a: &Array) -> Var {
    Var::Now(Now::new(Value::new(a.to_tensor())))
}

pub(crate) fn lits(shape: &[usize]) -> Vec<Dim> {
    shape.iter().map(|&n| Dim::Lit(n)).collect()
}

/// The extents of a value, which the replay always knows.
pub(crate) fn extents(x: &Var) -> Vec<usize> {
    x.shape().iter().map(|d| d.as_lit().expect("the replay has no symbolic extents")).collect()
}

/// An axis counted from either end; of a scalar, none.
pub(crate) fn axis(a: i64, rank: usize) -> usize {
    if a < 0 { (rank as i64 + a) as usize } else { a as usize }
}

impl Arg {
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Arg::Number(x) => Some(*x),
            Arg::Flag(b) => Some(*b as i64 as f64),
            Arg::Constant(a) if a.rank() == 0 => Some(a.data[0].re()),
            _ => None,
        }
    }

    pub(crate) fn int(&self) -> Option<i64> {
        self.number().map(|x| x as i64)
    }

    /// A list of integers; one integer is a list of one.
    pub(crate) fn ints(&self) -> Option<Vec<i64>> {
        match self {
            Arg::List(list) => list.iter().map(Arg::int).collect(),
            other => other.int().map(|i| vec![i]),
        }
    }
}

impl Args<'_> {
    /// The argument at a position, or else by its name.
    pub(crate) fn get(&self, i: usize, name: &str) -> &Arg {
        match self.record.args.get(i) {
            Some(a) if !matches!(a, Arg::Null) => a,
            _ => self.record.named.get(name).unwrap_or(NULL),
        }
    }

    pub(crate) fn named(&self, name: &str) -> &Arg {
        self.record.named.get(name).unwrap_or(NULL)
    }

    pub(crate) fn flag(&self, i: usize, name: &str, default: bool) -> bool {
        match self.get(i, name) {
            Arg::Flag(b) => *b,
            _ => default,
        }
    }

    pub(crate) fn int(&self, i: usize, name: &str, default: i64) -> i64 {
        self.get(i, name).int().unwrap_or(default)
    }

    pub(crate) fn number(&self, i: usize, name: &str, default: f64) -> f64 {
        self.get(i, name).number().unwrap_or(default)
    }

    pub(crate) fn text(&self, i: usize, name: &str) -> Option<&str> {
        match self.get(i, name) {
            Arg::Text(s) => Some(s),
            _ => None,
        }
    }

    /// A list of integers that must be there.
    pub(crate) fn ints(&self, i: usize, name: &str) -> Result<Vec<i64>, String> {
        self.get(i, name).ints().ok_or_else(|| format!("argument {name} is {:?}", self.get(i, name)))
    }

    /// A value: a tensor, or a number in the dtype of the first input.
    pub(crate) fn value(&self, a: &Arg) -> Result<Var, String> {
        let number = |z: C64| {
            let dtype = self.x.first().map_or(DType::F64, |x| x.dtype());
            Var::scalar(if z.im == 0.0 { dtype } else { dtype.complex() }, z)
        };
        Ok(match a {
            Arg::Input(i) => self.x[*i].clone(),
            Arg::Constant(a) => present(a),
            Arg::Number(x) => number(C64::new(*x, 0.0)),
            Arg::Flag(b) => number(C64::new(*b as i64 as f64, 0.0)),
            Arg::Complex(z) => number(*z),
            _ => return Err(format!("no tensor: {a:?}")),
        })
    }

    /// The tensor or number at a position.
    pub(crate) fn var(&self, i: usize) -> Result<Var, String> {
        self.value(self.record.args.get(i).unwrap_or(NULL))
    }

    /// The tensors at a position.
    pub(crate) fn vars(&self, i: usize) -> Result<Vec<Var>, String> {
        match self.record.args.get(i) {
            Some(Arg::List(list)) => list.iter().map(|a| self.value(a)).collect(),
            Some(a) => Ok(vec![self.value(a)?]),
            None => Err("no tensors".into()),
        }
    }

    /// The tensor at a position as numbers of the host, if it is not an input.
    pub(crate) fn host(&self, i: usize) -> Result<&Array, String> {
        match self.record.args.get(i) {
            Some(Arg::Constant(a)) => Ok(a),
            a => Err(format!("no constant: {a:?}")),
        }
    }

    /// The axes at a position; `None` for all of them.
    pub(crate) fn axes(&self, i: usize, name: &str, rank: usize) -> Option<Vec<usize>> {
        let axes = self.get(i, name).ints()?;
        if axes.is_empty() || rank == 0 {
            return None;
        }
        Some(axes.into_iter().map(|a| axis(a, rank)).collect())
    }

    pub(crate) fn unary(&self, f: impl Fn(&Var) -> Var) -> Outputs {
        Ok(vec![f(&self.var(0)?)])
    }

    pub(crate) fn binary(&self, f: impl Fn(&Var, &Var) -> Var) -> Outputs {
        Ok(vec![f(&self.var(0)?, &self.var(1)?)])
    }
}
