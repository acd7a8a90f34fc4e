// chapter_11.c - evaluation: pass@k, an interval; more in evaluation.c, overlap in grade.c.

static void chapter_11_pass_at_k(void) {
    // 1 - C(13,4)/C(16,4) = 1 - 715/1820 = 0.607142857; of D1's group the mean reward is pass@1; 1/200 * 100
    static const struct { int n, correct, k; double expected; } cases[] = {
        {16, 3, 4, 1.0 - 715.0 / 1820.0}, {16, 3, 1, 0.1875}, {16, 3, 16, 1}, {16, 0, 8, 0}, {16, 16, 1, 1},
        {200, 1, 100, 0.5}, {10, 9, 2, 1}, {0, 0, 1, 0}, {4, 2, 0, 0}, {4, 2, 9, 1}, {4, 9, 1, 1},
        {4, -1, 1, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double found = pass_at_k(cases[i].n, cases[i].correct, cases[i].k);
        CHECK_LIST(&found, 1e-13, cases[i].expected);
    }
}

static void chapter_11_majority_vote(void) { // three ways to write 1/2 against two 38; "" abstains
    CHECK(majority_vote((const char*[]){"38", "0.5", "38", "1/2", "\\frac{1}{2}"}, 5) == 1);
    CHECK(majority_vote((const char*[]){"", "7", ""}, 3) == 1);
    CHECK(majority_vote((const char*[]){"", ""}, 2) == -1);
}

// The first and the last capital of each row of an alphabet, and what stands before and behind it.
static void chapter_11_small_letters(void) {
    static const int rows[][3] = {{'A', 'Z', 32}, {0xC0, 0xDE, 32}, {0x391, 0x3AB, 32}, {0x410, 0x42F, 32},
                                  {0x400, 0x40F, 80}, {0x388, 0x38A, 37}};
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 2; k++) CHECK(small_letter(rows[i][k]) == rows[i][k] + rows[i][2]);
    CHECK(small_letter(0x17D) == 0x17E && small_letter(0x17E) == 0x17E && small_letter(0x148) == 0x148);
    CHECK(small_letter(0x100) == 0x101 && small_letter(0x460) == 0x461 && small_letter(0x52E) == 0x52F);
    CHECK(small_letter(0x386) == 0x3AC && small_letter(0x38C) == 0x3CC);      // alpha, omicron with accents
    CHECK(small_letter('@') == '@' && small_letter('[') == '[' && small_letter(0xD7) == 0xD7);
    CHECK(lower_case('A') == 'a' && lower_case('Z') == 'z');
    CHECK(lower_case('@') == '@' && lower_case('[') == '[');
}

static void chapter_11_intervals(void) {
    // 3 of 10 questions, one sample each: variance p(1-p) n/(n-1), flips = n - 1 = 9. Wilson for 0.3 of 9:
    // (0.3 + 3.8416/18 +- 1.96 sqrt(0.21/9 + 3.8416/324)) / (1 + 3.8416/9) = (0.51342 +- 0.36761) / 1.42684
    double low, high;
    rate_interval(&low, &high, 0.3, 0.21 * 10 / 9, 10);
    CHECK_NEAR(low, 0.10219, 1e-4);
    CHECK_NEAR(high, 0.61747, 1e-4);
}

static void test_chapter_11(void) {
    RUN_ALL(TEST(chapter_11_pass_at_k), TEST(chapter_11_majority_vote), TEST(chapter_11_small_letters),
            TEST(chapter_11_intervals));
}
