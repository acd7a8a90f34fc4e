// runs.h - a run as the command line makes it, on models so small that an update takes milliseconds: options,
// models that have something to learn, questions and the arrays of its groups.

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

// K of them as the rows of an array
static Rollout* play_all(const char* question, const char* const* texts, int K) {
    Rollout* all = rollouts_new(K, 96);
    for (int k = 0; k < K; k++) {
        Rollout *to = &all[k], *from = play(question, texts[k]);
        size_t bytes = (size_t)(from->prompt + from->length) * sizeof(int);
        to->prompt = from->prompt;
        to->length = from->length;
        to->finished = from->finished;
        memcpy(to->ids, from->ids, bytes);
        memcpy(to->mask, from->mask, bytes);
        rollouts_free(from);
    }
    return all;
}

// a model small enough for a test; its vocabulary is the real one
static Model tiny_model(uint64_t seed) {
    return random_model((Config){VOCAB_SIZE, 96, 1, 16, 2, 1, 8, 24, 1, 10000.0f, 1e-6f, 0}, seed);
}

// A checkpoint of a model that was never trained.
static void put_model(const char* path, const Model* m) {
    Optimizer o = optimizer_new(&m->config);
    save_run(path, "test", (Option[]){{0}}, 0, m, &o, NULL, NULL);
    optimizer_free(&o);
}

static void save_model(const char* path, Config c) {
    Model m = random_model(c, 3);
    Rng rng = {5};
    for (int i = 0; c.scalar && i < c.width; i++) m.weights.score[i] = (float)random_normal(&rng);
    put_model(path, &m);
    model_free(&m);
}

// A checkpoint of the tiny model after so many updates on these conversations: questions and answers.
static void put_taught_model(const char* path, uint64_t seed, const char* (*said)[2], int count, int steps) {
    Model m = tiny_model(seed);
    Optimizer o = optimizer_new(&m.config);
    Tokens text[20] = {{0}};
    const Tokens* list[20];
    for (int i = 0; i < count; i++) {
        render_conversation(&text[i], said[i][0], said[i][1]);
        list[i] = &text[i];
    }
    for (int i = 0; i < steps; i++) {
        sft_loss(&m, list, count, 1);
        clip_and_step(&m, &o, 1e-2, 1.0, (AdamOptions){0.9f, 0.95f, 1e-8f, 0.0f});
    }
    put_model(path, &m);
    for (int i = 0; i < count; i++) tokens_free(&text[i]);
    optimizer_free(&o), model_free(&m);
}

// In `folder`: two questions, and a model that a mixed crowd has taught right and wrong answers to them.
static void put_crowd(void) {
    static const char* crowd[][2] = {{"1+1?", "<<1+1=2>>\n#### 2"}, {"1+1?", "2"}, {"1+1?", "#### 3"},
                                     {"2+2?", "#### 4"}, {"2+2?", "no"}, {"2+2?", "<<2+2=4>>#### 4"}};
    put_taught_model(in_folder("taught"), 10, crowd, 6, 150);
    put("two.jsonl", json("{'question': '1+1?', 'answer': '<<1+1=2>>2\\n#### 2'}\n"
                          "{'question': '2+2?', 'answer': '#### 4'}\n"));
}

static char data_path[PATH_SIZE], model_path[PATH_SIZE], reward_model_path[PATH_SIZE];   // of make_models()

// In `folder`: ten questions, a model that answers them with the right number or with one more, about as
// often, so that its rollouts are worth something, sometimes; and a reward model.
static void make_models(void) {
    static char words[20][2][32];
    const char* said[20][2];
    Text t = {0};
    open_folder();
    join_path(model_path, folder, "model");
    join_path(reward_model_path, folder, "reward_model");
    for (int i = 0; i < 20; i++) {
        int x = 2 + i / 2;
        snprintf(words[i][0], sizeof words[i][0], "%d+%d?", x, x);
        snprintf(words[i][1], sizeof words[i][1], "#### %d", 2 * x + i % 2);
        for (int side = 0; side < 2; side++) said[i][side] = words[i][side];
        if (i % 2) continue;
        text_printf(&t, "{\"question\": \"%d+%d?\", \"answer\": \"<<%d+%d=%d>>%d\\n#### %d\"}\n", x, x, x, x,
                    2 * x, 2 * x, 2 * x);
    }
    strcpy(data_path, put("questions.jsonl", t.data));
    put_taught_model(model_path, 5, said, 20, 80);
    save_model(reward_model_path, (Config){VOCAB_SIZE, 96, 1, 16, 2, 1, 8, 24, 1, 10000.0f, 1e-6f, 1});
    text_free(&t);
}

enum { QUESTIONS = 4, SAMPLES = 4, NEW_TOKENS = 12, WORDS = 24 };

// The learner points into it, so it stays where it is.
typedef struct {
    RlOptions o;
    Option options[RL_OPTIONS];
    Setup setup;
    Questions q;
    Group* group;
} World;

// What `./rl train WORDS` decides, with sizes for a test where the words say nothing else.
static void read_words(World* w, const char* const* words) {
    char* argv[WORDS];
    int argc = 0;
    *w = (World){.o = rl_defaults()};
    for (; words[argc]; argc++) argv[argc] = (char*)words[argc];
    w->o.num_samples = SAMPLES;
    w->o.examples_per_step = QUESTIONS;
    w->o.sample.max_new_tokens = NEW_TOKENS;
    w->o.num_steps = 4;
    w->o.eval_every = 0;
    w->o.log_every = 100;
    w->o.lr = w->o.value_lr = 1e-2f;
    w->o.init_lr_frac = 1.0f;
    w->o.model = model_path;
    w->o.data = data_path;
    w->o.out = folder;
    take_options(w->options, &w->o, FOR_TRAIN);
    set_method(&w->o, asked_algo(argc, argv));
    if (w->o.minibatch) {
        w->o.minibatch = QUESTIONS / 2;
        w->o.overlong = min_int(w->o.overlong, 4);
    }
    parse_options(w->options, argc, argv, NULL, 0);
    check_method(&w->o, w->options);
}

#define START(w, ...) start(w, (const char*[]){__VA_ARGS__, NULL})
static void start(World* w, const char* const* words) {
    read_words(w, words);
    setup_load(&w->setup, &w->o, 0);
    int new_tokens = w->o.sample.max_new_tokens;
    int context = w->setup.policy.config.context;
    w->q = load_questions(data_path, context, new_tokens, w->setup.learner.reward.kind);
    w->group = groups_new(w->o.examples_per_step, w->o.num_samples, w->q.longest + new_tokens + 1);
}

static void finish(World* w) {
    groups_free(w->group, w->o.examples_per_step);
    questions_free(&w->q);
    setup_free(&w->setup);
}

static const int first_questions[QUESTIONS] = {0, 1, 2, 3};

// rl_step() on the first questions. look(): with learning rate 0, so that nothing moves and the arrays can be
// looked at.
static Metrics update(World* w, long step) {
    return rl_step(&w->setup.learner, w->group, &w->q, first_questions, step, 1.0);
}
static Metrics look(World* w, long step) {
    return rl_step(&w->setup.learner, w->group, &w->q, first_questions, step, 0.0);
}

// The gradient of an update that moves nothing (of its last minibatch): with beta1 = 0 AdamW's first moment
// is the gradient itself. It stays in the optimizer's moments, the value model's in its own.
static const float* gradient_of(World* w, long step, Metrics* s) {
    w->o.adam.beta1 = 0.0f;
    w->o.grad_clip = 0.0f;
    Weights *first = &w->setup.optimizer.first, *value = &w->setup.value_optimizer.first;
    memset(first->memory, 0, first->count * sizeof(float));
    if (w->setup.learner.value) memset(value->memory, 0, value->count * sizeof(float));
    *s = look(w, step);
    return first->memory;
}

static double square_of(const float* x, size_t n) {
    double square = 0.0;
    for (size_t i = 0; i < n; i++) square += (double)x[i] * x[i];
    return square;
}

// the largest |a - factor b|, relative to the largest |a|
static double off_by(const float* a, const float* b, double factor, size_t n) {
    double largest = 0.0, off = 0.0;
    for (size_t i = 0; i < n; i++) {
        largest = fmax(largest, fabs((double)a[i]));
        off = fmax(off, fabs(a[i] - factor * b[i]));
    }
    return largest > 0.0 ? off / largest : INFINITY;
}

static const char* algo_word(int method) {
    static char word[METHODS][32];
    snprintf(word[method], sizeof word[method], "--algo=%s", methods[method].name);
    return word[method];
}

// A reference that is not the policy: its weights, each a little off.
static void disturb(Model* m, double size) {
    Rng rng = {77};
    for (size_t i = 0; i < m->weights.count; i++)
        m->weights.memory[i] *= (float)(1.0 + size * random_normal(&rng));
}
