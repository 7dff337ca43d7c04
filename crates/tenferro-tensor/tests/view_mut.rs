//! Mutable views: what they write, and that no two of them share an element.

use proptest::prelude::*;
use tenferro_tensor::{
    C64, Error, SliceItem, SliceSpec, Tensor, TensorRead, TensorRef, TypedTensor, Value as Shared, s,
};

#[test]
fn writes_reach_exactly_the_selected_elements() {
    let mut a = TypedTensor::<i32>::zeros([3, 4]).unwrap();
    let mut part = a.as_view_mut().unwrap().slice(s![1.., ..;-2]).unwrap();
    let mut n = 0;
    part.update(|x| {
        n += 1;
        *x = n;
    })
    .unwrap();
    *part.get_mut(&[0, 0]).unwrap() += 10;
    assert_eq!(a.to_vec_row_major().unwrap(), [0, 0, 0, 0, 0, 3, 0, 11, 0, 4, 0, 2]);
    a.as_view_mut().unwrap().diagonal_view(0, 1).unwrap().fill(7).unwrap();
    assert_eq!(a.to_vec_row_major().unwrap(), [7, 0, 0, 0, 0, 7, 0, 11, 0, 4, 7, 2]);
}

#[test]
fn assign_copies_by_index() {
    let source = TypedTensor::<f64>::from_vec_row_major([2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let mut target = TypedTensor::<f64>::zeros([3, 2]).unwrap();
    let mut view = target.as_view_mut().unwrap().transpose_view([1, 0]).unwrap();
    view.assign(&source.as_view()).unwrap();
    assert!(matches!(view.assign(&source.as_view().transpose_view([1, 0]).unwrap()), Err(Error::Shape(_))));
    assert_eq!(target.as_slice().unwrap(), source.to_vec_row_major().unwrap());
}

#[test]
fn the_erased_form_does_the_same() {
    let mut t = Tensor::from_vec_col_major([2, 2], vec![1.0_f64, 2.0, 3.0, 4.0]).unwrap();
    let source = Tensor::full(t.dtype(), [2], C64::new(9.0, 0.0)).unwrap();
    let (mut left, mut right) = t.as_view_mut().unwrap().split_at(1, 1).unwrap();
    left.reborrow().reshape_view([2]).unwrap().assign(&source.as_view()).unwrap();
    assert_eq!(left.as_slice_mut::<f64>().unwrap(), [9.0, 9.0]);
    assert!(right.as_slice_mut::<f32>().is_err());
    // SAFETY: the first element of a live mutable view.
    unsafe { *right.host_mut_ptr::<f64>().unwrap() = -3.0 };
    right.typed_mut::<f64>().unwrap().reverse_view([0]).unwrap().as_view().get(&[0, 0]).unwrap();
    assert_eq!(t.as_slice::<f64>().unwrap(), [9.0, 9.0, -3.0, 4.0]);
    assert!(matches!(t.as_view_mut().unwrap().split_at(2, 0), Err(Error::Axis(_))));
    assert!(matches!(t.as_view_mut().unwrap().split_at(0, 3), Err(Error::Argument(_))));
}

/// Whatever way a view to read takes from one to write, no value shares what is yet to be written.
#[test]
fn a_value_of_a_part_that_is_lent_is_a_copy() {
    let mut t = TypedTensor::<f64>::zeros([4]).unwrap();
    let mut erased = Tensor::from_vec_col_major([4], vec![0.0; 4]).unwrap();
    let values = |reads: &[TensorRead<'_>]| -> Vec<Shared> {
        reads.iter().map(|read| Shared::of(read).unwrap()).collect()
    };
    let mut m = t.as_view_mut().unwrap();
    let v = m.as_view();
    let read = TensorRead::from(v.clone());
    let ways = [
        v.clone().into(),
        v.clone().into_rank::<1>().unwrap().into_dyn().into(),
        v.reverse_view([0]).unwrap().into(),
        TensorRead::from_view(v.clone().into()),
        read.typed::<f64>().unwrap().into(),
        TensorRef::from(&read).read(),
    ];
    let kept = values(&ways);
    m.fill(1.0).unwrap();
    let mut m = erased.as_view_mut().unwrap();
    let v = m.as_view();
    let ways = [
        v.clone().into(),
        v.slice(s![..;-1]).unwrap().into(),
        v.reshape_view([2, 2]).unwrap().into(),
        v.typed::<f64>().unwrap().into(),
    ];
    let more = values(&ways);
    m.fill(C64::ONE).unwrap();
    for value in kept.iter().chain(&more) {
        assert_eq!(value.duplicate().unwrap().as_slice::<f64>().unwrap(), [0.0; 4]);
    }
    assert!(erased.is_unique() && t.as_view_mut().is_ok());
    // What nobody writes is shared.
    assert_eq!(Shared::of(&(&erased).into()).unwrap().ptr_id(), erased.ptr_id());
    assert_eq!(Shared::of(&erased.as_view().into()).unwrap().ptr_id(), erased.ptr_id());
}

#[test]
fn views_move_to_other_threads() {
    let mut t = TypedTensor::<f64>::zeros([100, 2]).unwrap();
    let (mut a, mut b) = t.as_view_mut().unwrap().split_at(1, 1).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| a.fill(1.0).unwrap());
        scope.spawn(|| b.fill(2.0).unwrap());
    });
    assert_eq!(t.as_slice().unwrap().iter().sum::<f64>(), 300.0);
}

fn items(extent: usize) -> impl Strategy<Value = SliceItem> {
    let n = extent as isize;
    prop_oneof![
        (0..n).prop_map(SliceItem::Index),
        (0..=n, 0..=n, prop_oneof![-4_isize..0, 1_isize..5]).prop_map(|(a, b, step)| SliceItem::Range {
            start: a.min(b),
            end: Some(a.max(b)),
            step
        }),
    ]
}

proptest! {
    #![proptest_config(tenferro_cases::cases(512))]

    #[test]
    fn slices_are_granted_exactly_when_disjoint(
        specs in proptest::collection::vec((items(7), items(5)), 1..4)
    ) {
        let mut t = TypedTensor::<i32>::from_fn([7, 5], |i| (i[0] + 7 * i[1]) as i32).unwrap();
        let specs: Vec<SliceSpec> = specs.into_iter().map(|(a, b)| SliceSpec::from([a, b])).collect();
        // By the definition: no element is in two parts.
        let mut seen = [0; 35];
        for spec in &specs {
            t.slice(spec).unwrap().iter().unwrap().for_each(|&at| seen[at as usize] += 1);
        }
        let disjoint = seen.iter().all(|&n| n < 2);
        let view = t.as_view_mut().unwrap().reverse_view([0]).unwrap().reverse_view([0]).unwrap();
        match view.slices_mut(&specs) {
            Ok(parts) => {
                prop_assert!(disjoint);
                for mut part in parts {
                    part.fill(-1).unwrap();
                }
                let written = t.as_slice().unwrap().iter().filter(|&&x| x == -1).count();
                prop_assert_eq!(written, seen.iter().filter(|&&n| n == 1).count());
            }
            Err(error) => {
                prop_assert!(!disjoint);
                prop_assert!(matches!(error, Error::Argument(_)));
            }
        }
    }

    #[test]
    fn split_divides_every_axis(shape in proptest::collection::vec(0_usize..4, 1..4), at in 0_usize..4) {
        for axis in 0..shape.len() {
            let mut t = TypedTensor::<i32>::zeros(shape.clone()).unwrap();
            let at = at.min(shape[axis]);
            let (mut a, mut b) = t.as_view_mut().unwrap().split_at(axis, at).unwrap();
            prop_assert_eq!((a.shape()[axis], b.shape()[axis]), (at, shape[axis] - at));
            a.update(|x| *x += 1).unwrap();
            b.update(|x| *x += 1).unwrap();
            prop_assert!(t.as_slice().unwrap().iter().all(|&x| x == 1), "each element once");
        }
    }
}
