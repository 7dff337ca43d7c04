//! Bugs that were reported against other libraries of this field, each as a check of the same input here.

use crate::{
    Step,
    args::{lits, present},
    check::Outcome,
    json::{number, plain},
    layout::batch_last,
    matrices::run as on_cpu,
    record::array,
};
use serde_json::Value;
use std::{path::Path, sync::Arc};
use tenferro_ad::EagerTensorAdExt;
use tenferro_core_ops::{Dim, Var, apply1, jvp_traced, ops, or_zero};
use tenferro_cpu::CpuBackend;
use tenferro_einsum::{Einsum, Optimize, einsum};
use tenferro_linalg::ops as linalg;
use tenferro_runtime::EagerRuntime;
use tenferro_tensor::DType;
use tenferro_testing::{Array, Calls, Elem, run};

type Checked = Result<(), String>;

/// A part of a report: what is checked, or why it is not.
enum Part {
    Check(fn(&Value) -> Checked),
    Skip(&'static str),
}
use Part::{Check, Skip};

/// Reports by their id. One that is not here is listed as skipped.
const REPORTS: &[(&str, &[Part])] = &[
    ("ein-diag-not-last", &[Check(einsum_values)]),
    ("ein-implicit-trace", &[Check(implicit_trace)]),
    ("ein-crossed-pairs", &[Check(einsum_values)]),
    ("ein-size-mismatch", &[Check(size_mismatch)]),
    ("ein-ellipsis", &[Check(ellipsis)]),
    ("ein-empty-contraction", &[Check(empty_contraction)]),
    ("grad-empty-inner", &[Check(empty_inner)]),
    ("plan-tetrahedron", &[Check(plan)]),
    ("plan-hyperedges", &[Check(plan), Check(hyperedges)]),
    ("cplx-chain-exp-einsum", &[Check(chain)]),
    ("cplx-svd-conj", &[Check(svd_conj)]),
    ("svd-allones", &[Check(all_ones)]),
    ("svd-rank1-2x2", &[Check(rank_one)]),
    ("svd-qr-degenerate", &[Check(svd_degenerate), Skip("operation absent: qr")]),
    ("linalg-zero-batch-nopanic", &[Check(zero_batch), Skip("operation absent: cholesky, eigh, det, inv")]),
    ("svd-grad-degenerate-recon", &[Check(reconstruction)]),
    ("svd-eigh-grad-batched", &[Check(svd_batched), Skip("operation absent: eigh")]),
    ("prod-grad-zero", &[Check(product_of_zeros)]),
    ("gather-grad-duplicates", &[Check(duplicates)]),
    ("scatter-duplicate-semantics", &[Check(scatter_add), Skip("operation absent: scatter that assigns")]),
    ("dynamic-slice-clamp-grad", &[Check(clamped_slice)]),
    ("tie-grad-max", &[Check(ties)]),
    ("pow-grad-exponent-zero-base", &[Check(power_of_zero)]),
    ("abs-grad-complex-zero", &[Check(modulus_of_zero)]),
    ("cplx-div-overflow", &[Check(complex_division)]),
    ("mean-axis-grad-shape", &[Check(mean_of_an_axis)]),
    ("broadcast-mul-grad", &[Check(broadcast_product)]),
    ("backward-accumulates", &[Check(accumulation)]),
    ("int-sum-wrap", &[Check(integers)]),
    ("blas-strides", &[Check(strides)]),
    (
        "nan-does-not-spread",
        &[Check(nan_stays), Skip("reverse mode sums over the elements, and 0 NaN is NaN")],
    ),
    ("view-is-metadata", &[Skip("a bound of time, which the benchmarks measure")]),
    ("gpu-svd-first-call-zero", &[Check(first_svd)]),
    ("wgpu-dispatch-limit", &[Skip("no WebGPU backend")]),
    ("eigh-nan-garbage", &[Skip("operation absent: eigh")]),
    ("eigh-complex-real-w", &[Skip("operation absent: eigh")]),
    ("eigh-jvp-large", &[Skip("operation absent: eigh")]),
    ("eigh-grad-symmetric-convention", &[Skip("operation absent: eigh")]),
    ("slogdet-sign-batch", &[Skip("operation absent: slogdet")]),
    ("det-grad-singular", &[Skip("operation absent: det")]),
    ("cholesky-not-pd", &[Skip("operation absent: cholesky")]),
    ("cholesky-grad-logdet", &[Skip("operation absent: cholesky")]),
    ("tri-solve-grad-A", &[Skip("operation absent: triangular_solve")]),
    ("expm-lower-tri", &[Skip("operation absent: matrix_exp")]),
    ("expm-moler", &[Skip("operation absent: matrix_exp")]),
    ("qr-jvp-R", &[Skip("operation absent: qr")]),
    ("qr-grad-unused-output", &[Skip("operation absent: qr")]),
    ("sort-nan-sign", &[Skip("operation absent: sort")]),
];

pub(crate) fn steps(folder: &Path) -> Result<Vec<(String, Vec<Step>)>, String> {
    let all = plain(&folder.join("bug_reports.json"))?;
    let report = |v: &Value| {
        let id = v["id"].as_str().unwrap_or_default().to_string();
        let parts = REPORTS.iter().find(|(name, _)| *name == id).map_or(&[][..], |(_, parts)| parts);
        let mut steps: Vec<Step> = parts.iter().map(|part| step(part, v)).collect();
        if steps.is_empty() {
            let fft = ["fft", "rfft", "irfft", "fftn"].iter().any(|p| id.split('-').next() == Some(p));
            let reason = if fft { "no FFT yet" } else { "no check" };
            steps.push(Box::new(move || Outcome::Skipped(reason.to_string())));
        }
        (id, steps)
    };
    Ok(all.as_array().into_iter().flatten().map(report).collect())
}

fn step(part: &'static Part, v: &Value) -> Step {
    match part {
        Skip(reason) => Box::new(|| Outcome::Skipped(reason.to_string())),
        Check(check) => {
            let v = v.clone();
            Box::new(move || match check(&v) {
                Ok(()) => Outcome::Replayed,
                Err(e) => Outcome::Failed(e),
            })
        }
    }
}

fn reals(shape: &[usize], data: &[f64]) -> Array {
    Array::reals(DType::F64, shape, data)
}

/// A tensor, a list of numbers, or a number.
fn wanted(v: &Value) -> Result<Array, String> {
    if v.is_object() {
        return array(v);
    }
    if let Some(x) = number(v) {
        return Ok(reals(&[], &[x]));
    }
    let list = v.as_array().ok_or_else(|| format!("no numbers: {v}"))?;
    if list.first().is_some_and(Value::is_array) {
        let pair = |v: &Value| (number(&v[0]).unwrap_or(f64::NAN), number(&v[1]).unwrap_or(f64::NAN));
        return Ok(Array::complexes(DType::C64, &[list.len()], &list.iter().map(pair).collect::<Vec<_>>()));
    }
    let data: Vec<f64> = list.iter().filter_map(number).collect();
    Ok(reals(&[data.len()], &data))
}

/// How far results may be from what the report says.
fn tolerance(v: &Value) -> f64 {
    number(&v["tolerance"]).unwrap_or(0.0)
}

fn same(what: &str, got: &Array, want: &Array, tolerance: f64) -> Checked {
    got.close(want, tolerance, tolerance).map_err(|e| format!("{what}: {e}"))
}

fn calls(f: impl Fn(&[Var]) -> Var + Send + Sync + 'static) -> Calls {
    Arc::new(move |x| vec![f(x)])
}

fn value(f: &Calls, x: &[Array]) -> Result<Array, String> {
    let direct = run::direct(f, x).map_err(|e| e.to_string())?.remove(0);
    let traced = run::compiled(f, x).map_err(|e| e.to_string())?.remove(0);
    same("traced as direct", &traced, &direct, 1e-14)?;
    Ok(direct)
}

/// The gradients of a real scalar, traced; the tape has the same.
fn gradients(f: &Calls, x: &[Array]) -> Result<Vec<Array>, String> {
    pulled(f, x, &reals(&[], &[1.0]))
}

fn pulled(f: &Calls, x: &[Array], ct: &Array) -> Result<Vec<Array>, String> {
    let ct = std::slice::from_ref(ct);
    let traced = run::vjp(f, x, ct).map_err(|e| format!("traced: {e}"))?;
    let eager = run::eager_vjp(f, x, ct).map_err(|e| format!("eager: {e}"))?;
    for (a, b) in eager.iter().zip(&traced) {
        same("eager as traced", a, b, 1e-14)?;
    }
    Ok(traced)
}

fn einsum_call(text: &str) -> Result<Calls, String> {
    let op = Einsum::parse(text).map_err(|e| e.to_string())?;
    Ok(calls(move |x| einsum(&op, &x.iter().collect::<Vec<_>>())))
}

/// Every einsum of `expected` on as many inputs as it has, in the order of their names.
fn einsum_values(v: &Value) -> Checked {
    let inputs: Vec<Array> =
        v["input"].as_object().into_iter().flatten().map(|(_, t)| array(t)).collect::<Result<_, _>>()?;
    for (text, want) in v["expected"].as_object().into_iter().flatten() {
        let x = &inputs[..text.split("->").next().unwrap_or_default().split(',').count()];
        same(text, &value(&einsum_call(text)?, x)?, &wanted(want)?, 0.0)?;
    }
    Ok(())
}

/// Text without an arrow is an error here, and never another result.
fn implicit_trace(v: &Value) -> Checked {
    let a = array(&v["input"]["a"])?;
    for (text, want) in v["expected"].as_object().into_iter().flatten() {
        match einsum_call(text) {
            Ok(f) => same(text, &value(&f, std::slice::from_ref(&a))?, &wanted(want)?, 0.0)?,
            Err(_) if text.contains("->") => return Err(format!("{text} is refused")),
            Err(_) => {}
        }
    }
    Ok(())
}

fn size_mismatch(v: &Value) -> Checked {
    let x = [reals(&[5, 1], &[1.0; 5]), array(&v["input"]["b"])?];
    let f = einsum_call("ij,i->")?;
    let plan = Einsum::parse("ij,i->").and_then(|e| e.plan(&[&[5, 1], &[2]]).map(drop));
    let results = [
        ("direct", run::direct(&f, &x).map(drop)),
        ("traced", run::compiled(&f, &x).map(drop)),
        ("eager", run::eager(&f, &x).map(drop)),
        ("planned", plan),
    ];
    for (way, result) in results {
        let said = result.err().ok_or(format!("{way}: no error"))?.to_string();
        if !["i", "5", "2"].iter().all(|part| said.contains(part)) {
            return Err(format!("{way}: {said}"));
        }
    }
    Ok(())
}

fn ellipsis(v: &Value) -> Checked {
    let x = array(&v["input"]["x"])?;
    if let Ok(f) = einsum_call("i...->i") {
        same("i...->i", &value(&f, std::slice::from_ref(&x))?, &reals(&[3], &[36.0, 117.0, 198.0]), 0.0)?;
    }
    if let Ok(f) = einsum_call("...ij->...ji") {
        same("...ij->...ji", &value(&f, &[x])?, &wanted(&v["expected"]["...ij->...ji"])?, 0.0)?;
    }
    Ok(())
}

fn empty_contraction(_: &Value) -> Checked {
    type Shape = &'static [usize];
    let cases: [(&str, &[Shape], Shape); 5] = [
        ("i,i->", &[&[0], &[0]], &[]),
        ("ij,jk->ik", &[&[2, 0], &[0, 3]], &[2, 3]),
        ("bij,bjk->bik", &[&[3, 2, 0], &[3, 0, 3]], &[3, 2, 3]),
        ("jnbf,menf->jbme", &[&[2, 0, 6, 8], &[2, 6, 0, 8]], &[2, 6, 2, 6]),
        ("ij->i", &[&[3, 0]], &[3]),
    ];
    for (text, shapes, want) in cases {
        let f = einsum_call(text)?;
        let x: Vec<Array> = shapes.iter().map(|s| reals(s, &[])).collect();
        let zeros = reals(want, &vec![0.0; want.iter().product()]);
        for _ in 0..3 {
            // Leaves memory behind that holds no zeros.
            let dirt = calls(|x| &x[0] + &x[0]);
            value(&dirt, &[zeros.map(DType::F64, |_| Elem::real(f64::NAN))])?;
            same(text, &value(&f, &x)?, &zeros, 0.0)?;
        }
    }
    Ok(())
}

fn empty_inner(_: &Value) -> Checked {
    let loss = calls(|x| {
        let y = x[0].matmul(&x[1]) + 1.0;
        (&y * &y).reduce_sum(None)
    });
    let x = [Array::uniform(DType::F64, &[3, 4], 1, -1.0, 1.0), reals(&[4, 0], &[])];
    same("value", &value(&loss, &x)?, &reals(&[], &[0.0]), 0.0)?;
    let g = gradients(&loss, &x)?;
    same("grad a", &g[0], &reals(&[3, 4], &[0.0; 12]), 0.0)?;
    same("grad b", &g[1], &x[1], 0.0)?;
    let x = [reals(&[3, 0], &[]), reals(&[0, 4], &[])];
    same("grad of an empty factor", &gradients(&loss, &x)?[0], &x[0], 0.0)
}

/// At most twice the operations of the best order.
fn plan(v: &Value) -> Checked {
    let (text, n) =
        (v["input"]["expr"].as_str().unwrap_or_default(), v["input"]["dims"].as_u64().unwrap_or(1) as usize);
    let op = explicit(text)?;
    let notation = op.expression().notation().ok_or("an ellipsis")?;
    let shapes: Vec<Vec<usize>> = notation.inputs().iter().map(|labels| vec![n; labels.len()]).collect();
    let shapes: Vec<&[usize]> = shapes.iter().map(|s| &s[..]).collect();
    let plan = op.plan(&shapes).map_err(|e| e.to_string())?;
    let best = number(&v["expected"]["opt_einsum"]["optimal"]["flops"]).ok_or("no flops")?;
    if plan.flops() <= 2.0 * best {
        Ok(())
    } else {
        Err(format!("{} flops, the best is {best}", plan.flops()))
    }
}

fn explicit(text: &str) -> Result<Einsum, String> {
    let text = if text.contains("->") { text.to_string() } else { format!("{text}->") };
    Einsum::parse(&text).map_err(|e| e.to_string())
}

/// Any order gives the same integers.
fn hyperedges(v: &Value) -> Checked {
    let op = explicit(v["input"]["expr"].as_str().unwrap_or_default())?;
    let notation = op.expression().notation().ok_or("an ellipsis")?;
    let operands = notation.inputs().len() as u64;
    let bits = |k: u64| {
        Array::uniform(DType::F64, &[5, 5], k, 0.0, 2.0).map(DType::F64, |e| Elem::real(e.re().floor()))
    };
    let x: Vec<Array> = (0..operands).map(bits).collect();
    let n = 5usize;
    let labels: Vec<Vec<u32>> = notation.inputs().iter().map(|l| l.to_vec()).collect();
    let names: std::collections::BTreeSet<u32> = labels.iter().flatten().copied().collect();
    let names: Vec<u32> = names.into_iter().collect();
    let mut total = 0.0;
    for mut k in 0..n.pow(names.len() as u32) {
        let digits: Vec<usize> = names
            .iter()
            .map(|_| {
                let d = k % n;
                k /= n;
                d
            })
            .collect();
        let at = |l: &u32| digits[names.iter().position(|m| m == l).unwrap_or(0)];
        let factor = |(x, labels): (&Array, &Vec<u32>)| x.at(&labels.iter().map(at).collect::<Vec<_>>()).re();
        total += x.iter().zip(&labels).map(factor).product::<f64>();
    }
    for optimize in [Optimize::Auto, Optimize::Greedy, Optimize::Optimal] {
        let op = op.optimized(optimize).map_err(|e| e.to_string())?;
        let f = calls(move |x| einsum(&op, &x.iter().collect::<Vec<_>>()));
        same("sum", &value(&f, &x)?, &reals(&[], &[total]), 0.0)?;
    }
    Ok(())
}

fn chain(v: &Value) -> Checked {
    let x = [array(&v["input"]["a"])?, array(&v["input"]["b"])?];
    let op = Einsum::parse("ij,jk->ik").map_err(|e| e.to_string())?;
    let y = move |x: &[Var]| einsum(&op, &[&x[0], &x[1]]).exp();
    let (f, loss) = (y.clone(), calls(move |x| y(x).reduce_sum(None).real()));
    let (want, tolerance) = (&v["expected"], tolerance(v));
    same("value", &value(&loss, &x)?, &wanted(&want["value"])?, tolerance)?;
    let g = gradients(&loss, &x)?;
    same("grad a", &g[0], &wanted(&want["grad_a"])?, tolerance)?;
    same("grad b", &g[1], &wanted(&want["grad_b"])?, tolerance)?;
    let t = [array(&v["input"]["tangent_a"])?, x[1].map(DType::C64, |_| Elem::real(0.0))];
    let dy = run::jvp(&calls(f), &x, &t).map_err(|e| e.to_string())?;
    same("jvp", &dy[0], &wanted(&want["jvp of exp(ab) along tangent_a"])?, tolerance)
}

/// Singular values, and that the factors are what they should be up to `bound`.
fn svd(a: &Array, bound: f64) -> Result<Array, String> {
    let y = on_cpu(|| {
        let (u, s, vh) = linalg::svd(&present(a));
        let product = (&u * s.expand_dims(&[0])).matmul(&vh);
        vec![product, u.adjoint().matmul(&u), vh.matmul(&vh.adjoint()), s, linalg::svdvals(&present(a))]
    })?;
    same("U diag(s) Vh", &y[0], a, bound)?;
    for (what, gram) in ["U^H U", "Vh Vh^H"].into_iter().zip(&y[1..3]) {
        let eye = Array::from_fn(gram.dtype, &gram.shape, |i| Elem::real((i[0] == i[1]) as i64 as f64));
        same(what, gram, &eye, 1e-14)?;
    }
    same("svdvals as svd", &y[4], &y[3], bound)?;
    Ok(y[3].clone())
}

fn svd_conj(v: &Value) -> Checked {
    let a = array(&v["input"]["a"])?;
    same("s", &svd(&a, 1e-14 * a.norm() * 4.0)?, &wanted(&v["expected"]["S"])?, 1e-14)
}

fn all_ones(v: &Value) -> Checked {
    for m in 1..=30usize {
        for n in 1..=30usize {
            let s = svd(&reals(&[m, n], &vec![1.0; m * n]), 1e-13)?;
            let want = Array::from_fn(DType::F64, &s.shape, |i| {
                Elem::real(if i[0] == 0 { ((m * n) as f64).sqrt() } else { 0.0 })
            });
            same("s", &s, &want, 1e-13)?;
        }
    }
    let a = reals(&[3, 3], &[1.0, 2.0, 2.0, 2.0, -1.0, 1.0, 2.0, -1.0, -1.0]);
    same("3x3", &svd(&a, 1e-13)?, &wanted(&v["expected"]["3x3 singular values"])?, 1e-13)
}

fn rank_one(v: &Value) -> Checked {
    same("s", &svd(&array(&v["input"]["a"])?, 1e-14)?, &wanted(&v["expected"]["S"])?, tolerance(v))
}

fn svd_degenerate(_: &Value) -> Checked {
    same("zeros", &svd(&reals(&[2, 2], &[0.0; 4]), 0.0)?, &reals(&[2], &[0.0; 2]), 0.0)?;
    same("eye", &svd(&reals(&[2, 2], &[1.0, 0.0, 0.0, 1.0]), 1e-15)?, &reals(&[2], &[1.0; 2]), 1e-15)?;
    same("no columns", &svd(&reals(&[3, 0], &[]), 0.0)?, &reals(&[0], &[]), 0.0)
}

fn zero_batch(_: &Value) -> Checked {
    let a = reals(&[2, 2, 0], &[]);
    let call: Calls = Arc::new(|x| {
        let (u, s, vh) = linalg::svd(&x[0]);
        let (_, l, r) = linalg::lu(&x[0]);
        vec![u, s, vh, linalg::svdvals(&x[0]), l, r, linalg::solve(&x[0], &x[0])]
    });
    let y = run::direct(&call, std::slice::from_ref(&a)).map_err(|e| e.to_string())?;
    for (i, y) in y.iter().enumerate() {
        let want: &[usize] = if i == 1 || i == 3 { &[2, 0] } else { &[2, 2, 0] };
        if y.shape != want {
            return Err(format!("result {i}: {:?}", y.shape));
        }
    }
    let ct: Vec<Array> = y.clone();
    let g = run::eager_vjp(&call, std::slice::from_ref(&a), &ct).map_err(|e| e.to_string())?;
    same("gradient", &g[0], &a, 0.0)
}

fn reconstruction(v: &Value) -> Checked {
    let a = array(&v["input"]["a"])?;
    let loss = calls(|x| {
        let (u, s, vh) = linalg::svd(&x[0]);
        let y = (&u * s.expand_dims(&[0])).matmul(&vh);
        (&y * &y).reduce_sum(None).sqrt()
    });
    let x = std::slice::from_ref(&a);
    same("value", &value(&loss, x)?, &wanted(&v["expected"]["value"])?, tolerance(v))?;
    same("grad", &gradients(&loss, x)?[0], &wanted(&v["expected"]["grad"])?, tolerance(v))
}

fn svd_batched(v: &Value) -> Checked {
    let a = array(&v["input"]["a"])?;
    let loss = calls(|x| linalg::svdvals(&batch_last(&x[0])).reduce_sum(None));
    let want = wanted(&v["expected"]["grad of sum of singular values"])?;
    same("svdvals", &gradients(&loss, std::slice::from_ref(&a))?[0], &want, tolerance(v))?;
    let nuclear = calls(|x| {
        let (_, s, _) = linalg::svd(&batch_last(&x[0]));
        s.reduce_sum(None)
    });
    same("svd", &gradients(&nuclear, &[a])?[0], &want, tolerance(v))
}

fn product_of_zeros(v: &Value) -> Checked {
    let f = calls(|x| x[0].reduce_prod(None));
    for (key, x) in [
        ("grad prod([2,0,3,4])", vec![2.0, 0.0, 3.0, 4.0]),
        ("grad prod([2,0,0,4])", vec![2.0, 0.0, 0.0, 4.0]),
        ("grad prod([2,3,4])", vec![2.0, 3.0, 4.0]),
    ] {
        let x = [reals(&[x.len()], &x)];
        same(key, &gradients(&f, &x)?[0], &wanted(&v["expected"][key])?, 0.0)?;
    }
    let x = [array(&v["input"]["x"])?];
    let (ct, t) = ([reals(&[], &[1.0])], [reals(&[4], &[1.0; 4])]);
    let want = wanted(&v["expected"]["hvp of prod at [2,0,3,4] along ones"])?;
    for (way, hvp) in [("traced", run::hvp(&f, &x, &ct, &t)), ("eager", run::eager_hvp(&f, &x, &ct, &t))] {
        same(way, &hvp.map_err(|e| e.to_string())?[0], &want, 0.0)?;
    }
    Ok(())
}

fn duplicates(v: &Value) -> Checked {
    for gather in [false, true] {
        let select = move |index: &'static [i64]| {
            calls(move |x| {
                let index = present(&Array::ints(DType::I64, &[index.len()], index));
                if gather { x[0].gather(&index, 0) } else { x[0].index_select(&index, 0) }
            })
        };
        let want = &v["expected"];
        let g = pulled(&select(&[0, 0]), &[reals(&[1], &[0.1])], &reals(&[2], &[0.2, 0.3]))?;
        same("grad", &g[0], &wanted(&want["grad"])?, tolerance(v))?;
        let ones = |n: usize| reals(&[n], &vec![1.0; n]);
        let g = pulled(&select(&[0, 1, 2, 2]), &[ones(3)], &ones(4))?;
        same("length 3", &g[0], &wanted(&want["grad of sum(x[[0,1,2,2]]), x of length 3"])?, 0.0)?;
        let g = pulled(&select(&[0, 2, 0]), &[ones(4)], &ones(3))?;
        same("length 4", &g[0], &wanted(&want["grad of sum(x[[0,2,0]]), length 4"])?, 0.0)?;
    }
    Ok(())
}

fn scatter_add(v: &Value) -> Checked {
    let f = calls(|x| {
        let index = present(&Array::ints(DType::I64, &[2], &[1, 1]));
        apply1(&ops::ScatterAdd { axis: 0, extent: [Dim::Lit(3)] }, &[&x[0], &index])
    });
    let x = [reals(&[2], &[5.0, 7.0])];
    same("scatter-add", &value(&f, &x)?, &wanted(&v["expected"]["scatter-add"])?, 0.0)
}

/// A start that does not fit is an error here, in the value and in the gradient alike.
fn clamped_slice(v: &Value) -> Checked {
    let slice = |start: i64, n: usize| {
        calls(move |x| x[0].dynamic_slice(&present(&Array::ints(DType::I64, &[1], &[start])), &lits(&[n])))
    };
    let three = [reals(&[3], &[1.0, 2.0, 3.0])];
    for (start, n) in [(3, 1), (2, 2), (-5, 2)] {
        let ct = [reals(&[n], &vec![1.0; n])];
        let f = slice(start, n);
        let ways = [
            run::direct(&f, &three),
            run::compiled(&f, &three),
            run::vjp(&f, &three, &ct),
            run::eager_vjp(&f, &three, &ct),
        ];
        if let Some(way) = ways.iter().position(Result::is_ok) {
            return Err(format!("start {start}: no error in way {way}"));
        }
    }
    same(
        "start 1",
        &value(&slice(1, 2), &three)?,
        &wanted(&v["expected"]["x=[1,2,3], start 2, size 2"])?,
        0.0,
    )?;
    let g = pulled(&slice(1, 2), &three, &reals(&[2], &[1.0; 2]))?;
    same("its gradient", &g[0], &wanted(&v["expected"]["its gradient"])?, 0.0)
}

fn ties(v: &Value) -> Checked {
    let f = calls(|x| x[0].reduce_max(None));
    let g = gradients(&f, &[reals(&[3], &[1.0, 3.0, 3.0])])?;
    same("reduce_max", &g[0], &wanted(&v["expected"]["grad reduce_max (even split)"])?, 0.0)?;
    let f = calls(|x| x[0].maximum(&x[1]).reduce_sum(None));
    let g = gradients(&f, &[reals(&[2], &[2.0, 5.0]), reals(&[2], &[2.0, 1.0])])?;
    same("maximum, a", &g[0], &reals(&[2], &[0.5, 1.0]), 0.0)?;
    same("maximum, b", &g[1], &reals(&[2], &[0.5, 0.0]), 0.0)
}

fn power_of_zero(v: &Value) -> Checked {
    let f = calls(|x| x[0].pow(&x[1]).reduce_sum(None));
    let g = gradients(&f, &[wanted(&v["input"]["a"])?, wanted(&v["input"]["b"])?])?;
    same("grad b", &g[1], &wanted(&v["expected"]["grad b of sum(a^b)"])?, tolerance(v))?;
    let f = calls(|x| (&x[0] - &x[1]).pow(&x[1]));
    let one = reals(&[], &[1.0]);
    let g = pulled(&f, &[one.clone(), one], &reals(&[], &[123.0]))?;
    same("grad p", &g[0], &reals(&[], &[123.0]), tolerance(v))?;
    same("grad q", &g[1], &reals(&[], &[-123.0]), tolerance(v))
}

fn modulus_of_zero(v: &Value) -> Checked {
    let f = calls(|x| x[0].abs().reduce_sum(None));
    let g = gradients(&f, &[wanted(&v["input"]["z"])?])?;
    same("grad", &g[0], &wanted(&v["expected"]["grad of sum|z|"])?, tolerance(v))?;
    same("real", &gradients(&f, &[reals(&[1], &[0.0])])?[0], &reals(&[1], &[0.0]), 0.0)
}

fn complex_division(v: &Value) -> Checked {
    let m = f64::MAX / 2.0;
    let f = calls(|x| x[0].div(&x[1]));
    let scalar = |re, im| Array::complexes(DType::C64, &[], &[(re, im)]);
    for (key, x, y) in [
        ("1/(1e200i)", scalar(1.0, 0.0), scalar(0.0, 1e200)),
        ("(m+mi)/(m+mi)", scalar(m, m), scalar(m, m)),
        ("tiny/tiny", scalar(1e-200, 1e-200), scalar(1e-200, 1e-200)),
    ] {
        let part = |i: usize| number(&v["expected"][key][i]).unwrap_or(f64::NAN);
        let want = scalar(part(0), part(1));
        let got = value(&f, &[x, y])?;
        got.close(&want, tolerance(v), 0.0).map_err(|e| format!("{key}: {e}"))?;
    }
    Ok(())
}

fn mean_of_an_axis(v: &Value) -> Checked {
    let loss = calls(|x| {
        let tens = present(&reals(&[3, 1], &[10.0; 3]));
        x[0].reduce_mean_keepdims(Some(&[0])).matmul(&tens).reduce_sum(None)
    });
    let g = gradients(&loss, &[reals(&[2, 3], &[1.0; 6])])?;
    same("grad", &g[0], &wanted(&v["expected"]["grad t"])?, 0.0)
}

fn broadcast_product(v: &Value) -> Checked {
    let loss = calls(|x| x[0].mul(&x[1]).reduce_sum(None));
    let h = array(&v["input"]["h"])?;
    let g = gradients(&loss, &[h.clone(), array(&v["input"]["m"])?])?;
    same("grad m", &g[1], &wanted(&v["expected"]["grad m of sum(h*m)"])?, 0.0)?;
    same("grad h", &g[0], &wanted(&v["expected"]["grad h"])?, 0.0)?;
    let g = gradients(&loss, &[h, reals(&[], &[2.0])])?;
    same("scalar", &g[1], &wanted(&v["expected"]["scalar (0-d) operand s=2: grad s"])?, 0.0)
}

fn accumulation(v: &Value) -> Checked {
    let checked = || -> tenferro_tensor::Result<[Array; 4]> {
        let runtime = EagerRuntime::new(&CpuBackend::new());
        let x = runtime.from_vec_col_major([2], vec![1.0, 2.0])?.requires_grad()?;
        let backward = || x.mul(&x)?.reduce_sum(None)?.backward();
        let grad = || match x.grad() {
            Some(g) => Ok(Array::from_tensor(&g.to_tensor()?)),
            None => Ok(reals(&[0], &[])),
        };
        backward()?;
        let first = grad()?;
        backward()?;
        let second = grad()?;
        x.clear_grad();
        backward()?;
        let third = grad()?;
        x.clear_grad();
        x.mul(&x)?.add(&x)?.reduce_sum(None)?.backward()?;
        Ok([first, second, third, grad()?])
    };
    let keys =
        ["after 1", "after 2 without clearing", "after clear + 1", "x used twice in one graph (x*x + x)"];
    let found = checked().map_err(|e| e.to_string())?;
    keys.into_iter().zip(&found).try_for_each(|(key, g)| same(key, g, &wanted(&v["expected"][key])?, 0.0))
}

/// Integers wrap around, and their quotients and means are real numbers.
fn integers(_: &Value) -> Checked {
    let ints = |data: &[i64]| Array::ints(DType::I32, &[data.len()], data);
    let (most, least) = (i32::MAX as i64, i32::MIN as i64);
    let sum = value(&calls(|x| x[0].reduce_sum(None)), &[ints(&[most, most])])?;
    same("sum", &sum, &Array::ints(DType::I32, &[], &[-2]), 0.0)?;
    let mean = value(&calls(|x| x[0].reduce_mean(None)), &[ints(&[most, most])])?;
    same("mean", &mean, &reals(&[], &[most as f64]), 0.0)?;
    let many = value(&calls(|x| x[0].reduce_sum(None)), &[ints(&[1; 5000])])?;
    same("5000 ones", &many, &Array::ints(DType::I32, &[], &[5000]), 0.0)?;
    let abs = value(&calls(|x| x[0].abs()), &[ints(&[least])])?;
    same("abs", &abs, &ints(&[least]), 0.0)?;
    let quotient = value(&calls(|x| x[0].div(&x[1])), &[ints(&[least, 1]), ints(&[-1, 0])])?;
    same("quotient", &quotient, &reals(&[2], &[-(least as f64), f64::INFINITY]), 0.0)
}

fn strides(v: &Value) -> Checked {
    let column = reals(&[2, 1], &[1.0, 2.0]);
    let f = calls(|x| x[0].transpose(&[1, 0]).tensordot(&x[1], 1));
    let y = value(&f, &[column.clone(), reals(&[2], &[1.0, 2.0])])?;
    same("first", &y, &wanted(&v["expected"]["first"])?, 0.0)?;
    let f = calls(|x| x[0].reverse(&[0]).tensordot(&x[1], 1));
    let y = value(&f, &[reals(&[3], &[1.0, 2.0, 3.0]), reals(&[3], &[1.0, 10.0, 100.0])])?;
    same("second", &y, &wanted(&v["expected"]["second"])?, 0.0)?;
    let f = calls(|x| tenferro_core_ops::broadcast_to(&x[0], &lits(&[3, 2])).matmul(&x[1]));
    let y = value(&f, &[reals(&[2], &[1.0, 2.0]), reals(&[2, 1], &[1.0; 2])])?;
    same("third", &y, &reals(&[3, 1], &[3.0; 3]), 0.0)?;
    let f = calls(|x| x[0].slice(&[0, 0], &[2, 1], &[1, 1]).matmul(&x[1]));
    let y = value(&f, &[reals(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), reals(&[1, 2], &[1.0, 10.0])])?;
    same("fourth", &y, &reals(&[2, 2], &[1.0, 2.0, 10.0, 20.0]), 0.0)
}

fn nan_stays(v: &Value) -> Checked {
    let base = wanted(&v["input"]["y"])?;
    let f = move |x: &[Var]| present(&base).pow(&x[0]);
    let first = {
        let f = f.clone();
        calls(move |x| {
            let y = f(x);
            match jvp_traced(&[&y], &[(x[0].clone(), x[0].like(1.0))]) {
                Ok(mut dy) => or_zero(dy.pop().flatten(), &y),
                Err(e) => Var::Failed(e),
            }
        })
    };
    let (t, one) = ([reals(&[], &[1.0])], [reals(&[], &[1.0])]);
    for (key, f) in [("d/dt", calls(f)), ("d2/dt2", first)] {
        let dy = run::jvp(&f, &t, &one).map_err(|e| e.to_string())?;
        same(key, &dy[0], &wanted(&v["expected"][key])?, tolerance(v))?;
    }
    Ok(())
}

/// On the CPU; the report is about a GPU.
fn first_svd(v: &Value) -> Checked {
    let a = array(&v["input"]["a"])?;
    same("s", &svd(&a, 1e-13)?, &wanted(&v["expected"]["S"])?, tolerance(v))
}
