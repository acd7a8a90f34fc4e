#!/bin/sh
# The page docs/c-for-python.md: its Python blocks, put together, run with the library of chapter functions
# and print what its text blocks say. The library is built apart, as `make lib` does, without sanitizers
# and threads, which python could not load.
page=docs/c-for-python.md
if ! command -v python3 >/dev/null 2>&1 || ! python3 -c 'import ctypes, math; math.comb' 2>/dev/null; then
    echo "skip python: no python3 (3.8 or later) here"
    exit 0
fi
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

block() { awk -v start="\`\`\`$1" '$0 == start { on = 1; next } $0 == "```" { on = 0 } on' "$page"; }
block python > "$dir/page.py"
block text > "$dir/expected"

fail() {
    cat "$dir/log"
    echo "FAIL $1"
    exit 1
}
${CC:-cc} -std=c11 -O1 -ffp-contract=fast -Wno-unused-function -Wno-unknown-pragmas \
    -DRL_NO_MAIN -shared -fPIC -o "$dir/librl.so" rl.c -lm > "$dir/log" 2>&1 ||
    fail "python_library: the library does not compile"
[ -s "$dir/page.py" ] && [ -s "$dir/expected" ] || fail "python_page: no blocks in $page"
(cd "$dir" && python3 page.py > printed 2> log) || fail "python_page: the blocks of $page do not run"
diff "$dir/expected" "$dir/printed" > "$dir/log" || fail "python_page: < the page says, > its blocks print"
echo "ok   python_page: the blocks of $page print what it says"
