/* tools.c - the commands of ./rl around the book: they teach nothing, and training does not need them.
 *
 * make builds ./rl from this file, which includes the book. (`cc rl.c -lm` gives a program without them.)
 */
#define RL_NO_MAIN
#include "../rl.c"

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
                      "overlap - which questions of B also stand in A, exactly or nearly", " A B") < 2)
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

// ---- the table, and main

static const Command tools[] = {
    {"overlap", "which questions of one file also stand in another", command_overlap},
};

int main(int argc, char** argv) { return rl_main(argc, argv, tools, (int)(sizeof tools / sizeof *tools)); }
