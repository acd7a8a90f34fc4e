/* open.c - `make ex N=29`, 30 and 31: exercises without one right answer, judged by what the training makes
 * of them.
 *
 *     ex_open LIBRARY N [MODEL OUT]
 *
 * This program is ./rl with two things in it that are the student's, loaded from LIBRARY: the advantage of
 * CartPole's steps, and a reward. The reward stands where rl.c has the one named `format`: the macro renames
 * rl.c's function where it is defined, with its parentheses, and not where the table of rewards names it.
 * Exit status: 0 = reached, 1 = not, 2 = bad usage.
 */
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE
#include <dlfcn.h>

static float (reward_format)(const char* response, const char* truth);
#define reward_format(response, truth) original_reward_format(response, truth)
#define RL_NO_MAIN
#include "../../rl.c"

typedef void StepAdvantages(double* adv, int T, const int* length, int K);
typedef double Beta(void);

static RewardFunction student_reward;

static float(reward_format)(const char* response, const char* truth) {
    return student_reward(response, truth);
}

static void find_function(void* function, size_t size, void* library, const char* name) {
    void* symbol = dlsym(library, name);
    if (!symbol) fail(2, "%s() is missing in your file; docs/exercises.c has its form", name);
    memcpy(function, &symbol, size);
}

// ---- 29. CartPole with the student's advantage

enum { SEEDS = 5, STEPS = 200000, EPISODES = 100, SOLVED = 475 };

static void learn_cartpole(double* w, uint64_t seed, StepAdvantages* advantages) {
    CartPoleGroup* group = allocate(1, sizeof *group);
    Rng rng = {seed};
    memset(w, 0, POLICY_SIZE * sizeof *w);
    for (int steps = 0; steps < STEPS; steps += group->first[CARTPOLE_GROUP]) {
        double gradient[POLICY_SIZE];
        int length[CARTPOLE_GROUP];
        collect_group(group, w, &rng);
        for (int k = 0; k < CARTPOLE_GROUP; k++) length[k] = group->first[k + 1] - group->first[k];
        for (int k = 0; k < CARTPOLE_GROUP; k++)
            advantages(group->advantage + group->first[k], length[k], length, CARTPOLE_GROUP);
        for (int i = 0; i < group->first[CARTPOLE_GROUP]; i++)
            if (!isfinite(group->advantage[i]))
                fail(1, "an advantage is not a number, or infinite: is adv[t] set for each t < T?");
        cartpole_gradient(gradient, group, w);
        for (int j = 0; j < POLICY_SIZE; j++) w[j] += cartpole_defaults.learning_rate * gradient[j];
    }
    free(group);
}

static int open_cartpole(void* library) {
    StepAdvantages* advantages;
    double sum = 0.0;
    find_function(&advantages, sizeof advantages, library, "my_cartpole_advantage");
    printf("29 CartPole learns from your advantage, %d steps, %d seeds\n", STEPS, SEEDS);
    printf("  stands    ");
    for (int seed = 1; seed <= SEEDS; seed++) {
        double w[POLICY_SIZE];
        Rng fresh = {1000};
        learn_cartpole(w, (uint64_t)seed, advantages);
        double length = test_cartpole(w, EPISODES, &fresh);
        printf("%.1f ", length);
        fflush(stdout);
        sum += length / SEEDS;
    }
    printf("steps of %d, mean of %d new episodes\n", CARTPOLE_CAP, EPISODES);
    int reached = sum >= SOLVED;
    printf("  mean      %.1f: %s\n", sum, reached ? "reached" : "not reached, 475 is");
    if (!reached)
        printf("  think     does every action get praise, because each episode lasted a while? Better\n"
               "            than what, and what did this action still have an influence on?\n");
    printf("  read      rl.c chapter 2, fill_advantages(); chapter 7; ./rl cartpole\n");
    return reached ? 0 : 1;
}

// ---- 30 and 31. the tiny model with the student's reward

typedef struct {
    double reward, accuracy, tool, format, kl, length, best;
} Reached; // of the last updates; best: accuracy

enum { LAST = 5, ROWS = 512, FIELDS = 32 };

// Means over the last LAST rows of metrics.csv, and the best mean accuracy of LAST rows in a row.
static Reached read_metrics(const char* out, int from, int to) {
    char path[PATH_SIZE], line[2048];
    const char* const names[] = {"reward", "accuracy", "tool_rate", "format_rate", "kl_ref", "length"};
    double row[ROWS][6], mean[6] = {0};
    int place[6] = {0}, n = 0;
    Reached r = {0};
    join_path(path, out, "metrics.csv");
    FILE* file = fopen(path, "r");
    if (!file) fail(1, "cannot read %s", path);
    for (int i = 0; n < ROWS && fgets(line, sizeof line, file); i++) {
        int column = 0;
        for (char *p = line, *next; p; p = next, column++) {
            next = strpbrk(p, ",\n");
            if (next) *next++ = 0;
            for (int k = 0; k < 6; k++) {
                if (i == 0 && !strcmp(p, names[k])) place[k] = column;
                if (i > 0 && place[k] == column) row[n][k] = atof(p);
            }
        }
        n += i > 0;
    }
    fclose(file);
    to = to ? to : n;
    from = to > LAST && !from ? to - LAST : from;
    for (int i = from; i < to; i++)
        for (int k = 0; k < 6; k++) mean[k] += row[i][k] / (to - from);
    for (int i = 0; i + LAST <= n; i++) {
        double sum = 0.0;
        for (int j = 0; j < LAST; j++) sum += row[i + j][1] / LAST;
        r.best = fmax(r.best, sum);
    }
    r.reward = mean[0];
    r.accuracy = mean[1];
    r.tool = mean[2];
    r.format = mean[3];
    r.kl = mean[4];
    r.length = mean[5];
    return r;
}

// ./rl train with the student's reward. beta > 0: a KL penalty in the reward.
static void train_with(const char* model, const char* out, const char* steps, double beta) {
    char beta_text[40];
    snprintf(beta_text, sizeof beta_text, "%g", beta);
    char* const arguments[] = {"--model-tag",
                               (char*)(intptr_t)model,
                               "--reference",
                               (char*)(intptr_t)model,
                               "--out",
                               (char*)(intptr_t)out,
                               "--num-steps",
                               (char*)(intptr_t)steps,
                               "--reward",
                               "format",
                               "--eval-every",
                               "0",
                               "--overwrite",
                               "--beta",
                               beta_text,
                               "--kl-in",
                               "reward",
                               "--kl-estimator",
                               "k1"};
    char* argv[32];
    int argc = 0;
    for (int i = 0; i < (beta > 0.0 ? 19 : 13); i++) argv[argc++] = arguments[i];
    argv[argc] = NULL;
    if (command_train(argc, argv)) fail(1, "the training stopped");
}

static void print_reached(const char* name, Reached r) {
    printf("  %-10s%8.3f%8.3f%8.3f%8.3f%8.2f%8.1f\n", name, r.reward, r.accuracy, r.tool, r.format, r.kl,
           r.length);
}

static const char* const reached_titles = "             reward   right    work   boxed      KL  length\n";

static int open_work(void* library, const char* model, const char* folder) {
    char out[PATH_SIZE];
    find_function(&student_reward, sizeof student_reward, library, "my_work_reward");
    join_path(out, folder, "work");
    train_with(model, out, "30", 0.0);
    Reached first = read_metrics(out, 0, 1), last = read_metrics(out, 0, 0);
    int reached = last.tool >= 0.95 && last.accuracy >= 0.8;
    printf("\n30 a reward under which the model shows its work\n%s", reached_titles);
    print_reached("before", first);
    print_reached("after", last);
    printf("  asked     work (answers with a call of the calculator) 0.95, right in a box 0.8: %s\n",
           reached ? "reached" : "not yet");
    if (!reached)
        printf("  think     what is paid is what comes. Which answer gets your full reward and is not\n"
               "            what you want? ./rl sample --model-tag %s shows some\n", out);
    printf("  read      rl.c chapter 5; D2 section 4\n");
    return reached ? 0 : 1;
}

static int open_overoptimization(void* library, const char* model, const char* folder) {
    char free_run[PATH_SIZE], held_run[PATH_SIZE];
    Beta* beta;
    find_function(&student_reward, sizeof student_reward, library, "my_proxy_reward");
    find_function(&beta, sizeof beta, library, "my_beta");
    join_path(free_run, folder, "beta-0");
    join_path(held_run, folder, "beta");
    double price = beta();
    if (!(price > 0.0) || !isfinite(price))
        fail(1, "my_beta() returns %g; a price of one nat is greater than 0", price);
    train_with(model, free_run, "40", 0.0);
    train_with(model, held_run, "40", price);
    Reached first = read_metrics(free_run, 0, 1), run = read_metrics(free_run, 0, 0),
            held = read_metrics(held_run, 0, 0);
    int happened = run.reward > first.reward + 0.1 && run.accuracy < run.best - 0.2;
    int stopped = held.accuracy > held.best - 0.15 && held.accuracy > first.accuracy + 0.1;
    printf("\n31 over-optimization, and the KL that stops it\n%s", reached_titles);
    print_reached("before", first);
    print_reached("beta 0", run);
    print_reached("your beta", held);
    printf("  happened  the reward rose, right answers fell 0.2 below their best (%.3f): %s\n", run.best,
           happened ? "yes" : "not yet");
    printf("  stopped   with beta %g right answers rose and stayed within 0.15 of their best (%.3f): %s\n",
           price, held.best, stopped ? "yes" : "not yet");
    printf("  read      rl.c chapter 8; D3 section 5; ./rl plot %s reward accuracy kl_ref\n", free_run);
    return happened && stopped ? 0 : 1;
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
