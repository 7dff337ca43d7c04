//! The numbers: against Onsager's solution, and the derivatives against differences of our own ln Z, which hold
//! whatever the truncation costs.

use ising::comparison::Comparison;
use ising::exact::T_CRITICAL;
use ising::options::Mode;
use ising::temperatures::temperatures;
use ising::trg::{Point, solver};

const CHI: usize = 16;
const STEPS: usize = 30;

/// Solves at each of `temperatures` with one solver.
fn solve(mode: Mode, temperatures: &[f64]) -> Vec<Point> {
    let mut solve = solver(mode, CHI, STEPS).expect("the solver can be made");
    temperatures.iter().map(|&t| solve(t).expect("the temperature can be solved")).collect()
}

#[track_caller]
fn assert_relative(ours: f64, reference: f64, tolerance: f64, what: &str) {
    let error = ((ours - reference) / reference).abs();
    assert!(error <= tolerance, "{what}: got {ours:e}, expected {reference:e}, relative error {error:.1e}");
}

/// At every temperature of the main job. Next to T_c, where chi 16 does not allow 1e-4 in the energy, the
/// derivatives below show that it is the truncation that sets the limit.
#[test]
fn agrees_with_onsager() {
    for point in solve(Mode::Traced, &temperatures(21)) {
        let (t, distance) = (point.t, (point.t - T_CRITICAL).abs());
        let [lnz, energy, heat] = Comparison::new(point).quantities();
        let away = distance >= 0.3;
        assert_relative(lnz.computed, lnz.exact, if away { 1e-6 } else { 1e-5 }, &format!("ln Z at {t}"));
        let tolerance = match distance {
            ..1e-9 => 1e-2,
            ..0.06 => 2e-4,
            _ => 1e-4,
        };
        assert_relative(energy.computed, energy.exact, tolerance, &format!("energy at {t}"));
        assert!(heat.computed.is_finite(), "specific heat at {t}");
        if away {
            assert_relative(heat.computed, heat.exact, 1e-3, &format!("specific heat at {t}"));
        }
    }
}

/// `f'` at the middle of five values of `f` a distance `h` apart, with an error of order `h^4`.
fn difference(f: [f64; 5], h: f64) -> f64 {
    (8.0 * (f[3] - f[1]) - (f[4] - f[0])) / (12.0 * h)
}

/// The energy and the specific heat at `t`, each with the same by differences of the computed ln Z and energy, `h`
/// apart in the inverse temperature.
fn beside_differences(t: f64, h: f64) -> [(f64, f64); 2] {
    let beta = 1.0 / t;
    let near = solve(Mode::Traced, &[-2.0, -1.0, 0.0, 1.0, 2.0].map(|k| 1.0 / (beta + k * h)));
    let slope = difference(std::array::from_fn(|i| near[i].lnz), h);
    let curvature = -difference(std::array::from_fn(|i| near[i].energy), h);
    [(near[2].energy, -slope), (near[2].specific_heat, beta * beta * curvature)]
}

/// Also next to T_c, where chi 16 keeps the energy from being exact to 1e-4.
#[test]
fn derivatives_are_those_of_the_computed_values() {
    // Towards T_c the truncation bends ln Z on shorter scales.
    for (t, h) in [(1.7, 1e-3), (T_CRITICAL, 1e-5), (2.32, 1e-4), (2.9, 1e-3)] {
        let [energy, heat] = beside_differences(t, h);
        assert_relative(energy.0, energy.1, 1e-8, &format!("energy at {t}"));
        assert_relative(heat.0, heat.1, 1e-5, &format!("specific heat at {t}"));
    }
}

/// The same at every temperature of the main job, and both modes beside each other: the table of the README.
#[test]
#[ignore = "takes minutes; prints a table"]
fn table_of_differences() {
    let deviation = |(ours, reference): (f64, f64)| ((ours - reference) / reference).abs();
    let ts = temperatures(21);
    println!(
        "deviations from differences: energy, specific heat; eager from traced: ln Z, energy, specific heat"
    );
    for ((&t, eager), traced) in ts.iter().zip(solve(Mode::Eager, &ts)).zip(solve(Mode::Traced, &ts)) {
        let critical = (t - T_CRITICAL).abs() < 1e-9;
        let [energy, heat] = beside_differences(t, if critical { 1e-5 } else { 1e-4 }).map(deviation);
        let modes = [
            (eager.lnz, traced.lnz),
            (eager.energy, traced.energy),
            (eager.specific_heat, traced.specific_heat),
        ]
        .map(deviation);
        println!("{t:.4}  {energy:.1e} {heat:.1e}  {:.1e} {:.1e} {:.1e}", modes[0], modes[1], modes[2]);
        assert!(energy <= if critical { 1e-5 } else { 1e-8 }, "energy at {t}");
        assert!(heat <= 1e-5, "specific heat at {t}");
        assert!(modes[0] <= 1e-10 && modes[1] <= 1e-10 && modes[2] <= 1e-6, "modes at {t}");
    }
}

#[test]
fn eager_and_traced_agree() {
    let temperatures = [1.6, T_CRITICAL, 3.2];
    for (eager, traced) in solve(Mode::Eager, &temperatures).iter().zip(solve(Mode::Traced, &temperatures)) {
        let t = eager.t;
        assert_relative(eager.lnz, traced.lnz, 1e-10, &format!("ln Z at {t}"));
        assert_relative(eager.energy, traced.energy, 1e-10, &format!("energy at {t}"));
        assert_relative(eager.specific_heat, traced.specific_heat, 1e-6, &format!("specific heat at {t}"));
    }
}
