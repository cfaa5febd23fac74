/* Replays a start-up: startup SCRIPT PREFIX PROCESSES prepare|run NAME
 *
 * A line of the script is a read: process, whether it waits, offset and length in bytes. Each
 * process is a thread with the file PREFIX.N, which is read with O_DIRECT; one thread reads at a
 * time. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FILE_SIZE 20000000L
#define PIECE (1L << 20)
#define MOST_IN_FLIGHT 4096
#define MOST_READS 65536
#define MOST_PROCESSES 256

struct read { int process, waits; long offset, length; };
struct thread { int number, file; };

static struct read reads[MOST_READS];
static int count, turn;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turns[MOST_PROCESSES];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void collect(aio_context_t queue, long under_way)
{
	static __thread struct io_event events[MOST_IN_FLIGHT];
	if (under_way > 0 && syscall(SYS_io_getevents, queue, under_way, under_way, events, NULL) < 0)
		fail("io_getevents");
}

/* The first read of the next turn of another thread. */
static int end_of_turn(int from)
{
	int at = from;
	while (at < count && reads[at].process == reads[from].process)
		at++;
	return at;
}

static void *run(void *argument)
{
	struct thread *thread = argument;
	aio_context_t queue = 0;
	long under_way = 0;
	void *buffer;
	if (posix_memalign(&buffer, 4096, FILE_SIZE + 4096))
		fail("posix_memalign");
	if (syscall(SYS_io_setup, MOST_IN_FLIGHT, &queue))
		fail("io_setup");
	for (int from = 0; from < count; from = end_of_turn(from)) {
		int to = end_of_turn(from);
		if (reads[from].process != thread->number)
			continue;
		pthread_mutex_lock(&lock);
		while (turn != from)
			pthread_cond_wait(&turns[thread->number], &lock);
		pthread_mutex_unlock(&lock);
		for (int at = from; at < to; at++) {
			struct read *it = &reads[at];
			if (it->waits) {
				collect(queue, under_way);
				under_way = 0;
				if (pread(thread->file, buffer, it->length, it->offset) != it->length)
					fail("pread");
				continue;
			}
			struct iocb request = { 0 }, *list = &request;
			request.aio_lio_opcode = IOCB_CMD_PREAD;
			request.aio_fildes = thread->file;
			request.aio_buf = (unsigned long)buffer;
			request.aio_nbytes = it->length;
			request.aio_offset = it->offset;
			if (syscall(SYS_io_submit, queue, 1, &list) != 1)
				fail("io_submit");
			under_way++;
		}
		pthread_mutex_lock(&lock);
		turn = to;
		if (to < count)
			pthread_cond_signal(&turns[reads[to].process]);
		pthread_mutex_unlock(&lock);
	}
	collect(queue, under_way);
	return NULL;
}

static void prepare(const char *path)
{
	static char piece[PIECE];
	int file = open(path, O_RDWR | O_CREAT, 0644);
	if (file < 0)
		fail(path);
	for (long at = 0; at < FILE_SIZE; at += PIECE) {
		long length = FILE_SIZE - at < PIECE ? FILE_SIZE - at : PIECE;
		if (pwrite(file, piece, length, at) != length)
			fail(path);
	}
	if (fsync(file) || close(file))
		fail(path);
}

int main(int words, char **word)
{
	if (words != 6)
		return 2;
	int processes = atoi(word[3]), is_run = !strcmp(word[4], "run");
	char path[4096];
	if (!is_run) {
		for (int n = 0; n < processes; n++) {
			snprintf(path, sizeof path, "%s.%d", word[2], n);
			prepare(path);
		}
		return 0;
	}
	FILE *script = fopen(word[1], "r");
	if (!script)
		fail(word[1]);
	struct read it;
	const char *form = "%d %d %ld %ld";
	while (count < MOST_READS
	       && fscanf(script, form, &it.process, &it.waits, &it.offset, &it.length) == 4)
		reads[count++] = it;
	struct timespec begun, ended;
	clock_gettime(CLOCK_MONOTONIC, &begun);
	static struct thread threads[MOST_PROCESSES];
	static pthread_t started[MOST_PROCESSES];
	for (int n = 0; n < processes; n++) {
		snprintf(path, sizeof path, "%s.%d", word[2], n);
		threads[n] = (struct thread){ n, open(path, O_RDONLY | O_DIRECT) };
		if (threads[n].file < 0)
			fail(path);
		pthread_cond_init(&turns[n], NULL);
	}
	for (int n = 0; n < processes; n++)
		pthread_create(&started[n], NULL, run, &threads[n]);
	for (int n = 0; n < processes; n++)
		pthread_join(started[n], NULL);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	long nanos = (ended.tv_sec - begun.tv_sec) * 1000000000L + ended.tv_nsec - begun.tv_nsec;
	printf("%s: %d reads in %ld.%03ld ms\n", word[5], count, nanos / 1000000, nanos / 1000 % 1000);
	return 0;
}
