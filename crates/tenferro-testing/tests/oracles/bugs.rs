//! Bugs that were reported against other libraries of this field, each as a check of the same input here.

use crate::{
    Step,
    args::{lits, present},
    check::Outcome,
    json::{number, plain},
    layout::batch_last,
    matrices::run as on_cpu,
    pending,
    record::array,
};
use serde_json::Value;
use std::{path::Path, sync::Arc};
use tenferro_ad::EagerTensorAdExt;
use tenferro_core_ops::{Dim, Var, apply1, jvp_traced, ops, or_zero};
use tenferro_cpu::CpuBackend;
use tenferro_einsum::{Einsum, Optimize, einsum};
use tenferro_linalg::{QrOptions, Triangular, ops as linalg};
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

/// Reports by their id. One that is not here is listed as skipped, if [`pending`](crate::pending) says why.
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
    ("svd-qr-degenerate", &[Check(svd_degenerate), Check(qr_degenerate)]),
    ("linalg-zero-batch-nopanic", &[Check(zero_batch)]),
    ("svd-grad-degenerate-recon", &[Check(reconstruction)]),
    ("svd-eigh-grad-batched", &[Check(svd_batched), Check(eigh_batched)]),
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
    ("gpu-svd-first-call-zero", &[Check(first_svd)]),
    ("eigh-nan-garbage", &[Check(eigh_of_nan)]),
    ("eigh-complex-real-w", &[Check(real_eigenvalues)]),
    ("eigh-jvp-large", &[Check(large_eigenvalues)]),
    ("eigh-grad-symmetric-convention", &[Check(eigh_convention)]),
    ("slogdet-sign-batch", &[Check(signs)]),
    ("det-grad-singular", &[Check(cofactors)]),
    ("cholesky-not-pd", &[Check(not_positive_definite)]),
    ("cholesky-grad-logdet", &[Check(cholesky_convention)]),
    ("tri-solve-grad-A", &[Check(triangular)]),
    ("expm-lower-tri", &[Check(exponential)]),
    ("expm-moler", &[Check(badly_balanced)]),
    ("qr-jvp-R", &[Check(qr_forward)]),
    ("qr-grad-unused-output", &[Check(qr_unused)]),
];

pub(crate) fn steps(folder: &Path) -> Result<Vec<(String, Vec<Step>)>, String> {
    let all = plain(&folder.join("bug_reports.json"))?;
    let report = |v: &Value| {
        let id = v["id"].as_str().unwrap_or_default().to_string();
        let parts = REPORTS.iter().find(|(name, _)| *name == id).map_or(&[][..], |(_, parts)| parts);
        let mut steps: Vec<Step> = parts.iter().map(|part| step(part, v)).collect();
        if steps.is_empty() {
            let reason = pending::reason(&id).unwrap_or("no check");
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

fn implicit_trace(v: &Value) -> Checked {
    let a = array(&v["input"]["a"])?;
    for (text, want) in v["expected"].as_object().into_iter().flatten() {
        let want = match text.as_str() {
            "ji" => Array::from_fn(a.dtype, &a.shape, |i| a.at(&[i[1], i[0]])),
            _ => wanted(want)?,
        };
        same(text, &value(&einsum_call(text)?, std::slice::from_ref(&a))?, &want, 0.0)?;
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
    let x = [array(&v["input"]["x"])?];
    let sums = reals(&[3], &[36.0, 117.0, 198.0]);
    same("i...->i", &value(&einsum_call("i...->i")?, &x)?, &sums, 0.0)?;
    let transposed = wanted(&v["expected"]["...ij->...ji"])?;
    same("...ij->...ji", &value(&einsum_call("...ij->...ji")?, &x)?, &transposed, 0.0)
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
    let op = Einsum::parse(text).map_err(|e| e.to_string())?;
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

/// Any order gives the same integers.
fn hyperedges(v: &Value) -> Checked {
    let text = v["input"]["expr"].as_str().unwrap_or_default();
    let op = Einsum::parse(text).map_err(|e| e.to_string())?;
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

fn qr_degenerate(_: &Value) -> Checked {
    let cases = [reals(&[2, 2], &[0.0, 0.0, 1.0, 2.0]), reals(&[3, 3], &[0.0; 9])];
    for a in &cases {
        let y = on_cpu(|| {
            let (q, r) = linalg::qr(&present(a));
            vec![q.matmul(&r), q.adjoint().matmul(&q), r]
        })?;
        let eye = Array::from_fn(a.dtype, &a.shape, |i| Elem::real((i[0] == i[1]) as i64 as f64));
        same("Q R", &y[0], a, 1e-15)?;
        same("Q^H Q", &y[1], &eye, 1e-15)?;
        if y[2].shape[0] > 1 && y[2].at(&[1, 0]).re() != 0.0 {
            return Err("R is not triangular".into());
        }
    }
    Ok(())
}

fn zero_batch(_: &Value) -> Checked {
    let a = reals(&[2, 2, 0], &[]);
    let call: Calls = Arc::new(|x| {
        let x = &x[0];
        let (u, s, vh) = linalg::svd(x);
        let (_, l, r) = linalg::lu(x);
        let (w, v) = linalg::eigh(x);
        let vectors = vec![s, linalg::svdvals(x), w, linalg::eigvalsh(x)];
        let matrices = [u, vh, l, r, v, linalg::solve(x, x), linalg::cholesky(x), linalg::inv(x)];
        vec![linalg::det(x)].into_iter().chain(vectors).chain(matrices).collect()
    });
    let y = run::direct(&call, std::slice::from_ref(&a)).map_err(|e| e.to_string())?;
    for (i, y) in y.iter().enumerate() {
        let want: &[usize] = match i {
            0 => &[0],
            1..=4 => &[2, 0],
            _ => &[2, 2, 0],
        };
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

fn eigh_batched(v: &Value) -> Checked {
    let loss = calls(|x| {
        let a = batch_last(&x[0]);
        linalg::eigvalsh(&a.matmul(&a.adjoint())).reduce_sum(None)
    });
    let g = gradients(&loss, &[array(&v["input"]["a"])?])?;
    same("grad", &g[0], &wanted(&v["expected"]["grad of sum(eigvalsh(a a^T))"])?, tolerance(v))
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

/// An error, or eigenvalues of which one is not finite.
fn eigh_of_nan(v: &Value) -> Checked {
    for case in v["input"]["cases"].as_array().into_iter().flatten() {
        let a = [array(case)?];
        let both = [linalg::eigvalsh as fn(&Var) -> Var, |x| linalg::eigh(x).0];
        let found = both.map(|f| run::direct(&calls(move |x| f(&x[0])), &a));
        match &found {
            [Err(_), Err(_)] => {}
            [Ok(w), Ok(s)] if w[0].data.iter().any(|e| !e.re().is_finite()) => {
                same("eigh as eigvalsh", &s[0], &w[0], 0.0)?;
            }
            _ => return Err(format!("{a:?}: {found:?}")),
        }
    }
    Ok(())
}

fn real_eigenvalues(v: &Value) -> Checked {
    let a = array(&v["input"]["a"])?;
    let want = wanted(&v["expected"]["w"])?;
    for (dtype, real, tolerance) in [(DType::C64, DType::F64, tolerance(v)), (DType::C32, DType::F32, 1e-6)] {
        let w = value(&calls(|x| linalg::eigh(&x[0]).0), &[a.map(dtype, |e| e)])?;
        same("w", &w, &want.map(real, |e| e), tolerance * want.norm())?;
    }
    Ok(())
}

/// Distances between eigenvalues as small as the last place of the largest.
fn large_eigenvalues(v: &Value) -> Checked {
    let vectors = calls(|x| {
        let (_, v) = linalg::eigh(&x[0]);
        let row = |i: usize| v.slice(&[i, 1], &[i + 1, 2], &[1, 1]).reduce_sum(None);
        row(0) * row(1)
    });
    let values = calls(|x| linalg::eigvalsh(&x[0]).slice_axis(0, 1, 2).reduce_sum(None));
    for (dtype, bits) in [(DType::F32, 24), (DType::F64, 53)] {
        let a = Array::from_fn(dtype, &[3, 3], |i| {
            Elem::real(if i[0] == i[1] { 2.0_f64.powi(bits) + 2.0 * i[0] as f64 } else { 0.0 })
        });
        let one = Array::reals(dtype, &[], &[1.0]);
        for (f, key) in [(&values, "eigenvalue gradient of w[1]"), (&vectors, "grad (symmetrised)")] {
            let g = pulled(f, std::slice::from_ref(&a), &one)?;
            same(key, &g[0], &wanted(&v["expected"][key])?.map(dtype, |e| e), tolerance(v))?;
        }
    }
    Ok(())
}

fn eigh_convention(v: &Value) -> Checked {
    let loss = calls(|x| linalg::eigh(&x[0]).1.abs().reduce_sum(None));
    let g = gradients(&loss, &[array(&v["input"]["a"])?])?;
    same("grad", &g[0], &wanted(&v["expected"]["grad, symmetrised"])?, tolerance(v))
}

fn signs(v: &Value) -> Checked {
    let both: Calls = Arc::new(|x| {
        let (sign, log) = linalg::slogdet(&x[0]);
        vec![sign, log]
    });
    let check = |what: String, a: Array, sign: &Value, log: &Value| {
        let y = run::direct(&both, &[a]).map_err(|e| e.to_string())?;
        for (got, want) in y.iter().zip([sign, log]) {
            let want = number(want).ok_or("no number")?;
            same(&what, got, &got.map(DType::F64, |_| Elem::real(want)), tolerance(v))?;
        }
        Ok::<_, String>(())
    };
    for n in 1..=5 {
        let a =
            Array::from_fn(DType::F64, &[n, n, 2], |i| Elem::real(if i[0] == i[1] { -0.01 } else { 0.0 }));
        check(format!("n = {n}"), a, &v["expected"]["sign"][n - 1], &v["expected"]["logabsdet"][n - 1])?;
    }
    let swap = &v["expected"]["permutation check: slogdet([[0,1],[1,0]])"];
    check("permutation".into(), reals(&[2, 2], &[0.0, 1.0, 1.0, 0.0]), &swap[0], &swap[1])
}

fn cofactors(v: &Value) -> Checked {
    let det = calls(|x| linalg::det(&x[0]));
    let nine: Vec<f64> = [1, 4, 7, 2, 5, 8, 3, 6, 9].map(f64::from).to_vec();
    for (key, n, a) in [
        ("zeros(4,4)", 4, vec![0.0; 16]),
        ("[[1,2],[2,4]]", 2, vec![1.0, 2.0, 2.0, 4.0]),
        ("1..9", 3, nine),
        ("ones(3,3)", 3, vec![1.0; 9]),
    ] {
        let g = gradients(&det, &[reals(&[n, n], &a)])?;
        same(key, &g[0], &wanted(&v["expected"][key])?, tolerance(v))?;
    }
    let one = reals(&[1, 1], &[1.0]);
    same("[[0]]", &gradients(&det, &[reals(&[1, 1], &[0.0])])?[0], &one, tolerance(v))
}

/// An error in every way, which says which matrix of a stack it is.
fn not_positive_definite(v: &Value) -> Checked {
    let hermitian = Array::complexes(DType::C64, &[2, 2], &[(1.0, 0.0), (0.0, -2.0), (0.0, 2.0), (1.0, 0.0)]);
    let second = reals(&[2, 2, 2], &[1.0, 0.0, 0.0, 1.0, 1.0, 5.0, 5.0, 1.0]);
    let f = calls(|x| linalg::cholesky(&x[0]));
    for (a, named) in [
        (array(&v["input"]["a"])?, ""),
        (hermitian, ""),
        (second, "matrix [1]"),
        (reals(&[1, 1], &[f64::NAN]), ""),
    ] {
        let x = std::slice::from_ref(&a);
        for (way, y) in [run::direct(&f, x), run::compiled(&f, x), run::eager(&f, x)].into_iter().enumerate()
        {
            let said = y.err().ok_or_else(|| format!("{a:?}: no error in way {way}"))?.to_string();
            if !said.contains(named) {
                return Err(format!("{said:?} does not name {named}"));
            }
        }
    }
    Ok(())
}

fn cholesky_convention(v: &Value) -> Checked {
    let loss = calls(|x| linalg::cholesky(&x[0]).extract_diag(0, 1).log().reduce_sum(None) * 2.0);
    let g = gradients(&loss, &[array(&v["input"]["a"])?])?;
    same("grad", &g[0], &wanted(&v["expected"]["grad, symmetrised"])?, tolerance(v))
}

fn triangular(v: &Value) -> Checked {
    let solved = |x: &[Var]| linalg::triangular_solve(&x[0], &x[1], Triangular::lower());
    let x = [array(&v["input"]["a"])?, array(&v["input"]["b"])?];
    let (want, tolerance) = (&v["expected"], tolerance(v));
    same("x", &value(&calls(solved), &x)?, &wanted(&want["x"])?, tolerance)?;
    let g = gradients(&calls(move |x| solved(x).reduce_sum(None)), &x)?;
    same("grad a", &g[0], &wanted(&want["grad_a of sum(x)"])?, tolerance)?;
    same("grad b", &g[1], &wanted(&want["grad_b"])?, tolerance)
}

/// Up to the tolerance times the largest element.
fn exponential(v: &Value) -> Checked {
    let y = value(&calls(|x| linalg::matrix_exp(&x[0])), &[array(&v["input"]["a"])?])?;
    let want = wanted(&v["expected"]["expm"])?;
    y.close(&want, 0.0, tolerance(v) * want.norm())
}

fn badly_balanced(v: &Value) -> Checked {
    exponential(v)?;
    let y = value(&calls(|x| linalg::matrix_exp(&x[0])), &[array(&v["input"]["a"])?])?;
    let want = wanted(&v["expected"]["expm"])?;
    for at in [[0, 0], [0, 2], [2, 0], [2, 2]] {
        let off = (y.at(&at).re() - want.at(&at).re()).abs();
        if off > 1e-6 {
            return Err(format!("{at:?} is off by {off}"));
        }
    }
    Ok(())
}

fn qr_forward(v: &Value) -> Checked {
    let f: Calls = Arc::new(|x| {
        let (q, r) = linalg::qr_with(&x[0], QrOptions { positive: true, ..QrOptions::default() });
        vec![q, r]
    });
    let (x, t) = ([array(&v["input"]["x"])?], [array(&v["input"]["dx"])?]);
    let ways = [("", run::direct(&f, &x)), ("d", run::jvp(&f, &x, &t)), ("d", run::eager_jvp(&f, &x, &t))];
    for (prefix, y) in ways {
        for (y, name) in y.map_err(|e| e.to_string())?.iter().zip(["Q", "R"]) {
            let key = format!("{prefix}{name}");
            same(&key, y, &wanted(&v["expected"][&key])?, tolerance(v))?;
        }
    }
    Ok(())
}

fn qr_unused(v: &Value) -> Checked {
    let weights = reals(&[3, 2], &[1.0, 3.0, -5.0, -2.0, 4.0, 6.0]);
    let loss = calls(move |x| {
        let (q, _) = linalg::qr(&x[0]);
        (&q * &q * present(&weights)).reduce_sum(None)
    });
    let g = gradients(&loss, &[array(&v["input"]["a"])?])?;
    same("grad", &g[0], &wanted(&v["expected"]["grad"])?, tolerance(v))
}
