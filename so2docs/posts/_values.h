/* Values of attributes -> JSON: text, numbers and tags.

   Most of a dump is text without anything special in it, which is copied in blocks. */

#ifndef SO2DOCS_VALUES_H
#define SO2DOCS_VALUES_H

#include "_bytes.h"
#include "_characters.h"

#if defined(__SSE2__) && defined(__GNUC__) && !defined(SO2DOCS_PORTABLE)
#include <emmintrin.h>
#define HAS_SSE2 1
#endif

#define MOST_DIGITS 18 /* Of a number: always fits 64 bits. */
#define BLOCK 16       /* Bytes that are copied at a time. */

/* ---- Text ---- */

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

/* ---- Numbers and tags ---- */

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

#endif
