/* Requests without a program around them: `requests FILE PROCESSES COUNT BYTES PATTERN WRITES`.
 *
 * Each process makes COUNT requests of BYTES, one after the other and past the page cache, of
 * which WRITES percent write: at random places of its own part of FILE (PATTERN `random`), or one
 * behind the other (`sequential`). Nothing is asked of the clock.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Bytes of the part of a process. */
#define PART (256ll << 20)

static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % below;
}

static int requests(char **argument, int process)
{
    long count = atol(argument[3]), bytes = atol(argument[4]), writes = atol(argument[6]);
    int random = !strcmp(argument[5], "random");
    uint64_t state = 77 + process;
    int file = open(argument[1], O_RDWR | O_DIRECT);
    char *memory = NULL;
    if (file < 0 || posix_memalign((void **)&memory, 4096, bytes))
        return perror(argument[1]), 1;
    memset(memory, 'x', bytes);
    for (long number = 0; number < count; number++) {
        uint64_t places = PART / bytes, place = random ? draw(&state, places) : number % places;
        off_t at = process * PART + (off_t)place * bytes;
        int writing = draw(&state, 100) < (uint64_t)writes;
        ssize_t done = writing ? pwrite(file, memory, bytes, at) : pread(file, memory, bytes, at);
        if (done != bytes)
            return perror("transfer"), 1;
    }
    return 0;
}

int main(int arguments, char **argument)
{
    if (arguments != 7)
        return fputs("requests FILE PROCESSES COUNT BYTES random|sequential WRITES\n", stderr), 2;
    int processes = atoi(argument[2]), failed = 0, status;
    for (int process = 0; process < processes; process++)
        if (fork() == 0)
            _exit(requests(argument, process));
    while (wait(&status) > 0)
        failed |= status;
    return !!failed;
}
