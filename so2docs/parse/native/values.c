/* Convert values of attributes (text, numbers and tags) to JSON or plain UTF-8. Most of a dump
   is plain text, which is copied in blocks. */

#include "core.h"

#if !defined(SO2DOCS_PORTABLE) && defined(__GNUC__)
#if defined(__SSE2__)
#include <emmintrin.h>
#define SSE2
#elif defined(__aarch64__) && defined(__ARM_NEON) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#include <arm_neon.h>
#define NEON
#endif
#endif

#define MOST_DIGITS 18 /* Numbers of up to 18 digits always fit in 64 bits. */

/* Form of the written text. The compiler makes a copy of each function for each form. */
typedef enum { JSON, UTF8 } Form;

#if defined(__GNUC__)
#define IN_EACH_FORM static inline __attribute__((always_inline))
#else
#define IN_EACH_FORM static inline
#endif
#define BLOCK 16       /* Number of bytes copied at a time. */

/* ---- Characters that XML 1.0 allows ([2] Char), as UTF-8 and as references ---- */

static inline int is_between(Byte byte, Byte low, Byte high)
{
    return low <= byte && byte <= high;
}

/* Size of the character at `at`, which starts with a byte above 0x7F; 0 if it is not a Char in UTF-8:
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

/* Write a character for which `is_allowed` holds, escaped if the form is JSON. */
static Status put_character(Buffer *out, uint32_t code, Form form)
{
    switch (form == JSON ? code : 0) {
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

static inline int digit_value(Byte byte, uint32_t base)
{
    if (is_digit(byte)) {
        return byte - '0';
    }
    Byte letter = (Byte)((byte | 0x20) - 'a');
    return base == 16 && letter < 6 ? letter + 10 : -1;
}

/* Read a character reference after its `&#`. */
static Status put_numeric_reference(Reader *in, Buffer *out, Form form)
{
    uint32_t base = SKIP(in, "x") ? 16 : 10, code = 0;
    const Byte *digits = in->at;
    int digit;
    while (in->at < in->end && in->at - digits < 7 && (digit = digit_value(*in->at, base)) >= 0) {
        code = base * code + (uint32_t)digit;
        in->at++;
    }
    if (in->at == digits || !SKIP(in, ";") || !is_allowed(code)) {
        return FALLBACK;
    }
    return put_character(out, code, form);
}

/* Read a reference; test for the most frequent references first. */
IN_EACH_FORM Status put_reference(Reader *in, Buffer *out, Form form)
{
    if (SKIP(in, "&lt;")) {
        return PUT_LITERAL(out, "<");
    }
    if (SKIP(in, "&gt;")) {
        return PUT_LITERAL(out, ">");
    }
    if (SKIP(in, "&#xA;")) {
        return form == JSON ? PUT_LITERAL(out, "\\n") : PUT_LITERAL(out, "\n");
    }
    if (SKIP(in, "&quot;")) {
        return form == JSON ? PUT_LITERAL(out, "\\\"") : PUT_LITERAL(out, "\"");
    }
    if (SKIP(in, "&amp;")) {
        return PUT_LITERAL(out, "&");
    }
    if (SKIP(in, "&apos;")) {
        return PUT_LITERAL(out, "'");
    }
    return SKIP(in, "&#") ? put_numeric_reference(in, out, form) : FALLBACK;
}

/* ---- Text ---- */

/* Write a space for a TAB or a raw line end (one space for CR LF): XML 1.0, 2.11 and 3.3.3. */
static Status put_space(Reader *in, Buffer *out)
{
    if (SKIP(in, "\r\n") || SKIP(in, "\n") || SKIP(in, "\r") || SKIP(in, "\t")) {
        return PUT_LITERAL(out, " ");
    }
    return FALLBACK;
}

static inline Status put_sequences(Reader *in, Buffer *out)
{
    while (in->at < in->end && *in->at >= 0x80) {
        size_t size = sequence_size(in->at, left(in));
        if (size == 0) {
            return FALLBACK;
        }
        TRY(put(out, in->at, size));
        in->at += size;
    }
    return OK;
}

/* Whether a byte of a value needs no change in JSON. */
static inline int is_plain(Byte byte)
{
    return is_between(byte, 0x20, 0x7F) && byte != '"' && byte != '&' && byte != '<'
           && byte != '\\';
}

/* Copy BLOCK bytes. Returns the number of leading plain bytes. There are three variants: SSE2,
   NEON, and words of eight bytes for other machines. */
#if defined(SSE2)
static inline size_t copy_block(const Byte *from, char *to)
{
    __m128i block = _mm_loadu_si128((const __m128i *)from);
    _mm_storeu_si128((__m128i *)to, block);
    /* As signed numbers, bytes above 0x7F are negative, so this also finds them. */
    __m128i special = _mm_cmplt_epi8(block, _mm_set1_epi8(0x20));
    special = _mm_or_si128(special, _mm_cmpeq_epi8(block, _mm_set1_epi8('"')));
    special = _mm_or_si128(special, _mm_cmpeq_epi8(block, _mm_set1_epi8('&')));
    special = _mm_or_si128(special, _mm_cmpeq_epi8(block, _mm_set1_epi8('<')));
    special = _mm_or_si128(special, _mm_cmpeq_epi8(block, _mm_set1_epi8('\\')));
    unsigned mask = (unsigned)_mm_movemask_epi8(special);
    return mask == 0 ? BLOCK : (size_t)__builtin_ctz(mask);
}
#elif defined(NEON)
static inline size_t copy_block(const Byte *from, char *to)
{
    uint8x16_t block = vld1q_u8(from);
    vst1q_u8((Byte *)to, block);
    /* As signed numbers, bytes above 0x7F are negative, so this also finds them. */
    uint8x16_t special = vcltq_s8(vreinterpretq_s8_u8(block), vdupq_n_s8(0x20));
    special = vorrq_u8(special, vceqq_u8(block, vdupq_n_u8('"')));
    special = vorrq_u8(special, vceqq_u8(block, vdupq_n_u8('&')));
    special = vorrq_u8(special, vceqq_u8(block, vdupq_n_u8('<')));
    special = vorrq_u8(special, vceqq_u8(block, vdupq_n_u8('\\')));
    /* The mask has four bits for each byte. */
    uint8x8_t narrow = vshrn_n_u16(vreinterpretq_u16_u8(special), 4);
    uint64_t mask = vget_lane_u64(vreinterpret_u64_u8(narrow), 0);
    return mask == 0 ? BLOCK : (size_t)__builtin_ctzll(mask) / 4;
}
#else
#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Return nonzero if a byte of the word is below `least`, which is at most 0x80. */
static inline uint64_t has_below(uint64_t word, Byte least)
{
    return (word - EACH(least)) & ~word & EACH(0x80);
}

static inline size_t copy_block(const Byte *from, char *to)
{
    size_t count = 0;
    while (count < BLOCK) {
        uint64_t word;
        memcpy(&word, from + count, sizeof word);
        memcpy(to + count, &word, sizeof word);
        uint64_t special = (word & EACH(0x80)) | has_below(word, 0x20);
        special |= has_below(word ^ EACH('"'), 1) | has_below(word ^ EACH('&'), 1);
        special |= has_below(word ^ EACH('<'), 1) | has_below(word ^ EACH('\\'), 1);
        if (special != 0) {
            break;
        }
        count += sizeof word;
    }
    while (count < BLOCK && is_plain(from[count])) {
        count++;
    }
    return count;
}
#endif

/* Copy plain bytes, up to the next special byte or the end of the slice. */
static inline Status put_plain(Reader *in, Buffer *out)
{
    while (left(in) >= BLOCK) {
        TRY(reserve(out, BLOCK));
        size_t count = copy_block(in->at, out->bytes + out->size);
        in->at += count;
        out->size += count;
        if (count < BLOCK) {
            return OK;
        }
    }
    while (in->at < in->end && is_plain(*in->at)) {
        TRY(put(out, in->at++, 1));
    }
    return OK;
}

/* Write a value without its quotes, and read the closing quote. */
IN_EACH_FORM Status put_value(Reader *in, Buffer *out, Form form)
{
    for (;;) {
        TRY(put_plain(in, out));
        if (in->at == in->end) {
            return FALLBACK;
        }
        if (SKIP(in, "\"")) {
            return OK;
        }
        if (*in->at == '&') {
            TRY(put_reference(in, out, form));
        } else if (*in->at >= 0x80) {
            TRY(put_sequences(in, out));
        } else if (SKIP(in, "\\")) {
            TRY(form == JSON ? PUT_LITERAL(out, "\\\\") : PUT_LITERAL(out, "\\"));
        } else {
            TRY(put_space(in, out));
        }
    }
}

Status put_text(Reader *in, Buffer *out)
{
    return put_value(in, out, JSON);
}

Status put_utf8(Reader *in, Buffer *out)
{
    return put_value(in, out, UTF8);
}

Status put_string(Reader *in, Buffer *out)
{
    TRY(PUT_LITERAL(out, "\""));
    TRY(put_text(in, out));
    return PUT_LITERAL(out, "\"");
}

/* ---- Numbers and tags ---- */

Status read_number(Reader *in, int64_t *number)
{
    int is_negative = SKIP(in, "-");
    const Byte *digits = in->at;
    int64_t value = 0;
    while (in->at < in->end && is_digit(*in->at) && in->at - digits < MOST_DIGITS) {
        value = 10 * value + (*in->at++ - '0');
    }
    size_t count = (size_t)(in->at - digits);
    if (count == 0 || (*digits == '0' && (count > 1 || is_negative)) || !SKIP(in, "\"")) {
        return FALLBACK;
    }
    *number = is_negative ? -value : value;
    return OK;
}

Status put_number(Reader *in, Buffer *out, int64_t *number)
{
    const Byte *text = in->at;
    TRY(read_number(in, number));
    return put(out, text, (size_t)(in->at - text) - 1);
}

/* Split the text of `Tags` as `posts.tags` does. An escaped JSON string can be split: no escape
   sequence contains a separator. */
static Status put_split(Buffer *out, const char *text, size_t size, const char *separator)
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

Status put_split_tags(Buffer *out, const char *text, size_t size)
{
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

Status put_tags(Reader *in, Buffer *out, Buffer *tags)
{
    tags->size = 0;
    TRY(put_text(in, tags));
    return put_split_tags(out, tags->bytes, tags->size);
}
