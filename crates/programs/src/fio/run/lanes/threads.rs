//! Threads that make system calls for a process: POSIX AIO, and `io_submit_mode=offload`.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use block::ContextId;

use super::{Done, Request, Sync, What, perform};
use machine::task::{File, IoContextOf, Task};

/// The threads of a process.
pub(super) struct Threads {
    threads: Vec<ContextId>,
    shared: Rc<RefCell<Shared>>,
    /// Each file has a thread of its own, as those of POSIX AIO have.
    by_file: bool,
}

/// What a process and its threads have in common.
struct Shared {
    /// Requests that wait: for the thread of their file, or in one queue for all.
    waiting: Vec<VecDeque<Request>>,
    /// What each thread does.
    busy: Vec<Option<Request>>,
    /// Threads that wait for something to do.
    idle: Vec<usize>,
    done: Vec<Done>,
    is_closed: bool,
}

impl Threads {
    /// As many threads as requests may be in flight.
    pub fn new(task: &Task, label: &str, files: &[File], count: usize) -> Threads {
        Threads::spawn(task, label, files, count, false)
    }

    /// A thread for each file, as the C library has: it does the requests of a file in turn.
    pub fn one_for_each(task: &Task, label: &str, files: &[File]) -> Threads {
        Threads::spawn(task, label, files, files.len(), true)
    }

    fn spawn(task: &Task, label: &str, files: &[File], count: usize, by_file: bool) -> Threads {
        let queues = if by_file { count } else { 1 };
        let shared = Rc::new(RefCell::new(Shared {
            waiting: vec![VecDeque::new(); queues],
            busy: vec![None; count],
            idle: Vec::with_capacity(count),
            done: Vec::new(),
            is_closed: false,
        }));
        let owner = task.id();
        let thread = |number: usize| {
            let (shared, files) = (shared.clone(), files.to_vec());
            let queue = if by_file { number } else { 0 };
            task.spawn(label, IoContextOf::Itself, |task| async move {
                work(&task, owner, &files, &shared, number, queue).await;
                0
            })
        };
        Threads { threads: (0..count).map(thread).collect(), shared, by_file }
    }

    /// Hands a request over.
    pub fn put(&mut self, task: &Task, mut request: Request) {
        // Observed: fio 3.33 has POSIX AIO make everything durable, whatever it was told.
        if self.by_file && request.what == What::Sync(Sync::Data) {
            request.what = What::Sync(Sync::All);
        }
        let mut shared = self.shared.borrow_mut();
        let queue = if self.by_file { request.file } else { 0 };
        shared.waiting[queue].push_back(request);
        let idle = if self.by_file { Some(request.file) } else { shared.idle.pop() };
        if let Some(idle) = idle {
            task.notify(self.threads[idle]);
        }
    }

    pub fn any(&self, is_it: impl Fn(&Request) -> bool) -> bool {
        let shared = self.shared.borrow();
        shared.busy.iter().flatten().chain(shared.waiting.iter().flatten()).any(is_it)
    }

    pub async fn collect(&mut self, task: &Task, least: usize, done: &mut Vec<Done>) {
        while self.shared.borrow().done.len() < least {
            task.notified().await;
        }
        done.append(&mut self.shared.borrow_mut().done);
    }

    pub async fn close(&mut self, task: &Task) {
        self.shared.borrow_mut().is_closed = true;
        for thread in &self.threads {
            task.notify(*thread);
        }
        for thread in &self.threads {
            task.join(*thread).await;
        }
    }
}

/// What a thread does until the process closes its files.
async fn work(
    task: &Task,
    owner: ContextId,
    files: &[File],
    shared: &RefCell<Shared>,
    number: usize,
    queue: usize,
) {
    loop {
        let next = shared.borrow_mut().waiting[queue].pop_front();
        let Some(request) = next else {
            if shared.borrow().is_closed {
                return;
            }
            if !shared.borrow().idle.contains(&number) {
                shared.borrow_mut().idle.push(number);
            }
            task.notified().await;
            continue;
        };
        shared.borrow_mut().busy[number] = Some(request);
        let result = perform(task, files, request).await;
        let mut shared = shared.borrow_mut();
        shared.busy[number] = None;
        shared.done.push(Done { request, result, at: task.now(), submitted: None });
        drop(shared);
        task.notify(owner);
    }
}
