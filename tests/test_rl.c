// Chapters 6, 10, 11 and 12: the tool, the loop, evaluation. Each expectation has its reason above it.
#include "chapters.h"
#include "guessing.h"

static void add_text(Tokens* t, const char* text) { tokens_add_text(t, text, strlen(text), 1); }

// ---- the tool

static void tool_answers_a_call(void) {
    // "<|python_start|>12*3<|python_end|>" -> "<|output_start|>36<|output_end|>"
    Tokens t = {0};
    int forced[64], from;
    add_text(&t, "so ");
    tokens_add(&t, PYTHON_START, 1);
    CHECK(tool_state(t.ids, t.length, &from) == TOOL_READING && from == 4);
    add_text(&t, "12*3");
    CHECK(tool_calculator(forced, 64, t.ids, t.length) == 0);           // still typing
    tokens_add(&t, PYTHON_END, 1);
    CHECK(tool_state(t.ids, t.length, &from) == TOOL_CALLED && from == 4);
    CHECK(tool_calculator(forced, 64, t.ids, t.length) == 4);
    CHECK(forced[0] == OUTPUT_START && forced[1] == '3' && forced[2] == '6' && forced[3] == OUTPUT_END);
    CHECK(tool_calculator(forced, 3, t.ids, t.length) == 0);            // it does not fit: all or nothing
    add_text(&t, "x");
    CHECK(tool_state(t.ids, t.length, &from) == TOOL_IDLE);
    CHECK(tool_calculator(forced, 64, t.ids, t.length) == 0);           // the call is over
    tokens_add(&t, PYTHON_END, 1);                                      // an end without a start
    CHECK(tool_state(t.ids, t.length, &from) == TOOL_IDLE);
    CHECK(tool_calculator(forced, 64, t.ids, t.length) == 0);
    tokens_free(&t);
}

static void tool_is_silent(void) {
    static const char* const odd[] = {"", "2**3", "1/0", "seven", "7*", "1;2", "__import__('os')", "9**9**9"};
    int forced[64];
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        Tokens t = {0};
        tokens_add(&t, PYTHON_START, 1);
        add_text(&t, odd[i]);
        tokens_add(&t, PYTHON_END, 1);
        CHECK(tool_calculator(forced, 64, t.ids, t.length) == 0);
        tokens_free(&t);
    }
    // a second start begins the expression anew, as in nanochat; a special token inside is no arithmetic
    Tokens t = {0};
    tokens_add(&t, PYTHON_START, 1), add_text(&t, "1+");
    tokens_add(&t, PYTHON_START, 1), add_text(&t, "2+2"), tokens_add(&t, PYTHON_END, 1);
    CHECK(tool_calculator(forced, 64, t.ids, t.length) == 3 && forced[1] == '4');
    t.length = 0;
    tokens_add(&t, PYTHON_START, 1), add_text(&t, "2+2"), tokens_add(&t, OUTPUT_START, 1),
        tokens_add(&t, PYTHON_END, 1);
    CHECK(tool_calculator(forced, 64, t.ids, t.length) == 0);
    // longer than EXPRESSION_SIZE
    t.length = 0;
    tokens_add(&t, PYTHON_START, 1);
    for (int i = 0; i < EXPRESSION_SIZE; i++) add_text(&t, "1");
    tokens_add(&t, PYTHON_END, 1);
    CHECK(tool_calculator(forced, 64, t.ids, t.length) == 0);
    tokens_free(&t);
}

static void script_with_tool(void) {
    // sampled: a <start> 1 + 1 <end>; forced: <out> 2 </out>; sampled: b <assistant_end>
    Tokens s = {0};
    add_text(&s, "a"), tokens_add(&s, PYTHON_START, 1), add_text(&s, "1+1"), tokens_add(&s, PYTHON_END, 1),
        add_text(&s, "b");
    tokens_add(&s, ASSISTANT_END, 1);
    Rollout* r = play_script(s.ids, s.length);
    static const int mask[11] = {1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1};
    CHECK(r->length == 11 && r->finished && used_tool(r));
    CHECK(!memcmp(r->mask, mask, sizeof mask));
    CHECK(r->ids[6] == OUTPUT_START && r->ids[7] == '2' && r->ids[8] == OUTPUT_END);
    CHECK(count_masked(r->mask, r->length) == 8);
    // an <|output_start|> that the model wrote itself is no use of the tool
    r->mask[6] = 1;
    CHECK(!used_tool(r));
    rollouts_free(r, 1), tokens_free(&s);
}

// ---- one group

// K rollouts of one question by a random model, with whatever rewards the test wants
static Rollout* some_rollouts(Model* m, Tokens* prompt, int K, int new_tokens) {
    render_prompt(prompt, "2+2?");
    return generate(m, prompt, 1, K, (SampleOptions){new_tokens, 1.0f, 0, 1.0f}, tool_calculator, 5, 0);
}

static void group_gradient_is_the_formula(void) {
    // loss = -(sum of advantage * logp) / valid tokens. Moving along the gradient by h changes it by h |g|^2.
    enum { K = 4 };
    Model m = tiny_model(3);
    Tokens prompt = {0};
    Rollout* r = some_rollouts(&m, &prompt, K, 6);
    float advantage[K] = {0.75f, -0.25f, -0.25f, -0.25f};
    double sum = 0.0;
    int valid = 0;
    for (int k = 0; k < K; k++)
        for (int t = 0; t < r[k].length; t++)
            if (r[k].mask[t]) sum += advantage[k] * r[k].logp[t], valid++;
    RlOptions o = rl_defaults();
    Learner l = learner_of(&m, NULL, &o);
    Experience e = experience_of(&prompt, r, advantage, 1, K);
    double before = experience_step(&l, &e, 1, 0);
    CHECK_NEAR(before, -sum / valid, 1e-6);
    double square = 0.0, h = 1e-3;
    for (size_t i = 0; i < m.grads.count; i++) square += (double)m.grads.memory[i] * m.grads.memory[i];
    CHECK(square > 1e-6);
    for (size_t i = 0; i < m.grads.count; i++) m.weights.memory[i] -= (float)(h * m.grads.memory[i]);
    CHECK(fabs((before - experience_step(&l, &e, 1, 0)) / (h * square) - 1.0) < 0.05);
    experience_free(&e), tokens_free(&prompt), model_free(&m);
}

static void group_with_the_tool_is_the_whole_text(void) {
    // Two questions with two rollouts each, one of which called the tool. The same loss and gradient must
    // come out when every rollout is written out as a sequence of its own, with its prompt, and the masks are
    // applied by hand: per question -(sum of advantage * logp) / valid tokens, and the mean over the
    // questions.
    enum { B = 2, K = 2 };
    Model m = tiny_model(6), w = tiny_model(6);
    Tokens prompts[B] = {{0}};
    Rollout* rollouts = allocate(B * K, sizeof(Rollout));
    float advantage[B * K] = {0.5f, -0.5f, 0.25f, -0.25f};
    double expected = 0.0;
    for (int q = 0; q < B; q++) render_prompt(&prompts[q], q ? "1+1?" : "20+30, please?");
    for (int i = 0; i < B * K; i++) {
        Tokens script = {0};
        if (i % K == 0) {
            tokens_add(&script, PYTHON_START, 1), add_text(&script, i ? "1+1" : "20+30"),
                tokens_add(&script, PYTHON_END, 1);
        }
        add_text(&script, i % K ? "no idea" : "so"), tokens_add(&script, ASSISTANT_END, 1);
        Rollout* played = play_script(script.ids, script.length);
        rollouts[i] = *played;
        CHECK(used_tool(&rollouts[i]) == (i % K == 0));
        free(played), tokens_free(&script);
    }
    RlOptions o = rl_defaults();
    Learner l = learner_of(&m, NULL, &o);
    Experience e = experience_of(prompts, rollouts, advantage, B, K);
    double loss = experience_step(&l, &e, 1, 0);
    model_zero_grads(&w);
    for (int q = 0; q < B; q++) {
        int valid = 0;
        for (int k = 0; k < K; k++)
            valid += count_masked(rollouts[q * K + k].mask, rollouts[q * K + k].length);
        for (int k = 0; k < K; k++) {
            const Rollout* r = &rollouts[q * K + k];
            Tokens whole = {0};
            Batch b = {0};
            float d[64];
            for (int t = 0; t < prompts[q].length; t++) tokens_add(&whole, prompts[q].ids[t], 0);
            for (int t = 0; t < r->length; t++) tokens_add(&whole, r->ids[t], r->mask[t]);
            batch_add_conversation(&b, &whole);
            model_forward(&w, &b);
            for (int t = 0; t < b.M; t++) {
                d[t] = -advantage[q * K + k] / (float)valid / B;
                expected += (double)d[t] * w.acts.logp[t];
            }
            model_backward(&w, &b, d);
            tokens_free(&whole), batch_free(&b);
        }
    }
    CHECK_NEAR(loss, expected, 1e-6);
    double largest = 0.0, size = 0.0;
    for (size_t i = 0; i < m.grads.count; i++) {
        largest = fmax(largest, fabs((double)(m.grads.memory[i] - w.grads.memory[i])));
        size = fmax(size, fabs((double)w.grads.memory[i]));
    }
    CHECK(size > 1e-3 && largest < 1e-5 * size);
    for (int q = 0; q < B; q++) tokens_free(&prompts[q]);
    experience_free(&e), model_free(&m), model_free(&w);
}

// The loss and every gradient of the group are exactly 0. Takes over the rollouts.
static void check_nothing_is_learned(Model* m, const Tokens* prompt, Rollout* r, const float* advantage,
                                     int K) {
    RlOptions o = rl_defaults();
    Learner l = learner_of(m, NULL, &o);
    Experience e = experience_of(prompt, r, advantage, 1, K);
    double loss = experience_step(&l, &e, 1, 0);
    int nonzero = 0;
    for (size_t i = 0; i < m->grads.count; i++) nonzero += m->grads.memory[i] != 0.0f;
    CHECK(nonzero == 0 && loss == 0.0);
    experience_free(&e);
}

static void copies_are_read_once(void) {
    // Rollouts 0, 2 and 4 are the same, 1 and 3 are others, and 5 has the text of 0 with a token that was
    // forced, not sampled. So four of the six are different, at places 0 1 0 2 0 3; and each of the six has the
    // log-probabilities that it has when it is read alone.
    enum { K = 6, NEW = 5 };
    static const int place_by_hand[K] = {0, 1, 0, 2, 0, 3};
    Model m = tiny_model(3);
    Tokens prompt = {0};
    Rollout *r = some_rollouts(&m, &prompt, K, NEW), distinct[K], all[K];
    for (int k = 0; k < K; k++) all[k] = r[k == 2 || k == 4 ? 0 : k];
    CHECK(all[0].length == NEW && all[5].length == NEW);
    memcpy(all[5].ids, all[0].ids, NEW * sizeof(int));
    all[5].mask[1] = 0;
    int place[K], mask[K * NEW], T1 = longest_rollout(all, K);
    float logp[K * NEW], alone[NEW];
    CHECK(distinct_rollouts(distinct, place, all, K) == 4 && !memcmp(place, place_by_hand, sizeof place));
    read_group(logp, mask, &m, &prompt, all, K, T1);
    for (int k = 0; k < K; k++) {
        score_rollout(alone, &m, &prompt, &all[k]);
        for (int t = 0; t < all[k].length; t++) CHECK(logp[k * T1 + t] == alone[t] && mask[k * T1 + t] == all[k].mask[t]);
    }
    rollouts_free(r, K), tokens_free(&prompt), model_free(&m);
}

static void equal_rewards_contribute_nothing(void) {
    // A group of equal rewards: the gradient stays exactly 0, and so do the weights without weight decay.
    enum { K = 3 };
    Model m = tiny_model(4);
    Tokens prompt = {0};
    Rollout* r = some_rollouts(&m, &prompt, K, 4);
    float reward[K] = {1, 1, 1}, advantage[K];
    advantages_centered(advantage, reward, K);
    CHECK(!has_signal(advantage, K));
    check_nothing_is_learned(&m, &prompt, r, advantage, K);
    tokens_free(&prompt), model_free(&m);
}

static void forced_tokens_have_no_gradient(void) {
    // All tokens forced: nothing is scored, the loss is 0, the gradient exactly 0, and there is no NaN.
    enum { K = 2 };
    Model m = tiny_model(4);
    Tokens prompt = {0};
    Rollout* r = some_rollouts(&m, &prompt, K, 4);
    for (int k = 0; k < K; k++) memset(r[k].mask, 0, (size_t)r[k].length * sizeof(int));
    float advantage[K] = {0.5f, -0.5f};
    check_nothing_is_learned(&m, &prompt, r, advantage, K);
    tokens_free(&prompt), model_free(&m);
}

static void judged_by_the_books(void) {
    // D2's four rollouts through judge_group: rewards 1 1 0 0, advantages +-1/2, three boxes, nobody used the
    // tool.
    static const char* const text[4] = {"\\boxed{83}", "The correct answer is \\boxed{83}",
                                        "The final answer is 83", "We get \\boxed{38}"};
    Rollout* r[4], all[4];
    float reward[4], advantage[4];
    for (int k = 0; k < 4; k++) {
        Tokens t = {0};
        add_text(&t, text[k]);
        r[k] = play_script(t.ids, t.length);
        all[k] = *r[k];
        tokens_free(&t);
    }
    Group g = judge_group(reward, all, 4, "83", find_reward("boxed"));
    advantages_by_kind(advantage, reward, 4, ADVANTAGE_CENTERED);
    CHECK(reward[0] == 1 && reward[1] == 1 && reward[2] == 0 && reward[3] == 0);
    CHECK(advantage[0] == 0.5f && advantage[3] == -0.5f);
    CHECK(g.right == 2 && g.format == 3 && g.tool == 0 && g.reward == 2.0);
    CHECK(g.tokens == (long)(strlen(text[0]) + strlen(text[1]) + strlen(text[2]) + strlen(text[3])));
    for (int k = 0; k < 4; k++) rollouts_free(r[k], 1);
}

// ---- a whole run

// The reward of a random model is 0 everywhere. So that there is a signal, the questions ask for what it
// writes: their answers are such that reward_gsm8k is replaced by the parity of the first token, through
// advantage computed here.
static void one_update(Model* m, Optimizer* optimizer, long step) {
    enum { B = 3, K = 4 };
    Tokens prompts[B] = {{0}};
    float advantage[B * K], reward[K];
    for (int i = 0; i < B; i++) {
        char question[32];
        snprintf(question, sizeof question, "question %d of %ld", i, step);
        render_prompt(&prompts[i], question);
    }
    Rollout* r = generate(m, prompts, B, K, (SampleOptions){9, 1.0f, 50, 1.0f}, tool_calculator, 1,
                          (uint64_t)(step * B));
    for (int i = 0; i < B; i++) {
        for (int k = 0; k < K; k++) reward[k] = (float)(r[i * K + k].ids[0] % 2);
        advantages_centered(advantage + i * K, reward, K);
    }
    RlOptions o = rl_defaults();
    o.lr = 1e-2f, o.init_lr_frac = 1.0f;
    Learner l = learner_of(m, optimizer, &o);
    Experience e = experience_of(prompts, r, advantage, B, K);
    experience_step(&l, &e, 1, 1);
    experience_free(&e);
    for (int i = 0; i < B; i++) tokens_free(&prompts[i]);
}

static void updates_do_not_depend_on_threads(void) {
    Model first = tiny_model(7);
    Optimizer a = optimizer_new(&first.config);
    int before = thread_count();
    set_threads(1);
    for (long s = 0; s < 3; s++) one_update(&first, &a, s);
    for (int threads = 2; threads <= 4; threads *= 2) {
        Model m = tiny_model(7);
        Optimizer o = optimizer_new(&m.config);
        set_threads(threads);
        for (long s = 0; s < 3; s++) one_update(&m, &o, s);
        CHECK(!memcmp(m.weights.memory, first.weights.memory, m.weights.count * sizeof(float)));
        model_free(&m), optimizer_free(&o);
    }
    set_threads(before);
    model_free(&first), optimizer_free(&a);
}

static void learns_what_is_rewarded(void) {
    // "The first token is odd" pays 1. An untrained model does it half of the time; after 60 updates, nearly
    // always.
    Model m = tiny_model(8);
    Optimizer o = optimizer_new(&m.config);
    for (long s = 0; s < 110; s++) one_update(&m, &o, s);
    Tokens prompt = {0};
    render_prompt(&prompt, "question 0 of 99");
    Rollout* r = generate(&m, &prompt, 1, 200, (SampleOptions){1, 1.0f, 50, 1.0f}, NULL, 9, 0);
    int odd = 0;
    for (int i = 0; i < 200; i++) odd += r[i].ids[0] % 2;
    CHECK(odd >= 180);   // 200 fair coins show 180 heads once in 10^33
    rollouts_free(r, 200), tokens_free(&prompt), model_free(&m), optimizer_free(&o);
}

static void resumed_run_is_the_same_run(void) {
    // Four updates at once, against two, a save, and two more: weights and both moments bit for bit. The
    // model must have something to learn: with rewards of 0 all over nothing would move, and all runs would
    // be the same.
    char folder[] = "/tmp/test_rl_XXXXXX", data[PATH_SIZE], one[PATH_SIZE], two[PATH_SIZE];
    if (!mkdtemp(folder)) { CHECK(!"mkdtemp"); return; }
    write_questions(folder);
    join_path(data, folder, "questions.jsonl"), join_path(one, folder, "one"), join_path(two, folder, "two");
    fflush(stdout);
    int screen = dup(1);                             // the tables of the runs are not for here
    if (!freopen("/dev/null", "w", stdout)) fail(1, "cannot open /dev/null");
    Model a = guessing_model(5), b = guessing_model(5), start = guessing_model(5);
    Optimizer oa = optimizer_new(&a.config), ob = optimizer_new(&b.config);
    RlOptions o = small_run(one);
    Option options[RL_OPTIONS] = {{0}};
    o.data = data;
    take_options(options, &o, FOR_TRAIN);
    Learner la = learner_of(&a, &oa, &o);
    CHECK(rl_train(&la, options, 0) == 0);
    RlOptions p = small_run(two);
    p.data = data, p.save_every = 2;
    Option other[RL_OPTIONS] = {{0}};
    take_options(other, &p, FOR_TRAIN);
    Questions q = load_questions(data, b.config.context, p.sample.max_new_tokens);
    int chosen[3];
    Deck deck = deck_new(q.count, p.seed);
    Learner lb = learner_of(&b, &ob, &p);
    for (long step = 0; step < 2; step++) {          // the first half by hand, with the schedule of the whole
        deck_deal(chosen, &deck, step, 3);
        rl_step(&lb, &q, chosen, step, lr_schedule(step, 4, 0, 0.0));
    }
    save_rl(&lb, other, 2);
    Text rows = {0};
    text_printf(&rows, "%s\n0,\n1,\n", METRICS_HEADER);
    write_file(two, "metrics.csv", &rows);
    text_free(&rows);
    Model c = load_model(two);
    Option third[RL_OPTIONS] = {{0}};
    RlOptions s = small_run(two);
    s.num_steps = 99;                                // comes from trainer_state.json instead
    take_options(third, &s, FOR_TRAIN);
    long step = state_from_json(two, "rl", third);
    CHECK(step == 2 && s.num_steps == 4 && !strcmp(s.data, data));
    Optimizer oc = load_optimizer(two, &c.config, step);
    Learner lc = learner_of(&c, &oc, &s);
    CHECK(rl_train(&lc, third, step) == 0 && oc.step == 4);
    fflush(stdout);
    dup2(screen, 1), close(screen);
    CHECK(memcmp(a.weights.memory, start.weights.memory, a.weights.count * sizeof(float)) != 0);
    model_free(&start);
    CHECK(!memcmp(a.weights.memory, c.weights.memory, a.weights.count * sizeof(float)));
    CHECK(!memcmp(oa.first.memory, oc.first.memory, a.weights.count * sizeof(float)));
    CHECK(!memcmp(oa.second.memory, oc.second.memory, a.weights.count * sizeof(float)));
    CHECK(oc.step == oa.step);
    char command[PATH_SIZE + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK(system(command) == 0);
    free(deck.order), questions_free(&q), model_free(&a), model_free(&b), model_free(&c), optimizer_free(&oa),
        optimizer_free(&ob), optimizer_free(&oc);
}

static void every_update_draws_anew(void) {
    // The same questions in updates 0 and 1 get other rollouts; in update 0 once more, the same ones.
    // Learning rate 0.
    char folder[] = "/tmp/test_rl_XXXXXX", data[PATH_SIZE], command[PATH_SIZE + 16];
    if (!mkdtemp(folder)) { CHECK(!"mkdtemp"); return; }
    write_questions(folder);
    join_path(data, folder, "questions.jsonl");
    Model m = guessing_model(5);
    Optimizer o = optimizer_new(&m.config);
    RlOptions options = small_run(folder);
    Questions q = load_questions(data, m.config.context, 12);
    const int chosen[3] = {0, 1, 2};
    Learner l = learner_of(&m, &o, &options);
    Metrics first = rl_step(&l, &q, chosen, 0, 0.0), second = rl_step(&l, &q, chosen, 1, 0.0),
            again = rl_step(&l, &q, chosen, 0, 0.0);
    CHECK(first.entropy != second.entropy && first.entropy == again.entropy && first.reward == again.reward);
    CHECK(first.reward > 0.0 && first.reward < 1.0 && first.format_rate > 0.5 && first.tool_rate == 0.0);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK(system(command) == 0);
    questions_free(&q), model_free(&m), optimizer_free(&o);
}

static void questions_come_in_a_new_order_each_epoch(void) {
    // 10 questions, 3 per update: updates 0..2 and the first of 3 are one epoch, each question once.
    int chosen[3], seen[10] = {0}, again[3];
    Deck deck = deck_new(10, 42), other = deck_new(10, 42);
    for (long step = 0; step < 3; step++) {
        deck_deal(chosen, &deck, step, 3);
        for (int i = 0; i < 3; i++) seen[chosen[i]]++;
    }
    deck_deal(chosen, &deck, 3, 3);
    seen[chosen[0]]++;
    for (int i = 0; i < 10; i++) CHECK(seen[i] == 1);
    deck_deal(again, &other, 3, 3);                          // asked afresh, as after a resume
    CHECK(!memcmp(chosen, again, sizeof again));
    free(deck.order), free(other.order);
}

// ---- evaluation

static void pass_at_k_reference(void) {
    // 1 - C(13,4)/C(16,4) = 1 - 715/1820 = 0.607142857
    CHECK_NEAR(pass_at_k(16, 3, 4), 1.0 - 715.0 / 1820.0, 1e-14);
    CHECK_NEAR(pass_at_k(16, 3, 1), 0.1875, 1e-14);         // D1's group: the mean reward is pass@1
    CHECK(pass_at_k(16, 3, 16) == 1.0 && pass_at_k(16, 0, 8) == 0.0 && pass_at_k(16, 16, 1) == 1.0);
    CHECK_NEAR(pass_at_k(200, 1, 100), 0.5, 1e-13);
    CHECK(pass_at_k(10, 9, 2) == 1.0);
    CHECK(pass_at_k(0, 0, 1) == 0.0 && pass_at_k(4, 2, 0) == 0.0);
    CHECK(pass_at_k(4, 2, 9) == pass_at_k(4, 2, 4) && pass_at_k(4, 9, 1) == 1.0 &&
          pass_at_k(4, -1, 1) == 0.0);
}

static void pass_at_k_is_unbiased(void) {
    // Exactly: sum over c of Binomial(n,c) pass@k = 1 - (1-p)^k, for every k; the shortcut is not.
    for (int k = 1; k <= 8; k++) {
        double good = 0.0, naive = 0.0;
        for (int c = 0; c <= 8; c++) {
            good += binomial(8, c, 0.3) * pass_at_k(8, c, k);
            naive += binomial(8, c, 0.3) * (1 - pow(1 - c / 8.0, k));
        }
        CHECK_NEAR(good, 1 - pow(0.7, k), 1e-13);
        if (k > 1) CHECK(fabs(naive - (1 - pow(0.7, k))) > 1e-3);
    }
}

static void intervals(void) {
    // 3 of 10 questions, one sample each: variance p(1-p) n/(n-1), flips = n - 1 = 9. Wilson for 0.3 of 9:
    // (0.3 + 3.8416/18 +- 1.96 sqrt(0.21/9 + 3.8416/324)) / (1 + 3.8416/9) = (0.51342 +- 0.36761) / 1.42684
    double low, high;
    rate_interval(&low, &high, 0.3, 0.21 * 10 / 9, 10);
    CHECK_NEAR(low, 0.10219, 1e-4);
    CHECK_NEAR(high, 0.61747, 1e-4);
    // all right on 16 questions is no certainty: Wilson's lower end is n / (n + z^2) = 16 / 19.8416
    rate_interval(&low, &high, 1.0, 0.0, 16);
    CHECK_NEAR(low, 16.0 / (16.0 + 1.96 * 1.96), 1e-9);
    CHECK_NEAR(high, 1.0, 1e-9);
    rate_interval(&low, &high, 0.0, 0.0, 16);
    CHECK_NEAR(low, 0.0, 1e-12);
    CHECK_NEAR(high, 1.96 * 1.96 / (16.0 + 1.96 * 1.96), 1e-9);   // the mirror image: z^2 / (n + z^2)
}

static void same_question(void) {
    Problem x[2] = {{(char*)"Tom has 3 pens, and buys 4.", (char*)"7"},
                    {(char*)"Tom has 3 pens and buys 5.", (char*)"8"}};
    Problem y[3] = {{(char*)"tom has 3 pens and  buys 4", (char*)"7"},
                    {(char*)"Ana has 3 pens and buys 5!", (char*)"8"},
                    {(char*)"Ana has 3 pens and buys 6", (char*)"9"}};
    Problems a = {x, 2}, b = {y, 3};
    CHECK(count_overlap(&a, &b, SAME_WORDS) == 1);          // case, space and punctuation do not matter
    // with names reduced, Ana's 3 and 5 is Tom's; "tom" without a capital is no name any more, and 6 is
    // another number
    CHECK(count_overlap(&a, &b, SAME_BUT_NAMES) == 1);
}

static void readable(void) {
    Text t = {0};
    append_readable(
        &t,
        "He has "
        "<|python_start|>1+1<|python_end|><|output_start|>2<|output_end|>2.\n\x1b[2J\xff<|assistant_end|>");
    CHECK_TEXT(t.data, "He has [1+1 -> 2]2.\n\\x1B[2J\\xFF");
    text_free(&t);
}

int main(void) {
    RUN(tool_answers_a_call);
    RUN(tool_is_silent);
    RUN(script_with_tool);
    RUN(group_gradient_is_the_formula);
    RUN(group_with_the_tool_is_the_whole_text);
    RUN(copies_are_read_once);
    RUN(equal_rewards_contribute_nothing);
    RUN(forced_tokens_have_no_gradient);
    RUN(judged_by_the_books);
    RUN(updates_do_not_depend_on_threads);
    RUN(learns_what_is_rewarded);
    RUN(resumed_run_is_the_same_run);
    RUN(every_update_draws_anew);
    RUN(questions_come_in_a_new_order_each_epoch);
    RUN(pass_at_k_reference);
    RUN(pass_at_k_is_unbiased);
    RUN(intervals);
    RUN(same_question);
    RUN(readable);
    return check_failed != 0;
}
