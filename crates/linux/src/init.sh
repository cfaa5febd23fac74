#!/busybox/sh
# The first process of a guest: mounts what is needed and hands over to the script of the run.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/busybox
export HOME=/root TMPDIR=/tmp LC_ALL=C
# The dynamic linker looks for libraries in directories for what the processor can do, and each look takes
# time: no host is taken for more than x86-64-v2. Processors of Intel with AVX2 have one more directory,
# `haswell`, and those with AVX-512CD another (`ld.so --help`).
export GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512CD
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev 2>/dev/null
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /mnt
mount -t tmpfs tmpfs /var/tmp
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing
mount -t hostfs -o /proc/self/cwd/guest none /guest
# Ends the guest when its results are in the host's files. It says that they are: the kernel may
# not be able to turn itself off.
leave() {
    umount /guest
    mount -t hostfs -o /proc/self/cwd/guest none /guest
    mkdir /guest/over
    umount /guest
    poweroff -n -f
}
cd /tmp
. /guest/script
leave
