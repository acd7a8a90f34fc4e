/* field.h - "  label     text", a field of what a student reads: wrapped at spaces, at most 80 columns. */
#include <stdarg.h>

enum { COLUMNS = 80, INDENT = 12 };

// Columns of a text on a terminal: a Chinese character takes two.
static int width_of(const char* s, size_t n) {
    int width = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if ((c & 0xC0) != 0x80) width += c >= 0xE3 ? 2 : 1;
    }
    return width;
}

static void print_field(const char* label, const char* format, ...) {
    char all[4096];
    va_list list;
    va_start(list, format);
    vsnprintf(all, sizeof all, format, list);
    va_end(list);
    int column = printf("  %-*s", INDENT - 2, label);
    for (const char* text = all; *text; text += strspn(text, " ")) {
        size_t n = strcspn(text, " ");
        int width = width_of(text, n);
        if (column > INDENT && column + 1 + width > COLUMNS) column = printf("\n%*s", INDENT, "") - 1;
        else if (column > INDENT) column += printf(" ");
        column += width;
        printf("%.*s", (int)n, text);
        text += n;
    }
    printf("\n");
}
