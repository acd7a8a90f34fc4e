#!/bin/sh
# Runs the test programs named on the command line, then the shell tests, and adds their lines up: `ok   name` and
# `FAIL name`. A program that ends in another way (a crash, a sanitizer's report) counts as one more failure.
# The closing line is `N passed, N failed`.
dir=$(dirname "$0")
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

for program in "$@"; do
    echo "# ${program##*/}"
    "./$program" > "$log.one" 2>&1
    status=$?
    cat "$log.one"
    cat "$log.one" >> "$log"
    if [ $status -ne 0 ] && ! grep -q '^FAIL' "$log.one"; then
        echo "FAIL ${program##*/}: ended with status $status" | tee -a "$log"
    fi
    rm -f "$log.one"
done
for script in "$dir"/*.sh; do
    [ "$script" = "$dir/run.sh" ] && continue
    echo "# ${script##*/}"
    sh "$script" ./train_gpt ./rl > "$log.one" 2>&1
    status=$?
    cat "$log.one"
    cat "$log.one" >> "$log"
    if [ $status -ne 0 ] && ! grep -q '^FAIL' "$log.one"; then
        echo "FAIL ${script##*/}: ended with status $status" | tee -a "$log"
    fi
    rm -f "$log.one"
done

passed=$(grep -c '^ok ' "$log")
failed=$(grep -c '^FAIL' "$log")
skipped=$(grep -c '^skip' "$log")
[ "$skipped" = 0 ] || echo "$skipped skipped (the lines above say why)"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
