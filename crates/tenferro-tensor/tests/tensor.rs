//! Owners, views and values.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tenferro_tensor::{
    BackendStorage, BackendStorageHandle, C32, C64, DType, DeviceId, DeviceKind, Error, Layout, MemoryKind,
    Placement, Ranked, Scalar, StorageBuffer, Tensor, TensorRead, TensorView, TypedTensor, TypedTensorView,
    Value, dispatch,
};

fn matrix() -> TypedTensor<f64> {
    TypedTensor::from_vec_col_major([2, 3], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0]).unwrap()
}

fn on_device() -> TypedTensor<f64> {
    let buffer = StorageBuffer::Backend(Box::new(BackendStorageHandle::<f64>::new_with_len(7, 4)));
    let device = Some(DeviceId { kind: DeviceKind::Other("example".into()), ordinal: 0 });
    let placement = Placement { memory_kind: MemoryKind::Device, device, cpu_affinity: None };
    TypedTensor::from_buffer_col_major([2, 2], buffer, placement).unwrap()
}

#[test]
fn types_are_send_sync_and_small() {
    fn check<T: Send + Sync>() {}
    check::<Tensor>();
    check::<TypedTensor<C64, Ranked<2>>>();
    check::<TensorRead>();
    check::<TypedTensorView<f64>>();
    check::<tenferro_tensor::TensorViewMut>();
    check::<tenferro_tensor::UninitTensor>();
    check::<Value>();
    check::<Error>();
    check::<tenferro_tensor::Iter<f64>>();
    assert_eq!(size_of::<Option<Tensor>>(), size_of::<usize>());
    assert!(size_of::<tenferro_tensor::Result<Tensor>>() <= 16);
}

#[test]
fn an_adopted_vector_is_neither_copied_in_nor_out() {
    let mut data = Vec::with_capacity(10);
    data.extend([1.0_f32, 2.0, 3.0]);
    let address = data.as_ptr();
    let t = Tensor::from_vec_col_major(vec![3], data).unwrap();
    assert_eq!(t.host_ptr::<f32>().unwrap(), address);
    let back = t.into_vec_col_major::<f32>().unwrap();
    assert_eq!((back.as_ptr(), back.capacity(), &back[..]), (address, 10, &[1.0, 2.0, 3.0][..]));
    // Dropped as the vector it was, also when empty but with capacity.
    drop(Tensor::from_vec_col_major([3], vec![C32::new(1.0, 2.0); 3]).unwrap());
    drop(Tensor::from_vec_col_major([0], Vec::<f64>::with_capacity(4)).unwrap());
    drop(Tensor::from_vec_col_major([0], Vec::<f64>::new()).unwrap());
}

#[test]
fn the_number_of_elements_must_fit() {
    for len in [0, 3, 5] {
        let result = Tensor::from_vec_col_major([2, 2], vec![0_i32; len]);
        assert!(matches!(result, Err(Error::Shape(_))), "{len}");
        assert!(Tensor::from_vec_row_major([2, 2], vec![0_i32; len]).is_err());
    }
    assert!(matches!(Tensor::zeros(DType::F64, [usize::MAX, 2]), Err(Error::Overflow(_))));
    assert!(matches!(Tensor::uninit(DType::Bool, &[1 << 60]), Err(Error::Overflow(_))));
    // Fits the address space but no machine: an error, not an abort.
    assert!(matches!(Tensor::uninit(DType::C64, &[(isize::MAX as usize >> 4) - 1]), Err(Error::Overflow(_))));
    assert!(matches!(Tensor::uninit(DType::F64, &[1 << 56]), Err(Error::Memory(_))));
}

#[test]
fn errors_of_memory_name_the_constructor() {
    let large = 1_usize << 56;
    let one = Tensor::full(DType::F64, [1], C64::new(1.0, 0.0)).unwrap();
    let view = one.as_typed::<f64>().unwrap().as_view().broadcast_view([large], [0]).unwrap();
    for (name, e) in [
        ("uninit", Tensor::uninit(DType::F64, &[large]).err()),
        ("zeros", Tensor::zeros(DType::F64, [large]).err()),
        ("full", Tensor::full(DType::F64, [large], C64::new(1.0, 0.0)).err()),
        ("eye", Tensor::eye(DType::F64, 1 << 28).err()),
        ("eye", Tensor::eye(DType::F64, usize::MAX).err()),
        ("from_fn", TypedTensor::<f64>::from_fn([large], |_| 1.0).err()),
        ("to_tensor", view.to_tensor().err()),
        ("map", view.map(|x| x).err()),
    ] {
        assert_eq!(e.expect("no machine has as much memory").op(), name);
    }
}

#[test]
fn a_number_that_a_dtype_does_not_hold_is_refused() {
    let number = |re, im| C64::new(re, im);
    let two_to_63 = 2f64.powi(63);
    for (dtype, value) in [
        (DType::I32, number(2.5, 0.0)),
        (DType::I32, number(2f64.powi(31), 0.0)),
        (DType::I32, number(-2f64.powi(31) - 1.0, 0.0)),
        (DType::I32, number(0.0, 1.0)),
        (DType::I64, number(2.5, 0.0)),
        (DType::I64, number(two_to_63, 0.0)),
        (DType::I64, number(f64::NAN, 0.0)),
        (DType::I64, number(f64::NEG_INFINITY, 0.0)),
        (DType::F32, number(1.0, 1.0)),
        (DType::F64, C64::I),
    ] {
        let mut t = Tensor::zeros(dtype, [2]).unwrap();
        let fill = t.as_view_mut().unwrap().fill(value).unwrap_err();
        for (name, e) in [("full", Tensor::full(dtype, [2], value).unwrap_err()), ("fill", fill)] {
            assert!(matches!(e, Error::Argument(_)) && e.op() == name, "{dtype} {value}: {e}");
            let text = e.to_string();
            assert!(text.contains(&dtype.to_string()) && text.contains(&value.to_string()), "{text}");
        }
    }
    let lowest = Tensor::full(DType::I64, [2], -two_to_63).unwrap();
    assert_eq!(lowest.as_slice::<i64>().unwrap(), [i64::MIN; 2]);
    let largest = Tensor::full(DType::I32, [1], 2f64.powi(31) - 1.0).unwrap();
    assert_eq!(largest.as_slice::<i32>().unwrap(), [i32::MAX]);
    let digits = TypedTensor::<i64>::full([1], (1 << 53) + 1).unwrap();
    assert_eq!(digits.as_slice().unwrap(), [(1_i64 << 53) + 1]);
    assert_eq!(Tensor::full(DType::Bool, [1], 0.5).unwrap().as_slice::<bool>().unwrap(), [true]);
    assert!(Tensor::full(DType::F64, [1], f64::NAN).unwrap().as_slice::<f64>().unwrap()[0].is_nan());
}

#[test]
fn zero_size_and_rank_0_work_everywhere() {
    for shape in [&[0][..], &[0, 3], &[2, 0, 5], &[0, usize::MAX, usize::MAX]] {
        for &dtype in DType::ALL {
            let mut t = Tensor::zeros(dtype, shape).unwrap();
            assert_eq!((t.len(), t.is_empty(), t.shape()), (0, true, shape));
            dispatch!(dtype, T => {
                assert!(t.as_slice::<T>().unwrap().is_empty());
                assert!(t.as_slice_mut::<T>().unwrap().is_empty());
                assert_eq!(t.as_view().typed::<T>().unwrap().iter().unwrap().count(), 0);
                assert!(t.to_vec_row_major::<T>().unwrap().is_empty());
            });
            let reversed = t.as_view().reverse_view([0]).unwrap();
            assert_eq!(reversed.to_tensor().unwrap(), t);
            assert_eq!(t.duplicate().unwrap(), t);
            assert!(!t.to_string().is_empty());
        }
    }
    let t = Tensor::scalar(2.5_f64);
    assert_eq!((t.rank(), t.len(), t.item::<f64>().unwrap()), (0, 1, 2.5));
    assert_eq!(t.as_view().transpose_view([]).unwrap().item::<f64>().unwrap(), 2.5);
    assert_eq!(
        t.as_view().broadcast_view([2, 2], []).unwrap().to_tensor().unwrap().as_slice::<f64>().unwrap(),
        [2.5; 4]
    );
    assert_eq!(t.get::<f64>(&[]).unwrap(), 2.5);
    assert_eq!(t.duplicate().unwrap().into_shape([1, 1]).unwrap().item::<f64>().unwrap(), 2.5);
    assert!(matches!(matrix().item(), Err(Error::NonScalar(_))));
}

#[test]
fn high_ranks_work() {
    let shape = [2, 1, 3, 2, 1, 2, 2, 2];
    let t = TypedTensor::<i64>::from_fn(shape, |i| i.iter().fold(0, |n, &d| 10 * n + d as i64)).unwrap();
    assert_eq!(t[[1, 0, 2, 1, 0, 1, 0, 1]], 10_210_101);
    let turned = t.as_view().transpose_view([7, 6, 5, 4, 3, 2, 1, 0]).unwrap().to_tensor().unwrap();
    assert_eq!(turned[[1, 0, 1, 0, 1, 2, 0, 1]], 10_210_101);
    assert_eq!(turned.as_slice().unwrap(), t.to_vec_row_major().unwrap());
}

#[test]
fn pool_buffers_are_aligned_and_hold_what_is_written() {
    for n in [1_usize, 7, 8, 9, 63, 64, 65, 1000, 32 * 1024, 40_000, 300_000] {
        let t = TypedTensor::<f64>::from_fn([n], |i| i[0] as f64).unwrap();
        assert_eq!(t.as_slice().unwrap().as_ptr().addr() % 64, 0);
        assert!(t.as_slice().unwrap().iter().enumerate().all(|(i, &x)| x == i as f64));
    }
}

#[test]
fn row_major_round_trips() {
    let t = TypedTensor::<i32>::from_vec_row_major([2, 3], vec![1, 2, 3, 4, 5, 6]).unwrap();
    assert_eq!(t.as_slice().unwrap(), [1, 4, 2, 5, 3, 6]);
    assert_eq!(t.to_vec_row_major().unwrap(), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn every_dtype_fills_reads_and_converts() {
    for &dtype in DType::ALL {
        let t = Tensor::full(dtype, [2, 2], C64::new(1.0, 0.0)).unwrap();
        dispatch!(dtype, T => {
            assert_eq!(t.as_slice::<T>().unwrap(), [T::one(); 4]);
            assert_eq!(T::one().to_c64(), C64::new(1.0, 0.0));
            assert_eq!(T::zero(), T::from_f64(0.0));
            assert_eq!(<<T as Scalar>::Real as Scalar>::DTYPE, dtype.real());
            assert_eq!(<<T as Scalar>::Complex as Scalar>::DTYPE, dtype.complex());
            assert!(t.as_typed::<T>().is_some());
            let (zero, one) = (T::zero(), T::one());
            let eye = Tensor::eye(dtype, 2).unwrap();
            assert_eq!(eye.as_slice::<T>().unwrap(), [one, zero, zero, one]);
        });
        let wrong = if dtype == DType::F64 { t.as_slice::<f32>().err() } else { t.as_slice::<f64>().err() };
        assert!(matches!(wrong, Some(Error::DType(_))));
    }
    assert_eq!(Tensor::eye(DType::F64, 0).unwrap().len(), 0);
    assert!(!bool::from_f64(0.0) && bool::from_f64(f64::NAN));
    assert_eq!(i32::from_f64(1e20), i32::MAX);
}

#[test]
fn views_never_copy_and_say_so() {
    let a = matrix();
    let turned = a.as_view().transpose_view([1, 0]).unwrap();
    assert!(!turned.is_col_major_contiguous().unwrap());
    let message = turned.as_slice().unwrap_err().to_string();
    assert!(message.contains("not slice-contiguous"), "{message}");
    let column = a.as_view().slice_view([0, 1], [2, 2], [1, 1]).unwrap();
    assert_eq!(column.as_slice().unwrap(), [2.0, 5.0]);
    assert_eq!(column.as_slice().unwrap().as_ptr(), &a.as_slice().unwrap()[2] as *const f64);
    let backwards = a.as_view().reverse_view([0, 1]).unwrap();
    assert_eq!(backwards.iter().unwrap().copied().collect::<Vec<_>>(), [6.0, 3.0, 5.0, 2.0, 4.0, 1.0]);
    assert!(matches!(turned.reshape_view([6]), Err(Error::Layout(_))));
    assert_eq!(a.as_view().diagonal_view(0, 1).unwrap().to_tensor().unwrap().as_slice().unwrap(), [1.0, 5.0]);
    assert_eq!(turned.map(|x| x as i32).unwrap().as_slice().unwrap(), [1, 2, 3, 4, 5, 6]);
    let read = turned.into_tensor_read().unwrap();
    assert_eq!(read.layout().strides(), [2, 1]);
    // SAFETY: the view's first element, inside the live `a`.
    assert_eq!(unsafe { *read.host_ptr::<f64>().unwrap() }, 1.0);
    assert!(read.typed::<f32>().is_err());
    let TensorView::F64(view) = read.view() else { panic!("f64") };
    assert_eq!(view.shape(), [3, 2]);
}

#[test]
fn a_layout_outside_the_tensor_is_refused() {
    let t = matrix().into_tensor();
    let inside = Layout::new("t", &[3], &[2], 1).unwrap();
    assert_eq!(TensorView::new(&t, inside.clone()).unwrap().typed::<f64>().unwrap().get(&[2]), Some(&6.0));
    let outside = Layout::new("t", &[3], &[2], 2).unwrap();
    assert!(matches!(TensorView::new(&t, outside.clone()), Err(Error::Layout(_))));
    let value = Value::new(t);
    assert!(value.try_with_layout(outside).is_err());
    assert_eq!(value.with_layout(inside).shape(), [3]);
}

#[test]
fn a_shared_owner_is_not_written() {
    let mut a = matrix();
    let shared = a.as_tensor().share();
    let message = a.host_data_mut().unwrap_err().to_string();
    assert!(message.contains("duplicate()"), "{message}");
    assert!(a.as_view_mut().is_err() && a.get_mut(&[0, 0]).is_none());
    assert!(shared.into_uninit().is_err());
    a.host_data_mut().unwrap()[0] = 9.0;
    assert_eq!(a[[0, 0]], 9.0);
}

#[test]
fn storage_is_reclaimed_with_its_contents() {
    let t = matrix().into_tensor();
    let address = t.host_ptr::<f64>().unwrap();
    let mut out = t.into_uninit().unwrap();
    let slot = out.as_mut_ptr::<f64>();
    assert_eq!(slot.cast_const(), address);
    // SAFETY: the reclaimed elements are still initialised, and there are six.
    let t = unsafe {
        slot.add(5).write(slot.read() + 10.0);
        out.assume_init()
    };
    assert_eq!(t.as_slice::<f64>().unwrap(), [1.0, 4.0, 2.0, 5.0, 3.0, 11.0]);
    assert!(on_device().into_tensor().into_uninit().is_err());
}

#[test]
fn device_storage_is_never_read_on_the_host() {
    let mut t = on_device();
    let message = t.as_slice().unwrap_err().to_string();
    assert!(message.contains("backend storage cannot be borrowed as host data"), "{message}");
    assert!(matches!(t.host_data_mut(), Err(Error::Placement(_))));
    assert!(t.duplicate().is_err() && t.item().is_err() && t.get(&[0, 0]).is_none());
    assert!(t.as_view().iter().is_err() && t.as_view().to_tensor().is_err());
    assert!(t.as_view().transpose_view([1, 0]).is_ok(), "metadata needs no data");
    assert!(t.as_view_mut().unwrap().fill(1.0).is_err());
    let same = t.as_tensor().share().into_typed::<f64>().unwrap();
    assert_eq!(t, same, "the same storage is equal");
    drop(same);
    assert_eq!(t.to_string(), "f64[2, 2] in device memory of example 0");
    let storage = t.as_tensor().backend_storage::<f64>().expect("an f64 backend storage");
    let handle = storage.as_any().downcast_ref::<BackendStorageHandle<f64>>().expect("its own type");
    assert_eq!((handle.id(), BackendStorage::len(handle)), (7, 4));
    assert!(t.as_tensor().backend_storage::<f32>().is_none());
    let host = StorageBuffer::Host(vec![0.0_f64; 4]);
    let placement = t.placement().clone();
    assert!(matches!(Tensor::from_buffer_col_major([2, 2], host, placement), Err(Error::Placement(_))));
}

#[test]
fn backend_storage_is_dropped_once() {
    #[derive(Debug)]
    struct Counted(Arc<AtomicUsize>);
    impl BackendStorage<f32> for Counted {
        fn len(&self) -> usize {
            1
        }
    }
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let drops = Arc::new(AtomicUsize::new(0));
    let buffer = StorageBuffer::Backend(Box::new(Counted(drops.clone())));
    let placement = Placement { memory_kind: MemoryKind::Device, device: None, cpu_affinity: None };
    let mut t = Tensor::from_buffer_col_major::<f32>([1], buffer, placement).unwrap();
    assert!(t.backend_storage_mut::<f32>().unwrap().as_any_mut().is::<Counted>());
    let view = t.share();
    drop(t);
    assert_eq!(drops.load(Ordering::Relaxed), 0);
    drop(view);
    assert_eq!(drops.load(Ordering::Relaxed), 1);
}

#[test]
fn values_share_and_move_out_when_they_can() {
    let value = Value::new(matrix().into_tensor());
    let other = value.clone();
    assert_eq!(value.ptr_id(), other.ptr_id());
    let message = other.clone().into_tensor().unwrap_err().to_string();
    assert!(message.contains("duplicate()"), "{message}");
    drop(other);
    let address = value.owner().host_ptr::<f64>().unwrap();
    let flat = value.with_layout(value.layout().reshape("t", &[6]).unwrap().unwrap());
    drop(value);
    assert!(flat.is_contiguous() && flat.is_unique());
    let t = flat.try_into_unique().unwrap();
    assert_eq!((t.shape(), t.host_ptr::<f64>().unwrap()), (&[6][..], address));

    let value = Value::new(t);
    let part = value.with_layout(value.layout().slice("t", &[0], &[3], &[1]).unwrap());
    drop(value);
    assert!(!part.is_contiguous(), "the part does not cover its owner");
    assert!(part.read().is_contiguous(), "but can be read as a slice");
    assert!(part.clone().into_tensor().unwrap_err().to_string().contains("duplicate()"));
    assert_eq!(part.duplicate().unwrap().as_slice::<f64>().unwrap(), [1.0, 4.0, 2.0]);
}

#[test]
fn indexing_outside_is_none_and_panics_like_a_slice() {
    let mut a = matrix();
    assert_eq!(
        (a.get(&[1, 2]), a.get(&[2, 0]), a.get(&[0]), a.get(&[0, 0, 0])),
        (Some(&6.0), None, None, None)
    );
    *a.get_mut(&[1, 0]).unwrap() = 8.0;
    a[[0, 1]] += 1.0;
    a[&[0, 2][..]] = 7.0;
    assert_eq!(a.as_slice().unwrap(), [1.0, 8.0, 3.0, 5.0, 7.0, 6.0]);
    assert!(std::panic::catch_unwind(|| matrix()[[0, 3]]).is_err());
    assert!(std::panic::catch_unwind(|| matrix()[[2, 0]] = 1.0).is_err());
    assert!(matches!(a.as_tensor().get::<f64>(&[0, 3]), Err(Error::Argument(_))));
}

#[test]
fn ranks_in_the_type_are_checked() {
    let a = matrix().into_rank::<2>().unwrap();
    let view: TypedTensorView<'_, f64, Ranked<2>> = a.as_view().transpose_view([1, 0]).unwrap();
    assert_eq!(view.shape(), [3, 2]);
    let read: TensorRead = view.into();
    assert_eq!(read.shape(), [3, 2]);
    assert!(matches!(a.into_dyn().into_rank::<3>(), Err(Error::Rank(_))));
    let zero = TypedTensor::<f32, Ranked<0>>::from_vec_col_major([], vec![1.0]).unwrap();
    assert_eq!(zero.item().unwrap(), 1.0);
}

#[test]
fn allclose_uses_both_tolerances_and_no_nan() {
    let t = |x: Vec<f64>| TypedTensor::<f64>::from_vec_col_major([x.len()], x).unwrap();
    assert!(t(vec![1.0, 100.0]).allclose(&t(vec![1.05, 101.0]), 0.0, 1.0).unwrap());
    assert!(t(vec![99.0]).allclose(&t(vec![100.0]), 0.01, 0.0).unwrap());
    assert!(!t(vec![98.9]).allclose(&t(vec![100.0]), 0.01, 0.0).unwrap());
    assert!(!t(vec![f64::NAN]).allclose(&t(vec![f64::NAN]), 1.0, 1.0).unwrap());
    assert!(t(vec![f64::INFINITY]).allclose(&t(vec![f64::INFINITY]), 0.0, 0.0).unwrap());
    assert!(!t(vec![1.0]).allclose(&t(vec![f64::INFINITY]), 1.0, 1.0).unwrap());
    assert!(!t(vec![f64::NEG_INFINITY]).allclose(&t(vec![f64::INFINITY]), 1.0, 1.0).unwrap());
    let z = |re, im| Tensor::scalar(C64::new(re, im));
    assert!(z(0.0, 0.0).allclose(&z(0.6, 0.8), 0.0, 1.0 + 1e-12).unwrap());
    assert!(!z(0.0, 0.0).allclose(&z(0.9, 0.9), 0.0, 1.0).unwrap());
    let big = 1_i64 << 60;
    assert!(!Tensor::scalar(big).allclose(&Tensor::scalar(big + 1), 0.0, 0.5).unwrap());
    assert!(matches!(z(0.0, 0.0).allclose(&Tensor::scalar(0.0), 0.0, 0.0), Err(Error::DType(_))));
    assert!(matches!(t(vec![1.0]).allclose(&t(vec![1.0, 1.0]), 0.0, 0.0), Err(Error::Shape(_))));
}

#[test]
fn random_tensors_name_their_own_errors() {
    assert_eq!(Tensor::uniform(DType::F64, [1 << 62, 4], 0).unwrap_err().op(), "uniform");
    assert_eq!(Tensor::normal(DType::C32, [1 << 62, 4], 0).unwrap_err().op(), "normal");
}

#[test]
fn random_tensors_have_the_stated_moments() {
    let n = 20_000;
    for dtype in [DType::F32, DType::F64, DType::C32, DType::C64] {
        let parts = |t: Tensor| -> Vec<f64> {
            dispatch!(dtype, T => t.as_slice::<T>().unwrap().iter().flat_map(|x| {
                let z = x.to_c64();
                if dtype.is_complex() { vec![z.re, z.im] } else { vec![z.re] }
            }).collect())
        };
        let moments = |x: &[f64]| {
            let mean = x.iter().sum::<f64>() / x.len() as f64;
            (mean, x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64)
        };
        let u = parts(Tensor::uniform(dtype, [n], 1).unwrap());
        assert!(u.iter().all(|x| (0.0..1.0).contains(x)));
        let (mean, variance) = moments(&u);
        assert!((mean - 0.5).abs() < 0.02 && (variance - 1.0 / 12.0).abs() < 0.005, "{mean} {variance}");
        let (mean, variance) = moments(&parts(Tensor::normal(dtype, [n], 1).unwrap()));
        assert!(mean.abs() < 0.05 && (variance - 1.0).abs() < 0.06, "{mean} {variance}");
        assert_ne!(Tensor::normal(dtype, [4], 1).unwrap(), Tensor::normal(dtype, [4], 2).unwrap());
    }
    assert!(matches!(Tensor::normal(DType::I32, [1], 0), Err(Error::DType(_))));
    assert_eq!(
        TypedTensor::<f64>::normal([2, 2], 3).unwrap(),
        TypedTensor::<f64>::normal([2, 2], 3).unwrap()
    );
}

#[test]
fn printing_aligns_and_truncates() {
    assert_eq!(matrix().to_string(), "f64[2, 3]\n  1.0  2.0  3.0\n  4.0  5.0  6.0");
    assert_eq!(Tensor::scalar(2_i32).to_string(), "i32[] 2");
    assert_eq!(format!("{:.2}", Tensor::scalar(1.0 / 3.0)), "f64[] 0.33");
    let z = Tensor::from_vec_col_major([2], vec![C64::new(1.0, -2.5), C64::new(-0.0, 1e-9)]).unwrap();
    assert_eq!(z.to_string(), "c64[2]\n      1.0-2.5i\n  -0.0+1.0e-9i");
    let b = Tensor::from_vec_col_major([1, 2], vec![true, false]).unwrap();
    assert_eq!(b.to_string(), "bool[1, 2]\n  true  false");
    let cube = Tensor::zeros(DType::F32, [1, 1, 2]).unwrap();
    assert_eq!(cube.to_string(), "f32[1, 1, 2]\n[.., .., 0]\n  0.0\n[.., .., 1]\n  0.0");
    let x = Tensor::from_vec_col_major([4], vec![123456.7, 1234567.0, f64::NAN, -1.0 / 3.0]).unwrap();
    assert_eq!(x.to_string(), "f64[4]\n   123456.7\n  1.23457e6\n        NaN\n  -0.333333");
    let large = Tensor::zeros(DType::F64, [1000, 1000, 1000, 0]).unwrap();
    assert_eq!(large.to_string(), "f64[1000, 1000, 1000, 0]");
    let long = Tensor::zeros(DType::F64, [500, 20, 30]).unwrap().to_string();
    assert_eq!(long.lines().count(), 1 + 8 * (1 + 9) + 1);
    assert!(long.lines().any(|line| line.trim_start().starts_with(':')));
}
