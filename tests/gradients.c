/* gradients.c - the tests in double precision: every backward pass and every loss against central
 * differences, and the worksheets of the chapters once more, with 29 more bits.
 *
 * rl.c is compiled here with `float` meaning double. A slope
 *
 *     (loss(x + h) - loss(x - h)) / 2h       with h = 1e-5
 *
 * is wrong by about h^2 = 1e-10 (what the line leaves out) and 1e-16 / h = 1e-11 (rounding), so a right
 * gradient agrees to nine digits and a wrong one to none. In single precision both would drown in rounding.
 *
 * The loss of a single layer is sum r y: its output y with fixed numbers r of both signs. Then dy = r.
 */
#define IN_DOUBLE
#include "chapters.h"
#include "parts.h"
#include "reference.h"
#include "proofs.h"
#include "chapter_01.c"
#include "chapter_02.c"
#include "chapter_03.c"
#include "chapter_04.c"
#include "chapter_07.c"
#include "chapter_08.c"
#include "chapter_09.c"

static const double TOLERANCE = 1e-6;

// Every array of a test, until clear() frees them.
static void* made[64];
static int made_count;

static double* room(size_t n) {
    if (made_count == 64) fail(1, "too many arrays in one test");
    return made[made_count++] = allocate(n, sizeof(double));
}

// array number k: smooth, of both signs, never twice the same; or one number all over
static double* filled(int n, int k, double scale, double offset) {
    double* x = room((size_t)n);
    fill(x, n, k, scale, offset);
    return x;
}
static double* constant(int n, double value) { return filled(n, 0, 0.0, value); }

static double weighted_sum(const double* y, const double* r, int n) {
    double sum = 0.0;
    for (int i = 0; i < n; i++) sum += y[i] * r[i];
    return sum;
}

// a plain array of n numbers, seen as a tensor
static Tensor array(double* x, int n) { return (Tensor){.data = x, .rows = n, .row = 1}; }

// The largest |gradient - slope| over every `step`th element of x, relative to the largest |slope|. Where no
// slope differs from zero there is nothing to compare: that, and a NaN, are infinite errors.
static double gradient_error(double (*loss)(void), Tensor x, Tensor gradient, int step) {
    double worst = 0.0, largest = 0.0;
    for (int i = 0; i < elements(&x); i += step) {
        double by_difference = slope(loss, element(&x, i), NULL);
        double error = fabs(*element(&gradient, i) - by_difference);
        if (isnan(error)) return INFINITY;
        worst = fmax(worst, error);
        largest = fmax(largest, fabs(by_difference));
    }
    return largest > 0.0 ? worst / largest : INFINITY;
}

// A backward pass that adds began with d (n) at `begun` all over.
static void check_slopes(double (*loss)(void), double* x, double* d, int n, double begun) {
    for (int i = 0; i < n; i++) d[i] -= begun;
    CHECK_NEAR(gradient_error(loss, array(x, n), array(d, n), 1), 0, TOLERANCE);
}

static Config config_of(int context, int heads, int kv_heads, int head_dim) {
    return (Config){.vocab_size = 3, .context = context, .layers = 1, .width = 4, .heads = heads,
                    .kv_heads = kv_heads, .head_dim = head_dim, .mlp_width = 4, .tied = 1,
                    .rope_theta = 50.0, .norm_eps = 1e-3};
}

// What the layer under test reads and writes. Every test sets what it needs and ends with clear().
static struct {
    double *x, *w, *w2, *y, *r, *dy, *lse;   // input, weights, output, r, r once more, attention's log sums
    int ids[40], n, c;                       // token ids or positions; tokens, width
    Batch batch;
    Model angles;                            // for its rotary tables, its sizes and its scratch
} layer;

static void clear(void) {
    while (made_count) free(made[--made_count]);
    batch_free(&layer.batch);
    if (layer.angles.weights.memory) model_free(&layer.angles);
    memset(&layer, 0, sizeof layer);
}

// n tokens, `in` numbers into each and `out` from it
static void set_layer(int n, int c, int in, int out) {
    layer.n = n;
    layer.c = c;
    layer.x = filled(n * in, 1, 1.0, 0.1);
    layer.y = constant(n * out, 0.0);
    layer.r = filled(n * out, 3, 1.0, 0.0);
    layer.dy = filled(n * out, 3, 1.0, 0.0);
}

static double embedding_loss(void) {
    embedding_forward(layer.y, layer.ids, layer.w, layer.n, layer.c);
    return weighted_sum(layer.y, layer.r, layer.n * layer.c);
}

static void gradients_of_embedding(void) {
    // Token 2 is read three times: its row collects three gradients. Token 3 is never read: its row stays
    // at the 0.25 that was there before, since gradients are added.
    enum { V = 5, C = 3, N = 6 };
    memcpy(layer.ids, (int[N]){2, 0, 2, 4, 1, 2}, N * sizeof(int));
    set_layer(N, C, 1, C);
    layer.w = filled(V * C, 1, 1.0, 0.0);
    double* dw = constant(V * C, 0.25);
    embedding_backward(dw, layer.r, layer.ids, N, C);
    CHECK_LIST(dw + 3 * C, 0.0, 0.25, 0.25, 0.25);
    check_slopes(embedding_loss, layer.w, dw, V * C, 0.25);
    clear();
}

static double rmsnorm_loss(void) {
    rmsnorm_forward(layer.y, layer.x, layer.w, 1e-3, layer.n, layer.c);
    return weighted_sum(layer.y, layer.r, layer.n * layer.c);
}

static void gradients_of_rmsnorm(void) {
    // Widths around the eight partial sums. dx and dw are added to: they begin at 0.5.
    static const int sizes[][2] = {{1, 1}, {3, 7}, {2, 8}, {40, 5}, {2, 19}};
    for (int s = 0; s < 5; s++) {
        int n = sizes[s][0], c = sizes[s][1];
        set_layer(n, c, c, c);
        layer.w = filled(c, 2, 0.5, 1.0);
        double *dx = constant(n * c, 0.5), *dw = constant(c, 0.5);
        rmsnorm_backward(dx, dw, layer.r, layer.x, layer.w, 1e-3, n, c);
        check_slopes(rmsnorm_loss, layer.x, dx, n * c, 0.5);
        check_slopes(rmsnorm_loss, layer.w, dw, c, 0.5);
        clear();
    }
    // One row, stored, dx being dy itself: as the heads of query and key use it. dw is added to.
    enum { C = 11 };
    set_layer(1, C, C, C);
    layer.w = filled(C, 2, 0.5, 1.0);
    double* dw = constant(C, -2.0);
    rmsnorm_row_backward(layer.dy, dw, layer.dy, layer.x, layer.w, 1e-3, C, 0);
    check_slopes(rmsnorm_loss, layer.x, layer.dy, C, 0.0);
    check_slopes(rmsnorm_loss, layer.w, dw, C, -2.0);
    clear();
}

static void rmsnorm_by_hand(void) {
    // x = (3, 4), eps 0: mean(x^2) = 12.5, rms = 3.5355339; w = (2, 10): y = (6, 40) / 3.5355339.
    // eps is inside the root: x = (1, 1) with eps = 3 has rms 2, so y = (0.5, 0.5).
    double x[2] = {3, 4}, w[2] = {2, 10}, one[2] = {1, 1}, y[2];
    rmsnorm_forward(y, x, w, 0.0, 1, 2);
    CHECK_LIST(y, 1e-14, 6.0 / 3.5355339059327378, 40.0 / 3.5355339059327378);
    rmsnorm_forward(y, one, one, 3.0, 1, 2);
    CHECK_LIST(y, 1e-15, 0.5, 0.5);
}

static void rope_at(double* x, int position, double direction) {
    rope_row(x, layer.angles.cosine + position * 3, layer.angles.sine + position * 3, 6, direction);
}

static double rope_loss(void) {
    double y[6];
    memcpy(y, layer.x, sizeof y);
    rope_at(y, 5, 1.0);
    return weighted_sum(y, layer.r, 6);
}

static void gradients_of_rope(void) {
    layer.angles = model_new(config_of(100, 1, 1, 6));
    set_layer(1, 6, 6, 6);
    rope_at(layer.dy, 5, -1.0);
    check_slopes(rope_loss, layer.x, layer.dy, 6, 0.0);
    // Pair 0 is (x[0], x[3]) and turns by one radian per position: (1, 0) at position 2 becomes (cos 2,
    // sin 2). Pair 1 turns by 50^(-2/6) = 0.2714418 per position.
    double x[6] = {1, 1, 0, 0, 0, 0};
    rope_at(x, 2, 1.0);
    const double turn = 2 * 0.27144176165949065;
    CHECK_LIST(x, 1e-14, cos(2.0), cos(turn), 0, sin(2.0), sin(turn), 0);
    // What rotary positions are for: the product of a query and a key knows only how far apart they are.
    double product[2];
    for (int shift = 0; shift < 2; shift++) {
        double *q = filled(6, 3, 1.0, 0.0), *k = filled(6, 4, 1.0, 0.0);
        rope_at(q, 9 + 40 * shift, 1.0);
        rope_at(k, 4 + 40 * shift, 1.0);
        product[shift] = weighted_sum(q, k, 6);
    }
    CHECK_NEAR(product[1], product[0], 1e-13);
    clear();
}

static double qk_loss(void) {
    const Model* m = &layer.angles;
    qk_forward(layer.y, layer.x, layer.w, layer.w2, m->cosine, m->sine, layer.ids, layer.n, &m->config);
    return weighted_sum(layer.y, layer.r, layer.n * layer.c);
}

static void gradients_of_qk(void) {
    // Positions come from the batch; they are not the token's index here. d begins as dy and is replaced.
    enum { N = 20, D = 6 };
    const Model* m = &layer.angles;
    layer.angles = model_new(config_of(80, 2, 1, D));
    int Q = qkv_width(&m->config);
    set_layer(N, Q, Q, Q);
    for (int n = 0; n < N; n++) layer.ids[n] = (n * 7) % 80;
    layer.w = filled(D, 3, 0.5, 1.0);
    layer.w2 = filled(D, 4, 0.5, 1.0);
    double *d = layer.dy, *dwq = constant(D, 1.0), *dwk = constant(D, 3.0);
    qk_backward(d, dwq, dwk, layer.x, layer.w, layer.w2, m->cosine, m->sine, layer.ids, N, &m->config);
    check_slopes(qk_loss, layer.x, d, N * Q, 0.0);
    check_slopes(qk_loss, layer.w, dwq, D, 1.0);
    check_slopes(qk_loss, layer.w2, dwk, D, 3.0);
    clear();
}

static double attention_loss(void) {
    const Config* c = &layer.angles.config;
    attention_forward(layer.y, layer.lse, layer.x, &layer.batch, c, layer.angles.acts.scratch);
    return weighted_sum(layer.y, layer.r, layer.batch.N * c->heads * c->head_dim);
}

// Gradients of attention over the segments of the given lengths; prefix[s] as in Batch. Gradients of queries,
// keys and values are one array; the values' are the largest, hence each third has a comparison of its own.
// Where a segment is longer than a block every third number is moved.
static void check_attention(int heads, int kv_heads, int head_dim, int segments, const int* length,
                            const int* prefix) {
    static const int ids[110] = {0};
    layer.angles = model_new(config_of(110, heads, kv_heads, head_dim));
    for (int s = 0; s < segments; s++) batch_add(&layer.batch, ids, NULL, length[s], prefix[s]);
    const Config* c = &layer.angles.config;
    const Batch* b = &layer.batch;
    model_reserve(&layer.angles, b->N);
    int Q = qkv_width(c), HD = heads * head_dim, from[4] = {0, HD, HD + kv_heads * head_dim, Q};
    set_layer(b->N, Q, Q, HD);
    layer.lse = constant(b->N * heads, 0.0);
    double* d = constant(b->N * Q, 99.0);         // stored, not added: the 99 must go
    attention_loss();
    attention_backward(d, layer.r, layer.y, layer.lse, layer.x, b, c, layer.angles.acts.scratch);
    for (int part = 0; part < 3; part++) {
        Tensor x = {.data = layer.x + from[part], .rows = b->N, .cols = from[part + 1] - from[part],
                    .row = (size_t)Q, .col = 1}, g = x;
        g.data = d + from[part];
        CHECK_NEAR(gradient_error(attention_loss, x, g, b->N > QUERY_BLOCK ? 3 : 1), 0, TOLERANCE);
    }
    clear();
}

static void gradients_of_attention(void) {
    // three segments on their own; 1, 2 and 4 query heads for each key/value head. Then one segment that is
    // longer than a block of queries.
    static const int length[] = {2, 9, 5}, longer[] = {2, QUERY_BLOCK + 5, 7}, alone[] = {-1, -1, -1};
    check_attention(2, 2, 2, 3, length, alone);
    check_attention(4, 2, 2, 3, length, alone);
    check_attention(4, 1, 4, 3, length, alone);
    check_attention(2, 1, 2, 3, longer, alone);
    // a prefix and three continuations, then a second family, then one on its own: the keys of a prefix
    // collect gradients from all who see them, and from no one else; then both longer than a block
    static const int lengths[] = {5, 3, 1, 4, 2, 6, 3}, prefix[] = {-1, 0, 0, 0, -1, 4, -1};
    static const int long_ones[] = {QUERY_BLOCK + 1, QUERY_BLOCK + 2, 2};
    check_attention(2, 2, 2, 7, lengths, prefix);
    check_attention(4, 2, 2, 7, lengths, prefix);
    check_attention(3, 1, 4, 7, lengths, prefix);
    check_attention(2, 1, 2, 3, long_ones, prefix);
}

static void attention_by_hand(void) {
    // One head of width 2, theta's rotation left out (attention gets rotated queries and keys). Token 1
    // asks q = (sqrt 2 ln 3, 0); keys (1,0) and (0,0) give scores ln 3 and 0 after division by sqrt 2,
    // weights 3/4 and 1/4; values (4,0) and (0,8). Token 0 sees only itself: its output is its value.
    layer.angles = model_new(config_of(4, 1, 1, 2));
    batch_add(&layer.batch, layer.ids, NULL, 2, -1);
    model_reserve(&layer.angles, 2);
    double qkv[12] = {9, 9, 1, 0, 4, 0, 1.4142135623730951 * 1.0986122886681098, 0, 0, 0, 0, 8};
    double out[4], lse[2];
    attention_forward(out, lse, qkv, &layer.batch, &layer.angles.config, layer.angles.acts.scratch);
    CHECK_LIST(out, 1e-14, 4, 0, 0.75 * 4, 0.25 * 8);
    CHECK_NEAR(lse[1], log(3.0 + 1.0), 1e-14);
    clear();
}

static double swiglu_loss(void) {
    swiglu_forward(layer.y, layer.x, layer.n, layer.c);
    return weighted_sum(layer.y, layer.r, layer.n * layer.c);
}

static void gradients_of_swiglu(void) {
    enum { N = 20, F = 9 };
    set_layer(N, F, 2 * F, F);
    for (int i = 0; i < 2 * N * F; i++) layer.x[i] *= 3.0;
    double* d = constant(2 * N * F, 99.0);   // stored
    swiglu_backward(d, layer.r, layer.x, N, F);
    check_slopes(swiglu_loss, layer.x, d, 2 * N * F, 0.0);
    clear();
    // gate ln 3: sigmoid 3/4, so silu = 3/4 ln 3 = 0.8239592; up 2: y = 1.6479184
    double gu[2] = {1.0986122886681098, 2}, y;
    swiglu_forward(&y, gu, 1, 1);
    CHECK_NEAR(y, 1.5 * 1.0986122886681098, 1e-14);
}

enum { LOGPROB_M = 20, LOGPROB_V = 9 };
static int logprob_targets[2 * LOGPROB_M], logprob_scored[LOGPROB_M];

static double logprob_loss(void) {
    double logp[LOGPROB_M];
    logprob_forward(logp, layer.y, layer.x, logprob_targets, logprob_scored, LOGPROB_M, LOGPROB_V);
    return weighted_sum(logp, layer.r, LOGPROB_M);
}

static void gradients_of_logprob(void) {
    // every second token is scored; the target of row m stands at targets[scored[m]]
    enum { M = LOGPROB_M, V = LOGPROB_V };
    for (int m = 0; m < M; m++) {
        logprob_scored[m] = 2 * m + 1;
        logprob_targets[2 * m] = -1;
        logprob_targets[2 * m + 1] = (m * 4) % V;
    }
    set_layer(M, V, V, V);
    logprob_loss();
    memcpy(layer.dy, layer.y, M * V * sizeof(double));
    logprob_backward(layer.dy, layer.r, logprob_targets, logprob_scored, M, V);
    check_slopes(logprob_loss, layer.x, layer.dy, M * V, 0.0);
    clear();
    // logits ln 1, ln 1, ln 2 (all + 100): p = 1/4, 1/4, 1/2; logp of token 2 = -ln 2;
    // entropy = 2 * 1/4 ln 4 + 1/2 ln 2 = 1.5 ln 2 = 1.0397208
    double logits[3] = {100, 100, 100.69314718055994531}, logp, probs[3];
    int target = 2, scored = 0;
    logprob_forward(&logp, probs, logits, &target, &scored, 1, 3);
    CHECK_NEAR(logp, -0.69314718055994531, 1e-13);
    CHECK_NEAR(row_entropy(logits, log_sum_exp(logits, 3), 3), 1.0397207708399179, 1e-13);
    CHECK_NEAR(probs[0], 0.25, 1e-13);
}

// ---- the whole model

static Model model;
static Batch batch;
static double* token_weight;

static double model_loss(void) { return weighted_sum(head_forward(&model, &batch), token_weight, batch.M); }

enum { UNTIED, TIED, SCALAR };

// A model with weights of a size at which every layer matters.
static Model small_model(int heads, int kv_heads, int head_dim, int head) {
    Config c = config_of(16, heads, kv_heads, head_dim);
    c.vocab_size = 7;
    c.layers = 2;
    c.width = 6;
    c.mlp_width = 5;
    c.tied = head == TIED;
    c.scalar = head == SCALAR;
    return wave_model(c, 0.4, 0.2);
}

// A prefix with two continuations and a sequence of its own; some targets ignored, one token a target twice.
static void small_batch(Batch* b) {
    static const int prefix[] = {1, 5, 3, 6}, prefix_targets[] = {-1, 3, 6, -1};
    static const int one[] = {2, 2, 0, 4, 1}, one_targets[] = {2, -1, 4, 1, 6};
    static const int two[] = {2, 6, 5}, two_targets[] = {6, 5, 0};
    static const int other[] = {0, 4, 4, 3, 2, 1}, other_targets[] = {4, -1, -1, 2, 1, 1};
    int p = batch_add(b, prefix, prefix_targets, 4, -1);
    batch_add(b, one, one_targets, 5, p);
    batch_add(b, two, two_targets, 3, p);
    batch_add(b, other, other_targets, 6, -1);
}

static void gradients_of_model(void) {
    // query heads, key heads, their width, the model's head; H D = 16 and C = 6: they need not fill the width
    static const int sizes[][4] = {
        {4, 2, 4, TIED}, {4, 2, 4, UNTIED}, {4, 1, 2, UNTIED}, {3, 3, 2, TIED}, {3, 3, 2, SCALAR}};
    for (int i = 0; i < 5; i++) {
        model = small_model(sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3]);
        small_batch(&batch);
        CHECK(batch.N == 18 && batch.M == 2 + 4 + 3 + 4);
        token_weight = filled(batch.M, 5, 1.0, 0.1);   // d(loss)/d(logp or scalar), of both signs
        model_zero_grads(&model);
        model_loss();
        head_backward(&model, &batch, token_weight);
        Tensor w[MOST_TENSORS], g[MOST_TENSORS];
        tensor_list(w, &model.weights, &model.config, "");
        tensor_list(g, &model.grads, &model.config, "");
        for (int k = 0; k < tensor_count(&model.config); k++) {
            double error = gradient_error(model_loss, w[k], g[k], 1);
            if (!(error < TOLERANCE)) printf("  sizes %d: %s\n", i, w[k].name);
            CHECK_NEAR(error, 0, TOLERANCE);
        }
        model_free(&model), batch_free(&batch), clear();
    }
}

// ---- the optimizer, by hand

static void adamw_by_hand(void) {
    // beta1 = 1/2, beta2 = 3/4, eps = 1/2, decay = 0.2, lr = 0.1, w = 1; gradients 0.5, then -1.25.
    //   step 1   m = 0.25           m^ = 0.25 / (1 - 1/2) = 0.5
    //            v = 0.0625         v^ = 0.0625 / (1 - 3/4) = 0.25, root 0.5
    //            m^ / (root + eps) = 0.5            w = 1 - 0.1 (0.5) = 0.95
    //                                         decayed w = 1 - 0.1 (0.5 + 0.2) = 0.93
    //   step 2   m = 0.125 - 0.625 = -0.5           m^ = -0.5 / (1 - 1/4) = -2/3
    //            v = 0.046875 + 0.390625 = 0.4375   v^ = 0.4375 / (1 - 9/16) = 1, root 1
    //            m^ / (root + eps) = -4/9           w = 0.95 + 0.1 (4/9)
    //                                         decayed w = 0.93 - 0.1 (-4/9 + 0.2 * 0.93)
    static const double gradient[2] = {0.5, -1.25},
        plain[2] = {0.95, 0.95 + 0.1 * (4.0 / 9)}, decayed[2] = {0.93, 0.93 - 0.1 * (-4.0 / 9 + 0.2 * 0.93)};
    Model m = small_model(4, 2, 4, 0);
    Optimizer o = optimizer_new(&m.config);
    model_zero_grads(&m);
    for (size_t i = 0; i < m.weights.count; i++) m.weights.memory[i] = 1.0;
    for (int step = 0; step < 2; step++) {
        double off = 0.0;
        for (size_t i = 0; i < m.weights.count; i++) m.grads.memory[i] = gradient[step];
        adamw_step(&m, &o, 0.1, (AdamOptions){0.5, 0.75, 0.5, 0.2});
        CHECK(o.step == step + 1);
        for (size_t i = 0; i < m.weights.count; i++) {
            double expected = i < m.weights.undecayed ? plain[step] : decayed[step];
            off = fmax(off, fabs(m.weights.memory[i] - expected));
        }
        CHECK_NEAR(off, 0.0, 1e-14);
    }
    CHECK_NEAR(o.first.memory[0], -0.5, 1e-15);
    CHECK_NEAR(o.second.memory[0], 0.4375, 1e-15);
    model_free(&m), optimizer_free(&o);
}

static void clip_gradient_by_hand(void) {
    // Four gradients, in the first, the second and the last block of 1024: 1, 2, 2, 4; |g| = sqrt(1 + 4 +
    // 4 + 16) = 5. A longer limit, or none, changes nothing; clipped to 1 they are a fifth.
    static const double value[4] = {1, -2, 2, 4}, limits[3] = {6.0, 0.0, 1.0};
    Config c = config_of(4, 1, 1, 2);
    c.vocab_size = 70;
    c.width = 32;
    c.mlp_width = 8;
    Model m = model_new(c);
    model_zero_grads(&m);
    double* g = m.grads.memory;
    size_t at[4] = {0, 1023, 1024, m.grads.count - 1};
    CHECK(at[3] > 3 * 1024 && (at[3] + 1) % 1024 != 0);
    CHECK_NEAR(clip_gradient(&m, 1.0), 0, 0);      // no gradient, no division by zero
    CHECK(g[0] == 0.0);
    for (int i = 0; i < 4; i++) g[at[i]] = value[i];
    for (int i = 0; i < 3; i++) {
        CHECK_NEAR(clip_gradient(&m, limits[i]), 5, 1e-15);
        for (int j = 0; j < 4; j++) CHECK_NEAR(g[at[j]], value[j] / (i == 2 ? 5.0 : 1.0), 1e-15 * (i == 2));
    }
    model_free(&m);
}

static void lr_schedule_by_hand(void) {
    // 12 updates, 2 of them warm-up: 1/2, 1, then from 1 in a line that would reach 0.1 at update 12:
    // update 7 is half way, 1 - 0.9 * 5/10 = 0.55; the last, 11, has 1 - 0.9 * 9/10 = 0.19.
    // Without warm-up it begins at 1; a warm-up as long as the run never falls.
    static const struct { int step, steps, warmup; double final, expected; } cases[] = {
        {0, 12, 2, 0.1, 0.5}, {1, 12, 2, 0.1, 1.0}, {2, 12, 2, 0.1, 1.0}, {7, 12, 2, 0.1, 0.55},
        {11, 12, 2, 0.1, 0.19}, {0, 10, 0, 0.0, 1.0}, {9, 10, 0, 0.0, 0.1}, {2, 4, 4, 0.0, 0.75},
        {4, 4, 4, 0.0, 1.0}};
    for (int i = 0; i < 9; i++)
        CHECK_NEAR(lr_schedule(cases[i].step, cases[i].steps, cases[i].warmup, cases[i].final),
                   cases[i].expected, 1e-15);
}

// ---- the losses of chapters 8 and 9

// Twelve answers of three tokens and one that is not read: six ratios of an answer, two below 0.8, two
// within, two above 1.28, for both signs of advantage. The tokens' ratios lie around their answer's, on both
// sides of each bound. What is differentiated is x; other: log-probabilities or values of before.
enum { REGIONS = 12, REGION_T1 = 4, REGION_N = REGIONS * REGION_T1 };
static const double ratios[6] = {0.3, 0.7, 0.9, 1.2, 1.4, 3.0};
static struct {
    double x[REGION_N], other[REGION_N], target[REGION_N], adv[REGIONS], d[REGION_N];
    int mask[REGION_N], loss, norm;
} region;

static int of_values(void) { return region.loss == VALUE || region.loss == VALUE_CLIP; }
static double region_loss(void) {
    if (of_values())
        return group_value(region.d, region.x, region.other, region.target, region.mask, REGIONS, REGION_T1,
                           region.loss == VALUE ? 0.0 : 0.2, region.norm);
    return group_loss(region.loss, region.d, region.x, region.other, region.adv, region.mask, REGIONS,
                      REGION_T1, region.norm);
}

// Is there no derivative, by the text of chapter 9? The clip takes it where the ratio is outside and the
// advantage asks for more; the value's where the bound is farther from the target than the value is.
static int region_stopped(int t) {
    int k = t / REGION_T1;
    double adv = region.adv[k], own = exp(region.x[t] - region.other[t]);
    double ratio = region.loss == GSPO ? ratios[k / 2] : own;
    double held = fmin(fmax(region.x[t], 0.3), 0.7);
    if (!region.mask[t]) return 1;
    if (region.loss == CLIP || region.loss == GSPO) return adv > 0 ? ratio > 1.28 : ratio < 0.8;
    return region.loss == VALUE_CLIP && fabs(held - region.target[t]) > fabs(region.x[t] - region.target[t]);
}

static void set_regions(void) {
    static const double spread[REGION_T1] = {0.4, -0.3, 0, -0.1};
    // V below, inside and above V_old +- 0.2 = 0.3 .. 0.7; targets below, between and above
    static const double values[4] = {0.1, 0.45, 0.6, 0.9}, targets[5] = {-1.0, 0.05, 0.47, 0.93, 2.0};
    for (int t = 0; t < REGION_N; t++) {
        int k = t / REGION_T1;
        region.mask[t] = t % REGION_T1 != 2;
        region.adv[k] = k % 2 ? 0.7 : -0.7;
        region.other[t] = of_values() ? 0.5 : -2.0 + 0.1 * (t % 7);
        region.x[t] = region.other[t] + log(ratios[k / 2]) + spread[t % REGION_T1];
        if (of_values()) region.x[t] = values[k % 4];
        region.target[t] = targets[t % 5];
        if (!region.mask[t]) region.x[t] = region.other[t] = region.target[t] = NAN;
    }
}

static void gradients_of_losses(void) {
    // every loss under every norm. CISPO's clipped ratio is a weight, held constant: for its differences the
    // old log-probability moves along, and no token is ever switched off.
    for (region.loss = 0; region.loss < GROUP_LOSSES; region.loss++)
        for (region.norm = 0; region.norm < NORMS; region.norm++) {
            double d[REGION_N];
            set_regions();
            CHECK(isfinite(region_loss()));
            memcpy(d, region.d, sizeof d);
            for (int t = 0; t < REGION_N; t++) {
                CHECK((d[t] == 0.0) == region_stopped(t));
                if (!region.mask[t]) continue;
                double* along = region.loss == CISPO ? &region.other[t] : NULL;
                CHECK_GRADIENT_OFF(d[t], slope(region_loss, &region.x[t], along), 1e-10);
                if (region.loss == GSPO) CHECK(d[t] == d[t / REGION_T1 * REGION_T1]);
            }
        }
}

static double pair_value[2], pair_d[2];             // of the chosen and the rejected answer
static double preference_loss(void) {
    return loss_reward_model(pair_d, pair_d + 1, pair_value[0], pair_value[1]);
}
static double preference_dpo(void) {
    return loss_dpo(pair_d, pair_d + 1, pair_value[0], pair_value[1], -11.0, -14.0, 0.7);
}

static void gradients_of_preferences(void) {
    static const double margins[] = {-80.0, -3.0, -0.5, 0.0, 0.5, 3.0, 20.0};
    for (int i = 0; i < 14; i++) {
        double (*loss)(void) = i % 2 ? preference_dpo : preference_loss, m = margins[i / 2], d[2];
        pair_value[0] = m + (i % 2 ? -12.0 : 1.0);
        pair_value[1] = i % 2 ? -15.5 : 1.0;
        loss();
        memcpy(d, pair_d, sizeof d);
        for (int side = 0; side < 2; side++)
            CHECK_GRADIENT_OFF(d[side], slope(loss, &pair_value[side], NULL), 1e-11 * fmax(1.0, fabs(m)));
    }
}

// ---- the losses of a pair, through the whole model. Weights of all kinds are tried: the embedding, both
// layers, the head

static Pairs pairs;
static const PairLoss* pair_kind;
static double pair_beta;

static double mean_pair_loss(void) {
    Pair* list[2] = {&pairs.list[0], &pairs.list[1]};
    PairResult result[2];
    pairs_forward(result, &model, list, 2, pair_kind, pair_beta, model.grads.memory == NULL);
    for (int i = 0; i < 2; i++) CHECK(fabs(result[i].margin) > 0.05);
    return (result[0].loss + result[1].loss) / 2;
}

static void check_pair_loss(const char* name, double beta) {
    for (size_t i = 0; i < sizeof pair_losses / sizeof *pair_losses; i++)
        if (!strcmp(pair_losses[i].name, name)) pair_kind = &pair_losses[i];
    Config c = {VOCAB_SIZE, 64, 2, 8, 2, 1, 4, 12, 1, 10000.0, 1e-6, pair_kind->scalar};
    pair_beta = beta;
    pairs = (Pairs){0};
    model = random_model(c, 11);
    for (int i = 0; c.scalar && i < c.width; i++) model.weights.score[i] = sin(1.0 + i);
    int embedding = c.vocab_size * c.width, count = (int)model.weights.count, head = count - c.width;
    for (int i = 0; i < embedding; i++) model.weights.embedding[i] *= 20.0; // logits that are not all alike
    pairs_add(&pairs, "9-2?", "It is <<9-2=7>>7", "6");
    pairs_add(&pairs, "1+1?", "2", "<<1+2=3>>3");
    render_pairs(&pairs, 64, "two");
    // a reference that is not the policy, but near enough that the loss is curved
    if (!c.scalar) {
        set_reference(&pairs, &model, pair_kind);
        pairs.list[0].reference[CHOSEN] -= 1.5;
        pairs.list[1].reference[REJECTED] -= 2.0;
    }
    mean_pair_loss();                       // the first one makes the gradients
    // most of the embedding belongs to bytes that do not occur
    const int from[4] = {0, embedding, head, count}, step[3] = {31, 5, 1};
    for (int i = 0; i < 3; i++) {
        int n = from[i + 1] - from[i];
        Tensor w = array(model.weights.memory + from[i], n), g = array(model.grads.memory + from[i], n);
        CHECK_NEAR(gradient_error(mean_pair_loss, w, g, step[i]), 0, TOLERANCE);
    }
    pairs_free(&pairs), model_free(&model);
}

static void gradients_of_pairs_through_the_model(void) {
    check_pair_loss("bradley-terry", 1.0);
    check_pair_loss("outcome", 1.0);
    check_pair_loss("dpo", 0.3);
}

static void test_layers(void) {
    RUN_ALL(TEST(gradients_of_embedding), TEST(gradients_of_rmsnorm), TEST(rmsnorm_by_hand),
            TEST(gradients_of_rope), TEST(gradients_of_qk), TEST(gradients_of_attention),
            TEST(attention_by_hand), TEST(gradients_of_swiglu), TEST(gradients_of_logprob));
}

static void test_model_gradients(void) { RUN(gradients_of_model); }

static void test_optimizer(void) {
    RUN_ALL(TEST(adamw_by_hand), TEST(clip_gradient_by_hand), TEST(lr_schedule_by_hand));
}

static void test_loss_gradients(void) {
    RUN_ALL(TEST(gradients_of_losses), TEST(gradients_of_preferences),
            TEST(gradients_of_pairs_through_the_model));
}

static const Part parts[] = {
    {"layers", test_layers},
    {"model_gradients", test_model_gradients},
    {"optimizer", test_optimizer},
    {"loss_gradients", test_loss_gradients},
    {"chapter_01", test_chapter_01},
    {"chapter_02", test_chapter_02},
    {"chapter_03", test_chapter_03},
    {"chapter_04", test_chapter_04},
    {"chapter_07", test_chapter_07},
    {"chapter_08", test_chapter_08},
    {"chapter_09", test_chapter_09},
};

int main(int argc, char** argv) { return run_parts(parts, (int)(sizeof parts / sizeof *parts), argc, argv); }
