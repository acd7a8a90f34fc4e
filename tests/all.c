// all.c - the tests in single precision: one program, which compiles rl.c once. A part is a file of its own,
// with one entry test_NAME(); to add one, name it here twice and, unless it is a
// chapter, among the PARTS of the Makefile.
#include "commands.h"
#include "parts.h"
#include "runs.h"
#include "reference.h"
#include "proofs.h"
#include "golden.h"
#include "worksheet.c"
#include "chapter_01.c"
#include "chapter_02.c"
#include "chapter_03.c"
#include "chapter_04.c"
#include "chapter_05.c"
#include "chapter_06.c"
#include "chapter_07.c"
#include "chapter_08.c"
#include "chapter_09.c"
#include "chapter_10.c"
#include "chapter_11.c"
#include "chapter_12.c"
#include "methods.c"
#include "trace.c"
#include "model.c"
#include "answers.c"
#include "real.c"
#include "grade.c"
#include "chain.c"
#include "lessons.c"
#include "experiments.c"
#include "evaluation.c"
#include "ledger.c"
#include "golden.c"
#include "commands.c"

static const Part parts[] = {
    PART(worksheet), PART(chapter_01), PART(chapter_02), PART(chapter_03), PART(chapter_04),
    PART(chapter_05), PART(chapter_06), PART(chapter_07), PART(chapter_08), PART(chapter_09),
    PART(chapter_10), PART(chapter_11), PART(chapter_12), PART(methods), PART(trace), PART(model),
    PART(answers), PART(real), PART(grade), PART(chain), PART(lessons), PART(experiments),
    PART(evaluation), PART(ledger), PART(golden), PART(commands),
};

// `make golden`: all that a person reads in the diff before it is committed.
static int write_golden(void) {
    write_lessons();
    write_document();
    return write_claims();
}

int main(int argc, char** argv) {
    signal(SIGINT, SIG_DFL);         // a shell that runs the tests in the background ignores it
    watch_signals();                 // as the program's main() does
    if (argc == 2 && !strcmp(argv[1], "--write")) return write_golden();
    return run_parts(parts, (int)(sizeof parts / sizeof *parts), argc, argv);
}
