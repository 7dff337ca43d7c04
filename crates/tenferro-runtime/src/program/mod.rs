//! Compiled programs.
//!
//! Compiling turns the calls that outputs were recorded with into a list and simplifies it; that knows no
//! backend and no extents. At the first run on a backend the program is bound to it: constants fold,
//! elementwise calls fuse, kernels are looked up. Each run is then a walk over a flat list of instructions
//! ([`run`]).
//!
//! Invariant: a program is immutable, but for what it remembers to be faster the next time. So runs may
//! overlap, from any threads, and a run that fails changes nothing.

mod bind;
mod build;
mod explain;
mod fuse;
mod graph;
mod infer;
mod lower;
mod pool;
mod prepared;
mod run;
mod simplify;
#[cfg(test)]
mod tests;

use build::{Builder, Placed};
use graph::{Graph, Source, for_each_atom};
use pool::Pool;
use smallvec::SmallVec;
use std::{
    collections::HashSet,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};
use tenferro_core_ops::{
    Atom, Aval, Backend, Digest, Dim, Source as Traced, Target, Var, program, with_backend,
};
use tenferro_tensor::{Error, Result, Tensor};

/// A compiled program: a function of tensors that runs on any backend and, where its inputs have symbolic
/// extents, at any extents. Cloning shares it.
///
/// ```
/// use tenferro_core_ops::{Aval, Dim, input};
/// use tenferro_cpu::CpuBackend;
/// use tenferro_runtime::Program;
/// use tenferro_tensor::{DType, Tensor};
///
/// let n = Dim::symbol("n");
/// let x = input(Aval::new(DType::F64, [n]));
/// let program = Program::new(&[x.clone()], &[(&x * &x).reduce_sum(None)])?;
/// let mut cpu = CpuBackend::new();
/// for n in [2, 3] {
///     let x = Tensor::from_vec_col_major([n], vec![2.0; n])?;
///     assert_eq!(program.run(&mut cpu, &[&x])?[0].item::<f64>()?, 4.0 * n as f64);
/// }
/// # Ok::<(), tenferro_tensor::Error>(())
/// ```
#[derive(Clone)]
pub struct Program(Arc<Inner>);

struct Inner {
    graph: Graph,
    inputs: Vec<Aval<Dim>>,
    outputs: Vec<Aval<Dim>>,
    digest: u128,
    pool: Pool,
}

impl Program {
    /// The program that computes `outputs` from `inputs`, which are placeholders.
    ///
    /// # Errors
    /// [`Error::UnknownInput`] if an output depends on a placeholder that is not listed, [`Error::Argument`]
    /// if an input is no placeholder or is listed twice, [`Error::Guard`] for an extent that nothing in the
    /// program decides, and the error of an output that is one.
    pub fn new(inputs: &[Var], outputs: &[Var]) -> Result<Program> {
        outputs.iter().try_for_each(|v| v.ok().map(drop))?;
        let mut b = Builder::default();
        let mut placed = Placed::default();
        for (k, v) in inputs.iter().enumerate() {
            let id = match v.ok()? {
                Var::Later(c, _) if matches!(c.source(), Traced::Input) => c.id(),
                _ => return Err(Error::argument("compile", format!("input {k}"), v.aval(), "a placeholder")),
            };
            if placed.insert(id, SmallVec::from_iter([b.input(v.aval())])).is_some() {
                let what = format!("input {k}");
                return Err(Error::argument("compile", what, "a placeholder again", "distinct placeholders"));
            }
        }
        b.import(&program(outputs), &mut placed)?;
        let refs = outputs.iter().map(|v| b.place(v, &placed)).collect::<Result<Vec<_>>>()?;
        let graph = b.finish(refs);
        check_extents(&graph)?;
        Ok(Program(Arc::new(Inner {
            digest: digest(&graph),
            inputs: inputs.iter().map(Var::aval).collect(),
            outputs: outputs.iter().map(Var::aval).collect(),
            graph,
            pool: Pool::default(),
        })))
    }

    /// The program that computes `outputs` from all the placeholders they depend on, in the order of
    /// creation.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_outputs(outputs: &[Var]) -> Result<Program> {
        let calls = program(outputs);
        let inputs: Vec<Var> = (calls.into_iter())
            .filter(|c| matches!(c.source(), Traced::Input))
            .map(|c| Var::Later(c, 0))
            .collect();
        Program::new(&inputs, outputs)
    }

    /// The outputs for the inputs `x`, in order, each in a buffer of its own.
    ///
    /// # Errors
    /// [`Error::Argument`], [`Error::DType`], [`Error::Rank`], [`Error::Shape`] or [`Error::Placement`] for
    /// inputs that do not fit, naming the input; [`Error::Guard`] for extents the trace took to be equal that
    /// are not; and what a kernel reports.
    pub fn run(&self, backend: &mut (impl Target + ?Sized), x: &[&Tensor]) -> Result<Vec<Tensor>> {
        self.run_on(backend.backend(), x)
    }

    /// [`run`](Self::run) on a shared backend; runs may overlap.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_on(&self, backend: &dyn Backend, x: &[&Tensor]) -> Result<Vec<Tensor>> {
        let mut idle = self.0.pool.take(&self.0.graph, backend)?;
        let outputs = with_backend(backend, || idle.state.run(backend, x))?;
        self.0.pool.give(idle);
        Ok(outputs)
    }

    /// Dtypes and extents of the inputs.
    pub fn inputs(&self) -> &[Aval<Dim>] {
        &self.0.inputs
    }

    /// Dtypes and extents of the outputs.
    pub fn outputs(&self) -> &[Aval<Dim>] {
        &self.0.outputs
    }

    /// The optimised program as text: a line per call with its extents, floating-point operations and bytes
    /// read and written, and the steps of fused groups.
    pub fn explain(&self) -> String {
        explain::explain(&fuse::fuse(&self.0.graph, |_, _, _| true))
    }

    /// A hash of the calls, their parameters and their constants: equal for equal programs over the same
    /// constants, in this process.
    pub fn digest(&self) -> u128 {
        self.0.digest
    }
}

/// By [`digest`](Program::digest).
impl PartialEq for Program {
    fn eq(&self, o: &Program) -> bool {
        self.digest() == o.digest()
    }
}
impl Eq for Program {}
impl Hash for Program {
    fn hash<H: Hasher>(&self, h: &mut H) {
        self.digest().hash(h)
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.explain())
    }
}

fn digest(g: &Graph) -> u128 {
    let mut h = Digest::default();
    for node in &g.nodes {
        match &node.source {
            Source::Input => node.y[0].hash(&mut h),
            Source::Constant(_, identity) => h.write_u128(*identity),
            Source::Op(op) => op.digest(&mut h),
        }
        node.x.hash(&mut h);
    }
    (&g.inputs, &g.outputs).hash(&mut h);
    h.finish128()
}

/// Every symbol that an operation is parametrised by is the extent of an input or decided by a call before
/// it.
fn check_extents(g: &Graph) -> Result<()> {
    let mut known: HashSet<&Atom> = g.definitions.iter().map(|d| &d.atom).collect();
    let extents = || g.inputs.iter().flat_map(|&i| &g.nodes[i as usize].y[0].shape);
    known.extend(extents().filter_map(Dim::as_atom));
    let mut missing = None;
    let mut look = |a: &Atom| {
        if missing.is_none() && matches!(a, Atom::Symbol(_) | Atom::Data { .. }) && !known.contains(a) {
            missing = Some(a.clone());
        }
    };
    extents().for_each(|d| d.for_each_atom(&mut look));
    g.nodes.iter().for_each(|n| for_each_atom(n, &mut look));
    match missing {
        Some(a) => {
            let expected = "the extent of an input or of a result in this program (`compile_with` keeps inputs that \
                            nothing is computed from)";
            Err(Error::guard("compile", "extent", a, expected))
        }
        None => Ok(()),
    }
}
