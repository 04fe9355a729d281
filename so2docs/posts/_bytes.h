/* Bytes to read and bytes to write, both within bounds.

   A byte is read only after a comparison with the end of the slice, and written only after
   `reserve`, the one place where memory grows. */

#ifndef SO2DOCS_BYTES_H
#define SO2DOCS_BYTES_H

#include "_canonical.h"

#include <stdlib.h>
#include <string.h>

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

/* The bytes of the slice that are still to be read. */
typedef struct {
    const Byte *at, *end;
} Reader;

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

#endif
