#!/bin/sh
# coverage.sh - `make coverage`: which lines of the sources the tests run, with gcc's gcov. For each file the
# share of its lines that were run, and those that were not, by function. Exit status 1: rl.c has not its 95%.
#
# Programs and commands are compiled anew in build/coverage. A command in a test ends with _exit(), which
# would forget what was counted: here it is exit(). tests/files.c is left out: it kills its programs in the
# middle of a write, which also spoils the counts.
LC_ALL=C
export LC_ALL
dir=build/coverage
rm -rf "$dir"
mkdir -p "$dir"
build() {  # build NAME SOURCE
    $COMPILE -O0 --coverage -D_exit=exit -w -o "$dir/$1" "$2" $LIBS || exit 1
}
build train_gpt train_gpt.c
build rl docs/tools.c
for program in all gradients data; do build "$program" "tests/$program.c"; done
for program in all gradients data; do "./$dir/$program"; done > "$dir/log" 2>&1
for script in bad_input recipes docs; do
    sh "tests/$script.sh" "./$dir/train_gpt" "./$dir/rl"
done >> "$dir/log" 2>&1

# The same line may be in several programs: it was run when one of them ran it.
for notes in "$dir"/*.gcno; do gcov -t -o "$notes" "$notes" 2> /dev/null; done | awk '
    /^ *-: *0:Source:/ { sub(/.*Source:/, ""); n = split($0, path, "/"); file = path[n]; next }
    {
        split($0, field, ":")
        gsub(/[ *]/, "", field[1])
        line = field[2] + 0
        if (!line || field[1] == "-" || $0 ~ /^-----|^ *[^ ]*_/) next
        seen[file, line] = 1
        if (field[1] !~ /^[#=]/) run[file, line] = 1
    }
    END {
        split("rl.c train_gpt.c docs/tools.c", paths, " ")
        for (f = 1; f <= 3; f++) {
            file = paths[f]
            sub(/.*\//, "", file)
            all = covered = 0
            name = text = ""
            for (line = 1; (getline source < paths[f]) > 0; line++) {
                if (source ~ /^[A-Za-z].*\(/) {
                    name = source
                    sub(/\(.*/, "", name)
                    sub(/.*[ *]/, "", name)
                }
                if (!((file, line) in seen)) continue
                all++
                if ((file, line) in run) { covered++; continue }
                if (name != last) text = text "  " name "\n"
                last = name
                text = text sprintf("%6d  %s\n", line, source)
            }
            printf "%s: %d of %d lines, %.1f%%\n%s", paths[f], covered, all, 100 * covered / all, text
            if (f == 1) missing = covered < 0.95 * all
        }
        exit missing
    }'
