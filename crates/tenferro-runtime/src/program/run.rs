//! Runs of a bound program.
//!
//! A [`State`] belongs to one run at a time and remembers the extents, layouts and parameters of the run
//! before. While nothing differs, a run is kernel calls and nothing else: no shape rule, no arithmetic on
//! extents, and a view costs nothing. From the first difference on (an input of other extents, a kernel that
//! found another extent) an instruction whose operands or symbols changed goes through its shape rule again,
//! which is where the guards are checked.
//!
//! Invariant: between runs all slots are empty but those of prepared calls, and every place, aval and parameter
//! is that of the last run.

use super::lower::{Arg, Instruction, Lowered, Step};
use smallvec::SmallVec;
use std::sync::Arc;
use tenferro_core_ops::{
    Aval, Backend, Env, Extents, Op, Operand, Out, Outs, Prepared, ShapeOf, aval_of, contiguous,
};
use tenferro_tensor::{Error, Layout, Result, Tensor, TensorRef};

/// Where the elements of a value are.
#[derive(PartialEq)]
pub(super) struct Place {
    /// The input, constant or slot that has them.
    pub(super) root: u32,
    /// Under which layout, if not the tensor's own.
    pub(super) layout: Option<Box<Layout>>,
    /// They are all of the tensor's, in its order, if under another shape.
    pub(super) whole: bool,
}

/// What a shape rule gave.
#[derive(Default)]
pub(super) struct Inferred {
    /// The operation with numbers for its symbolic parameters.
    pub(super) op: Option<Arc<dyn Op>>,
    /// The largest extents the outputs can have, where the kernel decides.
    pub(super) bounds: Outs<Aval>,
    /// An operand that nobody reads again is large enough to be worth taking.
    pub(super) takes: bool,
    /// The kernel for these operands, if it is prepared. The slot of the result then stays filled.
    pub(super) prepared: Option<Prepared>,
}

pub(super) struct State {
    pub(super) program: Arc<Lowered>,
    /// Nothing is remembered yet.
    pub(super) fresh: bool,
    pub(super) env: Env,
    pub(super) avals: Vec<Aval>,
    pub(super) places: Vec<Place>,
    pub(super) inferred: Vec<Inferred>,
    pub(super) slots: Vec<Option<Tensor>>,
    /// Slots that are not emptied.
    pub(super) stays: Vec<bool>,
    /// Which values have another aval or place than in the run before.
    pub(super) changed: Vec<bool>,
}

impl State {
    pub(super) fn new(program: Arc<Lowered>) -> State {
        let n = program.inputs.len();
        let constant = |v: u32| (v as usize).checked_sub(n).and_then(|c| program.constants.get(c));
        let places = (0..program.values as u32)
            .map(|v| {
                let layout = constant(v).filter(|c| c.layout() != c.owner().layout());
                Place { root: v, layout: layout.map(|c| Box::new(c.layout())), whole: false }
            })
            .collect();
        let unknown = || Aval::new(tenferro_tensor::DType::Bool, []);
        let avals = (0..program.values as u32).map(|v| constant(v).map_or_else(unknown, aval_of)).collect();
        State {
            fresh: true,
            env: program.env.clone(),
            avals,
            places,
            inferred: program.instructions.iter().map(|_| Inferred::default()).collect(),
            slots: (program.first_slot..program.values as u32).map(|_| None).collect(),
            stays: vec![false; program.values - program.first_slot as usize],
            changed: vec![false; program.values],
            program,
        }
    }

    /// The outputs for inputs `x`. After an error the state must not be used again.
    pub(super) fn run(&mut self, backend: &dyn Backend, x: &[&Tensor]) -> Result<Vec<Tensor>> {
        let program = self.program.clone();
        check_inputs(&program, backend, x)?;
        let mut differs = self.fresh || x.iter().zip(&self.avals).any(|(x, a)| x.shape() != &a.shape[..]);
        let mut env_differs = self.fresh;
        let shortcuts = backend.takes_shortcuts();
        if differs {
            self.changed.fill(self.fresh);
            env_differs |= self.bind_inputs(x)?;
        }
        for (k, i) in program.instructions.iter().enumerate() {
            if differs {
                self.infer(&program, k, i, env_differs)?;
            }
            match &i.step {
                Step::View => {
                    if self.places[i.y as usize].root == i.y {
                        let copy = contiguous(backend, self.read(&program, x, i.x[0].value)?)?;
                        self.slots[(i.y - program.first_slot) as usize] = Some(copy);
                    }
                }
                Step::Kernel(_) if shortcuts && self.run_prepared(&program, x, k, i)? => {}
                Step::Kernel(_) => {
                    let y = self.call(&program, backend, x, k, i)?;
                    if self.settle(&program, i, k, y, &mut env_differs)? && !differs {
                        differs = true;
                        let (from, to) = (i.y as usize, (i.y + i.outputs) as usize);
                        self.changed[..from].fill(false);
                        self.changed[to..].fill(false);
                    }
                }
            }
            for &v in &i.dead {
                self.empty(&program, v);
            }
        }
        let outputs = self.outputs(&program, backend, x)?;
        for &v in &program.at_end {
            self.empty(&program, v);
        }
        self.fresh = false;
        Ok(outputs)
    }

    /// Empties a slot, unless it is one that stays filled.
    #[inline]
    fn empty(&mut self, program: &Lowered, v: u32) {
        let slot = (v - program.first_slot) as usize;
        if !self.stays[slot] {
            self.slots[slot] = None;
        }
    }

    fn tensor<'a>(&'a self, program: &'a Lowered, x: &[&'a Tensor], root: u32) -> &'a Tensor {
        let root = root as usize;
        if root < x.len() {
            x[root]
        } else if root < program.first_slot as usize {
            program.constants[root - x.len()].owner()
        } else {
            self.slots[root - program.first_slot as usize].as_ref().expect("liveness keeps what is read")
        }
    }

    pub(super) fn read<'a>(
        &'a self,
        program: &'a Lowered,
        x: &[&'a Tensor],
        v: u32,
    ) -> Result<TensorRef<'a>> {
        let place = &self.places[v as usize];
        let t = self.tensor(program, x, place.root);
        place.layout.as_ref().map_or_else(|| Ok(t.into()), |layout| TensorRef::new(t, layout))
    }

    /// The tensor of a value that nobody reads again, if it is unique and whole.
    #[inline]
    fn take(&mut self, program: &Lowered, v: u32) -> Option<Tensor> {
        let place = &self.places[v as usize];
        if place.root < program.first_slot || !(place.layout.is_none() || place.whole) {
            return None;
        }
        let slot = &mut self.slots[(place.root - program.first_slot) as usize];
        if !slot.as_ref().is_some_and(Tensor::is_unique) {
            return None;
        }
        let t = slot.take()?;
        match &place.layout {
            None => Some(t),
            Some(l) => t.into_shape(l.shape()).ok(),
        }
    }

    fn call(
        &mut self,
        program: &Lowered,
        backend: &dyn Backend,
        x: &[&Tensor],
        k: usize,
        i: &Instruction,
    ) -> Result<Outs<Tensor>> {
        let Step::Kernel(kernel) = &i.step else { return Ok(Outs::new()) };
        let mut own: SmallVec<[Option<Tensor>; 3]> = SmallVec::new();
        if self.inferred[k].takes {
            own.extend(i.x.iter().map(|a| if a.last { self.take(program, a.value) } else { None }));
        }
        let inferred = &self.inferred[k];
        let op = inferred.op.as_ref().unwrap_or(&i.op);
        let y = if i.decides.is_empty() {
            &self.avals[i.y as usize..(i.y + i.outputs) as usize]
        } else {
            &inferred.bounds
        };
        let run = |operands: &mut [Operand<'_>]| {
            // SAFETY: `y` is what the shape rule gave for these operands, now or in an earlier run where they
            // had the same dtypes and extents.
            unsafe { backend.run(kernel, &**op, operands, y, &mut Out::New) }
        };
        let read = |a: &Arg| self.read(program, x, a.value).map(Operand::Read);
        match &i.x[..] {
            [a] if own.is_empty() => run(&mut [read(a)?]),
            [a, b] if own.is_empty() => run(&mut [read(a)?, read(b)?]),
            _ => {
                let mut operands: SmallVec<[Operand<'_>; 4]> = SmallVec::new();
                let mut own = own.into_iter();
                for a in &i.x {
                    operands.push(own.next().flatten().map_or_else(|| read(a), |t| Ok(Operand::Own(t)))?);
                }
                run(&mut operands)
            }
        }
    }

    /// Puts results into their slots; true if a kernel found other extents than in the run before.
    #[inline]
    fn settle(
        &mut self,
        program: &Lowered,
        i: &Instruction,
        k: usize,
        y: Outs<Tensor>,
        env_differs: &mut bool,
    ) -> Result<bool> {
        if y.len() != i.outputs as usize {
            return Err(Error::argument(i.op.name(), "number of outputs of the kernel", y.len(), i.outputs));
        }
        if let ([t], []) = (&y[..], &i.decides[..]) {
            expect(i, &self.avals[i.y as usize], t, |got, inferred| got == inferred)?;
            let only = y.into_iter().next();
            self.slots[(i.y - program.first_slot) as usize] = only;
            return Ok(false);
        }
        let mut found = false;
        for (n, t) in y.into_iter().enumerate() {
            let v = i.y as usize + n;
            if i.decides.is_empty() {
                expect(i, &self.avals[v], &t, |got, inferred| got == inferred)?;
            } else {
                expect(i, &self.inferred[k].bounds[n], &t, |got, bound| got <= bound)?;
                let known = &mut self.avals[v];
                let differs = self.fresh || known.shape[..] != *t.shape() || known.dtype != t.dtype();
                if differs {
                    *known = Aval { dtype: t.dtype(), shape: Extents::from_slice(t.shape()) };
                }
                self.changed[v] = differs;
                found |= differs;
            }
            self.slots[v - program.first_slot as usize] = Some(t);
        }
        if found {
            for (output, axis, atom) in &i.decides {
                let n = self.avals[(i.y + output) as usize].shape[*axis];
                *env_differs |= self.env.bind(atom.clone(), n) != Some(n);
            }
        }
        Ok(found)
    }

    fn outputs(&mut self, program: &Lowered, backend: &dyn Backend, x: &[&Tensor]) -> Result<Vec<Tensor>> {
        let mut outputs = Vec::with_capacity(program.outputs.len());
        for o in &program.outputs {
            let own = if o.last { self.take(program, o.value) } else { None };
            outputs.push(match own {
                Some(t) => t,
                None => contiguous(backend, self.read(program, x, o.value)?)?,
            });
        }
        Ok(outputs)
    }
}

/// What does not depend on extents alone: number, dtypes, ranks, placement.
fn check_inputs(program: &Lowered, backend: &dyn Backend, x: &[&Tensor]) -> Result<()> {
    if x.len() != program.inputs.len() {
        return Err(Error::argument("run", "number of inputs", x.len(), program.inputs.len()));
    }
    for (k, (t, a)) in x.iter().zip(&program.inputs).enumerate() {
        if t.dtype() != a.dtype {
            return Err(Error::dtype("run", format!("input {k}"), t.dtype(), a.dtype));
        }
        if t.rank() != a.rank() {
            let got = format_args!("{} ({:?})", t.rank(), t.shape());
            return Err(Error::rank(
                "run",
                format!("rank of input {k}"),
                got,
                format_args!("{} ({a})", a.rank()),
            ));
        }
        if !t.placement().same_memory(backend.placement()) {
            return Err(Error::placement("run", format!("input {k}"), t.placement(), backend.placement()));
        }
    }
    Ok(())
}

/// The kernel did what the shape rule said; later kernels rely on it.
#[inline]
fn expect(i: &Instruction, a: &Aval, t: &Tensor, fits: impl Fn(usize, usize) -> bool) -> Result<()> {
    let shape = t.shape();
    if t.dtype() == a.dtype
        && shape.len() == a.rank()
        && shape.iter().zip(&a.shape).all(|(&got, &inferred)| fits(got, inferred))
    {
        return Ok(());
    }
    let got = format_args!("{}{}", t.dtype(), ShapeOf(shape));
    Err(Error::shape(i.op.name(), "result of the kernel", got, a))
}
