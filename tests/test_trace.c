// Worksheets for ./rl trace and ./rl experiment, on a small model with random weights and answers that follow
// a script.
#include "chapters.h"

// What a function prints, between capture_begin() and capture_end(); the text is to be freed.
typedef struct {
    FILE* file;
    int out;
} Capture;

static Capture capture_begin(void) {
    Capture c = {tmpfile(), 0};
    if (!c.file) fail(1, "no temporary file for the test");
    fflush(stdout);
    c.out = dup(1);
    dup2(fileno(c.file), 1);
    return c;
}

static Text capture_end(Capture* c) {
    Text text = {0};
    char buffer[4096];
    size_t n;
    fflush(stdout);
    dup2(c->out, 1), close(c->out);
    rewind(c->file);
    text_append(&text, "", 0);
    while ((n = fread(buffer, 1, sizeof buffer, c->file)) > 0) text_append(&text, buffer, n);
    fclose(c->file);
    return text;
}

static int longest_line(const char* text) {
    int longest = 0;
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
        longest = max_int(longest, (int)strcspn(text, "\n"));
    return longest;
}

static Model small_model(uint64_t seed) {
    Config c = train_defaults().config;
    c.layers = 1, c.width = 24, c.heads = 2, c.kv_heads = 1, c.head_dim = 12, c.mlp_width = 32;
    Model m = model_new(c);
    model_init(&m, seed);
    for (size_t i = 0; i < m.weights.count; i++) m.weights.memory[i] *= 3.0f; // far from the uniform policy
    return m;
}

// Three scripted rollouts: 43 after a call of the tool, 43 from the head, 42 from the head.
static Rollout* three_rollouts(void) {
    static const char* const before[3] = {"He has ", "#### 43", "so #### 42"};
    Rollout* all = allocate(3, sizeof(Rollout));
    for (int k = 0; k < 3; k++) {
        Tokens script = {0};
        tokens_add_text(&script, before[k], strlen(before[k]), 1);
        if (k == 0) {
            tokens_add(&script, PYTHON_START, 1), tokens_add_text(&script, "17+26", 5, 1);
            tokens_add(&script, PYTHON_END, 1), tokens_add_text(&script, "#### 43", 7, 1);
        }
        tokens_add(&script, ASSISTANT_END, 1);
        Rollout* r = play_script(script.ids, script.length);
        all[k] = *r;
        free(r), tokens_free(&script);
    }
    return all;
}

static Trace small_trace(Model* m, Model* other, const char* truth) {
    Tokens prompt = {0};
    render_prompt(&prompt, "17+26?");
    Trace s = trace_group(m, other, &prompt, three_rollouts(), 3, truth, find_reward("gsm8k"));
    tokens_free(&prompt);
    return s;
}

// Rewards 1 1 0, mean 2/3, advantages 1/3 1/3 -2/3. Sampled tokens: 7 + 1 + 5 + 1 + 7 + 1 = 22, forced
// <|output_start|> 4 3 <|output_end|> = 4; then 7 + 1 = 8, and 10 + 1 = 11. Together 41 sampled.
static void test_shares_add_up(void) {
    Model m = small_model(1), other = small_model(2);
    Trace s = small_trace(&m, &other, "43");
    double by_hand = 0.0, sum = 0.0;
    CHECK(count_masked(s.mask, 3 * s.T1) == 41);
    CHECK(s.rollouts[0].length == 26 && count_masked(s.rollouts[0].mask, 26) == 22);
    CHECK_NEAR(s.advantage[0], 1.0 / 3.0, 1e-6);
    CHECK_NEAR(s.advantage[2], -2.0 / 3.0, 1e-6);
    CHECK(first_rewarded(&s) == 0);
    for (int k = 0; k < 3; k++) {
        sum += rollout_share(&s, k);
        for (int t = 0; t < s.rollouts[k].length; t++) {
            int i = k * s.T1 + t, sampled = s.rollouts[k].mask[t];
            by_hand += sampled ? -(k < 2 ? 1.0 / 3.0 : -2.0 / 3.0) * s.logp[i] / 41.0 : 0.0;
            CHECK_NEAR(s.slope[i], sampled ? -(k < 2 ? 1.0 / 3.0 : -2.0 / 3.0) / 41.0 : 0.0, 1e-8);
        }
    }
    CHECK(fabs(s.loss) > 1e-3);
    CHECK_NEAR(sum, s.loss, 1e-7);
    CHECK_NEAR(by_hand, s.loss, 1e-6);
    CHECK(fabs(s.logp[0] - s.other[0]) > 1e-3); // the second model is really asked
    trace_free(&s), model_free(&m), model_free(&other);
}

static void test_trace_without_answer(void) {
    Model m = small_model(1);
    Trace s = small_trace(&m, NULL, NULL);
    CHECK(!s.judged && !s.compared && s.loss == 0.0 && first_rewarded(&s) == 0);
    Capture c = capture_begin();
    print_trace(&s, 1);
    Text text = capture_end(&c);
    CHECK(!strstr(text.data, "reward ") && !strstr(text.data, "slope") && longest_line(text.data) <= 80);
    text_free(&text), trace_free(&s), model_free(&m);
}

// The widest table: the sums in its last line, and 80 columns.
static void test_table_of_tokens(void) {
    Model m = small_model(1), other = small_model(2);
    Trace s = small_trace(&m, &other, "43");
    float sum, sum_other;
    sequence_logprobs(&sum, s.logp, s.mask, 1, s.T1), sequence_logprobs(&sum_other, s.other, s.mask, 1, s.T1);
    Capture c = capture_begin();
    print_tokens(&s.rollouts[0], s.logp, s.other, s.slope);
    Text text = capture_end(&c);
    const char *last = strstr(text.data, "sum over 22 sampled of 26"),
               *forced = strstr(text.data, "forced  0");
    CHECK(longest_line(text.data) <= 80);
    CHECK(last != NULL && forced != NULL);
    double v[4] = {0};
    CHECK(last && sscanf(last + 25, "%lf %lf %lf %lf", &v[0], &v[1], &v[2], &v[3]) == 4);
    CHECK_NEAR(v[0], sum, 1e-4);
    CHECK_NEAR(v[1], sum_other, 1e-4);
    CHECK_NEAR(v[2], (double)sum_other - sum, 1e-4);
    CHECK_NEAR(v[3], 1e3 * rollout_share(&s, 0), 1e-3);
    CHECK(forced && !strncmp(forced, "forced  0       -       -       -  0.0000  0.0000", 49));
    text_free(&text);
    c = capture_begin();
    print_trace(&s, 2);
    text = capture_end(&c);
    CHECK(longest_line(text.data) <= 80 && strstr(text.data, ">  2") != NULL);
    text_free(&text), trace_free(&s), model_free(&m), model_free(&other);
}

static void test_numbers_keep_their_column(void) {
    static const double x[] = {0, -0.00001, -9.99994, -9.99996, 12.5, -99.9996, -123.4, -999.996, -12345.6};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        for (int kind = 0; kind < 3; kind++) {
            Capture c = capture_begin();
            if (kind < 2) print_nats(x[i], kind);
            else print_change(x[i], 1);
            Text text = capture_end(&c);
            CHECK(text.length == 8 && text.data[0] == ' ');
            text_free(&text);
        }
}

// The question and the first scripted rollout as one sequence; the prompt is 4 special tokens and 6 bytes.
static Tokens small_text(void) {
    Tokens text = {0};
    render_prompt(&text, "17+26?");
    Rollout* r = three_rollouts();
    for (int t = 0; t < r[0].length; t++) tokens_add(&text, r[0].ids[t], r[0].mask[t]);
    rollouts_free(r, 3);
    return text;
}

// One pass, one pass per token, and the pass of the trainer, which shares the prompt: three ways, one number.
static void test_decomposition(void) {
    Model m = small_model(1);
    Tokens text = small_text(), prompt = {0};
    float *logits = all_logits(&m, text.ids, text.length), a[26], b[26], trained[26], sum;
    double difference = decompose(a, b, &m, logits, &text, 10), by_hand = 0.0;
    Rollout r = {.length = 26, .ids = text.ids + 10, .mask = text.mask + 10};
    CHECK(text.length == 36);
    CHECK(difference < 1e-5);
    render_prompt(&prompt, "17+26?");
    score_rollout(trained, &m, &prompt, &r);
    for (int t = 0; t < 26; t++) {
        CHECK_NEAR(a[t], b[t], 1e-6);
        CHECK_NEAR(a[t], trained[t], 1e-6);
        CHECK(r.mask[t] ? a[t] < 0.0f : a[t] == 0.0f && b[t] == 0.0f);
        by_hand += a[t];
    }
    float logp[35];
    int shifted[35];
    token_logprobs(logp, logits, text.ids, 1, 36, VOCAB_SIZE);
    shift_mask(shifted, text.mask, 1, 36);
    sequence_logprobs(&sum, logp, shifted, 1, 35);
    CHECK_NEAR(by_hand, sum, 1e-6);
    free(logits), tokens_free(&text), tokens_free(&prompt), model_free(&m);
}

// Chapter 3's example, by hand there: log pi = -0.6832 over 2 tokens; with the prompt 5 tokens.
static void test_mask_slips(void) {
    int ids[EXAMPLE_T], mask[EXAMPLE_T];
    memcpy(ids, example_ids, sizeof ids), memcpy(mask, example_mask, sizeof mask);
    Capture c = capture_begin();
    print_mask_slips(example_logits, ids, mask, 4, EXAMPLE_T, EXAMPLE_V);
    Text text = capture_end(&c);
    static const struct {
        const char* name;
        int tokens;
        double sum;
    } lines[] = {{"right:", 2, -0.6832}, {"mask not shifted", 1, -0.4327}, {"without the mask", 5, -1.7574}};
    for (int i = 0; i < 3; i++) {
        int tokens = 0;
        double sum = 0.0;
        const char* line = strstr(text.data, lines[i].name);
        CHECK(line && sscanf(line + 35, "%d %lf", &tokens, &sum) == 2);
        CHECK(tokens == lines[i].tokens);
        CHECK_NEAR(sum, lines[i].sum, 1.0001e-4);
    }
    CHECK(!strstr(text.data, "forced"));
    text_free(&text);
}

static void test_kl_measure(void) {
    Model m = small_model(1);
    Tokens text = small_text();
    float* logits = all_logits(&m, text.ids, text.length);
    States s = states_new(logits, &text, 10, 7);
    Rng rng = {7};
    CHECK(s.n == 22); // forced tokens are no choices
    CHECK(s.id[0] == 'H' && s.id[21] == ASSISTANT_END);
    float logp_text[35];
    double first[VOCAB_SIZE], last[VOCAB_SIZE];
    token_logprobs(logp_text, logits, text.ids, 1, 36, VOCAB_SIZE);
    policy_at(first, &s, 0, 0.0), policy_at(last, &s, 21, 0.0);
    CHECK_NEAR(first['H'], logp_text[9], 1e-6);                  // token 10 of the text, said by row 9
    CHECK_NEAR(last[ASSISTANT_END], logp_text[34], 1e-6);
    KlMeasure none = measure_kl(&s, 0.0, FROM_POLICY, 3, &rng);
    CHECK(none.exact == 0.0 && none.reverse == 0.0);
    for (int e = 0; e < ESTIMATES; e++)
        CHECK(none.mean[e] == 0.0 && none.expected[e] == 0.0 && none.spread[e] == 0.0 &&
              none.below[e] == 0.0);
    for (int i = 0; i < DRIFTS; i++) {
        KlMeasure k = measure_kl(&s, drifts[i], FROM_TEXT, 1, NULL);
        double logp[VOCAB_SIZE], ref[VOCAB_SIZE], k1 = 0.0, k3 = 0.0, on_text = 0.0;
        for (int j = 0; j < s.n; j++) { // k1 and k3 from their formulas
            policy_at(logp, &s, j, drifts[i]), policy_at(ref, &s, j, 0.0);
            for (int v = 0; v < VOCAB_SIZE; v++) {
                double L = logp[v] - ref[v];
                k1 += exp(logp[v]) * L / s.n;
                k3 += exp(logp[v]) * (exp(-L) - 1.0 + L) / s.n;
            }
            on_text += (logp[s.id[j]] - ref[s.id[j]]) / s.n;
        }
        CHECK(k.exact > 0.0 && k.reverse > 0.0);
        CHECK_NEAR(k1, k.exact, 1e-12);
        CHECK_NEAR(k3, k.exact, 1e-11);
        CHECK_NEAR(k.expected[0], k.exact, 1e-12);
        CHECK_NEAR(k.expected[2], k.exact, 1e-12);
        CHECK_NEAR(k.expected[3], -k.exact, 1e-12);
        CHECK_NEAR(k.mean[0], on_text, 1e-12);
        CHECK(k.below[2] == 0.0 && k.below[4] == 0.0 && k.below[0] > 0.0);
    }
    free(logits), states_free(&s), tokens_free(&text), model_free(&m);
}

// Sampled means meet their expectations within five standard errors: k1 and k3 from the policy, and D3's k1,
// from the reference, the other KL.
static void test_kl_sampled(void) {
    Model m = small_model(1);
    Tokens text = small_text();
    float* logits = all_logits(&m, text.ids, text.length);
    States s = states_new(logits, &text, 10, 7);
    Rng rng = {11};
    KlMeasure p = measure_kl(&s, 1.0, FROM_POLICY, 400, &rng),
              r = measure_kl(&s, 1.0, FROM_REFERENCE, 400, &rng);
    double root = sqrt(400.0 * s.n);
    CHECK(fabs(p.mean[0] - p.exact) < 5.0 * p.spread[0] / root);
    CHECK(fabs(p.mean[2] - p.exact) < 5.0 * p.spread[2] / root);
    CHECK(fabs(r.mean[3] - r.reverse) < 5.0 * p.spread[0] / root);
    CHECK(fabs(r.mean[0] - p.exact) > 10.0 * p.spread[0] / root);
    free(logits), states_free(&s), tokens_free(&text), model_free(&m);
}

// Five groups of four. Without signal: the first, second and last. Sum of c/4: 1 + 0 + 1/4 + 1/2 + 1 = 2.75.
// Formula at c/4: 1 + 1 + (1/256 + 81/256) + 2/16 + 1 = 3.4453125.
static void test_count_groups(void) {
    static const float rewards[5][4] = {{1, 1, 1, 1}, {0, 0, 0, 0}, {0, 1, 0, 0}, {1, 0, 0, 1}, {1, 1, 1, 1}};
    static const int with[5] = {1, 1, 1, 0, 2};
    int counted[5] = {0};
    GroupCounts g = {.K = 4, .with = counted};
    for (int i = 0; i < 5; i++) count_group(&g, rewards[i]);
    CHECK(g.groups == 5 && g.silent == 3);
    for (int c = 0; c <= 4; c++) CHECK(g.with[c] == with[c]);
    CHECK_NEAR(g.rate, 2.75, 1e-15);
    CHECK_NEAR(g.own, 3.4453125, 1e-15);
}

// "He has 17+2643#### 43": 7 + 5 + 2 + 7 = 21 characters; special tokens are none. Two letters of three bytes
// each are two.
static void test_length_rule(void) {
    Rollout* r = three_rollouts();
    float verified[3], by_length[3];
    ExperimentOptions e = {.rl = rl_defaults(), .shortest = 7, .longest = 20};
    int ids[7] = {0xE5, 0x9B, 0xA0, 0xE4, 0xB8, 0xBA, ASSISTANT_END};
    Rollout foreign = {.length = 7, .ids = ids};
    CHECK(count_characters(&r[0]) == 21);
    CHECK(count_characters(&foreign) == 2);
    reward_both(verified, by_length, r, 3, "43", &e);
    CHECK(verified[0] == 1.0f && verified[1] == 1.0f && verified[2] == 0.0f);
    CHECK(by_length[0] == 0.0f && by_length[1] == 1.0f && by_length[2] == 1.0f); // 21, 7 and 10 characters
    rollouts_free(r, 3);
}

static void test_endings(void) {
    static const char* const cases[][2] = {
        {"short", "short"}, {"0123456789abc", "..56789abc"}, {"a\n#### 43", "a #### 43"}, {"", ""}};
    for (int i = 0; i < 4; i++) {
        Capture c = capture_begin();
        print_ending(cases[i][0], 10);
        Text text = capture_end(&c);
        CHECK_TEXT(text.data, cases[i][1]);
        text_free(&text);
    }
}

int main(void) {
    RUN(test_shares_add_up);
    RUN(test_trace_without_answer);
    RUN(test_table_of_tokens);
    RUN(test_numbers_keep_their_column);
    RUN(test_decomposition);
    RUN(test_mask_slips);
    RUN(test_kl_measure);
    RUN(test_kl_sampled);
    RUN(test_count_groups);
    RUN(test_length_rule);
    RUN(test_endings);
    return check_failed != 0;
}
