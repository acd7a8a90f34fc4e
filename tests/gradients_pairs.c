// The losses of a pair, through the whole model, against central differences in double precision (see gradients.c for
// why). Weights of all kinds are tried: the embedding, both layers, the head.
#define IN_DOUBLE
#include "chapters.h"

static double mean_loss(PairResult* result, Model* m, Pair* const* list, int count, const PairLoss* loss, double beta) {
    double sum = 0.0;
    pairs_forward(result, m, list, count, loss, beta, 0);
    for (int i = 0; i < count; i++) sum += result[i].loss;
    return sum / count;
}

static void check_loss(const char* name, double beta) {
    enum { N = 2 };
    const PairLoss* loss = NULL;
    for (size_t i = 0; i < sizeof pair_losses / sizeof *pair_losses; i++)
        if (!strcmp(pair_losses[i].name, name)) loss = &pair_losses[i];
    Config c = {VOCAB_SIZE, 64, 2, 8, 2, 1, 4, 12, 1, 10000.0, 1e-6, 0};
    c.scalar = loss->scalar;
    Model m = model_new(c);
    model_init(&m, 11);
    for (int i = 0; loss->scalar && i < c.width; i++) m.weights.score[i] = sin(1.0 + i);
    for (int i = 0; i < c.vocab_size * c.width; i++) m.weights.embedding[i] *= 20.0;   // logits that are not all alike
    Pairs p = {0};
    PairResult result[N];
    pairs_add(&p, "9-2?", "It is <<9-2=7>>7", "6");
    pairs_add(&p, "1+1?", "2", "<<1+2=3>>3");
    render_pairs(&p, 64, "two");
    Pair* list[N] = {&p.list[0], &p.list[1]};
    // a reference that is not the policy, but near enough that the loss is curved
    if (!loss->scalar) set_reference(&p, &m, loss), p.list[0].reference[CHOSEN] -= 1.5, p.list[1].reference[REJECTED] -= 2.0;
    model_zero_grads(&m);
    pairs_forward(result, &m, list, N, loss, beta, 1);
    for (int i = 0; i < N; i++) CHECK(fabs(result[i].margin) > 0.05);
    double h = 1e-5, largest = 0.0, worst = 0.0;
    for (size_t i = 0; i < m.weights.count; i++) {
        double w = m.weights.memory[i], g = m.grads.memory[i];
        // most of the embedding belongs to bytes that do not occur
        if (i % (i < (size_t)(c.vocab_size * c.width) ? 31 : i < m.weights.count - (size_t)c.width ? 5 : 1)) continue;
        m.weights.memory[i] = w + h; double up = mean_loss(result, &m, list, N, loss, beta);
        m.weights.memory[i] = w - h; double down = mean_loss(result, &m, list, N, loss, beta);
        m.weights.memory[i] = w;
        largest = fmax(largest, fabs(g)), worst = fmax(worst, fabs(g - (up - down) / (2.0 * h)));
    }
    CHECK(largest > 1e-2);
    CHECK(worst < 1e-7 * fmax(1.0, largest));
    pairs_free(&p), model_free(&m);
}

static void bradley_terry_through_the_model(void) { check_loss("bradley-terry", 1.0); }
static void outcome_through_the_model(void) { check_loss("outcome", 1.0); }
static void dpo_through_the_model(void) { check_loss("dpo", 0.3); }

int main(void) {
    RUN(bradley_terry_through_the_model);
    RUN(outcome_through_the_model);
    RUN(dpo_through_the_model);
    return check_failed != 0;
}
