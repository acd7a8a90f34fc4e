// chapter_12.c - recipes: files of pairs, rollouts as text, annotators, the losses of a pair, runs that are
// stopped and resumed, what best-of-n keeps. Whole losses against central differences are in gradients.c.

// ---- files

#define USER(text) "{'role': 'user', 'content': '" text "'}"
#define GOOD_PAIR "{'prompt': 'a', 'chosen': 'b', 'rejected': 'c'}\n"
#define SAID(text) "{'role': 'assistant', 'content': '" text "'}"

static void chapter_12_all_forms_are_read(void) {
    // the same pair in every form, one a line; then two of them as an array
    static const char* const forms[] = {
        "{'prompt': '1+1?', 'chosen': '<<1+1=2>>2', 'rejected': '3'}",
        "{'question': '1+1?', 'chosen': '<<1+1=2>>2', 'rejected': '3', 'score': 7}",
        "{'chosen': [" USER("1+1?") ", " SAID("<<1+1=2>>2") "], "
            "'rejected': [" USER("1+1?") ", " SAID("3") "]}",
        "{'prompt': [" USER("1+1?") "], 'chosen': [" SAID("<<1+1=2>>2") "], 'rejected': [" SAID("3") "]}",
        "{'prompt': '1+1?', 'chosen': [" USER("1+1?") ", " SAID("<<1+1=2>>2") "], "
            "'rejected': [" SAID("3") "]}",
        "{'prompt': [" USER("1+1?") "], 'chosen': '<<1+1=2>>2', 'rejected': '3'}",
    };
    enum { FORMS = sizeof forms / sizeof *forms };
    Text text = {0};
    for (int array = 0; array < 2; array++) {
        if (array) text_printf(&text, "[%s,\n%s]", forms[0], forms[3]);
        else for (int i = 0; i < FORMS; i++) text_printf(&text, "%s\n\n", forms[i]);
        Pairs p = load_pairs(put("forms.jsonl", json(text.data)));
        CHECK(p.count == (array ? 2 : FORMS));
        for (int i = 0; i < p.count; i++) {
            CHECK_TEXT(p.list[i].question, "1+1?");
            CHECK_TEXT(p.list[i].answer[CHOSEN], "<<1+1=2>>2");
            CHECK_TEXT(p.list[i].answer[REJECTED], "3");
        }
        pairs_free(&p);
        text.length = 0;
    }
    text_free(&text);
}

static int load_and_render(int argc, char** argv) {
    Pairs p = load_pairs(argv[argc - 1]);
    render_pairs(&p, 40, argv[argc - 1]);
    pairs_free(&p);
    return 0;
}

static void chapter_12_what_is_no_pair(void) {
    // JSON of the three fields (NULL: not there); the good line comes first, so that the bad one is line 2
    static const struct { const char *prompt, *chosen, *rejected, *words; } bad[] = {
        {"'a'", "'b'", NULL, "the field 'rejected' is missing"},
        {"'a'", "''", "'b'", "the field 'chosen' is empty"},
        {"'a'", "'b'", "7", "the field 'rejected' is not a text"},
        {"'a'", "'b'", "'b'", "'chosen' and 'rejected' are the same"},
        {"1", "'b'", "'c'", "the field 'prompt' is not a text"},
        {NULL, "'b'", "'c'", "the pair has no question"},
        {NULL, "[" SAID("b") "]", "[" SAID("c") "]", "the pair has no question"},
        {NULL, "[" USER("a") ", " SAID("b") "]", "[" USER("A") ", " SAID("c") "]",
         "'rejected' answers another question than 'chosen'"},
        {NULL, "[" USER("a") ", " SAID("b") "]", "[" SAID("c") "]",
         "'rejected' answers another question than 'chosen', or has none"},
        {NULL, "[" SAID("b") "]", "[" USER("a") ", " SAID("c") "]", "the pair has no question"},
        {"'x'", "[" USER("a") ", " SAID("b") "]", "[" USER("a") ", " SAID("c") "]",
         "'chosen' answers another question than 'prompt'"},
        {"'a'", "[" USER("a") "]", "'c'", "'chosen' has no message of the assistant"},
        {"'a'", "[]", "'c'", "'chosen' has no message of the assistant"},
        {"[" USER("a") ", " SAID("b") "]", "'b'", "'c'", "'prompt' is not one message of the user"},
        {"[]", "'b'", "'c'", "'prompt' is not one message of the user"},
        {NULL, "[" SAID("b") ", " USER("a") "]", "'c'", "'chosen' has more than one round"},
        {"[" USER("a") ", " USER("b") "]", "'b'", "'c'", "'prompt' has more than one round"},
        {"'a'", "[" SAID("b") ", " SAID("d") "]", "'c'", "'chosen' has more than one round"},
        {NULL, "[{'role': 'system', 'content': 's'}]", "'c'", "has the role 'system'"},
        {NULL, "[{'role': 'user'}]", "'c'", "the field 'content' is missing"},
        {NULL, "['b']", "'c'", "the field 'role' is missing"},
    };
    // whole files. <bos><user_start>a<user_end><assistant_start> and <assistant_end>: 34 bytes fit 40 tokens
#define BYTES_34 "0123456789012345678901234567890123"
    static const char* const files[][2] = {
        {GOOD_PAIR "{'prompt': 'a\n", "line 2, column"}, {"\n", "has no pairs in it"},
        {"{'prompt': 'a', 'chosen': '" BYTES_34 "4', 'rejected': 'b'}\n",
         "no pair fits the model's context of 40 tokens"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char* const field[3][2] = {{"prompt", bad[i].prompt}, {"chosen", bad[i].chosen},
                                         {"rejected", bad[i].rejected}};
        Text text = {0};
        text_printf(&text, GOOD_PAIR "{'id': 1");
        for (int k = 0; k < 3; k++)
            if (field[k][1]) text_printf(&text, ", '%s': %s", field[k][0], field[k][1]);
        text_printf(&text, "}\n");
        const Ran* r = COMMAND(load_and_render, put("bad.jsonl", json(text.data)));
        REFUSED(r, json(bad[i].words));
        SAYS(r->err, "line 2: ");
        text_free(&text);
    }
    for (int i = 0; i < 3; i++)
        REFUSED(COMMAND(load_and_render, put("bad.jsonl", json(files[i][0]))), files[i][1]);
    const Ran* r = COMMAND(load_and_render, put("long.jsonl", json(
        "{'prompt': 'a', 'chosen': 'b', 'rejected': '" BYTES_34 "'}\n"
        "{'prompt': 'a', 'chosen': '" BYTES_34 "4', 'rejected': 'b'}\n"
        "{'prompt': 'c', 'chosen': 'b', 'rejected': '" BYTES_34 "4'}\n")));
    WORKS(r);
    SAYS(r->out, "2 of 3 pairs have a side longer than the context of 40 tokens and are skipped");
}

// ---- rollouts as text

static Question some_question(const char* question, const char* truth, const char* solution) {
    Question q = {.truth = copy_text(truth), .question = question, .solution = solution};
    render_prompt(&q.prompt, question);
    return q;
}

static void question_free(Question* q) { free(q->truth), tokens_free(&q->prompt); }

static void chapter_12_a_rollout_becomes_a_text(void) {
    // What was said, with [calls] and @ at the end, and its text; NULL: it would be read back differently
    static const char* const cases[][2] = {
        {"He has [17+26]43.\n#### 43@", "He has <<17+26=43>>43.\n#### 43"},
        {"[1+1][2+2]@", "<<1+1=2>><<2+2=4>>"}, {"a < b > c = d \xC3\xA9@", "a < b > c = d \xC3\xA9"},
        {"[1,000/8]125@", "<<1,000/8=125>>125"},
        {"@", NULL},                                      // no answer at all
        {"[seven]7@", NULL},                              // the tool is silent; <<seven>> has an output
        {"it is <<1+1=2>>2@", NULL},                      // typed, not called
        {"half \xC3@", NULL},                             // cut inside a character
        {"]@", NULL}, {"so [1+1]2", NULL},                // cut off
        {"so [1+1]2@", NULL}, {"ab@", NULL}};             // wrote the output itself; and has a byte 0
    enum { CASES = sizeof cases / sizeof *cases };
    Question q = some_question("How many?", "43", "#### 43");
    for (int i = 0; i < CASES; i++) {
        Rollout* r = play("How many?", cases[i][0]);
        if (i == CASES - 1) r->ids[r->prompt + 1] = 0;
        for (int t = 0; i == CASES - 2 && t < r->length; t++) r->mask[r->prompt + t] = 1;
        char* text = rollout_answer(r, &q);
        CHECK_TEXT(text ? text : "(none)", cases[i][1] ? cases[i][1] : "(none)");
        free(text), rollouts_free(r);
    }
    question_free(&q);
}

// ---- annotators

// What annotators see: right, wrong, right in other words, the first again, wrong and longest, cut off.
enum { SHOWN = 6 };
static const char* const shown[SHOWN] = {"#### 4@", "#### 5@", "It is [2+2]4\n#### 4@", "#### 4@",
                                         "It is certainly not #### 5@", "#### 4 "};
static const char* demo = "The demo.\n#### 4";

// what an annotator makes of them, and of the demonstration; place: of the question in its file
static Pairs judged(const char* annotator, int most, float noise, uint64_t seed, int place) {
    Question q = some_question("2+2?", "4", demo);
    Rollout* r = play_all("2+2?", shown, SHOWN);
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
    const char *a = "#### 4", *b = "#### 5", *c = "It is <<2+2=4>>4\n#### 4", *own = demo;
    const char* d = "It is certainly not #### 5";
    // what is demonstrated; how many pairs, and which are among them, the chosen first
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
        Pairs p = judged(cases[i].annotator, 100, cases[i].noise, 1, 0);
        CHECK(p.count == cases[i].count);
        for (int k = 0; k < 4 && cases[i].pair[k][0]; k++)
            CHECK(has_pair(&p, cases[i].pair[k][CHOSEN], cases[i].pair[k][REJECTED]) == 1);
        pairs_free(&p);
    }
    demo = own;
}

static void chapter_12_pairs_are_different_and_few(void) {
    // two of the verifier's four pairs: seed and question alone decide which, and never the same one twice
    int by_seed = 0, by_place = 0, turned = 0;
    Pairs first = judged("verifier", 2, 0.0f, 1, 0);
    char *chosen = first.list[0].answer[CHOSEN], *rejected = first.list[0].answer[REJECTED];
    for (int i = 1; i <= 20; i++) {
        Pairs p = judged("verifier", 2, 0.0f, (uint64_t)i, 0), q = judged("verifier", 2, 0.0f, 1, i);
        CHECK(p.count == 2 && has_pair(&p, p.list[0].answer[CHOSEN], p.list[0].answer[REJECTED]) == 1);
        by_seed += !has_pair(&p, chosen, rejected);
        by_place += !has_pair(&q, chosen, rejected);
        pairs_free(&p), pairs_free(&q);
    }
    CHECK(by_seed > 0 && by_place > 0);
    pairs_free(&first);
    // noise 1/4: of 4 pairs and 500 seeds about 500 are turned, standard deviation sqrt(2000 3/16) = 19
    for (uint64_t seed = 0; seed < 500; seed++) {
        Pairs p = judged("verifier", 4, 0.25f, seed, 0);
        for (int i = 0; i < p.count; i++) turned += strstr(p.list[i].answer[CHOSEN], "#### 5") != NULL;
        pairs_free(&p);
    }
    CHECK(abs(turned - 500) < 100);
}

static void chapter_12_a_limit_keeps_the_order(void) {
    Pairs p = {0};
    for (int i = 0; i < 30; i++) pairs_add(&p, (char[]){(char)('A' + i), 0}, "a", "b");
    limit_pairs(&p, 0, 1);
    CHECK(p.count == 30);
    limit_pairs(&p, 10, 1);
    CHECK(p.count == 10 && *p.list[9].question > 'A' + 9);      // not simply the first ten
    for (int i = 1; i < p.count; i++) CHECK(*p.list[i - 1].question < *p.list[i].question);
    pairs_free(&p);
}

// ---- losses by hand

static void chapter_12_losses_of_a_pair(void) {
    // P = sigma(ln 3) = 3/4: loss -ln 3/4 = 0.287682, slopes -1/4 and +1/4
    // outcome: the chosen one is right with 3/4, the other with sigma(0) = 1/2, so it is wrong with 1/2:
    // (ln 4/3 + ln 2) / 2 = (0.287682 + 0.693147) / 2 = 0.490415; slopes -(1 - 3/4) / 2 and (1/2) / 2;
    // wrong with 3/4: ln 4/3, slopes -1/8 and 1/8
    // DPO, beta 1/2: 0.5 ((-1 + 2 ln 3 + 1) - (-2 + 2)) = ln 3 again; slopes beta * -+1/4
    const float ln3 = (float)log(3.0);
    const struct { int kind; float beta, value[2], reference[2]; double loss, slope[2]; } cases[] = {
        {PAIR_BRADLEY_TERRY, 1.0f, {ln3, 0.0f}, {0}, 0.287682, {-0.25, 0.25}},
        {PAIR_OUTCOME, 1.0f, {ln3, 0.0f}, {0}, 0.490415, {-0.125, 0.25}},
        {PAIR_OUTCOME, 1.0f, {ln3, -ln3}, {0}, 0.287682, {-0.125, 0.125}},
        {PAIR_DPO, 0.5f, {2.0f * ln3 - 1.0f, -2.0f}, {-1.0f, -2.0f}, 0.287682, {-0.125, 0.125}}};
    for (int i = 0; i < 4; i++) {
        const float *v = cases[i].value, *ref = cases[i].reference;
        Pair pair = {.reference = {ref[0], ref[1]}};
        PairResult r = {.value = {v[0], v[1]}};
        float slope[2];
        pair_loss(slope, &r, &pair, cases[i].kind, cases[i].beta);
        CHECK_NEAR(r.margin, cases[i].beta * (v[CHOSEN] - ref[CHOSEN] - v[REJECTED] + ref[REJECTED]), 1e-6);
        CHECK_NEAR(r.loss, cases[i].loss, 1e-6);
        CHECK_LIST(slope, 1e-6, cases[i].slope[0], cases[i].slope[1]);
    }
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
    double expected[16] = {0}, square = 0.0;
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
    PairMetrics s = pairs_step(&m, &o, list, 2, &pair_losses[PAIR_BRADLEY_TERRY], 1.0f, 0.01f, 0.0f,
                               (AdamOptions){0.0f, 0.95f, 1e-12f, 0.0f});
    CHECK_NEAR(s.loss, log(2.0), 1e-7);
    CHECK(s.margin == 0.0 && s.accuracy == 0.5 && s.chosen == 0.0 && s.rejected == 0.0);
    size_t body = m.weights.count - (size_t)C;
    const float *gradient = o.first.memory, *of_head = gradient + body;        // with beta1 = 0
    for (int c = 0; c < C; c++) {
        CHECK_NEAR(of_head[c], expected[c], 1e-6);
        square += expected[c] * expected[c];
        // AdamW's first step has the length of the learning rate: g / sqrt(g^2) = +-1
        CHECK_NEAR(m.weights.score[c], expected[c] > 0 ? -0.01 : 0.01, 1e-6);
    }
    CHECK_NEAR(s.grad_norm, sqrt(square), 1e-6);
    CHECK(square_of(gradient, body) == 0.0 && same_bits(m.weights.memory, policy.weights.memory, body));
    pairs_free(&p), optimizer_free(&o), model_free(&m), model_free(&policy);
}

static void chapter_12_dpo_begins_at_its_reference(void) {
    // margin 0, loss ln 2 (the gradient is held against differences in gradients.c)
    Model m = tiny_model(4);
    Pairs p = two_pairs();
    Pair* list[2] = {&p.list[0], &p.list[1]};
    PairResult result[2];
    set_reference(&p, &m, &pair_losses[PAIR_DPO]);
    pairs_forward(result, &m, list, 2, &pair_losses[PAIR_DPO], 0.3f, 0);
    for (int i = 0; i < 2; i++) {
        const float* reference = p.list[i].reference;
        CHECK(result[i].margin == 0.0 && same_bits(result[i].value, reference, 2));
        CHECK(reference[REJECTED] < 0.0f);
        CHECK_NEAR(result[i].loss, log(2.0), 1e-7);
    }
    // log pi(y|x) is the sum over the sampled tokens alone; the tool's four are not among them
    for (int side = CHOSEN; side <= REJECTED; side++) {
        const Tokens* t = &p.list[0].tokens[side];
        float logp[96];
        double sum = 0.0;
        plain_pass(logp, &m, t->ids, t->mask + 1, t->length, NULL);
        for (int i = 0; i + 1 < t->length; i++) sum += logp[i];
        CHECK_NEAR(result[0].value[side], sum, 1e-6);
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
    static const double predicted[5] = {0.55, 0.55, 0.72, 0.82, 1.0}, won[5] = {1, 0, 0, 1, 1};
    PairEvaluation e = {.from = 0.5};
    for (int i = 0; i < 5; i++) calibration_add(&e, predicted[i], won[i]);
    calibration_finish(&e);
    CHECK_LIST(e.count, 0.0, 2, 0, 1, 1, 1);
    CHECK_NEAR(e.observed[0], 0.5, 1e-12);
    CHECK_LIST(e.predicted, 1e-12, 0.55, 0, 0.72, 0.82, 1);     // nothing fell into the second one
    CHECK_NEAR(e.error, 0.2, 1e-12);
    // an untrained reward model: every pair is a coin flip, half right
    Model policy = tiny_model(7), m = scalar_model_on(&policy);
    Pairs p = two_pairs();
    e = evaluate_pairs(&m, &p, &pair_losses[PAIR_BRADLEY_TERRY], 1.0f);
    CHECK(e.accuracy == 0.5 && e.pairs == 2 && e.questions == 2 && e.count[0] == 2 && e.error == 0.0);
    e = evaluate_pairs(&m, &p, &pair_losses[PAIR_OUTCOME], 1.0f);        // four answers, all called at 1/2
    CHECK(e.count[2] == 4 && e.predicted[2] == 0.5 && e.observed[2] == 0.5 && e.error == 0.0);
    p.count = 1;
    e = evaluate_pairs(&m, &p, &pair_losses[PAIR_BRADLEY_TERRY], 1.0f);  // one: no variance between them
    CHECK(e.questions == 1 && e.low >= 0.0 && e.low < e.accuracy && e.high > e.accuracy && e.high <= 1.0);
    p.count = 2;
    pairs_free(&p), model_free(&m), model_free(&policy);
}

// ---- best of n

static void chapter_12_what_is_kept(void) {
    // 4 questions x 3 answers; the best: 0.5 (index 0), 1 (4, the first of two), none (all 0), 1 (11)
    const float out = (float)NAN;
    const float score[12] = {0.5f, 0.0f, out, 0.0f, 1.0f, 1.0f, 0.0f, 0.0f, 0.0f, 0.9f, out, 1.0f};
    int kept[12], turns[12] = {0}, equal_turns[6] = {0};
    CHECK(keep_answers(kept, score, 4, 3, KEEP_PROMPT, 0.0f, 1) == 3);
    CHECK_LIST(kept, 0.0, 0, 4, 11);
    // a judge without a zero keeps one of every question
    CHECK(keep_answers(kept, score, 4, 3, KEEP_PROMPT, -INFINITY, 1) == 4 && kept[2] == 6);
    // overall: the three ones, although two belong to one question
    for (uint64_t seed = 1; seed < 20; seed++) {
        CHECK(keep_answers(kept, score, 4, 3, KEEP_OVERALL, 0.0f, seed) == 3);
        CHECK_LIST(kept, 0.0, 4, 5, 11);
    }
    // random: three different ones, in rising order, never a NaN; every answer has its turn, 3 of 10 answers,
    // 2000 times: 600 each, standard deviation sqrt(2000 0.3 0.7) = 20
    for (uint64_t seed = 0; seed < 2000; seed++) {
        CHECK(keep_answers(kept, score, 4, 3, KEEP_RANDOM, 0.0f, seed) == 3);
        CHECK(kept[0] < kept[1] && kept[1] < kept[2]);
        for (int i = 0; i < 3; i++) turns[kept[i]]++;
    }
    for (int i = 0; i < 12; i++) CHECK(isnan(score[i]) ? turns[i] == 0 : abs(turns[i] - 600) < 100);
    // equal scores are settled by the seed: with four ones and two places each has half of the cases
    const float equal[6] = {1.0f, 1.0f, 0.0f, 1.0f, 0.0f, 1.0f};
    for (uint64_t seed = 0; seed < 1000; seed++) {
        CHECK(keep_answers(kept, equal, 2, 3, KEEP_OVERALL, 0.0f, seed) == 2);
        for (int i = 0; i < 2; i++) equal_turns[kept[i]]++;
    }
    for (int i = 0; i < 6; i++)
        CHECK(equal[i] == 0.0f ? equal_turns[i] == 0 : abs(equal_turns[i] - 500) < 100);
}

// ---- threads, commands

static void chapter_12_threads_change_nothing(void) {
    for (int scalar = 0; scalar < 2; scalar++) {
        const PairLoss* loss = &pair_losses[scalar ? PAIR_BRADLEY_TERRY : PAIR_DPO];
        Model policy = tiny_model(8), m[5];
        Pairs p = {0};
        Pair* list[20];
        for (int i = 0; i < 20; i++)
            pairs_add(&p, i % 3 ? "1+1?" : "Yes?", "It is <<1+1=2>>2, I think.", i % 2 ? "no" : "not at all");
        render_pairs(&p, 96, "many");
        for (int i = 0; i < 20; i++) list[i] = &p.list[i];
        for (int threads = 1; threads <= 4; threads++) {
            set_threads(threads);
            m[threads] = scalar ? scalar_model_on(&policy) : copy_of_model(&policy);
            if (!scalar) set_reference(&p, &policy, loss);
            Optimizer o = optimizer_new(&m[threads].config);
            for (int i = 0; i < 2; i++)
                pairs_step(&m[threads], &o, list, 20, loss, 1.0f, 1e-2f, 1.0f, rl_defaults().adam);
            CHECK(same_weights(&m[threads].weights, &m[1].weights));
            optimizer_free(&o);
        }
        for (int threads = 1; threads <= 4; threads++) model_free(&m[threads]);
        pairs_free(&p), model_free(&policy);
    }
    set_threads(1);
}

// What the commands work with: policies, a reward model, questions and pairs.
static void put_models_and_files(void) {
    Model policy = tiny_model(9), judge = scalar_model_on(&policy);
    put_model(in_folder("policy"), &policy);
    put_model(in_folder("judge"), &judge);
    save_model(in_folder("small"), (Config){VOCAB_SIZE, 96, 1, 8, 2, 1, 4, 24, 1, 10000.0f, 1e-6f, 0});
    save_model(in_folder("foreign"), (Config){100, 96, 1, 16, 2, 1, 8, 24, 1, 10000.0f, 1e-6f, 0});
    put_crowd();
    put("exam.jsonl", json("{'question': '2+2 =?', 'answer': '#### 4'}\n"));
    put("sum.jsonl", json("{'question': '2+2?', 'answer': '#### 4'}\n"));
    put("pair.jsonl", json(GOOD_PAIR));
    model_free(&policy), model_free(&judge);
}
#define TAUGHT option("model-tag", "taught")
#define MORE "--threads=1", "--num-samples=8", "--max-new-tokens=30"

static void chapter_12_a_resumed_run_is_the_same_run(void) {
    static const struct { int (*command)(int, char**); const char *kind, *says, *goes_on; } runs[] = {
        {command_reward_model, "reward-model", "ranked right", "go on with: ./rl reward-model --resume"},
        {command_dpo, "dpo", "dpo: 6 updates of 3", "go on with: ./rl dpo --resume"}};
    for (int i = 0; i < 2; i++) {
        const char *exam = i ? "--beta=0.2" : option("eval-questions", "exam.jsonl"), *tag = TAUGHT;
        const char* from = option("questions", "two.jsonl");
        for (int stop = 0; stop <= 5; stop += 1 + (stop > 0)) {    // not at all, and during update 1, 3, 5
            const char* out = option("out", stop ? "parts" : "whole");
            press_at = stop;
            const Ran* r = COMMAND(runs[i].command, tag, from, exam, out, MORE, "--annotator=mixed",
                                   "--num-steps=6", "--batch-size=3", "--overwrite");
            press_at = 0;
            CHECK(r->status == (stop ? 130 : 0));
            SAYS(r->out, stop ? runs[i].goes_on : runs[i].says);
            if (!stop) continue;
            // the pairs are read again, not made again: no question file is needed any more
            WORKS(COMMAND(runs[i].command, option("resume", "parts"), "--threads=1", "--questions=nowhere"));
            CHECK(same_files("whole/model.safetensors", "parts/model.safetensors"));
            CHECK(same_files("whole/optimizer.safetensors", "parts/optimizer.safetensors"));
            // metrics.csv, too, but for the seconds: its head and six rows
            CHECK(shell("for r in whole parts; do cut -d, -f1-7,9 $r/metrics.csv > $r.csv; done"));
            CHECK(shell("[ $(wc -l < whole.csv) = 7 ]") && same_files("whole.csv", "parts.csv"));
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
    // with the same seed the same file, by one thread or two; with another seed another
    const char *tag = TAUGHT, *data = option("data", "two.jsonl");
    WORKS(COMMAND(command_pairs, tag, data, MORE, option("out", "a.jsonl")));
    WORKS(COMMAND(command_pairs, tag, data, MORE, "--threads=2", option("out", "b.jsonl")));
    WORKS(COMMAND(command_pairs, tag, data, MORE, "--seed=2", option("out", "c.jsonl")));
    CHECK(same_files("a.jsonl", "b.jsonl") && !same_files("a.jsonl", "c.jsonl"));
    // an untrained model is never right
    REFUSED(COMMAND(command_pairs, option("model-tag", "policy"), data, MORE, option("out", "d.jsonl")),
            "no pair could be made");
    CHECK(!file_exists(in_folder("d.jsonl")));
}

static void chapter_12_models_of_the_wrong_kind(void) {
    const char *judge = option("model-tag", "judge"), *policy = option("model-tag", "policy");
    const char *data = option("data", "pair.jsonl"), *exam = option("eval-data", "pair.jsonl");
    const char* out = option("out", "no");
    const struct { int (*command)(int, char**); const char *why, *words[4]; } cases[] = {
        {command_dpo, "holds a reward model: it gives scores and cannot write", {judge, data, out}},
        {command_reward_model, "holds a reward model", {judge, data, out}},
        {command_best_of_n, "holds a reward model", {judge, out}},
        {command_pairs, "holds a reward model", {judge, out}},
        {command_eval, "holds a reward model", {judge}},
        {command_dpo, "holds a reward model", {policy, data, out, option("reference", "judge")}},
        // a reference of other sizes, and one of another vocabulary
        {command_dpo, "has other sizes than the policy", {policy, data, out, option("reference", "small")}},
        {command_dpo, "has a vocabulary of 100 tokens", {policy, data, out, option("reference", "foreign")}},
        // losses of the other command, and an exam that is trained on
        {command_dpo, "unknown option '--loss'", {policy, data, out, "--loss=outcome"}},
        {command_reward_model, "no --loss 'dpo'; choose bradley-terry or outcome",
         {policy, data, out, "--loss=dpo"}},
        {command_reward_model, "1 of the 1 questions", {policy, data, exam, out}},
        {command_best_of_n, "no --keep 'all'", {policy, out, "--keep=all"}},
        {command_pairs, "a file is missing", {policy, data}},
        {command_pairs, "no --annotator 'mother'", {policy, data, out, "--annotator=mother"}},
        {command_pairs, "is not the name of a file", {policy, data, option("out", "")}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char* words[5] = {0};
        memcpy(words, cases[i].words, sizeof cases[i].words);
        REFUSED(run_command(cases[i].command, words), cases[i].why);
    }
    CHECK(!file_exists(in_folder("no")));
    // with permission it runs
    const char* rm = option("out", "rm");
    WORKS(COMMAND(command_reward_model, policy, data, exam, "--allow-overlap", "--threads=1", rm));
}

static void chapter_12_best_of_n_learns_what_it_keeps(void) {
    const char *tag = TAUGHT, *data = option("data", "sum.jsonl"), *out = option("out", "best");
    const Ran* r = COMMAND(command_best_of_n, tag, data, out, MORE, "--steps=2");
    WORKS(r);
    SAYS(r->out, "1 are kept (prompt)");
    Text kept = read_file(in_folder("best/kept.jsonl"));
    CHECK(strstr(kept.data, "{\"question\": \"2+2?\", \"answer\": \"") == kept.data);
    CHECK(strstr(kept.data, "#### 4\"}\n") && strchr(kept.data, '\n')[1] == 0);
    text_free(&kept);
    CHECK(file_exists(in_folder("best/model.safetensors")));
    // with 14 tokens "<<2+2=4>>#### 4" is right but has no end: it is not kept, not even by chance
    for (int seed = 1; seed <= 6; seed++) {
        char number[32];
        snprintf(number, sizeof number, "--seed=%d", seed);
        WORKS(COMMAND(command_best_of_n, tag, data, out, MORE, "--num-samples=32", "--max-new-tokens=14",
                      "--steps=1", "--keep=random", "--overwrite", number));
        kept = read_file(in_folder("best/kept.jsonl"));
        CHECK(kept.length > 10 && !strstr(kept.data, "<<"));
        text_free(&kept);
    }
    REFUSED(COMMAND(command_best_of_n, option("model-tag", "policy"), data, option("out", "nothing"),
                    "--threads=1", "--num-samples=2", "--max-new-tokens=8"), "has a reward above 0");
    CHECK(!file_exists(in_folder("nothing")));
}

static void test_chapter_12(void) {
    open_folder();
    put_models_and_files();
    RUN_ALL(TEST(chapter_12_all_forms_are_read), TEST(chapter_12_what_is_no_pair),
            TEST(chapter_12_a_rollout_becomes_a_text), TEST(chapter_12_annotators_annotate),
            TEST(chapter_12_pairs_are_different_and_few), TEST(chapter_12_a_limit_keeps_the_order),
            TEST(chapter_12_pairs_are_made_once_and_the_same), TEST(chapter_12_losses_of_a_pair),
            TEST(chapter_12_the_first_step_of_a_reward_model), TEST(chapter_12_dpo_begins_at_its_reference),
            TEST(chapter_12_accuracy_counts_questions), TEST(chapter_12_calibration_in_bins),
            TEST(chapter_12_what_is_kept), TEST(chapter_12_a_resumed_run_is_the_same_run),
            TEST(chapter_12_models_of_the_wrong_kind), TEST(chapter_12_best_of_n_learns_what_it_keeps),
            TEST(chapter_12_threads_change_nothing));
    remove_folder();
}
