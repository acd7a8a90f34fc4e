/* field.h - "  label     text", a field of what a student reads: wrapped at spaces, at most 80 columns. */
#include <stdarg.h>

enum { COLUMNS = 80, INDENT = 12 };

static void print_field(const char* label, const char* format, ...) {
    char all[4096];
    va_list list;
    va_start(list, format);
    vsnprintf(all, sizeof all, format, list);
    va_end(list);
    int column = printf("  %-*s", INDENT - 2, label);
    for (const char* text = all; *text; text += strspn(text, " ")) {
        int n = (int)strcspn(text, " "), width = 0;
        for (int i = 0; i < n; i++)                  // a Chinese character has three bytes, two columns
            width += (text[i] & 0xC0) == 0x80 ? 0 : (text[i] & 0xFF) >= 0xE3 ? 2 : 1;
        if (column > INDENT && column + 1 + width > COLUMNS) column = printf("\n%*s", INDENT, "") - 1;
        else if (column > INDENT) column += printf(" ");
        column += width;
        printf("%.*s", n, text);
        text += n;
    }
    printf("\n");
}
