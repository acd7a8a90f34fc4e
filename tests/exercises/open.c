/* open.c - `make ex N=29`, 30 and 31: exercises without one right answer, judged by what the training makes
 * of them: ex_open LIBRARY N [MODEL OUT]. This is ./rl with two things in it that are the student's, loaded
 * from LIBRARY: the advantage of CartPole's steps, and a reward. Exit status: 0 = reached, 1 = not, 2 = bad
 * usage. */
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE
#include <dlfcn.h>

#define TOOLS_NO_MAIN
#include "../../docs/tools.c"
#include "field.h"

typedef void StepAdvantages(double* adv, int T, const int* length, int K);
typedef double Beta(void);

static void find_function(void* function, void* library, const char* name) {
    void* symbol = dlsym(library, name);
    if (!symbol) fail(2, "%s() is missing in your file; docs/exercises.c has its form", name);
    memcpy(function, &symbol, sizeof symbol);
}

// ---- 29. CartPole with the student's advantage

enum { SEEDS = 5, STEPS = 200000, EPISODES = 100, SOLVED = 475 };

static void learn_cartpole(double* w, uint64_t seed, StepAdvantages* advantages) {
    CartPoleGroup* group = allocate(1, sizeof *group);
    const int* first = group->first;
    double *adv = group->advantage, gradient[POLICY_SIZE];
    Rng rng = {seed};
    memset(w, 0, POLICY_SIZE * sizeof *w);
    for (int steps = 0; steps < STEPS; steps += first[CARTPOLE_GROUP]) {
        int length[CARTPOLE_GROUP];
        collect_group(group, w, &rng);
        for (int k = 0; k < CARTPOLE_GROUP; k++) length[k] = first[k + 1] - first[k];
        for (int k = 0; k < CARTPOLE_GROUP; k++)
            advantages(adv + first[k], length[k], length, CARTPOLE_GROUP);
        for (int i = 0; i < first[CARTPOLE_GROUP]; i++)
            if (!isfinite(adv[i]))
                fail(1, "an advantage is not a number, or infinite: is adv[t] set for each t < T?");
        reinforce_gradient(gradient, group->features[0], group->action, adv, first[CARTPOLE_GROUP], w,
                           POLICY_SIZE, 1.0);
        for (int j = 0; j < POLICY_SIZE; j++) w[j] += cartpole_learning_rate * gradient[j];
    }
    free(group);
}

static int open_cartpole(void* library) {
    StepAdvantages* advantages;
    double mean = 0.0;
    find_function(&advantages, library, "my_cartpole_advantage");
    printf("29 CartPole learns from your advantage, %d steps, %d seeds\n", STEPS, SEEDS);
    printf("  stands    ");
    for (int seed = 1; seed <= SEEDS; seed++) {
        double w[POLICY_SIZE];
        Rng fresh = {1000};
        learn_cartpole(w, (uint64_t)seed, advantages);
        double length = test_cartpole(w, EPISODES, &fresh);
        printf("%.1f ", length);
        fflush(stdout);
        mean += length / SEEDS;
    }
    printf("steps of %d, mean of %d new episodes\n", CARTPOLE_CAP, EPISODES);
    int reached = mean >= SOLVED;
    print_field("mean", "%.1f: %s", mean, reached ? "reached" : "not reached, 475 is");
    if (!reached)
        print_field("think", "does every action get praise, because each episode lasted a while? Better than "
                             "what, and what did this action still have an influence on?");
    print_field("read", "rl.c chapter 2, fill_advantages(); chapter 7; ./rl cartpole");
    return !reached;
}

// ---- 30 and 31. the tiny model with the student's reward

// A run in columns of its metrics.csv: the first update, the mean of the last five, the best mean of five.
enum { REWARD, RIGHT, WORK, BOXED, KL, LENGTH, COLUMNS_OF_RUN, LAST = 5 };
typedef struct { double first[COLUMNS_OF_RUN], last[COLUMNS_OF_RUN], best[COLUMNS_OF_RUN]; } Reached;

static Reached read_metrics(const char* out) {
    static const char* const names[] = {"reward", "accuracy", "tool_rate", "format_rate", "kl_ref", "length"};
    Reached r = {.first = {0}};
    for (int c = 0; c < COLUMNS_OF_RUN; c++) {
        int rows;
        double* x = read_column(&rows, out, names[c], 1);
        r.first[c] = x[0];
        for (int i = 0; i + LAST <= rows; i++) {
            r.last[c] = 0.0;
            for (int j = 0; j < LAST; j++) r.last[c] += x[i + j] / LAST;
            r.best[c] = fmax(r.best[c], r.last[c]);
        }
        free(x);
    }
    return r;
}

// ./rl train from `model` with the student's reward, called "yours" on the screen. (The options that are
// saved name rl.c's nearest one, so that `make report` reads the run.) beta > 0: a KL penalty in the reward.
static Reached train_with(RewardFunction reward, const char* model, const char* out, int steps, double beta) {
    const RewardKind yours = {"yours", reward, reward_boxed, extract_boxed};
    RlOptions o = rl_defaults(), shown;
    Option options[RL_OPTIONS] = {{0}};
    Setup setup;
    o.model = o.reference = model;
    o.out = out;
    o.num_steps = steps;
    o.reward = "format";
    o.eval_every = 0;
    o.overwrite = 1;
    o.beta = (float)beta;
    if (beta > 0.0) {
        o.kl_in = "reward";
        o.kl_estimator = "k1";
    }
    begin_command(&o, options, NULL, 0, FOR_TRAIN, 0, NULL, "", "");
    choose_run(&o.out, o.out, NULL, 1, "rl", options);
    setup_load(&setup, &o, 0);
    check_data(&o.data_hash, o.data);
    shown = o;
    shown.reward = yours.name;
    setup.learner.o = &shown;
    setup.learner.reward.kind = &yours;
    if (rl_train(&setup.learner, options, 0)) fail(1, "the training stopped");
    printf("saved %s\n", out);
    setup_free(&setup);
    return read_metrics(out);
}

static void print_reached(const char* name, const double* x) {
    printf("  %-10s%8.3f%8.3f%8.3f%8.3f%8.2f%8.1f\n", name, x[0], x[1], x[2], x[3], x[4], x[5]);
}

static const char* const reached_titles = "             reward   right    work   boxed      KL  length\n";

static int open_work(void* library, const char* model, const char* folder) {
    RewardFunction reward;
    char out[PATH_SIZE];
    find_function(&reward, library, "my_work_reward");
    join_path(out, folder, "work");
    Reached run = train_with(reward, model, out, 30, 0.0);
    int reached = run.last[WORK] >= 0.95 && run.last[RIGHT] >= 0.8;
    printf("\n30 a reward under which the model shows its work\n%s", reached_titles);
    print_reached("before", run.first);
    print_reached("after", run.last);
    print_field("asked", "work (answers with a call of the calculator) 0.95, right in a box 0.8: %s",
                reached ? "reached" : "not yet");
    if (!reached)
        print_field("think", "what is paid is what comes. Which answer gets your full reward and is not what "
                             "you want? ./rl sample --model-tag %s shows some", out);
    print_field("read", "rl.c chapter 5; D2 section 4");
    return !reached;
}

static int open_overoptimization(void* library, const char* model, const char* folder) {
    RewardFunction reward;
    Beta* beta;
    char free_run[PATH_SIZE], held_run[PATH_SIZE];
    find_function(&reward, library, "my_proxy_reward");
    find_function(&beta, library, "my_beta");
    join_path(free_run, folder, "beta-0");
    join_path(held_run, folder, "beta");
    double price = beta();
    if (!(price > 0.0) || !isfinite(price))
        fail(1, "my_beta() returns %g; a price of one nat is greater than 0", price);
    Reached run = train_with(reward, model, free_run, 40, 0.0);
    Reached held = train_with(reward, model, held_run, 40, price);
    double before = run.first[RIGHT], right = held.last[RIGHT];
    int happened = run.last[REWARD] > run.first[REWARD] + 0.1 && run.last[RIGHT] < run.best[RIGHT] - 0.2;
    int stopped = right > held.best[RIGHT] - 0.15 && right > before + 0.1;
    printf("\n31 over-optimization, and the KL that stops it\n%s", reached_titles);
    print_reached("before", run.first);
    print_reached("beta 0", run.last);
    print_reached("your beta", held.last);
    print_field("happened", "the reward rose, right answers fell 0.2 below their best (%.3f): %s",
                run.best[RIGHT], happened ? "yes" : "not yet");
    print_field("stopped", "with beta %g right answers rose and stayed within 0.15 of their best (%.3f): %s",
                price, held.best[RIGHT], stopped ? "yes" : "not yet");
    print_field("read", "rl.c chapter 8; D3 section 5; ./rl plot %s reward accuracy kl_ref", free_run);
    return !(happened && stopped);
}

int main(int argc, char** argv) {
    int n = argc > 2 ? atoi(argv[2]) : 0;
    if (argc < 3 || n < 29 || n > 31 || (n > 29 && argc < 5))
        fail(2, "usage: ex_open LIBRARY 29, or LIBRARY 30|31 MODEL OUT");
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) fail(1, "your file calls a function that exists nowhere: %s", dlerror());
    if (n == 29) return open_cartpole(library);
    return n == 30 ? open_work(library, argv[3], argv[4]) : open_overoptimization(library, argv[3], argv[4]);
}
