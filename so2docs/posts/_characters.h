/* Characters that XML 1.0 allows ([2] Char), as UTF-8 and as references -> JSON. */

#ifndef SO2DOCS_CHARACTERS_H
#define SO2DOCS_CHARACTERS_H

#include "_bytes.h"

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

#endif
