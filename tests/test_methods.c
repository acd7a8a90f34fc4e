// Chapters 9 and 10: the methods. Every loss by hand, what must be equal between methods, the KL term,
// drawing again, the log, and what is refused. Each expectation has its reason above it.
#define _XOPEN_SOURCE 700
#define _DARWIN_C_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// fail() ends the process that a test has made: at once, with the text written, and without a search for
// leaks.
_Noreturn static void end_here(int status) {
    fflush(NULL);
    _exit(status);
}
#define exit(status) end_here(status)
#include "chapters.h"
#undef exit
#include "guessing.h"

// ---- the losses by hand

static void gspo_by_hand(void) {
    // Two answers; NaN stands where nothing may be read.
    //   answer 0, A = 2, tokens 0 and 1: log-ratios 0.3 and 0.1, mean 0.2, s = exp(0.2) = 1.221402758, inside
    //   0.5 .. 1.3
    //       loss -s A / B = -1.221402758        each token: -s A / (B * 2) = -0.610701379
    //   answer 1, A = 2, token 2 only: log-ratio 0.5, s = 1.648721271, above 1.3, and A asks for more:
    //   clipped
    //       loss -1.3 A / B = -1.3              each token: 0
    // Note that token 0 alone (ratio 1.35) would have been clipped by PPO. Here the answer is judged as a
    // whole.
    const float logp[6] = {-1.0f, -2.0f, NAN, NAN, NAN, -0.5f}, old[6] = {-1.3f, -2.1f, NAN, NAN, NAN, -1.0f};
    const int mask[6] = {1, 1, 0, 0, 0, 1};
    const float adv[2] = {2, 2}, against[2] = {-2, -2};
    float d[6] = {9, 9, 9, 9, 9, 9};
    CHECK_NEAR(loss_gspo(d, logp, old, adv, mask, 2, 3, 0.5f, 0.3f), -1.221402758 - 1.3, 1e-6);
    CHECK_NEAR(d[0], -0.610701379, 1e-6);
    CHECK_NEAR(d[1], -0.610701379, 1e-6);
    CHECK(d[2] == 0 && d[3] == 0 && d[4] == 0 && d[5] == 0);
    // A = -2: a ratio that is too high is the worse one, and it is corrected, not clipped:
    //     loss +s A' / B = 1.221402758 + 1.648721271; d[5] = 1.648721271 * 2 / (2 * 1)
    CHECK_NEAR(loss_gspo(d, logp, old, against, mask, 2, 3, 0.5f, 0.3f), 1.221402758 + 1.648721271, 1e-6);
    CHECK_NEAR(d[0], 0.610701379, 1e-6);
    CHECK_NEAR(d[5], 1.648721271, 1e-6);
    // the other way round (s = exp(-0.2) = 0.818730753, below 0.9) with A = -2: clipped, loss 0.9 * 2 / 2
    CHECK_NEAR(loss_gspo(d, old, logp, against, mask, 1, 3, 0.1f, 0.3f), 0.9 * 2, 1e-6);
    CHECK(d[0] == 0 && d[1] == 0);
}

static void cispo_by_hand(void) {
    // One answer of 4 places, A = 2, bounds 0.5 .. 1.28, token mean over 3: weight 1/3.
    //   ratio 1.2   inside       weight of the token 1.2     d = -1.2 * 2 / 3  = -0.8
    //   ratio 2     held at 1.28                              d = -1.28 * 2 / 3 = -0.853333  (PPO: 0)
    //   masked
    //   ratio 0.25  held at 0.5                               d = -0.5 * 2 / 3  = -0.333333
    // loss = -(2/3) (1.2 * -1 + 1.28 * -2 + 0.5 * -3) = (2/3) * 5.26 = 3.506667
    const float logp[4] = {-1, -2, NAN, -3};
    const float old[4] = {-1 - 0.182321557f, -2 - 0.693147181f, NAN, -3 + 1.386294361f};
    const int mask[4] = {1, 1, 0, 1};
    const float adv[1] = {2}, against[1] = {-2};
    float d[4] = {9, 9, 9, 9};
    CHECK_NEAR(loss_cispo(d, logp, old, adv, mask, 1, 4, 0.5f, 0.28f, NORM_TOKEN_MEAN), 3.506666667, 1e-6);
    CHECK_NEAR(d[0], -0.8, 1e-6);
    CHECK_NEAR(d[1], -0.853333333, 1e-6);
    CHECK(d[2] == 0);
    CHECK_NEAR(d[3], -0.333333333, 1e-6);
    // no sign of A ever switches a token off; sum over the sequence: three times as much
    loss_cispo(d, logp, old, against, mask, 1, 4, 0.5f, 0.28f, NORM_SEQUENCE_SUM);
    CHECK_NEAR(d[0], 2.4, 1e-6);
    CHECK_NEAR(d[1], 2.56, 1e-6);
    CHECK_NEAR(d[3], 1.0, 1e-6);
}

static void value_by_hand(void) {
    // V, V_old, target; clip 0.2; token mean over 4 of 5 places, weight 1/4:
    //   0.5  0.4  1.0   moved by 0.1, inside:                        1/2 0.5^2 = 0.125     d = -0.5 / 4
    //   0.9  0.4  1.0   moved by 0.5, held at 0.6: 1/2 0.4^2 = 0.08 > 1/2 0.1^2 = 0.005    d = 0 (clipped)
    //   0.9  0.4  0.0   held at 0.6: 0.18 < 1/2 0.9^2 = 0.405: the error itself counts     d = +0.9 / 4
    //  -0.5  0.4  0.3   moved by -0.9, held at 0.2: 0.005 < 0.32                           d = -0.8 / 4
    // loss = (0.125 + 0.08 + 0.405 + 0.32) / 4 = 0.2325
    const float value[5] = {0.5f, 0.9f, 0.9f, NAN, -0.5f}, old[5] = {0.4f, 0.4f, 0.4f, NAN, 0.4f};
    const float target[5] = {1.0f, 1.0f, 0.0f, NAN, 0.3f};
    const int mask[5] = {1, 1, 1, 0, 1};
    float d[5] = {9, 9, 9, 9, 9};
    CHECK_NEAR(loss_value(d, value, old, target, mask, 1, 5, 0.2f, NORM_TOKEN_MEAN), 0.2325, 1e-6);
    CHECK_NEAR(d[0], -0.125, 1e-6);
    CHECK(d[1] == 0 && d[3] == 0);
    CHECK_NEAR(d[2], 0.225, 1e-6);
    CHECK_NEAR(d[4], -0.2, 1e-6);
    // downwards past the bound: V 0.1, V_old 0.4, target 0: held at 0.2, 0.02 > 0.005, clipped
    const float v1[1] = {0.1f}, o1[1] = {0.4f}, t1[1] = {0.0f};
    CHECK_NEAR(loss_value(d, v1, o1, t1, mask, 1, 1, 0.2f, NORM_TOKEN_MEAN), 0.02, 1e-6);
    CHECK(d[0] == 0);
    // clip 0: the plain squared error, (0.125 + 0.005 + 0.405 + 0.32) / 4; the second token learns again
    CHECK_NEAR(loss_value(d, value, old, target, mask, 1, 5, 0.0f, NORM_TOKEN_MEAN), 0.21375, 1e-6);
    CHECK_NEAR(d[1], -0.025, 1e-6);
    // targets are per token: in the second row of two they are the second row's. 1/2 2^2 / 2 = 1
    const float v2[2] = {1, 5}, t2[2] = {1, 3};
    CHECK_NEAR(loss_value(d, v2, v2, t2, mask, 2, 1, 0.2f, NORM_SEQUENCE_MEAN), 1.0, 1e-6);
    CHECK(d[0] == 0);
    CHECK_NEAR(d[1], 1.0, 1e-6);
}

static void the_constant_norm_by_hand(void) {
    // Dr. GRPO: 1 / (K * longest possible answer). Two answers of two tokens and of one, limit 50, ratio 1, A
    // = 1 and -3: loss = -(1 + 1 - 3) / (2 * 50) = 0.01; each derivative is -A / 100. The KL is averaged
    // alike: k1 of log-ratios 0.5, 0.25 and 1 is 1.75 / 100, times beta 2: 0.035, and 2 / 100 for each token.
    RlOptions o = rl_defaults();
    set_method(&o, "drgrpo");
    o.sample.max_new_tokens = 50, o.beta = 2, o.kl_estimator = "k1";
    Learner l = learner_new(NULL, NULL, (Reward){0}, &o);
    const float logp[4] = {-1, -2, -3, NAN}, ref[4] = {-1.5f, -2.25f, -4, NAN}, adv[4] = {1, 1, -3, NAN};
    const int mask[4] = {1, 1, 1, 0};
    float d[4] = {9, 9, 9, 9};
    LossArrays a = {
        .logp = logp, .logp_other = logp, .advantage = adv, .mask = mask, .B = 2, .T1 = 2, .per_token = 1};
    CHECK_NEAR(policy_loss(d, &l, &a), 0.01, 1e-8);
    CHECK_NEAR(d[0], -0.01, 1e-8);
    CHECK_NEAR(d[1], -0.01, 1e-8);
    CHECK_NEAR(d[2], 0.03, 1e-8);
    CHECK(d[3] == 0.0f);
    CHECK_NEAR(add_kl_loss(d, &l, &a, ref), 0.035, 1e-8);
    CHECK_NEAR(d[0], 0.01, 1e-8);
    CHECK_NEAR(d[2], 0.05, 1e-8);
    CHECK(d[3] == 0.0f);
}

static void one_example_through_every_row(void) {
    // Rewards 1 and 0, two tokens and one; the ratios are 1.25, 1.3 and 0.9; answers have 10 tokens at most.
    //   advantage   centered +-0.5;  rloo +-1;  none 1, 0;  grpo 0.5 / sqrt(0.5) = +-0.707107;  gae: +-0.5
    //   average     token 1/3;   sequence 1/4, 1/4, 1/2;   sum 1/2;   constant 1/20
    // grpo, drgrpo, ppo: 1.25 and 1.3 are above 1.2, silent; 0.9 x 0.707107 / 2, 0.9 x 0.5 / 20 or / 3
    // dapo: 1.25 is below 1.28: -1.25 x 0.707107 / 3; cispo: 1.3 counts as 1.28: -1.28 x 0.707107 / 3
    // gspo: exp(mean log) = 1.2748 is above 1.04 and 0.9 below 0.97: nothing is left
    static const struct {
        const char* name;
        double d[3];
    } rows[] = {
        {"nanochat", {-0.166667, -0.166667, 0.166667}},
        {"reinforce", {-0.5, -0.5, 0}},
        {"rloo", {-0.5, -0.5, 0.5}},
        {"grpo", {0, 0, 0.318198}},
        {"drgrpo", {0, 0, 0.0225}},
        {"dapo", {-0.294628, 0, 0.212132}},
        {"gspo", {0, 0, 0}},
        {"cispo", {-0.294628, -0.301699, 0.212132}},
        {"ppo", {0, 0, 0.15}},
    };
    const float logp[4] = {-1, -2, -1.5f, NAN}, reward[2] = {1, 0};
    const float old[4] = {-1 - 0.223143551f, -2 - 0.262364264f, -1.5f + 0.105360516f, NAN};
    const int mask[4] = {1, 1, 1, 0};
    CHECK(METHODS == sizeof rows / sizeof *rows);
    for (int i = 0; i < METHODS; i++) {
        RlOptions o = rl_defaults();
        set_method(&o, rows[i].name);
        o.sample.max_new_tokens = 10;
        Learner l = learner_new(NULL, NULL, (Reward){0}, &o);
        float adv[2] = {0.5f, -0.5f}, d[4];
        advantages_by_kind(adv, reward, 2, l.advantage);
        LossArrays a = {logp, old, adv, mask, 2, 2, 0, l.ratio == RATIO_SEQUENCE};
        policy_loss(d, &l, &a);
        for (int t = 0; t < 3; t++) CHECK_NEAR(d[t], rows[i].d[t], 2e-6);
        // a KL term: grpo k3 in the loss, ppo k1 in the reward; only dapo draws again and shortens
        int grpo = !strcmp(o.algo, "grpo"), ppo = !strcmp(o.algo, "ppo"), dapo = !strcmp(o.algo, "dapo");
        CHECK((o.beta > 0.0f) == (grpo || ppo) && l.kl_in_reward == ppo && l.estimator == (ppo ? 1 : 3));
        CHECK((o.resample > 0) == dapo && (o.overlong > 0) == dapo);
    }
}

static void nothing_to_average(void) {
    // B or T1 of 0: loss 0, nothing written. Everything masked: loss 0, gradient 0, and no NaN of 0/0.
    const float x[2] = {NAN, NAN}, adv[1] = {1};
    const int mask[2] = {0, 0};
    float d[2] = {9, 9};
    CHECK(loss_gspo(d, x, x, adv, mask, 0, 2, 0.2f, 0.2f) == 0 &&
          loss_gspo(d, x, x, adv, mask, 1, 0, 0.2f, 0.2f) == 0);
    CHECK(loss_cispo(d, x, x, adv, mask, 0, 2, 0.2f, 0.2f, NORM_TOKEN_MEAN) == 0);
    CHECK(loss_value(d, x, x, x, mask, 1, 0, 0.2f, NORM_TOKEN_MEAN) == 0);
    CHECK(d[0] == 9 && d[1] == 9);
    CHECK(loss_gspo(d, x, x, adv, mask, 1, 2, 0.2f, 0.2f) == 0 && d[0] == 0 && d[1] == 0);
    d[0] = d[1] = 9;
    CHECK(loss_cispo(d, x, x, adv, mask, 1, 2, 0.2f, 0.2f, NORM_SEQUENCE_MEAN) == 0 && d[0] == 0 &&
          d[1] == 0);
    d[0] = d[1] = 9;
    CHECK(loss_value(d, x, x, x, mask, 1, 2, 0.2f, NORM_SEQUENCE_SUM) == 0 && d[0] == 0 && d[1] == 0);
    // an unknown norm: NaN, gradient 0
    const float y[2] = {-1, -1};
    const int all[2] = {1, 1};
    CHECK(isnan(loss_cispo(d, y, y, adv, all, 1, 2, 0.2f, 0.2f, 7)) && d[0] == 0 && d[1] == 0);
    CHECK(isnan(loss_value(d, y, y, y, all, 1, 2, 0.2f, -1)) && d[0] == 0 && d[1] == 0);
}

// ---- a run as the command line makes it

static char folder[] = "/tmp/test_methods_XXXXXX";
static char data_path[PATH_SIZE], model_path[PATH_SIZE], judge_path[PATH_SIZE];

// The options, models and questions of one run; the learner points into it, so it stays where it is.
typedef struct {
    RlOptions o;
    Option options[RL_OPTIONS];
    Setup setup;
    Questions q;
} World;

enum { QUESTIONS = 4, SAMPLES = 4, NEW_TOKENS = 12, WORDS = 24 };

// What `./rl train WORDS` decides, with sizes for a test where the words say nothing else.
#define READ(w, ...) read_words(w, (const char*[]){__VA_ARGS__, NULL})
static void read_words(World* w, const char* const* words) {
    char *argv[WORDS], usual[8][PATH_SIZE + 16];
    int argc = 0;
    *w = (World){.o = rl_defaults()};
    snprintf(usual[0], sizeof usual[0], "--model-tag=%s", model_path),
        snprintf(usual[1], sizeof usual[1], "--data=%s", data_path);
    for (const char* const* word = words; *word; word++) argv[argc++] = (char*)*word;
    w->o.num_samples = SAMPLES, w->o.examples_per_step = QUESTIONS, w->o.sample.max_new_tokens = NEW_TOKENS;
    w->o.num_steps = 4, w->o.eval_every = 0, w->o.log_every = 100, w->o.lr = 1e-2f, w->o.init_lr_frac = 1.0f,
    w->o.value_lr = 1e-2f;
    w->o.model = model_path, w->o.data = data_path, w->o.out = folder;
    take_options(w->options, &w->o, FOR_TRAIN);
    set_method(&w->o, asked_algo(argc, argv));
    if (w->o.minibatch) w->o.minibatch = QUESTIONS / 2, w->o.overlong = min_int(w->o.overlong, 4);
    parse_options(w->options, argc, argv, NULL, 0);
    check_method(&w->o, w->options);
}

#define START(w, ...) start(w, (const char*[]){__VA_ARGS__, NULL})
static void start(World* w, const char* const* words) {
    read_words(w, words);
    setup_load(&w->setup, &w->o, 0);
    w->q = load_questions(data_path, w->setup.policy.config.context, w->o.sample.max_new_tokens);
}

static void finish(World* w) { questions_free(&w->q), setup_free(&w->setup); }

static const int first_questions[QUESTIONS] = {0, 1, 2, 3};

static Metrics update(World* w, long step) {
    return rl_step(&w->setup.learner, &w->q, first_questions, step, 1.0);
}
static Experience experience(World* w, long step) {
    return collect(&w->setup.learner, &w->q, first_questions, step);
}

static int same_weights(const Weights* a, const Weights* b) {
    return !memcmp(a->memory, b->memory, a->count * sizeof(float));
}

static const char* algo_word(int method) {
    static char word[METHODS][32];
    snprintf(word[method], sizeof word[method], "--algo=%s", methods[method].name);
    return word[method];
}

// A reference that is not the policy: its weights, each a little off.
static void disturb(Model* m, double size) {
    Rng rng = {77};
    for (size_t i = 0; i < m->weights.count; i++)
        m->weights.memory[i] *= (float)(1.0 + size * random_normal(&rng));
}

// ---- what must be equal

// After `updates` updates from the same start the policies of two command lines are the same to the bit, and
// not where they began.
#define SAME(updates, a, b) check_same(updates, (const char*[]){a, NULL}, (const char*[]){b, NULL})
#define WORDS_OF(...)       __VA_ARGS__
static void check_same(int updates, const char* const* a, const char* const* b) {
    static World x, y;
    start(&x, a), start(&y, b);
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

static void grpo_without_std_and_kl_is_nanochat(void) {
    // (r - mean)/1, token mean, no KL; on-policy the ratio is exactly 1 and -ratio A = -A
    SAME(3, "--algo=nanochat", WORDS_OF("--algo=grpo", "--advantage=centered", "--norm=token", "--beta=0"));
}

static void clip_does_nothing_on_policy(void) {
    // One gradient step per batch: all four ratios are exactly 1, for token, sequence and cispo alike.
    static const char* const ratio[] = {"--ratio=token", "--ratio=sequence", "--ratio=cispo"};
    for (int i = 0; i < 3; i++)
        SAME(2, WORDS_OF("--algo=rloo"),
             WORDS_OF("--algo=rloo", ratio[i], "--clip-low=0.1", "--clip-high=0.1"));
    SAME(2, WORDS_OF("--algo=drgrpo"), WORDS_OF("--algo=drgrpo", "--ratio=none"));
}

static void dapo_without_its_changes_is_grpo(void) {
    SAME(3, "--algo=grpo",
         WORDS_OF("--algo=dapo", "--minibatch=0", "--clip-high=0.2", "--resample=0", "--overlong=0",
                  "--norm=sequence", "--beta=0.04"));
}

static void rloo_is_a_multiple_of_centered(void) {
    // r - mean of the others = K/(K-1) (r - mean): with 4 answers 4/3 of the gradient, before it is clipped
    static World x, y;
    START(&x, "--algo=rloo"), START(&y, "--algo=rloo", "--advantage=centered");
    Experience a = experience(&x, 0), b = experience(&y, 0);
    weigh(&a, &x.setup.learner), weigh(&b, &y.setup.learner);
    experience_step(&x.setup.learner, &a, 1, 0), experience_step(&y.setup.learner, &b, 1, 0);
    const float *g = x.setup.policy.grads.memory, *h = y.setup.policy.grads.memory;
    double largest = 0.0, off = 0.0;
    for (size_t i = 0; i < x.setup.policy.grads.count; i++) {
        largest = fmax(largest, fabs((double)g[i]));
        off = fmax(off, fabs(g[i] - 4.0 / 3.0 * h[i]));
    }
    CHECK(largest > 1e-3 && off < 1e-5 * largest);
    experience_free(&a), experience_free(&b), finish(&x), finish(&y);
}

static void ppo_without_a_value_is_reinforce(void) {
    // gamma = lambda = 1 and V = 0: the advantage of every sampled token is the whole reward that is still to
    // come, which is the answer's reward. So the first update is that of --advantage none with PPO's average,
    // to the bit.
    static World w;
    START(&w, "--algo=ppo", "--gamma=1", "--lambda=1", "--beta=0");
    CHECK(w.setup.learner.value && !w.setup.learner.reference);
    Experience e = experience(&w, 0);
    weigh(&e, &w.setup.learner);
    experience_step(&w.setup.learner, &e, 1, 0);
    double paid = 0.0;
    for (int i = 0; i < e.B * e.K; i++)
        for (int t = 0; t < e.T1; t++) {
            CHECK(e.value[i * e.T1 + t] == 0.0f);
            CHECK(e.advantage[i * e.T1 + t] == (e.mask[i * e.T1 + t] ? e.reward[i] : 0.0f));
            CHECK(e.target[i * e.T1 + t] == e.advantage[i * e.T1 + t]);
            paid += e.advantage[i * e.T1 + t];
        }
    CHECK(paid > 0.0);
    experience_free(&e), finish(&w);
    SAME(1, WORDS_OF("--algo=ppo", "--gamma=1", "--lambda=1", "--beta=0", "--minibatch=0"),
         WORDS_OF("--algo=reinforce", "--norm=token"));
}

// K one-token answers to two questions, with advantages of both signs and log-probs of an older policy:
// ratios 0.5 to 2
static Experience drifted(World* w, int new_tokens, double size) {
    Tokens prompts[2] = {{0}};
    float advantage[2 * SAMPLES] = {0.7f, -1.1f, 0.4f, -0.2f, 1.3f, -0.6f, -0.9f, 0.5f};
    prompts[0] = w->q.list[0].prompt, prompts[1] = w->q.list[1].prompt;
    Rollout* r = generate(&w->setup.policy, prompts, 2, SAMPLES, (SampleOptions){new_tokens, 1.0f, 0, 1.0f},
                          NULL, 3, 0);
    Experience e = experience_of(prompts, r, advantage, 2, SAMPLES);
    for (int i = 0; i < 2 * SAMPLES * e.T1; i++)
        if (e.mask[i]) e.logp_old[i] += (float)(size * sin(1.0 + 2.1 * i));
    return e;
}

static void gspo_is_grpo_for_one_token(void) {
    // The mean over one token is the token. With ratios from exp(-0.5) to exp(0.5) some are clipped, some
    // not.
    static World x, y;
    START(&x, "--algo=gspo"), START(&y, "--algo=grpo", "--beta=0", "--clip-low=0.03", "--clip-high=0.04");
    for (int off = 0; off < 2; off++) {
        Experience e = drifted(&x, 1, off ? 0.5 : 0.0);
        CHECK(e.T1 == 1);
        double a = experience_step(&x.setup.learner, &e, 1, 0),
               b = experience_step(&y.setup.learner, &e, 1, 0);
        CHECK(a == b && a != 0.0 && same_weights(&x.setup.policy.grads, &y.setup.policy.grads));
        experience_free(&e);
        // and with more tokens it is something else, as soon as the ratio is not 1
        e = drifted(&x, 6, off ? 0.5 : 0.0);
        a = experience_step(&x.setup.learner, &e, 1, 0), b = experience_step(&y.setup.learner, &e, 1, 0);
        CHECK(same_weights(&x.setup.policy.grads, &y.setup.policy.grads) == !off);
        experience_free(&e);
    }
    finish(&x), finish(&y);
}

// ---- the KL term

// The reference's log-probabilities in an experience are those of every answer as a sequence of its own.
static void check_reference(World* w, const Experience* e) {
    float logp[NEW_TOKENS + EXPRESSION_SIZE];
    for (int i = 0; i < e->B * e->K; i++) {
        score_rollout(logp, w->setup.learner.reference, &e->prompts[i / e->K], &e->rollouts[i]);
        for (int t = 0; t < e->rollouts[i].length; t++) CHECK_NEAR(e->logp_ref[i * e->T1 + t], logp[t], 1e-5);
    }
}

static void kl_in_the_reward_is_a_sum(void) {
    // Token t is charged beta k1_t = beta (logp_t - logp_ref_t), the last sampled one also has the reward, so
    // the sum over the answer is reward - beta sum k1. --kl-per token divides the charge by the answer's
    // tokens. k1 of the estimators: beta 0.5.
    for (int per_token = 0; per_token < 2; per_token++) {
        static World w;
        START(&w, "--algo=grpo", "--advantage=centered", "--beta=0.5", "--kl-in=reward", "--kl-estimator=k1",
              per_token ? "--kl-per=token" : "--kl-per=sequence");
        disturb(&w.setup.reference, 0.05);
        Experience e = experience(&w, 0);
        weigh(&e, &w.setup.learner);
        check_reference(&w, &e);
        double kl = 0.0, size = 0.0;
        for (int i = 0; i < e.B; i++) {
            double total[SAMPLES], mean = 0.0;
            for (int k = 0; k < e.K; k++) {
                const Rollout* r = &e.rollouts[i * e.K + k];
                const float *charged = e.token_reward + (i * e.K + k) * e.T1,
                            *ref = e.logp_ref + (i * e.K + k) * e.T1;
                double k1 = 0.0, sum = 0.0;
                int n = count_masked(r->mask, r->length);
                for (int t = 0; t < r->length; t++) {
                    if (!r->mask[t]) {
                        CHECK(charged[t] == 0.0f);
                        continue;
                    }
                    double one = (double)r->logp[t] - ref[t];
                    k1 += one, kl += one, size += fabs(one);
                    CHECK_NEAR(charged[t],
                               -0.5 * one / (per_token ? n : 1) +
                                   (t == r->length - 1 ? e.reward[i * e.K + k] : 0.0),
                               1e-6);
                }
                for (int t = 0; t < e.T1; t++) {
                    size_t at = (size_t)(i * e.K + k) * (size_t)e.T1 + (size_t)t;
                    sum += charged[t];
                    if (!e.mask[at]) CHECK(e.advantage[at] == 0.0f);
                }
                total[k] = e.reward[i * e.K + k] - 0.5 * k1 / (per_token ? n : 1);
                CHECK_NEAR(sum, total[k], 1e-5);
                mean += total[k] / e.K;
            }
            // the advantage is that of the charged rewards
            for (int k = 0; k < e.K; k++)
                CHECK_NEAR(e.advantage[(i * e.K + k) * e.T1], total[k] - mean, 1e-5);
        }
        CHECK(size > 0.1);
        // the penalty is in the advantage, and nowhere else: the loss does not look at the reference again
        double with = experience_step(&w.setup.learner, &e, 1, 0);
        w.setup.learner.reference = NULL;
        CHECK(experience_step(&w.setup.learner, &e, 1, 0) == with);
        w.setup.learner.reference = &w.setup.reference;
        CHECK_NEAR(e.kl_ref, kl / (e.B * e.K), 1e-5); // logged: k1, nats per answer, mean over the answers
        experience_free(&e), finish(&w);
    }
}

static void other_estimators_in_the_reward(void) {
    // k2 = x^2/2 and k3 = exp(-x) - 1 + x of x = logp - logp_ref
    for (int k = 2; k <= 3; k++) {
        static World w;
        START(&w, "--algo=rloo", "--beta=0.5", "--kl-in=reward",
              k == 2 ? "--kl-estimator=k2" : "--kl-estimator=k3");
        disturb(&w.setup.reference, 0.05);
        Experience e = experience(&w, 0);
        weigh(&e, &w.setup.learner);
        double x = (double)e.logp_old[0] - e.logp_ref[0];
        CHECK(e.rollouts[0].length > 1); // so token 0 has no reward of the answer
        CHECK_NEAR(e.token_reward[0], -0.5 * (k == 2 ? x * x / 2 : exp(-x) - 1 + x), 1e-6);
        experience_free(&e), finish(&w);
    }
}

static void gae_keeps_the_penalty_at_its_token(void) {
    // lambda = 0, V = 0: the advantage of a token is its own reward: the penalty alone, and at the end the
    // answer's reward too.
    static World w;
    START(&w, "--algo=ppo", "--lambda=0", "--beta=0.5");
    disturb(&w.setup.reference, 0.05);
    Experience e = experience(&w, 0);
    weigh(&e, &w.setup.learner);
    for (int i = 0; i < e.B * e.K * e.T1; i++)
        CHECK(e.advantage[i] == 0.0f); // none before the value model has spoken
    experience_step(&w.setup.learner, &e, 1, 0);
    for (int i = 0; i < e.B * e.K; i++)
        for (int t = 0; t < e.rollouts[i].length; t++) {
            size_t at = (size_t)(i * e.T1 + t);
            double penalty = e.mask[at] ? -0.5 * ((double)e.logp_old[at] - e.logp_ref[at]) : 0.0;
            CHECK_NEAR(e.advantage[at], penalty + (t == e.rollouts[i].length - 1 ? e.reward[i] : 0.0), 1e-6);
        }
    experience_free(&e), finish(&w);
}

static void value_model_learns_what_came_after(void) {
    // The target is V + A, so before the first step the error of each token is A, and the loss of a question
    // is the mean of A^2 / 2 over its tokens, divided by the questions. Moving along the gradient by h
    // changes the sum by h |g|^2. With first = 0 advantages, targets and old values stay.
    static World w;
    START(&w, "--algo=ppo", "--beta=0", "--lambda=0.5", "--gamma=0.9");
    w.o.value_clip = 0.0f;
    Model* value = &w.setup.value;
    for (int c = 0; c < 16; c++) value->weights.score[c] = 0.1f * (float)sin(1.0 + c);
    Experience e = experience(&w, 0);
    weigh(&e, &w.setup.learner);
    double loss[QUESTIONS] = {0}, before = 0.0, after = 0.0, square = 0.0, h = 1e-4, size = 0.0;
    UpdateTask u = {&e, &w.setup.learner, 0, QUESTIONS, 1, NULL, loss, NULL};
    model_zero_grads(value);
    run_tasks(value, QUESTIONS, 1, value_backward, &u);
    for (int i = 0; i < QUESTIONS; i++) {
        double sum = 0.0, tokens = 0.0;
        for (int j = i * e.K * e.T1; j < (i + 1) * e.K * e.T1; j++) {
            if (!e.mask[j]) {
                CHECK(e.advantage[j] == 0.0f);
                continue;
            }
            CHECK_NEAR(e.target[j], e.advantage[j] + e.value[j], 1e-6);
            sum += 0.5 * e.advantage[j] * e.advantage[j], tokens++, size += fabs((double)e.value[j]);
        }
        CHECK_NEAR(loss[i], sum / tokens / QUESTIONS, 1e-6);
        before += loss[i];
    }
    CHECK(size > 1.0);
    // the last token of an answer has nothing behind it: A = r - V
    for (int i = 0; i < e.B * e.K; i++) {
        int last = i * e.T1 + e.rollouts[i].length - 1;
        CHECK_NEAR(e.advantage[last], e.reward[i] - e.value[last], 1e-6);
    }
    float kept[3] = {e.advantage[0], e.target[0], e.value[0]};
    for (size_t i = 0; i < value->grads.count; i++)
        square += (double)value->grads.memory[i] * value->grads.memory[i];
    for (size_t i = 0; i < value->grads.count; i++)
        value->weights.memory[i] -= (float)(h * value->grads.memory[i]);
    u.first = 0;
    run_tasks(value, QUESTIONS, 1, value_backward, &u);
    for (int i = 0; i < QUESTIONS; i++) after += loss[i];
    CHECK(square > 1e-4 && fabs((before - after) / (h * square) - 1.0) < 0.05);
    CHECK(e.advantage[0] == kept[0] && e.target[0] == kept[1] && e.value[0] == kept[2]);
    experience_free(&e), finish(&w);
}

static void value_model_has_its_rate_and_its_clip(void) {
    // The schedule's factor goes for both models: at 0 neither moves, at 1 both do. Two passes: value_clip
    // holds the second one near the values of the first, so it matters then, and only then.
    static World w, v;
    START(&w, "--algo=ppo", "--beta=0");
    Model begun = scalar_model_on(&w.setup.policy);
    rl_step(&w.setup.learner, &w.q, first_questions, 0, 0.0);
    CHECK(same_weights(&w.setup.value.weights, &begun.weights));
    Metrics s = rl_step(&w.setup.learner, &w.q, first_questions, 1, 1.0);
    CHECK(!same_weights(&w.setup.value.weights, &begun.weights) && s.value_loss > 0.0);
    finish(&w);
    for (int passes = 1; passes <= 2; passes++) {
        const char* often = passes == 1 ? "--epochs-per-batch=1" : "--epochs-per-batch=2";
        START(&w, "--algo=ppo", "--beta=0", often), START(&v, "--algo=ppo", "--beta=0", often);
        w.o.value_clip = 0.0001f, v.o.value_clip = 0.0f;
        update(&w, 0), update(&v, 0);
        CHECK(same_weights(&w.setup.value.weights, &v.setup.value.weights) == (passes == 1));
        finish(&w), finish(&v);
    }
    // a gradient that is too long is cut to --grad-clip
    START(&w, "--algo=ppo", "--beta=0", "--grad-clip=0.001");
    update(&w, 0);
    double square = 0.0;
    for (size_t i = 0; i < w.setup.value.grads.count; i++) square += pow(w.setup.value.grads.memory[i], 2);
    CHECK_NEAR(sqrt(square), 0.001, 1e-6);
    finish(&w), model_free(&begun);
}

static void a_minibatch_is_a_batch_of_its_own(void) {
    // Questions 2 and 3 of four, as a minibatch and as all there is: the same loss and gradient, bit for bit.
    static World w;
    START(&w, "--algo=drgrpo", "--norm=token", "--advantage=none");
    Learner* l = &w.setup.learner;
    Experience e = experience(&w, 0);
    weigh(&e, l);
    double loss[QUESTIONS] = {0};
    Drift drift[QUESTIONS] = {{0}};
    UpdateTask u = {&e, l, 2, 2, 1, loss, NULL, drift};
    model_zero_grads(l->policy);
    run_tasks(l->policy, 2, 1, group_backward, &u);
    CHECK(loss[0] == 0.0 && loss[1] == 0.0 && drift[0].tokens == 0.0 &&
          drift[2].tokens + drift[3].tokens > 0.0);
    Model kept = model_new(l->policy->config);
    model_zero_grads(&kept);
    memcpy(kept.grads.memory, l->policy->grads.memory, kept.grads.count * sizeof(float));
    Experience half = e; // the second half of its arrays
    size_t n = (size_t)(2 * e.K * e.T1);
    half.B = 2, half.prompts += 2, half.rollouts += 2 * e.K;
    half.mask += n, half.logp_old += n, half.logp_ref += n, half.advantage += n;
    CHECK_NEAR(experience_step(l, &half, 1, 0), loss[2] + loss[3], 1e-12);
    CHECK(same_weights(&kept.grads, &l->policy->grads) && loss[2] + loss[3] != 0.0);
    experience_free(&e), model_free(&kept), finish(&w);
}

static void forced_tokens_are_no_steps(void) {
    // Tokens 1 and 2 are the tool's. Rewards 0.1 at token 0, 1 at token 3; V = 0.5 and 0.25; gamma 0.5,
    // lambda 0.5:
    //   last:  1 - 0.25 = 0.75       first: 0.1 + 0.5 * 0.25 - 0.5 + 0.5 * 0.5 * 0.75 = -0.275 + 0.1875 =
    //   -0.0875
    const float reward[4] = {0.1f, 7, 7, 1}, value[4] = {0.5f, 9, 9, 0.25f};
    const int mask[4] = {1, 0, 0, 1};
    float advantage[4] = {5, 5, 5, 5};
    gae_of_sampled(advantage, reward, value, mask, 4, 0.5f, 0.5f);
    CHECK_NEAR(advantage[0], -0.0875, 1e-6);
    CHECK_NEAR(advantage[3], 0.75, 1e-6);
    CHECK(advantage[1] == 0.0f && advantage[2] == 0.0f);
}

static void kl_in_the_loss_adds_its_gradient(void) {
    // A group with advantage 0 is silent: without a reference no loss and no gradient. With beta = 0.1 its
    // loss is 0.1 x loss_kl, averaged as the norm says, and the gradient is that of loss_kl, sent back by
    // hand.
    static const char* const norm[] = {"--norm=token", "--norm=sequence", "--norm=sum", "--norm=constant"};
    static const int kind[] = {NORM_TOKEN_MEAN, NORM_SEQUENCE_MEAN, NORM_SEQUENCE_SUM, NORM_SEQUENCE_SUM};
    for (int i = 0; i < 4; i++) {
        static World w;
        START(&w, "--algo=grpo", "--beta=0.1", norm[i]);
        disturb(&w.setup.reference, 0.05);
        Experience e = experience(&w, 0);
        e.B = 1; // one question is enough
        weigh(&e, &w.setup.learner);
        memset(e.advantage, 0, (size_t)(e.K * e.T1) * sizeof(float));
        double loss = experience_step(&w.setup.learner, &e, 1, 0), scale = i == 3 ? 0.1 / NEW_TOKENS : 0.1;
        Model by_hand = load_model(model_path);
        Batch b = {0};
        float *logp = allocate((size_t)(e.K * e.T1), sizeof(float)),
              *d = allocate((size_t)(e.K * e.T1), sizeof(float));
        batch_add_group(&b, &e.prompts[0], e.rollouts, e.K);
        model_forward(&by_hand, &b);
        scatter_scored(logp, e.mask, by_hand.acts.logp, e.rollouts, e.K, e.T1);
        double kl = loss_kl(d, logp, e.logp_ref, e.mask, e.K, e.T1, kind[i], 3);
        CHECK(kl > 1e-4);
        CHECK_NEAR(loss / (scale * kl), 1.0, 1e-6);
        int scored = 0;
        for (int j = 0; j < e.K * e.T1; j++)
            if (e.mask[j]) d[scored++] = (float)scale * d[j];
        model_zero_grads(&by_hand);
        model_backward(&by_hand, &b, d);
        double largest = 0.0, off = 0.0;
        for (size_t j = 0; j < by_hand.grads.count; j++) {
            largest = fmax(largest, fabs((double)by_hand.grads.memory[j]));
            off = fmax(off, fabs((double)(by_hand.grads.memory[j] - w.setup.policy.grads.memory[j])));
        }
        CHECK(largest > 1e-6 && off <= 1e-5 * largest);
        // the same group at a price of 0: nothing
        w.o.beta = 0;
        CHECK(experience_step(&w.setup.learner, &e, 1, 0) == 0.0);
        for (size_t j = 0; j < w.setup.policy.grads.count; j++)
            if (w.setup.policy.grads.memory[j] != 0.0f) {
                CHECK(!"a gradient");
                break;
            }
        e.B = QUESTIONS;
        free(logp), free(d), batch_free(&b), model_free(&by_hand), experience_free(&e), finish(&w);
    }
}

static void kl_in_the_loss_is_added(void) {
    // Any group: loss with beta = loss without + beta loss_kl. The policy's part does not change.
    static World w, v;
    START(&w, "--algo=grpo", "--advantage=none", "--norm=token", "--beta=0.1");
    START(&v, "--algo=grpo", "--advantage=none", "--norm=token", "--beta=0");
    disturb(&w.setup.reference, 0.1);
    CHECK(w.setup.reference.frozen && !v.setup.learner.reference); // beta 0 loads none
    Experience e = experience(&w, 0);
    weigh(&e, &w.setup.learner);
    for (int i = 0; i < e.B * e.K; i++) { // the reward is not charged as well
        double sum = 0.0;
        for (int t = 0; t < e.T1; t++) sum += e.token_reward[i * e.T1 + t];
        CHECK(sum == e.reward[i]);
    }
    double with = experience_step(&w.setup.learner, &e, 1, 0),
           without = experience_step(&v.setup.learner, &e, 1, 0), kl = 0.0;
    float* d = allocate((size_t)(e.K * e.T1), sizeof(float));
    for (int i = 0; i < e.B; i++) {
        size_t at = (size_t)(i * e.K * e.T1);
        kl += loss_kl(d, e.logp_old + at, e.logp_ref + at, e.mask + at, e.K, e.T1, NORM_TOKEN_MEAN, 3) / e.B;
    }
    CHECK_NEAR(with - without, 0.1 * kl, 1e-7);
    CHECK(kl > 1e-3 && fabs(without) > 1e-3);
    free(d), experience_free(&e), finish(&w), finish(&v);
}

static void distance_to_oneself_is_nothing(void) {
    // At the start the reference is the policy, and decoding and training agree to the bit: KL exactly 0, in
    // the log and in eval.
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
        float logp[NEW_TOKENS];
        score_rollout(logp, &w.setup.reference, &prompts[i / SAMPLES], &r[i]);
        for (int t = 0; t < r[i].length; t++)
            if (r[i].mask[t]) {
                double x = (double)r[i].logp[t] - logp[t];
                kl += x, nats -= r[i].logp[t], tokens++;
            }
    }
    CHECK(e.kl != 0.0);
    CHECK_NEAR(e.kl, kl / (2 * SAMPLES), 1e-6);
    CHECK_NEAR(e.entropy, nats / tokens, 1e-6); // nats per sampled token
    evaluation_free(&e);
    e = evaluate_model(m, &w.q, 2, SAMPLES, w.o.sample, &reward_kinds[0], m, 5);
    CHECK(e.kl == 0.0);
    evaluation_free(&e), rollouts_free(r, 2 * SAMPLES), finish(&w);
}

// ---- the reward

static void overlong_answers_pay(void) {
    // Limit 100, window 20: nothing up to 80 tokens, then 1/20 per token, -1 at the limit.
    CHECK(overlong_penalty(0, 100, 20) == 0.0f && overlong_penalty(80, 100, 20) == 0.0f);
    CHECK_NEAR(overlong_penalty(81, 100, 20), -0.05, 1e-7);
    CHECK_NEAR(overlong_penalty(95, 100, 20), -0.75, 1e-7);
    CHECK(overlong_penalty(100, 100, 20) == -1.0f);
    CHECK(overlong_penalty(100, 100, 0) == 0.0f); // no window, no penalty
    CHECK(overlong_penalty(1, 1, 1) == -1.0f);
    // and in a run: each reward is the verifier's 0 or 1 plus the penalty of its length
    static World w;
    START(&w, "--algo=nanochat", "--overlong=8");
    Experience e = experience(&w, 0);
    int punished = 0;
    for (int i = 0; i < e.B; i++) {
        double sum = 0.0;
        for (int k = 0; k < e.K; k++) {
            const Rollout* r = &e.rollouts[i * e.K + k];
            float penalty = overlong_penalty(r->length, NEW_TOKENS, 8),
                  verdict = e.reward[i * e.K + k] - penalty;
            Text text = rollout_text(r);
            CHECK_NEAR(verdict, reward_gsm8k(text.data, w.q.list[e.question[i]].truth), 1e-6);
            punished += penalty < 0.0f, sum += e.reward[i * e.K + k];
            text_free(&text);
        }
        CHECK_NEAR(e.group[i].reward, sum, 1e-6);
    }
    CHECK(punished > 0);
    experience_free(&e), finish(&w);
}

static void score_group_is_the_whole_text(void) {
    // The score of an answer is the scalar at the last token of prompt + answer, read as one sequence.
    static World w;
    char reward[PATH_SIZE + 32];
    snprintf(reward, sizeof reward, "--reward=model:%s", judge_path);
    START(&w, "--algo=nanochat", reward);
    Model* judge = &w.setup.judge;
    CHECK(w.setup.learner.reward.model == judge && !w.setup.learner.reward.verified);
    Experience e = experience(&w, 0);
    double spread = 0.0;
    for (int i = 0; i < e.B * e.K; i++) {
        const Rollout* r = &e.rollouts[i];
        const Tokens* prompt = &e.prompts[i / e.K];
        Tokens whole = {0};
        Batch b = {0};
        int targets[128];
        for (int t = 0; t < prompt->length; t++) tokens_add(&whole, prompt->ids[t], 0);
        for (int t = 0; t < r->length; t++) tokens_add(&whole, r->ids[t], 1);
        for (int t = 0; t < whole.length; t++) targets[t] = t == whole.length - 1 ? 0 : -1;
        batch_add(&b, whole.ids, targets, whole.length, -1);
        model_scalar_forward(judge, &b);
        CHECK_NEAR(e.reward[i], judge->acts.scalar[0], 1e-5);
        spread = fmax(spread, fabs((double)(e.reward[i] - e.reward[0])));
        tokens_free(&whole), batch_free(&b);
    }
    CHECK(spread > 1e-3);
    experience_free(&e), finish(&w);
    // gsm8k+model: the verdict is added; `right` counts verdicts in both cases
    static World v;
    snprintf(reward, sizeof reward, "--reward=gsm8k+model:%s", judge_path);
    START(&v, "--algo=nanochat", reward), START(&w, "--algo=nanochat", reward + 0);
    w.setup.learner.reward.verified = 0;
    Experience both = experience(&v, 0), one = experience(&w, 0);
    int right = 0;
    for (int i = 0; i < both.B * both.K; i++) {
        float verdict = both.reward[i] - one.reward[i];
        CHECK(fabsf(verdict) < 1e-5f || fabsf(verdict - 1.0f) < 1e-5f);
        right += verdict > 0.5f;
    }
    int counted = 0, counted_one = 0;
    for (int i = 0; i < both.B; i++) counted += both.group[i].right, counted_one += one.group[i].right;
    CHECK(right > 0 && counted == right && counted_one == right);
    experience_free(&both), experience_free(&one), finish(&v), finish(&w);
}

static void a_frozen_model_says_the_same(void) {
    // Three layers in the arrays of one: log-probabilities and scores bit for bit, also for a second batch.
    for (int scalar = 0; scalar < 2; scalar++) {
        Config c = {VOCAB_SIZE, 96, 3, 16, 2, 1, 8, 24, 1, 10000.0f, 1e-6f, scalar};
        Model m = model_new(c), frozen = model_new(c);
        model_init(&m, 9);
        for (int i = 0; scalar && i < c.width; i++) m.weights.score[i] = (float)i - 7.5f;
        memcpy(frozen.weights.memory, m.weights.memory, m.weights.count * sizeof(float));
        frozen.frozen = 1;
        Tokens prompt = {0};
        render_prompt(&prompt, "2+2?");
        Tokens script = {0};
        tokens_add_text(&script, "four of them", 12, 1), tokens_add(&script, ASSISTANT_END, 1);
        Rollout* r = play_script(script.ids, script.length);
        for (int twice = 0; twice < 2; twice++) {
            Batch b = {0};
            batch_add_group(&b, &prompt, r, 1), batch_add_group(&b, &prompt, r, twice);
            if (scalar) model_scalar_forward(&m, &b), model_scalar_forward(&frozen, &b);
            else model_forward(&m, &b), model_forward(&frozen, &b);
            const float *said = scalar ? m.acts.scalar : m.acts.logp,
                        *found = scalar ? frozen.acts.scalar : frozen.acts.logp;
            CHECK(b.M >= 13 && said[0] != 0.0f && !memcmp(said, found, (size_t)b.M * sizeof(float)));
            batch_free(&b);
        }
        rollouts_free(r, 1), tokens_free(&prompt), tokens_free(&script), model_free(&m), model_free(&frozen);
    }
}

static void value_model_begins_at_zero(void) {
    Model policy = load_model(model_path), value = scalar_model_on(&policy);
    size_t body = policy.weights.count - head_count(&policy.config);
    CHECK(value.config.scalar == 1 && value.weights.count == body + (size_t)policy.config.width);
    CHECK(!memcmp(value.weights.memory, policy.weights.memory, body * sizeof(float)));
    for (int c = 0; c < policy.config.width; c++) CHECK(value.weights.score[c] == 0.0f);
    const int ids[3] = {'a', 'b', 'c'}, targets[3] = {0, 0, 0};
    Batch b = {0};
    batch_add(&b, ids, targets, 3, -1);
    model_scalar_forward(&value, &b);
    CHECK(value.acts.scalar[0] == 0.0f && value.acts.scalar[2] == 0.0f);
    model_free(&policy), model_free(&value);
    // a policy whose unembedding is its own: the head is left behind, the body taken
    Config untied = {VOCAB_SIZE, 96, 1, 16, 2, 1, 8, 24, 0, 10000.0f, 1e-6f, 0};
    policy = model_new(untied), model_init(&policy, 4), value = scalar_model_on(&policy);
    CHECK(!memcmp(value.weights.memory, policy.weights.memory,
                  (policy.weights.count - (size_t)VOCAB_SIZE * 16) * sizeof(float)));
    CHECK(value.weights.score[0] == 0.0f && value.weights.score[15] == 0.0f);
    model_free(&policy), model_free(&value), batch_free(&b);
}

// ---- drawing again

static int same_rollout(const Rollout* a, const Rollout* b) {
    return a->length == b->length && !memcmp(a->ids, b->ids, (size_t)a->length * sizeof(int)) &&
           !memcmp(a->logp, b->logp, (size_t)a->length * sizeof(float));
}

static int same_experience(const Experience* a, const Experience* b) {
    int same = a->resampled == b->resampled && a->T1 == b->T1 &&
               !memcmp(a->question, b->question, (size_t)a->B * sizeof(int));
    for (int i = 0; i < a->B * a->K; i++)
        same = same && same_rollout(&a->rollouts[i], &b->rollouts[i]) && a->reward[i] == b->reward[i];
    return same;
}

static void silent_groups_are_drawn_again(void) {
    // Two answers to a question: equal rewards happen often. Against the same update without --resample: a
    // group with signal is untouched, a silent one has other answers, each to its question; the count is the
    // number of silent groups.
    static World plain, again, thrice;
    START(&plain, "--num-samples=2"), START(&again, "--num-samples=2", "--resample=1"),
        START(&thrice, "--num-samples=2", "--resample=50");
    int replaced = 0, kept = 0, fresh = 0;
    for (long step = 0; step < 4; step++) {
        Experience a = experience(&plain, step), b = experience(&again, step), c = experience(&again, step),
                   d = experience(&thrice, step);
        int silent = 0, left = 0;
        for (int i = 0; i < a.B; i++) {
            int was_silent = a.reward[2 * i] == a.reward[2 * i + 1];
            int same = a.question[i] == b.question[i] &&
                       same_rollout(&a.rollouts[2 * i], &b.rollouts[2 * i]) &&
                       same_rollout(&a.rollouts[2 * i + 1], &b.rollouts[2 * i + 1]);
            CHECK(was_silent || same);
            fresh += !same; // chance may draw the same once more, but not often
            CHECK(b.prompts[i].ids == again.q.list[b.question[i]].prompt.ids);
            for (int k = 0; k < 2; k++) {
                Text text = rollout_text(&b.rollouts[2 * i + k]);
                CHECK(b.reward[2 * i + k] == reward_gsm8k(text.data, again.q.list[b.question[i]].truth));
                text_free(&text);
            }
            CHECK(b.group[i].reward == (double)b.reward[2 * i] + b.reward[2 * i + 1]);
            silent += was_silent, left += d.reward[2 * i] == d.reward[2 * i + 1];
        }
        CHECK(a.resampled == 0 && b.resampled == silent && left == 0 && d.resampled >= silent);
        CHECK(same_experience(&b, &c)); // a function of (seed, step)
        replaced += silent, kept += a.B - silent;
        experience_free(&a), experience_free(&b), experience_free(&c), experience_free(&d);
    }
    CHECK(replaced > 2 && kept > 2 && fresh > replaced / 2);
    again.o.seed++;
    Experience a = experience(&again, 0);
    again.o.seed--;
    Experience b = experience(&again, 0);
    CHECK(!same_experience(&a, &b));
    experience_free(&a), experience_free(&b), finish(&plain), finish(&again), finish(&thrice);
}

static void drawing_again_ends(void) {
    // The model never writes a box: with --reward boxed every group is silent. Three draws of 4 groups, and
    // then it is so: 12 drawn again, all silent, no gradient.
    static World w;
    START(&w, "--reward=boxed", "--resample=3");
    Metrics s = update(&w, 0);
    CHECK(s.resampled == 12.0 && s.silent == 4.0 && s.reward == 0.0 && s.grad_norm == 0.0 && s.right == 0.0);
    finish(&w);
}

// ---- the log

static void on_policy_nothing_drifts(void) {
    // One gradient step on all questions: ratio 1, nothing outside, KL to the old policy 0, exactly, whatever
    // the method.
    for (int i = 0; i < METHODS; i++) {
        static World w;
        START(&w, algo_word(i), "--minibatch=0");
        Metrics s = update(&w, 0), t = update(&w, 1);
        CHECK(s.ratio == 1.0 && s.clip_fraction == 0.0 && s.kl_old == 0.0);
        CHECK(t.ratio == 1.0 && t.clip_fraction == 0.0 && t.kl_old == 0.0 && t.grad_norm > 0.0);
        finish(&w);
    }
}

static void drift_by_hand(void) {
    // Three tokens of one answer with ratios 1, 1.5 and 0.5; bounds 0.8 .. 1.28. k3 of KL(old || new) = ratio
    // - 1 - log ratio:
    //   0, 0.5 - 0.405465108 = 0.094534892, -0.5 + 0.693147181 = 0.193147181. Two are outside. Sum of ratios
    //   3.
    static World w;
    READ(&w, "--algo=dapo");
    Learner l = learner_new(NULL, NULL, (Reward){0}, &w.o);
    const float logp[4] = {-1.0f, -1.0f, NAN, -2.0f}, old[4] = {-1.0f, -1.405465108f, NAN, -1.306852819f};
    const int mask[4] = {1, 1, 0, 1};
    Drift d = {0};
    LossArrays a = {.logp = logp, .logp_other = old, .mask = mask, .B = 1, .T1 = 4};
    add_drift(&d, &l, &a);
    CHECK(d.tokens == 3.0 && d.outside == 2.0);
    CHECK_NEAR(d.ratio, 3.0, 1e-6);
    CHECK_NEAR(d.kl, 0.094534892 + 0.193147181, 1e-6);
    // with a ratio per answer: mean log-ratio (0 + 0.405465108 - 0.693147181)/3 = -0.095894024, ratio
    // 0.908560, inside for all
    a.sequence_ratio = 1, d = (Drift){0};
    add_drift(&d, &l, &a);
    CHECK(d.tokens == 3.0 && d.outside == 0.0);
    CHECK_NEAR(d.ratio, 3 * 0.908560296, 1e-6);
    CHECK_NEAR(d.kl, 0.094534892 + 0.193147181, 1e-6);
    add_drift(&d, &l, &a); // it adds up
    CHECK(d.tokens == 6.0);
}

static void drift_shows_in_the_log(void) {
    // Two passes over the same answers: after the first step the ratios leave 1. The mean over both passes is
    // a little more than half as far as that of the second pass alone; KL is positive; the first pass still
    // counts as 0.
    static World w, v;
    START(&w, "--algo=drgrpo", "--epochs-per-batch=2", "--clip-low=0.001", "--clip-high=0.001"),
        START(&v, "--algo=drgrpo");
    Metrics s = update(&w, 0);
    CHECK(s.kl_old > 0.0 && s.ratio != 1.0 && s.clip_fraction > 0.0 && s.clip_fraction <= 0.5);
    // by hand: one update of the one-pass run, then the same answers through the moved policy
    Experience e = experience(&v, 0);
    weigh(&e, &v.setup.learner);
    experience_step(&v.setup.learner, &e, 1, 1);
    double tokens = 0.0, ratio = 0.0, kl = 0.0;
    for (int i = 0; i < e.B * e.K; i++) {
        float logp[NEW_TOKENS];
        const Rollout* r = &e.rollouts[i];
        if (all_equal(e.reward + i / e.K * e.K, e.K)) continue; // skipped, and so not in the log
        score_rollout(logp, &v.setup.policy, &e.prompts[i / e.K], r);
        for (int t = 0; t < r->length; t++)
            if (r->mask[t]) {
                double x = (double)logp[t] - r->logp[t];
                tokens++, ratio += exp(x), kl += exp(x) - 1.0 - x;
            }
    }
    CHECK_NEAR(s.ratio, (tokens + ratio) / (2 * tokens), 1e-6);
    CHECK_NEAR(s.kl_old / (kl / (2 * tokens)), 1.0, 1e-4);
    experience_free(&e), finish(&w), finish(&v);
}

static void the_log_counts(void) {
    // An update of its own, its numbers counted from the rollouts; two minibatches, so that gradient norm and
    // loss are means of two.
    static World w, v;
    START(&w, "--algo=drgrpo", "--minibatch=2"), START(&v, "--algo=drgrpo", "--minibatch=2");
    Experience e = experience(&v, 0);
    Metrics s = update(&w, 0);
    double right = 0, reward = 0, length = 0, silent = 0, solved = 0, nats = 0, sampled = 0, norms = 0, norm;
    for (int i = 0; i < e.B; i++) {
        int here = 0;
        for (int k = 0; k < e.K; k++) {
            const Rollout* r = &e.rollouts[i * e.K + k];
            here += e.reward[i * e.K + k] > 0.5f, reward += e.reward[i * e.K + k], length += r->length;
            for (int t = 0; t < r->length; t++)
                if (r->mask[t]) nats -= r->logp[t], sampled++;
        }
        right += here, solved += here > 0, silent += here == 0 || here == e.K;
    }
    int n = e.B * e.K;
    CHECK_NEAR(s.right, right / n, 1e-12);
    CHECK_NEAR(s.reward, reward / n, 1e-12);
    CHECK_NEAR(s.pass_rate, solved / e.B, 1e-12);
    CHECK_NEAR(s.length, length / n, 1e-12);
    CHECK_NEAR(s.entropy, nats / sampled, 1e-6);
    CHECK(s.silent == silent && s.tokens == (long)length && s.resampled == 0.0);
    weigh(&e, &v.setup.learner);
    double loss[QUESTIONS] = {0}, mean = 0.0;
    Drift drift[QUESTIONS] = {{0}};
    for (int from = 0; from < QUESTIONS; from += 2) {
        UpdateTask u = {&e, &v.setup.learner, from, 2, 1, loss, NULL, drift};
        minibatch_step(&v.setup.learner, &u, 1.0, &norm);
        norms += norm / 2, mean += (loss[from] + loss[from + 1]) / 2;
    }
    CHECK(s.grad_norm == norms);
    CHECK_NEAR(s.loss, mean, 1e-12);
    CHECK(same_weights(&w.setup.policy.weights, &v.setup.policy.weights) && w.setup.optimizer.step == 2);
    experience_free(&e), finish(&w), finish(&v);
}

// ---- what is refused

// What became of action() in a process of its own: exit status, and what it wrote to stderr.
typedef struct {
    int status;
    char said[2000];
} Ending;

static Ending ending_of(void (*action)(const char* const*), const char* const* words) {
    Ending e = {0, ""};
    FILE* err = tmpfile();
    if (!err) abort();
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) abort();
    if (child == 0) {
        dup2(fileno(err), 2);
        if (!freopen("/dev/null", "w", stdout)) _exit(99);
        set_threads(1);
        action(words);
        end_here(0);
    }
    int status;
    waitpid(child, &status, 0);
    rewind(err);
    e.said[fread(e.said, 1, sizeof e.said - 1, err)] = 0;
    fclose(err);
    e.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    return e;
}

static void read_only(const char* const* words) {
    static World w;
    read_words(&w, words);
}

// Ended with status 2 and a sentence that has `why` in it; without a `why`, with 0 and without a word.
static void check_end(const Ending* e, const char* why, const char* words, const char* more) {
    int fine = why ? e->status == 2 && !strncmp(e->said, "error: ", 7) && strstr(e->said, why)
                   : e->status == 0 && !*e->said;
    if (!fine) printf("  %s %s ... status %d: %s\n", words, more, e->status, e->said);
    CHECK(fine);
}

// The command line ends with status 2 and a sentence that has `why` in it; without a `why` it is accepted.
#define REFUSED(why, ...) check_ending(why, (const char*[]){__VA_ARGS__, NULL})
#define ACCEPTED(...)     check_ending(NULL, (const char*[]){__VA_ARGS__, NULL})
static void check_ending(const char* why, const char* const* words) {
    Ending e = ending_of(read_only, words);
    check_end(&e, why, words[0], words[1] ? words[1] : "");
}

static void decisions_are_refused(void) {
    // words that are not in the lists
    REFUSED(
        "there is no --algo 'trpo'; choose nanochat, reinforce, rloo, grpo, drgrpo, dapo, gspo, cispo or ppo",
        "--algo=trpo");
    REFUSED("there is no --advantage 'std'; choose none, centered, rloo, grpo or gae", "--advantage=std");
    REFUSED("there is no --ratio 'tokens'; choose none, token, sequence or cispo", "--ratio=tokens");
    REFUSED("there is no --norm ''; choose token, sequence, sum or constant", "--norm=");
    REFUSED("there is no --kl-estimator 'k4'; choose k1, k2 or k3", "--algo=grpo", "--kl-estimator=k4");
    REFUSED("there is no --kl-in 'both'; choose loss or reward", "--algo=grpo", "--kl-in=both");
    REFUSED("there is no --kl-per 'answer'; choose sequence or token", "--algo=ppo", "--kl-per=answer");
    // a group of one has nothing to compare
    REFUSED("--advantage centered compares", "--num-samples=1");
    REFUSED("--advantage rloo compares", "--algo=rloo", "--num-samples=1");
    REFUSED("--advantage grpo compares", "--algo=gspo", "--num-samples=1");
    ACCEPTED("--algo=reinforce", "--num-samples=1");
    ACCEPTED("--algo=ppo", "--num-samples=1");
    // more than there is
    REFUSED("--minibatch 5 is more than the 4 questions", "--algo=dapo", "--minibatch=5");
    ACCEPTED("--algo=dapo", "--minibatch=4");
    ACCEPTED("--algo=dapo", "--examples-per-step=1"); // its own 2 is no wish of anybody
    REFUSED("--overlong 13 punishes from the first token on: an answer has 12 at most", "--overlong=13");
    ACCEPTED("--overlong=12");
    // what is drawn again must have nothing to teach
    REFUSED("but with --advantage none these have something to teach", "--algo=reinforce", "--resample=1");
    REFUSED("but with --advantage gae these", "--algo=dapo", "--advantage=gae");
    ACCEPTED("--algo=rloo", "--resample=1");
    // a second step without a ratio
    REFUSED("with --ratio none each batch", "--epochs-per-batch=2");
    REFUSED("with --ratio none each batch", "--minibatch=2");
    ACCEPTED("--minibatch=4");
    ACCEPTED("--minibatch=2", "--ratio=token", "--clip-low=0.2", "--clip-high=0.2");
    ACCEPTED("--algo=grpo", "--epochs-per-batch=3");
    // bounds without a ratio
    REFUSED("--clip-low means nothing here: with --ratio none there is no ratio to clip", "--clip-low=0.2");
    REFUSED("--clip-high means nothing here", "--algo=reinforce", "--clip-high=0.2");
    ACCEPTED("--algo=cispo", "--clip-low=0.5", "--clip-high=0.5");
    // the KL term's options without a KL term
    REFUSED("--kl-estimator means nothing here: there is no KL term with --beta 0", "--kl-estimator=k1");
    REFUSED("--kl-in means nothing here", "--kl-in=reward");
    REFUSED("--kl-in means nothing here", "--algo=grpo", "--beta=0", "--kl-in=reward");
    REFUSED("--kl-per means nothing here", "--kl-per=token");
    ACCEPTED("--reference=out/sft"); // only measured
    REFUSED("--kl-per means nothing here: in the loss the KL is averaged as --norm says", "--algo=grpo",
            "--kl-per=token");
    ACCEPTED("--beta=0.1", "--kl-in=reward", "--kl-per=token", "--kl-estimator=k1", "--reference=out/sft");
    ACCEPTED("--algo=ppo", "--kl-per=token");
    // the expected gradient of k1 as a loss is 0: exactly so over the 27 answers in chapter 8
    REFUSED("--kl-estimator k1 in the loss pulls nowhere", "--algo=grpo", "--kl-estimator=k1");
    REFUSED("--kl-estimator k1 in the loss pulls nowhere", "--algo=ppo", "--kl-in=loss");
    ACCEPTED("--algo=grpo", "--kl-estimator=k2");
    // steps and a value model
    REFUSED("--gamma means nothing here: only --advantage gae", "--gamma=0.9");
    REFUSED("--lambda means nothing here", "--algo=grpo", "--lambda=0.9");
    REFUSED("--value-lr means nothing here", "--algo=dapo", "--value-lr=0.1");
    REFUSED("--value-clip means nothing here", "--value-clip=0");
    ACCEPTED("--algo=ppo", "--gamma=0.9", "--lambda=0.9", "--value-lr=0.1");
    ACCEPTED("--algo=ppo", "--epochs-per-batch=2", "--value-clip=0");
    REFUSED("--value-clip means nothing here: it holds a value near what it was", "--algo=ppo",
            "--value-clip=0");
    ACCEPTED("--advantage=gae", "--gamma=0.9");
    // every row of the table can be used as it is
    for (int i = 0; i < METHODS; i++) ACCEPTED(algo_word(i));
}

static void set_up_only(const char* const* words) {
    static World w;
    start(&w, words);
}

static void check_setup(const char* why, const char* option, const char* path) {
    char word[PATH_SIZE + 64];
    snprintf(word, sizeof word, option, path);
    Ending e = ending_of(set_up_only, (const char*[]){"--algo=grpo", word, NULL});
    check_end(&e, why, word, "");
}

static void save_model(const char* path, Config c) {
    Model m = model_new(c);
    model_init(&m, 3);
    Rng rng = {5};
    for (int i = 0; c.scalar && i < c.width; i++) m.weights.score[i] = (float)random_normal(&rng);
    save_checkpoint(path, &m, NULL, NULL, NULL, NULL, 0);
    model_free(&m);
}

static void rewards_and_references_are_refused(void) {
    char other[PATH_SIZE], narrow[PATH_SIZE], writer[PATH_SIZE], short_one[PATH_SIZE];
    join_path(other, folder, "other"), join_path(narrow, folder, "narrow");
    join_path(writer, folder, "writer"), join_path(short_one, folder, "short");
    save_model(other, (Config){99, 96, 1, 16, 2, 1, 8, 24, 1, 10000.0f, 1e-6f, 1});
    save_model(narrow, (Config){VOCAB_SIZE, 32, 1, 16, 2, 1, 8, 24, 1, 10000.0f, 1e-6f, 1});
    save_model(writer, (Config){99, 96, 1, 16, 2, 1, 8, 24, 1, 10000.0f, 1e-6f, 0});
    save_model(short_one, (Config){VOCAB_SIZE, 32, 1, 16, 2, 1, 8, 24, 1, 10000.0f, 1e-6f, 0});
    check_setup(NULL, "--reward=%s", "gsm8k");
    check_setup(NULL, "--reward=%s", "boxed");
    check_setup(NULL, "--reward=model:%s", judge_path);
    check_setup(NULL, "--reward=gsm8k+model:%s", judge_path);
    check_setup(NULL, "--reward=model:%s+boxed", judge_path);
    check_setup("there is no --reward 'praise'", "--reward=%s", "praise");
    check_setup("there is no --reward ''", "--reward=%s", "");
    check_setup("there is no --reward ''", "--reward=%s", "+gsm8k");
    check_setup("there is no --reward ''", "--reward=%s", "gsm8k+");
    check_setup("there is no --reward 'praise'", "--reward=gsm8k+%s", "praise");
    check_setup("names no directory", "--reward=%s", "model:");
    check_setup("two verifiers", "--reward=%s", "gsm8k+boxed");
    check_setup("two reward models", "--reward=model:%s+model:x", judge_path);
    check_setup("is a language model, not a reward model", "--reward=model:%s", model_path);
    check_setup("has a vocabulary of 99 tokens", "--reward=model:%s", other);
    check_setup("reads 32 tokens; the policy's answers and prompts have up to 96", "--reward=model:%s",
                narrow);
    check_setup("there is no checkpoint directory 'nowhere'", "--reward=model:%s", "nowhere");
    check_setup(NULL, "--reference=%s", model_path);
    check_setup("holds a reward model", "--reference=%s", judge_path);
    check_setup("has a vocabulary of 99 tokens", "--reference=%s", writer);
    check_setup("the reference reads 32 tokens, the policy 96", "--reference=%s", short_one);
    check_setup("there is no model", "--reference=%s", "nowhere");
    check_setup("holds a reward model", "--model-tag=%s", judge_path);
}

static void train_into(const char* const* words) {
    static World w;
    start(&w, words);
    w.o.out = words[0] + strlen("--out=");
    rl_train(&w.setup.learner, w.options, 0);
}

static void a_reward_that_is_no_number_is_refused(void) {
    // A reward model whose score overflows: +-3e38 times sixteen numbers. Rollout and question are named; no
    // checkpoint is left.
    char loud[PATH_SIZE], out[PATH_SIZE + 8], reward[PATH_SIZE + 32], path[PATH_SIZE], out_path[PATH_SIZE];
    join_path(loud, folder, "loud"), join_path(out_path, folder, "loud_out");
    snprintf(out, sizeof out, "--out=%s", out_path),
        snprintf(reward, sizeof reward, "--reward=gsm8k+model:%s", loud);
    Model m = model_new((Config){VOCAB_SIZE, 96, 1, 16, 2, 1, 8, 24, 1, 10000.0f, 1e-6f, 1});
    model_init(&m, 3);
    for (int i = 0; i < 16; i++) m.weights.score[i] = 3e38f;
    for (int i = 0; i < 16; i++) m.weights.norm[i] = 1e4f;
    save_checkpoint(loud, &m, NULL, NULL, NULL, NULL, 0);
    model_free(&m);
    Ending e = ending_of(train_into, (const char*[]){out, "--algo=nanochat", reward, "--save-every=1", NULL});
    CHECK(e.status == 2 && strstr(e.said, "error: the reward gsm8k+model:") &&
          strstr(e.said, "is not a number for rollout 1 of the question: "));
    CHECK(strstr(e.said, "?") && strchr(e.said, '\n') && !strchr(e.said, '\n')[1]);
    static const char* const files[] = {"model.safetensors", "config.json", "trainer_state.json",
                                        "optimizer.safetensors"};
    for (int i = 0; i < 4; i++) {
        join_path(path, out_path, files[i]);
        CHECK(!file_exists(path));
    }
    join_path(path, out_path, "metrics.csv"); // has its head, and no half line
    Text csv = read_file(path);
    CHECK(csv.length == strlen(METRICS_HEADER) + 1 && !strncmp(csv.data, METRICS_HEADER "\n", csv.length));
    text_free(&csv);
}

// ---- whole runs of every method

static void every_method_resumes(void) {
    // Four updates at once against two, a save, and two more: policy, value model and all moments bit for
    // bit.
    for (int i = 0; i < METHODS; i++) {
        static World a, b, c;
        char one[PATH_SIZE], two[PATH_SIZE];
        snprintf(one, sizeof one, "%s/one_%d", folder, i), snprintf(two, sizeof two, "%s/two_%d", folder, i);
        fflush(stdout);
        int screen = dup(1);
        if (!freopen("/dev/null", "w", stdout)) fail(1, "cannot open /dev/null");
        START(&a, algo_word(i)), START(&b, algo_word(i));
        a.o.out = one, b.o.out = two;
        CHECK(rl_train(&a.setup.learner, a.options, 0) == 0);
        int chosen[QUESTIONS];
        Deck deck = deck_new(b.q.count, b.o.seed);
        for (long step = 0; step < 2; step++) {
            deck_deal(chosen, &deck, step, QUESTIONS);
            rl_step(&b.setup.learner, &b.q, chosen, step, lr_schedule(step, 4, 0, 0.0));
        }
        save_rl(&b.setup.learner, b.options, 2);
        Text rows = {0};
        text_printf(&rows, "%s\n0,\n1,\n", METRICS_HEADER);
        write_file(two, "metrics.csv", &rows);
        text_free(&rows);
        READ(&c, "--log-every=100"); // everything else comes from trainer_state.json
        c.o.resume = c.o.out = two;
        long step = state_from_json(two, "rl", c.options);
        CHECK(step == 2 && !strcmp(c.o.algo, methods[i].name) && c.o.beta == methods[i].beta);
        setup_load(&c.setup, &c.o, step);
        CHECK(rl_train(&c.setup.learner, c.options, step) == 0);
        fflush(stdout);
        dup2(screen, 1), close(screen);
        Model begun = load_model(model_path);
        CHECK(!same_weights(&begun.weights, &a.setup.policy.weights));
        CHECK(!same_weights(&b.setup.policy.weights, &a.setup.policy.weights));
        CHECK(same_weights(&a.setup.policy.weights, &c.setup.policy.weights));
        CHECK(same_weights(&a.setup.optimizer.first, &c.setup.optimizer.first));
        CHECK(same_weights(&a.setup.optimizer.second, &c.setup.optimizer.second));
        CHECK(a.setup.optimizer.step == c.setup.optimizer.step);
        CHECK((a.setup.learner.value != NULL) == !strcmp(methods[i].advantage, "gae"));
        if (a.setup.learner.value) {
            CHECK(a.setup.value.weights.score[0] != 0.0f);
            CHECK(same_weights(&a.setup.value.weights, &c.setup.value.weights));
            CHECK(same_weights(&a.setup.value_optimizer.first, &c.setup.value_optimizer.first));
            CHECK(same_weights(&a.setup.value_optimizer.second, &c.setup.value_optimizer.second));
            CHECK(a.setup.value_optimizer.step == c.setup.value_optimizer.step);
        }
        free(deck.order), model_free(&begun), finish(&a), finish(&b), setup_free(&c.setup);
    }
}

static void no_method_depends_on_threads(void) {
    int before = thread_count();
    for (int i = 0; i < METHODS; i++) {
        static World first, w;
        set_threads(1);
        START(&first, algo_word(i));
        Metrics expected = {0};
        for (long step = 0; step < 2; step++) expected = update(&first, step);
        for (int threads = 2; threads <= 4; threads *= 2) {
            set_threads(threads);
            START(&w, algo_word(i));
            Metrics s = {0};
            for (long step = 0; step < 2; step++) s = update(&w, step);
            CHECK(s.loss == expected.loss && s.grad_norm == expected.grad_norm &&
                  s.kl_ref == expected.kl_ref && s.kl_old == expected.kl_old && s.ratio == expected.ratio &&
                  s.value_loss == expected.value_loss);
            CHECK(same_weights(&w.setup.policy.weights, &first.setup.policy.weights));
            if (w.setup.learner.value)
                CHECK(same_weights(&w.setup.value.weights, &first.setup.value.weights));
            finish(&w);
        }
        finish(&first);
    }
    set_threads(before);
}

int main(void) {
    RUN(gspo_by_hand);
    RUN(cispo_by_hand);
    RUN(value_by_hand);
    RUN(one_example_through_every_row);
    RUN(the_constant_norm_by_hand);
    RUN(nothing_to_average);
    if (!mkdtemp(folder)) return printf("FAIL test_methods: cannot make a directory\n"), 1;
    join_path(data_path, folder, "questions.jsonl"), join_path(model_path, folder, "model"),
        join_path(judge_path, folder, "judge");
    write_questions(folder);
    Model m = guessing_model(5);
    save_checkpoint(model_path, &m, NULL, NULL, NULL, NULL, 0);
    save_model(judge_path, (Config){VOCAB_SIZE, 96, 1, 16, 2, 1, 8, 24, 1, 10000.0f, 1e-6f, 1});
    model_free(&m);
    RUN(grpo_without_std_and_kl_is_nanochat);
    RUN(clip_does_nothing_on_policy);
    RUN(dapo_without_its_changes_is_grpo);
    RUN(rloo_is_a_multiple_of_centered);
    RUN(ppo_without_a_value_is_reinforce);
    RUN(gspo_is_grpo_for_one_token);
    RUN(kl_in_the_reward_is_a_sum);
    RUN(other_estimators_in_the_reward);
    RUN(gae_keeps_the_penalty_at_its_token);
    RUN(value_model_learns_what_came_after);
    RUN(value_model_has_its_rate_and_its_clip);
    RUN(a_minibatch_is_a_batch_of_its_own);
    RUN(forced_tokens_are_no_steps);
    RUN(kl_in_the_loss_adds_its_gradient);
    RUN(kl_in_the_loss_is_added);
    RUN(distance_to_oneself_is_nothing);
    RUN(overlong_answers_pay);
    RUN(score_group_is_the_whole_text);
    RUN(a_frozen_model_says_the_same);
    RUN(value_model_begins_at_zero);
    RUN(silent_groups_are_drawn_again);
    RUN(drawing_again_ends);
    RUN(on_policy_nothing_drifts);
    RUN(drift_by_hand);
    RUN(drift_shows_in_the_log);
    RUN(the_log_counts);
    RUN(decisions_are_refused);
    RUN(rewards_and_references_are_refused);
    RUN(a_reward_that_is_no_number_is_refused);
    RUN(every_method_resumes);
    RUN(no_method_depends_on_threads);
    char command[PATH_SIZE + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command)) printf("FAIL test_methods: cannot remove %s\n", folder), check_failed++;
    return check_failed != 0;
}
