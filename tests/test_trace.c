// Worksheets for ./rl trace, ./rl experiment and the plot, on a small model with random weights and answers
// that follow a script.
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

// One place, two tokens. Reference (1/2, 1/2); the policy has the noise on its logits, so that with d = the
// difference of its logits pi = 1/(1 + e^-d), and KL(pi||ref) = log 2 + pi log pi + (1 - pi) log(1 - pi).
static void test_kl_row(void) {
    static const float logits[2] = {0.0f, 0.0f};
    static const int ids[1] = {1};
    Rng rng = random_stream(7, 4, 0);
    double z0 = random_normal(&rng), z1 = random_normal(&rng);
    for (int source = FROM_TEXT; source <= FROM_REFERENCE; source++)
        for (int i = 0; i < NOISES; i++) {
            double noise, exact, k1, k3, d3_k1, d3_k3, dev1, dev3;
            double pi = 1.0 / (1.0 + exp(noises[i] * (z1 - z0)));
            double kl = log(2.0) + pi * log(pi) + (1.0 - pi) * log(1.0 - pi);
            double other = -log(2.0) - 0.5 * log(pi) - 0.5 * log(1.0 - pi);
            double L = log(2.0) + log(1.0 - pi);               // of the text's token
            double five = 5.0 / sqrt(KL_DRAWS);                // standard errors of a mean
            Capture c = capture_begin();
            double returned = print_kl_row(logits, ids, 1, 2, noises[i], source, 7);
            Text text = capture_end(&c);
            CHECK(sscanf(text.data, "%lf %lf %lf %lf %lf %lf %lf %lf", &noise, &exact, &k1, &k3, &d3_k1,
                         &d3_k3, &dev1, &dev3) == 8);
            text_free(&text);
            CHECK_NEAR(returned, source == FROM_POLICY ? kl : other, 1e-12);
            CHECK_NEAR(exact, returned, 1e-3);
            CHECK(k1 == -d3_k1 && k3 >= 0.0 && d3_k3 >= 0.0);
            if (source == FROM_TEXT) {
                CHECK_NEAR(k1, L, 6e-3);
                CHECK_NEAR(k3, exp(-L) - 1.0 + L, 6e-3);
                CHECK_NEAR(d3_k3, exp(L) - 1.0 - L, 6e-3);
            } else {   // the signs of the samples: five standard errors, and three printed digits
                double p = source == FROM_POLICY ? pi : 0.5, q = source == FROM_POLICY ? 0.5 : pi;
                double l0 = log(p / q), l1 = log((1.0 - p) / (1.0 - q));
                double s1 = p * l0 * l0 + (1.0 - p) * l1 * l1, s3 = 0.0;
                s3 += p * pow(q / p - 1.0 + l0, 2.0);
                s3 += (1.0 - p) * pow((1.0 - q) / (1.0 - p) - 1.0 + l1, 2.0);
                double k1_error = (source == FROM_POLICY ? k1 : d3_k1) - returned;
                double k3_error = (source == FROM_POLICY ? k3 : d3_k3) - returned;
                CHECK(fabs(k1_error) <= five * sqrt(s1 - returned * returned) + 5e-3 * fabs(k1));
                CHECK(fabs(k3_error) <= five * sqrt(s3 - returned * returned) + 5e-3 * fabs(k3));
            }
        }
}

// Five groups of four. Zero variance: the first, second and last, z = 3/5. Mean 11/20 = 0.55, so the formula
// says 0.55^4 + 0.45^4 = 0.1325. |A| < 0.1: the 12 answers of these groups, 0.6. Groups of 16 that teach:
// 16 * 2/5 = 6.4, +- sqrt(16 * 2/5 * 3/5) = 1.96. In the third and fourth group one answer each is rewarded but
// wrong: 2/20.
static void test_experiment_3(void) {
    static const float rewards[20] = {1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 1, 1, 1, 1};
    static const int right[20] = {1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 1, 1, 1};
    const float* reward[1] = {rewards};
    const char* names[1] = {"rule"};
    Capture c = capture_begin();
    experiment_3(reward, names, 1, right, 5, 4);
    Text text = capture_end(&c);
    CHECK(strstr(text.data, "\n    4         1  0.0000\n"));
    CHECK(strstr(text.data, "rule        0.550         0.600   0.600    0.133    6.4 +- 2.0        0.100\n"));
    text_free(&text);
}

// "He has 17+2643#### 43": 7 + 5 + 2 + 7 = 21 characters; special tokens are none. Two letters of three bytes
// each are two.
static void test_length_rule(void) {
    Rollout* r = three_rollouts();
    ExperimentOptions e = {.shortest = 7, .longest = 20}, two = {.shortest = 2, .longest = 2};
    int ids[7] = {0xE5, 0x9B, 0xA0, 0xE4, 0xB8, 0xBA, ASSISTANT_END};
    Rollout foreign = {.length = 7, .ids = ids};
    CHECK(reward_length(&r[0], &e) == 0.0f);
    CHECK(reward_length(&r[1], &e) == 1.0f && reward_length(&r[2], &e) == 1.0f);
    CHECK(reward_length(&foreign, &two) == 1.0f);
    rollouts_free(r, 3);
}

// ---- the plot (two lines on one scale: tests/recipes.sh)

static void check_plot(const Plot* p, const char* expected) {
    Capture c = capture_begin();
    print_plot(p);
    Text text = capture_end(&c);
    CHECK_TEXT(text.data, expected);
    text_free(&text);
}

static void plot_of_two_units(void) {
    // Scaled, each line from its own min to its own max. On the logarithmic axis 1, 4, 16 are evenly spaced;
    // the reward has gained a third at 4, the rest is at its min. The second name with an r is drawn as B.
    static const double k[3] = {1, 4, 16}, reward[3] = {10, 20, 40}, rest[3] = {-3, -5, -4};
    check_plot(&(Plot){.title = "Two units", .x_name = "k", .x = k, .y = {reward, rest},
                       .names = {"reward", "rest"}, .series = 2, .points = 3, .scaled = 1, .log_x = 1},
               "Two units\n"
               "\n"
               "    max |BB                                                         rr\n"
               "        |  BB                                                   rrrr\n"
               "        |    BBB                                            rrrr\n"
               "        |       BB                                      rrrr\n"
               "        |         BBB                                rrr\n"
               "        |            BB                          rrrr\n"
               "        |              BBB                   rrrr                  BBB\n"
               "        |                 BB             rrrr                 BBBBB\n"
               "        |                   BBB     rrrrr                BBBBB\n"
               "        |                   rrr**rrr                BBBBB\n"
               "        |            rrrrrrr     BBB           BBBBB\n"
               "        |    rrrrrrrr               BB    BBBBB\n"
               "    min |rrrr                         BBBB\n"
               "         +--------------+--------------+--------------+--------------+\n"
               "         1              2              4              8             16\n"
               "                                       k\n"
               "\n"
               "  r  reward: 10 to 40\n"
               "  B  rest: -5 to -3\n"
               "  *  more than one of them\n");
}

static void plots_of_little(void) {
    // No number at all; one point; numbers whose difference no double holds.
    static const double x[2] = {0, 1}, none[2] = {NAN, INFINITY}, one[2] = {0.25, NAN};
    static const double far[2] = {1.5e308, -1.5e308};
    const char* nothing = "None\n\n  (there is nothing to draw)\n";
    Plot p = {.title = "None", .x_name = "x", .x = x, .y = {none}, .names = {"a"}, .series = 1, .points = 2};
    check_plot(&p, nothing);
    p.y[0] = far;
    check_plot(&p, nothing);
    p.y[0] = one, p.y[1] = none, p.names[1] = "b", p.series = 2;
    Capture c = capture_begin();
    print_plot(&p);
    Text t = capture_end(&c);
    CHECK(strstr(t.data, " |a\n") && strstr(t.data, "\n  a  a: 0.25 to 0.25\n  b  b: no numbers\n"));
    text_free(&t);
}

static void ranges_have_round_numbers(void) {
    // -0.003 to 0.97: four steps of 0.25 would end at 0.75, of 0.3 at 0.9, of 0.4 at 1.2. A single value has
    // room above it.
    static const struct { Range r; double low, high; } expected[] = {
        {{-0.003, 0.97}, -0.4, 1.2}, {{0.306, 1.0}, 0.2, 1.0},       {{0.0, 1.0}, 0.0, 1.0},
        {{8.5, 500.0}, 0.0, 500.0},  {{-1.5e6, 3e6}, -1.5e6, 4.5e6}, {{5.0, 5.0}, 5.0, 9.0}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        Range r = round_range(expected[i].r);
        CHECK_NEAR(r.low, expected[i].low, 1e-12);
        CHECK_NEAR(r.high, expected[i].high, 1e-12);
    }
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
    RUN(test_kl_row);
    RUN(test_experiment_3);
    RUN(test_length_rule);
    RUN(test_endings);
    RUN(plot_of_two_units);
    RUN(plots_of_little);
    RUN(ranges_have_round_numbers);
    return check_failed != 0;
}
