//! Chains of views against a list of positions: whatever is done to a view, element `i` is a stated
//! element of the owner; parts of a mutable view never meet; and no numbers make a layout panic.

use proptest::prelude::*;
use tenferro_cases::{Draw, cases};
use tenferro_tensor::{
    Layout, Result, SliceItem, SliceSpec, Tensor, TensorView, TypedTensor, TypedTensorViewMut,
};

/// Extents below `end` of a shape with at most `most` elements.
fn some_shape(d: &mut Draw, rank: usize, end: usize, most: usize) -> Vec<usize> {
    let mut len = 1;
    let shape: Vec<usize> = (0..rank)
        .map(|_| {
            // Zeros are few: nothing is to be seen behind one.
            let n = if d.below(30) == 0 { 0 } else { 1 + d.below(end - 1) };
            let n = if len * n > most { 1 } else { n };
            len *= n.max(1);
            n
        })
        .collect();
    // The large extents are not the first ones only.
    d.permutation(rank).iter().map(|&axis| shape[axis]).collect()
}

/// What can be done to a view.
#[derive(Clone, Debug)]
enum Step {
    Slice(Vec<usize>, Vec<usize>, Vec<isize>),
    Spec(SliceSpec),
    Transpose(Vec<usize>),
    Reverse(Vec<usize>),
    Diagonal(usize, usize),
    Reshape(Vec<usize>),
    Broadcast(Vec<usize>, Vec<usize>),
}

/// Most elements of a view.
const MOST: usize = 512;

impl Step {
    fn draw(d: &mut Draw, shape: &[usize], may_repeat: bool) -> Step {
        let rank = shape.len();
        let len: usize = shape.iter().product();
        match d.below(if may_repeat { 8 } else { 7 }) {
            0 => {
                let bounds: Vec<(usize, usize)> = shape.iter().map(|&n| Step::range(d, n)).collect();
                let steps = shape.iter().map(|_| d.pick(&[1, 1, 1, -1, 2, -2, 3, isize::MAX, isize::MIN]));
                let steps = steps.collect();
                Step::Slice(bounds.iter().map(|b| b.0).collect(), bounds.iter().map(|b| b.1).collect(), steps)
            }
            1 => Step::Spec(Step::spec(d, shape)),
            2 => Step::Transpose(d.permutation(rank)),
            3 => Step::Reverse((0..rank).filter(|_| d.below(2) == 0).collect()),
            4 if rank >= 2 => {
                let axes = d.permutation(rank);
                Step::Diagonal(axes[0], axes[1])
            }
            7 => {
                let more = 1 + d.below(2);
                let places = d.permutation(rank + more);
                let mut target = vec![0; rank + more];
                let mut len = len.max(1);
                for (i, &at) in places.iter().enumerate() {
                    let n = shape.get(i).copied().unwrap_or(1);
                    target[at] = if n == 1 && len <= MOST / 3 { d.below(4) } else { n };
                    len *= if n == 1 { target[at].max(1) } else { 1 };
                }
                Step::Broadcast(target, places[..rank].to_vec())
            }
            _ => {
                let mut left = len;
                let mut target = Vec::new();
                for divisor in [2, 3, 2, 5, 2, 2] {
                    if left > 0 && left.is_multiple_of(divisor) && d.below(3) > 0 {
                        target.push(divisor);
                        left /= divisor;
                    }
                    if d.below(4) == 0 {
                        target.push(1);
                    }
                }
                target.push(left);
                let perm = d.permutation(target.len());
                Step::Reshape(perm.iter().map(|&i| target[i]).collect())
            }
        }
    }

    /// Bounds in order, mostly wide.
    fn range(d: &mut Draw, n: usize) -> (usize, usize) {
        let start = d.below(n / 2 + 1);
        (start, if d.below(3) == 0 { start + d.below(n - start + 1) } else { n })
    }

    fn spec(d: &mut Draw, shape: &[usize]) -> SliceSpec {
        let mut items = Vec::new();
        for &n in &shape[..d.below(shape.len() + 1)] {
            if d.below(6) == 0 {
                items.push(SliceItem::NewAxis);
            }
            let signed = n as isize;
            if n > 0 && d.below(5) == 0 {
                items.push(SliceItem::Index(d.between(-signed, signed - 1)));
            } else {
                let (start, end) = Step::range(d, n);
                // A bound before the end may be counted from there.
                let counted = |d: &mut Draw, at: usize| {
                    let back = at < n && d.below(2) == 0;
                    if back { at as isize - signed } else { at as isize }
                };
                let start = counted(d, start);
                let end = if end == n { None } else { Some(counted(d, end)) };
                items.push(SliceItem::Range { start, end, step: d.pick(&[1, 1, 2, -1, -3]) });
            }
        }
        items.into_iter().collect()
    }

    /// `None` where a reshape needs a copy.
    fn of_layout(&self, x: &Layout) -> Result<Option<Layout>> {
        match self {
            Step::Slice(starts, limits, steps) => x.slice("t", starts, limits, steps).map(Some),
            Step::Spec(spec) => x.slice_spec("t", spec.as_ref()).map(Some),
            Step::Transpose(perm) => x.transpose("t", perm).map(Some),
            Step::Reverse(axes) => x.reverse("t", axes).map(Some),
            Step::Diagonal(a, b) => x.diagonal("t", *a, *b).map(Some),
            Step::Reshape(shape) => x.reshape("t", shape),
            Step::Broadcast(shape, dims) => x.broadcast("t", shape, dims).map(Some),
        }
    }
}

/// A shape, and which element of the owner each element is, axis 0 fastest.
#[derive(Clone, Debug)]
struct Model {
    shape: Vec<usize>,
    at: Vec<usize>,
}

/// The indices that a slice takes of an axis.
fn taken(start: usize, limit: usize, step: isize) -> Vec<usize> {
    let all = start..limit;
    if step > 0 {
        all.step_by(step.unsigned_abs()).collect()
    } else {
        all.rev().step_by(step.unsigned_abs()).collect()
    }
}

impl Model {
    fn whole(shape: &[usize]) -> Model {
        Model { shape: shape.to_vec(), at: (0..shape.iter().product()).collect() }
    }

    /// Of `shape`, with the elements at the indices of this one that `source` writes for each index.
    fn of(&self, shape: Vec<usize>, mut source: impl FnMut(&[usize], &mut [usize])) -> Model {
        let len: usize = shape.iter().product();
        let (mut index, mut from) = (vec![0; shape.len()], vec![0; self.shape.len()]);
        let mut at = Vec::with_capacity(len);
        for k in 0..len {
            let mut k = k;
            for (i, n) in index.iter_mut().zip(&shape) {
                *i = k % n;
                k /= n;
            }
            source(&index, &mut from);
            let flat = from.iter().zip(&self.shape).rev().fold(0, |flat, (i, n)| flat * n + i);
            at.push(self.at[flat]);
        }
        Model { shape, at }
    }

    fn after(&self, step: &Step) -> Model {
        let rank = self.shape.len();
        match step {
            Step::Slice(starts, limits, steps) => {
                let picks: Vec<_> = (0..rank).map(|a| taken(starts[a], limits[a], steps[a])).collect();
                let shape = picks.iter().map(Vec::len).collect();
                self.of(shape, |i, from| (0..rank).for_each(|a| from[a] = picks[a][i[a]]))
            }
            Step::Spec(spec) => {
                let (mut picks, mut shape, mut whence) = (Vec::new(), Vec::new(), Vec::new());
                let rest = std::iter::repeat(&SliceItem::Range { start: 0, end: None, step: 1 });
                for item in spec.as_ref().iter().chain(rest) {
                    if *item == SliceItem::NewAxis {
                        shape.push(1);
                        continue;
                    }
                    let Some(&n) = self.shape.get(picks.len()) else { break };
                    let place = |i: isize| if i < 0 { (n as isize + i) as usize } else { i as usize };
                    match *item {
                        SliceItem::Index(i) => {
                            whence.push(None);
                            picks.push(vec![place(i)]);
                        }
                        SliceItem::Range { start, end, step } => {
                            whence.push(Some(shape.len()));
                            picks.push(taken(place(start), end.map_or(n, place), step));
                            shape.push(picks.last().map_or(0, Vec::len));
                        }
                        SliceItem::NewAxis => unreachable!("seen above"),
                    }
                }
                self.of(shape, |i, from| {
                    (0..rank).for_each(|a| from[a] = picks[a][whence[a].map_or(0, |at| i[at])]);
                })
            }
            Step::Transpose(perm) => {
                let shape = perm.iter().map(|&axis| self.shape[axis]).collect();
                self.of(shape, |i, from| perm.iter().zip(i).for_each(|(&axis, &i)| from[axis] = i))
            }
            Step::Reverse(axes) => self.of(self.shape.clone(), |i, from| {
                from.copy_from_slice(i);
                axes.iter().for_each(|&a| from[a] = self.shape[a] - 1 - i[a]);
            }),
            Step::Diagonal(a, b) => {
                let kept: Vec<usize> = (0..rank).filter(|axis| axis != a && axis != b).collect();
                let mut shape: Vec<usize> = kept.iter().map(|&axis| self.shape[axis]).collect();
                shape.push(self.shape[*a].min(self.shape[*b]));
                self.of(shape, |i, from| {
                    kept.iter().zip(i).for_each(|(&axis, &i)| from[axis] = i);
                    (from[*a], from[*b]) = (i[kept.len()], i[kept.len()]);
                })
            }
            Step::Reshape(shape) => Model { shape: shape.clone(), at: self.at.clone() },
            Step::Broadcast(shape, dims) => self.of(shape.clone(), |i, from| {
                (0..rank).for_each(|a| from[a] = if self.shape[a] == 1 { 0 } else { i[dims[a]] });
            }),
        }
    }
}

/// The layout has the model's shape, elements and properties.
fn check(layout: &Layout, model: &Model, owner: &TypedTensor<i32>) -> std::result::Result<(), TestCaseError> {
    prop_assert_eq!(layout.shape(), &model.shape[..]);
    prop_assert_eq!(layout.len(), model.at.len());
    prop_assert_eq!(layout.is_empty(), model.at.is_empty());
    let view = TensorView::new(owner.as_tensor(), layout.clone()).expect("inside the owner");
    let view = view.typed::<i32>().expect("of this dtype");
    let want: Vec<i32> = model.at.iter().map(|&at| at as i32).collect();
    prop_assert_eq!(view.iter().unwrap().copied().collect::<Vec<_>>(), &want[..]);
    let copy = view.to_tensor().unwrap();
    prop_assert_eq!(copy.as_slice().unwrap(), &want[..]);
    let consecutive = model.at.windows(2).all(|w| w[1] == w[0] + 1);
    prop_assert_eq!(layout.is_col_major_contiguous(), consecutive, "{:?}", layout);
    match view.as_slice() {
        Ok(slice) => prop_assert_eq!(slice, &want[..]),
        Err(_) => prop_assert!(!consecutive),
    }
    if let (Some(&min), Some(&max)) = (model.at.iter().min(), model.at.iter().max()) {
        prop_assert_eq!(layout.span(), (min, max));
        prop_assert!(layout.fits(max + 1) && !layout.fits(max));
    }
    if layout.is_injective() {
        let mut seen = model.at.clone();
        seen.sort_unstable();
        prop_assert!(seen.windows(2).all(|w| w[0] < w[1]), "repeats an element");
    }
    Ok(())
}

/// Shapes: small ones of up to 8 axes, and up to 30 short axes.
fn start(d: &mut Draw) -> Vec<usize> {
    match d.below(4) {
        0 => {
            let rank = d.below(31);
            some_shape(d, rank, 3, MOST)
        }
        _ => {
            let rank = d.below(9);
            some_shape(d, rank, 5, MOST)
        }
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn every_chain_of_views_has_the_elements_it_says(seed: u64, steps in 1_usize..10) {
        let d = &mut Draw(seed);
        let shape = start(d);
        let len: usize = shape.iter().product();
        let owner = TypedTensor::<i32>::from_vec_col_major(shape.clone(), (0..len as i32).collect()).unwrap();
        let (mut layout, mut model) = (Layout::contiguous(&shape), Model::whole(&shape));
        check(&layout, &model, &owner)?;
        for _ in 0..steps {
            let step = Step::draw(d, layout.shape(), true);
            if let Some(next) = step.of_layout(&layout).unwrap() {
                (layout, model) = (next, model.after(&step));
                check(&layout, &model, &owner).map_err(|e| TestCaseError::fail(format!("{step:?}: {e}")))?;
            } else {
                prop_assert!(!layout.is_col_major_contiguous());
            }
        }
    }

    #[test]
    fn parts_of_mutable_views_never_meet(seed: u64, steps in 1_usize..12) {
        let d = &mut Draw(seed);
        let shape = start(d);
        let mut owner = TypedTensor::<i32>::zeros(shape.clone()).unwrap();
        let mut want = vec![0; owner.len()];
        let mut parts: Vec<(TypedTensorViewMut<i32>, Model)> =
            vec![(owner.as_view_mut().unwrap(), Model::whole(&shape))];
        for _ in 0..steps {
            let chosen = d.below(parts.len());
            let (part, model) = parts.swap_remove(chosen);
            match d.below(3) {
                0 if part.rank() > 0 => {
                    let axis = d.below(part.rank());
                    let n = part.shape()[axis];
                    let at = d.below(n + 1);
                    let (before, after) = part.split_at(axis, at).unwrap();
                    for (part, from, to) in [(before, 0, at), (after, at, n)] {
                        let (mut starts, mut limits) = (vec![0; part.rank()], model.shape.clone());
                        (starts[axis], limits[axis]) = (from, to);
                        let model = model.after(&Step::Slice(starts, limits, vec![1; part.rank()]));
                        parts.push((part, model));
                    }
                }
                1 => {
                    let specs: Vec<SliceSpec> =
                        (0..1 + d.below(3)).map(|_| Step::spec(d, part.shape())).collect();
                    let models: Vec<Model> =
                        specs.iter().map(|s| model.after(&Step::Spec(s.clone()))).collect();
                    let mut all: Vec<usize> = models.iter().flat_map(|m| m.at.iter().copied()).collect();
                    all.sort_unstable();
                    let disjoint = all.windows(2).all(|w| w[0] < w[1]);
                    match part.slices_mut(&specs) {
                        Ok(views) => {
                            prop_assert!(disjoint, "{:?}", specs);
                            parts.extend(views.into_iter().zip(models));
                        }
                        Err(_) => prop_assert!(!disjoint, "{:?}", specs),
                    }
                }
                _ => {
                    let step = Step::draw(d, part.shape(), false);
                    if step.of_layout(part.layout()).unwrap().is_none() {
                        parts.push((part, model));
                        continue;
                    }
                    let part = match &step {
                        Step::Slice(starts, limits, steps) => part.slice_view(starts, limits, steps),
                        Step::Spec(spec) => part.slice(spec),
                        Step::Transpose(perm) => part.transpose_view(perm),
                        Step::Reverse(axes) => part.reverse_view(axes),
                        Step::Diagonal(a, b) => part.diagonal_view(*a, *b),
                        Step::Reshape(shape) => part.reshape_view(shape),
                        Step::Broadcast(..) => unreachable!("not drawn"),
                    };
                    parts.push((part.unwrap(), model.after(&step)));
                }
            }
            if parts.is_empty() {
                break;
            }
        }
        // Each part writes marks of its own, in its own way.
        for (k, (part, model)) in parts.iter_mut().enumerate() {
            prop_assert_eq!(part.shape(), &model.shape[..]);
            let mark = |i: usize| (1000 * (k + 1) + i) as i32;
            for (i, &at) in model.at.iter().enumerate() {
                prop_assert_eq!(want[at], 0, "the element of two parts");
                want[at] = mark(i);
            }
            let marks: Vec<i32> = (0..model.at.len()).map(mark).collect();
            let source = TypedTensor::<i32>::from_vec_col_major(model.shape.clone(), marks.clone()).unwrap();
            match k % 3 {
                0 => part.assign(&source.as_view()).unwrap(),
                1 => {
                    let mut next = marks.into_iter();
                    part.update(|x| *x = next.next().unwrap()).unwrap();
                }
                _ => match part.as_slice_mut() {
                    Ok(slice) => slice.copy_from_slice(&marks),
                    Err(_) => part.assign(&source.as_view()).unwrap(),
                },
            }
        }
        for (part, model) in &parts {
            let got: Vec<i32> = part.as_view().iter().unwrap().copied().collect();
            prop_assert_eq!(got, model.at.iter().map(|&at| want[at]).collect::<Vec<_>>());
        }
        drop(parts);
        prop_assert_eq!(owner.as_slice().unwrap(), &want[..]);
    }
}

const EXTENTS: [usize; 12] = [
    0,
    1,
    2,
    3,
    5,
    1 << 32,
    1 << 40,
    0xaaaa_aaaa_aaaa_aaab,
    isize::MAX as usize,
    1 << 63,
    usize::MAX - 1,
    usize::MAX,
];

fn shapes() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(proptest::sample::select(&EXTENTS[..]), 0..6)
}

proptest! {
    #![proptest_config(cases(2000))]

    /// Errors or layouts, never a panic; and what follows from a layout inside a buffer is inside it.
    #[test]
    fn no_numbers_make_a_layout_panic(
        shape in shapes(),
        strides in shapes(),
        offset in 0..EXTENTS.len(),
        seed: u64,
    ) {
        let d = &mut Draw(seed);
        let signed: Vec<isize> =
            strides.iter().map(|&n| (n as isize).wrapping_mul(d.pick(&[1, -1]))).collect();
        let mut layouts = vec![Layout::contiguous(&shape)];
        layouts.extend(Layout::new("t", &shape, &signed, EXTENTS[offset]));
        let owner = TypedTensor::<f32>::zeros([7]).unwrap().into_tensor();
        for _ in 0..8 {
            let x = layouts.last().expect("one at least").clone();
            let rank = x.rank();
            let any = |d: &mut Draw| d.pick(&EXTENTS);
            let axis = |d: &mut Draw| if d.below(10) == 0 { any(d) } else { d.below(rank + 1) };
            let list = |d: &mut Draw, f: &dyn Fn(&mut Draw) -> usize| -> Vec<usize> {
                let n = if d.below(10) == 0 { d.below(7) } else { rank };
                (0..n).map(|_| f(d)).collect()
            };
            let next = match d.below(9) {
                0 => x.transpose("t", &if d.below(2) == 0 { list(d, &axis) } else { d.permutation(rank) }),
                1 | 2 => {
                    let limits: Vec<usize> =
                        x.shape().iter().map(|&n| if d.below(3) == 0 { any(d).min(n) } else { n }).collect();
                    let starts: Vec<usize> =
                        limits.iter().map(|&n| if d.below(2) == 0 { 0 } else { any(d).min(n) }).collect();
                    let steps: Vec<isize> = starts.iter().map(|_| any(d) as isize).collect();
                    x.slice("t", &starts, &limits, &steps)
                }
                3 => x.reverse("t", &if d.below(2) == 0 { list(d, &axis) } else { (0..rank).collect() }),
                4 => x.broadcast("t", &list(d, &any), &list(d, &axis)),
                5 => x.broadcast(
                    "t",
                    &[x.shape(), &[any(d)]].concat(),
                    &(0..rank).collect::<Vec<_>>(),
                ),
                6 => {
                    let target = if d.below(2) == 0 { vec![x.len()] } else { list(d, &any) };
                    x.reshape("t", &target).map(|y| y.unwrap_or_else(|| x.clone()))
                }
                7 => x.diagonal("t", axis(d), axis(d)),
                _ => x.index_axis("t", axis(d), any(d)).or_else(|_| x.insert_axis("t", axis(d))),
            };
            let Ok(next) = next else { continue };
            for len in [0, 1, 7, isize::MAX as usize] {
                prop_assert!(!x.fits(len) || next.fits(len), "{:?} fits {}, {:?} does not", x, len, next);
            }
            let _ = (next.span(), next.is_injective(), next.is_col_major_contiguous(), next.len());
            let _ = (next.offset_of(&vec![0; next.rank()]), next.offset_of(&list(d, &any)));
            if let Ok(view) = TensorView::new(&owner, next.clone()) {
                prop_assert!(next.fits(7));
                let view = view.typed::<f32>().expect("of this dtype");
                let _ = (view.get(&vec![0; next.rank()]), view.iter().map(|mut elements| elements.next()));
            }
            layouts.push(next);
        }
    }

    /// Sizes of tensors that memory cannot have are errors.
    #[test]
    fn no_shape_makes_a_tensor_panic(shape in shapes()) {
        let len = shape.iter().try_fold(1_usize, |len, &n| len.checked_mul(n));
        let empty = shape.contains(&0);
        let small = empty || len.is_some_and(|len| len <= 1 << 10);
        prop_assert_eq!(TypedTensor::<f64>::from_vec_col_major(shape.clone(), vec![]).is_ok(), empty);
        if small || len.is_none_or(|len| len > 1 << 50) {
            prop_assert_eq!(TypedTensor::<f64>::zeros(shape.clone()).is_ok(), small);
            let full = Tensor::full(tenferro_tensor::DType::C64, shape.clone(), tenferro_tensor::C64::ONE);
            prop_assert_eq!(full.is_ok(), small);
        }
        let one = TypedTensor::<f64>::zeros([1]).unwrap();
        prop_assert_eq!(one.as_view().reshape_view(&shape).is_ok(), shape.iter().all(|&n| n == 1));
        if let Ok(huge) = one.as_view().reshape_view([]).unwrap().broadcast_view(&shape, []) {
            prop_assert!(empty || len.is_some());
            if !small {
                // The address space has 47 bits.
                prop_assert!(len.is_some_and(|len| len <= 1 << 40) || huge.to_tensor().is_err());
                prop_assert!(huge.as_slice().is_err());
            }
        }
    }
}
