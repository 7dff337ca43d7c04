//! What a run knows before its kernels: extents of inputs, shape rules, and where views lie.
//!
//! Only what differs from the run before goes through its shape rule, which is where guards are checked.

use super::{
    lower::{Instruction, Lowered, Step},
    run::{Place, State},
};
use smallvec::SmallVec;
use tenferro_core_ops::{Atom, Aval, Dim, Extents, Op, elements};
use tenferro_tensor::{Error, Layout, Result, Tensor, checked_len};

/// Fewest bytes of an operand that is handed over with its buffer: below, kernels make a new one.
const TAKEN: usize = 1 << 16;

impl State {
    /// Takes over the extents of the inputs; true if a symbol has another value.
    pub(super) fn bind_inputs(&mut self, x: &[&Tensor]) -> Result<bool> {
        let program = self.program.clone();
        let mut differs = false;
        let mut by: Vec<(&Atom, usize, usize)> = Vec::new();
        for a in &program.axes {
            let n = x[a.input].shape()[a.axis];
            let expected = match a.extent.as_atom() {
                Some(atom @ Atom::Symbol(_)) => {
                    let first = by.iter().find(|(b, ..)| *b == atom);
                    if let Some(&(_, input, axis)) = first {
                        let other = x[input].shape()[axis];
                        if other != n {
                            let what = format!("extent {} of axis {} of input {}", a.extent, a.axis, a.input);
                            let expected =
                                format_args!("{other}, the extent of axis {axis} of input {input}");
                            return Err(Error::guard("run", what, n, expected));
                        }
                        continue;
                    }
                    by.push((atom, a.input, a.axis));
                    differs |= self.env.bind(atom.clone(), n) != Some(n);
                    continue;
                }
                _ => a.extent.eval(&self.env)?,
            };
            if n != expected {
                let what = format!("axis {} of input {}", a.axis, a.input);
                let expected = match a.extent {
                    Dim::Lit(_) => format!("{expected}"),
                    _ => format!("{expected}, the value of {}", a.extent),
                };
                return Err(match a.extent {
                    Dim::Lit(_) => Error::shape("run", what, n, expected),
                    _ => Error::guard("run", what, n, expected),
                });
            }
        }
        for (v, t) in x.iter().enumerate() {
            let a = &mut self.avals[v];
            self.changed[v] = self.fresh || a.shape[..] != *t.shape();
            if self.changed[v] {
                *a = Aval { dtype: t.dtype(), shape: Extents::from_slice(t.shape()) };
            }
        }
        Ok(differs)
    }

    /// Brings what is remembered of an instruction up to date with its operands and symbols.
    pub(super) fn infer(
        &mut self,
        program: &Lowered,
        k: usize,
        i: &Instruction,
        env_differs: bool,
    ) -> Result<()> {
        let results = i.y as usize..(i.y + i.outputs) as usize;
        let stale =
            self.fresh || (i.symbolic && env_differs) || i.x.iter().any(|a| self.changed[a.value as usize]);
        if !stale {
            self.changed[results].fill(false);
            return Ok(());
        }
        if i.symbolic {
            let dims: SmallVec<[Dim; 6]> = (i.op.dims().iter())
                .map(|d| d.eval(&self.env).map(Dim::Lit))
                .collect::<Result<_>>()
                .map_err(|e| named(e, program, i))?;
            self.inferred[k].op = Some(i.op.with_dims(&dims));
        }
        let large = |a: &Aval| a.len() * a.dtype.size() >= TAKEN;
        self.inferred[k].takes = i.x.iter().any(|a| a.last && large(&self.avals[a.value as usize]));
        let op = self.inferred[k].op.as_ref().unwrap_or(&i.op);
        let x: SmallVec<[&Aval; 4]> = i.x.iter().map(|a| &self.avals[a.value as usize]).collect();
        let y = op.infer_now(&x).map_err(|e| named(e, program, i))?;
        drop(x);
        if y.len() != i.outputs as usize {
            return Err(Error::argument(
                i.op.name(),
                "number of outputs of the shape rule",
                y.len(),
                i.outputs,
            ));
        }
        if !i.decides.is_empty() {
            self.inferred[k].bounds = y;
            return Ok(());
        }
        let place =
            matches!(i.step, Step::View).then(|| self.view(&**op, i.x[0].value, i.y, &y)).transpose()?;
        for (v, y) in results.zip(y) {
            self.changed[v] = self.fresh || self.avals[v] != y;
            self.avals[v] = y;
        }
        if let Some(place) = place {
            let v = i.y as usize;
            self.changed[v] |= self.places[v] != place;
            self.places[v] = place;
        }
        self.prepare(program, k, i);
        Ok(())
    }

    /// Where the elements of the view `y` of value `x` are.
    fn view(&self, op: &dyn Op, x: u32, v: u32, y: &[Aval]) -> Result<Place> {
        let of = &self.places[x as usize];
        let Aval { dtype, shape } = &self.avals[x as usize];
        let owned = match &of.layout {
            Some(l) => (**l).clone(),
            None => Layout::contiguous(shape),
        };
        let (root, layout) = match op.view(&owned) {
            Some(layout) => (of.root, layout),
            None => {
                y.iter().try_for_each(|y| checked_len(op.name(), &y.shape).map(drop))?;
                let layout = op.view(&Layout::contiguous(shape)).ok_or_else(|| {
                    Error::layout(op.name(), "view", format_args!("{owned:?}"), "a view of a compact operand")
                })?;
                (v, layout)
            }
        };
        // What reads the view goes by the shape rule, which another crate's operation may have wrong.
        let found = Aval::new(*dtype, layout.shape().iter().copied());
        if y != std::slice::from_ref(&found) {
            return Err(Error::shape(op.name(), "view", found, &y[0]));
        }
        let whole = layout.offset() == 0
            && layout.is_col_major_contiguous()
            && (root == v || of.layout.is_none() || of.whole)
            && layout.len() == elements(shape);
        Ok(Place { root, layout: Some(Box::new(layout)), whole })
    }
}

/// The error of a shape rule, with the call: an extent that the trace took on trust is a guard.
#[cold]
fn named(e: Error, program: &Lowered, i: &Instruction) -> Error {
    let node = &program.graph.nodes[i.node as usize];
    let operands: Vec<String> =
        node.x.iter().map(|&r| format!("%{}: {}", r.node, program.graph.aval(r))).collect();
    let call = format!("in %{} = {}({})", i.node, i.op.name(), operands.join(", "));
    match e {
        Error::Shape(m) | Error::Guard(m) => {
            Error::guard(m.op, format!("{} {call}", m.what), &m.got, &m.expected)
        }
        e => e,
    }
}
