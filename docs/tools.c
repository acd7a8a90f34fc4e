/* tools.c - the commands of ./rl around the book: they teach nothing, and training does not need them.
 *
 * make builds ./rl from this file, which includes the book. (`cc rl.c -lm` gives a program without them.)
 */
#define RL_NO_MAIN
#include "../rl.c"

// ---- ./rl overlap: which questions of one file also stand in another
//
// Near duplicates share runs of words (n-grams). A question of 30 words has 23 runs of 8 words; one word
// changed in the middle breaks 8 of them and leaves 15: 65%. Unrelated problems rarely share one. So: near
// is a question of which half of all runs of 8 words stand in one and the same question of the other file.
// What has fewer than 8 words is compared as a whole only, and so are the strict kinds: the whole reduced
// question is their only run. A run is kept as a hash of 64 bits. (Two different ones share it with a chance
// of 10^11 pairs / 2^64 = 5e-9, at 10^6 against 10^5 runs.)
enum { NEARLY_SAME = SAME_BUT_NUMBERS + 1, LIKENESSES };   // after the likenesses of chapter 11
enum { GRAM_WORDS = 8 };
static const double NEAR_SHARE = 0.5;

typedef struct { uint64_t hash; int question; } Gram;    // a run, and the question that it stands in

static int compare_grams(const void* a, const void* b) {
    const Gram *x = a, *y = b;
    return x->hash != y->hash ? (x->hash > y->hash) - (x->hash < y->hash) : x->question - y->question;
}

// The runs of `count` questions, ascending, each once per question; to be freed. Returns how many there are.
static int find_grams(Gram** grams, const Problem* list, int count, int likeness) {
    int n = 0, kept = 0, near = likeness == NEARLY_SAME;
    size_t room = 0;
    for (int i = 0; i < count; i++) room += strlen(list[i].question);
    Gram* g = *grams = allocate(room, sizeof(Gram));         // a word has a byte at least
    for (int i = 0; i < count; i++) {
        Text t = {0};
        int words = 0;
        reduce_question(&t, list[i].question, near ? SAME_WORDS : likeness);
        for (const char *p = t.data, *from = p; *p; p += *p == ' ') {
            p += near ? strcspn(p, " ") : t.length;
            if (++words < GRAM_WORDS && near) continue;
            uint64_t hash = 0;
            for (const char* q = from; q < p; q++) hash = (hash ^ (unsigned char)*q) * 0x100000001B3u;
            g[n++] = (Gram){mix_u64(hash), i};                                                // FNV-1a, mixed
            from += strcspn(from, " ") + 1;
        }
        text_free(&t);
    }
    qsort(g, (size_t)n, sizeof *g, compare_grams);
    for (int i = 0; i < n; i++)
        if (i == 0 || compare_grams(&g[i], &g[i - 1])) g[kept++] = g[i];
    return kept;
}

// The strictest likeness of a question of b to one of a (LIKENESSES: none), which one, how many of its runs.
typedef struct { int likeness, twin; double share; } Match;

// Matches the questions of b that have no match yet: each with the question of a that has the most of its
// runs (of several, the first) and at least NEAR_SHARE of them. A question without a word is like none.
static void find_twins(Match* match, const Problems* a, const Problems* b, int likeness) {
    Gram *all, *own;
    int total = find_grams(&all, a->list, a->count, likeness);
    int* shared = allocate((size_t)a->count, sizeof(int));
    for (int i = 0; i < b->count; i++) {
        if (match[i].likeness < LIKENESSES) continue;
        int count = find_grams(&own, &b->list[i], 1, likeness), twin = 0;
        memset(shared, 0, (size_t)a->count * sizeof(int));
        for (int k = 0; k < count; k++) {
            int at = 0;
            for (int end = total, middle; at < end;) {       // where this run stands in a, or would stand
                middle = at + (end - at) / 2;
                if (all[middle].hash < own[k].hash) at = middle + 1;
                else end = middle;
            }
            for (; at < total && all[at].hash == own[k].hash; at++) shared[all[at].question]++;
        }
        for (int j = 1; j < a->count; j++)
            if (shared[j] > shared[twin]) twin = j;
        if (count && shared[twin] >= NEAR_SHARE * count)
            match[i] = (Match){likeness, twin, (double)shared[twin] / count};
        free(own);
    }
    free(all), free(shared);
}

// A match for each question of b, by the likenesses from `strictest` to `loosest`; to be freed.
static Match* match_by(const Problems* a, const Problems* b, int strictest, int loosest) {
    Match* match = allocate((size_t)b->count, sizeof(Match));
    for (int i = 0; i < b->count; i++) match[i] = (Match){LIKENESSES, -1, 0.0};
    for (int likeness = strictest; likeness <= loosest; likeness++) find_twins(match, a, b, likeness);
    return match;
}

static Match* match_questions(const Problems* a, const Problems* b) {
    return match_by(a, b, SAME_WORDS, NEARLY_SAME);
}

enum { OVERLAP_EXAMPLES = 3, OVERLAP_LINES = 4 };   // pairs of each kind, lines of each question

static int command_overlap(int argc, char** argv) {
    static const char* const names[LIKENESSES + 1] = {
        "the same without case, spaces, punctuation", "the same but for names",
        "the same but for names and numbers", "near: share half of all runs of 8 words", "none of these"};
    const char* path[2];
    RlOptions o = rl_defaults();
    int count[LIKENESSES + 1] = {0}, shown[LIKENESSES + 1] = {0};
    if (begin_command(&o, NULL, path, 2, 0, argc, argv,
                      "overlap - which questions of B also stand in A, exactly or nearly", " A B") < 2)
        fail(2, "two files are needed: ./rl overlap data/train.jsonl data/test.jsonl");
    Problems a = load_problems(path[0]), b = load_problems(path[1]);
    Match* match = match_questions(&a, &b);
    for (int i = 0; i < b.count; i++) count[match[i].likeness]++;
    printf("A  %s: %d questions\nB  %s: %d questions\n\n", path[0], a.count, path[1], b.count);
    printf("Each question of B, by the strictest likeness that it has with one of A:\n\n");
    for (int i = 0; i <= LIKENESSES; i++)
        printf("  %-44s %6d  %6.2f%%\n", names[i], count[i], 100.0 * count[i] / b.count);
    for (int likeness = SAME_WORDS; likeness < LIKENESSES; likeness++) {
        for (int i = 0; i < b.count && shown[likeness] < OVERLAP_EXAMPLES; i++) {
            if (match[i].likeness != likeness) continue;
            if (!shown[likeness]++) printf("\n%s:\n", names[likeness]);
            printf("\n  question %d of B, question %d of A", i + 1, match[i].twin + 1);
            if (likeness == NEARLY_SAME)
                printf(": %.0f%% of its runs of %d words", 100.0 * match[i].share, GRAM_WORDS);
            printf("\n");
            print_beginning("    B", b.list[i].question, OVERLAP_LINES);
            print_beginning("    A", a.list[match[i].twin].question, OVERLAP_LINES);
        }
    }
    free(match), problems_free(&a), problems_free(&b);
    return 0;
}

// ---- ./rl grade

typedef struct {
    const char *response, *answer;
    char* question;                   // what all responses to one question have in common; "" = none is named
    char* vote;                       // the answer where the reward looks; "" = none
    int line, number, correct;        // line of the file, place in it
} Graded;

typedef struct { Graded* list; int count; Json* records; } Responses;

static void responses_free(Responses* r) {
    for (int i = 0; i < r->count; i++) free(r->list[i].question), free(r->list[i].vote);
    free(r->list), json_free(r->records);
}

// One record. Which question it answers is told by "question" or "problem", else by "id", a text or a number.
static Graded read_response(const Json* j, int number, const char* path) {
    const Json *response = json_get(j, "response"), *id = json_get(j, question_field(j));
    Text question = {0};
    if (!response) response = json_get(j, "prediction");
    if (!response) fail(2, "%s, line %d: neither a field \"response\" nor \"prediction\"", path, j->line);
    if (response->type != JSON_STRING)
        fail(2, "%s, line %d: the field \"%s\" is not a text", path, j->line, response->key);
    if (!id) id = json_get(j, "id");
    if (id && id->type == JSON_NUMBER) text_printf(&question, "%.17g", id->number);
    else if (id && id->type != JSON_STRING)
        fail(2, "%s, line %d: the field \"%s\" is neither a text nor a number", path, j->line, id->key);
    else text_printf(&question, "%s", id ? id->string : "");
    return (Graded){.response = response->string, .answer = record_text(j, "answer", path),
                    .question = question.data, .line = j->line, .number = number};
}

static Responses load_responses(const char* path) {
    Responses r = {.records = load_records(path)};
    for (const Json* j = r.records->child; j; j = j->next) {
        r.list = enlarge(r.list, (size_t)r.count + 1, sizeof(Graded));
        r.list[r.count] = read_response(j, r.count + 1, path);
        r.count++;
    }
    if (!r.count)
        fail(2, "%s has no responses in it: lines like {\"response\": ..., \"answer\": ...}, or an array of "
                "them, were expected", path);
    return r;
}

static int compare_graded(const void* a, const void* b) {   // the responses to one question side by side
    const Graded *x = a, *y = b;
    int order = strcmp(x->question, y->question);
    return order ? order : x->number - y->number;
}

// The means over the questions, as far as every question has k responses. Sorts the responses; one without a
// question is on its own.
static Evaluation evaluate_responses(int* longest, Responses* r) {
    size_t n = (size_t)r->count;
    const char** votes = allocate(n, sizeof(char*));
    int *correct = allocate(n, sizeof(int)), *start = allocate(n + 1, sizeof(int)), questions = 0;
    int shortest = INT_MAX;
    *longest = 0;
    qsort(r->list, n, sizeof(Graded), compare_graded);
    for (int i = 0; i < r->count; i++) {
        const Graded* g = &r->list[i];
        votes[i] = g->vote;
        correct[i] = g->correct;
        if (!i || !*g->question || strcmp(g->question, g[-1].question)) start[questions++] = i;
    }
    start[questions] = r->count;
    for (int i = 0; i < questions; i++) {
        shortest = min_int(shortest, start[i + 1] - start[i]);
        *longest = max_int(*longest, start[i + 1] - start[i]);
    }
    Evaluation e = evaluation_new(shortest);
    for (int i = 0; i < questions; i++)
        evaluation_add(&e, votes + start[i], correct + start[i], start[i + 1] - start[i]);
    evaluation_finish(&e);
    free(votes), free(correct), free(start);
    return e;
}

static void print_grades(Responses* r, const RewardKind* kind) {
    enum { LISTED = 12 };
    char answer[MAX_ANSWER + 1];
    int n = r->count, right = 0, missing = 0, outside = 0, longest;
    Text not_right = {0};
    for (Graded* g = r->list; g < r->list + n; g++) {
        Grade grade = grade_answer(g->response, g->answer, kind);
        g->vote = copy_text(grade.answer);
        g->correct = grade.correct;
        if (!grade.correct && g->number - 1 - right < LISTED) text_printf(&not_right, " %d", g->number);
        right += grade.correct;
        missing += !grade.found;
        outside += !grade.found && extract_lenient(g->response, answer, sizeof answer) &&
                   answers_equal(answer, g->answer);
    }
    int wrong = n - right - missing;
    Evaluation e = evaluate_responses(&longest, r);
    printf("%d responses to %d questions, reward %s\n\n", n, e.questions, kind->name);
    printf("  right      %6d   %6.4f\n", right, (double)right / n);
    printf("  wrong      %6d   %6.4f   in the format, but not the answer\n", wrong, (double)wrong / n);
    printf("  no format  %6d   %6.4f   nothing where the reward looks\n", missing, (double)missing / n);
    if (outside) printf("             %6d            of these, right when read leniently\n", outside);
    printf("\n");
    print_evaluation(&e);
    if (longest > e.samples)
        printf("\n%d to %d responses to a question; each question counts the same.\n", e.samples, longest);
    if (right < n)
        printf("\nNot right: record%s%s; --explain N shows why.\n", not_right.data,
               n - right > LISTED ? " and more" : "");
    text_free(&not_right), evaluation_free(&e);
}

// An answer as the comparison sees it (the appendix): its one spelling and, if it has one, its value.
static void print_understood(const char* label, const char* answer) {
    Normalized n;
    Value value;
    int variables = 0, normal = normalize(&n, answer);
    print_wrapped(label, answer);
    print_wrapped("Normal", normal ? n.text : "(too long)");
    if (!normal || !evaluate(&value, &variables, trim_span(make_span(n.text)), 0)) return;
    printf("Value     %.12g", creal(value.z));
    if (cimag(value.z) != 0.0) printf(" %+.12g i", cimag(value.z));
    if (value.den > 1) printf(" = %lld/%lld exactly", (long long)value.num, (long long)value.den);
    printf("%s\n", variables ? " at evaluation point 0" : "");
}

static void print_explanation(const Graded* g, const RewardKind* kind, const char* path) {
    char number[64], lenient[MAX_ANSWER + 1];
    const char* answer = g->answer;
    Grade grade = grade_answer(g->response, g->answer, kind);
    int outside = !grade.found && extract_lenient(g->response, lenient, sizeof lenient);
    if (kind->reward == reward_gsm8k && extract_hash_answer(answer, number, sizeof number)) answer = number;
    printf("Record %d of %s, line %d, reward %s\n\n", g->number, path, g->line, kind->name);
    print_wrapped("Response", g->response);
    printf("\n");
    if (grade.found) print_understood("Found", grade.answer);
    else print_wrapped("Found", "(nothing where the reward looks)");
    printf("\n");
    print_understood("Answer", answer);
    printf("\n");
    if (outside) print_wrapped("Leniently", lenient);
    const char* given = outside ? lenient : grade.answer;
    if (*given) printf("Compared  %s\n", answers_equal(given, answer) ? "equal" : "different");
    printf("Reward    %g\n", (double)grade.reward);
}

static int command_grade(int argc, char** argv) {
    RlOptions o = rl_defaults();
    const char* path;
    o.reward = "boxed";
    if (!begin_command(&o, NULL, &path, 1, FOR_GRADE, argc, argv,
                       "grade - grades records {\"response\" or \"prediction\", \"answer\"}; those with the\n"
                       "same \"question\" (or \"id\") are responses to one question", " FILE"))
        fail(2, "a file is missing: ./rl grade FILE, with lines {\"response\": ..., \"answer\": ...}");
    const RewardKind* kind = find_reward(o.reward);
    Responses r = load_responses(path);
    if (o.explain > r.count) fail(2, "--explain %d: %s has %d records", o.explain, path, r.count);
    if (o.explain) print_explanation(&r.list[o.explain - 1], kind, path);
    else print_grades(&r, kind);
    responses_free(&r);
    return 0;
}

// ---- ./rl plot: what a run wrote down while it trained

// One column of a table of comma-separated values, found by its name in the first line; an empty field is
// NaN. A directory means its metrics.csv. *rows (out): how many there are. To be freed. Without such a
// column: NULL and no rows, or a complaint if it is `needed`.
static double* read_column(int* rows, const char* file, const char* name, int needed) {
    char path[PATH_SIZE];
    size_t length = strlen(name);
    int column = 0;
    join_path(path, file, "metrics.csv");
    if (!file_exists(path)) snprintf(path, PATH_SIZE, "%s", file);
    Text text = read_file(path);
    const char* s = text.data;
    for (; s && (strncmp(s, name, length) || !strchr(",\r\n", s[length])); column++) {
        s += strcspn(s, ",\n");
        s = *s == ',' ? s + 1 : NULL;
    }
    if (!s && needed)
        fail(2, "%s has no column '%s'; its columns are %.*s", path, name, (int)strcspn(text.data, "\r\n"),
             text.data);
    double* values = s ? allocate(text.length, sizeof(double)) : NULL;
    *rows = 0;
    while (s && *(s += strcspn(s, "\n")) && *++s) {
        for (int i = 0; i < column; i++) s += strcspn(s, ",\n") + (s[strcspn(s, ",\n")] == ',');
        values[(*rows)++] = strchr(",\r\n", *s) ? NAN : strtod(s, NULL);   // strtod would read the next line
    }
    text_free(&text);
    return values;
}

// The mean of the numbers among the `window` values of x (n) around x[i]; NaN where x[i] is none.
static double smoothed(const double* x, int n, int i, int window) {
    double sum = 0.0;
    int count = 0;
    for (int j = max_int(0, i - (window - 1) / 2); j < n && j <= i + window / 2; j++) {
        sum += isnan(x[j]) ? 0.0 : x[j];
        count += !isnan(x[j]);
    }
    return i < n && !isnan(x[i]) ? sum / count : NAN;
}

static const char* last_part(const char* path) {
    const char* slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static int command_plot(int argc, char** argv) {
    const char* words[2 * PLOT_SERIES];
    double *x[PLOT_SERIES], *y[PLOT_SERIES];
    char names[PLOT_SERIES][64];
    int rows[PLOT_SERIES], files = 1;
    RlOptions o = rl_defaults();
    o.smooth = 1;
    int count = begin_command(&o, NULL, words, 2 * PLOT_SERIES, FOR_PLOT, argc, argv,
                              "plot - columns of a table, or of a run's metrics.csv, as curves",
                              " FILE|DIR... COLUMN...");
    if (!count) fail(2, "a file is missing; ./rl plot out/run/rl reward plots a column of its metrics.csv");
    while (files < count && file_exists(words[files])) files++;
    int columns = count - files;
    if (!columns) read_column(rows, words[0], "COLUMN", 1);                  // says which there are
    Plot p = {.title = words[files > 1 ? files : 0], .x_name = "update", .series = files * columns};
    if (p.series > PLOT_SERIES) fail(2, "a plot has room for %d curves, not for %d", PLOT_SERIES, p.series);
    for (int s = 0; s < p.series; s++) {
        const char *file = words[s / columns], *column = words[files + s % columns];
        x[s] = read_column(&rows[s], file, column, 1);
        p.points = max_int(p.points, rows[s]);
        if (files == 1) snprintf(names[s], sizeof names[s], "%s", column);
        else snprintf(names[s], sizeof names[s], columns > 1 ? "%s %s" : "%s", last_part(file), column);
    }
    for (int s = 0; s < p.series; s++) {
        p.y[s] = y[s] = allocate((size_t)p.points, sizeof(double));
        p.names[s] = names[s];
        for (int i = 0; i < p.points; i++) y[s][i] = smoothed(x[s], rows[s], i, o.smooth);
    }
    p.scaled = columns > 1 && !o.together;
    print_plot(&p);
    for (int s = 0; s < p.series; s++) free(x[s]), free(y[s]);
    return 0;
}

// ---- ./rl compare: finished runs in one table

static const double GOAL = 0.90;          // of held-out pass@1

// The row of a run. From its log: the seconds of its updates, and how many updates and seconds of them it
// took to the goal. A dash: not measured, not logged, or not reached.
static void print_run(const char* folder, const Evaluation* e, int has_kl) {
    static const int width[] = {6, 7, 6, 5, 6}, digits[] = {2, 1, 0, 0, 1};
    double x[] = {has_kl ? e->kl : NAN, e->length, NAN, NAN, NAN}, seconds = 0.0;
    int k = e->samples - 1, rows = 0, looks = 0;
    char log[PATH_SIZE];
    join_path(log, folder, "metrics.csv");
    double* each = file_exists(log) ? read_column(&rows, log, "seconds", 0) : NULL;
    double* test = file_exists(log) ? read_column(&looks, log, "held_out", 0) : NULL;
    for (int i = 0; i < rows; i++) {
        x[2] = seconds += each[i];
        if (i >= looks || !(test[i] >= GOAL) || x[3] > 0.0) continue;
        x[3] = i + 1;
        x[4] = seconds;
    }
    printf("%-12.12s %6.3f %5.3f-%5.3f %6.3f %5.3f-%5.3f", last_part(folder), e->pass[0], e->low[0],
           e->high[0], e->pass[k], e->low[k], e->high[k]);
    for (int i = 0; i < 5; i++)
        if (isnan(x[i])) printf("%*s", width[i], "-");
        else printf("%*.*f", width[i], digits[i], x[i]);
    printf("\n");
    fflush(stdout);
    free(each), free(test);
}

static int command_compare(int argc, char** argv) {
    enum { RUNS = 64 };
    RlOptions o = rl_defaults();
    const char* runs[RUNS];
    char path[PATH_SIZE];
    int questions = 0;
    o.data = "data/test.jsonl";
    o.eval_examples = 256;
    int count = begin_command(&o, NULL, runs, RUNS, FOR_COMPARE, argc, argv,
                              "compare - finished runs in one table", " DIR...");
    if (!count) fail(2, "the runs are missing; ./rl compare out/run/sft out/run/rl compares two");
    for (int i = 0; i < count; i++) tagged_path(path, runs[i]);        // a wrong name is to cost no minutes
    Model reference = o.reference ? load_tagged_model(o.reference) : (Model){0};
    printf("%69s%11s\n%-12s %6s %11s %6.6s %11s%6s%7s%6s%5s%6s\n", "", "to 0.90", "", "pass@1", "95% interv.",
           "pass@k", "95% interv.", "KL", "length", "s", "upd.", "s");
    for (int i = 0; i < count; i++) {
        tagged_path(path, runs[i]);
        Model m = load_fitting_model(path);
        Questions q = load_questions(o.data, m.config.context, o.sample.max_new_tokens);
        Evaluation e = evaluate_model(&m, &q, o.eval_examples, o.num_samples, o.sample, find_reward(o.reward),
                                      o.reference ? &reference : NULL, o.seed + 2);
        print_run(path, &e, o.reference != NULL);
        questions = e.questions;
        evaluation_free(&e), questions_free(&q), model_free(&m);
    }
    printf("\nk = %d answers to each of %d questions. KL to --reference, in nats per answer;\n"
           "length in tokens; s: the seconds of all updates. To %.2f: the updates and their\n"
           "seconds until held-out pass@1 was first that high, where the run looked.\n",
           o.num_samples, questions, GOAL);
    if (o.reference) model_free(&reference);
    return 0;
}

// ---- the table, and main

static const Command tools[] = {
    {"compare", "finished runs in one table", command_compare},
    {"plot", "columns of a run's metrics.csv, as curves", command_plot},
    {"grade", "grades a file of anybody's answers, or explains one grade", command_grade},
    {"overlap", "which questions of one file also stand in another", command_overlap},
};

#ifndef TOOLS_NO_MAIN
int main(int argc, char** argv) { return rl_main(argc, argv, tools, (int)(sizeof tools / sizeof *tools)); }
#endif
