// bench.c - `make bench`: how fast, and how near to what the machine can do, for reading. Each figure is the
// median of several runs taken in turn, so that a busy moment of the machine touches all alike.
#define RL_NO_MAIN
#include "../../rl.c"

enum { ROUNDS = 9 };

static int compare_doubles(const void* a, const void* b) {
    double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static double median(double* x, int n) {
    qsort(x, (size_t)n, sizeof *x, compare_doubles);
    return x[n / 2];
}

// Fused multiply-adds with everything in registers, on all threads: the ceiling, in GFLOP/s. Independent
// chains hide the latency.
static double peak_gflops(void) {
#ifdef __GNUC__
    enum { CHAINS = 12 };
    long turns = 4000000;
    float total = 0.0f;
    double begin = seconds_now();
    #pragma omp parallel for reduction(+ : total) schedule(static)
    for (int t = 0; t < thread_count(); t++) {
        vec s[CHAINS], zero = {0}, x = zero + 0.999999f, y = zero + 1e-7f * (float)(t + 1);
        for (int c = 0; c < CHAINS; c++) s[c] = zero + (float)c;
        for (long i = 0; i < turns; i++) {
            #pragma GCC unroll 12
            for (int c = 0; c < CHAINS; c++) s[c] = s[c] * x + y;
        }
        for (int i = 0; i < CHAINS * (int)LANES; i++) total += s[i / (int)LANES][i % (int)LANES];
    }
    double seconds = seconds_now() - begin;
    if (total == 12345.0f) printf(" ");          // the result is used
    return 2.0 * CHAINS * LANES * (double)turns * thread_count() / seconds * 1e-9;
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
        View x = s->kind == 2 ? transposed(A, (size_t)s->M) : view(A, (size_t)s->K),
             y = s->kind == 1 ? transposed(B, (size_t)s->K) : view(B, (size_t)s->N);
        for (int r = 0; r < repeat; r++) matmul(C, (size_t)s->N, x, y, s->M, s->N, s->K, s->kind == 2);
    }
    double seconds = seconds_now() - begin;
    free(memory);
    return 2.0 * s->M * s->N * s->K * repeat * threads / seconds * 1e-9;
}

static void bench_matmul(void) {
    Config c = train_defaults().config;
    int C = c.width, Q = qkv_width(&c), F = c.mlp_width, HD = c.heads * c.head_dim, V = c.vocab_size;
    int N = 384;                                 // tokens of a typical pass
    const Shape shapes[] = {
        {"qkv     x W", N, Q, C, 0}, {"qkv     dy W^T", N, C, Q, 1}, {"qkv     x^T dy", C, Q, N, 2},
        {"out     x W", N, C, HD, 0}, {"out     dy W^T", N, HD, C, 1}, {"out     x^T dy", HD, C, N, 2},
        {"gate up x W", N, 2 * F, C, 0}, {"gate up dy W^T", N, C, 2 * F, 1},
        {"gate up x^T dy", C, 2 * F, N, 2},
        {"down    x W", N, C, F, 0}, {"down    dy W^T", N, F, C, 1}, {"down    x^T dy", F, C, N, 2},
        {"logits  x W^T", N, V, C, 1}};
    enum { SHAPES = sizeof shapes / sizeof *shapes };
    double peak[ROUNDS], speed[SHAPES][ROUNDS], flops = 0.0, seconds = 0.0;
    for (int r = 0; r < ROUNDS; r++) {
        peak[r] = peak_gflops();
        for (int i = 0; i < SHAPES; i++) speed[i][r] = matmul_gflops(&shapes[i]);
    }
    double top = median(peak, ROUNDS);
    printf("matmul, %d threads, %d tokens; peak of fused multiply-adds: %.0f GFLOP/s\n\n"
           "  %-16s %5s %5s %5s %10s %8s\n",
           thread_count(), N, top, "product", "M", "N", "K", "GFLOP/s", "of peak");
    for (int i = 0; i < SHAPES; i++) {
        const Shape* s = &shapes[i];
        double work = 2.0 * s->M * s->N * s->K, gflops = median(speed[i], ROUNDS);
        flops += work;
        seconds += work / gflops;
        printf("  %-16s %5d %5d %5d %10.0f %7.0f%%\n", s->name, s->M, s->N, s->K, gflops,
               100.0 * gflops / top);
    }
    flops /= seconds;
    printf("  %-34s %10.0f %7.0f%%\n\n", "all of them, in proportion", flops, 100.0 * flops / top);
}

// A supervised update of 32 conversations, of the default model and of larger ones, and the memory it takes.
// Counted are 6 floating-point operations per weight and token, the products. It runs first, the small model
// before the large one, so that the peak of the process is this model's.
static void bench_memory(void) {
    enum { CONVERSATIONS = 32, UPDATES = 4 };
    TrainOptions t = train_defaults();
    const Config configs[] = {t.config, {VOCAB_SIZE, 256, 6, 384, 6, 2, 64, 1024, 1, 10000.0f, 1e-6f, 0},
                              {VOCAB_SIZE, 256, 8, 640, 10, 2, 64, 1792, 1, 10000.0f, 1e-6f, 0}};
    Problems problems = load_problems(t.data);
    Tokens* examples = allocate((size_t)problems.count, sizeof(Tokens));
    const Tokens* batch[CONVERSATIONS];
    int count = render_all(examples, &problems, t.config.context, t.data);
    double tokens = 0.0, before = peak_memory_mb();
    for (int i = 0; i < CONVERSATIONS; i++) {
        batch[i] = &examples[i % count];
        tokens += batch[i]->length;
    }
    printf("supervised updates of %.0f tokens, %d threads; memory in MB\n\n", tokens, thread_count());
    printf("  %-10s %7s %7s %8s %7s   %7s %7s %9s %11s %5s %5s\n", "parameters", "first s", "later s",
           "tokens/s", "of peak", "weights", "moments", "gradients", "activations", "sum", "used");
    for (int i = 0; i < 3; i++) {
        Model m = model_new(configs[i]);
        Optimizer optimizer = optimizer_new(&m.config);
        double seconds[UPDATES], peak[UPDATES], activations = 0.0;
        double one = (double)m.weights.count * sizeof(float) / 1e6;
        model_init(&m, 1);
        for (int u = 0; u < UPDATES; u++) {
            peak[u] = peak_gflops();
            double begin = seconds_now();
            sft_loss(&m, batch, CONVERSATIONS, 1);
            clip_and_step(&m, &optimizer, 1e-4, 1.0, t.adam);
            seconds[u] = seconds_now() - begin;
        }
        for (int w = 0; w < MAX_THREADS; w++) {
            const Activations* a = &m.workers[w].acts;
            const float* end = a->scratch.dp + m.config.context * QUERY_BLOCK; // dp is the block's last array
            if (a->memory) activations += (double)(end - a->memory) * sizeof(float) / 1e6;
        }
        double first = seconds[0], later = median(seconds + 1, UPDATES - 1);
        double gflops = 6.0 * (double)m.weights.count * tokens / later * 1e-9;
        int turns = turns_of(&m, (CONVERSATIONS + TOGETHER - 1) / TOGETHER);
        double sum = (3.0 + turns) * one + activations;
        printf("  %10zu %7.3f %7.3f %8.0f %6.0f%%   %7.0f %7.0f %9.0f %11.0f %5.0f %5.0f\n", m.weights.count,
               first, later, tokens / later, 100.0 * gflops / median(peak, UPDATES), one, 2.0 * one,
               turns * one, activations, sum, peak_memory_mb() - before);
        fflush(stdout);
        optimizer_free(&optimizer), model_free(&m);
    }
    printf("\n");
    for (int i = 0; i < count; i++) tokens_free(&examples[i]);
    free(examples), problems_free(&problems);
}

// What an RL update works with: questions, rollouts of each, the length of an answer of the trained model
enum { B = 16, K = 16, NEW = 48 };

// Pays for an odd sum of bytes: any model's groups have a difference, as those of a model in training do.
static float reward_parity(const char* response, const char* truth) {
    int sum = 0;
    (void)truth;
    for (; *response; response++) sum += (unsigned char)*response;
    return (float)(sum % 2);
}

static const RewardKind parity = {"parity", reward_parity, reward_parity, extract_hash_answer};

static Learner learner_for(Model* m, Optimizer* optimizer, RlOptions* o, const char* algo) {
    *o = rl_defaults();
    set_method(o, algo);
    o->num_samples = K;
    o->examples_per_step = B;
    o->sample.max_new_tokens = NEW;
    o->resample = 0;                             // the same rollouts for every method
    o->lr = o->value_lr = 0.0f;                  // and in every round
    return learner_new(m, optimizer, (Reward){.kind = &parity, .paid = 1}, o);
}

static int count_trained(const Group* group) {
    int trained = 0;
    for (int i = 0; i < B; i++) trained += group[i].trained;
    return trained;
}

// Questions whose rollouts differ in their reward: nanochat leaves out the others, but a method with a KL
// term or a value model trains on them too, and the rows would not do the same work.
static void choose_mixed(int* chosen, Learner* l, Group* group, const Questions* q) {
    int next = B, tries = 20;
    for (int i = 0; i < B; i++) chosen[i] = i;
    do {
        rl_step(l, group, q, chosen, 0, 1.0);
        for (int i = 0; i < B; i++) if (!group[i].trained) chosen[i] = next++ % q->count;
    } while (count_trained(group) < B && --tries);
}

// What an update of each method costs, sampling included: the same 16 x 16 rollouts of 48 tokens for all, and
// every row trains on all of them. With the learning rates at 0 all rounds compute the same. Asked of the
// part after the sampling: 1.3 x nanochat, 2.2 x for ppo.
static void bench_methods(void) {
    enum { TIMES = 5 };
    static RlOptions o[METHODS];
    Learner l[METHODS];
    static const char begin[] = "out/run/sft";    // `make run` leaves it
    int taught = file_exists("out/run/sft/config.json"), chosen[B];
    Model m = taught ? load_fitting_model(begin) : model_new(train_defaults().config);
    if (!taught) model_init(&m, 1);
    Config c = m.config;
    Model reference = model_new(c), value = scalar_model_on(&m);
    memcpy(reference.weights.memory, m.weights.memory, m.weights.count * sizeof(float));
    reference.frozen = 1;
    Optimizer optimizer = optimizer_new(&c), value_optimizer = optimizer_new(&value.config);
    for (int i = 0; i < METHODS; i++) {
        l[i] = learner_for(&m, &optimizer, &o[i], methods[i].name);
        if (o[i].beta > 0.0f) l[i].reference = &reference;
        if (l[i].advantage != ADVANTAGE_GAE) continue;
        l[i].value = &value;
        l[i].value_optimizer = &value_optimizer;
    }
    Questions q = load_questions(o[0].data, c.context, NEW, &reward_kinds[0]);
    Group* group = groups_new(B, K, q.longest + NEW + 1);
    Tokens prompts[B];
    double seconds[METHODS][TIMES], ratio[METHODS][TIMES], sampling[TIMES], sampled = 0.0;
    int trained[METHODS];
    choose_mixed(chosen, &l[0], group, &q);
    for (int i = 0; i < B; i++) prompts[i] = q.list[chosen[i]].prompt;
    for (int r = -1; r < TIMES; r++) {            // the first round only warms up
        double from = seconds_now();
        rollouts_free(generate(&m, prompts, B, K, o[0].sample, tool_calculator, o[0].seed + 1, 0));
        if (r >= 0) sampling[r] = seconds_now() - from;
        for (int i = 0; i < METHODS; i++) {
            double took = rl_step(&l[i], group, &q, chosen, 0, 1.0).seconds;
            trained[i] = count_trained(group);
            if (r < 0) continue;
            seconds[i][r] = took;
            ratio[i][r] = (took - sampling[r]) / (seconds[0][r] - sampling[r]);
        }
    }
    for (int i = 0; i < B; i++) sampled += group[i].grades.tokens;
    printf("one update of each method, %d x %d rollouts of %s, %d threads\n", B, K,
           taught ? begin : "an untrained model (after `make run`: out/run/sft)", thread_count());
    printf("sampling alone: %.3f s, %.0f tokens/s\n\n", median(sampling, TIMES),
           sampled / median(sampling, TIMES));
    printf("  %-10s %9s %8s %8s %18s %7s   %s\n", "method", "seconds", "tokens/s", "trained",
           "training, x first", "asked", "beyond the policy's own passes");
    for (int i = 0; i < METHODS; i++) {
        double all = median(seconds[i], TIMES);
        printf("  %-10s %9.3f %8.0f %8d %18.2f %7.1f   %s%s\n", methods[i].name, all, sampled / all,
               trained[i], median(ratio[i], TIMES), l[i].value ? 2.2 : 1.3,
               l[i].reference ? "reference " : "", l[i].value ? "value model" : "");
    }
    groups_free(group, B), questions_free(&q), optimizer_free(&optimizer), optimizer_free(&value_optimizer);
    model_free(&m), model_free(&reference), model_free(&value);
}

// ./build/bench [memory] [matmul] [methods]: these parts, or all
int main(int argc, char** argv) {
    static const struct { const char* name; void (*run)(void); } parts[] = {
        {"memory", bench_memory}, {"matmul", bench_matmul}, {"methods", bench_methods}};
    for (int i = 0; i < 3; i++) {
        int asked = argc < 2;
        for (int a = 1; a < argc; a++) asked |= !strcmp(argv[a], parts[i].name);
        if (asked) parts[i].run();
    }
    return 0;
}
