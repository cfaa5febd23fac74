//! Sets of cores, such as a task may run on.

/// A set of cores; core n is bit n of word n / 64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreSet(Vec<u64>);

impl CoreSet {
    /// The set of these cores.
    pub fn of(cores: impl IntoIterator<Item = u16>) -> CoreSet {
        let mut words = Vec::new();
        for core in cores {
            let word = usize::from(core / 64);
            if words.len() <= word {
                words.resize(word + 1, 0);
            }
            words[word] |= 1 << (core % 64);
        }
        CoreSet(words)
    }

    /// Whether a core is in the set.
    pub fn contains(&self, core: u16) -> bool {
        self.0.get(usize::from(core / 64)).is_some_and(|word| word & 1 << (core % 64) != 0)
    }

    /// Whether any of the first `cores` cores is in the set.
    pub fn fits(&self, cores: u16) -> bool {
        (0..cores).any(|core| self.contains(core))
    }
}
