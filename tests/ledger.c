// The claims ledger: what the three documents say, sentence by sentence, and what the chapters' functions compute.
// One table at the end: the document, the place, its own words, a check, and the verdict that must come out.
//
//     build/ledger           computes all, compares with docs/claims.md, and looks the quotations up in the documents
//     build/ledger --write   writes docs/claims.md
//
// The number that a document states may stand here; the number that is found never does. A check writes what it
// found and returns one of three verdicts:
//
//     holds               as the document says it
//     holds if ...        not in general, but under the condition that the table names
//     does not hold       the computation says otherwise; the table says what is true instead
//
// Statements about the history of a model, or about work that somebody else measured, are not here: nothing in
// this file could prove them wrong.
#include "chapters.h"
#include "golden.h"

// ---- the losses with the weight of each token computed once: until chapter 9 has these signatures, by hand

static void ledger_weights(float* w, const int* mask, int K, int T1, int norm) {
    double in_batch = count_masked(mask, K * T1);
    for (int i = 0; i < K * T1; i++) {
        double in_answer = count_masked(mask + i / T1 * T1, T1);
        double share = norm == NORM_TOKEN_MEAN ? in_batch : norm == NORM_SEQUENCE_MEAN ? K * in_answer : K;
        w[i] = mask[i] ? (float)(1.0 / share) : 0.0f;
    }
}

static double ledger_policy_gradient(float* dlogp, const float* logp, const float* adv, const float* w, int n) {
    double loss = 0.0;
    for (int i = 0; i < n; i++) {
        int scored = w[i] != 0.0f;
        loss += w[i] * loss_policy_gradient(dlogp + i, logp + i, adv + i, &scored, 1, 1, NORM_SEQUENCE_SUM);
        dlogp[i] *= w[i];
    }
    return loss;
}

static double ledger_clip(float* dlogp, const float* ratio, const float* adv, const float* w, int n, float clip) {
    const float zero = 0.0f;
    double loss = 0.0;
    for (int i = 0; i < n; i++) {
        int scored = w[i] != 0.0f;
        loss += w[i] * loss_clip(dlogp + i, ratio + i, &zero, adv + i, &scored, 1, 1, clip, clip, NORM_SEQUENCE_SUM);
        dlogp[i] *= w[i];
    }
    return loss;
}

static double ledger_kl(const float* logp, const float* logp_ref, const int* mask, int T1, int norm) {
    float dlogp[128];
    return loss_kl(dlogp, logp, logp_ref, mask, 1, T1, norm, 1);
}

// ---- verdicts

typedef enum { HOLDS, HOLDS_IF, DOES_NOT_HOLD, VERDICTS } Verdict;

static Verdict decide(int as_printed, int under_condition) {
    return as_printed ? HOLDS : under_condition ? HOLDS_IF : DOES_NOT_HOLD;
}

// A printed number holds when the computed one rounds to it, at the decimals that are printed; and on the
// condition that it was cut, not rounded, when its first decimals agree.
static Verdict compare_printed(double computed, double printed, int decimals) {
    double unit = pow(10.0, -decimals), slack = 1e-9 * fmax(unit, fabs(printed));
    int rounded = fabs(computed - printed) <= 0.5 * unit + slack;
    int cut = computed >= printed - slack && computed < printed + unit;
    return decide(rounded, cut);
}

static void fill(float* x, int n, float value) {
    for (int i = 0; i < n; i++) x[i] = value;
}

static void ones(int* mask, int n) {
    for (int i = 0; i < n; i++) mask[i] = 1;
}

// ---- the 27-answer model of chapter 4, ready to be asked: toy_fill's logits number k at a scale, the 0/1 reward

typedef struct {
    double theta[TOY_PARAMS], logp[TOY_PARAMS], reward[TOY_PARAMS];
    double J, value[TOY_STATES], grad[TOY_PARAMS]; // expected reward, V of each prefix, gradient of J
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
    double J = 0.0;
    for (int y = 0; y < TOY_ANSWERS; y++) J += exp(toy_sum_along(logp, y)) * reward[TOY_LAST + y];
    return J;
}

static int toy_digit_sum(int y) { return y / 9 + y / 3 % 3 + y % 3; }

// A reward with steps: 1 for a digit sum of 3, less by 1/3 for each that it is off.
static double toy_closeness(int y) { return 1.0 - abs(toy_digit_sum(y) - 3) / 3.0; }

// Reinforcement learning on sampled groups, with the functions of chapters 7 and 9: `passes` gradient steps on each
// group, with a clipped ratio or without; log(pi/pi_ref) is taken off the reward, times beta.
typedef struct {
    int rule, updates, passes;
    float clip;                  // 0 = the plain policy gradient
    double beta, rate;
} ToyTraining;

static void toy_sample(int* entry, const double* logp, Rng* rng) {
    int s = 0;
    for (int t = 0; t < TOY_T; t++) {
        double u = random_uniform(rng) - exp(logp[TOY_V * s]);
        entry[t] = TOY_V * s + (u >= 0.0) + (u >= exp(logp[TOY_V * s + 1]));
        s = entry[t] + 1;
    }
}

static void toy_train(double* logp, const Toy* ref, const double* reward, ToyTraining o, Rng* rng) {
    enum { K = 8, N = K * TOY_T };
    double theta[TOY_PARAMS];
    int entry[N], mask[N];
    ones(mask, N);
    memcpy(theta, ref->theta, sizeof theta);
    for (int update = 0; update < o.updates; update++) {
        float r[K] = {0}, adv[K], token_adv[N], old[N], ratio[N], now[N], w[N], dlogp[N];
        toy_log_policy(logp, theta);
        for (int k = 0; k < K; k++) toy_sample(entry + k * TOY_T, logp, rng);
        for (int i = 0; i < N; i++) {
            old[i] = (float)logp[entry[i]];
            r[i / TOY_T] += (float)(reward[entry[i]] - o.beta * (logp[entry[i]] - ref->logp[entry[i]]));
        }
        advantages_by_rule(adv, r, K, o.rule);
        ledger_weights(w, mask, K, TOY_T, NORM_SEQUENCE_SUM);
        for (int pass = 0; pass < o.passes; pass++) {
            for (int i = 0; i < N; i++) {
                token_adv[i] = adv[i / TOY_T];
                now[i] = (float)logp[entry[i]];
                ratio[i] = now[i] - old[i];
            }
            if (o.clip > 0.0f) ledger_clip(dlogp, ratio, token_adv, w, N, o.clip);
            else ledger_policy_gradient(dlogp, now, token_adv, w, N);
            for (int i = 0; i < N; i++) toy_add_score(theta, logp, entry[i], -o.rate * dlogp[i]);
            toy_log_policy(logp, theta);
        }
    }
}

// ---- D1

static const float sixteen_rewards[16] = {1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};

static void reward_first(float* reward, int K, int c) { // the first c of K rewards are 1
    for (int k = 0; k < K; k++) reward[k] = k < c ? 1.0f : 0.0f;
}

static Verdict check_start_model(Text* f) {
    Problems demos = load_problems("data/demos.jsonl");
    double marked = 0.0, never = no_signal_odds(0.0, 16), rare = no_signal_odds(0.001, 16);
    for (int i = 0; i < demos.count; i++) marked += strstr(demos.list[i].answer, "####") ? 1.0 / demos.count : 0.0;
    double unsteady = no_signal_odds(0.5 * marked, 16);
    text_printf(f, "zero-variance groups of 16: %.4g when no answer is ever right, %.4f when 1 in 1000 is. %.1f%% of "
                "the demonstrations that our model copies end in ####; if half of these are right: %.4f", never,
                rare, 100.0 * marked, unsteady);
    problems_free(&demos);
    return decide(unsteady > 0.9, never == 1.0 && rare > 0.9 && unsteady < 0.1);
}

static Verdict check_temperature(Text* f) {
    const double temperatures[] = {1.0, 0.3, 0.1, 0.02};
    double odds[4];
    for (int i = 0; i < 4; i++) odds[i] = no_signal_odds(toy_new(1, 1.0 / temperatures[i]).J, 16);
    text_printf(f, "27-answer model, zero-variance groups of 16: %.4f at temperature 1, %.4f at 0.3, %.4f at 0.1, "
                "%.4f at 0.02", odds[0], odds[1], odds[2], odds[3]);
    return decide(odds[0] < odds[1] && odds[1] < odds[2] && odds[2] < odds[3] && odds[3] > 0.99, 0);
}

static Verdict check_zero_variance(Text* f) {
    float reward[16], adv[16], logp[16], w[16], dlogp[16];
    int not_zero = 0;
    fill(logp, 16, -1.0f);
    fill(w, 16, 1.0f / 16);
    for (int i = 0; i < 2 * RULES; i++) {
        fill(reward, 16, i % 2 ? 1.0f : 0.0f);
        advantages_by_rule(adv, reward, 16, i / 2);
        ledger_policy_gradient(dlogp, logp, adv, w, 16);
        for (int k = 0; k < 16; k++) not_zero += adv[k] != 0.0f || dlogp[k] != 0.0f; // a NaN is not 0 either
    }
    text_printf(f, "16 equal rewards, all 0 or all 1, %d kinds of advantage: %d gradients other than 0", RULES, not_zero);
    return decide(not_zero == 0, 0);
}

// nanochat's extract_answer: the first "#### " with a number behind it, as text without its commas. "" = none.
static void nanochat_answer(char* out, const char* text) {
    *out = 0;
    for (const char* p = strstr(text, "#### "); p && !*out; p = strstr(p + 1, "#### ")) {
        size_t sign = p[5] == '-', n = strspn(p + 5 + sign, "0123456789.,"), length = 0;
        for (size_t i = 0; n && i < sign + n; i++)
            if (p[5 + i] != ',') out[length++] = p[5 + i];
        out[length] = 0;
    }
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
    text_printf(f, "\"%s\": the last is %s; nanochat's code searches for the first, %s. With a single mark: %s", texts[2],
                last, first, same[0] && same[1] ? "no difference" : "a difference");
    return decide(same[2], same[0] && same[1]);
}

static int count_paid(float (*reward)(const char*, const char*), const char* const* texts, int n, const char* truth) {
    int paid = 0;
    for (int i = 0; i < n; i++) paid += reward(texts[i], truth) == 1.0f;
    return paid;
}

static Verdict check_same_number(Text* f) {
    const char* const right[] = {"#### 42", "#### 42.", "#### 42.0", "#### $42", "#### +42", "#### 84/2"};
    const char* const wrong[] = {"#### 41", "#### 420", "#### forty-two", "The answer is 42"};
    int by_text = 0, paid = count_paid(reward_gsm8k, right, 6, "#### 42"),
        wrongly = count_paid(reward_gsm8k, wrong, 4, "#### 42");
    char text[64];
    for (int i = 0; i < 6; i++) {
        nanochat_answer(text, right[i]);
        by_text += !strcmp(text, "42");
    }
    text_printf(f, "6 spellings of 42: %d get 1 here, %d in nanochat, whose code compares the characters; another number, "
                "a word, no mark: %d of 4 get 1", paid, by_text, wrongly);
    return decide(by_text == 6 && wrongly == 0, paid == 6 && wrongly == 0);
}

static Verdict check_lucky_guess(Text* f) {
    float reward = reward_gsm8k("No idea. Let us say 6+6=13. #### 42", "6*7=<<6*7=42>>42 #### 42");
    text_printf(f, "a response without a right step that ends in #### 42 gets %g; 16 guesses from 100 numbers, none "
                "twice, hit with probability %.4f", reward, pass_at_k(100, 1, 16));
    return decide(reward == 1.0f, 0);
}

// Variance of one rollout's gradient, with the mean reward as baseline, over the square of its mean; and the chance
// of a right answer after 300 steps of exact gradient ascent on the reward.
static double toy_noise(double* pass, const Toy* toy, const double* reward) {
    double grad[TOY_PARAMS], baseline[TOY_STATES], theta[TOY_PARAMS], zero[TOY_PARAMS] = {0}, logp[TOY_PARAMS];
    for (int s = 0; s < TOY_STATES; s++) baseline[s] = toy_expected(toy->logp, reward);
    double variance = toy_rollout_gradient(grad, toy->logp, reward, baseline, 1.0, CREDIT_WHOLE);
    memcpy(theta, toy->theta, sizeof theta);
    toy_ascend(theta, zero, reward, 0.0, 1.0, 0.0, 300);
    toy_log_policy(logp, theta);
    *pass = toy_expected(logp, toy->reward);
    return variance / inner_product(grad, grad, TOY_PARAMS);
}

static Verdict check_finer_reward(Text* f) {
    Toy toy = toy_new(1, 1.0);
    double close[TOY_PARAMS] = {0}, size[TOY_PARAMS] = {0}, pass[3];
    for (int y = 0; y < TOY_ANSWERS; y++) {
        close[TOY_LAST + y] = toy_closeness(y);
        size[TOY_LAST + y] = toy_digit_sum(y) / 6.0;
    }
    double noise = toy_noise(&pass[0], &toy, toy.reward), noise_close = toy_noise(&pass[1], &toy, close),
           noise_size = toy_noise(&pass[2], &toy, size);
    text_printf(f, "digits that add up to 3. Noise over signal of one rollout's gradient: %.2f for 0/1, %.2f for closeness "
                "to 3, %.2f for the size of the sum. Right after training: %.3f, %.3f, %.3f", noise, noise_close,
                noise_size, pass[0], pass[1], pass[2]);
    int aims = noise_close < noise && pass[1] > 0.9, elsewhere = noise_size < noise && pass[2] > 0.9;
    return decide(aims && elsewhere, aims);
}

static Verdict check_mean(Text* f) {
    float reward[16], adv[16];
    int wrong = 0;
    for (int c = 1; c < 16; c++) {
        reward_first(reward, 16, c);
        advantages_centered(adv, reward, 16);
        for (int k = 0; k < 16; k++) wrong += k < c ? !(adv[k] > 0.0f) : !(adv[k] < 0.0f);
    }
    advantages_centered(adv, sixteen_rewards, 16);
    text_printf(f, "1 - %.4f = %.4f; advantages %+.4f and %+.4f; in the 15 mixed groups of 16: %d wrong signs", adv[0],
                1.0 - adv[0], adv[0], adv[2], wrong);
    return wrong ? DOES_NOT_HOLD : compare_printed(1.0 - adv[0], 0.1875, 4);
}

static Verdict check_right_up(Text* f) {
    Toy toy = toy_new(1, 1.0);
    double theta[TOY_PARAMS], logp[TOY_PARAMS];
    int up = 0, down = 0, right = 0;
    for (int e = 0; e < TOY_PARAMS; e++) theta[e] = toy.theta[e] + 0.1 * toy.grad[e];
    toy_log_policy(logp, theta);
    for (int y = 0; y < TOY_ANSWERS; y++) {
        double change = toy_sum_along(logp, y) - toy_sum_along(toy.logp, y);
        right += toy_verify(y) > 0.0;
        up += toy_verify(y) > 0.0 && change > 0.0;
        down += toy_verify(y) == 0.0 && change < 0.0;
    }
    double J = toy_expected(logp, toy.reward);
    text_printf(f, "one exact step on the 27 answers: %d of %d right ones rise, %d of %d wrong ones fall; answers share "
                "prefixes and pull each other along. The right ones together: %.4f to %.4f", up, right, down,
                TOY_ANSWERS - right, toy.J, J);
    return decide(up == right && down == TOY_ANSWERS - right, J > toy.J);
}

// Largest |log pi - log pi_sampler| in 200 draws from as many logits as there are tokens.
static double sampler_gap(SampleOptions options) {
    double filled[VOCAB_SIZE], largest = 0.0;
    float logits[VOCAB_SIZE], work[2 * VOCAB_SIZE], logp, logp_sampler;
    Rng rng = {1};
    toy_fill(filled, VOCAB_SIZE, 1, 3.0);
    for (int v = 0; v < VOCAB_SIZE; v++) logits[v] = (float)filled[v];
    for (int i = 0; i < 200; i++) {
        sample_token(&logp, &logp_sampler, logits, VOCAB_SIZE, options, &rng, work);
        largest = fmax(largest, fabs((double)logp - logp_sampler));
    }
    return largest;
}

static Verdict check_on_policy(Text* f) {
    double plain = sampler_gap((SampleOptions){1, 1.0f, 0, 1.0f}), cool = sampler_gap((SampleOptions){1, 0.8f, 0, 1.0f});
    double top_k = sampler_gap((SampleOptions){1, 1.0f, 50, 1.0f});
    text_printf(f, "largest |log pi - log pi_sampler| in 200 draws from %d logits: temperature 1 %s, with top-k 50 "
                "%.3f; temperature 0.8 %.3f", VOCAB_SIZE, plain < 1e-5 ? "0" : "not 0", top_k, cool);
    return decide(plain < 1e-5 && top_k < 1e-5, plain < 1e-5);
}

static Verdict check_no_clip(Text* f) {
    const float logp[2] = {-0.5f, -1.0f}, adv[2] = {0.75f, -0.25f}, same[2] = {0, 0}, drifted[2] = {1, 0}, w[2] = {0.5f, 0.5f};
    float plain[2], clipped[2], far[2];
    ledger_policy_gradient(plain, logp, adv, w, 2);
    ledger_clip(clipped, same, adv, w, 2, 0.2f);
    ledger_clip(far, drifted, adv, w, 2, 0.2f);
    double gap = fmax(fabs((double)plain[0] - clipped[0]), fabs((double)plain[1] - clipped[1]));
    text_printf(f, "samples of the current policy: clipped and plain gradient differ by %.2g; on a token whose ratio has "
                "drifted to e the clipped one is %g, the plain one %.4f", gap, fabs((double)far[0]), plain[0]);
    return decide(gap == 0.0 && far[0] == 0.0f && plain[0] != 0.0f, 0);
}

// What a token counts under the token mean over what it counts in the sum, for two answers.
static double length_factor(int length_1, int length_2) {
    float mean[80], sum[80];
    int mask[80] = {0};
    ones(mask, length_1);
    ones(mask + 40, length_2);
    ledger_weights(mean, mask, 2, 40, NORM_TOKEN_MEAN);
    ledger_weights(sum, mask, 2, 40, NORM_SEQUENCE_SUM);
    for (int i = 0; i < 80; i++)
        if (mask[i] && fabs(mean[i] / sum[i] - mean[0] / sum[0]) > 1e-6) return NAN; // not one factor
    return mean[0] / sum[0];
}

static Verdict check_equivalent_loss(Text* f) {
    double brief = length_factor(3, 1), lengthy = length_factor(30, 10);
    text_printf(f, "all gradients of a batch are multiplied by one factor: %.3g for answers of 3 and 1 tokens, %.3g for "
                "30 and 10; a batch of long answers counts less", brief, lengthy);
    return decide(fabs(brief - lengthy) < 1e-6, brief > 0.0 && lengthy > 0.0);
}

// A rollout that calls the tool. The log-probabilities of forced tokens are NaN here: whoever read one would show it.
static Verdict check_tool_mask(Text* f) {
    Tokens script = {0};
    Text forced = {0};
    tokens_add(&script, PYTHON_START, 1);
    tokens_add_text(&script, "12*3", 4, 1);
    tokens_add(&script, PYTHON_END, 1);
    tokens_add_text(&script, "#### 36", 7, 1);
    Rollout* r = play_script(script.ids, script.length);
    float logp[64], adv[64], w[64], dlogp[64];
    int moved = 0, sampled = 0;
    for (int t = 0; t < r->length; t++) {
        adv[t] = 0.5f;
        logp[t] = r->mask[t] ? -1.0f : NAN;
        if (!r->mask[t]) decode_tokens(&forced, r->ids + t, 1, 1);
    }
    ledger_weights(w, r->mask, 1, r->length, NORM_TOKEN_MEAN);
    ledger_policy_gradient(dlogp, logp, adv, w, r->length);
    for (int t = 0; t < r->length; t++) *(r->mask[t] ? &sampled : &moved) += dlogp[t] != 0.0f;
    text_printf(f, "after 12*3 the tool inserts %s with mask 0; of its %d tokens %d get a gradient, of the %d sampled ones %d",
                forced.data ? forced.data : "nothing", r->length - script.length, moved, script.length, sampled);
    int right = forced.data && !strcmp(forced.data, "<|output_start|>36<|output_end|>");
    right &= moved == 0 && sampled == script.length;
    text_free(&forced), tokens_free(&script), rollouts_free(r, 1);
    return decide(right, 0);
}

static Verdict check_pass_meaning(Text* f) {
    double once = 0.0, sixteen = 0.0, p = 0.2, truth = 1.0 - pow(1.0 - p, 16);
    for (int c = 0; c <= 32; c++) {
        once += binomial(32, c, p) * pass_at_k(32, c, 1);
        sixteen += binomial(32, c, p) * pass_at_k(32, c, 16);
    }
    text_printf(f, "answers right with probability 0.2, expectation over 32 samples: pass@1 %.6f, pass@16 %.6f; 1-0.8^16 = "
                "%.6f", once, sixteen, truth);
    return decide(fabs(once - p) < 1e-12 && fabs(sixteen - truth) < 1e-12, 0);
}

static Verdict check_pass_rises(Text* f) {
    int falls = 0, rises = 0, level = 0;
    for (int n = 2; n <= 16; n++)
        for (int c = 0; c <= n; c++)
            for (int k = 1; k < n; k++) {
                double step = pass_at_k(n, c, k + 1) - pass_at_k(n, c, k);
                rises += step > 0.0;
                falls += step < 0.0;
                level += step == 0.0;
            }
    double rare = pass_at_k(16, 1, 1), always = pass_at_k(16, 16, 1), same = pass_at_k(16, 1, 16);
    text_printf(f, "all cases up to 16 samples, from k to k+1: %d rises, %d falls, %d level, at 0 or at 1. 1 right of 16 and "
                "16 of 16: the same pass@16, %g, and pass@1 %.4f and %g", rises, falls, level, same, rare, always);
    return decide(falls == 0 && rises > 0 && same == pass_at_k(16, 16, 16) && rare < 0.1 * always, 0);
}

// In passes of one answer through the model: forward 1, backward 2. Sampling is one forward.
static Verdict check_cost(Text* f) {
    TrainOptions t = train_defaults();
    RlOptions o = rl_defaults();
    Problems p = load_problems(o.data);
    double sft = 3.0, rl = o.num_samples * (1.0 + 3.0), updates = (double)o.num_epochs * p.count / o.examples_per_step;
    double sft_run = sft * t.batch_size * t.steps, rl_run = rl * o.examples_per_step * updates;
    text_printf(f, "for one question: SFT %g passes (forward 1, backward 2), RL with %d rollouts %g, %.1f times as much. Our "
                "whole runs: SFT %d x %d demonstrations, RL %.0f x %d questions, %.2f times as much, since zero-variance "
                "groups included", sft, o.num_samples, rl, rl / sft, t.steps, t.batch_size, updates,
                o.examples_per_step, rl_run / sft_run);
    problems_free(&p);
    return decide(rl > 5.0 * sft && rl_run > 5.0 * sft_run, rl > 5.0 * sft);
}

static Verdict check_one_task(Text* f) {
    const char* const forms[] = {"#### 42", "\\boxed{42}", "The answer is 42", "x = 42"};
    int paid = count_paid(reward_gsm8k, forms, 4, "#### 42");
    text_printf(f, "the right number in four forms: %d is rewarded, GSM8K's own; reward_boxed takes %d of them", paid,
                count_paid(reward_boxed, forms, 4, "42"));
    return decide(paid == 1, 0);
}

static Verdict check_two_values(Text* f) {
    const char* const texts[] = {"#### 42", "#### 41.99", "6*7=42, so #### 24", "", "42", "#### 42 apples"};
    int other = 0;
    double p = 0.05, bits = -(p * log2(p) + (1.0 - p) * log2(1.0 - p));
    for (int i = 0; i < 6; i++) {
        float r = reward_gsm8k(texts[i], "#### 42");
        other += r != 0.0f && r != 1.0f;
    }
    text_printf(f, "6 responses, %d rewards other than 0 and 1. Right 1 in 20, a reward carries %.3f bits, and %.3f of the "
                "groups of 16 are zero-variance", other, bits, no_signal_odds(p, 16));
    return decide(other == 0 && no_signal_odds(p, 16) > 0.25, 0);
}

// Mean KL to the start after 20 trainings, and the least share of right answers among them.
static double train_twenty(double* least, const Toy* ref, const double* reward, ToyTraining o) {
    double logp[TOY_PARAMS], kl = 0.0;
    *least = 1.0;
    for (int seed = 0; seed < 20; seed++) {
        Rng rng = {(uint64_t)seed};
        toy_train(logp, ref, reward, o, &rng);
        for (int y = 0; y < TOY_ANSWERS; y++) {
            double log_p = toy_sum_along(logp, y);
            kl += exp(log_p) * (log_p - toy_sum_along(ref->logp, y)) / 20;
        }
        *least = fmin(*least, toy_expected(logp, ref->reward));
    }
    return kl;
}

static Verdict check_no_kl(Text* f) {
    Toy ref = toy_new(2, 1.0);
    ToyTraining free_run = {RULE_CENTERED, 500, 1, 0.0f, 0.0, 1.0}, held = {RULE_CENTERED, 500, 1, 0.0f, 0.5, 1.0};
    double holed[TOY_PARAMS], least[4], kl[4];
    memcpy(holed, ref.reward, sizeof holed);
    holed[TOY_PARAMS - 1] = 2.0;
    for (int i = 0; i < 4; i++)
        kl[i] = train_twenty(&least[i], &ref, i < 2 ? ref.reward : holed, i % 2 ? held : free_run);
    text_printf(f, "27 answers, 500 updates, 20 seeds, without KL and with beta 0.5: KL %.2f and %.2f nats, in the worst run "
                "%.3f and %.3f right with a verifier; with one that pays 2 for a wrong answer KL %.2f and %.2f, right %.3f "
                "and %.3f", kl[0], kl[1], least[0], least[1], kl[2], kl[3], least[2], least[3]);
    return decide(least[0] < 0.5 * least[1], least[2] < 0.5 * least[3] && kl[2] > kl[3]);
}

static Verdict check_no_clipping(Text* f) {
    Toy ref = toy_new(1, 1.0);
    double least, kl[4];
    for (int i = 0; i < 4; i++) {
        ToyTraining o = {RULE_CENTERED, 1, i < 2 ? 1 : 20, i % 2 ? 0.2f : 0.0f, 0.0, 1.0};
        kl[i] = train_twenty(&least, &ref, ref.reward, o);
    }
    text_printf(f, "how far one group of 8 carries the policy, in nats, plain and clipped: %.4f and %.4f in one step, %.4f and "
                "%.4f in 20 steps on the same group", kl[0], kl[1], kl[2], kl[3]);
    return decide(kl[0] > 1.1 * kl[1], fabs(kl[0] - kl[1]) < 1e-9 && kl[2] > 2.0 * kl[3]);
}

// Weights after 40 AdamW steps towards 1, stopped after 20: 0 = not stopped, 1 = moments saved, 2 = moments lost.
static void train_stopped(float* weights, int how) {
    Model m = model_new((Config){8, 4, 1, 4, 1, 1, 4, 4, 1, 10000.0f, 1e-6f, 0});
    Optimizer o = optimizer_new(&m.config), saved = o;
    model_init(&m, 1);
    model_zero_grads(&m);
    for (int step = 0; step < 40; step++) {
        if (step == 20 && how > 0) {
            o = optimizer_new(&m.config);
            if (how == 1) {
                memcpy(o.first.memory, saved.first.memory, o.first.count * sizeof(float));
                memcpy(o.second.memory, saved.second.memory, o.second.count * sizeof(float));
                o.step = 20;
            }
        }
        for (size_t i = 0; i < m.weights.count; i++) m.grads.memory[i] = m.weights.memory[i] - 1.0f;
        adamw_step(&m, &o, 0.01f, (AdamOptions){0.9f, 0.95f, 1e-8f, 0.0f});
    }
    memcpy(weights, m.weights.memory, 64 * sizeof(float));
    if (how > 0) optimizer_free(&saved);
    optimizer_free(&o), model_free(&m);
}

static Verdict check_resume(Text* f) {
    float whole[64], kept[64], lost[64];
    double gap[2] = {0.0, 0.0};
    train_stopped(whole, 0);
    train_stopped(kept, 1);
    train_stopped(lost, 2);
    for (int i = 0; i < 64; i++) {
        gap[0] = fmax(gap[0], fabs((double)kept[i] - whole[i]));
        gap[1] = fmax(gap[1], fabs((double)lost[i] - whole[i]));
    }
    text_printf(f, "40 AdamW steps, stopped after 20: with the moments the weights differ from an unbroken run by %g, without "
                "them by up to %.4f, %.1f steps", gap[0], gap[1], gap[1] / 0.01);
    return decide(gap[0] == 0.0 && gap[1] > 0.001, 0);
}

// ---- D2

static const char* const four_responses[4] = {"\\boxed{83}", "The correct answer is \\boxed{83}",
                                              "The final answer is 83", "We get \\boxed{38}"};

static Verdict check_equation(Text* f) {
    double x = solve_linear("(3x-9)/2", "x+37");
    text_printf(f, "(3x-9)/2 = x+37 at x = %.10g", x);
    return compare_printed(x, 83.0, 0);
}

static Verdict check_price(Text* f) {
    double start = 10.1 / 15.2, later = (862.6 - 10.1) / (52.0 - 15.2);
    text_printf(f, "from D2's two rows alone: %.3f minutes for each point at the start, %.1f for each further one; what lies "
                "between them is not said here", start, later);
    return decide(later > start, 0);
}

static Verdict check_comparison(Text* f) {
    const float reward[4] = {1, 1, 0, 0}, shifted[4] = {6, 6, 5, 5};
    float adv[4], same[4];
    double gap = 0.0;
    advantages_grpo(adv, reward, 4, 1e-8f);
    advantages_grpo(same, shifted, 4, 1e-8f);
    for (int k = 0; k < 4; k++) gap = fmax(gap, fabs((double)adv[k] - same[k]));
    double exact = expected_gradient(0.3, 8, RULE_RLOO) / (0.3 * (1.0 - 0.3));
    text_printf(f, "5 more for every answer changes GRPO's advantages by %.2g. Without a value model, RLOO's expected gradient "
                "is %.6f times the true one", gap, exact);
    return decide(gap < 1e-6 && fabs(exact - 1.0) < 1e-6, 0);
}

// Two rewards, two algorithms, one start: [reward][algorithm], the share of answers that each reward wants.
static Verdict check_signal_and_algorithm(Text* f) {
    Toy ref = toy_new(1, 1.0);
    const int rules[2] = {RULE_CENTERED, RULE_GRPO};
    double other[TOY_PARAMS] = {0}, logp[TOY_PARAMS], wanted[2][2], unwanted[2][2];
    for (int y = 0; y < TOY_ANSWERS; y++) other[TOY_LAST + y] = toy_digit_sum(y) == 4;
    for (int i = 0; i < 4; i++) {
        Rng rng = {5};
        const double* reward = i / 2 ? other : ref.reward;
        toy_train(logp, &ref, reward, (ToyTraining){rules[i % 2], 150, 1, 0.0f, 0.0, 0.5}, &rng);
        wanted[i / 2][i % 2] = toy_expected(logp, reward);
        unwanted[i / 2][i % 2] = toy_expected(logp, i / 2 ? ref.reward : other);
    }
    text_printf(f, "27 answers, from %.2f with digit sum 3 and %.2f with 4, 150 updates. Reward for 3: centered %.2f and %.2f, GRPO "
                "%.2f and %.2f. Reward for 4: centered %.2f and %.2f, GRPO %.2f and %.2f. The reward says where to, the "
                "algorithm how fast", ref.J, toy_expected(ref.logp, other), wanted[0][0], unwanted[0][0], wanted[0][1],
                unwanted[0][1], unwanted[1][0], wanted[1][0], unwanted[1][1], wanted[1][1]);
    int where = 1, faster = wanted[0][1] > wanted[0][0] && wanted[1][1] > wanted[1][0];
    for (int i = 0; i < 4; i++) where &= wanted[i / 2][i % 2] > 0.8 && unwanted[i / 2][i % 2] < 0.2;
    return decide(where && faster, 0);
}

// Scores of n answers from nothing but the odds with which each beats each, by descent on loss_reward_model.
static void fit_scores(double* score, const double* truth, int n) {
    for (int i = 0; i < n; i++) score[i] = 0.0;
    for (int step = 0; step < 2000; step++) {
        double grad[4] = {0};
        for (int i = 0; i < n * n; i++) {
            float chosen, rejected;
            if (i / n == i % n) continue;
            loss_reward_model(&chosen, &rejected, (float)score[i / n], (float)score[i % n]);
            grad[i / n] += sigmoid(truth[i / n] - truth[i % n]) * chosen;
            grad[i % n] += sigmoid(truth[i / n] - truth[i % n]) * rejected;
        }
        for (int i = 0; i < n; i++) score[i] -= 0.5 * grad[i];
    }
}

static Verdict check_pairs(Text* f) {
    const double shares[3] = {0.6, 0.8, 0.95};
    double worst = 0.0;
    text_printf(f, "share of annotators who take B, and r(B) - r(A) by Bradley-Terry, fitted:");
    for (int i = 0; i < 3; i++) {
        double score[2], truth[2] = {log(shares[i] / (1.0 - shares[i])), 0.0};
        fit_scores(score, truth, 2);
        worst = fmax(worst, fabs(score[0] - score[1] - truth[0]));
        text_printf(f, "%s %.0f%% %.3f", i ? ";" : "", 100.0 * shares[i], score[0] - score[1]);
    }
    double four[4], truth[4] = {2.0, 1.0, 0.5, -1.0};
    fit_scores(four, truth, 4);
    for (int i = 1; i < 4; i++) worst = fmax(worst, fabs(four[i - 1] - four[i] - (truth[i - 1] - truth[i])));
    text_printf(f, ". Four answers 1, 0.5, 1.5 apart: %.4f, %.4f, %.4f", four[0] - four[1], four[1] - four[2],
                four[2] - four[3]);
    return decide(worst < 1e-3, 0);
}

static Verdict check_reward_model_size(Text* f) {
    size_t undecayed, policy[2], judge[2];
    Config c[2] = {train_defaults().config, {151936, 1024, 28, 1024, 16, 8, 128, 3072, 1, 1e6f, 1e-6f, 0}};
    for (int i = 0; i < 2; i++) {
        policy[i] = weight_count(&c[i], &undecayed);
        c[i].scalar = 1;
        judge[i] = weight_count(&c[i], &undecayed);
    }
    text_printf(f, "parameters of policy and reward model: ours %zu and %zu; Qwen3-0.6B's sizes %zu and %zu. A value model is as "
                "large again", policy[0], judge[0], policy[1], judge[1]);
    double ratio = (double)judge[1] / policy[1];
    return decide(0, ratio > 0.95 && ratio < 1.05 && judge[0] > policy[0] / 2);
}

static Verdict check_four(Text* f) {
    const float printed[4] = {1, 1, 0, 0};
    int same = 0;
    text_printf(f, "rewards");
    for (int i = 0; i < 4; i++) {
        float reward = reward_boxed(four_responses[i], "83");
        same += reward == printed[i];
        text_printf(f, "%s%g", i ? ", " : " [", reward);
    }
    text_printf(f, "]");
    return decide(same == 4, 0);
}

static Verdict check_r3(Text* f) {
    const char* const cases[] = {"\\boxed{83}", "83", "\\boxed{38}", "38"};
    char answer[64];
    int first = count_paid(reward_boxed, cases, 1, "83"), rest = count_paid(reward_boxed, cases + 1, 3, "83");
    float strict = reward_boxed(four_responses[2], "83");
    extract_lenient(four_responses[2], answer, sizeof answer);
    text_printf(f, "r3 without a fallback: %g; with one (the last number, %s): %d. Right and boxed: %d; right only, boxed "
                "only, neither: %d of 3 paid", strict, answer, answers_equal(answer, "83"), first, rest);
    return decide(strict == 0.0f && answers_equal(answer, "83") && first == 1 && rest == 0, 0);
}

static Verdict check_split(Text* f) {
    Problem seen[] = {{"Tom has 3 pens.", ""}, {"How far is it?", ""}},
            asked[] = {{"tom has 3 pens", ""}, {"Why?", ""}, {"When?", ""}};
    Problems a = {.list = seen, .count = 2}, b = {.list = asked, .count = 3};
    Problems train = load_problems("data/train.jsonl"), exam = load_problems("data/test.jsonl");
    int leaked = count_overlap(&a, &b, SAME_WORDS), shared = count_overlap(&train, &exam, SAME_WORDS);
    text_printf(f, "our %d training and %d exam questions have %d in common; of 3 questions with one leaked, respelled, "
                "count_overlap finds %d", train.count, exam.count, shared, leaked);
    problems_free(&train), problems_free(&exam);
    return decide(shared == 0 && leaked == 1, 0);
}

static Verdict check_near_miss(Text* f) {
    float near = reward_boxed("\\boxed{83.01}", "83"), far = reward_boxed("\\boxed{a banana}", "83");
    text_printf(f, "83.01 gets %g, \"a banana\" gets %g", near, far);
    return decide(near == far && reward_boxed("\\boxed{83}", "83") != near, 0);
}

// ---- D3, sections 1 to 4

static Verdict check_no_dynamics(Text* f) {
    const Trajectory tau = {4, {2, 3, 2, 3, 4}, {CHAIN_RIGHT, CHAIN_RIGHT, CHAIN_RIGHT, CHAIN_RIGHT}, {0, 0, 0, 1}};
    const double slips[3] = {1.0 / 6.0, 0.3, 0.01}, h = 1e-5;
    double theta[CHAIN_STATES] = {1, 1, 1, 1, 1}, score[CHAIN_STATES], logp[3], gap = 0.0, a, b;
    ChainPolicy pi = chain_policy_from(theta);
    score_trajectory(score, &tau, &pi);
    for (int i = 0; i < 3; i++) {
        logp[i] = trajectory_logprob(&a, &b, &tau, &pi, slips[i]);
        for (int s = 1; s < CHAIN_GOAL; s++) {
            double side[2];
            for (int up = 0; up < 2; up++) {
                theta[s] = 1.0 + (up ? h : -h);
                ChainPolicy moved = chain_policy_from(theta);
                side[up] = trajectory_logprob(&a, &b, &tau, &moved, slips[i]);
            }
            theta[s] = 1.0;
            gap = fmax(gap, fabs((side[1] - side[0]) / (2 * h) - score[s]));
        }
    }
    text_printf(f, "log p(tau) in three worlds: %.3f, %.3f, %.3f; its gradient is (%.4f, %.4f, %.4f) in all three, off by %s",
                logp[0], logp[1], logp[2], score[1], score[2], score[3], gap < 1e-8 ? "< 1e-08" : "more");
    return decide(gap < 1e-8 && fabs(logp[0] - logp[2]) > 0.1, 0);
}

static Verdict check_discount_converges(Text* f) {
    enum { LONG = 10000 };
    static double ones[LONG];
    for (int t = 0; t < LONG; t++) ones[t] = 1.0;
    double a = discounted_return(ones, LONG / 10, 0.99), b = discounted_return(ones, LONG, 0.99),
           c = discounted_return(ones, LONG / 10, 1.0), d = discounted_return(ones, LONG, 1.0);
    text_printf(f, "1 on every step, %d and %d steps: %.3f and %.3f with gamma 0.99 (limit 1/(1-gamma) = 100), %g and %g with "
                "gamma 1", LONG / 10, LONG, a, b, c, d);
    return decide(fabs(b - 100.0) < 1e-9 && d == 10.0 * c, 0);
}

// Two policies over the 27 answers; a jackpot of 3 on one of them, which the first finds now and then.
static Verdict check_expectation(Text* f) {
    Toy gambler = toy_new(2, 1.0);
    double logp[TOY_PARAMS], theta[TOY_PARAMS], reward[TOY_PARAMS], zero[TOY_PARAMS] = {0}, best[2] = {0.0, 0.0};
    memcpy(theta, gambler.theta, sizeof theta);
    toy_ascend(theta, zero, gambler.reward, 0.0, 1.0, 0.0, 300);
    toy_log_policy(logp, theta);
    memcpy(reward, gambler.reward, sizeof reward);
    reward[TOY_PARAMS - 1] = 3.0;
    const double* policy[2] = {gambler.logp, logp};
    for (int i = 0; i < 2; i++) {
        double p = exp(toy_sum_along(policy[i], TOY_ANSWERS - 1)), J = toy_expected(policy[i], reward);
        best[i] = 3.0 * (1.0 - pow(1.0 - p, 16)) + pow(1.0 - p, 16) - pow(1.0 - (J - 2.0 * p), 16);
    }
    double J[2] = {toy_expected(gambler.logp, reward), toy_expected(logp, reward)};
    text_printf(f, "reward 1 for a right answer, 3 for one answer by luck. Policy A: best of 16 trajectories %.2f on average, "
                "expectation %.3f. Policy B: %.2f and %.3f. By J, which is maximized, B is the better one", best[0], J[0],
                best[1], J[1]);
    return decide(best[0] > best[1] && J[1] > J[0], 0);
}

static Verdict check_relative(Text* f) {
    double V[2][CHAIN_STATES], Q[2][CHAIN_STATES][2], worst = 0.0;
    const double right[2] = {0.5, 0.75};
    for (int i = 0; i < 2; i++) {
        ChainPolicy pi = {{right[i], right[i], right[i], right[i], right[i]}};
        solve_chain(V[i], Q[i], &pi, 1.0 / 6.0, 1.0);
        for (int s = 1; s < CHAIN_GOAL; s++)
            worst = fmax(worst, fabs((1.0 - right[i]) * Q[i][s][0] + right[i] * Q[i][s][1] - V[i][s]));
    }
    text_printf(f, "middle of the chain, pi(right) 0.5 and 0.75: V %.4f and %.4f, Q(right) %.4f and %.4f, A(right) %+.4f and "
                "%+.4f; the mean of A under pi is %s", V[0][2], V[1][2], Q[0][2][1], Q[1][2][1], Q[0][2][1] - V[0][2],
                Q[1][2][1] - V[1][2], worst < 1e-12 ? "0" : "not 0");
    return decide(worst < 1e-12 && fabs(V[0][2] - V[1][2]) > 0.1 && fabs(Q[0][2][1] - Q[1][2][1]) > 0.1, 0);
}

// Share of ten days in the band under "on below the threshold", in a room with another heater.
static double share_by_hand(double threshold, double heat) {
    double now = 70.0, share = 0.0;
    for (int t = 0; t < 10 * THERMOSTAT_STEPS; t++) {
        now += (now < threshold ? heat : 0.0) - thermostat_loss * (now - thermostat_outside);
        share += thermostat_in_band(now) / (10.0 * THERMOSTAT_STEPS);
    }
    return share;
}

static Verdict check_thermostat(Text* f) {
    const double random[2] = {0.0, 0.0}, step[2] = {0.0, -1e6}; // a weight so large that the sigmoid is a step
    double w[2], curve[CURVE_COLUMNS], day[THERMOSTAT_STEPS];
    double other = share_by_hand(70.0, 4.5), best = share_by_hand(68.25, 4.5);
    Rng rng = {1};
    train_thermostat(w, curve, 1, &thermostat_defaults);
    double before = test_thermostat(day, random, 100, &rng), learned = test_thermostat(day, w, 100, &rng),
           written = test_thermostat(day, step, 100, &rng);
    text_printf(f, "within 2 F of 70 F: %.0f%% of the time at random, %.1f%% after %d updates (pi(on) falls with the "
                "temperature: %s), %.1f%% with \"on below 70 F\". With a heater of 4.5 F a step that rule has %.0f%%, "
                "\"on below 68.25 F\" %.0f%%", 100.0 * before, 100.0 * learned, thermostat_defaults.updates,
                w[1] < 0.0 ? "yes" : "no", 100.0 * written, 100.0 * other, 100.0 * best);
    return decide(before < 0.2 && learned > 0.95 && w[1] < 0.0 && best > other + 0.05, 0);
}

static Verdict check_product(Text* f) {
    Toy toy = toy_new(1, 1.0);
    double total = 0.0, right = toy_expected(toy.logp, toy.reward);
    for (int y = 0; y < TOY_ANSWERS; y++) total += exp(toy_sum_along(toy.logp, y));
    text_printf(f, "products over all %d answers of the small model add up to %.12f, over the right ones to %.12f; Bellman, step "
                "by step, says %.12f", TOY_ANSWERS, total, right, toy.J);
    return decide(fabs(total - 1.0) < 1e-12 && fabs(right - toy.J) < 1e-12, 0);
}

static Verdict check_underflow(Text* f) {
    enum { T1 = 4000 };
    static float logp[T1];
    static int mask[T1];
    float sum;
    double product = 1.0;
    int left = 0;
    fill(logp, T1, (float)log(0.5));
    ones(mask, T1);
    for (int t = 0; t < T1; t++) {
        product *= 0.5;
        left += product > 0.0;
    }
    sequence_logprobs(&sum, logp, mask, 1, T1);
    text_printf(f, "%d tokens of probability 1/2: the product is exactly 0 from token %d on, in double; the sum of logs "
                "is %.1f nats", T1, left + 1, sum);
    return decide(product == 0.0 && fabs(sum - T1 * log(0.5)) < 0.01, 0);
}

// Chapter 3's example by hand, log pi("4 <end>" | "2 + 2 ="), rightly and after one slip.
static void example_sums(float* right, float* no_shift, float* everything, float* late_mask) {
    const int all[EXAMPLE_T] = {1, 1, 1, 1, 1, 1};
    int late_ids[EXAMPLE_T + 1] = {0}, shifted[EXAMPLE_T - 1];
    float logp[EXAMPLE_T - 1], unshifted[EXAMPLE_T];
    memcpy(late_ids + 1, example_ids, sizeof example_ids); // undoes the shift of token_logprobs
    token_logprobs(logp, example_logits, example_ids, 1, EXAMPLE_T, EXAMPLE_V);
    token_logprobs(unshifted, example_logits, late_ids, 1, EXAMPLE_T + 1, EXAMPLE_V);
    shift_mask(shifted, example_mask, 1, EXAMPLE_T);
    sequence_logprobs(right, logp, shifted, 1, EXAMPLE_T - 1);
    sequence_logprobs(no_shift, unshifted, example_mask, 1, EXAMPLE_T);
    sequence_logprobs(everything, logp, all, 1, EXAMPLE_T - 1);
    sequence_logprobs(late_mask, logp, example_mask, 1, EXAMPLE_T - 1);
}

static Verdict check_shift(Text* f) {
    float right, no_shift, everything, late_mask;
    example_sums(&right, &no_shift, &everything, &late_mask);
    double hand = (3.0 - log(exp(1.0) + exp(3.0) + 3.0)) + (2.0 - log(4.0 + exp(2.0)));
    text_printf(f, "\"4 <end>\" after \"2 + 2 =\": %.4f nats (by hand %.4f); ids not shifted %.4f, mask not shifted %.4f", right, hand,
                no_shift, late_mask);
    return decide(fabs(right - hand) < 1e-5 && fabs(no_shift - right) > 0.1 && fabs(late_mask - right) > 0.1, 0);
}

// log pi of the 4 tokens behind a prompt of 3, in a row of T: `left` paddings before them, the rest behind.
static double padded_logprob(Model* m, int left, int T) {
    enum { N = 7, MOST = 12 };
    const int text[N] = {1, 5, 2, 7, 3, 6, 4};
    int ids[MOST] = {0}, targets[MOST], mask[MOST] = {0}, shifted[MOST];
    float sum;
    for (int t = 0; t < N; t++) {
        ids[left + t] = text[t];
        mask[left + t] = t >= 3;
    }
    for (int t = 0; t < T; t++) targets[t] = t + 1 < T ? ids[t + 1] : -1;
    Batch b = {0};
    batch_add(&b, ids, targets, T, -1);
    model_forward(m, &b);
    shift_mask(shifted, mask, 1, T);
    sequence_logprobs(&sum, m->acts.logp, shifted, 1, T - 1);
    batch_free(&b);
    return sum;
}

static Verdict check_padding(Text* f) {
    Model m = model_new((Config){8, 16, 2, 16, 2, 1, 8, 16, 1, 10000.0f, 1e-6f, 0});
    model_init(&m, 3);
    for (size_t i = 0; i < m.weights.count; i++) m.weights.memory[i] *= 3.0f; // far from the start's even odds
    double alone = padded_logprob(&m, 0, 7), behind = padded_logprob(&m, 0, 12), before = padded_logprob(&m, 5, 12);
    model_free(&m);
    text_printf(f, "log pi of 4 answer tokens behind 3 of prompt: %.4f alone, %.4f in a batch with 5 paddings behind, %.4f with "
                "them before and no attention mask that hides them", alone, behind, before);
    int counts_before = fabs(before - alone) > 0.01, counts_behind = fabs(behind - alone) > 1e-5;
    return decide(counts_before && counts_behind, counts_before);
}

static Verdict check_size(Text* f) {
    double digits = 4000.0 * log10(128000.0);
    text_printf(f, "128000^4000 = 10^%.1f; in bits %.0f chosen for 1 paid", digits, 4000.0 * log2(128000.0));
    return decide(digits > 80.0, 0); // 10^80: the atoms of the visible universe
}

static Verdict check_bandit(Text* f) {
    Toy toy = toy_new(1, 1.0);
    double grad[TOY_PARAMS], weight[TOY_ANSWERS];
    char text[16];
    for (int y = 0; y < TOY_ANSWERS; y++) weight[y] = exp(toy_sum_along(toy.logp, y)) * toy_verify(y);
    toy_answer_gradient(grad, toy.logp, weight);
    double gap = toy_largest_difference(grad, toy.grad, TOY_PARAMS);
    toy_rollout_gradient(grad, toy.logp, toy.reward, NULL, 1.0, CREDIT_TO_GO);
    gap = fmax(gap, toy_largest_difference(grad, toy.grad, TOY_PARAMS));
    text_printf(f, "27 answers, gamma 1: Bellman's gradient, the sum over whole answers and the sum over tokens differ by %s (their "
                "variances may differ)", toy_difference_text(text, gap, 1e-12));
    return decide(gap < 1e-12, 0);
}

static Verdict check_point_six_percent(Text* f) {
    double late[501] = {0};
    late[500] = 1.0;
    double credit = 100.0 * discounted_return(late, 501, 0.99);
    text_printf(f, "0.99^500 = %.3f%% (500 tokens have 499 steps between them: %.3f%%). Cut to one decimal it is %.1f%%, rounded "
                "%.1f%%", credit, credit / 0.99, floor(10.0 * credit) / 10.0, credit);
    return compare_printed(credit, 0.6, 1);
}

static Verdict check_discount_bias(Text* f) {
    Toy toy = toy_new(1, 1.0);
    double grad[TOY_PARAMS], angle[3];
    const double gammas[3] = {1.0, 0.99, 0.9};
    for (int i = 0; i < 3; i++) {
        toy_rollout_gradient(grad, toy.logp, toy.reward, NULL, gammas[i], CREDIT_TO_GO);
        angle[i] = toy_angle(grad, toy.grad, TOY_PARAMS);
        if (angle[i] < 1e-9) angle[i] = 0.0;
    }
    text_printf(f, "the expected gradient of three-token answers turns away from the true one by %.3f, %.3f and %.3f degrees for "
                "gamma 1, 0.99, 0.9", angle[0], angle[1], angle[2]);
    return decide(angle[0] == 0.0 && angle[1] > 1e-3 && angle[2] > angle[1], 0);
}

static Verdict check_grpo_std(Text* f) {
    const float reward[4] = {1, 1, 0, 0};
    float adv[4];
    double square = 0.0;
    advantages_grpo(adv, reward, 4, 1e-8f);
    for (int k = 0; k < 4; k++) square += (double)adv[k] * adv[k];
    text_printf(f, "[1,1,0,0] becomes %+.4f, %+.4f: std %.4f with K-1, as torch.std has it and D3's line with it (with K it would "
                "be %.4f)", adv[0], adv[3], sqrt(square / 3), sqrt(square / 4));
    return decide(fabs(sqrt(square / 3) - 1.0) < 1e-6, 0);
}

static Verdict check_rloo(Text* f) {
    float centered[16], rloo[16];
    double gap = 0.0, p = 0.3, truth = p * (1.0 - p);
    advantages_centered(centered, sixteen_rewards, 16);
    advantages_rloo(rloo, sixteen_rewards, 16);
    for (int k = 0; k < 16; k++) {
        double others = (3.0 - sixteen_rewards[k]) / 15.0; // leave-one-out, from its definition
        gap = fmax(gap, fabs(rloo[k] - (sixteen_rewards[k] - others)));
        gap = fmax(gap, fabs(rloo[k] - 16.0 / 15.0 * centered[k]));
    }
    double exact = expected_gradient(p, 8, RULE_RLOO) / truth, shrunk = expected_gradient(p, 8, RULE_CENTERED) / truth;
    text_printf(f, "reward minus the mean of the others is 16/15 of centered for all 16: %s. Expected gradient over the true one, "
                "K = 8: RLOO %.4f, centered %.4f", gap < 1e-6 ? "yes" : "no", exact, shrunk);
    return decide(gap < 1e-6 && fabs(exact - 1.0) < 1e-6 && fabs(shrunk - 7.0 / 8.0) < 1e-6, 0);
}

// The variance of one rollout's gradient minus the mean reward or minus V(prefix), for 18 policies.
static Verdict check_value_function(Text* f) {
    double low[2] = {INFINITY, INFINITY}, high[2] = {0.0, 0.0}, mean[TOY_STATES], grad[TOY_PARAMS];
    for (int i = 0; i < 18; i++) {
        Toy toy = toy_new(1 + i / 3, 1.0 + i % 3);
        for (int s = 0; s < TOY_STATES; s++) mean[s] = toy.J;
        double none = toy_rollout_gradient(grad, toy.logp, toy.reward, NULL, 1.0, CREDIT_TO_GO),
               by_mean = toy_rollout_gradient(grad, toy.logp, toy.reward, mean, 1.0, CREDIT_TO_GO),
               by_value = toy_rollout_gradient(grad, toy.logp, toy.reward, toy.value, 1.0, CREDIT_TO_GO);
        const double left[2] = {by_mean / none, by_value / by_mean};
        for (int j = 0; j < 2; j++) {
            low[j] = fmin(low[j], left[j]);
            high[j] = fmax(high[j], left[j]);
        }
    }
    text_printf(f, "18 policies over 27 answers. Subtracting the mean leaves %.2f to %.2f of the gradient's variance; V of the "
                "prefix instead, exact here, %.2f to %.2f times that", low[0], high[0], low[1], high[1]);
    return decide(high[0] < 0.9 && low[1] > 0.9, 0);
}

static Verdict check_cartpole(Text* f) {
    SeedSummary s[BASELINES];
    for (int b = 0; b < BASELINES; b++) {
        CartPoleOptions options = cartpole_defaults;
        options.baseline = b;
        s[b] = summarize_seeds(1, &options);
    }
    text_printf(f, "of %d seeds with %d steps each, the group mean solves %d, a value function %d, half of them within %d and %d "
                "steps of REINFORCE", CARTPOLE_SEEDS, cartpole_defaults.budget, s[BASELINE_GROUP_MEAN].solved,
                s[BASELINE_VALUE].solved, s[BASELINE_GROUP_MEAN].median_steps, s[BASELINE_VALUE].median_steps);
    return decide(2 * s[BASELINE_GROUP_MEAN].solved < CARTPOLE_SEEDS, 0);
}

// ---- D3, section 5: KL

// A reward model with a hole: it pays 2 for the wrong answer "222".
static Verdict check_hole(Text* f) {
    const double betas[] = {4.0, 0.5, 0.25, 0.1};
    Toy ref = toy_new(2, 1.0);
    double p[TOY_ANSWERS], score[4] = {0}, right[4] = {0};
    ref.reward[TOY_PARAMS - 1] = 2.0;
    text_printf(f, "a reward model pays 2 for one wrong answer. At the optimum, its score and the share of right answers:");
    for (int i = 0; i < 4; i++) {
        toy_optimum(p, ref.logp, ref.reward, betas[i]);
        for (int y = 0; y < TOY_ANSWERS; y++) {
            score[i] += p[y] * ref.reward[TOY_LAST + y];
            right[i] += p[y] * toy_verify(y);
        }
        text_printf(f, "%s beta %g: %.3f, %.3f", i ? ";" : "", betas[i], score[i], right[i]);
    }
    int exploited = score[3] > score[2] && score[2] > score[1] && right[3] < right[2] && right[2] < right[1];
    return decide(exploited && right[3] < 0.01 && right[1] > right[0], 0);
}

static double kl_between_drifts(double from, double to) { // KL of the five-way policy at two drifts
    double p[5], q[5], reference[5];
    five_way(p, reference, from);
    five_way(q, reference, to);
    return exact_kl(p, q, 5);
}

static Verdict check_kl_properties(Text* f) {
    double there = kl_between_drifts(1, 0), back = kl_between_drifts(0, 1), far = kl_between_drifts(2, 0);
    double detour = kl_between_drifts(2, 1) + there, least = INFINITY, same = 0.0;
    for (double drift = -3.0; drift <= 3.0; drift += 0.5) {
        if (drift != 0.0) least = fmin(least, kl_between_drifts(drift, 0));
        same = fmax(same, fabs(kl_between_drifts(drift, drift)));
    }
    text_printf(f, "KL(P||Q) %.4f, KL(Q||P) %.4f; of a distribution with itself %.2g, least of 12 others %.4f; direct %.4f, by way "
                "of a third %.4f: longer than its detour", there, back, same, least, far, detour);
    return decide(fabs(there - back) > 0.01 && same == 0.0 && least > 0.0 && far > detour, 0);
}

// A policy and a reference over n tokens. The estimators of chapter 8 take (policy, reference); D3's printed lines,
// -log_ratio and exp(log_ratio) - 1 - log_ratio, are the same functions with the two exchanged.
enum { MOST_TOKENS = VOCAB_SIZE };
typedef struct { int n; double pi[MOST_TOKENS], ref[MOST_TOKENS]; } TwoPolicies;
typedef struct { double mean, variance, negative, least; } Moments;

static TwoPolicies five_tokens(double drift) {
    TwoPolicies t = {.n = 5};
    five_way(t.pi, t.ref, drift);
    return t;
}

// As in D3's experiment 2: the policy is the reference with noise on its logits.
static TwoPolicies noisy_policy(double noise) {
    TwoPolicies t = {.n = MOST_TOKENS};
    double z[MOST_TOKENS];
    Rng rng = {7};
    toy_fill(z, t.n, 1, 3.0);
    toy_log_softmax(t.ref, z, t.n);
    for (int v = 0; v < t.n; v++) z[v] += noise * random_normal(&rng);
    toy_log_softmax(t.pi, z, t.n);
    return t;
}

// Exact moments of k1 or k3 when the tokens are drawn from pi or from pi_ref.
static Moments moments(const TwoPolicies* t, int estimator, int as_printed, int from_ref) {
    float a[MOST_TOKENS], b[MOST_TOKENS], k[MOST_TOKENS];
    Moments m = {0.0, 0.0, 0.0, INFINITY};
    for (int v = 0; v < t->n; v++) {
        a[v] = (float)(as_printed ? t->ref : t->pi)[v];
        b[v] = (float)(as_printed ? t->pi : t->ref)[v];
    }
    (estimator == 1 ? kl_k1 : kl_k3)(k, a, b, t->n);
    for (int v = 0; v < t->n; v++) m.mean += exp((from_ref ? t->ref : t->pi)[v]) * k[v];
    for (int v = 0; v < t->n; v++) {
        double p = exp((from_ref ? t->ref : t->pi)[v]);
        m.variance += p * (k[v] - m.mean) * (k[v] - m.mean);
        m.negative += k[v] < 0.0f ? p : 0.0;
        m.least = fmin(m.least, k[v]);
    }
    return m;
}

static Verdict check_k1_k3(Text* f) {
    const double drifts[3] = {0.5, 1.0, 3.0};
    int right = 1, calmer = 1, far = 1;
    text_printf(f, "samples from pi, the sign that fits them. KL, mean and variance of k1, of k3, samples with k1 < 0, k3 < 0:");
    for (int i = 0; i < 3; i++) {
        TwoPolicies t = five_tokens(drifts[i]);
        Moments k1 = moments(&t, 1, 0, 0), k3 = moments(&t, 3, 0, 0);
        double exact = exact_kl(t.pi, t.ref, 5);
        text_printf(f, "%s drift %g: %.4f, %.4f and %.3g, %.4f and %.3g, %.0f%%, %.0f%%", i ? ";" : "", drifts[i], exact, k1.mean,
                    k1.variance, k3.mean, k3.variance, 100.0 * k1.negative, 100.0 * k3.negative);
        right &= fabs(k1.mean - exact) < 1e-5 && fabs(k3.mean - exact) < 1e-5 && k1.negative > 0.0 && k3.least >= 0.0;
        *(i < 2 ? &calmer : &far) &= k3.variance < k1.variance;
    }
    return decide(right && calmer && far, right && calmer);
}

// A line of code as D3 prints it, on samples from pi (which section 5 speaks of) and on samples from pi_ref.
static Verdict check_printed(Text* f, int estimator) {
    TwoPolicies t = five_tokens(1.0);
    double exact = exact_kl(t.pi, t.ref, 5), other = exact_kl(t.ref, t.pi, 5), turned = moments(&t, estimator, 0, 0).mean;
    double from_pi = moments(&t, estimator, 1, 0).mean, from_ref = moments(&t, estimator, 1, 1).mean;
    text_printf(f, "samples from pi, KL(pi||ref) %.4f: as printed it averages %.4f, with the sign turned %.4f. Samples from pi_ref, "
                "KL(ref||pi) %.4f: as printed %.4f", exact, from_pi, turned, other, from_ref);
    return decide(fabs(from_pi - exact) < 1e-6, fabs(from_ref - other) < 1e-6);
}

static Verdict check_printed_k1(Text* f) { return check_printed(f, 1); }
static Verdict check_printed_k3(Text* f) { return check_printed(f, 3); }

// |expected gradient - gradient of KL(pi||ref)| / |gradient of KL| when an estimate is subtracted from the reward.
static double reward_error(int estimator, double drift) {
    TwoPolicies t = five_tokens(drift);
    double exact[5], other[5], weight[5], grad[5];
    float pi[5], ref[5], k[5];
    for (int i = 0; i < 5; i++) {
        pi[i] = (float)t.pi[i];
        ref[i] = (float)t.ref[i];
    }
    (estimator == 1 ? kl_k1 : kl_k3)(k, pi, ref, 5);
    for (int i = 0; i < 5; i++) weight[i] = k[i];
    exact_kl_gradient(exact, other, t.pi, t.ref, 5);
    softmax_score_sum(grad, t.pi, weight, 5);
    return toy_relative_error(grad, exact, 5);
}

static Verdict check_kl_in_reward(Text* f) {
    double k1 = fmax(reward_error(1, 1.0), reward_error(1, 0.1)), near = reward_error(3, 0.1), far = reward_error(3, 1.0);
    text_printf(f, "relative error of the expected gradient: k1 in the reward %s; k3 in the reward %.2f at drift 0.1 and %.2f at 1",
                k1 < 1e-5 ? "0" : "not 0", near, far);
    return decide(k1 < 1e-5 && near < 1e-5 && far < 1e-5, k1 < 1e-5);
}

static Verdict check_sum_or_mean(Text* f) {
    float logp[100], logp_ref[100];
    int mask[100], same = 1;
    const int lengths[4] = {1, 10, 100, 10};
    double ratio[4];
    fill(logp, 100, -1.0f);
    fill(logp_ref, 100, -1.3f);
    ones(mask, 100);
    for (int i = 0; i < 4; i++) {
        ratio[i] = ledger_kl(logp, logp_ref, mask, lengths[i], NORM_SEQUENCE_SUM) /
                   ledger_kl(logp, logp_ref, mask, lengths[i], NORM_SEQUENCE_MEAN);
        same &= fabs(ratio[i] - ratio[0]) < 1e-6;
    }
    text_printf(f, "the formula has the answer's log-ratio, the sum over its tokens; the line has the mean. For answers of 1, "
                "10, 100 tokens the sum is %.4g, %.4g, %.4g times the mean", ratio[0], ratio[1], ratio[2]);
    return decide(same, fabs(ratio[1] - ratio[3]) < 1e-9);
}

// ---- D3, sections 6 to 8

static Verdict check_no_negative(Text* f) {
    const float logp[4] = {-9.0f, -0.5f, -1.0f, -1.5f}, w[4] = {0, 1, 1, 1};
    float adv[4], sft[4], policy[4];
    int down = 0, blamed = 0;
    fill(adv, 4, 1.0f);
    ledger_policy_gradient(sft, logp, adv, w, 4); // loss_sft is this, with advantage 1
    fill(adv, 4, -1.0f);
    ledger_policy_gradient(policy, logp, adv, w, 4);
    for (int t = 0; t < 4; t++) down += sft[t] > 0.0f;
    for (int t = 0; t < 4; t++) blamed += policy[t] > 0.0f;
    text_printf(f, "tokens of an answer that the loss pushes down: SFT %d of 3, policy gradient with a negative advantage %d of 3",
                down, blamed);
    return decide(down == 0 && blamed == 3, 0);
}

static Verdict check_same_form(Text* f) {
    double gap = 0.0;
    for (int i = -4; i <= 4; i++)
        for (int j = -4; j <= 4; j++) {
            float a, b, c, d, beta = 0.5f;
            double dpo = loss_dpo(&a, &b, -12.0f + i, -15.0f + j, -12.0f, -15.0f, beta);
            double model = loss_reward_model(&c, &d, beta * i, beta * j);
            gap = fmax(gap, fmax(fabs(dpo - model), fabs((double)a - beta * c)));
        }
    text_printf(f, "81 pairs: the DPO loss differs from the reward model's loss on beta log(pi/pi_ref) by %.2g", gap < 1e-7 ? 0.0 : gap);
    return decide(gap < 1e-7, 0);
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

static Verdict check_dpo_optimum(Text* f) {
    Toy ref = toy_new(2, 1.0);
    double one = dpo_distance(ref.logp, ref.theta, 1.0), tenth = dpo_distance(ref.logp, ref.theta, 0.1);
    char a[16], b[16];
    text_printf(f, "trained on preferences between 27 answers, largest distance from pi_ref exp(r/beta)/Z: %s at beta 1, %s at 0.1",
                toy_difference_text(a, one, 1e-6), toy_difference_text(b, tenth, 1e-6));
    return decide(one < 1e-6 && tenth < 1e-6, 0);
}

// The distance of best-of-N from the nearest KL-regularized optimum, over all beta (a fine grid).
static double best_of_n_distance(const double* logp_ref, const double* reward, int N) {
    double p_ref[TOY_ANSWERS], p[TOY_ANSWERS], best[TOY_ANSWERS], least = 1.0, at = 0.0, low = log(0.02), high = log(20.0);
    toy_probabilities(p_ref, logp_ref);
    toy_best_of_n(p, p_ref, reward + TOY_LAST, N);
    for (double step = 0.1; step > 1e-12; step *= 0.1) {
        for (double x = low; x <= high; x += step) {
            toy_optimum(best, logp_ref, reward, exp(x));
            double distance = toy_largest_difference(p, best, TOY_ANSWERS);
            if (distance < least) at = x;
            least = fmin(least, distance);
        }
        low = at - step; // look closer around the best one
        high = at + step;
    }
    return least;
}

static Verdict check_three_routes(Text* f) {
    Toy ref = toy_new(2, 1.0);
    double theta[TOY_PARAMS], logp[TOY_PARAMS], graded[TOY_PARAMS] = {0}, p[TOY_ANSWERS], best[TOY_ANSWERS], beta = 0.5;
    memcpy(theta, ref.theta, sizeof theta);
    for (int y = 0; y < TOY_ANSWERS; y++) graded[TOY_LAST + y] = toy_closeness(y);
    toy_ascend(theta, ref.logp, ref.reward, beta, 2.0 / (0.3 + beta), 1e-10, 50000);
    toy_log_policy(logp, theta);
    toy_probabilities(p, logp);
    toy_optimum(best, ref.logp, ref.reward, beta);
    double rl = toy_largest_difference(p, best, TOY_ANSWERS), dpo = dpo_distance(ref.logp, ref.theta, beta);
    double two = best_of_n_distance(ref.logp, ref.reward, 4), more = best_of_n_distance(ref.logp, graded, 4);
    text_printf(f, "distance from the optimum: RL %s, DPO %s. Best of 4 from the nearest optimum of any beta: %s for a 0/1 reward, "
                "%.4f for a graded one", rl < 1e-6 ? "0" : "not 0", dpo < 1e-6 ? "0" : "not 0", two < 1e-6 ? "0" : "not 0", more);
    int meet = rl < 1e-6 && dpo < 1e-6 && two < 1e-6;
    return decide(meet && more < 1e-6, meet);
}

static Verdict check_cheating(Text* f) {
    const char* const cheats[] = {"\\boxed{}", "\\boxed{38}", "\\boxed{38, 83}", "\\boxed{83", "\\boxed{the answer}"};
    int strict = count_paid(reward_boxed, cheats, 5, "83"), format = count_paid(reward_format_only, cheats, 5, "83");
    float guess = reward_boxed("Perhaps 9*9 = 83? \\boxed{83}", "83");
    text_printf(f, "of 5 empty or wrong answers the verifier pays %d, one that only looks for a box pays %d; a lucky guess gets %g",
                strict, format, guess);
    return decide(strict == 0 && format == 0 && guess == 0.0f, strict == 0);
}

// Equal gains per doubling of the number of samples? One question (p = 1/4), and twelve with p = 1/2, 1/4, 1/8 ...
static Verdict check_log_linear(Text* f) {
    enum { N = 4096, DOUBLINGS = 4 };
    double spread[2];
    text_printf(f, "pass@k, gain of each doubling from k = 4 to 64:");
    for (int many = 1; many >= 0; many--) {
        double last = 0.0, low = 1.0, high = 0.0;
        for (int d = 0; d <= DOUBLINGS; d++) {
            double score = 0.0;
            for (int j = 1; j <= 12; j++) score += pass_at_k(N, many ? N >> j : N / 4, 4 << d) / 12.0;
            if (d > 0) {
                text_printf(f, " %.3f", score - last);
                low = fmin(low, score - last);
                high = fmax(high, score - last);
            }
            last = score;
        }
        text_printf(f, many ? " over questions of every difficulty;" : " on one question");
        spread[many] = high / low;
    }
    return decide(spread[0] < 1.2 && spread[1] < 1.2, spread[1] < 1.2);
}

// ---- D3, the experiments

static Verdict check_prompt_in_sum(Text* f) {
    float right, no_shift, everything, late_mask;
    example_sums(&right, &no_shift, &everything, &late_mask);
    text_printf(f, "\"4 <end>\" after \"2 + 2 =\": %.4f nats; with the prompt's tokens in the sum %.4f", right, everything);
    return decide(everything < right - 1.0, 0);
}

// DPO without a reference is DPO with a uniform one: a constant log pi_ref cancels in the pair.
static Verdict check_why_ratio(Text* f) {
    Toy ref = toy_new(2, 1.0), uniform = toy_new(1, 0.0);
    double p[TOY_ANSWERS], q[TOY_ANSWERS], trained = dpo_distance(uniform.logp, ref.theta, 0.5);
    toy_optimum(p, ref.logp, ref.reward, 0.5);
    toy_optimum(q, uniform.logp, ref.reward, 0.5);
    double sum = 100 * log(0.5), missed = toy_largest_difference(p, q, TOY_ANSWERS);
    text_printf(f, "large, yes: %.1f nats for 100 tokens of probability 1/2. But DPO trains without ratios too: it arrives at "
                "exp(r/beta)/Z (distance %s), which differs by up to %.3f from pi_ref exp(r/beta)/Z", sum,
                trained < 1e-6 ? "0" : "not 0", missed);
    return decide(sum < -50.0 && !(trained < 1e-6), sum < -50.0 && missed > 0.01);
}

static Verdict check_mean_per_token(Text* f) {
    float logp[100], sum[2];
    int mask[100];
    fill(logp, 100, (float)log(0.5));
    ones(mask, 100);
    sequence_logprobs(&sum[0], logp, mask, 1, 10);
    sequence_logprobs(&sum[1], logp, mask, 1, 100);
    double brief = masked_mean(logp, mask, 10), lengthy = masked_mean(logp, mask, 100);
    text_printf(f, "answers of 10 and 100 tokens, each of probability 1/2: sums %.1f and %.1f, means %.4f and %.4f nats", sum[0],
                sum[1], brief, lengthy);
    return decide(fabs(brief - lengthy) < 1e-6 && sum[1] < 5.0f * sum[0], 0);
}

// Experiment 2's printed lines, averaged exactly over what pi_ref and what pi would have written.
static Verdict check_small_drift(Text* f) {
    TwoPolicies t = noisy_policy(0.1);
    double k[4];
    for (int i = 0; i < 4; i++) k[i] = moments(&t, i % 2 ? 3 : 1, 1, i < 2).mean;
    text_printf(f, "%d tokens, noise 0.1 on the logits, printed k1 and k3: %+.5f and %+.5f on average over text from pi_ref, %+.5f and "
                "%+.5f over text from pi", t.n, k[0], k[1], k[2], k[3]);
    int ref_agrees = fabs(k[0] - k[1]) < 0.1 * fabs(k[1]), pi_agrees = fabs(k[2] - k[3]) < 0.1 * fabs(k[3]);
    return decide(ref_agrees && pi_agrees, ref_agrees);
}

static Verdict check_large_drift(Text* f) {
    const double noise[5] = {0.1, 0.5, 1.0, 2.0, 3.0};
    int k1_grows = 1, k1_wilder = 1, all_wilder = 1, positive = 1;
    double last = 0.0;
    text_printf(f, "standard deviation of one token's k1 and k3 as printed, text from pi_ref:");
    for (int i = 0; i < 5; i++) {
        TwoPolicies t = noisy_policy(noise[i]);
        Moments k1 = moments(&t, 1, 1, 1), k3 = moments(&t, 3, 1, 1);
        double d1 = sqrt(k1.variance), d3 = sqrt(k3.variance);
        text_printf(f, "%s %.3g and %.3g at noise %g", i ? "," : "", d1, d3, noise[i]);
        k1_grows &= d1 > last;
        k1_wilder &= d1 > d3 || noise[i] > 1.0;
        all_wilder &= d1 > d3;
        positive &= k3.least >= 0.0;
        last = d1;
    }
    text_printf(f, "; k3 below 0: %s", positive ? "never" : "yes");
    return decide(k1_grows && all_wilder && positive, k1_grows && k1_wilder && positive);
}

static Verdict check_six_of_eight(Text* f) {
    float binary[8], graded[8] = {5, 5, 5, 5, 5, 5, 6, 4}, equal[8] = {5, 5, 5, 5, 5, 5, 5, 5}, adv[3][8];
    reward_first(binary, 8, 2);
    advantages_grpo(adv[0], binary, 8, 1e-8f);
    advantages_grpo(adv[1], graded, 8, 1e-8f);
    advantages_grpo(adv[2], equal, 8, 1e-8f);
    text_printf(f, "six of eight equal. Rewards 0 and 1: advantages %+.2f for the six, %+.2f for the two. Scores 5, and 6 and 4 for the "
                "two: %+.2f, and %+.2f and %+.2f. Eight equal ones: %+.2f", adv[0][7], adv[0][0], adv[1][0], adv[1][6], adv[1][7],
                adv[2][0]);
    return decide(fabs(adv[0][7]) < 0.1, fabs(adv[1][0]) < 0.1);
}

// ---- the ledger

typedef struct {
    int document; // 1, 2, 3 for D1, D2, D3
    const char* place;
    Verdict (*check)(Text* found);
    Verdict expected;
    const char *quote, *says; // the document's own words (parts with " … " between them), and what they say
    const char* condition;    // "holds if ..."; or what is true instead
} Claim;

static const Claim claims[] = {
    {1, "before training", check_start_model, HOLDS_IF,
     "如果 SFT 模型还不能稳定遵循格式、不能调用工具，直接做 RL 通常不会有效",
     "Without an SFT model that keeps to the format, RL usually has no effect.",
     "the format or the answer is almost never right; \"not yet stable\" alone does no harm"},
    {1, "a rollout", check_temperature, HOLDS,
     "因此温度不能太低，否则 16 个回答几乎一样",
     "At too low a temperature the 16 answers are nearly the same.", NULL},
    {1, "a rollout", check_zero_variance, HOLDS,
     "如果所有回答都正确或都错误，奖励没有差异，模型就学不到“哪种回答更好”",
     "A group that is all right or all wrong teaches nothing.", NULL},
    {1, "the reward", check_last_hash, HOLDS_IF,
     "奖励函数从模型回答中提取最后一个 #### 后的数字",
     "The reward reads the number behind the last ####.",
     "there is one mark; nanochat's code takes the first, this program the last"},
    {1, "the reward", check_same_number, HOLDS_IF,
     "数字相同：奖励 1。 … 数字不同或没有提取到：奖励 0。",
     "The same number gets 1; another, or none, gets 0.",
     "numbers are compared, as here; nanochat compares the characters"},
    {1, "the reward", check_lucky_guess, HOLDS,
     "它也意味着模型可能通过“猜数字”得到偶然奖励",
     "A guessed number can be rewarded.", NULL},
    {1, "the reward", check_finer_reward, HOLDS_IF,
     "奖励设计得越细，训练越稳定",
     "The finer the reward, the steadier the training.", "the finer reward still aims at the right answer"},
    {1, "the advantage", check_mean, HOLDS,
     "平均奖励是 3/16 = 0.1875。 … 于是正确回答的优势为正，错误回答的优势为负",
     "The mean is 0.1875; right answers have a positive advantage, wrong ones a negative one.", NULL},
    {1, "the advantage", check_right_up, HOLDS_IF,
     "模型会提高正确回答的对数概率，降低错误回答的对数概率",
     "The log-probability of right answers goes up, that of wrong ones down.",
     "all right answers are taken together"},
    {1, "the advantage", check_on_policy, HOLDS_IF,
     "因为采样来自当前模型，是 on-policy 的",
     "Samples of the current model are on-policy.",
     "temperature is 1 and there is no top-k; D1's table has top-k 50"},
    {1, "the advantage", check_no_clip, HOLDS,
     "没有 PPO 的比例裁剪，因为采样来自当前模型",
     "PPO's clipping is not needed for samples of the current model.", NULL},
    {1, "the loss", check_equivalent_loss, HOLDS_IF,
     "等价地，最小化： … 损失 = -（优势 × 对数概率之和） / 有效词元数",
     "Dividing by the number of valid tokens is equivalent.",
     "one batch is looked at; between batches it is another step size"},
    {1, "the tool", check_tool_mask, HOLDS,
     "这些输出词元由引擎强制加入，掩码是 0",
     "The tool's tokens are forced and have mask 0.", NULL},
    {1, "pass@k", check_pass_meaning, HOLDS,
     "pass@1：一次尝试答对的概率 … pass@16：十六次尝试中至少一次答对的概率",
     "pass@1: one try is right; pass@16: at least one of sixteen.", NULL},
    {1, "pass@k", check_pass_rises, HOLDS,
     "pass@k 通常随着 k 增大而上升 … 但不能直接说明模型单次回答的准确率",
     "pass@k usually rises with k, and does not tell the accuracy of one answer.", NULL},
    {1, "running RL", check_cost, HOLDS_IF,
     "RL 需要不断生成多个回答，计算量比 SFT 大得多",
     "RL takes much more computation than SFT.",
     "the same number of questions is gone through; how many a run needs is another matter"},
    {1, "limits", check_one_task, HOLDS,
     "只在 GSM8K 上训练，任务单一",
     "It is trained on GSM8K alone: one kind of task.", NULL},
    {1, "limits", check_two_values, HOLDS,
     "奖励只有 0 和 1，信号稀疏",
     "The reward is 0 or 1: the signal is sparse.", NULL},
    {1, "limits", check_no_kl, HOLDS_IF,
     "没有参考模型的 KL 约束，训练可能变得不稳定",
     "Without a KL constraint training may become unstable.",
     "the reward can be wrong; with a right verifier it only drifts further"},
    {1, "limits", check_no_clipping, HOLDS_IF,
     "没有 PPO 的比例裁剪，算法更简单但也更粗糙",
     "Without PPO's clipping the algorithm is simpler and coarser.",
     "a group is used for several steps; in D1's one step nothing is clipped"},
    {1, "limits", check_resume, HOLDS,
     "保存检查点时不保存优化器状态，恢复训练的支持有限",
     "Without the optimizer's state a resumed run is another run.", NULL},
    {2, "overview", check_equation, HOLDS,
     "3x−9 的一半等于 x+37,答案 83",
     "Half of 3x-9 equals x+37: the answer is 83.", NULL},
    {2, "section 1", check_price, HOLDS,
     "52% 已经是这条路的顶了,而且性价比在一路下滑",
     "What a further point costs keeps rising on the way to 52%.", NULL},
    {2, "section 1", check_comparison, HOLDS,
     "而 GRPO 从一组采样回答的互相比较里取信号",
     "GRPO takes its signal from comparing the samples of a group.", NULL},
    {2, "section 1", check_signal_and_algorithm, HOLDS,
     "RLVR 决定 「有什么学习信号可用」,GRPO 决定「这个信号怎么拿去改权重」",
     "RLVR says which signal there is, GRPO how it changes the weights.", NULL},
    {2, "section 2", check_pairs, HOLDS,
     "把这些「两两比较」的结果换算成分数 … 书说人类标注员多半会更喜欢 B,因为它更具体",
     "Pairs are turned into scores: of two answers about a laptop most annotators take B.", NULL},
    {2, "section 2", check_reward_model_size, HOLDS_IF,
     "那个打分模型的大小和成本,常常和被训的模型相当",
     "The reward model is often about as large as the model.",
     "it is built on the policy's own body, as it is here; D2 itself says that smaller ones exist"},
    {2, "section 4", check_four, HOLDS,
     "奖励 = [1, 1, 0, 0]。这就是这一章的产出。",
     "The four rollouts get [1,1,0,0].", NULL},
    {2, "section 4", check_r3, HOLDS,
     "他在算奖励的时候特意关掉了「抠不出框就退而求其次找个数」这条兜底规则 … 只有又对、又按规定格式写出来,才给 1.0 分",
     "r3 is right and gets 0: the fallback is off, and only right in the box pays.", NULL},
    {2, "section 6", check_split, HOLDS,
     "和上面那 500 道完全不重叠",
     "Training and exam questions do not overlap.", NULL},
    {2, "limits", check_near_miss, HOLDS,
     "「差一点点就对了」和「完全离谱」拿到同样的分",
     "A near miss and utter nonsense get the same reward.", NULL},
    {3, "section 1", check_no_dynamics, HOLDS,
     "你不需要知道环境怎么运作，也能算出策略梯度",
     "The policy gradient contains no term of the dynamics.", NULL},
    {3, "section 1", check_discount_converges, HOLDS,
     "只有 $\\gamma<1$ 才能保证这个和收敛",
     "Without an end, only gamma < 1 makes the sum converge.", NULL},
    {3, "section 1", check_expectation, HOLDS,
     "这里最大化的是期望，不是某一条轨迹的回报",
     "The expectation is maximized, not a lucky trajectory.", NULL},
    {3, "section 1", check_relative, HOLDS,
     "策略一更新，它们全都失效，必须重新估计",
     "V, Q and A are out of date once the policy moves.", NULL},
    {3, "section 2", check_thermostat, HOLDS,
     "比如下面这个（它未必最优，取决于房间的实际热力学） … 于是逐渐收敛到一个合理策略",
     "The thermostat learns a sound policy; one written by hand need not be the best.", NULL},
    {3, "section 3", check_product, HOLDS,
     "这意味着语言模型的「轨迹概率」是可以精确计算的",
     "The probability of an answer can be computed exactly.", NULL},
    {3, "section 3", check_underflow, HOLDS,
     "连乘变连加，避免数千个小于 1 的数相乘导致的下溢",
     "Sums of logs do not underflow; thousands of factors do.", NULL},
    {3, "section 3", check_shift, HOLDS,
     "忘了对齐就等于在训一个乱套的目标",
     "Without the shift by one, one trains on nonsense.", NULL},
    {3, "section 3", check_padding, HOLDS_IF,
     "out = model(input_ids=sequence_ids, attention_mask=attention_mask, use_cache=False)",
     "Padding has to be hidden by an attention mask.",
     "the padding stands before the text; behind it, causal attention and the completion mask are enough"},
    {3, "section 3", check_size, HOLDS,
     "$128000^{4000}$，一个天文数字",
     "128,000 tokens and 4,000 steps: astronomically many trajectories.", NULL},
    {3, "section 4", check_bandit, HOLDS,
     "都对，只是粒度不同，而且在当前设定下两者等价",
     "Token as action and answer as action are equivalent.", NULL},
    {3, "section 4", check_point_six_percent, HOLDS_IF,
     "$0.99^{500} \\approx 0.6\\%$",
     "0.99^500 is about 0.6%.", "it is cut, not rounded"},
    {3, "section 4", check_discount_bias, HOLDS,
     "纯属人为制造的偏差",
     "Discounting the tokens of an answer is a bias that one makes oneself.", NULL},
    {3, "section 4", check_grpo_std, HOLDS,
     "(rewards - rewards.mean(dim=0, keepdim=True)) / (rewards.std(dim=0, keepdim=True) + eps)",
     "The group's std normalizes its advantages.", NULL},
    {3, "section 4", check_rloo, HOLDS,
     "RLOO：留一法基线，K/(K-1) 是无偏修正系数",
     "RLOO: leave-one-out; K/(K-1) makes it unbiased.", NULL},
    {3, "section 4", check_value_function, HOLDS,
     "值函数所提供的「细粒度信用分配」在这里的边际收益很小",
     "The finer credit of a value function adds little.", NULL},
    {3, "sections 0, 4", check_cartpole, DOES_NOT_HOLD,
     "这在 CartPole 上是行不通的",
     "A group mean as baseline does not work on CartPole.",
     "it learns CartPole too, with more steps than a value function needs"},
    {3, "section 5", check_hole, HOLDS,
     "优化器会精准地找到并利用这些胡说八道的区域",
     "The optimizer finds the holes of the reward model.", NULL},
    {3, "section 5", check_kl_properties, HOLDS,
     "它不是距离度量（不满足三角不等式）",
     "KL is asymmetric, not negative, 0 only between equals, and no metric.", NULL},
    {3, "section 5", check_k1_k3, HOLDS_IF,
     "虽然无偏，方差很大，而且在有限样本上可能算出负值 … 它同样无偏但方差低，且逐样本恒非负",
     "k1 is unbiased, noisy, may be negative; k3 is unbiased, calmer, never negative.",
     "the drift is moderate; far away k3 is the wilder one"},
    {3, "section 5", check_printed_k1, HOLDS_IF,
     "k1 估计量：直接用 -log_ratio，无偏但方差大",
     "The printed k1, -log_ratio, is unbiased.",
     "pi_ref wrote the samples and KL(pi_ref||pi) is meant; for rollouts of pi the sign must be turned"},
    {3, "section 5", check_printed_k3, HOLDS_IF,
     "exp(logr) - 1 - logr，其中 logr = log pi_theta - log pi_ref",
     "The printed k3 estimates the KL of the policy.",
     "pi_ref wrote the samples and KL(pi_ref||pi) is meant; for rollouts of pi the sign must be turned"},
    {3, "section 5", check_kl_in_reward, HOLDS_IF,
     "主流实现的做法是把它当成一个负奖励加进总奖励里",
     "The KL estimate is subtracted from the reward.",
     "it is k1; k3, of which D3 speaks before, has another gradient there"},
    {3, "section 5", check_sum_or_mean, HOLDS_IF,
     "这行代码就是那个目标函数的字面翻译",
     "Reward minus beta times the masked mean is the objective, literally.",
     "all answers have one length n, and beta means beta / n"},
    {3, "section 6", check_no_negative, HOLDS,
     "只能教「做什么」，不能教「不做什么」",
     "SFT can teach what to do, not what to avoid.", NULL},
    {3, "section 6", check_same_form, HOLDS,
     "一模一样——只是把奖励差换成了「策略相对参考模型的对数概率比之差」",
     "The DPO loss has the form of the reward model's loss.", NULL},
    {3, "section 6", check_dpo_optimum, HOLDS,
     "它对第 5 节那个 KL 正则化目标做了闭式求解",
     "DPO leads to the optimum of the KL-regularized objective.", NULL},
    {3, "section 6", check_three_routes, HOLDS_IF,
     "它们优化的是同一个目标（第 5 节那个式子），区别只在于求解方式",
     "RL, rejection sampling and DPO optimize the same objective.", "the reward has two values"},
    {3, "section 0", check_cheating, HOLDS_IF,
     "RLVR 把代理奖励换成可验证的、不会被欺骗的 0/1 信号",
     "A verifiable 0/1 reward cannot be cheated.", "the verifier is right and a lucky guess is no cheat"},
    {3, "section 6", check_log_linear, HOLDS_IF,
     "或并行多路采样）能让性能随算力对数线性增长",
     "More samples in parallel: the score grows with the log of the compute.",
     "the questions are a wide mix of difficulties"},
    {3, "experiment 1", check_prompt_in_sum, HOLDS,
     "两个数差得很远，因为 prompt 通常比回复长",
     "With the prompt in the sum the log-probability is far off.", NULL},
    {3, "experiment 1", check_why_ratio, HOLDS_IF,
     "这解释了为什么 DPO 这类方法要用 $\\pi_\\theta/\\pi_{\\mathrm{ref}}$ 的比值而不是绝对概率",
     "That they are large explains why DPO uses ratios.",
     "it is meant as an observation; the reason is that the ratio keeps pi_ref"},
    {3, "experiment 1", check_mean_per_token, HOLDS,
     "「平均每 token log-prob」在不同长度的回复之间才可比",
     "Answers of different length are compared by the mean per token.", NULL},
    {3, "experiment 2", check_small_drift, HOLDS_IF,
     "漂移很小时两者接近",
     "Under small drift k1 and k3 are close to each other.",
     "pi_ref wrote the text; on text from pi they have opposite signs"},
    {3, "experiment 2", check_large_drift, HOLDS_IF,
     "漂移变大时 $k_1$ 的逐样本波动明显更剧烈，而 $k_3$ 始终 $\\ge 0$",
     "With more drift k1 fluctuates more, and k3 stays at 0 or above.",
     "the noise on the logits is at most 1, \"a few steps of training\"; further away k3 is the wilder one"},
    {3, "experiment 3", check_six_of_eight, HOLDS_IF,
     "8 条回复往往有 6 条得分完全相同，标准化后优势接近 0",
     "Six of eight scores are equal, and the standardized advantages are near 0.",
     "scores are graded and the two others lie on both sides; never for rewards 0 and 1"},
};
enum { CLAIMS = sizeof claims / sizeof *claims };

// Text for a cell of a Markdown table: what Markdown would read as a mark of its own gets a backslash.
static void append_cell(Text* out, const char* text) {
    for (; *text; text++) {
        if (strchr("\\|*_<>$[]", *text)) text_append(out, "\\", 1);
        text_append(out, text, 1);
    }
}

// Computes everything. Returns how many verdicts are not the expected ones.
static int write_ledger(Text* out) {
    int count[VERDICTS] = {0}, wrong = 0;
    text_printf(out, "# The claims ledger\n\nWhat the three documents say, in their own words, and what the functions of the "
                     "chapters compute (`tests/ledger.c`; written by `make golden`, checked by `make test`). The verdict follows "
                     "from the numbers; where a statement holds under a condition only, the condition is named.\n\n"
                     "| No. | Where | The document says | Computed | Verdict |\n|---:|---|---|---|---|\n");
    for (int i = 0; i < CLAIMS; i++) {
        const Claim* c = &claims[i];
        Text found = {0};
        Verdict verdict = c->check(&found);
        if (verdict != c->expected) {
            printf("  claim %d (%s): verdict %d, expected %d: %s\n", i + 1, c->says, verdict, c->expected, found.data);
            wrong++;
        }
        count[verdict]++;
        text_printf(out, "| %d | D%d, %s | ", i + 1, c->document, c->place);
        append_cell(out, c->quote);
        text_printf(out, "<br>");
        append_cell(out, c->says);
        text_printf(out, " | ");
        append_cell(out, found.data);
        text_printf(out, " | %s", verdict == HOLDS ? "holds" : verdict == HOLDS_IF ? "holds if " : "does not hold: ");
        if (c->condition) append_cell(out, c->condition);
        text_printf(out, " |\n");
        text_free(&found);
    }
    text_printf(out, "\n%d statements: %d hold, %d hold under a condition, %d do not hold.\n", CLAIMS, count[HOLDS],
                count[HOLDS_IF], count[DOES_NOT_HOLD]);
    return wrong;
}

static void claims_have_the_expected_verdicts(void) {
    Text text = {0};
    CHECK(write_ledger(&text) == 0);
    compare("docs/claims.md", text.data);
    text_free(&text);
}

static void rows_are_complete(void) {
    for (int i = 0; i < CLAIMS; i++) {
        CHECK(i == 0 || claims[i].document >= claims[i - 1].document);
        CHECK((claims[i].expected == HOLDS) == (claims[i].condition == NULL));
        for (int j = 0; j < i; j++) CHECK(strcmp(claims[i].quote, claims[j].quote) && claims[i].check != claims[j].check);
    }
}

static void printed_numbers_are_compared(void) {
    CHECK(compare_printed(0.1875, 0.1875, 4) == HOLDS);
    CHECK(compare_printed(0.64, 0.6, 1) == HOLDS);     // rounds to 0.6
    CHECK(compare_printed(0.657, 0.6, 1) == HOLDS_IF); // rounds to 0.7, cut it is 0.6
    CHECK(compare_printed(0.71, 0.6, 1) == DOES_NOT_HOLD);
    CHECK(compare_printed(0.54, 0.6, 1) == DOES_NOT_HOLD);
    CHECK(compare_printed(NAN, 83.0, 0) == DOES_NOT_HOLD);
}

// The parts of a quotation stand in the document, in this order.
static int is_quoted(const char* document, const char* quote) {
    static const char* const gap = " … ";
    char part[512];
    while (document && *quote) {
        const char* end = strstr(quote, gap);
        size_t length = end ? (size_t)(end - quote) : strlen(quote);
        snprintf(part, sizeof part, "%.*s", (int)length, quote);
        document = strstr(document, part);
        if (document) document += length;
        quote += length + (end ? strlen(gap) : 0);
    }
    return document != NULL;
}

static const char* const documents[3] = {"../shared/seeds/000_be010637bf0859a6.txt", "../shared/seeds/001_79a6c3a910dd421e.txt",
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

int main(int argc, char** argv) {
    if (argc > 1 && !strcmp(argv[1], "--write")) {
        Text text = {0};
        int wrong = write_ledger(&text);
        write_file("docs", "claims.md", &text);
        text_free(&text);
        return wrong != 0;
    }
    RUN(claims_have_the_expected_verdicts);
    RUN(rows_are_complete);
    RUN(printed_numbers_are_compared);
    if (file_exists(documents[0])) RUN(quotations_are_word_for_word);
    else printf("skip quotations_are_word_for_word: the documents are not here (%s)\n", documents[0]);
    return check_failed != 0;
}
