//! Plans carried out on exact integers by their axes alone, against the definition of an einsum.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A tensor of integers, column-major: exact, so that any order of summation gives the same.
#[derive(Clone, PartialEq, Debug)]
struct Dense {
    shape: Vec<usize>,
    data: Vec<i64>,
}

impl Dense {
    fn from_fn(shape: &[usize], mut f: impl FnMut(&[usize]) -> i64) -> Dense {
        let mut data = Vec::new();
        let mut index = vec![0; shape.len()];
        for _ in 0..shape.iter().product() {
            data.push(f(&index));
            for (i, extent) in index.iter_mut().zip(shape) {
                *i += 1;
                if *i < *extent {
                    break;
                }
                *i = 0;
            }
        }
        Dense { shape: shape.to_vec(), data }
    }

    fn offset(&self, index: &[usize]) -> usize {
        index.iter().zip(&self.shape).rev().fold(0, |offset, (i, extent)| offset * extent + i)
    }

    fn at(&self, index: &[usize]) -> i64 {
        self.data[self.offset(index)]
    }

    fn random(shape: &[usize], seed: &mut u64) -> Dense {
        Dense::from_fn(shape, |_| {
            *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (*seed >> 33) as i64 % 7 - 3
        })
    }

    fn dot(&self, other: &Dense) -> i64 {
        assert_eq!(self.shape, other.shape);
        self.data.iter().zip(&other.data).map(|(a, b)| a * b).sum()
    }

    /// Sums over `axes`.
    fn sum(&self, axes: &[usize], cost: &mut Cost) -> Dense {
        if axes.is_empty() {
            return self.clone();
        }
        let kept: Vec<usize> = (0..self.shape.len()).filter(|axis| !axes.contains(axis)).collect();
        let shape: Vec<usize> = kept.iter().map(|axis| self.shape[*axis]).collect();
        let mut out = Dense::from_fn(&shape, |_| 0);
        Dense::from_fn(&self.shape, |index| {
            let at = out.offset(&kept.iter().map(|axis| index[*axis]).collect::<Vec<_>>());
            out.data[at] += self.at(index);
            cost.flops += 1;
            0
        });
        cost.written += out.data.len();
        out
    }

    /// What the axes of a [`Rearrange`] say, in its order.
    fn rearrange(&self, by: &Rearrange, cost: &mut Cost) -> Dense {
        let mut x = self.clone();
        for (a, b) in &by.diagonals {
            assert_eq!(x.shape[*a], x.shape[*b]);
            let mut shape = x.shape.clone();
            let extent = shape.remove(*b);
            shape.remove(*a);
            shape.push(extent);
            x = Dense::from_fn(&shape, |index| {
                let (i, rest) = index.split_last().unwrap();
                let mut index = rest.to_vec();
                index.insert(*a, *i);
                index.insert(*b, *i);
                x.at(&index)
            });
        }
        x = x.sum(&by.sums, cost);
        match &by.permutation {
            None => x,
            Some(permutation) => {
                let shape: Vec<usize> = permutation.iter().map(|axis| x.shape[*axis]).collect();
                Dense::from_fn(&shape, |index| {
                    let mut source = vec![0; index.len()];
                    permutation.iter().zip(index).for_each(|(axis, i)| source[*axis] = *i);
                    x.at(&source)
                })
            }
        }
    }
}

/// What is counted while a plan is carried out.
#[derive(Default)]
struct Cost {
    flops: usize,
    written: usize,
    largest: usize,
}

/// `Σ_contracting lhs · rhs` with axes lhs free, rhs free, batch, from the axes alone.
fn dot_general(x: &Dense, y: &Dense, contracting: [&Axes; 2], batch: [&Axes; 2], cost: &mut Cost) -> Dense {
    let free = |t: &Dense, side: usize| -> Vec<usize> {
        let taken = |axis: &usize| contracting[side].contains(axis) || batch[side].contains(axis);
        (0..t.shape.len()).filter(|axis| !taken(axis)).collect()
    };
    let (lhs_free, rhs_free) = (free(x, 0), free(y, 1));
    let lhs_axes = lhs_free.iter().chain(batch[0]);
    let mut shape: Vec<usize> = lhs_free.iter().map(|axis| x.shape[*axis]).collect();
    shape.extend(rhs_free.iter().map(|axis| y.shape[*axis]));
    shape.extend(batch[0].iter().map(|axis| x.shape[*axis]));
    assert_eq!(lhs_axes.count() + rhs_free.len(), shape.len());
    let inner: Vec<usize> = contracting[0].iter().map(|axis| x.shape[*axis]).collect();
    Dense::from_fn(&shape, |index| {
        let (mut i, mut j) = (vec![0; x.shape.len()], vec![0; y.shape.len()]);
        let (left, rest) = index.split_at(lhs_free.len());
        let (right, both) = rest.split_at(rhs_free.len());
        lhs_free.iter().zip(left).for_each(|(axis, at)| i[*axis] = *at);
        rhs_free.iter().zip(right).for_each(|(axis, at)| j[*axis] = *at);
        batch[0].iter().zip(both).for_each(|(axis, at)| i[*axis] = *at);
        batch[1].iter().zip(both).for_each(|(axis, at)| j[*axis] = *at);
        let mut total = 0;
        Dense::from_fn(&inner, |inner| {
            contracting[0].iter().zip(inner).for_each(|(axis, at)| i[*axis] = *at);
            contracting[1].iter().zip(inner).for_each(|(axis, at)| j[*axis] = *at);
            total += x.at(&i) * y.at(&j);
            cost.flops += if inner.is_empty() { 1 } else { 2 };
            0
        });
        total
    })
}

fn multiply(x: &Dense, y: &Dense, x_axes: &Axes, y_axes: &Axes, cost: &mut Cost) -> Dense {
    let mut shape = vec![usize::MAX; x_axes.len().max(y_axes.len())];
    for (axes, t) in [(x_axes, x), (y_axes, y)] {
        for (axis, extent) in axes.iter().zip(&t.shape) {
            shape.resize(shape.len().max(axis + 1), usize::MAX);
            shape[*axis] = *extent;
        }
    }
    Dense::from_fn(&shape, |index| {
        let pick = |axes: &Axes| axes.iter().map(|axis| index[*axis]).collect::<Vec<_>>();
        cost.flops += 1;
        x.at(&pick(x_axes)) * y.at(&pick(y_axes))
    })
}

/// Runs a plan by its axes, checking that every number is used once, and counts.
fn run(plan: &Plan, operands: &[Dense]) -> (Dense, Cost) {
    let mut cost = Cost::default();
    let mut slots: Vec<Option<Dense>> = operands.iter().cloned().map(Some).collect();
    for step in plan.steps() {
        let x = slots[step.lhs.slot].take().unwrap().rearrange(&step.lhs.prepare, &mut cost);
        let y = slots[step.rhs.slot].take().unwrap().rearrange(&step.rhs.prepare, &mut cost);
        let z = match &step.kind {
            Kind::Dot(dot) => {
                let contracting = [&dot.lhs_contract, &dot.rhs_contract];
                dot_general(&x, &y, contracting, [&dot.lhs_batch, &dot.rhs_batch], &mut cost)
            }
            Kind::Multiply { lhs_axes, rhs_axes } => multiply(&x, &y, lhs_axes, rhs_axes, &mut cost),
        };
        cost.written += z.data.len();
        cost.largest = cost.largest.max(z.data.len());
        slots.push(Some(z));
    }
    let last = slots.pop().flatten().unwrap();
    assert!(slots.iter().all(Option::is_none));
    let before = cost.written;
    let mut y = last.rearrange(plan.finish(), &mut cost);
    if let Some(embed) = plan.embed() {
        let shape: Vec<usize> =
            embed.input.iter().map(|l| y.shape[embed.output.iter().position(|m| m == l).unwrap()]).collect();
        y = Dense::from_fn(&shape, |index| {
            let at = |label: &u32| {
                let mut axes = index.iter().zip(&embed.input).filter(|(_, l)| *l == label).map(|(i, _)| *i);
                let first = axes.next().unwrap();
                axes.all(|i| i == first).then_some(first)
            };
            let index: Option<Vec<usize>> = embed.output.iter().map(at).collect();
            index.map_or(0, |index| y.at(&index))
        });
    }
    // A view of an operand, or a permutation, is copied into the output.
    let fresh = before != cost.written || !plan.steps().is_empty();
    if plan.embed().is_some() || plan.finish().permutation.is_some() || !fresh {
        cost.written += y.data.len();
    }
    cost.largest = cost.largest.max(y.data.len());
    (y, cost)
}

/// The definition: loops over all labels.
fn direct(notation: &Notation, operands: &[Dense], extents: &BTreeMap<u32, usize>) -> Dense {
    let of = |labels: &[u32]| labels.iter().map(|label| extents[label]).collect::<Vec<_>>();
    let labels = notation.output().iter().chain(notation.inputs().iter().flatten());
    let all = distinct(&labels.copied().collect::<Labels>());
    let mut out = Dense::from_fn(&of(notation.output()), |_| 0);
    Dense::from_fn(&of(&all), |index| {
        let pick = |labels: &[u32]| -> Vec<usize> {
            labels.iter().map(|l| index[all.iter().position(|x| x == l).unwrap()]).collect()
        };
        let factors = notation.inputs().iter().zip(operands);
        let at = out.offset(&pick(notation.output()));
        out.data[at] += factors.map(|(labels, x)| x.at(&pick(labels))).product::<i64>();
        0
    });
    out
}

#[derive(Clone, Debug)]
struct Case {
    notation: Notation,
    extents: BTreeMap<u32, usize>,
    operands: Vec<Dense>,
    seed: u64,
}

impl Case {
    fn new(inputs: &[Vec<u32>], output: &[u32], extents: &[usize], mut seed: u64) -> Case {
        let inputs: Vec<&[u32]> = inputs.iter().map(Vec::as_slice).collect();
        let notation = Notation::new(&inputs, output).unwrap();
        let extents: BTreeMap<u32, usize> = (0..).zip(extents.iter().copied()).collect();
        let shape = |x: &Labels| x.iter().map(|label| extents[label]).collect::<Vec<_>>();
        let operands = notation.inputs().iter().map(|x| Dense::random(&shape(x), &mut seed)).collect();
        Case { notation, extents, operands, seed }
    }

    fn plan(&self, optimize: Optimize) -> Plan {
        Plan::new(&self.notation, |label| self.extents[&label] as f64, &optimize).unwrap()
    }

    fn direct(&self) -> Dense {
        direct(&self.notation, &self.operands, &self.extents)
    }
}

const LABELS: u32 = 7;

fn case() -> impl Strategy<Value = Case> {
    let operand = prop::collection::vec(0..LABELS, 0..5);
    let inputs = prop::collection::vec(operand, 1..6);
    let extents = prop::collection::vec(prop_oneof![1 => Just(0_usize), 19 => 1_usize..4], LABELS as usize);
    let output = (Just((0..LABELS).collect::<Vec<_>>()).prop_shuffle(), 0..=LABELS as usize, 0..4);
    (inputs, output, extents, any::<u64>()).prop_map(|(inputs, (order, rank, again), extents, seed)| {
        let known = order.into_iter().filter(|label| inputs.iter().any(|x| x.contains(label)));
        let mut output: Vec<u32> = known.take(rank).collect();
        if let (Some(label), 1) = (output.first(), again) {
            output.push(*label);
        }
        Case::new(&inputs, &output, &extents, seed)
    })
}

fn any_path(n: usize, mut seed: u64) -> Optimize {
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % below
    };
    let pair = |n: usize| {
        let i = next(n);
        (i, (i + 1 + next(n - 1)) % n)
    };
    Optimize::path((2..=n).rev().map(pair))
}

proptest! {
    #![proptest_config(tenferro_cases::cases(150))]

    #[test]
    fn plans_compute_the_einsum(case in case()) {
        let expected = case.direct();
        let path = any_path(case.operands.len(), case.seed);
        for optimize in [Optimize::Auto, Optimize::Greedy, path] {
            let plan = case.plan(optimize);
            let (y, counted) = run(&plan, &case.operands);
            prop_assert_eq!(&y, &expected);
            let stated = [plan.flops(), plan.elements_written(), plan.largest_intermediate()];
            prop_assert_eq!(stated, [counted.flops, counted.written, counted.largest].map(|n| n as f64));
        }
    }

    #[test]
    fn only_a_permutation_is_left_after_the_steps(case in case()) {
        let plan = case.plan(Optimize::Auto);
        prop_assert_eq!(plan.steps().len() + 1, case.operands.len());
        prop_assert_eq!(plan.path().len() + 1, case.operands.len());
        if !plan.steps().is_empty() {
            prop_assert!(plan.finish().diagonals.is_empty() && plan.finish().sums.is_empty());
        }
        let again = case.plan(Optimize::path(plan.path().iter().copied()));
        prop_assert_eq!(again, plan);
    }

    #[test]
    fn transposes_are_adjoint(case in case()) {
        let mut seed = case.seed;
        let y = case.direct();
        let ct = Dense::random(&y.shape, &mut seed);
        for (i, x) in case.operands.iter().enumerate() {
            let transpose = case.notation.transpose(i).unwrap();
            let mut operands = case.operands.clone();
            operands[i] = ct.clone();
            let inner = direct(&transpose.notation, &operands, &case.extents);
            let axes = transpose.broadcast_axes();
            let shape: Vec<usize> =
                transpose.embed.output.iter().map(|label| case.extents[label]).collect();
            let wide = Dense::from_fn(&shape, |index| {
                inner.at(&axes.iter().map(|axis| index[*axis]).collect::<Vec<_>>())
            });
            // <embed(wide), x> = <wide, extract(x)>: embedding is the adjoint of taking the diagonals.
            let taken = x.rearrange(&transpose.embed, &mut Cost::default());
            prop_assert_eq!(ct.dot(&y), wide.dot(&taken));
            prop_assert!(transpose.embed.sums.is_empty());
        }
    }

    #[test]
    fn auto_finds_the_fewest_flops(case in case()) {
        prop_assume!(case.extents.values().all(|extent| *extent > 0));
        let mut least = f64::INFINITY;
        let mut paths = vec![vec![]];
        while let Some(path) = paths.pop() {
            let left = case.operands.len() - path.len();
            if left == 1 {
                least = least.min(case.plan(Optimize::path(path)).flops());
            } else {
                let pairs = (0..left).flat_map(|j| (0..j).map(move |i| (i, j)));
                paths.extend(pairs.map(|pair| path.iter().copied().chain([pair]).collect()));
            }
        }
        prop_assert_eq!(case.plan(Optimize::Auto).flops(), least);
    }
}

fn plan(text: &str, extent: usize) -> Plan {
    Plan::new(&text.parse().unwrap(), |_| extent as f64, &Optimize::Auto).unwrap()
}

#[test]
fn layouts_that_fit_need_no_permutation() {
    for text in [
        "ij,jk->ik",
        "ij,jk->ki",
        "ji,jk->ik",
        "ijb,jkb->ikb",
        "ijb,jkb->kib",
        "ij,j->i",
        "j,ij->i",
        "i,i->i",
        "i,ij->ij",
        "bi,bj->bij",
        "i,j->ji",
        "ij,jk,kl->il",
        "ij,jk,kl->li",
        "abc,cd->abd",
        "aibj,cd->cdaibj",
    ] {
        let plan = plan(text, 4);
        assert!(plan.finish().is_identity(), "{text}: {plan:#?}");
        for operand in plan.steps().iter().flat_map(|step| [&step.lhs, &step.rhs]) {
            assert!(operand.prepare.is_identity(), "{text}: {plan:#?}");
        }
    }
}

#[test]
fn interleaved_groups_leave_a_permutation() {
    let plan = plan("bij,bjk->bik", 4);
    assert_eq!(plan.steps()[0].notation().to_string(), "bij,bjk->ikb");
    assert_eq!(plan.finish().permutation.as_deref(), Some(&[2, 0, 1][..]));
}

#[test]
fn a_plan_states_its_cost() {
    let sizes = [30.0, 35.0, 15.0, 5.0, 10.0, 20.0, 25.0];
    let chain = "ab,bc,cd,de,ef,fg->ag".parse().unwrap();
    // Cormen et al., Introduction to Algorithms, section on matrix-chain multiplication: 15,125
    // multiplications in the order (a(bc))((de)f).
    let best = Plan::new(&chain, |label| sizes[label as usize], &Optimize::Auto).unwrap();
    assert_eq!((best.flops(), best.largest_intermediate()), (2.0 * 15125.0, 750.0));
    assert_eq!(best.elements_written(), 35.0 * 5.0 + 30.0 * 5.0 + 5.0 * 20.0 + 5.0 * 25.0 + 750.0);
    let trace = plan("ii->", 4);
    assert_eq!((trace.flops(), trace.largest_intermediate(), trace.steps().len()), (4.0, 1.0, 0));
    assert!(trace.path().is_empty());
}

#[test]
fn paths_that_are_none_are_errors() {
    let chain = "ab,bc,cd->ad".parse().unwrap();
    let message = |path: &[(usize, usize)]| {
        Plan::new(&chain, |_| 2.0, &Optimize::path(path.iter().copied())).unwrap_err().to_string()
    };
    assert!(message(&[(0, 1)]).contains("operands that the path leaves: got 2, expected 1"));
    assert!(
        message(&[(0, 1), (1, 1)]).contains("step 1 of the path: got (1, 1), expected distinct positions")
    );
    assert!(
        message(&[(0, 3), (0, 1)]).contains("step 0 of the path: got (0, 3), expected distinct positions")
    );
    let many = vec![&[0_u32][..]; 17];
    let many = Notation::new(&many, &[]).unwrap();
    let error = Plan::new(&many, |_| 2.0, &Optimize::Optimal).unwrap_err().to_string();
    assert!(error.contains("got 17, expected at most 16"), "{error}");
}

#[test]
fn a_plan_reports_its_steps() {
    let plan = plan("ij,jk,kl->il", 4);
    assert_eq!(
        plan.to_string(),
        "[3] = ij,jk->ik([0], [1]): 128 flops, 16 elements\n\
         [4] = ik,kl->il([3], [2]): 128 flops, 16 elements\n\
         total: 256 flops, 32 elements written, largest intermediate 16 elements"
    );
}
