#!/bin/sh
# recipes.sh [./train_gpt [./rl]] - three of docs/recipes/*.sh on questions that take seconds, the options
# of all (they call ./rl and ./train_gpt of the top directory), and ./rl plot, ./rl compare
cd "$(dirname "$0")/.." || exit 1
rl=${2:-./rl}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0
report() { if [ -z "$2" ]; then echo "ok   $1"; else echo "FAIL $1: $2"; failed=1; fi; }    # NAME PROBLEM
[ -x ./rl ] && [ -x ./train_gpt ] || { echo "skip recipes: ./rl and ./train_gpt are not built"; exit 0; }

# ---- ./rl plot. One row is 1/4 of 2 updates, one column 1/15 of an update: the rising line moves up a row
# every 5 columns. The flat line has no number in the last row. Where they meet is a star.
printf 'step,up,flat,none\n0,0,2,\n1,1,2,\n2,2,2,\n3,3,2,\n4,4,,\n' > "$dir/metrics.csv"
cat > "$dir/expected" <<'PLOT'
metrics.csv

      4 |                                                          uuu
        |                                                     uuuuu
        |                                                uuuuu
      3 |                                           uuuuu
        |                                      uuuuu
        |                                 uuuuu
      2 |ffffffffffffffffffffffffffff*****fffffffffffff
        |                       uuuuu
        |                  uuuuu
      1 |             uuuuu
        |        uuuuu
        |   uuuuu
      0 |uuu
         +--------------+--------------+--------------+--------------+
         1              2              3              4              5
         update

  u  up: 0 to 4
  f  flat: 2 to 2
  *  more than one of them
PLOT
"$rl" plot "$dir/metrics.csv" up flat --together 2>&1 | sed "s|^$dir/||" > "$dir/found"
report 'plot: two lines on one scale' "$(diff "$dir/expected" "$dir/found" 2>&1)"

says() {  # says NAME STATUS WORDS COMMAND...: the exit status, and words on stdout or stderr
    name=$1 status=$2 words=$3
    shift 3
    "$@" > "$dir/found" 2>&1
    found=$? problem=''
    [ $found -eq "$status" ] || problem="exit status $found: "
    grep -q -- "$words" "$dir/found" || problem="${problem}no '$words' in: "
    report "$name" "${problem:+$problem$(cat "$dir/found")}"
}
# each column from its own min to its own max; the mean of 0 and 1 is 0.5
says 'plot: several columns, each on its own scale' 0 '^    max ' "$rl" plot "$dir" up flat
says 'plot: smoothed' 0 'up: 0.5 to 4' "$rl" plot "$dir" up --smooth 2
says 'plot: two files, named by their ends' 0 'm  metrics.csv: 0 to 4' "$rl" plot "$dir/metrics.csv" "$dir" up
says 'plot: a column without a number' 0 'nothing to draw' "$rl" plot "$dir" none
says 'plot: no such column' 2 "no column 'down'; its columns are step,up,flat,none" "$rl" plot "$dir" down
says 'plot: no column' 2 'its columns are step,up,flat,none' "$rl" plot "$dir"
says 'plot: no file' 2 'a file is missing' "$rl" plot
says 'plot: a file that is not there' 2 'cannot open nowhere' "$rl" plot nowhere up
says 'plot: too many curves' 2 'room for 6 curves, not for 8' "$rl" plot "$dir" "$dir" up flat up flat
says 'compare: no run' 2 'the runs are missing' "$rl" compare
says 'compare: a run that is not there' 2 'there is no model' "$rl" compare "$dir/nowhere"

# ---- the recipes: "How much is 3 plus 1?", and demonstrations of which a third are right
for i in 1 2 3 4 5 6 7 8; do
    for answer in "#### $((i + 1))" '#### 0' "It is $((i + 1))."; do
        echo "{\"question\":\"How much is $i plus 1?\",\"answer\":\"$answer\"}" >> "$dir/demos.jsonl"
    done
done
grep "#### [2-7]" "$dir/demos.jsonl" > "$dir/train.jsonl"
grep "#### [89]" "$dir/demos.jsonl" > "$dir/test.jsonl"
export DATA="$dir/train.jsonl" TEST="$dir/test.jsonl" DEMOS="$dir/demos.jsonl"
export SFT_STEPS=30 STEPS=1 QUESTIONS=2 OUT="$dir/instructgpt"
says 'recipe instructgpt.sh' 0 '^k = 16 answers to each of 2 questions' sh docs/recipes/instructgpt.sh
export MODEL="$dir/instructgpt/sft" OUT="$dir/overoptimize"
says 'recipe overoptimize.sh' 0 'mean-0.3 .*[0-9]' sh docs/recipes/overoptimize.sh

says 'compare: KL of a model to itself is 0' 0 '^sft.*-[01]\.[0-9]*  0\.00 ' \
    "$rl" compare "$MODEL" --reference "$MODEL" --data "$TEST"
says 'compare: without --reference there is no KL' 0 '^ppo.*-[01]\.[0-9]*     - ' \
    "$rl" compare "$dir/instructgpt/ppo" --data "$TEST"

# a rate of 0 learns nothing, the usual one solves the first seed with both baselines
RL=$rl SEEDS=1 RATES="0 30" sh docs/recipes/cartpole-grid.sh | tr -s ' ' > "$dir/grid"
for words in '0 group mean 0 of 1 never' '0 value + GAE 0 of 1 never' \
             '30 group mean 1 of 1' '30 value + GAE 1 of 1'; do
    says "recipe cartpole-grid.sh: $words" 0 " $words " cat "$dir/grid"
done

# what all recipes name: options that a command has; at most 60 lines
./train_gpt --help > "$dir/help"
for c in train dpo reward-model best-of-n compare plot eval; do ./rl $c --help; done >> "$dir/help"
for recipe in docs/recipes/*.sh; do
    problem=''
    for option in $(grep -v '^#' "$recipe" | grep -o -- '--[a-z][a-z-]*' | sort -u); do
        grep -q -- "^  $option " "$dir/help" || problem="$problem no command has $option;"
    done
    [ "$(wc -l < "$recipe")" -le 60 ] || problem="$problem more than 60 lines;"
    report "recipe ${recipe##*/}: its options are known" "$problem"
done
exit $failed
