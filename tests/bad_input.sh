#!/bin/sh
# bad_input.sh [./train_gpt [./rl]] - bad input from the command line
#
# Each case runs a program and checks the exit status (2: the user can mend it, 1: anything else), that stderr
# is one line which begins with "error: " and names what is wrong, and that no file has come or gone. At the
# end the old checkpoint must be as it was. A program that was not built is left out. What files, options and
# numbers look like, which run may be resumed: tests/files.c; pairs: tests/chapter_12.c; exams: tests/grade.c.
# shellcheck disable=SC2034,SC2086,SC2120,SC2317  # cases use and call what else nobody does

train_gpt=${1:-./train_gpt}
rl=${2:-./rl}
case $train_gpt in /*) ;; *) train_gpt=$PWD/$train_gpt ;; esac
case $rl in /*) ;; *) rl=$PWD/$rl ;; esac
dir=$(mktemp -d) || exit 1
log=$dir/log
trap 'rm -rf "$dir"' EXIT
mkdir "$log" "$dir/work" && cd "$dir/work" || exit 1
# Who fails leaves its memory to the system: in a build with sanitizers that is no leak.
ASAN_OPTIONS=detect_leaks=0:$ASAN_OPTIONS
LC_ALL=C   # bytes are bytes
export ASAN_OPTIONS LC_ALL

failed=0
fail() {
    echo "FAIL $1"
    failed=1
}
report() { if [ -z "$problem" ]; then echo "ok   $name"; else fail "$name: $problem"; fi; }

picture() {  # the names of all files
    set -- * ./*/*
    picture=$*
}

ends() {  # ends NAME STATUS WORDS COMMAND...: sets problem, empty if all is well; WORDS are in the message
    name=$1 status=$2 words=$3
    shift 3
    "$@" > "$log/stdout" 2> "$log/stderr" < /dev/null
    found=$? first='' second='' problem=''
    { IFS= read -r first; IFS= read -r second; } < "$log/stderr"
    if [ $found -ne "$status" ]; then problem="exit status $found, expected $status: $first"
    elif [ -n "$second" ]; then problem="a second line on stderr: $second"
    else case $first in
        'error: '*"$words"*) ;;
        *) problem="expected 'error: ... $words', not: $first" ;;
        esac
    fi
}

works() {  # works NAME PROGRAM [ARGUMENTS...]: a good case; no line of it has more than 80 columns
    name=$1
    shift
    "$@" > "$log/stdout" 2> "$log/stderr" && problem='' || problem=$(cat "$log/stderr")
    while IFS= read -r printed; do
        [ ${#printed} -le 80 ] || problem="$problem a line of ${#printed} columns: $printed"
    done < "$log/stdout"
    report
}

cases() {  # lines STATUS|WORDS|COMMAND; the command, as the shell reads it, is also the name of the case
    while IFS='|' read -r status words command; do
        eval "set -- $command"
        picture
        before=$picture
        ends "$command" "$status" "$words" "$@"
        picture
        [ "$before" = "$picture" ] || problem="${problem}files have come or gone"
        report
    done
}

line='{"question": "1+1?", "answer": "<<1+1=2>>2\n#### 2"}'
printf '%s\n%s\n%s\n' "$line" "$line" "$line" > good.jsonl
size='--layers=1 --width=8 --heads=2 --kv-heads=1 --head-dim=4 --mlp-width=8 --batch-size=2 --threads=1'

# ---- train_gpt

if [ -x "$train_gpt" ]; then

sft() { "$train_gpt" $size --data=good.jsonl --out=out --steps=2 "$@"; }
echo x > file
cases << 'CASES'
2|unknown option '--stepz'|sft --stepz=3
2|cannot open nowhere.jsonl: No such file|sft --data=nowhere.jsonl
2|cannot open|sft --data=
1|cannot make the directory file|sft --out=file/out
CASES
# root may read everything, but not this: the kernel answers with an input/output error
[ ! -r /proc/self/mem ] || cases << 'CASES'
2|cannot read /proc/self/mem|sft --data=/proc/self/mem
1|cannot make the directory|sft --out=/proc/out
CASES

sft > "$log/stdout" 2>&1 || fail 'a good run'
cp -R out kept

# a reader that goes away, a disk without room: a sentence
for command in "$train_gpt --help" "$rl algos" "$rl lesson 3"; do
    [ -x "${command%% *}" ] || continue
    piped() {
        { sleep 0.1; $command; echo $? > "$log/status"; } | :
        return "$(cat "$log/status")"
    }
    ends "${command##*/}: nobody reads it" 1 'the output could not be written' piped
    report
    full() { $command > /dev/full; }
    [ -c /dev/full ] && { ends "${command##*/}: no room" 1 'the output could not be written' full; report; }
done

fi
# ---- rl

if [ -x "$rl" ] && [ -d out ]; then

rm -rf bad
cp -R out bad
head -c 900 out/model.safetensors > bad/model.safetensors
printf '%s\n' '{"question": "1+1?", "chosen": "2", "rejected": "3"}' > pairs.jsonl
printf '%s\n' '{"question": "1+1?", "chosen": "2"}' > half.jsonl
for command in train eval; do
    cases << CASES
2|unknown option '--nun-samples'|"\$rl" $command --nun-samples=3
2|reward|"\$rl" $command --reward=praise
2|nowhere|"\$rl" $command --model-tag=nowhere
2|model.safetensors|"\$rl" $command --model-tag=./bad
2|cannot open nowhere|"\$rl" $command --model-tag=./out --data=nowhere.jsonl
CASES
done

# The options are read before any file, and files before anything is made.
ask() { "$rl" eval --model-tag=./out --data=good.jsonl "$@"; }
pairs() { "$rl" pairs --model-tag=./out --data=good.jsonl --out=new/pairs.jsonl "$@"; }
train() { "$rl" train --model-tag=./out --data=good.jsonl --eval-every=0 --num-steps=1 --out=never "$@"; }
dpo() { "$rl" dpo --model-tag=./out --threads=1 --num-steps=1 --out=never "$@"; }
judge() { "$rl" reward-model --model-tag=./out --threads=1 --num-steps=1 --out=never "$@"; }
best() { "$rl" best-of-n --model-tag=./out --data=good.jsonl --num-samples=2 --out=never "$@"; }
cases << 'CASES'
2|no command 'trian'|"$rl" trian
2|lesson|"$rl" lesson 13
2|'now' is not expected|"$rl" algos now
2|question is missing|"$rl" sample --model-tag=./out
2|question is missing|"$rl" sample --explain --answer=3
2|docs/lessons.zh.txt, which is not here|"$rl" lesson 3 --zh
2|nowhere|"$rl" sample 'How many?' --model-tag=nowhere
2|line 1: neither a field "response" nor|"$rl" grade good.jsonl
2|two files are needed|"$rl" overlap good.jsonl
2|is not the name of a file|ask --out=.
2|is not the name of a file|ask --out=out/
2|good.jsonl is there already; --overwrite replaces it|ask --out=good.jsonl
2|good.jsonl is there already; --overwrite replaces it|pairs --out=good.jsonl
2|is too long|ask --out="$(printf '%0250d' 0)"
1|file is not a directory|ask --out=file/table.csv
2|nowhere|ask --compare=nowhere
2|model.safetensors|ask --compare=./bad
2|no --reward 'praise'|pairs --reward=praise
2|nowhere|pairs --model-tag=nowhere
2|bad holds a run|train --out=bad
2|of kind "sft"|"$rl" train --resume=out
1|cannot make the directory|train --eval-every=1 --eval-data=good.jsonl --allow-overlap --out=file/out
2|a run keeps its method|train --resume=out --algo=grpo
2|--clip-high must be from 0|train --algo=grpo --clip-high=-0.1
2|--gamma must be from 0 to 1|train --algo=ppo --gamma=1.1
2|lets no ratio but 1 count|train --ratio=token --epochs-per-batch=2
2|nowhere|train --reward=gsm8k+model:nowhere
2|over the model in ./out, which it reads|train --out=out --overwrite
2|try another --out|train --reference=./bad --out=bad --overwrite
2|try another --out|train --reward=model:./bad --out=./bad/ --overwrite
2|half.jsonl, line 1|dpo --data=pairs.jsonl --eval-data=half.jsonl
2|cannot open nowhere|dpo --eval-data=nowhere
2|no model out/nowhere|dpo --reference=nowhere
1|cannot make the directory|dpo --out=file/out
2|try another --out|dpo --data=pairs.jsonl --out=out --overwrite
2|try another --out|dpo --data=pairs.jsonl --reference=./bad --out=bad --overwrite
2|--noise means nothing here|dpo --data=pairs.jsonl --noise=0.1
2|--num-samples means nothing here|dpo --data=pairs.jsonl --num-samples=2
2|cannot open nowhere|judge --data=nowhere
2|try another --out|judge --data=pairs.jsonl --out=out --overwrite
2|--eval-questions means nothing here|judge --eval-data=pairs.jsonl --eval-questions=good.jsonl
2|over the model in ./out, which it reads|best --out=out --overwrite
2|bad holds a run|best --out=bad
2|not a reward model|best --reward=model:out
2|nowhere|best --reward=model:nowhere
2|no model out/nowhere|best --from=nowhere
1|cannot make the directory|best --out=file/out
CASES
if mkfifo pipe 2> "$log/stderr"; then
    cases << 'CASES'
2|is a device or a pipe|ask --num-samples=1 --max-new-tokens=1 --out=pipe
2|is a device or a pipe|pairs --out=pipe
CASES
    if [ -p pipe ]; then echo 'ok   the pipe is still one'; else fail 'a file has replaced the pipe'; fi
    rm -f pipe
fi

for command in train pairs reward-model dpo best-of-n eval compare plot experiment sample; do
    works "rl $command --help" "$rl" $command --help
done
works 'numbers of four digits' train --algo=reinforce --num-samples=2 --max-new-tokens=2 --threads=1 \
    --num-steps=1000 --lr=0 --examples-per-step=16 --save-every=0 --out=narrow --log-every=1000

fi
[ ! -d out ] || diff -r out kept > "$log/diff" || fail "the good checkpoint has changed: $(cat "$log/diff")"
exit $failed
