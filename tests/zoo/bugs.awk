# bugs.awk - reads tests/zoo/bugs.txt. Every `-` text must be found exactly once in its file.
#
#   awk -f bugs.awk bugs.txt                         checks all bugs: complaints, then how many bugs there are
#   awk -v bug=12 -v out=DIR -f bugs.awk bugs.txt    writes DIR/rl.c and DIR/train_gpt.c with bug 12
#   awk -v bug=12 -v show=story -f bugs.awk bugs.txt prints a field of bug 12
#   awk -v show=chapter -f bugs.awk bugs.txt         number and field of all bugs
#
# The exit status is 1 after a complaint.

function complain(text) { print "bug " now ": " text; failed = 1 }

function read_source(name,    line) {
    if (name in lines) return
    lines[name] = 0
    while ((getline line < name) > 0) source[name, ++lines[name]] = line
    if (!lines[name]) complain("there is no file " name)
}

# The line and the column of the only place where the text is; 0 after a complaint.
function find(name, text,    i, at, found) {
    for (i = 1; i <= lines[name]; i++) {
        if ((at = index(source[name, i], text)) == 0) continue
        found += 1 + (index(substr(source[name, i], at + 1), text) > 0)
        line_of = i
        column = at
    }
    if (found != 1) complain("found " found + 0 " times in " name ": " text)
    return found == 1
}

# The bug that has just been read.
function finish(    e, i, line) {
    if (!now) return
    if (now != ++count) complain("its number should be " count)
    for (i in need) if (value[i] == "") complain("it has no `" i "`")
    if (!edits) complain("it edits nothing")
    if (show != "" && (!bug || bug == now) && value[show] != "") print (bug ? "" : now " ") value[show]
    if (show != "" || (bug && bug != now)) return
    name = value["file"]
    read_source("rl.c")
    read_source("train_gpt.c")
    for (e = 1; e <= edits; e++) {
        if (!find(name, old[e]) || !bug) continue
        line = source[name, line_of]
        match(line, /^ */)
        gsub("\n", "\n" substr(line, 1, RLENGTH), new[e])         # further lines begin below the first
        source[name, line_of] = substr(line, 1, column - 1) new[e] substr(line, column + length(old[e]))
    }
}

BEGIN {
    split("chapter title file test symptom story", words, " ")
    for (i in words) need[words[i]] = 1
}

/^#/ || /^$/ { next }
/^bug [0-9]+ \(/ {
    finish()
    now = $2 + 0
    edits = 0
    split("", value)
    at = index($0, "): ")
    split(substr($0, index($0, "(") + 1, at - index($0, "(") - 1), part, /[,;] /)
    value["title"] = substr($0, at + 3)
    value["chapter"] = part[1]
    value["place"] = part[1] == "model" ? "train_gpt.c" : part[1]
    sub(/^chapter /, "", value["chapter"])
    value["file"] = part[2]
    value["test"] = part[3]
    next
}
/^-/ { old[++edits] = substr($0, 3); new[edits] = ""; plus = 0; next }
/^\+/ { new[edits] = new[edits] (plus++ ? "\n" : "") substr($0, 3); next }
/^ / { sub(/^ +/, ""); value[field] = value[field] "\n" $0; next }
{
    field = $1
    if (field !~ /^(train|symptom|story)$/) complain("what is `" field "`?")
    value[field] = substr($0, length(field) + 2)
}

END {
    finish()
    if (show == "" && !bug && !failed) print count
    if (bug > count) complain("there are " count " bugs; there is no bug " bug)
    if (bug && out != "" && !failed)
        for (name in lines) for (i = 1; i <= lines[name]; i++) print source[name, i] > (out "/" name)
    exit failed
}
