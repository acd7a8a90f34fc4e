// chapter_12.c - recipes: files of pairs, rollouts as text, annotators, the losses of a pair, runs that are
// stopped and resumed, what best-of-n keeps. Whole losses against central differences are in gradients.c.

// ---- files

#define USER(text) "{'role': 'user', 'content': '" text "'}"
#define GOOD_PAIR "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}\n"
#define SAID(text) "{'role': 'assistant', 'content': '" text "'}"

static void chapter_12_all_forms_are_read(void) {
    // the same pair in every form, one a line; then two of them as an array
    static const char* const forms[] = {
        "{'prompt': '1+1?', 'chosen': '<<1+1=2>>2', 'rejected': '3'}",
        "{'question': '1+1?', 'chosen': '<<1+1=2>>2', 'rejected': '3', 'score': 7}",
        "{'chosen': [" USER("1+1?") ", " SAID("<<1+1=2>>2") "], 'rejected': [" USER("1+1?") ", "
            SAID("3") "]}",
        "{'prompt': [" USER("1+1?") "], 'chosen': [" SAID("<<1+1=2>>2") "], 'rejected': [" SAID("3") "]}",
        "{'prompt': '1+1?', 'chosen': [" USER("1+1?") ", " SAID("<<1+1=2>>2") "], 'rejected': ["
            SAID("3") "]}",
        "{'prompt': [" USER("1+1?") "], 'chosen': '<<1+1=2>>2', 'rejected': '3'}",
    };
    enum { FORMS = sizeof forms / sizeof *forms };
    Text text = {0};
    for (int i = 0; i < FORMS; i++) text_printf(&text, "%s\n\n", forms[i]);
    for (int array = 0; array < 2; array++) {
        if (array) {
            text.length = 0;
            text_printf(&text, "[%s,\n%s]", forms[0], forms[3]);
        }
        Pairs p = load_pairs(put("forms.jsonl", json(text.data)));
        CHECK(p.count == (array ? 2 : FORMS));
        for (int i = 0; i < p.count; i++) {
            CHECK_TEXT(p.list[i].question, "1+1?");
            CHECK_TEXT(p.list[i].answer[CHOSEN], "<<1+1=2>>2");
            CHECK_TEXT(p.list[i].answer[REJECTED], "3");
        }
        pairs_free(&p);
    }
    text_free(&text);
}

static const char* pairs_file;
static int load_and_stop(int argc, char** argv) {
    (void)argc;
    (void)argv;
    Pairs p = load_pairs(pairs_file);
    render_pairs(&p, 40, pairs_file);
    pairs_free(&p);
    return 0;
}

static void chapter_12_what_is_no_pair(void) {
    // JSON of the three fields (NULL: not there); the good line comes first, so that the bad one is line 2
    static const struct { const char *prompt, *chosen, *rejected, *words; } bad[] = {
        {"'a'", "'b'", NULL, "line 2: the field 'rejected' is missing"},
        {"'a'", NULL, "'b'", "line 2: the field 'chosen' is missing"},
        {"'a'", "''", "'b'", "line 2: the field 'chosen' is empty"},
        {"'a'", "'b'", "7", "line 2: the field 'rejected' is not a text"},
        {"'a'", "null", "'b'", "line 2: the field 'chosen' is not a text"},
        {"'a'", "'b'", "'b'", "line 2: 'chosen' and 'rejected' are the same"},
        {"''", "'b'", "'c'", "line 2: the field 'prompt' is empty"},
        {"1", "'b'", "'c'", "line 2: the field 'prompt' is not a text"},
        {NULL, "'b'", "'c'", "line 2: the pair has no question"},
        {NULL, "[" SAID("b") "]", "[" SAID("c") "]", "line 2: the pair has no question"},
        {NULL, "[" USER("a") ", " SAID("b") "]", "[" USER("A") ", " SAID("c") "]",
         "line 2: 'rejected' answers another question than 'chosen'"},
        {NULL, "[" USER("a") ", " SAID("b") "]", "[" SAID("c") "]",
         "line 2: 'rejected' answers another question than 'chosen', or has none"},
        {NULL, "[" SAID("b") "]", "[" USER("a") ", " SAID("c") "]", "line 2: the pair has no question"},
        {"'x'", "[" USER("a") ", " SAID("b") "]", "[" USER("a") ", " SAID("c") "]",
         "line 2: 'chosen' answers another question than 'prompt'"},
        {"'a'", "[" USER("a") "]", "'c'", "line 2: 'chosen' has no message of the assistant"},
        {"'a'", "[]", "'c'", "line 2: 'chosen' has no message of the assistant"},
        {"[" USER("a") ", " SAID("b") "]", "'b'", "'c'", "line 2: 'prompt' is not one message of the user"},
        {"[]", "'b'", "'c'", "line 2: 'prompt' is not one message of the user"},
        {NULL, "[" USER("a") ", " SAID("b") ", " USER("a") ", " SAID("b") "]", "'c'",
         "line 2: 'chosen' has more than one round"},
        {NULL, "[" SAID("b") ", " USER("a") "]", "'c'", "line 2: 'chosen' has more than one round"},
        {"[" USER("a") ", " USER("b") "]", "'b'", "'c'", "line 2: 'prompt' has more than one round"},
        {"'a'", "[" SAID("b") ", " SAID("d") "]", "'c'", "line 2: 'chosen' has more than one round"},
        {NULL, "[{'role': 'system', 'content': 's'}]", "'c'", "has the role 'system'"},
        {NULL, "[{'role': 'user'}]", "'c'", "line 2: the field 'content' is missing"},
        {NULL, "['b']", "'c'", "line 2: the field 'role' is missing"},
        {NULL, "[" USER("") "]", "'c'", "line 2: the field 'content' is empty"},
    };
    static const char* const lines[][2] = {
        {GOOD_PAIR "[1]\n", "line 2: an object"}, {GOOD_PAIR "{\"prompt\": \"a\n", "line 2, column"},
        {"\n", "has no pairs in it"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char* const field[3][2] = {{"prompt", bad[i].prompt}, {"chosen", bad[i].chosen},
                                         {"rejected", bad[i].rejected}};
        Text text = {0};
        text_printf(&text, GOOD_PAIR "{\"id\": 1");
        for (int k = 0; k < 3; k++)
            if (field[k][1]) text_printf(&text, ", \"%s\": %s", field[k][0], field[k][1]);
        text_printf(&text, "}\n");
        pairs_file = put("bad.jsonl", json(text.data));
        REFUSED(COMMAND(load_and_stop, "x"), json(bad[i].words));
        text_free(&text);
    }
    for (int i = 0; i < 3; i++) {
        pairs_file = put("bad.jsonl", lines[i][0]);
        REFUSED(COMMAND(load_and_stop, "x"), lines[i][1]);
    }
}

static void chapter_12_long_pairs_are_skipped(void) {
    // <bos><user_start>a<user_end><assistant_start> are 5 tokens, <assistant_end> 1: 34 bytes fit 40 tokens
#define TEN "0123456789"
    pairs_file =
        put("long.jsonl", "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"" TEN TEN TEN "0123\"}\n"
                          "{\"prompt\": \"a\", \"chosen\": \"" TEN TEN TEN "01234\", \"rejected\": \"b\"}\n"
                          "{\"prompt\": \"c\", \"chosen\": \"b\", \"rejected\": \"" TEN TEN TEN "01234\"}\n");
    const Ran* r = COMMAND(load_and_stop, "x");
    CHECK(r->status == 0);
    SAYS(r->out, "2 of 3 pairs have a side longer than the context of 40 tokens and are skipped");
    pairs_file =
        put("long.jsonl", "{\"prompt\": \"a\", \"chosen\": \"" TEN TEN TEN "01234\", \"rejected\": \"b\"}\n");
    REFUSED(COMMAND(load_and_stop, "x"), "no pair fits the model's context of 40 tokens");
}

// ---- rollouts as text

static Question some_question(const char* question, const char* truth, const char* solution) {
    Question q = {.truth = copy_text(truth), .question = question, .solution = solution};
    render_prompt(&q.prompt, question);
    return q;
}

static void question_free(Question* q) { free(q->truth), tokens_free(&q->prompt); }

static void check_answer(int line, Rollout* r, const char* expected) {
    Question q = some_question("How many?", "43", "#### 43");
    char* text = rollout_answer(r, &q);
    if ((text && expected) ? strcmp(text, expected) : text != expected) {
        check_broken++;
        printf("  %s:%d: \"%s\", expected \"%s\"\n", __FILE__, line, text ? text : "(none)",
               expected ? expected : "(none)");
    }
    free(text), question_free(&q), rollouts_free(r);
}
#define ANSWER(rollout, expected) check_answer(__LINE__, rollout, expected)

static void chapter_12_a_rollout_becomes_a_text(void) {
    ANSWER(says("How many?", "He has [17+26]43.\n#### 43"), "He has <<17+26=43>>43.\n#### 43");
    ANSWER(says("How many?", "[1+1][2+2]"), "<<1+1=2>><<2+2=4>>");
    ANSWER(says("How many?", "a < b > c = d \xC3\xA9"), "a < b > c = d \xC3\xA9");
    ANSWER(says("How many?", "[1,000/8]125"), "<<1,000/8=125>>125");
    // what would be read back as something else
    ANSWER(says("How many?", ""), NULL);                                    // no answer at all
    ANSWER(says("How many?", "[seven]7"), NULL); // the tool was silent: <<seven>> is read with an output
    ANSWER(says("How many?", "it is <<1+1=2>>2"), NULL);                    // typed, not called
    ANSWER(says("How many?", "half \xC3"), NULL);                           // cut inside a character
    ANSWER(says("How many?", "]"), NULL);
    Rollout* r = says("How many?", "so [1+1]2");
    r->finished = 0;                                           // cut off
    ANSWER(r, NULL);
    r = says("How many?", "so [1+1]2");
    for (int t = 0; t < r->length; t++) r->mask[r->prompt + t] = 1; // the model wrote the output itself
    ANSWER(r, NULL);
    r = says("How many?", "ab");
    r->ids[r->prompt + 1] = 0;                                 // a byte 0
    ANSWER(r, NULL);
}

// ---- annotators

// What annotators see: right, wrong, right in other words, the first again, wrong and longest, cut off.
enum { SHOWN = 6 };
static const char* const shown[SHOWN] = {"#### 4", "#### 5", "It is [2+2]4\n#### 4", "#### 4",
                                         "It is certainly not #### 5", "#### 4 "};
static const char* demo = "The demo.\n#### 4";
static int place;                    // of the question in its file

// what an annotator makes of them, and of the demonstration
static Pairs judged(const char* annotator, int most, float noise, uint64_t seed) {
    Question q = some_question("2+2?", "4", demo);
    Rollout* r = all_say("2+2?", shown, SHOWN);
    r[SHOWN - 1].finished = 0;
    PairRules rules = {find_annotator(annotator), find_reward("gsm8k"), most, noise, seed};
    Pairs p = {0};
    annotate(&p, &q, place, r, SHOWN, &rules);
    for (int i = 0; i < p.count; i++) CHECK_TEXT(p.list[i].question, "2+2?");
    rollouts_free(r), question_free(&q);
    return p;
}

static int has_pair(const Pairs* p, const char* chosen, const char* rejected) {
    int found = 0;
    for (int i = 0; i < p->count; i++)
        found += !strcmp(p->list[i].answer[CHOSEN], chosen) && !strcmp(p->list[i].answer[REJECTED], rejected);
    return found;
}

static void chapter_12_annotators_annotate(void) {
    const char *a = "#### 4", *b = "#### 5", *c = "It is <<2+2=4>>4\n#### 4", *d = shown[4], *own = demo;
    // what is demonstrated; how many pairs, and which are among them
    const struct { const char *annotator, *demo; float noise; int count; const char* pair[4][2]; } cases[] = {
        // {a, c} right, {b, d} wrong; the repeated a and the one that was cut off do not count: 2 x 2 pairs
        {"verifier", own, 0.0f, 4, {{a, b}, {a, d}, {c, b}, {c, d}}},
        {"verifier", own, 1.0f, 4, {{b, a}, {d, c}}},                     // every judgement is turned around
        {"demos", own, 0.0f, 2, {{own, b}, {own, d}}},                    // only the demonstration wins
        {"demos", a, 0.0f, 2, {{a, b}, {a, d}}},           // that it was sampled too takes nothing from it
        {"mixed", own, 0.0f, 6, {{own, b}, {c, d}}},                      // it is a third right answer
        // lengths in tokens: a and b 7 (equal: no pair), d 27, c "It is " 6 + call 5 + output 3 + "4\n#### 4"
        // 8 + end 1 = 23
        {"longer", own, 0.0f, 5, {{d, c}, {d, a}, {c, b}}},
        {"shorter", own, 0.0f, 5, {{c, d}, {a, d}, {b, c}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        demo = cases[i].demo;
        Pairs p = judged(cases[i].annotator, 100, cases[i].noise, 1);
        CHECK(p.count == cases[i].count);
        for (int k = 0; k < 4 && cases[i].pair[k][0]; k++)
            CHECK(has_pair(&p, cases[i].pair[k][0], cases[i].pair[k][1]) == 1);
        pairs_free(&p);
    }
    demo = own;
}

static void chapter_12_pairs_are_different_and_few(void) {
    // two of the verifier's four pairs: the seed alone decides which, and never the same one twice
    int other = 0;
    Pairs first = judged("verifier", 2, 0.0f, 1);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        Pairs p = judged("verifier", 2, 0.0f, seed), again = judged("verifier", 2, 0.0f, seed);
        CHECK(p.count == 2 && again.count == 2);
        CHECK(has_pair(&p, p.list[0].answer[CHOSEN], p.list[0].answer[REJECTED]) == 1);
        for (int i = 0; i < 2; i++)
            CHECK(!strcmp(p.list[i].answer[CHOSEN], again.list[i].answer[CHOSEN]) &&
                  !strcmp(p.list[i].answer[REJECTED], again.list[i].answer[REJECTED]));
        other += !has_pair(&first, p.list[0].answer[CHOSEN], p.list[0].answer[REJECTED]);
        pairs_free(&p), pairs_free(&again);
    }
    CHECK(other > 0);
    // every question draws for itself
    for (place = 1, other = 0; place <= 20; place++) {
        Pairs p = judged("verifier", 2, 0.0f, 1);
        other += !has_pair(&first, p.list[0].answer[CHOSEN], p.list[0].answer[REJECTED]);
        pairs_free(&p);
    }
    place = 0;
    CHECK(other > 0);
    pairs_free(&first);
    // noise 1/4: of 4 pairs and 500 seeds about 500 are turned, standard deviation sqrt(2000 3/16) = 19
    int turned = 0;
    for (uint64_t seed = 0; seed < 500; seed++) {
        Pairs p = judged("verifier", 4, 0.25f, seed);
        for (int i = 0; i < p.count; i++) turned += strstr(p.list[i].answer[CHOSEN], "#### 5") != NULL;
        pairs_free(&p);
    }
    CHECK(abs(turned - 500) < 100);
}

static void chapter_12_a_limit_keeps_the_order(void) {
    Pairs p = {0};
    char name[16];
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "%02d", i);
        pairs_add(&p, name, "a", "b");
    }
    limit_pairs(&p, 0, 1);
    CHECK(p.count == 30);
    limit_pairs(&p, 10, 1);
    CHECK(p.count == 10);
    for (int i = 1; i < p.count; i++) CHECK(strcmp(p.list[i - 1].question, p.list[i].question) < 0);
    CHECK(strcmp(p.list[9].question, "09") > 0);          // not simply the first ten
    pairs_free(&p);
}

// ---- losses by hand

static const PairLoss* loss_named(const char* name) {
    for (size_t i = 0; i < sizeof pair_losses / sizeof *pair_losses; i++)
        if (!strcmp(pair_losses[i].name, name)) return &pair_losses[i];
    return NULL;
}

// the loss of one pair from its two values and those of the reference
static double loss_of_values(float* dvalue, const float* value, const float* reference, const char* name,
                             float beta) {
    Pair pair = {.reference = {reference[CHOSEN], reference[REJECTED]}};
    PairResult r = {.value = {value[CHOSEN], value[REJECTED]}};
    pair_loss(dvalue, &r, &pair, loss_named(name)->kind, beta);
    CHECK_NEAR(r.margin, beta * (value[CHOSEN] - reference[CHOSEN] - value[REJECTED] + reference[REJECTED]),
               1e-6);
    return r.loss;
}

static void chapter_12_losses_of_a_pair(void) {
    float slope[2], none[2] = {0}, value[2] = {(float)log(3.0), 0.0f}, reference[2] = {-1.0f, -2.0f};
    // P = sigma(ln 3) = 3/4: loss -ln 3/4 = 0.287682, slopes -1/4 and +1/4
    CHECK_NEAR(loss_of_values(slope, value, none, "bradley-terry", 1.0f), 0.287682, 1e-6);
    CHECK_NEAR(slope[CHOSEN], -0.25, 1e-6);
    CHECK_NEAR(slope[REJECTED], 0.25, 1e-6);
    // outcome: the chosen one is right with 3/4, the other with sigma(0) = 1/2, so it is wrong with 1/2:
    // (ln 4/3 + ln 2) / 2 = (0.287682 + 0.693147) / 2 = 0.490415; slopes -(1 - 3/4) / 2 and (1/2) / 2
    CHECK_NEAR(loss_of_values(slope, value, none, "outcome", 1.0f), 0.490415, 1e-6);
    CHECK_NEAR(slope[CHOSEN], -0.125, 1e-6);
    CHECK_NEAR(slope[REJECTED], 0.25, 1e-6);
    value[REJECTED] = -value[CHOSEN];                     // wrong with 3/4: ln 4/3, slopes -1/8 and 1/8
    CHECK_NEAR(loss_of_values(slope, value, none, "outcome", 1.0f), 0.287682, 1e-6);
    CHECK_NEAR(slope[REJECTED], 0.125, 1e-6);
    // DPO, beta 1/2: 0.5 ((-1 + 2 ln 3 + 1) - (-2 + 2)) = ln 3 again; slopes beta * -+1/4
    value[CHOSEN] = (float)(-1.0 + 2.0 * log(3.0));
    value[REJECTED] = -2.0f;
    CHECK_NEAR(loss_of_values(slope, value, reference, "dpo", 0.5f), 0.287682, 1e-6);
    CHECK_NEAR(slope[CHOSEN], -0.125, 1e-6);
    CHECK_NEAR(slope[REJECTED], 0.125, 1e-6);
    CHECK(ranked_right(0.1) == 1.0 && ranked_right(-0.1) == 0.0 && ranked_right(0.0) == 0.5);
}

// two pairs, one with calls of the tool
static Pairs two_pairs(void) {
    Pairs p = {0};
    pairs_add(&p, "20+30?", "It is <<20+30=50>>50.\n#### 50", "#### 7");
    pairs_add(&p, "1+1?", "2", "so <<1+2=3>>3");
    render_pairs(&p, 96, "two");
    return p;
}

static void chapter_12_the_first_step_of_a_reward_model(void) {
    // The head says 0 to all: loss ln 2, accuracy 1/2, and only the head has a gradient: with h the body's
    // output at the last token, the mean over the pairs of -(1/2) h_w + (1/2) h_l.
    Model policy = tiny_model(3), m = scalar_model_on(&policy);
    Pairs p = two_pairs();
    Pair* list[2] = {&p.list[0], &p.list[1]};
    int C = m.config.width;
    double expected[16] = {0};
    for (int i = 0; i < 4; i++) {
        const Tokens* t = &p.list[i / 2].tokens[i % 2];
        int targets[96];
        Batch b = {0};
        for (int j = 0; j < t->length; j++) targets[j] = j == t->length - 1 ? 0 : -1;
        batch_add(&b, t->ids, targets, t->length, -1);
        CHECK(b.M == 1 && b.ids[b.scored[0]] == ASSISTANT_END);
        model_hidden_forward(&policy, &b);
        for (int c = 0; c < C; c++) expected[c] += (i % 2 ? 0.25 : -0.25) * policy.acts.hidden[c];
        batch_free(&b);
    }
    Optimizer o = optimizer_new(&m.config);
    PairMetrics s = pairs_step(&m, &o, list, 2, loss_named("bradley-terry"), 1.0f, 0.01f, 0.0f,
                               (AdamOptions){0.0f, 0.95f, 1e-12f, 0.0f});
    CHECK_NEAR(s.loss, log(2.0), 1e-7);
    CHECK(s.margin == 0.0 && s.accuracy == 0.5 && s.chosen == 0.0 && s.rejected == 0.0);
    double square = 0.0;
    const float* gradient = o.first.memory;                    // with beta1 = 0
    size_t body = m.weights.count - (size_t)C;
    for (int c = 0; c < C; c++) {
        CHECK_NEAR(gradient[body + (size_t)c], expected[c], 1e-6);
        square += expected[c] * expected[c];
        // AdamW's first step has the length of the learning rate: g / sqrt(g^2) = +-1
        CHECK_NEAR(m.weights.score[c], expected[c] > 0 ? -0.01 : 0.01, 1e-6);
    }
    CHECK_NEAR(s.grad_norm, sqrt(square), 1e-6);
    for (size_t i = 0; i < body; i++)
        if (gradient[i] != 0.0f || m.weights.memory[i] != policy.weights.memory[i]) {
            CHECK(!"the body moved");
            break;
        }
    pairs_free(&p), optimizer_free(&o), model_free(&m), model_free(&policy);
}

static void chapter_12_dpo_begins_at_its_reference(void) {
    // margin 0, loss ln 2, the gradient beta/2 times the supervised ones, chosen minus rejected
    enum { N = 2 };
    Model m = tiny_model(4);
    Pairs p = two_pairs();
    Pair* list[N] = {&p.list[0], &p.list[1]};
    PairResult result[N];
    const PairLoss* dpo = loss_named("dpo");
    float beta = 0.3f;
    set_reference(&p, &m, dpo);
    model_zero_grads(&m);
    pairs_forward(result, &m, list, N, dpo, beta, 1);
    float* grad = allocate(m.grads.count, sizeof(float));
    memcpy(grad, m.grads.memory, m.grads.count * sizeof(float));
    const Tokens *chosen[N], *rejected[N];
    for (int i = 0; i < N; i++) {
        CHECK(result[i].margin == 0.0 && result[i].value[CHOSEN] == p.list[i].reference[CHOSEN]);
        CHECK(result[i].value[REJECTED] == p.list[i].reference[REJECTED] &&
              p.list[i].reference[REJECTED] < 0.0f);
        CHECK_NEAR(result[i].loss, log(2.0), 1e-7);
        chosen[i] = &p.list[i].tokens[CHOSEN];
        rejected[i] = &p.list[i].tokens[REJECTED];
    }
    // sft_loss(), a mean, times the number of scored tokens is minus the sum of their log-probabilities
    float* by_hand = allocate(m.grads.count, sizeof(float));
    for (int side = CHOSEN; side <= REJECTED; side++) {
        int scored = 0;
        for (int i = 0; i < N; i++)
            scored += count_masked(p.list[i].tokens[side].mask, p.list[i].tokens[side].length);
        model_zero_grads(&m);
        sft_loss(&m, side == CHOSEN ? chosen : rejected, N, 1);
        for (size_t i = 0; i < m.grads.count; i++)
            by_hand[i] += (side == CHOSEN ? 1.0f : -1.0f) * beta / 2 / N * (float)scored * m.grads.memory[i];
    }
    CHECK(sqrt(square_of(by_hand, m.grads.count)) > 1e-3);
    CHECK(off_by(by_hand, grad, 1.0, m.grads.count) < 1e-5);
    free(by_hand), free(grad), pairs_free(&p), model_free(&m);
}

static void chapter_12_the_tool_is_not_in_the_sum(void) {
    // log pi(y|x) is the sum over the sampled tokens alone. Both answers by hand, from all log-probabilities.
    Model m = tiny_model(5);
    Pairs p = two_pairs();
    Pair* list[1] = {&p.list[0]};
    PairResult result;
    pairs_forward(&result, &m, list, 1, loss_named("dpo"), 1.0f, 0);
    for (int side = CHOSEN; side <= REJECTED; side++) {
        const Tokens* t = &p.list[0].tokens[side];
        Batch b = {0};
        batch_add(&b, t->ids, t->ids + 1, t->length - 1, -1);      // every token is scored
        model_forward(&m, &b);
        double sampled = 0.0, all = 0.0;
        int start = 0;
        while (t->ids[start] != ASSISTANT_START) start++;
        for (int i = start; i + 1 < t->length; i++) {
            sampled += t->mask[i + 1] ? m.acts.logp[i] : 0.0f;
            all += m.acts.logp[i];
        }
        CHECK_NEAR(result.value[side], sampled, 1e-6);
        if (side == CHOSEN) CHECK(all < sampled - 10.0);           // 4 forced tokens of about -5.6 each
        else CHECK_NEAR(all, sampled, 1e-12);
        batch_free(&b);
    }
    pairs_free(&p), model_free(&m);
}

// ---- accuracy and calibration by hand

static void chapter_12_accuracy_counts_questions(void) {
    // Question a: 2 of 2 pairs right; b: 0 of 2; c: 1 of 1. p = 3/5. Off: a 2 - 2 3/5 = 0.8, b -1.2, c 0.4.
    // squares 0.64 + 1.44 + 0.16 = 2.24, var(p) = 3/2 2.24 / 25 = 0.1344 and rate_interval's own arithmetic
    // does the rest.
    RankedPair ranked[] = {{"a", 1}, {"b", 0}, {"a", 1}, {"c", 1}, {"b", 0}};
    PairEvaluation e = {.from = 0.5};
    double low, high;
    accuracy_finish(&e, ranked, 5);
    rate_interval(&low, &high, 0.6, 0.1344 * 3, 3);
    CHECK(e.pairs == 5 && e.questions == 3);
    CHECK_NEAR(e.accuracy, 0.6, 1e-12);
    CHECK_NEAR(e.low, low, 1e-12);
    CHECK_NEAR(e.high, high, 1e-12);
    CHECK(low > 0.0 && high < 1.0 && low < 0.3 && high > 0.8);
}

static void chapter_12_calibration_in_bins(void) {
    // Bins of width 0.1 from 0.5. Two pairs at 0.55 of which one won; 1.0 goes to the last bin.
    // ECE = 2/5 |0.55 - 0.5| + 1/5 |0.72 - 0| + 1/5 |0.82 - 1| + 1/5 |1 - 1| = 0.02 + 0.144 + 0.036 = 0.2
    PairEvaluation e = {.from = 0.5};
    calibration_add(&e, 0.55, 1.0);
    calibration_add(&e, 0.55, 0.0);
    calibration_add(&e, 0.72, 0.0);
    calibration_add(&e, 0.82, 1.0);
    calibration_add(&e, 1.0, 1.0);
    calibration_finish(&e);
    CHECK(e.count[0] == 2 && e.count[1] == 0 && e.count[2] == 1 && e.count[4] == 1);
    CHECK_NEAR(e.observed[0], 0.5, 1e-12);
    CHECK_NEAR(e.predicted[2], 0.72, 1e-12);
    CHECK_NEAR(e.error, 0.2, 1e-12);
    // an untrained reward model: every pair is a coin flip, half right
    Model policy = tiny_model(7), m = scalar_model_on(&policy);
    Pairs p = two_pairs();
    e = evaluate_pairs(&m, &p, loss_named("bradley-terry"), 1.0f);
    CHECK(e.accuracy == 0.5 && e.pairs == 2 && e.questions == 2 && e.count[0] == 2 && e.error == 0.0);
    e = evaluate_pairs(&m, &p, loss_named("outcome"), 1.0f);        // four answers, all called at 1/2
    CHECK(e.count[2] == 4 && e.predicted[2] == 0.5 && e.observed[2] == 0.5 && e.error == 0.0);
    pairs_free(&p), model_free(&m), model_free(&policy);
}

// ---- best of n

static void chapter_12_what_is_kept(void) {
    // 4 questions x 3 answers; the best: 0.5 (index 0), 1 (4, the first of two), none (all 0), 1 (11)
    const float out = (float)NAN;
    const float score[12] = {0.5f, 0.0f, out, 0.0f, 1.0f, 1.0f, 0.0f, 0.0f, 0.0f, 0.9f, out, 1.0f};
    int kept[12];
    CHECK(keep_answers(kept, score, 4, 3, KEEP_PROMPT, 0.0f, 1) == 3);
    CHECK(kept[0] == 0 && kept[1] == 4 && kept[2] == 11);
    // a judge without a zero keeps one of every question
    CHECK(keep_answers(kept, score, 4, 3, KEEP_PROMPT, -INFINITY, 1) == 4 && kept[2] == 6);
    // overall: the three ones, although two belong to one question
    for (uint64_t seed = 1; seed < 20; seed++) {
        CHECK(keep_answers(kept, score, 4, 3, KEEP_OVERALL, 0.0f, seed) == 3);
        CHECK(kept[0] == 4 && kept[1] == 5 && kept[2] == 11);
    }
    // random: three different ones, in rising order, never a NaN; every answer has its turn
    int turns[12] = {0};
    for (uint64_t seed = 0; seed < 2000; seed++) {
        CHECK(keep_answers(kept, score, 4, 3, KEEP_RANDOM, 0.0f, seed) == 3);
        CHECK(kept[0] < kept[1] && kept[1] < kept[2]);
        for (int i = 0; i < 3; i++) turns[kept[i]]++;
    }
    // 3 of 10 answers, 2000 times: 600 each, standard deviation sqrt(2000 0.3 0.7) = 20
    for (int i = 0; i < 12; i++) CHECK(isnan(score[i]) ? turns[i] == 0 : abs(turns[i] - 600) < 100);
    // equal scores are settled by the seed: with four ones and two places each has half of the cases
    const float equal[6] = {1.0f, 1.0f, 0.0f, 1.0f, 0.0f, 1.0f};
    memset(turns, 0, sizeof turns);
    for (uint64_t seed = 0; seed < 1000; seed++) {
        CHECK(keep_answers(kept, equal, 2, 3, KEEP_OVERALL, 0.0f, seed) == 2);
        for (int i = 0; i < 2; i++) turns[kept[i]]++;
    }
    for (int i = 0; i < 6; i++) CHECK(equal[i] == 0.0f ? turns[i] == 0 : abs(turns[i] - 500) < 100);
}

// ---- threads, commands

static void chapter_12_threads_change_nothing(void) {
    for (int scalar = 0; scalar < 2; scalar++) {
        float* first = NULL;
        for (int threads = 1; threads <= 4; threads++) {
            set_threads(threads);
            Model policy = tiny_model(8), m = scalar ? scalar_model_on(&policy) : tiny_model(8);
            const PairLoss* loss = loss_named(scalar ? "bradley-terry" : "dpo");
            Pairs p = {0};
            char question[16];
            Pair* list[20];
            for (int i = 0; i < 20; i++) {
                snprintf(question, sizeof question, "%d+1?", i);
                pairs_add(&p, question, "It is certainly <<1+1=2>>2, that is what it is.",
                          i % 2 ? "no" : "not at all");
            }
            render_pairs(&p, 96, "many");
            for (int i = 0; i < 20; i++) list[i] = &p.list[i];
            if (!scalar) set_reference(&p, &policy, loss);
            Optimizer o = optimizer_new(&m.config);
            for (int i = 0; i < 2; i++)
                pairs_step(&m, &o, list, 20, loss, 1.0f, 1e-2f, 1.0f, rl_defaults().adam);
            if (!first)
                first = memcpy(allocate(m.weights.count, sizeof(float)), m.weights.memory,
                               m.weights.count * sizeof(float));
            CHECK(!memcmp(first, m.weights.memory, m.weights.count * sizeof(float)));
            pairs_free(&p), optimizer_free(&o), model_free(&m), model_free(&policy);
        }
        free(first);
    }
    set_threads(1);
}

static int same_files(const char* a, const char* b) {
    Text x = read_file(in_folder(a)), y = read_file(in_folder(b));
    int same = x.length == y.length && !memcmp(x.data, y.data, x.length);
    text_free(&x), text_free(&y);
    return same;
}

// One line of metrics.csv without its field number `column`.
static void append_without(Text* kept, const char* line, int column) {
    for (int i = 0; line; i++) {
        int n = (int)strcspn(line, ",");
        if (i != column) text_printf(kept, "%.*s,", n, line);
        line = line[n] ? line + n + 1 : NULL;
    }
    text_printf(kept, "\n");
}

// metrics.csv without the seconds, which no two runs share
static int same_metrics(const char* a, const char* b) {
    Text text[2] = {read_file(in_folder(a)), read_file(in_folder(b))}, kept[2] = {{0}, {0}};
    for (int i = 0; i < 2; i++) {
        int seconds = 1;                                 // behind the step
        for (const Column* c = pair_columns; strcmp(c->name, "seconds"); c++) seconds++;
        for (char* line = strtok(text[i].data, "\n"); line; line = strtok(NULL, "\n"))
            append_without(&kept[i], line, seconds);
        CHECK(!strstr(kept[i].data, "seconds") && strstr(kept[i].data, "grad_norm"));
        text_free(&text[i]);
    }
    int same =
        kept[0].length > 100 && kept[0].length == kept[1].length && !strcmp(kept[0].data, kept[1].data);
    text_free(&kept[0]), text_free(&kept[1]);
    return same;
}

// A model that has been taught a mixed crowd's answers to two questions: it gives right ones and wrong ones.
static void put_taught_model(const char* name) {
    static const char* const crowd[][2] = {{"1+1?", "<<1+1=2>>\n#### 2"}, {"1+1?", "2"}, {"1+1?", "#### 3"},
                                           {"2+2?", "#### 4"}, {"2+2?", "no"}, {"2+2?", "<<2+2=4>>#### 4"}};
    enum { CROWD = sizeof crowd / sizeof *crowd };
    Model m = tiny_model(10);
    Optimizer o = optimizer_new(&m.config);
    Tokens t[CROWD] = {{0}};
    const Tokens* list[CROWD];
    for (int i = 0; i < CROWD; i++) {
        render_conversation(&t[i], crowd[i][0], crowd[i][1]);
        list[i] = &t[i];
    }
    for (int i = 0; i < 150; i++) {
        sft_loss(&m, list, CROWD, 1);
        clip_and_step(&m, &o, 1e-2, 1.0, rl_defaults().adam);
    }
    put_model(in_folder(name), &m);
    for (int i = 0; i < CROWD; i++) tokens_free(&t[i]);
    optimizer_free(&o), model_free(&m);
}

static void put_tiny_model(const char* name, int scalar) {
    Model policy = tiny_model(9), m = scalar ? scalar_model_on(&policy) : tiny_model(9);
    put_model(in_folder(name), &m);
    model_free(&m), model_free(&policy);
}

#define TWO_QUESTIONS                                                                                        \
    "{\"question\": \"1+1?\", \"answer\": \"<<1+1=2>>2\\n#### 2\"}\n{\"question\": \"2+2?\", \"answer\": "   \
    "\"#### 4\"}\n"
#define MORE "--threads=1", "--num-samples=8", "--max-new-tokens=30"

static void chapter_12_a_resumed_run_is_the_same_run(void) {
    static const struct {
        int (*command)(int, char**);
        const char* kind;
    } runs[] = {{command_reward_model, "reward-model"}, {command_dpo, "dpo"}};
    put_taught_model("taught");
    put("questions.jsonl", TWO_QUESTIONS);
    put("exam.jsonl", "{\"question\": \"2+2 =?\", \"answer\": \"#### 4\"}\n");
    for (int i = 0; i < 2; i++) {
        const char* exam = i ? "--beta=0.2" : option("eval-questions", "exam.jsonl");
        const char *tag = option("model-tag", "taught"), *from = option("questions", "questions.jsonl");
#define PREFER(...)                                                                                          \
    COMMAND(runs[i].command, tag, from, exam, MORE, "--annotator=mixed", "--num-steps=6", "--batch-size=3",  \
            "--overwrite", __VA_ARGS__)
        const Ran* r = PREFER(option("out", "whole"));
        WORKS(r);
        SAYS(r->out, i ? "dpo: 6 updates of 3" : "ranked right");
        for (int stop = 1; stop <= 5; stop += 2) {
            press_at = stop;
            r = PREFER(option("out", "parts"));
            press_at = 0;
            CHECK(r->status == 130);
            SAYS(r->out, i ? "go on with: ./rl dpo --resume" : "go on with: ./rl reward-model --resume");
            // the pairs are read again, not made again: no question file is needed any more
            r = COMMAND(runs[i].command, option("resume", "parts"), "--threads=1", "--questions=nowhere");
            WORKS(r);
            CHECK(same_files("whole/model.safetensors", "parts/model.safetensors"));
            CHECK(same_files("whole/optimizer.safetensors", "parts/optimizer.safetensors"));
            CHECK(same_metrics("whole/metrics.csv", "parts/metrics.csv"));
        }
        Model m = load_model(in_folder("whole"));
        CHECK(m.config.scalar == !i);
        model_free(&m);
        // 6 of 6 are done; a run of another kind is not gone on with
        REFUSED(COMMAND(runs[i].command, option("resume", "whole")), "6 of 6 updates are done");
        REFUSED(COMMAND(runs[!i].command, option("resume", "whole")), runs[i].kind);
    }
}

static void chapter_12_pairs_are_made_once_and_the_same(void) {
    // with the same seed the same file, with another one another
    put("questions.jsonl", TWO_QUESTIONS);
    put_taught_model("taught");
    put_tiny_model("policy", 0);
    const char *tag = option("model-tag", "taught"), *data = option("data", "questions.jsonl");
    CHECK(COMMAND(command_pairs, tag, data, MORE, option("out", "a.jsonl"))->status == 0);
    CHECK(COMMAND(command_pairs, tag, data, "--num-samples=8", "--max-new-tokens=30", "--threads=2",
                  option("out", "b.jsonl"))->status == 0);
    CHECK(COMMAND(command_pairs, tag, data, MORE, "--seed=2", option("out", "c.jsonl"))->status == 0);
    CHECK(same_files("a.jsonl", "b.jsonl") && !same_files("a.jsonl", "c.jsonl"));
    REFUSED(COMMAND(command_pairs, tag, data, MORE), "a file is missing");
    REFUSED(COMMAND(command_pairs, tag, data, MORE, "--annotator=mother", option("out", "d.jsonl")),
            "no --annotator 'mother'");
    REFUSED(COMMAND(command_pairs, tag, data, MORE, option("out", "")), "is not the name of a file");
    // an untrained model is never right
    REFUSED(COMMAND(command_pairs, option("model-tag", "policy"), data, MORE, option("out", "d.jsonl")),
            "no pair could be made");
    CHECK(!file_exists(in_folder("d.jsonl")));
}

static void chapter_12_models_of_the_wrong_kind(void) {
    put_tiny_model("policy", 0);
    put_tiny_model("judge", 1);
    const char* pairs = put("two.jsonl", "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}\n");
    char data[PATH_SIZE + 16], exam[PATH_SIZE + 16];
    snprintf(data, sizeof data, "--data=%s", pairs);
    snprintf(exam, sizeof exam, "--eval-data=%s", pairs);
    const char *judge = option("model-tag", "judge"), *policy = option("model-tag", "policy"),
               *out = option("out", "no");
    REFUSED(COMMAND(command_dpo, judge, data, out), "holds a reward model: it gives scores and cannot write");
    REFUSED(COMMAND(command_reward_model, judge, data, out), "holds a reward model");
    REFUSED(COMMAND(command_best_of_n, judge, out), "holds a reward model");
    REFUSED(COMMAND(command_pairs, judge, out), "holds a reward model");
    REFUSED(COMMAND(command_eval, judge), "holds a reward model");
    REFUSED(COMMAND(command_dpo, policy, data, out, option("reference", "judge")), "holds a reward model");
    // a reference of other sizes, and one of another vocabulary
    Model other = model_new((Config){VOCAB_SIZE, 96, 1, 8, 2, 1, 4, 24, 1, 10000.0f, 1e-6f, 0});
    model_init(&other, 1);
    put_model(in_folder("small"), &other);
    model_free(&other);
    other = model_new((Config){100, 96, 1, 16, 2, 1, 8, 24, 1, 10000.0f, 1e-6f, 0});
    put_model(in_folder("foreign"), &other);
    model_free(&other);
    REFUSED(COMMAND(command_dpo, policy, data, out, option("reference", "small")),
            "has other sizes than the policy");
    REFUSED(COMMAND(command_dpo, policy, data, out, option("reference", "foreign")),
            "has a vocabulary of 100 tokens");
    // losses of the other command, and an exam that is trained on
    REFUSED(COMMAND(command_dpo, policy, data, out, "--loss=outcome"), "unknown option '--loss'");
    REFUSED(COMMAND(command_reward_model, policy, data, out, "--loss=dpo"),
            "no --loss 'dpo'; choose bradley-terry or outcome");
    REFUSED(COMMAND(command_reward_model, policy, data, exam, out), "1 of the 1 questions");
    REFUSED(COMMAND(command_best_of_n, policy, out, "--keep=all"), "no --keep 'all'");
    CHECK(!file_exists(in_folder("no")));
    // with permission it runs, and the result is no policy
    CHECK(COMMAND(command_reward_model, policy, data, exam, "--allow-overlap", "--threads=1",
                  option("out", "rm"))
              ->status == 0);
    REFUSED(COMMAND(command_eval, option("model-tag", "rm")), "holds a reward model");
    // dpo's own folder holds a policy; as a reward model's it is refused (the kind of run is asked first)
    CHECK(COMMAND(command_dpo, policy, data, "--threads=1", option("out", "dpo"))->status == 0);
    REFUSED(COMMAND(command_reward_model, option("resume", "dpo")), "of kind \"dpo\"");
}

static void chapter_12_best_of_n_learns_what_it_keeps(void) {
    put_taught_model("taught");
    put("sum.jsonl", "{\"question\": \"2+2?\", \"answer\": \"#### 4\"}\n");
    const Ran* r = COMMAND(command_best_of_n, option("model-tag", "taught"), option("data", "sum.jsonl"),
                           option("out", "best"), MORE, "--steps=2");
    WORKS(r);
    SAYS(r->out, "1 are kept (prompt)");
    Text kept = read_file(in_folder("best/kept.jsonl"));
    CHECK(strstr(kept.data, "{\"question\": \"2+2?\", \"answer\": \"") == kept.data &&
          strstr(kept.data, "#### 4\"}\n"));
    CHECK(strchr(kept.data, '\n')[1] == 0);
    text_free(&kept);
    CHECK(file_exists(in_folder("best/model.safetensors")));
    // with 14 tokens "<<2+2=4>>#### 4" is right but has no end: it is not kept, not even by chance
    for (int seed = 1; seed <= 6; seed++) {
        char number[32];
        snprintf(number, sizeof number, "--seed=%d", seed);
        r = COMMAND(command_best_of_n, option("model-tag", "taught"), option("data", "sum.jsonl"),
                    option("out", "best"), MORE, "--num-samples=32", "--max-new-tokens=14", "--steps=1",
                    "--keep=random", "--overwrite", number);
        WORKS(r);
        kept = read_file(in_folder("best/kept.jsonl"));
        CHECK(kept.length > 10 && !strstr(kept.data, "<<"));
        text_free(&kept);
    }
    put_tiny_model("policy", 0);
    REFUSED(COMMAND(command_best_of_n, option("model-tag", "policy"), option("data", "sum.jsonl"),
                    option("out", "nothing"), "--threads=1", "--num-samples=2", "--max-new-tokens=8"),
            "has a reward above 0");
    CHECK(!file_exists(in_folder("nothing")));
}

static void test_chapter_12(void) {
    open_folder();
    RUN_ALL(TEST(chapter_12_all_forms_are_read), TEST(chapter_12_what_is_no_pair),
            TEST(chapter_12_long_pairs_are_skipped), TEST(chapter_12_a_rollout_becomes_a_text),
            TEST(chapter_12_annotators_annotate), TEST(chapter_12_pairs_are_different_and_few),
            TEST(chapter_12_a_limit_keeps_the_order), TEST(chapter_12_pairs_are_made_once_and_the_same),
            TEST(chapter_12_losses_of_a_pair), TEST(chapter_12_the_first_step_of_a_reward_model),
            TEST(chapter_12_dpo_begins_at_its_reference), TEST(chapter_12_the_tool_is_not_in_the_sum),
            TEST(chapter_12_accuracy_counts_questions), TEST(chapter_12_calibration_in_bins),
            TEST(chapter_12_what_is_kept), TEST(chapter_12_a_resumed_run_is_the_same_run),
            TEST(chapter_12_models_of_the_wrong_kind), TEST(chapter_12_best_of_n_learns_what_it_keeps),
            TEST(chapter_12_threads_change_nothing));
    remove_folder();
}
