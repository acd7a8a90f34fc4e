// gradients.c - rl.c with `float` meaning double: the backward passes and every loss against central
// differences, and the worksheets of the chapters with 29 more bits. (loss(x + h) - loss(x - h)) / 2h with h
// = 1e-5 is wrong by about h^2 = 1e-10 (what the line leaves out) and 1e-16 / h = 1e-11 (rounding): a right
// gradient agrees to nine digits and a wrong one to none. In single precision both would drown in rounding.
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

static Config config_of(int context, int heads, int kv_heads, int head_dim) {
    return (Config){.vocab_size = 11, .context = context, .layers = 2, .width = 10, .heads = heads,
                    .kv_heads = kv_heads, .head_dim = head_dim, .mlp_width = 5, .tied = 1,
                    .rope_theta = 50.0, .norm_eps = 1e-3};
}

// ---- the layers, by hand. (Their backward passes: every weight of the whole model, below.)

static void rmsnorm_by_hand(void) {
    // x = (3, 4), eps 0: mean(x^2) = 12.5, rms = 3.5355339; w = (2, 10): y = (6, 40) / 3.5355339.
    // eps is inside the root: x = (1, 1) with eps = 3 has rms 2, so y = (0.5, 0.5).
    double x[2] = {3, 4}, w[2] = {2, 10}, one[2] = {1, 1}, y[2];
    rmsnorm_forward(y, x, w, 0.0, 1, 2);
    CHECK_LIST(y, 1e-14, 6.0 / 3.5355339059327378, 40.0 / 3.5355339059327378);
    rmsnorm_forward(y, one, one, 3.0, 1, 2);
    CHECK_LIST(y, 1e-15, 0.5, 0.5);
}

static void rope_by_hand(void) {
    // Pair 0 is (x[0], x[3]) and turns by one radian per position: (1, 0) at position 2 becomes (cos 2, sin
    // 2). Pair 1 turns by 50^(-2/6) = 0.2714418 per position.
    Model m = model_new(config_of(100, 1, 1, 6));
    double x[6] = {1, 1, 0, 0, 0, 0}, turn = 2 * 0.27144176165949065;
    rope_row(x, m.cosine + 2 * 3, m.sine + 2 * 3, 6, 1.0);
    CHECK_LIST(x, 1e-14, cos(2.0), cos(turn), 0, sin(2.0), sin(turn), 0);
    model_free(&m);
}

static void attention_by_hand(void) {
    // One head of width 2, theta's rotation left out (attention gets rotated queries and keys). Token 1 asks
    // q = (sqrt 2 ln 3, 0); keys (1,0) and (0,0) give scores ln 3 and 0 after division by sqrt 2, weights 3/4
    // and 1/4; values (4,0) and (0,8). Token 0 sees only itself: its output is its value.
    Model m = model_new(config_of(4, 1, 1, 2));
    Batch b = {0};
    double qkv[12] = {9, 9, 1, 0, 4, 0, 1.4142135623730951 * 1.0986122886681098, 0, 0, 0, 0, 8};
    double out[4], lse[3] = {9, 9, 9};
    batch_add(&b, (int[]){0, 0}, NULL, 2, -1);
    model_reserve(&m, 2);
    attention_forward(out, lse, qkv, &b, &m.config, m.acts.scratch);
    CHECK_LIST(out, 1e-14, 4, 0, 0.75 * 4, 0.25 * 8);
    CHECK_LIST(lse + 1, 1e-14, log(3.0 + 1.0), 9);           // and nothing behind
    model_free(&m), batch_free(&b);
}

static void swiglu_and_logprob_by_hand(void) {
    // gate ln 3: sigmoid 3/4, so silu = 3/4 ln 3 = 0.8239592; up 2: y = 1.6479184. With dy = 2 the gradients
    // are 2 * 2 * 3/4 (1 + 1/4 ln 3) and 2 * 3/4 ln 3; behind them stands what stood there.
    const double ln3 = 1.0986122886681098, dy[2] = {2, 5};
    double gu[4] = {ln3, 2, 7, 7}, y[2] = {9, 9}, dgu[4] = {9, 9, 9, 9};
    swiglu_forward(y, gu, 1, 1);
    swiglu_backward(dgu, dy, gu, 1, 1);
    CHECK_LIST(y, 1e-14, 1.5 * ln3, 9);
    CHECK_LIST(dgu, 1e-14, 3.0 + 0.75 * ln3, 1.5 * ln3, 9, 9);
    // logits ln 1, ln 1, ln 2 (all + 100): p = 1/4, 1/4, 1/2; logp of token 2 = -ln 2;
    // entropy = 2 * 1/4 ln 4 + 1/2 ln 2 = 1.5 ln 2 = 1.0397208
    double logits[3] = {100, 100, 100.69314718055994531}, logp, probs[3];
    logprob_forward(&logp, probs, logits, (int[]){2}, (int[]){0}, 1, 3);
    CHECK_NEAR(logp, -0.69314718055994531, 1e-13);
    CHECK_NEAR(row_entropy(logits, log_sum_exp(logits, 3), 3), 1.0397207708399179, 1e-13);
    CHECK_NEAR(probs[0], 0.25, 1e-13);
}

// ---- the whole model: the loss sums what the head says of each scored token, with weights of both signs

static Model model;
static Batch batch;
static double token_weight[256];

static double model_loss(void) {
    const double* said = head_forward(&model, &batch);
    double sum = 0.0;
    for (int i = 0; i < batch.M; i++) sum += token_weight[i] * said[i];
    return sum;
}

// Prefixes with continuations and sequences of their own; every third token has no target. In the long batch
// the first prefix and its continuation are longer than a block of queries.
static void make_batch(int more) {
    const int length[] = {4 + more, 5 + more, 1, 3, 6, 2, 4, 3}, prefix[] = {-1, 0, 0, 0, -1, 4, -1, -1};
    for (int s = 0; s < 8; s++) {
        int ids[64], targets[64];
        for (int t = 0; t < length[s]; t++) {
            ids[t] = (t * t + 2 * t + 3 * s) % 11;
            targets[t] = (t + s) % 3 == 1 ? -1 : (5 * t + s) % 11;
        }
        batch_add(&batch, ids, targets, length[s], prefix[s]);
    }
    fill(token_weight, batch.M, 5, 1.0, 0.1);
}

static void gradients_of_model(void) {
    // query heads, key heads, their width, tied, scalar; H D = 16 and C = 10: they need not fill the width
    static const int sizes[][5] = {
        {4, 2, 4, 1, 0}, {4, 2, 4, 0, 0}, {4, 1, 2, 0, 0}, {3, 3, 2, 1, 0}, {3, 3, 2, 1, 1}, {2, 1, 4, 1, 0}};
    for (int i = 0; i < 6; i++) {
        const int* s = sizes[i];
        int more = i == 5 ? QUERY_BLOCK : 0;
        Config c = config_of(2 * more + 16, s[0], s[1], s[2]);
        Tensor w[MOST_TENSORS], g[MOST_TENSORS];
        c.tied = s[3];
        c.scalar = s[4];
        model = wave_model(c, 0.4, 0.2);               // weights of a size at which every layer matters
        make_batch(more);
        model_zero_grads(&model);
        model_loss();
        head_backward(&model, &batch, token_weight);
        tensor_list(w, &model.weights, &model.config, "");
        tensor_list(g, &model.grads, &model.config, "");
        for (int k = 0; k < tensor_count(&model.config); k++) {
            double error = gradient_error(model_loss, w[k], g[k], 1);
            if (!(error < TOLERANCE)) printf("  sizes %d: %s\n", i, w[k].name);
            CHECK_NEAR(error, 0, TOLERANCE);
        }
        model_free(&model), batch_free(&batch);
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
    Model m = model_new(config_of(16, 4, 2, 4));
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
    // Four gradients, in the first, the second and the last block of 1024: 1, 2, 2, 4; |g| = sqrt(1 + 4 + 4 +
    // 16) = 5. A longer limit, or none, changes nothing; clipped to 1 they are a fifth.
    static const double value[4] = {1, -2, 2, 4}, limits[3] = {6.0, 0.0, 1.0};
    Config c = config_of(4, 1, 1, 2);
    c.vocab_size = 70;
    c.width = 32;
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

static void set_regions(void) {
    static const double ratios[6] = {0.3, 0.7, 0.9, 1.2, 1.4, 3.0}, spread[REGION_T1] = {0.4, -0.3, 0, -0.1};
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
    // old log-probability moves along. Where a loss has no derivative, it is exactly 0.
    for (region.loss = 0; region.loss < GROUP_LOSSES; region.loss++)
        for (region.norm = 0; region.norm < NORMS; region.norm++) {
            double d[REGION_N];
            set_regions();
            CHECK(isfinite(region_loss()));
            memcpy(d, region.d, sizeof d);
            for (int t = 0; t < REGION_N; t++) {
                double* along = region.loss == CISPO ? &region.other[t] : NULL;
                double change = region.mask[t] ? slope(region_loss, &region.x[t], along) : 0.0;
                CHECK_GRADIENT_OFF(d[t], change, 1e-10);
                CHECK(d[t] == 0.0 || fabs(change) > 1e-9);
                if (region.loss == GSPO) CHECK(d[t] == d[t / REGION_T1 * REGION_T1] || !region.mask[t]);
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

// ---- the losses of a pair, through the whole model: the embedding, both layers, the head

static Pairs pairs;
static const PairLoss* pair_kind;

static double mean_pair_loss(void) {
    PairResult result[2];
    pairs_forward(result, &model, (Pair*[]){pairs.list, pairs.list + 1}, 2, pair_kind, 0.3,
                  model.grads.memory == NULL);
    for (int i = 0; i < 2; i++) CHECK(fabs(result[i].margin) > 0.05);
    return (result[0].loss + result[1].loss) / 2;
}

static void gradients_of_pairs_through_the_model(void) {
    for (size_t kind = 0; kind < sizeof pair_losses / sizeof *pair_losses; kind++) {
        pair_kind = &pair_losses[kind];
        pairs = (Pairs){0};
        Config c = {VOCAB_SIZE, 64, 2, 8, 2, 1, 4, 12, 1, 10000.0, 1e-6, pair_kind->scalar};
        model = random_model(c, 11);
        int embedding = VOCAB_SIZE * 8, count = (int)model.weights.count, head = count - 8;
        for (int i = 0; pair_kind->scalar && i < 8; i++) model.weights.score[i] = sin(1.0 + i);
        for (int i = 0; i < embedding; i++) model.weights.embedding[i] *= 20.0; // logits not all alike
        pairs_add(&pairs, "9-2?", "It is <<9-2=7>>7", "6");
        pairs_add(&pairs, "1+1?", "2", "<<1+2=3>>3");
        render_pairs(&pairs, 64, "two");
        if (!pair_kind->scalar) { // a reference that is not the policy, but near: the loss is curved
            set_reference(&pairs, &model, pair_kind);
            pairs.list[0].reference[CHOSEN] -= 1.5;
            pairs.list[1].reference[REJECTED] -= 2.0;
        }
        mean_pair_loss();                   // the first one makes the gradients
        // most of the embedding belongs to bytes that do not occur
        const int from[4] = {0, embedding, head, count}, step[3] = {31, 5, 1};
        for (int i = 0; i < 3; i++) {
            int n = from[i + 1] - from[i];
            Tensor w = array(model.weights.memory + from[i], n), g = array(model.grads.memory + from[i], n);
            CHECK_NEAR(gradient_error(mean_pair_loss, w, g, step[i]), 0, TOLERANCE);
        }
        pairs_free(&pairs), model_free(&model);
    }
}

static void test_layers(void) {
    RUN_ALL(TEST(rmsnorm_by_hand), TEST(rope_by_hand), TEST(attention_by_hand),
            TEST(swiglu_and_logprob_by_hand));
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
    PART(layers), PART(model_gradients), PART(optimizer), PART(loss_gradients), PART(chapter_01),
    PART(chapter_02), PART(chapter_03), PART(chapter_04), PART(chapter_07), PART(chapter_08),
    PART(chapter_09),
};

int main(int argc, char** argv) { return run_parts(parts, (int)(sizeof parts / sizeof *parts), argc, argv); }
