#!/bin/sh
# The zoo of bugs in tests/zoo/bugs.txt. `make zoo`, `make bug` and `make mutants` call this from the top
# directory, with COMPILE (compiler and flags), QUICK and LIBS in the environment.
#
#   zoo.sh all            every bug is compiled and must be caught by a test; ends in `zoo: N of N caught`
#   zoo.sh bug            numbers and chapters
#   zoo.sh bug N          a broken copy in out/bug/N and its symptom; a copy that is there already is kept
#   zoo.sh bug N 1        the answer: the story and the line
#   zoo.sh mutants [SEED [COUNT]]   not real bugs: one-operator mutants that mutants.awk draws; prints those
#                         that no test notices and ends in `mutants: N of COUNT killed`
#   zoo.sh try N, mutant N    one of them, for xargs
LC_ALL=C
export LC_ALL
COMPILE=${COMPILE:-cc -std=c11}
LIBS=${LIBS:--lm}
bugs=tests/zoo/bugs.txt
mutants=build/zoo/mutants

field() { awk -v bug="$1" -v show="$2" -f tests/zoo/bugs.awk "$bugs"; }   # field N NAME; "" NAME: of all

# field N NAME, wrapped at 80 columns, two of them empty
paragraph() { { field "$1" "$2" | tr '\n' ' '; echo; } | fold -s -w 77 | sed -e 's/^/  /' -e 's/ *$//'; }

in_parallel() { xargs -P "$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)" -n 1 sh tests/zoo/zoo.sh "$1"; }

sources() {  # sources DIR N: rl.c and train_gpt.c with bug N, and what includes them
    mkdir -p "$1/docs"
    cp docs/tools.c "$1/docs/"
    awk -v bug="$2" -v out="$1" -f tests/zoo/bugs.awk "$bugs"
}

copy() {  # copy DIR [FROM]: the tests and what they include; rl.c and train_gpt.c, if they are those of FROM
    mkdir -p "$1/tests" "$1/data" "$1/docs"
    cp tests/*.c tests/*.h "$1/tests/"
    cp data/generate.c "$1/data/"
    cp docs/tools.c "$1/docs/"
    [ -z "$2" ] || cp "$2/rl.c" "$2/train_gpt.c" "$1/"
}

parts() { grep -o 'PART([a-z0-9_]*)' tests/all.c | tr -d '()' | sed 's/PART//'; }
is_part() { parts | grep -qx "$1"; }                              # else a program of its own

build() { $COMPILE -O0 -w -o "$1/$2" "$1/tests/$3.c" $LIBS > "$1/log" 2>&1; }   # build DIR PROGRAM SOURCE

build_part() {  # build_part DIR PART: DIR/PART, the tests of one part on the sources in DIR
    {
        grep '^#include ".*\.h"' tests/all.c
        echo "#include \"$2.c\""
        echo "static const Part parts[] = {PART($2)};"
        echo 'int main(int argc, char** argv) { return run_parts(parts, 1, argc, argv); }'
    } > "$1/tests/one.c"
    if is_part "$2"; then build "$1" "$2" one || build "$1" "$2" all      # the part needs another one
    else build "$1" "$2" "$2"
    fi
}

run_part() {  # run_part PROGRAM PART...: what it prints
    is_part "$2" || set -- "$1"                                   # a program of its own takes no name
    (ulimit -t "${SECONDS_OF_PART:-120}"; "$@" || echo "FAIL ${1##*/}: ended with status $?") 2>&1
}

failures() { awk '$1 == "FAIL" { sub(/:$/, "", $2); print $2 }' "$@"; }

# catcher DIR PART: prints the test of this part that catches the bug, or nothing. A test that fails on the
# right code too catches nothing.
catcher() {
    run_part "$1/$2" "$2" > "$1/log"
    [ -f build/zoo/known ] || : > build/zoo/known
    failures "$1/log" | grep -vxF -f build/zoo/known | head -n 1
}

try() {  # try N
    dir=build/zoo/$1
    sources "$dir" "$1"
    copy "$dir"
    for part in $(field "$1" test); do
        build_part "$dir" "$part" || { test="DOES NOT COMPILE with the bug: $(head -n 1 "$dir/log")"; break; }
        test=$(catcher "$dir" "$part")
        [ -z "$test" ] || break
    done
    printf '%3d  %-7s  %-52s  %s\n' "$1" "$(field "$1" chapter)" "$(field "$1" title)" \
        "$part: ${test:-NOT CAUGHT}"
    rm -rf "$dir"
}

all() {
    right=build/zoo/right
    rm -rf build/zoo
    copy $right .
    wanted=$(field "" test | cut -d ' ' -f 2- | tr ' ' '\n' | sort -u)
    for part in all $wanted; do
        is_part "$part" && continue
        build $right "$part" "$part" || { cat $right/log; exit 1; }
        run_part "$right/$part" $([ "$part" != all ] || echo "$wanted") >> $right/ran
    done
    failures $right/ran > build/zoo/known
    printf '%3s  %-7s  %-52s  %s\n' bug chapter 'what is wrong' 'part of the tests: test that catches it'
    field "" place | cut -d ' ' -f 1 | in_parallel try | tee build/zoo/lines
    [ ! -s build/zoo/known ] ||
        echo "On the right code these fail too, so that they catch nothing: $(tr '\n' ' ' < build/zoo/known)"
    caught=$(grep -cv -e ': NOT CAUGHT$' -e ': DOES NOT COMPILE' build/zoo/lines)
    rm -rf $right
    echo "zoo: $caught of $count caught"
    [ "$caught" = "$count" ]
}

list() {
    echo 'make bug N=12 hands out a copy of the two files with one mistake, and tests it'
    echo 'again when you have mended it; with ANSWER=1 it tells the story. The copy runs'
    echo 'too: cc -O1 -w out/bug/12/rl.c -lm -o out/bug/12/rl && out/bug/12/rl lesson 5'
    echo
    field "" place | awk '
        { n = $1; sub(/^[0-9]+ /, "") }
        !($0 in of) { order[++count] = $0 }
        { of[$0] = of[$0] " " n }
        END { for (i = 1; i <= count; i++) printf "  %-12s%s\n", order[i], of[order[i]] }'
}

# curves NAME DIR COLUMN OPTIONS...: 20 updates by the right program and by the copy, drawn together
curves() {
    name=$1 dir=$2 column=$3
    shift 3
    start=out/run/sft
    if [ ! -f "$start/model.safetensors" ]; then
        start=out/bug/start
        echo "(out/run/sft is not there; make run makes it. A short supervised run instead, once,"
        echo "half a minute.)"
        [ -f "$start/model.safetensors" ] ||
            ./train_gpt --steps 250 --out "$start" --overwrite > "$dir/log" 2>&1 ||
            { tail -n 3 "$dir/log"; return; }
    fi
    $COMPILE -O1 -w -o "$dir/rl" "$dir/docs/tools.c" $LIBS || return
    right=out/bug/right/$(echo "$*" | tr -c 'a-z0-9.\n' '_')
    if [ ! -f "$right/metrics.csv" ] || [ ./rl -nt "$right/metrics.csv" ]; then
        twenty ./rl "$right" "$@"
    fi
    twenty "$dir/rl" "$dir/$name" "$@"
    mkdir -p "$dir/right"
    if [ -s "$right/metrics.csv" ] && [ -s "$dir/$name/metrics.csv" ]; then
        cp "$right/metrics.csv" "$dir/right/"
        echo "20 updates, ./rl train $*: $column"
        ./rl plot "$dir/right" "$dir/$name" "$column" | sed 1d
    fi
}

twenty() {  # twenty PROGRAM OUT OPTIONS...
    program=$1 out=$2
    shift 2
    mkdir -p "$out"
    "$program" train --model-tag "$start" --num-steps 20 --eval-every 0 --out "$out" --overwrite "$@" \
        > "$out/log" 2>&1 || { echo "$program ended early:"; tail -n 2 "$out/log" | sed 's/^/  /'; }
    rm -f "$out"/*.safetensors
}

symptom() {  # symptom N
    dir=out/bug/$1 again='' found=''
    if [ -f "$dir/rl.c" ]; then again="This is your copy as you left it; rm -r $dir, and you get a new one."
    else sources "$dir" "$1" || exit 1
    fi
    echo "Bug $1, $(field "$1" place): one place in $dir/rl.c or $dir/train_gpt.c is wrong."
    paragraph "$1" symptom
    [ -z "$again" ] || printf '\n%s\n' "$again"
    echo
    shadow=build/zoo/student
    rm -rf "$shadow"
    copy "$shadow" "$dir"
    for part in $(field "$1" test); do
        build_part "$shadow" "$part" || {
            echo "It does not compile:"
            grep -A 2 'error: ' "$shadow/log" | sed "s|^.*/\.\./|$dir/|" | head -n 12
            exit 1
        }
        found=$(catcher "$shadow" "$part")
        [ -z "$found" ] || break
    done
    if [ -z "$found" ]; then echo "Mended: these tests find nothing wrong any more:" $(field "$1" test)
    else
        echo "A test of $part fails:"
        awk -v name="$found" '
            $1 == "FAIL" && index($2, name) == 1 {
                for (i = 1; i <= n && i <= 8; i++) print line[i]
                if (n > 8) print "  and " n - 8 " more"
                print
                exit
            }
            $1 ~ /^(ok|#|skip|FAIL)$/ { n = 0; next }
            { line[++n] = $0 }' "$shadow/log" | sed "s|$shadow/||g"
    fi
    rm -rf "$shadow"
    train=$(field "$1" train)
    if [ -n "$train" ]; then
        echo
        name=mended
        [ -z "$found" ] || name=broken
        curves $name "$dir" $train
    fi
    echo
    [ -z "$found" ] || echo "Find it and mend it in $dir; make bug N=$1 tests your copy again."
    echo "make bug N=$1 ANSWER=1 tells the story."
}

answer() {  # answer N
    dir=build/zoo/answer
    sources $dir "$1" || exit 1
    file=$(field "$1" file)
    echo "Bug $1, $(field "$1" place): $(field "$1" title)"
    echo
    paragraph "$1" story
    echo
    echo "$file, right (-) and broken (+):"
    diff -U 2 "$file" "$dir/$file" | sed 1,2d
    rm -rf "$dir"
}

# ---- make mutants: one-operator mutants, all in one program (mutants.awk). One is killed by the first part
# of the tests that fails, crashes or takes too long. The chapter's own goes first, also with the sanitizers.

# build_mutants DIR PROGRAM FLAGS. Without OpenMP: a mutant may break the form of a parallel loop
build_mutants() {
    $COMPILE $QUICK -ffp-contract=off -fno-openmp $3 -w -o "$1/$2" "$mutants/tests/$2.c" $LIBS || exit 1
}

passes() {  # passes DIR PART: a part of the tests, in its time
    program=all
    is_part "$2" || program=$2
    SECONDS_OF_PART=$(awk -v part="$2" '$2 == part { n = $1 } END { print n ? n : 300 }' $mutants/limits) \
        FIRST_FAILURE=1 run_part "$1/$program" "$2" > "$mutants/log.$MUTANT" 2>&1
    ! grep -q '^FAIL' "$mutants/log.$MUTANT"
}

must_pass() { passes "$@" || { cat "$mutants/log.0"; echo "this fails without a mutant"; exit 1; }; }

mutant() {  # mutant N: the part that kills it goes to build/zoo/mutants/N.fate
    export MUTANT="$1"
    own=$(awk -F '\t' -v n="$1" '$1 == n { print $2 }' $mutants/list)
    for part in "$own" san $(sort -n $mutants/limits | cut -d ' ' -f 2); do
        if [ "$part" = san ]; then passes $mutants/san "$own"; else passes $mutants "$part"; fi ||
            { echo "$part" > "$mutants/$1.fate"; break; }
    done
    rm -f "$mutants/log.$1"
    [ -s "$mutants/$1.fate" ] ||
        awk -F '\t' -v n="$1" '$1 == n { print $1 "  " $3 "\n" $4 "\n" $5 }' $mutants/list
}

mutants() {
    seed=${1:-1} count=${2:-200}
    export MUTANT=0
    rm -rf $mutants
    mkdir -p $mutants/san
    copy $mutants
    for name in $(grep -l '"/tmp/test_' tests/*.[ch]); do    # what a crashed test leaves goes with the rest
        sed "s|\"/tmp/test_|\"$mutants/test_|" "$name" > "$mutants/$name"
    done
    : > $mutants/errors
    : > $mutants/limits
    while                                                # what does not compile is replaced by the next draw
        awk -v seed="$seed" -v count="$count" -v out=$mutants -f tests/zoo/mutants.awk \
            $mutants/errors rl.c train_gpt.c > $mutants/log || { cat $mutants/log; exit 1; }
        ! $COMPILE -fno-openmp -w -fsyntax-only $mutants/docs/tools.c 2> $mutants/log
    do
        sed -n 's|.*/\([a-z_]*\.c:[0-9]*\):.*error:.*|\1|p' $mutants/log | head -n 1 | grep . \
            >> $mutants/errors || { cat $mutants/log; exit 1; }
    done
    build_mutants $mutants all
    build_mutants $mutants gradients
    build_mutants $mutants/san all '-fsanitize=address,undefined -fno-sanitize-recover=all'
    for part in $(parts) gradients; do        # its limit: six times what it takes, and 10 s of processor time
        (must_pass $mutants "$part" && times) > $mutants/times || { cat $mutants/times; exit 1; }
        awk -v part="$part" 'NR == 2 { split($1, t, /[ms]/); print int(10 + 6 * (60 * t[1] + t[2])), part }' \
            $mutants/times >> $mutants/limits
    done
    for part in $(cut -f 2 $mutants/list | sort -u); do must_pass $mutants/san "$part"; done
    cut -f 1 $mutants/list | in_parallel mutant
    killed=$(find $mutants -name '*.fate' | wc -l)
    echo "mutants: $((killed)) of $count killed"
    [ $((100 * killed)) -ge $((97 * count)) ]
}

case $1 in
try | mutant | mutants) "$@"; exit ;;
all | bug) count=$(awk -f tests/zoo/bugs.awk "$bugs") || { echo "$count"; exit 1; } ;;
esac
case $1:$2 in
all:*) all ;;
bug:) list ;;
bug:*[!0-9]* | bug:0*) echo "N=$2 is no number of a bug; there are 1 to $count"; exit 2 ;;
bug:*)
    [ "$2" -le "$count" ] || { echo "there is no bug $2; there are 1 to $count"; exit 2; }
    if [ -n "$3" ]; then answer "$2"; else symptom "$2"; fi ;;
*) echo "zoo.sh all | bug [N [1]] | mutants [SEED [COUNT]]"; exit 2 ;;
esac
