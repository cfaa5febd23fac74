//! Where a sector lies: zones, tracks, heads, skew, and sectors the factory passed over.
//!
//! Angles are counted in nanoseconds of rotation from the index mark, so a position and a clock
//! reading subtract without a conversion. Two ways of numbering sectors are known: cylinder by
//! cylinder (all heads of a cylinder, then the next cylinder), and serpentine in bands (some
//! tracks on one head, the same number back on the next head, and so on). A zone may begin with
//! sectors that hold no data, and at any angle. Leaves out grown defects that were remapped to a
//! spare sector far away.

use crate::table::NumberTable;
use params::Error;

/// Columns of a zone table. Skews are in sectors of the zone, spare sectors at its end.
pub(crate) const ZONE_COLUMNS: [&str; 6] = [
    "first_cylinder",
    "cylinders",
    "sectors_per_track",
    "track_skew_sectors",
    "cylinder_skew_sectors",
    "spare_sectors",
];

/// Columns of a table of slipped sectors.
pub(crate) const SLIP_COLUMNS: [&str; 2] = ["zone", "slipped_lbn_within_zone"];

/// Columns of a table of what lies before the data of a zone: sectors without data, and the angle
/// of the zone's first sector behind the index mark, in sectors. Zones without a row have neither.
pub(crate) const FRONT_COLUMNS: [&str; 3] = ["zone", "empty_sectors", "offset_sectors"];

/// The tables that describe a layout.
pub(crate) struct Tables {
    pub zones: NumberTable,
    pub slips: Option<NumberTable>,
    pub fronts: Option<NumberTable>,
}

/// The place of one sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub cylinder: u32,
    pub head: u32,
    /// Position of the beginning of the sector after the index mark, in nanoseconds of rotation.
    pub angle: u64,
    /// Number of the sector on its track, and how many a track has.
    pub sector: u32,
    pub sectors_per_track: u32,
    /// Sectors with data from this one to the end of the track.
    pub left: u32,
}

#[derive(Clone, Debug)]
struct Zone {
    first_lba: u64,
    lbas: u64,
    first_cylinder: u32,
    cylinders: u64,
    sectors_per_track: u32,
    front: Front,
    /// Skews in thousandths of a sector.
    track_skew: u64,
    cylinder_skew: u64,
    /// Sectors with data that precede the n-th slipped sector, and its physical position.
    slips: Vec<u64>,
    slip_at: Vec<u64>,
}

/// What lies before the data of a zone.
#[derive(Clone, Copy, Debug, Default)]
struct Front {
    /// Sectors that hold none.
    empty: u64,
    /// Angle of the first sector of all, in thousandths of a sector.
    offset: u64,
}

/// The layout of a disk.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    zones: Vec<Zone>,
    surfaces: u64,
    /// Tracks on one head before the next head continues; `None`: cylinder by cylinder.
    band: Option<u64>,
    revolution: u64,
    cylinders: u32,
}

impl Geometry {
    /// Builds the layout from its tables; `revolution` is in nanoseconds.
    pub fn load(
        tables: &Tables,
        surfaces: u64,
        band: Option<u64>,
        revolution: u64,
    ) -> Result<Geometry, Error> {
        let mut geometry = Geometry { zones: Vec::new(), surfaces, band, revolution, cylinders: 0 };
        let zones = &tables.zones;
        let mut slipped = slips_by_zone(tables.slips.as_ref(), zones.rows().len())?;
        let fronts = fronts_by_zone(tables.fronts.as_ref(), zones, surfaces)?;
        let mut first_lba = 0;
        for (index, (line, row)) in zones.rows().iter().enumerate() {
            let whole = |n: &f64, most: f64| (0.0..=most).contains(n) && libm::floor(*n) == *n;
            let counts = whole(&row[0], 1e7) && whole(&row[1], 1e7) && whole(&row[2], 1e5);
            let rest = row[3..].iter().all(|n| (0.0..=1e6).contains(n));
            if !counts || !rest || row[1] < 1.0 || row[2] < 1.0 {
                let accepted = "up to 10000000 cylinders and 100000 sectors per track, \
                                skews and spare sectors up to 1000000";
                return Err(zones.refuse(*line, "an impossible zone", accepted));
            }
            let (first_cylinder, cylinders, per_track) = (row[0] as u64, row[1] as u64, row[2]);
            if first_cylinder < u64::from(geometry.cylinders) {
                let accepted = "zones are in order of cylinder and do not overlap";
                return Err(zones.refuse(*line, "a zone begins inside another", accepted));
            }
            let slips = core::mem::take(&mut slipped[index]);
            let lost = row[5] as u64 + slips.len() as u64 + fronts[index].empty;
            let lbas = (cylinders * surfaces * per_track as u64).saturating_sub(lost);
            geometry.zones.push(Zone {
                first_lba,
                lbas,
                first_cylinder: first_cylinder as u32,
                cylinders,
                sectors_per_track: per_track as u32,
                front: fronts[index],
                track_skew: libm::round(row[3] * 1000.0) as u64,
                cylinder_skew: libm::round(row[4] * 1000.0) as u64,
                slip_at: slips.iter().zip(0..).map(|(before, n)| before + n).collect(),
                slips,
            });
            first_lba += lbas;
            geometry.cylinders = (first_cylinder + cylinders) as u32;
        }
        Ok(geometry)
    }

    /// Sectors with data on the whole disk.
    pub fn sectors(&self) -> u64 {
        self.zones.last().map_or(0, |zone| zone.first_lba + zone.lbas)
    }

    /// The shortest time in which a sector passes under the head, in nanoseconds.
    pub fn shortest_sector(&self) -> u64 {
        let most = self.zones.iter().map(|zone| zone.sectors_per_track).max();
        self.revolution / u64::from(most.unwrap_or(1))
    }

    /// Cylinders from the outer edge to the end of the last zone.
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// The place of a sector of the disk.
    pub fn place(&self, lba: u64) -> Place {
        let zone = self.zone(lba);
        let per_track = u64::from(zone.sectors_per_track);
        let relative = lba - zone.first_lba;
        let physical = zone.front.empty + relative + zone.slipped_before(relative);
        let (track, sector) = (physical / per_track, physical % per_track);
        let (cylinder, head, skew) = self.track(zone, track);
        let turn = per_track * 1000;
        let start = (zone.front.offset + skew + sector * 1000) % turn;
        Place {
            cylinder: zone.first_cylinder + cylinder as u32,
            head: head as u32,
            angle: start * self.revolution / turn,
            sector: sector as u32,
            sectors_per_track: zone.sectors_per_track,
            left: (zone.lbas_below((track + 1) * per_track) - relative) as u32,
        }
    }

    /// The time in which `sectors` from `place` on pass under the head, slipped ones included.
    pub fn passing(&self, lba: u64, place: &Place, sectors: u32) -> u64 {
        let zone = self.zone(lba);
        let relative = lba - zone.first_lba;
        let slipped = if zone.slips.is_empty() {
            0
        } else {
            let last = relative + u64::from(sectors) - 1;
            zone.slipped_before(last) - zone.slipped_before(relative)
        };
        // The difference of two positions, so that adjoining pieces add up without rounding.
        let per_track = u64::from(place.sectors_per_track);
        let at = |sector: u64| sector * self.revolution / per_track;
        let first = u64::from(place.sector);
        at(first + u64::from(sectors) + slipped) - at(first)
    }

    /// The first sector after the track of `lba`.
    pub fn track_end(&self, lba: u64) -> u64 {
        lba + u64::from(self.place(lba).left)
    }

    /// The first sector after the cylinder of `lba`, on a disk of `sectors`.
    pub fn cylinder_end(&self, lba: u64, sectors: u64) -> u64 {
        let cylinder = self.place(lba).cylinder;
        let mut end = self.track_end(lba);
        while end < sectors && self.place(end).cylinder == cylinder {
            end = self.track_end(end);
        }
        end
    }

    fn zone(&self, lba: u64) -> &Zone {
        let after = self.zones.partition_point(|zone| zone.first_lba <= lba);
        let zone = &self.zones[after - 1];
        debug_assert!(lba < zone.first_lba + zone.lbas, "sector {lba} is beyond the disk");
        zone
    }

    /// Cylinder within the zone, head, and skew since the zone's first track.
    fn track(&self, zone: &Zone, track: u64) -> (u64, u64, u64) {
        let heads = self.surfaces;
        let Some(band) = self.band else {
            let (cylinder, head) = (track / heads, track % heads);
            let per_cylinder = (heads - 1) * zone.track_skew + zone.cylinder_skew;
            return (cylinder, head, cylinder * per_cylinder + head * zone.track_skew);
        };
        // Even passes go inward, odd ones come back; in odd bands the heads take turns backwards,
        // so the head that ends a band begins the next one. The last band may be narrower.
        let number = track / (band * heads);
        let band_start = number * band;
        let width = band.min(zone.cylinders - band_start);
        let (turn, step) = {
            let within = track - band_start * heads;
            (within / width, within % width)
        };
        let head = if number.is_multiple_of(2) { turn } else { heads - 1 - turn };
        let cylinder = if turn.is_multiple_of(2) { step } else { width - 1 - step };
        (band_start + cylinder, head, track * zone.track_skew)
    }
}

impl Zone {
    /// Slipped sectors that lie before the data sector `relative`.
    fn slipped_before(&self, relative: u64) -> u64 {
        self.slips.partition_point(|slip| *slip <= relative) as u64
    }

    /// How many data sectors lie before the physical sector `physical`.
    fn lbas_below(&self, physical: u64) -> u64 {
        let physical = physical - self.front.empty;
        let slipped = self.slip_at.partition_point(|at| *at < physical) as u64;
        (physical - slipped).min(self.lbas)
    }
}

fn slips_by_zone(table: Option<&NumberTable>, zones: usize) -> Result<Vec<Vec<u64>>, Error> {
    let mut slips = vec![Vec::new(); zones];
    for (line, row) in table.map_or(&[][..], |table| table.rows()) {
        let zone = row[0] as usize;
        let in_order = slips.get(zone).is_some_and(|list: &Vec<u64>| {
            (0.0..1e12).contains(&row[1]) && list.last().is_none_or(|last| *last <= row[1] as u64)
        });
        if !in_order {
            let table = table.expect("a row comes from a table");
            let accepted = "slips of existing zones, in order of sector";
            return Err(table.refuse(*line, "a slip out of place", accepted));
        }
        slips[zone].push(row[1] as u64);
    }
    Ok(slips)
}

fn fronts_by_zone(
    table: Option<&NumberTable>,
    zones: &NumberTable,
    surfaces: u64,
) -> Result<Vec<Front>, Error> {
    let mut fronts = vec![Front::default(); zones.rows().len()];
    let mut first_free = 0.0;
    for (line, row) in table.map_or(&[][..], |table| table.rows()) {
        let fits = zones.rows().get(row[0] as usize).is_some_and(|(_, zone)| {
            let (whole, size) =
                (libm::floor(row[1]) == row[1], zone[1] * zone[2] * surfaces as f64);
            whole && (0.0..size).contains(&row[1]) && (0.0..=zone[2]).contains(&row[2])
        });
        if !fits || row[0] < first_free || libm::floor(row[0]) != row[0] {
            let table = table.expect("a row comes from a table");
            let accepted = "existing zones, in order; a whole number of empty sectors that \
                            leaves room for data, an offset of at most a track";
            return Err(table.refuse(*line, "an impossible front of a zone", accepted));
        }
        first_free = row[0] + 1.0;
        fronts[row[0] as usize] =
            Front { empty: row[1] as u64, offset: libm::round(row[2] * 1000.0) as u64 };
    }
    Ok(fronts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(band: Option<u64>, slips: &str) -> Geometry {
        with_fronts(band, slips, "").unwrap()
    }

    fn with_fronts(band: Option<u64>, slips: &str, fronts: &str) -> Result<Geometry, Error> {
        let zones = format!("{}\n0,4,10,3,5,0\n4,4,8,2,2,1\n", ZONE_COLUMNS.join(","));
        let zones = NumberTable::parse("zones", &zones, &ZONE_COLUMNS).unwrap();
        let slips = format!("{}\n{slips}", SLIP_COLUMNS.join(","));
        let slips = NumberTable::parse("slips", &slips, &SLIP_COLUMNS).ok();
        let fronts = format!("{}\n{fronts}", FRONT_COLUMNS.join(","));
        let fronts = NumberTable::parse("fronts", &fronts, &FRONT_COLUMNS).ok();
        let tables = Tables { zones, slips, fronts };
        Geometry::load(&tables, 2, band, 8000)
    }

    #[test]
    fn conventional_mapping_fills_cylinder_by_cylinder() {
        let geometry = geometry(None, "");
        assert_eq!(geometry.sectors(), 80 + 63);
        let place = geometry.place(0);
        assert_eq!((place.cylinder, place.head, place.angle, place.left), (0, 0, 0, 10));
        let place = geometry.place(13);
        assert_eq!((place.cylinder, place.head, place.sector, place.left), (0, 1, 3, 7));
        assert_eq!(place.angle, (3 + 3) * 800, "one track skew and three sectors");
        let place = geometry.place(20);
        assert_eq!((place.cylinder, place.head, place.angle), (1, 0, (3 + 5) * 800));
        let last = geometry.place(142);
        assert_eq!((last.cylinder, last.head, last.left), (7, 1, 1), "one spare at the end");
    }

    #[test]
    fn serpentine_mapping_goes_to_and_fro_on_alternating_heads() {
        let geometry = geometry(Some(2), "");
        let path: Vec<(u32, u32)> = (0..8)
            .map(|track| geometry.place(track * 10))
            .map(|place| (place.head, place.cylinder))
            .collect();
        let expected = [(0, 0), (0, 1), (1, 1), (1, 0), (1, 2), (1, 3), (0, 3), (0, 2)];
        assert_eq!(path, expected);
    }

    #[test]
    fn slipped_sectors_shift_what_follows() {
        let geometry = geometry(None, "0,5\n0,5\n0,20\n");
        assert_eq!(geometry.sectors(), 77 + 63);
        assert_eq!(geometry.place(4).sector, 4);
        assert_eq!(geometry.place(5).sector, 7);
        assert_eq!(geometry.place(4).left, 4, "ten sectors of which two are passed over");
        assert_eq!(geometry.passing(4, &geometry.place(4), 4), 6 * 800);
        let mut lba = 0;
        while lba < 77 {
            let end = geometry.track_end(lba);
            let before = geometry.place(end - 1);
            assert_eq!(before.left, 1, "sector {lba} to {end}");
            lba = end;
        }
    }

    #[test]
    fn a_zone_may_begin_with_sectors_without_data_and_at_any_angle() {
        // The second zone loses one sector at its end and three at its front.
        let geometry = with_fronts(None, "", "1,3,2.5\n").unwrap();
        assert_eq!(geometry.sectors(), 80 + 60);
        let before = geometry.place(79);
        assert_eq!((before.cylinder, before.head, before.left), (3, 1, 1));
        let first = geometry.place(80);
        assert_eq!((first.cylinder, first.head, first.sector, first.left), (4, 0, 3, 5));
        assert_eq!(first.angle, 5500, "three sectors and an offset of 2.5, a microsecond each");
        let next = geometry.place(85);
        assert_eq!((next.cylinder, next.head, next.sector, next.left), (4, 1, 0, 8));
        assert_eq!(next.angle, 4500, "an offset of 2.5 and a skew of 2");
        assert_eq!(geometry.track_end(80), 85);
        assert_eq!(geometry.place(139).left, 1);
    }

    #[test]
    fn empty_sectors_and_slipped_ones_add_up() {
        let geometry = with_fronts(Some(2), "0,2\n", "0,13,0\n").unwrap();
        assert_eq!(geometry.sectors(), 66 + 63);
        let first = geometry.place(0);
        assert_eq!((first.cylinder, first.sector, first.left), (1, 3, 6), "a track without data");
        assert_eq!(geometry.place(2).sector, 6, "the slipped sector is the third of the data");
    }

    #[test]
    fn an_impossible_front_is_refused() {
        for front in ["2,1,0", "0,80,0", "0,1,11", "0,-1,0", "0,0.5,0", "0,1,0\n0,1,0", "0.5,1,0"] {
            let error = with_fronts(None, "", front).unwrap_err().to_string();
            assert!(error.contains("an impossible front of a zone; existing zones"), "{error}");
        }
    }
}
