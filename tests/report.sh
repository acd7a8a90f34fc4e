#!/bin/sh
# report.sh [./train_gpt [./rl]] - docs/report.c on a run of two updates: the page is whole and safe. The
# model is untrained, so that its answers are random bytes: most are no UTF-8.
cd "$(dirname "$0")/.." || exit 1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
LC_ALL=C
export LC_ALL
failed=0
page="$dir/report.html"
result() { if [ -z "$2" ]; then echo "ok   $1"; else echo "FAIL $1: $2"; failed=1; fi; }   # NAME PROBLEM
contains() {  # contains FILE: lines of NAME|WORDS on stdin
    while IFS='|' read -r name words; do
        result "report: $name" "$(grep -q -- "$words" "$1" || echo "no '$words'")"
    done
}
makes() {  # makes NAME [ARGUMENTS...]: the page, without a complaint
    name=$1
    shift
    result "report: $name" "$(./build/report "$@" --out "$page" > "$dir/log" 2>&1 || cat "$dir/log")"
}
[ -x ./rl ] && [ -x ./train_gpt ] && [ -x build/report ] || { echo "skip report: it is not built"; exit 0; }

# Every tag that opens is closed, in the right order; attributes have quotes, and & begins a reference.
balanced() {
    awk 'BEGIN { RS = "<" }
        function bad(why) { if (!failed++) print why ": <" $0 }
        NR > 2 {                                              # behind the doctype
            at = index($0, ">")
            name = tag = substr($0, 1, at - 1)
            sub(/^\//, "", name)
            sub(/[ \/].*/, "", name)
            gsub(/&(#[0-9]+|amp|lt|gt|ge|minus);/, "")
            if (!at || /&/ || (name != "style" && gsub(/>/, ">") > 1)) bad("a <, > or & that is text")
            if (tag ~ /^\//) {
                if (open[depth--] != name) bad("closes another tag")
                next
            }
            gsub(/ [a-zA-Z-]+=\047[^\047]*\047/, "", tag)
            if (tag !~ /^[a-z][a-z0-9]*\/?$/) bad("what is this?")
            if (tag !~ /\/$/) open[++depth] = name
        }
        END { if (depth) print "<" open[depth] "> is not closed" }' "$page"
}
check_page() {  # check_page NAME: well-formed, ASCII without control characters, nothing to load
    result "$1: tags are balanced" "$(balanced)"
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
makes 'exit status' "$run"
check_page 'report'
found=$(grep -oE "<section id='[a-z]*|<figcaption><code>[a-z_]*" "$page" | sed "s/.*['>]//" | tr '\n' ' ')
result 'report: sections and curves' "$(echo "$found" | grep -vx "loop curves reward accuracy held_out \
tool_rate format_rate kl_ref entropy length grad_norm zero_variance clip_fraction loss grad_norm lr passk \
rollouts settings ")"
result 'report: eight rollouts' "$(grep -c "<article class='rollout'>" "$page" | grep -vx 8)"
# (An untrained model gets no reward, so no question can be chosen because its rewards differ.)
contains "$page" <<'LIST'
a byte that is no UTF-8 is written out|mask 1'>.x[89A-F][0-9A-F]</span>
the question is text|Is 51 &#60; 5 &#38; w&#228;hr? &#60;script&#62;
the name of the run is text|/&#60;b&#62;&#38;&#39;&#34;</h1>
without result.json: pass@16|>pass@16</th><td>[0-9.]*<small>[0-9.]* to [0-9.]*</small></td><td>[0-9]
every option|<dt>num-samples</dt><dd>2</dd>
which question, and why|Question 1 of <code>[^<]*</code>, held out (no rewards differ)
LIST
cp "$page" "$dir/first.html"
makes 'a second time' "$run"
result 'report: the same run gives the same page' "$(cmp "$dir/first.html" "$page" 2>&1)"
makes 'of the third question' "$run" --question 3 --eval-examples 0
contains "$page" <<'LIST'
--question|Question 3 of <code>[^<]*</code>, held out. Its answer: <b>3</b>
--eval-examples 0|(or <code>--eval-examples 0</code>) to measure with
LIST

# ---- the numbers of result.json, where there is one
side() { echo "\"$1\": {\"pass_at_1\": 0.$2, \"pass_at_1_low\": 0.1, \"pass_at_1_high\": 0.9, \"k\": 7}"; }
echo "{$(side before 321), $(side after 654)}" > "$run/result.json"
makes 'with result.json' "$run"
contains "$page" <<'LIST'
pass@1 of result.json|>pass@1</th><td>0.321<small>0.1 to 0.9</small></td><td>0.654<small>
a number that result.json does not have is a dash|>pass@7</th><td>-<small>
LIST

# ---- what is missing is said
rm -r "$run/sft" "$run/result.json" "$run/rl/metrics.csv"
makes 'without the model before' "$run"
check_page 'report of half a run'
contains "$page" <<'LIST'
no model before|The model before is not here
no log|No number in this log: <code>reward</code>, <code>accuracy</code>
LIST
result 'report: four rollouts without a before' "$(grep -c "<article class='rollout'>" "$page" | grep -vx 4)"
mkdir "$dir/log_only" "$dir/empty"
printf 'step,loss,reward\n0,1,\n1,,0.5\n2,nan,inf\n' > "$dir/log_only/metrics.csv"
makes 'of a log alone' "$dir/log_only"
check_page 'report of a log alone'
contains "$page" <<'LIST'
no model|has no model that writes
one number is a curve|<figcaption><code>reward</code>: mean over the rollouts; 0.5 to 0.5
LIST

# ---- a wrong directory is a sentence and exit status 2
for arguments in "$dir/empty" "$dir/nowhere" --rum; do
    ./build/report "$arguments" --out "$page"
    echo "exit status $?"
done 2>&1 | tr '\n' ' ' > "$dir/log"
contains "$dir/log" <<'LIST'
a directory without a run|there is no run in .*/empty: .* `make run` makes out/run.*exit status 2
no directory|exit status 2.*cannot open the directory .*/nowhere.*exit status 2
an unknown option|exit status 2.*exit status 2.*unknown option.*exit status 2
LIST
exit $failed
