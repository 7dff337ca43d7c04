//! One record: an operation's name, its arguments, and what its value and derivatives are.

use crate::json::number;
use serde_json::Value;
use std::collections::BTreeMap;
use tenferro_tensor::{C64, DType};
use tenferro_testing::{Array, Elem};

/// An argument of an operation.
#[derive(Debug)]
pub(crate) enum Arg {
    Null,
    Flag(bool),
    Number(f64),
    Complex(C64),
    Text(String),
    List(Vec<Arg>),
    /// An input that is differentiated, by its position among them.
    Input(usize),
    /// A tensor that is not differentiated.
    Constant(Array),
}

/// Numbers that the output or a derivative must have, and how nearly.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) arrays: Vec<Array>,
    pub(crate) rtol: f64,
    pub(crate) atol: f64,
    /// From exact derivatives and not from finite differences: also compared up to rounding.
    pub(crate) exact: bool,
}

/// A cotangent of the outputs, a direction of the inputs, and the derivatives along them.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    pub(crate) cotangents: Vec<Array>,
    pub(crate) directions: Vec<Array>,
    pub(crate) value: Vec<Expected>,
    pub(crate) jvp: Vec<Expected>,
    pub(crate) vjp: Vec<Expected>,
    pub(crate) hvp: Vec<Expected>,
}

#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) case: String,
    pub(crate) inputs: Vec<Array>,
    pub(crate) args: Vec<Arg>,
    pub(crate) named: BTreeMap<String, Arg>,
    pub(crate) probes: Vec<Probe>,
    /// The call or its derivatives must be an error.
    pub(crate) error: bool,
}

type Parsed<T> = Result<T, String>;

fn field<'a>(v: &'a Value, name: &str) -> Parsed<&'a Value> {
    v.get(name).ok_or_else(|| format!("no field {name:?}"))
}

fn dtype(name: &str) -> Parsed<DType> {
    Ok(match name {
        "float32" => DType::F32,
        "float64" => DType::F64,
        "complex64" => DType::C32,
        "complex128" => DType::C64,
        "int32" => DType::I32,
        "int64" | "uint8" | "int8" | "int16" => DType::I64,
        "bool" => DType::Bool,
        _ => return Err(format!("dtype {name}")),
    })
}

fn elem(dtype: DType, v: &Value) -> Parsed<Elem> {
    let wrong = || format!("element {v}");
    Ok(match (dtype, v) {
        (_, Value::Bool(b)) => Elem::Int(*b as i64),
        (DType::I32 | DType::I64 | DType::Bool, _) => Elem::Int(v.as_i64().ok_or_else(wrong)?),
        (_, Value::Array(z)) => {
            let part = |i: usize| z.get(i).and_then(number).ok_or_else(wrong);
            Elem::Float(C64::new(part(0)?, part(1)?))
        }
        _ => Elem::real(number(v).ok_or_else(wrong)?),
    })
}

/// A tensor: its axes as they are in the record, its elements in column-major order.
pub(crate) fn array(v: &Value) -> Parsed<Array> {
    let dtype = dtype(field(v, "dtype")?.as_str().unwrap_or_default())?;
    let list = |name| field(v, name)?.as_array().ok_or_else(|| format!("{name} is no list"));
    let extent = |n: &Value| n.as_u64().map(|n| n as usize).ok_or_else(|| format!("extent {n}"));
    let shape: Vec<usize> = list("shape")?.iter().map(extent).collect::<Parsed<_>>()?;
    let data: Vec<Elem> = list("data")?.iter().map(|e| elem(dtype, e)).collect::<Parsed<_>>()?;
    if data.len() != shape.iter().product::<usize>() {
        return Err(format!("{} elements in shape {shape:?}", data.len()));
    }
    let row_major = |index: &[usize]| index.iter().zip(&shape).fold(0, |at, (i, n)| at * n + i);
    Ok(Array::from_fn(dtype, &shape, |index| data[row_major(index)]))
}

fn is_tensor(v: &Value) -> bool {
    v.get("data").is_some() && v.get("shape").is_some()
}

/// An argument; the first `limit` floating-point tensors are inputs, collected in `inputs`.
fn arg(v: &Value, inputs: &mut Vec<Array>, limit: usize) -> Parsed<Arg> {
    Ok(match v {
        Value::Null => Arg::Null,
        Value::Bool(b) => Arg::Flag(*b),
        Value::Number(_) => Arg::Number(number(v).unwrap_or(f64::NAN)),
        Value::String(s) if number(v).is_some() => Arg::Number(s.parse().unwrap_or(f64::NAN)),
        Value::String(s) => Arg::Text(s.clone()),
        Value::Array(list) => Arg::List(list.iter().map(|v| arg(v, inputs, limit)).collect::<Parsed<_>>()?),
        Value::Object(o) => {
            let tensor = o.get("tensor").unwrap_or(v);
            if is_tensor(tensor) {
                let a = array(tensor)?;
                if a.dtype.is_differentiable() && inputs.len() < limit {
                    inputs.push(a);
                    return Ok(Arg::Input(inputs.len() - 1));
                }
                return Ok(Arg::Constant(a));
            }
            match (o.get("complex"), o.get("repr")) {
                (Some(z), _) => Arg::Complex(elem(DType::C64, z)?.c()),
                (_, Some(name)) => Arg::Text(name.as_str().unwrap_or_default().to_string()),
                _ => return Err(format!("argument {v}")),
            }
        }
    })
}

fn named(v: Option<&Value>) -> Parsed<BTreeMap<String, Arg>> {
    let Some(Value::Object(o)) = v else { return Ok(BTreeMap::new()) };
    o.iter().map(|(name, v)| Ok((name.clone(), arg(v, &mut vec![], 0)?))).collect()
}

/// The tensors of an object by name.
fn arrays(v: &Value) -> Parsed<Vec<Array>> {
    match v {
        Value::Object(o) => o.values().map(array).collect(),
        Value::Array(list) => list.iter().map(array).collect(),
        _ => Err(format!("no tensors: {v}")),
    }
}

impl Record {
    /// An einsum of inputs.
    pub(crate) fn einsum(inputs: Vec<Array>, text: &str) -> Record {
        let mut args: Vec<Arg> = (0..inputs.len()).map(Arg::Input).collect();
        args.push(Arg::Text(text.to_string()));
        Record { case: String::new(), inputs, args, named: BTreeMap::new(), probes: vec![], error: false }
    }

    /// A record of tensor-ad-oracles.
    pub(crate) fn database(v: &Value) -> Parsed<Record> {
        let mut inputs = vec![];
        let mut args: Vec<Arg> = vec![];
        let tensors = field(v, "inputs")?.as_object().ok_or("inputs is no object")?;
        for tensor in tensors.values() {
            args.push(arg(tensor, &mut inputs, usize::MAX)?);
        }
        if let Some(Value::Array(more)) = v.get("op_args") {
            args.extend(more.iter().map(|v| arg(v, &mut vec![], 0)).collect::<Parsed<Vec<_>>>()?);
        }
        let tolerance = |order: &str| {
            let t = field(field(v, "comparison")?, order)?;
            let read = |name| number(field(t, name)?).ok_or_else(|| format!("{name} is no number"));
            Ok::<_, String>((read("rtol")?, read("atol")?))
        };
        let probe = |p: &Value| {
            let mut probe = Probe {
                cotangents: arrays(field(p, "cotangent")?)?,
                directions: arrays(field(p, "direction")?)?,
                ..Probe::default()
            };
            for (source, exact) in [("pytorch_ref", true), ("fd_ref", false)] {
                let source = field(p, source)?;
                for (name, order) in [("jvp", "first"), ("vjp", "first"), ("hvp", "second")] {
                    let Some(found) = source.get(name) else { continue };
                    let (rtol, atol) = tolerance(&format!("{order}_order"))?;
                    let list = match name {
                        "jvp" => &mut probe.jvp,
                        "vjp" => &mut probe.vjp,
                        _ => &mut probe.hvp,
                    };
                    list.push(Expected { arrays: arrays(found)?, rtol, atol, exact });
                }
            }
            Ok::<_, String>(probe)
        };
        Ok(Record {
            case: field(v, "case_id")?.as_str().unwrap_or_default().to_string(),
            inputs,
            args,
            named: named(v.get("op_kwargs"))?,
            probes: field(v, "probes")?.as_array().into_iter().flatten().map(probe).collect::<Parsed<_>>()?,
            error: v.get("expected_behavior").and_then(Value::as_str) == Some("error"),
        })
    }

    /// A record of the supplement. Its finite differences are central ones of step h = 1e-6 in double precision, so
    /// they are off by `h^2 |f'''| / 6` and by a few `eps |f| / h`.
    pub(crate) fn supplement(v: &Value) -> Parsed<Record> {
        let mut inputs = vec![];
        let limit = field(v, "vjp")?.as_array().map_or(0, Vec::len);
        let mut args = vec![arg(field(v, "input")?, &mut inputs, limit)?];
        for a in field(v, "args")?.as_array().into_iter().flatten() {
            args.push(arg(a, &mut inputs, limit)?);
        }
        let size = arrays(field(v, "outputs")?)?.iter().map(Array::norm).fold(0.0, f64::max);
        let list = |name, rtol, atol, exact| {
            Ok::<_, String>(vec![Expected { arrays: arrays(field(v, name)?)?, rtol, atol, exact }])
        };
        let probe = Probe {
            cotangents: arrays(field(v, "cotangents")?)?,
            directions: arrays(field(v, "directions")?)?,
            value: list("outputs", 1e-10, 1e-10, true)?,
            jvp: list("fd_jvp", 1e-6, 1e-6 + 4.0 * f64::EPSILON / 1e-6 * size, false)?,
            vjp: list("vjp", 1e-9, 1e-9, true)?,
            hvp: vec![],
        };
        Ok(Record {
            case: field(v, "case_id")?.as_str().unwrap_or_default().to_string(),
            inputs,
            args,
            named: named(v.get("kwargs"))?,
            probes: vec![probe],
            error: false,
        })
    }
}
