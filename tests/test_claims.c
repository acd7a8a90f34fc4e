// Worksheets for the claims ledger: the verdict rule by hand, every verdict as it must come out, and the two
// ways in which the ledger is written. The numbers behind the verdicts are tested with their chapters.
#include "chapters.h"

static void test_decide(void) {
    CHECK(decide(1, 1) == HOLDS);
    CHECK(decide(1, 0) == HOLDS);
    CHECK(decide(0, 1) == HOLDS_WITH_CONDITION);
    CHECK(decide(0, 0) == DOES_NOT_HOLD);
}

static void test_compare_printed(void) {
    CHECK(compare_printed(0.1875, 0.1875, 4) == HOLDS);
    CHECK(compare_printed(0.64, 0.6, 1) == HOLDS);                  // rounds to 0.6
    CHECK(compare_printed(0.55, 0.6, 1) == HOLDS);                  // half a unit below: rounds up
    CHECK(compare_printed(0.657, 0.6, 1) == HOLDS_WITH_CONDITION);  // rounds to 0.7, cut it is 0.6
    CHECK(compare_printed(0.71, 0.6, 1) == DOES_NOT_HOLD);
    CHECK(compare_printed(0.54, 0.6, 1) == DOES_NOT_HOLD);
    CHECK(compare_printed(83.0 + 1e-13, 83.0, 0) == HOLDS);         // the last place does not count
    CHECK(compare_printed(84.0, 83.0, 0) == DOES_NOT_HOLD);
    CHECK(compare_printed(NAN, 83.0, 0) == DOES_NOT_HOLD);
}

static const struct { ClaimCheck check; Verdict verdict; } expected[] = {
    {claim_start_model, HOLDS},
    {claim_temperature, HOLDS},
    {claim_silent_group, HOLDS},
    {claim_last_hash, HOLDS_WITH_CONDITION},          // one mark only: nanochat reads the first
    {claim_same_number, HOLDS},
    {claim_lucky_guess, HOLDS},
    {claim_finer_reward, HOLDS_WITH_CONDITION},       // if it still aims at the right answer
    {claim_mean, HOLDS},
    {claim_signs, HOLDS},
    {claim_right_up, HOLDS_WITH_CONDITION},           // taken together, not each one
    {claim_on_policy, HOLDS_WITH_CONDITION},          // temperature 1, no top-k
    {claim_no_clip, HOLDS},
    {claim_equivalent_loss, HOLDS_WITH_CONDITION},    // within one question
    {claim_mask, HOLDS},
    {claim_pass_meaning, HOLDS},
    {claim_pass_rises, HOLDS},
    {claim_pass_not_accuracy, HOLDS},
    {claim_equation, HOLDS},
    {claim_price, HOLDS},
    {claim_comparison, HOLDS},
    {claim_pairs, HOLDS},
    {claim_four, HOLDS},
    {claim_r3, HOLDS},
    {claim_format_inside, HOLDS},
    {claim_split, HOLDS},
    {claim_near_miss, HOLDS},
    {claim_no_dynamics, HOLDS},
    {claim_discount_converges, HOLDS},
    {claim_relative, HOLDS},
    {claim_thermostat, HOLDS},
    {claim_product, HOLDS},
    {claim_underflow, HOLDS},
    {claim_shift, HOLDS},
    {claim_size, HOLDS},
    {claim_bandit, HOLDS},
    {claim_point_six_percent, HOLDS_WITH_CONDITION},  // cut, not rounded
    {claim_discount_bias, HOLDS},
    {claim_grpo_std, HOLDS_WITH_CONDITION},           // with the sample standard deviation
    {claim_rloo, HOLDS},
    {claim_value_function, HOLDS},
    {claim_cartpole, DOES_NOT_HOLD},                  // the group mean learns it
    {claim_hole, HOLDS},
    {claim_kl_properties, HOLDS},
    {claim_k1, HOLDS},
    {claim_printed_k1, DOES_NOT_HOLD},                // the sign
    {claim_printed_k3, DOES_NOT_HOLD},                // the sign
    {claim_k3_variance, HOLDS_WITH_CONDITION},        // moderate drift
    {claim_k3_positive, HOLDS},
    {claim_kl_in_reward, HOLDS_WITH_CONDITION},       // with k1
    {claim_sum_or_mean, DOES_NOT_HOLD},               // n times smaller for n tokens
    {claim_no_negative, HOLDS},
    {claim_same_form, HOLDS},
    {claim_dpo_optimum, HOLDS},
    {claim_three_routes, HOLDS_WITH_CONDITION},       // a reward of two values
    {claim_cheating, HOLDS_WITH_CONDITION},           // as hard to cheat as the verifier is correct
    {claim_log_linear, HOLDS_WITH_CONDITION},         // over a wide mix of difficulties
    {claim_two_orders, HOLDS},
    {claim_prompt_in_sum, HOLDS},
    {claim_why_ratio, HOLDS_WITH_CONDITION},          // as an observation, not as a reason
    {claim_small_drift, HOLDS_WITH_CONDITION},        // when the text was written by pi_ref
    {claim_large_drift, DOES_NOT_HOLD},               // the other way round
    {claim_six_of_eight, DOES_NOT_HOLD},              // -0.54 and +1.62
};
enum { EXPECTED = sizeof expected / sizeof *expected };

static int has_nan(const char* text) {                              // as a number, not in "nanochat"
    for (const char* p = strstr(text, "nan"); p; p = strstr(p + 1, "nan"))
        if ((p == text || !is_letter(p[-1])) && !is_letter(p[3])) return 1;
    return 0;
}

static void test_verdicts(void) {
    CHECK((int)EXPECTED == (int)CLAIMS);
    for (int i = 0; i < CLAIMS; i++) {
        Text found = {0};
        Verdict verdict = claims[i].check(&found);
        int known = 0;
        for (int j = 0; j < EXPECTED; j++) {
            if (expected[j].check != claims[i].check) continue;
            known++;
            if (verdict != expected[j].verdict)
                printf("  \"%s\": %s, expected: %s\n", claims[i].statement, verdict_names[verdict],
                       verdict_names[expected[j].verdict]);
            CHECK(verdict == expected[j].verdict);
        }
        CHECK(known == 1);                                          // listed here once
        CHECK(found.length > 0 && !has_nan(found.data));      // says what it found
        text_free(&found);
    }
}

static void test_ledger(void) {
    int documents[4] = {0};
    CHECK(CLAIMS >= 30);
    for (int i = 0; i < CLAIMS; i++) {
        CHECK(claims[i].document >= 1 && claims[i].document <= 3);
        documents[claims[i].document]++;
        CHECK(i == 0 || claims[i].document >= claims[i - 1].document);   // in the order of the documents
        for (int j = 0; j < i; j++) CHECK(strcmp(claims[i].statement, claims[j].statement) != 0);
    }
    for (int d = 1; d <= 3; d++) CHECK(documents[d] > 0);
}

static int count_occurrences(const char* text, const char* part) {
    int count = 0;
    for (const char* p = strstr(text, part); p; p = strstr(p + 1, part)) count++;
    return count;
}

static void test_markdown(void) {
    Text out = {0};
    write_claims(&out, 1);
    for (int i = 0; i < CLAIMS; i++) {
        Text cell = {0};
        text_append(&cell, "| ", 2);
        append_markdown(&cell, claims[i].statement);
        text_append(&cell, " |", 2);
        CHECK(count_occurrences(out.data, cell.data) == 1);
        text_free(&cell);
    }
    CHECK(count_occurrences(out.data, "\n| ") == CLAIMS + 1);       // the rows and the head of the table
    // Every row has five cells: six bars that no backslash takes away.
    for (const char* line = strstr(out.data, "\n| "); line; line = strstr(line + 1, "\n| ")) {
        int bars = 0;
        for (const char* p = line + 1; *p && *p != '\n'; p++) bars += *p == '|' && p[-1] != '\\';
        CHECK(bars == 6);
    }
    text_free(&out);
}

// Nothing is wider than a terminal, and the closing line counts what stands above it.
static void test_terminal(void) {
    Text out = {0};
    char closing[128];
    int count[VERDICTS];
    write_claims(&out, 0);
    for (const char *line = out.data, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        CHECK(end != NULL);
        if (!end) break;
        CHECK(end - line <= 80);
        CHECK(end == line || end[-1] != ' ');
    }
    for (int v = 0; v < VERDICTS; v++) {
        char tail[64];
        snprintf(tail, sizeof tail, "  %s\n", verdict_names[v]);
        count[v] = count_occurrences(out.data, tail);
    }
    CHECK(count[0] + count[1] + count[2] == CLAIMS);
    snprintf(closing, sizeof closing, "\n%d statements: %d hold, %d hold with a condition, "
             "%d do not hold as printed.\n", CLAIMS, count[0], count[1], count[2]);
    CHECK(count_occurrences(out.data, closing) == 1);
    text_free(&out);
}

static void test_wrapping(void) {
    Text out = {0};
    append_wrapped(&out, "says", "one two three", 7);               // "one two" has 7 characters
    CHECK_TEXT(out.data, "    says     one two\n             three\n");
    text_free(&out);
    append_wrapped(&out, "", "abcdef", 4);                          // no space to break at
    CHECK_TEXT(out.data, "             abcd\n             ef\n");
    text_free(&out);
}

int main(void) {
    RUN(test_decide);
    RUN(test_compare_printed);
    RUN(test_verdicts);
    RUN(test_ledger);
    RUN(test_markdown);
    RUN(test_terminal);
    RUN(test_wrapping);
    return check_failed != 0;
}
