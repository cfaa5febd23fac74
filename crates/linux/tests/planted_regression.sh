#!/bin/sh
# Gives a source tree of Linux, a git repository without changes, 32 commits of which one is bad.
#
#     planted_regression.sh TREE [WHICH]
#
# Commit number WHICH (19 if nobody says) cuts the default window of readahead from 128 to 16 KiB, one
# line of a header. The others put a comment at the end of a file of lib/. Nobody need know what is
# in the files. The commit before all of them is tagged `good`, and the planted one is printed.
set -eu
which=${2:-19}
cd "$1"
test -z "$(git status --porcelain)" || { echo "$1: it has changes; accepted: none" >&2; exit 2; }
header=$(grep -lr 'define VM_READAHEAD_PAGES.*SZ_128K' include/linux) ||
    { echo "$1: no header says what the default window is" >&2; exit 2; }
commit() {
    git -c user.name=nobody -c user.email=nobody@localhost commit -q -a -m "$1"
}
git tag good
ls lib/*.c | head -n 32 | {
    number=0
    while read -r file; do
        number=$((number + 1))
        if [ "$number" -eq "$which" ]; then
            sed -i '/define VM_READAHEAD_PAGES/s/SZ_128K/SZ_16K/' "$header"
            commit "$number: a smaller window"
            planted=$(git rev-parse HEAD)
        else
            echo "/* Harmless, number $number. */" >> "$file"
            commit "$number: a comment in $file"
        fi
    done
    echo "$planted"
}
