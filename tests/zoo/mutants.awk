# mutants.awk - one-operator mutants of the numeric core: the chapters of rl.c, and sections 2 to 6 and 8 of
# train_gpt.c (arithmetic, products, layers, model, optimizer, decoding).
#
#   awk -v seed=1 -v draw=12 -v out=DIR -f mutants.awk rl.c train_gpt.c
#
# writes DIR/rl.c and DIR/train_gpt.c with the 12th mutant that seed 1 draws, and prints what it is: the part
# of the tests that comes first, file and line, the line before and after. Not mutated: declarations and
# tables, what only prints or allocates, refusals of bad input, times. The same for every awk: the random
# numbers are its own.

# The line without comments and with strings blanked, each character in its place.
function code_of(line,    i, two, one, quote, kept) {
    kept = ""
    for (i = 1; i <= length(line); i++) {
        one = substr(line, i, 1)
        two = substr(line, i, 2)
        if (in_block) {
            if (two == "*/") { in_block = 0; kept = kept " "; i++ }
            kept = kept " "
        } else if (quote != "") {
            if (one == "\\") { kept = kept "_"; i++ }
            else if (one == quote) quote = ""
            kept = kept "_"
        } else if (two == "//") break
        else if (two == "/*") { in_block = 1; kept = kept "  "; i++ }
        else {
            if (one == "\"" || one == "'") quote = one
            kept = kept (quote == "" ? one : "_")
        }
    }
    return kept
}

function site(at, old, new) {
    file_of[++sites] = FILENAME
    line_of[sites] = FNR
    part_of[sites] = part
    at_of[sites] = at
    old_of[sites] = old
    new_of[sites] = new
}

# Every place where `old` stands in the code, with these characters before and behind it.
function find(code, old, new, before, behind,    at, from) {
    for (from = 1; (at = index(substr(code, from), old)) > 0; from = at + 1) {
        at += from - 1
        if (substr(code, at - 1, 1) ~ before && substr(code, at + length(old), 1) ~ behind) site(at, old, new)
    }
}

# x[i] becomes x[i + 1] or x[i - 1], for the innermost brackets that hold a name
function find_indices(code,    at, from) {
    for (from = 1; match(substr(code, from), /[A-Za-z0-9_)\]]\[[^][]*[a-z][^][]*\]/); from = at + 1) {
        at = from + RSTART + RLENGTH - 2
        site(at, "]", at % 2 ? " + 1]" : " - 1]")
    }
}

BEGIN {
    swaps = split("+ - * / += -= *= /= < <= > >= == != && || ++ --", swap, " ")
    constants = split("0 1 0.0 1.0 0.0f 1.0f 2 1 2.0 1.0 0.5 1.0", constant, " ")
}

FNR == 1 { part = name = ""; in_block = skipped = 0 }
FILENAME ~ /rl.c$/ && /^ \* CHAPTER [0-9]+\./ { part = sprintf("chapter_%02d", $3) }
FILENAME ~ /rl.c$/ && /^ \* APPENDIX/ { part = "" }
FILENAME ~ /gpt.c$/ && /^\/\/ [0-9]+  / { part = $2 ~ /^[2-68]$/ ? "model" : "" }

{
    source[FILENAME, FNR] = $0
    lines[FILENAME] = FNR
    code = code_of($0)
    if (code ~ /^[A-Za-z].*\(/ && code !~ /^(enum|typedef|struct)/) {
        name = code
        sub(/\(.*/, "", name)
        sub(/.*[ *]/, "", name)
        inside = 0
        wanted = part != "" && name !~ /^(print|lesson|plot|draw|experiment|fail)/
    }
    body = inside
    if (!inside && name != "" && match(code, /\) \{/)) {
        inside = 1
        body = code ~ /\}[ ]*$/ && code ~ /^[A-Za-z]/             # a function of one line: behind its {
        if (body) { blank = sprintf("%" (RSTART + 2) "s", ""); code = blank substr(code, RSTART + 3) }
    }
    if (!inside || code ~ /^\}/ || (body && code ~ /^ .*\}$/ && $0 ~ /^[A-Za-z]/)) name = inside && code ~ /^\}/ ? "" : name
    if (code ~ /^\}/) inside = 0
    skipped = skipped || code ~ /printf|fail\(|allocate|enlarge|free\(|text_|capacity|seconds|puts\(|putchar|sizeof|^#|pragma|static const|enum/
    if (body && wanted && !skipped) {
        for (i = 1; i < swaps; i += 2) {
            edge = swap[i] ~ /\+\+/ ? "." : " "
            find(code, swap[i], swap[i + 1], edge == " " ? " " : "[A-Za-z0-9_)\\] (]", edge == " " ? " " : "[^=]")
            find(code, swap[i + 1], swap[i], edge == " " ? " " : "[A-Za-z0-9_)\\] (]", edge == " " ? " " : "[^=]")
        }
        for (i = 1; i < constants; i += 2) {
            find(code, constant[i], constant[i + 1], "[^A-Za-z0-9_.]", "[^A-Za-z0-9_.]")
            if (i <= 5) find(code, constant[i + 1], constant[i], "[^A-Za-z0-9_.]", "[^A-Za-z0-9_.]")
        }
        find(code, "-", "", "[(= ]", "[A-Za-z0-9(]")
        find_indices(code)
    }
    if (code ~ /[;{}][ ]*$/ || code ~ /^[ ]*$/) skipped = 0
}

# Draw number `draw`, each place at most once: a shuffle of all places (Park and Miller's generator).
END {
    for (i = 1; i <= sites; i++) order[i] = i
    state = seed * 7919 + 1
    for (i = 1; i <= draw && i <= sites; i++) {
        for (j = 0; j < 3; j++) state = state * 16807 % 2147483647
        j = i + state % (sites - i + 1)
        k = order[j]; order[j] = order[i]; order[i] = k
    }
    if (list) { for (i = 1; i <= sites; i++) print part_of[i], file_of[i] ":" line_of[i], "[" old_of[i] "] [" new_of[i] "]", substr(source[file_of[i], line_of[i]], 1, at_of[i]-1) "<<" old_of[i] ">>" substr(source[file_of[i], line_of[i]], at_of[i]+length(old_of[i])); exit }
    k = order[draw]
    split("rl.c train_gpt.c", name_of, " ")
    line = source[file_of[k], line_of[k]]
    changed = substr(line, 1, at_of[k] - 1) new_of[k] substr(line, at_of[k] + length(old_of[k]))
    for (f = 1; f <= 2; f++) {
        for (i = 1; i <= lines[name_of[f]]; i++)
            print name_of[f] == file_of[k] && i == line_of[k] ? changed : source[name_of[f], i] > (out "/" name_of[f])
        close(out "/" name_of[f])
    }
    print part_of[k]
    print file_of[k] ":" line_of[k]
    print "- " line
    print "+ " changed
}
