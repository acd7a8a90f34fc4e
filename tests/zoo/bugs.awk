# bugs.awk - reads tests/zoo/bugs.txt. Every `-` text must be found exactly once in its file.
#
#   awk -f bugs.awk bugs.txt                         checks all bugs: complaints, then how many bugs there are
#   awk -v bug=12 -v out=DIR -f bugs.awk bugs.txt    writes DIR/rl.c and DIR/train_gpt.c with bug 12
#   awk -v bug=12 -v show=story -f bugs.awk bugs.txt prints a field of bug 12, continuation lines too
#   awk -v show=chapter -f bugs.awk bugs.txt         number and field of all bugs
#
# The exit status is 1 after a complaint.

function complain(text) { print "bug " now ": " text; failed = 1 }

function read_source(name,    line, n) {
    if (name in lines) return
    n = 0
    while ((getline line < name) > 0) source[name, ++n] = line
    lines[name] = n
    if (!n) complain("there is no file " name)
}

# The edits of the bug that has just been read.
function finish(    e, i, at, found, rest, where) {
    if (!now) return
    count++
    if (now != count) complain("its number should be " count)
    for (i in need) if (!(i in has)) complain("it has no line `" i "`")
    if (!edits) complain("it edits nothing")
    if (show != "" || (bug && bug != now)) return
    if (bug) { read_source("rl.c"); read_source("train_gpt.c") }
    read_source(file)
    for (e = 1; e <= edits; e++) {
        found = 0
        for (i = 1; i <= lines[file]; i++) {
            rest = source[file, i]
            if ((at = index(rest, old[e])) == 0) continue
            found++
            where = i
            if (index(substr(rest, at + 1), old[e])) found++
        }
        if (found != 1) { complain("found " found " times in " file ": " old[e]); continue }
        if (!bug) continue
        rest = source[file, where]
        at = index(rest, old[e])
        match(rest, /^ */)
        gsub("\n", "\n" substr(rest, 1, RLENGTH), new[e])         # further lines begin below the first
        source[file, where] = substr(rest, 1, at - 1) new[e] substr(rest, at + length(old[e]))
    }
}

function text_of(line) { return length(line) > 2 ? substr(line, 3) : "" }

BEGIN {
    split("chapter title file test symptom story", words, " ")
    for (i in words) need[words[i]] = 1
}

/^#/ || /^$/ { next }

$1 == "bug" {
    finish()
    now = $2 + 0
    edits = 0
    split("", has)
    next
}

/^-/ { old[++edits] = text_of($0); new[edits] = ""; plus = 0; next }
/^\+/ { new[edits] = new[edits] (plus++ ? "\n" : "") text_of($0); next }

/^ / {
    if (show == field && bug == now) { sub(/^ +/, ""); print }
    next
}

{
    field = $1
    has[field] = 1
    rest = substr($0, length($1) + 2)
    if (field == "file") file = rest
    if (!(field in need) && field != "train") complain("what is `" field "`?")
    if (show == field && bug == now) print rest
    if (show == field && !bug) print now, rest
}

END {
    finish()
    if (show == "" && !bug && !failed) print count
    if (bug > count) { print "there are " count " bugs; there is no bug " bug; failed = 1 }
    if (bug && out != "" && !failed) {
        split("rl.c train_gpt.c", name, " ")
        for (f = 1; f <= 2; f++) {
            for (i = 1; i <= lines[name[f]]; i++) print source[name[f], i] > (out "/" name[f])
            close(out "/" name[f])
        }
    }
    exit failed
}
