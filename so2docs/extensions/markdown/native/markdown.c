/* Convert the HTML of a body to Markdown, in the same steps and with the same names as `conversion.py`.

   Plain C, fuzzed without Python. The reference converts bodies with rare content: comments, tables,
   upper-case tags, unusual character references, other tags in code, and emphasis next to characters
   whose category is only in the tables of Unicode. */

#include "../../../parse/native/core.h"

#include <stdio.h>

enum {
    /* Maximum depth of containers, and of formats; the reference allows more. */
    MOST_DEPTH = 16,
    /* Maximum number of bytes that a container adds to the prefix: nine digits and `. `. */
    MOST_INDENT = 16,
    MOST_PARENTHESES = 8, /* Maximum depth of parentheses in a URL. */
    NOTHING = -1
};

#define FEED "\1" /* Placeholder for a line feed in a formula until its block is complete. */

typedef struct {
    size_t at, size;
} Span;

/* ---- Characters ---- */

static int is_blank(Byte byte)
{
    return is_space(byte) || byte == 0; /* In an incomplete block, byte 0 is a line break. */
}

static int is_alpha(Byte byte)
{
    return (Byte)((byte | 0x20) - 'a') < 26;
}

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Mark the bytes of a word below a limit of at most 128 by their highest bits. */
static uint64_t bytes_below(uint64_t word, unsigned limit)
{
    return ~(((word & EACH(0x7F)) + EACH(0x80 - limit)) | word) & EACH(0x80);
}

/* Whether a text contains control characters other than white space. */
static int has_control(const Byte *at, const Byte *end)
{
    while (at < end) {
        uint64_t word;
        size_t size = (size_t)(end - at) < sizeof word ? (size_t)(end - at) : sizeof word;
        if (size == sizeof word) {
            memcpy(&word, at, sizeof word);
            if (bytes_below(word, ' ') == 0) {
                at += sizeof word;
                continue;
            }
        }
        for (; size > 0; size--, at++) {
            if (*at < ' ' && !is_space(*at)) {
                return 1;
            }
        }
    }
    return 0;
}

/* Whether a text contains white space other than single spaces and line feeds. */
static int has_spaces_to_join(const char *text, size_t size)
{
    size_t at = 0;
    uint64_t word;
    for (; size - at >= sizeof word; at += sizeof word - 1) { /* Words overlap by one byte. */
        memcpy(&word, text + at, sizeof word);
        uint64_t spaces = bytes_below(word, ' ' + 1);
        uint64_t feeds = bytes_below(word ^ EACH('\n'), 1);
        if ((spaces & spaces << 8) || (bytes_below(word, ' ') & ~feeds)) {
            return 1;
        }
    }
    for (; at < size; at++) {
        Byte byte = (Byte)text[at];
        if (byte <= ' '
            && ((byte != ' ' && byte != '\n') || (at + 1 < size && (Byte)text[at + 1] <= ' '))) {
            return 1;
        }
    }
    return 0;
}

/* Return the first or the last character of a UTF-8 text; NOTHING if the text is empty. */
static long first_char(const char *text, size_t size)
{
    const Byte *at = (const Byte *)text;
    if (size == 0) {
        return NOTHING;
    }
    size_t more = at[0] < 0x80 ? 0 : at[0] < 0xE0 ? 1 : at[0] < 0xF0 ? 2 : 3;
    if (more >= size) {
        more = size - 1;
    }
    long code = more == 0 ? at[0] : at[0] & (0x3F >> more);
    for (size_t i = 1; i <= more; i++) {
        code = code << 6 | (at[i] & 0x3F);
    }
    return code;
}

static long last_char(const char *text, size_t size)
{
    size_t start = size;
    while (start > 0 && ((Byte)text[--start] & 0xC0) == 0x80) {
    }
    return first_char(text + start, size - start);
}

/* The same as `str.isspace`; false for NOTHING. */
static int is_white(long code)
{
    return (code >= 9 && code <= 13) || (code >= 28 && code <= 32) || code == 0x85 || code == 0xA0
           || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028
           || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

/* Dashes, quotation marks and similar characters of category P. */
static int is_common_punctuation(long code)
{
    return (code >= 0x2010 && code <= 0x2027) || (code >= 0x2030 && code <= 0x2043);
}

/* The same as `str.isalnum`; FALLBACK for a character that only the reference can classify. */
static Status is_alnum(long code, int *is)
{
    *is = 0;
    if (code >= 0x80 && !is_white(code) && !is_common_punctuation(code)) {
        return FALLBACK;
    }
    if (code >= 0 && code < 0x80) {
        *is = is_alpha((Byte)code) || is_digit((Byte)code);
    }
    return OK;
}

/* Whether any emphasis can start after this character or end before it. */
static Status is_apart(long code, int *is)
{
    *is = code == NOTHING || is_white(code) || is_common_punctuation(code)
          || (code > 0 && code < 0x80 && strchr("!\"#%&'(),-./:;?@[\\]_{}", (int)code) != NULL);
    return code >= 0x80 && !*is ? FALLBACK : OK;
}

/* ---- The body as tags and texts ---- */

typedef enum { IGNORED, PARAGRAPH, BLOCK, HEADING, LIST, ITEM, QUOTATION, RULE, CODE_BLOCK,
               EMPHASIS, RAW, ANCHOR, IMAGE, LINE_BREAK, CODE, TABLE } TagKind;

static const struct {
    const char *name;
    TagKind kind;
    const char *sign; /* The delimiter of emphasis or of a heading. */
} HTML_TAGS[] = {
    {"", IGNORED, ""},
    {"p", PARAGRAPH, ""}, {"code", CODE, ""}, {"a", ANCHOR, ""}, {"li", ITEM, ""},
    {"pre", CODE_BLOCK, ""}, {"strong", EMPHASIS, "**"}, {"em", EMPHASIS, "*"}, {"ul", LIST, ""},
    {"ol", LIST, ""}, {"br", LINE_BREAK, ""}, {"blockquote", QUOTATION, ""}, {"img", IMAGE, ""},
    {"b", EMPHASIS, "**"}, {"i", EMPHASIS, "*"}, {"h1", HEADING, "# "}, {"h2", HEADING, "## "},
    {"h3", HEADING, "### "}, {"h4", HEADING, "#### "}, {"h5", HEADING, "##### "},
    {"h6", HEADING, "###### "}, {"hr", RULE, ""}, {"div", BLOCK, ""}, {"sup", RAW, ""},
    {"sub", RAW, ""}, {"kbd", RAW, ""}, {"s", EMPHASIS, "~~"}, {"strike", EMPHASIS, "~~"},
    {"del", EMPHASIS, "~~"}, {"ins", RAW, ""}, {"u", RAW, ""}, {"small", RAW, ""},
    {"big", RAW, ""}, {"mark", RAW, ""}, {"table", TABLE, ""}, {"dl", BLOCK, ""},
    {"dt", BLOCK, ""}, {"dd", BLOCK, ""}, {"details", BLOCK, ""}, {"summary", BLOCK, ""},
    {"center", BLOCK, ""}, {"section", BLOCK, ""}, {"article", BLOCK, ""}, {"header", BLOCK, ""},
    {"footer", BLOCK, ""}, {"figure", BLOCK, ""}, {"figcaption", BLOCK, ""}, {"main", BLOCK, ""},
    {"nav", BLOCK, ""}, {"aside", BLOCK, ""}, {"address", BLOCK, ""}, {"form", BLOCK, ""},
    {"html", BLOCK, ""}, {"body", BLOCK, ""}, {"head", BLOCK, ""}, {"thead", BLOCK, ""},
    {"tbody", BLOCK, ""}, {"tr", BLOCK, ""}, {"td", BLOCK, ""}, {"th", BLOCK, ""},
    {"caption", BLOCK, ""}, {"tfoot", BLOCK, ""},
};

typedef struct {
    int tag; /* The index in HTML_TAGS. */
    int is_end;
    Reader attributes, text; /* The text after the tag. */
} Token;

static int find_tag(const Byte *name, size_t size)
{
    for (size_t i = 1; i < sizeof HTML_TAGS / sizeof *HTML_TAGS; i++) {
        if (HTML_TAGS[i].name[0] == (char)name[0] && strlen(HTML_TAGS[i].name) == size
            && memcmp(HTML_TAGS[i].name, name, size) == 0) {
            return (int)i;
        }
    }
    return 0;
}

/* Read a tag at the start of a text; `is_tag` is 0 if there is none. */
static Status read_tag(const Byte *at, const Byte *end, Token *token, int *is_tag)
{
    *is_tag = 0;
    const Byte *name = at + 1;
    token->is_end = name < end && *name == '/';
    name += token->is_end;
    if (name == end || !is_alpha(*name)) {
        return end - at >= 4 && memcmp(at, "<!--", 4) == 0 ? FALLBACK : OK;
    }
    const Byte *after = name;
    int is_lower = 1;
    while (after < end && (is_alpha(*after) || is_digit(*after) || *after == '-')) {
        is_lower &= !(*after >= 'A' && *after <= 'Z');
        after++;
    }
    token->attributes.at = after;
    while (after < end && *after != '<' && *after != '>') {
        after++;
    }
    if (after == end || *after == '<') {
        return OK;
    }
    token->attributes.end = after;
    token->tag = find_tag(name, (size_t)(token->attributes.at - name));
    token->text.at = after + 1;
    *is_tag = 1;
    return is_lower ? OK : FALLBACK;
}

/* Append a token for the text before the first tag, then one for each tag. */
static Status split_tokens(const Byte *at, const Byte *end, Buffer *tokens)
{
    Token token = {0}, next;
    token.text.at = at;
    if (has_control(at, end)) {
        return FALLBACK;
    }
    while (at < end && (at = memchr(at, '<', (size_t)(end - at))) != NULL) {
        int is_tag;
        TRY(read_tag(at, end, &next, &is_tag));
        if (is_tag) {
            token.text.end = at;
            TRY(put(tokens, &token, sizeof token));
            token = next;
            at = next.text.at;
        } else {
            at++;
        }
    }
    token.text.end = end;
    return put(tokens, &token, sizeof token);
}

/* Find the last attribute with a name, written as `name="value"`; `value->at` is NULL if it is
   missing. */
static Status find_attribute(const Token *token, const char *name, Reader *value)
{
    Reader in = token->attributes;
    value->at = value->end = NULL;
    while (in.at < in.end) {
        const Byte *start = in.at;
        skip_spaces(&in);
        if (in.at == in.end || (*in.at == '/' && in.at + 1 == in.end)) {
            return OK;
        }
        const Byte *key = in.at;
        while (in.at < in.end && ((*in.at >= 'a' && *in.at <= 'z') || *in.at == '-')) {
            in.at++;
        }
        size_t size = (size_t)(in.at - key);
        if (key == start || size == 0 || !SKIP(&in, "=\"")) {
            return FALLBACK;
        }
        const Byte *quote = memchr(in.at, '"', left(&in));
        if (quote == NULL) {
            return FALLBACK;
        }
        if (strlen(name) == size && memcmp(name, key, size) == 0) {
            *value = (Reader){in.at, quote};
        }
        in.at = quote + 1;
    }
    return OK;
}

/* ---- References ---- */

static Status put_char(Buffer *out, unsigned long code)
{
    char bytes[4];
    size_t more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const Byte FIRST[] = {0, 0xC0, 0xE0, 0xF0};
    bytes[0] = (char)(FIRST[more] | code >> (6 * more));
    for (size_t i = 1; i <= more; i++) {
        bytes[i] = (char)(0x80 | (code >> (6 * (more - i)) & 0x3F));
    }
    return put(out, bytes, more + 1);
}

/* Read a reference after its ampersand, and write its character. */
static Status put_html_reference(Reader *in, Buffer *out)
{
    if (in->at == in->end || is_space(*in->at) || *in->at == '<' || *in->at == '&'
        || *in->at == ';') {
        /* The name may continue after a carriage return, which only the reference handles. */
        return in->at < in->end && *in->at == '\r' ? FALLBACK : PUT_LITERAL(out, "&");
    }
    if (SKIP(in, "amp;")) {
        return PUT_LITERAL(out, "&");
    }
    if (SKIP(in, "lt;")) {
        return PUT_LITERAL(out, "<");
    }
    if (SKIP(in, "gt;")) {
        return PUT_LITERAL(out, ">");
    }
    if (SKIP(in, "quot;")) {
        return PUT_LITERAL(out, "\"");
    }
    if (SKIP(in, "nbsp;")) {
        return PUT_LITERAL(out, "\xC2\xA0");
    }
    if (!SKIP(in, "#")) {
        return FALLBACK;
    }
    unsigned long code = 0;
    for (int digits = 0; digits < 6 && in->at < in->end && is_digit(*in->at); digits++) {
        code = code * 10 + (unsigned long)(*in->at++ - '0');
    }
    int is_usual = (code >= 0x20 && code < 0x7F) || (code >= 0xA0 && code < 0xD800);
    return is_usual && SKIP(in, ";") ? put_char(out, code) : FALLBACK;
}

static Status put_unescaped(Reader in, Buffer *out)
{
    TRY(reserve(out, left(&in)));
    while (in.at < in.end) {
        const Byte *stop = memchr(in.at, '&', left(&in));
        size_t size = stop == NULL ? left(&in) : (size_t)(stop - in.at);
        TRY(put(out, in.at, size));
        in.at += size;
        if (stop != NULL) {
            in.at++;
            TRY(put_html_reference(&in, out));
        }
    }
    return OK;
}

/* Whether an ampersand is the last byte, or would start a reference. */
static Status is_reference(const char *at, const char *end, int *is)
{
    const char *next = at + 1;
    *is = next == end || (*next == '\n' && next + 1 == end);
    next += next < end && *next == '#';
    const char *name = next;
    while (next < end && (is_name_start((Byte)*next) || is_digit((Byte)*next))) {
        next++;
    }
    if (next < end && (Byte)*next >= 0x80) {
        return FALLBACK;
    }
    *is |= next > name && next < end && *next == ';';
    return OK;
}

/* ---- Text ---- */

/* 1 for characters that may be markup; 2 for those that are markup only in a link. */
static const Byte SPECIAL[256] = {
    ['\\'] = 1, ['`'] = 1, ['*'] = 1, ['_'] = 1, ['<'] = 1,
    ['&'] = 1,  ['~'] = 1, [']'] = 1, ['['] = 2,
};

/* Write text with a backslash before characters that would be markup. */
static Status put_escaped(const char *text, size_t size, int is_in_link, Buffer *out)
{
    const char *end = text + size, *from = text;
    TRY(reserve(out, size));
    for (const char *at = text; at < end; at++) {
        int is_plain = 0, is_other = 0;
        Byte kind = SPECIAL[(Byte)*at];
        if (kind == 0 || (kind == 2 && !is_in_link)) {
            continue;
        }
        long before = last_char(text, (size_t)(at - text));
        long after = first_char(at + 1, (size_t)(end - at - 1));
        switch (*at) {
        case '*':
        case '~':
            is_plain = is_white(before) && is_white(after);
            break;
        case '_':
            is_plain = is_white(after);
            if (!is_plain) {
                TRY(is_alnum(before, &is_plain));
            }
            break;
        case '<':
            if (after >= 0x80) {
                return FALLBACK;
            }
            is_plain = after != NOTHING && !is_alpha((Byte)after) && after != '/' && after != '!'
                       && after != '?';
            break;
        case '\\':
            is_plain = after == ' ';
            if (!is_plain) {
                TRY(is_alnum(after, &is_plain));
            }
            break;
        case ']':
            is_plain = after != '(' && after != ':' && after != '[' && !is_in_link;
            break;
        case '&':
            TRY(is_reference(at, end, &is_other));
            is_plain = !is_other;
            break;
        default:
            break;
        }
        if (!is_plain) {
            TRY(put(out, from, (size_t)(at - from)));
            TRY(PUT_LITERAL(out, "\\"));
            from = at;
        }
    }
    return put(out, from, (size_t)(end - from));
}

/* Replace each run of white space by a line feed or a space. Returns the new size. */
static size_t join_spaces(char *text, size_t size)
{
    size_t to = 0;
    if (!has_spaces_to_join(text, size)) {
        return size;
    }
    for (size_t at = 0; at < size;) {
        if (!is_space((Byte)text[at])) {
            text[to++] = text[at++];
            continue;
        }
        char space = ' ';
        for (; at < size && is_space((Byte)text[at]); at++) {
            space = text[at] == '\n' ? '\n' : space;
        }
        text[to++] = space;
    }
    return to;
}

/* Replace white space that contains a line feed, possibly from several pieces, by one line feed.
   Returns the new size. */
static size_t join_feeds(char *text, size_t size)
{
    size_t to = 0;
    for (size_t at = 0; at < size;) {
        size_t start = at;
        int has_feed = 0;
        for (; at < size && (text[at] == ' ' || text[at] == '\n'); at++) {
            has_feed |= text[at] == '\n';
        }
        if (has_feed) {
            text[to++] = '\n';
        } else if (at > start) {
            memmove(text + to, text + start, at - start);
            to += at - start;
        } else {
            text[to++] = text[at++];
        }
    }
    return to;
}

/* Return the length of the longest run of backticks. */
static size_t longest_backticks(const char *text, size_t size)
{
    size_t longest = 0, run = 0;
    const char *first = size ? memchr(text, '`', size) : NULL;
    for (size_t i = first ? (size_t)(first - text) : size; i < size; i++) {
        run = text[i] == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

static Status put_backticks(Buffer *out, size_t count)
{
    TRY(reserve(out, count));
    memset(out->bytes + out->size, '`', count);
    out->size += count;
    return OK;
}

/* ---- Formulas: `formulas.py` ---- */

enum {
    MOST_CHARACTERS = 4000, /* Maximum length of a formula. */
    /* Maximum number of unclosed delimiters; the text after them is not searched. */
    MOST_UNCLOSED = 50,
    MOST_NAME = 20          /* Maximum length of the name of an environment. */
};

static const char *const ENVIRONMENTS[] = {
    "align",  "alignat",  "aligned",   "array",       "bmatrix", "Bmatrix",  "CD",
    "cases",  "eqnarray", "equation",  "gather",      "gathered", "matrix",  "multline",
    "pmatrix", "smallmatrix", "split", "subarray",    "vmatrix", "Vmatrix",
};

static int starts_with(const char *at, const char *end, const char *sign)
{
    size_t size = strlen(sign);
    return (size_t)(end - at) >= size && memcmp(at, sign, size) == 0;
}

static const char *next_char(const char *at, const char *end)
{
    for (at++; at < end && ((Byte)*at & 0xC0) == 0x80; at++) {
    }
    return at;
}

/* Return the size of a `\begin{align}` at the start of a text; 0 if there is none. */
static size_t environment_size(const char *at, const char *end)
{
    if (!starts_with(at, end, "\\begin{")) {
        return 0;
    }
    const char *name = at + strlen("\\begin{"), *after = name;
    while (after < end && is_alpha((Byte)*after)) {
        after++;
    }
    size_t size = (size_t)(after - name);
    after += after < end && *after == '*';
    if (after == end || *after != '}') {
        return 0;
    }
    for (size_t i = 0; i < sizeof ENVIRONMENTS / sizeof *ENVIRONMENTS; i++) {
        if (strlen(ENVIRONMENTS[i]) == size && memcmp(ENVIRONMENTS[i], name, size) == 0) {
            return (size_t)(after + 1 - at);
        }
    }
    return 0;
}

/* Return the size of the opening delimiter of a formula at the start of a text, and set its
   closing delimiter; 0 if there is none. The closing delimiter of an environment is empty. */
static size_t opening_size(const char *at, const char *end, const char *sign, const char **closing)
{
    static const char *const PAIRS[][2] = {{"$$", "$$"}, {"\\(", "\\)"}, {"\\[", "\\]"}};
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++) {
        if (starts_with(at, end, PAIRS[i][0])) {
            *closing = PAIRS[i][1];
            return 2;
        }
    }
    if (starts_with(at, end, sign)) {
        *closing = sign;
        return strlen(sign);
    }
    *closing = "";
    return environment_size(at, end);
}

/* Return the end of an environment's name, after its brace; NULL if there is none. */
static const char *end_of_name(const char *at, const char *end)
{
    int count = 0;
    while (at < end && *at != '{' && *at != '}') {
        if (++count > MOST_NAME) {
            return NULL;
        }
        at = next_char(at, end);
    }
    return count && at < end && *at == '}' ? at + 1 : NULL;
}

/* Return the end of the formula that opens at `start`; NULL if it is not closed. */
static const char *find_formula_end(const char *start, const char *end, const char *closing)
{
    const char *at = start, *after;
    long depth = 0, environments = 0;
    for (int count = 0; count < MOST_CHARACTERS && at < end; count++) {
        at = next_char(at, end);
    }
    end = at;
    for (at = start; at < end; at = after) {
        int is_begin = starts_with(at, end, "\\begin{"), is_end = starts_with(at, end, "\\end{");
        const char *name = at + strlen(is_begin ? "\\begin{" : "\\end{");
        if ((is_begin || is_end) && (after = end_of_name(name, end)) != NULL) {
            environments += is_begin ? 1 : -1;
            if (!*closing && environments < 0) {
                return after;
            }
            continue;
        }
        after = at + 1;
        if (*at == '\\') {
            after = after < end ? next_char(after, end) : after;
        } else if (*at == '$') {
            after += after < end && *after == '$';
        } else {
            depth += *at == '{' ? 1 : *at == '}' ? -1 : 0;
            continue;
        }
        size_t size = (size_t)(after - at);
        if (*closing && depth <= 0 && strlen(closing) == size && memcmp(at, closing, size) == 0) {
            return at > start ? after : NULL;
        }
    }
    return NULL;
}

/* Find the next formula. If there is none, the span starts at the end of the text. */
static Span find_formula(const char *text, size_t from, size_t size, const char *sign, int *unclosed)
{
    const char *end = text + size, *closing;
    for (const char *at = text + from; at < end && *unclosed < MOST_UNCLOSED; at++) {
        if (*at != '$' && *at != '\\') {
            continue;
        }
        if (starts_with(at, end, "\\\\") || (sign[0] == '$' && starts_with(at, end, "\\$"))) {
            at++; /* An escaped delimiter does not start a formula. */
            continue;
        }
        size_t opening = opening_size(at, end, sign, &closing);
        if (opening == 0) {
            continue;
        }
        const char *after = find_formula_end(at + opening, end, closing);
        if (after != NULL) {
            return (Span){(size_t)(at - text), (size_t)(after - at)};
        }
        *unclosed += 1;
        at += opening - 1;
    }
    return (Span){size, 0};
}

/* Write a formula, except its blank lines. */
static Status put_formula(const char *at, size_t size, Buffer *out)
{
    const char *end = at + size;
    TRY(reserve(out, size));
    while (at < end) {
        if (*at == '\r') {
            return FALLBACK;
        }
        if (*at != '\n') {
            TRY(put(out, at++, 1));
            continue;
        }
        for (const char *next = ++at; next < end && is_space((Byte)*next); next++) {
            if (*next == '\n') {
                at = next + 1;
            }
        }
        TRY(PUT_LITERAL(out, FEED));
    }
    return OK;
}

/* ---- The writer ---- */

typedef enum { PLAIN, OPENING, CLOSING } Role; /* Whether a piece is a delimiter of emphasis. */

/* A piece of the current block: a range of `text`. */
typedef struct {
    Span span;
    Role role;
} Piece;

/* Open emphasis, an open link or open raw HTML. `place` is the index of its first piece in the
   block; `sign` and `closing` are ranges of the buffer `signs`. */
typedef struct {
    int tag;
    const char *emphasis; /* Delimiter of emphasis; NULL for links and raw HTML. */
    Span sign, closing;
    size_t place;
} Format;

typedef struct {
    size_t opening, closing;
    const char *sign;
} Emphasis;

typedef struct {
    int tag;
    size_t prefix_size;
    ptrdiff_t lead_size;
    size_t blocks;
} Container;

typedef struct {
    char marker;
    unsigned long number;
} List;

typedef struct {
    const char *sign; /* Delimiter of formulas; empty if there are none. */
    Buffer tokens, out;
    size_t at; /* Index of the current token. */
    Buffer pieces, text, emphasized, signs;
    Buffer plain, block; /* Buffers for temporary use. */
    Format formats[MOST_DEPTH];
    Container containers[MOST_DEPTH];
    List lists[MOST_DEPTH];
    size_t format_count, depth, list_count;
    char prefix[MOST_DEPTH * MOST_INDENT], lead[MOST_DEPTH * MOST_INDENT];
    size_t prefix_size;
    size_t low_size;     /* Size of the shortest prefix since the last block. */
    ptrdiff_t lead_size; /* Size of the start of the next line; NOTHING if it is the prefix. */
    size_t count;        /* Number of blocks written. */
    int is_tight, in_paragraph, heading;
    /* At the end of the last list: the numbers of blocks and containers, and its marker. */
    size_t last_count, last_depth;
    char last_marker;
} Writer;

static const Token *token_at(const Writer *writer, size_t at)
{
    return (const Token *)(const void *)writer->tokens.bytes + at;
}

static size_t count_tokens(const Writer *writer)
{
    return writer->tokens.size / sizeof(Token);
}

static Piece *piece_at(const Writer *writer, size_t at)
{
    return (Piece *)(void *)writer->pieces.bytes + at;
}

static size_t count_pieces(const Writer *writer)
{
    return writer->pieces.size / sizeof(Piece);
}

/* Append the text from `from` on as a piece. */
static Status add_piece(Writer *writer, size_t from)
{
    Piece piece = {{from, writer->text.size - from}, PLAIN};
    return put(&writer->pieces, &piece, sizeof piece);
}

static Status add_literal(Writer *writer, const char *bytes, size_t size)
{
    size_t from = writer->text.size;
    TRY(put(&writer->text, bytes, size));
    return add_piece(writer, from);
}

/* Append a span of `text` to another. */
static Status extend(Writer *writer, Span *span, Span more)
{
    if (span->size == 0 || span->at + span->size == more.at || more.size == 0) {
        *span = span->size == 0 ? more : (Span){span->at, span->size + more.size};
        return OK;
    }
    Buffer *text = &writer->text;
    TRY(reserve(text, span->size + more.size));
    size_t from = text->size;
    TRY(put(text, text->bytes + span->at, span->size));
    TRY(put(text, text->bytes + more.at, more.size));
    *span = (Span){from, text->size - from};
    return OK;
}

static size_t count_leading_blanks(const Writer *writer, Span span)
{
    size_t count = 0;
    while (count < span.size && is_blank((Byte)writer->text.bytes[span.at + count])) {
        count++;
    }
    return count;
}

static int is_in_link(const Writer *writer)
{
    for (size_t i = 0; i < writer->format_count; i++) {
        if (HTML_TAGS[writer->formats[i].tag].kind == ANCHOR) {
            return 1;
        }
    }
    return 0;
}

/* Whether formulas are ignored here. */
static int is_literal(const Writer *writer)
{
    for (size_t i = 0; i < writer->format_count; i++) {
        if (strcmp(HTML_TAGS[writer->formats[i].tag].name, "kbd") == 0) {
            return 1;
        }
    }
    return 0;
}

static Status put_joined(Writer *writer, char *text, size_t size)
{
    return put_escaped(text, join_spaces(text, size), is_in_link(writer), &writer->text);
}

static Status add_text(Writer *writer, Reader in)
{
    int has_feed = 0;
    const Byte *at = in.at;
    for (; at < in.end && is_space(*at); at++) {
        has_feed |= *at == '\n';
    }
    if (at == in.end) {
        int is_needed = in.at < in.end && writer->pieces.size;
        return is_needed ? add_literal(writer, has_feed ? "\n" : " ", 1) : OK;
    }
    writer->plain.size = 0;
    TRY(put_unescaped(in, &writer->plain));
    char *text = writer->plain.bytes;
    size_t from = writer->text.size, start = 0, size = writer->plain.size;
    int unclosed = *writer->sign && !is_literal(writer) ? 0 : MOST_UNCLOSED;
    while (start < size) {
        Span formula = find_formula(text, start, size, writer->sign, &unclosed);
        TRY(put_joined(writer, text + start, formula.at - start));
        TRY(put_formula(text + formula.at, formula.size, &writer->text));
        start = formula.at + formula.size;
    }
    return add_piece(writer, from);
}

/* ---- Formats ---- */

static Status open_format(Writer *writer, int tag, const char *emphasis, Span sign, Span closing)
{
    if (writer->format_count == MOST_DEPTH) {
        return FALLBACK;
    }
    Format format = {tag, emphasis, sign, closing, count_pieces(writer)};
    writer->formats[writer->format_count++] = format;
    TRY(add_literal(writer, "", 0));
    return add_literal(writer, "", 0);
}

static Status add_sign(Writer *writer, const char *before, const char *name, const char *after,
                       Span *sign)
{
    sign->at = writer->signs.size;
    TRY(put(&writer->signs, before, strlen(before)));
    TRY(put(&writer->signs, name, strlen(name)));
    TRY(put(&writer->signs, after, strlen(after)));
    sign->size = writer->signs.size - sign->at;
    return OK;
}

static Status put_sign(Writer *writer, Span sign, Span *span)
{
    span->at = writer->text.size;
    span->size = sign.size;
    return put(&writer->text, writer->signs.bytes + sign.at, sign.size);
}

/* End the innermost format. Its delimiters go next to characters that are not white space. */
static Status close_format(Writer *writer)
{
    Format ended = writer->formats[--writer->format_count];
    if (ended.sign.size == 0) {
        return OK;
    }
    size_t place = ended.place, first = place + 2, count = count_pieces(writer);
    for (; first < count; first++) {
        Span *span = &piece_at(writer, first)->span;
        size_t blanks = count_leading_blanks(writer, *span);
        TRY(extend(writer, &piece_at(writer, place)->span, (Span){span->at, blanks}));
        *span = (Span){span->at + blanks, span->size - blanks};
        if (span->size) {
            break;
        }
    }
    if (first == count) {
        return OK;
    }
    size_t last = count - 1;
    while (count_leading_blanks(writer, piece_at(writer, last)->span)
           == piece_at(writer, last)->span.size) {
        last--;
    }
    Span *end = &piece_at(writer, last)->span;
    size_t from = end->size;
    while (is_blank((Byte)writer->text.bytes[end->at + from - 1])) {
        from--;
    }
    Span after = {end->at + from, end->size - from};
    end->size = from;
    for (size_t i = last + 1; i < count; i++) {
        TRY(extend(writer, &after, piece_at(writer, i)->span));
        piece_at(writer, i)->span.size = 0;
    }
    Piece *opening = piece_at(writer, place + 1);
    TRY(put_sign(writer, ended.sign, &opening->span));
    Piece closing = {{0, 0}, PLAIN};
    TRY(put_sign(writer, ended.closing, &closing.span));
    if (ended.emphasis != NULL) {
        Emphasis emphasis = {place + 1, count, ended.emphasis};
        TRY(put(&writer->emphasized, &emphasis, sizeof emphasis));
        opening->role = OPENING;
        closing.role = CLOSING;
    }
    TRY(put(&writer->pieces, &closing, sizeof closing));
    if (after.size) {
        Piece piece = {after, PLAIN};
        return put(&writer->pieces, &piece, sizeof piece);
    }
    return OK;
}

/* Return the character next to a run of delimiters of one kind, opening or closing; `*` for a
   delimiter of the other kind, NOTHING at an end of the block. */
static long neighbour(const Writer *writer, size_t place, int step)
{
    Role same = piece_at(writer, place)->role;
    size_t count = count_pieces(writer);
    for (size_t at = place + (size_t)step; at < count; at += (size_t)step) {
        const Piece *piece = piece_at(writer, at);
        const char *text = writer->text.bytes + piece->span.at;
        if (piece->role != PLAIN && piece->role != same) {
            return '*';
        }
        if (piece->span.size && piece->role != same) {
            return step < 0 ? last_char(text, piece->span.size)
                            : first_char(text, piece->span.size);
        }
    }
    return NOTHING;
}

typedef enum { SPACE_CHAR, SIGN_CHAR, WORD_CHAR } CharKind;

static Status find_kind(long code, CharKind *kind)
{
    int is_word;
    TRY(is_alnum(code, &is_word));
    *kind = is_word ? WORD_CHAR : code == NOTHING || is_white(code) ? SPACE_CHAR : SIGN_CHAR;
    return OK;
}

/* Whether a `*` between these two characters can delimit the emphasized text. */
static Status is_flanking(long outside, long inside, int *is)
{
    CharKind in, out;
    *is = 0;
    if (outside == '*' || inside == '*') {
        return OK;
    }
    TRY(find_kind(inside, &in));
    if (in == SIGN_CHAR) {
        TRY(find_kind(outside, &out));
        *is = out != WORD_CHAR;
    }
    *is |= in == WORD_CHAR;
    return OK;
}

/* Whether CommonMark would recognize this as emphasis, by its rules for delimiter runs. */
static Status is_emphasis_read(const Writer *writer, const Emphasis *emphasis, int *is)
{
    long before = neighbour(writer, emphasis->opening, -1);
    long after = neighbour(writer, emphasis->closing, 1);
    long inside = neighbour(writer, emphasis->opening, 1);
    long last = neighbour(writer, emphasis->closing, -1);
    *is = 0;
    if (inside == '~' || last == '~') {
        return OK;
    }
    *is = before == NOTHING || is_white(before);
    if (!*is) {
        TRY(is_alnum(inside, is));
    }
    *is = *is && !is_white(inside) && !is_white(last);
    if (*is) {
        TRY(is_apart(before, is));
    }
    if (*is) {
        TRY(is_apart(after, is));
    }
    if (*is || emphasis->sign[0] == '~') {
        return OK;
    }
    TRY(is_flanking(before, inside, is));
    return *is ? is_flanking(after, last, is) : OK;
}

/* Write emphasis as HTML tags where CommonMark would not recognize it. */
static Status check_emphasis(Writer *writer)
{
    size_t count = writer->emphasized.size / sizeof(Emphasis);
    for (size_t i = 0; i < count; i++) {
        const Emphasis *emphasis = (Emphasis *)(void *)writer->emphasized.bytes + i;
        int is_read;
        TRY(is_emphasis_read(writer, emphasis, &is_read));
        if (!is_read) {
            const char *sign = emphasis->sign;
            const char *name = sign[0] == '~' ? "del" : sign[1] ? "strong" : "em";
            Span tag;
            TRY(add_sign(writer, "<", name, ">", &tag));
            TRY(put_sign(writer, tag, &piece_at(writer, emphasis->opening)->span));
            TRY(add_sign(writer, "</", name, ">", &tag));
            TRY(put_sign(writer, tag, &piece_at(writer, emphasis->closing)->span));
        }
    }
    writer->emphasized.size = 0;
    return OK;
}

static Status end_format(Writer *writer, int tag)
{
    for (size_t depth = writer->format_count; depth-- > 0;) {
        if (writer->formats[depth].tag == tag) {
            while (writer->format_count > depth) {
                TRY(close_format(writer));
            }
            return OK;
        }
    }
    return OK;
}

/* ---- Blocks ---- */

static Status put_start(Writer *writer, const char *start, size_t size, int is_stripped)
{
    while (is_stripped && size > 0 && start[size - 1] == ' ') {
        size--;
    }
    return put(&writer->out, start, size);
}

/* Whether the next line starts with a marker of a list item that can interrupt a paragraph. */
static int begins_item(const Writer *writer)
{
    if (writer->lead_size == NOTHING || writer->list_count == 0) {
        return 0;
    }
    const List *list = &writer->lists[writer->list_count - 1];
    return list->marker == '-' || list->marker == '+' || list->number == 2
           || writer->low_size <= writer->containers[writer->depth - 1].prefix_size;
}

/* Begin a block, after a blank line except between the items of a tight list. */
static Status begin_block(Writer *writer, int is_tight)
{
    if (writer->count && !(is_tight && writer->is_tight && begins_item(writer))) {
        TRY(put_start(writer, writer->prefix, writer->low_size, 1));
        TRY(PUT_LITERAL(&writer->out, "\n"));
    }
    writer->low_size = writer->prefix_size;
    writer->count++;
    writer->is_tight = is_tight;
    return OK;
}

/* Write a line of the current block, with a backslash at `backslash` unless this is NOTHING. */
static Status put_line(Writer *writer, const char *line, size_t size, ptrdiff_t backslash)
{
    int is_led = writer->lead_size != NOTHING;
    TRY(put_start(writer, is_led ? writer->lead : writer->prefix,
                  is_led ? (size_t)writer->lead_size : writer->prefix_size, size == 0));
    writer->lead_size = NOTHING;
    if (backslash != NOTHING) {
        TRY(put(&writer->out, line, (size_t)backslash));
        TRY(PUT_LITERAL(&writer->out, "\\"));
        line += backslash;
        size -= (size_t)backslash;
    }
    TRY(put(&writer->out, line, size));
    return PUT_LITERAL(&writer->out, "\n");
}

static int has_only(const char *text, size_t size, const char *chars)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] == 0 || strchr(chars, text[i]) == NULL) {
            return 0;
        }
    }
    return 1;
}

/* Find the position for a backslash that keeps a line of text from starting a heading, list,
   quotation, rule or table; NOTHING if none is needed. After the first line of a paragraph, only
   the number 1 can start a list. */
static Status find_backslash(const char *line, size_t size, int is_first, ptrdiff_t *place)
{
    size_t run = 0;
    char first = size ? line[0] : 'a';
    *place = NOTHING;
    if (is_digit((Byte)first)) {
        while (run < size && is_digit((Byte)line[run])) {
            run++;
        }
        /* The character may be a digit of another script. */
        if (run < size && (Byte)line[run] >= 0x80) {
            long code = first_char(line + run, size - run);
            return code < 0x660 || (code >= 0x2000 && code < 0xA620) ? OK : FALLBACK;
        }
        if (run <= 9 && run < size && (line[run] == '.' || line[run] == ')')
            && (run + 1 == size || line[run + 1] == ' ' || line[run + 1] == '\t')
            && (is_first || strtol(line, NULL, 10) == 1)) {
            *place = (ptrdiff_t)run;
        }
        return OK;
    }
    while (run < size && line[run] == first) {
        run++;
    }
    int is_alone = run == size || line[run] == ' ' || line[run] == '\t';
    int is_meant = 0;
    switch (first) {
    case '#':
        is_meant = run <= 6 && is_alone;
        break;
    case '>':
        is_meant = 1;
        break;
    case '-':
        is_meant = (run == 1 && is_alone) || has_only(line, size, "-: |");
        break;
    case '+':
    case '*':
        is_meant = run == 1 && is_alone;
        break;
    case '=':
        is_meant = has_only(line + run, size - run, " \t");
        break;
    case '_':
        is_meant = has_only(line, size, " _");
        break;
    case '|':
    case ':':
        is_meant = has_only(line, size, "-: |");
        break;
    default:
        break;
    }
    *place = is_meant ? 0 : NOTHING;
    return OK;
}

/* Replace line breaks without leaving blank lines. */
static Status replace_breaks(Writer *writer, Span text)
{
    const char *bytes = writer->block.bytes + text.at;
    Buffer *out = &writer->plain;
    out->size = 0;
    for (size_t at = 0; at < text.size;) {
        if (bytes[at]) {
            TRY(put(out, bytes + at++, 1));
            continue;
        }
        while (out->size && is_space((Byte)out->bytes[out->size - 1])) {
            out->size--;
        }
        TRY(writer->heading ? PUT_LITERAL(out, "<br>") : PUT_LITERAL(out, "  \n"));
        for (at++; at < text.size && is_blank((Byte)bytes[at]); at++) {
            if (bytes[at] == 0 && !writer->heading) {
                TRY(PUT_LITERAL(out, "<br>\n"));
            }
        }
    }
    return OK;
}

static Status write_heading(Writer *writer, char *text, size_t size)
{
    const char *sign = HTML_TAGS[writer->heading].sign;
    size_t hashes = size;
    for (size_t i = 0; i < size; i++) {
        text[i] = text[i] == '\n' || text[i] == FEED[0] ? ' ' : text[i];
    }
    while (hashes > 0 && text[hashes - 1] == '#') {
        hashes--;
    }
    int is_closing = hashes < size && (hashes == 0 || is_space((Byte)text[hashes - 1]));
    Buffer *out = &writer->signs; /* A buffer for temporary use. */
    size_t from = out->size;
    TRY(put(out, sign, strlen(sign)));
    TRY(put(out, text, hashes));
    TRY(put(out, "\\", (size_t)is_closing));
    TRY(put(out, text + hashes, size - hashes));
    TRY(begin_block(writer, 0));
    TRY(put_line(writer, out->bytes + from, out->size - from, NOTHING));
    out->size = from;
    return OK;
}

static Status write_text(Writer *writer, Span text)
{
    char *at = writer->block.bytes + text.at;
    size_t size = text.size;
    int is_first = 1, is_tight = writer->depth > 0
                   && HTML_TAGS[writer->containers[writer->depth - 1].tag].kind == ITEM
                   && !writer->in_paragraph && !writer->heading;
    if (memchr(at, 0, size) != NULL) {
        TRY(replace_breaks(writer, text));
        at = writer->plain.bytes;
        size = writer->plain.size;
    }
    if (writer->heading) {
        return write_heading(writer, at, size);
    }
    TRY(begin_block(writer, is_tight));
    for (const char *end = at + size;; at++) {
        char *feed = memchr(at, '\n', (size_t)(end - at));
        size_t line = (size_t)((feed == NULL ? end : feed) - at);
        ptrdiff_t backslash;
        TRY(find_backslash(at, line, is_first, &backslash));
        is_first = 0;
        while ((feed = memchr(at, FEED[0], line)) != NULL) {
            TRY(put_line(writer, at, (size_t)(feed - at), backslash));
            line -= (size_t)(feed + 1 - at);
            at = feed + 1;
            backslash = NOTHING;
        }
        TRY(put_line(writer, at, line, backslash));
        at += line;
        if (at == end) {
            return OK;
        }
    }
}

/* Write the current block. */
static Status flush(Writer *writer)
{
    Format reopened[MOST_DEPTH];
    size_t count = writer->format_count, pieces = count_pieces(writer);
    if (pieces == 0) {
        return OK;
    }
    memcpy(reopened, writer->formats, sizeof reopened);
    while (writer->format_count) {
        TRY(close_format(writer));
    }
    TRY(check_emphasis(writer));
    Buffer *block = &writer->block;
    block->size = 0;
    pieces = count_pieces(writer);
    for (size_t i = 0; i < pieces; i++) {
        Span span = piece_at(writer, i)->span;
        TRY(put(block, writer->text.bytes + span.at, span.size));
    }
    writer->pieces.size = writer->text.size = 0;
    if (memchr(block->bytes, '\n', block->size) != NULL) {
        block->size = join_feeds(block->bytes, block->size);
    }
    Span text = {0, block->size};
    while (text.size && is_blank((Byte)block->bytes[text.at + text.size - 1])) {
        text.size--;
    }
    while (text.size && is_blank((Byte)block->bytes[text.at])) {
        text.at++;
        text.size--;
    }
    if (text.size) {
        TRY(write_text(writer, text));
    }
    for (size_t i = 0; i < count; i++) {
        Format *format = &reopened[i];
        const char *emphasis = format->emphasis;
        TRY(open_format(writer, format->tag, emphasis, format->sign, format->closing));
    }
    return OK;
}

/* ---- Containers ---- */

static Status enter(Writer *writer, int tag, const char *first, const char *rest)
{
    if (writer->depth == MOST_DEPTH) {
        return FALLBACK;
    }
    Container container = {tag, writer->prefix_size, writer->lead_size, writer->count};
    writer->containers[writer->depth++] = container;
    if (writer->lead_size == NOTHING) {
        memcpy(writer->lead, writer->prefix, writer->prefix_size);
        writer->lead_size = (ptrdiff_t)writer->prefix_size;
    }
    memcpy(writer->lead + writer->lead_size, first, strlen(first));
    writer->lead_size += (ptrdiff_t)strlen(first);
    memcpy(writer->prefix + writer->prefix_size, rest, strlen(rest));
    writer->prefix_size += strlen(rest);
    return OK;
}

static Status leave(Writer *writer)
{
    Container ended = writer->containers[--writer->depth];
    TagKind kind = HTML_TAGS[ended.tag].kind;
    if (kind != LIST && ended.blocks == writer->count) {
        if (kind == ITEM) {
            TRY(begin_block(writer, 0));
            TRY(put_line(writer, "", 0, NOTHING));
        } else {
            writer->lead_size = ended.lead_size;
        }
    }
    writer->prefix_size = ended.prefix_size;
    if (writer->prefix_size < writer->low_size) {
        writer->low_size = writer->prefix_size;
    }
    return OK;
}

static Status end_list(Writer *writer)
{
    char marker = writer->lists[--writer->list_count].marker;
    TRY(leave(writer));
    writer->last_count = writer->count;
    writer->last_depth = writer->depth;
    writer->last_marker = marker;
    if (writer->list_count == 0) {
        writer->is_tight = 0;
    }
    return OK;
}

/* End the innermost container with this tag, unless a quotation or, optionally, a list is open
   inside it. */
static Status leave_to(Writer *writer, int tag, int is_stopped_by_lists)
{
    int is_quotation = HTML_TAGS[tag].kind == QUOTATION;
    for (size_t depth = writer->depth; depth-- > 0;) {
        int other = writer->containers[depth].tag;
        TagKind kind = HTML_TAGS[other].kind;
        if (other == tag) {
            while (writer->depth > depth) {
                int is_list = HTML_TAGS[writer->containers[writer->depth - 1].tag].kind == LIST;
                TRY(is_list ? end_list(writer) : leave(writer));
            }
            return OK;
        }
        if (!is_quotation && (kind == QUOTATION || (is_stopped_by_lists && kind == LIST))) {
            return OK;
        }
    }
    return OK;
}

static Status start_list(Writer *writer, const Token *token)
{
    int is_ordered = HTML_TAGS[token->tag].name[0] == 'o';
    List list = {is_ordered ? '.' : '-', 1};
    TRY(flush(writer));
    if (writer->depth == MOST_DEPTH) {
        return FALLBACK;
    }
    if (is_ordered) {
        Reader start;
        TRY(find_attribute(token, "start", &start));
        size_t size = left(&start);
        if (start.at != NULL && size > 0 && size < 9) {
            unsigned long number = 0;
            for (; start.at < start.end && is_digit(*start.at); start.at++) {
                number = number * 10 + (unsigned long)(*start.at - '0');
            }
            if (start.at < start.end) {
                return FALLBACK;
            }
            list.number = number;
        }
    }
    if (writer->last_count == writer->count && writer->last_depth == writer->depth
        && writer->last_marker == list.marker) {
        list.marker = is_ordered ? ')' : '+';
    }
    Container container = {token->tag, writer->prefix_size, writer->lead_size, 0};
    writer->containers[writer->depth++] = container;
    writer->lists[writer->list_count++] = list;
    return OK;
}

static Status start_item(Writer *writer, int tag)
{
    char first[MOST_INDENT], rest[MOST_INDENT];
    TRY(flush(writer));
    TRY(leave_to(writer, tag, 1));
    writer->in_paragraph = 0;
    if (writer->list_count == 0
        || HTML_TAGS[writer->containers[writer->depth - 1].tag].kind != LIST) {
        return OK;
    }
    List *list = &writer->lists[writer->list_count - 1];
    unsigned long number = list->number++;
    if (number > 999999999) {
        return FALLBACK;
    }
    if (list->marker == '-' || list->marker == '+') {
        snprintf(first, sizeof first, "%c ", list->marker);
    } else {
        snprintf(first, sizeof first, "%lu%c ", number, list->marker);
    }
    snprintf(rest, sizeof rest, "%*s", (int)strlen(first), "");
    return enter(writer, tag, first, rest);
}

/* ---- Code ---- */

/* Find the language in the class of a code block. */
static Status find_language(const Token *token, Reader *language)
{
    Reader class;
    TRY(find_attribute(token, "class", &class));
    if (class.at == NULL) {
        return OK;
    }
    language->at = language->end = NULL;
    for (const Byte *at = class.at; at < class.end; at++) {
        if (*at >= 0x80 || *at == '&') {
            return FALLBACK;
        }
    }
    while (class.at < class.end) {
        skip_spaces(&class);
        Reader word = class;
        while (class.at < class.end && !is_space(*class.at)) {
            class.at++;
        }
        word.end = class.at;
        if ((SKIP(&word, "language-") || SKIP(&word, "lang-")) && left(&word)) {
            *language = word;
            break;
        }
    }
    return OK;
}

static Status write_code_block(Writer *writer)
{
    size_t start = writer->at, count = count_tokens(writer), end = start + 1;
    Reader language = {NULL, NULL};
    Buffer *code = &writer->plain;
    TRY(flush(writer));
    TRY(find_language(token_at(writer, start), &language));
    code->size = 0;
    for (;; end++) {
        TRY(put_unescaped(token_at(writer, end - 1)->text, code));
        if (end == count) {
            return FALLBACK;
        }
        const Token *token = token_at(writer, end);
        TagKind kind = HTML_TAGS[token->tag].kind;
        if (kind == CODE_BLOCK && token->is_end) {
            break;
        }
        if (kind == LINE_BREAK && !token->is_end) {
            TRY(PUT_LITERAL(code, "\n"));
        } else if (kind != CODE) {
            return FALLBACK;
        }
        if (end == start + 1 && !token->is_end && kind == CODE) {
            TRY(find_language(token, &language));
        }
    }
    writer->at = end;
    const char *carriage = memchr(code->bytes, '\r', code->size);
    size_t size = carriage ? (size_t)(carriage - code->bytes) : code->size, first = 0;
    for (size_t i = size; i < code->size; i++) {
        char byte = code->bytes[i];
        if (byte != '\r' || i + 1 == code->size || code->bytes[i + 1] != '\n') {
            code->bytes[size++] = byte == '\r' ? '\n' : byte;
        }
    }
    Reader before = token_at(writer, start)->text;
    int is_dropped = end == start + 1 || (before.at < before.end && *before.at == '\n');
    if (is_dropped && size > 0 && code->bytes[0] == '\n') {
        first++; /* Skip this line feed, which HTML ignores. */
    }
    if (size > first && code->bytes[size - 1] == '\n') {
        size--;
    }
    size_t blanks = first;
    while (blanks < size && is_space((Byte)code->bytes[blanks])) {
        blanks++;
    }
    if (blanks == size) {
        return OK;
    }
    size_t ticks = longest_backticks(code->bytes + first, size - first) + 1;
    Buffer *fence = &writer->block;
    fence->size = 0;
    TRY(put_backticks(fence, ticks < 3 ? 3 : ticks));
    size_t fence_size = fence->size;
    if (left(&language) != 4 || memcmp(language.at, "none", 4) != 0) {
        TRY(put(fence, language.at == NULL ? (const Byte *)"" : language.at, left(&language)));
    }
    TRY(begin_block(writer, 0));
    TRY(put_line(writer, fence->bytes, fence->size, NOTHING));
    for (const char *at = code->bytes + first, *stop = code->bytes + size;; at++) {
        const char *feed = memchr(at, '\n', (size_t)(stop - at));
        TRY(put_line(writer, at, (size_t)((feed == NULL ? stop : feed) - at), NOTHING));
        if (feed == NULL) {
            break;
        }
        at = feed;
    }
    return put_line(writer, fence->bytes, fence_size, NOTHING);
}

static Status write_code(Writer *writer)
{
    const Token *token = token_at(writer, writer->at);
    if (writer->at + 1 == count_tokens(writer) || HTML_TAGS[token[1].tag].kind != CODE
        || !token[1].is_end) {
        return FALLBACK;
    }
    Buffer *code = &writer->plain, *text = &writer->text;
    size_t from = text->size, blanks = 0;
    code->size = 0;
    TRY(put_unescaped(token->text, code));
    writer->at++;
    for (size_t i = 0; i < code->size; i++) {
        char byte = code->bytes[i];
        blanks += (size_t)is_space((Byte)byte);
        code->bytes[i] = byte == '\r' || byte == '\n' ? ' ' : byte;
    }
    const char *bytes = code->bytes;
    size_t size = code->size;
    if (blanks == size) {
        return size && writer->pieces.size ? add_literal(writer, " ", 1) : OK;
    }
    size_t last = count_pieces(writer);
    while (last > 0 && piece_at(writer, last - 1)->span.size == 0) {
        last--;
    }
    Span span = last > 0 ? piece_at(writer, last - 1)->span : (Span){0, 0};
    if (span.size && text->bytes[span.at + span.size - 1] == '`') {
        /* Use HTML, because Markdown would read two adjacent code spans as one. */
        TRY(PUT_LITERAL(text, "<code>"));
        TRY(put_escaped(bytes, size, 0, text));
        TRY(PUT_LITERAL(text, "</code>"));
        return add_piece(writer, from);
    }
    size_t ticks = 1 + longest_backticks(bytes, size);
    int is_padded = bytes[0] == '`' || bytes[size - 1] == '`'
                    || (bytes[0] == ' ' && bytes[size - 1] == ' ');
    TRY(put_backticks(text, ticks));
    TRY(put(text, " ", (size_t)is_padded));
    TRY(put(text, bytes, size));
    TRY(put(text, " ", (size_t)is_padded));
    TRY(put_backticks(text, ticks));
    return add_piece(writer, from);
}

/* ---- Links and images ---- */

/* Whether the parentheses of a URL are balanced, so that they need no escapes. */
static int is_balanced(const char *at, const char *end)
{
    int depth = 0;
    for (; at < end; at++) {
        depth += (*at == '(') - (*at == ')');
        if (depth < 0 || depth > MOST_PARENTHESES) {
            return 0;
        }
    }
    return depth == 0;
}

/* Write a URL as the destination of a link. */
static Status put_destination(const char *at, size_t size, Buffer *out)
{
    const char *end = at + size;
    while (at < end && is_space((Byte)*at)) {
        at++;
    }
    while (at < end && is_space((Byte)end[-1])) {
        end--;
    }
    if (at < end && (is_white(first_char(at, (size_t)(end - at)))
                     || is_white(last_char(at, (size_t)(end - at))))) {
        return FALLBACK;
    }
    int is_plain = is_balanced(at, end);
    for (; at < end; at++) {
        int is_other;
        switch (*at) {
        case ' ':
            TRY(PUT_LITERAL(out, "%20"));
            continue;
        case '\n':
            TRY(PUT_LITERAL(out, "%0A"));
            continue;
        case '\t':
            TRY(PUT_LITERAL(out, "%09"));
            continue;
        case '\r':
            TRY(PUT_LITERAL(out, "%0D"));
            continue;
        case '<':
            TRY(PUT_LITERAL(out, "%3C"));
            continue;
        case '>':
            TRY(PUT_LITERAL(out, "%3E"));
            continue;
        case '\\':
            TRY(PUT_LITERAL(out, "\\"));
            break;
        case '(':
        case ')':
            TRY(put(out, "\\", (size_t)!is_plain));
            break;
        case '&':
            TRY(is_reference(at, end, &is_other));
            TRY(put(out, "\\", (size_t)is_other));
            break;
        default:
            break;
        }
        TRY(put(out, at, 1));
    }
    return OK;
}

/* Write the words of an attribute to `plain`, with single spaces between them. */
static Status read_words(Writer *writer, Reader value)
{
    Buffer *words = &writer->plain;
    words->size = 0;
    if (value.at == NULL) {
        return OK;
    }
    TRY(put_unescaped(value, words));
    for (size_t i = 0; i < words->size; i++) {
        Byte byte = (Byte)words->bytes[i];
        if (byte == 0xC2 || (byte >= 0xE1 && byte <= 0xE3)) {
            return FALLBACK; /* The byte may start another kind of space. */
        }
        if (words->bytes[i] == '\n') {
            words->bytes[i] = ' ';
        }
    }
    words->size = join_spaces(words->bytes, words->size);
    if (words->size && words->bytes[words->size - 1] == ' ') {
        words->size--;
    }
    if (words->size && words->bytes[0] == ' ') {
        memmove(words->bytes, words->bytes + 1, --words->size);
    }
    return OK;
}

static Status put_title(Writer *writer, const Token *token, Buffer *out)
{
    Reader title;
    TRY(find_attribute(token, "title", &title));
    TRY(read_words(writer, title));
    const char *at = writer->plain.bytes, *end = at + writer->plain.size;
    if (writer->plain.size == 0) {
        return OK;
    }
    TRY(PUT_LITERAL(out, " \""));
    for (; at < end; at++) {
        int is_other = *at == '\\' || *at == '"';
        if (*at == '&') {
            TRY(is_reference(at, end, &is_other));
        }
        TRY(put(out, "\\", (size_t)is_other));
        TRY(put(out, at, 1));
    }
    return PUT_LITERAL(out, "\"");
}

static int is_autolink(const char *address, size_t size)
{
    size_t at = 0;
    while (at < size && (is_alpha((Byte)address[at])
                         || (at > 0 && (is_digit((Byte)address[at])
                                        || (address[at] && strchr("+.-", address[at])))))) {
        at++;
    }
    if (at < 2 || at > 32 || at == size || address[at] != ':') {
        return 0;
    }
    for (; at < size; at++) {
        /* Whether the byte continues a character. */
        int is_inside = ((Byte)address[at] & 0xC0) == 0x80;
        if (address[at] == '<' || address[at] == '>'
            || (!is_inside && is_white(first_char(address + at, size - at)))) {
            return 0;
        }
    }
    return 1;
}

static Status start_link(Writer *writer)
{
    const Token *token = token_at(writer, writer->at);
    Reader href, title;
    TRY(find_attribute(token, "href", &href));
    TRY(find_attribute(token, "title", &title));
    if (href.at == NULL || is_in_link(writer)) {
        return OK;
    }
    Buffer *signs = &writer->signs, *text = &writer->plain;
    Span closing = {signs->size, 0}, sign;
    text->size = 0;
    TRY(put_unescaped(href, text));
    size_t size = text->size;
    if (writer->at + 1 < count_tokens(writer) && HTML_TAGS[token[1].tag].kind == ANCHOR
        && token[1].is_end && title.at == NULL && is_autolink(text->bytes, size)) {
        TRY(put_unescaped(token->text, text));
        if (text->size == 2 * size && memcmp(text->bytes, text->bytes + size, size) == 0) {
            size_t from = writer->text.size;
            TRY(PUT_LITERAL(&writer->text, "<"));
            TRY(put(&writer->text, text->bytes, size));
            TRY(PUT_LITERAL(&writer->text, ">"));
            writer->at++;
            return add_piece(writer, from);
        }
    }
    if (writer->pieces.size) {
        Piece *last = piece_at(writer, count_pieces(writer) - 1);
        if (last->span.size && writer->text.bytes[last->span.at + last->span.size - 1] == '!') {
            Span end = {writer->text.size, 2};
            last->span.size--;
            TRY(PUT_LITERAL(&writer->text, "\\!"));
            TRY(extend(writer, &last->span, end));
        }
    }
    TRY(PUT_LITERAL(signs, "]("));
    TRY(put_destination(text->bytes, size, signs));
    TRY(put_title(writer, token, signs));
    TRY(PUT_LITERAL(signs, ")"));
    closing.size = signs->size - closing.at;
    TRY(add_sign(writer, "[", "", "", &sign));
    return open_format(writer, token->tag, NULL, sign, closing);
}

static Status add_image(Writer *writer, const Token *token)
{
    Reader alt, src;
    Buffer *text = &writer->text;
    size_t from = text->size;
    TRY(find_attribute(token, "alt", &alt));
    TRY(find_attribute(token, "src", &src));
    TRY(PUT_LITERAL(text, "!["));
    TRY(read_words(writer, alt));
    TRY(put_escaped(writer->plain.bytes, writer->plain.size, 1, text));
    TRY(PUT_LITERAL(text, "]("));
    writer->plain.size = 0;
    TRY(put_unescaped(src, &writer->plain));
    TRY(put_destination(writer->plain.bytes, writer->plain.size, text));
    TRY(put_title(writer, token, text));
    TRY(PUT_LITERAL(text, ")"));
    return add_piece(writer, from);
}

/* ---- Tags ---- */

static Status start_emphasis(Writer *writer, int tag)
{
    const char *emphasis = HTML_TAGS[tag].sign;
    Span sign;
    TRY(add_sign(writer, emphasis, "", "", &sign));
    Span closing = sign;
    for (size_t i = 0; i < writer->format_count; i++) {
        const Format *format = &writer->formats[i];
        if (format->emphasis != NULL && format->sign.size
            && strcmp(format->emphasis, emphasis) == 0) {
            sign.size = 0; /* Nested emphasis of the same kind has no effect. */
        }
    }
    return open_format(writer, tag, emphasis, sign, closing);
}

static Status start_raw(Writer *writer, int tag)
{
    Span sign, closing;
    TRY(add_sign(writer, "<", HTML_TAGS[tag].name, ">", &sign));
    TRY(add_sign(writer, "</", HTML_TAGS[tag].name, ">", &closing));
    return open_format(writer, tag, NULL, sign, closing);
}

static Status start_tag(Writer *writer, const Token *token)
{
    int tag = token->tag;
    switch (HTML_TAGS[tag].kind) {
    case PARAGRAPH:
    case BLOCK:
        TRY(flush(writer));
        writer->in_paragraph = HTML_TAGS[tag].kind == PARAGRAPH;
        return OK;
    case HEADING:
        TRY(flush(writer));
        writer->heading = tag;
        return OK;
    case LIST:
        return start_list(writer, token);
    case ITEM:
        return start_item(writer, tag);
    case QUOTATION:
        TRY(flush(writer));
        writer->in_paragraph = 0;
        return enter(writer, tag, "> ", "> ");
    case RULE:
        TRY(flush(writer));
        TRY(begin_block(writer, 0));
        return put_line(writer, writer->list_count ? "***" : "---", 3, NOTHING);
    case CODE_BLOCK:
        return write_code_block(writer);
    case EMPHASIS:
        return start_emphasis(writer, tag);
    case RAW:
        return start_raw(writer, tag);
    case ANCHOR:
        return start_link(writer);
    case IMAGE:
        return add_image(writer, token);
    case LINE_BREAK:
        return add_literal(writer, "", 1);
    case CODE:
        return write_code(writer);
    case TABLE:
        return FALLBACK;
    default:
        return OK;
    }
}

static Status end_tag(Writer *writer, int tag)
{
    switch (HTML_TAGS[tag].kind) {
    case PARAGRAPH:
    case BLOCK:
        TRY(flush(writer));
        writer->in_paragraph = 0;
        return OK;
    case HEADING:
        TRY(flush(writer));
        writer->heading = 0;
        return OK;
    case LIST:
    case QUOTATION:
        TRY(flush(writer));
        return leave_to(writer, tag, 0);
    case ITEM:
        TRY(flush(writer));
        return leave_to(writer, tag, 1);
    case EMPHASIS:
    case RAW:
    case ANCHOR:
    case CODE:
        return end_format(writer, tag);
    default:
        return OK;
    }
}

static Status write_markdown(Writer *writer, const Byte *body, size_t size)
{
    /* Ensure that no buffer is NULL. */
    Buffer *buffers[] = {&writer->out,     &writer->pieces, &writer->text,  &writer->emphasized,
                         &writer->signs,   &writer->plain,  &writer->block, &writer->tokens};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        TRY(reserve(buffers[i], 1));
    }
    TRY(split_tokens(body, body + size, &writer->tokens));
    size_t count = count_tokens(writer);
    TRY(add_text(writer, token_at(writer, 0)->text));
    for (writer->at = 1; writer->at < count; writer->at++) {
        const Token *token = token_at(writer, writer->at);
        TRY(token->is_end ? end_tag(writer, token->tag) : start_tag(writer, token));
        Reader text = token_at(writer, writer->at)->text;
        int is_between = left(&text) == 2 && memcmp(text.at, "\n\n", 2) == 0;
        if (left(&text) && (writer->pieces.size || !is_between)) {
            TRY(add_text(writer, text));
        }
    }
    TRY(flush(writer));
    while (writer->depth) {
        TRY(leave(writer));
    }
    return OK;
}

Status put_body_as_markdown(const char *body, size_t size, const char *sign, Buffer *out)
{
    Writer writer;
    memset(&writer, 0, sizeof writer);
    writer.sign = sign;
    writer.lead_size = NOTHING;
    writer.last_count = SIZE_MAX;
    Status status = write_markdown(&writer, (const Byte *)body, size);
    if (status == OK) {
        const char *at = writer.out.bytes, *end = at + writer.out.size;
        while (at < end && *at == '\n') {
            at++;
        }
        while (at < end && end[-1] == '\n') {
            end--;
        }
        status = end > at ? put(out, at, (size_t)(end - at)) : OK;
    }
    free(writer.tokens.bytes);
    free(writer.out.bytes);
    free(writer.pieces.bytes);
    free(writer.text.bytes);
    free(writer.emphasized.bytes);
    free(writer.signs.bytes);
    free(writer.plain.bytes);
    free(writer.block.bytes);
    return status;
}

/* ---- Text for the full-text index ---- */

static int separates_words(const Byte *name, size_t size)
{
    static const char *const NAMES[] = {
        "p",  "div", "br", "hr", "li", "ul", "ol", "dl", "dd", "dt", "pre",   "blockquote",
        "h1", "h2",  "h3", "h4", "h5", "h6", "td", "th", "tr", "table",
    };
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        if (strlen(NAMES[i]) == size && memcmp(NAMES[i], name, size) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Read a tag, and write a space if it separates words. */
static Status put_separator(Reader *in, Buffer *out)
{
    in->at++;
    if (in->at < in->end && *in->at == '/') {
        in->at++;
    }
    const Byte *name = in->at;
    if (left(in) == 0 || !is_alpha(*name)) {
        return FALLBACK;
    }
    while (in->at < in->end && (is_name_start(*in->at) || is_digit(*in->at))) {
        in->at++;
    }
    size_t size = (size_t)(in->at - name);
    if (left(in) && *in->at >= 0x80) {
        return FALLBACK; /* Perhaps another letter of the name. */
    }
    while (in->at < in->end && *in->at != '<' && *in->at != '>') {
        in->at++;
    }
    if (left(in) == 0 || *in->at++ == '<') {
        return FALLBACK;
    }
    return separates_words(name, size) ? PUT_LITERAL(out, " ") : OK;
}

Status put_body_as_text(const char *body, size_t size, Buffer *out)
{
    Reader in = {(const Byte *)body, (const Byte *)body + size};
    TRY(reserve(out, size));
    while (left(&in)) {
        const Byte *tag = memchr(in.at, '<', left(&in));
        Reader text = {in.at, tag == NULL ? in.end : tag};
        if (tag != NULL && tag > in.at && tag[-1] == '&') {
            return FALLBACK; /* A character reference may continue after the tag. */
        }
        TRY(put_unescaped(text, out));
        in.at = text.end;
        if (tag != NULL) {
            TRY(put_separator(&in, out));
        }
    }
    return OK;
}
