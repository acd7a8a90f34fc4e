// chapter_10.c - one update: rl_step() runs as it trains, and the test reads the arrays that it left.

static int T1_of(const World* w) { return w->group->rollouts->T - 1; }
static int N_of(const World* w) { return w->o.num_samples * T1_of(w); }

static void random_score(Model* m) {
    for (int c = 0; c < m->config.width; c++) m->weights.score[c] = 0.1f * (float)sin(1.0 + c);
}

// ---- steps 1 to 3: grades and rewards

static void chapter_10_four_rollouts_are_graded(void) {
    // D2's four rollouts: rewards 1 1 0 0, three boxes, nobody used the tool.
    static const char* const text[4] = {"\\boxed{83}@", "The correct answer is \\boxed{83}@",
                                        "The final answer is 83@", "We get \\boxed{38}@"};
    float reward[4];
    long tokens = 0;
    for (int k = 0; k < 4; k++) tokens += (long)strlen(text[k]);
    Rollout* r = play_all("42+41?", text, 4);
    for (int i = 0; i < 4 * (r->T - 1); i++)
        r->entropy[i] = r->mask[i / (r->T - 1) * r->T + i % (r->T - 1) + 1] ? 0.5f : 0.0f;
    Grades g = grade_rollouts(reward, r, 4, "83", find_reward("boxed"));
    CHECK_LIST(reward, 0.0, 1, 1, 0, 0);
    CHECK(g.correct == 2 && g.format == 3 && g.tool == 0 && g.tokens == tokens && g.sampled == tokens);
    CHECK_NEAR(g.entropy, 0.5 * (double)tokens, 1e-12);
    g = grade_rollouts(reward, r, 4, "83", find_reward("partial"));
    CHECK_LIST(reward, 1e-7, 1, 1, 0.5, 0.1);              // and still two are right
    CHECK(g.correct == 2);
    rollouts_free(r);
}

static void chapter_10_overlong_answers_pay(void) {
    // limit 100, window 20: nothing up to 80 tokens, then 1/20 per token, -1 at the limit; no window, none
    static const int length[6] = {0, 80, 81, 95, 100, 1};
    Rollout* r = rollouts_new(6, 2);
    float reward[6] = {0}, other[6] = {0};
    for (int k = 0; k < 6; k++) r[k].length = length[k];
    add_overlong_penalties(reward, r, 6, 100, 20);
    add_overlong_penalties(other, r, 6, 100, 0);
    CHECK_LIST(reward, 1e-7, 0, 0, -0.05, -0.75, -1, 0);
    CHECK_LIST(other, 0.0, 0, 0, 0, 0, 0, 0);
    add_overlong_penalties(other, r + 5, 1, 1, 1);             // one token at most, one is too many
    CHECK(other[0] == -1.0f);
    rollouts_free(r);
}

static void chapter_10_a_reward_model_reads_the_whole_text(void) {
    // The score of an answer is the scalar at the last token of prompt + answer, read as one sequence.
    // gsm8k+model: the verdict is added; `correct` counts verdicts in both cases.
    char reward[PATH_SIZE + 32];
    double first = 0.0, spread = 0.0;
    int right = 0, correct[2] = {0};
    for (int paid = 0; paid < 2; paid++) {
        static World w;
        snprintf(reward, sizeof reward, "--reward=%smodel:%s", paid ? "gsm8k+" : "", reward_model_path);
        START(&w, "--algo=nanochat", reward);
        Model* m = &w.setup.reward_model;
        CHECK(w.setup.learner.reward.model == m && !w.setup.learner.reward.paid == !paid);
        look(&w, 0);
        for (int i = 0; i < QUESTIONS * SAMPLES; i++) {
            const Rollout* r = &w.group[i / SAMPLES].rollouts[i % SAMPLES];
            int n = r->prompt + r->length, last[128] = {0};
            float score[128];
            last[n - 1] = 1;
            plain_pass(score, m, r->ids, last, n + 1, NULL);
            double verdict = w.group[i / SAMPLES].reward[i % SAMPLES] - score[n - 1];
            CHECK(fabs(verdict) < 1e-5 || (paid && fabs(verdict - 1.0) < 1e-5));
            right += verdict > 0.5;
            if (i == 0) first = score[n - 1];
            spread = fmax(spread, fabs(score[n - 1] - first));
        }
        for (int i = 0; i < QUESTIONS; i++) correct[paid] += w.group[i].grades.correct;
        finish(&w);
    }
    CHECK(spread > 1e-3 && right > 0 && correct[0] == right && correct[1] == right);
}

// ---- step 4: advantages, KL in the reward, values

static void chapter_10_kl_in_the_reward(void) {
    // The tokens' rewards are chapter 8's token_rewards() of the chosen estimator and average, with beta 0.5;
    // the advantage is that of an answer's sum, and for PPO group_gae()'s, where the value model learns V +
    // A. The loss has no reference: -A w.
#define CHARGED "--beta=0.5", "--advantage=centered", "--kl-in=reward"
    static const struct { const char* words[7]; int k, per_token; } cases[] = {
        {{"--algo=grpo", CHARGED, "--kl-estimator=k1", "--kl-per=sequence"}, 1, 0},
        {{"--algo=grpo", CHARGED, "--kl-estimator=k1", "--kl-per=token"}, 1, 1},
        {{"--algo=grpo", CHARGED, "--kl-estimator=k2", "--kl-per=sequence"}, 2, 0},
        {{"--algo=grpo", CHARGED, "--kl-estimator=k3", "--kl-per=sequence"}, 3, 0},
        {{"--algo=ppo", "--beta=0.5", "--lambda=0.5", "--gamma=0.9"}, 1, 0}};
    for (int i = 0; i < 5; i++) {
        static World w;
        start(&w, cases[i].words);
        const Learner* l = &w.setup.learner;
        disturb(&w.setup.reference, 0.05);
        if (i == 4) random_score(&w.setup.value);
        float score = i == 4 ? w.setup.value.weights.score[0] : 0.0f;
        Metrics s = look(&w, 0);
        if (i == 4) CHECK(w.setup.value.weights.score[0] == score); // the schedule's factor, 0, goes for both
        int T1 = T1_of(&w), n = N_of(&w);
        double nats = 0.0;
        for (const Group* g = w.group; g < w.group + QUESTIONS; g++) {
            const int* mask = g->mask;
            float kl[3][256], expected[256], total[SAMPLES];
            for (int k = 0; k < SAMPLES; k++)
                plain_pass(expected + k * T1, l->reference, g->rollouts[k].ids, mask + k * T1, T1 + 1, NULL);
            for (int j = 0; j < n; j++) CHECK_NEAR(g->logp_ref[j], expected[j], 1e-5);
            kl_k1(kl[0], g->logp_old, g->logp_ref, n);
            kl_k2(kl[1], g->logp_old, g->logp_ref, n);
            kl_k3(kl[2], g->logp_old, g->logp_ref, n);
            sequence_logprobs(total, kl[0], mask, SAMPLES, T1);
            for (int k = 0; k < SAMPLES; k++) nats += (double)total[k];
            const float* charge = kl[cases[i].k - 1];
            token_rewards(expected, g->reward, charge, mask, SAMPLES, T1, 0.5f, cases[i].per_token);
            CHECK(same_bits(expected, g->token_reward, (size_t)n));
            sequence_logprobs(total, g->token_reward, mask, SAMPLES, T1);
            advantages_centered(total, total, SAMPLES);
            broadcast_advantages(expected, total, mask, SAMPLES, T1);
            if (i == 4) group_gae(expected, g->token_reward, g->value_old, mask, SAMPLES, T1, 0.9f, 0.5f);
            CHECK(same_bits(expected, g->adv, (size_t)n));
            for (int j = 0; j < n; j++) {
                if (i < 4) CHECK(g->dlogp[j] == -g->weight[j] * g->adv[j]);
                else CHECK(g->target[j] == g->adv[j] + g->value_old[j]);
            }
        }
        CHECK(fabs(nats) > 0.1);
        CHECK_NEAR(s.kl_ref, nats / (QUESTIONS * SAMPLES), 1e-5);  // always k1; nats per answer, their mean
        finish(&w);
    }
}

static void chapter_10_forced_tokens_are_no_steps(void) {
    // Tokens 1 and 2 are the tool's. Rewards 0.1 at token 0, 1 at token 3; V = 0.5 and 0.25; gamma 0.5,
    // lambda 0.5:
    //   last:  1 - 0.25 = 0.75
    //   first: 0.1 + 0.5 * 0.25 - 0.5 + 0.5 * 0.5 * 0.75 = -0.275 + 0.1875 = -0.0875
    // A second answer with one token, reward 2, V = 1.5: 0.5.
    const float reward[8] = {0.1f, 7, 7, 1, NAN, 2, NAN, NAN};
    const float value[8] = {0.5f, 9, 9, 0.25f, NAN, 1.5f, NAN, NAN};
    const int mask[8] = {1, 0, 0, 1, 0, 1, 0, 0};
    float advantage[8] = {5, 5, 5, 5, 5, 5, 5, 5};
    group_gae(advantage, reward, value, mask, 2, 4, 0.5f, 0.5f);
    CHECK_LIST(advantage, 1e-6, -0.0875, 0, 0, 0.75, 0, 0.5, 0, 0);
}

static void chapter_10_values_come_before_the_first_step(void) {
    // With two minibatches and two passes the value model moves between them: all old values are still those
    // before the first step, to the bit.
    static World w;
    START(&w, "--algo=ppo", "--beta=0", "--epochs-per-batch=2");
    random_score(&w.setup.value);
    Model before = copy_of_model(&w.setup.value);
    update(&w, 0);
    CHECK(w.o.minibatch == QUESTIONS / 2 && w.setup.value_optimizer.step == 4);
    CHECK(!same_weights(&before.weights, &w.setup.value.weights));
    size_t n = (size_t)N_of(&w);
    float* expected = floats(n);
    for (const Group* g = w.group; g < w.group + QUESTIONS; g++) {
        answers_forward(expected, &before, g->rollouts->ids, g->mask, SAMPLES, g->rollouts->T);
        CHECK(same_bits(expected, g->value_old, n));
        CHECK(!same_bits(expected, g->value, n));              // the last pass saw other values
    }
    free(expected), model_free(&before), finish(&w);
    // a gradient that is too long is cut to --grad-clip: with beta1 = 0 it is AdamW's first moment
    START(&w, "--algo=ppo", "--beta=0", "--minibatch=0", "--grad-clip=0.001");
    w.o.adam.beta1 = 0.0f;
    update(&w, 0);
    const Weights *first = &w.setup.value_optimizer.first, *policy = &w.setup.optimizer.first;
    CHECK_NEAR(sqrt(square_of(first->memory, first->count)), 0.001, 1e-6);
    CHECK_NEAR(sqrt(square_of(policy->memory, policy->count)), 0.001, 1e-6);
    finish(&w);
}

// ---- steps 5 and 6: loss, KL, backward, minibatches

static void chapter_10_every_row_by_its_formula(void) {
    // In the second of two passes the ratios have left 1. What rl_step() left is, token by token, what the
    // losses of chapter 9 (there by hand) make of the row: loss and derivatives, with the KL term, for a
    // quarter of the batch; and so is what the value model learns, near its old values. The log shows the
    // last pass, over the tokens that were trained on: ratios, k3 of KL(old || new), and where the clip takes
    // the gradient away; for CISPO, whose weight is held whatever the sign, all outside of the bounds.
    // Behind the methods GRPO comes again, whose KL in the loss follows the other norms, too.
    static const char* const norm[] = {"--norm=token", "--norm=sum", "--norm=constant"};
    int moved = 0, stopped = 0, left_out = 0, held = 0;
    for (int i = 0; i < METHODS + 3; i++) {
        static World w;
        int none = i < METHODS && !strcmp(methods[i].ratio, "none"), passes = none ? 1 : 2;
        START(&w, i < METHODS ? algo_word(i) : "--algo=grpo", "--minibatch=0",
              none ? "--epochs-per-batch=1" : "--epochs-per-batch=2", i < METHODS ? NULL : norm[i - METHODS]);
        const Learner* l = &w.setup.learner;
        w.o.value_clip = 0.0001f;
        CHECK((l->reference != NULL) == (w.o.beta > 0.0f));                    // beta 0 loads none
        if (l->reference) disturb(&w.setup.reference, 0.05);
        if (l->value) random_score(&w.setup.value);
        Metrics s = update(&w, 0);
        int T1 = T1_of(&w), n = N_of(&w);
        double tokens = 0.0, ratios = 0.0, kl = 0.0, loss = 0.0, value_loss = 0.0, clipped = 0.0;
        double low = w.o.clip_low, high = w.o.clip_high;
        for (const Group* g = w.group; g < w.group + QUESTIONS; g++) {
            const float *ref = l->kl_in_reward || !l->reference ? NULL : g->logp_ref, *old = g->logp_old;
            const float* value[2] = {g->value_old, g->value};                 // of the first pass, the second
            const int* mask = g->mask;
            float d[256], log_ratio[256], sum[SAMPLES];
            for (int pass = 0; pass < passes && l->value; pass++)
                value_loss += loss_value(d, value[pass], g->value_old, g->target, g->weight, n, 0.0001f);
            if (l->value) CHECK(same_bits(d, g->dvalue, (size_t)n));
            for (int j = 0; j < n && l->value; j++) held += mask[j] && d[j] == 0.0f;
            left_out += !g->trained;
            if (!g->trained) continue;
            if (!none) loss += method_loss(d, l, old, old, ref, g->adv, mask, SAMPLES, T1);
            loss += method_loss(d, l, g->logp, old, ref, g->adv, mask, SAMPLES, T1);
            sequence_logprobs(sum, g->token_reward, mask, SAMPLES, T1);
            if (ref) CHECK(same_bits(sum, g->reward, SAMPLES));                // it is not charged as well
            if (l->ratio == RATIO_SEQUENCE) sequence_log_ratio(log_ratio, g->logp, old, mask, SAMPLES, T1);
            else token_log_ratio(log_ratio, g->logp, old, mask, SAMPLES, T1);
            for (int j = 0; j < n; j++) {
                CHECK(fabs(g->dlogp[j] - d[j] / QUESTIONS) <= 1e-5 * fabs(g->dlogp[j]) + 1e-8);
                if (!mask[j]) continue;
                double own = (double)g->logp[j] - old[j], ratio = exp((double)log_ratio[j]);
                tokens++;
                kl += exp(own) - 1.0 - own;
                ratios += ratio;
                if (l->ratio == RATIO_CISPO) clipped += ratio < 1.0 - low || ratio > 1.0 + high;
                else clipped += !none && is_clipped(ratio, g->adv[j], low, high);
                moved += g->dlogp[j] != 0.0f && !none && fabs(own) > 1e-3;
                stopped += g->dlogp[j] == 0.0f && g->adv[j] != 0.0f;
            }
        }
        CHECK_NEAR(s.loss, loss / QUESTIONS / passes, 1e-6);                   // mean over the gradient steps
        CHECK_NEAR(s.value_loss, value_loss / passes, 1e-6);
        CHECK_NEAR(s.ratio, ratios / tokens, 1e-6);
        CHECK_NEAR(s.clip_fraction, clipped / tokens, 1e-9);
        CHECK(none ? s.approx_kl == 0.0 : fabs(s.approx_kl / (kl / tokens) - 1.0) < 1e-4);
        CHECK(none ? s.ratio == 1.0 : s.ratio != 1.0 && s.approx_kl > 0.0);
        finish(&w);
    }
    CHECK(moved > 100 && stopped > 10 && left_out > 0 && held > 0);
}

static void chapter_10_gradients_come_from_dlogp(void) {
    // The gradient of the step is that of the dlogp and dvalue in the arrays, sent back through one model.
    // One step on all questions: ratio 1, nothing clipped, KL to the old policy exactly 0, every method.
    for (int i = 0; i < METHODS; i++) {
        static World w;
        Metrics s;
        START(&w, algo_word(i), "--minibatch=0");
        if (w.setup.learner.reference) disturb(&w.setup.reference, 0.05);
        const float* gradient = gradient_of(&w, 0, &s);
        Model plain = load_model(model_path), value = scalar_model_on(&plain);
        int T = w.group->rollouts->T;
        float* out = floats((size_t)N_of(&w));
        model_zero_grads(&plain);
        model_zero_grads(&value);
        for (const Group* g = w.group; g < w.group + QUESTIONS; g++) {
            answers_forward(out, &plain, g->rollouts->ids, g->mask, SAMPLES, T);
            if (g->trained) {
                CHECK(same_bits(out, g->logp, (size_t)N_of(&w)));
                answers_backward(&plain, g->dlogp, g->rollouts->ids, g->mask, SAMPLES, T);
            }
            if (!w.setup.learner.value) continue;
            answers_forward(out, &value, g->rollouts->ids, g->mask, SAMPLES, T);
            answers_backward(&value, g->dvalue, g->rollouts->ids, g->mask, SAMPLES, T);
        }
        CHECK(square_of(gradient, plain.grads.count) > 1e-8);
        CHECK(off_by(plain.grads.memory, gradient, 1.0, plain.grads.count) < 1e-5);
        CHECK_NEAR(s.grad_norm, sqrt(square_of(plain.grads.memory, plain.grads.count)), 1e-5);
        const float* of_value = w.setup.value_optimizer.first.memory;
        if (w.setup.learner.value) CHECK(off_by(value.grads.memory, of_value, 1.0, value.grads.count) < 1e-5);
        for (int step = 1; step <= 2; step++) {
            CHECK(s.ratio == 1.0 && s.clip_fraction == 0.0 && s.approx_kl == 0.0 && s.grad_norm > 0.0);
            s = update(&w, step);
        }
        free(out), model_free(&plain), model_free(&value), finish(&w);
    }
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
    CHECK(same_bits(gradient, v.setup.optimizer.first.memory, w.setup.policy.weights.count));
    CHECK(!w.group[0].trained && !w.group[1].trained);
    CHECK_NEAR(s.loss, t.loss / 2, 1e-9);                      // the mean over both minibatches
    CHECK_NEAR(s.grad_norm, t.grad_norm / 2, 1e-9);
    finish(&w), finish(&v);
    // three questions in minibatches of two: the last has one question, which counts as much as the two
    // before
    START(&w, "--algo=nanochat");
    w.o.examples_per_step = 3;
    w.o.minibatch = 2;
    CHECK(isnan(look(&w, 0).kl_ref));                          // of no reference
    for (int i = 0; i < 3; i++) {
        double sum = 0.0;
        for (int j = 0; j < N_of(&w); j++) sum += w.group[i].weight[j];
        CHECK_NEAR(sum, i < 2 ? 0.5 : 1.0, 1e-5);
    }
    w.o.examples_per_step = QUESTIONS;
    finish(&w);
}

static void chapter_10_distance_to_oneself_is_nothing(void) {
    // at the start the reference is the policy, and decoding and training agree to the bit: KL exactly 0
    static World w;
    START(&w, "--algo=grpo");
    CHECK(update(&w, 0).kl_ref == 0.0);
    CHECK(update(&w, 1).kl_ref != 0.0); // one update later it is not any more
    // evaluate_model sums k1 over an answer's sampled tokens: by hand from the same rollouts
    Model* m = &w.setup.policy;
    Evaluation e = evaluate_model(m, &w.q, 2, SAMPLES, w.o.sample, &reward_kinds[0], &w.setup.reference, 5);
    Tokens prompts[2] = {w.q.list[0].prompt, w.q.list[1].prompt};
    Rollout* r = generate(m, prompts, 2, SAMPLES, w.o.sample, tool_calculator, 5, 0);
    double kl = 0.0, nats = 0.0, tokens = 0.0;
    for (int i = 0; i < 2 * SAMPLES; i++) {
        float logp[256];
        plain_pass(logp, &w.setup.reference, r[i].ids, r[i].mask + 1, r[i].T, NULL);
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

static void chapter_10_zero_variance_groups_are_drawn_again(void) {
    // Against the same update without --resample: a group with a difference is untouched, another one has
    // other answers, each to its question; the count is the number of such groups.
    static World plain, again, thrice;
    START(&plain, "--num-samples=2");
    START(&again, "--num-samples=2", "--resample=1");
    START(&thrice, "--num-samples=2", "--resample=50");
    int replaced = 0, kept = 0, fresh = 0;
    double before = 0.0;
    for (long step = 0; step < 4; step++) {
        Metrics a = look(&plain, step), b = look(&again, step), d = look(&thrice, step);
        int equal = 0, left = 0;
        for (int i = 0; i < QUESTIONS; i++) {
            const Group *x = &plain.group[i], *y = &again.group[i];
            const Rollout *drawn = x->rollouts, *now = y->rollouts;
            int was_equal = x->reward[0] == x->reward[1], N = 2 * drawn->T;
            int same = same_bits(drawn->logp, now->logp, (size_t)N - 2) &&
                       !memcmp(drawn->ids, now->ids, (size_t)N * sizeof(int));
            CHECK((was_equal || same) && x->zero_variance == was_equal);
            fresh += !same; // chance may draw the same once more, but not often
            for (int k = 0; k < 2; k++) {
                Text text = rollout_text(&y->rollouts[k]);
                CHECK(y->reward[k] == reward_gsm8k(text.data, y->question->truth));
                CHECK(!memcmp(y->rollouts[k].ids, y->question->prompt.ids,
                              (size_t)y->question->prompt.length * sizeof(int)));
                text_free(&text);
            }
            equal += was_equal;
            left += thrice.group[i].zero_variance;
        }
        CHECK(a.resampled == 0 && b.resampled == equal && left == 0 && d.resampled >= equal);
        d = look(&again, step);                                // a function of (seed, step)
        CHECK(d.reward == b.reward && d.entropy == b.entropy && a.entropy != before);
        before = a.entropy;
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
    static World w, v;
    Metrics s, t;
    START(&w, "--reward=boxed", "--resample=3");
    Model begun = copy_of_model(&w.setup.policy);
    s = update(&w, 0);
    CHECK(s.resampled == 12.0 && s.zero_variance == 4.0 && s.reward == 0.0 && s.accuracy == 0.0);
    CHECK(s.loss == 0.0 && s.grad_norm == 0.0);
    CHECK(s.ratio == 1.0 && s.clip_fraction == 0.0 && s.approx_kl == 0.0);
    CHECK(same_weights(&begun.weights, &w.setup.policy.weights));            // without decay nothing moves
    for (int i = 0; i < QUESTIONS; i++) CHECK(w.group[i].zero_variance && !w.group[i].trained);
    model_free(&begun), finish(&w);
    // a group given up on stays out, although the overlong penalty makes its rewards differ
    START(&w, "--algo=dapo", "--reward=boxed", "--resample=1", "--overlong=12", "--minibatch=0");
    START(&v, "--algo=dapo", "--reward=boxed", "--resample=0", "--overlong=12", "--minibatch=0");
    const float *a = gradient_of(&w, 0, &s), *b = gradient_of(&v, 0, &t);
    int different = 0;
    for (int i = 0; i < QUESTIONS; i++) {
        different += has_nonzero(w.group[i].adv, N_of(&w));
        for (int k = 0; k < SAMPLES; k++)                      // 1/12 less for each of up to 12 tokens
            CHECK_NEAR(w.group[i].reward[k], -w.group[i].rollouts[k].length / 12.0, 1e-6);
        CHECK(w.group[i].zero_variance && !w.group[i].trained && w.group[i].loss == 0.0);
    }
    CHECK(different > 0);
    CHECK(s.grad_norm == 0.0 && square_of(a, w.setup.policy.weights.count) == 0.0);
    CHECK(t.grad_norm > 0.0 && square_of(b, v.setup.policy.weights.count) > 0.0);
    CHECK(!has_nonzero((float[]){0.0f, 1.0f}, 1) && has_nonzero((float[]){0.0f, 1.0f}, 2));
    finish(&w), finish(&v);
}

// ---- the log

static void chapter_10_the_log_counts(void) {
    // numbers counted from the rollouts; two minibatches, so gradient norm and loss are means of two
    static World w;
    START(&w, "--algo=drgrpo", "--minibatch=2");
    Metrics s = update(&w, 0);
    double right = 0, reward = 0, length = 0, equal = 0, solved = 0, nats = 0, sampled = 0, tool = 0;
    for (const Group* g = w.group; g < w.group + QUESTIONS; g++) {
        int here = 0;
        for (int k = 0; k < SAMPLES; k++) {
            const Rollout* r = &g->rollouts[k];
            here += g->reward[k] > 0.5f;
            reward += g->reward[k];
            length += r->length;
            tool += used_tool(r);
            sampled += count_masked(r->mask, r->T);
            for (int t = 0; t < r->T - 1; t++) nats += r->mask[t + 1] ? r->entropy[t] : 0.0f;
        }
        right += here;
        solved += here > 0;
        equal += here == 0 || here == SAMPLES;
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
    CHECK(w.setup.optimizer.step == 2 && s.grad_norm > 0.0);
    CHECK(s.reward > 0.0 && s.reward < 1.0 && s.format_rate > 0.5);
    finish(&w);
}

// ---- whole updates

static void chapter_10_questions_come_in_a_new_order_each_epoch(void) {
    // 10 questions, 3 per update: updates 0..2 and the first of 3 are one epoch, each question once.
    int chosen[12], seen[10] = {0}, all[12], next[10], moved = 0;
    for (long step = 0; step < 4; step++) deal_examples(chosen + 3 * step, 3, step, 10, 42);
    for (int i = 0; i < 10; i++) seen[chosen[i]]++;
    CHECK_LIST(seen, 0.0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
    deal_examples(all, 12, 0, 10, 42);                       // the same four as one update
    CHECK(!memcmp(chosen, all, sizeof all));
    deal_examples(next, 10, 1, 10, 42);                      // the second epoch
    CHECK(next[0] == chosen[10] && next[1] == chosen[11]);
    for (int i = 0; i < 10; i++) moved += next[i] != chosen[i];
    CHECK(moved > 5);
}

// The longest prompt of a file fits when the context has just its tokens and the new ones, not with one less.
static void chapter_10_a_prompt_that_just_fits(void) {
    enum { ROOM = 16 };
    const RewardKind* kind = find_reward("gsm8k");
    print_begin();
    Questions all = load_questions("data/test.jsonl", 4096, ROOM, kind);
    Questions just = load_questions("data/test.jsonl", all.longest + ROOM, ROOM, kind);
    Questions less = load_questions("data/test.jsonl", all.longest + ROOM - 1, ROOM, kind);
    print_end();
    CHECK(just.count == all.count && just.longest == all.longest);
    CHECK(less.count < all.count && less.longest < all.longest);
    questions_free(&all), questions_free(&just), questions_free(&less);
}

static void test_chapter_10(void) {
    make_models();
    RUN_ALL(TEST(chapter_10_four_rollouts_are_graded), TEST(chapter_10_a_prompt_that_just_fits),
            TEST(chapter_10_overlong_answers_pay), TEST(chapter_10_a_reward_model_reads_the_whole_text),
            TEST(chapter_10_kl_in_the_reward), TEST(chapter_10_forced_tokens_are_no_steps),
            TEST(chapter_10_values_come_before_the_first_step),
            TEST(chapter_10_every_row_by_its_formula), TEST(chapter_10_gradients_come_from_dlogp),
            TEST(chapter_10_a_minibatch_is_a_batch_of_its_own),
            TEST(chapter_10_distance_to_oneself_is_nothing),
            TEST(chapter_10_zero_variance_groups_are_drawn_again), TEST(chapter_10_drawing_again_ends),
            TEST(chapter_10_the_log_counts), TEST(chapter_10_questions_come_in_a_new_order_each_epoch));
    remove_folder();
}
