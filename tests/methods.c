// methods.c - what the rows of the table of methods have in common, and what they refuse; every row resumes
// to the bit and does not depend on the number of threads.

#define NARROW "--clip-low=0.1", "--clip-high=0.1"
static void methods_that_are_the_same(void) {
    // After so many updates from the same start the policies of two command lines are the same to the bit,
    // and not where they began.
    static const struct { int updates; const char *a[6], *b[8]; } pairs[] = {
        // (r - mean)/1, token mean, no KL; on-policy the ratio is exactly 1 and -ratio A = -A
        {3, {"--algo=nanochat"}, {"--algo=grpo", "--advantage=centered", "--norm=token", "--beta=0"}},
        // one gradient step per batch: the ratio is exactly 1 for token, sequence and cispo, no clip acts
        {2, {"--algo=rloo"}, {"--algo=rloo", "--ratio=token", NARROW}},
        {2, {"--algo=rloo"}, {"--algo=rloo", "--ratio=sequence", NARROW}},
        {2, {"--algo=rloo"}, {"--algo=rloo", "--ratio=cispo", NARROW}},
        {2, {"--algo=drgrpo"}, {"--algo=drgrpo", "--ratio=none"}},
        // DAPO without its changes is GRPO
        {3, {"--algo=grpo"}, {"--algo=dapo", "--minibatch=0", "--clip-high=0.2", "--resample=0",
                              "--overlong=0", "--norm=sequence", "--beta=0.04"}},
        // gamma = lambda = 1 and V = 0: PPO's first update is that of --advantage none with its average
        {1, {"--algo=ppo", "--gamma=1", "--lambda=1", "--beta=0", "--minibatch=0"},
         {"--algo=reinforce", "--norm=token"}}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        static World x, y;
        start(&x, pairs[i].a);
        start(&y, pairs[i].b);
        Model begun = copy_of_model(&x.setup.policy);
        for (int step = 0; step < pairs[i].updates; step++) {
            Metrics s = update(&x, step), t = update(&y, step);      // a loss's value has no meaning
            CHECK(s.grad_norm == t.grad_norm && s.reward == t.reward && s.grad_norm > 0.0);
        }
        CHECK(same_weights(&x.setup.policy.weights, &y.setup.policy.weights));
        CHECK(!same_weights(&x.setup.policy.weights, &begun.weights));
        model_free(&begun), finish(&x), finish(&y);
    }
}

static void methods_gspo_is_grpo_for_one_token(void) {
    // The mean over one token is the token. Two passes over the same answers: in the second one the ratios
    // have left 1, some are clipped, some not, and the policies stay the same to the bit. With more tokens
    // they part as soon as the ratio is not 1.
    char reward[PATH_SIZE + 32];
    snprintf(reward, sizeof reward, "--reward=model:%s", reward_model_path);
    for (int tokens = 1; tokens <= 6; tokens += 5)
        for (int passes = 1; passes <= 2; passes++) {
            static World x, y;
            const char* often = passes == 1 ? "--epochs-per-batch=1" : "--epochs-per-batch=2";
            const char* length = tokens == 1 ? "--max-new-tokens=1" : "--max-new-tokens=6";
#define HOT "--minibatch=0", "--temperature=3", "--top-k=0", "--beta=0", reward, often, length
            START(&x, "--algo=gspo", HOT);
            START(&y, "--algo=grpo", HOT, "--clip-low=0.03", "--clip-high=0.04");
            Metrics s = update(&x, 0), t = update(&y, 0);
            int same = same_weights(&x.setup.policy.weights, &y.setup.policy.weights);
            CHECK(s.grad_norm > 0.0 && (passes == 1 || s.ratio != 1.0));
            CHECK(same == (tokens == 1 || passes == 1));
            if (same) CHECK(s.grad_norm == t.grad_norm && s.clip_fraction == t.clip_fraction);
            if (tokens == 1 && passes == 2) CHECK(s.clip_fraction > 0.0 && s.clip_fraction < 1.0);
            finish(&x), finish(&y);
        }
}

// ---- what is refused

// `./rl train WORDS`: the options alone; with the models they name.
static World other_world;
static int command_read(int argc, char** argv) {
    read_words(&other_world, (const char* const*)argv);
    return !argc;
}
static int command_set_up(int argc, char** argv) {
    start(&other_world, (const char* const*)argv);
    return !argc;
}

// It is refused with a sentence that has `why` in it; without a `why` it is accepted without a word.
static void check_case(int (*command)(int, char**), const char* why, const char* const* words) {
    const Ran* r = run_command(command, words);
    if (why) REFUSED(r, why);
    else WORKS(r);
    if (!why) CHECK_TEXT(r->err, "");
}

static void methods_decisions_are_refused(void) {
    static const struct { const char *why, *words[6]; } cases[] = {
        // words that are not in the lists
        {"there is no --algo 'trpo'; choose nanochat, reinforce, rloo, grpo, drgrpo, dapo, gspo, cispo or "
         "ppo", {"--algo=trpo"}},
        {"there is no --advantage 'std'; choose none, centered, rloo, grpo or gae", {"--advantage=std"}},
        {"there is no --ratio 'tokens'; choose none, token, sequence or cispo", {"--ratio=tokens"}},
        {"there is no --norm ''; choose token, sequence, sum or constant", {"--norm="}},
        {"there is no --kl-estimator 'k4'; choose k1, k2 or k3", {"--algo=grpo", "--kl-estimator=k4"}},
        {"there is no --kl-in 'both'; choose loss or reward", {"--algo=grpo", "--kl-in=both"}},
        {"there is no --kl-per 'answer'; choose sequence or token", {"--algo=ppo", "--kl-per=answer"}},
        // a group of one has nothing to compare
        {"--advantage centered compares", {"--num-samples=1"}},
        {"--advantage grpo compares", {"--algo=gspo", "--num-samples=1"}},
        {NULL, {"--algo=reinforce", "--num-samples=1"}},
        // more than there is
        {"--minibatch 5 is more than an update's 4 questions", {"--algo=dapo", "--minibatch=5"}},
        {NULL, {"--algo=dapo", "--minibatch=4"}},
        {NULL, {"--algo=dapo", "--examples-per-step=1"}}, // its own 2 is no wish of anybody
        {"--overlong 13 punishes from the first token on: an answer has 12 at most", {"--overlong=13"}},
        {NULL, {"--overlong=12"}},
        // what is drawn again must have nothing to teach
        {"but with --advantage none these have something to teach", {"--algo=reinforce", "--resample=1"}},
        {"but with --advantage gae these", {"--algo=dapo", "--advantage=gae"}},
        {NULL, {"--algo=rloo", "--resample=1"}},
        // a second step without a ratio
        {"with --ratio none each batch", {"--epochs-per-batch=2"}},
        {"with --ratio none each batch", {"--minibatch=2"}},
        {NULL, {"--minibatch=4"}},
        {NULL, {"--minibatch=2", "--ratio=token", "--clip-low=0.2", "--clip-high=0.2"}},
        {NULL, {"--algo=grpo", "--epochs-per-batch=3"}},
        // bounds without a ratio
        {"--clip-low means nothing here: with --ratio none there is no ratio to clip", {"--clip-low=0.2"}},
        {"--clip-high means nothing here", {"--algo=reinforce", "--clip-high=0.2"}},
        {NULL, {"--algo=cispo", "--clip-low=0.5", "--clip-high=0.5"}},
        // the KL term's options without a KL term
        {"--kl-estimator means nothing here: there is no KL term with --beta 0", {"--kl-estimator=k1"}},
        {"--kl-in means nothing here", {"--kl-in=reward"}},
        {"--kl-per means nothing here", {"--kl-per=token"}},
        {NULL, {"--reference=out/sft"}}, // only measured
        {"--kl-per means nothing here: in the loss the KL is averaged as --norm says",
         {"--algo=grpo", "--kl-per=token"}},
        {NULL,
         {"--beta=0.1", "--kl-in=reward", "--kl-per=token", "--kl-estimator=k1", "--reference=out/sft"}},
        // the expected gradient of k1 as a loss is 0: exactly so over the 27 answers in chapter 8
        {"--kl-estimator k1 in the loss pulls nowhere", {"--algo=grpo", "--kl-estimator=k1"}},
        {"--kl-estimator k1 in the loss pulls nowhere", {"--algo=ppo", "--kl-in=loss"}},
        // steps and a value model
        {"--gamma means nothing here: only --advantage gae", {"--gamma=0.9"}},
        {"--lambda means nothing here", {"--algo=grpo", "--lambda=0.9"}},
        {"--value-lr means nothing here", {"--algo=dapo", "--value-lr=0.1"}},
        {"--value-clip means nothing here", {"--value-clip=0"}},
        {NULL, {"--algo=ppo", "--gamma=0.9", "--lambda=0.9", "--value-lr=0.1"}},
        {NULL, {"--algo=ppo", "--epochs-per-batch=2", "--value-clip=0"}},
        {NULL, {"--algo=ppo", "--value-clip=0"}}, // two minibatches: the second has work
        {"--value-clip means nothing here: it holds a value near what it was",
         {"--algo=ppo", "--minibatch=0", "--value-clip=0"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(command_read, cases[i].why, cases[i].words);
    // every row of the table can be used as it is
    for (int i = 0; i < METHODS; i++) check_case(command_read, NULL, (const char*[]){algo_word(i), NULL});
}

static void methods_rewards_and_references_are_refused(void) {
    // by name, or as folder/name where %s stands
    static const struct { const char *why, *option, *name; } cases[] = {
        {NULL, "--reward=gsm8k", ""},
        {NULL, "--reward=boxed", ""},
        {NULL, "--reward=model:%s", "reward_model"},
        {NULL, "--reward=gsm8k+model:%s", "reward_model"},
        {"there is no --reward 'praise'; choose gsm8k, boxed, partial or format", "--reward=praise", ""},
        {"there is no --reward ''", "--reward=", ""},
        {"there is no --reward '+gsm8k'", "--reward=+gsm8k", ""},
        {"there is no --reward 'gsm8k+'", "--reward=gsm8k+", ""},
        {"there is no --reward 'gsm8k+praise'", "--reward=gsm8k+praise", ""},
        {"there is no --reward 'gsm8k+boxed'", "--reward=gsm8k+boxed", ""},
        {"names no directory behind 'model:'", "--reward=model:", ""},
        {"reward_model+model:x'", "--reward=model:%s+model:x", "reward_model"},   // no such folder
        {"reward_model+boxed'", "--reward=model:%s+boxed", "reward_model"},
        {"is a language model, not a reward model", "--reward=model:%s", "model"},
        {"has a vocabulary of 99 tokens", "--reward=model:%s", "other"},
        {"reads 32 tokens; the policy's answers and prompts have up to 96", "--reward=model:%s", "narrow"},
        {"there is no checkpoint directory 'nowhere'", "--reward=model:nowhere", ""},
        {NULL, "--reference=%s", "model"},
        {"holds a reward model", "--reference=%s", "reward_model"},
        {"has a vocabulary of 99 tokens", "--reference=%s", "writer"},
        {"the reference reads 32 tokens, the policy 96", "--reference=%s", "short"},
        {"there is no model", "--reference=nowhere", ""},
        {"holds a reward model", "--model-tag=%s", "reward_model"},
    };
    save_model(in_folder("other"), (Config){99, 96, 1, 16, 2, 1, 8, 24, 1, 10000.0f, 1e-6f, 1});
    save_model(in_folder("narrow"), (Config){VOCAB_SIZE, 32, 1, 16, 2, 1, 8, 24, 1, 10000.0f, 1e-6f, 1});
    save_model(in_folder("writer"), (Config){99, 96, 1, 16, 2, 1, 8, 24, 1, 10000.0f, 1e-6f, 0});
    save_model(in_folder("short"), (Config){VOCAB_SIZE, 32, 1, 16, 2, 1, 8, 24, 1, 10000.0f, 1e-6f, 0});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char word[PATH_SIZE + 64];
        snprintf(word, sizeof word, cases[i].option, in_folder(cases[i].name));
        check_case(command_set_up, cases[i].why, (const char*[]){"--algo=grpo", word, NULL});
    }
}

#define SMALL "--num-steps=4", "--examples-per-step=4", "--num-samples=4", "--max-new-tokens=12", \
              "--eval-every=0", "--threads=1"
static void methods_a_reward_that_is_no_number_is_refused(void) {
    // A reward model whose score overflows: +-3e38 times sixteen numbers. Rollout and question are named; no
    // checkpoint is left, and metrics.csv has its head and no half line.
    char reward[PATH_SIZE + 32];
    snprintf(reward, sizeof reward, "--reward=gsm8k+model:%s", in_folder("loud"));
    Model m = load_model(reward_model_path);
    for (int i = 0; i < 16; i++) {
        m.weights.score[i] = 3e38f;
        m.weights.norm[i] = 1e4f;
    }
    put_model(in_folder("loud"), &m);
    model_free(&m);
    const Ran* r = COMMAND(command_train, option("model-tag", "model"), option("data", "questions.jsonl"),
                           option("out", "loud_out"), SMALL, "--algo=nanochat", reward, "--save-every=1");
    REFUSED(r, "error: the reward model's score ");
    SAYS(r->err, "is not a number for rollout 1 of the question: ", "?");
    CHECK(!file_exists(in_folder("loud_out/model.safetensors")));
    CHECK(!file_exists(in_folder("loud_out/trainer_state.json")));
    Text csv = read_file(in_folder("loud_out/metrics.csv"));
    CHECK(!strncmp(csv.data, "step,", 5) && strchr(csv.data, '\n') == csv.data + csv.length - 1);
    text_free(&csv);
}

// ---- whole runs of every method

static void every_method_resumes(void) {
    // Four updates at once against one that is stopped in the second and goes on: policy, value model and all
    // moments, to the bit. The model must have something to learn: with rewards of 0 all over nothing would
    // move.
    static const char* const files[] = {"model.safetensors", "optimizer.safetensors", "value.safetensors",
                                        "value_optimizer.safetensors"};
    for (int i = 0; i < METHODS; i++) {
        int count = !strcmp(methods[i].advantage, "gae") ? 4 : 2;
        for (int stop = 0; stop <= 2; stop += 2) {
            press_at = stop;
            const Ran* r = COMMAND(command_train, algo_word(i), option("model-tag", "model"),
                                   option("data", "questions.jsonl"), option("out", stop ? "parts" : "whole"),
                                   SMALL, "--lr=0.01", "--init-lr-frac=1", "--overlong=0", "--overwrite");
            press_at = 0;
            CHECK(r->status == (stop ? 130 : 0));
        }
        for (int resumed = 0; resumed < 2; resumed++) {
            if (resumed) WORKS(COMMAND(command_train, option("resume", "parts"), "--threads=1"));
            for (int k = 0; k < count; k++)
                CHECK(shell("cmp -s whole/%s parts/%s", files[k], files[k]) == resumed);
        }
        CHECK(file_exists(in_folder("whole/value.safetensors")) == (count == 4));
    }
}

static int same_moments(const Optimizer* a, const Optimizer* b) {
    return a->step == b->step && same_weights(&a->first, &b->first) && same_weights(&a->second, &b->second);
}

static void no_method_depends_on_threads(void) {
    // Two updates of every method, as its row says and with all questions in one gradient step: weights and
    // log.
    for (int i = 0; i < 2 * METHODS; i++) {
        static World w[5];
        const char* all = i % 2 ? "--minibatch=0" : "--log-every=100";
        if (i % 2 && !methods[i / 2].minibatch) continue;
        Metrics first = {0}, s = {0};
        for (int threads = 1; threads <= 4; threads++) {
            set_threads(threads);
            START(&w[threads], algo_word(i / 2), all);
            for (long step = 0; step < 2; step++) s = update(&w[threads], step);
            if (threads == 1) first = s;
            first.seconds = s.seconds;
            first.tokens_per_second = s.tokens_per_second;
            CHECK(!memcmp(&s, &first, sizeof s));
            const Setup *x = &w[threads].setup, *y = &w[1].setup;
            CHECK(same_weights(&x->policy.weights, &y->policy.weights));
            CHECK(same_moments(&x->optimizer, &y->optimizer));
            if (!x->learner.value) continue;
            CHECK(x->value.weights.score[0] != 0.0f && same_weights(&x->value.weights, &y->value.weights));
            CHECK(same_moments(&x->value_optimizer, &y->value_optimizer));
        }
        for (int threads = 1; threads <= 4; threads++) finish(&w[threads]);
    }
    set_threads(1);
}

static void test_methods(void) {
    make_models();
    RUN_ALL(TEST(methods_that_are_the_same), TEST(methods_gspo_is_grpo_for_one_token),
            TEST(methods_decisions_are_refused), TEST(methods_rewards_and_references_are_refused),
            TEST(methods_a_reward_that_is_no_number_is_refused), TEST(every_method_resumes),
            TEST(no_method_depends_on_threads));
    remove_folder();
}
