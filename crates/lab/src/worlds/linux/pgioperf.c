/* What PostgreSQL does to a disk, as Andres Freund's pgioperf simulates it.
 *
 *   pgioperf prepare DIRECTORY DATA LOG
 *   pgioperf run DIRECTORY DATA LOG READERS CHECKPOINT fdatasync|fsync LINES STATE...
 *
 * DATA and LOG are bytes without the last block. STATE is where the sequence of offsets begins, as
 * four numbers of 16 hexadecimal digits: once for all processes, or once for each reader and for
 * the checkpointer. Before this text stand the numbers of the simulated program: BLOCK, pauses in
 * nanoseconds, LOOK in seconds, and how many calls a line is of.
 *
 * Beside the lines of the real program it prints at its end, for each kind of process and of call,
 *
 *   latencies reader read 12345678 128:40 130:7 ...
 *
 * the longest in nanoseconds, and middles of bins with the number of calls in them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A bin is at most 1/64 of its time wide. */
#define FINE 64
#define BINS (60 * FINE)

enum { READS, DATA_WRITES, DATA_SYNCS, LOG_WRITES, LOG_SYNCS, COMMITS, KINDS };
static const char *const names[KINDS] = {
	"reader read", "checkpointer write", "checkpointer sync", "wal write", "wal sync",
	"wal commit",
};

struct times { uint64_t longest, bins[BINS]; };

/* What all processes have in common. */
struct shared {
	volatile sig_atomic_t ended;
	uint64_t lines;
	struct times times[KINDS];
};

struct interval { const char *kind; uint64_t every, count, time, longest; };

static struct shared *shared;
static char data_path[4096], log_path[4096];
static uint64_t data_size, log_size, state[4];

static void fail(const char *path)
{
	fprintf(stderr, "pgioperf: %s: %s\n", path, strerror(errno));
	if (shared) {
		shared->ended = 1;
		kill(getppid(), SIGCHLD);
	}
	_exit(1);
}

static void end(int signal)
{
	(void)signal;
	shared->ended = 1;
}

static void nothing(int signal)
{
	(void)signal;
}

/* xoshiro256** of Blackman and Vigna, and a number below a limit by Lemire's method. */
static uint64_t rotated(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static uint64_t next(void)
{
	uint64_t output = rotated(state[1] * 5, 7) * 9, shifted = state[1] << 17;
	state[2] ^= state[0];
	state[3] ^= state[1];
	state[1] ^= state[2];
	state[0] ^= state[3];
	state[2] ^= shifted;
	state[3] = rotated(state[3], 45);
	return output;
}

static uint64_t below(uint64_t limit)
{
	unsigned __int128 product = (unsigned __int128)next() * limit;
	if ((uint64_t)product < limit) {
		uint64_t surplus = -limit % limit;
		while ((uint64_t)product < surplus)
			product = (unsigned __int128)next() * limit;
	}
	return product >> 64;
}

static uint64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

/* Times below FINE have bins of their own; above, each doubling has FINE bins. */
static int bin_of(uint64_t nanos)
{
	if (nanos < FINE)
		return nanos;
	int doublings = 63 - __builtin_clzll(nanos) - 6;
	return doublings * FINE + (nanos >> doublings);
}

static uint64_t middle_of(int bin)
{
	if (bin < 2 * FINE)
		return bin;
	int doublings = bin / FINE - 1;
	uint64_t least = (uint64_t)(bin - doublings * FINE) << doublings;
	return least + (1ULL << doublings) / 2;
}

static void count(int kind, uint64_t nanos)
{
	struct times *times = &shared->times[kind];
	__atomic_add_fetch(&times->bins[bin_of(nanos)], 1, __ATOMIC_RELAXED);
	if (nanos > times->longest)
		times->longest = nanos;
}

static void say(struct interval *of, uint64_t nanos)
{
	of->time += nanos;
	if (nanos > of->longest)
		of->longest = nanos;
	if (++of->count < of->every)
		return;
	dprintf(1, "%s[%d]: avg: %.1f msec; max: %.1f msec\n", of->kind, getpid(),
		of->time / of->every / 1e6, of->longest / 1e6);
	of->count = of->time = of->longest = 0;
	__atomic_add_fetch(&shared->lines, 1, __ATOMIC_RELAXED);
}

static void pause_for(long nanos)
{
	struct timespec time = { 0, nanos };
	nanosleep(&time, NULL);
}

static int opened(const char *path, int flags)
{
	int file = open(path, flags);
	if (file < 0)
		fail(path);
	return file;
}

static void read_data(void)
{
	struct interval reads = { "read", TOLD_READS };
	char block[BLOCK];
	int file = opened(data_path, O_RDONLY);
	while (!shared->ended) {
		uint64_t at = below(data_size), begun = now();
		if (pread(file, block, BLOCK, at) != BLOCK)
			fail(data_path);
		uint64_t took = now() - begun;
		count(READS, took);
		say(&reads, took);
	}
}

static void write_data(uint64_t checkpoint)
{
	static char block[BLOCK];
	int file = opened(data_path, O_RDWR);
	for (uint64_t number = 1; !shared->ended; number++) {
		uint64_t at = below(data_size), begun = now();
		if (pwrite(file, block, BLOCK, at) != BLOCK)
			fail(data_path);
		count(DATA_WRITES, now() - begun);
		pause_for(CHECKPOINTER_PAUSE);
		if (number % checkpoint)
			continue;
		dprintf(1, "starting fsync() of files\n");
		begun = now();
		if (fsync(file))
			fail(data_path);
		count(DATA_SYNCS, now() - begun);
		dprintf(1, "finished fsync() of files\n");
		__atomic_add_fetch(&shared->lines, 2, __ATOMIC_RELAXED);
	}
}

static void write_log(int (*sync)(int))
{
	static char block[BLOCK];
	struct interval writes = { "wal", TOLD_WRITES }, commits = { "commit", TOLD_COMMITS };
	int file = opened(log_path, O_RDWR);
	uint64_t at = 0;
	for (uint64_t number = 0; !shared->ended; number++) {
		uint64_t begun = now();
		if (pwrite(file, block, BLOCK, at) != BLOCK)
			fail(log_path);
		at = at + BLOCK < log_size ? at + BLOCK : 0;
		uint64_t took = now() - begun;
		count(LOG_WRITES, took);
		say(&writes, took);
		if (number % WRITES_OF_COMMIT == 0) {
			uint64_t asked = now();
			if (sync(file))
				fail(log_path);
			uint64_t done = now();
			count(LOG_SYNCS, done - asked);
			count(COMMITS, done - begun);
			say(&commits, done - begun);
		}
		pause_for(WAL_PAUSE);
	}
}

static void prepare(const char *path, uint64_t size)
{
	static char piece[BLOCK];
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (file < 0)
		fail(path);
	for (uint64_t at = 0; at < size + BLOCK; at += BLOCK)
		if (pwrite(file, piece, BLOCK, at) != BLOCK)
			fail(path);
	if (fsync(file) || close(file))
		fail(path);
}

static void print_latencies(void)
{
	for (int kind = 0; kind < KINDS; kind++) {
		printf("latencies %s %lu", names[kind], (unsigned long)shared->times[kind].longest);
		for (int bin = 0; bin < BINS; bin++)
			if (shared->times[kind].bins[bin])
				printf(" %lu:%lu", (unsigned long)middle_of(bin),
				       (unsigned long)shared->times[kind].bins[bin]);
		printf("\n");
	}
}

/* Takes the state that a process begins with; the last one counts for all that follow. */
static void begin_with(char **states, int given, int process)
{
	const char *text = states[process < given ? process : given - 1];
	for (int n = 0; n < 4; n++) {
		char digits[17] = { 0 };
		memcpy(digits, text + 16 * n, 16);
		state[n] = strtoull(digits, NULL, 16);
	}
}

static int simulate(char **word, int words)
{
	int readers = atoi(word[0]);
	uint64_t checkpoint = strtoull(word[1], NULL, 10), lines = strtoull(word[3], NULL, 10);
	int (*sync)(int) = strcmp(word[2], "fsync") ? fdatasync : fsync;
	struct sigaction on_end = { .sa_handler = end }, on_child = { .sa_handler = nothing };
	int status, failed = 0;
	size_t room = sizeof *shared;
	shared = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		shared = NULL;
		fail("mmap");
	}
	sigaction(SIGTERM, &on_end, NULL);
	sigaction(SIGCHLD, &on_child, NULL);
	uint64_t begun = now();
	for (int n = 0; n < readers + 2; n++) {
		if (fork())
			continue;
		char name[16];
		snprintf(name, sizeof name, n < readers ? "reader.%d" : n == readers ? "checkpointer"
			 : "wal", n);
		prctl(PR_SET_NAME, name);
		begin_with(word + 4, words - 4, n);
		if (n < readers)
			read_data();
		else if (n == readers)
			write_data(checkpoint);
		else
			write_log(sync);
		_exit(0);
	}
	while (!shared->ended) {
		struct timespec look = { LOOK, 0 };
		nanosleep(&look, NULL);
		if (shared->lines >= lines)
			break;
	}
	int stopped = shared->ended;
	shared->ended = 1;
	while (wait(&status) > 0 || errno == EINTR)
		failed |= status;
	printf("took %lu\n", (unsigned long)(now() - begun));
	print_latencies();
	fflush(stdout);
	if (stopped && !failed) {
		signal(SIGTERM, SIG_DFL);
		raise(SIGTERM);
	}
	return !!failed;
}

int main(int words, char **word)
{
	if (words < 5)
		return 2;
	data_size = strtoull(word[3], NULL, 10);
	log_size = strtoull(word[4], NULL, 10);
	snprintf(data_path, sizeof data_path, "%s/data", word[2]);
	snprintf(log_path, sizeof log_path, "%s/wal", word[2]);
	if (strcmp(word[1], "prepare"))
		return words < 10 ? 2 : simulate(word + 5, words - 5);
	prepare(data_path, data_size);
	prepare(log_path, log_size);
	return 0;
}
