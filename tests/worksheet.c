// worksheet.c - the page that opens `make test`: what the documents work out by hand, one line of arithmetic
// each, beside the number that the function computes. A wrong number is printed with the one that was
// expected, and the page fails.

static const char* chapter;      // of the lines that follow; printed with the first of them
static int sheet_lines;

// value: what the function said; expected: what the working says.
static void sheet(const char* what, const char* working, double value, double expected) {
    int right = fabs(value - expected) <= 1e-6 * fmax(1.0, fabs(expected));
    printf("%-11s%-27s %-30s%8.4f %s\n", chapter, what, working, value, right ? "ok" : "NO");
    if (!right) printf("%11sexpected %.9g, not %.9g\n", "", expected, value);
    chapter = "";
    sheet_lines++;
    check_broken += !right;
}

static void sheet_return_and_values(void) {
    const double r[3] = {1, 2, 3}, answer[2] = {0, 1};
    const double late[501] = {[500] = 1.0};
    chapter = "chapter 1";
    sheet("return of 1,2,3, gamma 1/2", "1 + 1/2*2 + 1/4*3 = 11/4", discounted_return(r, 3, 0.5), 2.75);
    sheet("500 steps away", "0.99^500 = exp(-5.0252)", discounted_return(late, 501, 0.99), pow(0.99, 500));
    sheet("reward at an answer's end", "0 + 1*1 = 1", discounted_return(answer, 2, 1.0), 1.0);
    const float reward[2] = {0, 1}, value[2] = {0.25f, 0.5f};
    float adv[2];
    advantages_gae(adv, reward, value, 2, 1.0f, 0.5f);
    chapter = "chapter 2";
    sheet("GAE, V 1/4 1/2, lambda 1/2", "A1 = 1 - 1/2 = 1/2", adv[1], 0.5);
    sheet("", "A0 = 0 + 1/2 - 1/4 + 1/2*A1", adv[0], 0.5);
    sheet("thermostat on, at 70 F", "2.4 - 0.03*(70 - 40) = 1.5", thermostat_rate(70, 1), 1.5);
}

// The prompt "2 + 2 =" and the completion "4 <end>" as an MDP: state = the tokens so far, action = the next
// one.
static void sheet_language_model(void) {
    float logp[EXAMPLE_T - 1], sum, entropy;
    int mask[EXAMPLE_T - 1];
    token_logprobs(logp, example_logits, example_ids, 1, EXAMPLE_T, EXAMPLE_V);
    shift_mask(mask, example_mask, 1, EXAMPLE_T);
    sequence_logprobs(&sum, logp, mask, 1, EXAMPLE_T - 1);
    const double e = exp(1.0), first = exp(3.0) / (e + exp(3.0) + 3), second = exp(2.0) / (4 + exp(2.0));
    const float even[2] = {7, 7};
    int shifted = 0;
    while (shifted < EXAMPLE_T - 2 && !mask[shifted]) shifted++;
    token_entropy(&entropy, even, 1, 2);
    chapter = "chapter 3";
    sheet("MDP: s0 \"2 + 2 =\", a0 \"4\"", "pi = e^3 / (e + e^3 + 3)", exp((double)logp[3]), first);
    sheet("s1 \"2 + 2 = 4\", a1 <end>", "pi = e^2 / (4 + e^2)", exp((double)logp[4]), second);
    sheet("log pi(\"4\"): row 3, id 4", "3 - ln 25.804 = -0.2505", logp[3], log(first));
    sheet("log pi(<end>): row 4, id 5", "2 - ln 11.389 = -0.4327", logp[4], log(second));
    sheet("mask 000011, shifted 00011", "0+0+0+1+1 = 2 tokens", count_masked(mask, EXAMPLE_T - 1), 2);
    sheet("its first 1 is at", "4 - 1 = 3: the shift", shifted, 3);
    sheet("log pi(y|x)", "-0.2505 - 0.4327 = -0.6832", sum, log(first * second));
    sheet("mean per token", "-0.6832 / 2", masked_mean(logp, mask, EXAMPLE_T - 1), log(first * second) / 2);
    sheet("entropy of a coin", "2*1/2*ln 2 = ln 2", entropy, log(2.0));
}

static void sheet_rewards_and_tool(void) {
    static const char* const answer[4] = {"\\boxed{83}", "The correct answer is \\boxed{83}",
                                          "The final answer is 83", "We get \\boxed{38}"};
    const char* const working[] = {"box 83 = 83: 1", "box 83 = 83: 1", "no box: 0", "box 38, not 83: 0"};
    double theta[TOY_PARAMS] = {0}, logp[TOY_PARAMS], reward[TOY_PARAMS], value[TOY_STATES], grad[TOY_PARAMS];
    char name[32], result[32];
    toy_log_policy(logp, theta);
    toy_rewards(reward);
    chapter = "chapter 4";
    sheet("27 equal answers, 7 right", "J = 7/27", toy_solve(value, grad, logp, reward), 7.0 / 27);
    for (int k = 0; k < 4; k++) {
        snprintf(name, sizeof name, "reward of r%d", k + 1);
        chapter = "chapter 5";
        sheet(name, working[k], reward_boxed(answer[k], "83"), k < 2);
    }
    chapter = "chapter 6";
    sheet("the tool: 12*3", "12*3 = 36", calculate("12*3", result, sizeof result) ? atof(result) : NAN, 36);
}

static void sheet_advantages(void) {
    const float r[4] = {1, 1, 0, 0}, same[4] = {1, 1, 1, 1};
    float centered[4], grpo[4], rloo[4], none[4];
    advantages_centered(centered, r, 4);
    advantages_grpo(grpo, r, 4, 0.0f);
    advantages_rloo(rloo, r, 4);
    advantages_grpo(none, same, 4, 0.0f);
    chapter = "chapter 7";
    sheet("advantages of [1,1,0,0]", "1 - (1+1+0+0)/4 = 1/2", centered[0], 0.5);
    sheet("of a wrong answer", "0 - (1+1+0+0)/4 = -1/2", centered[3], -0.5);
    sheet("GRPO, sample std", "1/2 / sqrt(4*(1/2)^2/3)", grpo[0], 0.5 / sqrt(4 * 0.25 / 3));
    sheet("RLOO", "1 - (1+0+0)/3 = 2/3", rloo[0], 2.0 / 3);
    sheet("of [1,1,1,1]", "0 / 0 is 0 here", none[0], 0.0);
}

static void sheet_kl(void) {
    const float logp = -(float)log(2.0), ref = -(float)log(4.0), reward = 1;
    const int mask = 1;
    float kl[3], paid;
    kl_k1(kl, &logp, &ref, 1);
    kl_k2(kl + 1, &logp, &ref, 1);
    kl_k3(kl + 2, &logp, &ref, 1);
    token_rewards(&paid, &reward, kl, &mask, 1, 1, 0.5f, 0);
    chapter = "chapter 8";
    sheet("k1: pi 1/2, pi_ref 1/4", "ln 1/2 - ln 1/4 = ln 2", kl[0], log(2.0));
    sheet("k2", "(ln 2)^2 / 2", kl[1], pow(log(2.0), 2) / 2);
    sheet("k3", "1/2 - 1 + ln 2", kl[2], 0.5 - 1 + log(2.0));
    sheet("reward 1, beta 1/2", "1 - 1/2*ln 2", paid, 1 - 0.5 * log(2.0));
}

static void sheet_losses(void) {
    const float w = 1, up = 1, down = -1, logp = -1, high = (float)log(1.5), low = (float)log(0.5), c = 0.2f;
    const float value = 0.9f, old = 0.4f, target = 1;
    float d, e;
    chapter = "chapter 9";
    sheet("clip 0.2, ratio 3/2, A 1", "-min(1.5, 1.2) = -1.2", loss_clip(&d, &high, &up, &w, 1, c, c), -1.2);
    sheet("the same, A -1", "-min(-1.5, -1.2) = 1.5", loss_clip(&d, &high, &down, &w, 1, c, c), 1.5);
    sheet("ratio 1/2, A -1", "-min(-0.5, -0.8) = 0.8", loss_clip(&d, &low, &down, &w, 1, c, c), 0.8);
    sheet("CISPO, 3/2, logp -1", "-1.2*1*(-1) = 1.2", loss_cispo(&d, &logp, &high, &up, &w, 1, c, c), 1.2);
    sheet("value .9, old .4, target 1", "1/2*(0.4 + 0.2 - 1)^2 = 0.08",
          loss_value(&d, &value, &old, &target, &w, 1, c), 0.08);
    sheet("SFT, logp -1", "-(-1) = 1", loss_sft(&d, &logp, &w, 1), 1.0);
    sheet("reward model, 2 and 1", "ln(1 + 1/e)", loss_reward_model(&d, &e, 2.0f, 1.0f), log(1 + exp(-1.0)));
    sheet("DPO at its reference", "ln(1 + 1) = ln 2", loss_dpo(&d, &e, -3, -4, -3, -4, 0.5f), log(2.0));
    sheet("and its gradient, beta 1/2", "-1/2*sigma(0) = -1/4", d, -0.25);
}

// D2's four answers on one blackboard, from logits to the gradient of the logits: the same logits (3,2,1,1)
// ln 2 at every position.
static void sheet_chain(void) {
    static const int of_answer[BOARD_K] = {-2, -4, -3, -1};
    const char* const working[] = {"(-1 - 1)*ln 2", "(-2 - 1 - 1)*ln 2", "(-1 - 2)*ln 2", "-1*ln 2"};
    const double l2 = log(2.0);
    char name[32];
    Board b = board_compute();
    chapter = "the chain";
    sheet("log-sum-exp of a row", "ln(8+4+2+2) = ln 16", log_sum_exp(b.logits, BOARD_V), log(16.0));
    sheet("pi of token 0", "8/16 = 1/2", exp((double)b.logp[0]), 0.5);
    for (int k = 0; k < BOARD_K; k++) {
        snprintf(name, sizeof name, "log pi of r%d", k + 1);
        sheet(name, working[k], b.total[k], of_answer[k] * l2);
    }
    sheet("sampled tokens", "2 + 3 + 2 + 1 = 8", count_masked(b.mask, BOARD_N), 8);
    sheet("weight of a token", "1/8", b.w[0], 0.125);
    sheet("loss", "-1/8*1/2*(-2-4+3+1)*ln 2", b.loss, l2 / 8);
    sheet("d loss / d logp of r1", "-1/2*1/8 = -1/16", b.dlogp[0], -1.0 / 16);
    sheet("of r4", "+1/2*1/8 = 1/16", b.dlogp[3 * BOARD_T1], 1.0 / 16);
    sheet("d loss / d its logit", "-1/16*(1 - 1/2) = -1/32", b.dlogits[0], -1.0 / 32);
    sheet("of the other logits", "-1/16*(0 - 1/4) = 1/64", b.dlogits[1], 1.0 / 64);
    sheet("", "-1/16*(0 - 1/8) = 1/128", b.dlogits[2], 1.0 / 128);
    sheet("", "-1/16*(0 - 1/8) = 1/128", b.dlogits[3], 1.0 / 128);
}

static void sheet_evaluation(void) {
    static const char* const votes[5] = {"38", "0.5", "38", "1/2", "\\frac{1}{2}"};
    const float score[3] = {0.2f, 0.9f, 0.4f};
    chapter = "chapter 11";
    sheet("pass@4, 3 of 16 right", "1 - 715/1820", pass_at_k(16, 3, 4), 1 - 715.0 / 1820);
    sheet("pass@1", "3/16", pass_at_k(16, 3, 1), 3.0 / 16);
    sheet("vote: 38 .5 38 1/2 1/2", "3 against 2: number 1", majority_vote(votes, 5), 1);
    chapter = "chapter 12";
    sheet("best of 0.2, 0.9, 0.4", "number 1", best_of_n(score, 3), 1);
}

static void worksheet(void) {
    printf("%-11s%-27s %-30s%8s\n\n", "Worksheet", "what", "the working by hand", "computed");
    sheet_return_and_values();
    sheet_language_model();
    sheet_rewards_and_tool();
    sheet_advantages();
    sheet_kl();
    sheet_losses();
    sheet_chain();
    sheet_evaluation();
    printf("\n%d lines\n", sheet_lines);
}

static void test_worksheet(void) { RUN(worksheet); }
