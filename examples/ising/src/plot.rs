//! The plot: a panel per quantity against temperature with the exact curve, and below it the relative errors.
//!
//! One drawing serves the SVG and the PNG file; lengths are in units of the SVG and scale with the bitmap.
//! The font is embedded, so the bitmap needs none on the machine.

use crate::comparison::{Comparison, NAMES};
use crate::exact::{Exact, T_CRITICAL};
use crate::options::Options;
use crate::temperatures::{HIGHEST, LOWEST};
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::register_font;
use std::error::Error;
use std::fs;
use std::ops::Range;

type Area<B> = DrawingArea<B, Shift>;
type Coord = (f64, f64);
type Drawn = Result<(), Box<dyn Error>>;

const SIZE: (u32, u32) = (1380, 620);
const BITMAP_SCALE: u32 = 2;
const SUPERSAMPLING: u32 = 2;
const X: Range<f64> = LOWEST - 0.05..HIGHEST + 0.05;
const LABEL_WIDTH: u32 = 66;
const FONT: &str = "sans-serif";

const INK: RGBColor = RGBColor(31, 41, 55);
const FRAME: RGBColor = RGBColor(148, 163, 184);
const GRID: RGBColor = RGBColor(236, 240, 245);
const CURVE: RGBColor = RGBColor(100, 116, 139);
const CRITICAL: RGBColor = RGBColor(220, 38, 38);
const POINTS: [RGBColor; 3] = [RGBColor(37, 99, 235), RGBColor(13, 148, 136), RGBColor(217, 119, 6)];

/// Writes both files of the plot.
pub fn write(options: &Options, rows: &[Comparison]) -> Drawn {
    let title = format!(
        "Square-lattice Ising model by differentiable TRG, chi = {}, {} steps",
        options.chi, options.steps
    );
    let failed = |path: &std::path::Path, error: &dyn std::fmt::Display| {
        format!("cannot write {}: {error}", path.display())
    };
    fs::write(&options.svg, svg(&title, rows)?).map_err(|e| failed(&options.svg, &e))?;
    fs::write(&options.png, png(&title, rows)?).map_err(|e| failed(&options.png, &e))?;
    Ok(())
}

fn svg(title: &str, rows: &[Comparison]) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    draw(SVGBackend::with_string(&mut text, SIZE), 1, title, rows)?;
    Ok(text)
}

fn png(title: &str, rows: &[Comparison]) -> Result<Vec<u8>, Box<dyn Error>> {
    let (width, height) = (SIZE.0 * BITMAP_SCALE, SIZE.1 * BITMAP_SCALE);
    let fine = (width * SUPERSAMPLING, height * SUPERSAMPLING);
    let mut pixels = vec![0; 3 * (fine.0 * fine.1) as usize];
    let backend = BitMapBackend::with_buffer(&mut pixels, fine);
    draw(backend, BITMAP_SCALE * SUPERSAMPLING, title, rows)?;

    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(&averaged(&pixels, width as usize, height as usize))?;
    Ok(file)
}

/// Every square of `SUPERSAMPLING` x `SUPERSAMPLING` pixels made one: the backend draws hard edges.
fn averaged(fine: &[u8], width: usize, height: usize) -> Vec<u8> {
    let factor = SUPERSAMPLING as usize;
    let sample = |x: usize, y: usize, channel: usize| {
        let square = (0..factor * factor).map(|i| (factor * x + i % factor, factor * y + i / factor));
        let sum: usize = square.map(|(x, y)| usize::from(fine[3 * (factor * width * y + x) + channel])).sum();
        (sum / (factor * factor)) as u8
    };
    let rows = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    rows.flat_map(|(x, y)| [0, 1, 2].map(|channel| sample(x, y, channel))).collect()
}

fn draw<B: DrawingBackend>(backend: B, scale: u32, title: &str, rows: &[Comparison]) -> Drawn
where
    B::ErrorType: 'static,
{
    register_font(FONT, FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT)
        .map_err(|_| "the embedded font cannot be read")?;
    let root = backend.into_drawing_area();
    root.fill(&WHITE)?;
    let root = root.margin(6 * scale, 6 * scale, 8 * scale, 8 * scale);
    let root = root.titled(title, (FONT, 22 * scale).into_font().color(&INK))?;
    for (index, column) in root.split_evenly((1, 3)).iter().enumerate() {
        let (values, errors) = column.split_vertically(column.dim_in_pixel().1 * 64 / 100);
        draw_values(&values, scale, index, rows)?;
        draw_errors(&errors, scale, index, rows)?;
    }
    root.present()?;
    Ok(())
}

/// Computed points on the exact curve.
fn draw_values<B: DrawingBackend>(area: &Area<B>, scale: u32, index: usize, rows: &[Comparison]) -> Drawn
where
    B::ErrorType: 'static,
{
    let points: Vec<Coord> = rows.iter().map(|row| (row.point.t, row.quantities()[index].computed)).collect();
    let curves = exact_curves(index);
    // The exact specific heat is infinite at T_c: its curve leaves the panel above the computed values.
    let finite: Vec<f64> = points.iter().map(|p| p.1).filter(|y| y.is_finite()).collect();
    let top = 1.3 * finite.iter().copied().fold(2.5, f64::max);
    let shown = curves.iter().flatten().map(|p| p.1).filter(|y| *y < top).chain(finite);
    let (low, high) =
        shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(y), high.max(y)));
    let room = 0.06 * (high - low);
    let y = low - 2.0 * room..high + room;

    let mut chart = ChartBuilder::on(area)
        .margin_top(8 * scale)
        .caption(format!("{} per site", NAMES[index]), (FONT, 19 * scale).into_font().color(&INK))
        .x_label_area_size(8 * scale)
        .y_label_area_size(LABEL_WIDTH * scale)
        .margin_right(14 * scale)
        .build_cartesian_2d(X, y.clone())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID.stroke_width(scale))
        .axis_style(FRAME.stroke_width(scale))
        .label_style((FONT, 15 * scale).into_font().color(&INK))
        .x_label_formatter(&|_| String::new())
        .y_labels(7)
        .y_label_formatter(&|y| format!("{y:.1}"))
        .set_all_tick_mark_size(4 * scale)
        .draw()?;
    chart.draw_series([critical_line(&y, scale)])?;
    let label = (FONT, 15 * scale).into_font().color(&CRITICAL);
    chart.draw_series([Text::new("T_c", (T_CRITICAL + 0.02, y.start + 1.2 * room), label)])?;
    let line = CURVE.stroke_width(2 * scale);
    for (i, curve) in curves.into_iter().enumerate() {
        let series =
            chart.draw_series(LineSeries::new(curve.into_iter().filter(|p| y.contains(&p.1)), line))?;
        if i == 0 {
            let sample = move |(x, y)| PathElement::new([(x, y), (x + 18 * scale as i32, y)], line);
            series.label("exact").legend(sample);
        }
    }
    let color = POINTS[index];
    chart
        .draw_series(points.into_iter().filter(|p| y.contains(&p.1)).map(|p| dot(p, color, scale)))?
        .label("computed")
        .legend(move |(x, y)| dot((x + 9 * scale as i32, y), color, scale));
    chart
        .configure_series_labels()
        .position(if index == 1 { SeriesLabelPosition::UpperLeft } else { SeriesLabelPosition::UpperRight })
        .margin(10 * scale)
        .legend_area_size(24 * scale)
        .label_font((FONT, 15 * scale).into_font().color(&INK))
        .background_style(WHITE)
        .draw()?;
    Ok(())
}

/// Relative errors on a logarithmic scale; an error below rounding is drawn at rounding.
fn draw_errors<B: DrawingBackend>(area: &Area<B>, scale: u32, index: usize, rows: &[Comparison]) -> Drawn
where
    B::ErrorType: 'static,
{
    let error = |row: &Comparison| {
        let error = row.quantities()[index].relative_error()?;
        error.is_finite().then(|| (row.point.t, error.max(f64::EPSILON).log10()))
    };
    let points: Vec<Coord> = rows.iter().filter_map(error).collect();
    let low = points.iter().map(|p| p.1.floor()).fold(-4.0, f64::min);
    let high = points.iter().map(|p| p.1.ceil()).fold(low + 2.0, f64::max);
    let y = low - 0.2..high + 0.2;

    let mut chart = ChartBuilder::on(area)
        .margin_top(10 * scale)
        .x_label_area_size(44 * scale)
        .y_label_area_size(LABEL_WIDTH * scale)
        .margin_right(14 * scale)
        .build_cartesian_2d(X, y.clone())?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID.stroke_width(scale))
        .axis_style(FRAME.stroke_width(scale))
        .label_style((FONT, 15 * scale).into_font().color(&INK))
        .x_desc("temperature T")
        .x_labels(9)
        .x_label_formatter(&|t| format!("{t:.1}"))
        .y_desc(if index == 0 { "relative error" } else { "" })
        .y_labels(5)
        .y_label_formatter(&|y| if y.fract() == 0.0 { format!("1e{y}") } else { String::new() })
        .set_all_tick_mark_size(4 * scale)
        .draw()?;
    chart.draw_series([critical_line(&y, scale)])?;
    let color = POINTS[index];
    chart.draw_series(LineSeries::new(points.iter().copied(), color.mix(0.35).stroke_width(scale)))?;
    chart.draw_series(points.iter().map(|&p| dot(p, color, scale)))?;
    Ok(())
}

/// The exact curve on either side of the transition.
fn exact_curves(index: usize) -> [Vec<Coord>; 2] {
    let curve = |from: f64, to: f64| {
        let at = |i: u32| {
            // Cubic spacing towards the transition, at `from`, where the curve bends.
            let t = from + (to - from) * (f64::from(i) / 400.0).powi(3);
            let Exact { lnz, energy, specific_heat } = Exact::at(t);
            (t, [lnz, energy, specific_heat][index])
        };
        (1..=400).map(at).collect()
    };
    [curve(T_CRITICAL, X.start), curve(T_CRITICAL, X.end)]
}

fn critical_line(y: &Range<f64>, scale: u32) -> DashedPathElement<std::array::IntoIter<Coord, 2>, u32> {
    let style = CRITICAL.mix(0.5).stroke_width(scale);
    DashedPathElement::new([(T_CRITICAL, y.start), (T_CRITICAL, y.end)], 5 * scale, 4 * scale, style)
}

fn dot<C>(at: C, color: RGBColor, scale: u32) -> Circle<C, u32> {
    Circle::new(at, 4 * scale, color.filled())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::tests::displaced;

    #[test]
    fn both_formats_show_every_panel() {
        let rows = displaced(21, 1e-5);
        let svg = svg("title of the plot", &rows).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for text in ["title of the plot", "ln Z per site", "energy per site", "specific heat per site"] {
            assert!(svg.contains(text), "{text}");
        }
        // 21 values, 21 errors and a legend sample a panel, and no error where the specific heat diverges.
        assert_eq!(svg.matches("<circle").count(), 3 * (21 + 21 + 1) - 1);
        let png = png("title", &rows).unwrap();
        assert!(png.starts_with(b"\x89PNG"));
    }

    #[test]
    fn values_off_the_scale_do_not_break_the_plot() {
        for count in [1, 2, 3] {
            let mut rows = displaced(count, 0.0);
            rows[0].point.energy = f64::NAN;
            rows[0].point.specific_heat = f64::INFINITY;
            assert!(svg("title", &rows).is_ok(), "{count} temperatures");
        }
    }
}
