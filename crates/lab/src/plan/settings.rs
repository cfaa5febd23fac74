//! Settings: numbers that the simulator knows, files that only the kernel of a guest has, and
//! files of control groups. Which file is meant is found here; what it takes, the kernel says.

use super::{Planner, is_used};
use crate::error::Error;
use crate::experiment::cgroup::LIMITS;
use crate::experiment::{Axis, Setting, keys};
use crate::kernels::{self, GuestKernel};
use crate::offered::OFFERED_FILES;
use crate::scheduler_spec::SchedulerSpec;
use crate::world::World;
use base::Instant;
use base::nearest;
use block::command::Facts;
use block::scheduler::TunableError;
use block::{EventLog, QueueSetting, RequestQueue};
use machine::MACHINE_SETTINGS;
use std::sync::Arc;

/// A setting that both worlds know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: i64,
    /// File and line, or the option.
    pub place: String,
}

/// What is written to a file that only a guest has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The path of the file in the guest.
    pub file: String,
    /// What it was asked for as.
    pub setting: Setting,
}

/// Settings of a whole experiment.
#[derive(Default)]
pub(super) struct Given {
    /// Those that both worlds know.
    pub numbers: Vec<Number>,
    /// Those for files of the disk that only a guest has.
    pub of_guest: Vec<Setting>,
    /// Those for files of control groups.
    pub of_groups: Vec<Setting>,
}

/// Settings of a row.
pub(super) struct OfRow {
    pub numbers: Vec<Number>,
    pub written: Vec<Written>,
}

impl Planner {
    /// Settings for all schedulers: each must be known to one of them at least.
    pub(super) fn settings(&self, specs: &[SchedulerSpec]) -> Result<Given, Error> {
        let mut given = Given::default();
        for setting in self.experiment.settings.iter().cloned().chain(self.varied(specs)) {
            let Setting { name, value, place } = &setting;
            if Setting::group_file(name).is_some() {
                if Setting::group_file(name).is_some_and(|(_, file)| file != LIMITS) {
                    let others = "weight in [[cgroup]] or after --job, and io.max";
                    self.refuse_simulated(&setting, others)?;
                }
                given.of_groups.push(setting);
            } else if specs.iter().any(|spec| is_number(spec, name)) {
                let knows = || specs.iter().filter(|spec| is_number(spec, name));
                let is_guests = knows().all(|it| it.guest.is_some() && it.has_tunable(name));
                match setting.number() {
                    Ok(number) => {
                        knows().try_for_each(|spec| spec.check(name, number, place))?;
                        let (name, place) = (name.clone(), place.clone());
                        given.numbers.push(Number { name, value: number, place });
                    }
                    // What a tunable takes that is not simulated, its kernel says.
                    Err(_) if is_guests && !value.is_empty() => given.of_guest.push(setting),
                    Err(refused) => return Err(refused),
                }
            } else {
                self.check_of_guest(&setting, specs)?;
                given.of_guest.push(setting);
            }
        }
        Ok(given)
    }

    /// What is varied and is neither used in jobs nor a key of the experiment. Where something is
    /// simulated, what nobody knows is told of when all rows are there.
    fn varied(&self, specs: &[SchedulerSpec]) -> Vec<Setting> {
        let axes = self.point.iter().filter(|(Axis { name, .. }, _)| {
            let is_setting = specs.iter().any(|spec| is_number(spec, name))
                || Setting::group_file(name).is_some()
                || OFFERED_FILES.contains(&name.as_str())
                || (self.is_linux_alone() && self.kernel_files(specs).contains(name));
            is_setting && !keys::is_axis(name) && !is_used(&self.experiment, name)
        });
        let setting = |(axis, value): &(Axis, String)| {
            let Axis { name, place, .. } = axis.clone();
            Setting { name, value: value.clone(), place }
        };
        axes.map(setting).collect()
    }

    /// Whether nothing is simulated.
    pub(super) fn is_linux_alone(&self) -> bool {
        self.experiment.worlds == [World::Linux]
    }

    /// Refuses what only a kernel does, where something is simulated.
    pub(super) fn refuse_simulated(&self, setting: &Setting, other: &str) -> Result<(), Error> {
        if self.is_linux_alone() {
            return Ok(());
        }
        let problem = format!("{} is not simulated", setting.name);
        let accepted = format!("--world linux, or what is: {other}");
        Err(Error::bad(&setting.place, problem, accepted))
    }

    /// Whether one of the kernels has the file that a setting means.
    fn check_of_guest(&self, setting: &Setting, specs: &[SchedulerSpec]) -> Result<(), Error> {
        let Setting { name, place, .. } = setting;
        if name == "scheduler" {
            return Err(Error::bad(place, "scheduler as a setting", "--scheduler, or schedulers"));
        }
        if OFFERED_FILES.contains(&name.as_str()) {
            let known: Vec<&str> = specs[0].queue_settings().map(|it| it.name).collect();
            self.refuse_simulated(setting, &known.join(", "))?;
        }
        if !self.is_linux_alone() {
            return Err(specs[0].unknown_setting(name, place));
        }
        let mut kernels = Vec::new();
        for spec in specs {
            let guest = self.guest_of(spec)?;
            if guest.file(name).is_some() {
                return Ok(());
            }
            if !kernels.contains(&spec.kernel_name()) {
                kernels.push(spec.kernel_name());
            }
        }
        let mut there = self.kernel_files(specs);
        there.extend(MACHINE_SETTINGS.iter().map(|it| it.name.to_string()));
        for spec in specs {
            let own = spec.tunable_names();
            there.extend(own.map(|it| format!("{it} (of {})", spec.name)));
        }
        let mut names: Vec<&str> = keys::file_names().collect();
        names.extend(there.iter().map(|it| it.split(' ').next().unwrap_or_default()));
        let hint = nearest(name, names);
        let problem = format!("kernel {} has no \"{name}\"{hint}", kernels.join(", "));
        Err(Error::bad(place, problem, there.join(", ")))
    }

    /// The files of a disk that the kernels of these have.
    fn kernel_files(&self, specs: &[SchedulerSpec]) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for guest in specs.iter().filter_map(|spec| self.guest_of(spec).ok()) {
            names.extend(guest.file_names().map(str::to_string));
        }
        names.sort();
        names.dedup();
        names
    }

    /// The kernel that runs a row.
    fn guest_of(&self, spec: &SchedulerSpec) -> Result<Arc<GuestKernel>, Error> {
        match &spec.guest {
            Some(guest) => Ok(guest.clone()),
            None => kernels::guest(&spec.kernel.version.to_string(), spec.kernel.hz).map(Arc::new),
        }
    }

    /// The settings of a scheduler: those for all that it or its kernel has; its own, which outdo
    /// them; and what is varied.
    pub(super) fn of_row(&self, spec: &SchedulerSpec, given: &Given) -> Result<OfRow, Error> {
        let place = format!("scheduler {}", spec.label());
        let own = spec.tunables.iter().map(|(name, value)| Number {
            name: name.clone(),
            value: *value,
            place: place.clone(),
        });
        let (numbers, files): (Vec<Number>, Vec<Number>) =
            own.partition(|it| is_number(spec, &it.name));
        let is_own = |it: &Number| numbers.iter().any(|own| own.name == it.name);
        let all = given.numbers.iter().filter(|it| is_number(spec, &it.name)).cloned();
        let (varied, all): (Vec<Number>, Vec<Number>) =
            all.partition(|it| self.value(&it.name).is_some());
        let all = all.into_iter().filter(|it| !is_own(it)).collect::<Vec<_>>();
        let numbers = last_of_each(all.into_iter().chain(numbers).chain(varied).collect());
        let own = files.into_iter().map(|Number { name, value, place }| {
            let value = value.to_string();
            Setting { name, value, place }
        });
        let mut written = Vec::new();
        for setting in own.chain(given.of_guest.iter().cloned()) {
            let file = match spec.has_tunable(&setting.name) {
                true => Some(format!("/sys/block/vda/queue/iosched/{}", setting.name)),
                false => self.guest_of(spec)?.file(&setting.name).map(str::to_string),
            };
            written.extend(file.map(|file| Written { file, setting }));
        }
        Ok(OfRow { numbers, written })
    }

    /// Which settings are those that hold anyway, but for what is varied.
    pub(super) fn unchanged(
        &self,
        settings: &[Number],
        given: &Given,
        usual: &[(&str, i64)],
    ) -> Vec<(String, i64)> {
        let is_usual = |it: &&Number| usual.contains(&(it.name.as_str(), it.value));
        // What outdoes another value changes something.
        let outdoes = |it: &Number| {
            given.numbers.iter().any(|all| all.name == it.name && all.value != it.value)
        };
        let fixed = settings.iter().filter(|it| self.value(&it.name).is_none() && !outdoes(it));
        fixed.filter(is_usual).map(|it| (it.name.clone(), it.value)).collect()
    }
}

/// What outdoes another value is written alone: to write `nr_requests` twice is not the same as
/// once, as some schedulers take their limits from the number before.
fn last_of_each(mut numbers: Vec<Number>) -> Vec<Number> {
    let mut known: Vec<String> = Vec::new();
    numbers.reverse();
    numbers.retain(|it| {
        let is_new = !known.contains(&it.name);
        known.push(it.name.clone());
        is_new
    });
    numbers.reverse();
    numbers
}

/// Whether a name is that of a number which both worlds know, or of a tunable.
pub(super) fn is_number(spec: &SchedulerSpec, name: &str) -> bool {
    let of_machine = MACHINE_SETTINGS.iter().any(|it| it.name == name);
    of_machine || spec.has_tunable(name) || QueueSetting::named(name, spec.kernel).is_some()
}

/// Writes the settings to a queue of the model's device, as a run will, and reads all of them.
pub(super) fn probe(
    spec: &SchedulerSpec,
    model: &str,
    facts: Facts,
    settings: &[Number],
) -> Result<Vec<(&'static str, i64)>, Error> {
    if spec.is_offered() {
        return Ok(Vec::new());
    }
    let mut queue = RequestQueue::new(spec.kernel, facts, spec.attach(), 1, EventLog::off());
    let of_machine = |it: &&Number| MACHINE_SETTINGS.iter().any(|known| known.name == it.name);
    for Number { name, value, place } in settings.iter().filter(|it| !of_machine(it)) {
        queue.set(Instant::ZERO, name, *value).map_err(|error| match error {
            TunableError::Unknown { .. } => unreachable!("{name} was checked"),
            TunableError::OutOfRange { min, max, unit } => {
                let problem = format!("{name}={value} of {} on {model} is out of range", spec.name);
                Error::bad(place.clone(), problem, format!("{min} to {max} {unit}"))
            }
        })?;
    }
    let own = spec.about().tunables.iter().map(|it| it.name);
    let names = own.chain(spec.queue_settings().map(|it| it.name));
    Ok(names.filter_map(|name| queue.get(name).map(|value| (name, value))).collect())
}
