# bugs.awk - reads tests/zoo/bugs.txt. Every `-` text must be found exactly once in its file.
#
#   awk -f bugs.awk bugs.txt                         checks all bugs: complaints, or how many bugs there are
#   awk -v bug=12 -v out=DIR -f bugs.awk bugs.txt    writes DIR/rl.c and DIR/train_gpt.c with bug 12
#   awk -v bug=12 -v show=story -f bugs.awk bugs.txt prints a field of bug 12
#   awk -v show=chapter -f bugs.awk bugs.txt         number and field of all bugs

function complain(text) { print "bug " count ": " text; failed = 1 }

BEGIN {
    RS = "\001"                                                   # each source in one piece
    for (i = split("rl.c train_gpt.c", names, " "); i > 0; i--) getline source[names[i]] < names[i]
    RS = ""                                                       # a bug is a paragraph
    FS = "\n"
}

/^#/ { next }
{
    if ($1 !~ "^bug " ++count " [(].*, .*; .*[)]: .") complain("not its number, or not the form: " $1)
    split("", value)
    edits = 0
    at = index($1, "): ")
    split(substr($1, index($1, "(") + 1, at - index($1, "(") - 1), part, /[,;] /)
    value["title"] = substr($1, at + 3)
    value["place"] = part[1] == "model" ? "train_gpt.c" : part[1]
    value["chapter"] = part[1]
    sub(/^chapter /, "", value["chapter"])
    value["file"] = part[2]
    value["test"] = part[3]
    for (i = 2; i <= NF; i++) {
        word = $i
        sub(/ .*/, "", word)
        text = substr($i, length(word) + 2)
        if (word == "-") { old[++edits] = text; new[edits] = plus = "" }
        else if (word == "+") { new[edits] = new[edits] plus text; plus = "\n" }
        else if (word == "") { sub(/^ +/, "", text); value[field] = value[field] "\n" text }
        else if (word !~ /^(train|symptom|story)$/) complain("what is `" word "`?")
        else value[field = word] = text
    }
    if (value["symptom"] == "" || value["story"] == "" || !edits) complain("it has no edit, symptom or story")
    if (show != "" && (!bug || bug == count) && value[show] != "") print (bug ? "" : count " ") value[show]
    if (show != "" || (bug && bug != count)) next
    for (e = 1; e <= edits; e++) {
        text = source[part[2]]
        at = index(text, old[e])
        if (!at || index(substr(text, at + 1), old[e])) complain("not exactly once in " part[2] ": " old[e])
        if (!bug || failed) continue
        last = split(substr(text, 1, at - 1), line, "\n")
        match(line[last], /^ */)
        gsub("\n", "\n" substr(line[last], 1, RLENGTH), new[e])    # further lines begin below the first
        source[part[2]] = substr(text, 1, at - 1) new[e] substr(text, at + length(old[e]))
    }
}

END {
    if (show == "" && !bug && !failed) print count
    if (out != "" && !failed) for (i in names) printf "%s", source[names[i]] > (out "/" names[i])
    exit failed
}
