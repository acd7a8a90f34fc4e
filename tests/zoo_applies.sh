#!/bin/sh
# Every text that a bug of tests/zoo/bugs.txt replaces is in rl.c or train_gpt.c exactly once. (Whether the
# tests catch the bugs takes minutes: make zoo.)
cd "$(dirname "$0")/.." || exit 1
LC_ALL=C
export LC_ALL
if found=$(awk -f tests/zoo/bugs.awk tests/zoo/bugs.txt) && [ "$found" -ge 30 ]; then
    echo "ok   zoo: $found bugs can be applied"
else
    echo "$found" | sed 's/^/  /'
    echo "FAIL zoo: a line that was changed must be changed in tests/zoo/bugs.txt too"
fi
