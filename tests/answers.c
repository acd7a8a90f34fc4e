// answers.c - the verifier and the calculator: each rule with what it must accept, and beside it the nearest
// thing that it must refuse. A rule is only tested by the pair.

static void check_pair(const char* a, const char* b, int expected) {
    int there = answers_equal(a, b), back = answers_equal(b, a);
    if (there != expected || back != expected)
        BROKEN("\"%s\" and \"%s\": %d and, back, %d; expected %d\n", a, b, there, back, expected);
}

// A row holds its first answer against each of the others: "5! == 120 != 5".
static void check_answers(const char* row) {
    char answer[2][400];
    int count = 0, expected = 1;
    for (const char *p = row, *end; p; p = *end ? end + 4 : NULL) {
        for (end = p; *end && strncmp(end, " == ", 4) && strncmp(end, " != ", 4);) end++;
        snprintf(answer[count > 0], sizeof *answer, "%.*s", (int)(end - p), p);
        if (count++) check_pair(answer[0], answer[1], expected);
        expected = end[0] && end[1] == '=';
    }
    CHECK(count > 1);
}

// ---- functions from text to text: "text -> result", or a text alone, which has none

typedef int Reader(const char* text, char* out, int cap);

#define READS(read, found, ...) check_reader(read, found, (const char*[]){__VA_ARGS__, NULL})
static void check_reader(Reader* read, int found, const char* const* rows) {
    for (; *rows; rows++) {
        char text[400], out[64] = "untouched", *arrow;
        snprintf(text, sizeof text, "%s", *rows);
        if ((arrow = strstr(text, " ->"))) *arrow = 0;
        const char* expected = !arrow ? "" : arrow[3] ? arrow + 4 : arrow + 3;
        int status = read(text, out, sizeof out);
        if (status != (arrow ? found : 0) || strcmp(out, expected))
            BROKEN("%s, but found %d: \"%s\"\n", *rows, status, out);
    }
}

static void boxed_answers_are_read(void) {
    READS(extract_boxed, 1, "\\boxed{83} -> 83", "so \\boxed {  83 } . -> 83", "\\boxed{} ->",
          "\\boxed{1} then \\boxed{2} -> 2",                                        // the last
          "\\boxed{\\frac{1}{\\sqrt{2}}} end} -> \\frac{1}{\\sqrt{2}}",             // nested
          "\\boxed{\\left\\{1,2\\right.} -> \\left\\{1,2\\right.",                  // \{ groups nothing
          "\\boxed{a\\\\} -> a\\\\",                                                // \\ and then }
          "\\boxed{1} and \\boxed{2 -> 1", "\\boxed{x \\boxed{2} y -> 2",              // cut off
          "\\boxed{\\boxed{7}} -> 7", "\\boxed 83", "the answer is 83", "");
    READS(extract_lenient, 1, "x \\boxed{5} y 6 -> 5");                             // a box wins,
    READS(extract_lenient, 2, "The final answer is 83. -> 83", "from -3 to -4.5 degrees -> -4.5",
          "so .5 of it -> .5", "that is 1,200 of 14/3 -> 14/3", "7-4 -> 4");        // then the last number,
    READS(extract_lenient, 3, "  Evelyn  -> Evelyn", "  ");                         // then the text
}

static void numbers_behind_a_mark_are_read(void) {
    READS(extract_hash_answer, 1, "#### 42 -> 42", "####42. -> 42", "#### 42.00 -> 42.00", "#### +7 -> 7",
          "#### $1,080.50 in all -> 1080.50", "#### \\$18 -> 18", "#### **42** apples -> 42", "#### .5 -> .5",
          "#### -5 -> -5", "#### -$5 -> -5", "#### $-5 -> -5", "#### −5 -> -5", "#### 3/4 cup -> 3/4",
          "#### 1,234,567 -> 1234567", "#### 42, because 6*7 -> 42",
          "#### 41 no #### 42 -> 42", "#### 42\n#### so",                       // the last, which has none
          "####\n42", "#### 1,00", "#### 1234,567", "#### 1,0000", "#### forty-two", "### 42", "42");
    // what follows the number may make it another one
    READS(extract_hash_answer, 1, "#### 2 2/3", "#### 1e3", "#### 1.5.2", "#### 3 1/2", "#### 5 thousand",
          "#### 2 million dollars", "#### 3 dozen eggs", "#### 5 half", "#### 5 Thousand", "#### 6 hundreds",
          "#### 42 + 1", "#### 6 * 7", "#### 6*7", "#### 10^3", "#### 1/2/3", "#### 42, 43", "#### 42 or 43",
          "#### 42 to 43", "#### 3-4", "#### 3 - 4", "#### 4=4", "#### 5x", "#### 5 x 6", "#### 5 times 6",
          "#### 2\\pi", "#### 2 \\cdot 3", "#### 5!", "#### 3½", "#### 5×3", "#### 4²",
          "#### 3 and a half", "#### 3 and 1/2");
    READS(extract_hash_answer, 1, "#### 42 apples -> 42", "#### **42** -> 42", "#### 42% -> 42",
          "#### 42 % -> 42", "#### 42\\% -> 42", "#### 42 - that is all -> 42",
          "#### 42 \\text{ apples} -> 42", "#### 42 a day -> 42", "#### 42 (the answer) -> 42",
          "#### $42/hour -> 42", "#### 42 and then rest -> 42", "#### 42km -> 42", "#### 42 to go -> 42",
          "so\n#### 42\n43 -> 42", "#### $42 -> 42");
}

static int read_truth(const char* text, char* out, int cap) { return extract_truth(out, cap, text); }

// A truth may be a bare answer, a box, or what stands behind ####; every reward reads it in the same way.
static void truths_are_read(void) {
    READS(read_truth, 1, "83 -> 83", " \\frac{14}{3}  -> \\frac{14}{3}", "\\boxed{42} -> 42", "#### x* -> x",
          "$\\boxed{\\frac12}$ -> \\frac12", "6*7=<<6*7=42>>42\n#### 42 -> 42", "#### 1,000 apples -> 1000",
          "#### 3 1/2 -> 3 1/2", "#### \\frac{1}{2}\n -> \\frac{1}{2}", "\\boxed{} -> \\boxed{}", "", "####",
          "#### \nx");                                                  // nothing in the line of the mark
}

static void no_answer_is_cut(void) {
    static const struct { Reader* read; const char *fits, *long_one; } cases[] = {
        {extract_boxed, "\\boxed{123}", "\\boxed{1234}"},             // 4 characters and the end need 5 bytes
        {extract_hash_answer, "#### 123", "#### 1234"}, {calculate, "123", "1234"}};
    for (int i = 0; i < 3; i++) {
        char out[4] = "abc";
        CHECK(cases[i].read(cases[i].long_one, out, sizeof out) == 0 && !*out);
        CHECK(cases[i].read(cases[i].fits, out, sizeof out) == 1 && !strcmp(out, "123"));
    }
}

// ---- answers_equal

#define COLUMN "\\begin{pmatrix} -1/3 \\\\ 2/3 \\\\ 5/3 \\end{pmatrix}"

static const char* const answer_rows[] = {
    // Numbers. Of digits that don't fit the text is compared: 20 are more than an int64_t holds. Many
    // digits are never a fraction, a root or pi: people write them when they round.
    "42 == 42.0 != 43 != -42", "42. == +42", "-0 == 0.00", "1,000 == 1000 != 1",
    "11,\\! 111,\\! 111 == 11,111,111", "10{,}080 == 10080", "1,00 != 100",
    "12345678901234567890 != 12,345,678,901,234,567,890", "1/3 != 0.3333333333333333333",
    "\\sqrt{2} != 1.4142135623730951 != 1.41421356237309504880",
    "\\pi != 3.141592653589793 != 3.14159265358979323846", "0.142857142857142857142857 != 1/7",
    "0.50000000000000000001 != 1/2", "12345678901234567890/2 != 12345678901234567891/2",
    // Number words multiply; "5 thousand" is no quantity of 5.
    "5 != 5 thousand != 5 hundred", "5000 == 5 thousand", "2 million dollars == 2,000,000",
    "500 == 5 hundred", "3 dozen == 36 != 3", "4 != 4 half", "\\$3 billion == 3000000000",
    // Fractions are exact; digits that repeat are not in the grammar. \frac919 is 9/19, or 9/1 times 9, and
    // 1\frac32 a mixed number or a product: nobody can say which.
    "\\frac{14}{3} == 14/3 != 3/14", "\\dfrac{1}{2} == 0.5 != 0.51", "\\frac12 == \\tfrac{2}{4} != 12",
    "\\frac9{19} != \\frac919", "-\\frac{1}{2} == \\frac{-1}{2}", "1/3 != 0.333333333333 != 0.\\overline{3}",
    "0.\\overline{3} != 0.3", "1/0 == 1/0 != 2/0", "1\\frac{4}{5} == 9/5 != 14/5",
    "137 \\frac{1}{2} == 137.5 != 1371/2", "3 1/2 == 3.5 != 31/2", "-1\\frac12 == -1.5 != -0.5",
    "2\\frac{x}{3} == 2x/3 != 2 + x/3", "1\\frac32 != 2.5", "3½ == 3.5",
    // Bases (5*8 + 2 = 42, but the question was how to write it), roots (117 = 9 * 13), powers (2^(3^2) =
    // 2^9; overflow is no value). Raised digits stand together, and LaTeX knows no second exponent.
    "52_8 == 52_{8} != 528", "1A_{16} == 1A_16", "11\\sqrt2 == 11√2 != 11*2",
    "\\sqrt[3]{8} == 2 != \\sqrt{8}", "-2 == \\sqrt[3]{-8} == (-8)^{1/3}",
    "\\frac{1}{\\sqrt{2}} == \\frac{\\sqrt2}{2}", "2^{10} == 1024 != 2^{1}0", "2^3^2 == 512 != 64",
    "x² == x^2 != x2", "x¹⁰ != x^{1}", "\\sqrt{2} != 1.4142", "\\pi != 3.14159 != 22/7", "5! == 120 != 5",
    "0^0 != 1", "9^{9^{9}} != 9^{9^{8}}", "x⁴ == x^4", "x²³ != x^8", "x^{2}^{3} != x^8", "\\binom72 == 21",
    // Constants and functions; gcd, lcm, max, min and binomials of numbers are evaluated.
    "\\pi == π", "\\cot x == \\cotx == cos(x)/sin(x) != \\tan x",
    "1 == \\sin^2 x + \\cos^2 x != \\sin x^2 + \\cos x^2", "\\sin 2x == 2 \\sin x \\cos x != 2\\sin x",
    "\\sin^{-1} 1 == pi/2 != 1/\\sin 1", "3 == \\log_2 8 == \\log_{10} 1000 == |{-3}|",
    "2 == \\log 100 != \\log_2 8", "e^{\\ln 5} == 5", "|x-1| == \\lvert 1-x \\rvert != x-1",
    "6 - 5i == 6-5i != 6+5i", "(1+i)^2 == 2i", "-1 == e^{i\\pi} == \\min(3,-1)",
    "\\infty == infinity != -\\infty", "\\binom{6}{2} == \\binom{6}{4} != \\binom{4}{3}",
    "\\binom{10}{3} == 120", "\\gcd(12,18) == 6", "\\max(3,7) == 7",
    "12 == \\operatorname{lcm}(4,6) == \\text{lcm}(4,6) == \\gcd(48,36) == \\text{gcd}(48,36)",
    "\\binom{n}{2} == \\frac{n(n-1)}{2}", "\\max\\{2,9,4\\} == 9",
    // Expressions. 10^30 pi swallows every number: what is left after subtracting it is no number at all.
    "(x+1)^2 == x^2+2x+1 != x^2+1", "\\frac{11+9a}{20} == (11+9a)/20 != 11+9a/20", "xy == yx != x+y",
    "x_1 + x_2 == x_{2}+x_{1}", "2xy == 2 x \\cdot y != 2x+y",
    "(x-2)^{10} == x^{10}-20x^9+180x^8-960x^7+3360x^6-8064x^5+13440x^4-15360x^3+11520x^2-5120x+1024",
    "10^{30}\\pi - 10^{30}\\pi != 83", "10^{30}\\pi + 83 - 10^{30}\\pi != 0", "sinx == \\sin x",
    "2AB == AB\\cdot 2", "e^{x^2} == e^{x*x}", "12\\pi\\text{ in}^2 == 12\\pi",
    "\\displaystyle\\frac{1}{2} == 0.5", "12 == \\textbf{12} != 12!", "\\cos^2\\theta == 1-\\sin^2\\theta",
    "\\tan x == \\frac{\\sin x}{\\cos x}", "\\sin 2x == 2\\sin x\\cos x", "xe^x == e^x x",
    "\\frac{1}{1+e^{-x}} == \\frac{e^x}{e^x+1}", "\\theta + 1 == 1 + theta",
    // Every variable takes both signs and many sizes: |x|, sqrt(x^2), max and floor show.
    "t == \\sqrt[3]{t^3} != \\sqrt{t^2}", "3-x != |x-3", "\\sqrt{x^3} == x\\sqrt{x}",
    "|x-3|+|x-5| != |2x-8 != |2x-8|", "n != |n", "\\sqrt{ab} != \\sqrt{a}\\sqrt{b}",
    // only one of the 32 signs of five variables tells these apart
    "|a b c d k| == |a||b||c||d||k| != a b c d k", "|a|+|b|+|c|+|d|+|k| != |a+b+c+d+k|",
    // A name has its whole subscript, and f(2) is no product; x(y+1) is one.
    "f(2) != 2f(1) != f'(2)", "(3,2) == (p,q)=(3,2) == (x,y)=(3,2) != (p,q)=(2,3)", "f^{-1}(2) != 2f^{-1}(1)",
    "f(x)+1 == 1+f(x)", "(x,y)=(1,2) == (1,2) != (a,b)=(1,2)",
    "a_{n+1} + a_n == a_n + a_{n+1} != a_{n-1}+a_n", "(x, y) = \\left(\\frac12, 3\\right) == (0.5,3)",
    "(1,1,2) != (1,2)", "\\(5\\) == 5", "f(x+1) != f(x)+f(1)", "\\sigma(6) != 6\\sigma",
    // Equations and relations. A value keeps its name; one name may be left out on one side, several in their
    // own order only. x = x says nothing.
    "(3x-9)/2 = x+37 == x = 83 != x = 84", "y = 2x + 3 == 2x - y + 3 = 0 != 2x + y + 3 = 0",
    "5 == 5 = x != xy = 5", "f(x) = x^2 == x^2 != g(x) = x^2", "5x - 7y + 11z + 4 = 0 == -5x+7y-11z=4",
    "x = x != y = y", "x^2 = 4 != x = 2", "\\mu = 3 == 3", "x=2,y=3 == 2,3 != 3,2", "x<5 != x>5",
    "x \\in S != x = S", "x>3 == (3,\\infty) != [3,\\infty)", "x=2,3 != 2,x=3",
    "x=3\\text{ and }y=2 == x=3, y=2", "x=1,y=4 != 4,1", "a=3,b=4,c=5 == 3,4,5 != 4,3,5",
    "x=5 == $x=5$ != y=5", "y = 3x+1 == 3x-y+1=0",
    // Tuples and intervals: a pair is not a list, and no thousands. Lists: each item is used once.
    "(1,2.0) == ((1,2))", "(-\\infty, 0] == (-inf,0]", "(-\\infty,0] != (\\infty,0]",
    "(2,\\infty) == (2,+\\infty) != (3,\\infty)", "(1,2) != (1,2,3)", "(100,200) == (100.0, 200) != 100200",
    "(0,9) \\cup (9,36) == (9,36)\\cup(0,9)", "(0,9)U(9,36) == (0,9) ∪ (9,36)",
    "[-2,7] == -2 \\le x \\le 7 != -2 \\le x < 7", "[3,\\infty) == x \\geq 3 != x > 3",
    "7 \\ge x > -2 == (-2,7]", "\\mathbb{R} == (-\\infty,\\infty)", "3,5,5 != 3,3,5",
    "\\{1,2\\} == 1 \\text{ and } 2 != \\{1,3\\}", "\\emptyset == \\{\\} != 0",
    "1 \\pm \\sqrt{19} == 1\\pm*sqrt(19) != 1+\\sqrt{19}", "\\pm 5 == \\mp 5",
    "(\\pm 1, \\mp 2) == (1,-2), (-1,2) != (1,2), (-1,-2)", "\\{a,b\\} == b, a",
    "\\{1\\pm\\sqrt{5},-2\\} == -2, 1+sqrt(5), 1-sqrt(5)", "100, 200 == 200, 100 != 100,200",
    // Sets are the same when the same numbers belong to them.
    "\\mathbb{R}\\setminus\\{0\\} != (-\\infty,0)\\cup(0,\\infty) != x\\neq 0", "[0,2]\\cup[1,3] != [0,3]",
    "\\{1,1,2\\} == \\{1,2\\} != \\{1,3\\}", "\\{1,2\\} != \\{1,1\\}", "B \\cup A == A\\cup B == A \\cup B",
    "\\{-1, 3\\} == x = -1 \\text{ or } x = 3", "A \\cap B == B \\cap A != A \\cup B",
    "(1,2]\\cup\\{3\\} == \\{3\\}\\cup(1,2] != (1,3]", "\\text{no solution} != \\emptyset",
    // A name, a unit and brackets come off, one after the other; what is inside is read again.
    "x\\in(0,1) == 0<x<1 != 0<y<1", "S=\\{1,2\\} == 1,2 != x=1,x=2", "5 == (5\\text{ cm})",
    "S=\\{\\pm1,2\\} == \\{-1,1,2\\}", "x= != =x", "2x>6 == 6<2x",
    // pmatrix, bmatrix, matrix and array in brackets are one thing; a last \\ begins no row.
    "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix} == \\begin{pmatrix} 1 & 4/2 \\\\ 3 & 4 \\end{pmatrix}",
    "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix} == \\begin{pmatrix}1&2\\\\3&4\\\\\\end{pmatrix}",
    "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix} == \\left[\\begin{array}{cc}1&2\\\\3&4\\end{array}\\right]",
    "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix} == \\begin{matrix}1&2\\\\3&4\\end{matrix}",
    COLUMN " == \\begin{bmatrix}-\\frac13\\\\\\frac23\\\\\\frac53\\end{bmatrix}",
    COLUMN " == \\beginpmatrix-1/3\\\\2/3\\\\5/3\\endpmatrix", COLUMN " == [[-1/3],[2/3],[5/3]]",
    COLUMN " != \\begin{pmatrix} 2/3 \\\\ -1/3 \\\\ 5/3 \\end{pmatrix}",
    "\\begin{pmatrix}1\\\\2\\end{pmatrix} == \\begin{bmatrix}1\\\\2\\\\\\end{bmatrix}",
    "\\begin{pmatrix}1\\\\2\\end{pmatrix} == \\left[\\begin{array}{c}1\\\\2\\end{array}\\right]",
    "\\begin{pmatrix}1\\\\2\\end{pmatrix} != \\begin{pmatrix}2\\\\1\\end{pmatrix}",
    "\\begin{vmatrix}1&2\\\\3&4\\end{vmatrix} != -2",
    // Only listed words are units, which one side may leave out; everything else changes the answer. Dollar
    // signs around are LaTeX; in a sine degrees count.
    "90° == 90 \\text{ degrees}", "5 == 5\\text{ m/s}",
    "5 == 5 inches != 5\\text{ or 6} != 5\\text{ or more}",
    "15\\mbox{ cm}^2 == 15 square centimeters != 15\\text{ cm}^3",
    "864 \\mbox{ inches}^2 == 864\\mboxinches^2", "5.4 \\text{ cents} == 5.4cents != \\$5.4",
    "\\$36 == 36 dollars != 36 cents", "$36$ == 36", "50\\% == 50 == 0.5 != 0.05",
    "7 == 7 apples != 7x != 7\\text{ pm} != 7\\text{ remainder }2 != 7 more", "7 apples != 7 pears",
    "2 != 2xy != 2theta != 2 negative", "2\\pi. == 2\\pi", "\\sin 30^\\circ == 1/2 != \\sin 30",
    "36\\pi == 36\\pi\\text{ cm}^2", "12 == 12^{\\mathrm{th}} != 12\\text{ approximately}",
    "5\\text{ miles per hour} == 5 mph", "25^\\circ\\text{C} == 25", "3 == 3^{\\text{rd}} == 3\\text{ m/s}^2",
    "21^{st} == 21", "3rd != 4th", "55 mph == 55 miles per hour == 55\\text{ miles/hour} != 55 km/h",
    "20\\text{ cm}^3 == 20\\text{ cubic centimeters} != 20\\text{ cm}^2",
    // A unit is a factor at the end, or a currency in front. Elsewhere it is a word, and a word is no number.
    "\\$5\\% != \\$5", "5\\% x != 5x", "100(1+5\\%) != 600", "5\\text{ feet }6\\text{ inches} != 30",
    "1 != triangle != \\text{th} != \\text{prime}", "10\\sin 40\\text{ cm} == 10\\sin 40",
    "\\cot 90^\\circ == 0", "\\frac13\\text{ cm} == \\frac26 cm != 0.333333333333\\text{ cm}",
    "5 km/h == 5\\text{ kilometers per hour} != 5\\text{ km h}",
    // A currency may be left out, another one may not be put in its place. One dollar sign alone is money.
    "5 USD == $5 == \\$5", "5 euros == €5 != $5", "-\\$5 == \\$-5 == -5",
    // 50\% is 50 and 1/2. So equality is not transitive here: 50 is not 1/2.
    "50\\% == \\frac12 == 50 percent", "50 != \\frac12 != 0.5", "10 != 10 percent off",
    // A text of letters alone is a word, unless it is two small letters; short words are listed.
    "\\text{Evelyn} == Evelyn != Evelyns", "\\text{even} == Even != odd", "on != \\text{no} != no",
    "abcd != bcda", "\\text{(C)} == C == (C) == \\text{(c)} != B != (D)", "$on$ != $no$", "x=Ab != x=bA",
    "IV != VI", "AB != BA", "me != em", "OR == or", "XI != IX", "CD != DC",
    // A command that no table knows is text: it never commutes, and no shorter command hides in it.
    "\\overrightarrow{AB} != \\overrightarrow{BA}", "\\sinh x != \\sin hx", "\\int_0^1 xdx != \\int_1^0 xdx",
    "\\det A != A \\det", "{5 \\choose 2} != {2 \\choose 5}", "a \\to b != b \\to a",
    "\\lim_{x\\to 0} f != \\lim_{x \\to f} 0", "a \\circ b != b \\circ a", "x \\approx y != y \\approx x",
    "p \\land q != q \\lor p", "\\mathbf{7} == 7",
    // Lists with "and", scientific notation, \mathrm{e}.
    "2, 3, and 5 == 2, 3, 5 == 2,3,5", "0.001 == 1e-3", "1.5e3 == 1500", "2E5 == 200000",
    "1-\\frac1{\\mathrm{e}} == 1-\\frac{1}{e}", "6.02\\times10^{23} == 6.02e23", "1e+03 == 1000",
    "2E-1 == -1+2E", "-2.5e-2 == -0.025", "1e3 != 13 != e^3",
    // What the head of chapter 5 says that it can't see: if one of these changes, the comment must, too. A
    // sum that hides a part of itself has no value (2^61 is the last power of 2 below LARGE); (-1)^{2n} is 1
    // for whole n only.
    "(1-10^{-13})\\sqrt2 == \\sqrt2", "2^{100} != 2^{100}+1 != 2^{100}-1", "2^{61} != 2^{61}+1",
    "(-1)^{2n} != 1", "x^2 = 4 != x = \\pm 2",
    // Wrong answers that were once paid: what rounding hides, what a letter, a bracket or a sign is taken
    // for.
    "\\sqrt{-4} == 2i != -2i", "1-(2/3)^{100} != 1", "2^{-2000} != 0", "1e999 != 1e998",
    "N=1234567890 != N=1234567891", "x^2\\frac12 != x^{5/2}", "\\sqrt3\\frac12 == \\frac{\\sqrt3}2",
    "(\\pm1,\\pm2) != (1,2),(-1,-2)", "0.333... != 0.333", "\\sec^{-1}x != \\cos x", "e^{st} != e",
    "3!! != 720", "5{3} != 15", "0,100 != 100", "\\lfloor\\log_{10}1000\\rfloor == 3",
    "\\pi != 245850922/78256779", "5\\mathbf F != 5", "5\\text{ M} != 5\\text{ m}",
    "\\{\\emptyset\\} != \\emptyset", "\\{x=2,y=3\\} != \\{3,2\\}",
    "A\\setminus B\\cup C != A\\setminus(B\\cup C)", "x<=3 == x\\le3", "1<=x<=3 == [1,3]",
    // More of every kind, found by trying.
    "5\\text{ sq. ft} == 5\\text{ square feet}", "x=\\pm 2 == 2,-2 == \\pm 2", "5 == 5\\text{ m} != 5m",
    "1{,}000{,}000 == 1 million", "f(x)=2x+1 == 2x+1", "90 == 90^{\\circ}", "a_n = 2n+1 == 2n+1", "3 != 3s",
    "\\log_a b == \\frac{\\ln b}{\\ln a} != \\log_b a", "\\frac{1}{x}+\\frac{1}{y} == \\frac{x+y}{xy}",
    "\\frac{-b+\\sqrt{b^2-4ac}}{2a} == \\frac{\\sqrt{b^2-4ac}-b}{2a}",
    "2\\sin\\theta\\cos\\theta == \\sin 2\\theta", "3^{2x} == 9^x", "\\pi r^2 h == hr^2\\pi",
    "2hR == 2Rh != 2", "25^\\circ C == 25", "\\gcd(a,b) == \\gcd(b,a) != \\operatorname{lcm}(a,b)",
    "|x-5000| != 5000-x", "|x| != \\sqrt[3]{x^3} != 2^{\\log_2 x}", "\\ln|x| == \\ln|{-x}| != \\ln x",
    // A plural has s or es and nothing else; of relations that fall only inequalities are intervals.
    "7 minutes == 7 minute != 7 mints != 7 minus", "7 boxes == 7 box != 7 boxas", "7 cars != 7 carts",
    "7 bees != 7 beers", "5>x>3 == 3<x<5 != 5>x\\ne3 != 5>x=3", "(3,5] != 5 \\ge x \\ne 3",
    // A matrix in brackets is a matrix, but not as a part; \\frac and \\sqrt take one digit.
    "([[1,2]],5) != (5,[[1,2]]) != 5,[[1,2]]", "([[1,2]]) == [[1,2]]", "\\sqrt[3]27 != 3",
    "\\frac{x}12 != \\frac{x}{12}", "x\\text{ million} == 1000000x",
};

static void equal_and_different_answers(void) {
    for (size_t i = 0; i < sizeof answer_rows / sizeof *answer_rows; i++) check_answers(answer_rows[i]);
}

// The verdict doesn't hang on the letter, which stands for @. e and i are constants; f, g, h, F, G, H name
// functions, and q is the other variable.
static void every_letter(void) {
    static const char* const rows[] = { "@ != \\sqrt{@^2} != |@| != \\max(@,0)", "|@-3| != 3-@ != @-3",
        "@^2 == |@|^2 != @^4", "100-@ != |@-100|", "|@^2-2| != @^2-2", "|@-3|+|@-5| != |2@-8|",
        "(@+1)^2 == @^2+2@+1", "@(@+1) == @^2+@", "\\sqrt{@^3} == @\\sqrt{@}", "@_{1} != @_{2}",
        "2\\cdot @ == @+@", "@(2) != 2@", "@/|@| != 1", "\\lceil @ \\rceil != \\lfloor @ \\rfloor+1",
        "@=5 == 5", "@>3 == (3,\\infty) != [3,\\infty)", "|@q| != @q"};
    static const char letters[] = "A B C D E I J K L M N O P Q R S T U V W X Y Z a b c d j k l m n o p r s t "
                                  "u v w x y z \\alpha \\beta \\theta \\lambda \\mu \\omega \\Omega ";
    for (const char* l = letters; *l; l += strcspn(l, " ") + 1)
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            char row[300] = "";
            for (const char* s = rows[k]; *s; s++) // behind a command stays its space
                if (*s == '@') strncat(row, l, strcspn(l, " ") + (*l == '\\'));
                else strncat(row, s, 1);
            check_answers(row);
        }
}

static void garbage_is_unequal(void) {
    static const char* const garbage[] = {
        "", " ", "(", ")", "1+", "\\frac{1}", "\\frac", "^", "_", "|", "\\", "{", "}", "\"", "1..2", "((1)",
        "\\sqrt[", "\\text{", "$$", "&", "\\\\", "x_", "1 2", "\\pm", "=", "x=", "(,)", "!", "\\foo{", "`"};
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
        check_pair(garbage[i], "1", 0);
        check_pair(garbage[i], "12", 0);
        check_pair(garbage[i], garbage[i], garbage[i][0] != 0);     // reflexive, unless empty
    }
}

// Writes `part` n times behind the text.
static void repeat(char* text, const char* part, int n) {
    for (text += strlen(text); n > 0; n--, text += strlen(part)) strcpy(text, part);
}

static void bounds(void) {
    static const struct { const char *open, *middle, *close; int n, equal; const char* answer; } cases[] = {
        {"(", "1", ")", 400, 1, "1"},               // brackets around all of it are peeled off
        {"(", "1+(1)", ")", 400, 1, "2"}, {"(", "1+(1)", ")", 400, 0, "3"},
        {"1+(", "1", ")", 100, 0, "101"},           // too deep, although it is 101
        {"-", "1", "", 900, 1, "1"},                // 900 signs are an even number
        {"1^", "1", "", 400, 0, "1"}, {"1^", "1", "", 15, 1, "1"}};     // too deep, although it is 1; and not
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char deep[3000] = "";
        repeat(deep, cases[i].open, cases[i].n);
        strcat(deep, cases[i].middle);
        repeat(deep, cases[i].close, cases[i].n);
        check_pair(deep, cases[i].answer, cases[i].equal);
        check_pair(deep, deep, 1);
    }
    char plain[1200] = "", dotted[1200];
    repeat(plain, "1", 1100);
    strcat(strcpy(dotted, plain), ".");
    check_pair(plain, plain, 1);
    check_pair(plain, dotted, 0);                   // beyond MAX_ANSWER only the same text is equal
    check_pair(plain + 201, dotted + 201, 1);       // within it they are compared digit by digit
}

// ---- docs/answers.md shows the tables of the appendix

static const char DOC[] = "docs/answers.md";
static const char MARK[] = "<!-- from here on written by make golden -->\n";

// The entries of a list from first on, before end (-1: to the last): on one line those with one spelling,
// then the others, a line each.
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

// The document down to its mark, and the lists as it must show them: every entry of the tables, in order.
static Text document_with_tables(void) {
    static const struct { const char* title; int first, end; } names[] = {
        {"Functions", F_SIN, N_PI}, {"Constants", N_PI, N_CUP}, {"Signs and relations", N_CUP, N_QUOTE},
        {"Commands around words", N_QUOTE, N_VARIABLE}, {"Greek letters", N_VARIABLE, N_NUMBER}};
    Text doc = read_file(DOC), text = {0};
    const char* mark = strstr(doc.data, MARK);
    if (!mark) fail(1, "%s: its mark is gone", DOC);
    text_append(&text, doc.data, (size_t)(mark - doc.data) + strlen(MARK));
    append_entries(&text, "Units: each word of the first line is one, then each line", UNITS, 0, -1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        append_entries(&text, names[i].title, NAMES, names[i].first - F_SIN, names[i].end - F_SIN);
    text_printf(&text, "\n## Short words: no product, when they are the whole answer\n\n- `%s`\n",
                SHORT_WORDS);
    text_printf(&text, "\n## Spellings\n\n");
    for (int i = 0; i < SPELLING_ROWS; i++) {
        const char *row = SPELLINGS[i], *read = strrchr(row, ' ');
        text_printf(&text, "- `%s` for `%.*s`\n", read[1] ? read + 1 : " ", (int)(read - row), row);
    }
    text_free(&doc);
    return text;
}

static void the_document_shows_the_tables(void) {
    Text doc = read_file(DOC), tables = document_with_tables();
    if (strcmp(doc.data, tables.data)) CHECK(!"docs/answers.md shows the appendix (make golden mends it)");
    text_free(&doc), text_free(&tables);
}

static void write_document(void) {
    Text tables = document_with_tables();
    write_file("docs", "answers.md", &tables);
    text_free(&tables);
}

// ---- the calculator

static void calculations(void) {
    READS(calculate, 1, "48/2 -> 24", "12/60 -> 0.2", "(2+3)*4 -> 20", "7-(-2) -> 9", "-(2+3)*-4 -> 20",
          "2+3*4 -> 14", "20-5-5 -> 10", "100/5/2 -> 10",           // not 20; left to right
          "5*-2 -> -10", " 1 + 2  -> 3", "1,000*2 -> 2000", "(1,000+2) -> 1002", "20*.1 -> 2", "2/3*3 -> 2",
          "0.1+0.2 -> 0.3", "1000000.1-1000000 -> 0.1",             // in doubles 0.30000000000000004
          "1/3 -> 0.333333333333", "200/3 -> 66.6666666667",        // 12 significant digits
          "1/8000 -> 0.000125", "560//10 -> 56", "7//2 -> 3", "-7//2 -> -4",    // down, as in Python
          "0-0 -> 0", "-0 -> 0", "99999999*99999999 -> 9999999800000001",
          // 1.07^10 leaves the exact range, the double is good to 12 digits: 1.96715135728956...
          "1.07*1.07*1.07*1.07*1.07*1.07*1.07*1.07*1.07*1.07 -> 1.96715135729");
    READS(calculate, 1, "", " ", "2**3", "2^3", "1/0", "1/(2-2)", "5//0", "0/0", "2(3)", "(2)(3)", "2 3",
          "1 1/2", "1e5", "x+1", "(1", "1)", "()", "1+", "*2", "1..2", ".", "1,00+2", "1,2", "1,2+3", "$5+1",
          "50%", "1=1", "5!", "max(1,2)", "6/ /2", "import os", "999999999999999999*999999999999999999*99");
    char deep[400] = "", sum[400] = "1";
    repeat(deep, "(", 100);
    strcat(deep, "1");
    repeat(deep, ")", 100);
    READS(calculate, 1, deep);
    repeat(sum, "+1", 149);
    READS(calculate, 1, sum);                               // 150 ones, 299 bytes: too long
    strcpy(sum + 255, " -> 128");
    READS(calculate, 1, sum);                               // 128 ones, 255 bytes
}

// ---- properties

// Random strings from the alphabet of answers: symmetric, reflexive, and finished at all.
static void random_strings(void) {
    static const char* const pieces[] = {
        "1", "2", "x", "+", "-", "*", "/", "^", "(", ")", "[", "]", "{", "}", ",", "=", "<", "\\frac",
        "\\sqrt", "\\pm", "\\pi", " ", ".", "%", "\\text{a b}", "\\cup", "|", "_", "!", "\\{", "\\}", "cm",
        "\\\\", "&", "$", "\\$"};
    Rng rng = {8};
    for (int i = 0; i < 40000; i++) {
        char text[2][400] = {"", ""};
        for (int k = 0; k < 2; k++)
            for (int n = 1 + random_int(&rng, 12); n > 0; n--)
                strcat(text[k], pieces[random_int(&rng, sizeof pieces / sizeof *pieces)]);
        CHECK(answers_equal(text[0], text[1]) == answers_equal(text[1], text[0]));
        CHECK(answers_equal(text[0], text[0]));
    }
}

// The calculator against a sum that is known: n terms a_i / 4, printed with all their digits.
static void random_sums(void) {
    static const char* const fractions[] = {"", ".25", ".5", ".75"};
    Rng rng = {9};
    for (int i = 0; i < 5000; i++) {
        char text[256] = "0";
        int quarters = 0;
        for (int n = 1 + random_int(&rng, 10); n > 0; n--) {
            int a = random_int(&rng, 2000) - 1000;
            quarters += a;
            sprintf(text + strlen(text), random_int(&rng, 2) ? "+%d/4" : "+(%d*0.25)", a);
        }
        int size = abs(quarters);
        sprintf(text + strlen(text), " -> %s%d%s", quarters < 0 ? "-" : "", size / 4, fractions[size % 4]);
        READS(calculate, 1, text);
    }
}

// Lists, sets, relations and unions of 28 to 36 parts, one of which may be two: around the room there is.
static void many_parts(void) {
    static const char* const forms[4][3] = {
        {"", ",", ""}, {"\\{", ",", "\\}"}, {"", "<", ""}, {"", "\\cup", ""}};
    for (int n = 28; n <= 36; n++)
        for (int f = 0; f < 8; f++) {
            Text a = {0}, b = {0};
            const char *const *form = forms[f / 2], *sign = f % 2 ? "\\pm" : "";
            for (int i = 1; i <= n; i++) {
                text_printf(&a, "%s%s%d%s", form[i > 1], i == n ? sign : "", i, i == n ? form[2] : "");
                text_printf(&b, "%s%s%d%s", form[i > 1], i == 1 ? sign : "", n + 1 - i,
                            i == n ? form[2] : "");
            }
            int equal = answers_equal(a.data, b.data);
            CHECK(n > 31 || f / 2 == 2 || equal);           // more than two relations are text
            text_free(&a), text_free(&b);
        }
}

static void test_answers(void) {
    RUN_ALL(TEST(boxed_answers_are_read), TEST(numbers_behind_a_mark_are_read), TEST(truths_are_read),
            TEST(no_answer_is_cut), TEST(equal_and_different_answers), TEST(every_letter),
            TEST(garbage_is_unequal), TEST(bounds), TEST(the_document_shows_the_tables), TEST(calculations),
            TEST(random_strings), TEST(random_sums), TEST(many_parts));
}
