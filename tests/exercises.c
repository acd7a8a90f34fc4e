/* Exercises: the checker of `make ex` names the slip, and never a wrong one.
 *
 * For each exercise: rl.c's own function gives the numbers worked by hand, every slip gives the number that
 * the table says, no two of them can be confused, and each slip, run as a submission, is diagnosed as itself.
 * Then the ways to fail that are no slips.
 */
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE
#include "check.h"
#include "exercises/check.h"
#include "exercises/table.h"
#include "exercises/message.h"

// Compares an outcome with numbers as they are printed, "-0.6832 0.25": half a unit of the fourth decimal,
// and what a float loses (exercise 6 has a float of 1000, exact to 3e-5, hence its own tolerance). all = as
// many as there are, not only the first.
static int equals_printed(const Exercise* e, const Outcome* o, const char* text, int all) {
    int i = 0;
    for (char* end; *text; text = end, i++) {
        double x = strtod(text, &end), room = 0.5e-4 + e->tolerance + 1e-7 * (1.0 + fabs(x));
        if (end == text || i >= o->count || !(same_number(o->out[i], x, 0.0) || fabs(o->out[i] - x) <= room))
            return 0;
        while (*end == ' ') end++;
    }
    return i > 0 && (!all || i == o->count);
}

static void report_on(const Exercise* e, const char* what, const char* detail) {
    printf("  %s: %s (%s)\n", e->name, what, detail);
    check_broken++;
}

static void test_right_values_by_hand(void) {
    for (int i = 0; i < EXERCISES; i++) {
        const Exercise* e = &exercises[i];
        static Verdict v;
        judge(&v, e, e->solution);
        if (v.state != RIGHT) report_on(e, "rl.c's own function is not right", state_words[v.state]);
        for (int k = 0; k < example_count(e); k++)
            if (!equals_printed(e, &v.right.outcome[k], e->example[k].right, 1))
                report_on(e, "the example by hand is not what rl.c gives", e->example[k].right);
    }
    CHECK(EXERCISES >= 28);
}

static void test_slip_values_by_hand(void) {
    for (int i = 0; i < EXERCISES; i++) {
        const Exercise* e = &exercises[i];
        static Report right, slip;
        memset(&right, 0, sizeof right);
        run_cases(&right, e, e->solution);
        for (int s = 0; s < SLIPS && e->slip[s].function; s++) {
            int output;
            memset(&slip, 0, sizeof slip);
            run_cases(&slip, e, e->slip[s].function);
            int at = first_different_case(&output, e, &slip, &right);
            if (at < 0 || at >= example_count(e))
                report_on(e, "the slip does not show on an example", e->slip[s].what);
            else if (!equals_printed(e, &slip.outcome[at], e->slip[s].value, 0))
                report_on(e, "the slip does not give its number", e->slip[s].value);
            if (slip.damage) report_on(e, "the slip writes where it must not", e->slip[s].what);
        }
    }
}

// A hundred times the tolerance between any two rows, so that rounding can not take one for the other.
static void test_slips_are_apart(void) {
    for (int i = 0; i < EXERCISES; i++) {
        Exercise e = exercises[i];
        static Report report[SLIPS + 1];
        int n = 0, output;
        e.tolerance = 100.0 * tolerance_of(&e);
        memset(report, 0, sizeof report);
        run_cases(&report[n++], &e, e.solution);
        for (int s = 0; s < SLIPS && e.slip[s].function; s++) run_cases(&report[n++], &e, e.slip[s].function);
        for (int a = 0; a < n; a++)
            for (int b = 0; b < a; b++)
                if (first_different_case(&output, &e, &report[a], &report[b]) < 0)
                    report_on(&e, "can not be told apart from another row", e.slip[a - 1].what);
    }
}

static void test_every_slip_is_diagnosed_as_itself(void) {
    int slips = 0;
    for (int i = 0; i < EXERCISES; i++) {
        const Exercise* e = &exercises[i];
        int own = 0;
        for (int s = 0; s < SLIPS && e->slip[s].function; s++, slips++, own++) {
            static Verdict v;
            judge(&v, e, e->slip[s].function);
            if (v.state != WRONG || v.slip != s)
                report_on(e, "a slip is not diagnosed as itself", e->slip[s].what);
        }
        if (own < 5) report_on(e, "has few slips", e->function);
    }
    printf("  %d exercises, %d slips\n", EXERCISES, slips);
}

// ---- ways to fail that are no slips

static const Exercise* exercise_named(const char* function) {
    for (int i = 0; i < EXERCISES; i++)
        if (!strcmp(exercises[i].function, function)) return &exercises[i];
    return NULL;
}

static State state_of(const char* function, Fn fn) {
    static Verdict v;
    judge(&v, exercise_named(function), fn);
    return v.state;
}

#define BAD(name, ...) static void name(float* adv, const float* reward, int K) { __VA_ARGS__ }
BAD(bad_loop, for (volatile int k = 0; k < K; k = 0) adv[k] = reward[k];)
BAD(bad_pointer,
    volatile float* const nowhere = NULL;
    for (int k = 0; k < K; k++) nowhere[k] = reward[k];)
BAD(bad_exit, exit(0);)
BAD(bad_write,
    sol_centered(adv, reward, K);
    adv[K] = 0.0f;)
BAD(bad_input,
    sol_centered(adv, reward, K);
    ((float*)(intptr_t)(const void*)reward)[1] = 7.0f;)
BAD(bad_untouched, )
BAD(bad_last, for (int k = 0; k + 1 < K; k++) adv[k] = (float)(reward[k] - total(reward, K) / K);)
BAD(bad_added, for (int k = 0; k < K; k++) adv[k] += reward[k];)
BAD(bad_example_only, for (int k = 0; k < K; k++) adv[k] = reward[k] - 0.1875f;)
static void bad_read(float* adv, const float* reward, int K) {
    double sum = 0.0;
    for (volatile int k = 0; k <= K; k++) sum += reward[k];
    for (int k = 0; k < K; k++) adv[k] = (float)(reward[k] - sum / K);
}
static void bad_memory(float* adv, const float* reward, int K) {
    volatile char* block = malloc((size_t)3 << 30);
    for (size_t i = 0; i < (size_t)3 << 30; i += 4096) block[i] = 1;
    sol_centered(adv, reward, K);
}
static double bad_nothing(double p, int K) { return NAN; }
static int bad_no_index(const float* reward, int n) { return INT_MIN; }

static void test_failures_that_are_no_slips(void) {
    static const struct { Fn fn; State state; } bad[] = {
        {S(bad_loop), ENDLESS}, {S(bad_pointer), CRASHED}, {S(bad_exit), ENDED},
        {S(bad_write), WROTE_OUTSIDE}, {S(bad_input), CHANGED_INPUT}, {S(bad_untouched), TO_DO},
        {S(bad_last), UNSET}, {S(bad_added), UNSET}, {S(bad_read), READ_OUTSIDE},
        {S(bad_example_only), WRONG}, {NULL, MISSING}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (state_of("my_centered", bad[i].fn) == bad[i].state) continue;
        report_on(exercise_named("my_centered"), "another failure than expected", state_words[bad[i].state]);
    }
    CHECK(state_of("my_zero_variance_odds", S(bad_nothing)) == TO_DO);
    CHECK(state_of("my_best_of_n", S(bad_no_index)) == TO_DO);
#ifndef SANITIZED
    CHECK(state_of("my_centered", S(bad_memory)) == CRASHED);
#endif
}

// Wrong in ways that no table has, each near to a slip: two slips at once, a constant, a guard that cuts. No
// diagnosis, rather than a wrong one.
PAIR(odd_held, softplus(-fmax(d, -50.0)))
DPO(odd_swapped_without_reference, softplus(beta * (w - l)))
GIVES(odd_fourth_power, ODDS, pow(p, 4) + pow(1.0 - p, 4))
static void odd_mean_deviation(float* adv, const float* r, int K, float eps) {
    double spread = 0.0, mean = total(r, K) / K;
    for (int k = 0; k < K; k++) spread += fabs(r[k] - mean) / K;
    for (int k = 0; k < K; k++) adv[k] = spread == 0.0 ? 0.0f : (float)((r[k] - mean) / (spread + eps));
}
PENALTY(odd_mean_added, SKIP, r + beta * sum / count)
static void odd_running_mean(float* adv, const float* r, int K) {
    double mean = 0.0;
    for (int k = 0; k < K; k++) {
        mean += r[k] / K;
        adv[k] = (float)(r[k] - mean);
    }
}
GIVES(odd_mean_without_mask, ANSWER, answer_no_mask(z, ids, mask, T, V) / (T - 1))
static void odd_absolute(double* k, double logp, double logp_ref) {
    sol_kl(k, logp, logp_ref);
    k[0] = fabs(k[0]);
}
PRODUCT(odd_right_for_wrong, (double)(c - i) / (n - i))
CLIP(odd_clip, cut == ratio ? right_slope : 0.0, right_loss)
FILLS(odd_behind_the_last, STEPS, n, t > 0 && mask[t - 1] && !mask[t] ? verdict : 0.0f)
static void odd_smallest_subtracted SOFTMAX {
    double low = z[0], sum = 0.0;
    for (int i = 1; i < V; i++) low = fmin(low, z[i]);
    for (int i = 0; i < V; i++) sum += exp(z[i] - low);
    for (int i = 0; i < V; i++) out[i] = (float)(z[i] - low - log(sum));
}
HASH(odd_nearly, last && fabs(number_at(last) - truth) < 1.0)
HASH(odd_none_is_0, (last ? number_at(last) : 0.0) == truth)

static void test_no_wrong_diagnosis(void) {
    static const struct { const char* function; Fn fn;
    } odd[] = {{"my_reward_model_loss", S(odd_held)},
               {"my_dpo", S(odd_swapped_without_reference)},
               {"my_zero_variance_odds", S(odd_fourth_power)},
               {"my_grpo", S(odd_mean_deviation)},
               {"my_penalized_reward", S(odd_mean_added)},
               {"my_centered", S(odd_running_mean)},
               {"my_answer_logprob", S(odd_mean_without_mask)},
               {"my_kl", S(odd_absolute)},
               {"my_pass_at_k", S(odd_right_for_wrong)},
               {"my_clip", S(odd_clip)},
               {"my_step_rewards", S(odd_behind_the_last)},
               {"my_log_softmax", S(odd_smallest_subtracted)},
               {"my_hash_rewards", S(odd_nearly)},
               {"my_hash_rewards", S(odd_none_is_0)}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        static Verdict v;
        judge(&v, exercise_named(odd[i].function), odd[i].fn);
        CHECK(v.state == WRONG);
        if (v.slip >= 0)
            report_on(exercise_named(odd[i].function), "a wrong diagnosis",
                      exercise_named(odd[i].function)->slip[v.slip].what);
    }
}

// ---- what is printed, and the file that students get

// Every message of every slip, caught in a file: none is wider than a terminal of 80 columns.
static void test_messages_fit_80_columns(void) {
    FILE* file = tmpfile();
    char line[1024];
    int lines = 0;
    CHECK(file != NULL);
    if (!file) return;
    fflush(stdout);
    int kept = dup(1);
    dup2(fileno(file), 1);
    for (int i = 0; i < EXERCISES; i++)
        for (int s = -1; s < SLIPS && (s < 0 || exercises[i].slip[s].function); s++) {
            static Verdict v;
            judge(&v, &exercises[i], NULL);
            if (s >= 0) {                                    // without a process for each
                run_cases(&v.report, &exercises[i], exercises[i].slip[s].function);
                v.at = first_different_case(&v.output, &exercises[i], &v.report, &v.right);
                v.state = WRONG;
                v.slip = s;
            }
            print_message(i + 1, &exercises[i], &v, "docs/exercises.c", 1);
            print_row(i + 1, &exercises[i], &v);
        }
    fflush(stdout);
    dup2(kept, 1);
    close(kept);
    rewind(file);
    while (fgets(line, sizeof line, file)) {
        lines++;
        line[strcspn(line, "\n")] = 0;
        if (width_of(line, strlen(line)) > COLUMNS && strchr(line + INDENT, ' ')) {
            printf("  too wide: %s\n", line);
            check_broken++;
        }
    }
    CHECK(lines > 1000);
    fclose(file);
}

// Each exercise of the table has its skeleton: the number, the name, the place to read, an English and a
// Chinese statement.
static void test_skeletons_agree_with_the_table(void) {
    static char text[1 << 16];
    FILE* file = fopen("docs/exercises.c", "rb");
    CHECK(file != NULL);
    if (!file) return;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    const char* at = text;
    for (int i = 0; i < EXERCISES; i++) {
        char title[128];
        const Exercise* e = &exercises[i];
        snprintf(title, sizeof title, "/* ---- %d. ", i + 1);
        at = strstr(at, title);
        if (!at) {
            report_on(e, "has no skeleton", title);
            return;
        }
        const char *end = strstr(at, "*/"), *function = strstr(at, e->function),
                   *example = strstr(at, "Example");
        if (!end || !function || function < end || function - end > 20)
            report_on(e, "the skeleton's function", e->function);
        if (!example || example > end) report_on(e, "the skeleton has no example", e->function);
        int chinese = 0;
        for (const char* p = at; end && p < end; p++)
            chinese += (unsigned char)*p >= 0xE4 && (unsigned char)*p <= 0xE9;
        if (chinese < 10) report_on(e, "the skeleton has no Chinese statement", e->function);
    }
}

static int run_lines(char* last, size_t size, const char* command) {
    char line[1024] = "";
    FILE* pipe = popen(command, "r");
    int lines = 0;
    while (pipe && fgets(line, sizeof line, pipe)) lines++;
    line[strcspn(line, "\n")] = 0;
    snprintf(last, size, "%s", line);
    if (pipe) pclose(pipe);
    return lines;
}

// The whole way, as `make ex` goes it: compile, load, check.
static void test_the_students_loop(void) {
    char last[256];
    run_lines(last, sizeof last, "MY=docs/exercises.c ALL=1 sh tests/exercises/run.sh 2>&1");
    CHECK_TEXT(last, "0 of 28 right");
    run_lines(last, sizeof last, "SOLUTION=1 ALL=1 sh tests/exercises/run.sh 2>&1");
    CHECK_TEXT(last, "28 of 28 right");
    CHECK(run_lines(last, sizeof last, "MY=docs/exercises.c N=7 sh tests/exercises/run.sh 2>&1") > 4);
    run_lines(last, sizeof last, "MY=docs/exercises.c N=99 sh tests/exercises/run.sh 2>&1");
    CHECK_TEXT(last, "there is no exercise 99: they are numbered 1 to 31");
    run_lines(last, sizeof last, "MY=build/nowhere.c sh tests/exercises/run.sh 2>&1");
    CHECK_TEXT(last, "there is no file build/nowhere.c");
}

// The open exercises train for minutes, which no test does; but what they take from rl.c must be there.
static void test_the_open_exercises_still_fit_rl(void) {
    char last[256];
    int lines =
        run_lines(last, sizeof last, "${CC:-cc} -std=c11 -fsyntax-only -w tests/exercises/open.c 2>&1");
    if (lines) printf("  %s\n", last);
    CHECK(lines == 0);
}

// "chapter 7, advantages_rloo()": the function that a message sends to is in the book.
static void test_functions_to_read_exist(void) {
    char name[64], command[160], last[256];
    for (int i = 0; i < EXERCISES; i++)
        for (const char *p = exercises[i].read, *end; (end = strstr(p, "()")); p = end + 2) {
            const char* start = end;
            while (start > p && (isalnum((unsigned char)start[-1]) || start[-1] == '_')) start--;
            snprintf(name, sizeof name, "%.*s", (int)(end - start), start);
            snprintf(command, sizeof command, "cat rl.c train_gpt.c | grep -c ' %s('", name);
            run_lines(last, sizeof last, command);
            if (!atoi(last)) report_on(&exercises[i], "names a function that is not there", name);
        }
}

int main(void) {
    RUN_ALL(TEST(test_right_values_by_hand), TEST(test_slip_values_by_hand), TEST(test_slips_are_apart),
            TEST(test_every_slip_is_diagnosed_as_itself), TEST(test_failures_that_are_no_slips),
            TEST(test_no_wrong_diagnosis), TEST(test_messages_fit_80_columns),
            TEST(test_skeletons_agree_with_the_table), TEST(test_functions_to_read_exist),
            TEST(test_the_open_exercises_still_fit_rl), TEST(test_the_students_loop));
    return check_failed != 0;
}
