//! How long the arm takes over a distance.
//!
//! Given as measured points, joined by straight lines, or as a formula in pieces; both become one
//! integer table at load.

use crate::table::NumberTable;
use params::Error;
use params::Table;

/// Columns of a seek table.
pub(crate) const SEEK_COLUMNS: [&str; 2] = ["distance_cylinders", "seek_ms"];

/// Distances up to this are looked up one by one, longer ones every [`COARSE_STEP`] cylinders.
const FINE: usize = 8192;
const COARSE_STEP: usize = 1 << COARSE_SHIFT;
const COARSE_SHIFT: u32 = 6;

/// Seek times of reads by distance in cylinders.
#[derive(Clone, Debug)]
pub(crate) struct SeekCurve {
    fine: Vec<u32>,
    coarse: Vec<u32>,
}

impl SeekCurve {
    /// The curve through measured points; beyond the last one it goes on in the same direction.
    pub fn from_points(table: &NumberTable, cylinders: u32) -> Result<SeekCurve, Error> {
        let points = table.rows();
        let mut previous = 0.0;
        for (line, row) in points {
            if row[0] <= previous || row[1] < 0.0 || row[1] > 1000.0 {
                let accepted = "distances rise, times are from 0 to 1000 ms";
                return Err(table.refuse(*line, "a seek point out of place", accepted));
            }
            previous = row[0];
        }
        if points.len() < 2 {
            return Err(table.refuse(points[0].0, "a single seek point", "two points or more"));
        }
        let points: Vec<(f64, f64)> = points.iter().map(|(_, row)| (row[0], row[1])).collect();
        Ok(Self::tabulate(cylinders, |distance| {
            let right = points.partition_point(|point| point.0 < distance);
            let right = right.clamp(1, points.len() - 1);
            let (from, to) = (points[right - 1], points[right]);
            from.1 + (to.1 - from.1) * (distance - from.0) / (to.0 - from.0)
        }))
    }

    /// The curve a + b * sqrt(d) + c * d in milliseconds; a piece begins at its first column.
    pub fn from_formula(table: &Table, name: &str, cylinders: u32) -> Result<Self, Error> {
        let pieces = table.rows(name);
        let rising = pieces.windows(2).all(|pair| pair[0][0] < pair[1][0]);
        if pieces.first().is_none_or(|piece| piece[0] != 1.0) || !rising {
            let accepted = "rows [from_cylinder, a, b, c], the first from 1, in rising order";
            return Err(table.refuse(name, "pieces out of order".to_string(), accepted));
        }
        Ok(Self::tabulate(cylinders, |distance| {
            let piece = &pieces[pieces.partition_point(|piece| piece[0] <= distance) - 1];
            piece[1] + piece[2] * libm::sqrt(distance) + piece[3] * distance
        }))
    }

    /// The time of a seek over `distance` cylinders, in nanoseconds.
    pub fn time(&self, distance: u32) -> u64 {
        let distance = distance as usize;
        if distance < self.fine.len() {
            return u64::from(self.fine[distance]);
        }
        let index = distance >> COARSE_SHIFT;
        let (from, to) = (i64::from(self.coarse[index]), i64::from(self.coarse[index + 1]));
        let part = (distance & (COARSE_STEP - 1)) as i64;
        (from + (to - from) * part / COARSE_STEP as i64) as u64
    }

    fn tabulate(cylinders: u32, milliseconds: impl Fn(f64) -> f64) -> SeekCurve {
        let nanos = |distance: usize| match distance {
            0 => 0,
            _ => libm::round(milliseconds(distance as f64).max(0.0) * 1e6) as u32,
        };
        let cylinders = cylinders as usize;
        let steps = if cylinders <= FINE { 0 } else { (cylinders >> COARSE_SHIFT) + 2 };
        SeekCurve {
            fine: (0..cylinders.min(FINE)).map(nanos).collect(),
            coarse: (0..steps).map(|step| nanos(step << COARSE_SHIFT)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_points_the_curve_is_straight() {
        let text = "distance_cylinders,seek_ms\n1,1.0\n3,2.0\n20000,5.0\n";
        let table = NumberTable::parse("seek", text, &SEEK_COLUMNS).unwrap();
        let curve = SeekCurve::from_points(&table, 30_000).unwrap();
        assert_eq!(curve.time(0), 0);
        assert_eq!(curve.time(2), 1_500_000);
        assert_eq!(curve.time(3), 2_000_000);
        let middle = curve.time(10_001);
        assert!(middle.abs_diff(3_500_000) < 200, "half way up, seen {middle}");
        assert!(curve.time(29_999) > 6_400_000, "goes on beyond the last point");
    }
}
