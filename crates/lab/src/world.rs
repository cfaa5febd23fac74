//! Where an experiment runs, and what holds in both worlds when one of them is there to judge the
//! other.

use crate::error::Error;
use base::Bytes;
use block::Version;
use std::fmt;

/// The kernels that both worlds have: those of the world `linux` judge these rules.
pub const JUDGES: [Version; 3] = [Version::V6_1, Version::V6_12, Version::V7_3];
/// The one of them that is meant when nobody says so.
pub const KERNEL: Version = Version::V6_12;
/// The judges' names.
pub fn judges() -> String {
    JUDGES.map(|it| it.to_string()).join(", ")
}

/// The memory of a guest when nobody says otherwise (assumed).
pub const MEMORY: Bytes = Bytes(512 << 20);

/// Where an experiment runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum World {
    /// In the simulator.
    #[default]
    Sim,
    /// On a real kernel in virtual time.
    Linux,
}

impl World {
    /// Understands `sim` and `linux`, one or several.
    pub fn parse_list(text: &str, place: &str) -> Result<Vec<World>, Error> {
        let mut worlds = Vec::new();
        for name in text.split(',') {
            let world = match name {
                "sim" => World::Sim,
                "linux" => World::Linux,
                "live" => return Err(Error::not_yet(place, "world live", "sim, linux")),
                _ => {
                    let hint = base::nearest(name, ["sim", "linux", "live"]);
                    let problem = format!("unknown world \"{name}\"{hint}");
                    return Err(Error::bad(place, problem, "sim, linux"));
                }
            };
            if !worlds.contains(&world) {
                worlds.push(world);
            }
        }
        Ok(worlds)
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            World::Sim => "sim",
            World::Linux => "linux",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worlds_are_named_once_each_and_unknown_ones_refused() {
        let parse = |text| World::parse_list(text, "--world");
        assert_eq!(parse("sim,linux,sim").unwrap(), [World::Sim, World::Linux]);
        let unknown = parse("linus").unwrap_err().to_string();
        assert!(unknown.contains("nearest: \"linux\""), "{unknown}");
    }
}
