/* Canonical rows of a dump -> keys and JSON objects, in plain C.

   The twin of `rows.parse` and `posts.add` for rows in the form that every published dump has:

     slice     = space* row*
     row       = "<row" (space+ attribute)* space* "/>" space*
     attribute = name '="' value '"'
     name      = [A-Za-z_] [A-Za-z0-9_.-]*
     value     = (character | reference)*
     character = a Char of XML 1.0 in UTF-8, but none of < & "
     reference = "&lt;" | "&gt;" | "&amp;" | "&quot;" | "&apos;"
               | "&#" [0-9]{1,7} ";" | "&#x" [0-9A-Fa-f]{1,7} ";"        that give a Char
     number    = "-"? ("0" | [1-9] [0-9]{0,17})                          but not "-0"
     space     = TAB | LF | CR | " "

   No name stands twice in a row, starts with "xml" (in any case) or is `Answers`; the values of
   `posts.NUMBERS` are numbers; every row has `Id` and `PostTypeId`, and an answer `ParentId`.

   Everything else is NOT_CANONICAL, well-formed or not: the caller then takes the lxml way for the
   whole slice, so that only what is proven to come out the same is done here. The tests compare
   both on the same bytes.

   Bytes are read only after a comparison with the end of the slice, and written only after
   `reserve`, the one place where memory grows. */

#include "_canonical.h"

#include <stdlib.h>
#include <string.h>

#if defined(__SSE2__) && defined(__GNUC__) && !defined(SO2DOCS_PORTABLE)
#include <emmintrin.h>
#define HAS_SSE2 1
#endif

#define QUESTION 1
#define ANSWER 2
#define MOST_ATTRIBUTES 64 /* Of a row: 22 are known. */
#define MOST_DIGITS 18     /* Of a number: always fits 64 bits. */
#define BLOCK 16           /* Bytes that are copied at a time. */
#ifndef FIRST_CAPACITY
#define FIRST_CAPACITY ((size_t)64 * 1024)
#endif

#define TRY(step)                             \
    do {                                      \
        Verdict verdict_ = (step);            \
        if (verdict_ != CANONICAL) {          \
            return verdict_;                  \
        }                                     \
    } while (0)

typedef unsigned char Byte;

/* The bytes of the slice that are still to be read. */
typedef struct {
    const Byte *at, *end;
} Reader;

/* What an attribute is, by its name. The first five are kept for the key. */
typedef enum {
    ID,
    POST_TYPE_ID,
    PARENT_ID,
    ACCEPTED_ANSWER_ID,
    SCORE,
    OTHER_NUMBER,
    TAGS,
    RESERVED,
    TEXT
} Meaning;

typedef struct {
    const Byte *at;
    size_t size;
} Name;

/* The row that is being read. */
typedef struct {
    Name names[MOST_ATTRIBUTES];
    size_t count;
    uint64_t hashes; /* A bit for each name: most rows need no further look for repeated ones. */
    int64_t numbers[OTHER_NUMBER + 1];
    unsigned has; /* A bit for each Meaning that was found. */
} Row;

/* ---- Memory ---- */

/* Make room for `more` bytes. */
static inline Verdict reserve(Buffer *buffer, size_t more)
{
    if (buffer->capacity - buffer->size >= more) {
        return CANONICAL;
    }
    if (more > SIZE_MAX / 4 || buffer->size > SIZE_MAX / 4) {
        return NO_MEMORY;
    }
    size_t capacity = 2 * (buffer->size + more);
    if (capacity < FIRST_CAPACITY) {
        capacity = FIRST_CAPACITY;
    }
    char *bytes = realloc(buffer->bytes, capacity);
    if (bytes == NULL) {
        return NO_MEMORY;
    }
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return CANONICAL;
}

static inline Verdict put(Buffer *out, const void *bytes, size_t size)
{
    TRY(reserve(out, size));
    memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
    return CANONICAL;
}

#define PUT_LITERAL(out, literal) put(out, literal, sizeof(literal) - 1)

/* posts.KEY is little-endian on every machine. */
static Verdict put_integer(Buffer *out, int64_t number)
{
    Byte bytes[8];
    for (int i = 0; i < 8; i++) {
        bytes[i] = (Byte)((uint64_t)number >> (8 * i));
    }
    return put(out, bytes, sizeof bytes);
}

int64_t key_integer(const char *bytes)
{
    uint64_t number = 0;
    for (int i = 0; i < 8; i++) {
        number |= (uint64_t)(Byte)bytes[i] << (8 * i);
    }
    int64_t result;
    memcpy(&result, &number, sizeof result);
    return result;
}

void free_posts(Posts *posts)
{
    free(posts->keys.bytes);
    free(posts->json.bytes);
    free(posts->tags.bytes);
}

/* ---- Reading ---- */

static inline size_t left(const Reader *in)
{
    return (size_t)(in->end - in->at);
}

/* Read `literal` if it comes next. */
#define SKIP(in, literal)                                          \
    (left(in) >= sizeof(literal) - 1                               \
     && memcmp((in)->at, literal, sizeof(literal) - 1) == 0        \
     && ((in)->at += sizeof(literal) - 1, 1))

static inline int is_space(Byte byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

static inline void skip_spaces(Reader *in)
{
    while (in->at < in->end && is_space(*in->at)) {
        in->at++;
    }
}

static inline int is_name_start(Byte byte)
{
    return (Byte)((byte | 0x20) - 'a') < 26 || byte == '_';
}

static inline int is_digit(Byte byte)
{
    return (Byte)(byte - '0') < 10;
}

/* Read a canonical number and the quote that ends it. */
static Verdict read_number(Reader *in, int64_t *number)
{
    int is_negative = SKIP(in, "-");
    const Byte *digits = in->at;
    int64_t value = 0;
    while (in->at < in->end && is_digit(*in->at) && in->at - digits < MOST_DIGITS) {
        value = 10 * value + (*in->at++ - '0');
    }
    size_t count = (size_t)(in->at - digits);
    if (count == 0 || (*digits == '0' && (count > 1 || is_negative)) || !SKIP(in, "\"")) {
        return NOT_CANONICAL;
    }
    *number = is_negative ? -value : value;
    return CANONICAL;
}

/* ---- Characters ---- */

static inline int is_between(Byte byte, Byte low, Byte high)
{
    return low <= byte && byte <= high;
}

/* Bytes of the character that starts at `at` with a byte above 0x7F; 0 if it is no Char in UTF-8:
   table 3-7 of the Unicode standard, without U+FFFE and U+FFFF. */
static inline size_t sequence_size(const Byte *at, size_t size)
{
    Byte first = at[0];
    if (is_between(first, 0xC2, 0xDF)) {
        return size >= 2 && is_between(at[1], 0x80, 0xBF) ? 2 : 0;
    }
    if (is_between(first, 0xE0, 0xEF)) {
        Byte low = first == 0xE0 ? 0xA0 : 0x80, high = first == 0xED ? 0x9F : 0xBF;
        if (size < 3 || !is_between(at[1], low, high) || !is_between(at[2], 0x80, 0xBF)) {
            return 0;
        }
        return first == 0xEF && at[1] == 0xBF && at[2] >= 0xBE ? 0 : 3;
    }
    if (is_between(first, 0xF0, 0xF4)) {
        Byte low = first == 0xF0 ? 0x90 : 0x80, high = first == 0xF4 ? 0x8F : 0xBF;
        return size >= 4 && is_between(at[1], low, high) && is_between(at[2], 0x80, 0xBF)
                       && is_between(at[3], 0x80, 0xBF)
                   ? 4
                   : 0;
    }
    return 0;
}

static int is_allowed(uint32_t code)
{
    return code == 0x9 || code == 0xA || code == 0xD || (0x20 <= code && code <= 0xD7FF)
           || (0xE000 <= code && code <= 0xFFFD) || (0x10000 <= code && code <= 0x10FFFF);
}

/* Write an allowed character as it stands in a JSON string. */
static Verdict put_character(Buffer *out, uint32_t code)
{
    switch (code) {
    case '"':
        return PUT_LITERAL(out, "\\\"");
    case '\\':
        return PUT_LITERAL(out, "\\\\");
    case '\t':
        return PUT_LITERAL(out, "\\t");
    case '\n':
        return PUT_LITERAL(out, "\\n");
    case '\r':
        return PUT_LITERAL(out, "\\r");
    }
    Byte bytes[4];
    if (code < 0x80) {
        bytes[0] = (Byte)code;
        return put(out, bytes, 1);
    }
    if (code < 0x800) {
        bytes[0] = (Byte)(0xC0 | code >> 6);
        bytes[1] = (Byte)(0x80 | (code & 0x3F));
        return put(out, bytes, 2);
    }
    if (code < 0x10000) {
        bytes[0] = (Byte)(0xE0 | code >> 12);
        bytes[1] = (Byte)(0x80 | (code >> 6 & 0x3F));
        bytes[2] = (Byte)(0x80 | (code & 0x3F));
        return put(out, bytes, 3);
    }
    bytes[0] = (Byte)(0xF0 | code >> 18);
    bytes[1] = (Byte)(0x80 | (code >> 12 & 0x3F));
    bytes[2] = (Byte)(0x80 | (code >> 6 & 0x3F));
    bytes[3] = (Byte)(0x80 | (code & 0x3F));
    return put(out, bytes, 4);
}

/* ---- Values ---- */

static inline int digit_value(Byte byte, uint32_t base)
{
    if (is_digit(byte)) {
        return byte - '0';
    }
    Byte letter = (Byte)((byte | 0x20) - 'a');
    return base == 16 && letter < 6 ? letter + 10 : -1;
}

/* What follows `&#`. */
static Verdict put_numeric_reference(Reader *in, Buffer *out)
{
    uint32_t base = SKIP(in, "x") ? 16 : 10, code = 0;
    const Byte *digits = in->at;
    int digit;
    while (in->at < in->end && in->at - digits < 7 && (digit = digit_value(*in->at, base)) >= 0) {
        code = base * code + (uint32_t)digit;
        in->at++;
    }
    if (in->at == digits || !SKIP(in, ";") || !is_allowed(code)) {
        return NOT_CANONICAL;
    }
    return put_character(out, code);
}

/* A reference; those that dumps use most come first. */
static inline Verdict put_reference(Reader *in, Buffer *out)
{
    if (SKIP(in, "&lt;")) {
        return PUT_LITERAL(out, "<");
    }
    if (SKIP(in, "&gt;")) {
        return PUT_LITERAL(out, ">");
    }
    if (SKIP(in, "&#xA;")) {
        return PUT_LITERAL(out, "\\n");
    }
    if (SKIP(in, "&quot;")) {
        return PUT_LITERAL(out, "\\\"");
    }
    if (SKIP(in, "&amp;")) {
        return PUT_LITERAL(out, "&");
    }
    if (SKIP(in, "&apos;")) {
        return PUT_LITERAL(out, "'");
    }
    return SKIP(in, "&#") ? put_numeric_reference(in, out) : NOT_CANONICAL;
}

/* A raw line end is one space, and so is a TAB: XML 1.0, 2.11 and 3.3.3. */
static Verdict put_space(Reader *in, Buffer *out)
{
    if (SKIP(in, "\r\n") || SKIP(in, "\n") || SKIP(in, "\r") || SKIP(in, "\t")) {
        return PUT_LITERAL(out, " ");
    }
    return NOT_CANONICAL;
}

static inline Verdict put_sequences(Reader *in, Buffer *out)
{
    while (in->at < in->end && *in->at >= 0x80) {
        size_t size = sequence_size(in->at, left(in));
        if (size == 0) {
            return NOT_CANONICAL;
        }
        TRY(put(out, in->at, size));
        in->at += size;
    }
    return CANONICAL;
}

/* Whether a byte of a value is the same in JSON, whatever stands around it. */
static inline int is_plain(Byte byte)
{
    return is_between(byte, 0x20, 0x7F) && byte != '"' && byte != '&' && byte != '<'
           && byte != '\\';
}

/* Copy BLOCK bytes; return how many of them are plain, up to the first that is not. */
static inline size_t copy_block(const Byte *from, char *to)
{
#ifdef HAS_SSE2
    __m128i block = _mm_loadu_si128((const __m128i *)from);
    _mm_storeu_si128((__m128i *)to, block);
    /* As signed numbers, bytes above 0x7F are below 0x20 too. */
    __m128i special = _mm_cmplt_epi8(block, _mm_set1_epi8(0x20));
    special = _mm_or_si128(special, _mm_cmpeq_epi8(block, _mm_set1_epi8('"')));
    special = _mm_or_si128(special, _mm_cmpeq_epi8(block, _mm_set1_epi8('&')));
    special = _mm_or_si128(special, _mm_cmpeq_epi8(block, _mm_set1_epi8('<')));
    special = _mm_or_si128(special, _mm_cmpeq_epi8(block, _mm_set1_epi8('\\')));
    unsigned mask = (unsigned)_mm_movemask_epi8(special);
    return mask == 0 ? BLOCK : (size_t)__builtin_ctz(mask);
#else
    size_t count = 0;
    while (count < BLOCK && is_plain(from[count])) {
        to[count] = (char)from[count];
        count++;
    }
    return count;
#endif
}

/* Copy plain bytes, up to the first that is not or the end of the slice. */
static inline Verdict put_plain(Reader *in, Buffer *out)
{
    while (left(in) >= BLOCK) {
        TRY(reserve(out, BLOCK));
        size_t count = copy_block(in->at, out->bytes + out->size);
        in->at += count;
        out->size += count;
        if (count < BLOCK) {
            return CANONICAL;
        }
    }
    while (in->at < in->end && is_plain(*in->at)) {
        TRY(put(out, in->at++, 1));
    }
    return CANONICAL;
}

/* Write a value as it stands between the quotes of a JSON string; read the quote that ends it. */
static Verdict put_text(Reader *in, Buffer *out)
{
    for (;;) {
        TRY(put_plain(in, out));
        if (in->at == in->end) {
            return NOT_CANONICAL;
        }
        if (SKIP(in, "\"")) {
            return CANONICAL;
        }
        if (*in->at == '&') {
            TRY(put_reference(in, out));
        } else if (*in->at >= 0x80) {
            TRY(put_sequences(in, out));
        } else if (SKIP(in, "\\")) {
            TRY(PUT_LITERAL(out, "\\\\"));
        } else {
            TRY(put_space(in, out));
        }
    }
}

static Verdict put_string(Reader *in, Buffer *out)
{
    TRY(PUT_LITERAL(out, "\""));
    TRY(put_text(in, out));
    return PUT_LITERAL(out, "\"");
}

static Verdict put_number(Reader *in, Buffer *out, int64_t *number)
{
    const Byte *text = in->at;
    TRY(read_number(in, number));
    return put(out, text, (size_t)(in->at - text) - 1);
}

/* Split the text of `Tags` as `posts.tags` does. It may be split as it stands in a JSON string: no
   escape sequence has a byte of a separator. */
static Verdict put_split(Buffer *out, const char *text, size_t size, const char *separator)
{
    size_t length = strlen(separator), start = 0, at = 0;
    TRY(PUT_LITERAL(out, "[\""));
    while (at < size) {
        if (size - at >= length && memcmp(text + at, separator, length) == 0) {
            TRY(put(out, text + start, at - start));
            TRY(PUT_LITERAL(out, "\",\""));
            at += length;
            start = at;
        } else {
            at++;
        }
    }
    TRY(put(out, text + start, size - start));
    return PUT_LITERAL(out, "\"]");
}

static Verdict put_tags(Reader *in, Buffer *out, Buffer *tags)
{
    tags->size = 0;
    TRY(put_text(in, tags));
    const char *text = tags->bytes;
    size_t size = tags->size;
    if (size == 0) {
        return PUT_LITERAL(out, "[]");
    }
    if (size > 1 && text[0] == '|' && text[size - 1] == '|') {
        return put_split(out, text + 1, size - 2, "|");
    }
    if (size > 1 && text[0] == '<' && text[size - 1] == '>') {
        return put_split(out, text + 1, size - 2, "><");
    }
    TRY(PUT_LITERAL(out, "[\""));
    TRY(put(out, text, size));
    return PUT_LITERAL(out, "\"]");
}

/* ---- Attributes ---- */

#define IS(name, literal) (memcmp((name).at, literal, sizeof(literal) - 1) == 0)

/* `posts.NUMBERS`, `Tags` and the reserved name; by size, so that one or two comparisons do. */
static inline Meaning meaning_of(Name name)
{
    switch (name.size) {
    case 2:
        return IS(name, "Id") ? ID : TEXT;
    case 4:
        return IS(name, "Tags") ? TAGS : TEXT;
    case 5:
        return IS(name, "Score") ? SCORE : TEXT;
    case 7:
        return IS(name, "Answers") ? RESERVED : TEXT;
    case 8:
        return IS(name, "ParentId") ? PARENT_ID : TEXT;
    case 9:
        return IS(name, "ViewCount") ? OTHER_NUMBER : TEXT;
    case 10:
        return IS(name, "PostTypeId") ? POST_TYPE_ID : TEXT;
    case 11:
        return IS(name, "OwnerUserId") || IS(name, "AnswerCount") ? OTHER_NUMBER : TEXT;
    case 12:
        return IS(name, "CommentCount") ? OTHER_NUMBER : TEXT;
    case 13:
        return IS(name, "FavoriteCount") ? OTHER_NUMBER : TEXT;
    case 16:
        if (IS(name, "AcceptedAnswerId")) {
            return ACCEPTED_ANSWER_ID;
        }
        return IS(name, "LastEditorUserId") ? OTHER_NUMBER : TEXT;
    default:
        return TEXT;
    }
}

/* Read a name and what stands before its value. */
static inline Verdict read_name(Reader *in, Name *name)
{
    name->at = in->at;
    if (in->at == in->end || !is_name_start(*in->at)) {
        return NOT_CANONICAL;
    }
    while (in->at < in->end
           && (is_name_start(*in->at) || is_digit(*in->at) || *in->at == '.' || *in->at == '-')) {
        in->at++;
    }
    name->size = (size_t)(in->at - name->at);
    int is_xml = name->size >= 3 && (name->at[0] | 0x20) == 'x' && (name->at[1] | 0x20) == 'm'
                 && (name->at[2] | 0x20) == 'l';
    return !is_xml && SKIP(in, "=\"") ? CANONICAL : NOT_CANONICAL;
}

/* Keep a name, unless the row has it already. */
static inline Verdict add_name(Row *row, Name name)
{
    Byte first = name.at[0], last = name.at[name.size - 1];
    uint64_t hash = (uint64_t)1 << ((first * 5u + last * 7u + name.size * 11u) % 64);
    if (row->count == MOST_ATTRIBUTES) {
        return NOT_CANONICAL;
    }
    for (size_t i = 0; (row->hashes & hash) && i < row->count; i++) {
        const Name *other = &row->names[i];
        if (other->size == name.size && memcmp(other->at, name.at, name.size) == 0) {
            return NOT_CANONICAL;
        }
    }
    row->hashes |= hash;
    row->names[row->count++] = name;
    return CANONICAL;
}

static Verdict put_attribute(Reader *in, Row *row, Posts *posts)
{
    Name name;
    Buffer *json = &posts->json;
    TRY(read_name(in, &name));
    TRY(row->count == 0 ? PUT_LITERAL(json, "{\"") : PUT_LITERAL(json, ",\""));
    TRY(add_name(row, name));
    TRY(put(json, name.at, name.size));
    TRY(PUT_LITERAL(json, "\":"));
    Meaning meaning = meaning_of(name);
    row->has |= 1u << meaning;
    switch (meaning) {
    case TEXT:
        return put_string(in, json);
    case TAGS:
        return put_tags(in, json, &posts->tags);
    case RESERVED:
        return NOT_CANONICAL;
    default:
        return put_number(in, json, &row->numbers[meaning]);
    }
}

/* ---- Rows ---- */

static Verdict count_other_type(Posts *posts, int64_t type)
{
    size_t i = 0;
    while (i < posts->other_types_count && posts->other_types[i].type != type) {
        i++;
    }
    if (i == MOST_OTHER_TYPES) {
        return NOT_CANONICAL;
    }
    if (i == posts->other_types_count) {
        posts->other_types[i].type = type;
        posts->other_types[i].rows = 0;
        posts->other_types_count++;
    }
    posts->other_types[i].rows++;
    return CANONICAL;
}

/* Give the JSON object that starts at `start` its key; drop it if its type is another. */
static Verdict add_post(const Row *row, size_t start, Posts *posts)
{
    const unsigned required = 1u << ID | 1u << POST_TYPE_ID;
    if ((row->has & required) != required) {
        return NOT_CANONICAL;
    }
    int64_t kind = row->numbers[POST_TYPE_ID];
    posts->rows++;
    posts->last_id = row->numbers[ID];
    if (kind != QUESTION && kind != ANSWER) {
        posts->json.size = start;
        return count_other_type(posts, kind);
    }
    if (kind == ANSWER && !(row->has & 1u << PARENT_ID)) {
        return NOT_CANONICAL;
    }
    Meaning rank = kind == QUESTION ? ACCEPTED_ANSWER_ID : SCORE;
    TRY(put_integer(&posts->keys, row->numbers[kind == QUESTION ? ID : PARENT_ID]));
    TRY(put_integer(&posts->keys, row->numbers[ID]));
    TRY(put_integer(&posts->keys, row->has & 1u << rank ? row->numbers[rank] : 0));
    return put_integer(&posts->keys, (int64_t)(posts->json.size - start) << 4 | kind);
}

static Verdict convert_row(Reader *in, Posts *posts)
{
    Row row;
    row.count = 0;
    row.hashes = 0;
    row.has = 0;
    size_t start = posts->json.size;
    if (!SKIP(in, "<row")) {
        return NOT_CANONICAL;
    }
    for (;;) {
        const Byte *before = in->at;
        skip_spaces(in);
        if (SKIP(in, "/>")) {
            break;
        }
        if (in->at == before) {
            return NOT_CANONICAL;
        }
        TRY(put_attribute(in, &row, posts));
    }
    TRY(PUT_LITERAL(&posts->json, "}"));
    return add_post(&row, start, posts);
}

Verdict convert_rows(const char *slice, size_t size, Posts *posts)
{
    Reader in = {(const Byte *)slice, (const Byte *)slice + size};
    if (size > MOST_SLICE_BYTES) {
        return NOT_CANONICAL;
    }
    skip_spaces(&in);
    while (in.at < in.end) {
        TRY(convert_row(&in, posts));
        skip_spaces(&in);
    }
    return CANONICAL;
}
