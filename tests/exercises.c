/* Exercises: the checker of `make ex` names the slip, and never a wrong one. rl.c's own function gives the
 * numbers worked by hand; each slip gives that of its row, can not be confused with another, and is diagnosed
 * as itself. Then the ways to fail that are no slips.
 */
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE
#include "check.h"
#include "exercises/check.h"
#include "exercises/table.h"
#include "exercises/message.h"

static const char* program;                // this one, as it was called

// Compares what came out of a case with numbers as they are printed, "-0.6832 0.25": half a unit of the 4th
// decimal and what a float loses (exercise 6 has a float of 1000, exact to 3e-5, hence its own tolerance).
// all = as many as there are, not only the first.
static int equals_printed(const Exercise* e, const Report* r, int at, const char* text, int all) {
    int i = 0, equal = *text != 0;
    for (char* end; i < r->count && equal && (*text || all); i++) {
        if (r->output[i].at != at) continue;
        double value = r->output[i].value, x = strtod(text, &end);
        double room = 0.5e-4 + e->tolerance + 1e-7 * (1.0 + fabs(x));
        equal = end > text && (same_number(value, x, 0.0) || fabs(value - x) <= room);
        text = end + strspn(end, " ");
    }
    return equal && !*text;
}

static void report_on(const Exercise* e, const char* what, const char* detail) {
    printf("  %s: %s (%s)\n", e->name, what, detail);
    check_broken++;
}

// rl.c's own function gives the examples. Each slip shows on an example and gives its number there. Between
// any two of them lie a hundred times the tolerance, so that rounding can not take one for the other.
static void test_values_by_hand(void) {
    static Report report[16];                                // what is right, then the slips
    for (int i = 0; i < EXERCISES; i++) {
        Exercise e = exercises[i], wide = e;
        wide.tolerance *= 100.0;
        run_cases(report, &e, e.solution);
        for (int k = 0; k < example_count(&e); k++)
            if (!equals_printed(&e, report, k, e.example[k].right, 1))
                report_on(&e, "the example by hand is not what rl.c gives", e.example[k].right);
        for (int s = 1; s == 1 || s <= slip.count; s++) {
            run_slip(&report[s], &e, s - 1);
            int first = first_different(&e, &report[s], report);
            int at = first < 0 ? CASES : report->output[first].at;
            if (at >= example_count(&e)) report_on(&e, "the slip does not show on an example", slip.what);
            else if (!equals_printed(&e, &report[s], at, slip.value, 0))
                report_on(&e, "the slip does not give its number", slip.value);
            if (report[s].damage) report_on(&e, "the slip writes where it must not", slip.what);
            for (int b = 0; b < s; b++)
                if (first_different(&wide, &report[s], &report[b]) < 0)
                    report_on(&e, "can not be told apart from another row", slip.what);
        }
    }
}

static void test_every_slip_is_diagnosed_as_itself(void) {
    static Verdict v;
    int slips = 0;
    for (const Exercise* e = exercises; e < exercises + EXERCISES; e++) {
        int s = 0;
        do {
            slip.asked = s;
            judge(&v, e, e->slips);
            if (v.state != WRONG || v.slip != s) report_on(e, "a slip is not diagnosed as itself", slip.what);
        } while (++s < slip.count);
        if (s < 5) report_on(e, "has few slips", e->function);
        slips += s;
    }
    printf("  %d exercises, %d slips\n", EXERCISES, slips);
    CHECK(EXERCISES >= 28 && slips >= 245);
}

// ---- ways to fail that are no slips

#define BAD(name, ...) static void name(float* adv, const float* reward, int K) { __VA_ARGS__ }
BAD(endless, for (volatile int k = 0; k < K; k = 0) adv[k] = reward[k];)
BAD(null_pointer,
    volatile float* const nowhere = NULL;
    for (int k = 0; k < K; k++) nowhere[k] = reward[k];)
BAD(exits, exit(0);)
BAD(writes_outside,
    my_centered(adv, reward, K);
    adv[K] = 0.0f;)
BAD(changes_input,
    my_centered(adv, reward, K);
    ((float*)(intptr_t)(const void*)reward)[1] = 7.0f;)
BAD(untouched, )
BAD(all_but_the_last, for (int k = 0; k + 1 < K; k++) adv[k] = (float)(reward[k] - total(reward, K) / K);)
BAD(added, for (int k = 0; k < K; k++) adv[k] += reward[k];)
BAD(example_only, for (int k = 0; k < K; k++) adv[k] = reward[k] - 0.1875f;)
BAD(reads_outside,
    double sum = 0.0;
    for (volatile int k = 0; k <= K; k++) sum += reward[k];
    for (int k = 0; k < K; k++) adv[k] = (float)(reward[k] - sum / K);)
BAD(much_memory,
    volatile char* block = malloc((size_t)3 << 30);
    for (size_t i = 0; i < (size_t)3 << 30; i += 4096) block[i] = 1;
    my_centered(adv, reward, K);)
static double nothing(double p, int K) { return NAN; }
static int no_index(const float* reward, int n) { return INT_MIN; }

// Wrong in ways that no list has, each near to a slip: two slips at once, a constant, a guard that cuts. No
// diagnosis, rather than a wrong one.
static double odd_held(double chosen, double rejected) { return softplus(-fmax(chosen - rejected, -50.0)); }
static double odd_fourth_power(double p, int K) { return pow(p, 4) + pow(1.0 - p, 4); }
static double odd_mean_added(float r, const float* kl, const int* mask, int n, float beta) {
    return r + beta * sum_of(kl, mask, n, SKIP) / ones_in(mask, n);
}
BAD(odd_running_mean, for (int k = 0; k < K; k++) adv[k] = (float)(reward[k] - total(reward, k + 1) / K);)
static void odd_absolute(double* k, double logp, double logp_ref) {
    my_kl(k, logp, logp_ref);
    k[0] = fabs(k[0]);
}
static void odd_nearly(float* reward, const char* const* response, int K, double truth) {
    for (int k = 0; k < K; k++) {
        const char* last = after_last(response[k], "####");
        reward[k] = last && fabs(number_at(last) - truth) < 1.0;
    }
}

static void test_failures_that_are_no_slips(void) {
#define FAILURE(name, function, state) {"my_" #name, BIND(my_##name, function), state}
    static const struct { const char* name; Fn fn; State state; } failures[] = {
        FAILURE(centered, endless, ENDLESS), FAILURE(centered, null_pointer, CRASHED),
        FAILURE(centered, exits, ENDED), FAILURE(centered, untouched, TO_DO),
        FAILURE(centered, writes_outside, WROTE_OUTSIDE), FAILURE(centered, reads_outside, READ_OUTSIDE),
        FAILURE(centered, changes_input, CHANGED_INPUT), FAILURE(centered, all_but_the_last, UNSET),
        FAILURE(centered, added, UNSET), FAILURE(centered, example_only, WRONG),
        FAILURE(zero_variance_odds, nothing, TO_DO), FAILURE(best_of_n, no_index, TO_DO),
        {"my_centered", NULL, MISSING},
#ifndef SANITIZED
        FAILURE(centered, much_memory, CRASHED),
#endif
        FAILURE(reward_model_loss, odd_held, WRONG), FAILURE(zero_variance_odds, odd_fourth_power, WRONG),
        FAILURE(penalized_reward, odd_mean_added, WRONG), FAILURE(centered, odd_running_mean, WRONG),
        FAILURE(kl, odd_absolute, WRONG), FAILURE(hash_rewards, odd_nearly, WRONG)};
    static Verdict v;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        const Exercise* e = exercises;
        while (strcmp(e->function, failures[i].name)) e++;
        judge(&v, e, failures[i].fn);
        const char* expected = states[failures[i].state].word;
        if (v.state != failures[i].state) report_on(e, "another failure than", expected);
        if (v.slip >= 0) report_on(e, "a wrong diagnosis", v.what);
    }
}

// ---- what is printed, and the file that students get

// Every message of every slip, for the test below (and for a person: ./build/exercises messages).
static int print_all_messages(void) {
    static Verdict v;
    for (int i = 0; i < EXERCISES; i++) {
        const Exercise* e = &exercises[i];
        judge(&v, e, NULL);
        for (int s = -1; s < 1 || s < slip.count; s++) {
            if (s >= 0) {                                    // without a process for each
                run_slip(&v.report, e, s);
                v.output = first_different(e, &v.report, &v.right);
                v.at = v.right.output[v.output].at;
                v.state = WRONG;
                v.slip = s;
                v.what = slip.what;
            }
            print_message(i + 1, e, &v, "docs/exercises.c", 1);
            print_row(i + 1, e, &v);
        }
    }
    return 0;
}

// The last line that a command prints; good until the next call.
static const char* last_line(const char* command) {
    static char line[1024];
    FILE* pipe = popen(command, "r");
    for (*line = 0; pipe && fgets(line, sizeof line, pipe);) line[strcspn(line, "\n")] = 0;
    if (pipe) pclose(pipe);
    return line;
}

// None is wider than a terminal of 80 columns (where a Chinese character, of three bytes, takes two).
static void test_messages_fit_80_columns(void) {
    char command[512];
    snprintf(command, sizeof command, "LC_ALL=C; export LC_ALL; %s messages | awk '"
             "NR > 1000 { many = 1 } { n = length($0) } "
             "{ n += gsub(/[\343-\357]/, \"&\") - gsub(/[\200-\277]/, \"&\") } "
             "n > 80 && substr($0, 13) ~ / / { wide = \"too wide: \" $0 } "
             "END { print (wide != \"\" ? wide : many ? \"none is too wide\" : \"few lines\") }'", program);
    CHECK_TEXT(last_line(command), "none is too wide");
}

// Each exercise of the table has its skeleton, in order: number, a statement in Chinese too, an example, and
// right behind them the function.
static void test_skeletons_agree_with_the_table(void) {
    Line table = "";
    for (int i = 0; i < EXERCISES; i++) add(table, "%d. %s ", i + 1, exercises[i].function);
    CHECK_TEXT(last_line("LC_ALL=C awk '/^.. ---- 29/ { exit } "
               "/^.. ---- / { title = $3; example = chinese = 0 } /Example/ { example = 1 } "
               "{ chinese += gsub(/[\344-\351]/, \"\") } "
               "end && !example { title = title \" no example \" } "
               "end && chinese < 10 { title = title \" no Chinese \" } "
               "end && match($0, / my_[a-z_0-9]+\\(/) { printf \"%s%s \", title, "
               "substr($0, RSTART, RLENGTH - 1) } "
               "{ end = $0 == \" */\" }' docs/exercises.c"), table);
}

// The whole way, as `make ex` goes it: compile, load, check.
static void test_the_students_loop(void) {
    static const char* const loop[][2] = {
        {"MY=docs/exercises.c ALL=1", "0 of 28 right"},
        {"SOLUTION=1 ALL=1", "28 of 28 right"},
        {"MY=docs/exercises.c N=99", "there is no exercise 99: they are numbered 1 to 31"},
        {"MY=build/nowhere.c", "there is no file build/nowhere.c"},
        {"MY=docs/exercises.c N=7", "  read      rl.c chapter 3, \"The shift\"; D3 section 3"}};
    char command[256];
    for (size_t i = 0; i < sizeof loop / sizeof *loop; i++) {
        snprintf(command, sizeof command, "%s sh tests/exercises/run.sh 2>&1", loop[i][0]);
        CHECK_TEXT(last_line(command), loop[i][1]);
    }
}

// The open exercises train for minutes, which no test does; but what they take from rl.c must be there.
static void test_the_open_exercises_still_fit_rl(void) {
    CHECK_TEXT(last_line("${CC:-cc} -std=c11 -fsyntax-only tests/exercises/open.c 2>&1"), "");
}

int main(int argc, char** argv) {
    program = argv[0];
    if (argc > 1) return print_all_messages();
    RUN_ALL(TEST(test_values_by_hand), TEST(test_every_slip_is_diagnosed_as_itself),
            TEST(test_failures_that_are_no_slips), TEST(test_messages_fit_80_columns),
            TEST(test_skeletons_agree_with_the_table),
            TEST(test_the_open_exercises_still_fit_rl), TEST(test_the_students_loop));
    return check_failed != 0;
}
