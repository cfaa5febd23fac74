//! The random numbers of a process, as fio 3.33 draws them.
//!
//! fio gives each purpose (offsets, block sizes, directions, …) a stream of its own and derives
//! the seeds of all streams from `randseed` and the number of the process. How was found by
//! watching the program: what it drew (`--debug=random`, `--write_iolog` with `ioengine=null`)
//! under many seeds determines the states of its generators, and those their seeds. The generators
//! themselves are published ones.
//!
//! | file | idea |
//! |---|---|
//! | `tausworthe` | L'Ecuyer's combined generators taus88 and taus258 |
//! | `shift_register` | the register behind `random_generator=lfsr` |
//! | `sampler` | Zipf, Pareto, bell and zones |
//! | `visits` | which blocks have been visited |
//! | `exponential` | times between the events of a Poisson process |

mod exponential;
mod sampler;
mod shift_register;
mod tausworthe;
mod visits;

use super::job::Job;

pub use exponential::Exponential;
pub use sampler::{Sampler, Skewed};
pub use shift_register::ShiftRegister;
pub use tausworthe::{Taus88, Tausworthe};
pub use visits::VisitMap;

/// The seed of streams that are the same in every run of fio.
const REPEATED: u64 = 0xB189_9BED;
/// What a seed is multiplied by from stream to stream: the prime 2^31 + 2^29 - 2^25 + 2^22 - 2^19
/// - 2^16 + 1, nearest of its kind to the golden section of 2^32.
const FACTOR: u64 = 0x9E37_0001;
/// How often the seed has been multiplied before the first stream.
const FACTORS_BEFORE: u32 = 4;

/// What random numbers are drawn for. The values are the places of the streams in fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The sizes of reads.
    ReadSize = 0,
    /// The sizes of writes.
    WriteSize = 1,
    /// The sizes of trims.
    TrimSize = 2,
    /// Whether to read or to write.
    Direction = 4,
    /// The file.
    File = 5,
    /// The offset.
    Offset = 6,
    /// Whether an offset is random or sequential.
    Order = 10,
    /// The zone of `random_distribution=zoned`.
    Zone = 16,
}

/// Which streams are the same in every run of fio, whatever `randseed` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// Those of offsets: `randrepeat`.
    pub offsets: bool,
    /// All: `allrandrepeat`.
    pub all: bool,
}

/// Where the random numbers of one process come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    seed: u64,
    /// The number of the process among those of its fio, from 1.
    process: u64,
    repeated: Repeated,
}

impl Seeds {
    /// Those of a job. `seed` counts if the job has no `randseed`; of either, fio takes 32 bits.
    pub fn new(job: &Job, seed: u64) -> Seeds {
        let seed = job.pattern.seed.unwrap_or(seed) as u32;
        let Repeated { offsets, all } = job.pattern.repeated;
        // Where there is a `randseed`, `randrepeat` does not hold for the clones of a job.
        let repeated = Repeated { offsets: offsets && job.clone == 0, all };
        Seeds::plain(seed, u64::from(job.number) + 1, repeated)
    }

    /// Those of the process with this number, from 1.
    pub fn plain(seed: u32, process: u64, repeated: Repeated) -> Seeds {
        Seeds { seed: u64::from(seed), process, repeated }
    }

    /// The seed of the stream for a purpose.
    pub fn of(&self, purpose: Purpose) -> u64 {
        let place = purpose as u32;
        if self.repeated.offsets && purpose == Purpose::Offset {
            return u64::from((REPEATED as u32).wrapping_mul(self.process as u32));
        }
        let seed = match self.repeated.all {
            true => REPEATED,
            false => self.seed.wrapping_mul(FACTOR.wrapping_pow(FACTORS_BEFORE + place)),
        };
        seed.wrapping_mul(self.process).wrapping_add(u64::from(place))
    }

    /// The stream for a purpose; `long` draws have 64 bits.
    pub fn stream(&self, purpose: Purpose, long: bool) -> Tausworthe {
        Tausworthe::new(self.of(purpose), long)
    }
}
