// all.c - the tests in single precision: one program, which compiles rl.c once. A part is a file of its own,
// with one entry test_NAME(); to add one, write two lines here.
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
    {"worksheet", test_worksheet},
    {"chapter_01", test_chapter_01},
    {"chapter_02", test_chapter_02},
    {"chapter_03", test_chapter_03},
    {"chapter_04", test_chapter_04},
    {"chapter_05", test_chapter_05},
    {"chapter_06", test_chapter_06},
    {"chapter_07", test_chapter_07},
    {"chapter_08", test_chapter_08},
    {"chapter_09", test_chapter_09},
    {"chapter_10", test_chapter_10},
    {"chapter_11", test_chapter_11},
    {"chapter_12", test_chapter_12},
    {"methods", test_methods},
    {"trace", test_trace},
    {"model", test_model},
    {"answers", test_answers},
    {"real", test_real},
    {"grade", test_grade},
    {"chain", test_chain},
    {"lessons", test_lessons},
    {"experiments", test_experiments},
    {"evaluation", test_evaluation},
    {"ledger", test_ledger},
    {"golden", test_golden},
    {"commands", test_commands},
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
