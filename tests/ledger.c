// The claims ledger: what the three documents say, sentence by sentence, and what the chapters find (the
// table at the end), against docs/claims.md, which `make golden` writes. The number that a document states
// may stand here, the number that is found never. A check returns HOLDS as the document says it, HOLDS_IF
// under the condition that the table names, DOES_NOT_HOLD where the table says what is true instead.

typedef enum { HOLDS, HOLDS_IF, DOES_NOT_HOLD, VERDICTS } Verdict;
static const char* const verdict_words[VERDICTS] = {"holds", "holds if ", "does not hold: "};

static Verdict decide(int as_printed, int under_condition) {
    return as_printed ? HOLDS : under_condition ? HOLDS_IF : DOES_NOT_HOLD;
}

// A number for every token of a check; the last four arrays stay valid.
enum { MANY_TOKENS = 4000 };
static const float* same(double value) {
    static float x[4][MANY_TOKENS];
    static int next;
    float* out = x[next++ % 4];
    for (int i = 0; i < MANY_TOKENS; i++) out[i] = (float)value;
    return out;
}

// A mask of MANY_TOKENS ones.
static const int* ones(void) {
    static int mask[MANY_TOKENS];
    for (int i = 0; i < MANY_TOKENS; i++) mask[i] = 1;
    return mask;
}

// The digits of a rounding error depend on the compiler.
static const char* zero(double x, double floor) { return fabs(x) < floor ? "0" : "not 0"; }

// ---- the 27-answer model of chapter 4: toy_fill's logits number k at a scale, with the 0/1 reward

typedef struct { // J the expected reward, V of each prefix, the gradient of J
    double theta[TOY_PARAMS], logp[TOY_PARAMS], reward[TOY_PARAMS], J, value[TOY_STATES], grad[TOY_PARAMS];
} Toy;

static Toy toy_new(int k, double scale) {
    Toy toy;
    toy_fill(toy.theta, TOY_PARAMS, k, scale);
    toy_log_policy(toy.logp, toy.theta);
    toy_rewards(toy.reward);
    toy.J = toy_solve(toy.value, toy.grad, toy.logp, toy.reward);
    return toy;
}

static double toy_expected(const double* logp, const double* reward) {
    double value[TOY_STATES], grad[TOY_PARAMS];
    return toy_solve(value, grad, logp, reward);
}

// Other rewards of a digit sum. kind 0: its closeness to 3, 1: its size, 2: is it 4?
static void toy_fill_reward(double* reward, int kind) {
    memset(reward, 0, TOY_PARAMS * sizeof *reward);
    for (int y = 0; y < TOY_ANSWERS; y++) {
        int sum = y / 9 + y / 3 % 3 + y % 3;
        reward[TOY_LAST + y] = kind == 0 ? 1.0 - abs(sum - 3) / 3.0 : kind == 1 ? sum / 6.0 : sum == 4;
    }
}

// Exact gradient ascent on the reward minus beta KL.
static void toy_ascent(double* logp, const Toy* toy, const double* reward, double beta, double rate,
                       int steps) {
    double theta[TOY_PARAMS];
    memcpy(theta, toy->theta, sizeof theta);
    toy_ascend(theta, toy->logp, reward, beta, rate, steps);
    toy_log_policy(logp, theta);
}

// RL on groups of 8, `passes` steps each, with the plain policy gradient (clip 0) or clipped; beta times
// log(pi/pi_ref) is taken off the reward.
typedef struct { int advantage, updates, passes; float clip; double beta, rate; } ToyTraining;

static void toy_train(double* logp, const Toy* ref, const double* reward, ToyTraining o, Rng* rng) {
    enum { K = 8, N = K * TOY_T };
    double theta[TOY_PARAMS];
    int entry[N];
    float adv[K], token_adv[N], old[N], ratio[N], now[N], w[N], dlogp[N];
    memcpy(theta, ref->theta, sizeof theta);
    toy_log_policy(logp, theta);
    token_weights(w, ones(), K, TOY_T, NORM_SEQUENCE_SUM, 0);
    for (int step = 0; step < o.updates * o.passes; step++) {
        if (step % o.passes == 0) {
            float r[K] = {0};
            for (int i = 0; i < N; i++) {
                int first = i % TOY_T ? TOY_V * (entry[i - 1] + 1) : 0; // the row of the prefix
                double u = random_uniform(rng) - exp(logp[first]);
                entry[i] = first + (u >= 0.0) + (u >= exp(logp[first + 1]));
                old[i] = (float)logp[entry[i]];
                r[i / TOY_T] += (float)(reward[entry[i]] - o.beta * (logp[entry[i]] - ref->logp[entry[i]]));
            }
            compute_advantages(adv, r, K, o.advantage);
            broadcast_advantages(token_adv, adv, ones(), K, TOY_T);
        }
        for (int i = 0; i < N; i++) now[i] = (float)logp[entry[i]];
        token_log_ratio(ratio, now, old, ones(), K, TOY_T);
        if (o.clip > 0.0f) loss_clip(dlogp, ratio, token_adv, w, N, o.clip, o.clip);
        else loss_policy_gradient(dlogp, now, token_adv, w, N);
        for (int i = 0; i < N; i++) toy_add_score(theta, logp, entry[i], -o.rate * dlogp[i]);
        toy_log_policy(logp, theta);
    }
}

// ---- D1

static Verdict check_start_model(Text* f) {
    Problems demos = load_problems("data/demos.jsonl");
    double marked = 0.0, never = zero_variance_odds(0.0, 16), rare = zero_variance_odds(0.001, 16);
    for (int i = 0; i < demos.count; i++) marked += strstr(demos.list[i].answer, "####") != NULL;
    marked /= demos.count;
    double unsteady = zero_variance_odds(0.5 * marked, 16);
    problems_free(&demos);
    text_printf(f, "zero-variance groups of 16: %g when no answer is ever right, %.4f when 1 in 1000 is. "
                "%.1f%% of the demonstrations that our model copies end in ####; if half of these are "
                "right: %.4f", never, rare, 100.0 * marked, unsteady);
    return decide(unsteady > 0.9, never == 1.0 && rare > 0.9 && unsteady < 0.1);
}

static Verdict check_temperature(Text* f) {
    double odds[4], temperatures[] = {1.0, 0.3, 0.1, 0.02};
    for (int i = 0; i < 4; i++) odds[i] = zero_variance_odds(toy_new(1, 1.0 / temperatures[i]).J, 16);
    text_printf(f, "27-answer model, zero-variance groups of 16: %.4f at temperature 1, %.4f at 0.3, %.4f "
                "at 0.1, %.4f at 0.02", odds[0], odds[1], odds[2], odds[3]);
    return decide(odds[0] < odds[1] && odds[1] < odds[2] && odds[2] < odds[3] && odds[3] > 0.99, 0);
}

static Verdict check_zero_variance(Text* f) {
    const int kinds[3] = {ADVANTAGE_CENTERED, ADVANTAGE_RLOO, ADVANTAGE_GRPO};
    float adv[16], dlogp[16];
    int not_zero = 0;
    for (int i = 0; i < 6; i++) {
        compute_advantages(adv, same(i % 2), 16, kinds[i / 2]);
        loss_policy_gradient(dlogp, same(-1.0), adv, same(1.0 / 16), 16);
        for (int k = 0; k < 16; k++) not_zero += dlogp[k] != 0.0f; // a NaN is not 0 either
    }
    text_printf(f, "16 equal rewards, all 0 or all 1, 3 kinds of advantage: %d gradients other than 0",
                not_zero);
    return decide(not_zero == 0, 0);
}

// nanochat's extract_answer: the first "#### " with a number behind it, as text without its commas; or "".
static void nanochat_answer(char* out, const char* text) {
    const char* p = strstr(text, "#### ");
    while (p && !strspn(p + 5 + (p[5] == '-'), "0123456789.,")) p = strstr(p + 1, "#### ");
    size_t n = p ? (p[5] == '-') + strspn(p + 5 + (p[5] == '-'), "0123456789.,") : 0;
    for (size_t i = 0; i < n; i++)
        if (p[5 + i] != ',') *out++ = p[5 + i];
    *out = 0;
}

static Verdict check_last_hash(Text* f) {
    const char* const texts[] = {"17+25=42. #### 42", "#### 1,000 in all", "#### 41, no, #### 42"};
    char first[64], last[64];
    int same[3];
    for (int i = 0; i < 3; i++) {
        nanochat_answer(first, texts[i]);
        extract_hash_answer(texts[i], last, sizeof last);
        same[i] = !strcmp(first, last);
    }
    text_printf(f, "\"%s\": the last is %s; nanochat's code searches for the first, %s. With a single mark: "
                "%s", texts[2], last, first, same[0] && same[1] ? "no difference" : "a difference");
    return decide(same[2], same[0] && same[1]);
}

static int count_paid(RewardFunction reward, const char* const* texts, int n, const char* truth) {
    int paid = 0;
    for (int i = 0; i < n; i++) paid += reward(texts[i], truth) == 1.0f;
    return paid;
}

static Verdict check_same_number(Text* f) {
    const char* const right[] = {"#### 42", "#### 42.", "#### 42.0", "#### $42", "#### +42"};
    const char* const wrong[] = {"#### 41", "#### 420", "#### forty-two", "The answer is 42"};
    int by_text = 0, paid = count_paid(reward_gsm8k, right, 5, "#### 42");
    int wrongly = count_paid(reward_gsm8k, wrong, 4, "#### 42");
    char text[64];
    for (int i = 0; i < 5; i++) {
        nanochat_answer(text, right[i]);
        by_text += !strcmp(text, "42");
    }
    text_printf(f, "5 spellings of 42: %d get 1 here, %d in nanochat, whose code compares the characters; "
                "another number, a word, no mark: %d of 4", paid, by_text, wrongly);
    return decide(by_text == 5 && wrongly == 0, paid == 5 && wrongly == 0);
}

static Verdict check_lucky_guess(Text* f) {
    float reward = reward_gsm8k("No idea. Let us say 6+6=13. #### 42", "6*7=<<6*7=42>>42 #### 42");
    text_printf(f, "no right step, but #### 42 at the end: reward %g; 16 guesses from 100 numbers, none "
                "twice, hit with probability %.4f", reward, pass_at_k(100, 1, 16));
    return decide(reward == 1.0f, 0);
}

// Noise over signal: the variance of one rollout's gradient, with the mean reward as baseline, over the
// square of its mean; for the two finer rewards and 0/1.
static Verdict check_finer_reward(Text* f) {
    Toy toy = toy_new(1, 1.0);
    double reward[TOY_PARAMS], logp[TOY_PARAMS], grad[TOY_PARAMS], mean[TOY_STATES], noise[3], right[3];
    memcpy(reward, toy.reward, sizeof reward);
    for (int kind = 2; kind >= 0; kind--) {
        if (kind < 2) toy_fill_reward(reward, kind);
        for (int s = 0; s < TOY_STATES; s++) mean[s] = toy_expected(toy.logp, reward);
        double variance = toy_rollout_gradient(grad, toy.logp, reward, mean, 1.0, CREDIT_WHOLE);
        noise[kind] = variance / inner_product(grad, grad, TOY_PARAMS);
        toy_ascent(logp, &toy, reward, 0.0, 1.0, 300);
        right[kind] = toy_expected(logp, toy.reward);
    }
    text_printf(f, "digits that add up to 3. Noise over signal of one rollout's gradient: %.2f for 0/1, "
                "%.2f for closeness to 3, %.2f for the size of the sum; right after training on the finer "
                "two: %.3f, %.3f", noise[2], noise[0], noise[1], right[0], right[1]);
    int aims = noise[0] < noise[2] && right[0] > 0.9, elsewhere = noise[1] < noise[2] && right[1] > 0.9;
    return decide(aims && elsewhere, aims);
}

static Verdict check_mean(Text* f) {
    const float sixteen[16] = {1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
    float reward[16] = {0}, adv[16];
    int wrong = 0;
    for (int c = 1; c < 16; c++) {
        reward[c - 1] = 1.0f;
        advantages_centered(adv, reward, 16);
        for (int k = 0; k < 16; k++) wrong += k < c ? !(adv[k] > 0.0f) : !(adv[k] < 0.0f);
    }
    advantages_centered(adv, sixteen, 16);
    text_printf(f, "mean 1 - %.4f = %.4f; advantages %+.4f and %+.4f; in the 15 mixed groups of 16: %d "
                "wrong signs", adv[0], 1.0 - adv[0], adv[0], adv[2], wrong);
    return decide(1.0f - adv[0] == 0.1875f && wrong == 0, 0);
}

static Verdict check_right_up(Text* f) {
    Toy toy = toy_new(1, 1.0);
    double theta[TOY_PARAMS], logp[TOY_PARAMS];
    int moved[2] = {0, 0}, count[2] = {0, 0}; // wrong answers that fall, right answers that rise
    for (int e = 0; e < TOY_PARAMS; e++) theta[e] = toy.theta[e] + 0.1 * toy.grad[e];
    toy_log_policy(logp, theta);
    for (int y = 0; y < TOY_ANSWERS; y++) {
        int right = toy_verify(y) > 0.0, rises = toy_sum_along(logp, y) > toy_sum_along(toy.logp, y);
        count[right]++;
        moved[right] += rises == right;
    }
    double J = toy_expected(logp, toy.reward);
    text_printf(f, "one exact step on 27 answers: %d of %d right ones rise, %d of %d wrong ones fall, for "
                "answers share prefixes. The right ones together: %.4f to %.4f", moved[1], count[1], moved[0],
                count[0], toy.J, J);
    return decide(moved[0] == count[0] && moved[1] == count[1], J > toy.J);
}

// Largest |log pi - log pi_sampler| in 200 draws; sample_token leaves the sampler's probabilities in `work`.
static double sampler_gap(float temperature, int top_k) {
    double filled[VOCAB_SIZE], largest = 0.0;
    float logits[VOCAB_SIZE], work[2 * VOCAB_SIZE], logp, entropy;
    SampleOptions options = {1, temperature, top_k, 1.0f};
    Rng rng = {1};
    toy_fill(filled, VOCAB_SIZE, 1, 3.0);
    for (int v = 0; v < VOCAB_SIZE; v++) logits[v] = (float)filled[v];
    for (int i = 0; i < 200; i++) {
        int token = sample_token(&logp, &entropy, logits, VOCAB_SIZE, options, &rng, work);
        largest = fmax(largest, fabs(logp - log((double)work[token] / sum_of(work, VOCAB_SIZE))));
    }
    return largest;
}

static Verdict check_on_policy(Text* f) {
    double plain = sampler_gap(1.0f, 0), top_k = sampler_gap(1.0f, 50), cool = sampler_gap(0.8f, 0);
    text_printf(f, "largest |log pi - log pi_sampler| in 200 draws from %d logits: temperature 1: %s, with "
                "top-k 50 %.3f; temperature 0.8: %.3f", VOCAB_SIZE, zero(plain, 1e-4), top_k, cool);
    return decide(plain < 1e-4 && top_k < 1e-4, plain < 1e-4);
}

static Verdict check_no_clip(Text* f) {
    const float logp[2] = {-0.5f, -1.0f}, adv[2] = {0.75f, -0.25f}, drifted[2] = {1, 0};
    float plain[2], clipped[2], far[2];
    loss_policy_gradient(plain, logp, adv, same(0.5), 2);
    loss_clip(clipped, same(0.0), adv, same(0.5), 2, 0.2f, 0.2f);
    loss_clip(far, drifted, adv, same(0.5), 2, 0.2f, 0.2f);
    text_printf(f, "gradients of two fresh samples: clipped %.4f and %.4f, plain %.4f and %.4f; of a token "
                "whose ratio has drifted to e: clipped %.4f", clipped[0], clipped[1], plain[0], plain[1],
                fabs(far[0]));
    return decide(clipped[0] == plain[0] && clipped[1] == plain[1] && far[0] == 0.0f && plain[0] != 0.0f, 0);
}

// What a token counts under the token mean over what it counts in the sum, for two answers.
static double length_factor(int length_1, int length_2) {
    float mean[80], sum[80];
    int mask[80];
    for (int i = 0; i < 80; i++) mask[i] = i % 40 < (i < 40 ? length_1 : length_2);
    token_weights(mean, mask, 2, 40, NORM_TOKEN_MEAN, 0);
    token_weights(sum, mask, 2, 40, NORM_SEQUENCE_SUM, 0);
    return fabs(mean[40] / sum[40] - mean[0] / sum[0]) < 1e-6 ? mean[0] / sum[0] : NAN; // NaN: two factors
}

static Verdict check_equivalent_loss(Text* f) {
    double brief = length_factor(3, 1), lengthy = length_factor(30, 10);
    text_printf(f, "all gradients of a group are multiplied by one factor: %.3g for answers of 3 and 1 "
                "tokens, %.3g for 30 and 10; a group of long answers counts less", brief, lengthy);
    return decide(fabs(brief - lengthy) < 1e-6, brief > 0.0 && lengthy > 0.0);
}

static Verdict check_tool_mask(Text* f) {
    Rollout* r = play("How many?", "[12*3]#### 36");
    Text forced = {0};
    float logp[64], w[64], dlogp[64];
    int *ids = r->ids + r->prompt, *mask = r->mask + r->prompt;
    int sampled = count_masked(mask, r->length), moved[2] = {0, 0}; // with a gradient: forced, sampled
    token_weights(w, mask, 1, r->length, NORM_TOKEN_MEAN, 0);
    for (int t = 0; t < r->length; t++) {
        logp[t] = mask[t] ? -1.0f : NAN; // whoever read a forced token's would show it
        if (!mask[t]) decode_tokens(&forced, ids + t, 1, 1);
    }
    loss_policy_gradient(dlogp, logp, same(0.5), w, r->length);
    for (int t = 0; t < r->length; t++) moved[mask[t] != 0] += dlogp[t] != 0.0f;
    text_printf(f, "after 12*3 the tool inserts %s with mask 0; of its %d tokens %d get a gradient, of the "
                "%d sampled ones %d", forced.data, r->length - sampled, moved[0], sampled, moved[1]);
    int as_told = !strcmp(forced.data, "<|output_start|>36<|output_end|>");
    text_free(&forced), rollouts_free(r);
    return decide(as_told && moved[0] == 0 && moved[1] == sampled, 0);
}

static Verdict check_pass_meaning(Text* f) {
    double once = 0.0, sixteen = 0.0, truth = 1.0 - pow(0.8, 16);
    for (int c = 0; c <= 32; c++) {
        once += binomial(32, c, 0.2) * pass_at_k(32, c, 1);
        sixteen += binomial(32, c, 0.2) * pass_at_k(32, c, 16);
    }
    text_printf(f, "answers right with probability 0.2, expectation over 32 samples: pass@1 %.6f, pass@16 "
                "%.6f; 1-0.8^16 = %.6f", once, sixteen, truth);
    return decide(fabs(once - 0.2) < 1e-12 && fabs(sixteen - truth) < 1e-12, 0);
}

static Verdict check_pass_rises(Text* f) {
    int steps[3] = {0}; // falls, level, rises
    for (int n = 2; n <= 16; n++)
        for (int c = 0; c <= n; c++)
            for (int k = 1; k < n; k++) {
                double step = pass_at_k(n, c, k + 1) - pass_at_k(n, c, k);
                steps[1 + (step > 0.0) - (step < 0.0)]++;
            }
    double rare = pass_at_k(16, 1, 1), always = pass_at_k(16, 16, 1), same = pass_at_k(16, 1, 16);
    text_printf(f, "all cases up to 16 samples, from k to k+1: %d rises, %d falls, %d level, at 0 or at 1. "
                "1 right of 16 and 16 of 16: the same pass@16, %g, and pass@1 %.4f and %g", steps[2],
                steps[0], steps[1], same, rare, always);
    return decide(!steps[0] && steps[2] && same == pass_at_k(16, 16, 16) && rare < 0.1 * always, 0);
}

// In passes of one answer through the model: forward 1, backward 2. Sampling is one forward.
static Verdict check_cost(Text* f) {
    TrainOptions t = train_defaults();
    RlOptions o = rl_defaults();
    Problems p = load_problems(o.data);
    double rl = o.num_samples * (1.0 + 3.0), questions = (double)o.num_epochs * p.count;
    double runs = rl * questions / (3.0 * t.batch_size * t.steps);
    problems_free(&p);
    text_printf(f, "passes for one question (forward 1, backward 2): SFT 3, RL with %d rollouts %g. Our "
                "whole runs: %d demonstrations against %g questions, RL %.2f times as much, and %.2f if all "
                "groups were zero-variance, which cost their sampling alone", o.num_samples, rl,
                t.steps * t.batch_size, questions, runs, runs / 4.0);
    return decide(rl > 15.0 && runs > 5.0, rl > 15.0);
}

static Verdict check_one_task(Text* f) {
    const char* const forms[] = {"#### 42", "\\boxed{42}", "The answer is 42", "x = 42"};
    int paid = count_paid(reward_gsm8k, forms, 4, "#### 42");
    text_printf(f, "the right number in four forms: the reward takes %d of them, GSM8K's own", paid);
    return decide(paid == 1, 0);
}

static Verdict check_two_values(Text* f) {
    const char* const texts[] = {"#### 42", "#### 41.99", "6*7=42, so #### 24", "", "42", "#### 42 apples"};
    double p = 0.05, odds = zero_variance_odds(p, 16);
    int other = 6;
    for (int i = 0; i < 6; i++)
        for (int r = 0; r < 2; r++) other -= reward_gsm8k(texts[i], "#### 42") == (float)r;
    text_printf(f, "6 responses, %d rewards other than 0 and 1. Right 1 in 20, a reward carries %.3f bits, "
                "and %.3f of the groups of 16 are zero-variance", other,
                -(p * log2(p) + (1.0 - p) * log2(1.0 - p)), odds);
    return decide(other == 0 && odds > 0.25, 0);
}

// Mean KL to the start after 20 trainings, and the least share of right answers among them.
static double train_twenty(double* least, const Toy* ref, const double* reward, ToyTraining o) {
    double logp[TOY_PARAMS], ratio[TOY_PARAMS], kl = 0.0;
    *least = 1.0;
    for (int seed = 0; seed < 20; seed++) {
        toy_train(logp, ref, reward, o, &(Rng){(uint64_t)seed});
        for (int e = 0; e < TOY_PARAMS; e++) ratio[e] = logp[e] - ref->logp[e];
        kl += toy_expected(logp, ratio) / 20;
        *least = fmin(*least, toy_expected(logp, ref->reward));
    }
    return kl;
}

static Verdict check_no_kl(Text* f) {
    Toy ref = toy_new(2, 1.0), holed = ref;
    double least[4], kl[4];
    holed.reward[TOY_PARAMS - 1] = 2.0;
    for (int i = 0; i < 4; i++) {
        ToyTraining o = {ADVANTAGE_CENTERED, 500, 1, 0.0f, i % 2 ? 0.5 : 0.0, 1.0};
        kl[i] = train_twenty(&least[i], &ref, i < 2 ? ref.reward : holed.reward, o);
    }
    text_printf(f, "27 answers, 500 updates, 20 seeds, without KL and with beta 0.5: KL %.2f and %.2f nats, "
                "in the worst run %.3f and %.3f right. With a reward that pays 2 for a wrong answer: KL "
                "%.2f and %.2f, right %.3f and %.3f", kl[0], kl[1], least[0], least[1], kl[2], kl[3],
                least[2], least[3]);
    return decide(least[0] < 0.5 * least[1], least[2] < 0.5 * least[3] && kl[2] > kl[3]);
}

static Verdict check_no_clipping(Text* f) {
    Toy ref = toy_new(1, 1.0);
    double least, kl[4];
    for (int i = 0; i < 4; i++) {
        ToyTraining o = {ADVANTAGE_CENTERED, 1, i < 2 ? 1 : 20, i % 2 ? 0.2f : 0.0f, 0.0, 1.0};
        kl[i] = train_twenty(&least, &ref, ref.reward, o);
    }
    text_printf(f, "how far one group of 8 carries the policy, in nats, plain and clipped: %.4f and %.4f in "
                "one step, %.4f and %.4f in 20 steps on the same group", kl[0], kl[1], kl[2], kl[3]);
    return decide(kl[0] > 1.1 * kl[1], fabs(kl[0] - kl[1]) < 1e-9 && kl[2] > 2.0 * kl[3]);
}

// 64 weights after 40 AdamW steps towards 1. From step 20 on: the same moments, or new ones.
static Verdict check_resume(Text* f) {
    float weights[2][64];
    double gap = 0.0;
    for (int lost = 0; lost < 2; lost++) {
        Model m = random_model((Config){8, 4, 1, 4, 1, 1, 4, 4, 1, 10000.0f, 1e-6f, 0}, 1);
        Optimizer o[2] = {optimizer_new(&m.config), optimizer_new(&m.config)};
        model_zero_grads(&m);
        for (int step = 0; step < 40; step++) {
            for (size_t i = 0; i < m.weights.count; i++) m.grads.memory[i] = m.weights.memory[i] - 1.0f;
            adamw_step(&m, &o[lost && step >= 20], 0.01f, (AdamOptions){0.9f, 0.95f, 1e-8f, 0.0f});
        }
        memcpy(weights[lost], m.weights.memory, sizeof weights[lost]);
        optimizer_free(&o[0]), optimizer_free(&o[1]), model_free(&m);
    }
    for (int i = 0; i < 64; i++) gap = fmax(gap, fabs((double)weights[1][i] - weights[0][i]));
    text_printf(f, "40 AdamW steps of 0.01: when the moments are lost after 20, weights end up to %.4f away "
                "from the unbroken run. Ours are saved: a resumed run is the same to the bit (tests of the "
                "files)", gap);
    return decide(gap > 0.001, 0);
}

// ---- D2

static const char* const four_responses[4] = {"\\boxed{83}", "The correct answer is \\boxed{83}",
                                              "The final answer is 83", "We get \\boxed{38}"};

static Verdict check_price(Text* f) {
    double start = 10.1 / 15.2, later = (862.6 - 10.1) / (52.0 - 15.2);
    text_printf(f, "by D2's own two rows: %.3f minutes for each point at the start, %.1f for each further "
                "one on average; nothing of ours is compared", start, later);
    return decide(later > start, 0);
}

static Verdict check_comparison(Text* f) {
    const float reward[4] = {1, 1, 0, 0}, shifted[4] = {6, 6, 5, 5};
    float adv[4], same[4];
    advantages_grpo(adv, reward, 4, 1e-6f);
    advantages_grpo(same, shifted, 4, 1e-6f);
    double exact = expected_gradient(0.3, 8, ADVANTAGE_RLOO) / (0.3 * 0.7);
    double gap = fmax(fabs(adv[0] - same[0]), fabs(adv[3] - same[3]));
    text_printf(f, "advantages %+.4f and %+.4f, with 5 more for every answer %+.4f and %+.4f. Without a "
                "value model RLOO's expected gradient is %.6f times the true one", adv[0], adv[3], same[0],
                same[3], exact);
    return decide(gap < 1e-6 && fabs(exact - 1.0) < 1e-6, 0);
}

// Two rewards (digit sum 3 or 4), two algorithms (centered, GRPO), one start.
static Verdict check_signal_and_algorithm(Text* f) {
    Toy ref = toy_new(1, 1.0);
    double logp[TOY_PARAMS], four[TOY_PARAMS], got[4];
    toy_fill_reward(four, 2);
    text_printf(f, "27 answers, 150 updates, digit sum 3 and 4: start %.2f, %.2f", ref.J,
                toy_expected(ref.logp, four));
    int where = 1;
    for (int i = 0; i < 4; i++) {
        ToyTraining o = {i % 2 ? ADVANTAGE_GRPO : ADVANTAGE_CENTERED, 150, 1, 0.0f, 0.0, 0.5};
        toy_train(logp, &ref, i < 2 ? ref.reward : four, o, &(Rng){5});
        const double sums[2] = {toy_expected(logp, ref.reward), toy_expected(logp, four)};
        got[i] = sums[i / 2];
        where &= got[i] > 0.8 && sums[1 - i / 2] < 0.1;
        text_printf(f, "; reward for %d, %s %.2f, %.2f", 3 + i / 2, i % 2 ? "GRPO" : "centered", sums[0],
                    sums[1]);
    }
    text_printf(f, ". The reward says where to, the algorithm how fast");
    return decide(where && got[1] > got[0] && got[3] > got[2], 0);
}

// Scores of n answers from nothing but the odds with which each beats each, by descent on loss_reward_model.
static void fit_scores(double* score, const double* truth, int n) {
    memset(score, 0, (size_t)n * sizeof *score);
    for (int step = 0; step < 2000; step++) {
        double grad[4] = {0};
        for (int i = 0; i < n * n; i++) { // a pair of an answer with itself moves nothing
            float chosen, rejected;
            loss_reward_model(&chosen, &rejected, (float)score[i / n], (float)score[i % n]);
            grad[i / n] += sigmoid(truth[i / n] - truth[i % n]) * chosen;
            grad[i % n] += sigmoid(truth[i / n] - truth[i % n]) * rejected;
        }
        for (int i = 0; i < n; i++) score[i] -= 0.5 * grad[i];
    }
}

static Verdict check_pairs(Text* f) {
    const double share[3] = {0.6, 0.8, 0.95}, truth[4] = {2.0, 1.0, 0.5, -1.0};
    double score[4], worst = 0.0;
    text_printf(f, "share of annotators who take B, and r(B) - r(A) by Bradley-Terry, fitted:");
    for (int i = 0; i < 3; i++) {
        const double odds[2] = {log(share[i] / (1.0 - share[i])), 0.0};
        fit_scores(score, odds, 2);
        worst = fmax(worst, fabs(score[0] - score[1] - odds[0]));
        text_printf(f, " %.0f%% %.3f;", 100.0 * share[i], score[0] - score[1]);
    }
    fit_scores(score, truth, 4);
    for (int i = 1; i < 4; i++) worst = fmax(worst, fabs(score[0] - score[i] - (truth[0] - truth[i])));
    text_printf(f, " four answers 1, 0.5, 1.5 apart: %.4f, %.4f, %.4f", score[0] - score[1],
                score[1] - score[2], score[2] - score[3]);
    return decide(worst < 1e-3, 0);
}

static Verdict check_reward_model_size(Text* f) {
    Config c[2] = {train_defaults().config, {151936, 1024, 28, 1024, 16, 8, 128, 3072, 1, 1e6f, 1e-6f, 0}};
    size_t undecayed, policy[2], scalar[2];
    for (int i = 0; i < 2; i++) {
        policy[i] = weight_count(&c[i], &undecayed);
        c[i].scalar = 1;
        scalar[i] = weight_count(&c[i], &undecayed);
    }
    text_printf(f, "parameters of policy and reward model: ours %zu and %zu; with the sizes of Qwen3-0.6B "
                "%zu and %zu. PPO's value model is as large again", policy[0], scalar[0], policy[1],
                scalar[1]);
    return decide(0, scalar[0] > policy[0] / 2 && scalar[1] > policy[1] / 2);
}

static Verdict check_four(Text* f) {
    int solves = answers_equal("(3x-9)/2 = x+37", "x = 83") && (3 * 83 - 9) / 2.0 == 83 + 37;
    float r[4];
    for (int i = 0; i < 4; i++) r[i] = reward_boxed(four_responses[i], "83");
    text_printf(f, "(3x-9)/2 = x+37 %s x = 83; rewards [%g, %g, %g, %g]", solves ? "at" : "not at", r[0],
                r[1], r[2], r[3]);
    return decide(solves && !memcmp(r, (float[]){1, 1, 0, 0}, sizeof r), 0);
}

static Verdict check_r3(Text* f) {
    const char* const cases[] = {"\\boxed{83}", "83", "\\boxed{38}", "38"};
    char answer[64];
    int first = count_paid(reward_boxed, cases, 1, "83"), rest = count_paid(reward_boxed, cases + 1, 3, "83");
    float strict = reward_boxed(four_responses[2], "83");
    extract_lenient(four_responses[2], answer, sizeof answer);
    text_printf(f, "r3 without a fallback: %g; with one (the last number, %s): %d. Right and boxed: %d; "
                "right only, boxed only, neither: %d of 3", strict, answer, answers_equal(answer, "83"),
                first, rest);
    return decide(strict == 0.0f && answers_equal(answer, "83") && first == 1 && rest == 0, 0);
}

static Verdict check_split(Text* f) {
    Problem seen[] = {{"Tom has 3 pens.", ""}, {"How far is it?", ""}};
    Problem asked[] = {{"tom has 3 pens", ""}, {"Why?", ""}};
    Problems a = {.list = seen, .count = 2}, b = {.list = asked, .count = 2};
    Problems train = load_problems("data/train.jsonl"), exam = load_problems("data/test.jsonl");
    int leaked = count_overlap(&a, &b, SAME_WORDS), shared = count_overlap(&train, &exam, SAME_WORDS);
    text_printf(f, "our %d training and %d exam questions have %d in common; of 2 questions with one "
                "leaked, respelled, count_overlap finds %d", train.count, exam.count, shared, leaked);
    problems_free(&train), problems_free(&exam);
    return decide(shared == 0 && leaked == 1, 0);
}

static Verdict check_near_miss(Text* f) {
    float near = reward_boxed("\\boxed{83.01}", "83"), far = reward_boxed("\\boxed{a banana}", "83");
    text_printf(f, "83.01 gets %g, \"a banana\" gets %g", near, far);
    return decide(near == far && reward_boxed("\\boxed{83}", "83") != near, 0);
}

// ---- D3, sections 1 to 4

// log p(tau) of a walk to the right that once slipped
static const Trajectory world_path = {4, {2, 3, 2, 3, 4}, {1, 1, 1, 1}, {0, 0, 0, 1}};
static double world_theta[CHAIN_STATES] = {1, 1, 1, 1, 1}, world_slip;
static double world_logprob(void) {
    double by_policy, by_world;
    ChainPolicy pi = chain_policy_from(world_theta);
    return trajectory_logprob(&by_policy, &by_world, &world_path, &pi, world_slip);
}

static Verdict check_no_dynamics(Text* f) {
    static const double slips[3] = {1.0 / 6.0, 0.3, 0.01};
    double score[CHAIN_STATES], logp[3], gap = 0.0;
    ChainPolicy pi = chain_policy_from(world_theta);
    score_trajectory(score, &world_path, &pi);
    for (int i = 0; i < 3; i++) {
        world_slip = slips[i];
        logp[i] = world_logprob();
        for (int s = 1; s < CHAIN_GOAL; s++)
            gap = fmax(gap, fabs(slope(world_logprob, &world_theta[s], NULL) - score[s]));
    }
    text_printf(f, "log p(tau) in three worlds: %.3f, %.3f, %.3f; its gradient by differences is (%.4f, "
                "%.4f, %.4f) in all three, the difference %s", logp[0], logp[1], logp[2], score[1], score[2],
                score[3], zero(gap, 1e-8));
    return decide(gap < 1e-8 && fabs(logp[0] - logp[2]) > 0.1, 0);
}

static Verdict check_discount_converges(Text* f) {
    static double one[10000];
    for (int t = 0; t < 10000; t++) one[t] = 1.0;
    double limit = discounted_return(one, 10000, 0.99), none = discounted_return(one, 10000, 1.0);
    text_printf(f, "1 on every step, 1000 and 10000 steps: %.3f and %.3f with gamma 0.99 (limit 1/(1-gamma) "
                "= 100), %g and %g with gamma 1", discounted_return(one, 1000, 0.99), limit,
                discounted_return(one, 1000, 1.0), none);
    return decide(fabs(limit - 100.0) < 1e-9 && none == 10000.0, 0);
}

// A jackpot of 3 on one answer, which the first policy finds now and then. The best of 16 is 3, 0 or 1.
static Verdict check_expectation(Text* f) {
    Toy start = toy_new(2, 1.0);
    double logp[TOY_PARAMS], J[2], best[2];
    toy_ascent(logp, &start, start.reward, 0.0, 1.0, 300);
    for (int i = 0; i < 2; i++) {
        const double* policy = i ? logp : start.logp;
        double right = toy_expected(policy, start.reward);
        double lucky = exp(toy_sum_along(policy, TOY_ANSWERS - 1));
        J[i] = 3.0 * lucky + right;
        best[i] = 3.0 - 2.0 * pow(1.0 - lucky, 16) - pow(1.0 - lucky - right, 16);
    }
    text_printf(f, "reward 1 for a right answer, 3 for one by luck. Policy A: best of 16 trajectories %.2f "
                "on average, expectation %.3f; policy B: %.2f and %.3f. J prefers B", best[0], J[0], best[1],
                J[1]);
    return decide(best[0] > best[1] && J[1] > J[0], 0);
}

static Verdict check_relative(Text* f) {
    double V[2][CHAIN_STATES], Q[2][CHAIN_STATES][2], A[2], worst = 0.0;
    for (int i = 0; i < 2; i++) {
        double right = i ? 0.75 : 0.5;
        ChainPolicy pi = {{right, right, right, right, right}};
        solve_chain(V[i], Q[i], &pi, 1.0 / 6.0, 1.0);
        A[i] = Q[i][2][1] - V[i][2];
        worst = fmax(worst, fabs((1.0 - right) * Q[i][2][0] + right * Q[i][2][1] - V[i][2]));
    }
    text_printf(f, "middle of the chain, pi(right) 0.5 and 0.75: V %.4f and %.4f, Q(right) %.4f and %.4f, "
                "A(right) %+.4f and %+.4f; the mean of A under pi is %s", V[0][2], V[1][2], Q[0][2][1],
                Q[1][2][1], A[0], A[1], zero(worst, 1e-12));
    return decide(worst < 1e-12 && fabs(V[0][2] - V[1][2]) > 0.1 && fabs(A[0] - A[1]) > 0.05, 0);
}

// Share of ten days in the band under "on below the threshold", in a room with a heater of 4.5 F a step.
static double share_by_hand(double threshold) {
    double now = 70.0, share = 0.0;
    for (int t = 0; t < 10 * THERMOSTAT_STEPS; t++) {
        now += (now < threshold ? 4.5 : 0.0) + thermostat_rate(now, 0);
        share += thermostat_in_band(now) / (10.0 * THERMOSTAT_STEPS);
    }
    return share;
}

static Verdict check_thermostat(Text* f) {
    const double random[2] = {0.0, 0.0}, step[2] = {0.0, -1e6}; // so large that the sigmoid is a step
    double w[2], curve[THERMOSTAT_UPDATES], day[THERMOSTAT_STEPS];
    double same = share_by_hand(70.0), best = share_by_hand(68.25);
    Rng rng = {1};
    train_thermostat(w, curve, 1);
    double before = test_thermostat(day, random, 100, &rng), learned = test_thermostat(day, w, 100, &rng),
           written = test_thermostat(day, step, 100, &rng);
    text_printf(f, "within 2 F of 70 F: %.0f%% of the time at random, %.1f%% after %d updates, %.1f%% with "
                "\"on below 70 F\". In a room with a heater of 4.5 F a step that rule keeps it %.0f%%, \"on "
                "below 68.25 F\" %.0f%%", 100.0 * before, 100.0 * learned, THERMOSTAT_UPDATES,
                100.0 * written, 100.0 * same, 100.0 * best);
    return decide(before < 0.2 && learned > 0.95 && w[1] < 0.0 && best > same + 0.05, 0);
}

static Verdict check_underflow(Text* f) {
    float sum;
    double product = 1.0;
    int left = 0;
    for (int t = 0; t < MANY_TOKENS; t++) left += (product *= 0.5) > 0.0;
    sequence_logprobs(&sum, same(log(0.5)), ones(), 1, MANY_TOKENS);
    text_printf(f, "%d tokens of probability 1/2: the product is exactly 0 from token %d on, in double; the "
                "sum of logs is %.1f nats", MANY_TOKENS, left + 1, sum);
    return decide(product == 0.0 && fabs(sum - MANY_TOKENS * log(0.5)) < 0.01, 0);
}

// Chapter 3's example by hand, log pi("4 <end>" | "2 + 2 ="), rightly and after one slip.
static void example_sums(float* right, float* no_shift, float* everything, float* late_mask) {
    int late_ids[EXAMPLE_T + 1] = {0}, shifted[EXAMPLE_T - 1];
    float logp[EXAMPLE_T - 1], unshifted[EXAMPLE_T];
    memcpy(late_ids + 1, example_ids, sizeof example_ids); // undoes the shift of token_logprobs
    token_logprobs(logp, example_logits, example_ids, 1, EXAMPLE_T, EXAMPLE_V);
    token_logprobs(unshifted, example_logits, late_ids, 1, EXAMPLE_T + 1, EXAMPLE_V);
    shift_mask(shifted, example_mask, 1, EXAMPLE_T);
    sequence_logprobs(right, logp, shifted, 1, EXAMPLE_T - 1);
    sequence_logprobs(no_shift, unshifted, example_mask, 1, EXAMPLE_T);
    sequence_logprobs(everything, logp, ones(), 1, EXAMPLE_T - 1);
    sequence_logprobs(late_mask, logp, example_mask, 1, EXAMPLE_T - 1);
}

static Verdict check_shift(Text* f) {
    float right, no_shift, everything, late_mask;
    example_sums(&right, &no_shift, &everything, &late_mask);
    double hand = (3.0 - log(exp(1.0) + exp(3.0) + 3.0)) + (2.0 - log(4.0 + exp(2.0)));
    text_printf(f, "\"4 <end>\" after \"2 + 2 =\": %.4f nats (by hand %.4f); ids not shifted %.4f, mask not "
                "shifted %.4f", right, hand, no_shift, late_mask);
    int slips_show = fabs(no_shift - right) > 0.1 && fabs(late_mask - right) > 0.1;
    return decide(fabs(right - hand) < 1e-5 && slips_show, 0);
}

// log pi of 4 tokens behind a prompt of 3, in a row of T: `before` paddings in front, the rest behind.
static float padded_logprob(Model* m, int before, int T) {
    const int text[7] = {1, 5, 2, 7, 3, 6, 4};
    int ids[12] = {0}, mask[12] = {0};
    float logp[11], sum;
    memcpy(ids + before, text, sizeof text);
    memcpy(mask + before + 2, ones(), 4 * sizeof *mask); // shifted: token t is predicted at t - 1
    answers_forward(logp, m, ids, mask, 1, T);
    sequence_logprobs(&sum, logp, mask, 1, T - 1);
    return sum;
}

static Verdict check_padding(Text* f) {
    Model m = random_model((Config){8, 16, 2, 16, 2, 1, 8, 16, 1, 10000.0f, 1e-6f, 0}, 3);
    for (size_t i = 0; i < m.weights.count; i++) m.weights.memory[i] *= 3.0f; // no even odds
    float alone = padded_logprob(&m, 0, 7), behind = padded_logprob(&m, 0, 12);
    float before = padded_logprob(&m, 5, 12);
    model_free(&m);
    text_printf(f, "log pi of 4 answer tokens behind 3 of prompt: %.4f alone, %.4f in a row with 5 paddings "
                "behind, %.4f with them before and no attention mask that hides them", alone, behind, before);
    return decide(fabs(before - alone) > 0.01 && behind != alone, fabs(before - alone) > 0.01);
}

static Verdict check_size(Text* f) {
    double digits = 4000.0 * log10(128000.0);
    text_printf(f, "128000^4000 = 10^%.1f; in bits %.0f chosen for 1 paid", digits, 4000.0 * log2(128000.0));
    return decide(digits > 80.0, 0); // 10^80: the atoms of the visible universe
}

static Verdict check_bandit(Text* f) {
    Toy toy = toy_new(1, 1.0);
    double by_token[TOY_PARAMS], by_answer[TOY_PARAMS], p[TOY_ANSWERS], weight[TOY_ANSWERS], total = 0.0;
    toy_probabilities(p, toy.logp);
    for (int y = 0; y < TOY_ANSWERS; y++) total += p[y];
    for (int y = 0; y < TOY_ANSWERS; y++) weight[y] = p[y] * toy_verify(y);
    toy_answer_gradient(by_answer, toy.logp, weight);
    toy_rollout_gradient(by_token, toy.logp, toy.reward, NULL, 1.0, CREDIT_TO_GO);
    double gap = fmax(toy_largest_difference(by_answer, toy.grad, TOY_PARAMS),
                      toy_largest_difference(by_token, toy.grad, TOY_PARAMS));
    text_printf(f, "27 answers: the products of their token probabilities add up to %.12f, those of the "
                "right ones to %.12f, as Bellman says step by step (%.12f). The gradient by Bellman, over "
                "answers and over tokens: the difference is %s", total, toy_pass_rate(p), toy.J,
                zero(gap, 1e-12));
    return decide(gap < 1e-12 && fabs(total - 1.0) < 1e-12, 0);
}

static Verdict check_point_six_percent(Text* f) {
    const double late[501] = {[500] = 1.0};
    double credit = 100.0 * discounted_return(late, 501, 0.99);
    text_printf(f, "0.99^500 = %.3f%% (500 tokens have 499 steps between them: %.3f%%); rounded %.1f%%",
                credit, credit / 0.99, credit);
    return decide(fabs(credit - 0.6) <= 0.05, credit >= 0.6 && credit < 0.7);
}

static Verdict check_discount_bias(Text* f) {
    Toy toy = toy_new(1, 1.0);
    double grad[TOY_PARAMS], angle[3];
    for (int i = 0; i < 3; i++) {
        toy_rollout_gradient(grad, toy.logp, toy.reward, NULL, (double[]){1.0, 0.99, 0.9}[i], CREDIT_TO_GO);
        angle[i] = toy_angle(grad, toy.grad, TOY_PARAMS);
    }
    text_printf(f, "the expected gradient of three-token answers turns away from the true one by %.3f, %.3f "
                "and %.3f degrees for gamma 1, 0.99, 0.9", angle[0], angle[1], angle[2]);
    return decide(angle[0] < 1e-9 && angle[1] > 1e-3 && angle[2] > angle[1], 0);
}

static Verdict check_grpo_std(Text* f) {
    const float reward[4] = {1, 1, 0, 0};
    float adv[4];
    double square = 0.0;
    advantages_grpo(adv, reward, 4, 1e-8f);
    for (int k = 0; k < 4; k++) square += (double)adv[k] * adv[k];
    text_printf(f, "[1,1,0,0] becomes %+.4f, %+.4f: their std is %.4f with K-1, as torch.std has it (with K "
                "it would be %.4f)", adv[0], adv[3], sqrt(square / 3), sqrt(square / 4));
    return decide(fabs(sqrt(square / 3) - 1.0) < 1e-6, 0);
}

static Verdict check_rloo(Text* f) {
    const float reward[4] = {1, 1, 1, 0};
    float centered[4], rloo[4];
    advantages_centered(centered, reward, 4);
    advantages_rloo(rloo, reward, 4);
    double exact = expected_gradient(0.3, 8, ADVANTAGE_RLOO) / 0.21;
    double shrunk = expected_gradient(0.3, 8, ADVANTAGE_CENTERED) / 0.21;
    text_printf(f, "[1,1,1,0]: RLOO %+.4f and %+.4f (the others' means are 2/3 and 1), 4/3 of centered, "
                "%+.4f and %+.4f. Expected gradient over the true one, K = 8: RLOO %.4f, centered %.4f",
                rloo[0], rloo[3], centered[0], centered[3], exact, shrunk);
    int left_out = fabs(rloo[0] - 1.0 / 3.0) < 1e-6 && rloo[3] == -1.0f; // 1 - 2/3 and 0 - 1
    left_out &= fabs(rloo[3] - 4.0 / 3.0 * centered[3]) < 1e-6;
    return decide(left_out && fabs(exact - 1.0) < 1e-6 && fabs(shrunk - 7.0 / 8.0) < 1e-6, 0);
}

// The variance of one rollout's gradient minus the mean reward or minus V(prefix), for 18 policies.
static Verdict check_value_function(Text* f) {
    double low[2] = {INFINITY, INFINITY}, high[2] = {0.0, 0.0}, mean[TOY_STATES], grad[TOY_PARAMS];
    for (int i = 0; i < 18; i++) {
        Toy toy = toy_new(1 + i / 3, 1.0 + i % 3);
        for (int s = 0; s < TOY_STATES; s++) mean[s] = toy.J;
        const double* const baselines[3] = {NULL, mean, toy.value};
        double variance[3];
        for (int j = 0; j < 3; j++) {
            variance[j] = toy_rollout_gradient(grad, toy.logp, toy.reward, baselines[j], 1.0, CREDIT_TO_GO);
            if (j) low[j - 1] = fmin(low[j - 1], variance[j] / variance[j - 1]);
            if (j) high[j - 1] = fmax(high[j - 1], variance[j] / variance[j - 1]);
        }
    }
    text_printf(f, "18 policies over 27 answers. Subtracting the mean leaves %.2f to %.2f of the gradient's "
                "variance; V of the prefix instead, exact here, %.2f to %.2f times that", low[0], high[0],
                low[1], high[1]);
    return decide(high[0] < 0.9 && low[1] > 0.9, 0);
}

// How many of nine seeds learn to hold the pole, and their mean number of steps until then.
static Verdict check_cartpole(Text* f) {
    CartPoleRun run;
    int solved[BASELINES] = {0};
    double steps[BASELINES] = {0};
    for (int i = 0; i < 9 * BASELINES; i++) {
        train_cartpole(&run, (uint64_t)(1000 + i % 9), i / 9, cartpole_learning_rate);
        if (run.solved < 0) continue;
        solved[i / 9]++;
        steps[i / 9] += run.solved;
    }
    const int mean = BASELINE_GROUP_MEAN, value = BASELINE_VALUE;
    text_printf(f, "of 9 seeds the group mean solves %d, a value function %d, after %.0f and %.0f steps of "
                "REINFORCE on average", solved[mean], solved[value], steps[mean] / max_int(solved[mean], 1),
                steps[value] / max_int(solved[value], 1));
    return decide(solved[mean] < 5, 0);
}

// ---- D3, section 5: KL

// A reward model that pays 2 for the wrong answer "222".
static Verdict check_hole(Text* f) {
    const double betas[4] = {4.0, 0.5, 0.25, 0.1};
    double p[TOY_ANSWERS], score[4], right[4];
    Toy ref = toy_new(2, 1.0);
    ref.reward[TOY_PARAMS - 1] = 2.0;
    text_printf(f, "a reward model pays 2 for one wrong answer. At the optimum, its score and the share of "
                "right answers:");
    for (int i = 0; i < 4; i++) {
        toy_optimum(p, ref.logp, ref.reward, betas[i]);
        right[i] = toy_pass_rate(p);
        score[i] = right[i] + 2.0 * p[TOY_ANSWERS - 1];
        text_printf(f, "%s beta %g: %.3f, %.3f", i ? ";" : "", betas[i], score[i], right[i]);
    }
    return decide(score[3] > score[1] && right[1] > right[0] && right[2] < right[1] && right[3] < 0.01, 0);
}

static double kl_between_drifts(double from, double to) { // KL of the five-way policy at two drifts
    double p[5], q[5], reference[5];
    five_way(p, reference, from);
    five_way(q, reference, to);
    return exact_kl(p, q, 5);
}

static Verdict check_kl_properties(Text* f) {
    double there = kl_between_drifts(1, 0), back = kl_between_drifts(0, 1), far = kl_between_drifts(2, 0);
    double detour = kl_between_drifts(2, 1) + there, least = INFINITY, same = kl_between_drifts(1, 1);
    for (int i = -6; i <= 6; i++)
        if (i != 0) least = fmin(least, kl_between_drifts(0.5 * i, 0));
    text_printf(f, "KL(P||Q) %.4f, KL(Q||P) %.4f; of a distribution with itself %.2g, least of 12 others "
                "%.4f; direct %.4f, by way of a third %.4f: longer than its detour", there, back, same, least,
                far, detour);
    return decide(fabs(there - back) > 0.01 && same == 0.0 && least > 0.0 && far > detour, 0);
}

// A policy and a reference over n tokens. D3's printed lines, -log_ratio and exp(log_ratio) - 1 - log_ratio,
// are the estimators of chapter 8 with the sign of the log-ratio turned: right where pi_ref wrote the text.
typedef struct { int n; double pi[VOCAB_SIZE], ref[VOCAB_SIZE]; } TwoPolicies;
typedef struct { double mean, variance, negative; } Moments;

static TwoPolicies five_tokens(double drift) {
    TwoPolicies t = {.n = 5};
    five_way(t.pi, t.ref, drift);
    return t;
}

static TwoPolicies noisy_policy(double noise) { // as in D3's experiment 2: noise on the reference's logits
    TwoPolicies t = {.n = VOCAB_SIZE};
    double z[VOCAB_SIZE];
    Rng rng = {7};
    toy_fill(z, t.n, 1, 3.0);
    toy_log_softmax(t.ref, z, t.n);
    for (int v = 0; v < t.n; v++) z[v] += noise * random_normal(&rng);
    toy_log_softmax(t.pi, z, t.n);
    return t;
}

// Exact, over all n tokens that p writes, whose log-ratio is that of p to q; sign -1 turns it.
static Moments moments(const double* p, const double* q, int n, double sign, int estimator) {
    double slope;
    Moments m = {0};
    m.mean = kl_moments(&m.variance, p, q, n, sign, estimator);
    for (int v = 0; v < n; v++)
        if (kl_estimate(&slope, sign * (p[v] - q[v]), estimator) < 0.0) m.negative += exp(p[v]);
    return m;
}
static Moments as_taught(const TwoPolicies* t, int k) { return moments(t->pi, t->ref, t->n, 1.0, k); }
static Moments printed_from_pi(const TwoPolicies* t, int k) { return moments(t->pi, t->ref, t->n, -1.0, k); }
static Moments printed_from_ref(const TwoPolicies* t, int k) { return moments(t->ref, t->pi, t->n, 1.0, k); }

static Verdict check_k1_k3(Text* f) {
    const double drifts[3] = {0.5, 1.0, 3.0};
    int right = 1, calmer[3];
    text_printf(f, "samples from pi, the sign that fits them. KL; mean, variance and share below 0 of k1, "
                "of k3:");
    for (int i = 0; i < 3; i++) {
        TwoPolicies t = five_tokens(drifts[i]);
        Moments k1 = as_taught(&t, 1), k3 = as_taught(&t, 3);
        double exact = exact_kl(t.pi, t.ref, 5);
        text_printf(f, "%s drift %g: %.4f; %.4f, %.3g, %.0f%%; %.4f, %.3g, %.0f%%", i ? "." : "", drifts[i],
                    exact, k1.mean, k1.variance, 100.0 * k1.negative, k3.mean, k3.variance,
                    100.0 * k3.negative);
        right &= fabs(k1.mean - exact) < 1e-5 && fabs(k3.mean - exact) < 1e-5;
        right &= k1.negative > 0.0 && k3.negative == 0.0;
        calmer[i] = k3.variance < k1.variance;
    }
    return decide(right && calmer[0] && calmer[1] && calmer[2], right && calmer[0] && calmer[1]);
}

// A line of code as D3 prints it, on samples from pi (which section 5 speaks of) and on samples from pi_ref.
static Verdict check_printed(Text* f, int estimator) {
    TwoPolicies t = five_tokens(1.0);
    double exact = exact_kl(t.pi, t.ref, 5), other = exact_kl(t.ref, t.pi, 5);
    double pi = printed_from_pi(&t, estimator).mean, ref = printed_from_ref(&t, estimator).mean;
    text_printf(f, "samples from pi, KL(pi||ref) %.4f: as printed it averages %.4f, with the sign turned "
                "%.4f. Samples from pi_ref, KL(ref||pi) %.4f: as printed %.4f", exact, pi,
                as_taught(&t, estimator).mean, other, ref);
    return decide(fabs(pi - exact) < 1e-6, fabs(ref - other) < 1e-6);
}

static Verdict check_printed_k1(Text* f) { return check_printed(f, 1); }
static Verdict check_printed_k3(Text* f) { return check_printed(f, 3); }

// |expected gradient - gradient of KL| / |gradient of KL| when an estimate is subtracted from the reward.
static double reward_error(int estimator, double drift) {
    TwoPolicies t = five_tokens(drift);
    double exact[5], other[5], weight[5], grad[5], slope;
    for (int i = 0; i < 5; i++) weight[i] = kl_estimate(&slope, t.pi[i] - t.ref[i], estimator);
    exact_kl_gradient(exact, other, t.pi, t.ref, 5);
    softmax_score_sum(grad, t.pi, weight, 5);
    return toy_relative_error(grad, exact, 5);
}

static Verdict check_kl_in_reward(Text* f) {
    double k1 = fmax(reward_error(1, 1.0), reward_error(1, 0.1));
    double near = reward_error(3, 0.1), far = reward_error(3, 1.0);
    text_printf(f, "relative error of the expected gradient: k1 in the reward %s; k3 in the reward %.2f at "
                "drift 0.1 and %.2f at 1", zero(k1, 1e-5), near, far);
    return decide(k1 < 1e-5 && near < 1e-5 && far < 1e-5, k1 < 1e-5);
}

static Verdict check_sum_or_mean(Text* f) {
    const int lengths[4] = {1, 10, 100, 10};
    float reward = 0.0f, sum[100], mean[100];
    double ratio[4];
    for (int i = 0; i < 4; i++) {
        token_rewards(sum, &reward, same(0.3f), ones(), 1, lengths[i], 1.0f, 0);
        token_rewards(mean, &reward, same(0.3f), ones(), 1, lengths[i], 1.0f, 1);
        ratio[i] = sum[0] / mean[0];
    }
    text_printf(f, "the formula has the answer's log-ratio, the sum over its tokens; the line has the mean. "
                "For answers of 1, 10, 100 tokens the sum is %.4g, %.4g, %.4g times the mean", ratio[0],
                ratio[1], ratio[2]);
    return decide(fabs(ratio[2] - ratio[0]) < 1e-5, ratio[1] == ratio[3]);
}

// ---- D3, sections 6 to 8

static Verdict check_no_negative(Text* f) {
    const float logp[4] = {-9.0f, -0.5f, -1.0f, -1.5f}, w[4] = {0, 1, 1, 1};
    float sft[4], policy[4];
    int down = 0, blamed = 0;
    loss_sft(sft, logp, w, 4);
    loss_policy_gradient(policy, logp, same(-1.0), w, 4);
    for (int t = 0; t < 4; t++) {
        down += sft[t] > 0.0f;
        blamed += policy[t] > 0.0f;
    }
    text_printf(f, "tokens of an answer that the loss pushes down: SFT %d of 3, policy gradient with a "
                "negative advantage %d of 3", down, blamed);
    return decide(down == 0 && blamed == 3, 0);
}

// How far from pi_ref exp(r/beta)/Z does training with the DPO loss end?
static double dpo_distance(const double* logp_ref, const double* theta, double beta) {
    double trained[TOY_PARAMS], logp[TOY_PARAMS], reward[TOY_PARAMS], p[TOY_ANSWERS], best[TOY_ANSWERS];
    memcpy(trained, theta, sizeof trained);
    toy_rewards(reward);
    toy_train_dpo(trained, logp_ref, reward + TOY_LAST, beta, 400);
    toy_log_policy(logp, trained);
    toy_probabilities(p, logp);
    toy_optimum(best, logp_ref, reward, beta);
    return toy_largest_difference(p, best, TOY_ANSWERS);
}

static Verdict check_dpo(Text* f) {
    Toy ref = toy_new(2, 1.0);
    double one = dpo_distance(ref.logp, ref.theta, 1.0), tenth = dpo_distance(ref.logp, ref.theta, 0.1);
    double gap = 0.0;
    for (int i = 0; i < 81; i++) {
        float chosen = (float)(i / 9 - 4), rejected = (float)(i % 9 - 4), a, b, c, d;
        double dpo = loss_dpo(&a, &b, -12.0f + chosen, -15.0f + rejected, -12.0f, -15.0f, 0.5f);
        double model = loss_reward_model(&c, &d, 0.5f * chosen, 0.5f * rejected);
        gap = fmax(gap, fmax(fabs(dpo - model), fabs((double)a - 0.5 * c)));
    }
    text_printf(f, "81 pairs: DPO minus the reward model's loss on beta log(pi/pi_ref), and their "
                "gradients: %s. Trained on 27 answers, distance from pi_ref exp(r/beta)/Z: %s at beta 1, %s "
                "at 0.1", zero(gap, 1e-7), zero(one, 1e-6), zero(tenth, 1e-6));
    return decide(gap < 1e-7 && one < 1e-6 && tenth < 1e-6, 0);
}

// The distance of best of 4 from the nearest KL-regularized optimum, over all beta: the middle third of the
// logarithms in which it lies is cut into three again.
static double best_of_n_distance(const double* logp_ref, const double* reward) {
    double p_ref[TOY_ANSWERS], p[TOY_ANSWERS], best[TOY_ANSWERS], distance[2];
    double low = log(0.02), high = log(20.0);
    toy_probabilities(p_ref, logp_ref);
    toy_best_of_n(p, p_ref, reward + TOY_LAST, 4);
    for (int round = 0; round < 100; round++) {
        double third = (high - low) / 3.0;
        for (int i = 0; i < 2; i++) {
            toy_optimum(best, logp_ref, reward, exp(low + (1 + i) * third));
            distance[i] = toy_largest_difference(p, best, TOY_ANSWERS);
        }
        if (distance[0] < distance[1]) high -= third;
        else low += third;
    }
    return distance[0];
}

static Verdict check_three_routes(Text* f) {
    Toy ref = toy_new(2, 1.0);
    double logp[TOY_PARAMS], graded[TOY_PARAMS], p[TOY_ANSWERS], best[TOY_ANSWERS], beta = 0.5;
    toy_ascent(logp, &ref, ref.reward, beta, 2.0 / (0.3 + beta), 5000);
    toy_probabilities(p, logp);
    toy_optimum(best, ref.logp, ref.reward, beta);
    toy_fill_reward(graded, 0);
    double rl = toy_largest_difference(p, best, TOY_ANSWERS), dpo = dpo_distance(ref.logp, ref.theta, beta);
    double two = best_of_n_distance(ref.logp, ref.reward), more = best_of_n_distance(ref.logp, graded);
    text_printf(f, "distance from the optimum: RL %s, DPO %s. Best of 4 from the nearest optimum of any "
                "beta: %s for a 0/1 reward, %.4f for a graded one", zero(rl, 1e-6), zero(dpo, 1e-6),
                zero(two, 1e-6), more);
    int meet = rl < 1e-6 && dpo < 1e-6 && two < 1e-6;
    return decide(meet && more < 1e-6, meet);
}

static Verdict check_cheating(Text* f) {
    const char* const cheats[] = {"\\boxed{}", "\\boxed{38}", "\\boxed{38, 83}", "\\boxed{83", "\\boxed{it}"};
    int strict = count_paid(reward_boxed, cheats, 5, "83");
    int format = count_paid(reward_format, cheats, 5, "83");
    float guess = reward_boxed("Perhaps 9*9 = 83? \\boxed{83}", "83");
    text_printf(f, "of 5 empty or wrong answers the verifier pays %d, one that only looks for a box %d; a "
                "lucky guess gets %g", strict, format, guess);
    return decide(strict == 0 && format == 0 && guess == 0.0f, strict == 0);
}

// Equal gains per doubling of the samples? Twelve questions with p = 1/2, 1/4, 1/8 ..., or one with p = 1/4.
static double doubling_spread(Text* f, int questions) {
    double low = 1.0, high = 0.0;
    for (int k = 4; k < 64; k *= 2) {
        double gain = 0.0;
        for (int j = 1; j <= questions; j++) {
            int right = questions > 1 ? 4096 >> j : 1024;
            gain += (pass_at_k(4096, right, 2 * k) - pass_at_k(4096, right, k)) / questions;
        }
        text_printf(f, " %.3f", gain);
        low = fmin(low, gain);
        high = fmax(high, gain);
    }
    return high / low;
}

static Verdict check_log_linear(Text* f) {
    text_printf(f, "pass@k, gain of each doubling from k = 4 to 64:");
    double mix = doubling_spread(f, 12);
    text_printf(f, " over questions of every difficulty;");
    double one = doubling_spread(f, 1);
    text_printf(f, " on one question");
    return decide(mix < 1.2 && one < 1.2, mix < 1.2);
}

// ---- D3, the experiments

static Verdict check_prompt_in_sum(Text* f) {
    float right, no_shift, everything, late_mask;
    example_sums(&right, &no_shift, &everything, &late_mask);
    text_printf(f, "\"4 <end>\" after \"2 + 2 =\": %.4f nats; with the prompt's tokens in the sum %.4f",
                right, everything);
    return decide(everything < right - 1.0, 0);
}

// DPO without a reference is DPO with a uniform one: a constant log pi_ref cancels in the pair.
static Verdict check_why_ratio(Text* f) {
    Toy ref = toy_new(2, 1.0), uniform = toy_new(1, 0.0);
    double p[TOY_ANSWERS], q[TOY_ANSWERS], sum = 100.0 * log(0.5);
    double trained = dpo_distance(uniform.logp, ref.theta, 0.5);
    toy_optimum(p, ref.logp, ref.reward, 0.5);
    toy_optimum(q, uniform.logp, ref.reward, 0.5);
    double missed = toy_largest_difference(p, q, TOY_ANSWERS);
    text_printf(f, "large, yes: %.1f nats for 100 tokens of probability 1/2. But DPO trains without ratios "
                "too: its distance from exp(r/beta)/Z is %s, and that differs by up to %.3f from pi_ref "
                "exp(r/beta)/Z", sum, zero(trained, 1e-6), missed);
    return decide(sum < -50.0 && !(trained < 1e-6), sum < -50.0 && missed > 0.01);
}

static Verdict check_mean_per_token(Text* f) {
    const float* logp = same(log(0.5));
    float sum[2];
    sequence_logprobs(&sum[0], logp, ones(), 1, 10);
    sequence_logprobs(&sum[1], logp, ones(), 1, 100);
    double brief = masked_mean(logp, ones(), 10), lengthy = masked_mean(logp, ones(), 100);
    text_printf(f, "answers of 10 and 100 tokens, each of probability 1/2: sums %.1f and %.1f, means %.4f "
                "and %.4f nats", sum[0], sum[1], brief, lengthy);
    return decide(fabs(brief - lengthy) < 1e-6 && sum[1] < 5.0f * sum[0], 0);
}

// Experiment 2's printed lines, averaged exactly over what pi_ref and what pi would have written.
static Verdict check_small_drift(Text* f) {
    TwoPolicies t = noisy_policy(0.1);
    double ref_k1 = printed_from_ref(&t, 1).mean, ref_k3 = printed_from_ref(&t, 3).mean;
    double pi_k1 = printed_from_pi(&t, 1).mean, pi_k3 = printed_from_pi(&t, 3).mean;
    text_printf(f, "%d tokens, noise 0.1 on the logits, printed k1 and k3: %+.5f and %+.5f on average over "
                "text from pi_ref, %+.5f and %+.5f over text from pi", t.n, ref_k1, ref_k3, pi_k1, pi_k3);
    int ref_agrees = fabs(ref_k1 - ref_k3) < 0.1 * ref_k3, pi_agrees = fabs(pi_k1 - pi_k3) < 0.1 * pi_k3;
    return decide(ref_agrees && pi_agrees, ref_agrees);
}

static Verdict check_large_drift(Text* f) {
    const double noise[4] = {0.1, 0.5, 1.0, 2.0};
    double last = 0.0, negative = 0.0;
    int rises = 1, wilder[4]; // is k1 the one that fluctuates more?
    text_printf(f, "standard deviation of one token's k1 and k3 as printed, text from pi_ref:");
    for (int i = 0; i < 4; i++) {
        TwoPolicies t = noisy_policy(noise[i]);
        Moments k1 = printed_from_ref(&t, 1), k3 = printed_from_ref(&t, 3);
        negative += k3.negative;
        rises &= k1.variance > last && negative == 0.0;
        wilder[i] = k1.variance > k3.variance;
        last = k1.variance;
        text_printf(f, " %.3g and %.3g at noise %g;", sqrt(k1.variance), sqrt(k3.variance), noise[i]);
    }
    text_printf(f, " k3 below 0: %.0f%%", 100.0 * negative);
    int near = rises && wilder[0] && wilder[1] && wilder[2];
    return decide(near && wilder[3], near);
}

static Verdict check_six_of_eight(Text* f) {
    const float binary[8] = {0, 0, 0, 0, 0, 0, 1, 1}, graded[8] = {5, 5, 5, 5, 5, 5, 6, 4};
    float a[8], b[8];
    advantages_grpo(a, binary, 8, 1e-8f);
    advantages_grpo(b, graded, 8, 1e-8f);
    text_printf(f, "six of eight equal. Rewards 0 and 1: %+.2f for the six, %+.2f for the two. Scores of 5, "
                "and 6 and 4 for the two: %+.2f for the six, %+.2f and %+.2f", a[0], a[7], b[0], b[6], b[7]);
    return decide(fabs(a[0]) < 0.1, fabs(b[0]) < 0.1);
}

// ---- the ledger

typedef struct {
    int document; // 1, 2, 3 for D1, D2, D3
    const char* place;
    Verdict (*check)(Text* found);
    const char *says, *quote; // in short, and the document's own words (parts with " … " between them)
    const char* verdict;      // the expected one, and the condition, or what is true instead
} Claim;

static const Claim claims[] = {
    {1, "before training", check_start_model,
     "Without an SFT model that keeps to the format, RL usually has no effect.",
     "如果 SFT 模型还不能稳定遵循格式、不能调用工具，直接做 RL 通常不会有效",
     "holds if the format or the answer is almost never right; \"not yet stable\" alone does no harm"},
    {1, "a rollout", check_temperature, "At too low a temperature the 16 answers are nearly the same.",
     "因此温度不能太低，否则 16 个回答几乎一样", "holds"},
    {1, "a rollout", check_zero_variance, "A group that is all right or all wrong teaches nothing.",
     "如果所有回答都正确或都错误，奖励没有差异，模型就学不到“哪种回答更好”", "holds"},
    {1, "the reward", check_last_hash, "The reward reads the number behind the last ####.",
     "奖励函数从模型回答中提取最后一个 #### 后的数字",
     "holds if there is one mark; nanochat's code takes the first, this program the last"},
    {1, "the reward", check_same_number, "The same number gets 1; another, or none, gets 0.",
     "数字相同：奖励 1。 … 数字不同或没有提取到：奖励 0。",
     "holds if numbers are compared, as here; nanochat compares the characters"},
    {1, "the reward", check_lucky_guess, "A guessed number can be rewarded.",
     "它也意味着模型可能通过“猜数字”得到偶然奖励", "holds"},
    {1, "the reward", check_finer_reward, "The finer the reward, the steadier the training.",
     "奖励设计得越细，训练越稳定", "holds if the finer reward still aims at the right answer"},
    {1, "the advantage", check_mean,
     "The mean is 0.1875; right answers have a positive advantage, wrong ones a negative one.",
     "平均奖励是 3/16 = 0.1875。 … 于是正确回答的优势为正，错误回答的优势为负", "holds"},
    {1, "the advantage", check_right_up,
     "The log-probability of right answers goes up, that of wrong ones down.",
     "模型会提高正确回答的对数概率，降低错误回答的对数概率", "holds if all right answers are taken together"},
    {1, "the advantage", check_on_policy, "Samples of the current model are on-policy.",
     "因为采样来自当前模型，是 on-policy 的",
     "holds if temperature is 1 and there is no top-k; D1's table has top-k 50"},
    {1, "the advantage", check_no_clip, "PPO's clipping is not needed for samples of the current model.",
     "没有 PPO 的比例裁剪，因为采样来自当前模型", "holds"},
    {1, "the loss", check_equivalent_loss, "Dividing by the number of valid tokens is equivalent.",
     "等价地，最小化： … 损失 = -（优势 × 对数概率之和） / 有效词元数",
     "holds if one batch is looked at; between batches it is another step size"},
    {1, "the tool", check_tool_mask, "The tool's tokens are forced and have mask 0.",
     "这些输出词元由引擎强制加入，掩码是 0", "holds"},
    {1, "pass@k", check_pass_meaning, "pass@1: one try is right; pass@16: at least one of sixteen.",
     "pass@1：一次尝试答对的概率 … pass@16：十六次尝试中至少一次答对的概率", "holds"},
    {1, "pass@k", check_pass_rises,
     "pass@k usually rises with k, and does not tell the accuracy of one answer.",
     "pass@k 通常随着 k 增大而上升 … 但不能直接说明模型单次回答的准确率", "holds"},
    {1, "running RL", check_cost, "RL takes much more computation than SFT.",
     "RL 需要不断生成多个回答，计算量比 SFT 大得多",
     "holds if the same number of questions is gone through; how many a run needs is another matter"},
    {1, "limits", check_one_task, "It is trained on GSM8K alone: one kind of task.",
     "只在 GSM8K 上训练，任务单一", "holds"},
    {1, "limits", check_two_values, "The reward is 0 or 1: the signal is sparse.",
     "奖励只有 0 和 1，信号稀疏", "holds"},
    {1, "limits", check_no_kl, "Without a KL constraint training may become unstable.",
     "没有参考模型的 KL 约束，训练可能变得不稳定",
     "holds if the reward can be wrong; with a right verifier it only drifts further"},
    {1, "limits", check_no_clipping, "Without PPO's clipping the algorithm is simpler and coarser.",
     "没有 PPO 的比例裁剪，算法更简单但也更粗糙",
     "holds if a group is used for several steps; in D1's one step nothing is clipped"},
    {1, "limits", check_resume, "Without the optimizer's state a resumed run is another run.",
     "保存检查点时不保存优化器状态，恢复训练的支持有限", "holds"},
    {2, "section 1", check_price, "What a further point costs keeps rising on the way to 52%.",
     "52% 已经是这条路的顶了,而且性价比在一路下滑", "holds"},
    {2, "section 1", check_comparison, "GRPO takes its signal from comparing the samples of a group.",
     "而 GRPO 从一组采样回答的互相比较里取信号", "holds"},
    {2, "section 1", check_signal_and_algorithm,
     "RLVR says which signal there is, GRPO how it changes the weights.",
     "RLVR 决定 「有什么学习信号可用」,GRPO 决定「这个信号怎么拿去改权重」", "holds"},
    {2, "section 2", check_pairs,
     "Pairs are turned into scores: of two answers about a laptop most annotators take B.",
     "把这些「两两比较」的结果换算成分数 … 书说人类标注员多半会更喜欢 B,因为它更具体", "holds"},
    {2, "section 2", check_reward_model_size, "The reward model is often about as large as the model.",
     "那个打分模型的大小和成本,常常和被训的模型相当",
     "holds if it is built on the policy's own body, as it is here; D2 itself says that smaller ones exist"},
    {2, "overview, section 4", check_four, "The answer is 83, and the four rollouts get [1,1,0,0].",
     "3x−9 的一半等于 x+37,答案 83 … 奖励 = [1, 1, 0, 0]。这就是这一章的产出。", "holds"},
    {2, "section 4", check_r3, "r3 is right and gets 0: the fallback is off, and only right in the box pays.",
     "特意关掉了「抠不出框就退而求其次找个数」这条兜底规则 … 只有又对、又按规定格式写出来,才给 1.0 分",
     "holds"},
    {2, "section 6", check_split, "Training and exam questions do not overlap.", "和上面那 500 道完全不重叠",
     "holds"},
    {2, "limits", check_near_miss, "A near miss and utter nonsense get the same reward.",
     "「差一点点就对了」和「完全离谱」拿到同样的分", "holds"},
    {3, "section 1", check_no_dynamics, "The policy gradient contains no term of the dynamics.",
     "你不需要知道环境怎么运作，也能算出策略梯度", "holds"},
    {3, "section 1", check_discount_converges, "Without an end, only gamma < 1 makes the sum converge.",
     "只有 $\\gamma<1$ 才能保证这个和收敛", "holds"},
    {3, "section 1", check_expectation, "The expectation is maximized, not a lucky trajectory.",
     "这里最大化的是期望，不是某一条轨迹的回报", "holds"},
    {3, "section 1", check_relative, "V, Q and A are out of date once the policy moves.",
     "策略一更新，它们全都失效，必须重新估计", "holds"},
    {3, "section 2", check_thermostat,
     "The thermostat learns a sound policy; one written by hand need not be the best.",
     "比如下面这个（它未必最优，取决于房间的实际热力学） … 于是逐渐收敛到一个合理策略", "holds"},
    {3, "section 3", check_underflow, "Sums of logs do not underflow; thousands of factors do.",
     "连乘变连加，避免数千个小于 1 的数相乘导致的下溢", "holds"},
    {3, "section 3", check_shift, "Without the shift by one, one trains on nonsense.",
     "忘了对齐就等于在训一个乱套的目标", "holds"},
    {3, "section 3", check_padding, "A padded batch needs its attention mask.",
     "out = model(input_ids=sequence_ids, attention_mask=attention_mask, use_cache=False)",
     "holds if the padding stands before the text; behind it, causal attention and the completion mask are "
     "enough"},
    {3, "section 3", check_size, "128,000 tokens and 4,000 steps: astronomically many trajectories.",
     "$128000^{4000}$，一个天文数字", "holds"},
    {3, "section 4", check_bandit,
     "An answer's probability is exact; token as action and answer as action are equivalent.",
     "「轨迹概率」是可以精确计算的 … 都对，只是粒度不同，而且在当前设定下两者等价", "holds"},
    {3, "section 4", check_point_six_percent, "0.99^500 is about 0.6%.", "$0.99^{500} \\approx 0.6\\%$",
     "holds if it is cut, not rounded"},
    {3, "section 4", check_discount_bias,
     "Discounting the tokens of an answer is a bias that one makes oneself.", "纯属人为制造的偏差", "holds"},
    {3, "section 4", check_grpo_std, "The group's std normalizes its advantages.",
     "(rewards - rewards.mean(dim=0, keepdim=True)) / (rewards.std(dim=0, keepdim=True) + eps)", "holds"},
    {3, "section 4", check_rloo, "RLOO: leave-one-out; K/(K-1) makes it unbiased.",
     "RLOO：留一法基线，K/(K-1) 是无偏修正系数", "holds"},
    {3, "section 4", check_value_function, "The finer credit of a value function adds little.",
     "值函数所提供的「细粒度信用分配」在这里的边际收益很小", "holds"},
    {3, "sections 0, 4", check_cartpole, "A group mean as baseline does not work on CartPole.",
     "这在 CartPole 上是行不通的",
     "does not hold: it learns CartPole too, with more steps than a value function needs"},
    {3, "section 5", check_hole, "The optimizer finds the holes of the reward model.",
     "优化器会精准地找到并利用这些胡说八道的区域", "holds"},
    {3, "section 5", check_kl_properties,
     "KL is asymmetric, not negative, 0 only between equals, and no metric.",
     "它不是距离度量（不满足三角不等式）", "holds"},
    {3, "section 5", check_k1_k3,
     "k1 is unbiased, noisy, may be negative; k3 is unbiased, calmer, never negative.",
     "虽然无偏，方差很大，而且在有限样本上可能算出负值 … 它同样无偏但方差低，且逐样本恒非负",
     "holds if the drift is moderate; far away k3 is the wilder one"},
    {3, "section 5", check_printed_k1, "The printed k1, -log_ratio, is unbiased.",
     "k1 估计量：直接用 -log_ratio，无偏但方差大",
     "holds if pi_ref wrote the samples and KL(pi_ref||pi) is meant; for rollouts of pi the sign must be "
     "turned"},
    {3, "section 5", check_printed_k3, "The printed k3 estimates the KL of the policy.",
     "exp(logr) - 1 - logr，其中 logr = log pi_theta - log pi_ref",
     "holds if pi_ref wrote the samples and KL(pi_ref||pi) is meant; for rollouts of pi the sign must be "
     "turned"},
    {3, "section 5", check_kl_in_reward, "The KL estimate is subtracted from the reward.",
     "主流实现的做法是把它当成一个负奖励加进总奖励里",
     "holds if it is k1; k3, of which D3 speaks before, has another gradient there"},
    {3, "section 5", check_sum_or_mean,
     "Reward minus beta times the masked mean is the objective, literally.",
     "这行代码就是那个目标函数的字面翻译", "holds if all answers have one length n, and beta means beta / n"},
    {3, "section 6", check_no_negative, "SFT can teach what to do, not what to avoid.",
     "只能教「做什么」，不能教「不做什么」", "holds"},
    {3, "section 6", check_dpo, "DPO has the reward model's loss and leads to the optimum.",
     "它对第 5 节那个 KL 正则化目标做了闭式求解 … 结构和上面的 $\\mathcal{L}_{\\mathrm{RM}}$ 一模一样",
     "holds"},
    {3, "section 6", check_three_routes, "RL, rejection sampling and DPO optimize the same objective.",
     "它们优化的是同一个目标（第 5 节那个式子），区别只在于求解方式", "holds if the reward has two values"},
    {3, "section 0", check_cheating, "A verifiable 0/1 reward cannot be cheated.",
     "RLVR 把代理奖励换成可验证的、不会被欺骗的 0/1 信号",
     "holds if the verifier is right and a lucky guess is no cheat"},
    {3, "section 6", check_log_linear,
     "More samples in parallel: the score grows with the log of the compute.",
     "或并行多路采样）能让性能随算力对数线性增长", "holds if the questions are a wide mix of difficulties"},
    {3, "experiment 1", check_prompt_in_sum, "With the prompt in the sum the log-probability is far off.",
     "两个数差得很远，因为 prompt 通常比回复长", "holds"},
    {3, "experiment 1", check_why_ratio, "That they are large explains why DPO uses ratios.",
     "这解释了为什么 DPO 这类方法要用 $\\pi_\\theta/\\pi_{\\mathrm{ref}}$ 的比值而不是绝对概率",
     "holds if it is meant as an observation; the reason is that the ratio keeps pi_ref"},
    {3, "experiment 1", check_mean_per_token,
     "Answers of different length are compared by the mean per token.",
     "「平均每 token log-prob」在不同长度的回复之间才可比", "holds"},
    {3, "experiment 2", check_small_drift, "Under small drift k1 and k3 are close to each other.",
     "漂移很小时两者接近", "holds if pi_ref wrote the text; on text from pi they have opposite signs"},
    {3, "experiment 2", check_large_drift, "With more drift k1 fluctuates more, and k3 stays at 0 or above.",
     "漂移变大时 $k_1$ 的逐样本波动明显更剧烈，而 $k_3$ 始终 $\\ge 0$",
     "holds if the noise on the logits is at most 1, \"a few steps of training\"; further away k3 is the "
     "wilder one"},
    {3, "experiment 3", check_six_of_eight,
     "Six of eight scores are equal, and the standardized advantages are near 0.",
     "8 条回复往往有 6 条得分完全相同，标准化后优势接近 0",
     "holds if scores are graded and the two others lie on both sides; never for rewards 0 and 1"},
};
enum { CLAIMS = sizeof claims / sizeof *claims };

// Computes everything. Returns how many verdicts are not the expected ones.
static int write_ledger(Text* out) {
    int count[VERDICTS] = {0}, wrong = 0;
    text_printf(out, "# The claims ledger\n\nWhat the three documents say, in their own words, and what the "
                "functions of the chapters compute (`tests/ledger.c`; written by `make golden`, checked by "
                "`make test`). The verdict follows from the numbers; where a statement holds under a "
                "condition only, the condition is named.\n\n| No. | Where | The document says | Computed | "
                "Verdict |\n|---:|---|---|---|---|\n");
    for (int i = 0; i < CLAIMS; i++) {
        const Claim* c = &claims[i];
        Text found = {0};
        Verdict verdict = c->check(&found);
        count[verdict]++;
        const char* words = verdict_words[verdict];
        if (strncmp(c->verdict, words, strlen(words) + (verdict == HOLDS))) { // "holds" and nothing else
            printf("  claim %d %s, expected '%s': %s\n", i + 1, words, c->verdict, found.data);
            wrong++;
        }
        text_printf(out, "| %d | D%d, %s", i + 1, c->document, c->place);
        const char* const cells[] = {c->quote, c->says, found.data, c->verdict};
        for (int k = 0; k < 4; k++) {
            text_printf(out, k == 1 ? "<br>" : " | ");
            for (const char* s = cells[k]; *s; s++) // what Markdown would read as a mark gets a backslash
                text_printf(out, strchr("\\|*_<>$[]", *s) ? "\\%c" : "%c", *s);
        }
        text_printf(out, " |\n");
        text_free(&found);
    }
    text_printf(out, "\n%d statements. Holds: %d. Holds under a condition: %d. Does not hold: %d.\n", CLAIMS,
                count[HOLDS], count[HOLDS_IF], count[DOES_NOT_HOLD]);
    return wrong;
}

static void claims_have_the_expected_verdicts(void) {
    Text text = {0};
    CHECK(write_ledger(&text) == 0);
    compare("docs/claims.md", text.data);
    text_free(&text);
}

// The parts of a quotation stand in the document, in this order.
static int is_quoted(const char* document, const char* quote) {
    while (document && *quote) {
        const char* gap = strstr(quote, " … ");
        char part[512];
        snprintf(part, sizeof part, "%.*s", gap ? (int)(gap - quote) : (int)strlen(quote), quote);
        document = strstr(document, part);
        quote += strlen(part) + (gap ? strlen(" … ") : 0);
    }
    return document != NULL;
}

static const char* const documents[3] = {"../shared/seeds/000_be010637bf0859a6.txt",
                                         "../shared/seeds/001_79a6c3a910dd421e.txt",
                                         "../shared/seeds/002_d21cc782d1a8885c.txt"};

static void quotations_are_word_for_word(void) {
    for (int d = 0; d < 3; d++) {
        Text text = read_file(documents[d]);
        for (int i = 0; i < CLAIMS; i++) {
            if (claims[i].document != d + 1 || is_quoted(text.data, claims[i].quote)) continue;
            CHECK(!"the document has these words");
            printf("    %d: %s\n", i + 1, claims[i].quote);
        }
        CHECK(!is_quoted(text.data, "these words are in none of them"));
        text_free(&text);
    }
}

// Returns 1 when a verdict is another than was expected.
static int write_claims(void) {
    Text text = {0};
    int wrong = write_ledger(&text);
    write_file("docs", "claims.md", &text);
    text_free(&text);
    return wrong != 0;
}

static void test_ledger(void) {
    RUN(claims_have_the_expected_verdicts);
    if (file_exists(documents[0])) RUN(quotations_are_word_for_word);
    else printf("skip quotations_are_word_for_word: the documents are not here (%s)\n", documents[0]);
}
