//! The table as comma-separated values, at full precision.

use crate::comparison::{Comparison, NAMES};
use std::io::{self, Write};

/// Writes a header and one line per temperature. Numbers read back exactly; an infinite exact value is `inf`,
/// the error beside it empty.
pub fn write(out: &mut impl Write, rows: &[Comparison]) -> io::Result<()> {
    write!(out, "temperature")?;
    for name in NAMES.map(|name| name.to_lowercase().replace(' ', "_")) {
        write!(out, ",{name},{name}_exact,{name}_relative_error")?;
    }
    writeln!(out, ",rank")?;
    for row in rows {
        write!(out, "{}", row.point.t)?;
        for quantity in row.quantities() {
            let error = quantity.relative_error().map_or(String::new(), |error| format!("{error:e}"));
            write!(out, ",{},{},{error}", quantity.computed, quantity.exact)?;
        }
        writeln!(out, ",{}", row.point.rank)?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::tests::displaced;

    #[test]
    fn numbers_read_back_exactly() {
        let rows = displaced(3, 1e-5);
        let mut text = Vec::new();
        write(&mut text, &rows).unwrap();
        let lines: Vec<Vec<&str>> =
            str::from_utf8(&text).unwrap().lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[0][..4], ["temperature", "ln_z", "ln_z_exact", "ln_z_relative_error"]);
        assert!(lines.iter().all(|line| line.len() == 11));
        for (line, row) in lines[1..].iter().zip(&rows) {
            assert_eq!(line[0].parse(), Ok(row.point.t));
            assert_eq!(line[1].parse(), Ok(row.point.lnz));
            assert_eq!(line[7].parse(), Ok(row.point.specific_heat));
        }
        assert_eq!(lines[2][8..10], ["inf", ""]);
    }
}
