//! The text of an einsum: whatever it is, it is read or refused, and what is read means what NumPy says.

mod common;

use common::{copies, naive, random};
use proptest::prelude::*;
use tenferro_cpu::CpuBackend;
use tenferro_einsum::{Einsum, Expression, Notation, Optimize, prelude::*};
use tenferro_runtime::{EagerRuntime, EagerTensor, GraphCompiler, TracedTensor, prelude::*};
use tenferro_tensor::{Error, Tensor, TypedTensor};

fn check(text: &str) -> Result<(), TestCaseError> {
    match Expression::parse(text) {
        Ok(expression) => {
            let shown = expression.to_string();
            prop_assert_eq!(&Expression::parse(&shown).unwrap(), &expression);
            prop_assert_eq!(Expression::parse(&shown).unwrap().to_string(), shown);
            prop_assert!(Einsum::parse(text).is_ok());
        }
        Err(e) => {
            prop_assert!(matches!(e, Error::Label(_)));
            prop_assert!(e.to_string().contains("einsum: position "), "{}", e);
            prop_assert!(Einsum::parse(text).is_err());
        }
    }
    Ok(())
}

/// Text that is mostly made of what a notation is made of.
fn nearly() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "i", "j", "k", "K", "é", ",", ",", "(", ")", "->", "...", " ", "-", ">", ".", "\t",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// An einsum with ellipses as text, the same with a label for each axis, and shapes of operands.
#[derive(Clone, Debug)]
struct Elliptic {
    text: String,
    notation: Notation,
    shapes: Vec<Vec<usize>>,
    seed: u64,
}

/// Labels `a` to `d` and up to two axes for the ellipsis, which has the labels 100 (the last) and 101.
fn elliptic() -> impl Strategy<Value = Elliptic> {
    let operand = (prop::collection::vec(0..4_u32, 0..3), 0..3_usize, any::<bool>(), 0..3_usize, 0..9_usize);
    let operands = prop::collection::vec(operand, 1..4);
    let extents = prop::collection::vec(1..4_usize, 6);
    (operands, 0..6_usize, any::<bool>(), extents, any::<u64>()).prop_map(
        |(operands, kept, with_ellipsis, extents, seed)| {
            let extent =
                |label: u32| extents[if label >= 100 { label as usize - 96 } else { label as usize }];
            let letters = |labels: &[u32]| -> String {
                labels.iter().map(|label| char::from(b'a' + *label as u8)).collect()
            };
            let (mut texts, mut inputs, mut shapes, mut widest) = (vec![], vec![], vec![], None);
            for (labels, at, elliptic, extra, unit) in operands {
                let (before, after) = labels.split_at(at.min(labels.len()));
                let extra = if elliptic { extra } else { 0 };
                if elliptic {
                    widest = widest.max(Some(extra));
                }
                texts.push(letters(before) + if elliptic { "..." } else { "" } + &letters(after));
                let all: Vec<u32> = (before.iter().copied())
                    .chain((0..extra as u32).rev().map(|k| 100 + k))
                    .chain(after.iter().copied())
                    .collect();
                let repeated = all.get(unit).copied();
                shapes.push(all.iter().map(|l| if Some(*l) == repeated { 1 } else { extent(*l) }).collect());
                inputs.push(all);
            }
            let mut output: Vec<u32> = inputs.iter().flatten().copied().filter(|l| *l < 100).collect();
            output.sort_unstable_by(|a, b| b.cmp(a));
            output.dedup();
            output.truncate(kept);
            let with_ellipsis = with_ellipsis && widest.is_some();
            let text = texts.join(",") + "->" + if with_ellipsis { "..." } else { "" } + &letters(&output);
            if with_ellipsis {
                output.splice(0..0, (0..widest.unwrap_or(0) as u32).rev().map(|k| 100 + k));
            }
            let inputs: Vec<&[u32]> = inputs.iter().map(Vec::as_slice).collect();
            Elliptic { text, notation: Notation::new(&inputs, &output).unwrap(), shapes, seed }
        },
    )
}

proptest! {
    #![proptest_config(tenferro_cases::cases(400))]

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        check(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn what_is_nearly_a_notation_is_read_or_refused(text in nearly()) {
        check(&text)?;
    }

    #[test]
    fn ellipses_are_labels_aligned_at_the_last_axis(case in elliptic()) {
        let mut seed = case.seed;
        let x: Vec<TypedTensor<i64>> = case.shapes.iter().map(|shape| random(shape, &mut seed)).collect();
        let refs: Vec<&TypedTensor<i64>> = x.iter().collect();
        let expected = naive(&case.notation, &refs);
        let mut cpu = CpuBackend::new();
        prop_assert_eq!(&TypedTensor::einsum(&case.text, &refs, &mut cpu).unwrap(), &expected);
    }
}

fn values(shape: &[usize]) -> TypedTensor<f64> {
    random(shape, &mut (shape.iter().sum::<usize>() as u64))
}

/// The result of `text` on all four tiers, the traced one with extents known and as symbols, which agree.
#[track_caller]
fn on_all_tiers(text: &str, x: &[TypedTensor<f64>], symbols: &[&[&str]]) -> TypedTensor<f64> {
    let mut cpu = CpuBackend::new();
    let typed = TypedTensor::einsum(text, &x.iter().collect::<Vec<_>>(), &mut cpu).unwrap();
    let is = |y: &Tensor| assert_eq!(y.as_typed::<f64>().unwrap(), &typed, "{text}");
    let tensors = copies(x);
    let refs: Vec<&Tensor> = tensors.iter().collect();
    is(&Tensor::einsum(text, &refs, &mut cpu).unwrap());
    let runtime = EagerRuntime::new(&cpu);
    let eager: Vec<EagerTensor> = copies(x).into_iter().map(|x| runtime.tensor(x).unwrap()).collect();
    is(&EagerTensor::einsum(text, &eager.iter().collect::<Vec<_>>()).unwrap().to_tensor().unwrap());
    for symbolic in [false, true] {
        let dim = |(n, name): (&usize, &&str)| match name.parse() {
            Ok(known) => Dim::Lit(known),
            Err(_) if symbolic => Dim::symbol(*name),
            Err(_) => Dim::Lit(*n),
        };
        let input = |(x, names): (&TypedTensor<f64>, &&[&str])| {
            TracedTensor::input(DType::F64, &x.shape().iter().zip(*names).map(dim).collect::<Vec<_>>())
        };
        let inputs: Vec<TracedTensor> = x.iter().zip(symbols).map(input).collect();
        let inputs: Vec<&TracedTensor> = inputs.iter().collect();
        let y = TracedTensor::einsum(text, &inputs).unwrap();
        let program = GraphCompiler::new().compile_with(&inputs, &[&y]).unwrap();
        is(&program.run(&mut cpu, &refs).unwrap()[0]);
    }
    typed
}

#[test]
fn ellipses_of_different_rank_are_aligned_at_the_last_axis() {
    let (a, b) = (values(&[4, 5, 2, 3]), values(&[5, 3, 2]));
    let y = on_all_tiers("...ij,...jk->...ik", &[a, b], &[&["p", "q", "n", "m"], &["q", "m", "k"]]);
    let x = [values(&[4, 5, 2, 3]), values(&[5, 3, 2])];
    assert_eq!(y, naive(&"pqij,qjk->pqik".parse().unwrap(), &[&x[0], &x[1]]));
    // Batch axes last, as elsewhere in the library, are aligned in the same way.
    let x = [values(&[2, 3, 4, 5]), values(&[3, 5])];
    let y = on_all_tiers("ij...,j...->i...", &x, &[&["n", "m", "p", "q"], &["m", "q"]]);
    let x = [values(&[2, 3, 4, 5]), values(&[3, 5])];
    assert_eq!(y, naive(&"ijpq,jq->ipq".parse().unwrap(), &[&x[0], &x[1]]));
}

#[test]
fn an_extent_1_is_repeated_against_any_other() {
    for (text, same, shapes, symbols) in [
        ("ij,jk->ik", "ij,jk->ik", [&[2, 3][..], &[1, 4]], [&["n", "m"][..], &["1", "k"]]),
        ("...,...->...", "ab,ab->ab", [&[3, 1], &[1, 2]], [&["n", "1"], &["1", "m"]]),
        ("...i,i...->i", "ai,ia->i", [&[1, 2], &[2, 3]], [&["1", "n"], &["n", "m"]]),
        ("ii,i->i", "ii,i->i", [&[1, 1], &[3]], [&["1", "1"], &["n"]]),
        ("ij,ij->", "ij,ij->", [&[0, 3], &[1, 3]], [&["n", "m"], &["1", "m"]]),
    ] {
        let x = shapes.map(values);
        let y = on_all_tiers(text, &x, &symbols);
        assert_eq!(y, naive(&same.parse().unwrap(), &[&x[0], &x[1]]), "{text}");
    }
}

#[test]
fn a_symbol_is_never_repeated() {
    // Traced as equal, 1 against 3 is an error of the run; eagerly it is a repetition.
    let [n, m] = ["n", "m"].map(Dim::symbol);
    let [a, b] = [n, m].map(|n| TracedTensor::input(DType::F64, &[n]));
    let y = TracedTensor::einsum("i,i->i", &[&a, &b]).unwrap();
    let program = GraphCompiler::new().compile_with(&[&a, &b], &[&y]).unwrap();
    let [one, three] = [1, 3].map(|n| values(&[n]).into_tensor());
    let mut cpu = CpuBackend::new();
    assert!(program.run(&mut cpu, &[&three, &three]).is_ok());
    assert!(matches!(program.run(&mut cpu, &[&one, &three]), Err(Error::Guard(_))));
    assert_eq!(Tensor::einsum("i,i->i", &[&one, &three], &mut cpu).unwrap().shape(), [3]);
}

#[test]
fn outputs_repeat_labels_and_hyperedges_stay() {
    let v = || values(&[3]);
    let y = on_all_tiers("i->ii", &[v()], &[&["n"]]);
    assert_eq!(y, naive(&"i->ii".parse().unwrap(), &[&v()]));
    assert_eq!(y[[1, 1]], v()[[1]]);
    assert_eq!(y[[1, 0]], 0.0);
    let x = [v(), v(), values(&[3, 2])];
    let y = on_all_tiers("i,i,ij->iji", &x, &[&["n"], &["n"], &["n", "m"]]);
    assert_eq!(y, naive(&"i,i,ij->iji".parse().unwrap(), &[&x[0], &x[1], &x[2]]));
    let y = on_all_tiers("i,i,ij->ij", &x, &[&["n"], &["n"], &["n", "m"]]);
    assert_eq!(y, naive(&"i,i,ij->ij".parse().unwrap(), &[&x[0], &x[1], &x[2]]));
}

#[test]
fn parentheses_fix_the_order_and_another_order_overrides_them() {
    let shapes: [&[usize]; 3] = [&[2, 30], &[30, 30], &[30, 1]];
    let nested = Einsum::parse("(ij,jk),kl->il").unwrap();
    assert_eq!(nested.plan(&shapes).unwrap().path(), [(0, 1), (0, 1)]);
    assert_eq!(nested.optimize(), &Optimize::path([(0, 1), (0, 1)]));
    let free = nested.optimized(Optimize::Auto).unwrap();
    assert_eq!(free.plan(&shapes).unwrap().path(), [(1, 2), (0, 1)]);
    let deep = Einsum::parse("a,(b,(c,d),e)->").unwrap();
    assert_eq!(deep.plan(&[&[2][..]; 5]).unwrap().path()[0], (2, 3));
    let x = shapes.map(values);
    let y = on_all_tiers("(ij,jk),kl->il", &x, &[&["n", "m"], &["m", "m"], &["m", "k"]]);
    assert_eq!(y, on_all_tiers("ij,(jk,kl)", &x, &[&["n", "m"], &["m", "m"], &["m", "k"]]));
}

#[test]
fn ncon_is_the_einsum_of_its_labels() {
    let x = [values(&[2, 2, 3]), values(&[2, 3]), values(&[3, 2, 2])];
    let refs: Vec<&TypedTensor<f64>> = x.iter().collect();
    let labels: [&[i32]; 3] = [&[1, 1, -1], &[3, 2], &[2, -2, 3]];
    let y = TypedTensor::ncon(&labels, &refs, &mut CpuBackend::new()).unwrap();
    assert_eq!(y, naive(&"iia,kj,jbk->ab".parse().unwrap(), &refs));
    let einsum = Einsum::ncon(&labels).unwrap();
    assert_eq!(einsum, Einsum::ncon(&labels).unwrap());
    assert_eq!(einsum.to_string(), "{1}{1}{-1},{3}{2},{2}{-2}{3}->{-1}{-2}");
    let planned = einsum.optimized(Optimize::Auto).unwrap();
    assert_eq!(TypedTensor::einsum(&planned, &refs, &mut CpuBackend::new()).unwrap(), y);
}
