#!/bin/sh
# report.sh [./train_gpt [./rl]] - docs/report.c on a run of two updates: the page is whole and safe
#
# The model is untrained, so that its answers are random bytes: most are no UTF-8.
cd "$(dirname "$0")/.." || exit 1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
LC_ALL=C
export LC_ALL
failed=0
# result NAME PROBLEM; has NAME WORDS FILE
result() { if [ -z "$2" ]; then echo "ok   $1"; else echo "FAIL $1: $2"; failed=1; fi; }
has() { grep -q -- "$2" "$3" && result "$1" '' || result "$1" "no '$2'"; }
page="$dir/report.html"
makes() {  # makes NAME [ARGUMENTS...]: the page, without a complaint
    name=$1
    shift
    ./build/report "$@" --out "$page" > "$dir/log" 2>&1
    result "$name" "$([ $? -eq 0 ] || cat "$dir/log")"
}
[ -x ./rl ] && [ -x ./train_gpt ] && [ -x build/report ] || { echo "skip report: it is not built"; exit 0; }

# Every tag that opens is closed, in the right order; attributes have quotes, and & begins a reference. Prints
# the first problem.
cat > "$dir/balanced.awk" <<'AWK'
{ page = page $0 "\n" }
END {
    sub(/^<!doctype html>\n/, "", page)
    sub(/<style>[^<]*<\/style>/, "", page)
    text = page
    gsub(/<[^<>]*>/, "", text)
    if (text ~ /[<>]/) { print "a < or > that is no tag"; exit }
    gsub(/&(#[0-9]+|amp|lt|gt|ge|minus);/, "", page)
    if (page ~ /&/) { print "an & that begins no reference: " substr(page, index(page, "&"), 40); exit }
    while ((at = index(page, "<")) > 0) {
        page = substr(page, at + 1)
        tag = substr(page, 1, index(page, ">") - 1)
        name = tag
        sub(/^\//, "", name)
        sub(/[ \/].*/, "", name)
        if (tag ~ /^\//) {
            if (depth < 1 || open[depth] != name) { print "</" name "> closes <" open[depth] ">"; exit }
            depth--
            continue
        }
        bare = tag
        gsub(/ [a-zA-Z-]+='[^']*'/, "", bare)
        if (bare !~ /^[a-z][a-z0-9]*\/?$/) { print "what is <" tag ">?"; exit }
        if (tag !~ /\/$/) open[++depth] = name
    }
    if (depth) print "<" open[depth] "> is not closed"
}
AWK
check_page() {  # check_page NAME: well-formed, ASCII without control characters, nothing to load
    result "$1: tags are balanced" "$(awk -f "$dir/balanced.awk" "$page")"
    result "$1: ASCII" "$(tr -d '\012\040-\177' < "$page" | wc -c | awk '$1 > 0 { print $1 " other bytes" }')"
    result "$1: nothing is loaded, nothing runs" \
        "$(grep -oEi 'http|<script|<link|<img|<iframe|@import|url\(|src=| on[a-z]+=' "$page" | sort -u)"
}

# ---- a run of two stages in a directory whose name is HTML; the question says "Ist 1 < 2?" with an umlaut
run="$dir/<b>&'\""
for i in 1 2 3 4; do
    echo "{\"question\":\"Is $i < 5 & w\\u00e4hr? <script>\",\"answer\":\"#### $i\"}" >> "$dir/train.jsonl"
    echo "{\"question\":\"Is 5$i < 5 & w\\u00e4hr? <script>\",\"answer\":\"#### $i\"}" >> "$dir/test.jsonl"
done
{
    ./train_gpt --data "$dir/train.jsonl" --steps 2 --layers 1 --width 16 --heads 2 --kv-heads 1 \
        --head-dim 8 --mlp-width 16 --context 96 --out "$run/sft" &&
    ./rl train --model-tag "$run/sft" --data "$dir/train.jsonl" --eval-data "$dir/test.jsonl" --num-steps 2 \
        --num-samples 2 --examples-per-step 2 --max-new-tokens 24 --eval-every 1 \
        --reference "$run/sft" --out "$run/rl"
} > "$dir/log" 2>&1 || result 'report: the run' "$(tail -n 1 "$dir/log")"
makes 'report: exit status' "$run"
check_page 'report'
for section in loop curves passk rollouts settings; do
    has "report: section $section" "<section id='$section'>" "$page"
done
for column in reward accuracy held_out tool_rate format_rate kl_ref entropy length grad_norm; do
    has "report: curve of $column" "<figcaption><code>$column</code>" "$page"
done
result 'report: eight rollouts' "$(grep -c "<article class='rollout'>" "$page" | grep -vx 8)"
has 'report: a byte that is no UTF-8 is written out' "mask 1'>.x[89A-F][0-9A-F]</span>" "$page"
has 'report: the question is text' 'Is 51 &#60; 5 &#38; w&#228;hr? &#60;script&#62;' "$page"
has 'report: the name of the run is text' '/&#60;b&#62;&#38;&#39;&#34;</h1>' "$page"
has 'report: without result.json it measures pass@16' \
    ">pass@16</th><td>[0-9.]*<small>[0-9.]* to [0-9.]*</small></td><td>[0-9]" "$page"
has 'report: every option' '<dt>num-samples</dt><dd>2</dd>' "$page"
cp "$page" "$dir/first.html"
makes 'report: a second time' "$run"
result 'report: the same run gives the same page' "$(cmp "$dir/first.html" "$page" 2>&1)"

# An untrained model gets no reward, so no question can be chosen because its rewards differ.
has 'report: which question, and why' 'Question 1 of <code>[^<]*</code>, held out (no rewards differ)' "$page"
makes 'report: of the third question' "$run" --question 3 --eval-examples 0
has 'report: --question' 'Question 3 of <code>[^<]*</code>, held out. Its answer: <b>3</b>' "$page"
has 'report: --eval-examples 0' '(or <code>--eval-examples 0</code>) to measure with' "$page"

# ---- the numbers of result.json, where there is one
side() { echo "\"$1\": {\"pass_at_1\": 0.$2, \"pass_at_1_low\": 0.1, \"pass_at_1_high\": 0.9, \"k\": 7}"; }
echo "{$(side before 321), $(side after 654)}" > "$run/result.json"
makes 'report: with result.json' "$run"
has 'report: pass@1 of result.json' \
    '>pass@1</th><td>0.321<small>0.1 to 0.9</small></td><td>0.654<small>' "$page"
has 'report: a number that result.json does not have is a dash' '>pass@7</th><td>-<small>' "$page"

# ---- what is missing is said
rm -r "$run/sft" "$run/result.json" "$run/rl/metrics.csv"
makes 'report: without the model before' "$run"
check_page 'report of half a run'
has 'report: no model before' 'The model before is not here' "$page"
has 'report: no log' 'No number in this log: <code>reward</code>, <code>accuracy</code>' "$page"
result 'report: four rollouts without a before' "$(grep -c "<article class='rollout'>" "$page" | grep -vx 4)"
mkdir "$dir/log_only"
printf 'step,loss,reward\n0,1,\n1,,0.5\n2,nan,inf\n' > "$dir/log_only/metrics.csv"
makes 'report: of a log alone' "$dir/log_only"
check_page 'report of a log alone'
has 'report: no model' 'has no model that writes' "$page"
has 'report: one number is a curve' \
    "<figcaption><code>reward</code>: mean over the rollouts; 0.5 to 0.5" "$page"

# ---- a wrong directory is a sentence and exit status 2
says() {  # says NAME WORDS COMMAND...
    name=$1 words=$2
    shift 2
    "$@" > "$dir/log" 2>&1
    echo "exit status $?" >> "$dir/log"
    grep -qx 'exit status 2' "$dir/log" || words='exit status 2'
    has "$name" "$words" "$dir/log"
}
mkdir "$dir/empty"
says 'report: a directory without a run' 'there is no run in .*/empty: .* `make run` makes out/run' \
    ./build/report "$dir/empty" --out "$page"
says 'report: no directory' 'cannot open the directory .*/nowhere' ./build/report "$dir/nowhere" --out "$page"
says 'report: an unknown option' 'unknown option' ./build/report --rum
exit $failed
