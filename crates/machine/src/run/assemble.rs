//! Puts a machine together from its setup.

use crate::clock::Clock;
use crate::cpus::{Cpus, Prices};
use crate::disk::Disk;
use crate::program::Program;
use crate::rules::Rules;
use crate::setup::{Job, Setup, SetupError, check_jobs};
use crate::storage::{PAGE_SECTORS, Storage};
use crate::tasks::Cgroups;
use crate::world::{Owners, World};
use base::{Duration, Instant, Rng, Sectors};
use block::kernel::Hierarchy;
use block::{EventLog, RequestQueue};
use cache::PageCache;
use cache::memory::Memory;
use fs::FileSystem;
use std::sync::Arc;

/// A machine with its jobs scheduled, and what they run; the preparation is the last of them.
pub(super) fn assemble(mut setup: Setup) -> Result<(World, Vec<Arc<dyn Program>>), SetupError> {
    check_jobs(&setup.jobs, &setup.host)?;
    let mut jobs = std::mem::take(&mut setup.jobs);
    let preparation = setup.preparation.take().map(|program| Job::new("setup", program));
    let has_preparation = preparation.is_some();
    jobs.extend(preparation);
    let cgroups = std::mem::take(&mut setup.cgroups);
    let has_version_2 = setup.cgroup_writeback;
    let journal_cgroup = setup.mount.as_ref().map(|it| it.journal_cgroup.clone());
    let mut world = World::new(owners(setup)?);
    world.define_root(has_version_2);
    for group in &cgroups {
        world.set_up_cgroup(group);
    }
    world.spawn_kernel_tasks(journal_cgroup.as_deref());
    let (plans, programs) = jobs.into_iter().map(Job::into_parts).unzip();
    world.begin(plans, has_preparation);
    Ok((world, programs))
}

/// The owners of a machine on which nothing happens.
fn owners(setup: Setup) -> Result<Owners, SetupError> {
    let shape = setup.attach.shape;
    let prices = Prices::new(&setup.host, &setup.attach);
    let cores = setup.host.machine.cores;
    let facts = setup.device.facts().clone();
    let rules = Rules::of(setup.kernel);
    let guest = setup.host.guest.clone();
    let together = Sectors((guest.memory.together * PAGE_SECTORS).min(u64::from(u32::MAX)) as u32);
    let mut cpus = Cpus::new(&setup.host, prices, setup.kernel.sharing, setup.seed);
    let tick = Duration::from_nanos(1_000_000_000 / u64::from(setup.kernel.hz.get()));
    let step = setup.host.machine.clock_step;
    let clock = Clock::new(step, tick, guest.boot.timer_fires_again, setup.until);
    let boot = &guest.boot;
    let uptime = if setup.mount.is_some() { boot.uptime_mounted } else { boot.uptime };
    let mut cache = PageCache::new(
        setup.kernel,
        &guest.memory,
        facts.segment,
        Memory::new(setup.memory, &guest.memory),
        cores == 1,
        uptime,
    );
    if let Some(mount) = &setup.mount {
        let scheduler = setup.attach.scheduler.as_ref().map_or("none", |it| it.about().name);
        cache.note_mount(mount.in_memory(&guest.files, facts.capacity, scheduler));
    }
    cache.set_group_writeback(setup.cgroup_writeback && setup.mount.is_some());
    let fs = setup.mount.clone().map(|it| FileSystem::new(it, setup.kernel, &facts));
    let log = match (setup.events, setup.messages) {
        (false, _) => EventLog::off(),
        (true, false) => EventLog::on(),
        (true, true) => EventLog::with_messages(),
    };
    let mut queue = RequestQueue::new(setup.kernel, facts.clone(), setup.attach, cores, log);
    if !setup.host.costs.message.is_zero() {
        queue.log().count_messages();
    }
    let hierarchy = match setup.cgroup_writeback {
        true => Hierarchy::Unified,
        false => Hierarchy::Separate,
    };
    queue.set_paranoid(setup.paranoid);
    queue.scatter_tags(Rng::stream(setup.seed, "tags"));
    if let Some(mount) = &setup.mount {
        queue.note_waits(mount.waits_for_tags(&guest.files, facts.capacity));
    }
    if setup.record_inputs {
        queue.record_inputs();
    }
    queue.prepare_limits(uptime, hierarchy);
    for (name, value) in &setup.settings {
        if cache.set(name, *value) {
            continue;
        }
        let refused = |why| SetupError::setting(name, *value, why);
        queue.set(Instant::ZERO, name, *value).map_err(refused)?;
    }
    if setup.mount.is_some() {
        queue.note_mount(Instant::ZERO);
    }
    if setup.tells_tasks {
        cpus.remember_moves();
        queue.log().tell_all();
    }
    let mut disk = Disk::new(setup.device, &guest.boot.disk);
    if setup.tells_tasks {
        disk.keep_stages();
    }
    Ok(Owners {
        clock,
        cpus,
        storage: Storage::new(queue, cache, fs, rules, together),
        disk,
        cgroups: Cgroups::new(setup.blkio),
        shape,
        guest,
        seed: setup.seed,
        start_delay: setup.host.machine.start_delay,
        timer_slack: setup.host.machine.timer_slack,
        most_calls: setup.most_calls,
        tells_tasks: setup.tells_tasks,
    })
}
