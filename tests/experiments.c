// experiments.c - D3's experiments 2 and 3 on numbers that can be worked by hand, and the plot

// One place, two tokens. Reference (1/2, 1/2); the policy has the noise on its logits, so that with d = the
// difference of its logits pi = 1/(1 + e^-d), and KL(pi||ref) = log 2 + pi log pi + (1 - pi) log(1 - pi).
static void kl_of_one_place(void) {
    static const float logits[2] = {0.0f, 0.0f};
    static const int ids[1] = {1};
    Rng rng = random_stream(7, 4, 0);
    double z0 = random_normal(&rng), z1 = random_normal(&rng);
    for (int from_policy = 0; from_policy < 2; from_policy++)
        for (int i = 0; i < NOISES; i++) {
            double noise, exact, k1, k3, dev1, dev3, returned, variance1, variance3;
            double pi = 1.0 / (1.0 + exp(noises[i] * (z1 - z0)));
            double kl = log(2.0) + pi * log(pi) + (1.0 - pi) * log(1.0 - pi);
            double other = -log(2.0) - 0.5 * log(pi) - 0.5 * log(1.0 - pi);
            const double both[2][2] = {{-log(2.0), -log(2.0)}, {log(pi), log(1.0 - pi)}};
            const char* row = PRINTED(returned = print_kl_row(logits, ids, 1, 2, noises[i], from_policy, 7));
            CHECK(sscanf(row, "%lf %lf %lf %lf %lf %lf", &noise, &exact, &k1, &k3, &dev1, &dev3) == 6);
            CHECK_NEAR(returned, from_policy ? kl : other, 1e-12);
            CHECK_NEAR(exact, returned, 1e-3);
            CHECK(noise == noises[i] && k3 >= 0.0);
            double log_ratio = log(1.0 - pi) + log(2.0);       // of the text's token, as in D3's lines
            CHECK_NEAR(k1, from_policy ? kl : -log_ratio, 6e-4);
            CHECK_NEAR(k3, from_policy ? kl : exp(log_ratio) - 1.0 - log_ratio, 6e-4);
            kl_moments(&variance1, both[from_policy], both[!from_policy], 2, 1.0, 1);
            kl_moments(&variance3, both[from_policy], both[!from_policy], 2, 1.0, 3);
            CHECK_NEAR(dev1, sqrt(variance1), 1e-3 * (1.0 + dev1));
            CHECK_NEAR(dev3, sqrt(variance3), 1e-3 * (1.0 + dev3));
        }
}

// Five groups of four. Zero variance: the first, second and last, z = 3/5. Mean 11/20 = 0.55, so the formula
// says 0.55^4 + 0.45^4 = 0.1325. |A| < 0.1: the 12 answers of these groups, 0.6.
static void groups_of_four(void) {
    static const float rewards[20] = {1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 1, 1, 1, 1};
    // A = -+0.25 / sqrt((0.25^2 + 0.25^2) / 3) = -+1.2247 and two 0: half of them are small, no group is lost
    static const float grades[20] = {0, .25, .25, .5, 0, .25, .25, .5, 0,   .25,
                                     .25, .5, 0, .25, .25, .5, 0, .25, .25, .5};
    const float* reward[2] = {rewards, grades};
    const char *names[2] = {"rule", "graded"}, *text = PRINTED(experiment_3(reward, names, 2, 5, 4));
    SAYS(text, "\n    4         1  0.0000       0.5  1.2247\n", "2. The 5 groups of 4.");
    SAYS(text, "graded           0.250       0.500    0.000         -\n");
    SAYS(text, "rule             0.550       0.600    0.600     0.133\n");
}

// 50 and 100 characters are rewarded, 49 and 101 are not; a letter of three bytes is one character, the end
// of the answer none.
static void length_rule(void) {
    static const struct { int letters; float reward; } cases[] = {{49, 0}, {50, 1}, {100, 1}, {101, 0}};
    for (int i = 0; i < 4; i++)
        for (int foreign = 0; foreign < 2; foreign++) {
            Text text = {0};
            for (int k = 0; k < cases[i].letters; k++) text_printf(&text, foreign ? "\xE5\x9B\xA0" : "a");
            text_printf(&text, "<|assistant_end|>");
            CHECK(reward_length(text.data, "") == cases[i].reward);
            text_free(&text);
        }
}

// ---- the plot (two lines on one scale: tests/recipes.sh)

static void plot_of_two_units(void) {
    // Scaled, each line from its own min to its own max. On the logarithmic axis 1, 4, 16 are evenly spaced;
    // the reward has gained a third at 4, the rest is at its min. The second name with an r is drawn as B.
    double reward[16], rest[16];
    for (int i = 0; i < 16; i++) reward[i] = rest[i] = NAN;                // nothing but at k = 1, 4 and 16
    reward[0] = 10, reward[3] = 20, reward[15] = 40;
    rest[0] = -3, rest[3] = -5, rest[15] = -4;
    Plot p = {.title = "Two units", .x_name = "k", .y = {reward, rest}, .names = {"reward", "rest"},
              .series = 2, .points = 16, .scaled = 1, .log_x = 1};
    CHECK_TEXT(PRINTED(print_plot(&p)),
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
               "         1              2              4              8              16\n"
               "         k\n"
               "\n"
               "  r  reward: 10 to 40\n"
               "  B  rest: -5 to -3\n"
               "  *  more than one of them\n");
}

static void plots_of_little(void) {
    // No number at all; one point; numbers whose difference no double holds.
    static const double none[2] = {NAN, INFINITY}, one[2] = {0.25, NAN};
    static const double far[2] = {1.5e308, -1.5e308};
    const char* nothing = "None\n\n  (there is nothing to draw)\n";
    Plot p = {.title = "None", .x_name = "x", .y = {none}, .names = {"a"}, .series = 1, .points = 2};
    CHECK_TEXT(PRINTED(print_plot(&p)), nothing);
    p.y[0] = far;
    CHECK_TEXT(PRINTED(print_plot(&p)), nothing);
    p.y[0] = one, p.y[1] = none, p.names[1] = "b", p.series = 2;
    const char* text = PRINTED(print_plot(&p));
    SAYS(text, " |a\n", "\n  a  a: 0.25 to 0.25\n  b  b: no numbers\n");
}

static void ranges_have_round_numbers(void) {
    // -0.003 to 0.97: four steps of 0.25 would end at 0.75, of 0.3 at 0.9, of 0.4 at 1.2. A single value has
    // room above it, the least step of its size.
    static const struct { Range r; double low, high; } expected[] = {
        {{-0.003, 0.97}, -0.4, 1.2}, {{0.306, 1.0}, 0.2, 1.0}, {{0.0, 1.0}, 0.0, 1.0}, {{0.1, 0.9}, 0.0, 1.0},
        {{8.5, 500.0}, 0.0, 500.0}, {{-1.5e6, 3e6}, -1.5e6, 4.5e6}, {{5.0, 5.0}, 5.0, 9.0},
        {{0.25, 0.25}, 0.2, 0.6}, {{2.0, 2.0}, 2.0, 2.4}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        Range r = round_range(expected[i].r);
        CHECK_NEAR(r.low, expected[i].low, 1e-12);
        CHECK_NEAR(r.high, expected[i].high, 1e-12);
    }
}

static void test_experiments(void) {
    RUN_ALL(TEST(kl_of_one_place), TEST(groups_of_four), TEST(length_rule), TEST(plot_of_two_units),
            TEST(plots_of_little), TEST(ranges_have_round_numbers));
}
