//! An expression meets its operands: the ellipsis gets the axes it stands for, and axes that are repeated are
//! dropped.
//!
//! An axis of literal extent 1 whose label has another extent elsewhere is repeated along it, which for a
//! product means that the operand lacks the label: the axis is dropped, and the rest of the einsum never sees
//! it. This is all the broadcasting there is, for letters and numbers as for the axes of an ellipsis. Inside one
//! operand extents are equal, and a symbolic extent is never repeated, whatever it turns out to be. Nor is one of
//! a network in the manner of ncon, whose bonds have two ends alike.

use crate::expression::Expression;
use crate::notation::Notation;
use crate::op::EinsumOp;
use crate::order::Optimize;
use crate::plan::{Axes, Plan};
use smallvec::SmallVec;
use std::sync::Arc;
use tenferro_core_ops::{Dim, Var};
use tenferro_tensor::Result;

/// All that matters of shapes: for each operand a [`RANK`](Shapes::RANK), followed by whether each axis has
/// the literal extent 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Shapes(SmallVec<[u8; 32]>);

impl Shapes {
    const RANK: u8 = 2;

    /// Of values.
    pub(crate) fn of_values(x: &[&Var]) -> Self {
        let mut all = Shapes(SmallVec::new());
        for v in x {
            match v {
                Var::Now(now) => all.push(now.value().shape().iter().map(|n| *n == 1)),
                v => all.push(v.shape().iter().map(|n| *n == Dim::Lit(1))),
            }
        }
        all
    }

    /// Of present tensors.
    pub(crate) fn of(shapes: &[&[usize]]) -> Self {
        let mut all = Shapes(SmallVec::new());
        shapes.iter().for_each(|shape| all.push(shape.iter().map(|n| *n == 1)));
        all
    }

    fn push(&mut self, units: impl Iterator<Item = bool>) {
        self.0.push(Self::RANK);
        self.0.extend(units.map(u8::from));
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// For each operand, whether each axis has the literal extent 1.
    fn operands(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|byte| *byte == Self::RANK).skip(1)
    }
}

/// What an expression is for operands of some shapes.
#[derive(Clone)]
pub(crate) struct Binding {
    pub(crate) op: EinsumOp,
    /// For each operand, the axes that are dropped before; nothing if there are none.
    pub(crate) dropped: SmallVec<[Axes; 4]>,
}

impl Binding {
    pub(crate) fn new(expression: &Expression, shapes: &Shapes, optimize: &Optimize) -> Result<Binding> {
        let units: SmallVec<[&[u8]; 4]> = shapes.operands().collect();
        let ranks: SmallVec<[usize; 4]> = units.iter().map(|axes| axes.len()).collect();
        let notation = expression.notation_for(&ranks)?;
        let dropped: SmallVec<[Axes; 4]> = match notation.is_network() {
            true => SmallVec::new(),
            false => (0..units.len()).map(|operand| dropped(&notation, &units, operand)).collect(),
        };
        if dropped.iter().all(|axes| axes.is_empty()) {
            let op = EinsumOp::new(notation, optimize.clone())?;
            return Ok(Binding { op, dropped: SmallVec::new() });
        }
        let kept = |operand: usize| {
            let labels = notation.inputs()[operand].iter().enumerate();
            labels.filter(|(axis, _)| !dropped[operand].contains(axis)).map(|(_, label)| *label).collect()
        };
        let inputs = (0..units.len()).map(kept).collect();
        let op = EinsumOp::new(Notation::with(inputs, notation.output().into()), optimize.clone())?;
        Ok(Binding { op, dropped })
    }

    /// The einsum of operands of one dtype.
    pub(crate) fn apply(&self, x: &[&Var]) -> Var {
        if self.dropped.is_empty() {
            return self.op.apply(x);
        }
        self.op.apply(&self.squeezed(x).iter().collect::<SmallVec<[&Var; 4]>>())
    }

    /// The operands without what is dropped.
    pub(crate) fn squeezed(&self, x: &[&Var]) -> SmallVec<[Var; 4]> {
        let squeezed = |(operand, v): (usize, &&Var)| match self.dropped.get(operand) {
            Some(axes) if !axes.is_empty() => v.squeeze(axes),
            _ => (*v).clone(),
        };
        x.iter().enumerate().map(squeezed).collect()
    }

    /// The plan for operands of these shapes.
    pub(crate) fn plan(&self, shapes: &[&[usize]]) -> Result<Arc<Plan>> {
        self.at(shapes, |shapes| self.op.costed_plan(shapes))
    }

    /// The shape of the output for operands of these shapes.
    pub(crate) fn output(&self, shapes: &[&[usize]]) -> Result<SmallVec<[usize; 6]>> {
        let notation = self.op.notation();
        self.at(shapes, |shapes| Ok(notation.extents(shapes)?.of(notation.output())))
    }

    /// `f` of the shapes without what is dropped.
    fn at<R>(&self, shapes: &[&[usize]], f: impl FnOnce(&[&[usize]]) -> R) -> R {
        if self.dropped.is_empty() {
            return f(shapes);
        }
        let kept: SmallVec<[SmallVec<[usize; 6]>; 4]> = shapes
            .iter()
            .zip(&self.dropped)
            .map(|(shape, axes)| {
                let kept = shape.iter().enumerate().filter(|(axis, _)| !axes.contains(axis));
                kept.map(|(_, n)| *n).collect()
            })
            .collect();
        f(&kept.iter().map(|shape| &shape[..]).collect::<SmallVec<[&[usize]; 4]>>())
    }
}

/// The axes of an operand that are repeated along an axis of another.
fn dropped(notation: &Notation, units: &[&[u8]], operand: usize) -> Axes {
    let labelled = |operand: usize, label: u32| {
        notation.inputs()[operand].iter().zip(units[operand]).filter(move |(other, _)| **other == label)
    };
    let repeats = |label: u32| {
        let here = labelled(operand, label).all(|(_, unit)| *unit == 1);
        here && (0..units.len()).any(|other| labelled(other, label).any(|(_, unit)| *unit == 0))
    };
    let labels = notation.inputs()[operand].iter().enumerate();
    labels.filter(|(_, label)| repeats(**label)).map(|(axis, _)| axis).collect()
}
