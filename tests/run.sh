#!/bin/sh
# Runs the first of the programs named and, at the same time, the others and the shell tests, and adds their
# lines up: `ok   name`, `FAIL name` and `skip name`. A program that ends in another way (a crash, a
# sanitizer's report) counts as one more failure. The closing line is `N passed, N failed`.
dir=$(dirname "$0")
log=$(mktemp) || exit 1
trap 'rm -f "$log" "$log.others" "$log.one.first" "$log.one.others"' EXIT

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

first=$1
shift
{
    for program in "$@"; do
        run others "${program##*/}" "./$program"
    done
    for script in "$dir"/*.sh; do
        [ "$script" = "$dir/run.sh" ] || run others "${script##*/}" sh "$script" ./train_gpt ./rl
    done
} > "$log.others" &
run first "${first##*/}" "./$first" | tee "$log"
wait
cat "$log.others"
cat "$log.others" >> "$log"

passed=$(grep -c '^ok ' "$log")
failed=$(grep -c '^FAIL' "$log")
skipped=$(grep -c '^skip' "$log")
[ "$skipped" = 0 ] || echo "$skipped skipped (the lines above say why)"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
