//! Runs of a bound program.
//!
//! A [`State`] belongs to one run at a time and remembers the extents, layouts and parameters of the run
//! before. While nothing differs, a run is kernel calls and nothing else: no shape rule, no arithmetic on
//! extents, and a view costs nothing. From the first difference on (an input of other extents, a kernel that
//! found another extent) an instruction whose operands or symbols changed goes through its shape rule again,
//! which is where the guards are checked.
//!
//! Small calls whose result lives and dies in the program go further: the kernel is prepared for the very
//! shapes and strides, and the result keeps its buffer from run to run.
//!
//! Invariant: between runs all slots are empty but those of prepared calls, and every place, aval and parameter
//! is that of the last run.

use super::lower::{Arg, Instruction, Lowered, Step};
use smallvec::SmallVec;
use std::sync::Arc;
use tenferro_core_ops::{
    Atom, Aval, Backend, Coming, Dim, Env, Extents, Op, Operand, Out, Outs, Prepared, ShapeOf, aval_of,
    contiguous, elements,
};
use tenferro_tensor::{Error, Layout, Result, Tensor, TensorRef, UninitTensor};

/// Where the elements of a value are.
#[derive(PartialEq)]
struct Place {
    /// The input, constant or slot that has them.
    root: u32,
    /// Under which layout, if not the tensor's own.
    layout: Option<Box<Layout>>,
    /// They are all of the tensor's, in its order, if under another shape.
    whole: bool,
}

/// What a shape rule gave.
#[derive(Default)]
struct Inferred {
    /// The operation with numbers for its symbolic parameters.
    op: Option<Arc<dyn Op>>,
    /// The largest extents the outputs can have, where the kernel decides.
    bounds: Outs<Aval>,
    /// An operand that nobody reads again is large enough to be worth taking.
    takes: bool,
    /// The kernel for these operands, if it is prepared. The slot of the result then stays filled.
    prepared: Option<Prepared>,
}

/// Most operands of a prepared kernel.
const MOST_PREPARED: usize = 6;

/// Fewest bytes of an operand that is handed over with its buffer: below, kernels make a new one.
const TAKEN: usize = 1 << 16;

pub(super) struct State {
    program: Arc<Lowered>,
    /// Nothing is remembered yet.
    fresh: bool,
    env: Env,
    avals: Vec<Aval>,
    places: Vec<Place>,
    inferred: Vec<Inferred>,
    slots: Vec<Option<Tensor>>,
    /// Slots that are not emptied.
    stays: Vec<bool>,
    /// Which values have another aval or place than in the run before.
    changed: Vec<bool>,
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

    /// Prepares a kernel whose one result, like its operands, is not handed out.
    fn prepare(&mut self, program: &Lowered, k: usize, i: &Instruction) {
        let slot = (i.y - program.first_slot) as usize;
        let Step::Kernel(kernel) = &i.step else { return };
        let op = self.inferred[k].op.as_ref().unwrap_or(&i.op);
        let inner = i.outputs == 1 && i.decides.is_empty() && !program.at_end.contains(&i.y);
        let prepared = kernel.shortcuts().prepare.filter(|_| inner).and_then(|prepare| {
            let coming = |a: &Arg| {
                let place = &self.places[a.value as usize];
                let strides = place.layout.as_ref().filter(|l| !l.is_col_major_contiguous());
                Coming { aval: &self.avals[a.value as usize], strides: strides.map(|l| l.strides()) }
            };
            let x: SmallVec<[Coming<'_>; 4]> = i.x.iter().map(coming).collect();
            let few = x.len() <= MOST_PREPARED;
            few.then(|| prepare(&**op, &x, &self.avals[i.y as usize])).flatten()
        });
        self.stays[slot] = prepared.is_some();
        self.slots[slot] = None;
        self.inferred[k].prepared = prepared;
    }

    /// Runs the prepared kernel of an instruction; false if there is none.
    #[inline]
    fn run_prepared(&mut self, program: &Lowered, x: &[&Tensor], k: usize, i: &Instruction) -> Result<bool> {
        if self.inferred[k].prepared.is_none() {
            return Ok(false);
        }
        let slot = (i.y - program.first_slot) as usize;
        // A kernel that was given the result may have kept a share of it.
        let to = match self.slots[slot].take().map(Tensor::into_uninit) {
            Some(Ok(buffer)) => buffer,
            _ => {
                let y = &self.avals[i.y as usize];
                Tensor::uninit(y.dtype, &y.shape)?
            }
        };
        self.slots[slot] = Some(self.call_prepared(program, x, k, i, to)?);
        Ok(true)
    }

    fn call_prepared(
        &self,
        program: &Lowered,
        x: &[&Tensor],
        k: usize,
        i: &Instruction,
        mut to: UninitTensor,
    ) -> Result<Tensor> {
        let mut from = [std::ptr::null(); MOST_PREPARED];
        for (from, a) in from.iter_mut().zip(&i.x) {
            *from = self.read(program, x, a.value)?.host_byte_ptr()?;
        }
        let prepared = self.inferred[k].prepared.as_ref().expect("the caller looked");
        // SAFETY: the operands have the avals and places that the kernel was prepared for, since any change of
        // those prepares it again; the result has its aval, and its buffer, which is unique, is theirs alone.
        unsafe {
            prepared.call(&from[..i.x.len()], to.as_mut_byte_ptr());
            Ok(to.assume_init())
        }
    }

    /// Takes over the extents of the inputs; true if a symbol has another value.
    fn bind_inputs(&mut self, x: &[&Tensor]) -> Result<bool> {
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
    fn infer(&mut self, program: &Lowered, k: usize, i: &Instruction, env_differs: bool) -> Result<()> {
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
        let place = matches!(i.step, Step::View).then(|| self.view(&**op, i.x[0].value, i.y)).transpose()?;
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
    fn view(&self, op: &dyn Op, x: u32, v: u32) -> Result<Place> {
        let of = &self.places[x as usize];
        let shape = &self.avals[x as usize].shape;
        let owned = match &of.layout {
            Some(l) => (**l).clone(),
            None => Layout::contiguous(shape),
        };
        let (root, layout) = match op.view(&owned) {
            Some(layout) => (of.root, layout),
            None => {
                let layout = op.view(&Layout::contiguous(shape)).ok_or_else(|| {
                    Error::layout(op.name(), "view", format_args!("{owned:?}"), "a view of a compact operand")
                })?;
                (v, layout)
            }
        };
        let whole = layout.offset() == 0
            && layout.is_col_major_contiguous()
            && (root == v || of.layout.is_none() || of.whole)
            && layout.len() == elements(shape);
        Ok(Place { root, layout: Some(Box::new(layout)), whole })
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

    fn read<'a>(&'a self, program: &'a Lowered, x: &[&'a Tensor], v: u32) -> Result<TensorRef<'a>> {
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
