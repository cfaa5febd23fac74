/*
 * The kernel asks its host through the C library to change the registers of its processes. Linux
 * 6.12 does that with a buffer of fixed length, which lacks the tiles of AMX; where the
 * processor has them the host refuses anything shorter than everything (EFAULT: measured with
 * Linux 6.18), and the guest's first program dies. So what is missing is added here: zeros, as no
 * guest ever asks the host for tiles.
 *
 * Linked into every kernel with the linker's --wrap; its source stays as it is.
 */
#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

long __real_ptrace(int request, int pid, void *address, void *data);

/* Longer than the state of any processor there is (11,008 bytes with AMX). */
static char whole[1 << 16];
/* How long it is here; 0 until somebody asks. */
static size_t length;

static int has_refused_a_part(int request, void *address)
{
	return request == PTRACE_SETREGSET && address == (void *) NT_X86_XSTATE && errno == EFAULT;
}

long __wrap_ptrace(int request, int pid, void *address, void *data)
{
	long result = __real_ptrace(request, pid, address, data);
	if (result == 0 || !has_refused_a_part(request, address))
		return result;
	struct iovec all = { whole, sizeof whole };
	if (length == 0) {
		if (__real_ptrace(PTRACE_GETREGSET, pid, address, &all) != 0)
			return -1;
		length = all.iov_len;
	}
	const struct iovec *part = data;
	if (part->iov_len >= length) {
		errno = EFAULT;
		return -1;
	}
	memcpy(whole, part->iov_base, part->iov_len);
	memset(whole + part->iov_len, 0, length - part->iov_len);
	all.iov_len = length;
	return __real_ptrace(request, pid, address, &all);
}
