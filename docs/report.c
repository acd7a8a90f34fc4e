/*
report.c - one page about a run: `make report` reads what it left behind and writes out/report.html.

    1  the stages        which directories hold runs, their settings, their logs
    2  the loop          one update as a drawing, with this run's numbers
    3  curves            the columns of metrics.csv, found by their names
    4  before and after  pass@k with its intervals
    5  rollouts          four before, four after, token by token

The page is one file, without network or script; its style and its drawings (SVG in the page) are in
report_page.h. What is not in a run is said on the page. The rollouts are sampled here, by the functions of
rl.c that also train: the same run gives the same page.
*/
#define TOOLS_NO_MAIN
#include "tools.c"
#include "report_page.h"
#include <dirent.h>

enum { MAX_STAGES = 32, ROLLOUTS = 4, LOOKED_AT = 64, ENDS = 5, LINES = 6 };

// ---- 1. the stages

// A directory with a checkpoint or a log. kind: sft, reward-model, dpo, rl, or "" without trainer_state.json.
typedef struct { char folder[PATH_SIZE], kind[16]; Json* state; } RunStage;
typedef struct { RunStage* list; int count; } Stages;

static int kind_rank(const char* kind) {                                     // in the order of the recipes
    static const char* const order[] = {"", "sft", "reward-model", "dpo", "rl"};
    for (int i = 0; i < 5; i++) if (!strcmp(kind, order[i])) return i;
    return 0;
}

static int compare_stages(const void* a, const void* b) {
    const RunStage *x = a, *y = b;
    int order = kind_rank(x->kind) - kind_rank(y->kind);
    return order ? order : strcmp(x->folder, y->folder);
}

// An option as trainer_state.json has it; "" when it is not there.
static const char* setting(const RunStage* s, const char* name) {
    const Json* value = json_get(json_get(s->state, "options"), name);
    return value && value->type == JSON_STRING ? value->string : "";
}

static double number(const Json* object, const char* name) {
    const Json* value = json_get(object, name);
    return value && value->type == JSON_NUMBER ? value->number : NAN;
}

// Adds the folder if it holds a run, and says whether it does.
static int add_stage(Stages* stages, const char* folder) {
    char path[PATH_SIZE];
    if (!has_saved(folder, "trainer_state.json") && !has_saved(folder, "metrics.csv")) return 0;
    if (stages->count == MAX_STAGES) fail(2, "a report has room for %d runs; name fewer of them", MAX_STAGES);
    RunStage* s = &stages->list[stages->count++];
    snprintf(s->folder, PATH_SIZE, "%s", folder);
    FILE* file = open_saved(path, folder, "trainer_state.json");
    if (!file) return 1;
    s->state = json_read_stream(file, path);
    const Json* kind = json_get(s->state, "kind");
    if (kind && kind->type == JSON_STRING) snprintf(s->kind, sizeof s->kind, "%s", kind->string);
    return 1;
}

// The folder's own run, or those of the folders in it.
static void add_run(Stages* stages, const char* folder) {
    char path[PATH_SIZE];
    int before = stages->count;
    if (add_stage(stages, folder)) return;
    DIR* directory = opendir(folder);
    if (!directory)
        fail(2, "cannot open the directory %s: %s; `make run` makes out/run, ./rl train out/rl", folder,
             strerror(errno));
    for (struct dirent* entry; (entry = readdir(directory)) != NULL;) {
        if (*entry->d_name == '.') continue;
        join_path(path, folder, entry->d_name);
        add_stage(stages, path);
    }
    closedir(directory);
    if (stages->count == before)
        fail(2, "there is no run in %s: neither it nor a directory in it has trainer_state.json or "
                "metrics.csv; `make run` makes out/run", folder);
}

// path = what is called so in the folder that the stage's folder is in.
static void join_beside(char path[PATH_SIZE], const RunStage* s, const char* name) {
    char parent[PATH_SIZE];
    snprintf(parent, PATH_SIZE, "%s", s->folder);
    char* slash = strrchr(parent, '/');
    if (slash) *slash = 0;
    join_path(path, slash ? parent : ".", name);
}

// The model that a stage began from: as it was named, or of that name beside the stage. 0: it is not there.
static int find_before(char path[PATH_SIZE], const RunStage* s) {
    const char* tag = setting(s, "model-tag");
    if (!*tag) return 0;
    if (find_tagged(path, tag) && has_saved(path, "model.safetensors")) return 1;
    join_beside(path, s, last_part(tag));
    return has_saved(path, "config.json") && has_saved(path, "model.safetensors");
}

// A column of the log; NULL when there is none, or no number in it.
static double* stage_column(int* rows, const RunStage* s, const char* name) {
    char path[PATH_SIZE];
    join_path(path, s->folder, "metrics.csv");
    double* y = file_exists(path) ? read_column(rows, path, name, 0) : NULL;
    for (int i = 0; y && i < *rows; i++) if (isfinite(y[i])) return y;
    free(y);
    return NULL;
}

static void put_stages(Text* page, const Stages* stages) {
    put(page, "<table>\n<thead><tr><th scope='col'>stage</th><th scope='col'>kind</th><th scope='col'>updates"
              "</th><th scope='col'>seconds</th></tr></thead>\n<tbody>\n");
    for (int i = 0; i < stages->count; i++) {
        const RunStage* s = &stages->list[i];
        int rows = 0;
        double *seconds = stage_column(&rows, s, "seconds"), sum = seconds ? 0.0 : NAN;
        for (int j = 0; seconds && j < rows; j++) sum += isfinite(seconds[j]) ? seconds[j] : 0.0;
        const char* from = setting(s, "model-tag");
        put(page, "<tr><th scope='row'>%s<small>%s%h%s</small></th><td>%s</td><td>%g</td><td>%g</td></tr>\n",
            last_part(s->folder), s->folder, *from ? ", from " : "", from, *s->kind ? s->kind : "?",
            number(s->state, "step"), sum);
        free(seconds);
    }
    put(page, "</tbody>\n</table>\n");
}

// An option's value as a reader would write it: 0.1 is saved as 0.100000001, the float it is.
static void put_setting(Text* page, const char* name, const char* value) {
    char number[32], *end;
    double x = strtod(value, &end);
    snprintf(number, sizeof number, "%.6g", x);
    put(page, "<div><dt>%s</dt><dd>%s</dd></div>\n", name, !*value ? "(none)" : *end ? value : number);
}

static void put_settings(Text* page, const Stages* stages) {
    put(page, "<section id='settings'>\n<h2>Settings</h2>\n<p>Every option of each stage, from its <code>"
              "trainer_state.json</code>. The command's <code>--help</code> says what each means.</p>\n");
    for (int i = 0; i < stages->count; i++) {
        const RunStage* s = &stages->list[i];
        const Json* options = json_get(s->state, "options");
        put(page, "<h3>%s</h3>\n", s->folder);
        if (!options || !options->child) {
            missing(page, "", "It has no <code>trainer_state.json</code>: a saved run has one.");
            continue;
        }
        put(page, "<dl>\n");
        for (const Json* o = options->child; o; o = o->next)
            if (o->type == JSON_STRING && o->key && strcmp(o->key, "data-hash"))     // no choice of anybody's
                put_setting(page, o->key, o->string);
        put(page, "</dl>\n");
    }
    put(page, "</section>\n");
}

// ---- 2. the loop

// "name 0.324 to 0.977": the means of the first and of the last ENDS numbers of a column.
static void say_ends(char line[PATH_SIZE], const RunStage* s, const char* column, const char* name) {
    int rows = 0, n = 0;
    double *y = stage_column(&rows, s, column), first = 0.0, last = 0.0;
    for (int i = 0; y && i < rows; i++) if (isfinite(y[i])) y[n++] = y[i];
    int ends = min_int(n, ENDS);
    for (int i = 0; i < ends; i++) {
        first += y[i] / ends;
        last += y[n - 1 - i] / ends;
    }
    snprintf(line, PATH_SIZE, y ? "%s %.3g to %.3g" : "%s: not in the log", name, first, last);
    free(y);
}

static void fill_boxes(Box b[BOXES], const RunStage* s, const RlOptions* o) {
    static const char* const advantages[] = {"A = r", "A = r - mean of the group", "A = r - mean of others",
                                             "A = (r - mean) / std", "A per token, by a value model"};
    static const char* const losses[] = {"- A log pi of a sampled token", "- min(ratio A, clipped ratio A)",
                                         "the same, one ratio per answer", "- clipped ratio (held) A log pi"};
    snprintf(b[0].line[0], PATH_SIZE, "%d of them in each update", o->examples_per_step);
    snprintf(b[0].line[1], PATH_SIZE, "from %s", last_part(o->data));
    snprintf(b[1].line[0], PATH_SIZE, "K = %d answers to each question", o->num_samples);
    snprintf(b[1].line[1], PATH_SIZE, "temperature %g, top-k %d", (double)o->sample.temperature,
             o->sample.top_k);
    say_ends(b[1].line[2], s, "length", "tokens");
    say_ends(b[1].line[3], s, "tool_rate", "used the tool");
    snprintf(b[2].line[0], PATH_SIZE, "r by %s", o->reward);
    say_ends(b[2].line[1], s, "reward", "mean");
    say_ends(b[2].line[2], s, "format_rate", "in the format");
    snprintf(b[3].line[0], PATH_SIZE, "%s", advantages[choose(o->advantage, advantage_names, "advantage")]);
    say_ends(b[3].line[1], s, "zero_variance", "groups with equal rewards");
    snprintf(b[4].line[0], PATH_SIZE, "%s", losses[choose(o->ratio, ratio_names, "ratio")]);
    snprintf(b[4].line[1], PATH_SIZE, "norm: %s; where the mask is 1", o->norm);
    if (o->beta > 0.0f)
        snprintf(b[4].line[2], PATH_SIZE, "%g KL (%s) in the %s", (double)o->beta, o->kl_estimator, o->kl_in);
    else snprintf(b[4].line[2], PATH_SIZE, "no KL penalty (beta 0)");
    if (strcmp(o->ratio, "none")) say_ends(b[4].line[3], s, "clip_fraction", "clipped");
    snprintf(b[5].line[0], PATH_SIZE, "backward, |grad| at most %g, AdamW", (double)o->grad_clip);
    say_ends(b[5].line[1], s, "grad_norm", "|grad|");
    say_ends(b[5].line[2], s, "lr", "learning rate");
    say_ends(b[5].line[3], s, "seconds", "seconds");
}

static void put_loop(Text* page, const RunStage* s, const RlOptions* o) {
    put(page, "<section id='loop'>\n<h2>The loop</h2>\n");
    if (!strcmp(s->kind, "rl")) {
        Box* boxes = allocate(BOXES, sizeof(Box));
        fill_boxes(boxes, s, o);
        put(page, "<p>One update of <code>%s</code>, method <code>%s</code>. 'a to b': the means of the "
                  "first and of the last %d updates.</p>\n<figure>\n", s->folder, o->algo, ENDS);
        draw_loop(page, boxes, 0);
        draw_loop(page, boxes, 1);
        put(page, "</figure>\n");
        free(boxes);
    } else
        missing(page, "", "No stage here is reinforcement learning, so there is no loop to draw; <code>./rl "
                          "train</code> adds one.");
    put(page, "</section>\n");
}

// ---- 3. curves

enum { OF_RL = 1, OF_SFT = 2, OF_PAIRS = 4 };
typedef struct { const char *column, *title, *what; int kinds, share; } Curve;      // share: from 0 to 1

static const Curve curves[] = {
    {"reward", "reward", "mean over the rollouts", OF_RL, 0},
    {"accuracy", "accuracy", "share of the rollouts that the verifier accepts", OF_RL, 1},
    {"accuracy", "accuracy", "share of the pairs ranked right", OF_PAIRS, 1},
    {"held_out", "pass@1, held out", "on questions never trained on, where the run looked", OF_RL, 1},
    {"tool_rate", "tool rate", "share of the rollouts in which the tool answered", OF_RL, 1},
    {"format_rate", "format rate", "share whose answer is where the reward looks", OF_RL, 1},
    {"kl_ref", "KL to the reference", "k1, nats per answer", OF_RL, 0},
    {"entropy", "entropy", "of the policy at the sampled tokens, nats", OF_RL, 0},
    {"length", "length", "tokens per answer, the tool's too", OF_RL, 0},
    {"loss", "loss", "of the update", OF_SFT | OF_PAIRS, 0},
    {"held_out", "held-out loss", "on other conversations", OF_SFT, 0},
    {"margin", "margin", "chosen minus rejected", OF_PAIRS, 0},
    {"grad_norm", "|grad|", "before clipping", OF_RL | OF_SFT | OF_PAIRS, 0},
    {"zero_variance", "zero-variance groups", "groups of an update whose rewards are all equal", OF_RL, 0},
    {"clip_fraction", "clip fraction", "share of the trained tokens that the clip holds", OF_RL, 0},
    {"lr", "learning rate", "by the schedule", OF_SFT | OF_PAIRS, 0},
    {0},
};

// One chart: a column of up to LINES stages. Returns 0, and draws nothing, when none of them has it.
static int put_chart(Text* page, const Curve* c, const RunStage* stages, int count) {
    double* y[LINES];
    int rows[LINES] = {0}, numbers[LINES] = {0}, longest = 0;
    Range r = {INFINITY, -INFINITY};
    for (int s = 0; s < count; s++) {
        y[s] = stage_column(&rows[s], &stages[s], c->column);
        for (int i = 0; y[s] && i < rows[s]; i++) {
            if (!isfinite(y[s][i])) continue;
            r.low = fmin(r.low, y[s][i]);
            r.high = fmax(r.high, y[s][i]);
            numbers[s]++;
        }
        if (y[s]) longest = max_int(longest, rows[s]);
    }
    if (!longest) return 0;
    Range axis = c->share ? (Range){fmin(0.0, r.low), fmax(1.0, r.high)} : r;
    if (axis.low > 0.0 && (axis.low < 0.6 * axis.high || axis.low == axis.high)) axis.low = 0.0;
    axis = round_range(axis);
    put(page, "<figure><h4>%h</h4>\n<svg viewBox='0 0 356 198' role='img' aria-label='%h over %d updates, "
              "from %g to %g'>\n", c->title, c->title, longest, r.low, r.high);
    draw_axes(page, axis, longest);
    for (int s = 0; s < count; s++) {
        char class[16];
        if (!y[s]) continue;
        int sparse = numbers[s] < rows[s] || rows[s] == 1;
        int window = !sparse && rows[s] > 20 && strcmp(c->column, "lr") ? max_int(3, rows[s] / 20) : 1;
        snprintf(class, sizeof class, "s%d", s);
        if (window > 1 && count == 1) draw_curve(page, y[s], rows[s], longest, axis, "raw s0", 1, 0);
        draw_curve(page, y[s], rows[s], longest, axis, class, window, sparse && numbers[s] <= 40);
        free(y[s]);
    }
    put(page, "</svg>\n<figcaption><code>%h</code>: %h; %g to %g</figcaption></figure>\n", c->column,
        c->what, r.low, r.high);
    return 1;
}

// The curves of at most LINES stages of one kind.
static void put_charts(Text* page, const RunStage* stages, int count) {
    int rank = kind_rank(stages->kind), kind = rank == 1 ? OF_SFT : rank == 2 || rank == 3 ? OF_PAIRS : OF_RL;
    Text absent = {0};
    put(page, "<h3>");
    for (int s = 0; s < count; s++) {
        put(page, "<span class='key'>");
        if (count > 1)
            put(page, "<svg viewBox='0 0 44 8' aria-hidden='true'><path class='c s%d' d='M0 4H44'/></svg>",
                s);
        put(page, "%s</span> ", count > 1 ? last_part(stages[s].folder) : stages[s].folder);
    }
    put(page, "</h3>\n<div class='charts'>\n");
    for (const Curve* c = curves; c->column; c++) {
        if (!(c->kinds & kind) || put_chart(page, c, stages, count)) continue;
        put(&absent, "%h<code>%h</code>", absent.length ? ", " : "No number in this log: ", c->column);
    }
    put(page, "</div>\n");
    if (absent.length) missing(page, "", absent.data);
    text_free(&absent);
}

static void put_curves(Text* page, const Stages* stages) {
    put(page, "<section id='curves'>\n<h2>Curves</h2>\n<p>From <code>metrics.csv</code>, one number per "
              "update. Above 20 updates the line is a running mean, the thin one the numbers.</p>\n");
    for (int to = stages->count, from; to > 0; to = from) {
        const char* kind = stages->list[to - 1].kind;
        for (from = to; from > 0 && to - from < LINES && !strcmp(stages->list[from - 1].kind, kind);) from--;
        put_charts(page, &stages->list[from], to - from);
    }
    put(page, "</section>\n");
}

// ---- 4. before and after

// The stage that the rest is about: its model and the one it began from, its options, and held-out questions.
typedef struct {
    const RunStage* stage;
    RlOptions o;
    Model model[2], judge;
    int has[2];                          // is model[0], before, there? model[1], after?
    Reward reward;
    Questions questions;                 // count 0: none were found
} Subject;

// The last stage of the run but for reward models, which do not write.
static Subject subject_load(const Stages* stages, const char* data) {
    char path[PATH_SIZE];
    Subject s = {.stage = &stages->list[stages->count - 1], .o = rl_defaults()};
    while (s.stage > stages->list && !strcmp(s.stage->kind, "reward-model")) s.stage--;
    const char* kind = s.stage->kind;
    Option options[RL_OPTIONS] = {{0}};
    int command = !strcmp(kind, "rl") ? FOR_TRAIN : !strcmp(kind, "dpo") ? FOR_DPO : 0;
    take_options(options, &s.o, command);
    if (command) state_from_json(s.stage->folder, kind, options);
    if (data) s.o.eval_data = data;
    s.has[1] = strcmp(kind, "reward-model") && has_saved(s.stage->folder, "model.safetensors");
    if (s.has[1]) s.model[1] = load_fitting_model(s.stage->folder);
    s.has[0] = s.has[1] && find_before(path, s.stage);
    if (s.has[0]) s.model[0] = load_fitting_model(path);
    s.reward = read_reward(s.o.reward, path);
    if (*path && s.has[1] && file_exists(path)) {
        s.judge = load_reward_model(path, s.model[1].config.context);
        s.reward.model = &s.judge;
    }
    if (s.has[1] && file_exists(s.o.eval_data))
        s.questions = load_questions(s.o.eval_data, s.model[1].config.context, s.o.sample.max_new_tokens,
                                     s.reward.kind);
    return s;
}

static void subject_free(Subject* s) {
    for (int side = 0; side < 2; side++) if (s->has[side]) model_free(&s->model[side]);
    if (s->reward.model) model_free(&s->judge);
    if (s->questions.count) questions_free(&s->questions);
}

// From the result.json that `./rl run` writes beside its stage rl. Returns whether there is one.
static int read_result(Compared* c, char path[PATH_SIZE], const RunStage* s) {
    static const char* const sides[] = {"before", "after"};
    static const char* const fields[2][3] = {{"pass_at_1", "pass_at_1_low", "pass_at_1_high"},
                                             {"pass_at_k", "pass_at_k_low", "pass_at_k_high"}};
    static const char* const more[] = {"tool_rate", "format_rate", "mean_length"};
    join_beside(path, s, "result.json");
    if (strcmp(last_part(s->folder), "rl") || !file_exists(path)) return 0;
    Json* j = json_read_stream(fopen(path, "rb"), path);
    c->rows = 2;
    for (int side = 0; side < 2; side++) {
        const Json* e = json_get(j, sides[side]);
        double k = number(e, "k");
        c->k[0] = 1;
        c->k[1] = k >= 1.0 && k < 1e6 ? (int)k : 0;
        for (int i = 0; i < 2; i++) {
            c->pass[i][side] = number(e, fields[i][0]);
            c->low[i][side] = number(e, fields[i][1]);
            c->high[i][side] = number(e, fields[i][2]);
        }
        for (int i = 0; i < 3; i++) c->more[i][side] = number(e, more[i]);
    }
    json_free(j);
    return 1;
}

// As `./rl run` does it: SAMPLES answers to each of the first `count` questions. Without a model before, its
// numbers are NaN.
static void measure_pass(Compared* c, Subject* s, int count) {
    for (int side = 1; side >= 0; side--) {
        Evaluation e = evaluate_model(&s->model[s->has[side] ? side : 1], &s->questions, count, SAMPLES,
                                      s->o.sample, s->reward.kind, NULL, s->o.seed + 2);
        double here = s->has[side] ? 0.0 : NAN;
        c->rows = 0;
        for (int k = 1; k; k = next_k(k, 2, SAMPLES)) {
            c->k[c->rows] = k;
            c->pass[c->rows][side] = e.pass[k - 1] + here;
            c->low[c->rows][side] = e.low[k - 1] + here;
            c->high[c->rows++][side] = e.high[k - 1] + here;
        }
        c->more[0][side] = e.tool_rate + here;
        c->more[1][side] = e.format_rate + here;
        c->more[2][side] = e.length + here;
        evaluation_free(&e);
    }
}

static void put_table(Text* page, const Compared* c) {
    static const char* const names[] = {"used the tool", "in the rewarded format", "tokens per answer"};
    put(page, "<table>\n<thead><tr><th scope='col'>measured</th><th scope='col'>before</th><th scope='col'>"
              "after</th></tr></thead>\n<tbody>\n");
    for (int i = 0; i < c->rows; i++) {
        put(page, "<tr><th scope='row'>pass@%d</th>", c->k[i]);
        for (int side = 0; side < 2; side++)
            put(page, "<td>%g<small>%g to %g</small></td>", c->pass[i][side], c->low[i][side],
                c->high[i][side]);
        put(page, "</tr>\n");
    }
    for (int i = 0; i < 3; i++)
        put(page, "<tr><th scope='row'>%h</th><td>%g</td><td>%g</td></tr>\n", names[i], c->more[i][0],
            c->more[i][1]);
    put(page, "</tbody>\n</table>\n");
}

static void put_before_after(Text* page, Subject* s, int count) {
    char path[PATH_SIZE];
    Compared c = {0};
    put(page, "<section id='passk'>\n<h2>Before and after</h2>\n");
    if (read_result(&c, path, s->stage))
        put(page, "<p>pass@k: the share of held-out questions that at least one of k answers solves. From "
                  "<code>%s</code>, as <code>./rl run</code> measured it.</p>\n", path);
    else if (s->questions.count && count) {
        count = min_int(count, s->questions.count);
        fprintf(stderr, "no result.json: %d questions are answered, for pass@k\n", count);
        measure_pass(&c, s, count);
        put(page, "<p>pass@k: the share of questions that at least one of k answers solves. There is no "
                  "<code>result.json</code> of <code>./rl run</code>, so this page measured it: %d answers "
                  "to each of the first %d questions of <code>%s</code>.</p>\n", SAMPLES, count,
            s->o.eval_data);
    } else
        missing(page, "", "There is no <code>result.json</code> of <code>./rl run</code>, and no model and "
                          "held-out questions (or <code>--eval-examples 0</code>) to measure with.");
    if (c.rows) {
        put(page, "<div class='two'>\n");
        draw_pass(page, &c);
        put_table(page, &c);
        put(page, "</div>\n");
    }
    put(page, "</section>\n");
}

// ---- 5. rollouts

// The answer of a rollout. What the model did not choose is hatched; else the less likely, the darker.
static void put_tokens(Text* page, const Rollout* r) {
    for (int t = r->prompt; t < r->prompt + r->length; t++) {
        char byte = (char)r->ids[t], text[24];
        double logp = r->logp[t - 1], p = exp(logp);
        int level = (p < 0.99) + (p < 0.9) + (p < 0.5) + (p < 0.1);
        if (r->mask[t]) put(page, "<span class='p%d' title='log pi %g, p %g, mask 1'>", level, logp, p);
        else put(page, "<span class='m0' title='mask 0'>");
        if (r->ids[t] >= 256) put(page, "<i>%s</i>", token_text(text, r->ids[t]));
        else if (byte == '\n') put(page, "<i>\\n</i>\n");
        else put_bytes(page, &byte, 1);
        put(page, "</span>");
    }
}

// The three choices that were the least likely.
static void put_least_likely(Text* page, const Rollout* r) {
    int done[3] = {-1, -1, -1};
    char text[24];
    for (int i = 0; i < 3; i++) {
        for (int t = r->prompt; t < r->prompt + r->length; t++) {
            if (!r->mask[t] || t == done[0] || t == done[1]) continue;
            if (done[i] < 0 || r->logp[t - 1] < r->logp[done[i] - 1]) done[i] = t;
        }
        if (done[i] < 0) return;
        put(page, "%h<code>%s</code> p %g", i ? ", " : "; least likely: ", token_text(text, r->ids[done[i]]),
            exp((double)r->logp[done[i] - 1]));
    }
}

// Four rollouts of question i, with their rewards as in training (but for a KL penalty in the reward).
static Rollout* sample_group(float reward[ROLLOUTS], Subject* s, int side, int i) {
    Rollout* r = answer_questions(&s->model[side], &s->questions, i, 1, ROLLOUTS, s->o.sample, s->o.seed + 3);
    grade_rollouts(reward, r, ROLLOUTS, s->questions.list[i].truth, s->reward.kind);
    if (s->reward.model) add_model_rewards(reward, s->reward.paid, s->reward.model, r, ROLLOUTS);
    add_overlong_penalties(reward, r, ROLLOUTS, s->o.sample.max_new_tokens, s->o.overlong);
    return r;
}

// The group of one side; with the other side's model, log pi of the same tokens under it.
static void put_group(Text* page, Subject* s, int side, int question, int kind) {
    float reward[ROLLOUTS], adv[ROLLOUTS], sum[2][ROLLOUTS];
    Rollout* r = sample_group(reward, s, side, question);
    int T1 = r->T - 1, other = s->has[!side] && s->model[!side].config.context >= T1;
    float* logp = allocate((size_t)ROLLOUTS * (size_t)T1, sizeof(float));
    int* mask = allocate((size_t)ROLLOUTS * (size_t)T1, sizeof(int));
    compute_advantages(adv, reward, ROLLOUTS, kind);
    shift_mask(mask, r->mask, ROLLOUTS, r->T);
    if (other) score_rollouts(logp, &s->model[!side], r, ROLLOUTS);
    sequence_logprobs(sum[0], r->logp, mask, ROLLOUTS, T1);
    sequence_logprobs(sum[1], logp, mask, ROLLOUTS, T1);
    put(page, "<div>\n<h3>%h</h3>\n", side ? "After" : "Before");
    for (int k = 0; k < ROLLOUTS; k++) {
        put(page, "<article class='rollout'>\n<h4>Rollout %d: reward %g, advantage %g</h4>\n<div "
                  "class='tokens'>", k + 1, (double)reward[k], (double)adv[k]);
        put_tokens(page, &r[k]);
        put(page, "</div>\n<p>%d tokens, %d of them sampled%h; log pi(y|x) %g", r[k].length,
            count_masked(r[k].mask, r[k].T), r[k].finished ? "" : ", cut off", (double)sum[0][k]);
        if (other) put(page, ", under the model %h %g", side ? "before" : "after", (double)sum[1][k]);
        put_least_likely(page, &r[k]);
        put(page, "</p>\n</article>\n");
    }
    if (all_equal(reward, ROLLOUTS)) put(page, "<p>All rewards are equal: there is nothing to learn.</p>\n");
    put(page, "</div>\n");
    rollouts_free(r);
    free(logp), free(mask);
}

// The first question whose rollouts do not all have the same reward, before (or after, without a before); -1
// when there is none among the first LOOKED_AT.
static int choose_question(Subject* s) {
    float reward[ROLLOUTS];
    for (int i = 0; i < min_int(LOOKED_AT, s->questions.count); i++) {
        rollouts_free(sample_group(reward, s, s->has[0] ? 0 : 1, i));
        if (!all_equal(reward, ROLLOUTS)) return i;
    }
    return -1;
}

static void put_question(Text* page, const Subject* s, int i, const char* why, int kind) {
    const Question* q = &s->questions.list[i];
    put(page, "<p>Question %d of <code>%s</code>, held out%h. Its answer: <b>%s</b>. The rollouts are "
              "sampled for this page; reward <code>%s</code>, advantage <code>%h</code> over these %d. A "
              "token is a byte or a special one.</p>\n<blockquote class='tokens'>%s</blockquote>\n", i + 1,
        s->o.eval_data, why, q->truth, s->o.reward, advantage_names[kind], ROLLOUTS, q->question);
    put(page, "<p class='tokens legend'><span class='m0'>mask 0, from the tool</span>  <span>mask 1: p &ge; "
              "0.99</span>  <span class='p1'>p &ge; 0.9</span>  <span class='p2'>p &ge; 0.5</span>  <span "
              "class='p3'>p &ge; 0.1</span>  <span class='p4'>p &lt; 0.1</span></p>\n");
}

// asked: the question to show, from 1; 0 = choose one.
static void put_rollouts(Text* page, Subject* s, int asked) {
    int kind = choose(s->o.advantage, advantage_names, "advantage");
    put(page, "<section id='rollouts'>\n<h2>Four rollouts, token by token</h2>\n");
    if (!s->has[1]) missing(page, s->stage->folder, " has no model that writes, so nothing is sampled.");
    else if (!s->questions.count)
        missing(page, s->o.eval_data, ": not found; <code>--data FILE</code> names other questions.");
    else {
        int i = asked ? min_int(asked, s->questions.count) - 1 : choose_question(s);
        const char* why = asked ? "" : i < 0 ? " (no rewards differ)" : ", the first whose rewards differ";
        if (kind == ADVANTAGE_GAE) {
            kind = ADVANTAGE_CENTERED;
            missing(page, "", "The run's advantage, gae, is one per token; shown is the centered one.");
        }
        if (strstr(s->o.reward, "model:") && !s->reward.model)
            missing(page, "", "The run's reward model is not here; shown is what the verifier says.");
        put_question(page, s, max_int(i, 0), why, kind);
        if (!s->has[0]) missing(page, "", "The model before is not here, or there was none.");
        put(page, "<div class='two'>\n");
        for (int side = 0; side < 2; side++) if (s->has[side]) put_group(page, s, side, max_int(i, 0), kind);
        put(page, "</div>\n");
    }
    put(page, "</section>\n");
}

int main(int argc, char** argv) {
    enum { DIRS = 16 };
    const char *dirs[DIRS] = {"out/run"}, *out = "out/report.html", *data = NULL;
    int examples = 256, question = 0;
    Option options[] = {
        {"out", OPTION_TEXT, &out, 0, 0, "the page", 0, 0},
        {"data", OPTION_TEXT, &data, 0, 0, "held-out questions; none = the run's own", 0, 0},
        {"eval-examples", OPTION_INT, &examples, 0, 1e9, "questions for pass@k, without result.json", 0, 0},
        {"question", OPTION_INT, &question, 0, 1e9, "whose rollouts; 0 = the first that teaches", 0, 0},
        {0}};
    char folder[PATH_SIZE];
    Text page = {0}, title = {0};
    open_standard_streams();
    if (asked_for_help(argc - 1, argv + 1, "report - a page about what runs left behind, and four rollouts",
                       "./build/report [DIR...] [--option=value ...]", options))
        return end_of_output(0);
    if (!file_exists(dirs[0]) && file_exists("out/rl")) dirs[0] = "out/rl";      // where ./rl train writes
    int count = max_int(1, parse_options(options, argc - 1, argv + 1, dirs, DIRS));
    const char* name = out_file(folder, out, 1);
    set_threads(0);
    Stages stages = {allocate(MAX_STAGES, sizeof(RunStage)), 0};
    for (int i = 0; i < count; i++) {
        add_run(&stages, dirs[i]);
        text_printf(&title, "%s%s", i ? ", " : "Report: ", dirs[i]);
    }
    qsort(stages.list, (size_t)stages.count, sizeof(RunStage), compare_stages);
    Subject s = subject_load(&stages, data);
    page_begin(&page, title.data);
    put_stages(&page, &stages);
    put_loop(&page, s.stage, &s.o);
    put_curves(&page, &stages);
    put_before_after(&page, &s, examples);
    put_rollouts(&page, &s, question);
    put_settings(&page, &stages);
    put(&page, "</main>\n</body>\n</html>\n");
    write_file(folder, name, &page);
    subject_free(&s);
    for (int i = 0; i < stages.count; i++) json_free(stages.list[i].state);
    printf("wrote %s, %zu KB; stages: %d\n", out, page.length / 1000, stages.count);
    free(stages.list), text_free(&page), text_free(&title);
    return end_of_output(0);
}
