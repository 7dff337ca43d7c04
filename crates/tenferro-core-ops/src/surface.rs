//! What happens before an operation is applied: promotion to a common dtype and NumPy's broadcasting.

use crate::{
    aval::{Extents, ShapeOf},
    dim::{Dim, Extent},
    ops::Axes,
    var::Var,
};
use smallvec::SmallVec;
use tenferro_tensor::{DType, Error, Result};

/// The common shape of right-aligned `shapes`. Only a literal 1 is repeated; two different symbols are
/// taken to be equal, which the run checks.
pub fn broadcast_shape(op: &'static str, shapes: &[&[Dim]]) -> Result<Extents<Dim>> {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let mut common: Extents<Dim> = (0..rank).map(|_| Dim::Lit(1)).collect();
    for s in shapes {
        for (c, d) in common[rank - s.len()..].iter_mut().zip(s.iter()) {
            if *c == Dim::Lit(1) {
                *c = d.clone();
            } else if *d != Dim::Lit(1) {
                Dim::equal(op, "operands", d, c).map_err(|_| {
                    let all: Vec<String> = shapes.iter().map(|s| ShapeOf(s).to_string()).collect();
                    Error::shape(op, "operands", all.join(" and "), "shapes that broadcast to a common one")
                })?;
                if let Dim::Lit(_) = d {
                    *c = d.clone();
                }
            }
        }
    }
    Ok(common)
}

/// `x` repeated to a shape it is right-aligned with, of no lower rank.
pub fn broadcast_to(x: &Var, shape: &[Dim]) -> Var {
    if let Var::Failed(_) = x {
        return x.clone();
    }
    if shape.len() < x.rank() {
        let expected = format_args!("at least {}", x.rank());
        return Var::Failed(Error::shape("broadcast_to", "rank", shape.len(), expected));
    }
    let axes: Axes = (shape.len() - x.rank()..shape.len()).collect();
    x.broadcast_in_dim(shape, &axes).of("broadcast_to")
}

/// All operands in their common shape.
pub fn broadcast_all(op: &'static str, x: &[&Var]) -> Result<SmallVec<[Var; 3]>> {
    let shapes: SmallVec<[Extents<Dim>; 3]> =
        x.iter().map(|v| v.ok().map(Var::shape)).collect::<Result<_>>()?;
    let common = broadcast_shape(op, &shapes.iter().map(|s| &s[..]).collect::<SmallVec<[_; 3]>>())?;
    x.iter().map(|v| broadcast_to(v, &common).ok().cloned()).collect()
}

/// Both operands in their common dtype and shape.
pub fn align(op: &'static str, a: &Var, b: &Var) -> Result<(Var, Var)> {
    let dtype = DType::promote(a.ok()?.dtype(), b.ok()?.dtype());
    let mut x = broadcast_all(op, &[&a.convert(dtype), &b.convert(dtype)])?;
    let b = x.pop().expect("as many as were given");
    Ok((x.pop().expect("as many as were given"), b))
}

/// Both operands with a common batch shape, which stands from axis 2 on and is aligned there: a missing
/// axis, or a literal 1, is repeated.
pub fn align_batch(op: &'static str, a: &Var, b: &Var) -> Result<(Var, Var)> {
    let (sa, sb) = (a.ok()?.shape(), b.ok()?.shape());
    let rank = sa.len().min(sb.len());
    if rank < 2 {
        return Err(Error::rank(op, "rank of an operand", rank, "at least 2"));
    }
    if sa[2..] == sb[2..] {
        return Ok((a.clone(), b.clone()));
    }
    let mut batch: Extents<Dim> = Extents::new();
    for i in 2..sa.len().max(sb.len()) {
        let one = Dim::Lit(1);
        let (x, y) = (sa.get(i).unwrap_or(&one), sb.get(i).unwrap_or(&one));
        if *x != one && *y != one {
            Dim::equal(op, "batch axes", x, y)?;
        }
        batch.push(if *x == one { y.clone() } else { x.clone() });
    }
    let extend = |v: &Var, s: &[Dim]| {
        let target: Extents<Dim> = s[..2].iter().chain(&batch).cloned().collect();
        v.broadcast_in_dim(&target, &(0..s.len()).collect::<Axes>())
    };
    Ok((extend(a, &sa), extend(b, &sb)))
}
