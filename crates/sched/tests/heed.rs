//! What a recorded CFQ said goes before what ours would have made of the same events.

mod harness;

use base::{Duration, Instant};
use block::queue::guided::{Answer, GuidedQueue};
use block::scheduler::IoContext;
use block::{Action, Bio, EventLog, IoContextId, Kernel, Op, RequestId, Version};
use harness::{Harness, Table, read};

/// Processes that read, as somebody follows them.
struct Followed {
    queue: GuidedQueue,
    now: Instant,
}

impl Followed {
    fn new() -> Followed {
        let kernel = Kernel::of(Version::V4_19);
        let scheduler = sched::build("cfq", kernel).expect("the kernel has it");
        let mut queue = Harness::new(kernel, Table::default(), scheduler).queue;
        *queue.log() = EventLog::with_messages();
        for process in 0..2 {
            let value = IoContext { tasks: 1, ..IoContext::default() };
            queue.define_io_context(IoContextId(process), value);
        }
        Followed { queue: GuidedQueue::new(queue), now: Instant::ZERO + Duration::from_secs(1) }
    }

    /// A process asks for something, of whose arrival this was heard.
    fn arrive(&mut self, process: u32, sector: u64, heard: Option<&str>) -> RequestId {
        let rq = self.queue.allocate(self.now, &read(process, sector, 0), None);
        heard.into_iter().for_each(|said| self.queue.heed(self.now, said, Some(rq)));
        self.queue.unplug(rq);
        self.queue.insert(self.now, rq, false);
        rq
    }

    /// The driver takes what the scheduler lets go, and the device takes a millisecond.
    fn serve(&mut self) {
        let Answer::Issued(rq, _) = self.queue.ask(self.now, self.now) else {
            panic!("it holds back")
        };
        self.queue.accept(self.now);
        assert_eq!(self.queue.take_waiting(), Some(rq));
        self.queue.start(self.now, rq);
        self.pass(Duration::from_millis(1));
        self.queue.complete(self.now, rq);
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        while self.queue.pass_time(self.now).is_some() {}
    }

    /// What was said since this was last asked, of messages with these words.
    fn said(&mut self, words: &str) -> Vec<String> {
        let log = self.queue.queue().log();
        let messages = log.events().iter().filter_map(|event| match &event.action {
            Action::Message { text, .. } => Some(text.clone()),
            _ => None,
        });
        let found = messages.filter(|text| text.contains(words)).collect();
        log.clear();
        found
    }
}

#[test]
fn a_request_comes_to_the_queue_that_was_named() {
    let mut followed = Followed::new();
    followed.arrive(0, 0, None);
    followed.arrive(1, 80_000, Some("cfq1S  insert_request"));
    followed.arrive(1, 160_000, None);
    assert_eq!(followed.said("insert_request"), ["cfq1S  insert_request"; 3]);
    followed.queue.heed(followed.now, "cfq1S  breaking apart cfqq", None);
    followed.arrive(1, 240_000, None);
    assert_eq!(followed.said("insert_request"), ["cfq2S  insert_request"]);
    for _ in 0..4 {
        followed.serve();
        followed.pass(Duration::from_millis(100));
    }
}

#[test]
fn queues_part_only_when_that_was_heard() {
    let mut followed = Followed::new();
    followed.arrive(0, 0, None);
    // Both seek, for which ours would have them part.
    for number in 1..40 {
        followed.arrive(1, 80_000 * number, Some("cfq1S  insert_request"));
        followed.serve();
        followed.pass(Duration::from_millis(200));
    }
    assert_eq!(followed.said("breaking apart"), [""; 0]);
}

#[test]
fn a_turn_whose_time_is_over_begins_anew_for_who_follows() {
    let mut followed = Followed::new();
    followed.arrive(0, 0, None);
    let second = followed.arrive(0, 80_000, None);
    followed.serve();
    followed.said("");
    followed.pass(Duration::from_millis(200));
    assert!(followed.queue.release(followed.now, second));
    let said = followed.said("");
    let of_turns = said.iter().filter(|it| it.contains("expired") || it.contains("set_active"));
    assert_eq!(of_turns.count(), 2, "{said:?}");
}

#[test]
fn what_was_passed_over_is_in_doubt_until_it_is_served() {
    let mut followed = Followed::new();
    followed.arrive(0, 0, None);
    let second = followed.arrive(1, 80_000, None);
    assert!(followed.queue.release(followed.now, second));
    assert_eq!(followed.queue.take_waiting(), Some(second));
    followed.queue.start(followed.now, second);
    followed.pass(Duration::from_millis(1));
    followed.queue.complete(followed.now, second);
    followed.pass(Duration::from_millis(200));
    followed.serve();
    assert!(followed.queue.is_in_doubt());
    followed.arrive(1, 160_000, None);
    followed.pass(Duration::from_millis(200));
    followed.serve();
    assert!(!followed.queue.is_in_doubt());
}

/// Where the last queue stands that is described.
fn place(followed: &mut Followed) -> i64 {
    let now = followed.now;
    let text = followed.queue.queue().describe_scheduler(now);
    let (_, place) = text.rsplit_once("place Some((").expect("it is busy");
    place.split(',').next().unwrap().parse().unwrap()
}

#[test]
fn who_preempts_unheard_stands_where_it_stood() {
    for (heard, stays) in [("cfq2S  preempt", true), ("cfq1A  set_active", false)] {
        let mut followed = Followed::new();
        let write = Bio { op: Op::Write, ..read(0, 0, 0) };
        for _ in 0..2 {
            let rq = followed.queue.allocate(followed.now, &write, None);
            followed.queue.unplug(rq);
            followed.queue.insert(followed.now, rq, false);
        }
        followed.serve();
        followed.arrive(1, 80_000, None);
        assert_eq!(followed.said("preempt"), ["cfq2S  preempt"]);
        for said in [heard, "cfq1A  set_active"] {
            followed.queue.heed(followed.now, said, None);
        }
        assert_eq!(place(&mut followed) < 500_000_000, stays, "{heard}");
    }
}

/// The virtual times of the group that was charged last.
fn served(said: &[String]) -> (u64, u64) {
    let numbers = said.last().and_then(|text| text.strip_prefix("served: vt="));
    let (vdisktime, least) = numbers.and_then(|it| it.split_once(" min_vt=")).expect("a charge");
    (vdisktime.parse().unwrap(), least.parse().unwrap())
}

#[test]
fn a_group_has_paid_what_was_heard() {
    let mut followed = Followed::new();
    // Two are busy, so the group goes on when the turn of the first ends.
    let turn = |followed: &mut Followed, sector| {
        followed.arrive(0, sector, None);
        followed.arrive(1, sector + 80_000_000, None);
        followed.serve();
        followed.pass(Duration::from_millis(100));
        followed.serve();
        followed.arrive(0, sector + 8_000, None);
    };
    turn(&mut followed, 0);
    let (before, least) = served(&followed.said("served"));
    // The kernel's times began elsewhere.
    let (began, more) = (7 << 50, 5 << 40);
    let heard = format!("served: vt={} min_vt={}", before + began + more, least + began);
    for said in [heard.as_str(), "cfq1S  sl_used=1 disp=1 charge=1 iops=0 sect=8"] {
        followed.queue.heed(followed.now, said, None);
    }
    followed.pass(Duration::from_millis(100));
    followed.serve();
    let (after, _) = served(&followed.said("served"));
    assert!((more..2 * more).contains(&(after - before)), "{after} after {before}");
}
