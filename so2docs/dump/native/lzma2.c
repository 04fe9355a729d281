/* Decode LZMA2, twice as fast as liblzma.

   A stream is a sequence of chunks of at most 2 MiB, and each chunk names its sizes. Chunks that
   are damaged, or that no known program writes, are refused: liblzma decodes them again and says
   what is wrong.

   LZMA waits for two things: the next probability, which depends on the last bit, and bytes of far
   matches, which are in no cache. Therefore, bits select values by masks instead of branches,
   both probabilities that can follow a bit are loaded before the bit is known, and the copies of
   matches are prefetched and held back until a later symbol needs their bytes.

   The caller owns the window. A window that is as large as the output is never written twice, so its
   bytes can be used in place.

   Format: https://github.com/tukaani-project/xz (lzma_decoder.c, lzma2_decoder.c) */

#include "../../parse/native/core.h"

#if !defined(SO2DOCS_PORTABLE) && defined(__GNUC__) && defined(__x86_64__)
#define ASSEMBLER
#endif

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define INLINE static inline
#define PREFETCH(address) ((void)(address))
#endif

#ifndef MOST_CHUNK
#define MOST_CHUNK ((size_t)2 << 20) /* Maximum decompressed size of a chunk. */
#endif

#define WINDOW_MARGIN (2 * MOST_CHUNK)

enum {
    MOST_PACKED = 1 << 16, /* Maximum compressed size of a chunk, without its header. */
    SLACK = LEAST_LZMA2_WINDOW / 2, /* More bytes than a symbol can read or a copy can write beyond the end. */
    STRIDE = 32, /* Bytes that are copied at a time; nearer matches overlap their copy. */
    STATES = 12,
    AFTER_MATCH = 7, /* First state after a match; earlier states follow a literal. */
    POSITIONS = 16, /* Values of a position in its lowest bits, at most 4. */
    SHORTEST = 2, /* Length of the shortest match. */
    SLOTS = 64, /* Slots of distances; a slot is a distance's highest bit and the bit after it. */
    FIRST_MODELLED = 4, /* First slot whose distances have more bits. */
    FIRST_DIRECT = 14, /* First slot with bits of a fixed probability. */
    MOST_MODELLED = FIRST_DIRECT / 2 - 2, /* Most bits of a distance that have probabilities. */
    ALIGNED = 4, /* The lowest bits of a larger distance, which have probabilities too. */
    LITERAL_CODER = 0x300, /* 0x100 for a literal after a literal, others after a match. */
    MOST_LITERAL_BITS = 4, /* Maximum number of bits of position and previous byte. */
    PROBABILITY_BITS = 11,
    ADAPTION = 5,
    FROM_ZERO = (1 << ADAPTION) - 1 - (1 << PROBABILITY_BITS)
};

/* Controls: the first byte of a chunk. */
enum {
    END = 0,
    STORED_WITH_RESET = 1,
    STORED = 2,
    COMPRESSED = 0x80,
    WITH_STATE = 0xA0,
    WITH_PROPERTIES = 0xC0,
    WITH_RESET = 0xE0
};

#define TOP (UINT32_C(1) << 24)

typedef uint16_t Probability;

typedef struct {
    Probability choice[2];
    Probability low[POSITIONS][8], middle[POSITIONS][8], high[256];
} Lengths;

typedef struct {
    Probability is_match[STATES][POSITIONS], is_repeat[STATES], is_older[STATES],
        is_third[STATES], is_fourth[STATES], is_long[STATES][POSITIONS];
    Probability slots[4][SLOTS];
    Probability modelled[FIRST_DIRECT][1 << MOST_MODELLED]; /* By slot. */
    Probability aligned[1 << ALIGNED];
    Lengths match, repeat;
    Probability literals[1 << MOST_LITERAL_BITS][LITERAL_CODER];
} Probabilities;

struct Lzma2 {
    Probabilities probabilities;
    Byte *window;
    size_t size; /* Size of the window, without the slack before and after it. */
    size_t dictionary;
    size_t at; /* Next byte of the window. */
    size_t read; /* Next byte that the caller has not read. */
    size_t end; /* End of the bytes written before the window wrapped. */
    size_t written; /* Number of bytes since the dictionary was reset. */
    uint32_t repeats[4]; /* Latest distances, less 1. */
    unsigned state, literal_context, literal_mask, position_mask;
    int needs_dictionary, needs_properties, needs_state;
    Byte packed[MOST_PACKED + SLACK];
};

Lzma2 *new_lzma2(size_t dictionary, Byte *memory, size_t size)
{
    Lzma2 *decoder = malloc(sizeof *decoder);
    if (decoder == NULL) {
        return NULL;
    }
    decoder->dictionary = dictionary;
    decoder->window = memory + SLACK; /* The byte before the first one is readable. */
    decoder->size = size - 2 * SLACK;
    decoder->at = decoder->read = decoder->end = decoder->written = 0;
    decoder->needs_dictionary = decoder->needs_properties = decoder->needs_state = 1;
    memset(decoder->packed, 0, sizeof decoder->packed);
    return decoder;
}

void free_lzma2(Lzma2 *decoder)
{
    free(decoder);
}

/* ---- Bits ---- */

typedef struct {
    uint32_t range, code;
    const Byte *in;
} Coder;

INLINE void normalize(Coder *coder)
{
    if (coder->range < TOP) {
        coder->range <<= 8;
        coder->code = coder->code << 8 | *coder->in++;
    }
}

/* Decode a bit that decides a branch. */
INLINE unsigned branch(Coder *coder, Probability *place)
{
    normalize(coder);
    uint32_t probability = *place, bound = (coder->range >> PROBABILITY_BITS) * probability;
    if (coder->code < bound) {
        coder->range = bound;
        *place = (Probability)(probability + (((1 << PROBABILITY_BITS) - probability) >> ADAPTION));
        return 0;
    }
    coder->range -= bound;
    coder->code -= bound;
    *place = (Probability)(probability - (probability >> ADAPTION));
    return 1;
}

/* Decode a bit without a branch. Returns a mask: all ones for 0, and 0 for 1. Selects the next
   probability from the two that can follow. */
INLINE uint32_t decode(Coder *coder, Probability *place, uint32_t *next, uint32_t if_0,
                       uint32_t if_1)
{
    normalize(coder);
    uint32_t probability = *next, mask, bound;
#ifdef ASSEMBLER
    uint32_t rest;
    __asm__("movl %[range], %[bound]\n\t"
            "shrl $11, %[bound]\n\t"
            "imull %[probability], %[bound]\n\t"
            "movl %[code], %[rest]\n\t"
            "subl %[bound], %[range]\n\t"
            "subl %[bound], %[code]\n\t"
            "cmovbl %[bound], %[range]\n\t"
            "cmovbl %[rest], %[code]\n\t"
            "cmovbl %[if_0], %[if_1]\n\t"
            "sbbl %[mask], %[mask]"
            : [range] "+&r"(coder->range), [code] "+&r"(coder->code), [if_1] "+&r"(if_1),
              [bound] "=&r"(bound), [rest] "=&r"(rest), [mask] "=&r"(mask)
            : [probability] "r"(probability), [if_0] "r"(if_0)
            : "cc");
    *next = if_1;
#else
    bound = (coder->range >> PROBABILITY_BITS) * probability;
    mask = (uint32_t)(((uint64_t)coder->code - bound) >> 32); /* All ones if the code is less. */
    uint32_t rest = coder->range - bound;
    coder->range = rest + (mask & (bound - rest));
    coder->code -= bound & ~mask;
    *next = if_1 ^ (mask & (if_0 ^ if_1));
#endif
    /* For 0, add (2048 - p) >> 5; for 1, subtract p >> 5. */
    int32_t change = (int32_t)(probability + (mask & (uint32_t)FROM_ZERO));
    *place = (Probability)((int32_t)probability - (change >> ADAPTION));
    return mask;
}

/* A table of exactly 2^bits probabilities, as the functions below expect; checked when compiled. */
#define TREE(table, bits) \
    ((table) + 0 * sizeof(char[sizeof(table) == sizeof(Probability) << (bits) ? 1 : -1]))

/* Decode a number of `bits` bits, the highest first, with a tree of 2^bits probabilities. Returns
   the number with a 1 before it. */
INLINE uint32_t decode_tree(Coder *coder, Probability *tree, unsigned bits)
{
    uint32_t node = 1, probability = tree[1];
    for (unsigned i = 1; i < bits; i++) {
        Probability *place = tree + node;
        node *= 2;
        node += 1 + decode(coder, place, &probability, tree[node], tree[node + 1]);
    }
    return 2 * node + 1 + decode(coder, tree + node, &probability, 0, 0);
}

/* Decode a number of `bits` bits, the lowest first. */
INLINE uint32_t decode_reverse(Coder *coder, Probability *tree, unsigned bits)
{
    uint32_t node = 1, number = 0, probability = tree[1];
    for (unsigned i = 0; i < bits; i++) {
        Probability *place = tree + node;
        node *= 2;
        uint32_t if_0 = 0, if_1 = 0;
        if (i + 1 < bits) {
            if_0 = tree[node];
            if_1 = tree[node + 1];
        }
        uint32_t bit = 1 + decode(coder, place, &probability, if_0, if_1);
        node += bit;
        number |= bit << i;
    }
    return number;
}

/* Decode 1 to 26 bits that are 0 or 1 with the same probability. The code is joined with the next 4
   bytes and normalized once, afterwards. */
INLINE uint32_t decode_direct(Coder *coder, unsigned bits)
{
    normalize(coder);
    uint64_t range = (uint64_t)coder->range << 32, code = (uint64_t)coder->code << 32;
    code |= (uint64_t)coder->in[0] << 24 | (uint64_t)coder->in[1] << 16
            | (uint64_t)coder->in[2] << 8 | coder->in[3];
    uint32_t number = 0;
    /* Up to the first normalization, halves are rounded down; later, halves have no remainder. */
    for (; bits > 0 && range >= (uint64_t)TOP << 32; bits--) {
        range = range >> 33 << 32;
        uint64_t mask = 0 - (uint64_t)(code < range);
        code -= range & ~mask;
        number = 2 * number + 1 + (uint32_t)mask;
    }
    for (; bits > 0; bits--) {
        range >>= 1;
        uint64_t mask = 0 - (uint64_t)(code < range);
        code -= range & ~mask;
        number = 2 * number + 1 + (uint32_t)mask;
    }
    while (range < (uint64_t)TOP << 32) {
        range <<= 8;
        code <<= 8;
        coder->in++;
    }
    coder->range = (uint32_t)(range >> 32);
    coder->code = (uint32_t)(code >> 32);
    return number;
}

/* ---- Symbols ---- */

/* Decode a literal after a match: the byte at the latest distance, `expected`, selects the
   probabilities as long as the bits are equal. `at` is at most 0x100 + 0x100 + 0xFF. */
INLINE Byte decode_expected(Coder *coder, Probability *tree, uint32_t expected)
{
    uint32_t node = 1, same = 0x100;
    expected <<= 1;
    uint32_t at = same + (expected & same) + node, probability = tree[at];
    for (int i = 0; i < 8; i++) {
        uint32_t bit = expected & same, at_0, at_1, if_0 = 0, if_1 = 0;
        Probability *place = tree + at;
        expected <<= 1;
        node *= 2;
        uint32_t same_0 = same & ~bit, same_1 = bit;
        at_0 = same_0 + (expected & same_0) + node;
        at_1 = same_1 + (expected & same_1) + node + 1;
        if (i < 7) {
            if_0 = tree[at_0];
            if_1 = tree[at_1];
        }
        uint32_t mask = decode(coder, place, &probability, if_0, if_1);
        node += 1 + mask;
        same = same_1 ^ (mask & (same_0 ^ same_1));
        at = at_1 ^ (mask & (at_0 ^ at_1));
    }
    return (Byte)node;
}

INLINE unsigned decode_length(Coder *coder, Lengths *lengths, unsigned position)
{
    if (!branch(coder, &lengths->choice[0])) {
        return SHORTEST + decode_tree(coder, TREE(lengths->low[position], 3), 3) - 8;
    }
    if (!branch(coder, &lengths->choice[1])) {
        return SHORTEST + 8 + decode_tree(coder, TREE(lengths->middle[position], 3), 3) - 8;
    }
    return SHORTEST + 16 + decode_tree(coder, TREE(lengths->high, 8), 8) - 256;
}

INLINE uint32_t decode_distance(Coder *coder, Probabilities *probabilities, unsigned length)
{
    unsigned kind = length < SHORTEST + 4 ? length - SHORTEST : 3;
    uint32_t slot = decode_tree(coder, TREE(probabilities->slots[kind], 6), 6) - SLOTS;
    if (slot < FIRST_MODELLED) {
        return slot;
    }
    unsigned bits = slot / 2 - 1;
    uint32_t distance = (2 | (slot & 1)) << bits;
    if (slot < FIRST_DIRECT) {
        Probability *tree = TREE(probabilities->modelled[slot], MOST_MODELLED);
        return distance + decode_reverse(coder, tree, bits);
    }
    distance += decode_direct(coder, bits - ALIGNED) << ALIGNED;
    return distance + decode_reverse(coder, TREE(probabilities->aligned, ALIGNED), ALIGNED);
}

/* Decode which of the latest distances but the first is repeated, and move it to the front. */
INLINE void repeat_older(Coder *coder, Probabilities *probabilities, unsigned state,
                         uint32_t *repeats)
{
    uint32_t distance = repeats[1];
    if (branch(coder, &probabilities->is_third[state])) {
        distance = repeats[2];
        if (branch(coder, &probabilities->is_fourth[state])) {
            distance = repeats[3];
            repeats[3] = repeats[2];
        }
        repeats[2] = repeats[1];
    }
    repeats[1] = repeats[0];
    repeats[0] = distance;
}

/* Decode the length of a match, and its distance into `repeats[0]`. */
INLINE unsigned decode_match(Coder *coder, Probabilities *probabilities, unsigned position,
                             unsigned *state, uint32_t *repeats)
{
    unsigned before = *state, length;
    if (!branch(coder, &probabilities->is_repeat[before])) {
        *state = before < AFTER_MATCH ? 7 : 10;
        length = decode_length(coder, &probabilities->match, position);
        repeats[3] = repeats[2];
        repeats[2] = repeats[1];
        repeats[1] = repeats[0];
        repeats[0] = decode_distance(coder, probabilities, length);
        return length;
    }
    if (branch(coder, &probabilities->is_older[before])) {
        repeat_older(coder, probabilities, before, repeats);
    } else if (!branch(coder, &probabilities->is_long[before][position])) {
        *state = before < AFTER_MATCH ? 9 : 11;
        return 1;
    }
    *state = before < AFTER_MATCH ? 8 : 11;
    return decode_length(coder, &probabilities->repeat, position);
}

/* ---- Matches ---- */

typedef struct {
    Byte *to;
    const Byte *from;
    size_t size;
} Match;

/* Copy a match from a distance of at least `STRIDE` bytes; may write `STRIDE` - 1 bytes more. */
INLINE void copy_far(const Match *match)
{
    size_t at = 0;
    do {
        memcpy(match->to + at, match->from + at, STRIDE);
        at += STRIDE;
    } while (at < match->size);
}

static void copy_near(Byte *to, const Byte *from, size_t size)
{
    for (size_t at = 0; at < size; at++) {
        to[at] = from[at];
    }
}

/* Copy a match that starts before the end of the window and continues at the window's start. */
static void copy_wrapped(const Lzma2 *decoder, Byte *to, size_t from, size_t size)
{
    for (size_t at = 0; at < size; at++) {
        to[at] = decoder->window[from];
        from = from + 1 == decoder->end ? 0 : from + 1;
    }
}

/* The latest matches, not yet copied, the older one first. */
typedef struct {
    Match first, second;
    Byte unused[2 * STRIDE]; /* What a missing match copies. */
} Held;

INLINE void forget_held(Held *held)
{
    held->first = held->second = (Match){held->unused, held->unused + STRIDE, 0};
}

INLINE void copy_held(Held *held)
{
    copy_far(&held->first);
    copy_far(&held->second);
    forget_held(held);
}

INLINE void hold(Held *held, Byte *to, const Byte *from, size_t size)
{
    PREFETCH(from);
    copy_far(&held->first);
    held->first = held->second;
    held->second = (Match){to, from, size};
}

/* Copy a match to the next byte of the window, or hold it. */
INLINE void copy_match(const Lzma2 *decoder, Held *held, Byte *out, size_t distance, size_t size)
{
    size_t at = (size_t)(out - decoder->window);
    if (distance <= at && distance >= STRIDE) {
        hold(held, out, out - distance, size);
    } else if (distance <= at) {
        copy_held(held);
        copy_near(out, out - distance, size);
    } else if (at + decoder->end - distance + size <= decoder->end) {
        hold(held, out, decoder->window + at + decoder->end - distance, size);
    } else {
        copy_held(held);
        copy_wrapped(decoder, out, at + decoder->end - distance, size);
    }
}

/* ---- Chunks ---- */

static void reset_state(Lzma2 *decoder)
{
    Probability *probabilities = (Probability *)&decoder->probabilities;
    for (size_t i = 0; i < sizeof decoder->probabilities / sizeof *probabilities; i++) {
        probabilities[i] = 1 << (PROBABILITY_BITS - 1);
    }
    memset(decoder->repeats, 0, sizeof decoder->repeats);
    decoder->state = 0;
}

static Status set_properties(Lzma2 *decoder, unsigned properties)
{
    unsigned context = properties % 9, position = properties / 9 % 5, positions = properties / 45;
    if (positions > 4 || context + position > MOST_LITERAL_BITS) {
        return FALLBACK;
    }
    decoder->literal_context = context;
    decoder->literal_mask = (1u << position) - 1;
    decoder->position_mask = (1u << positions) - 1;
    return OK;
}

/* Decode the symbols of a compressed chunk to the window, which has space for its `size` bytes.
   `SLACK` bytes after the end of the input must be readable. */
static Status decode_symbols(Lzma2 *decoder, const Byte *in, const Byte *end, size_t size)
{
    static const Byte after_literal[STATES] = {0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 4, 5};
    Probabilities *probabilities = &decoder->probabilities;
    Byte *window = decoder->window, *out = window + decoder->at, *stop = out + size;
    const size_t dictionary = decoder->dictionary, before = decoder->written - decoder->at;
    const unsigned context = decoder->literal_context, literal_mask = decoder->literal_mask;
    const unsigned position_mask = decoder->position_mask;
    unsigned state = decoder->state;
    uint32_t repeats[4];
    Coder coder = {UINT32_MAX, 0, in + 1};
    Held held = {.unused = {0}};
    memcpy(repeats, decoder->repeats, sizeof repeats);
    forget_held(&held);
    for (int i = 0; i < 4; i++) {
        coder.code = coder.code << 8 | *coder.in++;
    }
    while (out < stop) {
        size_t at = (size_t)(out - window), written = before + at;
        unsigned position = (unsigned)written & position_mask;
        if (coder.in > end) {
            return FALLBACK;
        }
        if (!branch(&coder, &probabilities->is_match[state][position])) {
            copy_held(&held);
            unsigned previous = out[-1] >> (8 - context);
            unsigned number = ((unsigned)written & literal_mask) << context | previous;
            Probability *tree = probabilities->literals[number];
            if (state < AFTER_MATCH) {
                *out++ = (Byte)decode_tree(&coder, tree, 8);
            } else {
                size_t from = at > repeats[0] ? at : at + decoder->end;
                *out++ = decode_expected(&coder, tree, window[from - repeats[0] - 1]);
            }
            state = after_literal[state];
            continue;
        }
        size_t length = decode_match(&coder, probabilities, position, &state, repeats);
        if (repeats[0] >= written || repeats[0] >= dictionary || length > (size_t)(stop - out)) {
            return FALLBACK;
        }
        copy_match(decoder, &held, out, (size_t)repeats[0] + 1, length);
        out += length;
    }
    copy_held(&held);
    normalize(&coder);
    memcpy(decoder->repeats, repeats, sizeof repeats);
    decoder->state = state;
    return coder.in == end && coder.code == 0 ? OK : FALLBACK;
}

/* Decode a compressed chunk, which is followed by `more` bytes. */
static Status decode_compressed(Lzma2 *decoder, const Byte *in, size_t packed, size_t more,
                                size_t size)
{
    if (packed < 5 || in[0] != 0) {
        return FALLBACK;
    }
    if (more < SLACK) {
        memcpy(decoder->packed, in, packed);
        in = decoder->packed;
    }
    return decode_symbols(decoder, in, in + packed, size);
}

/* Make space for a chunk, and for the byte before it if it resets the dictionary. At the end of the
   window, continue at its start; the dictionary stays where it is. */
static Status make_space(Lzma2 *decoder, size_t size)
{
    if (size <= MOST_CHUNK && decoder->size - decoder->at > size) {
        return OK;
    }
    if (size > MOST_CHUNK || decoder->size < decoder->dictionary + WINDOW_MARGIN) {
        return FALLBACK;
    }
    decoder->end = decoder->at;
    decoder->window[-1] = decoder->window[decoder->end - 1];
    decoder->at = decoder->read = 0;
    return OK;
}

/* The byte before the first one of a dictionary counts as 0. */
static void reset_dictionary(Lzma2 *decoder)
{
    decoder->window[decoder->at] = 0;
    decoder->read = ++decoder->at;
    decoder->end = decoder->written = 0;
    decoder->needs_dictionary = 0;
    decoder->needs_properties = 1;
}

typedef struct {
    unsigned control;
    size_t header, packed, unpacked; /* Sizes. */
} Chunk;

/* Read the header of a chunk. Returns whether the data has the whole chunk. */
static int read_header(const Byte *data, size_t size, Chunk *chunk)
{
    if (size == 0) {
        return 0;
    }
    unsigned control = chunk->control = data[0];
    chunk->header = control < COMPRESSED ? 3 : control < WITH_PROPERTIES ? 5 : 6;
    if (size < chunk->header) {
        return 0;
    }
    chunk->packed = chunk->unpacked = ((size_t)data[1] << 8 | data[2]) + 1;
    if (control >= COMPRESSED) {
        chunk->unpacked += (size_t)(control & 0x1F) << 16;
        chunk->packed = ((size_t)data[3] << 8 | data[4]) + 1;
    }
    return size - chunk->header >= chunk->packed;
}

/* Reset what the control of a chunk resets. FALLBACK if a reset is missing or the control is
   invalid. */
static Status reset(Lzma2 *decoder, const Chunk *chunk, const Byte *data)
{
    unsigned control = chunk->control;
    if (control == STORED_WITH_RESET || control >= WITH_RESET) {
        reset_dictionary(decoder);
    }
    if (decoder->needs_dictionary) {
        return FALLBACK;
    }
    if (control < COMPRESSED) {
        decoder->needs_state = 1;
        return control <= STORED ? OK : FALLBACK;
    }
    if (control >= WITH_PROPERTIES) {
        TRY(set_properties(decoder, data[5]));
        decoder->needs_properties = 0;
    }
    if (control >= WITH_STATE) {
        reset_state(decoder);
        decoder->needs_state = 0;
    }
    return decoder->needs_properties || decoder->needs_state ? FALLBACK : OK;
}

Status decode_lzma2(Lzma2 *decoder, const Byte *data, size_t size, size_t *used)
{
    Chunk chunk;
    *used = 0;
    if (size > 0 && data[0] == END) {
        decoder->needs_dictionary = 1; /* Another stream may follow. */
        *used = 1;
        return OK;
    }
    if (!read_header(data, size, &chunk) || decoder->read < decoder->at) {
        return OK;
    }
    TRY(make_space(decoder, chunk.unpacked));
    TRY(reset(decoder, &chunk, data));
    const Byte *in = data + chunk.header;
    if (chunk.control < COMPRESSED) {
        memcpy(decoder->window + decoder->at, in, chunk.packed);
    } else {
        size_t more = size - chunk.header - chunk.packed;
        TRY(decode_compressed(decoder, in, chunk.packed, more, chunk.unpacked));
    }
    decoder->at += chunk.unpacked;
    decoder->written += chunk.unpacked;
    *used = chunk.header + chunk.packed;
    return OK;
}

size_t read_lzma2(Lzma2 *decoder, size_t *start)
{
    size_t size = decoder->at - decoder->read;
    *start = SLACK + decoder->read;
    decoder->read = decoder->at;
    return size;
}
