#!/bin/sh
# `make ex`: compiles a submission (out/my.c, or MY) as a library of its own and hands it to build/ex. rl.c is
# not compiled here. From the environment: CC, MY, N, ALL, HINT, SOLUTION; MODEL, where exercises 30 and 31
# start from. Exit status: 0 = all that was asked is right, 1 = not, 2 = bad usage.
my=${MY:-out/my.c}
model=${MODEL:-out/run/sft}
export N ALL HINT
open=
case $N in 29 | 30 | 31) open=$N ;; esac
refuse() {
    printf '%s\n' "$@" >&2
    exit 2
}
[ -z "$open" ] || [ -z "$SOLUTION" ] ||
    refuse "exercise $N is an open one: it has many solutions, and none is kept"
[ "${open:-29}" = 29 ] || [ -e "$model/model.safetensors" ] ||
    refuse "exercise $N starts from the supervised model that \`make run\` leaves in $model:" \
        "run that first, two minutes"
[ -z "$SOLUTION" ] || exec ./build/ex SOLUTION

if [ ! -e "$my" ]; then
    [ -z "$MY" ] || refuse "there is no file $my"
    mkdir -p out
    cp docs/exercises.c "$my" || exit 1
    echo "docs/exercises.c was copied to $my. Write there; make ex checks it. (That make"
    echo "itself ends with \"Error 1\" only says that something is not right yet.)"
    echo
fi

library=build/my-$$.so
trap 'rm -f "$library" "$library.log"' EXIT

# The first of the compiler's complaints of this kind, with its exercise and its line.
complaint() {  # complaint error|warning HEADING
    awk -v kind="$1" -v heading="$2" -v my="$my" '
        BEGIN {
            while ((getline line[++n] < my) > 0) {
                text = line[n]
                if (text ~ /^\/\* ---- [0-9]+\. /) name = substr(text, 9)
                exercise[n] = name
                open[name] += gsub(/\{/, "", text) - gsub(/\}/, "", text)
            }
        }
        index($0, my ":") == 1 && (at = match($0, ":[0-9]+:([0-9]+:)? (fatal )?" kind ": ")) {
            what = substr($0, at + RLENGTH)
            split(substr($0, at + 1), part, ":")
            sub(/ \[-W[^]]*\]$/, "", what)
            at = part[1]
            found = sprintf("%s\n  line %-4d %s\n  compiler  %s", exercise[at], at, line[at], what)
            if (what ~ /end of input|definition is not allowed/)
                for (i = n; i > 0; i--) if (open[exercise[i]] > 0)
                    found = exercise[i] "\n  compiler  a { without its } here"
            print heading "\n  exercise  " found
            exit
        }' "$library.log"
}

compile() {  # compile OPTION...
    ${CC:-cc} -std=c11 -O1 -g -Wall -Wno-unused-parameter -Werror=implicit-function-declaration \
        -Werror=int-conversion -Werror=incompatible-pointer-types "$@" -shared -fPIC -Idocs \
        -o "$library" "$my" -lm > "$library.log" 2>&1
}

# A variable that was never set holds a number that nobody takes for right, where the compiler knows how.
if ! compile -ftrivial-auto-var-init=pattern &&
   { ! grep -q 'trivial-auto-var-init' "$library.log" || ! compile; }; then
    complaint error "$my does not compile. The first error:" | grep . || cat "$library.log"
    [ -z "$ALL" ] || echo "0 of 28 right (does not compile)"
    exit 1
fi

if [ -n "$open" ]; then
    mkdir -p out/ex
    ./build/ex_open "$library" "$open" "$model" out/ex
    status=$?
    [ $status -lt 128 ] || echo "your function was stopped: an index outside of its array, a NULL pointer?"
else
    ./build/ex "$library" "$my"
    status=$?
fi
[ $status = 0 ] || complaint warning "The compiler warns:"
[ $status -lt 128 ] || status=1
exit $status
