//! Small calls whose result lives and dies in the program: the kernel is prepared for the very shapes and strides,
//! and the result keeps its buffer from run to run.

use super::{
    lower::{Arg, Instruction, Lowered, Step},
    run::State,
};
use smallvec::SmallVec;
use tenferro_core_ops::Coming;
use tenferro_tensor::{Result, Tensor, UninitTensor};

impl State {
    /// Prepares a kernel whose one result, like its operands, is not handed out.
    pub(super) fn prepare(&mut self, program: &Lowered, k: usize, i: &Instruction) {
        let slot = (i.y - program.first_slot) as usize;
        let Step::Kernel(kernel) = &i.step else { return };
        let op = self.inferred[k].op.as_ref().unwrap_or(&i.op);
        let prepared = i.inner.then_some(kernel).and_then(|kernel| {
            let coming = |a: &Arg| {
                let place = &self.places[a.value as usize];
                let strides = place.layout.as_ref().filter(|l| !l.is_col_major_contiguous());
                Coming { aval: &self.avals[a.value as usize], strides: strides.map(|l| l.strides()) }
            };
            let x: SmallVec<[Coming<'_>; 4]> = i.x.iter().map(coming).collect();
            kernel.prepare(&**op, &x, &self.avals[i.y as usize])
        });
        self.stays[slot] = prepared.is_some();
        self.slots[slot] = None;
        self.inferred[k].prepared = prepared;
    }

    /// Runs the prepared kernel of an instruction; false if there is none.
    #[inline]
    pub(super) fn run_prepared(
        &mut self,
        program: &Lowered,
        x: &[&Tensor],
        k: usize,
        i: &Instruction,
    ) -> Result<bool> {
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
        to: UninitTensor,
    ) -> Result<Tensor> {
        let from = i.x.iter().map(|a| self.read(program, x, a.value)?.host_byte_ptr());
        let prepared = self.inferred[k].prepared.as_ref().expect("the caller looked");
        // SAFETY: the operands have the avals and places that the kernel was prepared for, since any change of
        // those prepares it again; the result has its aval, and its buffer, which is unique, is theirs alone.
        unsafe { prepared.run(from, to) }
    }
}
