// bench.c - `make bench`: how fast, and how near to what the machine can do. Nothing here is a test: the numbers are for reading.
//
// Each figure is the median of several runs taken in turn, so that a busy moment of the machine touches all alike.
#define RL_NO_MAIN
#include "../../rl.c"
#include "../experience.h"

enum { ROUNDS = 9 };

static int compare_doubles(const void* a, const void* b) {
    double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static double median(double* x, int n) {
    qsort(x, (size_t)n, sizeof *x, compare_doubles);
    return x[n / 2];
}

// Fused multiply-adds with everything in registers, on all threads: the ceiling, in GFLOP/s. 16 independent chains hide the latency.
static double peak_gflops(void) {
#ifdef __GNUC__
    long turns = 4000000;
    float total = 0.0f;
    double begin = seconds_now();
    #pragma omp parallel for reduction(+ : total) schedule(static)
    for (int t = 0; t < thread_count(); t++) {
        vec s0 = {0}, s1 = s0 + 1.0f, s2 = s0 + 2.0f, s3 = s0 + 3.0f, s4 = s0 + 4.0f, s5 = s0 + 5.0f, s6 = s0 + 6.0f, s7 = s0 + 7.0f;
        vec s8 = s0 + 8.0f, s9 = s0 + 9.0f, sa = s0 + 10.0f, sb = s0 + 11.0f, x = s0 + 0.999999f, y = s0 + 1e-7f * (float)(t + 1);
        for (long i = 0; i < turns; i++) {
            s0 = s0 * x + y, s1 = s1 * x + y, s2 = s2 * x + y, s3 = s3 * x + y, s4 = s4 * x + y, s5 = s5 * x + y;
            s6 = s6 * x + y, s7 = s7 * x + y, s8 = s8 * x + y, s9 = s9 * x + y, sa = sa * x + y, sb = sb * x + y;
        }
        vec s = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7)) + ((s8 + s9) + (sa + sb));
        for (int i = 0; i < (int)LANES; i++) total += s[i];
    }
    double seconds = seconds_now() - begin;
    if (total == 12345.0f) printf(" ");          // the result is used
    return 2.0 * 12 * LANES * (double)turns * thread_count() / seconds * 1e-9;
#else
    return 0.0;
#endif
}

typedef struct { const char* name; int M, N, K, kind; } Shape;   // kind 0: x W, 1: dy W^T, 2: x^T dy

// One product on every thread at a time, each with matrices of its own: that is how training uses it.
static double matmul_gflops(const Shape* s) {
    int threads = thread_count(), repeat = (int)(4e8 / (2.0 * s->M * s->N * s->K)) + 1;
    size_t a = (size_t)s->M * s->K, b = (size_t)s->K * s->N, c = (size_t)s->M * s->N, one = a + b + c;
    float* memory = allocate(one * (size_t)threads, sizeof(float));
    for (size_t i = 0; i < one * (size_t)threads; i++) memory[i] = (float)(i % 7) * 0.1f;
    double begin = seconds_now();
    #pragma omp parallel for schedule(static)
    for (int t = 0; t < threads; t++) {
        float *A = memory + one * (size_t)t, *B = A + a, *C = B + b;
        View x = s->kind == 2 ? transposed(A, (size_t)s->M) : view(A, (size_t)s->K), y = s->kind == 1 ? transposed(B, (size_t)s->K) : view(B, (size_t)s->N);
        for (int r = 0; r < repeat; r++) matmul(C, (size_t)s->N, x, y, s->M, s->N, s->K, s->kind == 2);
    }
    double seconds = seconds_now() - begin;
    free(memory);
    return 2.0 * s->M * s->N * s->K * repeat * threads / seconds * 1e-9;
}

static void bench_matmul(void) {
    Config c = train_defaults().config;
    int C = c.width, Q = qkv_width(&c), F = c.mlp_width, HD = c.heads * c.head_dim, V = c.vocab_size, N = BATCH_TOKENS;
    const Shape shapes[] = {
        {"qkv     x W", N, Q, C, 0}, {"out     x W", N, C, HD, 0}, {"gate up x W", N, 2 * F, C, 0}, {"down    x W", N, C, F, 0}, {"logits  x W^T", N, V, C, 1},
        {"qkv     dy W^T", N, C, Q, 1}, {"out     dy W^T", N, HD, C, 1}, {"gate up dy W^T", N, C, 2 * F, 1}, {"down    dy W^T", N, F, C, 1},
        {"qkv     x^T dy", C, Q, N, 2}, {"out     x^T dy", HD, C, N, 2}, {"gate up x^T dy", C, 2 * F, N, 2}, {"down    x^T dy", F, C, N, 2},
    };
    enum { SHAPES = sizeof shapes / sizeof *shapes };
    double peak[ROUNDS], speed[SHAPES][ROUNDS], flops = 0.0, seconds = 0.0;
    for (int r = 0; r < ROUNDS; r++) {
        peak[r] = peak_gflops();
        for (int i = 0; i < SHAPES; i++) speed[i][r] = matmul_gflops(&shapes[i]);
    }
    double top = median(peak, ROUNDS);
    printf("matmul, %d threads, %d tokens; peak of fused multiply-adds: %.0f GFLOP/s\n\n  %-16s %5s %5s %5s %10s %8s\n", thread_count(), N, top, "product", "M", "N", "K", "GFLOP/s", "of peak");
    for (int i = 0; i < SHAPES; i++) {
        const Shape* s = &shapes[i];
        double work = 2.0 * s->M * s->N * s->K, gflops = median(speed[i], ROUNDS);
        flops += work, seconds += work / gflops;
        printf("  %-16s %5d %5d %5d %10.0f %7.0f%%\n", s->name, s->M, s->N, s->K, gflops, 100.0 * gflops / top);
    }
    printf("  %-34s %10.0f %7.0f%%\n\n", "all of them, in proportion", flops / seconds, 100.0 * flops / seconds / top);
}

// A supervised update and a reinforcement-learning update of the default model, untrained (its rollouts run to the full length).
static void bench_training(void) {
    TrainOptions t = train_defaults();
    RlOptions o = rl_defaults();
    Model m = model_new(t.config);
    model_init(&m, 1);
    Optimizer optimizer = optimizer_new(&t.config);
    Problems problems = load_problems(t.data);
    Questions q = load_questions(o.data, t.config.context, o.sample.max_new_tokens);
    Tokens* examples = allocate((size_t)problems.count, sizeof(Tokens));
    int count = render_all(examples, &problems, t.config.context, t.data), chosen[16];
    const Tokens* batch[64];
    double supervised[ROUNDS], sampling[ROUNDS], training[ROUNDS], norm;
    long tokens = 0, sampled = 0;
    o.sample.max_new_tokens = 48;                // the length of an answer of the trained model
    o.lr = 1e-5f, o.init_lr_frac = 1.0f;
    Learner learner = learner_of(&m, &optimizer, &o);
    for (int i = 0; i < 64; i++) batch[i] = &examples[i % count], tokens += batch[i]->length;
    for (int i = 0; i < 16; i++) chosen[i] = i;
    for (int r = 0; r < ROUNDS; r++) {
        double begin = seconds_now();
        train_step(&m, &optimizer, batch, 64, 1e-4f, 1.0f, t.adam, &norm);
        supervised[r] = seconds_now() - begin;
        Tokens prompts[16];
        for (int i = 0; i < 16; i++) prompts[i] = q.list[chosen[i]].prompt;
        begin = seconds_now();
        Rollout* rollouts = generate(&m, prompts, 16, 16, o.sample, tool_calculator, (uint64_t)r, 0);
        sampling[r] = seconds_now() - begin;
        float advantage[256];
        for (int i = 0; i < 256; i++) advantage[i] = i % 2 ? 0.5f : -0.5f;
        begin = seconds_now();
        Experience e = experience_of(prompts, rollouts, advantage, 16, 16);
        experience_step(&learner, &e, 1, 1);
        training[r] = seconds_now() - begin;
        sampled = 0;
        for (int i = 0; i < 256; i++) sampled += rollouts[i].length;
        experience_free(&e);
    }
    double a = median(supervised, ROUNDS), b = median(sampling, ROUNDS), c = median(training, ROUNDS);
    printf("default model, %zu parameters, %d threads\n\n", m.weights.count, thread_count());
    printf("  supervised update, 64 conversations        %7.3f s   %8.0f tokens/s\n", a, (double)tokens / a);
    printf("  sampling 16 x 16 rollouts, 48 tokens each  %7.3f s   %8.0f tokens/s\n", b, (double)sampled / b);
    printf("  training on them, every group has signal   %7.3f s   %8.0f tokens/s\n", c, (double)sampled / c);
    printf("  one RL update of 16 x 16                   %7.3f s\n\n", b + c);
    for (int i = 0; i < count; i++) tokens_free(&examples[i]);
    free(examples);
    problems_free(&problems), questions_free(&q), optimizer_free(&optimizer), model_free(&m);
}

// What an update of each method costs once the rollouts are there: steps 4 to 6 on the same 16 x 16 rollouts of 48 tokens, each
// group with signal. The learning rates are 0, so that all rounds compute the same. Asked: 1.3 x nanochat, 2.2 x for ppo.
static void bench_methods(void) {
    enum { B = 16, K = 16 };
    static RlOptions o[METHODS];
    Learner l[METHODS];
    static const char start[] = "out/run/sft";    // `make run` leaves it
    int trained = file_exists("out/run/sft/config.json");
    Model m = trained ? load_fitting_model(start) : model_new(train_defaults().config);
    if (!trained) model_init(&m, 1);
    Config c = m.config;
    Model reference = model_new(c);
    memcpy(reference.weights.memory, m.weights.memory, m.weights.count * sizeof(float));
    reference.frozen = 1;
    Model value = scalar_model_on(&m);
    Optimizer optimizer = optimizer_new(&c), value_optimizer = optimizer_new(&value.config);
    for (int i = 0; i < METHODS; i++) {
        o[i] = rl_defaults();
        set_method(&o[i], methods[i].name);
        o[i].lr = o[i].value_lr = 0.0f, o[i].sample.max_new_tokens = 48;
        l[i] = learner_of(&m, &optimizer, &o[i]);
        if (o[i].beta > 0.0f) l[i].reference = &reference;
        if (l[i].advantage == ADVANTAGE_GAE) l[i].value = &value, l[i].value_optimizer = &value_optimizer;
    }
    Questions q = load_questions(o[0].data, c.context, 48);
    Tokens prompts[B];
    float advantage[B * K] = {0};
    for (int i = 0; i < B; i++) prompts[i] = q.list[i].prompt;
    Experience e = experience_of(prompts, generate(&m, prompts, B, K, o[0].sample, tool_calculator, 1, 0), advantage, B, K);
    for (int i = 0; i < B * K; i++) e.reward[i] = (float)(i % 2);
    double seconds[METHODS][ROUNDS], ratio[METHODS][ROUNDS];
    for (int r = -1; r < ROUNDS; r++)             // the first round only warms up
        for (int i = 0; i < METHODS; i++) {
            double took = experience_update(&l[i], &e);
            if (r >= 0) seconds[i][r] = took, ratio[i][r] = took / seconds[0][r];
        }
    Rollout distinct[K];
    int place[K], different = 0;
    for (int i = 0; i < B; i++) different += distinct_rollouts(distinct, place, e.rollouts + i * K, K);
    printf("training part of one update, %d x %d rollouts, %d of them different, of %s, %d threads\n\n", B, K, different,
           trained ? start : "an untrained model (after `make run`: out/run/sft)", thread_count());
    printf("  %-10s %9s %11s %7s   %s\n", "method", "seconds", "x nanochat", "asked", "beyond the policy's own passes");
    for (int i = 0; i < METHODS; i++)
        printf("  %-10s %9.3f %11.2f %7.1f   %s%s\n", methods[i].name, median(seconds[i], ROUNDS),
               median(ratio[i], ROUNDS), l[i].value ? 2.2 : 1.3, l[i].reference ? "reference " : "", l[i].value ? "value model" : "");
    experience_free(&e), questions_free(&q), optimizer_free(&optimizer), optimizer_free(&value_optimizer);
    model_free(&m), model_free(&reference), model_free(&value);
}

// ./build/bench [matmul] [training] [methods]: these parts, or all
int main(int argc, char** argv) {
    static const struct { const char* name; void (*run)(void); } parts[] = {
        {"matmul", bench_matmul}, {"training", bench_training}, {"methods", bench_methods}};
    for (int i = 0; i < 3; i++) {
        int asked = argc < 2;
        for (int a = 1; a < argc; a++) asked |= !strcmp(argv[a], parts[i].name);
        if (asked) parts[i].run();
    }
    return 0;
}
