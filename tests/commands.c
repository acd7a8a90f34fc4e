// commands.c - every command of ./rl once, as a student runs it: exit status 0, at most 80 columns, each
// printed column with its own value, and the files. ./rl grade and ./rl overlap are in grade.c, ./rl plot,
// --help and the recipes in recipes.sh and docs.sh, the lessons in golden.c.

static int rl(int argc, char** argv) {            // ./rl WORDS
    char* all[40] = {(char*)"./rl"};
    memcpy(all + 1, argv, (size_t)argc * sizeof *argv);
    return rl_main(argc + 1, all, tools, (int)(sizeof tools / sizeof *tools));
}

// It ends with status 0 and without a complaint, and what it prints fits 80 columns, but for lines with the
// test's folder.
#define RL(...) success(run_command(rl, (const char*[]){__VA_ARGS__, NULL}))
static const Ran* success(const Ran* r) {
    if (r->status) BROKEN("status %d: %s\n", r->status, r->err);
    static char text[sizeof r->out];
    strcpy(text, r->out);
    for (char* line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (strlen(line) > 80 && !strstr(line, folder)) BROKEN("more than 80 columns: %s\n", line);
    return r;
}

// The number in the column `name` and the row `row` of a file; NaN = the field is empty.
static double cell(const char* file, const char* name, int row) {
    int rows = 0;
    double *x = read_column(&rows, in_folder(file), name, 1), number = row < rows ? x[row] : NAN;
    CHECK(row < rows);
    free(x);
    return number;
}

// A row of a file holds these numbers, in columns of these names.
typedef struct { const char* name; double value; } Cell;
#define CELLS(file, row, tolerance, ...)                                                   \
    check_cells(file, row, tolerance, (const Cell[]){__VA_ARGS__, {NULL, 0.0}})
static void check_cells(const char* file, int row, double tolerance, const Cell* cells) {
    for (; cells->name; cells++) CHECK_NEAR(cell(file, cells->name, row), cells->value, tolerance);
}

static const char *tag, *data, *before_tag;       // --model-tag=..., --data=..., --compare=...

static Evaluation evaluated_on(const char* file, int new_tokens, const char* path, int count, int samples) {
    Model m = load_model(path);
    RlOptions o = rl_defaults();
    o.sample.max_new_tokens = new_tokens;
    Questions q = load_questions(file, m.config.context, new_tokens, find_reward("gsm8k"));
    Evaluation e = evaluate_model(&m, &q, count, samples, o.sample, find_reward("gsm8k"), NULL, o.seed + 2);
    questions_free(&q), model_free(&m);
    return e;
}

static Evaluation evaluated(const char* path) { return evaluated_on(data_path, NEW_TOKENS, path, 9, 4); }

// ---- training

// metrics.csv and the screen against the record of the same updates, done here.
// told[i]: column i was seen beside another number than its neighbour has; equal ones prove nothing.
enum { TRAIN_COLUMNS = 18 };
static void check_train_columns(int* told, const char* reward) {
    static World w;
    const Ran* r = RL("train", tag, data, option("out", "run"), option("eval-data", "exam.jsonl"),
                      reward, "--algo=grpo", "--epochs-per-batch=2", "--num-samples=4", "--lr=0.03",
                      "--examples-per-step=4", "--max-new-tokens=12", "--num-steps=2", "--init-lr-frac=1",
                      "--log-every=1", "--eval-every=2", "--eval-examples=5", "--eval-samples=2",
                      "--allow-overlap", "--overwrite", "--threads=1");
    START(&w, "--algo=grpo", reward, "--epochs-per-batch=2", "--lr=0.03");
    Metrics s = {0};
    for (long step = 0; step < 2; step++) {
        int chosen[QUESTIONS];
        deal_examples(chosen, QUESTIONS, step, w.q.count, w.o.seed);
        s = rl_step(&w.setup.learner, w.group, &w.q, chosen, step, lr_schedule(step, 2, 0, 0.0));
    }
    Evaluation e = evaluated_on(in_folder("exam.jsonl"), NEW_TOKENS, in_folder("run"), 5, 2);
    const Cell expected[TRAIN_COLUMNS + 1] = {
        {"reward", s.reward}, {"accuracy", s.accuracy}, {"kl_ref", s.kl_ref},
        {"clip_fraction", s.clip_fraction}, {"length", s.length}, {"entropy", s.entropy},
        {"grad_norm", s.grad_norm}, {"held_out", e.pass[0]}, {"pass_rate", s.pass_rate},
        {"tool_rate", s.tool_rate}, {"format_rate", s.format_rate}, {"zero_variance", s.zero_variance},
        {"resampled", s.resampled}, {"ratio", s.ratio}, {"approx_kl", s.approx_kl}, {"loss", s.loss},
        {"value_loss", s.value_loss}, {"lr", s.lr}, {NULL, 0.0}};
    for (int i = 1; i < TRAIN_COLUMNS; i++) told[i] |= expected[i].value != expected[i - 1].value;
    check_cells("run/metrics.csv", 1, 1e-8, expected);
    double seconds = cell("run/metrics.csv", "seconds", 1);
    double speed = cell("run/metrics.csv", "tokens_per_second", 1);
    CHECK_NEAR(speed * seconds, s.length * QUESTIONS * SAMPLES, 1e-6);
    CHECK(s.kl_ref > 0.0005 && s.clip_fraction > 0.0);    // what is compared are no zeros
    ROW(r->out, "update reward accuracy kl_ref clipped length entropy |grad| seconds held-out");
    ROW(r->out, "1 * * * * * * * *");                     // no exam after this one
    ROW(r->out, "2 %.3f %.3f %.3f %.4f %.1f %.3f %.3f %.2f %.3f", s.reward, s.accuracy, s.kl_ref,
        s.clip_fraction, s.length, s.entropy, s.grad_norm, seconds, e.pass[0]);
    SAYS(r->out, "reinforcement learning (grpo): 2 updates of 4 questions x 4 rollouts\n  reward: gsm8k");
    CHECK(file_exists(in_folder("run/trainer_state.json")));
    Model trained = load_model(in_folder("run"));
    CHECK(same_weights(&trained.weights, &w.setup.policy.weights));
    model_free(&trained), evaluation_free(&e), finish(&w);
}

// The model's part of the reward tells it from the accuracy, the verifier alone makes zero-variance groups.
static void command_train_columns(void) {
    char both[PATH_SIZE + 32];
    int told[TRAIN_COLUMNS] = {1};
    put("exam.jsonl", json("{'question': '2+2?', 'answer': '#### 4'}\n{'question': '2+2?', 'answer': '5'}\n"
                           "{'question': '3+3?', 'answer': '#### 6'}\n"));
    snprintf(both, sizeof both, "--reward=gsm8k+model:%s", reward_model_path);
    check_train_columns(told, both);
    check_train_columns(told, "--reward=gsm8k");          // command_compare_columns goes on with this one
    for (int i = 0; i < TRAIN_COLUMNS; i++) CHECK(told[i]);
}

static void command_algos_rows(void) {
    const Ran* r = RL("algos");
    ROW(r->out, "--algo advantage ratio norm clip KL minibatch");
    ROW(r->out, "nanochat centered none token - - all");
    ROW(r->out, "grpo grpo token sequence 0.2, 0.2 0.04 k3 in loss all");
    ROW(r->out, "ppo gae token token 0.2, 0.2 0.02 k1 in reward 8");
    ROW(r->out, "dapo Yu et al. 2025; resample 3, overlong 16");
}

// Loss, margin and the two sides of one pair belong together, on the screen as in the file; |grad| differs
// from every other column. The table of the held-out pairs is computed here again.
static void check_pair_columns(const PairCommand* c, const char* beta) {
    double scale = c->scalar ? 1.0 : 0.1;
    const Ran* r = RL(c->name, tag, option("data", "pair.jsonl"), option("eval-data", "held.jsonl"), beta,
                      "--num-steps=3", "--batch-size=2", "--log-every=1", "--lr=0.01", "--warmup-steps=0",
                      option("out", "one"), "--overwrite");
    SAYS(r->out, ": 3 updates of 2 of 1 pairs\n");
    ROW(r->out, "update loss margin accuracy chosen rejected |grad| seconds");
    for (int step = 1; step < 3; step++) {
        static const char* const names[] = {"loss", "margin", "accuracy", "chosen", "rejected", "grad_norm",
                                            "seconds"};
        double x[7], begun[2] = {0, 0};
        for (int i = 0; i < 7; i++) x[i] = cell("one/metrics.csv", names[i], step);
        for (int i = 0; i < 2 && !c->scalar; i++) begun[i] = cell("one/metrics.csv", names[3 + i], 0);
        CHECK_NEAR(x[0], log1p(exp(-x[1])), 1e-6);
        CHECK_NEAR(x[1], scale * ((x[3] - begun[0]) - (x[4] - begun[1])), 1e-5);
        CHECK(x[1] != 0.0 && x[2] == (x[1] > 0.0) && x[3] != x[4]);
        double lr = cell("one/metrics.csv", "lr", step);
        for (int i = 0; i < 7; i++) CHECK(x[5] > 0.0 && x[5] != lr && (x[5] != x[i]) == (i != 5));
        CHECK_NEAR(lr, 0.01 * lr_schedule(step, 3, 0, 0.0), 1e-7);
        ROW(r->out, "%d %.4f %.3f %.3f %.2f %.2f %.3f %.2f", step + 1, x[0], x[1], x[2], x[3], x[4], x[5],
            x[6]);
    }
    RlOptions o = pair_defaults(c);
    Model m = load_model(in_folder("one")), start = load_model(model_path);
    Pairs held = load_pairs(in_folder("held.jsonl"));
    render_pairs(&held, m.config.context, "held.jsonl");
    if (!c->scalar) set_reference(&held, &start, find_pair_loss(&o, c));
    PairEvaluation e = evaluate_pairs(&m, &held, find_pair_loss(&o, c), o.beta);
    SAYS(r->out, ": 3 pairs of 2 questions\n");
    ROW(r->out, "ranked right %.4f 95%% interval %.4f to %.4f", e.accuracy, e.low, e.high);
    ROW(r->out, "called pairs predicted observed");
    SAYS(r->out, "\n  0.5 to 0.6  ");
    for (int b = 0; b < CALIBRATION_BINS; b++)
        if (!e.count[b]) ROW(r->out, "%.1f to * 0 - -", 0.5 + 0.1 * b);
        else ROW(r->out, "%.1f to * %d %.4f %.4f", 0.5 + 0.1 * b, e.count[b], e.predicted[b], e.observed[b]);
    ROW(r->out, "expected calibration error %.4f", e.error);
    CHECK(e.error != e.accuracy && e.low < e.accuracy && e.accuracy < e.high);
    pairs_free(&held), model_free(&m), model_free(&start);
}

static void command_reward_model_columns(void) {
    check_pair_columns(&pair_commands[0], "--loss=bradley-terry");
}
static void command_dpo_columns(void) { check_pair_columns(&pair_commands[1], "--beta=0.1"); }

static void command_pairs_file(void) {
    const Ran* r = RL("pairs", tag, data, "--annotator=verifier", "--num-samples=8", "--max-new-tokens=12",
                      "--pairs=3", option("out", "made.jsonl"));
    SAYS(r->out, "8 answers to each of 10 questions\n  annotator: ", "  3 pairs, from ");
    Pairs p = load_pairs(in_folder("made.jsonl"));
    CHECK(p.count == 3);
    for (int i = 0; i < p.count; i++) {
        char truth[16];                           // the question is "N+N?"
        snprintf(truth, sizeof truth, "%d", 2 * atoi(p.list[i].question));
        CHECK(reward_gsm8k(p.list[i].answer[CHOSEN], truth) == 1.0f);
        CHECK(reward_gsm8k(p.list[i].answer[REJECTED], truth) == 0.0f);
    }
    pairs_free(&p);
}

static void command_best_of_n_files(void) {
    const Ran* r = RL("best-of-n", tag, data, "--num-samples=16", "--max-new-tokens=12", "--steps=2",
                      "--log-every=1", "--keep=overall", option("out", "best"));
    Text kept = read_file(in_folder("best/kept.jsonl"));
    int lines = 0, questions = 0;
    const char* before = "";
    for (char* s = kept.data; *s; before = s, s = strchr(s, '\n') + 1, lines++)
        questions += strncmp(s, before, strlen("{\"question\": \"2+2?\"")) != 0;
    CHECK(lines > questions && questions > 1);
    SAYS(r->out, "16 answers to each of 10 questions\n", "  of 160 answers, mean reward 0.");
    ROW(strstr(r->out, "  of 160"), "of 160 answers, mean reward %s %d are kept (overall):", "*", lines);
    ROW(r->out, "mean reward 1.000, answers to %d questions; wrote %s/kept.jsonl", questions,
        in_folder("best"));
    CHECK(file_exists(in_folder("best/model.safetensors")));
    text_free(&kept);
}

// ---- looking at models

static void command_eval_columns(void) {
    const Ran* r = RL("eval", tag, data, "--eval-examples=9", "--num-samples=4", "--max-new-tokens=12",
                      option("out", "eval.csv"));
    Evaluation e = evaluated(model_path);
    SAYS(r->out, "9 questions x 4 samples, reward gsm8k\n");
    SAYS_NOT(r->out, "skipped");                   // all of them fit
    ROW(r->out, "tool used in format length seconds directory");
    ROW(r->out, "model %.4f %.4f %.1f * %s", e.tool_rate, e.format_rate, e.length, model_path);
    ROW(r->out, "k pass@k 95%% interval vote 95%% interval no vote tokens");
    for (int k = 1; k <= 4; k *= 2) {
        int i = k - 1;
        ROW(r->out, "%d %.4f %.4f-%.4f %.4f %.4f-%.4f %.4f %.1f", k, e.pass[i], e.low[i], e.high[i],
            e.vote[i], e.vote_low[i], e.vote_high[i], e.no_vote[i], k * e.length);
        CELLS("eval.csv", k / 2, 1e-5, {"k", k}, {"pass_at_k", e.pass[i]}, {"low", e.low[i]},   // row 0, 1, 2
              {"high", e.high[i]}, {"vote", e.vote[i]}, {"vote_low", e.vote_low[i]},
              {"vote_high", e.vote_high[i]}, {"no_vote", e.no_vote[i]}, {"tokens", k * e.length});
    }
    CHECK(e.pass[3] > e.vote[3] && e.tool_rate < e.format_rate);     // columns of different numbers
    evaluation_free(&e);
}

static void command_eval_compare_columns(void) {
    double low, high;
    int solved[4];
    const Ran* r = RL("eval", tag, before_tag, data, "--eval-examples=9", "--num-samples=4",
                      "--max-new-tokens=12");
    Evaluation a = evaluated(in_folder("before")), b = evaluated(model_path);
    ROW(r->out, "before %.4f %.4f %.1f * %s", a.tool_rate, a.format_rate, a.length, in_folder("before"));
    ROW(r->out, "after %.4f %.4f %.1f * %s", b.tool_rate, b.format_rate, b.length, model_path);
    ROW(r->out, "k before 95%% interval after 95%% interval change 95%% interval");
    for (int k = 1; k <= 4; k *= 2) {
        int i = k - 1;
        double change = pass_difference(&low, &high, &a, &b, k);
        ROW(r->out, "%d %.4f %.4f-%.4f %.4f %.4f-%.4f %+.4f %+.4f to %+.4f", k, a.pass[i], a.low[i],
            a.high[i], b.pass[i], b.low[i], b.high[i], change, low, high);
    }
    count_solved(solved, &a, &b);
    ROW(r->out, "by both %d, only after %d, only before %d, by neither %d", solved[3], solved[2], solved[1],
        solved[0]);
    r = RL("eval", option("model-tag", "before"), option("compare", "model"), data, "--eval-examples=9",
           "--num-samples=4", "--max-new-tokens=12", option("out", "both.csv")); // here "before" solves some
    ROW(r->out, "1 %.4f %.4f-%.4f * * * * to *", b.pass[0], b.low[0], b.high[0]);
    double change = pass_difference(&low, &high, &b, &a, 2);
    CELLS("both.csv", 1, 1e-5, {"tokens", 2.0 * a.length}, {"before", b.pass[1]}, {"before_low", b.low[1]},
          {"before_high", b.high[1]}, {"change", change}, {"change_low", low}, {"change_high", high});
    ROW(r->out, "Something new can show only on the %d of 9 questions unsolved before.",
        solved[0] + solved[1]);
    CHECK(a.pass[0] != b.pass[0] && solved[2] > 0 && solved[3] != solved[2] && solved[1] != solved[0]);
    evaluation_free(&a), evaluation_free(&b);
}

// The answers that ./rl sample gives to question number `number`
static Rollout* sampled(Model* m, const char* question, int samples, int new_tokens, int number) {
    SampleOptions o = rl_defaults().sample;
    Tokens prompt = {0};
    o.max_new_tokens = new_tokens;
    render_prompt(&prompt, question);
    Rollout* r = generate(m, &prompt, 1, samples, o, tool_calculator, rl_defaults().seed + 2,
                          (uint64_t)number);
    tokens_free(&prompt);
    return r;
}

static void command_sample_answers(void) {
    const Ran* r = RL("sample", tag, "7+7?", "--answer=14", "--num-samples=4", "--max-new-tokens=12");
    Model m = load_model(model_path);
    Rollout* x = sampled(&m, "7+7?", 4, 12, 0);
    for (int k = 0; k < 4; k++) {
        Text text = rollout_text(&x[k]);
        ROW(r->out, "rollout %d: %d tokens%s, reward %g", k + 1, x[k].length,
            x[k].finished ? "" : ", cut off", (double)reward_gsm8k(text.data, "14"));
        text_free(&text);
    }
    rollouts_free(x), model_free(&m);
}

// What --explain prints of one answer, against the rollout and the logits: as many of the three likeliest
// other tokens as have room in 44 characters. Returns how many tokens were forced.
static int check_choices(const char* out, Model* m, const Rollout* r) {
    int V = m->config.vocab_size, end = r->prompt + r->length, forced = 0;
    float* logits = all_logits(m, r->ids, end);
    double sum = 0.0;
    for (int t = r->prompt; t < end; t++) {
        float* z = logits + (t - 1) * V;
        double lse = log_sum_exp(z, V), logp = r->logp[t - 1], p;
        char row[200], text[24];
        int n = snprintf(row, sizeof row, "%3d %-17.17s", t - r->prompt, token_text(text, r->ids[t]));
        size_t room = sizeof row - (size_t)n - 16;
        forced += !r->mask[t];
        if (!r->mask[t]) snprintf(row + n, room, " forced       -  written by the calculator");
        else n += snprintf(row + n, room, " %.4f %7.*f", exp(logp), nats_decimals(-logp), logp);
        sum += r->mask[t] ? logp : 0.0;
        z[r->ids[t]] = -INFINITY;
        for (int i = 0, best = 0, from = n; i < 3 && r->mask[t]; i++) {
            for (int v = 0; v < V; v++) best = z[v] > z[best] ? v : best;
            int more = (int)strlen(token_text(text, best)) + 9;                   // "  token 0.1234"
            if ((p = exp(z[best] - lse)) < 5e-5 || n + more - from > 44) break;
            n += snprintf(row + n, room, "  %s %.4f", text, p);
            z[best] = -INFINITY;
        }
        SAYS(out, strcat(row, "\n"));
    }
    ROW(out, "all %d %.4f %.4f product of the p, sum of the log pi", count_masked(r->mask, r->T), exp(sum),
        sum);
    free(logits);
    return forced;
}

// Questions from a file: one answer to each, up to the empty line, and no prompt.
static void command_sample_explains(void) {
    static const char* const asked[] = {"1+1?", "2+2?", "1+1?"};
    put_crowd();
    put("asked.txt", "1+1?\r\n2+2?\n1+1?\n\n9+9?\n");
    CHECK(freopen(in_folder("asked.txt"), "r", stdin) != NULL);
    const Ran* r = RL("sample", "--explain", option("model-tag", "taught"), "--num-samples=2",
                      "--max-new-tokens=20");
    Model m = load_model(in_folder("taught"));
    const char* line = r->out;
    int forced = 0;
    for (int q = 0; q < 3; q++) {
        Rollout* x = sampled(&m, asked[q], 2, 20, q);
        ROW(line, "Question %s", asked[q]);
        for (int k = 0; k < 2; k++) {
            ROW(line, "rollout %d: %d tokens%s", k + 1, x[k].length, x[k].finished ? "" : ", cut off");
            line = strstr(line, "alternatives\n");
            CHECK(line != NULL);
            line = line ? line + 1 : r->out;
            forced += check_choices(line, &m, &x[k]);
        }
        rollouts_free(x);
    }
    CHECK(forced > 0);
    SAYS_NOT(r->out, "9+9?", "question>");
    model_free(&m);
}

// Centered advantages: adv is the reward minus the mean of the column; after - before is the change.
static void command_trace_columns(void) {
    const Ran* r = RL("trace", "7+7?", tag, "--answer=14", "--num-samples=6", "--max-new-tokens=12");
    double x[6][8], loss = 0.0, lr = 0.0, mean = 0.0, weighted = 0.0, tokens = 0.0;
    ROW(r->out, "k reward adv tokens sampled before after change answer ends");
    const char* row = strstr(r->out, "change  answer ends\n");
    for (int k = 0; k < 6 && row; k++) {
        double* y = x[k];
        row = strchr(row, '\n') + 1;
        CHECK(sscanf(row + 1, "%lf %lf %lf %lf %lf %lf %lf %lf", y, y + 1, y + 2, y + 3, y + 4, y + 5, y + 6,
                     y + 7) == 8);
        CHECK(y[0] == k && y[3] == y[4] && y[3] > 1.0 && y[5] < 0.0);
        CHECK_NEAR(y[7], y[6] - y[5], 2e-3);
        mean += y[1] / 6.0;
        weighted -= y[2] * y[5];
        tokens += y[4];
    }
    CHECK(row && mean > 0.0 && mean < 1.0);
    CHECK(sscanf(strstr(r->out, "One update"), "One update: loss %lf, gradient norm %*f, learning rate %lf",
                 &loss, &lr) == 2);
    CHECK_NEAR(lr, rl_defaults().lr * rl_defaults().init_lr_frac, 1e-6);
    CHECK_NEAR(loss, weighted / tokens, 1e-3);                            // every token counts the same
    for (int k = 0; k < 6; k++) CHECK_NEAR(x[k][2], x[k][1] - mean, 1e-4);
}

static void command_experiments(void) {
    double n = 0.0, sum = 0.0, each = 0.0, product = 0.0;
    const Ran* r = RL("experiment", "1", tag, data, "--max-new-tokens=12");
    const char* row = strstr(r->out, "right: ids and mask shifted");
    CHECK(row && sscanf(row + 28, "%lf %lf %lf %lf", &n, &sum, &each, &product) == 4);
    CHECK_NEAR(each, sum / n, 1e-4);
    CHECK_NEAR(product / exp(sum), 1.0, 1e-3);
    ROW(r->out, "tokens sum, nats per token exp(sum)");
    // <|bos|> <|user_start|> 2 + 2 ? <|user_end|> <|assistant_start|>; of the answer three tokens are forced
    r = RL("experiment", "1", tag, data, "--max-new-tokens=12", "--completion=<<2+2=4>>#### 4");
    SAYS(r->out, "8 tokens of prompt, 15 of answer, 12 of them with mask 1\n");
    r = RL("experiment", "2", tag, data, "--max-new-tokens=12");
    ROW(r->out, "noise KL(P||Q) k1 k3 dev k1 dev k3");
    ROW(r->out, "noise 0.1 0.5 1.0 2.0 3.0 4.0");
    r = RL("experiment", "3", tag, data, "--max-new-tokens=12", "--num-samples=4", "--eval-examples=3");
    ROW(r->out, "k gsm8k A boxed A partial A length A");
    ROW(r->out, "reward mean reward |A| < 0.1 z p^4 + (1-p)^4, p = the mean");
    REFUSED(COMMAND(rl, "experiment", "4", tag, data), "1, 2 or 3");
}

// Nine questions, four answers each; the run of command_train_columns, in 7.5 seconds, of which it took 3.5
// to reach 0.9
static void command_compare_columns(void) {
    put("run/metrics.csv", "step,seconds,held_out\n0,1.5,0.25\n1,2,0.95\n2,4,0.96\n");
    const Ran* r = RL("compare", in_folder("run"), option("reference", "model"), data, "--num-samples=4",
                      "--max-new-tokens=12", "--eval-examples=9");
    Evaluation e = evaluated(in_folder("run"));
    ROW(r->out, "pass@1 95%% interv. pass@k 95%% interv. KL length s upd. s");
    ROW(r->out, "run %.3f %.3f-%.3f %.3f %.3f-%.3f * %.1f 7.5 2 3.5", e.pass[0], e.low[0], e.high[0],
        e.pass[3], e.low[3], e.high[3], e.length);
    SAYS(r->out, "k = 4 answers to each of 9 questions.");
    CHECK(e.pass[0] != e.pass[3]);
    evaluation_free(&e);
}

// The taught model uses the calculator now and then: no number after training is that before.
static void command_run_story(void) {
    put_crowd();
    char* file = copy_text(in_folder("two.jsonl"));
    const Ran* r = RL("run", option("model-tag", "taught"), option("data", "two.jsonl"),
                      option("eval-data", "two.jsonl"), "--allow-overlap", option("out", "story"),
                      "--num-steps=2", "--num-samples=8", "--examples-per-step=2", "--max-new-tokens=30",
                      "--eval-every=0", "--lr=0.02", "--init-lr-frac=1", "--threads=1", "--log-every=1");
    ROW(r->out, "1 * * - 0.0000 * * * *");                // no reference, no KL
    CHECK(isnan(cell("story/rl/metrics.csv", "kl_ref", 0)));
    Evaluation a = evaluated_on(file, 30, in_folder("taught"), 2, 16);
    Evaluation b = evaluated_on(file, 30, in_folder("story/rl"), 2, 16);
    SAYS(r->out, "2 held-out questions, 16 answers to each:");
    ROW(r->out, "before RL, on 2 held-out questions: pass@1 %.3f,", a.pass[0]);
    ROW(r->out, "calculator used %.3f, rewarded format %.3f", a.tool_rate, a.format_rate);
    ROW(r->out, "before RL after RL");
    for (int k = 1; k <= 16; k += 15) {
        ROW(r->out, "pass@%d %.3f %.3f", k, a.pass[k - 1], b.pass[k - 1]);
        ROW(r->out, "95%% interval %.3f-%.3f %.3f-%.3f", a.low[k - 1], a.high[k - 1], b.low[k - 1],
            b.high[k - 1]);
    }
    ROW(r->out, "answers that used the calculator %.3f %.3f", a.tool_rate, b.tool_rate);
    ROW(r->out, "answers in the rewarded format %.3f %.3f", a.format_rate, b.format_rate);
    ROW(r->out, "mean length, tokens %.1f %.1f", a.length, b.length);
    CHECK(a.pass[0] != b.pass[0] && a.length != b.length);
    CHECK(a.tool_rate != b.tool_rate && a.format_rate != b.format_rate);
    Text text = read_file(in_folder("story/result.json"));
    Json* result = json_parse(text.data, text.length, "result.json");
    const Json *before = json_get(result, "before"), *after = json_get(result, "after");
    CHECK(before && after);
    CHECK_NEAR(json_get(before, "pass_at_1")->number, a.pass[0], 1e-4);
    const struct { const char* name; double value; } expected[] = {
        {"pass_at_1", b.pass[0]}, {"pass_at_1_low", b.low[0]}, {"pass_at_1_high", b.high[0]},
        {"pass_at_k", b.pass[15]}, {"pass_at_k_low", b.low[15]}, {"pass_at_k_high", b.high[15]},
        {"tool_rate", b.tool_rate}, {"format_rate", b.format_rate}};
    for (int i = 0; i < 8; i++)
        CHECK_NEAR(json_get(after, expected[i].name)->number, expected[i].value, 1e-4);
    CHECK_NEAR(json_get(after, "mean_length")->number, b.length, 0.06);
    CHECK(json_get(result, "sft_seconds")->number == 0.0 && json_get(result, "rl_seconds")->number > 0.0);
    CHECK(json_get(result, "total_seconds")->number > json_get(result, "rl_seconds")->number);
    CHECK(file_exists(in_folder("story/rl/metrics.csv")));
    text_free(&text), json_free(result), free(file), evaluation_free(&a), evaluation_free(&b);
}

// ---- chapter 2 and the lessons

static void command_thermostat_learns(void) {
    const Ran* r = RL("thermostat");
    // -0.03 (70 - 40), and 2.4 more
    SAYS(r->out, "At 70 F a step changes -0.9 F with the heater off, -0.03 (70 - 40), and 1.5 F\n");
    SAYS(r->out, "REINFORCE, 64 updates of 8 days each.");
    double nothing = last_number(line_of(r->out, "random switching"));
    double learned = last_number(line_of(r->out, "learned"));
    CHECK(nothing > 0.0 && nothing < 20.0);
    CHECK(learned > 95.0 && learned <= 100.0);
}

static void command_cartpole_columns(void) {
    const Ran* r = RL("cartpole", "--seed=3");
    for (int b = 0; b < BASELINES; b++) {
        CartPoleRun run;
        Rng rng = {3 + 1000};
        train_cartpole(&run, 3, b, (float)cartpole_learning_rate);
        ROW(r->out, "pi(right) = sigmoid(%.2f %+.2f x %+.2f x_dot %+.2f theta %+.2f theta_dot)", run.w[0],
            run.w[1] / x_limit, run.w[2] / 2.0, run.w[3] / theta_limit, run.w[4] / 2.0);
        ROW(r->out, "%s solved after %d steps; 100 new episodes: %.1f of 500", baseline_names[b], run.solved,
            test_cartpole(run.w, 100, &rng));
    }
    SAYS(r->out, "a group of 8 episodes averages 475 of 500 or more");
}

static void command_lesson_pages(void) {
    SAYS(RL("lesson", "7")->out, "LESSON 7. ");
    SAYS(RL("lesson", "chain")->out, "LESSON chain. ");
    const Ran* zh = COMMAND(rl, "lesson", "3", "--zh");
    CHECK(!strncmp(zh->out, "\u8bed\u8a00\u6a21\u578b\u5c31\u662f\u7b56\u7565\nLESSON 3. ", 31));
    SAYS(zh->out, "moves with it.\n\u8981\u70b9\uff1alogits[t] ");
    SAYS_NOT(RL("lesson", "3")->out, "\u8981\u70b9");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char name[40];
        snprintf(name, sizeof name, " %s ", commands[i].name);   // a new command gets a case here
        SAYS(" run train algos pairs reward-model dpo best-of-n eval sample trace experiment lesson "
             "thermostat cartpole ", name);
    }
}

static void test_commands(void) {
    make_models();
    Model m = tiny_model(6);                      // solves nothing
    put_model(in_folder("before"), &m);
    model_free(&m);
    put("pair.jsonl", json("{'question': '2+2?', 'chosen': '#### 4', 'rejected': '#### 5'}\n"));
    put("held.jsonl", json("{'question': '3+3?', 'chosen': '#### 6', 'rejected': '#### 7'}\n"
                           "{'question': '3+3?', 'chosen': '#### 7', 'rejected': '#### 6'}\n"
                           "{'question': '4+4?', 'chosen': '#### 8', 'rejected': '#### 9'}\n"));
    tag = copy_text(option("model-tag", "model"));
    data = copy_text(option("data", "questions.jsonl"));
    before_tag = copy_text(option("compare", "before"));
    RUN_ALL(TEST(command_train_columns), TEST(command_algos_rows),
            TEST(command_pairs_file), TEST(command_reward_model_columns), TEST(command_dpo_columns),
            TEST(command_best_of_n_files), TEST(command_eval_columns), TEST(command_eval_compare_columns),
            TEST(command_sample_answers), TEST(command_sample_explains), TEST(command_trace_columns),
            TEST(command_experiments), TEST(command_compare_columns), TEST(command_run_story),
            TEST(command_thermostat_learns), TEST(command_cartpole_columns), TEST(command_lesson_pages));
    remove_folder();
}
