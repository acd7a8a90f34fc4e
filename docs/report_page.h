// report_page.h - the page that report.c writes: its style, safe text, the parts of its drawings.

// The colours are those of Okabe and Ito (2008), darker on white and lighter on black: s0 to s5 are the lines
// of a chart, p1 to p4 the less and less likely tokens. Paper is always white.
static const char* const style[] = {
    ":root{--bg:#fff;--fg:#1b1b1b;--dim:#595959;--line:#c9c9c9;--grid:#e6e6e6;--box:#f5f6f8;",
    "--s0:#0072b2;--s1:#b34a00;--s2:#00795a;--s3:#a8437f;--s4:#2a87b8;--s5:#8a6500;",
    "--p1:#fff1d6;--p2:#ffd591;--p3:#ffb14a;--p4:#f08a1c;--edge:#a84300;--hatch:#d0e5f3;--forced:#0072b2}",
    "@media screen and (prefers-color-scheme:dark){",
    ":root{--bg:#15171a;--fg:#ececec;--dim:#aab0b7;--line:#4a4f55;--grid:#2b2f34;--box:#1e2226;",
    "--s0:#56b4e9;--s1:#f0a030;--s2:#3fc49a;--s3:#e59cc6;--s4:#9ad2f2;--s5:#e6d75c;",
    "--p1:#33270f;--p2:#553a08;--p3:#7d4c00;--p4:#a85200;--edge:#ffb65c;--hatch:#17384d;--forced:#7cc6f2}}",

    "*{box-sizing:border-box}",
    "html{color-scheme:light dark;-webkit-text-size-adjust:100%}",
    "body{margin:0 auto;max-width:1200px;padding:16px;background:var(--bg);color:var(--fg);",
    "font:16px/1.5 system-ui,sans-serif;overflow-wrap:break-word}",
    "h1,h3,code,dd,.tokens,tbody th{overflow-wrap:anywhere}",
    "h1{font-size:1.7em;line-height:1.2;margin:.4em 0}",
    "h2{font-size:1.3em;margin:1.8em 0 .4em;border-top:1px solid var(--line);padding-top:.8em}",
    "h3{font-size:1.05em;margin:1.3em 0 .4em} h4{font-size:1em;margin:.2em 0}",
    "p{max-width:75ch;margin:.5em 0} a{color:var(--s0)}",
    "code,.tokens{font-family:ui-monospace,Menlo,Consolas,monospace}",
    "nav a{display:inline-block;margin-right:1.1em;padding:4px 0}",
    ".dim,figcaption{color:var(--dim);font-size:.88em}",
    ".missing{border-left:4px solid var(--s1);padding:.3em .8em;background:var(--box)}",
    "table{border-collapse:collapse;width:100%}",
    "th,td{text-align:left;vertical-align:top;padding:.3em .7em .3em 0;border-bottom:1px solid var(--grid)}",
    "@media (max-width:700px){table{font-size:.92em}}",
    "small{display:block;color:var(--dim);font-weight:400}",
    "dl{columns:auto 250px;column-gap:30px;margin:.4em 0;font-size:.9em}",
    "dl div{display:flex;justify-content:space-between;gap:1em;border-bottom:1px solid var(--grid);",
    "break-inside:avoid} dt{color:var(--dim);flex:none} dd{margin:0;text-align:right}",

    "figure{margin:0;break-inside:avoid} svg{display:block;width:100%;height:auto}",
    "svg text{fill:var(--fg);font:12px system-ui,sans-serif} svg .d{fill:var(--dim)}",
    "svg .t{font-weight:700;font-size:17px} svg .l{font-size:14px}",
    ".charts,.two{display:grid;gap:22px 30px}",
    ".charts{grid-template-columns:repeat(auto-fill,minmax(min(100%,330px),1fr))}",
    ".two{grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr));align-items:start}",
    ".two>*{min-width:0}",
    ".tall{display:none} @media (max-width:700px){.wide{display:none}.tall{display:block;max-width:420px}}",
    ".g{stroke:var(--grid)} .a{stroke:var(--dim);fill:none}",
    ".c{fill:none;stroke-width:2;stroke-linejoin:round} .raw{stroke-width:1;opacity:.4}",
    ".s0{stroke:var(--s0)} .s1{stroke:var(--s1);stroke-dasharray:7 3}",
    ".s2{stroke:var(--s2);stroke-dasharray:2 2}",
    ".s3{stroke:var(--s3);stroke-dasharray:9 3 2 3} .s4{stroke:var(--s4);stroke-width:3.5}",
    ".s5{stroke:var(--s5);stroke-dasharray:12 4} circle{stroke-dasharray:none}",
    ".before{stroke:var(--s1);fill:var(--bg)} .after{stroke:var(--s0);fill:var(--s0)}",
    ".box{fill:var(--box);stroke:var(--line)} .arrow{stroke:var(--s0);stroke-width:2.5;fill:none}",
    ".head{fill:var(--s0)}",
    ".key{display:inline-flex;align-items:center;gap:6px;margin-right:1.2em} .key svg{width:44px;flex:none}",

    ".tokens{white-space:pre-wrap;background:var(--box);padding:.5em .7em;margin:.3em 0;font-size:.95em;",
    "line-height:1.75;max-width:none;unicode-bidi:isolate}",
    ".tokens span{border-bottom:0 solid var(--edge);padding:1px 0}",
    ".tokens .p1{background:var(--p1);border-bottom-width:1px}",
    ".tokens .p2{background:var(--p2);border-bottom-width:2px}",
    ".tokens .p3{background:var(--p3);border-bottom-width:3px}",
    ".tokens .p4{background:var(--p4);border-bottom-width:4px}",
    ".tokens .m0{border-bottom:2px dotted var(--forced);",
    "background:repeating-linear-gradient(135deg,var(--hatch) 0 3px,transparent 3px 7px)}",
    ".legend span{white-space:pre}",
    ".tokens i{font-style:normal;font-size:.82em;opacity:.85}",
    ".rollout{break-inside:avoid;margin-bottom:1em} .rollout p{font-size:.88em;margin:.2em 0}",

    "@media print{body{font-size:11pt;max-width:none;padding:0} nav,.tall{display:none} .wide{display:block}",
    "*{print-color-adjust:exact;-webkit-print-color-adjust:exact} h2,h3,h4,h2+p{break-after:avoid}",
    "p{break-inside:avoid} .charts{grid-template-columns:1fr 1fr}}",
};

// Text as it stands in HTML, in ASCII: other characters by their number; bytes that are no UTF-8, and control
// characters, as \xNN. Without the bytes themselves a page cannot be broken, nor turned around.
static void put_bytes(Text* page, const char* s, size_t length) {
    for (const char* end = s + length; s < end;) {
        unsigned char c = (unsigned char)*s;
        int n = utf8_length(s, end);
        unsigned code = n > 1 ? c & (0xFFu >> (n + 1)) : c;
        for (int i = 1; i < n; i++) code = code << 6 | ((unsigned char)s[i] & 0x3F);
        if (n == 0 || code == 0x7F || (code < 0xA0 && n > 1) || (c < 0x20 && c != '\n'))
            text_printf(page, "\\x%02X", n == 0 ? c : code);
        else if (n > 1 || strchr("<>&\"'", c)) text_printf(page, "&#%u;", code);
        else text_append(page, s, 1);
        s += max_int(n, 1);
    }
}

// printf into the page: %d is an int, %f a double with one decimal, %g a double of four significant digits, a
// dash when it is no number; %s is text that is made safe, %h is HTML.
static void put(Text* page, const char* format, ...) {
    va_list args;
    va_start(args, format);
    for (const char* s = format; *s; s++) {
        size_t plain = strcspn(s, "%");
        text_append(page, s, plain);
        s += plain;
        if (!*s++) break;
        const char* text = *s == 's' || *s == 'h' ? va_arg(args, const char*) : NULL;
        double x = *s == 'f' || *s == 'g' ? va_arg(args, double) : 0.0;
        if (*s == 's') put_bytes(page, text, strlen(text));
        else if (*s == 'h') text_append(page, text, strlen(text));
        else if (*s == 'd') text_printf(page, "%d", va_arg(args, int));
        else if (*s == 'f') text_printf(page, "%.1f", x);
        else if (*s == 'g' && isfinite(x))
            text_printf(page, fabs(x) < 1e4 ? "%s%.4g" : "%s%.0f", x < 0.0 ? "&minus;" : "", fabs(x));
        else text_append(page, *s == 'g' ? "-" : s, 1);
    }
    va_end(args);
}

static void page_begin(Text* page, const char* title) {
    put(page, "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'/>\n<meta name='viewport' "
              "content='width=device-width,initial-scale=1'/>\n<title>%s</title>\n<style>\n", title);
    for (size_t i = 0; i < sizeof style / sizeof *style; i++) put(page, "%h\n", style[i]);
    put(page, "</style>\n</head>\n<body>\n<header>\n<h1>%s</h1>\n<nav aria-label='Sections'>"
              "<a href='#loop'>The loop</a> <a href='#curves'>Curves</a> <a href='#passk'>Before and after"
              "</a> <a href='#rollouts'>Rollouts</a> <a href='#settings'>Settings</a></nav>\n</header>\n"
              "<main>\n", title);
}

// What this run does not have: a name, and HTML behind it.
static void missing(Text* page, const char* name, const char* sentence) {
    put(page, "<p class='missing'>%s%h</p>\n", name, sentence);
}

// An arrow from (x,y) by (dx,dy), one of which is 0.
static void draw_arrow(Text* page, int x, int y, int dx, int dy) {
    int ux = (dx > 0) - (dx < 0), uy = (dy > 0) - (dy < 0), ex = x + dx, ey = y + dy;
    int bx = ex - 12 * ux, by = ey - 12 * uy;
    put(page, "<path class='arrow' d='M%d %dL%d %d'/><path class='head' d='M%d %dL%d %dL%d %dZ'/>\n", x, y,
        bx, by, ex, ey, bx - 7 * uy, by - 7 * ux, bx + 7 * uy, by + 7 * ux);
}

// What is done in each update: six boxes of lines.
enum { BOXES = 6, BOX_LINES = 4, BOX_WIDTH = 290, BOX_HEIGHT = 132, BOX_LETTERS = 38 };
typedef struct { char line[BOX_LINES][PATH_SIZE]; } Box;

// Three boxes to the right and three back to the left; or, tall, one below the other. Then up again.
static void draw_loop(Text* page, const Box* b, int tall) {
    static const char* const titles[] = {"questions", "rollouts", "reward", "advantage", "loss", "update"};
    int gap = tall ? 34 : 55, W = BOX_WIDTH, H = BOX_HEIGHT, down = H + (tall ? gap : 60), middle = 2 + W / 2;
    put(page, "<svg class='%h' viewBox='0 0 %d %d' role='img' aria-label='The loop of one update: questions, "
              "rollouts, reward, advantage, loss, update, and back to questions'>\n",
        tall ? "tall" : "wide", tall ? W + 60 : 3 * W + 2 * gap + 4, (tall ? 5 : 1) * down + H + 4);
    for (int i = 0; i < BOXES; i++) {
        int x = 2 + (tall ? 0 : i < 3 ? i : 5 - i) * (W + gap), y = 2 + (tall ? i : i / 3) * down;
        put(page, "<rect class='box' x='%d' y='%d' width='%d' height='%d' rx='8'/><text class='t' x='%d' "
                  "y='%d'>%d %h</text>\n", x, y, W, H, x + 14, y + 27, i + 1, titles[i]);
        for (int j = 0; j < BOX_LINES; j++) {
            put(page, "<text class='l' x='%d' y='%d'>", x + 14, y + 51 + 22 * j);
            put_bytes(page, b[i].line[j], (size_t)min_int((int)strlen(b[i].line[j]), BOX_LETTERS));
            put(page, "</text>\n");
        }
        if (i == BOXES - 1) continue;
        if (tall || i == 2) draw_arrow(page, x + W / 2, y + H, 0, down - H);
        else draw_arrow(page, i < 2 ? x + W : x, y + H / 2, i < 2 ? gap : -gap, 0);
    }
    const char* words = "the new policy samples the next rollouts";
    int top = 2 + H / 2, bottom = top + 5 * down;
    if (tall) {
        put(page, "<path class='arrow' d='M%d %dH%dV%dH%d'/>\n", W + 2, bottom, W + 32, top, W + 12);
        draw_arrow(page, W + 14, top, -12, 0);
        put(page, "<text class='d' transform='translate(%d %d) rotate(-90)' text-anchor='middle'>%h</text>\n",
            W + 49, (top + bottom) / 2, words);
    } else {
        draw_arrow(page, middle, 2 + down, 0, H - down);
        put(page, "<text class='d l' x='%d' y='%d'>%h</text>\n", middle + 18, H + 37, words);
    }
    put(page, "</svg>\n");
}

// One line of running means; `marks`: its numbers are few and get a ring each.
static void draw_curve(Text* page, const double* y, int rows, int longest, Range r, const char* class,
                       int window, int marks) {
    Text path = {0}, rings = {0};
    for (int i = 0; i < rows; i++) {
        double v = smoothed(y, rows, i, window);
        if (!isfinite(v)) continue;
        double px = 56.0 + 290.0 * i / max_int(longest - 1, 1);
        double py = 176.0 - 160.0 * (v - r.low) / (r.high - r.low);
        put(&path, "%h%f %f", path.length ? "L" : "M", px, py);
        if (marks) put(&rings, "<circle class='c %h' cx='%f' cy='%f' r='3'/>\n", class, px, py);
    }
    put(page, "<path class='c %h' d='%h'/>\n%h", class, path.data, marks ? rings.data : "");
    text_free(&path), text_free(&rings);
}

static void draw_axes(Text* page, Range r, int longest) {
    for (int i = 0; i <= PLOT_PARTS; i++) {
        double v = r.low + (r.high - r.low) * i / PLOT_PARTS;
        put(page, "<path class='g' d='M56 %dH346'/><text class='d' x='50' y='%d' text-anchor='end'>%g"
                  "</text>\n", 176 - 40 * i, 180 - 40 * i, fabs(v) < 1e-9 * (r.high - r.low) ? 0.0 : v);
    }
    put(page, "<path class='a' d='M56 176H346'/><text class='d' x='56' y='194'>1</text><text class='d' "
              "x='201' y='194' text-anchor='middle'>update</text><text class='d' x='346' y='194' "
              "text-anchor='end'>%d</text>\n", longest);
}

// One rate and its interval: before a ring, after a full square.
static void draw_rate(Text* page, double x, double low, double high, int y, int after) {
    const char* class = after ? "after" : "before";
    if (!isfinite(x)) return;
    put(page, "<path class='c %h' d='M%f %dH%f'/>", class, low, y, high);
    if (after) put(page, "<rect class='after' x='%f' y='%d' width='9' height='9'/>\n", x - 4.5, y - 4);
    else put(page, "<circle class='c before' cx='%f' cy='%d' r='5'/>\n", x, y);
}

enum { SAMPLES = 16 };            // answers to a question, for pass@k

// What was measured before [0] and after [1]; row i is pass@k[i]. NaN: not known.
typedef struct {
    int rows, k[SAMPLES];
    double pass[SAMPLES][2], low[SAMPLES][2], high[SAMPLES][2], more[3][2];      // more: tool, format, length
} Compared;

static void draw_pass(Text* page, const Compared* c) {
    int height = 24 + 46 * c->rows;
    put(page, "<figure><svg viewBox='0 0 420 %d' role='img' aria-label='pass@k before and after, with 95%% "
              "intervals: the numbers of the table'>\n", height + 22);
    for (int i = 0; i <= 4; i++)
        put(page, "<path class='g' d='M%d 8V%d'/><text class='d' x='%d' y='%d' text-anchor='middle'>%g"
                  "</text>\n", 76 + 82 * i, height, 76 + 82 * i, height + 16, 0.25 * i);
    for (int i = 0; i < c->rows; i++) {
        put(page, "<text x='0' y='%d'>pass@%d</text>\n", 40 + 46 * i, c->k[i]);
        for (int side = 0; side < 2; side++)
            draw_rate(page, 76.0 + 328.0 * c->pass[i][side], 76.0 + 328.0 * c->low[i][side],
                      76.0 + 328.0 * c->high[i][side], 26 + 46 * i + 18 * side, side);
    }
    put(page, "</svg>\n<figcaption>");
    for (int side = 0; side < 2; side++) {
        put(page, "<span class='key'><svg viewBox='0 0 44 12' aria-hidden='true'>");
        draw_rate(page, 22.0, 2.0, 42.0, 6, side);
        put(page, "</svg>%h</span> ", side ? "after" : "before");
    }
    put(page, "the line: 95%% interval</figcaption></figure>\n");
}
