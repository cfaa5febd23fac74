/* A load for guests: several processes that keep a disk busy in ways that a seed decides.
 *
 *     load FILE SEED TOTAL JOB...
 *
 * Each JOB is a process of its own, described by NAME=VALUE,... (see `struct job`). All of them
 * together make TOTAL requests; then all stop. It asks nothing of the clock and needs few system
 * calls, because both are what a guest in virtual time is slow at.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 4096, MOST_DEPTH = 1024, GROUP = 8 };

struct job {
    long reads;   /* percent of requests that read */
    long min, max; /* KiB of a request, multiples of 4 */
    long pattern; /* 0 random, 1 sequential, 2 in groups of eight neighbours, shuffled */
    long depth;   /* requests at once; 0: one system call each, through the page cache */
    long batch;   /* requests submitted together */
    long class;   /* I/O priority class, 0 for none, and level */
    long level;
    long think;   /* microseconds between batches, on average */
    long start;   /* microseconds before the first */
    long sync;    /* through the page cache: writes before they are sent on; 0: never */
    long flush;   /* writes before fdatasync; 0: never */
    long base;    /* MiB at which its part of the disk begins */
    long size;    /* MiB of its part */
};

static const struct {
    const char *name;
    size_t at;
} NAMES[] = {
    {"reads", offsetof(struct job, reads)}, {"min", offsetof(struct job, min)},
    {"max", offsetof(struct job, max)},     {"pattern", offsetof(struct job, pattern)},
    {"depth", offsetof(struct job, depth)}, {"batch", offsetof(struct job, batch)},
    {"class", offsetof(struct job, class)}, {"level", offsetof(struct job, level)},
    {"think", offsetof(struct job, think)}, {"start", offsetof(struct job, start)},
    {"sync", offsetof(struct job, sync)},   {"flush", offsetof(struct job, flush)},
    {"base", offsetof(struct job, base)},   {"size", offsetof(struct job, size)},
};

static void fail(const char *what, ...)
{
    va_list rest;
    va_start(rest, what);
    fputs("load: ", stderr);
    vfprintf(stderr, what, rest);
    fputc('\n', stderr);
    exit(2);
}

static void check(long result, const char *what)
{
    if (result < 0)
        fail("%s: %s", what, strerror(errno));
}

static struct job parse(char *text)
{
    struct job job = {.reads = 100, .min = 4, .max = 4, .depth = 1, .batch = 1, .size = 1024};
    for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
        char *value = strchr(word, '=');
        size_t at = 0;
        for (; value && at < sizeof NAMES / sizeof *NAMES; at++)
            if (!strncmp(word, NAMES[at].name, value - word) && !NAMES[at].name[value - word])
                break;
        if (!value || at == sizeof NAMES / sizeof *NAMES)
            fail("%s means nothing to me", word);
        *(long *)((char *)&job + NAMES[at].at) = strtol(value + 1, NULL, 10);
    }
    if (job.depth > MOST_DEPTH || job.batch < 1 || job.max < job.min || job.min % 4)
        fail("a depth, a batch or a size is out of range");
    return job;
}

/* Where a process draws its chance from: splitmix64. */
static uint64_t state;

static uint64_t draw(uint64_t below)
{
    uint64_t it = (state += 0x9e3779b97f4a7c15);
    it = (it ^ it >> 30) * 0xbf58476d1ce4e5b9;
    it = (it ^ it >> 27) * 0x94d049bb133111eb;
    return (it ^ it >> 31) % below;
}

static int file = -1;
static struct job job;
static long *left;

/* Takes up to `wanted` of the requests that are left for all. */
static long take(long wanted)
{
    long before = __atomic_fetch_sub(left, wanted, __ATOMIC_RELAXED);
    return before <= 0 ? 0 : before < wanted ? before : wanted;
}

static void pause_for(long microseconds)
{
    struct timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000};
    if (microseconds > 0)
        nanosleep(&time, NULL);
}

struct request {
    int writes;
    size_t bytes;
    off_t at;
};

/* The next request, in bytes. */
static struct request next(void)
{
    static uint64_t position, group[GROUP];
    static int rest;
    struct request it = {.writes = (long)draw(100) >= job.reads};
    it.bytes = (job.min + 4 * draw((job.max - job.min) / 4 + 1)) * 1024;
    uint64_t blocks = (uint64_t)job.size * 256, base = (uint64_t)job.base * 256, at;
    uint64_t length = it.bytes / BLOCK;
    if (job.pattern == 1) {
        if (position + length > blocks)
            position = 0;
        at = position;
        position += length;
    } else if (job.pattern == 2) {
        if (!rest) {
            uint64_t first = draw(blocks / GROUP) * GROUP;
            for (rest = 0; rest < GROUP; rest++) {
                uint64_t other = draw(rest + 1);
                group[rest] = group[other];
                group[other] = first + rest;
            }
        }
        at = group[--rest];
        it.bytes = BLOCK;
    } else {
        at = draw(blocks - length + 1);
    }
    it.at = (off_t)(base + at) * BLOCK;
    return it;
}

/* Memory of this size, all of it the same page. What is transferred is of no interest; but no page
 * follows another in the machine, so a request has as many segments as pages, whatever the
 * allocator did, and recordings tell how many.
 */
static char *one_page(size_t size)
{
    int page = memfd_create("page", 0);
    check(page, "memfd_create");
    check(ftruncate(page, BLOCK), "ftruncate");
    char *memory = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int how = PROT_READ | PROT_WRITE;
    for (size_t at = 0; memory != MAP_FAILED && at < size; at += BLOCK)
        if (mmap(memory + at, BLOCK, how, MAP_SHARED | MAP_FIXED, page, 0) == MAP_FAILED)
            memory = MAP_FAILED;
    if (memory == MAP_FAILED)
        fail("no memory");
    return memory;
}

static void asynchronous(void)
{
    static struct iocb blocks[MOST_DEPTH], *unused[MOST_DEPTH], *batch[MOST_DEPTH];
    static struct io_event events[MOST_DEPTH];
    aio_context_t context = 0;
    char *memory = one_page((size_t)job.max * 1024);
    check(syscall(SYS_io_setup, (unsigned)job.depth, &context), "io_setup");
    long free_now = job.depth, ending = 0, writes = 0;
    for (long at = 0; at < job.depth; at++)
        unused[at] = &blocks[at];
    for (;;) {
        long count = ending ? 0 : job.batch < free_now ? job.batch : free_now;
        long taken = count ? take(count) : 0;
        ending |= taken < count;
        for (long at = 0; at < taken; at++) {
            struct request it = next();
            struct iocb *one = batch[at] = unused[--free_now];
            memset(one, 0, sizeof *one);
            one->aio_data = (uintptr_t)one;
            one->aio_fildes = file;
            one->aio_lio_opcode = it.writes ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
            one->aio_buf = (uintptr_t)memory;
            one->aio_nbytes = it.bytes;
            one->aio_offset = it.at;
            writes += it.writes;
        }
        for (long sent = 0; sent < taken;) {
            long now = syscall(SYS_io_submit, context, taken - sent, batch + sent);
            check(now, "io_submit");
            sent += now;
        }
        if (free_now == job.depth)
            return;
        if (job.flush && writes >= job.flush) {
            check(fdatasync(file), "fdatasync");
            writes = 0;
        }
        if (job.think)
            pause_for((long)draw(2 * job.think) + 1);
        /* Waits until a batch has room, or for all at the end. */
        long room_for = job.batch < job.depth ? job.batch : job.depth;
        long wanted = ending ? job.depth - free_now : room_for - free_now;
        long done = syscall(SYS_io_getevents, context, wanted > 0 ? wanted : 0, job.depth, events,
                            NULL);
        check(done, "io_getevents");
        for (long at = 0; at < done; at++) {
            if (events[at].res < 0)
                fail("a request failed: %s", strerror(-(long)events[at].res));
            unused[free_now++] = (struct iocb *)(uintptr_t)events[at].data;
        }
    }
}

static void cached(void)
{
    char *memory = calloc(1, (size_t)job.max * 1024);
    if (!memory)
        fail("no memory");
    for (long writes = 0; take(1);) {
        struct request it = next();
        if (it.writes) {
            check(pwrite(file, memory, it.bytes, it.at), "pwrite");
            writes++;
            if (job.sync && writes % job.sync == 0)
                check(sync_file_range(file, 0, 0, SYNC_FILE_RANGE_WRITE), "sync_file_range");
            if (job.flush && writes % job.flush == 0)
                check(fdatasync(file), "fdatasync");
        } else {
            check(pread(file, memory, it.bytes, it.at), "pread");
        }
        if (job.think)
            pause_for((long)draw(2 * job.think) + 1);
    }
}

static int child(const char *name, uint64_t seed)
{
    state = seed;
    file = open(name, O_RDWR | (job.depth ? O_DIRECT : 0));
    check(file, name);
    if (job.class)
        check(syscall(SYS_ioprio_set, 1, 0, job.class << 13 | job.level), "ioprio_set");
    pause_for(job.start);
    if (job.depth)
        asynchronous();
    else
        cached();
    return 0;
}

int main(int count, char **words)
{
    if (count < 5)
        fail("usage: load FILE SEED TOTAL JOB...");
    left = mmap(NULL, sizeof *left, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (left == MAP_FAILED)
        fail("no memory");
    *left = strtol(words[3], NULL, 10);
    for (int at = 4; at < count; at++) {
        job = parse(words[at]);
        pid_t pid = fork();
        check(pid, "fork");
        if (!pid)
            _exit(child(words[1], strtoull(words[2], NULL, 10) * 1000 + at));
    }
    int failed = 0, status;
    while (wait(&status) > 0)
        failed |= status;
    return failed ? 1 : 0;
}
