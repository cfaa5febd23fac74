//! The memory of a machine: how much of it the page cache can have, and when pages must go.
//!
//! All numbers are pages of 4 KiB. What the kernel and what runs before the jobs keep for
//! themselves is a guest's ([`BootMemory`]).
//!
// Divergence: one zone. What a program takes it gives back when it ends, or when the last of its
// kind does, and nothing of it can go before, though its files could.

use base::Bytes;
use guest::{BootMemory, Footprint};

const PAGE: u64 = 4096;
/// A page has a descriptor of 64 bytes.
const DESCRIPTORS: u64 = 64;
/// The memory of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// All that the kernel has to give.
    pub managed: u64,
    /// Pages that were free when the kernel began.
    pub at_boot: u64,
    /// Pages that are free without programs and the files of the disk.
    pub free: u64,
    /// Pages of the files of programs.
    pub programs: u64,
    /// Pages that programs have taken.
    taken: u64,
    /// The programs that run, each as often as it does.
    running: Vec<&'static str>,
    /// Fewer free pages than these make old ones go,
    pub low: u64,
    /// until so many are free.
    pub high: u64,
}

impl Memory {
    /// A machine with so much memory.
    pub fn new(size: Bytes, guest: &BootMemory) -> Memory {
        let all = size.0 / PAGE;
        let kernel = all / DESCRIPTORS + guest.kernel + all * guest.kernel_share / 2048;
        let managed = all.saturating_sub(kernel);
        // The square root of 16 times the memory in KiB, in KiB, and a quarter of it or a
        // thousandth of all for each further step. // spec: vm.min_free_kbytes; measured
        let least = (managed * 4 * 16).isqrt() / 4;
        let step = (least / 4).max(managed / 1000);
        Memory {
            managed,
            at_boot: managed.saturating_sub(guest.used_at_boot),
            free: managed.saturating_sub(guest.used),
            programs: guest.programs,
            taken: 0,
            running: Vec::new(),
            low: least + step,
            high: least + 2 * step,
        }
    }

    /// So many pages, all of them free, and two marks.
    #[cfg(test)]
    pub fn of_pages(all: u64, low: u64, high: u64) -> Memory {
        let neutral = &guest::Profile::neutral().memory;
        let memory = Memory::new(Bytes(0), neutral);
        Memory { managed: all, at_boot: all, free: all, low, high, ..memory }
    }

    /// Pages that could be dirty, of which limits are percentages (rule dirty-limits-1).
    pub fn dirtyable(&self) -> u64 {
        (self.free.saturating_sub(self.taken) + self.programs).saturating_sub(self.high)
    }

    /// Pages that could be dirty when the kernel began.
    pub fn dirtyable_at_boot(&self) -> u64 {
        self.at_boot
    }

    /// A program starts. However often it runs, its files are in memory once.
    pub fn take(&mut self, program: &'static str, footprint: Footprint) {
        let files = if self.running.contains(&program) { 0 } else { footprint.files };
        self.running.push(program);
        self.taken += footprint.own + files;
        self.programs += files;
    }

    /// A program ends that has started.
    pub fn give_back(&mut self, program: &'static str, footprint: Footprint) {
        let place = self.running.iter().position(|running| *running == program);
        self.running.swap_remove(place.expect("who ends has started"));
        let files = if self.running.contains(&program) { 0 } else { footprint.files };
        self.taken -= footprint.own + files;
        self.programs -= files;
    }

    /// How many must go before so many more come, with so many in memory.
    pub fn excess(&self, cached: u64, more: u64) -> u64 {
        let free = self.free.saturating_sub(self.taken + cached + more);
        if free < self.low { self.high - free } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rules;
    use crate::limits::{Settings, Thresholds};
    use crate::pcp_lists::PcpLists;
    use block::{Kernel, Version};

    #[test]
    fn a_machine_of_which_nothing_is_known_has_all_its_memory_for_files() {
        let neutral = &guest::Profile::neutral().memory;
        let memory = Memory::new(Bytes(1 << 30), neutral);
        // But for a descriptor of each page.
        let managed = (1 << 18) - (1 << 12);
        assert_eq!((memory.managed, memory.at_boot), (managed, managed));
        assert_eq!((memory.free, memory.programs), (managed, 0));
    }

    #[test]
    fn pages_and_limits_are_those_of_guests() {
        // Measured: managed, low and high of zoneinfo, and thresh of global_dirty_state when dd
        // has dirtied its first 32 pages.
        let guests = [
            (128, 29_547, 428, 513, 5_419),
            (192, 45_627, 533, 639, 8_625),
            (256, 61_755, 621, 745, 11_829),
            (512, 126_171, 887, 1_064, 24_557),
            (1024, 255_003, 1_264, 1_519, 50_204),
            (4096, 1_027_994, 3_054, 4_081, 204_247),
        ];
        let (rules, guest) =
            (Rules::of(Kernel::of(Version::V6_12)), guest::Profile::uml().memory.clone());
        for (size, managed, low, high, threshold) in guests {
            let memory = Memory::new(Bytes(size << 20), &guest);
            assert!(memory.managed.abs_diff(managed) <= 30, "{size}: {memory:?}");
            assert!(memory.low.abs_diff(low) <= 3, "{size}: {memory:?}");
            assert!(memory.high.abs_diff(high) <= 4, "{size}: {memory:?}");
            let mut pcp_lists = PcpLists::new(&rules, &guest, memory.managed);
            pcp_lists.note_mount(true, 480);
            let dirtyable = memory.dirtyable() - pcp_lists.pages();
            let ours = Thresholds::new(&Settings::of(&rules), dirtyable).dirty;
            assert!(ours.abs_diff(threshold) <= 60, "{size}: {ours} for {threshold}");
        }
    }

    #[test]
    fn pages_go_when_few_are_free_and_until_more_are() {
        let memory = Memory::of_pages(1000, 100, 150);
        assert_eq!(memory.excess(800, 100), 0);
        assert_eq!(memory.excess(890, 32), 72);
        assert_eq!(memory.excess(2000, 1), 150);
    }

    #[test]
    fn the_files_of_a_program_are_in_memory_once() {
        let mut memory = Memory::of_pages(1000, 100, 150);
        let program = Footprint { own: 20, files: 300 };
        memory.take("fio", program);
        memory.take("fio", program);
        assert_eq!((memory.taken, memory.dirtyable()), (340, 1000 - 340 + 300 - 150));
        memory.give_back("fio", program);
        assert_eq!((memory.taken, memory.programs), (320, 300));
        memory.give_back("fio", program);
        assert_eq!((memory.taken, memory.programs), (0, 0));
    }

    #[test]
    fn programs_that_take_more_than_there_is_give_back_what_they_took() {
        let mut memory = Memory::of_pages(1000, 100, 150);
        let program = Footprint { own: 2000, files: 0 };
        memory.take("fio", program);
        assert_eq!(memory.excess(0, 1), 150);
        memory.give_back("fio", program);
        assert_eq!(memory.excess(800, 100), 0);
    }
}
