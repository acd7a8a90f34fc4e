#!/bin/sh
# sh tests/docs.sh ./train_gpt ./rl: what docs/*.md and README.md say about the project must be so. Every
# function, type, column, option, file, lesson, command and make target in backticks exists; every heading of
# the three documents is in docs/index.md, and what is quoted there is the documents' own text; claims and
# exercises are numbered as in their files; what is shown as printed is printed.
train_gpt=$1
rl=$2
seeds=../shared/seeds
LC_ALL=C
export LC_ALL
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

# Names in backticks that are not ours: other projects' files and functions, and symbols of formulas.
foreign="chat_rl.py torch numpy ctypes pi_ref pi_old s_t a_t r_t y_t p_pi rho_0 y_w y_l r_phi pi_theta
    x_dot x_acc theta_dot sum_t"

result() {  # result NAME: ok when the file of complaints is empty
    sed 's/^/  /' "$dir/bad"
    if [ -s "$dir/bad" ]; then echo "FAIL $1"; else echo "ok   $1"; fi
}

# ---- what there is: words of the sources without their comments, options of each command, targets, files
code() { sed -e 's|//.*||' -e 's|/\*.*\*/||g' -e '\|/\*|,\|\*/|d' "$1"; }
options() { grep -oE -- '--[a-z][a-z0-9-]*' | sort -u | sed "s/^/option $1 /"; }
for f in rl.c train_gpt.c data/*.c tests/*.c tests/*.h docs/*.c docs/*.h; do code "$f"; done > "$dir/code"
{
    tr -c 'A-Za-z0-9_' '\n' < "$dir/code" | grep '^[A-Za-z_]' | sort -u | sed 's/^/word /'
    for w in $foreign; do printf 'word %s\nfile %s\n' "$w" "$w"; done
    sed -n 's/^\([a-z][a-z_0-9]*\):.*/target \1/p' Makefile
    for f in *.c *.md Makefile docs/* docs/recipes/* tests/* tests/*/* data/* .ci/*; do
        [ -e "$f" ] && echo "file $f" && echo "file ${f##*/}"
    done
    grep -oE '[A-Za-z_0-9]+\.(csv|json|jsonl|safetensors|so|html|c)' "$dir/code" Makefile | sed 's/.*:/file /'
    "$rl" --help | awk '/^  [a-z]/ { print $1 }' > "$dir/commands"
    while read -r c; do
        echo "command $c"
        "$rl" "$c" --help 2>&1 | options "$c"
    done < "$dir/commands"
    "$train_gpt" --help 2>&1 | options train_gpt
    "$rl" lesson --help | awk '$1 ~ /^[0-9]+$/ { print "lesson", $1 }'
    echo "lesson all"
    "$rl" lesson chain > /dev/null 2>&1 && echo "lesson chain"
    grep -oE '<\|[a-z_]+\|>' train_gpt.c | sed 's/^/token /'
} | sort -u > "$dir/known"

# ---- what is said, as file:line:text: each pair of backticks, and each command that begins a line of code
for f in README.md docs/*.md; do
    awk -v name="$f" '
        /^ *```/ { block = !block; next }
        block || /^    / {
            t = $0; sub(/^ *(\$ )?/, "", t); sub(/(  +| \\| #).*/, "", t)
            if (t ~ /^(\.\/rl|\.\/train_gpt|make|sh) /) { sub(/^sh /, "", t); print name ":" NR "\t" t }
            next
        }
        {
            n = split($0, part, "`")
            for (i = 2; i < n; i += 2) { t = part[i]; gsub(/\\\|/, "|", t); print name ":" NR "\t" t }
        }' "$f"
done > "$dir/said"
# and what an exercise sends to: "chapter 7, advantages_rloo()"
table=tests/exercises/table.h
grep -noE '[a-z_0-9]+\(\)' $table | tr ':' '\t' | sed "s|^|$table:|" >> "$dir/said"

awk -F '\t' -v known="$dir/known" '
    function need(kind, name) {
        if (!((kind " " name) in has)) print $1 ": no " kind " " name (name == $2 ? "" : " in `" $2 "`")
    }
    BEGIN {
        while ((getline line < known) > 0) {
            has[line]
            if (split(line, w, " ") == 3) has["option " w[3]]      # of any command
        }
    }
    {
        t = $2; n = split(t, w, " ")
        if (w[1] == "./rl" || w[1] == "./train_gpt") {
            command = w[1] == "./rl" ? w[2] : "train_gpt"
            if (n == 1 || command ~ /^-|^[A-Z]/) next
            if (w[1] == "./rl") need("command", command)
            if (command == "lesson" && n > 2 && w[3] !~ /^-|^[A-Z]/) need("lesson", w[3])
            for (i = 1; i <= n; i++) {
                sub(/=.*/, "", w[i])
                if (w[i] ~ /^--[a-z]/ && w[i] != "--help") need("option " command, w[i])
            }
        } else if (w[1] == "make") {
            if (n > 1 && w[2] !~ /=/) need("target", w[2])
        } else if (t ~ /^--[a-z][a-z0-9-]*( [^ ]+)?$/) need("option", w[1])
        else if (t ~ /^<\|[a-z_]+\|>$/) need("token", t)
        else if (t ~ /^[A-Za-z0-9_.\/-]+\.[a-z]+$/ && t !~ /^(out|build|\.\.?)\/|^[0-9.]+$/) need("file", t)
        else if (t ~ /^[A-Za-z_][A-Za-z0-9_]*(\(\))?$/) {
            if ($1 ~ /answers\.md/ && t !~ /_|\(/) next              # a page of answers, which may be words
            sub(/\(\)$/, "", t)
            need("word", t)
        }
    }' "$dir/said" > "$dir/bad"
[ -s "$dir/said" ] || echo "no backticks were found" > "$dir/bad"
result docs_names_exist

# ---- links between the pages
for f in README.md docs/*.md; do
    grep -noE '\]\([^)# ]+' "$f" | sed 's/\](//' | while IFS=: read -r line to; do
        case $to in http*) continue ;; esac
        [ -e "$(dirname "$f")/$to" ] || echo "$f:$line: no file $to"
    done
done > "$dir/bad"
result docs_links_lead_somewhere

# ---- claims and exercises: each number is in the index, and no other
same_numbers() {  # same_numbers WORD FILE: the file's numbers on stdin are those behind WORD in the index
    sort -un > "$dir/numbers"
    grep -oE "$1s? [0-9][0-9, ]*" docs/index.md | tr -c '0-9\n' ' ' | tr -s ' ' '\n' | grep . | sort -un |
        diff "$dir/numbers" - | sed -n -e "s|^<|in $2, not in docs/index.md: $1|p" \
            -e "s|^>|in docs/index.md, not in $2: $1|p"
}
{
    sed -n 's/^| *\([0-9][0-9]*\) |.*/\1/p' docs/claims.md | same_numbers '[Cc]laim' docs/claims.md
    grep -oE '^/\* ---- [0-9]+' docs/exercises.c | grep -oE '[0-9]+' | same_numbers Exercise docs/exercises.c
} > "$dir/bad"
result docs_claims_and_exercises

# ---- the bugs of the zoo: every text that one replaces is in rl.c or train_gpt.c exactly once. (Whether the
# tests catch the bugs takes minutes: make zoo.)
awk -f tests/zoo/bugs.awk tests/zoo/bugs.txt | grep -vx '[3-9][0-9]' > "$dir/bad"
result docs_zoo_can_be_applied

# ---- the Chinese titles and Take aways: a block for each lesson, in their order, with the English that the
# lesson prints, and lines that fit a terminal (in UTF-8 a character of three bytes is two columns wide)
"$rl" lesson --help | sed -n 's/^ *\([0-9][0-9]*\|chain\)  /\1 /p' | while read -r name title; do
    printf 'lesson %s\ntitle\n' "$name $title"
    "$rl" lesson "$name" | sed -n '/^Take away: /,$s/^/> /p'
    echo 'take away'
done > "$dir/lessons"
[ "$(grep -c '^> Take away' "$dir/lessons")" = 13 ] || echo "not thirteen Take aways" >> "$dir/lessons"
awk '!/^#|^$/ {
         kind = /^title ./ ? "title" : /^take away ./ ? "take away" : ""
         text = substr($0, length(kind) + 2)
         columns = length(text) - gsub(/[\200-\277]/, "&", text) + gsub(/[\342-\357]/, "&", text)
         if (kind && columns > 80) print "line " NR " has " columns " columns"
         if (kind != "take away" || last != kind) print last = kind ? kind : $0
     }' docs/lessons.zh.txt | diff "$dir/lessons" - > "$dir/bad"
result docs_chinese_lessons

# ---- what docs/README.zh.md shows as printed: lessons by running them, the rest as README.md shows it
awk -v rl="$rl" '
    /^```console/ { on = 1; next }
    /^```/ { on = 0 }
    on && /^\$ / {
        command = substr($0, 3); at = 0; count = 0
        sub(/^\.\/rl /, rl " ", command)
        if (command !~ / lesson | algos/) command = "cat README.md"
        while ((command | getline out) > 0) line[++count] = out
        close(command)
        next
    }
    on && $0 != "..." {
        for (i = at + 1; i <= count && line[i] != $0; i++);
        if (i > count) print FILENAME ":" NR ": not printed: " $0
        else at = i
    }' docs/README.zh.md > "$dir/bad"
result docs_shown_is_printed

# ---- the headings of the documents, and what is quoted from them
if [ -z "$(ls "$seeds"/*.txt 2>/dev/null)" ]; then
    echo "skip docs_headings: the three documents are not beside this directory"
    exit 0
fi

awk 1 "$seeds"/*.txt > "$dir/documents"
sed -n '/^## D1/,/^## Back/s/^### //p' docs/index.md | awk -v documents="$dir/documents" '
    { while ((more = getline line < documents) > 0 && line != $0); }
    more <= 0 && ++failed == 1 { print "no heading of the documents, or not in its place: " $0 }
    END { if (NR != 77) print NR " headings, but the documents have 77" }' > "$dir/bad"
result docs_headings

sed -n 's/^> //p' docs/index.md | while read -r quoted; do
    grep -qF -- "$quoted" "$dir/documents" || echo "not in the documents: $quoted"
done > "$dir/bad"
result docs_quotations
