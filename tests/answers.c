/* Worksheet tests of the verifier and the calculator: each rule with what it must accept, and beside it the
 * nearest thing that it must refuse. A rule is only tested by the pair. */

static void check_pair(const char* a, const char* b, int expected, int line) {
    int forward = answers_equal(a, b), backward = answers_equal(b, a);
    if (forward == expected && backward == expected) return;
    check_broken++;
    printf("  %s:%d: \"%s\" and \"%s\" compare as %d, and %d the other way round; expected %d\n", __FILE__,
           line, a, b, forward, backward, expected);
}
#define EQUAL(a, b) check_pair(a, b, 1, __LINE__)
#define DIFFERENT(a, b) check_pair(a, b, 0, __LINE__)

/* ---- extraction ---- */

typedef int Extract(const char* text, char* out, int cap);

static void check_extract(Extract* extract, const char* text, int found, const char* answer) {
    char out[64] = "untouched";
    CHECK(extract(text, out, sizeof out) == found);
    CHECK_TEXT(out, answer);
}

static void test_extract_boxed(void) {
    check_extract(extract_boxed, "\\boxed{83}", 1, "83");
    check_extract(extract_boxed, "so \\boxed {  83 } .", 1, "83");
    check_extract(extract_boxed, "\\boxed{1} then \\boxed{2}", 1, "2");                       // the last
    check_extract(extract_boxed, "\\boxed{\\frac{1}{\\sqrt{2}}} end}", 1, "\\frac{1}{\\sqrt{2}}");  // nested
    check_extract(extract_boxed, "\\boxed{\\left\\{1,2\\right.}", 1,
                  "\\left\\{1,2\\right.");  // \{ groups nothing
    check_extract(extract_boxed, "\\boxed{a\\\\}", 1, "a\\\\");                                // \\ then }
    check_extract(extract_boxed, "\\boxed{1} and \\boxed{2", 1, "1");                          // cut off
    check_extract(extract_boxed, "\\boxed{x \\boxed{2} y", 1, "2");
    check_extract(extract_boxed, "\\boxed{\\boxed{7}}", 1, "7");
    check_extract(extract_boxed, "\\boxed{}", 1, "");
    check_extract(extract_boxed, "\\boxed 83", 0, "");
    check_extract(extract_boxed, "the answer is 83", 0, "");
    check_extract(extract_boxed, "", 0, "");
    char out[4] = "abc";
    CHECK(extract_boxed("\\boxed{1234}", out, sizeof out) == 0);   // 4 characters and the end need 5 bytes
    CHECK_TEXT(out, "");
    CHECK(extract_boxed("\\boxed{123}", out, sizeof out) == 1);
    CHECK_TEXT(out, "123");
}

static void test_extract_hash_answer(void) {
    check_extract(extract_hash_answer, "#### 42", 1, "42");
    check_extract(extract_hash_answer, "####42.", 1, "42");
    check_extract(extract_hash_answer, "#### 42.00", 1, "42.00");
    check_extract(extract_hash_answer, "#### $1,080.50 in all", 1, "1080.50");
    check_extract(extract_hash_answer, "#### \\$18", 1, "18");
    check_extract(extract_hash_answer, "#### **42** apples", 1, "42");
    check_extract(extract_hash_answer, "#### -5", 1, "-5");
    check_extract(extract_hash_answer, "#### -$5", 1, "-5");
    check_extract(extract_hash_answer, "#### $-5", 1, "-5");
    check_extract(extract_hash_answer, "#### \xe2\x88\x92" "5", 1, "-5");               // Unicode minus
    check_extract(extract_hash_answer, "#### +7", 1, "7");
    check_extract(extract_hash_answer, "#### .5", 1, ".5");
    check_extract(extract_hash_answer, "#### 3/4 cup", 1, "3/4");
    check_extract(extract_hash_answer, "#### 1,234,567", 1, "1234567");
    check_extract(extract_hash_answer, "#### 42, because 6*7", 1, "42");
    check_extract(extract_hash_answer, "#### 41 no #### 42", 1, "42");                         // the last
    check_extract(extract_hash_answer, "#### 42\n#### so", 0, "");                       // the last has none
    check_extract(extract_hash_answer, "####\n42", 0, "");                        // not on its line
    check_extract(extract_hash_answer, "#### 1,00", 0, "");                                    // no thousands
    check_extract(extract_hash_answer, "#### 1234,567", 0, "");
    check_extract(extract_hash_answer, "#### 1,0000", 0, "");
    check_extract(extract_hash_answer, "#### forty-two", 0, "");
    check_extract(extract_hash_answer, "### 42", 0, "");
    check_extract(extract_hash_answer, "42", 0, "");
    char out[3];
    CHECK(extract_hash_answer("#### 42", out, sizeof out) == 1);
    CHECK(extract_hash_answer("#### 421", out, sizeof out) == 0);
    CHECK_TEXT(out, "");
}

static void test_extract_lenient(void) {
    check_extract(extract_lenient, "x \\boxed{5} y 6", 1, "5");          // a box wins
    check_extract(extract_lenient, "The final answer is 83.", 2, "83");  // else the last number
    check_extract(extract_lenient, "from -3 to -4.5 degrees", 2, "-4.5");
    check_extract(extract_lenient, "so .5 of it", 2, ".5");
    check_extract(extract_lenient, "7-4", 2, "4");                       // this minus is an operator
    check_extract(extract_lenient, "that is 1,200 of 14/3", 2, "14/3");
    check_extract(extract_lenient, "  Evelyn ", 3, "Evelyn");            // else the text
    check_extract(extract_lenient, "  ", 0, "");
}

/* ---- rewards ---- */

// D2 section 4: the four rollouts of "half of 3x-9 equals x+37", whose answer is 83: (3*83-9)/2 = 240/2 = 120
// = 83+37.
static void test_rewards_of_the_four_rollouts(void) {
    CHECK(reward_boxed("\\boxed{83}", "83") == 1);
    CHECK(reward_boxed("The correct answer is \\boxed{83}", "83") == 1);
    CHECK(reward_boxed("The final answer is 83", "83") == 0);      // right, but not in the box
    CHECK(reward_boxed("We get \\boxed{38}", "83") == 0);
    CHECK(reward_boxed("\\boxed{}", "83") == 0);
    CHECK(reward_boxed("", "83") == 0);
    CHECK(reward_boxed("\\boxed{83}", "") == 0);
    EQUAL("(3x-9)/2 = x+37", "x = 83");
    DIFFERENT("(3x-9)/2 = x+37", "x = 84");
    CHECK(reward_partial("The final answer is 83", "83") == 0.5f);
    CHECK(reward_partial("We get \\boxed{38}", "83") == 0.1f);
    CHECK(reward_format("\\boxed{}", "83") == 1);
}

static void test_reward_gsm8k(void) {
    CHECK(reward_gsm8k("so #### 42", "42") == 1);
    CHECK(reward_gsm8k("so #### 42", "6*7=<<6*7=42>>42\n#### 42") == 1);
    CHECK(reward_gsm8k("#### 1,000.0", "#### 1000") == 1);
    CHECK(reward_gsm8k("#### 1000", "1,000") == 1);
    CHECK(reward_gsm8k("#### 3/4", "0.75") == 1);
    CHECK(reward_gsm8k("#### 43", "#### 42") == 0);
    CHECK(reward_gsm8k("#### -42", "#### 42") == 0);
    CHECK(reward_gsm8k("#### 4", "#### 42") == 0);
    CHECK(reward_gsm8k("42", "#### 42") == 0);
    CHECK(reward_gsm8k("#### 41 #### 42", "#### 42") == 1);
    CHECK(reward_gsm8k("#### 42 #### 41", "#### 42") == 0);
    CHECK(reward_gsm8k("", "") == 0);
}

/* ---- answers_equal: numbers ---- */

static void test_plain_numbers(void) {
    EQUAL("42", "42.0");       DIFFERENT("42", "43");
    EQUAL("42.", "+42");       DIFFERENT("42", "-42");
    EQUAL("007", "7");         DIFFERENT("70", "7");
    EQUAL("-0", "0.00");       DIFFERENT("0", "0.01");
    EQUAL(".35625", "0.356250"); DIFFERENT(".35625", "35625");
    EQUAL("1,000", "1000");    DIFFERENT("1,000", "1");
    EQUAL("11,\\! 111,\\! 111", "11,111,111");  DIFFERENT("11,\\! 111", "11.111");
    EQUAL("10{,}080", "10080"); DIFFERENT("1,00", "100");  DIFFERENT("1,0000", "10000");
    EQUAL("1\\,080", "1080");   DIFFERENT("1,0", "10");
    EQUAL("1,000.50", "1000.5");
    // 20 digits are more than a double or an int64_t holds; digits are compared as text
    DIFFERENT("12345678901234567890", "12345678901234567891");
    DIFFERENT("12,345,678,901,234,567,890", "12345678901234567891");
    DIFFERENT("12,345,678,901,234,567,890", "12345678901234567890");  // beyond 18 digits a number is text
}

static void test_fractions_are_exact(void) {
    EQUAL("\\frac{14}{3}", "14/3");     DIFFERENT("\\frac{14}{3}", "3/14");
    EQUAL("\\dfrac{1}{2}", "0.5");      DIFFERENT("\\dfrac{1}{2}", "0.51");
    EQUAL("\\frac12", "\\tfrac{2}{4}"); DIFFERENT("\\frac12", "12");
    EQUAL("\\frac 5 9", "5/9");         DIFFERENT("\\frac 59", "59");
    EQUAL("\\frac{270}7", "270/7");     DIFFERENT("\\frac9{19}", "\\frac919");   // 9/19, or 9/1 times 9?
    EQUAL("-\\frac{1}{2}", "\\frac{-1}{2}"); DIFFERENT("-\\frac12", "\\frac12");
    DIFFERENT("0.333333333333", "1/3");      // an approximation is not the number
    DIFFERENT("0.\\overline{3}", "1/3");     DIFFERENT("0.\\overline{3}", "0.3");
    DIFFERENT("0.1\\overline{6}", "1/6");    // digits that repeat are not in the grammar
    DIFFERENT("1/0", "2/0");                 EQUAL("1/0", "1/0");
}

static void test_mixed_numbers(void) {
    EQUAL("1\\frac{4}{5}", "9/5");      DIFFERENT("1\\frac{4}{5}", "14/5");
    EQUAL("137 \\frac{1}{2}", "137.5"); DIFFERENT("137 \\frac{1}{2}", "1371/2");
    EQUAL("3 1/2", "3.5");              DIFFERENT("3 1/2", "31/2");
    EQUAL("-1\\frac12", "-1.5");        DIFFERENT("-1\\frac12", "-0.5");
    EQUAL("2\\frac{x}{3}", "2x/3");     DIFFERENT("2\\frac{x}{3}", "2 + x/3");  // a product, no mixed number
    DIFFERENT("1\\frac32", "2.5");      DIFFERENT("1\\frac32", "1.5");          // nobody can say which
    EQUAL("3\xc2\xbd", "3.5");          // the character 1/2
}

static void test_units_and_currency(void) {
    EQUAL("90^\\circ", "90");               DIFFERENT("90^\\circ", "91");
    EQUAL("90\xc2\xb0", "90 \\text{ degrees}"); DIFFERENT("90^\\circ", "90\\text{ cm}");
    EQUAL("5\\text{ cm}", "5");             DIFFERENT("5\\text{ cm}", "5\\text{ mm}");   // another unit
    EQUAL("5 cm", "5 centimeters");         DIFFERENT("5 cm", "50 mm");
    EQUAL("15\\mbox{ cm}^2", "15 square centimeters"); DIFFERENT("15\\mbox{ cm}^2", "15\\text{ cm}^3");
    EQUAL("864 \\mbox{ inches}^2", "864\\mboxinches^2");
    EQUAL("5.4 \\text{ cents}", "5.4cents"); DIFFERENT("5.4 \\text{ cents}", "\\$5.4");
    EQUAL("\\$32,\\!348", "32348");         DIFFERENT("\\$32,\\!348", "32");
    EQUAL("\\$36", "36 dollars");           DIFFERENT("\\$36", "36 cents");
    EQUAL("$36$", "36");                    // dollar signs around are LaTeX, not money
    EQUAL("50\\%", "50");                   DIFFERENT("50\\%", "5");
    EQUAL("50\\%", "0.5");                  DIFFERENT("50\\%", "0.05");
    EQUAL("7 apples", "7");                 DIFFERENT("7 apples", "7 pears");
    EQUAL("7x", "7x");                      DIFFERENT("7x", "7");
    DIFFERENT("2xy", "2");                  // a product, not two xy
    DIFFERENT("8\\pi", "8");                DIFFERENT("2theta", "2");
    EQUAL("2\\pi.", "2\\pi");               // the full stop of the sentence
    EQUAL("\\sin 30^\\circ", "1/2");        DIFFERENT("\\sin 30^\\circ", "\\sin 30");    // here degrees count
}

static void test_base_subscripts(void) {
    EQUAL("52_8", "52_{8}");   DIFFERENT("52_8", "528");
    EQUAL("1A_{16}", "1A_16"); DIFFERENT("52_8", "52_9");
    DIFFERENT("52_8", "52");   DIFFERENT("52_8", "42");   // 5*8+2 = 42, but the question was how to write it
}

static void test_roots_and_powers(void) {
    EQUAL("3\\sqrt{13}", "3*sqrt(13)");      DIFFERENT("3\\sqrt{13}", "\\sqrt{39}");
    EQUAL("\\sqrt{117}", "3\\sqrt{13}");     // 117 = 9 * 13
    EQUAL("11\\sqrt2", "11\xe2\x88\x9a" "2"); DIFFERENT("11\\sqrt2", "11*2");
    EQUAL("\\sqrt[3]{8}", "2");              DIFFERENT("\\sqrt[3]{8}", "\\sqrt{8}");
    EQUAL("\\sqrt[3]{-8}", "-2");            EQUAL("(-8)^{1/3}", "-2");
    EQUAL("\\frac{1}{\\sqrt{2}}", "\\frac{\\sqrt2}{2}");
    EQUAL("2^{10}", "1024");                 DIFFERENT("2^{10}", "2^{1}0");
    EQUAL("2^3^2", "512");                   DIFFERENT("2^3^2", "64");     // 2^(3^2) = 2^9
    EQUAL("-2^2", "-4");                     DIFFERENT("-2^2", "4");
    EQUAL("x\xc2\xb2", "x^2");               DIFFERENT("x\xc2\xb2", "x2");
    DIFFERENT("x\xc2\xb9\xe2\x81\xb0", "x^{10}"); DIFFERENT("x\xc2\xb9\xe2\x81\xb0", "x^{1}");
    EQUAL("6.72 \\times 10^{-5}", ".0000672"); DIFFERENT("6.72 \\times 10^{-5}", ".000672");
    DIFFERENT("\\sqrt{2}", "1.4142");        DIFFERENT("\\pi", "3.14159");  DIFFERENT("\\pi", "22/7");
    EQUAL("5!", "120");                      DIFFERENT("5!", "5");
    DIFFERENT("0^0", "1");                   DIFFERENT("9^{9^{9}}", "9^{9^{8}}");  // overflow is no value
}

static void test_constants_and_functions(void) {
    EQUAL("288 \\pi", "288pi");          EQUAL("\\pi", "\xcf\x80");  DIFFERENT("2\\pi", "pi^2");
    EQUAL("\\frac{\\pi}{6}", "pi/6");    DIFFERENT("\\frac{\\pi}{6}", "-pi/6");
    EQUAL("\\pi r^2", "pi*r^2");         DIFFERENT("\\pi r^2", "(\\pi r)^2");
    EQUAL("\\cot x", "\\cotx");          EQUAL("\\cot x", "cos(x)/sin(x)");  DIFFERENT("\\cot x", "\\tan x");
    EQUAL("\\sin^2 x + \\cos^2 x", "1"); DIFFERENT("\\sin x^2 + \\cos x^2", "1");
    EQUAL("\\sin 2x", "2 \\sin x \\cos x"); DIFFERENT("\\sin 2x", "2\\sin x");
    EQUAL("\\sin x \\cdot y", "y \\sin x");   DIFFERENT("\\sin x \\cdot y", "\\sin(xy)");
    EQUAL("\\sin^{-1} 1", "pi/2");       DIFFERENT("\\sin^{-1} 1", "1/\\sin 1");
    EQUAL("\\log_2 8", "3");             DIFFERENT("\\log_2 8", "2");
    EQUAL("\\log 100", "2");             DIFFERENT("\\ln 100", "2");
    EQUAL("\\log_{10} 1000", "3");       EQUAL("\\frac{\\ln 8}{\\ln 2}", "3");
    EQUAL("\\ln(ab)", "\\ln(ab)");       EQUAL("e^{\\ln 5}", "5");
    EQUAL("|{-3}|", "3");                EQUAL("|x-1|", "\\lvert 1-x \\rvert");  DIFFERENT("|x-1|", "x-1");
    EQUAL("\\lfloor 2.7 \\rfloor", "2"); DIFFERENT("\\lceil 2.7 \\rceil", "2");
    EQUAL("6 - 5i", "6-5i");             DIFFERENT("6 - 5i", "6+5i");
    EQUAL("(1+i)^2", "2i");              EQUAL("e^{i\\pi}", "-1");
    EQUAL("\\infty", "infinity");        DIFFERENT("\\infty", "-\\infty");  DIFFERENT("\\infty", "10^{400}");
}

/* ---- answers_equal: expressions ---- */

static void test_expressions_with_variables(void) {
    EQUAL("(x+1)^2", "x^2+2x+1");        DIFFERENT("(x+1)^2", "x^2+1");
    EQUAL("p - q", "-q+p");              DIFFERENT("p - q", "q - p");
    EQUAL("x^3+3x-6", "3(x-2)+x^3");     DIFFERENT("x^3+3x-6", "x^3+3y-6");
    EQUAL("\\frac{11+9a}{20}", "(11+9a)/20"); DIFFERENT("\\frac{11+9a}{20}", "11+9a/20");
    EQUAL("xy", "yx");                   DIFFERENT("xy", "x+y");
    EQUAL("x_1 + x_2", "x_{2}+x_{1}");   DIFFERENT("x_1", "x_2");
    EQUAL("3R^2", "3 R^{2}");            DIFFERENT("3R^2", "3r^2");
    EQUAL("\\theta + 1", "1 + theta");   DIFFERENT("\\theta", "\\alpha");
    EQUAL("\\frac{x^2-1}{x-1}", "x+1");  DIFFERENT("\\frac{x^2-1}{x-1}", "x-1");
    EQUAL("2 x \\cdot y", "2xy");        DIFFERENT("2xy", "2x+y");
    // variables are real numbers of both signs: sqrt(x^2) is |x|
    EQUAL("\\sqrt{x^2}", "|x|");         DIFFERENT("\\sqrt{x^2}", "x");
    // (x-2)^10 expanded; at x = 2.3 its terms reach 10^5 and it is 10^-5.2: a fixed tolerance would fail
    EQUAL("(x-2)^{10}",
          "x^{10}-20x^9+180x^8-960x^7+3360x^6-8064x^5+13440x^4-15360x^3+11520x^2-5120x+1024");
    DIFFERENT("(x-2)^{10}",
              "x^{10}-20x^9+180x^8-960x^7+3360x^6-8064x^5+13440x^4-15360x^3+11520x^2-5120x+1025");
    // 10^30 pi swallows every number: what is left after subtracting it is no number at all
    DIFFERENT("10^{30}\\pi - 10^{30}\\pi", "83");
    DIFFERENT("10^{30}\\pi + 83 - 10^{30}\\pi", "0");
}

// What the head of the chapter says it can't see. If one of these changes, the comment must change, too.
static void test_known_limits(void) {
    DIFFERENT("2^{100}", "2^{100}+1");       // both 1.26765060022823e30 to a double: a sum that hides a part
    DIFFERENT("2^{100}-1", "2^{100}");       // of itself has no value
    DIFFERENT("2^{61}", "2^{61}+1");         // 2^61 is the last power of 2 below EXACT_LIMIT = 2^62 - 1
    DIFFERENT("(-1)^{2n}", "1");             // right for whole n only
    DIFFERENT("x^2 = 4", "x = \\pm 2");      // the same solutions
}

static void test_garbage_is_unequal(void) {
    static const char* const garbage[] = {
        "", " ", "(", ")", "1+", "\\frac{1}", "\\frac", "^", "_", "|", "\\", "{", "}", "\"", "1..2", "((1)",
        "\\sqrt[", "\\text{", "$$", "&", "\\\\", "x_", "1 2", "\\pm", "=", "x=", "(,)", "!", "\\foo{", "`"};
    int count = sizeof garbage / sizeof *garbage;
    for (int i = 0; i < count; i++) {
        DIFFERENT(garbage[i], "1");
        DIFFERENT(garbage[i], "12");
        CHECK(answers_equal(garbage[i], garbage[i]) == (garbage[i][0] != 0));  // reflexive, unless empty
    }
    DIFFERENT("x2", "2x");
    DIFFERENT("", "");
}

static void test_bounds(void) {
    static char deep[3000], long_a[1200], long_b[1200];
    memset(deep, '(', 400);
    deep[400] = '1';
    memset(deep + 401, ')', 400);
    EQUAL(deep, "1");                                   // brackets around all of it are peeled off
    memcpy(deep + 400, "1+(1)", 5);
    memset(deep + 405, ')', 400);
    DIFFERENT(deep, "3");
    memset(deep, 0, sizeof deep);
    for (int i = 0; i < 100; i++) strcat(deep, "1+(");
    strcat(deep, "1");
    for (int i = 0; i < 100; i++) strcat(deep, ")");
    DIFFERENT(deep, "101");                             // too deep, although it is 101
    EQUAL(deep + 210, deep + 210);
    memset(deep, '-', 900);
    deep[900] = '1';
    deep[901] = 0;
    EQUAL(deep, "1");                                   // 900 signs are an even number
    for (int i = 0; i < 400; i++) memcpy(deep + 2 * i, "1^", 2);
    deep[800] = '1';
    deep[801] = 0;
    DIFFERENT(deep, "1");                               // too deep, although it is 1
    EQUAL(deep + 770, "1");                             // 1^1^...^1 with 15 powers is not
    memset(long_a, '1', 1100);
    memset(long_b, '1', 1100);
    long_b[1100] = '.';
    CHECK(answers_equal(long_a, long_a) == 1);
    DIFFERENT(long_a, long_b);                          // beyond MAX_ANSWER only the same text is equal
    long_a[900] = long_b[900] = 0;
    long_b[899] = '.';
    long_a[899] = 0;
    EQUAL(long_a, long_b);                              // within it they are compared digit by digit
}

/* ---- answers_equal: shapes ---- */

static void test_words_and_choices(void) {
    EQUAL("\\text{Evelyn}", "Evelyn");       DIFFERENT("\\text{Evelyn}", "Evelyns");
    EQUAL("\\text{even}", "Even");           DIFFERENT("\\text{even}", "odd");
    DIFFERENT("\\text{no}", "on");           // not the product n times o
    DIFFERENT("abcd", "bcda");               DIFFERENT("east", "seat");
    EQUAL("\\text{not prime}", "not prime"); DIFFERENT("\\text{not prime}", "prime");
    EQUAL("\\text{(C)}", "C");               DIFFERENT("\\text{(C)}", "B");
    EQUAL("\\text{(C)}", "(C)");             DIFFERENT("\\text{(C)}", "(D)");
    EQUAL("\\textbf{(C)}", "\\text{C}");     DIFFERENT("(A)", "(B)");
}

static void test_tuples_and_intervals(void) {
    EQUAL("\\left( 3, \\frac{\\pi}{2} \\right)", "(3,pi/2)");  DIFFERENT("(3, \\pi/2)", "(\\pi/2, 3)");
    EQUAL("((1,2))", "(1,2.0)");
    EQUAL("(3,4]", "( 3, 4.0 ]");            DIFFERENT("(3,4]", "[3,4]");
    EQUAL("[0,1)", "\\left[0,1\\right)");    DIFFERENT("[0,1)", "(0,1)");
    EQUAL("(-\\infty, 0]", "(-inf,0]");      DIFFERENT("(-\\infty,0]", "(\\infty,0]");
    EQUAL("(2,\\infty)", "(2,+\\infty)");    DIFFERENT("(2,\\infty)", "(3,\\infty)");
    DIFFERENT("(1,2)", "(1,2,3)");           DIFFERENT("(1,2)", "1,2");  // a pair is not a list
    EQUAL("(100,200)", "(100.0, 200)");      DIFFERENT("(100,200)", "100200");  // a pair, no thousands
    EQUAL("(0,9) \\cup (9,36)", "(9,36)\\cup(0,9)");  DIFFERENT("(0,9)\\cup(9,36)", "(0,36)");
    EQUAL("(0,9)U(9,36)", "(0,9) \xe2\x88\xaa (9,36)");
    EQUAL("x \\in [-2,7]", "[-2,7]");        DIFFERENT("x \\in [-2,7]", "(-2,7)");
    EQUAL("-2 \\le x \\le 7", "[-2,7]");     DIFFERENT("-2 \\le x < 7", "[-2,7]");
    EQUAL("x \\geq 3", "[3,\\infty)");       DIFFERENT("x > 3", "[3,\\infty)");
    EQUAL("x < 5", "5 > x");                 DIFFERENT("x < 5", "x > 5");
    DIFFERENT("x < 5", "y < 5");             DIFFERENT("1 < x > 5", "(5,\\infty)");
    EQUAL("7 \\ge x > -2", "(-2,7]");        EQUAL("\\mathbb{R}", "(-\\infty,\\infty)");
}

static void test_lists_and_sets(void) {
    EQUAL("3, 5, 7", "3,5,7");               DIFFERENT("3,5,7", "3,5");
    EQUAL("3, 5, 7", "7, 3, 5");             DIFFERENT("3,5,5", "3,3,5");      // each item is used once
    EQUAL("\\{1,2\\}", "\\left\\{2,1\\right\\}");  DIFFERENT("\\{1,2\\}", "\\{1,3\\}");
    EQUAL("\\{1,2\\}", "1 \\text{ and } 2"); DIFFERENT("\\{1,2\\}", "(1,2)");
    EQUAL("\\emptyset", "\\{\\}");           DIFFERENT("\\emptyset", "0");
    EQUAL("(1,2),(3,4)", "(3,4), (1,2)");    DIFFERENT("(1,2),(3,4)", "(2,1),(3,4)");
    EQUAL("x = 1, x = 2", "2, 1");           DIFFERENT("x=1, x=2", "1, 3");
    EQUAL("1 \\pm \\sqrt{19}", "1-\\sqrt{19}, 1+\\sqrt{19}");  DIFFERENT("1 \\pm \\sqrt{19}", "1+\\sqrt{19}");
    EQUAL("1 \\pm \\sqrt{19}", "1\\pm*sqrt(19)");  DIFFERENT("1\\pm\\sqrt{19}", "-1\\pm\\sqrt{19}");
    EQUAL("\\pm 5", "5, -5");                EQUAL("\\pm 5", "\\mp 5");
    EQUAL("(\\pm 1, \\mp 2)", "(1,-2), (-1,2)");  DIFFERENT("(\\pm 1, \\mp 2)", "(1,2), (-1,-2)");
    EQUAL("\\{a,b\\}", "b, a");              EQUAL("\\{(1,2)\\}", "(1,2.0)");
    EQUAL("\\{1\\pm\\sqrt{5},-2\\}", "-2, 1+sqrt(5), 1-sqrt(5)");
    EQUAL("100, 200", "200, 100");           DIFFERENT("100, 200", "100,200");  // a list, and a number
}

static void test_matrices(void) {
    const char* column = "\\begin{pmatrix} -1/3 \\\\ 2/3 \\\\ 5/3 \\end{pmatrix}";
    EQUAL(column, "\\begin{bmatrix}-\\frac13\\\\\\frac23\\\\\\frac53\\end{bmatrix}");
    EQUAL(column, "\\beginpmatrix-1/3\\\\2/3\\\\5/3\\endpmatrix");
    EQUAL(column, "[[-1/3],[2/3],[5/3]]");
    DIFFERENT(column, "\\begin{pmatrix} -1/3 & 2/3 & 5/3 \\end{pmatrix}");  // a row
    DIFFERENT(column, "\\begin{pmatrix} 2/3 \\\\ -1/3 \\\\ 5/3 \\end{pmatrix}");
    EQUAL("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{pmatrix} 1 & 4/2 \\\\ 3 & 4 \\end{pmatrix}");
    DIFFERENT("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{pmatrix}1&3\\\\2&4\\end{pmatrix}");
}

static void test_equations(void) {
    EQUAL("y = 2x + 3", "2x - y + 3 = 0");   DIFFERENT("y = 2x + 3", "2x + y + 3 = 0");
    EQUAL("y = 2x + 3", "2x+3");             DIFFERENT("y = 2x + 3", "2x-3");
    EQUAL("y = 2x + 3", "y = 3 + 2 x");      DIFFERENT("y = 2x + 3", "x = 2y + 3");
    EQUAL("2x = 10", "x = 5");               DIFFERENT("2x = 10", "x = 10");
    EQUAL("x = 5", "5");                     DIFFERENT("x = 5", "x");
    EQUAL("5 = x", "5");                     DIFFERENT("x = 5", "y = 5");
    EQUAL("f(x) = x^2", "x^2");              DIFFERENT("f(x) = x^2", "g(x) = x^2");
    EQUAL("5x - 7y + 11z + 4 = 0", "-5x+7y-11z=4");  DIFFERENT("5x-7y+11z+4=0", "5x-7y+11z=4");
    DIFFERENT("xy = 5", "5");                DIFFERENT("\\sin(x) = 1", "1");  // only a name may be left out
    DIFFERENT("x = x", "y = y");             // says nothing
    DIFFERENT("x^2 = 4", "x = 2");           DIFFERENT("x = 5", "x \\le 5");
    EQUAL("\\mu = 3", "3");                  EQUAL("S = \\{1, 2\\}", "\\{2,1\\}");
}

/* ---- the kinds: pairs by hand, each kind with what it accepts beside what it refuses ---- */

typedef struct { int equal; const char *a, *b; } Twins;

static void check_table(const Twins* pairs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int forward = answers_equal(pairs[i].a, pairs[i].b), backward = answers_equal(pairs[i].b, pairs[i].a);
        if (forward == pairs[i].equal && backward == pairs[i].equal) continue;
        check_broken++;
        printf("  \"%s\" and \"%s\": %d, and %d the other way round; expected %d\n", pairs[i].a, pairs[i].b,
               forward, backward, pairs[i].equal);
    }
}

// gcd, lcm, max, min and binomials of numbers are evaluated.
static void test_functions_of_two_arguments(void) {
    static const Twins pairs[] = {
        {0, "\\binom{6}{2}", "\\binom{4}{3}"}, {1, "\\binom{10}{3}", "120"}, {1, "\\gcd(12,18)", "6"},
        {1, "\\max(3,7)", "7"}, {1, "\\min(a,b)", "\\min(b,a)"}, {0, "\\max(a,b)", "a"},
        {1, "\\operatorname{lcm}(4,6)", "12"}, {1, "\\text{lcm}(4,6)", "12"},
        {1, "\\binom{n}{2}", "\\frac{n(n-1)}{2}"}, {0, "\\max x", "x \\max"},
        {0, "\\binom{5}{2}", "\\binom{2}{5}"}, {1, "\\binom{6}{2}", "\\binom{6}{4}"},
        {0, "\\max(x,0)", "x"}, {1, "\\gcd(48,36)", "12"}, {1, "\\text{gcd}(48,36)", "12"},
        {1, "\\text{LCM}(4,6)", "\\text{LCM}(4,6)"}, {1, "\\max\\{2,9,4\\}", "9"},
        {1, "\\min(3,-1)", "-1"}, {1, "\\max(x,y)", "\\max(y,x)"}, {1, "\\gcd(a,b)", "\\gcd(a,b)"},
        {0, "\\gcd(2,3)", "\\gcd(4,6)"},
    };
    check_table(pairs, sizeof pairs / sizeof *pairs);
}

// A command that no table knows is text: it never commutes, and no shorter command hides in it.
static void test_commands_outside_of_the_list(void) {
    static const Twins pairs[] = {
        {0, "\\overrightarrow{AB}", "\\overrightarrow{BA}"}, {0, "a\\mid b", "b\\mid a"},
        {0, "\\sinh x", "\\sin hx"}, {0, "a\\perp b", "b \\perp a"}, {0, "\\vec{a}", "\\vec{b}"},
        {0, "\\hat{xy}", "\\hat{yx}"}, {0, "\\int_0^1 xdx", "\\int_1^0 xdx"}, {0, "\\det A", "A \\det"},
        {0, "{5 \\choose 2}", "{2 \\choose 5}"},
        {0, "\\mathbf{a}\\times\\mathbf{b}", "\\mathbf{b}\\times\\mathbf{a}"}, {0, "a \\to b", "b \\to a"},
        {0, "a \\equiv b", "b\\equiv a"}, {0, "\\overline{AB}", "\\overline{BA}"}, {0, "\\|v\\|", "v"},
        {0, "\\lim_{x\\to 0} f", "\\lim_{x \\to f} 0"}, {0, "a \\ast b", "b \\ast a"},
        {0, "a \\circ b", "b \\circ a"}, {0, "x \\bmod y", "y \\bmod x"},
        {0, "\\overleftrightarrow{AB}", "\\overleftrightarrow{CD}"}, {0, "\\angle ABC", "\\angle CBA"},
        {0, "\\triangle ABC", "\\triangle BAC"}, {0, "\\widehat{AB}", "\\widehat{BA}"},
        {0, "\\dot{x}y", "\\dot{y}x"}, {0, "\\sum_{i=1}^{n} i", "\\sum_{n=1}^{i} n"},
        {0, "\\int f dx", "\\int x df"}, {0, "a \\sim b", "b \\sim a"},
        {0, "x \\Rightarrow y", "y \\Rightarrow x"}, {0, "x \\approx y", "y \\approx x"},
        {1, "x \\approx 3.14", "x \\approx 3.14"}, {0, "a \\parallel b", "b \\parallel a"},
        {0, "\\nabla f", "f \\nabla"}, {0, "\\partial x y", "\\partial y x"},
        {0, "p \\land q", "q \\lor p"}, {0, "p \\wedge q", "q \\wedge p"},
        {0, "A \\subset B", "B \\subset A"}, {0, "\\tanh x", "\\tan hx"}, {0, "\\cosh x", "\\cos hx"},
        {0, "\\coth x", "\\cot hx"}, {0, "\\lnx y", "\\ln xyz"}, {0, "\\log_2 8", "\\log 28"},
        {0, "\\Re z", "z \\Re"}, {0, "n \\choose k", "k \\choose n"},
        {0, "{n \\brace k}", "{k \\brace n}"}, {0, "a^{\\prime}", "a^{\\star}"},
        {0, "x\\notin(0,1)", "x\\in(0,1)"}, {0, "x \\in (0,1)", "x \\notin (0,1)"},
        {1, "\\mathbf{7}", "7"}, {0, "\\mathbf{u}\\cdot\\mathbf{v}", "\\mathbf{v}\\times\\mathbf{u}"},
        {0, "\\boldsymbol{a}\\times\\boldsymbol{b}", "\\boldsymbol{b}\\times\\boldsymbol{a}"},
        {0, "\\bm{A}\\bm{B}", "\\bm{B}\\bm{A}"}, {0, "\\mathcal{A}B", "\\mathcal{B}A"},
        {0, "\\mathbb{Z}", "\\mathbb{N}"}, {0, "\\vec{a}\\times\\vec{b}", "\\vec{b}\\times\\vec{a}"},
    };
    check_table(pairs, sizeof pairs / sizeof *pairs);
}

// A name has its whole subscript, and f(2) is no product; x(y+1) is one.
static void test_subscripts_and_functions(void) {
    static const Twins pairs[] = {
        {0, "a_{n-1}", "a_{n+1}"}, {0, "f(2)", "2f(1)"}, {1, "x(y+1)", "xy+x"},
        {1, "(3,2)", "(p,q)=(3,2)"}, {0, "(3,2)", "(p,q)=(2,3)"}, {0, "f^{-1}(2)", "2f^{-1}(1)"},
        {1, "f(x)+1", "1+f(x)"}, {0, "g(x)", "x g"}, {0, "P(A|B)", "P(B|A)"},
        {0, "\\frac{dy}{dx}", "\\frac{y}{x}"}, {1, "n(n+1)/2", "\\frac{n^2+n}{2}"},
        {1, "(x,y)=(1,2)", "(1,2)"}, {0, "(x,y)=(1,2)", "(a,b)=(1,2)"},
        {0, "\\mathrm{d}x", "x\\mathrm{d}"}, {1, "f'(2)", "f'(2)"}, {0, "f'(2)", "f(2)"},
        {0, "f'(x)", "f''(x)"}, {0, "a_1", "a_2"}, {0, "a_{2n}", "a_{n2}"},
        {0, "a_{n+1} + a_n", "a_{n-1}+a_n"}, {1, "a_{n+1} + a_n", "a_n + a_{n+1}"},
        {0, "x_{1}^2", "x_{12}"}, {0, "S_{n}(2)", "S_{n}(3)"}, {0, "f(3)", "3f"}, {0, "g(2x)", "2g(x)"},
        {0, "f(x+1)", "f(x)+f(1)"}, {0, "f(x+1)", "fx+f"}, {0, "h(2)", "2h"}, {0, "F(1)", "1F"},
        {0, "\\phi(10)", "10\\phi"}, {0, "\\sigma(6)", "6\\sigma"}, {0, "P(2)", "2P"}, {0, "p(3)", "3p"},
        {1, "a(b+c)", "ab+ac"}, {1, "n(n-1)(n-2)", "n^3-3n^2+2n"}, {1, "k(k+1)", "k^2+k"},
        {1, "2x(x+3)", "2x^2+6x"}, {1, "\\pi(r+1)", "\\pi r+\\pi"}, {1, "(3,2)", "(x,y)=(3,2)"},
        {1, "(a,b,c)=(1,2,3)", "(1,2,3)"}, {1, "(x, y) = \\left(\\frac12, 3\\right)", "(0.5,3)"},
        {0, "(1,1,2)", "(1,2)"}, {1, "\\(5\\)", "5"}, {1, "\\log_{10}100", "2"},
        {1, "(1+x)^{12}-1", "(1+x)^{12}-1.0"}, {0, "(-1)^n", "(-1)^{n+1}"}, {1, "(-1)^{n+2}", "(-1)^n"},
    };
    check_table(pairs, sizeof pairs / sizeof *pairs);
}

// Every variable takes both signs and many sizes: |x|, sqrt(x^2), max and floor show.
static void test_signs_and_sizes(void) {
    static const Twins pairs[] = {
        {0, "t", "\\sqrt{t^2}"}, {0, "3-x", "|x-3"}, {1, "\\sqrt{x^3}", "x\\sqrt{x}"}, {0, "|xyz|", "xyz"},
        {0, "|a||b||c|", "abc"}, {0, "|x-100|", "100-x"}, {0, "|x-3|+|x-5|", "|2x-8"},
        {1, "|x y z|", "|x||y||z|"}, {0, "|x y z|", "x y z"}, {0, "\\sqrt{x^2}", "x"},
        {0, "u", "\\sqrt{u^2}"}, {0, "n", "|n"}, {0, "5-y", "|y-5"}, {0, "10-x", "|10-x"},
        {0, "z", "\\sqrt[4]{z^4}"}, {1, "|z|^2", "z^2"}, {0, "|x|+|y|", "|x+y"},
        {0, "\\sqrt{ab}", "\\sqrt{a}\\sqrt{b}"}, {0, "\\frac{|x|}{x}", "1"},
        {0, "\\lfloor x \\rfloor", "x"}, {0, "\\lceil x \\rceil", "\\lfloor x \\rfloor + 1"},
        {1, "\\sqrt[3]{t^3}", "t"}, {1, "x^{1/2}", "\\sqrt{x}"}, {1, "10\\sqrt{10}", "\\sqrt{1000}"},
    };
    check_table(pairs, sizeof pairs / sizeof *pairs);
}

// A text of letters alone is a word, unless it is two small letters; short words are listed.
static void test_words(void) {
    static const Twins pairs[] = {
        {0, "on", "no"}, {0, "x=on", "x=no"}, {0, "$on$", "$no$"}, {0, "\\(on\\)", "\\(no\\)"},
        {0, "(on)", "no"}, {0, "{on}", "{no}"}, {0, "yes, on", "yes, no"}, {0, "on.", "no."},
        {0, "S=\\{on\\}", "S=\\{no\\}"}, {0, "x=Ab", "x=bA"}, {0, "x^{cm}", "x"}, {0, "5 per cent", "5"},
        {0, "IV", "VI"}, {1, "no", "No"}, {1, "xy", "yx"}, {0, "AB", "BA"},
        {1, "\\text{(c)}", "\\text{(C)}"}, {0, "r", "R"}, {0, "\\text{r}", "R"},
        {0, "\\text{cat}", "\\text{act}"}, {1, "\\text{San Francisco}", "San Francisco"}, {0, "me", "em"},
        {0, "is", "si"}, {0, "it", "ti"}, {1, "OR", "or"}, {0, "XI", "IX"}, {0, "CD", "DC"},
        {0, "Ab", "aB"}, {1, "True", "true"}, {1, "\\text{YES}", "yes"}, {0, "yes", "no"},
        {0, "listen", "silent"}, {1, "\\text{Monday}", "monday"}, {0, "ABC", "CAB"}, {0, "abc", "cba"},
        {1, "\\text{No solution}", "no solution"},
    };
    check_table(pairs, sizeof pairs / sizeof *pairs);
}

// A value keeps its name. One name may be left out on one side, several in their own order only.
static void test_names_and_relations(void) {
    static const Twins pairs[] = {
        {0, "3,2", "x=2,y=3"}, {1, "2,3", "x=2,y=3"}, {1, "x=5", "5"}, {1, "y=3,x=2", "x=2,y=3"},
        {0, "x=2,y=3", "x=3,y=2"}, {1, "x=1,x=2", "2,1"}, {0, "x<5", "x>5"}, {1, "a<b", "b>a"},
        {0, "a<b", "a>b"}, {0, "x \\in S", "x = S"}, {1, "x>3", "(3,\\infty)"}, {0, "x>3", "[3,\\infty)"},
        {0, "x=2,3", "2,x=3"}, {1, "x=3\\text{ and }y=2", "x=3, y=2"}, {0, "x=1,y=4", "4,1"},
        {0, "x=1, y=4", "x=4, y=1"}, {1, "a=3,b=4,c=5", "3,4,5"}, {0, "a=3,b=4,c=5", "4,3,5"},
        {1, "a=3,b=4,c=5", "c=5,a=3,b=4"}, {0, "m=2,n=5", "(5,2)"}, {0, "x=5", "y=5"},
        {1, "x=5", "x = 5.0"}, {0, "12", "12\\text{ if } x>0"},
        {1, "x<-1\\text{ or }x>1", "x>1\\text{ or }x<-1"}, {1, "0<x<1", "1>x>0"},
        {1, "0\\le x<1", "[0,1)"}, {0, "0<x<1", "(0,1]"}, {1, "x\\in(0,1)", "(0,1)"}, {0, "y>2", "x>2"},
        {1, "y = 3x+1", "3x-y+1=0"}, {0, "y=|x|", "y=x"}, {0, "|x|=5", "x=5"},
        {1, "x^2+y^2=4", "4 = y^2+x^2"}, {1, "$x=5$", "x=5"},
    };
    check_table(pairs, sizeof pairs / sizeof *pairs);
}

// Number words multiply; "5 thousand" is no quantity of 5.
static void test_number_words(void) {
    static const Twins pairs[] = {
        {0, "5", "5 thousand"}, {1, "5000", "5 thousand"}, {1, "2 million", "2000000"},
        {1, "2\\text{ million}", "2000000"}, {1, "\\$2\\text{ million}", "2000000"},
        {1, "2 million dollars", "2,000,000"}, {0, "2 million", "2"}, {0, "5", "5 hundred"},
        {1, "500", "5 hundred"}, {0, "3", "3 dozen"}, {1, "36", "3 dozen"}, {1, "36", "3\\text{ dozen}"},
        {0, "4", "4 half"}, {1, "3.5 million", "3500000"}, {1, "3.5\\times10^6", "3.5 million"},
        {1, "\\$3 billion", "3000000000"},
    };
    check_table(pairs, sizeof pairs / sizeof *pairs);
}

// Only listed words are units, which one side may leave out; everything else changes the answer.
static void test_units(void) {
    static const Twins pairs[] = {
        {0, "5", "5\\text{ or 6}"}, {0, "-5", "-5\\text{ (not a solution)}"}, {1, "5 seconds", "5"},
        {1, "5", "5\\text{ seconds}"}, {1, "5 pints", "5"}, {1, "36\\pi cm", "36\\pi"},
        {1, "36\\pi\\text{ cm}^2", "36\\pi"}, {1, "12^{\\mathrm{th}}", "12"}, {1, "12th", "12"},
        {1, "5\\text{ miles per hour}", "5 mph"}, {1, "5 m/s", "5 m/s"}, {1, "5\\text{ m/s}", "5"},
        {0, "5\\text{ m/s}", "5\\text{ km/h}"}, {0, "5 apples", "5 pears"}, {1, "5 apples", "5"},
        {0, "5\\text{ more}", "5"}, {1, "25^\\circ\\text{C}", "25"},
        {1, "5\\frac{1}{2}\\text{ feet}", "5.5"}, {0, "7\\text{ pm}", "7\\text{ am}"},
        {0, "7\\text{ pm}", "7"}, {0, "east", "seat"}, {0, "5", "5\\text{ or more}"},
        {0, "12", "12\\text{ approximately}"}, {0, "7", "7\\text{ remainder }2"}, {0, "7", "7 more"},
        {0, "8", "8\\text{ less}"}, {0, "4", "4\\text{ squared}"}, {0, "2", "2 negative"},
        {0, "9", "9 base ten"}, {1, "10 minutes", "10"}, {1, "10\\text{ min}", "10 minutes"},
        {1, "5 inches", "5"}, {1, "3 pints", "3"}, {1, "5\\pi\\text{ square inches}", "5\\pi"},
        {1, "8\\sqrt{3}\\text{ cm}", "8\\sqrt{3}"}, {1, "8\\sqrt{3} cm", "8\\sqrt{3}"}, {1, "x cm", "x"},
        {1, "3^{\\text{rd}}", "3"}, {1, "3rd", "3"}, {1, "21^{st}", "21"}, {0, "3rd", "4th"},
        {1, "\\frac{\\pi}{4}\\text{ radians}", "\\frac{\\pi}{4}"}, {1, "45 degrees", "45^\\circ"},
        {0, "45 degrees", "45\\text{ radians}"}, {1, "6\\text{ square units}", "6"},
        {1, "6\\text{ units}^2", "6"}, {1, "9\\text{ people}", "9 persons"}, {1, "24 students", "24"},
        {1, "3\\text{ m/s}^2", "3"}, {1, "55 mph", "55 miles per hour"},
        {1, "55\\text{ miles/hour}", "55 mph"}, {0, "55 mph", "55 km/h"},
        {1, "20\\text{ cm}^3", "20\\text{ cubic centimeters}"}, {0, "20\\text{ cm}^3", "20\\text{ cm}^2"},
    };
    check_table(pairs, sizeof pairs / sizeof *pairs);
}

// Many digits are never a fraction, a root or pi: people write them when they round.
static void test_long_decimals(void) {
    static const Twins pairs[] = {
        {0, "1/3", "0.3333333333333333333"}, {0, "\\sqrt{2}", "1.4142135623730951"},
        {0, "\\pi", "3.141592653589793"}, {0, "0.66666666666666666667", "2/3"},
        {0, "0.142857142857142857142857", "1/7"}, {0, "1.41421356237309504880", "\\sqrt{2}"},
        {0, "2.718281828459045", "e"}, {0, "3.14159265358979323846", "\\pi"},
        {0, "0.50000000000000000001", "1/2"}, {0, "0.12345678901234567890", ".1234567890123456789"},
        {0, "12345678901234567890/2", "12345678901234567891/2"},
    };
    check_table(pairs, sizeof pairs / sizeof *pairs);
}

// Lists with "and", scientific notation, \mathrm{e}.
static void test_spellings(void) {
    static const Twins pairs[] = {
        {1, "2, 3, and 5", "2, 3, 5"}, {1, "2, 3, and 5", "2,3,5"}, {1, "0.001", "1e-3"},
        {1, "1.5e3", "1500"}, {1, "2E5", "200000"}, {1, "1-\\frac1{\\mathrm{e}}", "1-\\frac{1}{e}"},
        {0, "2e - 3", "0.002"}, {1, "10^{-3}", "0.001"}, {1, "3\\text{ and }2", "2,3"},
        {1, "1, 2, or 3", "1,2,3"}, {1, "a, b, and c", "c, b, a"},
        {1, "1\\text{, }2\\text{, and }3", "1,2,3"}, {1, "6.02\\times10^{23}", "6.02e23"},
        {1, "1e+03", "1000"}, {0, "2e+1", "20"}, {1, "2E+1", "1+2E"}, {1, "2E-1", "-1+2E"},
        {1, "-2.5e-2", "-0.025"}, {0, "1e3", "13"}, {0, "1e3", "e^3"},
        {1, "2e", "e\\cdot 2"}, {1, "\\mathrm{e}^2", "e^2"}, {1, "2+3\\mathrm{i}", "2+3i"},
        {0, "1,1,2", "1,2"},
    };
    check_table(pairs, sizeof pairs / sizeof *pairs);
}

// pmatrix, bmatrix, matrix and array in brackets are one thing; a last \\ begins no row.
static void test_matrices_in_every_spelling(void) {
    static const Twins pairs[] = {
        {1, "\\begin{pmatrix}1&2\\\\3&4\\\\\\end{pmatrix}", "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}"},
        {1, "\\left(\\begin{array}{cc}1&2\\\\3&4\\end{array}\\right)",
        "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}"},
        {1, "\\left[\\begin{array}{cc}1&2\\\\3&4\\end{array}\\right]",
        "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}"},
        {1, "\\begin{matrix}1&2\\\\3&4\\end{matrix}", "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}"},
        {0, "\\begin{vmatrix}1&2\\\\3&4\\end{vmatrix}", "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}"},
        {1, "\\begin{bmatrix}1\\\\2\\\\\\end{bmatrix}", "\\begin{pmatrix}1\\\\2\\end{pmatrix}"},
        {1, "\\left[\\begin{array}{c}1\\\\2\\end{array}\\right]", "\\begin{pmatrix}1\\\\2\\end{pmatrix}"},
        {1, "\\left[\\begin{matrix}1\\\\2\\end{matrix}\\right]", "\\begin{pmatrix}1\\\\2\\end{pmatrix}"},
        {0, "\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{pmatrix}2\\\\1\\end{pmatrix}"},
        {0, "\\begin{pmatrix}1&2\\end{pmatrix}", "\\begin{pmatrix}1\\\\2\\end{pmatrix}"},
        {1, "\\begin{pmatrix}1&2\\end{pmatrix}", "\\begin{bmatrix}1&2.0\\end{bmatrix}"},
        {0, "\\begin{vmatrix}1&2\\\\3&4\\end{vmatrix}", "-2"},
    };
    check_table(pairs, sizeof pairs / sizeof *pairs);
}

// A currency may be left out, another one may not be put in its place. One dollar sign alone is money.
static void test_money(void) {
    static const Twins pairs[] = {
        {1, "5 USD", "$5"}, {1, "5 USD", "\\$5"}, {0, "$5", "5 euros"}, {1, "\\$-5", "-\\$5"},
        {1, "-5", "-\\$5"}, {1, "5\\text{ USD}", "\\$5"}, {1, "\xe2\x82\xac""5", "5 euros"},
        {0, "\xe2\x82\xac""5", "\\$5"}, {0, "\xc2\xa3""5", "\\$5"}, {1, "5,000 dollars", "\\$5000"},
        {1, "-\\$12.50", "-12.5"},
    };
    check_table(pairs, sizeof pairs / sizeof *pairs);
}

// Sets are the same when the same numbers belong to them.
static void test_sets_of_numbers(void) {
    static const Twins pairs[] = {
        {0, "(-\\infty,0)\\cup(0,\\infty)", "\\mathbb{R}\\setminus\\{0\\}"},
        {0, "x\\neq 0", "\\mathbb{R}\\setminus\\{0\\}"}, {0, "[0,2]\\cup[1,3]", "[0,3]"},
        {0, "(0,1)\\cup(1,2)", "(0,2)"}, {1, "\\{1,1,2\\}", "\\{1,2\\}"}, {0, "\\{1,1,2\\}", "\\{1,3\\}"},
        {0, "A\\setminus B", "B\\setminus A"}, {1, "A\\cup B", "B \\cup A"}, {1, "\\{x,y\\}", "\\{y,x\\}"},
        {1, "\\{-1, 3\\}", "x = -1 \\text{ or } x = 3"}, {0, "\\neg p q", "p \\neg q"},
        {1, "A \\cup B", "B \\cup A"}, {1, "A \\cap B", "B \\cap A"}, {0, "A \\cap B", "A \\cup B"},
        {0, "A \\setminus B", "A \\cup B"}, {0, "(-\\infty,-1)\\cup(-1,\\infty)", "x\\ne -1"},
        {0, "\\mathbb{R}\\setminus\\{0,1\\}", "(-\\infty,0)\\cup(0,1)\\cup(1,\\infty)"},
        {0, "\\mathbb{R}\\setminus\\{0\\}", "\\mathbb{R}\\setminus\\{1\\}"},
        {0, "\\mathbb{R}\\setminus\\{0\\}", "\\mathbb{R}"},
        {0, "[1,3)\\setminus\\{2\\}", "[1,2)\\cup(2,3)"}, {1, "(1,2]\\cup\\{3\\}", "\\{3\\}\\cup(1,2]"},
        {0, "(1,2]\\cup\\{3\\}", "(1,3]"}, {1, "\\{1,2,2,3\\}", "\\{3,2,1\\}"},
        {0, "\\{1,2,2\\}", "\\{1,1,3\\}"}, {0, "\\text{no solution}", "\\emptyset"},
    };
    check_table(pairs, sizeof pairs / sizeof *pairs);
}

// 50\% is 50 and 1/2. So equality is not transitive here: 50 is not 1/2.
static void test_percent(void) {
    static const Twins pairs[] = {
        {1, "50\\%", "50"}, {1, "50\\%", "\\frac12"}, {0, "50", "\\frac12"}, {0, "10", "10 percent off"},
        {1, "0.5", "50\\%"}, {1, "50 percent", "50\\%"}, {1, "50 percent", "0.5"}, {0, "50\\%", "5"},
        {1, "12.5\\%", "\\frac18"}, {0, "0.5", "50"}, {1, "100\\%", "1"},
    };
    check_table(pairs, sizeof pairs / sizeof *pairs);
}

// Mathematics that stays what it was.
static void test_expressions(void) {
    static const Twins pairs[] = {
        {1, "sinx", "\\sin x"}, {1, "2AB", "AB\\cdot 2"}, {1, "e^{x^2}", "e^{x*x}"}, {0, "5:3", "3:5"},
        {1, "\\sin x^{10}", "\\sin(x^{10})"}, {1, "x^{20}-1", "(x^{10}-1)(x^{10}+1)"}, {0, "x^2", "x^4"},
        {0, "6", "6\\text{ to }1"}, {1, "12\\pi\\text{ in}^2", "12\\pi"},
        {1, "\\displaystyle\\frac{1}{2}", "0.5"}, {1, "\\textbf{12}", "12"}, {0, "12!", "12"},
        {1, "\\tfrac{1}{2}x", "x/2"}, {1, "3:4", "3:4"}, {0, "3:4", "4:3"}, {1, "\\ln e^3", "3"},
        {1, "2^{-3}", "0.125"}, {1, "\\frac{x+1}{x-1}", "\\frac{-x-1}{1-x}"}, {1, "e^{2\\ln x}", "x^2"},
        {1, "\\cos^2\\theta", "1-\\sin^2\\theta"}, {1, "\\tan x", "\\frac{\\sin x}{\\cos x}"},
        {1, "\\sin 2x", "2\\sin x\\cos x"}, {1, "xe^x", "e^x x"}, {1, "\\frac{n!}{2}", "\\frac{n!}{2}"},
        {1, "2^{n+1}", "2\\cdot 2^n"}, {1, "\\frac{1}{1+e^{-x}}", "\\frac{e^x}{e^x+1}"},
    };
    check_table(pairs, sizeof pairs / sizeof *pairs);
}

// More of every kind, found by trying.
static void test_more_of_every_kind(void) {
    static const Twins pairs[] = {
        {1, "5\\text{ sq. ft}", "5\\text{ square feet}"}, {1, "x=\\pm 2", "2,-2"},
        {1, "x=\\pm 2", "\\pm 2"}, {1, "\\left\\{1,2\\right\\}", "\\{2, 1\\}"}, {0, "x=5", "5=y"},
        {1, "5=x", "5"}, {1, "3 \\text{ or } 5", "5, 3"}, {1, "x > 2", "2 < x"}, {1, "-1<x<1", "(-1,1)"},
        {0, "(1,2)", "[1,2]"}, {1, "\\text{5}", "5"}, {1, "\\frac{\\sqrt{3}}{2}", "\\sin 60^\\circ"},
        {1, "\\$1{,}000", "1000"}, {1, "1{,}000{,}000", "1 million"}, {1, "2\\frac{1}{2}", "2.5"},
        {1, "45\\%", "0.45"}, {1, "0.45", "45\\%"},
        {1, "\\begin{pmatrix}1&0\\\\0&1\\end{pmatrix}",
        "\\left(\\begin{matrix}1&0\\\\0&1\\end{matrix}\\right)"},
        {0, "\\begin{pmatrix}1&0\\\\0&1\\end{pmatrix}", "\\begin{vmatrix}1&0\\\\0&1\\end{vmatrix}"},
        {1, "f(x)=2x+1", "2x+1"}, {1, "x \\in \\{1,2\\}", "\\{1,2\\}"}, {1, "90", "90^{\\circ}"},
        {1, "12 hours", "12\\text{ hr}"}, {1, "3.0\\times 10^8", "3e8"}, {1, "a_n = 2n+1", "2n+1"},
        {0, "a_n=2n+1", "2n-1"}, {0, "a_{n} = a_{n-1}+2", "a_{n}=a_{n+1}+2"},
        {1, "16\\pi\\text{ cubic feet}", "16\\pi"}, {1, "\\frac{5}{8}\\text{ cups}", "5/8"},
        {0, "\\text{Tuesday}", "\\text{Thursday}"}, {0, "10:30\\text{ a.m.}", "10:30\\text{ p.m.}"},
        {0, "10\\text{ a.m.}", "10"}, {0, "3\\text{ left}", "3"}, {0, "5 below", "5"}, {0, "4 each", "4"},
        {1, "\\text{(A)}", "A"}, {1, "(A)", "\\textbf{(A)}"}, {0, "(A)", "(B)"},
        {1, "a+b\\sqrt{2}", "\\sqrt{2}b+a"}, {0, "\\vec{v}=(1,2)", "\\vec{w}=(1,2)"},
        {0, "\\log_a b", "\\log_b a"}, {1, "\\log_a b", "\\frac{\\ln b}{\\ln a}"},
        {1, "\\sqrt{x+1}", "(x+1)^{1/2}"}, {1, "(x-1)(x+1)", "x^2-1"}, {0, "(x-1)(x+1)", "x^2+1"},
        {1, "\\frac{1}{x}+\\frac{1}{y}", "\\frac{x+y}{xy}"},
        {1, "\\frac{-b+\\sqrt{b^2-4ac}}{2a}", "\\frac{\\sqrt{b^2-4ac}-b}{2a}"},
        {1, "2\\sin\\theta\\cos\\theta", "\\sin 2\\theta"}, {1, "n^2+n", "n(n+1)"}, {1, "4k+2", "2(2k+1)"},
        {1, "\\frac{n(n+1)(2n+1)}{6}", "\\frac{2n^3+3n^2+n}{6}"}, {1, "3^{2x}", "9^x"},
        {1, "e^{x+y}", "e^x e^y"}, {1, "\\pi r^2 h", "hr^2\\pi"},
        {1, "\\frac{abc}{4R}", "\\frac{abc}{4R}"},
        {0, "\\inf A", "A\\inf"}, {0, "\\inf A", "\\infty"}, {0, "-\\inf", "-\\infty"},
        {1, "-inf", "-\\infty"},
        {0, "Rh", "hR"}, {1, "2Rh", "2hR"}, {0, "2AB", "2BA"}, {1, "5 mL", "5 ml"},
        {0, "\\{1,1\\}", "\\{1,2\\}"},
        {0, "2hR", "2"}, {0, "x<3<5", "x<3"},
        {0, "5m", "5"}, {0, "2h", "2"}, {0, "3s", "3"}, {1, "5\\text{ m}", "5"}, {0, "5\\text{ M}", "5"},
        {0, "\\operatorname{tr}A", "\\operatorname{rt}A"}, {1, "\\operatorname{lcm}(4,6)", "12"},
        {1, "100 km/h", "100"}, {0, "100 km/h", "100 km"}, {1, "25^\\circ C", "25"},
        {1, "25^\\circ\\text{C}", "25\\text{ degrees Celsius}"}, {1, "x=2\\text{ or }3", "3,2"},
        {1, "\\gcd(a,b)", "\\gcd(b,a)"}, {0, "\\gcd(a,b)", "\\operatorname{lcm}(a,b)"},
        {0, "\\gcd(a,b)", "ab"}, {0, "\\mathbb{R}-\\{0\\}", "x \\ne 0"}, {0, "|x-1000|", "1000-x"},
        {0, "|x-5000|", "5000-x"}, {0, "\\operatorname{Re}z", "\\operatorname{eR}z"},
        {0, "\\prod_{i=1}^n i", "\\sum_{i=1}^n i"}, {0, "a \\propto b", "b \\propto a"},
        {0, "\\bar{x}y", "\\bar{y}x"}, {0, "\\tilde{a}b", "a\\tilde{b}"},
        {0, "\\overset{a}{b}", "\\overset{b}{a}"}, {0, "\\frac{\\partial f}{\\partial x}", "\\frac{f}{x}"},
        {0, "\\sqrt[3]{x^3}", "|x|"}, {0, "a \\leftarrow b", "b \\leftarrow a"},
        {0, "\\oint f", "f \\oint"}, {0, "\\deg f", "f \\deg"}, {0, "x \\oplus y", "y \\oplus x"},
        {0, "A^T B", "B A^C"}, {0, "\\ell m", "m \\imath"}, {0, "\\imath j", "j\\jmath"}, {0, "n!", "n"},
        {0, "\\#A", "A"}, {0, "5'", "5"}, {0, "x^\\ast", "x"}, {0, "x^*", "x"},
        {0, "\\underline{12}", "\\underline{21}"}, {0, "\\overline{12}", "\\overline{21}"},
        {0, "\\cancel{x}y", "y\\cancel{z}"}, {0, "\\ln|x|", "\\ln x"}, {1, "\\ln|x|", "\\ln|{-x}|"},
        {0, "\\arcsin(\\sin x)", "x"}, {0, "\\sqrt{(x-5)^2}", "x-5"}, {1, "\\sqrt{(x-5)^2}", "|5-x|"},
        {0, "\\frac{\\sqrt{x^2}}{x}", "1"}, {0, "(x^2)^{1/2}", "x"}, {0, "\\frac{x+|x|}{2}", "x"},
        {0, "2^{\\log_2 x}", "|x|"},
    };
    check_table(pairs, sizeof pairs / sizeof *pairs);
}

// The verdict doesn't hang on the letter. e and i are constants; f, g, h, F, G, H name functions.
static void test_every_letter(void) {
    static const Twins pairs[] = {
        {0, "@", "\\sqrt{@^2}"}, {0, "@", "|@|"}, {0, "3-@", "|@-3|"}, {0, "@-3", "|@-3|"}, {0, "@^2", "@^4"},
        {0, "100-@", "|@-100|"}, {0, "|@^2-2|", "@^2-2"}, {0, "|@-3|+|@-5|", "|2@-8|"}, {1, "|@|^2", "@^2"},
        {1, "(@+1)^2", "@^2+2@+1"}, {1, "@(@+1)", "@^2+@"}, {1, "\\sqrt{@^3}", "@\\sqrt{@}"},
        {0, "@_{1}", "@_{2}"},
        {1, "2\\cdot @", "@+@"}, {0, "@(2)", "2@"}, {0, "\\max(@,0)", "@"},
        {0, "\\lceil @ \\rceil", "\\lfloor @ \\rfloor+1"},
        {1, "@=5", "5"}, {1, "@>3", "(3,\\infty)"}, {0, "@>3", "[3,\\infty)"}, {0, "|@q|", "@q"},
        {0, "@/|@|", "1"}};
    static const char* const greek[] = {"\\alpha ", "\\beta ", "\\theta ", "\\lambda ", "\\mu ",
                                        "\\omega ", "\\Omega "};
    for (int letter = 'A'; letter <= 'z' + 7; letter++) {
        const char name[2] = {(char)letter, 0};
        if ((letter > 'Z' && letter < 'a') || strchr("eiqfghFGH", letter)) continue;
        for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
            Twins p = pairs[k];
            char text[2][200];
            for (int side = 0; side < 2; side++) {
                text[side][0] = 0;
                for (const char* s = side ? p.b : p.a; *s; s++)
                    if (*s == '@') strcat(text[side], letter > 'z' ? greek[letter - 'z' - 1] : name);
                    else strncat(text[side], s, 1);
            }
            p.a = text[0];
            p.b = text[1];
            check_table(&p, 1);
        }
    }
    // every sign of every variable: only one of 32 signs of five variables is told apart here
    EQUAL("|a b c d k|", "|a||b||c||d||k|");
    DIFFERENT("|a b c d k|", "a b c d k");
    DIFFERENT("|a|+|b|+|c|+|d|+|k|", "|a+b+c+d+k|");
}

static void test_what_follows_a_number(void) {
    static const char* const refused[] = {
        "2 2/3", "1e3", "1.5.2", "3 1/2", "5 thousand", "2 million dollars", "3 dozen eggs", "5 half",
        "5 Thousand",
        "6 hundreds", "42 + 1", "6 * 7", "6*7", "10^3", "1/2/3", "42, 43", "42 or 43", "42 to 43", "3-4",
        "3 - 4",
        "4=4", "5x", "5 x 6", "5 times 6", "2\\pi", "2 \\cdot 3", "5!", "3\xc2\xbd", ("5\xc3\x97" "3"),
        "4\xc2\xb2",
        "3 and a half", "3 and 1/2"};
    static const char* const read[] = {
        "42", "42.", "42.00", "42 apples", "**42** apples", "**42**", "42, because 6*7", "42%", "42 %",
        "42\\%",
        "42 - that is all", "42 \\text{ apples}", "42 a day", "42 (the answer)", "$42/hour",
        "42 and then rest", "42km",
        "42 to go", "42\n43", "$42"};
    char text[80], out[64];
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        snprintf(text, sizeof text, "so\n#### %s", refused[i]);
        if (!extract_hash_answer(text, out, sizeof out) && !*out) continue;
        check_broken++;
        printf("  read as \"%s\": %s\n", out, text);
    }
    for (size_t i = 0; i < sizeof read / sizeof *read; i++) {
        snprintf(text, sizeof text, "so\n#### %s", read[i]);
        if (extract_hash_answer(text, out, sizeof out) && atof(out) == 42) continue;
        check_broken++;
        printf("  not 42 but \"%s\": %s\n", out, text);
    }
}

static int read_truth(const char* text, char* out, int cap) { return extract_truth(out, cap, text); }

// A truth may be a bare answer, a box, or what stands behind ####; every reward reads it in the same way.
static void test_extract_truth(void) {
    check_extract(read_truth, "#### x*", 1, "x");
    check_extract(read_truth, "#### \nx", 0, "");                       // nothing in the line of the mark
    check_extract(read_truth, "83", 1, "83");
    check_extract(read_truth, " \\frac{14}{3} ", 1, "\\frac{14}{3}");
    check_extract(read_truth, "\\boxed{42}", 1, "42");
    check_extract(read_truth, "$\\boxed{\\frac12}$", 1, "\\frac12");
    check_extract(read_truth, "6*7=<<6*7=42>>42\n#### 42", 1, "42");
    check_extract(read_truth, "#### 1,000 apples", 1, "1000");
    check_extract(read_truth, "#### 3 1/2", 1, "3 1/2");      // not 3: #### 3.5 and \boxed{7/2} earn it
    check_extract(read_truth, "#### \\frac{1}{2}\n", 1, "\\frac{1}{2}");
    check_extract(read_truth, "", 0, "");
    check_extract(read_truth, "####", 0, "");
    check_extract(read_truth, "\\boxed{}", 1, "\\boxed{}");
    static const char* const truths[] = {"42", "\\boxed{42}", "so\n#### 42", "$\\boxed{42}$"};
    for (int i = 0; i < 4; i++) {
        CHECK(reward_boxed("\\boxed{42}", truths[i]) == 1 && reward_boxed("\\boxed{4}", truths[i]) == 0);
        CHECK(reward_gsm8k("#### 42", truths[i]) == 1 && reward_gsm8k("#### 4", truths[i]) == 0);
        CHECK(reward_partial("it is 42", truths[i]) == 0.5f);
        CHECK(reward_partial("\\boxed{4}", truths[i]) == 0.1f);
    }
    CHECK(reward_gsm8k("#### 3.5", "#### 3 1/2") == 1);
    CHECK(reward_gsm8k("#### 3", "#### 3 1/2") == 0);
    CHECK(reward_gsm8k("#### 5000", "#### 5 thousand") == 1);
    CHECK(reward_gsm8k("#### 5", "#### 5 thousand") == 0);
    CHECK(reward_boxed("\\boxed{3.5}", "#### 3 1/2") == 1);
    CHECK(reward_boxed("", "") == 0);
}

// A name, a unit and brackets come off, one after the other; what is inside is read again.
static void test_what_comes_off(void) {
    static const Twins pairs[] = {
        {1, "x\\in(0,1)", "0<x<1"}, {0, "x\\in(0,1)", "0<y<1"}, {0, "x\\in(0,1)", "0\\le x<1"},
        {1, "S=\\{1,2\\}", "1,2"}, {0, "S=\\{1,2\\}", "x=1,x=2"}, {0, "\\{1,1,2\\}", "1,2"},
        {1, "x=50\\%", "0.5"}, {1, "(5\\text{ cm})", "5"}, {1, "x=5\\text{ cm}", "5"},
        {1, "S=\\{\\pm1,2\\}", "\\{-1,1,2\\}"}, {0, "x=", "=x"}, {0, "()", "\\{\\}"},
        {1, "2x>6", "6<2x"}, {1, "a+b>c", "c<a+b"}, {0, "1<x>5", "(5,\\infty)"},
    };
    check_table(pairs, sizeof pairs / sizeof *pairs);
}

// A unit is a factor at the end, or a currency in front. Elsewhere it is a word, and a word is no number.
static void test_where_a_unit_stands(void) {
    static const Twins pairs[] = {
        {0, "\\$5\\%", "\\$5"}, {0, "\\$36\\text{ cm}", "\\$36"}, {0, "5\\% x", "5x"},
        {0, "100(1+5\\%)", "600"}, {0, "5\\text{ feet }6\\text{ inches}", "30"}, {0, "triangle", "1"},
        {0, "\\text{th}", "1"}, {0, "\\text{prime}", "1"}, {0, "5/\\text{cent}", "5"},
        {0, "180^\\circ", "\\pi"},
        {1, "10\\sin 40\\text{ cm}", "10\\sin 40"}, {1, "\\cot 90^\\circ", "0"},
        {1, "10+10\\sqrt{3}\\text{ cm}", "10+10\\sqrt3"}, {1, "\\frac13\\text{ cm}", "\\frac26 cm"},
        {0, "0.333333333333\\text{ cm}", "\\frac13\\text{ cm}"}, {1, "1/2 million", "500000"},
        {0, "20\\text{ cm}", "20\\text{ cm}^2"}, {1, "5 km/h", "5\\text{ kilometers per hour}"},
        {0, "5 km/h", "5\\text{ km h}"}, {1, "7 boxes", "7 box"}, {1, "\\text{(e)}", "e"},
    };
    check_table(pairs, sizeof pairs / sizeof *pairs);
}

// Raised digits stand together, and LaTeX knows no second exponent.
static void test_raised_digits(void) {
    EQUAL("x\xe2\x81\xb4", "x^4");             DIFFERENT("x\xc2\xb2\xc2\xb3", "x^{23}");
    DIFFERENT("x\xc2\xb2\xc2\xb3", "x^8");     DIFFERENT("x^{2}^{3}", "x^8");
    EQUAL("{x}^{2}y^{3}", "x^2y^3");           EQUAL("\\binom72", "21");
}

// Wrong answers that were once paid: what rounding hides, what a letter, a bracket or a sign is taken for.
static void test_what_was_paid_once(void) {
    static const Twins pairs[] = {
        {0, "\\sqrt{-4}", "-2i"}, {1, "\\sqrt{-4}", "2i"}, {0, "1-(2/3)^{100}", "1"}, {0, "2^{-2000}", "0"},
        {0, "1e999", "1e998"}, {0, "N=1234567890", "N=1234567891"}, {0, "x^2\\frac12", "x^{5/2}"},
        {1, "\\sqrt3\\frac12", "\\frac{\\sqrt3}2"}, {0, "(\\pm1,\\pm2)", "(1,2),(-1,-2)"},
        {0, "0.333...", "0.333"}, {0, "\\sec^{-1}x", "\\cos x"}, {0, "e^{st}", "e"}, {0, "3!!", "720"},
        {0, "5{3}", "15"}, {0, "0,100", "100"}, {1, "\\lfloor\\log_{10}1000\\rfloor", "3"},
        {0, "\\pi", "245850922/78256779"}, {0, "5\\mathbf F", "5"}, {1, "\\mathbf{7}", "7"},
        {0, "5\\text{ M}", "5\\text{ m}"}, {0, "\\{\\emptyset\\}", "\\emptyset"},
        {0, "\\{x=2,y=3\\}", "\\{3,2\\}"}, {0, "A\\setminus B\\cup C", "A\\setminus(B\\cup C)"},
        {1, "x<=3", "x\\le3"}, {1, "1<=x<=3", "[1,3]"},
        {0, "([[1,2]],5)", "(5,[[1,2]])"}, {0, "([[1,2]],5)", "5,[[1,2]]"}, {1, "([[1,2]])", "[[1,2]]"},
        {0, "\\sqrt[3]27", "3"}, {0, "\\frac{x}12", "\\frac{x}{12}"}, {1, "x\\text{ million}", "1000000x"},
    };
    check_table(pairs, sizeof pairs / sizeof *pairs);
}

/* ---- docs/answers.md shows the tables of the appendix ---- */

static const char DOC[] = "docs/answers.md";
static const char MARK[] = "<!-- from here on written by make golden -->\n";

// The entries of a list from first on, before end (-1: to the last): on one line those with one spelling, then
// the others, a line each.
static void append_entries(Text* text, const char* title, const char* list, int first, int end) {
    text_printf(text, "\n## %s\n\n", title);
    for (int several = 0; several < 2; several++) {
        const char* entry = list;
        int written = 0;
        for (int i = 0; *entry && i != end; i++) {
            int length = (int)strcspn(entry, " "), more = memchr(entry, '|', (size_t)length) != NULL;
            if (i >= first && more == several) {
                text_printf(text, "%s%.*s", several ? "- `" : written ? " " : "- `", length, entry);
                if (several) text_printf(text, "`\n");
                written++;
            }
            entry += length + (entry[length] == ' ');
        }
        if (written && !several) text_printf(text, "`\n");
    }
}

static void append_names(Text* text, const char* title, int first, int end) {
    append_entries(text, title, NAMES, first - F_SIN, end - F_SIN);
}

// The lists, as the document must show them: every entry of the tables, in their order.
static Text written_tables(void) {
    Text text = {0};
    append_entries(&text, "Units: each word of the first line is one, then each line", UNITS, 0, -1);
    append_names(&text, "Functions", F_SIN, N_PI);
    append_names(&text, "Constants", N_PI, N_CUP);
    append_names(&text, "Signs and relations", N_CUP, N_QUOTE);
    append_names(&text, "Commands around words", N_QUOTE, N_VARIABLE);
    append_names(&text, "Greek letters", N_VARIABLE, N_NUMBER);
    text_printf(&text, "\n## Short words: no product, when they are the whole answer\n\n- `%s`\n", SHORT_WORDS);
    text_printf(&text, "\n## Spellings\n\n");
    for (int i = 0; i < SPELLING_ROWS; i++) {
        const char *row = SPELLINGS[i], *read = strrchr(row, ' ');
        text_printf(&text, "- `%s` for `%.*s`\n", read[1] ? read + 1 : " ", (int)(read - row), row);
    }
    return text;
}

static void test_document_shows_the_tables(void) {
    Text doc = read_file(DOC), tables = written_tables();
    const char* mark = strstr(doc.data, MARK);
    if (!mark || strcmp(mark + strlen(MARK), tables.data)) {
        check_broken++;
        printf("  %s doesn't show the tables of the appendix: make golden mends it\n", DOC);
    }
    text_free(&doc), text_free(&tables);
}

static void write_document(void) {
    Text doc = read_file(DOC), tables = written_tables();
    char* mark = strstr(doc.data, MARK);
    FILE* file = mark ? fopen(DOC, "w") : NULL;
    if (!file) fail(1, "%s: cannot be written, or its mark is gone", DOC);
    mark[strlen(MARK)] = 0;
    fprintf(file, "%s%s", doc.data, tables.data);
    fclose(file);
    text_free(&doc), text_free(&tables);
}

/* ---- calculator ---- */

static void check_calculate(const char* expression, const char* expected) {
    char out[64] = "untouched";
    int ok = calculate(expression, out, sizeof out);
    CHECK_TEXT(out, expected);
    CHECK(ok == (expected[0] != 0));
}

static void test_calculate(void) {
    check_calculate("48/2", "24");
    check_calculate("12/60", "0.2");
    check_calculate("2+3*4", "14");            // not 20
    check_calculate("(2+3)*4", "20");
    check_calculate("20-5-5", "10");           // left to right
    check_calculate("100/5/2", "10");
    check_calculate("7-(-2)", "9");
    check_calculate("-(2+3)*-4", "20");
    check_calculate("5*-2", "-10");
    check_calculate(" 1 + 2 ", "3");
    check_calculate("1,000*2", "2000");
    check_calculate("(1,000+2)", "1002");
    check_calculate("20*.1", "2");
    check_calculate("0.1+0.2", "0.3");         // in doubles 0.30000000000000004
    check_calculate("1000000.1-1000000", "0.1");
    check_calculate("2/3*3", "2");
    check_calculate("1/3", "0.333333333333");  // 12 significant digits
    check_calculate("200/3", "66.6666666667");
    check_calculate("1/8000", "0.000125");
    check_calculate("560//10", "56");
    check_calculate("7//2", "3");
    check_calculate("-7//2", "-4");            // down, as in Python
    check_calculate("0-0", "0");
    check_calculate("-0", "0");
    check_calculate("99999999*99999999", "9999999800000001");
    // 1.07^10 leaves the exact range, the double is good to 12 digits: 1.96715135728956...
    check_calculate("1.07*1.07*1.07*1.07*1.07*1.07*1.07*1.07*1.07*1.07", "1.96715135729");
}

static void test_calculate_refuses(void) {
    static const char* const refused[] = {
        "", " ", "2**3", "2^3", "1/0", "1/(2-2)", "5//0", "0/0", "2(3)", "(2)(3)", "2 3", "1 1/2", "1e5",
        "x+1",
        "(1", "1)", "()", "1+", "*2", "1..2", ".", "1,00+2", "1,2", "$5+1", "50%", "1=1", "5!", "max(1,2)",
        "6/ /2", "import os", "999999999999999999*999999999999999999*99"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) check_calculate(refused[i], "");
    char deep[300], out[64], tiny[3];
    memset(deep, '(', 100);
    deep[100] = '1';
    memset(deep + 101, ')', 100);
    deep[201] = 0;
    check_calculate(deep, "");
    memset(deep, '1', 299);
    for (int i = 1; i < 299; i += 2) deep[i] = '+';
    deep[299] = 0;                             // 150 ones, 299 bytes: too long
    check_calculate(deep, "");
    deep[255] = 0;                             // 128 ones, 255 bytes
    check_calculate(deep, "128");
    CHECK(calculate("100", tiny, sizeof tiny) == 0);   // "100" and its end need 4 bytes
    CHECK_TEXT(tiny, "");
    CHECK(calculate("10", tiny, sizeof tiny) == 1);
    (void)out;
}

/* ---- properties ---- */

static int roll(Rng* rng, int n) { return (int)(random_u64(rng) % (uint64_t)n); }

// Writes a random expression tree in two spellings at once: a plain one to x, one in LaTeX with sums and
// products turned round to y. The two are equal by construction. With *change = 1 the first number of y is
// one larger, and only operations appear in which that must show (positive numbers, squares of variables, no
// minus: every step grows or falls strictly with each of its parts). *change is 0 afterwards when a number
// was found.
static void write_twins(char* x, char* y, Rng* rng, int depth, int* change, int positive) {
    char xa[4000], ya[4000], xb[4000] = "", yb[4000] = "";
    int kind = depth == 0 ? roll(rng, 2) : 2 + roll(rng, 6);
    if (kind == 0) {
        int n = 1 + roll(rng, 9);
        sprintf(x, "%d", n);
        sprintf(y, roll(rng, 2) ? "%d.0" : "%d", n + *change);
        *change = 0;
        return;
    }
    if (kind == 1) {
        char c = "abxyz"[roll(rng, 5)];
        sprintf(x, positive ? "%c^2" : "%c", c);
        sprintf(y, positive ? "{%c^{2}}" : roll(rng, 2) ? "{%c}" : "(%c)", c);
        return;
    }
    if (positive && kind == 3) kind = 2;
    write_twins(xa, ya, rng, depth - 1, change, positive);
    if (kind < 6) write_twins(xb, yb, rng, depth - 1, change, positive);
    switch (kind) {
    case 2: sprintf(x, "(%s+%s)", xa, xb); sprintf(y, "\\left(%s + %s\\right)", yb, ya); break;
    case 3: sprintf(x, "(%s-%s)", xa, xb); sprintf(y, "(-%s+{%s})", yb, ya); break;
    case 4: sprintf(x, "%s*%s", xa, xb); sprintf(y, "{%s} \\cdot {%s}", yb, ya); break;
    case 5: sprintf(x, "((%s)/(%s+100))", xa, xb); sprintf(y, "\\dfrac{%s}{100+%s}", ya, yb); break;
    case 6: sprintf(x, "(%s)^2", xa); sprintf(y, "({%s}\\times{%s})", ya, ya); break;
    default: sprintf(x, "(sqrt((%s)^2+1))", xa); sprintf(y, "\\sqrt{1 + {%s}^{2}}", ya); break;
    }
}

static void test_rewritten_expressions_stay_equal(void) {
    Rng rng = {5};
    int tried = 0;
    while (tried < 3000) {
        char x[20000], y[20000];
        int change = 0;
        write_twins(x, y, &rng, 1 + roll(&rng, 3), &change, 0);
        if (strlen(x) > 900 || strlen(y) > 900) continue;
        tried++;
        EQUAL(x, y);
    }
}

static void test_changed_expressions_differ(void) {
    Rng rng = {6};
    int tried = 0;
    while (tried < 3000) {
        char x[20000], y[20000];
        int change = 1;
        write_twins(x, y, &rng, 1 + roll(&rng, 3), &change, 1);
        if (change || strlen(x) > 900 || strlen(y) > 900) continue;  // there was no number to change
        tried++;
        DIFFERENT(x, y);
    }
}

// Random fractions a/b: equal exactly when a d = b c.
static void test_random_fractions(void) {
    Rng rng = {7};
    for (int i = 0; i < 20000; i++) {
        int a = roll(&rng, 12), b = 1 + roll(&rng, 12), c = roll(&rng, 12), d = 1 + roll(&rng, 12);
        char x[64], y[64];
        sprintf(x, "\\frac{%d}{%d}", a, b);
        sprintf(y, "%d/%d", c, d);
        check_pair(x, y, a * d == b * c, __LINE__);
    }
}

// Random strings from the alphabet of answers: symmetric, reflexive, and finished at all.
static void test_symmetric_and_reflexive(void) {
    static const char* const pieces[] = {
        "1", "2", "x", "+", "-", "*", "/", "^", "(", ")", "[", "]", "{", "}", ",", "=", "<", "\\frac",
        "\\sqrt", "\\pm", "\\pi", " ", ".", "%", "\\text{a b}", "\\cup", "|", "_", "!", "\\{", "\\}", "cm",
        "\\\\", "&", "$", "\\$"};
    const int count = sizeof pieces / sizeof *pieces;
    Rng rng = {8};
    for (int i = 0; i < 40000; i++) {
        char text[2][400];
        for (int k = 0; k < 2; k++) {
            text[k][0] = 0;
            for (int n = 1 + roll(&rng, 12); n > 0; n--) strcat(text[k], pieces[roll(&rng, count)]);
        }
        CHECK(answers_equal(text[0], text[1]) == answers_equal(text[1], text[0]));
        CHECK(answers_equal(text[0], text[0]));
    }
}

// The calculator against a sum that is known: n terms a_i / 4, printed with all their digits.
static void test_calculate_random_sums(void) {
    Rng rng = {9};
    for (int i = 0; i < 5000; i++) {
        char text[256] = "0", expected[64];
        int quarters = 0;
        for (int n = 1 + roll(&rng, 10); n > 0; n--) {
            int a = roll(&rng, 2000) - 1000;
            quarters += a;
            sprintf(text + strlen(text), roll(&rng, 2) ? "+%d/4" : "+(%d*0.25)", a);
        }
        static const char* const fractions[] = {"", ".25", ".5", ".75"};
        int size = quarters < 0 ? -quarters : quarters;
        sprintf(expected, "%s%d%s", quarters < 0 ? "-" : "", size / 4, fractions[size % 4]);
        check_calculate(text, expected);
    }
}

// Lists, sets, relations and unions of 28 to 36 parts, the last of which may be two: around the room there is
static void test_many_parts(void) {
    static const char* const forms[][3] = {
        {"", ",", ""}, {"\\{", ",", "\\}"}, {"", "<", ""}, {"", "\\cup", ""}};
    for (int n = 28; n <= 36; n++)
        for (int f = 0; f < 8; f++) {
            Text a = {0}, b = {0};
            const char* const* form = forms[f / 2];
            for (int i = 1; i <= n; i++) {
                const char* sign = f % 2 ? "\\pm" : "";
                text_printf(&a, "%s%s%d", i == 1 ? form[0] : form[1], i == n ? sign : "", i);
                text_printf(&b, "%s%s%d", i == 1 ? form[0] : form[1], i == 1 ? sign : "", n + 1 - i);
            }
            text_printf(&a, "%s", form[2]);
            text_printf(&b, "%s", form[2]);
            int equal = answers_equal(a.data, b.data);
            CHECK(n > 31 || f / 2 == 2 || equal);           // more than two relations are text
            text_free(&a), text_free(&b);
        }
}

static void test_answers(void) {
    RUN(test_extract_boxed);
    RUN(test_extract_hash_answer);
    RUN(test_extract_lenient);
    RUN(test_rewards_of_the_four_rollouts);
    RUN(test_reward_gsm8k);
    RUN(test_plain_numbers);
    RUN(test_fractions_are_exact);
    RUN(test_mixed_numbers);
    RUN(test_units_and_currency);
    RUN(test_base_subscripts);
    RUN(test_roots_and_powers);
    RUN(test_constants_and_functions);
    RUN(test_expressions_with_variables);
    RUN(test_known_limits);
    RUN(test_garbage_is_unequal);
    RUN(test_bounds);
    RUN(test_words_and_choices);
    RUN(test_tuples_and_intervals);
    RUN(test_lists_and_sets);
    RUN(test_matrices);
    RUN(test_equations);
    RUN(test_functions_of_two_arguments);
    RUN(test_commands_outside_of_the_list);
    RUN(test_subscripts_and_functions);
    RUN(test_signs_and_sizes);
    RUN(test_words);
    RUN(test_names_and_relations);
    RUN(test_number_words);
    RUN(test_units);
    RUN(test_long_decimals);
    RUN(test_spellings);
    RUN(test_matrices_in_every_spelling);
    RUN(test_money);
    RUN(test_sets_of_numbers);
    RUN(test_percent);
    RUN(test_expressions);
    RUN(test_more_of_every_kind);
    RUN(test_every_letter);
    RUN(test_what_comes_off);
    RUN(test_where_a_unit_stands);
    RUN(test_raised_digits);
    RUN(test_what_follows_a_number);
    RUN(test_extract_truth);
    RUN(test_document_shows_the_tables);
    RUN(test_calculate);
    RUN(test_calculate_refuses);
    RUN(test_rewritten_expressions_stay_equal);
    RUN(test_changed_expressions_differ);
    RUN(test_random_fractions);
    RUN(test_symmetric_and_reflexive);
    RUN(test_many_parts);
    RUN(test_what_was_paid_once);
    RUN(test_calculate_random_sums);
}
