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

static const double STEP = 1e-5, TOLERANCE = 1e-6;

// array number k: smooth, of both signs, never twice the same
static double* filled(size_t n, int k, double scale, double offset) {
    double* x = allocate(n, sizeof(double));
    fill(x, (int)n, k, scale, offset);
    return x;
}

static double weighted_sum(const double* y, const double* r, size_t n) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += y[i] * r[i];
    return sum;
}

// a plain array of n numbers, seen as a tensor
static Tensor array(double* x, int n) { return (Tensor){.data = x, .rows = n, .row = 1}; }

// The largest |gradient - slope| relative to the largest |slope|; infinite for a NaN, or when all are 0.
static double gradient_error(double (*loss)(void), Tensor x, Tensor gradient) {
    double worst = 0.0, largest = 0.0;
    for (int i = 0; i < x.rows; i++)
        for (int j = 0; j < max_int(x.cols, 1); j++) {
            double *at = x.data + (size_t)i * x.row + (size_t)j * x.col, keep = *at;
            *at = keep + STEP;
            double up = loss();
            *at = keep - STEP;
            double slope = (up - loss()) / (2.0 * STEP);
            *at = keep;
            double error = fabs(gradient.data[(size_t)i * gradient.row + (size_t)j * gradient.col] - slope);
            if (isnan(error)) return INFINITY;
            worst = fmax(worst, error);
            largest = fmax(largest, fabs(slope));
        }
    return largest > 0.0 ? worst / largest : INFINITY;
}

static Config config_of(int context, int heads, int kv_heads, int head_dim) {
    return (Config){.vocab_size = 3, .context = context, .layers = 1, .width = 4, .heads = heads,
                    .kv_heads = kv_heads, .head_dim = head_dim, .mlp_width = 4, .tied = 1,
                    .rope_theta = 50.0, .norm_eps = 1e-3};
}

// What the layer under test reads and writes. Every test sets what it needs and frees it with clear_layer().
static struct {
    double *x, *w, *w2, *y, *r, *lse;    // input, weights, output, the fixed numbers r, attention's log sums
    int *ids, n, c;                      // token ids or positions; tokens, width
    Config config;
    Batch batch;
    Model angles;                        // for its rotary tables and its scratch
} layer;

static void clear_layer(void) {
    free(layer.x), free(layer.w), free(layer.w2), free(layer.y), free(layer.r), free(layer.lse);
    free(layer.ids);
    batch_free(&layer.batch);
    if (layer.angles.weights.memory) model_free(&layer.angles);
    memset(&layer, 0, sizeof layer);
}

// ---- embedding

static double embedding_loss(void) {
    embedding_forward(layer.y, layer.ids, layer.w, layer.n, layer.c);
    return weighted_sum(layer.y, layer.r, (size_t)layer.n * layer.c);
}

static void gradients_of_embedding(void) {
    // Token 2 is read three times, token 3 never: its row stays at the 0.25 that was there.
    enum { V = 5, C = 3, N = 6 };
    int ids[N] = {2, 0, 2, 4, 1, 2};
    layer.n = N;
    layer.c = C;
    layer.ids = allocate(N, sizeof(int));
    memcpy(layer.ids, ids, sizeof ids);
    layer.w = filled(V * C, 1, 1.0, 0.0);
    layer.r = filled(N * C, 2, 1.0, 0.0);
    layer.y = filled(N * C, 0, 0.0, 0.0);
    double dw[V * C];
    for (int i = 0; i < V * C; i++) dw[i] = 0.25;
    embedding_backward(dw, layer.r, layer.ids, N, C);
    for (int i = 3 * C; i < 4 * C; i++) CHECK(dw[i] == 0.25);
    for (int i = 0; i < V * C; i++) dw[i] -= 0.25;
    CHECK_NEAR(gradient_error(embedding_loss, array(layer.w, V * C), array(dw, V * C)), 0, TOLERANCE);
    clear_layer();
}

// ---- RMSNorm

static double rmsnorm_loss(void) {
    rmsnorm_forward(layer.y, layer.x, layer.w, 1e-3, layer.n, layer.c);
    return weighted_sum(layer.y, layer.r, (size_t)layer.n * layer.c);
}

static void set_rmsnorm(int n, int c) {
    layer.n = n;
    layer.c = c;
    layer.x = filled((size_t)n * c, 1, 1.0, 0.1);
    layer.w = filled((size_t)c, 2, 0.5, 1.0);
    layer.y = filled((size_t)n * c, 0, 0.0, 0.0);
    layer.r = filled((size_t)n * c, 3, 1.0, 0.0);
}

static void gradients_of_rmsnorm(void) {
    // Widths around the eight partial sums. dx and dw are added to: they begin at 0.5.
    static const int sizes[][2] = {{1, 1}, {3, 7}, {2, 8}, {40, 5}, {2, 19}};
    for (int s = 0; s < 5; s++) {
        int n = sizes[s][0], c = sizes[s][1];
        set_rmsnorm(n, c);
        double *dx = filled((size_t)n * c, 0, 0.0, 0.5), *dw = filled((size_t)c, 0, 0.0, 0.5);
        rmsnorm_backward(dx, dw, layer.r, layer.x, layer.w, 1e-3, n, c);
        for (int i = 0; i < n * c; i++) dx[i] -= 0.5;
        for (int i = 0; i < c; i++) dw[i] -= 0.5;
        CHECK_NEAR(gradient_error(rmsnorm_loss, array(layer.x, n * c), array(dx, n * c)), 0, TOLERANCE);
        CHECK_NEAR(gradient_error(rmsnorm_loss, array(layer.w, c), array(dw, c)), 0, TOLERANCE);
        free(dx), free(dw);
        clear_layer();
    }
}

static void gradients_of_rmsnorm_in_place(void) {
    // one row, dx being dy itself, as the heads use it; the weight's gradient is added to
    enum { C = 11 };
    set_rmsnorm(1, C);
    double d[C], dw[C];
    memcpy(d, layer.r, sizeof d);
    for (int i = 0; i < C; i++) dw[i] = -2.0;
    rmsnorm_row_backward(d, dw, d, layer.x, layer.w, 1e-3, C, 0);
    for (int i = 0; i < C; i++) dw[i] += 2.0;
    CHECK_NEAR(gradient_error(rmsnorm_loss, array(layer.x, C), array(d, C)), 0, TOLERANCE);
    CHECK_NEAR(gradient_error(rmsnorm_loss, array(layer.w, C), array(dw, C)), 0, TOLERANCE);
    clear_layer();
}

static void rmsnorm_by_hand(void) {
    // x = (3, 4), eps 0: mean(x^2) = 12.5, rms = 3.5355339; w = (2, 10): y = (6, 40) / 3.5355339.
    // eps is inside the root: x = (1, 1) with eps = 3 has rms 2, so y = (0.5, 0.5).
    double x[2] = {3, 4}, w[2] = {2, 10}, one[2] = {1, 1}, y[2];
    rmsnorm_forward(y, x, w, 0.0, 1, 2);
    CHECK_NEAR(y[0], 6.0 / 3.5355339059327378, 1e-14);
    CHECK_NEAR(y[1], 40.0 / 3.5355339059327378, 1e-14);
    rmsnorm_forward(y, one, one, 3.0, 1, 2);
    CHECK_NEAR(y[0], 0.5, 1e-15);
}

// ---- rotary positions

static void set_angles(Config config) {
    layer.config = config;
    layer.angles = model_new(config);
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
    set_angles(config_of(100, 1, 1, 6));
    layer.x = filled(6, 1, 1.0, 0.3);
    layer.r = filled(6, 2, 1.0, 0.0);
    double d[6];
    memcpy(d, layer.r, sizeof d);
    rope_at(d, 5, -1.0);
    CHECK_NEAR(gradient_error(rope_loss, array(layer.x, 6), array(d, 6)), 0, TOLERANCE);
    // Pair 0 is (x[0], x[3]) and turns by one radian per position: (1, 0) at position 2 becomes (cos 2,
    // sin 2). Pair 1 turns by 50^(-2/6) = 0.2714418 per position.
    double x[6] = {1, 1, 0, 0, 0, 0};
    rope_at(x, 2, 1.0);
    CHECK_NEAR(x[0], cos(2.0), 1e-14);
    CHECK_NEAR(x[3], sin(2.0), 1e-14);
    CHECK_NEAR(x[1], cos(2 * 0.27144176165949065), 1e-14);
    CHECK_NEAR(x[4], sin(2 * 0.27144176165949065), 1e-14);
    // What rotary positions are for: the product of a query and a key knows only how far apart they are.
    double q[6], k[6], product[2];
    for (int shift = 0; shift < 2; shift++) {
        fill(q, 6, 3, 1.0, 0.0);
        fill(k, 6, 4, 1.0, 0.0);
        rope_at(q, 9 + 40 * shift, 1.0);
        rope_at(k, 4 + 40 * shift, 1.0);
        product[shift] = weighted_sum(q, k, 6);
    }
    CHECK_NEAR(product[1], product[0], 1e-13);
    clear_layer();
}

// ---- query and key: norm, then rotation

static double qk_loss(void) {
    const Config* c = &layer.config;
    qk_forward(layer.y, layer.x, layer.w, layer.w2, layer.angles.cosine, layer.angles.sine, layer.ids,
               layer.n, c);
    return weighted_sum(layer.y, layer.r, (size_t)layer.n * qkv_width(c));
}

static void gradients_of_qk(void) {
    // Positions come from the batch; they are not the token's index here.
    set_angles(config_of(80, 2, 1, 6));
    const Config* c = &layer.config;
    int N = 20, D = c->head_dim, Q = qkv_width(c), all = N * Q;
    layer.n = N;
    layer.ids = allocate((size_t)N, sizeof(int));
    for (int n = 0; n < N; n++) layer.ids[n] = (n * 7) % 80;
    layer.x = filled((size_t)all, 1, 1.0, 0.2);
    layer.r = filled((size_t)all, 2, 1.0, 0.0);
    layer.y = filled((size_t)all, 0, 0.0, 0.0);
    layer.w = filled((size_t)D, 3, 0.5, 1.0);
    layer.w2 = filled((size_t)D, 4, 0.5, 1.0);
    double *d = filled((size_t)all, 2, 1.0, 0.0);                 // dy = r, to be replaced
    double *dwq = filled((size_t)D, 0, 0.0, 1.0), *dwk = filled((size_t)D, 0, 0.0, 3.0);
    qk_backward(d, dwq, dwk, layer.x, layer.w, layer.w2, layer.angles.cosine, layer.angles.sine, layer.ids,
                N, c);
    for (int i = 0; i < D; i++) {
        dwq[i] -= 1.0;
        dwk[i] -= 3.0;
    }
    CHECK_NEAR(gradient_error(qk_loss, array(layer.x, all), array(d, all)), 0, TOLERANCE);
    CHECK_NEAR(gradient_error(qk_loss, array(layer.w, D), array(dwq, D)), 0, TOLERANCE);
    CHECK_NEAR(gradient_error(qk_loss, array(layer.w2, D), array(dwk, D)), 0, TOLERANCE);
    free(d), free(dwq), free(dwk);
    clear_layer();
}

// ---- attention

static double attention_loss(void) {
    const Config* c = &layer.config;
    attention_forward(layer.y, layer.lse, layer.x, &layer.batch, c, layer.angles.acts.scratch);
    return weighted_sum(layer.y, layer.r, (size_t)layer.batch.N * c->heads * c->head_dim);
}

// Gradients of attention over segments; prefix[s] as in Batch. Queries, keys and values each on their own:
// the values' gradients are the largest.
static void check_attention(int heads, int kv_heads, int head_dim, const int* length, const int* prefix,
                            int segments) {
    set_angles(config_of(110, heads, kv_heads, head_dim));
    int ids[110] = {0};
    for (int s = 0; s < segments; s++) batch_add(&layer.batch, ids, NULL, length[s], prefix[s]);
    const Config* c = &layer.config;
    const Batch* b = &layer.batch;
    model_reserve(&layer.angles, b->N);
    size_t Q = (size_t)qkv_width(c), HD = (size_t)heads * head_dim, N = (size_t)b->N;
    layer.x = filled(N * Q, 1, 1.3, 0.0);
    layer.r = filled(N * HD, 2, 1.0, 0.0);
    layer.y = filled(N * HD, 0, 0.0, 0.0);
    layer.lse = filled(N * heads, 0, 0.0, 0.0);
    double* d = filled(N * Q, 0, 0.0, 99.0);   // stored, not added: the 99 must go
    attention_loss();
    attention_backward(d, layer.r, layer.y, layer.lse, layer.x, b, c, layer.angles.acts.scratch);
    int from[4] = {0, heads * head_dim, (heads + kv_heads) * head_dim, (int)Q};
    for (int part = 0; part < 3; part++) {
        int cols = from[part + 1] - from[part];
        Tensor x = {.data = layer.x + from[part], .rows = b->N, .cols = cols, .row = Q, .col = 1}, g = x;
        g.data = d + from[part];
        CHECK_NEAR(gradient_error(attention_loss, x, g), 0, TOLERANCE);
    }
    free(d);
    clear_layer();
}

static void gradients_of_attention(void) {
    // three segments; 1, 2 and 4 query heads for each key head; then one longer than a block of queries
    static const int length[] = {2, 9, 5}, longer[] = {2, QUERY_BLOCK + 5, 7}, alone[] = {-1, -1, -1};
    check_attention(2, 2, 2, length, alone, 3);
    check_attention(4, 2, 2, length, alone, 3);
    check_attention(4, 1, 4, length, alone, 3);
    check_attention(2, 1, 2, longer, alone, 3);
}

static void gradients_of_attention_shared_prefix(void) {
    // prefix and continuations, a second family, one alone: a prefix's keys collect from all who see them
    static const int length[] = {5, 3, 1, 4, 2, 6, 3}, prefix[] = {-1, 0, 0, 0, -1, 4, -1};
    check_attention(2, 2, 2, length, prefix, 7);
    check_attention(4, 2, 2, length, prefix, 7);
    check_attention(3, 1, 4, length, prefix, 7);
    // prefix and continuation both longer than a block
    static const int long_length[] = {QUERY_BLOCK + 1, QUERY_BLOCK + 2, 2}, long_prefix[] = {-1, 0, 0};
    check_attention(2, 1, 2, long_length, long_prefix, 3);
}

static void attention_by_hand(void) {
    // One head of width 2, theta's rotation left out (attention gets rotated queries and keys). Token 1
    // asks q = (sqrt 2 ln 3, 0); keys (1,0) and (0,0) give scores ln 3 and 0 after division by sqrt 2,
    // weights 3/4 and 1/4; values (4,0) and (0,8). Token 0 sees only itself: its output is its value.
    set_angles(config_of(4, 1, 1, 2));
    int ids[2] = {0};
    batch_add(&layer.batch, ids, NULL, 2, -1);
    model_reserve(&layer.angles, 2);
    double qkv[12] = {9, 9, 1, 0, 4, 0, 1.4142135623730951 * 1.0986122886681098, 0, 0, 0, 0, 8};
    double out[4], lse[2];
    attention_forward(out, lse, qkv, &layer.batch, &layer.config, layer.angles.acts.scratch);
    CHECK_NEAR(out[0], 4, 1e-14);
    CHECK_NEAR(out[1], 0, 1e-14);
    CHECK_NEAR(out[2], 0.75 * 4, 1e-14);
    CHECK_NEAR(out[3], 0.25 * 8, 1e-14);
    CHECK_NEAR(lse[1], log(3.0 + 1.0), 1e-14);
    clear_layer();
}

// ---- SwiGLU

static double swiglu_loss(void) {
    swiglu_forward(layer.y, layer.x, layer.n, layer.c);
    return weighted_sum(layer.y, layer.r, (size_t)layer.n * layer.c);
}

static void gradients_of_swiglu(void) {
    int N = 20, F = 9;
    layer.n = N;
    layer.c = F;
    layer.x = filled((size_t)N * 2 * F, 1, 3.0, 0.0);
    layer.y = filled((size_t)N * F, 0, 0.0, 0.0);
    layer.r = filled((size_t)N * F, 2, 1.0, 0.0);
    double* d = filled((size_t)N * 2 * F, 0, 0.0, 99.0);   // stored
    swiglu_backward(d, layer.r, layer.x, N, F);
    CHECK_NEAR(gradient_error(swiglu_loss, array(layer.x, 2 * N * F), array(d, 2 * N * F)), 0, TOLERANCE);
    free(d);
    clear_layer();
    // gate ln 3: sigmoid 3/4, so silu = 3/4 ln 3 = 0.8239592; up 2: y = 1.6479184
    double gu[2] = {1.0986122886681098, 2}, y;
    swiglu_forward(&y, gu, 1, 1);
    CHECK_NEAR(y, 1.5 * 1.0986122886681098, 1e-14);
}

// ---- log-probabilities

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
    layer.x = filled(M * V, 1, 2.0, 0.0);
    layer.r = filled(M, 2, 1.0, 0.0);
    layer.y = filled(M * V, 0, 0.0, 0.0);
    logprob_loss();
    double* d = allocate(M * V, sizeof(double));
    memcpy(d, layer.y, M * V * sizeof(double));
    logprob_backward(d, layer.r, logprob_targets, logprob_scored, M, V);
    CHECK_NEAR(gradient_error(logprob_loss, array(layer.x, M * V), array(d, M * V)), 0, TOLERANCE);
    free(d);
    clear_layer();
    // logits ln 1, ln 1, ln 2 (all + 100): p = 1/4, 1/4, 1/2; logp of token 2 = -ln 2;
    // entropy = 2 * 1/4 ln 4 + 1/2 ln 2 = 1.5 ln 2 = 1.0397208
    double logits[3] = {100, 100, 100.69314718055994531}, logp, entropy, probs[3];
    int target = 2, scored = 0;
    logprob_forward(&logp, probs, logits, &target, &scored, 1, 3);
    entropy = row_entropy(logits, log_sum_exp(logits, 3), 3);
    CHECK_NEAR(logp, -0.69314718055994531, 1e-13);
    CHECK_NEAR(entropy, 1.0397207708399179, 1e-13);
    CHECK_NEAR(probs[0], 0.25, 1e-13);
}

// ---- the whole model

static Model model;
static Batch batch;
static double* token_weight;

// what the model's head gives for each scored token, a log-probability or a scalar, and the way back from it
static const double* head_forward(Model* m, const Batch* b) {
    if (m->config.scalar) model_scalar_forward(m, b);
    else model_forward(m, b);
    return m->config.scalar ? m->acts.scalar : m->acts.logp;
}
static void head_backward(Model* m, const Batch* b, const double* d) {
    if (m->config.scalar) model_scalar_backward(m, b, d);
    else model_backward(m, b, d);
}

static double model_loss(void) {
    return weighted_sum(head_forward(&model, &batch), token_weight, (size_t)batch.M);
}

// A model with weights of a size at which every layer matters: matrices 0.4 sin(...), norms 1 + 0.2 sin(...).
enum { UNTIED, TIED, SCALAR, HEADS };
static Model small_model(int heads, int kv_heads, int head_dim, int head) {
    Config c = config_of(16, heads, kv_heads, head_dim);
    c.vocab_size = 7;
    c.layers = 2;
    c.width = 6;
    c.mlp_width = 5;
    c.tied = head == TIED;
    c.scalar = head == SCALAR;
    Model m = model_new(c);
    int count = tensor_count(&m.config);
    Tensor* list = allocate((size_t)count, sizeof(Tensor));
    tensor_list(list, &m.weights, &m.config);
    for (int k = 0; k < count; k++)
        for (int i = 0; i < list[k].rows; i++)
            for (int j = 0; j < max_int(list[k].cols, 1); j++) {
                double *x = &list[k].data[(size_t)i * list[k].row + (size_t)j * list[k].col];
                double wave = sin(0.7 * (i * max_int(list[k].cols, 1) + j + 1) + 1.3 * k);
                *x = list[k].cols ? 0.4 * wave : 1.0 + 0.2 * wave;
            }
    free(list);
    return m;
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

// Every tensor's gradient against the slopes of the loss.
static void check_tensors(double (*loss)(void), Model* m) {
    int count = tensor_count(&m->config);
    Tensor *w = allocate((size_t)count, sizeof(Tensor)), *g = allocate((size_t)count, sizeof(Tensor));
    tensor_list(w, &m->weights, &m->config);
    tensor_list(g, &m->grads, &m->config);
    for (int k = 0; k < count; k++) {
        double error = gradient_error(loss, w[k], g[k]);
        if (!(error < TOLERANCE)) printf("  %s\n", w[k].name);
        CHECK_NEAR(error, 0, TOLERANCE);
    }
    free(w), free(g);
}

static void gradients_of_model(void) {
    // query heads, key heads, their width, the model's head; H D = 16 and C = 6: they need not fill the width
    static const int sizes[][4] = {{4, 2, 4, TIED}, {4, 2, 4, UNTIED}, {4, 1, 2, TIED}, {4, 1, 2, UNTIED},
                                   {3, 3, 2, TIED}, {3, 3, 2, UNTIED}, {4, 2, 4, SCALAR}, {3, 3, 2, SCALAR}};
    for (int i = 0; i < 8; i++) {
        model = small_model(sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3]);
        small_batch(&batch);
        CHECK(batch.N == 18 && batch.M == 2 + 4 + 3 + 4);
        token_weight = filled((size_t)batch.M, 5, 1.0, 0.1);   // d(loss)/d(logp or scalar), of both signs
        model_zero_grads(&model);
        model_loss();
        head_backward(&model, &batch, token_weight);
        check_tensors(model_loss, &model);
        free(token_weight), model_free(&model), batch_free(&batch);
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
    Model m = small_model(4, 2, 4, 0);
    Optimizer o = optimizer_new(&m.config);
    AdamOptions s = {0.5, 0.75, 0.5, 0.2};
    model_zero_grads(&m);
    size_t n = m.weights.count, decayed = m.weights.undecayed;
    for (size_t i = 0; i < n; i++) {
        m.weights.memory[i] = 1.0;
        m.grads.memory[i] = 0.5;
    }
    adamw_step(&m, &o, 0.1, s);
    CHECK(o.step == 1);
    CHECK_NEAR(m.weights.memory[0], 0.95, 1e-14);
    CHECK_NEAR(m.weights.memory[decayed - 1], 0.95, 1e-14);
    CHECK_NEAR(m.weights.memory[decayed], 0.93, 1e-14);
    CHECK_NEAR(m.weights.memory[n - 1], 0.93, 1e-14);
    for (size_t i = 0; i < n; i++) m.grads.memory[i] = -1.25;
    adamw_step(&m, &o, 0.1, s);
    CHECK(o.step == 2);
    for (size_t i = 0; i < n; i++) {
        double expected = i < decayed ? 0.95 + 0.1 * (4.0 / 9) : 0.93 - 0.1 * (-4.0 / 9 + 0.2 * 0.93);
        if (fabs(m.weights.memory[i] - expected) < 1e-14) continue;
        CHECK_NEAR(m.weights.memory[i], expected, 1e-14);
        break;
    }
    CHECK_NEAR(o.first.memory[0], -0.5, 1e-15);
    CHECK_NEAR(o.second.memory[0], 0.4375, 1e-15);
    model_free(&m), optimizer_free(&o);
}

static void clip_gradient_by_hand(void) {
    // Four gradients, in the first, the second and the last block of 1024: 1, 2, 2, 4; |g| = sqrt(1 + 4 +
    // 4 + 16) = 5. Clipped to 1 they are a fifth: 0.2, 0.4, 0.4, 0.8. A longer limit, or none, changes
    // nothing.
    Config c = config_of(4, 1, 1, 2);
    c.vocab_size = 70;
    c.width = 32;
    c.mlp_width = 8;
    Model m = model_new(c);
    model_zero_grads(&m);
    double* g = m.grads.memory;
    size_t last = m.grads.count - 1;
    CHECK(last > 3 * 1024 && (last + 1) % 1024 != 0);
    CHECK_NEAR(clip_gradient(&m, 1.0), 0, 0);      // no gradient, no division by zero
    CHECK(g[0] == 0.0);
    g[0] = 1;
    g[1023] = -2;
    g[1024] = 2;
    g[last] = 4;
    CHECK_NEAR(clip_gradient(&m, 6.0), 5, 1e-15);
    CHECK(g[0] == 1 && g[1023] == -2 && g[1024] == 2 && g[last] == 4);
    CHECK_NEAR(clip_gradient(&m, 0.0), 5, 1e-15);
    CHECK(g[0] == 1 && g[1023] == -2 && g[1024] == 2 && g[last] == 4);
    CHECK_NEAR(clip_gradient(&m, 1.0), 5, 1e-15);
    CHECK_NEAR(g[0], 0.2, 1e-15);
    CHECK_NEAR(g[1023], -0.4, 1e-15);
    CHECK_NEAR(g[1024], 0.4, 1e-15);
    CHECK_NEAR(g[last], 0.8, 1e-15);
    model_free(&m);
}

static void lr_schedule_by_hand(void) {
    // 12 updates, 2 of them warm-up: 1/2, 1, then from 1 in a line that would reach 0.1 at update 12:
    // update 7 is half way, 1 - 0.9 * 5/10 = 0.55; the last, 11, has 1 - 0.9 * 9/10 = 0.19
    CHECK_NEAR(lr_schedule(0, 12, 2, 0.1), 0.5, 1e-15);
    CHECK_NEAR(lr_schedule(1, 12, 2, 0.1), 1.0, 1e-15);
    CHECK_NEAR(lr_schedule(2, 12, 2, 0.1), 1.0, 1e-15);
    CHECK_NEAR(lr_schedule(7, 12, 2, 0.1), 0.55, 1e-15);
    CHECK_NEAR(lr_schedule(11, 12, 2, 0.1), 0.19, 1e-15);
    // without warm-up it begins at 1; a warm-up as long as the run never falls
    CHECK_NEAR(lr_schedule(0, 10, 0, 0.0), 1.0, 1e-15);
    CHECK_NEAR(lr_schedule(9, 10, 0, 0.0), 0.1, 1e-15);
    CHECK_NEAR(lr_schedule(2, 4, 4, 0.0), 0.75, 1e-15);
    CHECK_NEAR(lr_schedule(4, 4, 4, 0.0), 1.0, 1e-15);
}

// ---- the losses of chapters 8 and 9, under all four norms

// The slope by x[t]. CISPO's clipped ratio is held constant: the old log-probability moves along.
static double group_slope(int which, double* x, double* old, const double* adv, const int* mask, int K,
                          int T1, int norm, int t, double h) {
    double s[GROUP_TOKENS], kept = x[t], kept_old = old[t], difference = 0.0;
    for (int sign = 1; sign >= -1; sign -= 2) {
        x[t] = kept + sign * h;
        old[t] = kept_old + (which == CISPO ? sign * h : 0.0);
        difference += sign * group_loss(which, s, x, old, adv, mask, K, T1, norm);
    }
    x[t] = kept;
    old[t] = kept_old;
    return difference / (2.0 * h);
}

static void gradients_of_losses(void) {
    double x[REF_N], old[REF_N], d[REF_N];
    int moved = 0;
    fill_logp(x, 4);
    fill_logp(old, 5);
    for (int which = 0; which < GROUP_LOSSES; which++)
        for (int norm = 0; norm < NORMS; norm++) {
            CHECK(isfinite(group_loss(which, d, x, old, ref_adv, ref_group_mask, REF_K, REF_T1, norm)));
            for (int t = 0; t < REF_N; t++) {
                CHECK_GRADIENT_OFF(d[t], group_slope(which, x, old, ref_adv, ref_group_mask, REF_K, REF_T1,
                                                     norm, t, 1e-5), 1e-10);
                if (!ref_group_mask[t]) CHECK(d[t] == 0.0);
                else if (which == CISPO) CHECK(d[t] != 0.0);     // no token is ever switched off
                moved += d[t] != 0.0;
            }
        }
    CHECK(moved > GROUP_LOSSES * NORMS * 5);
}

// Ratios outside each bound and inside, away from the corners 0.8 and 1.28.
static const double region_ratio[] = {0.3, 0.7, 0.9, 1.2, 1.4, 3.0};
static int stops(double ratio, int sign) { return (sign > 0 && ratio > 1.28) || (sign < 0 && ratio < 0.8); }

static void gradients_of_clip_in_every_region(void) {
    const int one[1] = {1};
    for (int i = 0; i < 6; i++)
        for (int sign = -1; sign <= 1; sign += 2) {
            double adv[1] = {0.7 * sign}, old[1] = {-2.0}, x[1] = {-2.0 + log(region_ratio[i])}, d[1];
            group_loss(CLIP, d, x, old, adv, one, 1, 1, NORM_TOKEN_MEAN);
            CHECK_GRADIENT_OFF(d[0], group_slope(CLIP, x, old, adv, one, 1, 1, 0, 0, 1e-6), 1e-9);
            CHECK((d[0] == 0.0) == stops(region_ratio[i], sign));
        }
}

static void gradients_of_gspo_in_every_region(void) {
    // within an answer weight and advantage are equal, so its tokens share their derivative
    const int mask[8] = {1, 1, 0, 1, 0, 1, 0, 0};
    for (int norm = 0; norm < NORMS; norm++)
        for (int i = 0; i < 6; i++)
            for (int sign = -1; sign <= 1; sign += 2) {
                double adv[2] = {0.7 * sign, 0.2}, x[8], d[8];
                double old[8] = {-2.0, -1.0, NAN, -0.5, NAN, -1.0, NAN, NAN};
                for (int t = 0; t < 4; t++)
                    x[t] = old[t] + log(region_ratio[i]) + (t == 0 ? 0.4 : t == 1 ? -0.3 : -0.1);
                for (int t = 4; t < 8; t++) x[t] = old[t] + 0.05;
                group_loss(GSPO, d, x, old, adv, mask, 2, 4, norm);
                for (int t = 0; t < 8; t++) {
                    double slope = mask[t] ? group_slope(GSPO, x, old, adv, mask, 2, 4, norm, t, 1e-6) : 0.0;
                    CHECK_GRADIENT_OFF(d[t], slope, mask[t] ? 1e-9 : 0.0);
                    if (!mask[t] || t >= 4) continue;
                    CHECK((d[t] == 0.0) == stops(region_ratio[i], sign) && d[t] == d[0]);
                }
            }
}

static void gradients_of_value_in_every_region(void) {
    // V below, inside, above 0.3 .. 0.7; clipped where V has gone beyond the bound, towards the target
    const double values[] = {0.1, 0.45, 0.6, 0.9}, targets[] = {-1.0, 0.05, 0.47, 0.93, 2.0}, old[1] = {0.5};
    const int one[1] = {1};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 5; j++) {
            double x[1] = {values[i]}, d[1], s[1], h = 1e-6, up[1] = {x[0] + h}, down[1] = {x[0] - h};
            group_value(d, x, old, targets + j, one, 1, 1, 0.2, NORM_TOKEN_MEAN);
            double numeric = (group_value(s, up, old, targets + j, one, 1, 1, 0.2, NORM_TOKEN_MEAN) -
                              group_value(s, down, old, targets + j, one, 1, 1, 0.2, NORM_TOKEN_MEAN)) /
                             (2.0 * h);
            CHECK_GRADIENT_OFF(d[0], numeric, 1e-9);
            double held = fmin(fmax(x[0], 0.3), 0.7);
            CHECK((d[0] == 0.0) == (fabs(held - targets[j]) > fabs(x[0] - targets[j])));
        }
}

// Bradley-Terry, or DPO with a reference at -11 and -14 and beta 0.7
static double preference_loss(double* dc, double* dr, double chosen, double rejected, int dpo) {
    return dpo ? loss_dpo(dc, dr, chosen, rejected, -11.0, -14.0, 0.7)
               : loss_reward_model(dc, dr, chosen, rejected);
}

static void gradients_of_preferences(void) {
    const double margins[] = {-80.0, -3.0, -0.5, 0.0, 0.5, 3.0, 20.0}, h = 1e-5;
    for (int i = 0; i < 14; i++) {
        int dpo = i / 7;
        double dc, dr, a, b, off = 1e-11 * fmax(1.0, fabs(margins[i % 7]));
        double c = (dpo ? -12.0 : 1.0) + margins[i % 7], r = dpo ? -15.5 : 1.0;
        preference_loss(&dc, &dr, c, r, dpo);
        double nc = preference_loss(&a, &b, c + h, r, dpo) - preference_loss(&a, &b, c - h, r, dpo),
               nr = preference_loss(&a, &b, c, r + h, dpo) - preference_loss(&a, &b, c, r - h, dpo);
        CHECK(fabs(dc - nc / (2 * h)) <= 1e-6 * fabs(dc) + off);
        CHECK(fabs(dr - nr / (2 * h)) <= 1e-6 * fabs(dr) + off);
    }
}

// ---- the losses of a pair, through the whole model: weights of all kinds are tried

static double mean_pair_loss(PairResult* result, Model* m, Pair* const* list, int count, const PairLoss* loss,
                             double beta) {
    double sum = 0.0;
    pairs_forward(result, m, list, count, loss, beta, 0);
    for (int i = 0; i < count; i++) sum += result[i].loss;
    return sum / count;
}

static void check_pair_loss(const char* name, double beta) {
    enum { N = 2 };
    const PairLoss* loss = NULL;
    for (size_t i = 0; i < sizeof pair_losses / sizeof *pair_losses; i++)
        if (!strcmp(pair_losses[i].name, name)) loss = &pair_losses[i];
    Config c = {VOCAB_SIZE, 64, 2, 8, 2, 1, 4, 12, 1, 10000.0, 1e-6, 0};
    c.scalar = loss->scalar;
    Model m = model_new(c);
    model_init(&m, 11);
    for (int i = 0; loss->scalar && i < c.width; i++) m.weights.score[i] = sin(1.0 + i);
    for (int i = 0; i < c.vocab_size * c.width; i++)
        m.weights.embedding[i] *= 20.0; // logits that are not all alike
    Pairs p = {0};
    PairResult result[N];
    pairs_add(&p, "9-2?", "It is <<9-2=7>>7", "6");
    pairs_add(&p, "1+1?", "2", "<<1+2=3>>3");
    render_pairs(&p, 64, "two");
    Pair* list[N] = {&p.list[0], &p.list[1]};
    // a reference that is not the policy, but near enough that the loss is curved
    if (!loss->scalar) {
        set_reference(&p, &m, loss);
        p.list[0].reference[CHOSEN] -= 1.5;
        p.list[1].reference[REJECTED] -= 2.0;
    }
    model_zero_grads(&m);
    pairs_forward(result, &m, list, N, loss, beta, 1);
    for (int i = 0; i < N; i++) CHECK(fabs(result[i].margin) > 0.05);
    double h = 1e-5, largest = 0.0, worst = 0.0;
    for (size_t i = 0; i < m.weights.count; i++) {
        double w = m.weights.memory[i], g = m.grads.memory[i];
        // most of the embedding belongs to bytes that do not occur
        if (i % (i < (size_t)(c.vocab_size * c.width) ? 31 : i < m.weights.count - (size_t)c.width ? 5 : 1))
            continue;
        m.weights.memory[i] = w + h;
        double up = mean_pair_loss(result, &m, list, N, loss, beta);
        m.weights.memory[i] = w - h;
        double down = mean_pair_loss(result, &m, list, N, loss, beta);
        m.weights.memory[i] = w;
        largest = fmax(largest, fabs(g));
        worst = fmax(worst, fabs(g - (up - down) / (2.0 * h)));
    }
    CHECK(largest > 1e-2);
    CHECK(worst < 1e-7 * fmax(1.0, largest));
    pairs_free(&p), model_free(&m);
}

static void gradients_of_pairs_through_the_model(void) {
    check_pair_loss("bradley-terry", 1.0);
    check_pair_loss("outcome", 1.0);
    check_pair_loss("dpo", 0.3);
}

static void test_layers(void) {
    RUN_ALL(TEST(gradients_of_embedding), TEST(gradients_of_rmsnorm), TEST(gradients_of_rmsnorm_in_place),
            TEST(rmsnorm_by_hand), TEST(gradients_of_rope), TEST(gradients_of_qk),
            TEST(gradients_of_attention), TEST(gradients_of_attention_shared_prefix), TEST(attention_by_hand),
            TEST(gradients_of_swiglu), TEST(gradients_of_logprob));
}

static void test_model_gradients(void) {
    RUN(gradients_of_model);
}

static void test_optimizer(void) {
    RUN_ALL(TEST(adamw_by_hand), TEST(clip_gradient_by_hand), TEST(lr_schedule_by_hand));
}

static void test_loss_gradients(void) {
    RUN_ALL(TEST(gradients_of_losses), TEST(gradients_of_clip_in_every_region),
            TEST(gradients_of_gspo_in_every_region), TEST(gradients_of_value_in_every_region),
            TEST(gradients_of_preferences), TEST(gradients_of_pairs_through_the_model));
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
