# mutants.awk - one-operator mutants of the numeric core: the chapters of rl.c, six sections of train_gpt.c.
# All are in one program, since compiling each would take longer than testing it: MUTANT(12) is 1 when the
# environment says MUTANT=12.
#
#   awk -v seed=1 -v count=200 -v out=DIR -f mutants.awk FILE.. rl.c train_gpt.c
#
# writes DIR/rl.c and DIR/train_gpt.c with the first `count` places that the seed draws, one on a line, and
# DIR/list: number, part of the tests, file:line, and the line before and after, separated by tabs. FILE holds
# lines to be left out, as the compiler names them (rl.c:12: error ...). Not mutated: declarations and tables,
# what only prints or allocates, refusals of bad input, times, what no result depends on (which thread works,
# which of equally good random streams), and what equivalent.txt lists. A chapter or section without a place
# to mutate and a line of equivalent.txt that is no mutant any more are complaints, and exit status 1.

BEGIN {
    while ((getline line < "tests/zoo/equivalent.txt") > 0) if (gsub(/ /, "", line) && line ~ /MUTANT/)
        equivalent[line] = 0                                # how many places it is true of
    split("Arithmetic|Matrix multiplication|Layers|The model|The optimizer|Decoding", section, "|")
    for (i in section) places[section[i]] = 0
    for (i = 1; i <= 12; i++) places["CHAPTER " i] = 0
    split("<= < >= > == != != == && || || &&", pair, " ")
    for (i = 1; i < 12; i += 2) other[pair[i]] = pair[i + 1]
}

function squeezed(text) { gsub(/\001/, "MUTANT", text); gsub(/ /, "", text); return text }

# The line without comments and with strings blanked, each character in its place.
function code_of(line,    kept, word, n) {
    kept = ""
    while (in_block || match(line, /\/\/|\/\*|"([^"\\]|\\.)*"|'([^'\\]|\\.)*'/)) {
        if (in_block) {
            n = index(line, "*/")
            in_block = !n
            n = n ? n + 1 : length(line)
            kept = kept sprintf("%" n "s", "")
            line = substr(line, n + 1)
            if (in_block) return kept
            continue
        }
        word = substr(line, RSTART, RLENGTH)
        kept = kept substr(line, 1, RSTART - 1)
        line = substr(line, RSTART + RLENGTH)
        if (word == "//") return kept
        in_block = word == "/*"
        gsub(/./, in_block ? " " : "_", word)
        kept = kept word
    }
    return kept line
}

# Where the expression ends that begins at `at` (step 1) or begins that ends there (step -1): at one of the
# words of `stop` outside of brackets, or at a bracket that is not its own.
function edge(at, step, stop,    depth, c) {
    for (; at >= 1 && at <= length(code); at += step) {
        c = substr(code, at, 1)
        if (index(step > 0 ? "([{" : ")]}", c)) depth++
        else if (index(step > 0 ? ")]}" : "([{", c) && depth-- == 0) break
        else if (depth != 0) continue
        else if (index(",;?:", c) || (substr(code, at, 2) ~ stop && substr(code, at - 1, 1) == " ")) break
        else if (step < 0 && substr(code, at - 6, 7) ~ /[^=<>!]= $|return /) break
    }
    return at - step
}

# The end of the factor that begins at `at`: casts, a name or number or brackets, and what hangs on it.
function factor_end(at,    rest, depth) {
    rest = substr(code, at)
    while (match(rest, /^(\([a-z][a-z0-9_]*\**\)|[-*&!])/)) { at += RLENGTH; rest = substr(code, at) }
    while (match(rest, /^([0-9.]+e-?[0-9]+f?|[A-Za-z0-9_.]+|->|[(\[])/)) {
        at += RLENGTH
        if (index("([", substr(code, at - 1, 1)))
            for (depth = 1; depth > 0 && at <= length(code); at++)
                depth += (index("([", substr(code, at, 1)) > 0) - (index(")]", substr(code, at, 1)) > 0)
        rest = substr(code, at)
    }
    return at - 1
}

# A place: the characters from .. to become `new`, in which @ stands for MUTANT(its number).
function site(from, to, new) {
    if (to < from || from < 1) return
    places[heading]++
    gsub(/@/, "\001", new)
    site_of[++sites] = part "\t" FILENAME "\t" FNR "\t" substr($0, 1, from - 1) new substr($0, to + 1)
}

function two_ways(at, old, new, stop,    from, to, left, right) {    # (@ ? left new right : left old right)
    from = edge(at - 1, -1, stop)
    to = edge(at + length(old) + 1, 1, stop)
    if (substr(code, from, 2) ~ /^[|&] $/) from += 2
    while (substr(code, from, 1) == " ") from++
    left = substr($0, from, at - from)
    right = substr($0, at + length(old), to - at - length(old) + 1)
    if (left ~ /[a-z0-9)\]_] *$/) site(from, to, "(@ ? " left new right " : " left old right ")")
}

function find_sites(    at, end, two, one, before) {
    for (at = 2; at < length(code); at++) {
        two = substr(code, at, 2)
        one = substr(code, at, 1)
        before = substr(code, at - 1, 1)
        if (before == " " && substr(code, at + 1, 1) == " ") {
            end = factor_end(at + 2)
            if (one == "+" || one == "-") site(at, at, one " (@ ? -1 : 1) *")
            if (one == "*" || one == "/") {
                old = substr($0, at + 2, end - at - 1)
                site(at + 2, end, "(@ ? INVERSE(" old ") : " old ")")
            }
            if (one == "<" || one == ">") two_ways(at, one, one "=", "^(&&|[|][|])$")
        } else if (before == " " && substr(code, at + 2, 1) == " ") {
            if (two in other) two_ways(at, two, other[two], two == "||" ? "^[|][|]$" : "^(&&|[|][|])$")
            if (two == "+=" || two == "-=") site(at + 2, at + 2, " (@ ? -1 : 1) * ")
        }
        if (two == "++" && substr(code, at + 2, 1) ~ /[);]/) site(at, at + 1, " += @ ? -1 : 1")
        if (two == "--" && substr(code, at + 2, 1) ~ /[);]/) site(at, at + 1, " -= @ ? -1 : 1")
        if (one == "-" && before ~ /[(= ]/ && substr(code, at + 1, 1) ~ /[A-Za-z0-9(]/)
            site(at, at, "(@ ? 1 : -1) * ")
        if (one == "]" && match(substr(code, 1, at), /[A-Za-z0-9_)\]]\[[^][]*[a-z][^][]*\]$/))
            site(at, at, at % 2 ? " + @]" : " - @]")
        if (before ~ /[^A-Za-z0-9_.]/ &&
            match(substr(code, at), /^(0|1|2|0\.0f?|1\.0f?|0\.5)([^A-Za-z0-9_.]|$)/)) {
            end = at + RLENGTH - 2 + (at + RLENGTH - 1 > length(code))
            old = substr(code, at, end - at + 1)
            site(at, end, "(" old (old ~ /^0/ ? " + " : " - ") "@)")
        }
    }
}

FILENAME !~ /\.c$/ { if (split($0, where, ":") > 1) left_out[where[1] ":" where[2]] = 1; next }
FNR == 1 { part = name = ""; in_block = skipped = inside = 0 }
/^ \* CHAPTER [0-9]+\./ {
    part = sprintf("chapter_%02d", $3)
    heading = "CHAPTER " int($3)
}
/^ \* APPENDIX/ { part = "" }
/^\/\/ ==== [0-9]+  / {
    heading = $0
    sub(/^\/\/ ==== [0-9]+  /, "", heading)
    sub(/ *[:=].*/, "", heading)
    part = heading in places ? "model" : ""
}

{
    source[FILENAME, FNR] = $0
    lines[FILENAME] = FNR
    code = code_of($0)
    if (code ~ /^[A-Za-z].*\(/ && code !~ /^(enum|typedef|struct)/) {
        name = code
        sub(/\(.*/, "", name)
        sub(/.*[ *]/, "", name)
        inside = 0
        wanted = part != "" && name !~ /^(print|lesson|plot|draw|experiment)/
    }
    body = inside
    if (!inside && name != "" && match(code, /\) \{/)) {
        inside = 1
        body = code ~ /\} *$/                                       # one line
        if (body) code = sprintf("%" (RSTART + 2) "s", "") substr(code, RSTART + 3)
    }
    if (code ~ /^ +.*\} *$/ && $0 ~ /^[A-Za-z]/ || code ~ /^\}/) { inside = 0; name = "" }
    if (code ~ /printf|fail\(|allocate|enlarge|free\(|text_|capacity|seconds|puts\(|putchar|sizeof|^#|omp_/ ||
        code ~ /static const|enum|case |{0}|return __|\{&|random_stream|char [a-z]+\[/) skipped = 1
    if (code ~ /^#(else|endif)/) unused = code ~ /else/              # a product for other compilers
    if (body && wanted && !skipped && !unused && !((FILENAME ":" FNR) in left_out)) find_sites()
    if (code ~ /[;{}] *$/ || code ~ /^ *$/) skipped = 0
}

# A shuffle of all places (Park and Miller's generator, the same in every awk); a line has one mutant at most.
END {
    for (name in places) if (!places[name] && ++failed) print "mutants.awk finds nothing to mutate in: " name
    for (i = 1; i <= sites; i++) {
        split(site_of[i], at, "\t")                            # part, file, line, the mutated line
        if ((line = squeezed(at[4])) in equivalent) equivalent[line]++
    }
    for (line in equivalent)
        if (!equivalent[line] && ++failed) print "no mutant, but in equivalent.txt: " line
    if (failed) exit 1
    state = seed * 7919 + 1
    for (i = 1; i <= sites && drawn < count; i++) {
        for (j = 0; j < 3; j++) state = state * 16807 % 2147483647
        j = i + state % (sites - i + 1)
        split(site_of[j], at, "\t")
        site_of[j] = site_of[i]
        line = at[4]
        if (squeezed(line) in equivalent || (at[2], at[3]) in changed) continue
        gsub(/\001/, "MUTANT(" (++drawn) ")", line)
        changed[at[2], at[3]] = line
        gsub(/\001/, "MUTANT", at[4])
        print drawn "\t" at[1] "\t" at[2] ":" at[3] "\t- " source[at[2], at[3]] "\t+ " at[4] > (out "/list")
    }
    print "char* getenv(const char*);\nint atoi(const char*);\nstatic int mutant_now;\n" \
        "__attribute__((constructor)) static void choose_mutant(void) {\n" \
        "    mutant_now = getenv(\"MUTANT\") ? atoi(getenv(\"MUTANT\")) : 0;\n}\n" \
        "#define MUTANT(n) (mutant_now == (n))\n" \
        "#define INVERSE(x) ((__typeof__(x))0.5 != 0 ? 1 / (x) : 1)\n#line 1" > (out "/train_gpt.c")
    for (name in lines) for (i = 1; i <= lines[name]; i++)
        print (name, i) in changed ? changed[name, i] : source[name, i] > (out "/" name)
    print sites
}
