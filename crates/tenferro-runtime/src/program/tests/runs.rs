//! Running programs.

use super::*;
use tenferro_core_ops::{Atom, build, constant};
use tenferro_tensor::Value;

#[test]
fn one_program_runs_at_any_extents() {
    let (n, m) = (sym("n"), sym("m"));
    let (a, x) = (f64s([n.clone(), m.clone()]), f64s([m.clone(), 1.into()]));
    let y = a.matmul(&x).tanh().reshape(std::slice::from_ref(&n)) * 2.0;
    let total = &y + &a.reduce_sum(Some(&[1]));
    let p = Program::new(&[a, x], &[total]).unwrap();
    for (n, m) in [(2, 3), (5, 1), (2, 3), (2, 3), (0, 4), (3, 0)] {
        let (at, xt) = (numbers(&[n, m]), numbers(&[m, 1]));
        let (av, xv) = (at.as_slice::<f64>().unwrap(), xt.as_slice::<f64>().unwrap());
        let got = run(&p, &[&at, &xt]);
        for i in 0..n {
            let dot: f64 = (0..m).map(|j| av[i + n * j] * xv[j]).sum();
            let sum: f64 = (0..m).map(|j| av[i + n * j]).sum();
            assert!((got[0][i] - (2.0 * dot.tanh() + sum)).abs() < 1e-14);
        }
        assert_eq!(got[0].len(), n);
    }
}

#[test]
fn extents_found_by_a_kernel_reach_later_calls() {
    let x = f64s([sym("n")]);
    let y = apply1(&Leading, &[&x]);
    let k = y.extent(0);
    assert!(matches!(k.as_atom(), Some(Atom::Data { .. })));
    let z = &(&y + 1.0) * &y;
    let square = y.reshape(&[k.clone(), 1.into()]).broadcast_in_dim(&[k.clone(), k], &[0, 1]);
    let p = Program::new(&[x], &[z, square]).unwrap();
    let mut cpu = CpuBackend::with_threads(1);
    for (data, k) in
        [([1.0, 2.0, -1.0], 2), ([1.0, -2.0, 1.0], 1), ([3.0, 2.0, 1.0], 3), ([-1.0, 2.0, 1.0], 0)]
    {
        for _ in 0..2 {
            let y = p.run(&mut cpu, &[&tensor(&[3], &data)]).unwrap();
            assert_eq!((y[0].shape(), y[1].shape()), (&[k][..], &[k, k][..]));
            let want: Vec<f64> = data[..k].iter().map(|v| (v + 1.0) * v).collect();
            assert_eq!(y[0].as_slice::<f64>().unwrap(), want);
        }
    }
}

#[test]
fn an_extent_keeps_the_call_that_decides_it() {
    let x = f64s([sym("n")]);
    let y = apply1(&Leading, &[&x]);
    let ones = y.like(1.0);
    let p = Program::new(&[x], &[ones]).unwrap();
    assert_eq!(names(&p), ["leading", "broadcast_in_dim"]);
    assert_eq!(run(&p, &[&tensor(&[3], &[1.0, 2.0, -1.0])]), [[1.0, 1.0]]);
    let n = f64s([sym("n")]);
    let e = Program::from_outputs(&[n.like(1.0)]).unwrap_err();
    assert!(e.to_string().contains("extent: got n"), "{e}");
}

#[test]
fn calls_without_a_kernel_are_expanded() {
    let x = f64s([sym("n")]);
    let y = apply1(&Softplus, &[&x]) + apply1(&Softplus, &[&x.exp()]);
    let p = Program::new(&[x], &[y]).unwrap();
    let want = |v: f64| v.exp().ln_1p() + v.exp().exp().ln_1p();
    let got = run(&p, &[&tensor(&[2], &[0.5, -1.0])]);
    assert!((got[0][0] - want(0.5)).abs() < 1e-14 && (got[0][1] - want(-1.0)).abs() < 1e-14);
}

#[test]
fn an_expanded_call_passes_its_extents_on() {
    let x = f64s([sym("n")]);
    let y = apply1(&LeadingNext, &[&x]);
    let p = Program::new(&[x], &[&y.like(1.0) + &y]).unwrap();
    assert_eq!(run(&p, &[&tensor(&[3], &[1.0, 2.0, -1.0])]), [[3.0, 4.0]]);
}

#[test]
fn calls_a_backend_cannot_fuse_run_alone() {
    let x = f64s([sym("n")]);
    let y = (apply1(&Twice, &[&(&x + 1.0)]) * 3.0).sqrt();
    let p = Program::new(&[x], &[y]).unwrap();
    assert_eq!(run(&p, &[&tensor(&[2], &[0.5, 5.0])]), [[3.0, 6.0]]);
}

#[test]
fn constants_fold_once_per_backend() {
    let c = constant(Value::new(tensor(&[2], &[1.0, 2.0])));
    let x = f64s([2.into()]);
    let p = Program::new(std::slice::from_ref(&x), &[&next_of(&next_of(&c)) + &x]).unwrap();
    let mut cpu = CpuBackend::with_threads(1);
    RUNS.set(0);
    for _ in 0..3 {
        let y = p.run(&mut cpu, &[&tensor(&[2], &[10.0, 20.0])]).unwrap();
        assert_eq!(y[0].as_slice::<f64>().unwrap(), [13.0, 24.0]);
    }
    assert_eq!(RUNS.get(), 2);
    let mut other = CpuBackend::with_threads(2);
    p.run(&mut other, &[&tensor(&[2], &[10.0, 20.0])]).unwrap();
    assert_eq!(RUNS.get(), 4);
}

#[test]
fn an_extent_decided_by_constants_is_known() {
    let c = constant(Value::new(tensor(&[3], &[1.0, 2.0, -1.0])));
    let y = apply1(&Leading, &[&c]);
    let x = f64s([y.extent(0)]);
    let p = Program::new(std::slice::from_ref(&x), &[&x + &y]).unwrap();
    assert_eq!(run(&p, &[&tensor(&[2], &[1.0, 1.0])]), [[2.0, 3.0]]);
}

#[test]
fn a_dead_buffer_is_taken() {
    let x = f64s([sym("n")]);
    let a = next_of(&x);
    let b = next_of(&a);
    let c = next_of(&b.reshape(&[sym("n"), 1.into()]));
    let d = next_of(&c);
    let p = Program::new(&[x], &[b.clone(), d]).unwrap();
    let mut cpu = CpuBackend::with_threads(1);
    let x = numbers(&[10_000]);
    for _ in 0..2 {
        REUSED.set(0);
        let y = p.run(&mut cpu, &[&x]).unwrap();
        // a into b and c into d; x belongs to the caller and b is an output.
        assert_eq!(REUSED.get(), 2);
        let off = |t: &Tensor, by: f64| {
            let t = t.as_slice::<f64>().unwrap().to_vec();
            t.iter().zip(x.as_slice::<f64>().unwrap()).all(|(a, b)| (a - b - by).abs() < 1e-12)
        };
        assert!(off(&y[0], 2.0) && off(&y[1], 4.0) && off(&x, 0.0));
    }
}

#[test]
fn small_calls_follow_every_change() {
    let n = sym("n");
    let x = f64s([n.clone(), n]);
    let product = x.matmul(&x.transpose(&[1, 0])).tril(0).matmul(&x);
    let y = (&(&product * &x) - 1.0).triu(1);
    let p = Program::new(std::slice::from_ref(&x), &[y.clone(), y.reduce_sum(None)]).unwrap();
    let mut cpu = CpuBackend::with_threads(1);
    for (n, shift) in [(2, 0.0), (2, 1.0), (3, 0.0), (1, 2.0), (40, 0.0), (2, 0.5), (0, 0.0), (3, 0.5)] {
        let t = numbers(&[n, n]);
        let data: Vec<f64> = t.as_slice::<f64>().unwrap().iter().map(|v| v + shift).collect();
        let at = |a: &[f64], i: usize, j: usize| a[i + n * j];
        let table =
            |f: &dyn Fn(usize, usize) -> f64| -> Vec<f64> { (0..n * n).map(|k| f(k % n, k / n)).collect() };
        let square =
            table(&|i, j| if i < j { 0.0 } else { (0..n).map(|k| at(&data, i, k) * at(&data, j, k)).sum() });
        let product = table(&|i, j| (0..n).map(|k| at(&square, i, k) * at(&data, k, j)).sum());
        let want = table(&|i, j| if i < j { at(&product, i, j) * at(&data, i, j) - 1.0 } else { 0.0 });
        for _ in 0..2 {
            let got = p.run(&mut cpu, &[&tensor(&[n, n], &data)]).unwrap();
            let got = got[0].as_slice::<f64>().unwrap();
            assert!(got.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-9 * (1.0 + b.abs())), "{n}");
        }
    }
}

#[test]
fn a_result_that_a_kernel_shares_is_not_written_again() {
    let x = f64s([2.into(), 2.into()]);
    let y = apply1(&Kept, &[&x.matmul(&x)]);
    let p = Program::new(&[x], &[y]).unwrap();
    let mut cpu = CpuBackend::with_threads(1);
    let run =
        |cpu: &mut CpuBackend, data: [f64; 4]| p.run(cpu, &[&tensor(&[2, 2], &data)]).unwrap().remove(0);
    let first = run(&mut cpu, [1.0, 0.0, 0.0, 1.0]);
    KEPT.with_borrow(|kept| assert_eq!(kept[0].owner().as_slice::<f64>().unwrap(), [1.0, 0.0, 0.0, 1.0]));
    run(&mut cpu, [2.0, 0.0, 0.0, 2.0]);
    assert_eq!(first.as_slice::<f64>().unwrap(), [1.0, 0.0, 0.0, 1.0]);
    KEPT.with_borrow(|kept| assert_eq!(kept[0].owner().as_slice::<f64>().unwrap(), [1.0, 0.0, 0.0, 1.0]));
}

#[test]
fn looking_for_nan_sees_small_calls() {
    let x = f64s([2.into(), 2.into()]);
    let p = Program::new(std::slice::from_ref(&x), &[x.log().matmul(&x)]).unwrap();
    let mut cpu = CpuBackend::with_threads(1);
    let bad = tensor(&[2, 2], &[1.0, -1.0, 1.0, 1.0]);
    p.run(&mut cpu, &[&bad]).unwrap();
    cpu.set_nan_check(true);
    assert_eq!(p.run(&mut cpu, &[&bad]).unwrap_err().op(), "log");
}

#[test]
fn a_buffer_is_not_taken_while_a_view_of_it_is_read() {
    let x = f64s([2.into(), 3.into()]);
    let a = next_of(&x);
    let t = a.transpose(&[1, 0]);
    let b = next_of(&a);
    // reshaping a transpose copies it
    let r = t.reshape(&[6_usize]);
    let c = next_of(&r);
    let p = Program::new(&[x], &[b, c, r, t.clone(), a.clone(), t]).unwrap();
    let mut cpu = CpuBackend::with_threads(1);
    for _ in 0..2 {
        let y = p.run(&mut cpu, &[&tensor(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]).unwrap();
        let v: Vec<&[f64]> = y.iter().map(|t| t.as_slice().unwrap()).collect();
        let (a, t) = ([2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [2.0, 4.0, 6.0, 3.0, 5.0, 7.0]);
        assert_eq!(v[0], a.map(|v| v + 1.0));
        assert_eq!(v[1], t.map(|v| v + 1.0));
        assert_eq!([v[2], v[3], v[4], v[5]], [&t, &t, &a, &t]);
        assert!(y.iter().all(Tensor::is_unique));
        assert_eq!((y[2].shape(), y[3].shape()), (&[6][..], &[3, 2][..]));
    }
}

#[test]
fn a_view_that_was_copied_lives_as_long_as_views_of_it() {
    let x = f64s([sym("n"), sym("m")]);
    let flat = next_of(&x).transpose(&[1, 0]).reshape(&[sym("n").mul(&sym("m"))]);
    let back = flat.reverse(&[0]);
    let p = Program::new(&[x], &[next_of(&back), back.slice_axis(0, 0, 1)]).unwrap();
    for (n, m) in [(2, 2), (1, 3), (3, 1), (2, 2)] {
        let x = numbers(&[n, m]);
        let v = x.as_slice::<f64>().unwrap();
        let mut want: Vec<f64> = (0..n).flat_map(|i| (0..m).map(move |j| v[i + n * j] + 1.0)).collect();
        want.reverse();
        let y = run(&p, &[&x]);
        assert_eq!(y[1], want[..1]);
        assert_eq!(y[0], want.iter().map(|v| v + 1.0).collect::<Vec<_>>());
    }
}

#[test]
fn a_view_of_a_copy_outlives_later_uses_of_the_copy() {
    let (n, m) = (sym("n"), sym("m"));
    let x = f64s([n.clone(), m.clone()]);
    let copy = x.transpose(&[1, 0]).reshape(&[n.mul(&m)]);
    let view = copy.reverse(&[0]);
    let p = Program::new(&[x], &[next_of(&copy), next_of(&view)]).unwrap();
    // The larger one is worth taking for the first output.
    for (n, m) in [(2, 3), (100, 200)] {
        let x = numbers(&[n, m]);
        let v = x.as_slice::<f64>().unwrap();
        let mut want: Vec<f64> = (0..n).flat_map(|i| (0..m).map(move |j| v[i + n * j] + 1.0)).collect();
        let y = run(&p, &[&x]);
        assert_eq!(y[0], want);
        want.reverse();
        assert_eq!(y[1], want);
    }
}

#[test]
fn outputs_are_buffers_of_their_own() {
    let x = f64s([2.into()]);
    let c = constant(Value::new(tensor(&[2], &[7.0, 8.0])));
    let y = next_of(&x);
    let p =
        Program::new(std::slice::from_ref(&x), &[x.clone(), y.clone(), y, c.clone(), x.clone(), c]).unwrap();
    let out = p.run(&mut CpuBackend::with_threads(1), &[&tensor(&[2], &[1.0, 2.0])]).unwrap();
    assert!(out.iter().all(Tensor::is_unique));
    let v: Vec<&[f64]> = out.iter().map(|t| t.as_slice().unwrap()).collect();
    assert_eq!(v, [[1.0, 2.0], [2.0, 3.0], [2.0, 3.0], [7.0, 8.0], [1.0, 2.0], [7.0, 8.0]]);
}

#[test]
fn runs_overlap() {
    let x = f64s([sym("n")]);
    let y = (0..8).fold(x.clone(), |y, _| next_of(&(&y * 0.5).tanh()));
    let p = Program::new(&[x], &[y]).unwrap();
    let cpu = CpuBackend::with_threads(1);
    let want: Vec<Vec<f64>> = (1..6).map(|n| run(&p, &[&numbers(&[n])]).remove(0)).collect();
    std::thread::scope(|s| {
        for t in 0..4 {
            let (p, cpu, want) = (&p, &cpu, &want);
            s.spawn(move || {
                for k in 0..200 {
                    let n = 1 + (t + k) % 5;
                    let y = p.run_on(cpu, &[&numbers(&[n])]).unwrap();
                    assert_eq!(y[0].as_slice::<f64>().unwrap(), want[n - 1]);
                }
            });
        }
    });
}

#[test]
fn depth_does_not_use_the_stack() {
    const DEPTH: usize = 200_000;
    let x = f64s([1.into()]);
    let y = (0..DEPTH).fold(x.clone(), |y, k| if k % 2 == 0 { &y + &x } else { y.reverse(&[0]) });
    let p = Program::new(&[x], &[y]).unwrap();
    assert_eq!(run(&p, &[&tensor(&[1], &[2.0])]), [[2.0 + (DEPTH / 2) as f64 * 2.0]]);
}

#[test]
fn programs_without_inputs_run() {
    let y = constant(Value::new(tensor(&[2], &[3.0, 4.0])));
    let p = Program::from_outputs(&[(&y * &y).reduce_sum(None)]).unwrap();
    assert_eq!(run(&p, &[]), [[25.0]]);
    assert!(run(&Program::new(&[], &[]).unwrap(), &[]).is_empty());
}

#[test]
fn small_calls_on_nothing_of_any_extents_are_errors_or_empty() {
    let mut cpu = CpuBackend::with_threads(1);
    let large = 1 << 32;
    let x = f64s([sym("n"), sym("m"), sym("n")]);
    let y = x.reduce_prod(Some(&[1])) + 1.0;
    let e = Program::new(&[x], &[y])
        .unwrap()
        .run(&mut cpu, &[&Tensor::zeros(DType::F64, [large, 0, large]).unwrap()]);
    assert!(e.is_err());
    let x = f64s([sym("n"), sym("m")]);
    let y = build::concatenate(&[x.clone(), x.clone()], 0) + 1.0;
    let empty = Tensor::zeros(DType::F64, [isize::MAX as usize, 0]).unwrap();
    let y = Program::new(&[x], &[y]).unwrap().run(&mut cpu, &[&empty]);
    assert!(y.is_err() || y.is_ok_and(|y| y[0].is_empty()));
}
