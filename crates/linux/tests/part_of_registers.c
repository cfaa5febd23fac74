/*
 * Gives a stopped process its vector registers back with buffers that hold only the first of them,
 * and ends with 0 if it has them then.
 */
#include <elf.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of the format of XSAVE: the first of the SSE registers, and which parts differ from nothing. */
enum { XMM0 = 160, XSTATE_BV = 512 };

/* The old part and its header; with AVX; what Linux 6.12 may have room for. */
static const size_t LENGTHS[] = { 576, 832, 2696 };

int main(void)
{
	pid_t child = fork();
	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit(0);
	}
	waitpid(child, 0, 0);
	int failures = 0;
	for (int i = 0; i < 3; i++) {
		static char buffer[4096];
		struct iovec part = { buffer, LENGTHS[i] };
		if (ptrace(PTRACE_GETREGSET, child, (void *) NT_X86_XSTATE, &part) != 0)
			continue;
		buffer[XMM0] = 42 + i;
		buffer[XSTATE_BV] |= 2;
		long set = ptrace(PTRACE_SETREGSET, child, (void *) NT_X86_XSTATE, &part);
		memset(buffer, 0, sizeof buffer);
		ptrace(PTRACE_GETREGSET, child, (void *) NT_X86_XSTATE, &part);
		if (set != 0 || buffer[XMM0] != 42 + i) {
			printf("%zu bytes: %ld, %d\n", LENGTHS[i], set, buffer[XMM0]);
			failures++;
		}
	}
	kill(child, SIGKILL);
	return failures;
}
