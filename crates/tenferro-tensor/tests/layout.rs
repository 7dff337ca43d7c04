//! Layouts against the definition: element `i` of the result is a stated element of the input.

use proptest::prelude::*;
use tenferro_tensor::{Error, Layout, TensorView, TypedTensor, Value, s};

/// Every index of a shape, axis 0 fastest.
fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![vec![]], |all, &extent| {
        (0..extent)
            .flat_map(|i| all.iter().map(move |index: &Vec<usize>| [&index[..], &[i]].concat()))
            .collect()
    })
}

fn offsets(layout: &Layout) -> Vec<usize> {
    indices(layout.shape()).iter().map(|i| layout.offset_of(i).expect("an index of the shape")).collect()
}

/// Some layout inside a buffer, with its generating slice of a contiguous tensor transposed.
fn layouts() -> impl Strategy<Value = Layout> {
    proptest::collection::vec(
        (0_usize..5, 0_usize..3, 0_usize..3, prop_oneof![-3_isize..0, 1_isize..4]),
        0..5,
    )
    .prop_perturb(|axes, mut rng| {
        let shape: Vec<usize> = axes.iter().map(|&(n, before, after, _)| n + before + after).collect();
        let starts: Vec<usize> = axes.iter().map(|a| a.1).collect();
        let limits: Vec<usize> = axes.iter().map(|a| a.1 + a.0).collect();
        let steps: Vec<isize> = axes.iter().map(|a| a.3).collect();
        let mut perm: Vec<usize> = (0..axes.len()).collect();
        for i in (1..perm.len()).rev() {
            perm.swap(i, rng.random_range(0..=i));
        }
        let sliced = Layout::contiguous(&shape).slice("t", &starts, &limits, &steps).expect("in range");
        sliced.transpose("t", &perm).expect("a permutation")
    })
}

proptest! {
    #![proptest_config(tenferro_cases::cases(256))]

    #[test]
    fn transpose_permutes_indices(layout in layouts(), shift in 0_usize..5) {
        let rank = layout.rank();
        let perm: Vec<usize> = (0..rank).map(|i| (i + shift) % rank).collect();
        let result = layout.transpose("t", &perm).unwrap();
        for index in indices(result.shape()) {
            let mut source = vec![0; rank];
            perm.iter().zip(&index).for_each(|(&axis, &i)| source[axis] = i);
            prop_assert_eq!(result.offset_of(&index), layout.offset_of(&source));
        }
    }

    #[test]
    fn slice_takes_every_step_from_its_end(
        layout in layouts(),
        step in prop_oneof![-4_isize..0, 1_isize..5],
    ) {
        for axis in 0..layout.rank() {
            let extent = layout.shape()[axis];
            for start in 0..=extent {
                for limit in start..=extent {
                    let (mut starts, mut limits) = (vec![0; layout.rank()], layout.shape().to_vec());
                    let mut steps = vec![1; layout.rank()];
                    (starts[axis], limits[axis], steps[axis]) = (start, limit, step);
                    let result = layout.slice("t", &starts, &limits, &steps).unwrap();
                    // The definition, by a standard iterator.
                    let by = step.unsigned_abs();
                    let taken: Vec<usize> = if step > 0 {
                        (start..limit).step_by(by).collect()
                    } else {
                        (start..limit).rev().step_by(by).collect()
                    };
                    prop_assert_eq!(result.shape()[axis], taken.len());
                    for index in indices(result.shape()) {
                        let mut source = index.clone();
                        source[axis] = taken[index[axis]];
                        prop_assert_eq!(result.offset_of(&index), layout.offset_of(&source));
                    }
                }
            }
        }
    }

    #[test]
    fn reverse_twice_is_nothing(layout in layouts()) {
        let axes: Vec<usize> = (0..layout.rank()).collect();
        let once = layout.reverse("t", &axes).unwrap();
        let mut backwards = offsets(&once);
        backwards.reverse();
        prop_assert_eq!(backwards, offsets(&layout));
        prop_assert_eq!(once.reverse("t", &axes).unwrap(), layout);
    }

    #[test]
    fn reshape_keeps_the_order_or_refuses(layout in layouts(), cut in 1_usize..7) {
        let len = layout.len();
        let mut shapes = vec![vec![len], vec![1, len, 1]];
        if len % cut == 0 {
            shapes.push(vec![cut, len / cut]);
            shapes.push(vec![len / cut, 1, cut]);
        }
        shapes.push(layout.shape().to_vec());
        for shape in shapes {
            let reshaped = layout.reshape("t", &shape).unwrap();
            if let Some(reshaped) = &reshaped {
                prop_assert_eq!(reshaped.shape(), &shape[..]);
                prop_assert_eq!(offsets(reshaped), offsets(&layout));
            }
            // Refuses only what no strides can say.
            prop_assert!(reshaped.is_some() || !layout.is_col_major_contiguous());
            prop_assert!(reshaped.is_some() || shape != layout.shape());
        }
        prop_assert!(matches!(layout.reshape("t", &[len + 1]), Err(Error::Shape(_))));
    }

    #[test]
    fn span_and_injectivity_agree_with_the_offsets(layout in layouts(), repeat in 1_usize..3) {
        let all = offsets(&layout);
        if !all.is_empty() {
            prop_assert_eq!(layout.span(), (*all.iter().min().unwrap(), *all.iter().max().unwrap()));
            prop_assert!(layout.fits(all.iter().max().unwrap() + 1));
            prop_assert!(!layout.fits(*all.iter().max().unwrap()));
        }
        prop_assert!(layout.is_injective(), "slices and transposes repeat nothing");
        let mut shape = layout.shape().to_vec();
        shape.push(repeat);
        let dims: Vec<usize> = (0..layout.rank()).collect();
        let repeated = layout.broadcast("t", &shape, &dims).unwrap();
        prop_assert_eq!(repeated.is_injective(), repeat == 1 || layout.is_empty());
        let consecutive = all.windows(2).all(|w| w[1] == w[0] + 1);
        prop_assert_eq!(layout.is_col_major_contiguous(), consecutive);
    }

    #[test]
    fn diagonal_pairs_equal_indices(layout in layouts()) {
        for a in 0..layout.rank() {
            for b in (0..layout.rank()).filter(|&b| b != a) {
                let diagonal = layout.diagonal("t", a, b).unwrap();
                prop_assert!(diagonal.is_injective());
                for index in indices(diagonal.shape()) {
                    let (d, rest) = index.split_last().unwrap();
                    let mut rest = rest.iter().copied();
                    let source: Vec<usize> = (0..layout.rank())
                        .map(|axis| if axis == a || axis == b { *d } else { rest.next().unwrap() })
                        .collect();
                    prop_assert_eq!(diagonal.offset_of(&index), layout.offset_of(&source));
                }
            }
        }
    }
}

#[test]
fn broadcast_repeats_unit_and_new_axes() {
    let row = Layout::contiguous(&[1, 3]);
    let matrix = row.broadcast("t", &[2, 3, 4], &[0, 1]).unwrap();
    assert_eq!(matrix.strides(), [0, 1, 0]);
    let turned = Layout::contiguous(&[2, 3]).broadcast("t", &[3, 2], &[1, 0]).unwrap();
    assert_eq!(turned.strides(), [2, 1]);
    assert!(matches!(row.broadcast("t", &[2, 4], &[0, 1]), Err(Error::Shape(_))));
    assert!(matches!(row.broadcast("t", &[3, 3], &[1, 1]), Err(Error::Axis(_))));
    assert!(matches!(row.broadcast("t", &[3], &[0, 1]), Err(Error::Axis(_))));
    assert!(matches!(row.broadcast("t", &[3], &[0]), Err(Error::Rank(_))));
    assert!(matches!(row.broadcast("t", &[1, 3, usize::MAX], &[0, 1]), Err(Error::Overflow(_))));
    assert_eq!(row.broadcast("t", &[0, 3], &[0, 1]).unwrap().len(), 0);
}

#[test]
fn bad_arguments_are_errors_of_their_kind() {
    let layout = Layout::contiguous(&[2, 3]);
    for perm in [&[0][..], &[0, 0], &[0, 2], &[0, 1, 2]] {
        assert!(matches!(layout.transpose("t", perm), Err(Error::Axis(_))), "{perm:?}");
    }
    assert!(matches!(layout.slice("t", &[0], &[2], &[1]), Err(Error::Rank(_))));
    for (start, limit, step) in [(2, 1, 1), (0, 4, 1), (0, 1, 0), (usize::MAX, usize::MAX, 1)] {
        let result = layout.slice("t", &[0, start], &[2, limit], &[1, step]);
        assert!(matches!(result, Err(Error::Argument(_))), "{start} {limit} {step}");
    }
    assert!(layout.slice("t", &[0, 0], &[2, 3], &[isize::MIN, isize::MAX]).is_ok());
    assert!(matches!(layout.reverse("t", &[1, 1]), Err(Error::Axis(_))));
    assert!(matches!(layout.diagonal("t", 0, 0), Err(Error::Axis(_))));
    assert!(matches!(layout.diagonal("t", 0, 2), Err(Error::Axis(_))));
    assert!(matches!(layout.reshape("t", &[usize::MAX, 3]), Err(Error::Overflow(_))));
}

#[test]
fn parts_from_outside_are_checked() {
    assert!(Layout::new("t", &[2, 2], &[-1, 2], 1).is_ok());
    assert!(matches!(Layout::new("t", &[2], &[1, 1], 0), Err(Error::Rank(_))));
    assert!(matches!(Layout::new("t", &[2], &[-1], 0), Err(Error::Overflow(_))));
    assert!(matches!(Layout::new("t", &[3], &[isize::MAX], 0), Err(Error::Overflow(_))));
    assert_eq!(Layout::new("t", &[0], &[1], 7).unwrap().offset(), 0);
}

#[test]
fn empty_layouts_with_extents_whose_product_overflows_work() {
    let layout = Layout::contiguous(&[0, usize::MAX, usize::MAX]);
    assert_eq!((layout.len(), layout.is_empty(), layout.is_col_major_contiguous()), (0, true, true));
    let turned = layout.transpose("t", &[2, 0, 1]).unwrap().reverse("t", &[0, 1, 2]).unwrap();
    let part = turned.slice("t", &[5, 0, 3], &[usize::MAX, 0, 9], &[-3, 1, 2]).unwrap();
    assert_eq!((part.offset(), part.len()), (0, 0));
    assert!(part.reshape("t", &[7, 0]).unwrap().is_some());
    assert_eq!(part.diagonal("t", 0, 2).unwrap().len(), 0);
    assert!(part.fits(0) && part.is_injective());
}

#[test]
fn a_shape_whose_product_wraps_to_one_fits_nowhere() {
    // 3 * 0xAAAA_AAAA_AAAA_AAAB = 2^65 + 1, which is 1 in 64 bits.
    let wrapped = Layout::contiguous(&[3, 0xAAAA_AAAA_AAAA_AAAB]);
    assert!(!wrapped.fits(1) && !wrapped.fits(usize::MAX));
    let one = TypedTensor::<f64>::zeros([1]).unwrap().into_tensor();
    assert!(TensorView::new(&one, wrapped.clone()).is_err());
    let turned = wrapped.transpose("t", &[1, 0]).unwrap().reverse("t", &[0, 1]).unwrap();
    assert!(TensorView::new(&one, turned.clone()).is_err());
    assert!(TensorView::new(&one, turned.index_axis("t", 0, 1).unwrap()).is_err());
    assert!(matches!(turned.reshape("t", &[1]), Err(Error::Overflow(_))));
    let signed = Layout::contiguous(&[1 << 63, 2, 5]);
    assert!(TensorView::new(&one, signed).is_err());
}

#[test]
fn ranks_beyond_the_inline_capacity_work() {
    let shape = [2_usize; 9];
    let layout = Layout::contiguous(&shape);
    let perm: Vec<usize> = (0..9).rev().collect();
    let turned = layout.transpose("t", &perm).unwrap();
    assert_eq!(turned.offset_of(&[1, 0, 0, 0, 0, 0, 0, 0, 0]), Some(256));
    assert_eq!(turned.transpose("t", &perm).unwrap(), layout);
    let many = Layout::contiguous(&[1; 80]);
    let perm: Vec<usize> = (0..80).rev().collect();
    assert!(many.transpose("t", &perm).is_ok());
    assert!(matches!(many.transpose("t", &[3; 80]), Err(Error::Axis(_))));
}

#[test]
#[allow(clippy::reversed_empty_ranges)] // -3..-1 and 3..1 mean something here
fn slice_notation_follows_its_rules() {
    let t = TypedTensor::<i32>::from_fn([4, 5, 6], |i| (100 * i[0] + 10 * i[1] + i[2]) as i32).unwrap();
    let at = |v: &tenferro_tensor::TypedTensorView<'_, i32>, i: &[usize]| *v.get(i).unwrap();
    let v = t.slice(s![1.., ..=2, -1]).unwrap();
    assert_eq!((v.shape(), at(&v, &[0, 2])), (&[3, 3][..], 125));
    let v = t.slice(s![-3..-1;-1, 0, ..;2]).unwrap();
    assert_eq!((v.shape(), at(&v, &[0, 2])), (&[2, 3][..], 204));
    let v = t.slice(s![0..=-1]).unwrap();
    assert_eq!(v.shape(), [4, 5, 6]);
    let v = t.slice(s![3, 4, 5]).unwrap();
    assert_eq!((v.rank(), v.item().unwrap()), (0, 345));
    let n = 2_usize;
    assert_eq!(t.slice(s![n, ..n]).unwrap().shape(), [2, 6]);
    assert_eq!(t.slice(s![2..2]).unwrap().shape(), [0, 5, 6]);
    assert_eq!(t.slice(s![]).unwrap().shape(), [4, 5, 6]);
    assert!(matches!(t.slice(s![0, 0, 0, 0]), Err(Error::Rank(_))));
    for bad in [
        s![4],
        s![-5],
        s![..5],
        s![3..1],
        s![..;0],
        s![-5..],
        s![usize::MAX],
        s![isize::MIN],
        s![..=usize::MAX],
    ] {
        assert!(matches!(t.slice(&bad), Err(Error::Argument(_))), "{bad:?}");
    }
}

#[test]
fn no_step_is_too_large_for_an_axis_beside_no_elements() {
    let steps = [1, 2, isize::MAX, isize::MAX - 1, 1 << 62, -1, -(1 << 62), -isize::MAX, isize::MIN];
    for shape in [[0, 3], [3, 0], [usize::MAX, 0], [0, 1 << 63], [1 << 63, 0], [0, 0]] {
        let compact = Layout::contiguous(&shape);
        for (step, other) in steps.iter().flat_map(|step| steps.map(|other| (*step, other))) {
            let y = compact.slice("t", &[0, 0], &shape, &[step, other]).unwrap();
            assert_eq!(
                y.shape(),
                [step, other]
                    .map(isize::unsigned_abs)
                    .iter()
                    .zip(shape)
                    .map(|(step, n)| n.div_ceil(*step))
                    .collect::<Vec<_>>()
            );
            assert_eq!((y.len(), y.offset(), y.fits(0)), (0, 0, true));
            // Corners: from the last position of each axis, and again with strides that have wrapped.
            let last = shape.map(|n| n.saturating_sub(1));
            let corner = compact.slice("t", &last, &shape, &[step, other]).unwrap();
            let limits = y.shape().to_vec();
            let again = y.slice("t", &[0, 0], &limits, &[other, step]).unwrap();
            for z in [corner, again] {
                assert_eq!((z.len(), z.offset(), z.fits(0)), (0, 0, true));
                assert!(z.reverse("t", &[0, 1]).unwrap().fits(0));
            }
        }
    }
    // Forward steps may be as large as any extent.
    for (n, step, length) in [
        (usize::MAX, 1 << 63, 2),
        (usize::MAX, usize::MAX, 1),
        (usize::MAX, usize::MAX - 1, 2),
        (1 << 63, 1 << 63, 1),
        ((1 << 63) + 1, 1 << 63, 2),
        (3, usize::MAX, 1),
        (0, 1 << 63, 0),
    ] {
        let x = Value::new(TypedTensor::<f64>::zeros([n, 0]).unwrap().into_tensor());
        let slices = [
            x.slice("t", &[0, 0], &[n, 0], &[step, 1]).unwrap().layout(),
            x.layout().slice_forward("t", &[0, 0], &[n, 0], &[step, 1]).unwrap(),
        ];
        slices.iter().for_each(|y| assert_eq!(y.shape(), [length, 0], "{n} by {step}"));
    }
    // One element that is there has no use for a step.
    let one = Layout::contiguous(&[5, 2]);
    for step in steps {
        let y = one.slice("t", &[4, 1], &[5, 2], &[step, step]).unwrap();
        assert_eq!((y.shape(), y.offset(), y.fits(10), y.fits(9)), (&[1, 1][..], 9, true, false));
    }
}
