/* tools.c - the commands of ./rl around the book: they read options and files, print tables and call the
 * chapters. What they compute stands in rl.c: pairs of answers and their trainer in chapter 12, D3's
 * experiments in chapters 3, 7 and 8, the verifier in chapter 5, evaluation in chapter 11.
 *
 * make builds ./rl from this file, which includes the book. (`cc rl.c -lm` gives a program without them.)
 */
#define RL_NO_MAIN
#include "../rl.c"

// ---- ./rl eval

// What an evaluation says about k = 1, 2, 4, ... answers to a question.
static void print_evaluation(const Evaluation* e) {
    printf("%6s %8s  %-13s %8s  %-13s %8s %8s\n", "k", "pass@k", "95% interval", "vote", "95% interval",
           "no vote", "tokens");
    for (int k = 1; k; k = next_k(k, 2, e->samples)) {
        int i = k - 1;
        printf("%6d %8.4f  %.4f-%.4f %8.4f  %.4f-%.4f %8.4f", k, e->pass[i], e->low[i], e->high[i],
               e->vote[i], e->vote_low[i], e->vote_high[i], e->no_vote[i]);
        printf(e->length > 0.0 ? " %8.1f\n" : "        -\n", k * e->length);
    }
    printf("\n"
           "  pass@k   at least one of k answers is right\n"
           "  vote     the answer that most of k agree on is right; all disjoint groups of k\n"
           "  no vote  share of these groups in which no answer is in the rewarded format\n"
           "  tokens   generated for k answers\n");
}

// pass@k of two models on the same questions, what changed, and which questions were solved at all.
static void print_comparison(const Evaluation* before, const Evaluation* after) {
    int K = before->samples, solved[4];
    double low, high;
    printf("%5s %8s %-13s %8s %-13s %8s %s\n", "k", "before", "95% interval", "after", "95% interval",
           "change", "95% interval");
    for (int k = 1; k; k = next_k(k, 2, K)) {
        double change = pass_difference(&low, &high, before, after, k);
        printf("%5d %8.4f %.4f-%.4f %8.4f %.4f-%.4f %+8.4f %+.4f to %+.4f\n", k, before->pass[k - 1],
               before->low[k - 1], before->high[k - 1], after->pass[k - 1], after->low[k - 1],
               after->high[k - 1], change, low, high);
    }
    count_solved(solved, before, after);
    printf("\nQuestions of which at least one of %d answers is right:\n\n"
           "  by both %d, only after %d, only before %d, by neither %d\n\n", K, solved[3], solved[2],
           solved[1], solved[0]);
    if (K > 1)
        print_plot(&(Plot){.title = "pass@k", .x_name = "k answers to a question",
                           .y = {before->pass, after->pass}, .names = {"before", "after"}, .series = 2,
                           .points = K, .log_x = 1});
    printf("\nHow to read it: up or down is a change whose interval leaves out 0.\n\n"
           "  pass@1  pass@%-5d training\n"
           "  up      within 0  elicited: it made frequent what was within reach before\n"
           "  up      up        solves what as many answers before did not\n"
           "  up      down      made one answer better and the model narrower\n\n"
           "Something new can show only on the %d of %d questions unsolved before.\n",
           K, solved[0] + solved[2], before->questions);
}

// The table for other programs. before may be NULL; else what changed since stands in more columns.
static void append_evaluation(Text* csv, const Evaluation* e, const Evaluation* before) {
    double low, high;
    text_printf(csv, "k,pass_at_k,low,high,vote,vote_low,vote_high,no_vote,tokens%s\n",
                before ? ",before,before_low,before_high,change,change_low,change_high" : "");
    for (int k = 1, i = 0; k; k = next_k(k, 2, e->samples), i = k - 1) {
        text_printf(csv, "%d,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g", k, e->pass[i], e->low[i], e->high[i],
                    e->vote[i], e->vote_low[i], e->vote_high[i], e->no_vote[i], k * e->length);
        double change = before ? pass_difference(&low, &high, before, e, k) : 0.0;
        if (before)
            text_printf(csv, ",%.6g,%.6g,%.6g,%.6g,%.6g,%.6g", before->pass[i], before->low[i],
                        before->high[i], change, low, high);
        text_printf(csv, "\n");
    }
}

static int command_eval(int argc, char** argv) {
    RlOptions o = rl_defaults();
    char folder[PATH_SIZE];
    Text csv = {0};
    o.model = "out/run/rl";
    o.data = "data/test.jsonl";
    o.out = NULL;
    o.eval_examples = 256;
    begin_command(&o, NULL, NULL, 0, FOR_EVAL, argc, argv,
                  "eval - pass@k and majority votes on held-out questions", " [--compare MODEL]");
    const RewardKind* kind = find_reward(o.reward);
    const char* tag[2] = {o.model, o.compare};               // the model; the one before
    Model m[2];
    Evaluation e[2];
    int count = o.compare ? 2 : 1, context = INT_MAX;
    for (int i = 0; i < count; i++) {
        m[i] = load_tagged_model(tag[i]);
        context = min_int(context, m[i].config.context);
    }
    Questions q = load_questions(o.data, context, o.sample.max_new_tokens, kind);
    const char* name = o.out ? out_file(folder, o.out, o.overwrite) : NULL;
    printf("%d questions x %d samples, reward %s\n\n%-7s %10s %10s %10s %10s  directory\n",
           min_int(o.eval_examples, q.count), o.num_samples, o.reward, "", "tool used", "in format", "length",
           "seconds");
    for (int i = count - 1; i >= 0; i--) {
        double begin = seconds_now();
        e[i] = evaluate_model(&m[i], &q, o.eval_examples, o.num_samples, o.sample, kind, NULL, o.seed + 2);
        printf("%-7s %10.4f %10.4f %10.1f %10.1f  %s\n", !o.compare ? "model" : i ? "before" : "after",
               e[i].tool_rate, e[i].format_rate, e[i].length, seconds_now() - begin, tag[i]);
    }
    printf("\n");
    if (o.compare) print_comparison(&e[1], &e[0]);
    else print_evaluation(&e[0]);
    append_evaluation(&csv, &e[0], o.compare ? &e[1] : NULL);
    if (name) write_file(folder, name, &csv);
    if (name) printf("\nwrote %s\n", o.out);
    text_free(&csv), questions_free(&q);
    for (int i = 0; i < count; i++) evaluation_free(&e[i]), model_free(&m[i]);
    return 0;
}

// ---- ./rl algos

// The table, as far as its rows differ.
static void print_methods(void) {
    printf("%-10s %-9s %-9s %-9s %-10s %-17s %s\n", "--algo", "advantage", "ratio", "norm", "clip", "KL",
           "minibatch");
    for (int i = 0; i < METHODS; i++) {
        const Method* m = &methods[i];
        char clip[32] = "-", kl[64] = "-", minibatch[16] = "all";
        if (strcmp(m->ratio, "none"))
            snprintf(clip, sizeof clip, "%g, %g", (double)m->clip_low, (double)m->clip_high);
        if (m->beta > 0.0f)
            snprintf(kl, sizeof kl, "%g %s in %s", (double)m->beta, m->kl_estimator, m->kl_in);
        if (m->minibatch) snprintf(minibatch, sizeof minibatch, "%d", m->minibatch);
        printf("%-10s %-9s %-9s %-9s %-10s %-17s %9s\n", m->name, m->advantage, m->ratio, m->norm, clip, kl,
               minibatch);
    }
    printf("\nThe paper of each row, and where the row leaves it:\n\n");
    for (int i = 0; i < METHODS; i++) {
        const Method* m = &methods[i];
        printf("%-10s %s", m->name, m->paper);
        if (m->resample) printf("; resample %d, overlong %d", m->resample, m->overlong);
        printf("\n  %s\n", m->differs);
    }
    printf("\nThe same knobs elsewhere, as they come:\n\n"
           "           here               TRL                        verl\n"
           "answers    16                 num_generations 8          rollout.n 1\n"
           "steps      all / minibatch    1                          1024 / 256\n"
           "epochs     1                  num_iterations 1; PPO 4    ppo_epochs 1\n"
           "norm       token, a question  loss_type dapo: a batch    token-mean: a minibatch\n"
           "std        K - 1, + 1e-6      K - 1, + 1e-4              K - 1, + 1e-6\n"
           "clip       0.2                epsilon 0.2                clip_ratio 0.2\n"
           "beta       0; see above       beta 0; RLOO, PPO 0.05     kl_loss_coef 0.001, off\n"
           "lambda     0.95               PPO: lam 0.95              lam 1\n"
           "value clip 0.2                PPO: cliprange_value 0.2   cliprange_value 0.5\n"
           "grad clip  1                  max_grad_norm 1            grad_clip 1\n"
           "top-k      50, uncorrected    top_k 0: all               top_k -1: all\n"
           "\nEvery column is an option: --algo grpo --advantage centered --norm token\n"
           "--beta 0 is nanochat. ./rl train --algo NAME --help shows all of them with\ntheir values.\n");
}

static int command_algos(int argc, char** argv) {
    RlOptions o = rl_defaults();
    begin_command(&o, NULL, NULL, 0, 0, argc, argv,
                  "algos - the methods of ./rl train, and what makes them different", "");
    print_methods();
    return 0;
}

// ---- ./rl sample

// The likeliest tokens beside the one that was drawn, as many as have room in the line. z is the row of
// logits (V); what has been told is taken out of it.
static void print_alternatives(float* z, int drawn, int V) {
    enum { ALTERNATIVES = 3, ROOM = 44 };
    double lse = log_sum_exp(z, V);
    char text[24], words[40];
    z[drawn] = -INFINITY;
    for (int i = 0, used = 0; i < ALTERNATIVES; i++) {
        int next = 0;
        for (int v = 1; v < V; v++) if (z[v] > z[next]) next = v;
        double p = exp(z[next] - lse);
        used += snprintf(words, sizeof words, "  %s %.4f", token_text(text, next), p);
        if (p < 5e-5 || used > ROOM) return;               // it would be printed as 0
        printf("%s", words);
        z[next] = -INFINITY;
    }
}

// An answer as the choices it was made of, a line per token: its probability, which is that of the model
// before temperature, top-k and top-p, the log-probability that sampling recorded, and what else was likely.
static void print_choices(Model* m, const Rollout* r) {
    int V = m->config.vocab_size, end = r->prompt + r->length;
    float* logits = all_logits(m, r->ids, end);
    double sum = 0.0;
    char text[24];
    printf("%3s %-17s %6s %7s  alternatives\n", "t", "token", "p", "log pi");
    for (int t = r->prompt; t < end; t++) {
        printf("%3d %-17.17s", t - r->prompt, token_text(text, r->ids[t]));
        if (r->mask[t]) {
            sum += r->logp[t - 1];
            printf(" %.4f", exp((double)r->logp[t - 1]));
            print_nats(r->logp[t - 1], 1);
            print_alternatives(logits + (size_t)(t - 1) * (size_t)V, r->ids[t], V);       // the shift
        } else printf(" forced       -  written by the calculator");
        printf("\n");
    }
    printf("all %-17d %.4f", count_masked(r->mask, r->T), exp(sum));
    print_nats(sum, 1);
    printf("  product of the p, sum of the log pi\n\n");
    free(logits);
}

// --num-samples answers. `number` counts the questions of this call: each draws random numbers of its own.
static void answer_question(Model* m, const char* question, const RlOptions* o, int number) {
    const RewardKind* kind = find_reward(o->reward);
    Tokens prompt = question_prompt(question, m);
    uint64_t first = (uint64_t)number;
    Rollout* r = generate(m, &prompt, 1, o->num_samples, o->sample, tool_calculator, o->seed + 2, first);
    for (int i = 0; i < o->num_samples; i++, r++) {
        Text raw = rollout_text(r), text = {0};
        append_readable(&text, raw.data);
        printf("rollout %d: %d tokens%s", i + 1, r->length, r->finished ? "" : ", cut off");
        if (o->answer) printf(", reward %g", (double)grade_answer(raw.data, o->answer, kind).reward);
        printf("\n%s\n\n", text.data);
        if (o->explain) print_choices(m, r);
        text_free(&raw), text_free(&text);
    }
    rollouts_free(r - o->num_samples), tokens_free(&prompt);
    fflush(stdout);
}

// The next question that is typed; 0 = the input has ended, or the line is empty. To be freed. On a terminal
// it is asked for, from elsewhere it is repeated above its answer.
static int read_question(Text* line) {
    enum { LONGEST = 1 << 16 };                            // no context is longer
    int asks = isatty(0) && isatty(1), c = 0;
    *line = (Text){0};
    text_append(line, "", 0);
    if (asks) printf("question> ");
    fflush(stdout);
    while (line->length < LONGEST && (c = getchar()) != EOF && c != '\n') {
        if (!c) fail(2, "a byte of the question is 0; questions are lines of text");
        if (c != '\r') text_append(line, &(char){(char)c}, 1);
    }
    if (asks) printf(c == EOF ? "\n\n" : "\n");
    else if (line->length) print_wrapped("Question", line->data);
    return line->length > 0;
}

static int command_sample(int argc, char** argv) {
    RlOptions o = rl_defaults();
    Option options[RL_OPTIONS] = {{0}};
    const char* question = "";
    Text line;
    int number = 0;
    o.model = "out/run/rl";
    o.num_samples = 4;
    begin_command(&o, options, &question, 1, FOR_SAMPLE, argc, argv,
                  "sample - answers of a model to one question. With --explain each token's\n"
                  "probability is shown and, without a question, every line of the input is\n"
                  "taken for one, up to an empty line",
                  " \"QUESTION\"");
    if (!*question && (!o.explain || o.answer))
        fail(2, "a question is missing: ./rl sample \"Tom has 3 pens and buys 4 more. How many pens does Tom "
                "have now?\"");
    find_reward(o.reward);
    if (o.explain && !is_given(options, "num-samples")) o.num_samples = 1;
    Model m = load_tagged_model(o.model);
    if (*question) answer_question(&m, question, &o, 0);
    else {
        for (; read_question(&line); text_free(&line)) answer_question(&m, line.data, &o, number++);
        text_free(&line);
    }
    model_free(&m);
    return 0;
}

// ---- ./rl thermostat, ./rl cartpole

static int command_thermostat(int argc, char** argv) {
    RlOptions o = rl_defaults();
    begin_command(&o, NULL, NULL, 0, FOR_THERMOSTAT, argc, argv,
                  "thermostat - REINFORCE keeps a room at 70 F", "");
    run_thermostat(o.seed);
    return 0;
}

static int command_cartpole(int argc, char** argv) {
    RlOptions o = rl_defaults();
    o.lr = (float)cartpole_learning_rate;
    begin_command(&o, NULL, NULL, 0, FOR_CARTPOLE, argc, argv,
                  "cartpole - group mean against value function on CartPole", "");
    run_cartpole(o.seed, o.lr);
    return 0;
}

// ---- preference pairs in files
//
// A record is a question with two answers, as TRL and the data sets on the Hugging Face hub have it:
//
//     {"prompt": "...", "chosen": "...", "rejected": "..."}            "question" is as good as "prompt"
//     {"chosen":   [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}],
//      "rejected": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]}
//
// In the second form the user's message may also stand in "prompt", once for both. Wherever it stands, it
// must be the same: Bradley-Terry compares two answers to ONE question, r(x,y_w) - r(x,y_l). Of several
// rounds it would have to be said which of the assistant's messages are judged, so they are refused.
enum { USER, ASSISTANT };

// Who says what in a field of a record, which is a text of `speaker` or an array of messages; NULL = nothing.
static void read_field(const char* said[2], const Json* record, const char* name, int speaker,
                       const char* path) {
    const Json* field = json_get(record, name);
    int line = record->line, is_array = field && field->type == JSON_ARRAY;
    if (!is_array) said[speaker] = record_text(record, name, path);
    for (const Json* m = is_array ? field->child : NULL; m; m = m->next) {
        Json message = *m;                       // a small record, which stands in the same line
        message.line = line;
        const char* role = record_text(&message, "role", path);
        int who = strcmp(role, "user") ? ASSISTANT : USER;
        if (who == ASSISTANT && strcmp(role, "assistant"))
            fail(2, "%s, line %d: a message in \"%s\" has the role \"%s\"; only user and assistant can be "
                    "read", path, line, name, role);
        if (said[who] || said[ASSISTANT])
            fail(2, "%s, line %d: \"%s\" has more than one round; a pair is one question (user) with two "
                    "answers (assistant), so keep the round that is judged", path, line, name);
        said[who] = record_text(&message, "content", path);
    }
    if (speaker == ASSISTANT && !said[ASSISTANT])
        fail(2, "%s, line %d: \"%s\" has no message of the assistant", path, line, name);
    if (speaker == USER && (!said[USER] || said[ASSISTANT]))
        fail(2, "%s, line %d: \"%s\" is not one message of the user", path, line, name);
}

// Adds the pair of one record, or ends the program with what is wrong with it.
static void read_pair(Pairs* p, const Json* record, const char* path) {
    static const char* const names[] = {"chosen", "rejected"};
    const char *prompt[2] = {NULL, NULL}, *side[2][2] = {{NULL, NULL}, {NULL, NULL}};
    const char* asked = json_get(record, "prompt") ? "prompt" : "question";
    int line = record->line;
    if (json_get(record, asked)) read_field(prompt, record, asked, USER, path);
    for (int i = CHOSEN; i <= REJECTED; i++) read_field(side[i], record, names[i], ASSISTANT, path);
    const char* question = prompt[USER] ? prompt[USER] : side[CHOSEN][USER];
    if (!question)
        fail(2, "%s, line %d: the pair has no question: a field \"prompt\" or \"question\", or a message of "
                "the user in \"chosen\" and \"rejected\"", path, line);
    for (int i = CHOSEN; i <= REJECTED; i++) {
        const char* own = side[i][USER] ? side[i][USER] : prompt[USER];
        if (!own || strcmp(own, question))
            fail(2, "%s, line %d: \"%s\" answers another question than \"%s\", or has none; both sides of a "
                    "pair answer the same one", path, line, names[i], prompt[USER] ? "prompt" : "chosen");
    }
    if (!strcmp(side[CHOSEN][ASSISTANT], side[REJECTED][ASSISTANT]))
        fail(2, "%s, line %d: \"chosen\" and \"rejected\" are the same; nothing is preferred", path, line);
    pairs_add(p, question, side[CHOSEN][ASSISTANT], side[REJECTED][ASSISTANT]);
}

static Pairs load_pairs(const char* path) {
    Json* records = load_records(path);
    Pairs p = {0};
    for (const Json* j = records->child; j; j = j->next) read_pair(&p, j, path);
    if (!p.count)
        fail(2, "%s has no pairs in it, no {\"question\": ..., \"chosen\": ..., \"rejected\": ...}", path);
    json_free(records);
    return p;
}

static void pairs_to_json(Text* out, const Pairs* p) {
    for (int i = 0; i < p->count; i++) {
        text_printf(out, "{\"question\": ");
        json_append_string(out, p->list[i].question);
        text_printf(out, ", \"chosen\": ");
        json_append_string(out, p->list[i].answer[CHOSEN]);
        text_printf(out, ", \"rejected\": ");
        json_append_string(out, p->list[i].answer[REJECTED]);
        text_printf(out, "}\n");
    }
}

// ---- ./rl pairs, ./rl reward-model, ./rl dpo

// The two commands that train on pairs. Their defaults are what differs.
typedef struct {
    const char *name, *what, *out, *loss, *annotator;
    int scalar, options;             // a reward model; the command's bit in the table of options
    float lr;
} PairCommand;

static const PairCommand pair_commands[] = {
    {"reward-model", "reward-model - a network that learns which of two answers is better", "out/reward",
     "bradley-terry", "mixed", 1, FOR_REWARD_MODEL, 1e-3f},
    {"dpo", "dpo - direct preference optimization: a policy from pairs of answers", "out/dpo",
     "dpo", "verifier", 0, FOR_DPO, 3e-5f},
};

static RlOptions pair_defaults(const PairCommand* c) {
    RlOptions o = rl_defaults();
    o.annotator = c->annotator;
    o.loss = c->loss;
    o.out = c->out;
    o.num_epochs = 1;
    o.lr = c->lr;
    o.log_every = 10;
    o.beta = c->scalar ? 1.0f : 0.1f;
    return o;
}

static const PairLoss* find_pair_loss(const RlOptions* o, const PairCommand* c) {
    static const char* const names[] = {"bradley-terry", "outcome", NULL};       // the rows of pair_losses
    return &pair_losses[c->scalar ? choose(o->loss, names, "loss") : PAIR_DPO];
}

// Samples answers to the questions of a file and judges them. `made` is the number of the file: its random
// numbers are its own.
static Pairs make_pairs(Model* m, const char* path, const RlOptions* o, float noise, int most, int made) {
    uint64_t seed = o->seed + 4 + 2 * (uint64_t)made;
    const RewardKind* kind = find_reward(o->reward);
    Questions q = load_questions(path, m->config.context, o->sample.max_new_tokens, kind);
    PairRules rules = {find_annotator(o->annotator), kind, o->per_question, noise, seed + 1};
    Pairs p = {0};
    int used = 0;
    printf("%s: %d answers to each of %d questions\n  annotator: %s\n", path, o->num_samples, q.count,
           rules.annotator->what);
    fflush(stdout);
    int K = o->num_samples, together = max_int(1, EVAL_ROWS / K);
    for (int from = 0; from < q.count; from += together) {
        int B = min_int(together, q.count - from);
        Rollout* rollouts = answer_questions(m, &q, from, B, K, o->sample, seed);
        for (int i = 0; i < B; i++) {
            int before = p.count;
            annotate(&p, &q.list[from + i], from + i, rollouts + (size_t)i * K, K, &rules);
            used += p.count > before;
        }
        rollouts_free(rollouts);
    }
    if (!p.count)
        fail(2, "no pair could be made from %s: the answers to each question all have the same score; try "
                "more --num-samples or another --annotator", path);
    limit_pairs(&p, most, rules.seed);
    printf("  %d pairs, from %d questions that have answers of both kinds\n", p.count, used);
    questions_free(&q);
    return p;
}

static void write_pairs(const char* folder, const char* name, const Pairs* p) {
    Text text = {0};
    pairs_to_json(&text, p);
    write_file(folder, name, &text);
    text_free(&text);
}

static int command_pairs(int argc, char** argv) {
    RlOptions o = rl_defaults();
    char folder[PATH_SIZE];
    o.out = NULL;
    begin_command(&o, NULL, NULL, 0, FOR_PAIRS, argc, argv,
                  "pairs - samples answers, annotates them, writes who beats whom", " --out FILE");
    if (!o.out) fail(2, "a file is missing: ./rl pairs --out out/pairs.jsonl");
    find_annotator(o.annotator);
    Model m = load_tagged_model(o.model);
    const char* name = out_file(folder, o.out, o.overwrite);
    Pairs p = make_pairs(&m, o.data, &o, o.noise, o.most_pairs, 0);
    write_pairs(folder, name, &p);
    printf("wrote %s\n", o.out);
    pairs_free(&p), model_free(&m);
    return 0;
}

// The questions of pairs, as problems without an answer; only .list is to be freed.
static Problems questions_of(const Pairs* p) {
    Problems q = {allocate((size_t)p->count, sizeof(Problem)), p->count};
    for (int i = 0; i < p->count; i++) q.list[i].question = p->list[i].question;
    return q;
}

// The pairs to train on, list[0], and those held out, list[1]: from the files that are named or, in a new
// run, made and written beside the checkpoint; the options then name these files, so that a resumed run reads
// the same pairs. Held-out pairs are made for a reward model only, without noise, and none is left out. What
// is given is read before anything is made.
static void get_pairs(Pairs list[2], Model* policy, RlOptions* o, const PairCommand* c, int context) {
    static char path[2][PATH_SIZE];
    static const char* const names[2] = {"pairs.jsonl", "held_out.jsonl"};
    const char** file[2] = {&o->pairs, &o->eval_pairs};
    char folder[PATH_SIZE];
    int given[2];
    for (int i = 0; i < 2; i++) {
        given[i] = *file[i] && **file[i];
        if (given[i]) list[i] = load_pairs(*file[i]);
    }
    if (o->resume && !given[0]) fail(2, "a file of pairs is missing: --data FILE");
    if (!given[0] && !given[1] && c->scalar) check_apart(o->data, o->eval_data, o->allow_overlap);
    for (int i = 0; i < 2; i++) {
        if (given[i] || o->resume || (i == 1 && !c->scalar)) continue;
        check_folder_name(o->out);
        list[i] =
            make_pairs(policy, i ? o->eval_data : o->data, o, i ? 0.0f : o->noise, i ? 0 : o->most_pairs, i);
        join_path(path[i], o->out, names[i]);
        write_pairs(folder, out_file(folder, path[i], 1), &list[i]);
        printf("  wrote %s\n", path[i]);
        *file[i] = path[i];
    }
    for (int i = 0; i < 2; i++) if (list[i].count) render_pairs(&list[i], context, *file[i]);
    if (!list[1].count) return;
    Problems a = questions_of(&list[0]), b = questions_of(&list[1]);
    refuse_overlap(&a, &b, *file[0], *file[1], "", o->allow_overlap);
    free(a.list), free(b.list);
}

static const Column pair_columns[] = {
    {"loss", "loss", offsetof(PairMetrics, loss), 9, 4, 0},
    {"margin", "margin", offsetof(PairMetrics, margin), 9, 3, 0},
    {"accuracy", "accuracy", offsetof(PairMetrics, accuracy), 9, 3, 0},    // share of pairs ranked right
    {"chosen", "chosen", offsetof(PairMetrics, chosen), 9, 2, 0},          // log pi(y|x), or the score
    {"rejected", "rejected", offsetof(PairMetrics, rejected), 9, 2, 0},
    {"grad_norm", "|grad|", offsetof(PairMetrics, grad_norm), 9, 3, 0},
    {"seconds", "seconds", offsetof(PairMetrics, seconds), 8, 2, 0},
    {"lr", NULL, offsetof(PairMetrics, lr), 0, 0, 0},
    {0},
};

// The whole run, from update `step` on. Returns 0, or 130 after Ctrl-C.
static int train_on_pairs(Model* m, Optimizer* optimizer, Pairs* p, const RlOptions* o,
                          const PairCommand* c, const Option* options, long step) {
    const PairLoss* loss = find_pair_loss(o, c);
    int per_epoch = (p->count + o->batch_size - 1) / o->batch_size;
    long steps = o->num_steps ? o->num_steps : (long)o->num_epochs * per_epoch;
    int* chosen = allocate((size_t)o->batch_size, sizeof(int));
    Pair** batch = allocate((size_t)o->batch_size, sizeof(Pair*));
    char how[64];
    Run run = run_begin(o->out, o->overwrite, pair_columns, step, steps, o->log_every, o->save_every);
    printf("%s: %ld updates of %d of %d pairs\n  loss: %s\n", c->name, steps, o->batch_size, p->count,
           loss->what);
    while (run_goes_on(&run)) {
        double decay = lr_schedule(run.step, steps, o->warmup_steps, 0.0);
        deal_examples(chosen, o->batch_size, run.step, p->count, o->seed);
        for (int i = 0; i < o->batch_size; i++) batch[i] = &p->list[chosen[i]];
        PairMetrics s = pairs_step(m, optimizer, batch, o->batch_size, loss, o->beta, o->lr * (float)decay,
                                   o->grad_clip, o->adam);
        run_record(&run, m, NULL, &s);
        if (run_saves(&run)) save_run(o->out, c->name, options, run.step, m, optimizer, NULL, NULL);
    }
    free(chosen), free(batch);
    snprintf(how, sizeof how, "./rl %s", c->name);
    return run_end(&run, how, o->out);
}

static void print_pair_evaluation(const PairEvaluation* e, const char* path) {
    double width = (1.0 - e->from) / CALIBRATION_BINS;
    printf("\n%s: %d pairs of %d questions\n\n", path, e->pairs, e->questions);
    printf("  ranked right   %6.4f   95%% interval %.4f to %.4f\n\n", e->accuracy, e->low, e->high);
    if (e->from > 0) printf("  Chance of the predicted winner, and how often it won:\n\n");
    else printf("  Chance that an answer is right, and how often it was the chosen one:\n\n");
    printf("  %11s %8s %10s %10s\n", "called", e->from > 0 ? "pairs" : "answers", "predicted", "observed");
    for (int b = 0; b < CALIBRATION_BINS; b++) {
        printf("  %.1f to %.1f  %8d", e->from + b * width, e->from + (b + 1) * width, e->count[b]);
        if (e->count[b]) printf(" %10.4f %10.4f\n", e->predicted[b], e->observed[b]);
        else printf(" %10s %10s\n", "-", "-");
    }
    printf("\n  expected calibration error  %6.4f\n\n", e->error);
}

// How pairs are to be made, when none are. A resumed run makes none either, but it may be called with the
// same words as the first time.
static void refuse_idle_making(const RlOptions* o, const PairCommand* c, const Option* options) {
    int reads = !o->resume && o->pairs && *o->pairs;
    int reads_held_out = !o->resume && (!c->scalar || (o->eval_pairs && *o->eval_pairs));
    refuse_idle(reads && reads_held_out, options,
                "reward num-samples max-new-tokens temperature top-k top-p annotator pairs-per-question",
                "no answers are sampled; the pairs are in files");
    refuse_idle(reads, options, "questions pairs noise", "the pairs to train on are in a file");
    refuse_idle(reads_held_out, options, "eval-questions", "the held-out pairs are in a file");
}

static int command_on_pairs(int argc, char** argv, const PairCommand* c) {
    RlOptions own = pair_defaults(c), *o = &own;
    Option options[RL_OPTIONS] = {{0}};
    begin_command(o, options, NULL, 0, c->options, argc, argv, c->what, " [--data FILE]");
    long step = choose_run(&o->out, c->out, o->resume, o->overwrite, c->name, options);
    find_annotator(o->annotator);
    refuse_idle_making(o, c, options);
    const PairLoss* loss = find_pair_loss(o, c);
    refuse_overwriting(o->out, (const char* const[]){o->model, o->reference}, 2);
    int named = o->reference && *o->reference;       // else DPO compares the policy with its own beginning
    Model m, start = {0}, other = {0};
    if (!o->resume || !c->scalar) start = load_tagged_model(o->model);
    if (o->resume) m = c->scalar ? load_reward_model(o->resume, 0) : load_fitting_model(o->resume);
    else m = c->scalar ? scalar_model_on(&start) : load_tagged_model(o->model);
    if (!c->scalar && named) other = load_tagged_model(o->reference);
    Model* reference = other.weights.memory ? &other : &start;
    if (!c->scalar && memcmp(&reference->config, &m.config, sizeof(Config)))
        fail(2,
             "the reference model %s has other sizes than the policy; DPO compares a model with its own "
             "beginning",
             named ? o->reference : o->model);
    Pairs list[2] = {{0}};
    get_pairs(list, &start, o, c, m.config.context);
    check_data(&o->data_hash, o->pairs);
    for (int i = 0; i < 2 && !c->scalar; i++) if (list[i].count) set_reference(&list[i], reference, loss);
    model_free(&start), model_free(&other);
    Optimizer optimizer = o->resume ? load_optimizer(o->resume, &m.config, step) : optimizer_new(&m.config);
    int status = train_on_pairs(&m, &optimizer, &list[0], o, c, options, step);
    if (!status && list[1].count) {
        PairEvaluation e = evaluate_pairs(&m, &list[1], loss, o->beta);
        print_pair_evaluation(&e, o->eval_pairs);
    }
    if (!status) printf("saved %s\n", o->out);
    pairs_free(&list[0]), pairs_free(&list[1]), optimizer_free(&optimizer), model_free(&m);
    return status;
}

static int command_reward_model(int argc, char** argv) {
    return command_on_pairs(argc, argv, &pair_commands[0]);
}
static int command_dpo(int argc, char** argv) { return command_on_pairs(argc, argv, &pair_commands[1]); }

// ---- ./rl experiment: the three experiments at the end of D3; chapters 3, 8 and 7 do the work

// Experiments 1 and 2: a question and an answer to it as one sequence, the mask as the rollout has it. The
// answer is that of --completion, or else one that the model samples.
static Tokens experiment_text(Model* m, const Question* q, const RlOptions* o) {
    Tokens text = {0};
    if (o->completion) render_conversation(&text, q->question, o->completion);
    else {
        Rollout* r = generate(m, &q->prompt, 1, 1, o->sample, tool_calculator, o->seed + 2, 0);
        for (int t = 0; t < r->prompt + r->length; t++) tokens_add(&text, r->ids[t], r->mask[t]);
        rollouts_free(r);
    }
    if (text.length > m->config.context)
        fail(2, "question and answer have %d tokens; the model's context has room for %d", text.length,
             m->config.context);
    Text raw = {0}, answer = {0};
    decode_tokens(&raw, text.ids + q->prompt.length, text.length - q->prompt.length, 1);
    append_readable(&answer, raw.data);
    print_wrapped(o->completion ? "Given" : "Sampled", answer.data);
    printf("\n");
    text_free(&raw), text_free(&answer);
    return text;
}

// Experiment 3: K answers to each of the questions, rewarded by four rules.
static void experiment_on_groups(Model* m, const Questions* q, const RlOptions* o) {
    enum { REWARDS = 4 };
    static float (*const rules[])(const char*, const char*) = {reward_gsm8k, reward_boxed, reward_partial,
                                                               reward_length};
    static const char* const names[] = {"gsm8k", "boxed", "partial", "length"};
    int K = o->num_samples, groups = min_int(o->eval_examples, q->count);
    float* reward[REWARDS];
    for (int i = 0; i < REWARDS; i++) reward[i] = allocate((size_t)groups * (size_t)K, sizeof(float));
    for (int g = 0; g < groups; g++) {
        Rollout* r = answer_questions(m, q, g, 1, K, o->sample, o->seed + 2);
        for (int k = 0; k < K; k++) {
            Text text = rollout_text(&r[k]);
            for (int i = 0; i < REWARDS; i++) reward[i][g * K + k] = rules[i](text.data, q->list[g].truth);
            text_free(&text);
        }
        rollouts_free(r);
    }
    experiment_3((const float* const*)reward, names, REWARDS, groups, K);
    for (int i = 0; i < REWARDS; i++) free(reward[i]);
}

static int command_experiment(int argc, char** argv) {
    RlOptions o = rl_defaults();
    const char* which = "";
    o.model = "out/run/rl";
    o.data = "data/test.jsonl";
    o.num_samples = 8;
    o.sample.top_k = 0;
    o.eval_examples = 64;
    begin_command(&o, NULL, &which, 1, FOR_EXPERIMENT, argc, argv,
                  "experiment - the three experiments of D3, on any checkpoint:\n"
                  "  1  log pi(y|x) as a sum over tokens, and what a wrong mask prints\n"
                  "  2  the KL penalty by hand: k1, k3, sum or mean, beta from 0.001 to 0.1\n"
                  "  3  eight samples of one question, and how many advantages are 0", " 1|2|3");
    int number = *which - '0';
    if (number < 1 || number > 3 || which[1])
        fail(2, "which experiment? 1, 2 or 3, not '%s'; --help says what they show", which);
    Model m = load_tagged_model(o.model);
    Questions q = load_questions(o.data, m.config.context, o.sample.max_new_tokens, &reward_kinds[0]);
    printf("EXPERIMENT %d (D3, hands-on experiments)\n\nModel     %s\n", number, o.model);
    print_wrapped("Question", q.list[0].question);
    if (number == 3) experiment_on_groups(&m, &q, &o);
    else {
        Tokens text = experiment_text(&m, &q.list[0], &o);
        if (number == 1) experiment_1(&m, &text, q.list[0].prompt.length);
        else experiment_2(&m, &text, q.list[0].prompt.length, !o.completion, o.seed);
        tokens_free(&text);
    }
    questions_free(&q), model_free(&m);
    return 0;
}

// ---- ./rl overlap: which questions of one file also stand in another
//
// Near duplicates share runs of words (n-grams). A question of 30 words has 23 runs of 8 words; one word
// changed in the middle breaks 8 of them and leaves 15: 65%. Unrelated problems rarely share one. So: near
// is a question of which half of all runs of 8 words stand in one and the same question of the other file.
// What has fewer than 8 words is compared as a whole only, and so are the strict kinds: the whole reduced
// question is their only run. A run is kept as a hash of 64 bits. (Two different ones share it with a chance
// of 10^11 pairs / 2^64 = 5e-9, at 10^6 against 10^5 runs.)
enum { NEARLY_SAME = SAME_BUT_NUMBERS + 1, LIKENESSES };   // after the likenesses of chapter 11
enum { GRAM_WORDS = 8 };
static const double NEAR_SHARE = 0.5;

typedef struct { uint64_t hash; int question; } Gram;    // a run, and the question that it stands in

static int compare_grams(const void* a, const void* b) {
    const Gram *x = a, *y = b;
    return x->hash != y->hash ? (x->hash > y->hash) - (x->hash < y->hash) : x->question - y->question;
}

// The runs of `count` questions, ascending, each once per question; to be freed. Returns how many there are.
static int find_grams(Gram** grams, const Problem* list, int count, int likeness) {
    int n = 0, kept = 0, near = likeness == NEARLY_SAME;
    size_t room = 0;
    for (int i = 0; i < count; i++) room += strlen(list[i].question);
    Gram* g = *grams = allocate(room, sizeof(Gram));         // a word has a byte at least
    for (int i = 0; i < count; i++) {
        Text t = {0};
        int words = 0;
        reduce_question(&t, list[i].question, near ? SAME_WORDS : likeness);
        for (const char *p = t.data, *from = p; *p; p += *p == ' ') {
            p += near ? strcspn(p, " ") : t.length;
            if (++words < GRAM_WORDS && near) continue;
            uint64_t hash = 0;
            for (const char* q = from; q < p; q++) hash = (hash ^ (unsigned char)*q) * 0x100000001B3u;
            g[n++] = (Gram){mix_u64(hash), i};                                                // FNV-1a, mixed
            from += strcspn(from, " ") + 1;
        }
        text_free(&t);
    }
    qsort(g, (size_t)n, sizeof *g, compare_grams);
    for (int i = 0; i < n; i++)
        if (i == 0 || compare_grams(&g[i], &g[i - 1])) g[kept++] = g[i];
    return kept;
}

// The strictest likeness of a question of b to one of a (LIKENESSES: none), which one, how many of its runs.
typedef struct { int likeness, twin; double share; } Match;

// Matches the questions of b that have no match yet: each with the question of a that has the most of its
// runs (of several, the first) and at least NEAR_SHARE of them. A question without a word is like none.
static void find_twins(Match* match, const Problems* a, const Problems* b, int likeness) {
    Gram *all, *own;
    int total = find_grams(&all, a->list, a->count, likeness);
    int* shared = allocate((size_t)a->count, sizeof(int));
    for (int i = 0; i < b->count; i++) {
        if (match[i].likeness < LIKENESSES) continue;
        int count = find_grams(&own, &b->list[i], 1, likeness), twin = 0;
        memset(shared, 0, (size_t)a->count * sizeof(int));
        for (int k = 0; k < count; k++) {
            int at = 0;
            for (int end = total, middle; at < end;) {       // where this run stands in a, or would stand
                middle = at + (end - at) / 2;
                if (all[middle].hash < own[k].hash) at = middle + 1;
                else end = middle;
            }
            for (; at < total && all[at].hash == own[k].hash; at++) shared[all[at].question]++;
        }
        for (int j = 1; j < a->count; j++)
            if (shared[j] > shared[twin]) twin = j;
        if (count && shared[twin] >= NEAR_SHARE * count)
            match[i] = (Match){likeness, twin, (double)shared[twin] / count};
        free(own);
    }
    free(all), free(shared);
}

// A match for each question of b, by the likenesses from `strictest` to `loosest`; to be freed.
static Match* match_by(const Problems* a, const Problems* b, int strictest, int loosest) {
    Match* match = allocate((size_t)b->count, sizeof(Match));
    for (int i = 0; i < b->count; i++) match[i] = (Match){LIKENESSES, -1, 0.0};
    for (int likeness = strictest; likeness <= loosest; likeness++) find_twins(match, a, b, likeness);
    return match;
}

static Match* match_questions(const Problems* a, const Problems* b) {
    return match_by(a, b, SAME_WORDS, NEARLY_SAME);
}

enum { OVERLAP_EXAMPLES = 3, OVERLAP_LINES = 4 };   // pairs of each kind, lines of each question

static int command_overlap(int argc, char** argv) {
    static const char* const names[LIKENESSES + 1] = {
        "the same without case, spaces, punctuation", "the same but for names",
        "the same but for names and numbers", "near: share half of all runs of 8 words", "none of these"};
    const char* path[2];
    RlOptions o = rl_defaults();
    int count[LIKENESSES + 1] = {0}, shown[LIKENESSES + 1] = {0};
    if (begin_command(&o, NULL, path, 2, 0, argc, argv,
                      "overlap - which questions of B also stand in A, exactly or nearly\n"
                      "  It does not see: the same in other words or in another language, capitals of\n"
                      "  three bytes (Vietnamese), accents that are characters of their own", " A B") < 2)
        fail(2, "two files are needed: ./rl overlap data/train.jsonl data/test.jsonl");
    Problems a = load_problems(path[0]), b = load_problems(path[1]);
    Match* match = match_questions(&a, &b);
    for (int i = 0; i < b.count; i++) count[match[i].likeness]++;
    printf("A  %s: %d questions\nB  %s: %d questions\n\n", path[0], a.count, path[1], b.count);
    printf("Each question of B, by the strictest likeness that it has with one of A:\n\n");
    for (int i = 0; i <= LIKENESSES; i++)
        printf("  %-44s %6d  %6.2f%%\n", names[i], count[i], 100.0 * count[i] / b.count);
    for (int likeness = SAME_WORDS; likeness < LIKENESSES; likeness++) {
        for (int i = 0; i < b.count && shown[likeness] < OVERLAP_EXAMPLES; i++) {
            if (match[i].likeness != likeness) continue;
            if (!shown[likeness]++) printf("\n%s:\n", names[likeness]);
            printf("\n  question %d of B, question %d of A", i + 1, match[i].twin + 1);
            if (likeness == NEARLY_SAME)
                printf(": %.0f%% of its runs of %d words", 100.0 * match[i].share, GRAM_WORDS);
            printf("\n");
            print_beginning("    B", b.list[i].question, OVERLAP_LINES);
            print_beginning("    A", a.list[match[i].twin].question, OVERLAP_LINES);
        }
    }
    free(match), problems_free(&a), problems_free(&b);
    return 0;
}

// ---- ./rl grade

typedef struct {
    const char *response, *answer;
    char* question;                   // what all responses to one question have in common; "" = none is named
    char* vote;                       // the answer where the reward looks; "" = none
    int line, number, correct;        // line of the file, place in it
} Graded;

typedef struct { Graded* list; int count; Json* records; } Responses;

static void responses_free(Responses* r) {
    for (int i = 0; i < r->count; i++) free(r->list[i].question), free(r->list[i].vote);
    free(r->list), json_free(r->records);
}

// One record. Which question it answers is told by "question" or "problem", else by "id", a text or a number.
static Graded read_response(const Json* j, int number, const char* path) {
    const Json *response = json_get(j, "response"), *id = json_get(j, question_field(j));
    Text question = {0};
    if (!response) response = json_get(j, "prediction");
    if (!response) fail(2, "%s, line %d: neither a field \"response\" nor \"prediction\"", path, j->line);
    if (response->type != JSON_STRING)
        fail(2, "%s, line %d: the field \"%s\" is not a text", path, j->line, response->key);
    if (!id) id = json_get(j, "id");
    if (id && id->type == JSON_NUMBER) text_printf(&question, "%.17g", id->number);
    else if (id && id->type != JSON_STRING)
        fail(2, "%s, line %d: the field \"%s\" is neither a text nor a number", path, j->line, id->key);
    else text_printf(&question, "%s", id ? id->string : "");
    return (Graded){.response = response->string, .answer = record_text(j, "answer", path),
                    .question = question.data, .line = j->line, .number = number};
}

static Responses load_responses(const char* path) {
    Responses r = {.records = load_records(path)};
    for (const Json* j = r.records->child; j; j = j->next) {
        r.list = enlarge(r.list, (size_t)r.count + 1, sizeof(Graded));
        r.list[r.count] = read_response(j, r.count + 1, path);
        r.count++;
    }
    if (!r.count)
        fail(2, "%s has no responses in it: lines like {\"response\": ..., \"answer\": ...}, or an array of "
                "them, were expected", path);
    return r;
}

static int compare_graded(const void* a, const void* b) {   // the responses to one question side by side
    const Graded *x = a, *y = b;
    int order = strcmp(x->question, y->question);
    return order ? order : x->number - y->number;
}

// The means over the questions, as far as every question has k responses. Sorts the responses; one without a
// question is on its own.
static Evaluation evaluate_responses(int* longest, Responses* r) {
    size_t n = (size_t)r->count;
    const char** votes = allocate(n, sizeof(char*));
    int *correct = allocate(n, sizeof(int)), *start = allocate(n + 1, sizeof(int)), questions = 0;
    int shortest = INT_MAX;
    *longest = 0;
    qsort(r->list, n, sizeof(Graded), compare_graded);
    for (int i = 0; i < r->count; i++) {
        const Graded* g = &r->list[i];
        votes[i] = g->vote;
        correct[i] = g->correct;
        if (!i || !*g->question || strcmp(g->question, g[-1].question)) start[questions++] = i;
    }
    start[questions] = r->count;
    for (int i = 0; i < questions; i++) {
        shortest = min_int(shortest, start[i + 1] - start[i]);
        *longest = max_int(*longest, start[i + 1] - start[i]);
    }
    Evaluation e = evaluation_new(shortest);
    for (int i = 0; i < questions; i++)
        evaluation_add(&e, votes + start[i], correct + start[i], start[i + 1] - start[i]);
    evaluation_finish(&e);
    free(votes), free(correct), free(start);
    return e;
}

static void print_grades(Responses* r, const RewardKind* kind) {
    enum { LISTED = 12 };
    char answer[MAX_ANSWER + 1], truth[MAX_ANSWER + 1];
    int n = r->count, right = 0, missing = 0, outside = 0, unearned = 0, longest;
    Text not_right = {0};
    for (Graded* g = r->list; g < r->list + n; g++) {
        Grade grade = grade_answer(g->response, g->answer, kind);
        g->vote = copy_text(grade.answer);
        g->correct = grade.correct;
        if (!grade.correct && g->number - 1 - right < LISTED) text_printf(&not_right, " %d", g->number);
        right += grade.correct;
        missing += !grade.found;
        outside += !grade.found && extract_lenient(g->response, answer, sizeof answer) &&
                   extract_truth(truth, sizeof truth, g->answer) && answers_equal(answer, truth);
        unearned += !is_earnable(g->answer, kind);
    }
    int wrong = n - right - missing;
    Evaluation e = evaluate_responses(&longest, r);
    printf("%d responses to %d questions, reward %s\n\n", n, e.questions, kind->name);
    printf("  right      %6d   %6.4f\n", right, (double)right / n);
    printf("  wrong      %6d   %6.4f   in the format, but not the answer\n", wrong, (double)wrong / n);
    printf("  no format  %6d   %6.4f   nothing where the reward looks\n", missing, (double)missing / n);
    if (outside) printf("             %6d            of these, right when read leniently\n", outside);
    if (unearned)
        printf("\nOf %d records the right answer is empty, too long, or nothing that the reward\n"
               "pays for as it stands.\n", unearned);
    printf("\n");
    print_evaluation(&e);
    if (longest > e.samples)
        printf("\n%d to %d responses to a question; each question counts the same.\n", e.samples, longest);
    if (right < n)
        printf("\nNot right: record%s%s; --explain N shows why.\n", not_right.data,
               n - right > LISTED ? " and more" : "");
    text_free(&not_right), evaluation_free(&e);
}

// An answer as the appendix sees it: its tokens in one spelling and, if it has one, its value.
static void print_understood(const char* label, const char* answer) {
    Comparison c;
    Text normal = {0};
    Value value;
    print_wrapped(label, answer);
    if (strlen(answer) > MAX_ANSWER) {
        print_wrapped("Normal", "(too long)");
        return;
    }
    c.count = c.unmatched = c.names = c.imaginary = 0;
    Slice s = read_answer(&c, answer);
    text_append(&normal, "", 0);
    for (const Token* k = s.p; k < s.end; k++) {
        int joined = k == s.p || k[-1].kind < F_SIN || k->kind < F_SIN || k->slash;
        joined |= k[-1].kind == N_NUMBER && k->kind != N_NUMBER && k->kind != N_UNIT;  // 2x, 2 cm
        text_printf(&normal, "%s%s%.*s", joined ? "" : " ", k->slash ? "\\" : "", k->length, k->text);
    }
    print_wrapped("Normal", normal.data);
    text_free(&normal);
    if (c.unmatched) return;
    find_names(&c);
    if (evaluate(&value, s, SUM, 0, 1) != 1) return;
    printf("Value     %.12g", creal(value.z));
    if (cimag(value.z) != 0.0) printf(" %+.12g i", cimag(value.z));
    if (value.den > 1) printf(" = %lld/%lld exactly", (long long)value.num, (long long)value.den);
    printf("%s\n", c.names ? " at evaluation point 0" : "");
}

static void print_explanation(const Graded* g, const RewardKind* kind, const char* path) {
    char truth[MAX_ANSWER + 1], lenient[MAX_ANSWER + 1];
    const char* answer = extract_truth(truth, sizeof truth, g->answer) ? truth : g->answer;
    Grade grade = grade_answer(g->response, g->answer, kind);
    int outside = !grade.found && extract_lenient(g->response, lenient, sizeof lenient);
    printf("Record %d of %s, line %d, reward %s\n\n", g->number, path, g->line, kind->name);
    print_wrapped("Response", g->response);
    printf("\n");
    if (grade.found) print_understood("Found", grade.answer);
    else print_wrapped("Found", "(nothing where the reward looks)");
    printf("\n");
    print_understood("Answer", answer);
    printf("\n");
    if (outside) print_wrapped("Leniently", lenient);
    const char* given = outside ? lenient : grade.answer;
    if (*given)
        printf("Compared  %s%s\n", answers_equal(given, answer) ? "equal" : "different",
               outside ? ", but not where the reward looks" : "");
    printf("Reward    %g\n", (double)grade.reward);
}

static int command_grade(int argc, char** argv) {
    RlOptions o = rl_defaults();
    const char* path;
    o.reward = "boxed";
    if (!begin_command(&o, NULL, &path, 1, FOR_GRADE, argc, argv,
                       "grade - grades records {\"response\" or \"prediction\", \"answer\"}; those with the\n"
                       "same \"question\" (or \"id\") are responses to one question", " FILE"))
        fail(2, "a file is missing: ./rl grade FILE, with lines {\"response\": ..., \"answer\": ...}");
    const RewardKind* kind = find_reward(o.reward);
    Responses r = load_responses(path);
    if (o.explain > r.count) fail(2, "--explain %d: %s has %d records", o.explain, path, r.count);
    if (o.explain) print_explanation(&r.list[o.explain - 1], kind, path);
    else print_grades(&r, kind);
    responses_free(&r);
    return 0;
}

// ---- ./rl plot: what a run wrote down while it trained

// One column of a table of comma-separated values, found by its name in the first line; an empty field is
// NaN. A directory means its metrics.csv. *rows (out): how many there are. To be freed. Without such a
// column: NULL and no rows, or a complaint if it is `needed`.
static double* read_column(int* rows, const char* file, const char* name, int needed) {
    char path[PATH_SIZE];
    size_t length = strlen(name);
    int column = 0;
    join_path(path, file, "metrics.csv");
    if (!file_exists(path)) snprintf(path, PATH_SIZE, "%s", file);
    Text text = read_file(path);
    const char* s = text.data;
    for (; s && (strncmp(s, name, length) || !strchr(",\r\n", s[length])); column++) {
        s += strcspn(s, ",\n");
        s = *s == ',' ? s + 1 : NULL;
    }
    if (!s && needed)
        fail(2, "%s has no column '%s'; its columns are %.*s", path, name, (int)strcspn(text.data, "\r\n"),
             text.data);
    double* values = s ? allocate(text.length, sizeof(double)) : NULL;
    *rows = 0;
    while (s && *(s += strcspn(s, "\n")) && *++s) {
        for (int i = 0; i < column; i++) s += strcspn(s, ",\n") + (s[strcspn(s, ",\n")] == ',');
        values[(*rows)++] = strchr(",\r\n", *s) ? NAN : strtod(s, NULL);   // strtod would read the next line
    }
    text_free(&text);
    return values;
}

// The mean of the numbers among the `window` values of x (n) around x[i]; NaN where x[i] is none.
static double smoothed(const double* x, int n, int i, int window) {
    double sum = 0.0;
    int count = 0;
    for (int j = max_int(0, i - (window - 1) / 2); j < n && j <= i + window / 2; j++) {
        sum += isnan(x[j]) ? 0.0 : x[j];
        count += !isnan(x[j]);
    }
    return i < n && !isnan(x[i]) ? sum / count : NAN;
}

static const char* last_part(const char* path) {
    const char* slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static int command_plot(int argc, char** argv) {
    const char* words[2 * PLOT_SERIES];
    double *x[PLOT_SERIES], *y[PLOT_SERIES];
    char names[PLOT_SERIES][64];
    int rows[PLOT_SERIES], files = 1;
    RlOptions o = rl_defaults();
    o.smooth = 1;
    int count = begin_command(&o, NULL, words, 2 * PLOT_SERIES, FOR_PLOT, argc, argv,
                              "plot - columns of a table, or of a run's metrics.csv, as curves",
                              " FILE|DIR... COLUMN...");
    if (!count) fail(2, "a file is missing; ./rl plot out/run/rl reward plots a column of its metrics.csv");
    while (files < count && file_exists(words[files])) files++;
    int columns = count - files;
    if (!columns) read_column(rows, words[0], "(none given)", 1);            // says which there are
    Plot p = {.title = words[files > 1 ? files : 0], .x_name = "update", .series = files * columns};
    if (p.series > PLOT_SERIES) fail(2, "a plot has room for %d curves, not for %d", PLOT_SERIES, p.series);
    for (int s = 0; s < p.series; s++) {
        const char *file = words[s / columns], *column = words[files + s % columns];
        x[s] = read_column(&rows[s], file, column, 1);
        p.points = max_int(p.points, rows[s]);
        if (files == 1) snprintf(names[s], sizeof names[s], "%s", column);
        else snprintf(names[s], sizeof names[s], columns > 1 ? "%s %s" : "%s", last_part(file), column);
    }
    for (int s = 0; s < p.series; s++) {
        p.y[s] = y[s] = allocate((size_t)p.points, sizeof(double));
        p.names[s] = names[s];
        for (int i = 0; i < p.points; i++) y[s][i] = smoothed(x[s], rows[s], i, o.smooth);
    }
    p.scaled = columns > 1 && !o.together;
    print_plot(&p);
    for (int s = 0; s < p.series; s++) free(x[s]), free(y[s]);
    return 0;
}

// ---- ./rl compare: finished runs in one table

static const double GOAL = 0.90;          // of held-out pass@1

// The row of a run. From its log: the seconds of its updates, and how many updates and seconds of them it
// took to the goal. A dash: not measured, not logged, or not reached.
static void print_run(const char* folder, const Evaluation* e, int has_kl) {
    static const int width[] = {6, 7, 6, 5, 6}, digits[] = {2, 1, 0, 0, 1};
    double x[] = {has_kl ? e->kl : NAN, e->length, NAN, NAN, NAN}, seconds = 0.0;
    int k = e->samples - 1, rows = 0, looks = 0;
    char log[PATH_SIZE];
    join_path(log, folder, "metrics.csv");
    double* each = file_exists(log) ? read_column(&rows, log, "seconds", 0) : NULL;
    double* test = file_exists(log) ? read_column(&looks, log, "held_out", 0) : NULL;
    for (int i = 0; i < rows; i++) {
        x[2] = seconds += each[i];
        if (i >= looks || !(test[i] >= GOAL) || x[3] > 0.0) continue;
        x[3] = i + 1;
        x[4] = seconds;
    }
    printf("%-12.12s %6.3f %5.3f-%5.3f %6.3f %5.3f-%5.3f", last_part(folder), e->pass[0], e->low[0],
           e->high[0], e->pass[k], e->low[k], e->high[k]);
    for (int i = 0; i < 5; i++)
        if (isnan(x[i])) printf("%*s", width[i], "-");
        else printf("%*.*f", width[i], digits[i], x[i]);
    printf("\n");
    fflush(stdout);
    free(each), free(test);
}

static int command_compare(int argc, char** argv) {
    enum { RUNS = 64 };
    RlOptions o = rl_defaults();
    const char* runs[RUNS];
    char path[PATH_SIZE];
    int questions = 0;
    o.data = "data/test.jsonl";
    o.eval_examples = 256;
    int count = begin_command(&o, NULL, runs, RUNS, FOR_COMPARE, argc, argv,
                              "compare - finished runs in one table", " DIR...");
    if (!count) fail(2, "the runs are missing; ./rl compare out/run/sft out/run/rl compares two");
    for (int i = 0; i < count; i++) tagged_path(path, runs[i]);        // a wrong name is to cost no minutes
    const RewardKind* kind = find_reward(o.reward);
    Model reference = o.reference ? load_tagged_model(o.reference) : (Model){0};
    printf("%69s%11s\n%-12s %6s %11s %6.6s %11s%6s%7s%6s%5s%6s\n", "", "to 0.90", "", "pass@1", "95% interv.",
           "pass@k", "95% interv.", "KL", "length", "s", "upd.", "s");
    for (int i = 0; i < count; i++) {
        tagged_path(path, runs[i]);
        Model m = load_fitting_model(path);
        Questions q = load_questions(o.data, m.config.context, o.sample.max_new_tokens, kind);
        Evaluation e = evaluate_model(&m, &q, o.eval_examples, o.num_samples, o.sample, kind,
                                      o.reference ? &reference : NULL, o.seed + 2);
        print_run(path, &e, o.reference != NULL);
        questions = e.questions;
        evaluation_free(&e), questions_free(&q), model_free(&m);
    }
    printf("\nk = %d answers to each of %d questions. KL to --reference, in nats per answer;\n"
           "length in tokens; s: the seconds of all updates. To %.2f: the updates and their\n"
           "seconds until held-out pass@1 was first that high, where the run looked.\n",
           o.num_samples, questions, GOAL);
    if (o.reference) model_free(&reference);
    return 0;
}

// ---- ./rl lesson --zh: titles and Take aways in Chinese

static const char CHINESE[] = "docs/lessons.zh.txt";

// What the file says of a lesson in its lines that begin with `key`.
static void print_chinese(const char* name, const char* key, int indent) {
    Text text = read_file(CHINESE);
    size_t n = strlen(name), k = strlen(key);
    int here = 0;
    for (const char* s = text.data; *s; s += strcspn(s, "\n"), s += *s == '\n') {
        int length = (int)strcspn(s, "\n");
        if (!strncmp(s, "lesson ", 7)) here = !strncmp(s + 7, name, n) && s[7 + n] == ' ';
        else if (here && !strncmp(s, key, k)) printf("%*s%.*s\n", indent, "", length - (int)k, s + k);
    }
    text_free(&text);
}

// The lessons of the book, with --zh between the two.
static int command_lesson_zh(int argc, char** argv) {
    int words = 0, found = 0;
    for (int i = 0; i < argc; i++) if (strcmp(argv[i], "--zh")) argv[words++] = argv[i];
    int zh = argc - words, all = words && !strcmp(argv[0], "all");
    int list = !words || !strcmp(argv[0], "--help") || !strcmp(argv[0], "-h");
    const char* wanted = list ? "" : argv[0];
    if (zh && !file_exists(CHINESE))
        fail(2, "--zh reads %s, which is not here; start ./rl in its own directory", CHINESE);
    for (int i = 0; zh && i < (all ? LESSONS : ENTRIES); i++) {
        char name[8];
        snprintf(name, sizeof name, "%s", lessons[i].name);
        if (list) printf("  %5s  %s\n", name, lessons[i].title);
        else if (!all && strcmp(wanted, name)) continue;
        if (found++ && !list) printf("\n\n");
        print_chinese(name, "title ", list ? 9 : 0);
        if (list) continue;
        argv[0] = name;
        command_lesson(words, argv);
        print_chinese(name, "take away ", 0);
    }
    if (!found) command_lesson(words, argv);
    if (list) printf("%s--zh adds titles and Take aways in Chinese: ./rl lesson 7 --zh\n", zh ? "\n" : "");
    return 0;
}

// ---- the table, and main

static const Command tools[] = {
    {"algos", "the methods of `train`, and what makes them different", command_algos},
    {"sample", "answers to your own question", command_sample},
    {"thermostat", "chapter 2: a thermostat that learns", command_thermostat},
    {"cartpole", "chapter 2: a pole that learns to stand", command_cartpole},
    {"eval", "pass@k and majority votes on held-out questions; before/after", command_eval},
    {"pairs", "which of two answers is better, as a file for the next two", command_pairs},
    {"reward-model", "a network that learns from pairs which answers are better", command_reward_model},
    {"dpo", "a policy that learns from pairs", command_dpo},
    {"experiment", "the three experiments of D3, on any checkpoint", command_experiment},
    {"compare", "finished runs in one table", command_compare},
    {"plot", "columns of a run's metrics.csv, as curves", command_plot},
    {"grade", "grades a file of anybody's answers, or explains one grade", command_grade},
    {"overlap", "which questions of one file also stand in another", command_overlap},
    {"lesson", NULL, command_lesson_zh},                   // in the list of the book's own commands
};

#ifndef TOOLS_NO_MAIN
int main(int argc, char** argv) { return rl_main(argc, argv, tools, (int)(sizeof tools / sizeof *tools)); }
#endif
