#!/bin/sh
# bad_input.sh [./train_gpt [./rl]] - bad input from the command line
#
# Each case runs a program and checks: the exit status (2: the user can mend it, 1: anything else); that
# stderr is one line, which begins with "error: " and names what is wrong; that no file has come or gone, also
# none that was written half. At the end the old checkpoint must be as it was. A program that was not built is
# left out. The shell's own commands do the checking: starting programs for it would take most of the time.

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
LC_ALL=C   # for tr: bytes are bytes
export ASAN_OPTIONS LC_ALL

failed=0
fail() {
    echo "FAIL $1"
    failed=1
}

# the names of all files
picture() {
    set -- * ./*/*
    picture=$*
}

# ends NAME STATUS WORDS PROGRAM [ARGUMENTS...]: sets problem, which is empty if all is well. WORDS must stand
# in the message.
ends() {
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

report() { if [ -z "$problem" ]; then echo "ok   $name"; else fail "$name: $problem"; fi; }

# check NAME STATUS WORDS PROGRAM [ARGUMENTS...]
check() {
    picture
    before=$picture
    ends "$@"
    picture
    [ "$before" = "$picture" ] || problem="${problem}files have come or gone"
    report
}

# works NAME PROGRAM [ARGUMENTS...]: the good cases that the bad ones are made from
works() {
    name=$1
    shift
    "$@" > "$log/stdout" 2> "$log/stderr" && problem='' || problem=$(cat "$log/stderr")
    report
}

line='{"question": "1+1?", "answer": "<<1+1=2>>2\n#### 2"}'
printf '%s\n%s\n%s\n' "$line" "$line" "$line" > good.jsonl
size='--layers=1 --width=8 --heads=2 --kv-heads=1 --head-dim=4 --mlp-width=8 --batch-size=2 --threads=1'

# ---- train_gpt

if [ -x "$train_gpt" ]; then

# shellcheck disable=SC2086,SC2317  # $size is split at its spaces on purpose; check calls this
sft() { "$train_gpt" $size --data=good.jsonl --out=out --steps=2 "$@"; }

check 'unknown option' 2 "unknown option '--stepz'" sft --stepz=3
check 'unknown option with one dash' 2 "unknown option '-s'" sft -s 3
check 'a word that is no option' 2 "'three' is not expected" sft three
check 'an empty word' 2 "'' is not expected" sft ''
check 'value missing at the end' 2 '--steps needs a value' sft --steps
check 'value missing before an option' 2 '--out needs a value' sft --out --log-every=1
for bad in '' ten nan 1e99 0x10 ' 5' 5x 2.5 -1 0; do
    check "--steps '$bad'" 2 '--steps must be' sft --steps "$bad"
done
for bad in '' nan inf '0.1 ' 1,5 -0.1 11; do
    check "--lr '$bad'" 2 '--lr must be' sft --lr="$bad"
done
for bad in -1 1.5 18446744073709551616; do
    check "--seed '$bad'" 2 '--seed must be' sft --seed="$bad"
done
check 'heads that cannot share' 2 'must be a multiple' sft --heads=3 --kv-heads=2
check 'odd head dimension' 2 'must be even' sft --head-dim=5
check 'data file missing' 2 'cannot open nowhere.jsonl: No such file' sft --data=nowhere.jsonl
check 'data file without a name' 2 'cannot open' sft --data=
check 'data file is a directory' 2 'Is a directory' sft --data=.
check 'eval file missing' 2 'cannot open nowhere.jsonl' sft --eval-data=nowhere.jsonl
[ -c /dev/zero ] && check 'data file without an end' 2 'has more than 256 MB' sft --data=/dev/zero
# root may read everything, but not this: the kernel answers with an input/output error
[ -r /proc/self/mem ] && check 'data file unreadable' 2 'cannot read /proc/self/mem' sft --data=/proc/self/mem

# jsonl NAME WORDS TEXT: a data file with this text, in which printf's backslashes count
jsonl() {
    printf '%b' "$3" > bad.jsonl
    check "$1" 2 "$2" sft --data=bad.jsonl
}
ok='{"question": "a", "answer": "b"}\n'
jsonl 'empty file' 'has no problems in it' ''
jsonl 'blank lines' 'has no problems in it' '\n  \r\n\n'
jsonl 'line cut in half' 'line 3, column 23: the text ends inside a string' "$ok$ok"'{"question": "a", "ans'
jsonl 'file cut between two fields' 'line 2, column 17: the text ends too early' "$ok"'{"question": "a"'
jsonl 'field twice' 'column 44: this field is there twice' '{"question": "a", "answer": "b", "question": "c"}'
jsonl 'two records in one line' 'column 34: there is something' '{"question": "a", "answer": "b"} {"question"'
jsonl 'field missing' 'line 2: the field "answer" is missing' "$ok"'{"question": "a"}\n'
jsonl 'field empty' 'line 2: the field "question" is empty' "$ok"'{"question": "", "answer": "b"}\n'
jsonl 'field is a number' 'the field "answer" is not a text' '{"question": "a", "answer": 2}\n'
jsonl 'invalid UTF-8' 'line 2, column 15: invalid UTF-8' "$ok"'{"question": "\0377", "answer": "b"}\n'
jsonl 'UTF-16' 'line 1, column 1: ' '\0377\0376{\0000"\0000'
jsonl 'zeros behind a lost write' 'line 2, column 1: ' "$ok"'\0000\0000\0000\0000\n'
jsonl 'half a surrogate pair' 'half of a surrogate pair' '{"question": "\\ud83d", "answer": "b"}\n'
jsonl 'not JSON' 'line 1, column 1: a value was expected' 'question,answer\n'
jsonl 'a list' 'line 1: an object' '["a", "b"]\n'
jsonl 'a remark behind the line' 'column 34: there is something' '{"question": "a", "answer": "b"} # no\n'
awk 'BEGIN { for (i = 0; i < 100000; i++) printf "["; print "" }' > bad.jsonl
check 'brackets 100,000 deep' 2 'nested too deeply' sft --data=bad.jsonl
check 'nothing fits the context' 2 'no conversation fits the context of 8 tokens' sft --context=8

echo x > file
check 'output below a file' 1 'cannot make the directory file' sft --out=file/out
check 'output is a file' 1 'file is not a directory' sft --out=file
check 'output without a name' 2 'directory' sft --out=
[ -d /proc/self ] && check 'output in /proc' 1 'cannot make the directory' sft --out=/proc/out
check 'resume from nothing' 2 'nowhere has no trainer_state.json' "$train_gpt" --resume=nowhere

# ---- its checkpoints

works 'a good run' sft --save-every=1
check 'a new run over an old one' 2 'out holds a run: --resume out goes on with it, --overwrite' sft
check 'a resumed run into another folder' 2 'copy out to more' "$train_gpt" --resume=out --out=more
check 'resume and overwrite' 2 'leave one out' "$train_gpt" --resume=out --overwrite
printf '%s\n%s\n' "$line" "$line" > fewer.jsonl
check 'resume with other data' 2 'fewer.jsonl has changed' "$train_gpt" --resume=out --steps=4 \
    --data=fewer.jsonl
long=$(awk 'BEGIN { for (i = 0; i < 2035; i++) printf "a/" }')
check 'a path that no save fits into' 2 'too long' sft --out="$long"
check 'resume a finished run' 2 '2 of 2 updates are done' "$train_gpt" --resume=out
check 'resume with other sizes' 2 '--width' "$train_gpt" --resume=out --steps=4 --width=16
check 'resume with bad data' 2 'cannot open nowhere' "$train_gpt" --resume=out --steps=4 --data=nowhere.jsonl
check 'model from nothing' 2 "no checkpoint directory 'nowhere'" sft --model=nowhere --out=more
check 'model of other sizes' 2 '--width is 8 for the model in out' sft --model=out --width=16 --out=more
check 'model that would be overwritten' 2 'over the model in out that it starts from; try another --out' sft \
    --model=out --overwrite
check 'model and resume' 2 'leave one out' "$train_gpt" --model=out --resume=out
cp -R out kept
cp -R out bad
last=config.json

# broken NAME WORDS FILE COMMAND...: the good checkpoint, whose FILE is made by COMMAND from the good one
broken() {
    name=$1 words=$2 file=$3
    shift 3
    cp "out/$last" "bad/$last"
    "$@" < "out/$file" > "bad/$file"
    last=$file
    check "$name" 2 "$words" "$train_gpt" --resume=bad --steps=4 --threads=1
}
for file in config.json trainer_state.json model.safetensors optimizer.safetensors; do
    length=$(wc -c < "out/$file")
    for part in 0 8 $((length / 10)) $((length / 2)) $((length - 2)); do
        broken "$file cut at byte $part" "$file" "$file" head -c "$part"
    done
    broken "$file of zeros" "$file" "$file" tr '\000-\377' '[\000*256]'
    rm "bad/$file"
    check "$file missing" 2 "$file" "$train_gpt" --resume=bad --steps=4
done
broken 'a negative size' 'is not a whole number' config.json sed 's/"hidden_size": 8/"hidden_size": -8/'
broken 'a fractional size' 'is not a whole number' config.json sed 's/"hidden_size": 8/"hidden_size": 8.5/'
broken 'a huge size' 'hidden_size must be from 1 to 16384' config.json sed 's/"hidden_size": 8/"hidden_size": 999999999/'
broken 'a size that overflows' 'not a whole' config.json sed 's/"hidden_size": 8/"hidden_size": 4294967304/'
broken 'another size' 'too small' config.json sed 's/"vocab_size": 265/"vocab_size": 99999/'
broken 'another shape' 'not have the shape' config.json sed 's/"intermediate_size": 8/"intermediate_size": 7/'
broken 'another architecture' 'only "qwen3"' config.json sed 's/"qwen3"/"llama"/'
broken 'a kind of model that is unknown' 'the architecture is "Qwen3ForTokenClassification"' config.json \
    sed 's/CausalLM/TokenClassification/'
broken 'a score that is missing' 'score.weight is missing' config.json \
    sed 's/CausalLM"],/SequenceClassification"], "num_labels": 1,/'
broken 'another kind of run' 'of kind "rl"' trainer_state.json sed 's/"sft"/"rl"/'
broken 'another update' 'update' trainer_state.json sed 's/"step": 2/"step": 1/'
broken 'weights of another update' 'update' model.safetensors sed 's/"step":"2"/"step":"1"/'
broken 'moments of another update' 'update' optimizer.safetensors sed 's/"step":"2"/"step":"1"/'
broken 'a saved option out of range' '--lr must be' trainer_state.json sed 's/"lr": "[^"]*"/"lr": "99"/'
if diff -r out kept > "$log/diff"; then echo 'ok   the good checkpoint is as it was'
else fail "the good checkpoint has changed: $(cat "$log/diff")"
fi

# ---- a full disk, and signals

rm -rf bad
cp -R out bad
# shellcheck disable=SC2317  # ends calls this
small() { (ulimit -f 8 && "$train_gpt" --resume=bad --steps=3 --threads=1); }   # no file above 8 blocks
ends 'a save that finds no room' 1 'File too large; what was there before is untouched' small
cp out/metrics.csv bad/metrics.csv   # it rightly has the row of the update that could not be saved
diff -r out bad > "$log/diff" || problem="${problem}files have changed: $(cat "$log/diff")"
report
works 'and with room again it goes on' "$train_gpt" --resume=bad --steps=3 --threads=1
# a reader that goes away, a disk without room: a sentence
for command in "$train_gpt --help" "$rl algos" "$rl lesson 3"; do
    [ -x "${command%% *}" ] || continue
    # shellcheck disable=SC2086,SC2317
    piped() {
        { sleep 0.1; $command; echo $? > "$log/status"; } | :
        return "$(cat "$log/status")"
    }
    ends "${command##*/}: nobody reads it" 1 'the output could not be written' piped
    report
    # shellcheck disable=SC2086,SC2317
    full() { $command > /dev/full; }
    [ -c /dev/full ] && { ends "${command##*/}: no room" 1 'the output could not be written' full; report; }
done

fi

# ---- rl

if [ -x "$rl" ] && [ -d out ]; then

rm -rf bad
cp -R out bad
head -c 900 out/model.safetensors > bad/model.safetensors

check 'rl: unknown command' 2 "no command 'trian'" "$rl" trian
check 'rl: unknown lesson' 2 'lesson' "$rl" lesson 13
for command in train eval; do
    check "rl $command: unknown option" 2 "unknown option '--nun-samples'" "$rl" $command --nun-samples=3
    check "rl $command: value missing" 2 '--num-samples needs a value' "$rl" $command --num-samples
    check "rl $command: no rollouts" 2 '--num-samples must be' "$rl" $command --num-samples=0
    check "rl $command: malformed number" 2 '--temperature must be' "$rl" $command --temperature=nan
    check "rl $command: unknown reward" 2 'reward' "$rl" $command --reward=praise
    check "rl $command: no such model" 2 'nowhere' "$rl" $command --model-tag=nowhere
    check "rl $command: a word too many" 2 "'now' is not expected" "$rl" $command now
    check "rl $command: truncated model" 2 'model.safetensors' "$rl" $command --model-tag=./bad
done
check 'rl train: data file missing' 2 'cannot open nowhere' "$rl" train --model-tag=./out --data=nowhere.jsonl
check 'rl eval: data file missing' 2 'cannot open nowhere' "$rl" eval --model-tag=./out --data=nowhere.jsonl
for bad in '' . out/; do
    check "rl eval: --out '$bad'" 2 'is not the name of a file' "$rl" eval --model-tag=./out --data=good.jsonl \
        --out="$bad"
done
check 'rl eval: --out with a long name' 2 'is too long' "$rl" eval --model-tag=./out --data=good.jsonl \
    --out="$(printf '%0250d' 0)"
check 'rl eval: --out below a file' 1 'file is not a directory' "$rl" eval --model-tag=./out --data=good.jsonl \
    --out=file/table.csv
if mkfifo pipe 2> "$log/stderr"; then
    check 'rl eval: --out is a pipe' 2 'is a device or a pipe' "$rl" eval --model-tag=./out \
        --data=good.jsonl --num-samples=1 --max-new-tokens=1 --out=pipe
    check 'rl pairs: --out is a pipe' 2 'is a device or a pipe' "$rl" pairs --model-tag=./out \
        --data=good.jsonl --out=pipe
    if [ -p pipe ]; then echo 'ok   the pipe is still one'; else fail 'a file has replaced the pipe'; fi
    rm -f pipe
fi
check 'rl pairs: no file' 2 'a file is missing' "$rl" pairs --model-tag=./out
check 'rl pairs: unknown annotator' 2 "no --annotator 'fair'" "$rl" pairs --annotator=fair --out=new/pairs.jsonl
check 'rl pairs: unknown reward' 2 "no --reward 'praise'" "$rl" pairs --reward=praise --out=new/pairs.jsonl
check 'rl pairs: no such model' 2 'nowhere' "$rl" pairs --model-tag=nowhere --out=new/pairs.jsonl
check 'rl eval: no such model before' 2 'nowhere' "$rl" eval --model-tag=./out --compare=nowhere
check 'rl eval: truncated model before' 2 'model.safetensors' "$rl" eval --model-tag=./out --compare=./bad
check 'rl train: a new run over an old one' 2 'bad holds a run' "$rl" train --model-tag=./out \
    --data=good.jsonl --out=bad
check 'rl train: resume a supervised run' 2 'of kind "sft"' "$rl" train --resume=out
check 'rl train: output below a file' 1 'cannot make the directory' "$rl" train --model-tag=./out \
    --data=good.jsonl --eval-data=good.jsonl --allow-overlap --num-samples=2 --num-steps=1 --out=file/out
check 'rl train: the exam is trained on' 2 '3 of the 3 questions of good.jsonl' "$rl" train \
    --model-tag=./out --data=good.jsonl --eval-data=good.jsonl
check 'rl run: the exam is trained on' 2 '--allow-overlap goes on' "$rl" run \
    --data=good.jsonl --eval-data=good.jsonl --out=never
# the methods of rl train: the options are read before any file
# shellcheck disable=SC2317  # check calls this
train() { "$rl" train --model-tag=./out --data=good.jsonl --eval-every=0 --num-steps=1 --out=never "$@"; }
check 'rl train: unknown method' 2 "no --algo 'trpo'; choose nanochat, reinforce, rloo," train --algo=trpo
check 'rl train: method missing' 2 '--algo needs a value' train --algo
check 'rl train: another method for a resumed run' 2 'a run keeps its method' train --resume=out --algo=grpo
check 'rl train: clip without a ratio' 2 '--clip-low means nothing here' train --clip-low=0.2
check 'rl train: clip below 0' 2 '--clip-high must be from 0' train --algo=grpo --clip-high=-0.1
check 'rl train: KL without a price' 2 'no KL term with --beta 0' train --kl-in=reward
check 'rl train: unknown estimator' 2 "no --kl-estimator 'k4'; choose k1" train --algo=grpo --kl-estimator=k4
check 'rl train: gamma without steps' 2 'only --advantage gae' train --gamma=0.9
check 'rl train: gamma above 1' 2 '--gamma must be from 0 to 1' train --algo=ppo --gamma=1.1
check 'rl train: minibatch too large' 2 '--minibatch 17 is more than an update'"'"'s 16 questions' train --algo=dapo --minibatch=17
check 'rl train: two passes without a ratio' 2 'with --ratio none each batch' train --epochs-per-batch=2
check 'rl train: two passes, and no ratio counts' 2 'lets no ratio but 1 count' train --ratio=token \
    --epochs-per-batch=2
check 'rl train: a group of one' 2 'nothing to compare with' train --num-samples=1
check 'rl train: a reward model that writes' 2 'a language model, not a reward model' train --reward=model:out
check 'rl train: no such reward model' 2 'nowhere' train --reward=gsm8k+model:nowhere
check 'rl train: two reward functions' 2 "no --reward 'gsm8k+boxed'" train --reward=gsm8k+boxed
check 'rl train: no such reference' 2 'there is no model' train --algo=grpo --reference=nowhere
check 'rl train: written over its model' 2 'over the model in ./out, which it reads' train --out=out \
    --overwrite
check 'rl train: written over its reference' 2 'try another --out' train --reference=./bad --out=bad \
    --overwrite
check 'rl train: written over its reward model' 2 'try another --out' train --reward=model:./bad \
    --out=./bad/ --overwrite

# the commands on pairs: what is given is read before anything is made
few='--model-tag=./out --threads=1 --num-steps=1'
printf '%s\n' '{"question": "1+1?", "chosen": "2", "rejected": "3"}' > pairs.jsonl
printf '%s\n' '{"question": "1+1?", "chosen": "2"}' > half.jsonl
# shellcheck disable=SC2086,SC2317  # $few is split at its spaces on purpose; check calls these
dpo() { "$rl" dpo $few --out=never "$@"; }
# shellcheck disable=SC2086,SC2317
judge() { "$rl" reward-model $few --out=never "$@"; }
check 'rl dpo: half a pair' 2 'half.jsonl, line 1: the field "rejected" is missing' dpo --data=half.jsonl
check 'rl dpo: half a held-out pair' 2 'half.jsonl, line 1' dpo --data=pairs.jsonl --eval-data=half.jsonl
check 'rl dpo: pairs to be made, held-out file missing' 2 'cannot open nowhere' dpo --eval-data=nowhere
check 'rl dpo: pairs to be made, no such reference' 2 'no model out/nowhere' dpo --reference=nowhere
check 'rl dpo: pairs to be made, output below a file' 1 'cannot make the directory' dpo --out=file/out
check 'rl dpo: written over its model' 2 'try another --out' dpo --data=pairs.jsonl --out=out --overwrite
check 'rl dpo: written over its reference' 2 'try another --out' dpo --data=pairs.jsonl --reference=./bad \
    --out=bad --overwrite
check 'rl dpo: no such annotator' 2 "no --annotator 'fair'" dpo --annotator=fair
check 'rl reward-model: half a pair, held-out ones to be made' 2 'half.jsonl, line 1' judge --data=half.jsonl
check 'rl reward-model: file missing, held-out pairs to be made' 2 'cannot open nowhere' judge --data=nowhere
check 'rl reward-model: pairs to be made, held-out file missing' 2 'cannot open' judge --eval-data=nowhere
check 'rl reward-model: written over its model' 2 'try another --out' judge --data=pairs.jsonl --out=out \
    --overwrite
check 'rl reward-model: unknown loss' 2 "no --loss 'dpo'" judge --data=pairs.jsonl --loss=dpo
check 'rl reward-model: a run of another kind' 2 'of kind "sft"' "$rl" reward-model --resume=out
check 'rl dpo: noise in pairs that are read' 2 '--noise means nothing here' dpo --data=pairs.jsonl --noise=0.1
check 'rl dpo: answers that nobody samples' 2 '--num-samples means nothing here' dpo --data=pairs.jsonl \
    --num-samples=2
check 'rl reward-model: held-out questions of pairs that are read' 2 '--eval-questions means nothing here' \
    judge --eval-data=pairs.jsonl --eval-questions=good.jsonl
# shellcheck disable=SC2317
best() { "$rl" best-of-n --model-tag=./out --data=good.jsonl --num-samples=2 --max-new-tokens=2 "$@"; }
check 'rl best-of-n: written over its model' 2 'over the model in ./out, which it reads' best --out=out \
    --overwrite
check 'rl best-of-n: a new run over an old one' 2 'bad holds a run' best --out=bad
check 'rl best-of-n: no such reward model' 2 'nowhere' best --reward=model:nowhere --out=never
check 'rl best-of-n: a reward model that writes' 2 'not a reward model' best --reward=model:out --out=never
check 'rl best-of-n: no such model to train' 2 'no model out/nowhere' best --from=nowhere --out=never
check 'rl best-of-n: output below a file' 1 'cannot make the directory' best --out=file/out
check 'rl best-of-n: unknown rule' 2 "no --keep 'worst'" best --keep=worst --out=never

# narrow NAME COMMAND...: a good case that prints no line of more than 80 columns
narrow() {
    works "$@"
    while IFS= read -r printed; do
        [ ${#printed} -le 80 ] || fail "$1: a line of ${#printed} columns: $printed"
    done < "$log/stdout"
}
narrow 'rl algos fits a terminal' "$rl" algos
for command in train pairs reward-model dpo best-of-n eval compare plot experiment sample; do
    narrow "rl $command --help fits a terminal" "$rl" $command --help
done
narrow 'rl train fits a terminal' train --algo=reinforce --num-samples=2 --max-new-tokens=2 --threads=1 \
    --num-steps=1000 --lr=0 --examples-per-step=16 --save-every=0 --out=narrow --log-every=1000
rm -rf narrow
check 'rl algos: a word too many' 2 "'now' is not expected" "$rl" algos now
check 'rl sample: question missing' 2 'question is missing' "$rl" sample --model-tag=./out
check 'rl sample: one answer to many questions' 2 'question is missing' "$rl" sample --explain --answer=3
check 'rl lesson: --zh elsewhere' 2 'docs/lessons.zh.txt, which is not here' "$rl" lesson 3 --zh
check 'rl overlap: one file' 2 'two files are needed' "$rl" overlap good.jsonl
check 'rl overlap: three files' 2 "'c' is not expected" "$rl" overlap good.jsonl good.jsonl c
check 'rl overlap: data file missing' 2 'cannot open nowhere' "$rl" overlap good.jsonl nowhere
check 'rl grade: file missing' 2 'a file is missing' "$rl" grade
check 'rl grade: no response' 2 'line 1: neither a field "response" nor' "$rl" grade good.jsonl
check 'rl grade: unknown reward' 2 "no --reward 'praise'" "$rl" grade good.jsonl --reward=praise
check 'rl sample: no such model' 2 'nowhere' "$rl" sample 'How many?' --model-tag=nowhere

fi

exit $failed
