// guessing.h - for tests of whole runs: a model so small that an update takes milliseconds, and which has
// something to learn.

// a model small enough for a test; its vocabulary is the real one
static Model tiny_model(uint64_t seed) {
    return random_model((Config){VOCAB_SIZE, 96, 1, 16, 2, 1, 8, 24, 1, 10000.0f, 1e-6f, 0}, seed);
}

// questions.jsonl in this folder: ten sums
static void write_questions(const char* folder) {
    Text t = {0};
    for (int i = 2; i < 12; i++)
        text_printf(&t, "{\"question\": \"%d+%d?\", \"answer\": \"<<%d+%d=%d>>%d\\n#### %d\"}\n", i, i, i, i,
                    2 * i, 2 * i, 2 * i);
    write_file(folder, "questions.jsonl", &t);
    text_free(&t);
}

// A model that answers the questions of write_questions with the right number or with one more, about as
// often: its rollouts are worth something, sometimes.
static Model guessing_model(uint64_t seed) {
    Model m = tiny_model(seed);
    Optimizer o = optimizer_new(&m.config);
    Tokens text[20] = {{0}};
    const Tokens* list[20];
    for (int i = 0; i < 20; i++) {
        char question[32], answer[32];
        snprintf(question, sizeof question, "%d+%d?", 2 + i / 2, 2 + i / 2);
        snprintf(answer, sizeof answer, "#### %d", 2 * (2 + i / 2) + i % 2);
        render_conversation(&text[i], question, answer);
        list[i] = &text[i];
    }
    for (int step = 0; step < 80; step++) {
        sft_loss(&m, list, 20, 1);
        clip_and_step(&m, &o, 1e-2, 1.0, (AdamOptions){0.9f, 0.95f, 1e-8f, 0.0f});
    }
    for (int i = 0; i < 20; i++) tokens_free(&text[i]);
    optimizer_free(&o);
    return m;
}

// The tokens of a text in which [17+26] is a call and @ is <|assistant_end|>.
static Tokens spelled(const char* text) {
    Tokens t = {0};
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        tokens_add(&t, c == '[' ? PYTHON_START : c == ']' ? PYTHON_END : c == '@' ? ASSISTANT_END : c, 1);
    }
    return t;
}

// The rollout of these tokens as an answer to a question, the tool's included.
static Rollout* play(const char* question, const char* text) {
    Tokens t = spelled(text), prompt = {0};
    render_prompt(&prompt, question);
    Rollout* r = play_script(&prompt, t.ids, t.length);
    tokens_free(&t), tokens_free(&prompt);
    return r;
}

// The same, and <|assistant_end|> ends it.
static Rollout* says(const char* question, const char* text) {
    Text t = {0};
    text_printf(&t, "%s@", text);
    Rollout* r = play(question, t.data);
    text_free(&t);
    return r;
}

// K of them as the rows of an array
static Rollout* all_say(const char* question, const char* const* texts, int K) {
    Rollout *one[8], *all;
    int T = 0;
    for (int k = 0; k < K; k++) {
        one[k] = says(question, texts[k]);
        T = max_int(T, one[k]->prompt + one[k]->length + 1);
    }
    all = rollouts_new(K, T);
    for (int k = 0; k < K; k++) {
        Rollout *to = &all[k], *from = one[k];
        to->prompt = from->prompt;
        to->length = from->length;
        to->finished = from->finished;
        memcpy(to->ids, from->ids, (size_t)(from->prompt + from->length) * sizeof(int));
        memcpy(to->mask, from->mask, (size_t)(from->prompt + from->length) * sizeof(int));
        rollouts_free(from);
    }
    return all;
}
