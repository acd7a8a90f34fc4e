// experience.h - chapter 10 for a test or a benchmark: an update without sampling. Comes after rl.c.

// What an update learns from, made from given rollouts and one advantage per answer (B,K); the rewards are left at 0. Takes over
// `rollouts`, an array as generate() makes them; the prompts' tokens stay the caller's.
static Experience experience_of(const Tokens* prompts, Rollout* rollouts, const float* advantage, int B, int K) {
    Experience e = experience_new(B, K);
    free(e.rollouts);
    e.rollouts = rollouts;
    memcpy(e.prompts, prompts, (size_t)B * sizeof(Tokens));
    lay_out_tokens(&e);
    for (int i = 0; i < B; i++) spread_advantages(&e, i, advantage + (size_t)i * K);
    return e;
}

// One gradient step on all questions of an experience, and its loss. With learn = 0 the gradient is only computed.
static double experience_step(Learner* l, Experience* e, int first, int learn) {
    double *loss = allocate((size_t)e->B, sizeof(double)), *value_loss = allocate((size_t)e->B, sizeof(double)), sum = 0.0, norm;
    Drift* drift = allocate((size_t)e->B, sizeof(Drift));
    UpdateTask u = {e, l, 0, e->B, first, loss, value_loss, drift};
    if (learn) minibatch_step(l, &u, 1.0, &norm);
    else {
        if (l->value) model_zero_grads(l->value), run_tasks(l->value, e->B, 1, value_backward, &u);
        model_zero_grads(l->policy);
        run_tasks(l->policy, e->B, 1, group_backward, &u);
    }
    for (int i = 0; i < e->B; i++) sum += loss[i];
    free(loss), free(value_loss), free(drift);
    return sum;
}

static Learner learner_of(Model* m, Optimizer* optimizer, const RlOptions* o) {
    return learner_new(m, optimizer, (Reward){.verifier = &reward_kinds[0], .verified = 1}, o);
}

// Steps 4 to 6 of one update, minibatch by minibatch as the method says, and how many seconds they took. May be called again: what
// the last call has left in the experience is cleared before.
static double experience_update(Learner* l, Experience* e) {
    int B = e->B, part = l->o->minibatch && l->o->minibatch < B ? l->o->minibatch : B;
    double *loss = allocate((size_t)B, sizeof(double)), *value_loss = allocate((size_t)B, sizeof(double)), norm;
    Drift* drift = allocate((size_t)B, sizeof(Drift));
    memset(e->token_reward, 0, (size_t)B * e->K * e->T1 * sizeof(float));
    double begin = seconds_now();
    weigh(e, l);
    for (int from = 0; from < B; from += part) {
        UpdateTask u = {e, l, from, min_int(part, B - from), 1, loss, value_loss, drift};
        minibatch_step(l, &u, 1.0, &norm);
    }
    double seconds = seconds_now() - begin;
    free(loss), free(value_loss), free(drift);
    return seconds;
}
