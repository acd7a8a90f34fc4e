// D2's four answers from logits to the gradient of the logits: every number of `./rl lesson chain`, worked by
// hand. The logits are (3, 2, 1, 1) ln 2 everywhere, so all are fractions and multiples of ln 2 = 0.693147.

static const double chain_ln2 = 0.693147180559945309;

// log-sum-exp = ln(2^3 + 2^2 + 2 + 2) = ln 16; p = 8/16, 4/16, 2/16, 2/16 = 1/2, 1/4, 1/8, 1/8. The mask's
// rows 0110, 0111, 0110, 0100 lose their first entry, the prompt's: 110, 111, 110, 100. What is left adds up
// to -1 - 1 = -2, -2 - 1 - 1 = -4, -1 - 2 = -3 and -1, times ln 2. D2: rewards [1,1,0,0]; r3 is right and not
// in the box. The mean is 1/2, so the advantages are 1/2, 1/2, -1/2, -1/2, and 0 where nothing was sampled.
static void chain_from_logits_to_advantages(void) {
    const double logp[BOARD_N] = {-1, -1, -3,    // r1: token 0, token 0, then 3, which is not scored
                                  -2, -1, -1,    // r2: 1, 0, 0
                                  -1, -2, -3,    // r3: 0, 1, (3)
                                  -1, -3, -3};   // r4: 0, (3), (3)
    const int shifted[BOARD_N] = {1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 0, 0};
    const double sum[BOARD_K] = {-2, -4, -3, -1}, reward[BOARD_K] = {1, 1, 0, 0};
    Board b = board_compute();
    CHECK_NEAR(log_sum_exp(b.logits, BOARD_V), 4 * chain_ln2, 1e-6);
    CHECK(log_sum_exp(b.logits, 0) == -INFINITY);
    for (int i = 0; i < BOARD_N; i++) {
        CHECK_NEAR(b.logp[i], logp[i] * chain_ln2, 1e-6);
        CHECK(b.mask[i] == shifted[i]);
        CHECK(b.token_adv[i] == (shifted[i] ? reward[i / BOARD_T1] - 0.5 : 0.0));
    }
    for (int k = 0; k < BOARD_K; k++) {
        CHECK_NEAR(b.total[k], sum[k] * chain_ln2, 1e-6);
        CHECK(b.reward[k] == reward[k] && b.adv[k] == reward[k] - 0.5);
    }
    CHECK(count_masked(b.mask, BOARD_N) == 8);
}

// d logp/d logit_i = [i = token] - p_i. Token 0: (1/2, -1/4, -1/8, -1/8); token 1: (-1/2, 3/4, -1/8, -1/8).
// Times d loss/d logp, -+1/16 (the worksheet has the loss). The row that scores token t + 1 is row t; a row
// that scores nothing has gradient 0.
static void chain_gradient_of_logits(void) {
    const double p[BOARD_V] = {0.5, 0.25, 0.125, 0.125};
    Board b = board_compute();
    for (int i = 0; i < BOARD_K * BOARD_T * BOARD_V; i++) {
        int v = i % BOARD_V, t = i / BOARD_V % BOARD_T, k = i / BOARD_V / BOARD_T;
        int scored = t < BOARD_T1 && b.mask[k * BOARD_T1 + t];
        double d = !scored ? 0.0 : k < 2 ? -1.0 / 16 : 1.0 / 16;
        if (t < BOARD_T1) CHECK_NEAR(b.dlogp[k * BOARD_T1 + t], d, 1e-7);
        CHECK_NEAR(b.dlogits[i], d * ((scored && v == board_ids[k * BOARD_T + t + 1]) - p[v]), 1e-7);
    }
}

// What is printed fits one screen of 40 lines and 80 columns, and has these numbers.
static void chain_fits_a_screen(void) {
    const Ran* chain = COMMAND(command_lesson, "chain");
    int lines = 0;
    CHECK(chain->status == 0 && longest_line(chain->out) <= 80);
    for (const char* s = chain->out; *s; s++) lines += *s == '\n';
    CHECK(lines <= 40);
    CHECK(strstr(chain->out, "0.08664") && strstr(chain->out, "-0.03125") && strstr(chain->out, "0.19315"));
}

static void test_chain(void) {
    RUN_ALL(TEST(chain_fits_a_screen), TEST(chain_from_logits_to_advantages), TEST(chain_gradient_of_logits));
}
