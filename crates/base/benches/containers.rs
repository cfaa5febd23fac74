//! What one operation on a container costs, with as many others in it as a busy queue has.

use base::{Agenda, Arena, Duration, Fingerprint, Histogram, Id, Instant, Rng, Sector, SectorSet};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::hint::black_box;

const DISK: u64 = 1 << 31; // sectors: 1 TiB
const MANY: usize = 1 << 16; // numbers drawn in advance: too many for branch prediction to learn

fn draw(seed: u64, below: u64) -> impl Iterator<Item = u64> {
    let mut rng = Rng::new(seed);
    let numbers: Vec<u64> = (0..MANY).map(|_| rng.below(below)).collect();
    numbers.into_iter().cycle()
}

fn filled(members: usize) -> (SectorSet<()>, Vec<Id<()>>) {
    let (mut arena, mut set) = (Arena::new(), SectorSet::new());
    let ids: Vec<_> = (0..members).map(|_| arena.insert(())).collect();
    ids.iter().zip(draw(1, DISK)).for_each(|(id, sector)| set.insert(Sector(sector), *id));
    (set, ids)
}

fn sector_set(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sector_set");
    for members in [4, 32, 128, 512, 4096] {
        let (mut set, ids) = filled(members);
        let (mut victims, mut sectors) = (draw(2, members as u64), draw(3, DISK));
        let mut victim = || ids[victims.next().unwrap() as usize];
        let mut sector = || Sector(sectors.next().unwrap());
        group.bench_function(BenchmarkId::new("remove_insert", members), |bencher| {
            bencher.iter(|| {
                let id = victim();
                set.remove(id);
                set.insert(sector(), id);
            })
        });
        group.bench_function(BenchmarkId::new("next", members), |bencher| {
            bencher.iter(|| set.next(victim()))
        });
        group.bench_function(BenchmarkId::new("at_or_after", members), |bencher| {
            bencher.iter(|| set.at_or_after(sector()))
        });
    }
}

fn agenda(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("agenda");
    for members in [4, 32, 128, 1024] {
        let mut delays = draw(1, 1_000_000).map(Duration::from_nanos);
        let mut agenda = Agenda::new();
        let mut tickets: Vec<_> = (0..members)
            .map(|item| agenda.schedule(Instant::ZERO + delays.next().unwrap(), item))
            .collect();
        let mut victims = draw(2, members);
        group.bench_function(BenchmarkId::new("cancel_schedule", members), |bencher| {
            bencher.iter(|| {
                let victim = victims.next().unwrap() as usize;
                let item = agenda.cancel(tickets[victim]).unwrap();
                tickets[victim] = agenda.schedule(Instant::ZERO + delays.next().unwrap(), item);
            })
        });
        group.bench_function(BenchmarkId::new("pop_schedule", members), |bencher| {
            bencher.iter(|| {
                let (now, item) = agenda.pop_due(Instant::FAR_FUTURE).unwrap();
                agenda.schedule(now + delays.next().unwrap(), item)
            })
        });
    }
}

fn counting(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("counting");
    let (mut histogram, mut nanos) = (Histogram::new(), draw(1, 100_000_000));
    group.bench_function("histogram_record", |bencher| {
        bencher.iter(|| histogram.record(Duration::from_nanos(nanos.next().unwrap())))
    });
    let mut fingerprint = Fingerprint::new();
    group.bench_function("fingerprint_mix", |bencher| {
        bencher.iter(|| fingerprint.mix(black_box(42)))
    });
    let mut rng = Rng::new(1);
    group.bench_function("rng_below", |bencher| bencher.iter(|| rng.below(black_box(1_000))));
}

criterion_group!(benches, sector_set, agenda, counting);
criterion_main!(benches);
