#!/bin/sh
# Runs the test programs named on the command line, then the shell tests, and adds their lines up: `ok   name`,
# `FAIL name` and `skip name`. A program that ends in another way (a crash, a sanitizer's report) counts as one more
# failure. The closing line is `N passed, N failed`.
dir=$(dirname "$0")
log=$(mktemp) || exit 1
trap 'rm -f "$log" "$log.one"' EXIT

run() {  # run NAME COMMAND...
    name=$1
    shift
    echo "# $name"
    "$@" > "$log.one" 2>&1
    status=$?
    if [ $status -ne 0 ] && ! grep -q '^FAIL' "$log.one"; then
        echo "FAIL $name: ended with status $status" >> "$log.one"
    fi
    cat "$log.one"
    cat "$log.one" >> "$log"
}

for program in "$@"; do
    run "${program##*/}" "./$program"
done
for script in "$dir"/*.sh; do
    [ "$script" = "$dir/run.sh" ] || run "${script##*/}" sh "$script" ./train_gpt ./rl
done

passed=$(grep -c '^ok ' "$log")
failed=$(grep -c '^FAIL' "$log")
skipped=$(grep -c '^skip' "$log")
[ "$skipped" = 0 ] || echo "$skipped skipped (the lines above say why)"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
