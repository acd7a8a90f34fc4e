#!/bin/sh
# Runs the test programs named on the command line and, at the same time, the shell tests, and adds their lines up:
# `ok   name`, `FAIL name` and `skip name`. A program that ends in another way (a crash, a sanitizer's report) counts
# as one more failure. The closing line is `N passed, N failed`.
dir=$(dirname "$0")
log=$(mktemp) || exit 1
trap 'rm -f "$log" "$log.scripts" "$log.one.programs" "$log.one.scripts"' EXIT

run() {  # run LANE NAME COMMAND...
    one=$log.one.$1
    name=$2
    shift 2
    echo "# $name"
    "$@" > "$one" 2>&1
    status=$?
    cat "$one"
    if [ $status -ne 0 ] && ! grep -q '^FAIL' "$one"; then
        echo "FAIL $name: ended with status $status"
    fi
}

for script in "$dir"/*.sh; do
    [ "$script" = "$dir/run.sh" ] || run scripts "${script##*/}" sh "$script" ./train_gpt ./rl
done > "$log.scripts" &
for program in "$@"; do
    run programs "${program##*/}" "./$program"
done | tee "$log"
wait
cat "$log.scripts"
cat "$log.scripts" >> "$log"

passed=$(grep -c '^ok ' "$log")
failed=$(grep -c '^FAIL' "$log")
skipped=$(grep -c '^skip' "$log")
[ "$skipped" = 0 ] || echo "$skipped skipped (the lines above say why)"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
