//! Every misuse is a typed error that names what was wrong.

use tenferro_cpu::CpuBackend;
use tenferro_einsum::{Einsum, Optimize, prelude::*};
use tenferro_runtime::{EagerRuntime, EagerTensor, GraphCompiler, TracedTensor, prelude::*};
use tenferro_tensor::{Error, Tensor, TypedTensor};

fn zeros(shape: &[usize]) -> TypedTensor<f64> {
    TypedTensor::zeros(shape).unwrap()
}

fn error(text: &str, shapes: &[&[usize]]) -> Error {
    let x: Vec<_> = shapes.iter().map(|shape| zeros(shape)).collect();
    TypedTensor::einsum(text, &x.iter().collect::<Vec<_>>(), &mut CpuBackend::new()).unwrap_err()
}

#[track_caller]
fn says(error: &Error, parts: &[&str]) {
    let message = error.to_string();
    for part in parts.iter().chain(&["einsum", "expected"]) {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
}

#[test]
fn text_that_is_no_notation() {
    for (text, part) in [
        ("(ij,jk", "')'"),
        ("i j k -> x", "'x'"),
        ("i1->i", "'1'"),
        ("ij,jk->ik->", "second arrow"),
        ("..i->i", "three dots"),
    ] {
        let e = error(text, &[&[2, 2], &[2, 2]]);
        assert!(matches!(e, Error::Label(_)), "{e:?}");
        says(&e, &[part, "position"]);
    }
    let e =
        TypedTensor::einsum_labels(&[&[0, 1]], &[2], &[&zeros(&[2, 2])], &mut CpuBackend::new()).unwrap_err();
    assert!(matches!(e, Error::Label(_)));
    says(&e, &["output axis 0", "'c'"]);
}

#[test]
fn another_number_or_rank_of_operands() {
    let lists: [&[&[usize]]; 3] = [&[], &[&[2, 2]], &[&[2, 2], &[2, 2], &[2, 2]]];
    for shapes in lists {
        let e = error("ij,jk->ik", shapes);
        assert!(matches!(e, Error::Argument(_)), "{e:?}");
        says(&e, &["number of operands", &format!("got {}", shapes.len()), "expected 2"]);
    }
    let e = error("ij,jk->ik", &[&[2, 2], &[2]]);
    assert!(matches!(e, Error::Rank(_)), "{e:?}");
    says(&e, &["rank of operand 1", "got 1", "expected 2"]);
    let runtime = EagerRuntime::new(&CpuBackend::new());
    let none: [&EagerTensor; 0] = [];
    assert!(matches!(EagerTensor::einsum("->", &none), Err(Error::Argument(_))));
    let x = runtime.scalar(1.0).unwrap();
    assert!(EagerTensor::einsum("->", &[&x]).is_ok());
}

#[test]
fn different_extents_of_a_label_name_it_and_both_operands() {
    // Neither a missing axis nor an extent 1 is repeated.
    for (text, shapes) in
        [("ij,jk->ik", &[&[2, 3][..], &[4, 2]][..]), ("ij,jk,kl->il", &[&[2, 3], &[4, 2], &[2, 2]])]
    {
        let e = error(text, shapes);
        assert!(matches!(e, Error::Shape(_)), "{e:?}");
        says(&e, &["label 'j'", "operand 1", &format!("got {}", shapes[1][0]), "expected 3 as in operand 0"]);
    }
    let e = error("ii->i", &[&[2, 3]]);
    says(&e, &["label 'i'", "got 3", "expected 2 as in operand 0"]);
}

#[test]
fn extents_that_differ_are_refused_when_traced_or_else_when_run() {
    let input = |shape: &[Dim]| TracedTensor::input(DType::F64, shape);
    let (n, m) = (Dim::symbol("n"), Dim::symbol("m"));
    let [a, b] = [input(&[n.clone(), 3.into()]), input(&[4.into(), n.clone()])];
    let e = TracedTensor::einsum("ij,jk->ik", &[&a, &b]).unwrap_err();
    says(&e, &["label 'j'", "got 4", "expected 3 as in operand 0"]);

    let mut cpu = CpuBackend::new();
    let tensor = |shape: &[usize]| Tensor::zeros(DType::F64, shape).unwrap();
    // Neither is a diagonal shortened, nor an extent 1 repeated to a symbol.
    for (text, shapes, fit, not) in [
        ("ij,jk->ik", &[[&n, &m], [&Dim::symbol("k"), &n]][..], [[2, 3], [3, 2]], [[2, 3], [4, 2]]),
        ("ii,jj->i", &[[&n, &m], [&n, &n]], [[2, 2], [2, 2]], [[2, 3], [2, 2]]),
        ("ij,ij->ij", &[[&n, &m], [&n, &3.into()]], [[2, 3], [2, 3]], [[2, 1], [2, 3]]),
    ] {
        let inputs: Vec<TracedTensor> = shapes.iter().map(|s| input(&s.map(Dim::clone))).collect();
        let inputs: Vec<&TracedTensor> = inputs.iter().collect();
        let y = TracedTensor::einsum(text, &inputs).unwrap();
        let program = GraphCompiler::new().compile_with(&inputs, &[&y]).unwrap();
        let [a, b] = fit.map(|shape| tensor(&shape));
        program.run(&mut cpu, &[&a, &b]).unwrap();
        let [a, b] = not.map(|shape| tensor(&shape));
        let e = program.run(&mut cpu, &[&a, &b]).unwrap_err();
        assert!(matches!(e, Error::Guard(_)), "{e:?}");
        says(&e, &["label", "as in operand 0"]);
    }
}

#[test]
fn a_bond_of_a_network_has_two_ends_of_one_extent_also_where_it_is_one() {
    let mut cpu = CpuBackend::new();
    let labels: [&[i32]; 2] = [&[-1, 7], &[7, -2]];
    let traced = |shape: &[Dim]| TracedTensor::input(DType::F64, shape);
    for (left, right) in [(1, 3), (3, 1), (2, 3), (1, 0)] {
        let [a, b] = [zeros(&[2, left]), zeros(&[right, 2])];
        let runtime = EagerRuntime::new(&cpu);
        let [p, q] = [&a, &b].map(|x| runtime.tensor(x.duplicate().unwrap().into_tensor()).unwrap());
        let [u, v] = [traced(&[2.into(), left.into()]), traced(&[right.into(), 2.into()])];
        let in_best_order = Einsum::ncon(&labels).unwrap().optimized(Optimize::Auto).unwrap();
        let shapes: [&[usize]; 2] = [&[2, left], &[right, 2]];
        let errors = [
            TypedTensor::ncon(&labels, &[&a, &b], &mut cpu).unwrap_err(),
            TypedTensor::einsum(&in_best_order, &[&a, &b], &mut cpu).unwrap_err(),
            EagerTensor::ncon(&labels, &[&p, &q]).unwrap_err(),
            TracedTensor::ncon(&labels, &[&u, &v]).unwrap_err(),
            Einsum::ncon(&labels).unwrap().plan(&shapes).unwrap_err(),
            Einsum::ncon(&labels).unwrap().prepare(&shapes).unwrap_err(),
        ];
        for e in errors {
            assert!(matches!(e, Error::Shape(_)), "{e:?}");
            let expected =
                format!("ncon: extent of label 7 in operand 1: got {right}, expected {left} as in operand 0");
            assert_eq!(e.to_string(), expected);
        }
        // Where only the run knows.
        let (n, m) = (Dim::symbol("n"), Dim::symbol("m"));
        let [u, v] = [traced(&[2.into(), n]), traced(&[m, 2.into()])];
        let y = TracedTensor::ncon(&labels, &[&u, &v]).unwrap();
        let program = GraphCompiler::new().compile_with(&[&u, &v], &[&y]).unwrap();
        let e = program.run(&mut cpu, &[&a.into_tensor(), &b.into_tensor()]).unwrap_err().to_string();
        assert!(e.contains("label 7") && e.contains(&format!("got {right}, expected {left}")), "{e}");
    }
    // Numbers mean what letters do.
    let [a, b] = [zeros(&[2, 1]), zeros(&[3, 2])];
    let y = TypedTensor::einsum_labels(&[&[0, 1], &[1, 2]], &[0, 2], &[&a, &b], &mut cpu).unwrap();
    assert_eq!(y.shape(), [2, 2]);
    let e = TypedTensor::ncon(&labels, &[&a], &mut cpu).unwrap_err();
    assert!(matches!(e, Error::Argument(_)) && e.op() == "ncon", "{e:?}");
    let e = TypedTensor::ncon(&labels, &[&a, &zeros(&[1])], &mut cpu).unwrap_err();
    assert!(matches!(e, Error::Rank(_)) && e.op() == "ncon", "{e:?}");
}

#[test]
fn operands_that_are_no_numbers_or_live_apart() {
    let cpu = CpuBackend::new();
    let flags = TypedTensor::from_vec_col_major([1], vec![true]).unwrap();
    let e = TypedTensor::einsum("i->i", &[&flags], &mut CpuBackend::new()).unwrap_err();
    assert!(matches!(e, Error::DType(_)), "{e:?}");
    let [x, y] = [0, 1].map(|_| EagerRuntime::new(&cpu).scalar(1.0).unwrap());
    assert!(matches!(EagerTensor::einsum(",->", &[&x, &y]), Err(Error::State { .. })));
}

#[test]
fn orders_that_are_none() {
    let chain = Einsum::parse("ij,jk,kl->il").unwrap();
    let e = chain.optimized(Optimize::path([(0, 1)])).unwrap_err();
    says(&e, &["operands that the path leaves", "got 2", "expected 1"]);
    for path in [vec![vec![]], vec![vec![0, 0]], vec![vec![0, 1], vec![2]], vec![vec![3, 0]]] {
        let e = chain.optimized(Optimize::path(path)).unwrap_err();
        assert!(matches!(e, Error::Argument(_)), "{e:?}");
        says(&e, &["of the path: got (", "distinct positions below"]);
    }
    let many: Vec<&[u32]> = vec![&[0]; 17];
    let many = Einsum::labels(&many, &[0]).unwrap().optimized(Optimize::Optimal).unwrap();
    says(&many.plan(&[&[2][..]; 17]).unwrap_err(), &["got 17", "at most 16"]);
}
