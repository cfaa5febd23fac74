#!/bin/sh
# Gives a source tree of Linux one more I/O scheduler: its own mq-deadline under another name.
#
#     odd_elevator.sh TREE
#
# Nobody need know what is in the file: every "deadline" in it becomes "oddline". The scheduler is
# called mq-oddline, its symbol MQ_IOSCHED_ODDLINE.
set -eu
cd "$1/block"
sed -e 's/deadline/oddline/g; s/DEADLINE/ODDLINE/g' mq-deadline.c > mq-oddline.c
printf '\nconfig MQ_IOSCHED_ODDLINE\n\ttristate "MQ oddline I/O scheduler"\n' >> Kconfig.iosched
printf '\nobj-$(CONFIG_MQ_IOSCHED_ODDLINE)\t+= mq-oddline.o\n' >> Makefile
