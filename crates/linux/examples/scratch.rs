use base::*;
use device::Model;
use linux::*;
fn main() {
    let hz = Hz::new(250).unwrap();
    let kernel = Cache::of_user().unwrap().find("6.12", hz).unwrap().unwrap();
    let folder = std::path::PathBuf::from("/tmp/scratchroot");
    let t = std::time::Instant::now();
    let root = Root::make(&folder, &["dd", "fio"]).unwrap();
    eprintln!("root {:?}", t.elapsed());
    let device = Model::find("hdd-7200-sata").unwrap().build(1);
    let rec = Recording { priorities: true, ..Recording::default() };
    let script = Script { settings: vec![Setting::queue(0,"scheduler","bfq")], jobs: vec![
       Job{command:"cat /proc/uptime; dd if=/dev/vda of=/dev/null bs=4k count=3 iflag=direct".into(), ..Job::default()},
       Job{command:"cat /proc/uptime; dd if=/dev/vda of=/dev/null bs=4k count=3 iflag=direct skip=100".into(), start: Duration::from_millis(1500), ioprio: block::Ioprio::new(block::IoprioClass::BestEffort, 2), ..Job::default()}],
       trace: if std::env::args().nth(1).is_some() {Trace::Free(rec)} else {Trace::Perturbing(rec)}, ..Script::default()};
    let t = std::time::Instant::now();
    let f = Guest {
        kernel: &kernel,
        root: &root,
        memory: Bytes(512 << 20),
        disks: vec![Disk { name: "x".into(), device, contents: Contents::forgetful() }],
        queue_depth: 32,
        script,
        seed: 0,
        protocol: Protocol::SharedMemory,
        watchdog: Watchdog::default(),
    }
    .run()
    .unwrap();
    eprintln!("run {:?}", t.elapsed());
    for j in &f.jobs {
        println!("{}", String::from_utf8_lossy(&j.output));
    }
    println!("begun {} ended {}\n{}\n{}\n{}", f.begun, f.ended, f.timers, f.priorities, f.console);
    for s in &f.log.served {
        println!("{s} prio {:x}", s.ioprio);
    }
    std::fs::write("/tmp/scratch.trace", &f.trace).unwrap();
    for r in trace::blktrace::Reader::new(&f.trace[..], "t") {
        let r = r.unwrap();
        println!(
            "{} {} {:?} {}+{} pid {} cg {:?} {:?}",
            r.time, r.sequence, r.action, r.sector, r.bytes, r.pid, r.cgroup, r.payload
        );
    }
    for (k, v) in &f.queues {
        println!("{k} = {v}");
    }
}
