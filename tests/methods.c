// methods.c - what the rows of the table of methods have in common, and what they refuse; every row resumes
// to the bit and does not depend on the number of threads.

// After `updates` updates from the same start the policies of two command lines are the same to the bit, and
// not where they began.
#define SAME(updates, a, b) check_same(updates, (const char*[]){a, NULL}, (const char*[]){b, NULL})
#define WORDS_OF(...)       __VA_ARGS__
static void check_same(int updates, const char* const* a, const char* const* b) {
    static World x, y;
    start(&x, a);
    start(&y, b);
    Model begun = load_model(model_path);
    for (int step = 0; step < updates; step++) {
        Metrics s = update(&x, step), t = update(&y, step);
        CHECK(s.grad_norm == t.grad_norm && s.reward == t.reward &&
              s.grad_norm > 0.0); // a loss's value has no meaning
    }
    CHECK(same_weights(&x.setup.policy.weights, &y.setup.policy.weights));
    CHECK(!same_weights(&x.setup.policy.weights, &begun.weights));
    model_free(&begun), finish(&x), finish(&y);
}

static void methods_grpo_without_std_and_kl_is_nanochat(void) {
    // (r - mean)/1, token mean, no KL; on-policy the ratio is exactly 1 and -ratio A = -A
    SAME(3, "--algo=nanochat", WORDS_OF("--algo=grpo", "--advantage=centered", "--norm=token", "--beta=0"));
}

static void methods_clip_does_nothing_on_policy(void) {
    // One gradient step per batch: all four ratios are exactly 1, for token, sequence and cispo alike.
    static const char* const ratio[] = {"--ratio=token", "--ratio=sequence", "--ratio=cispo"};
    for (int i = 0; i < 3; i++)
        SAME(2, WORDS_OF("--algo=rloo"),
             WORDS_OF("--algo=rloo", ratio[i], "--clip-low=0.1", "--clip-high=0.1"));
    SAME(2, WORDS_OF("--algo=drgrpo"), WORDS_OF("--algo=drgrpo", "--ratio=none"));
}

static void methods_dapo_without_its_changes_is_grpo(void) {
    SAME(3, "--algo=grpo",
         WORDS_OF("--algo=dapo", "--minibatch=0", "--clip-high=0.2", "--resample=0", "--overlong=0",
                  "--norm=sequence", "--beta=0.04"));
}

static void methods_ppo_without_a_value_is_reinforce(void) {
    // gamma = lambda = 1 and V = 0: the first update is that of --advantage none with PPO's average, to the
    // bit.
    SAME(1, WORDS_OF("--algo=ppo", "--gamma=1", "--lambda=1", "--beta=0", "--minibatch=0"),
         WORDS_OF("--algo=reinforce", "--norm=token"));
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
            const char *often = passes == 1 ? "--epochs-per-batch=1" : "--epochs-per-batch=2",
                       *length = tokens == 1 ? "--max-new-tokens=1" : "--max-new-tokens=6";
            START(&x, "--algo=gspo", "--minibatch=0", "--temperature=3", "--top-k=0", reward, often, length);
            START(&y, "--algo=grpo", "--minibatch=0", "--temperature=3", "--top-k=0", reward, often, length,
                  "--beta=0", "--clip-low=0.03", "--clip-high=0.04");
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

// `./rl train WORDS`: the options alone; with the models they name; or the whole run.
static int with_words(World* w, int argc, char** argv, void (*what)(World*, const char* const*)) {
    const char* words[WORDS] = {0};
    memcpy(words, argv, (size_t)argc * sizeof *words);
    what(w, words);
    return 0;
}
static World other_world;
static int command_read(int argc, char** argv) { return with_words(&other_world, argc, argv, read_words); }
static int command_set_up(int argc, char** argv) { return with_words(&other_world, argc, argv, start); }
static int command_train_into(int argc, char** argv) {
    with_words(&other_world, argc, argv, start);
    other_world.o.out = argv[0] + strlen("--out=");
    return rl_train(&other_world.setup.learner, other_world.options, 0);
}

// It is refused with a sentence that has `why` in it; without a `why` it is accepted without a word.
static void check_case(int (*command)(int, char**), const char* why, const char* const* words) {
    const Ran* r = run_command(command, words);
    if (why) REFUSED(r, why);
    else if (r->status || *r->err) {
        check_broken++;
        printf("  %s ...: status %d: %s\n", words[0], r->status, r->err);
    }
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
        {"--advantage rloo compares", {"--algo=rloo", "--num-samples=1"}},
        {"--advantage grpo compares", {"--algo=gspo", "--num-samples=1"}},
        {NULL, {"--algo=reinforce", "--num-samples=1"}},
        {NULL, {"--algo=ppo", "--num-samples=1"}},
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
        {"--kl-in means nothing here", {"--algo=grpo", "--beta=0", "--kl-in=reward"}},
        {"--kl-per means nothing here", {"--kl-per=token"}},
        {NULL, {"--reference=out/sft"}}, // only measured
        {"--kl-per means nothing here: in the loss the KL is averaged as --norm says",
         {"--algo=grpo", "--kl-per=token"}},
        {NULL,
         {"--beta=0.1", "--kl-in=reward", "--kl-per=token", "--kl-estimator=k1", "--reference=out/sft"}},
        {NULL, {"--algo=ppo", "--kl-per=token"}},
        // the expected gradient of k1 as a loss is 0: exactly so over the 27 answers in chapter 8
        {"--kl-estimator k1 in the loss pulls nowhere", {"--algo=grpo", "--kl-estimator=k1"}},
        {"--kl-estimator k1 in the loss pulls nowhere", {"--algo=ppo", "--kl-in=loss"}},
        {NULL, {"--algo=grpo", "--kl-estimator=k2"}},
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
        {NULL, {"--advantage=gae", "--gamma=0.9"}},
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

static void methods_a_reward_that_is_no_number_is_refused(void) {
    // A reward model whose score overflows: +-3e38 times sixteen numbers. Rollout and question are named; no
    // checkpoint is left, and metrics.csv has its head and no half line.
    char out[PATH_SIZE + 8], reward[PATH_SIZE + 32];
    snprintf(out, sizeof out, "--out=%s", in_folder("loud_out"));
    snprintf(reward, sizeof reward, "--reward=gsm8k+model:%s", in_folder("loud"));
    Model m = model_new((Config){VOCAB_SIZE, 96, 1, 16, 2, 1, 8, 24, 1, 10000.0f, 1e-6f, 1});
    model_init(&m, 3);
    for (int i = 0; i < 16; i++) m.weights.score[i] = 3e38f;
    for (int i = 0; i < 16; i++) m.weights.norm[i] = 1e4f;
    put_model(in_folder("loud"), &m);
    model_free(&m);
    const Ran* r = COMMAND(command_train_into, out, "--algo=nanochat", reward, "--save-every=1");
    REFUSED(r, "error: the reward model's score ");
    SAYS(r->err, "is not a number for rollout 1 of the question: ");
    SAYS(r->err, "?");
    static const char* const files[] = {"loud_out/model.safetensors", "loud_out/config.json",
                                        "loud_out/trainer_state.json", "loud_out/optimizer.safetensors"};
    for (int i = 0; i < 4; i++) CHECK(!file_exists(in_folder(files[i])));
    Text csv = read_file(in_folder("loud_out/metrics.csv")), header = {0};
    text_printf(&header, "step");
    for (int i = 0; rl_columns[i].name; i++) text_printf(&header, ",%s", rl_columns[i].name);
    text_printf(&header, "\n");
    CHECK_TEXT(csv.data, header.data);
    text_free(&csv), text_free(&header);
}

// ---- whole runs of every method

static int same_moments(const Optimizer* a, const Optimizer* b) {
    return a->step == b->step && same_weights(&a->first, &b->first) && same_weights(&a->second, &b->second);
}

static void every_method_resumes(void) {
    // Four updates at once against two, a save, and two more: policy, value model and all moments bit for
    // bit. The model must have something to learn: with rewards of 0 all over nothing would move, and all
    // runs would be the same.
    for (int i = 0; i < METHODS; i++) {
        static World a, b, c;
        char one[PATH_SIZE], two[PATH_SIZE];
        snprintf(one, sizeof one, "%s/one_%d", folder, i);
        snprintf(two, sizeof two, "%s/two_%d", folder, i);
        int screen = mute();
        START(&a, algo_word(i));
        START(&b, algo_word(i));
        a.o.out = one;
        b.o.out = two;
        CHECK(rl_train(&a.setup.learner, a.options, 0) == 0);
        int chosen[QUESTIONS];
        Learner* half = &b.setup.learner;
        Run run = run_begin(two, 0, rl_columns, 0, 4, 100, 0);
        while (run.step < 2) {           // the first half by hand, with the schedule of the whole
            deal_examples(chosen, QUESTIONS, run.step, b.q.count, b.o.seed);
            Metrics s = rl_step(half, b.group, &b.q, chosen, run.step, lr_schedule(run.step, 4, 0, 0.0));
            run_record(&run, half->policy, half->value, &s);
        }
        fclose(run.metrics);
        close(run.lock);
        save_run(two, "rl", b.options, 2, half->policy, half->optimizer, half->value, half->value_optimizer);
        READ(&c, "--log-every=100"); // everything else comes from trainer_state.json
        c.o.num_steps = 99;
        c.o.resume = c.o.out = two;
        long step = state_from_json(two, "rl", c.options);
        CHECK(step == 2 && c.o.num_steps == 4 && !strcmp(c.o.data, data_path));
        CHECK(!strcmp(c.o.algo, methods[i].name) && c.o.beta == methods[i].beta);
        setup_load(&c.setup, &c.o, step);
        CHECK(rl_train(&c.setup.learner, c.options, step) == 0);
        unmute(screen);
        const Setup *x = &a.setup, *y = &c.setup;
        Model begun = load_model(model_path);
        CHECK(!same_weights(&begun.weights, &x->policy.weights));
        CHECK(!same_weights(&b.setup.policy.weights, &x->policy.weights));
        CHECK(same_weights(&x->policy.weights, &y->policy.weights));
        CHECK(same_moments(&x->optimizer, &y->optimizer));
        CHECK((x->learner.value != NULL) == !strcmp(methods[i].advantage, "gae"));
        if (x->learner.value) {
            CHECK(x->value.weights.score[0] != 0.0f && same_weights(&x->value.weights, &y->value.weights));
            CHECK(same_moments(&x->value_optimizer, &y->value_optimizer));
        }
        model_free(&begun), finish(&a), finish(&b), setup_free(&c.setup);
    }
}

static void no_method_depends_on_threads(void) {
    // Two updates of every method, as its row says and with all questions in one gradient step: weights and
    // log the same to the bit.
    for (int i = 0; i < METHODS; i++)
        for (int whole = 0; whole < 2; whole++) {
            static World first, w;
            const char* all = whole ? "--minibatch=0" : "--log-every=100";
            if (whole && !methods[i].minibatch) continue;
            set_threads(1);
            START(&first, algo_word(i), all);
            Metrics expected = {0}, s = {0};
            for (long step = 0; step < 2; step++) expected = update(&first, step);
            for (int threads = 2; threads <= 4; threads++) {
                set_threads(threads);
                START(&w, algo_word(i), all);
                for (long step = 0; step < 2; step++) s = update(&w, step);
                expected.seconds = s.seconds;
                expected.tokens_per_second = s.tokens_per_second;
                CHECK(!memcmp(&s, &expected, sizeof s));
                CHECK(same_weights(&w.setup.policy.weights, &first.setup.policy.weights));
                if (w.setup.learner.value)
                    CHECK(same_weights(&w.setup.value.weights, &first.setup.value.weights));
                finish(&w);
            }
            finish(&first);
        }
    set_threads(1);
}

static void test_methods(void) {
    make_models();
    RUN_ALL(TEST(methods_grpo_without_std_and_kl_is_nanochat), TEST(methods_clip_does_nothing_on_policy),
            TEST(methods_dapo_without_its_changes_is_grpo), TEST(methods_ppo_without_a_value_is_reinforce),
            TEST(methods_gspo_is_grpo_for_one_token), TEST(methods_decisions_are_refused),
            TEST(methods_rewards_and_references_are_refused),
            TEST(methods_a_reward_that_is_no_number_is_refused), TEST(every_method_resumes),
            TEST(no_method_depends_on_threads));
    remove_folder();
}
