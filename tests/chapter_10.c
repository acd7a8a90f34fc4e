// chapter_10.c - one update: rl_step() runs as it trains, and the test reads the arrays that it left.

static int T1_of(const World* w) { return w->group->rollouts->T - 1; }
static int N_of(const World* w) { return w->o.num_samples * T1_of(w); }

// ---- steps 1 to 3: grades and rewards

static void chapter_10_four_rollouts_are_graded(void) {
    // D2's four rollouts: rewards 1 1 0 0, advantages +-1/2, three boxes, nobody used the tool.
    static const char* const text[4] = {"\\boxed{83}", "The correct answer is \\boxed{83}",
                                        "The final answer is 83", "We get \\boxed{38}"};
    float reward[4], advantage[4];
    long tokens = 4;                                       // <|assistant_end|> of each
    for (int k = 0; k < 4; k++) tokens += (long)strlen(text[k]);
    Rollout* r = all_say("42+41?", text, 4);
    for (int k = 0; k < 4; k++)
        for (int t = 0; t < r->T - 1; t++) r[k].entropy[t] = r[k].mask[t + 1] ? 0.5f : 0.0f;
    Grades g = grade_rollouts(reward, r, 4, "83", find_reward("boxed"));
    compute_advantages(advantage, reward, 4, ADVANTAGE_CENTERED);
    CHECK(reward[0] == 1 && reward[1] == 1 && reward[2] == 0 && reward[3] == 0);
    CHECK(advantage[0] == 0.5f && advantage[3] == -0.5f);
    CHECK(g.correct == 2 && g.format == 3 && g.tool == 0 && g.tokens == tokens && g.sampled == tokens);
    CHECK_NEAR(g.entropy, 0.5 * (double)tokens, 1e-12);
    // partial pays 1 1 1/2 1/10, and still two are right
    g = grade_rollouts(reward, r, 4, "83", find_reward("partial"));
    CHECK(g.correct == 2 && reward[0] == 1.0f && reward[2] == 0.5f && reward[3] == 0.1f);
    rollouts_free(r);
}

static void chapter_10_overlong_answers_pay(void) {
    // limit 100, window 20: nothing up to 80 tokens, then 1/20 per token, -1 at the limit; no window, none
    static const int length[6] = {0, 80, 81, 95, 100, 1};
    static const double penalty[6] = {0, 0, -0.05, -0.75, -1, 0};
    Rollout* r = rollouts_new(6, 2);
    float reward[6] = {0}, other[6] = {0};
    for (int k = 0; k < 6; k++) r[k].length = length[k];
    add_overlong_penalties(reward, r, 6, 100, 20);
    add_overlong_penalties(other, r, 6, 100, 0);
    for (int k = 0; k < 6; k++) CHECK_NEAR(reward[k], penalty[k], 1e-7);
    for (int k = 0; k < 6; k++) CHECK(other[k] == 0.0f);
    add_overlong_penalties(other, r + 5, 1, 1, 1);             // one token at most, one is too many
    CHECK(other[0] == -1.0f);
    rollouts_free(r);
    // and in a run: each reward is the verifier's 0 or 1 plus the penalty of its length
    static World w;
    START(&w, "--algo=nanochat", "--overlong=8");
    Metrics s = look(&w, 0);
    int punished = 0;
    double sum = 0.0;
    for (int i = 0; i < QUESTIONS * SAMPLES; i++) {
        const Group* g = &w.group[i / SAMPLES];
        int over = g->rollouts[i % SAMPLES].length - (NEW_TOKENS - 8);
        Text text = rollout_text(&g->rollouts[i % SAMPLES]);
        CHECK_NEAR(g->reward[i % SAMPLES],
                   reward_gsm8k(text.data, g->question->truth) - (over > 0 ? over / 8.0 : 0.0), 1e-6);
        punished += over > 0;
        sum += g->reward[i % SAMPLES];
        text_free(&text);
    }
    CHECK_NEAR(s.reward, sum / (QUESTIONS * SAMPLES), 1e-6);
    CHECK(punished > 0);
    finish(&w);
}

static void chapter_10_a_reward_model_reads_the_whole_text(void) {
    // The score of an answer is the scalar at the last token of prompt + answer, read as one sequence.
    static World w;
    char reward[PATH_SIZE + 32];
    snprintf(reward, sizeof reward, "--reward=model:%s", reward_model_path);
    START(&w, "--algo=nanochat", reward);
    Model* m = &w.setup.reward_model;
    CHECK(w.setup.learner.reward.model == m && !w.setup.learner.reward.paid);
    look(&w, 0);
    double spread = 0.0, scores[QUESTIONS * SAMPLES];
    int correct = 0;
    for (int i = 0; i < QUESTIONS * SAMPLES; i++) {
        const Rollout* r = &w.group[i / SAMPLES].rollouts[i % SAMPLES];
        int n = r->prompt + r->length, targets[128];
        Batch b = {0};
        for (int t = 0; t < n; t++) targets[t] = t == n - 1 ? 0 : -1;
        batch_add(&b, r->ids, targets, n, -1);
        model_scalar_forward(m, &b);
        scores[i] = w.group[i / SAMPLES].reward[i % SAMPLES];
        CHECK_NEAR(scores[i], m->acts.scalar[0], 1e-5);
        spread = fmax(spread, fabs(scores[i] - scores[0]));
        batch_free(&b);
    }
    for (int i = 0; i < QUESTIONS; i++) correct += w.group[i].grades.correct;
    CHECK(spread > 1e-3);
    finish(&w);
    // gsm8k+model: the verdict is added; `correct` counts verdicts in both cases
    static World v;
    snprintf(reward, sizeof reward, "--reward=gsm8k+model:%s", reward_model_path);
    START(&v, "--algo=nanochat", reward);
    look(&v, 0);
    int right = 0, counted = 0;
    for (int i = 0; i < QUESTIONS * SAMPLES; i++) {
        double verdict = v.group[i / SAMPLES].reward[i % SAMPLES] - scores[i];
        CHECK(fabs(verdict) < 1e-5 || fabs(verdict - 1.0) < 1e-5);
        right += verdict > 0.5;
    }
    for (int i = 0; i < QUESTIONS; i++) counted += v.group[i].grades.correct;
    CHECK(right > 0 && counted == right && correct == right);
    finish(&v);
}

// ---- step 4: advantages, KL in the reward, values

// The reference's log-probabilities are those of each answer in one plain, unpacked forward pass.
static void c10_plain_logprobs(float* logp, Model* m, const Rollout* r) {
    int n = r->prompt + r->length, targets[256], at = 0;
    Batch b = {0};
    for (int t = 0; t < n; t++) targets[t] = t + 1 < n && r->mask[t + 1] ? r->ids[t + 1] : -1;
    batch_add(&b, r->ids, targets, n, -1);
    model_forward(m, &b);
    for (int t = 0; t < r->T - 1; t++) logp[t] = t + 1 < n && r->mask[t + 1] ? m->acts.logp[at++] : 0.0f;
    batch_free(&b);
}

static void c10_check_reference(World* w) {
    float logp[256];
    for (int i = 0; i < QUESTIONS; i++)
        for (int k = 0; k < SAMPLES; k++) {
            c10_plain_logprobs(logp, w->setup.learner.reference, &w->group[i].rollouts[k]);
            for (int t = 0; t < T1_of(w); t++)
                CHECK_NEAR(w->group[i].logp_ref[k * T1_of(w) + t], logp[t], 1e-5);
        }
}

static void chapter_10_kl_in_the_reward_is_a_sum(void) {
    // Token t is charged beta k1_t = beta (logp_t - logp_ref_t), the last one also has the reward: the sum is
    // reward - beta sum k1. --kl-per token divides the charge by the answer's tokens. beta 0.5.
    for (int per_token = 0; per_token < 2; per_token++) {
        static World w;
        START(&w, "--algo=grpo", "--advantage=centered", "--beta=0.5", "--kl-in=reward", "--kl-estimator=k1",
              per_token ? "--kl-per=token" : "--kl-per=sequence");
        disturb(&w.setup.reference, 0.05);
        Metrics s = look(&w, 0);
        int T1 = T1_of(&w);
        c10_check_reference(&w);
        double kl = 0.0, size = 0.0;
        for (int i = 0; i < QUESTIONS; i++) {
            const Group* g = &w.group[i];
            double total[SAMPLES], mean = 0.0;
            for (int k = 0; k < SAMPLES; k++) {
                const Rollout* r = &g->rollouts[k];
                double k1 = 0.0, sum = 0.0;
                int n = count_masked(r->mask, r->T);
                for (int j = k * T1; j < (k + 1) * T1; j++) {
                    sum += g->token_reward[j];
                    if (!g->mask[j]) {
                        CHECK(g->token_reward[j] == 0.0f && g->adv[j] == 0.0f);
                        continue;
                    }
                    double one = (double)g->logp_old[j] - g->logp_ref[j];
                    int last = j - k * T1 == r->prompt + r->length - 2;
                    k1 += one;
                    kl += one;
                    size += fabs(one);
                    CHECK_NEAR(g->token_reward[j],
                               -0.5 * one / (per_token ? n : 1) + (last ? g->reward[k] : 0.0), 1e-6);
                }
                total[k] = g->reward[k] - 0.5 * k1 / (per_token ? n : 1);
                CHECK_NEAR(sum, total[k], 1e-5);
                mean += total[k] / SAMPLES;
            }
            // the advantage is that of the charged rewards; the loss has no reference: -A w
            for (int j = 0; j < N_of(&w); j++) {
                if (!g->mask[j]) continue;
                CHECK_NEAR(g->adv[j], total[j / T1] - mean, 1e-5);
                CHECK(g->dlogp[j] == -g->weight[j] * g->adv[j]);
            }
        }
        CHECK(size > 0.1);
        CHECK_NEAR(s.kl_ref, kl / (QUESTIONS * SAMPLES),
                   1e-5); // logged: k1, nats per answer, mean over the answers
        finish(&w);
    }
}

static void chapter_10_other_estimators_in_the_reward(void) {
    // k2 = x^2/2 and k3 = exp(-x) - 1 + x of x = logp - logp_ref, at the first sampled token
    for (int k = 2; k <= 3; k++) {
        static World w;
        START(&w, "--algo=rloo", "--beta=0.5", "--kl-in=reward",
              k == 2 ? "--kl-estimator=k2" : "--kl-estimator=k3");
        disturb(&w.setup.reference, 0.05);
        look(&w, 0);
        const Group* g = w.group;
        int first = g->rollouts->prompt - 1;
        double x = (double)g->logp_old[first] - g->logp_ref[first];
        CHECK(g->rollouts->length > 1 && g->mask[first]); // so the first token has no reward of the answer
        CHECK_NEAR(g->token_reward[first], -0.5 * (k == 2 ? x * x / 2 : exp(-x) - 1 + x), 1e-6);
        finish(&w);
    }
}

static void chapter_10_gae_keeps_the_penalty_at_its_token(void) {
    // lambda = 0, V = 0: a token's advantage is its own reward: the penalty, at the end with the answer's
    static World w;
    START(&w, "--algo=ppo", "--lambda=0", "--beta=0.5");
    disturb(&w.setup.reference, 0.05);
    look(&w, 0);
    int T1 = T1_of(&w);
    for (int i = 0; i < QUESTIONS; i++)
        for (int j = 0; j < N_of(&w); j++) {
            const Group* g = &w.group[i];
            const Rollout* r = &g->rollouts[j / T1];
            double penalty = g->mask[j] ? -0.5 * ((double)g->logp_old[j] - g->logp_ref[j]) : 0.0;
            CHECK_NEAR(g->adv[j], penalty + (j % T1 == r->prompt + r->length - 2 ? g->reward[j / T1] : 0.0),
                       1e-6);
        }
    finish(&w);
}

static void chapter_10_forced_tokens_are_no_steps(void) {
    // Tokens 1 and 2 are the tool's. Rewards 0.1 at token 0, 1 at token 3; V = 0.5 and 0.25; gamma 0.5,
    // lambda 0.5:
    //   last:  1 - 0.25 = 0.75
    //   first: 0.1 + 0.5 * 0.25 - 0.5 + 0.5 * 0.5 * 0.75 = -0.275 + 0.1875 = -0.0875
    // A second answer with one token, reward 2, V = 1.5: 0.5.
    const float reward[8] = {0.1f, 7, 7, 1, NAN, 2, NAN, NAN},
                value[8] = {0.5f, 9, 9, 0.25f, NAN, 1.5f, NAN, NAN};
    const int mask[8] = {1, 0, 0, 1, 0, 1, 0, 0};
    float advantage[8] = {5, 5, 5, 5, 5, 5, 5, 5};
    group_gae(advantage, reward, value, mask, 2, 4, 0.5f, 0.5f);
    CHECK_NEAR(advantage[0], -0.0875, 1e-6);
    CHECK_NEAR(advantage[3], 0.75, 1e-6);
    CHECK_NEAR(advantage[5], 0.5, 1e-6);
    CHECK(advantage[1] == 0.0f && advantage[2] == 0.0f && advantage[4] == 0.0f && advantage[6] == 0.0f &&
          advantage[7] == 0.0f);
}

static void chapter_10_value_model_learns_what_came_after(void) {
    // The target is V + A: before the first step a token's error is A, the loss the mean of A^2 / 2.
    static World w;
    START(&w, "--algo=ppo", "--beta=0", "--lambda=0.5", "--gamma=0.9", "--minibatch=0");
    w.o.value_clip = 0.0f;
    Model* value = &w.setup.value;
    for (int c = 0; c < 16; c++) value->weights.score[c] = 0.1f * (float)sin(1.0 + c);
    Metrics s = look(&w, 0);
    double before = 0.0, size = 0.0;
    int K = SAMPLES, T1 = T1_of(&w), n = K * T1;
    for (int i = 0; i < QUESTIONS; i++) {
        const Group* g = &w.group[i];
        double sum = 0.0, tokens = 0.0;
        for (int j = 0; j < n; j++) {
            if (!g->mask[j]) {
                CHECK(g->adv[j] == 0.0f);
                continue;
            }
            CHECK_NEAR(g->target[j], g->adv[j] + g->value_old[j], 1e-6);
            sum += 0.5 * g->adv[j] * g->adv[j];
            tokens++;
            size += fabs((double)g->value_old[j]);
        }
        CHECK_NEAR(g->value_loss, sum / tokens / QUESTIONS, 1e-6);
        before += g->value_loss;
        for (int k = 0; k < K; k++) { // the last token of an answer has nothing behind it: A = r - V
            int last = k * T1 + g->rollouts[k].prompt + g->rollouts[k].length - 2;
            CHECK_NEAR(g->adv[last], g->reward[k] - g->value_old[last], 1e-6);
        }
    }
    CHECK(size > 1.0);
    CHECK_NEAR(s.value_loss, before, 1e-9);
    finish(&w);
}

static void chapter_10_values_come_before_the_first_step(void) {
    // With two minibatches and two passes the value model moves between them: all old values are still those
    // before the first step, to the bit.
    static World w;
    START(&w, "--algo=ppo", "--beta=0", "--epochs-per-batch=2");
    Model* value = &w.setup.value;
    for (int c = 0; c < 16; c++) value->weights.score[c] = 0.1f * (float)sin(1.0 + c);
    Model before = model_new(value->config);
    memcpy(before.weights.memory, value->weights.memory, before.weights.count * sizeof(float));
    update(&w, 0);
    CHECK(w.o.minibatch == QUESTIONS / 2 && w.setup.value_optimizer.step == 4);
    CHECK(!same_weights(&before.weights, &value->weights));
    float* expected = allocate((size_t)N_of(&w), sizeof(float));
    int moved = 0;
    for (int i = 0; i < QUESTIONS; i++) {
        const Group* g = &w.group[i];
        answers_forward(expected, &before, g->rollouts->ids, g->mask, SAMPLES, g->rollouts->T);
        CHECK(!memcmp(expected, g->value_old, (size_t)N_of(&w) * sizeof(float)));
        moved += memcmp(expected, g->value, (size_t)N_of(&w) * sizeof(float)) != 0;
    }
    CHECK(moved == QUESTIONS);                                 // the last pass saw other values
    free(expected), model_free(&before), finish(&w);
}

static void chapter_10_value_model_has_its_rate_and_its_clip(void) {
    // The schedule's factor goes for both models; value_clip matters in the second of two passes only.
    static World w, v;
    START(&w, "--algo=ppo", "--beta=0", "--minibatch=0");
    Model begun = scalar_model_on(&w.setup.policy);
    look(&w, 0);
    CHECK(same_weights(&w.setup.value.weights, &begun.weights));
    Metrics s = update(&w, 1);
    CHECK(!same_weights(&w.setup.value.weights, &begun.weights) && s.value_loss > 0.0);
    finish(&w);
    for (int passes = 1; passes <= 2; passes++) {
        const char* often = passes == 1 ? "--epochs-per-batch=1" : "--epochs-per-batch=2";
        START(&w, "--algo=ppo", "--beta=0", "--minibatch=0", often);
        START(&v, "--algo=ppo", "--beta=0", "--minibatch=0", often);
        w.o.value_clip = 0.0001f;
        v.o.value_clip = 0.0f;
        update(&w, 0);
        update(&v, 0);
        CHECK(same_weights(&w.setup.value.weights, &v.setup.value.weights) == (passes == 1));
        finish(&w), finish(&v);
    }
    // a gradient that is too long is cut to --grad-clip: with beta1 = 0 it is AdamW's first moment
    START(&w, "--algo=ppo", "--beta=0", "--minibatch=0", "--grad-clip=0.001");
    w.o.adam.beta1 = 0.0f;
    update(&w, 0);
    const Weights *first = &w.setup.value_optimizer.first, *policy = &w.setup.optimizer.first;
    CHECK_NEAR(sqrt(square_of(first->memory, first->count)), 0.001, 1e-6);
    CHECK_NEAR(sqrt(square_of(policy->memory, policy->count)), 0.001, 1e-6);
    finish(&w), model_free(&begun);
}

static void chapter_10_value_model_begins_at_zero(void) {
    // The policy's body, also where the unembedding is the policy's own, and a head of 0.
    for (int tied = 0; tied < 2; tied++) {
        Model policy = model_new((Config){VOCAB_SIZE, 96, 1, 16, 2, 1, 8, 24, tied, 10000.0f, 1e-6f, 0});
        model_init(&policy, 4);
        Model value = scalar_model_on(&policy);
        size_t body = policy.weights.count - (tied ? 0 : (size_t)VOCAB_SIZE * 16);
        CHECK(value.config.scalar == 1 && value.weights.count == body + 16);
        CHECK(!memcmp(value.weights.memory, policy.weights.memory, body * sizeof(float)));
        for (int c = 0; c < 16; c++) CHECK(value.weights.score[c] == 0.0f);
        model_free(&policy), model_free(&value);
    }
}

// ---- steps 5 and 6: loss, KL, backward, minibatches

static void chapter_10_loss_is_the_formula(void) {
    // nanochat: loss = -(sum of advantage * logp) / sampled tokens of the question, mean over the questions.
    static World w;
    START(&w, "--algo=nanochat");
    Metrics s = look(&w, 0);
    double by_hand = 0.0;
    int T1 = T1_of(&w), learned = 0;
    for (int i = 0; i < QUESTIONS; i++) {
        const Group* g = &w.group[i];
        double mean = 0.0, sum = 0.0;
        int valid = 0;
        for (int k = 0; k < SAMPLES; k++) mean += g->reward[k] / SAMPLES;
        for (int j = 0; j < N_of(&w); j++) {
            if (!g->mask[j]) continue;
            sum += (g->reward[j / T1] - mean) * g->logp_old[j];
            valid++;
        }
        CHECK_NEAR(g->loss, -sum / valid / QUESTIONS, 1e-6);
        by_hand += -sum / valid / QUESTIONS;
        learned += g->trained;
    }
    CHECK_NEAR(s.loss, by_hand, 1e-6);
    CHECK(learned > 0);
    finish(&w);
}

// d(loss)/d(logp) of one token by the formula of a method, from the log-ratio of the token (or of its answer)
static double c10_slope_by_hand(const Learner* l, double adv, double w, double log_ratio,
                                double log_ratio_ref) {
    const RlOptions* o = l->o;
    double ratio = exp(log_ratio), low = 1.0 - o->clip_low, high = 1.0 + o->clip_high, kl = 0.0;
    int stopped = adv > 0.0 ? ratio > high : ratio < low;
    if (o->beta > 0.0f && !l->kl_in_reward) kl = o->beta * w * (1.0 - exp(-log_ratio_ref));     // k3
    if (l->ratio == RATIO_NONE) return -w * adv + kl;
    if (l->ratio == RATIO_CISPO) return -w * adv * fmin(fmax(ratio, low), high) + kl;
    return (stopped || adv == 0.0 ? 0.0 : -w * adv * ratio) + kl;
}

static void chapter_10_every_row_by_its_formula(void) {
    // In the second of two passes the ratios have left 1: the arrays that rl_step() left are, token by token,
    // what the row of the table of methods says.
    int moved = 0, stopped = 0;
    for (int i = 0; i < METHODS; i++) {
        static World w;
        int none = !strcmp(methods[i].ratio, "none");
        START(&w, algo_word(i), none ? "--epochs-per-batch=1" : "--epochs-per-batch=2", "--minibatch=0");
        if (w.setup.learner.reference) disturb(&w.setup.reference, 0.05);
        const Learner* l = &w.setup.learner;
        update(&w, 0);
        int T1 = T1_of(&w), K = SAMPLES;
        for (int q = 0; q < QUESTIONS; q++) {
            const Group* g = &w.group[q];
            if (!g->trained) continue;
            int in_group = count_masked(g->mask, K * T1);
            for (int k = 0; k < K; k++) {
                const int* mask = g->mask + k * T1;
                double mean = 0.0;
                int n = count_masked(mask, T1);
                for (int j = k * T1; j < (k + 1) * T1; j++)
                    if (g->mask[j]) mean += ((double)g->logp[j] - g->logp_old[j]) / n;
                double count[4] = {in_group, (double)K * n, K, (double)K * NEW_TOKENS};
                for (int j = k * T1; j < (k + 1) * T1; j++) {
                    if (!g->mask[j]) {
                        CHECK(g->dlogp[j] == 0.0f && g->weight[j] == 0.0f);
                        continue;
                    }
                    double own = (double)g->logp[j] - g->logp_old[j],
                           w_by_hand = 1.0 / count[l->norm] / QUESTIONS;
                    CHECK_NEAR(g->weight[j], w_by_hand, 1e-7);
                    double ratio = l->ratio == RATIO_SEQUENCE ? mean : own;
                    double slope =
                        c10_slope_by_hand(l, g->adv[j], w_by_hand, ratio,
                                          l->reference ? (double)g->logp[j] - g->logp_ref[j] : 0.0);
                    CHECK(fabs(g->dlogp[j] - slope) <= 1e-5 * fabs(slope) + 1e-8);
                    moved += g->dlogp[j] != 0.0f && !none && fabs(own) > 1e-3;
                    stopped += g->dlogp[j] == 0.0f && g->adv[j] != 0.0f;
                }
            }
        }
        finish(&w);
    }
    CHECK(moved > 100 && stopped > 10);
}

static void chapter_10_gradients_come_from_dlogp(void) {
    // The gradient of the step is that of the dlogp and dvalue in the arrays, sent back through one model.
    for (int i = 0; i < METHODS; i++) {
        static World w;
        Metrics s;
        START(&w, algo_word(i), "--minibatch=0");
        if (w.setup.learner.reference) disturb(&w.setup.reference, 0.05);
        const float* gradient = gradient_of(&w, 0, &s);
        Model plain = load_model(model_path), value = scalar_model_on(&plain);
        int T = w.group->rollouts->T;
        float* out = allocate((size_t)N_of(&w), sizeof(float));
        model_zero_grads(&plain);
        model_zero_grads(&value);
        for (int q = 0; q < QUESTIONS; q++) {
            const Group* g = &w.group[q];
            answers_forward(out, &plain, g->rollouts->ids, g->mask, SAMPLES, T);
            if (g->trained) {
                CHECK(!memcmp(out, g->logp, (size_t)N_of(&w) * sizeof(float)));
                answers_backward(&plain, g->dlogp, g->rollouts->ids, g->mask, SAMPLES, T);
            }
            if (!w.setup.learner.value) continue;
            answers_forward(out, &value, g->rollouts->ids, g->mask, SAMPLES, T);
            answers_backward(&value, g->dvalue, g->rollouts->ids, g->mask, SAMPLES, T);
        }
        CHECK(square_of(gradient, plain.grads.count) > 1e-8);
        CHECK(off_by(plain.grads.memory, gradient, 1.0, plain.grads.count) < 1e-5);
        CHECK_NEAR(s.grad_norm, sqrt(square_of(plain.grads.memory, plain.grads.count)), 1e-5);
        if (w.setup.learner.value)
            CHECK(off_by(value.grads.memory, w.setup.value_optimizer.first.memory, 1.0, value.grads.count) <
                  1e-5);
        free(out), model_free(&plain), model_free(&value), finish(&w);
    }
}

static void chapter_10_equal_rewards_contribute_nothing(void) {
    // the model never writes a box: all rewards 0, a gradient of exactly 0, and without decay no weight moves
    static World w;
    Metrics s;
    START(&w, "--algo=nanochat", "--reward=boxed");
    const float* gradient = gradient_of(&w, 0, &s);
    CHECK(square_of(gradient, w.setup.policy.weights.count) == 0.0 && s.loss == 0.0 && s.grad_norm == 0.0);
    for (int i = 0; i < QUESTIONS; i++) CHECK(w.group[i].zero_variance && !w.group[i].trained);
    Model begun = load_model(model_path);
    update(&w, 1);
    CHECK(same_weights(&begun.weights, &w.setup.policy.weights));
    model_free(&begun), finish(&w);
}

static void chapter_10_a_minibatch_is_a_batch_of_its_own(void) {
    // Questions 2 and 3 of four, as a minibatch and as all there is: the same bits. (Update 1 of two
    // questions has the streams 2 and 3. Questions 0 and 1 have a truth that nobody finds, so AdamW's moment
    // is the second half's alone.)
    static World w, v;
    Metrics s, t;
    START(&w, "--algo=drgrpo", "--norm=token", "--advantage=none", "--minibatch=2");
    START(&v, "--algo=drgrpo", "--norm=token", "--advantage=none", "--examples-per-step=2");
    for (int i = 0; i < 2; i++) {
        free(w.q.list[i].truth);
        w.q.list[i].truth = copy_text("123456");
    }
    const float* gradient = gradient_of(&w, 0, &s);
    v.o.adam.beta1 = 0.0f;
    v.o.grad_clip = 0.0f;
    t = rl_step(&v.setup.learner, v.group, &v.q, first_questions + 2, 1, 0.0);
    CHECK(t.grad_norm > 0.0 && v.group[0].loss + v.group[1].loss != 0.0);
    CHECK(v.group[0].loss == w.group[2].loss && v.group[1].loss == w.group[3].loss);
    CHECK(!memcmp(gradient, v.setup.optimizer.first.memory, w.setup.policy.weights.count * sizeof(float)));
    CHECK(!w.group[0].trained && !w.group[1].trained);
    CHECK_NEAR(s.loss, t.loss / 2, 1e-9);
    CHECK_NEAR(s.grad_norm, t.grad_norm / 2, 1e-9);
    finish(&w), finish(&v);
}

static void chapter_10_kl_in_the_loss_is_added(void) {
    // loss with beta = loss without + beta loss_kl, averaged as the norm says; the reward does not change
    static const char* const norm[] = {"--norm=token", "--norm=sequence", "--norm=sum", "--norm=constant"};
    for (int which = 0; which < 4; which++) {
        static World w, v;
        START(&w, "--algo=grpo", "--advantage=none", norm[which], "--beta=0.1");
        START(&v, "--algo=grpo", "--advantage=none", norm[which], "--beta=0");
        disturb(&w.setup.reference, 0.1);
        CHECK(w.setup.reference.frozen && !v.setup.learner.reference); // beta 0 loads none
        Metrics s = look(&w, 0), t = look(&v, 0);
        int T1 = T1_of(&w), n = SAMPLES * T1;
        float *d = allocate((size_t)n, sizeof(float)), *weight = allocate((size_t)n, sizeof(float));
        double kl = 0.0;
        for (int i = 0; i < QUESTIONS; i++) {
            const Group* g = &w.group[i];
            for (int k = 0; k < SAMPLES; k++) { // the reward is not charged as well
                float sum;
                sequence_logprobs(&sum, g->token_reward + k * T1, g->mask + k * T1, 1, T1);
                CHECK(sum == g->reward[k]);
            }
            token_weights(weight, g->mask, SAMPLES, T1, which, NEW_TOKENS);
            kl += loss_kl(d, g->logp_old, g->logp_ref, weight, n, 3) / QUESTIONS;
        }
        CHECK_NEAR(s.loss - t.loss, 0.1 * kl, 1e-7);
        CHECK(kl > 1e-4 && fabs(t.loss) > 1e-4);
        free(d), free(weight), finish(&w), finish(&v);
    }
}

static void chapter_10_distance_to_oneself_is_nothing(void) {
    // at the start the reference is the policy, and decoding and training agree to the bit: KL exactly 0
    static World w;
    START(&w, "--algo=grpo");
    Metrics s = update(&w, 0);
    CHECK(s.kl_ref == 0.0);
    CHECK(update(&w, 1).kl_ref != 0.0); // one update later it is not any more
    // evaluate_model sums k1 over an answer's sampled tokens: by hand from the same rollouts
    Model* m = &w.setup.policy;
    Evaluation e = evaluate_model(m, &w.q, 2, SAMPLES, w.o.sample, &reward_kinds[0], &w.setup.reference, 5);
    Tokens prompts[2] = {w.q.list[0].prompt, w.q.list[1].prompt};
    Rollout* r = generate(m, prompts, 2, SAMPLES, w.o.sample, tool_calculator, 5, 0);
    double kl = 0.0, nats = 0.0, tokens = 0.0;
    for (int i = 0; i < 2 * SAMPLES; i++) {
        float logp[256];
        c10_plain_logprobs(logp, &w.setup.reference, &r[i]);
        for (int t = 0; t < r[i].T - 1; t++) {
            if (!r[i].mask[t + 1]) continue;
            kl += (double)r[i].logp[t] - logp[t];
            nats += r[i].entropy[t];
            tokens++;
        }
    }
    CHECK(e.kl != 0.0);
    CHECK_NEAR(e.kl, kl / (2 * SAMPLES), 1e-6);
    CHECK_NEAR(e.entropy, nats / tokens, 1e-6); // nats per sampled token
    evaluation_free(&e);
    e = evaluate_model(m, &w.q, 2, SAMPLES, w.o.sample, &reward_kinds[0], m, 5);
    CHECK(e.kl == 0.0);
    evaluation_free(&e), rollouts_free(r), finish(&w);
}

// ---- dynamic sampling

static int c10_same_rollout(const Rollout* a, const Rollout* b) {
    size_t n = (size_t)(a->prompt + a->length);
    return a->length == b->length && a->prompt == b->prompt && !memcmp(a->ids, b->ids, n * sizeof(int)) &&
           !memcmp(a->logp, b->logp, (n - 1) * sizeof(float));
}

static void chapter_10_zero_variance_groups_are_drawn_again(void) {
    // Against the same update without --resample: a group with a difference is untouched, another one has
    // other answers, each to its question; the count is the number of such groups.
    static World plain, again, thrice;
    START(&plain, "--num-samples=2");
    START(&again, "--num-samples=2", "--resample=1");
    START(&thrice, "--num-samples=2", "--resample=50");
    int replaced = 0, kept = 0, fresh = 0;
    for (long step = 0; step < 4; step++) {
        Metrics a = look(&plain, step), b = look(&again, step), d = look(&thrice, step);
        int equal = 0, left = 0;
        for (int i = 0; i < QUESTIONS; i++) {
            const Group *x = &plain.group[i], *y = &again.group[i];
            int was_equal = x->reward[0] == x->reward[1];
            int same = x->question->prompt.length == y->question->prompt.length &&
                       c10_same_rollout(&x->rollouts[0], &y->rollouts[0]) &&
                       c10_same_rollout(&x->rollouts[1], &y->rollouts[1]);
            CHECK(was_equal || same);
            CHECK(x->zero_variance == was_equal);
            fresh += !same; // chance may draw the same once more, but not often
            CHECK(!memcmp(y->rollouts->ids, y->question->prompt.ids,
                          (size_t)y->question->prompt.length * sizeof(int)));
            for (int k = 0; k < 2; k++) {
                Text text = rollout_text(&y->rollouts[k]);
                CHECK(y->reward[k] == reward_gsm8k(text.data, y->question->truth));
                text_free(&text);
            }
            equal += was_equal;
            left += thrice.group[i].zero_variance;
        }
        CHECK(a.resampled == 0 && b.resampled == equal && left == 0 && d.resampled >= equal);
        CHECK(look(&again, step).reward == b.reward &&
              look(&again, step).entropy == b.entropy); // a function of (seed, step)
        replaced += equal;
        kept += QUESTIONS - equal;
    }
    CHECK(replaced > 2 && kept > 2 && fresh > replaced / 2);
    double one = look(&again, 0).entropy;
    again.o.seed++;
    CHECK(look(&again, 0).entropy != one);
    finish(&plain), finish(&again), finish(&thrice);
}

static void chapter_10_drawing_again_ends(void) {
    // the model never writes a box: three draws of 4 equal groups, 12 drawn again, no gradient
    static World w;
    START(&w, "--reward=boxed", "--resample=3");
    Metrics s = update(&w, 0);
    CHECK(s.resampled == 12.0 && s.zero_variance == 4.0 && s.reward == 0.0 && s.grad_norm == 0.0 &&
          s.accuracy == 0.0);
    finish(&w);
}

static void chapter_10_filtered_groups_are_not_trained_on(void) {
    // A group given up on stays out, although the overlong penalty makes its rewards differ.
    static World w, v;
    Metrics s, t;
    START(&w, "--algo=dapo", "--reward=boxed", "--resample=1", "--overlong=12", "--minibatch=0");
    START(&v, "--algo=dapo", "--reward=boxed", "--resample=0", "--overlong=12", "--minibatch=0");
    const float *a = gradient_of(&w, 0, &s), *b = gradient_of(&v, 0, &t);
    int different = 0;
    for (int i = 0; i < QUESTIONS; i++) {
        different += has_nonzero(w.group[i].adv, N_of(&w));
        CHECK(w.group[i].zero_variance && !w.group[i].trained && w.group[i].loss == 0.0);
    }
    CHECK(different > 0);
    CHECK(s.grad_norm == 0.0 && square_of(a, w.setup.policy.weights.count) == 0.0);
    CHECK(t.grad_norm > 0.0 && square_of(b, v.setup.policy.weights.count) > 0.0);
    finish(&w), finish(&v);
}

// ---- the log

static void chapter_10_on_policy_nothing_drifts(void) {
    // one step on all questions: ratio 1, nothing clipped, KL to the old policy exactly 0, every method
    for (int i = 0; i < METHODS; i++) {
        static World w;
        START(&w, algo_word(i), "--minibatch=0");
        Metrics s = update(&w, 0), t = update(&w, 1);
        CHECK(s.ratio == 1.0 && s.clip_fraction == 0.0 && s.approx_kl == 0.0);
        CHECK(t.ratio == 1.0 && t.clip_fraction == 0.0 && t.approx_kl == 0.0 && t.grad_norm > 0.0);
        finish(&w);
    }
}

static void chapter_10_drift_by_hand(void) {
    // Three tokens of one answer with ratios 1, 1.5 and 0.5; bounds 0.8 .. 1.28. k3 of KL(old || new) = ratio
    // - 1 - log ratio:
    //   0, 0.5 - 0.405465108 = 0.094534892, -0.5 + 0.693147181 = 0.193147181. Mean ratio 1.
    // Two are outside the bounds. What is counted is where the clip takes the gradient away: with A > 0 that
    // is 1.5, with A < 0 it is 0.5, with A = 0 none; for CISPO, whose weight is held whatever the sign, both.
    static World w;
    READ(&w, "--algo=dapo");
    Learner l = learner_new(NULL, NULL, (Reward){0}, &w.o);
    const float logp[4] = {-1.0f, -1.0f, NAN, -2.0f}, old[4] = {-1.0f, -1.405465108f, NAN, -1.306852819f};
    const int mask[4] = {1, 1, 0, 1};
    Group* g = groups_new(1, 1, 5);
    g->trained = 1;
    memcpy(g->mask, mask, sizeof mask);
    memcpy(g->logp, logp, sizeof logp);
    memcpy(g->logp_old, old, sizeof old);
    token_log_ratio(g->log_ratio, logp, old, mask, 1, 4);
    for (int sign = -1; sign <= 1; sign++) {
        for (int i = 0; i < 4; i++) g->adv[i] = mask[i] ? (float)sign : NAN;
        Metrics s = measure(&l, g, 1, 1, 4, 1, 1.0);
        CHECK_NEAR(s.clip_fraction, sign ? 1.0 / 3 : 0.0, 1e-12);
        CHECK_NEAR(s.ratio, 1.0, 1e-6);
        CHECK_NEAR(s.approx_kl, (0.094534892 + 0.193147181) / 3, 1e-6);
    }
    l.ratio = RATIO_CISPO;
    CHECK_NEAR(measure(&l, g, 1, 1, 4, 1, 1.0).clip_fraction, 2.0 / 3, 1e-12);
    l.ratio = RATIO_NONE;
    CHECK(measure(&l, g, 1, 1, 4, 1, 1.0).clip_fraction == 0.0);
    // a ratio per answer: mean log (0 + 0.405465108 - 0.693147181)/3 = -0.095894024, ratio 0.908560, inside
    l.ratio = RATIO_SEQUENCE;
    sequence_log_ratio(g->log_ratio, logp, old, mask, 1, 4);
    Metrics s = measure(&l, g, 1, 1, 4, 1, 1.0);
    CHECK(s.clip_fraction == 0.0);
    CHECK_NEAR(s.ratio, 0.908560296, 1e-6);
    CHECK_NEAR(s.approx_kl, (0.094534892 + 0.193147181) / 3, 1e-6);
    g->trained = 0; // a group that is not trained on is not in these means
    s = measure(&l, g, 1, 1, 4, 1, 1.0);
    CHECK(s.ratio == 1.0 && s.clip_fraction == 0.0 && s.approx_kl == 0.0);
    groups_free(g, 1);
}

static void chapter_10_drift_shows_in_the_log(void) {
    // after the first of two passes the ratios leave 1, and the log shows those of the last pass
    static World w;
    START(&w, "--algo=drgrpo", "--epochs-per-batch=2", "--clip-low=0.001", "--clip-high=0.001");
    Metrics s = update(&w, 0);
    CHECK(s.approx_kl > 0.0 && s.ratio != 1.0 && s.clip_fraction > 0.0 && s.clip_fraction <= 1.0);
    double tokens = 0.0, ratio = 0.0, kl = 0.0;
    for (int i = 0; i < QUESTIONS; i++)
        for (int j = 0; j < N_of(&w); j++) {
            const Group* g = &w.group[i];
            if (!g->trained || !g->mask[j]) continue;          // skipped, and so not in the log
            double x = (double)g->logp[j] - g->logp_old[j];
            tokens++;
            ratio += exp(x);
            kl += exp(x) - 1.0 - x;
        }
    CHECK_NEAR(s.ratio, ratio / tokens, 1e-6);
    CHECK_NEAR(s.approx_kl / (kl / tokens), 1.0, 1e-4);
    finish(&w);
}

static void chapter_10_the_log_counts(void) {
    // numbers counted from the rollouts; two minibatches, so gradient norm and loss are means of two
    static World w;
    START(&w, "--algo=drgrpo", "--minibatch=2");
    Metrics s = update(&w, 0);
    double right = 0, reward = 0, length = 0, equal = 0, solved = 0, nats = 0, sampled = 0, loss = 0,
           tool = 0;
    for (int i = 0; i < QUESTIONS; i++) {
        const Group* g = &w.group[i];
        int here = 0;
        for (int k = 0; k < SAMPLES; k++) {
            const Rollout* r = &g->rollouts[k];
            here += g->reward[k] > 0.5f;
            reward += g->reward[k];
            length += r->length;
            tool += used_tool(r);
            for (int t = 0; t < r->T - 1; t++) {
                if (!r->mask[t + 1]) continue;
                nats += r->entropy[t];
                sampled++;
            }
        }
        right += here;
        solved += here > 0;
        equal += here == 0 || here == SAMPLES;
        loss += g->loss / 2;
    }
    int n = QUESTIONS * SAMPLES;
    CHECK_NEAR(s.accuracy, right / n, 1e-12);
    CHECK_NEAR(s.reward, reward / n, 1e-12);
    CHECK_NEAR(s.pass_rate, solved / QUESTIONS, 1e-12);
    CHECK_NEAR(s.length, length / n, 1e-12);
    CHECK_NEAR(s.entropy, nats / sampled, 1e-6);
    CHECK_NEAR(s.tool_rate, tool / n, 1e-12);
    CHECK_NEAR(s.tokens_per_second * s.seconds, length, 1e-6);
    CHECK(s.zero_variance == equal && s.resampled == 0.0);
    CHECK_NEAR(s.loss, loss, 1e-12);
    CHECK(w.setup.optimizer.step == 2 && s.grad_norm > 0.0);
    finish(&w);
}

static void chapter_10_columns_are_numbers_of_the_record(void) {
    // every column has its own place in the record and a name; those with a title fit 80 characters
    int width = 6, count = 0;
    for (int i = 0; rl_columns[i].name; i++) {
        CHECK(rl_columns[i].at % sizeof(double) == 0 && rl_columns[i].at < sizeof(Metrics));
        for (int j = 0; j < i; j++)
            CHECK(rl_columns[i].at != rl_columns[j].at && strcmp(rl_columns[i].name, rl_columns[j].name));
        width += rl_columns[i].title ? rl_columns[i].width : 0;
        count++;
    }
    CHECK(count == sizeof(Metrics) / sizeof(double) && count <= MAX_COLUMNS);
    CHECK(width <= 80);
}

// ---- whole updates

static void chapter_10_every_update_draws_anew(void) {
    // other rollouts in updates 0 and 1; in update 0 once more, the same ones
    static World w;
    START(&w, "--algo=nanochat");
    Metrics first = look(&w, 0), second = look(&w, 1), again = look(&w, 0);
    CHECK(first.entropy != second.entropy && first.entropy == again.entropy && first.reward == again.reward);
    CHECK(first.reward > 0.0 && first.reward < 1.0 && first.format_rate > 0.5 && first.tool_rate == 0.0);
    finish(&w);
}

static void chapter_10_questions_come_in_a_new_order_each_epoch(void) {
    // 10 questions, 3 per update: updates 0..2 and the first of 3 are one epoch, each question once.
    int chosen[12], seen[10] = {0}, all[12], next[10], moved = 0;
    for (long step = 0; step < 4; step++) deal_examples(chosen + 3 * step, 3, step, 10, 42);
    for (int i = 0; i < 10; i++) seen[chosen[i]]++;
    for (int i = 0; i < 10; i++) CHECK(seen[i] == 1);
    deal_examples(all, 12, 0, 10, 42);                       // the same four as one update
    CHECK(!memcmp(chosen, all, sizeof all));
    deal_examples(next, 10, 1, 10, 42);                      // the second epoch
    CHECK(next[0] == chosen[10] && next[1] == chosen[11]);
    for (int i = 0; i < 10; i++) moved += next[i] != chosen[i];
    CHECK(moved > 5);
}

// Three questions in minibatches of two: the last has one question, which counts as much as the two before.
static void chapter_10_the_last_minibatch_is_smaller(void) {
    static World w;
    START(&w, "--algo=nanochat");
    w.o.examples_per_step = 3;
    w.o.minibatch = 2;
    look(&w, 0);
    for (int i = 0; i < 3; i++) {
        double sum = 0.0;
        for (int j = 0; j < SAMPLES * (w.group->rollouts->T - 1); j++) sum += w.group[i].weight[j];
        CHECK_NEAR(sum, i < 2 ? 0.5 : 1.0, 1e-5);
    }
    w.o.examples_per_step = QUESTIONS;
    finish(&w);
}

// The longest prompt of a file fits when the context has just its tokens and the new ones, not with one less.
static void chapter_10_a_prompt_that_just_fits(void) {
    enum { ROOM = 16 };
    const RewardKind* kind = find_reward("gsm8k");
    int screen = mute();
    Questions all = load_questions("data/test.jsonl", 4096, ROOM, kind);
    Questions just = load_questions("data/test.jsonl", all.longest + ROOM, ROOM, kind);
    Questions less = load_questions("data/test.jsonl", all.longest + ROOM - 1, ROOM, kind);
    unmute(screen);
    CHECK(just.count == all.count && just.longest == all.longest);
    CHECK(less.count < all.count && less.longest < all.longest);
    questions_free(&all), questions_free(&just), questions_free(&less);
}

static void test_chapter_10(void) {
    make_models();
    RUN_ALL(TEST(chapter_10_four_rollouts_are_graded), TEST(chapter_10_a_prompt_that_just_fits),
            TEST(chapter_10_the_last_minibatch_is_smaller),
            TEST(chapter_10_overlong_answers_pay),
            TEST(chapter_10_a_reward_model_reads_the_whole_text), TEST(chapter_10_kl_in_the_reward_is_a_sum),
            TEST(chapter_10_other_estimators_in_the_reward),
            TEST(chapter_10_gae_keeps_the_penalty_at_its_token), TEST(chapter_10_forced_tokens_are_no_steps),
            TEST(chapter_10_value_model_learns_what_came_after),
            TEST(chapter_10_values_come_before_the_first_step),
            TEST(chapter_10_value_model_has_its_rate_and_its_clip),
            TEST(chapter_10_value_model_begins_at_zero), TEST(chapter_10_loss_is_the_formula),
            TEST(chapter_10_every_row_by_its_formula), TEST(chapter_10_gradients_come_from_dlogp),
            TEST(chapter_10_equal_rewards_contribute_nothing),
            TEST(chapter_10_a_minibatch_is_a_batch_of_its_own), TEST(chapter_10_kl_in_the_loss_is_added),
            TEST(chapter_10_distance_to_oneself_is_nothing),
            TEST(chapter_10_zero_variance_groups_are_drawn_again), TEST(chapter_10_drawing_again_ends),
            TEST(chapter_10_filtered_groups_are_not_trained_on), TEST(chapter_10_on_policy_nothing_drifts),
            TEST(chapter_10_drift_by_hand), TEST(chapter_10_drift_shows_in_the_log),
            TEST(chapter_10_the_log_counts), TEST(chapter_10_columns_are_numbers_of_the_record),
            TEST(chapter_10_every_update_draws_anew),
            TEST(chapter_10_questions_come_in_a_new_order_each_epoch));
    remove_folder();
}
