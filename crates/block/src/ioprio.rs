//! I/O priorities as Linux encodes them: a class and a level (rule owner-2).

/// The class of an I/O priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IoprioClass {
    /// Not set; schedulers derive a class from the nice value or treat it as best effort.
    #[default]
    None = 0,
    /// Real time.
    RealTime = 1,
    /// Best effort.
    BestEffort = 2,
    /// Idle.
    Idle = 3,
}

/// An I/O priority: class and level (0 highest, 7 lowest).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ioprio {
    /// The class.
    pub class: IoprioClass,
    /// The level within the class, 0..=7.
    pub level: u8,
}

impl Ioprio {
    /// No explicit priority.
    pub const NONE: Ioprio = Ioprio { class: IoprioClass::None, level: 0 };
    /// What an unset priority counts as when priorities are compared: best effort, level 4.
    pub const DEFAULT: Ioprio = Ioprio { class: IoprioClass::BestEffort, level: 4 };

    /// A priority of `class` at `level`; `None` when the level is above 7.
    pub const fn new(class: IoprioClass, level: u8) -> Option<Ioprio> {
        if level > 7 { None } else { Some(Ioprio { class, level }) }
    }

    /// The kernel's number: class in bits 13 and up, level in the low three bits.
    pub const fn to_bits(self) -> u16 {
        (self.class as u16) << 13 | self.level as u16
    }

    /// The inverse of [`Ioprio::to_bits`]; hint bits are dropped, unknown classes are `None`.
    pub const fn from_bits(bits: u16) -> Ioprio {
        let class = match bits >> 13 {
            1 => IoprioClass::RealTime,
            2 => IoprioClass::BestEffort,
            3 => IoprioClass::Idle,
            _ => IoprioClass::None,
        };
        Ioprio { class, level: (bits & 7) as u8 }
    }

    /// The better of two priorities, an unset one counting as best effort 4 (rule merge-7).
    pub fn better(self, other: Ioprio) -> Ioprio {
        let (a, b) = (self.or_default(), other.or_default());
        if a.to_bits() <= b.to_bits() { a } else { b }
    }

    /// What a task without an explicit priority gets from its nice value (-20..=19).
    pub const fn from_nice(nice: i8) -> Ioprio {
        Ioprio { class: IoprioClass::BestEffort, level: ((nice + 20) / 5) as u8 }
    }

    fn or_default(self) -> Ioprio {
        if self.class == IoprioClass::None { Ioprio::DEFAULT } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_the_kernels() {
        let rt = Ioprio::new(IoprioClass::RealTime, 3).unwrap();
        assert_eq!(rt.to_bits(), 1 << 13 | 3);
        assert_eq!(Ioprio::from_bits(rt.to_bits()), rt);
        assert_eq!(Ioprio::new(IoprioClass::Idle, 8), None);
    }

    #[test]
    fn an_unset_priority_counts_as_best_effort_4() {
        let be5 = Ioprio::new(IoprioClass::BestEffort, 5).unwrap();
        assert_eq!(Ioprio::NONE.better(be5), Ioprio::DEFAULT);
        assert_eq!(Ioprio::from_nice(0).level, 4);
        assert_eq!(Ioprio::from_nice(19).level, 7);
    }
}
