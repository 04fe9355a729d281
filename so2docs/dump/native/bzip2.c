/* Decode bzip2 blocks, four times as fast as libbz2.

   Blocks are independent: each starts with a 48-bit magic number, at any bit position. libbz2
   handles blocks that are damaged, incomplete or randomized (by bzip2 before 0.9.5). The decoder
   treats bytes past the end of the data as zeros, and checks afterwards whether it read too far.

   The slow part of bzip2 is the inverse Burrows-Wheeler transform: a walk that waits for memory at
   each step. This file makes several walks in a block at the same time. They start at evenly spaced
   entries and end at the start of another walk; then they are joined, beginning at the origin of
   the block.

   Format: https://github.com/dsnet/compress/blob/master/doc/bzip2-format.pdf */

#include "../../parse/native/core.h"

#if !defined(SO2DOCS_PORTABLE) && defined(__GNUC__) && defined(__x86_64__)
#include <tmmintrin.h>
#define SSSE3 /* Every x86-64 has SSE2; SSSE3 is detected at run time. */
#endif

#if defined(__GNUC__)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#else
#define UNLIKELY(condition) (condition)
#endif

#define BLOCK_NUMBER UINT64_C(0x314159265359)
#define END_NUMBER UINT64_C(0x177245385090)
#define NUMBER_BITS 48

enum {
    LEVEL_BYTES = 100000,
    MOST_BYTES = 9 * LEVEL_BYTES, /* Maximum size of a block with its runs shortened. */
    MOST_SYMBOLS = 258,
    MOST_CODES = 6,
    MOST_SELECTORS = 18002,
    GROUP_SYMBOLS = 50,
    LONGEST_CODE = 20,
    TABLE_BITS = 10,
    FRONT = 16, /* Bytes at the front of the move-to-front list, which are kept in registers. */
    SLACK = GROUP_SYMBOLS * FRONT + 64, /* More bytes than the short runs of a group can write. */
    LANES = 12, /* Number of simultaneous walks. */
    STARTS = 512,
    /* Distance between the outputs of two walks; it puts them in different sets of a cache. */
    STRIDE = (MOST_BYTES / 4096 + 1) * 4096 + 320
};

/* ---- Bits ---- */

typedef struct {
    const Byte *data;
    size_t size, at; /* Beyond the end of the data, all bits are 0. */
    uint64_t bits; /* The next bits; the first bit is the highest. */
    unsigned count; /* Number of valid bits. */
} Bits;

static inline uint64_t load(const Byte *bytes)
{
    uint64_t word = 0;
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(&word, bytes, sizeof word);
    return __builtin_bswap64(word);
#else
    for (int i = 0; i < 8; i++) {
        word = word << 8 | bytes[i];
    }
    return word;
#endif
}

/* Return the 8 bytes at a position. */
static inline uint64_t word_at(const Byte *data, size_t size, size_t at)
{
    if (size >= 8 && at <= size - 8) {
        return load(data + at);
    }
    Byte rest[8] = {0};
    for (size_t i = at; i < size; i++) {
        rest[i - at] = data[i];
    }
    return load(rest);
}

/* Refill to at least 56 valid bits. */
static inline void refill(Bits *in)
{
    in->bits |= word_at(in->data, in->size, in->at) >> in->count;
    in->at += (63 - in->count) >> 3;
    in->count |= 56;
}

/* Read 1 to 32 bits. */
static inline uint32_t read_bits(Bits *in, unsigned count)
{
    refill(in);
    uint32_t value = (uint32_t)(in->bits >> (64 - count));
    in->bits <<= count;
    in->count -= count;
    return value;
}

static void start_reading(Bits *in, const Byte *data, size_t size, size_t bit)
{
    *in = (Bits){.data = data, .size = size, .at = bit / 8};
    if (bit % 8) {
        read_bits(in, bit % 8);
    }
}

static size_t bit_position(const Bits *in)
{
    return 8 * in->at - in->count;
}

/* ---- Magic numbers, which start blocks and end streams ---- */

static uint64_t number_at(const Byte *data, size_t size, size_t bit)
{
    return word_at(data, size, bit / 8) << bit % 8 >> (64 - NUMBER_BITS);
}

/* Mark all pairs of whole bytes that occur in a magic number at any bit position: 64 of 65,536. */
static void mark_pairs(Byte *pairs)
{
    static const uint64_t numbers[] = {BLOCK_NUMBER, END_NUMBER};
    for (int i = 0; i < 2; i++) {
        for (int shift = 0; shift < 8; shift++) {
            for (int byte = 0; byte < 4; byte++) {
                uint32_t pair = numbers[i] >> (24 + shift - 8 * byte) & 0xFFFF;
                pairs[pair >> 3] |= (Byte)(1 << (pair & 7));
            }
        }
    }
}

size_t find_bzip2_number(const Byte *data, size_t size, size_t from)
{
    Byte pairs[65536 / 8] = {0};
    mark_pairs(pairs);
    /* A magic number covers at least five whole bytes, so testing every fourth pair suffices. */
    for (size_t at = from / 8 + 1; at + 1 < size; at += 4) {
        uint32_t pair = (uint32_t)data[at] << 8 | data[at + 1];
        if (UNLIKELY(pairs[pair >> 3] >> (pair & 7) & 1)) {
            size_t bit = at >= 4 ? 8 * (at - 4) : 0;
            for (bit = bit < from ? from : bit; bit < 8 * at; bit++) {
                uint64_t number = number_at(data, size, bit);
                if ((number == BLOCK_NUMBER || number == END_NUMBER)
                    && bit + NUMBER_BITS <= 8 * size) {
                    return bit;
                }
            }
        }
    }
    return SIZE_MAX;
}

/* ---- Memory for a block ---- */

typedef struct {
    /* Position and size of the segment in `walked`, and number of the next segment. */
    uint32_t at, size, next;
} Segment;

struct Bzip2 {
    uint32_t *links; /* For each sorted rotation: index of the next one << 8 | first byte. */
    /* First the sorted bytes of the block, later the block itself. Each run of 4 to 259 bytes is
       stored as 4 bytes and a count. */
    Byte *text;
    Byte *walked; /* A row of STRIDE bytes for each lane; most bytes of a row are never written. */
    /* Number of bytes in `text`; index of the rotation that starts the block. */
    uint32_t size, origin;
    /* Number of bytes of `text` already read; pending copies of `repeated`. */
    uint32_t at, repeats;
    Byte repeated;
    size_t left; /* Number of unread bytes. */
    /* Inverted CRC of the bytes already read; CRC of the whole block. */
    uint32_t crc, expected_crc;
    uint32_t counts[256];
    uint16_t tables[MOST_CODES][1 << TABLE_BITS];
    /* For each length, the first value above its codes. */
    uint32_t limits[MOST_CODES][LONGEST_CODE + 1];
    /* Code minus its index in `symbols`, the same for all codes of a length. */
    uint32_t bases[MOST_CODES][LONGEST_CODE + 1];
    uint16_t symbols[MOST_CODES][MOST_SYMBOLS]; /* Ordered by code. */
    Byte selectors[MOST_SELECTORS];
    Byte used[256 + FRONT]; /* The move-to-front list. */
    Segment segments[STARTS + 1];
    uint32_t crc_tables[16][256];
};

static void fill_crc_tables(Bzip2 *block)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i << 24;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc << 1 ^ (crc >> 31 ? 0x04C11DB7 : 0);
        }
        block->crc_tables[0][i] = crc;
    }
    for (int table = 1; table < 16; table++) {
        for (int i = 0; i < 256; i++) {
            uint32_t crc = block->crc_tables[table - 1][i];
            block->crc_tables[table][i] = crc << 8 ^ block->crc_tables[0][crc >> 24];
        }
    }
}

Bzip2 *new_bzip2(void)
{
    Bzip2 *block = calloc(1, sizeof *block);
    if (block == NULL) {
        return NULL;
    }
    /* With pages of 4 KiB, every second step of a walk misses the TLB. */
    block->links = allocate_huge(2 * HUGE_PAGE);
    block->text = malloc(MOST_BYTES + SLACK);
    block->walked = malloc((size_t)LANES * STRIDE);
    if (block->links == NULL || block->text == NULL || block->walked == NULL) {
        free_bzip2(block);
        return NULL;
    }
    fill_crc_tables(block);
    return block;
}

void free_bzip2(Bzip2 *block)
{
    free(block->links);
    free(block->text);
    free(block->walked);
    free(block);
}

/* ---- The header of a block: bytes in use, codes ---- */

/* Read the set of bytes in use. Returns their number. */
static unsigned read_used(Bits *in, Byte *used)
{
    unsigned count = 0;
    uint32_t groups = read_bits(in, 16);
    for (unsigned group = 0; group < 16; group++) {
        uint32_t members = groups << group & 0x8000 ? read_bits(in, 16) : 0;
        for (unsigned i = 0; i < 16; i++) {
            if (members << i & 0x8000) {
                used[count++] = (Byte)(16 * group + i);
            }
        }
    }
    return count;
}

/* Read the code of each group of 50 symbols. Returns the number of groups; 0 if invalid. */
static unsigned read_selectors(Bits *in, unsigned codes, Byte *selectors)
{
    Byte order[MOST_CODES] = {0, 1, 2, 3, 4, 5};
    unsigned count = read_bits(in, 15);
    for (unsigned i = 0; i < count; i++) {
        unsigned place = 0;
        while (read_bits(in, 1)) {
            if (++place >= codes) {
                return 0;
            }
        }
        Byte code = order[place];
        memmove(order + 1, order, place);
        order[0] = code;
        /* Ignore excess selectors, which some programs write for alignment. */
        if (i < MOST_SELECTORS) {
            selectors[i] = code;
        }
    }
    return count < MOST_SELECTORS ? count : MOST_SELECTORS;
}

/* Read the lengths of the codes, each stored as the difference from the previous one. */
static Status read_lengths(Bits *in, unsigned symbols, Byte *lengths)
{
    uint32_t length = read_bits(in, 5);
    for (unsigned i = 0; i < symbols; i++) {
        for (;;) {
            if (length < 1 || length > LONGEST_CODE) {
                return FALLBACK;
            }
            if (!read_bits(in, 1)) {
                break;
            }
            length += read_bits(in, 1) ? UINT32_MAX : 1;
            if (in->at > in->size + 8) {
                return FALLBACK;
            }
        }
        lengths[i] = (Byte)length;
    }
    return OK;
}

/* Make the tables of a code. If there are too few or too many codes of a length, some values or
   codes are never used. */
static void make_tables(Bzip2 *block, unsigned number, const Byte *lengths, unsigned symbols)
{
    uint16_t *table = block->tables[number];
    uint32_t code = 0, index = 0;
    memset(table, 0, sizeof block->tables[number]);
    for (unsigned length = 1; length <= LONGEST_CODE; length++, code <<= 1) {
        block->bases[number][length] = code - index;
        for (unsigned symbol = 0; symbol < symbols; symbol++) {
            if (lengths[symbol] != length) {
                continue;
            }
            block->symbols[number][index++] = (uint16_t)symbol;
            if (length <= TABLE_BITS && code < 1u << length) {
                unsigned spare = TABLE_BITS - length;
                for (uint32_t i = code << spare; i < (code + 1) << spare; i++) {
                    table[i] = (uint16_t)(symbol << 4 | length);
                }
            }
            code++;
        }
        block->limits[number][length] = code;
    }
}

/* ---- Symbols ---- */

/* Find a code of more than TABLE_BITS bits. Returns symbol << 4 | number of bits above
   TABLE_BITS; 0 for an invalid code. */
static unsigned find_long_code(const Bzip2 *block, unsigned number, uint64_t bits)
{
    for (unsigned length = TABLE_BITS + 1; length <= LONGEST_CODE; length++) {
        uint32_t code = (uint32_t)(bits >> (64 - length));
        if (code < block->limits[number][length]) {
            return (unsigned)block->symbols[number][code - block->bases[number][length]] << 4
                   | (length - TABLE_BITS);
        }
    }
    return 0;
}

#ifdef SSSE3
/* For each symbol, the order of the first 16 bytes that moves the symbol's byte to the front. */
#define MOVED(i) \
    {i, i > 0 ? 0 : 1, i > 1 ? 1 : 2, i > 2 ? 2 : 3, i > 3 ? 3 : 4, i > 4 ? 4 : 5, i > 5 ? 5 : 6, \
     i > 6 ? 6 : 7, i > 7 ? 7 : 8, i > 8 ? 8 : 9, i > 9 ? 9 : 10, i > 10 ? 10 : 11, \
     i > 11 ? 11 : 12, i > 12 ? 12 : 13, i > 13 ? 13 : 14, i > 14 ? 14 : 15}
static const Byte moves[FRONT + 1][FRONT] = {
    MOVED(0), MOVED(0), MOVED(1), MOVED(2), MOVED(3), MOVED(4), MOVED(5), MOVED(6), MOVED(7),
    MOVED(8), MOVED(9), MOVED(10), MOVED(11), MOVED(12), MOVED(13), MOVED(14), MOVED(15)};

#define FOR_PROCESSOR __attribute__((target("ssse3")))
#define READ_SYMBOLS read_symbols_by_ssse3
#define Front __m128i
#define LOAD_FRONT(front, bytes) front = _mm_loadu_si128((const __m128i *)(bytes))
#define MOVE(front, symbol) \
    front = _mm_shuffle_epi8(front, _mm_loadu_si128((const __m128i *)moves[symbol]))
#define PUSH(front, byte) front = _mm_or_si128(_mm_slli_si128(front, 1), _mm_cvtsi32_si128(byte))
#define FIRST(front) (_mm_cvtsi128_si32(front) & 0xFF)
#define LAST(front) (Byte)(_mm_extract_epi16(front, 7) >> 8)
#define STORE_FIRST(front, to) \
    _mm_storeu_si128((__m128i *)(to), _mm_shuffle_epi8(front, _mm_setzero_si128()))
#include "bzip2_symbols.h"
#endif

/* Sixteen bytes in two words, the first byte lowest. */
typedef struct {
    uint64_t low, high;
} Words;

static inline Words load_words(const Byte *bytes)
{
    Words words = {0};
    for (int i = 7; i >= 0; i--) {
        words.low = words.low << 8 | bytes[i];
        words.high = words.high << 8 | bytes[i + 8];
    }
    return words;
}

static inline Words push(Words words, Byte byte)
{
    return (Words){words.low << 8 | byte, words.high << 8 | words.low >> 56};
}

static inline Words move_to_front(Words words, unsigned symbol)
{
    unsigned index = symbol - (symbol > 0), shift = index % 8 * 8;
    uint64_t before = (UINT64_C(1) << shift) - 1, from = index < 8 ? words.low : words.high;
    uint64_t shifted = (from & ~before & ~(UINT64_C(0xFF) << shift)) | (from & before) << 8;
    Byte byte = (Byte)(from >> shift);
    if (index < 8) {
        return (Words){shifted | byte, words.high};
    }
    return (Words){words.low << 8 | byte, shifted | words.low >> 56};
}

static inline void store_copies(Byte *to, Byte byte)
{
    memset(to, byte, FRONT);
}

#define FOR_PROCESSOR
#define READ_SYMBOLS read_symbols
#define Front Words
#define LOAD_FRONT(front, bytes) front = load_words(bytes)
#define MOVE(front, symbol) front = move_to_front(front, symbol)
#define PUSH(front, byte) front = push(front, byte)
#define FIRST(front) ((front).low & 0xFF)
#define LAST(front) (Byte)((front).high >> 56)
#define STORE_FIRST(front, to) store_copies(to, (Byte)(front).low)
#include "bzip2_symbols.h"

static Status (*choose_symbols(void))(Bzip2 *, Bits *, unsigned, unsigned, uint32_t)
{
#ifdef SSSE3
    if (__builtin_cpu_supports("ssse3")) {
        return read_symbols_by_ssse3;
    }
#endif
    return read_symbols;
}

/* ---- The inverse Burrows-Wheeler transform ---- */

#define IS_START (UINT32_C(1) << 31) /* Mark in `links` for the start of a walk. */

/* Link each rotation to the next one. */
static void link_rotations(Bzip2 *block)
{
    uint32_t places[256], sum = 0, size = block->size, i = 0, *links = block->links;
    const Byte *text = block->text;
    for (int byte = 0; byte < 256; byte++) {
        places[byte] = sum;
        sum += block->counts[byte];
    }
    for (; i + 8 <= size; i += 8) {
        uint64_t word;
        memcpy(&word, text + i, sizeof word);
        Byte first = text[i];
        if (word == first * UINT64_C(0x0101010101010101)) {
            uint32_t *to = links + places[first];
            places[first] += 8;
            for (uint32_t k = 0; k < 8; k++) {
                to[k] = (i + k) << 8 | first;
            }
            continue;
        }
        for (uint32_t k = 0; k < 8; k++) {
            Byte byte = text[i + k];
            links[places[byte]++] = (i + k) << 8 | byte;
        }
    }
    for (; i < size; i++) {
        links[places[text[i]]++] = i << 8 | text[i];
    }
}

typedef struct {
    Bzip2 *block;
    uint32_t spacing, starts, begun, active;
    uint32_t segments[LANES]; /* One entry for each lane. */
} Walks;

/* Move a lane to the next start of a walk. Returns the entry there. */
static uint32_t begin_segment(Walks *walks, unsigned lane, uint32_t step)
{
    Bzip2 *block = walks->block;
    uint32_t number = walks->begun, place = block->origin;
    if (number > 0) {
        /* Skip the origin, which is already segment 0. */
        number += (number - 1) * walks->spacing == place;
        place = (number - 1) * walks->spacing;
        if (place >= block->size) {
            walks->active--;
            /* Park the lane at the entry after the last, which links to itself. */
            return block->size << 8;
        }
    }
    walks->begun = number + 1;
    walks->segments[lane] = number;
    block->segments[number].at = lane * STRIDE + step;
    return block->links[place] & ~IS_START;
}

/* End the segment of a lane, which has reached the start of another segment. Returns the lane's
   next entry. */
static uint32_t end_segment(Walks *walks, unsigned lane, uint32_t step, uint32_t place)
{
    Segment *segment = &walks->block->segments[walks->segments[lane]];
    segment->size = lane * STRIDE + step - segment->at;
    segment->next = place == walks->block->origin ? 0 : place / walks->spacing + 1;
    return begin_segment(walks, lane, step);
}

#define STEP(lane)                                                       \
    {                                                                    \
        uint32_t entry = links[place##lane];                             \
        if (UNLIKELY(entry & IS_START)) {                                \
            entry = end_segment(&walks, lane, step, place##lane);        \
        }                                                                \
        walked[lane * STRIDE + step] = (Byte)entry;                      \
        place##lane = entry >> 8;                                        \
    }

#define BEGIN(lane)                                                      \
    uint32_t place##lane = begin_segment(&walks, lane, 0);               \
    walked[lane * STRIDE] = (Byte)place##lane;                           \
    place##lane >>= 8

/* Invert the transform: make the text from the sorted bytes. In a periodic or damaged block, the
   links form several cycles, and the text is the cycle of the origin, repeated up to the size of
   the block. */
static void unsort(Bzip2 *block)
{
    uint32_t *links = block->links, size = block->size;
    Byte *walked = block->walked;
    Walks walks = {.block = block, .spacing = size / STARTS + 1, .active = LANES};
    link_rotations(block);
    links[size] = size << 8;
    links[block->origin] |= IS_START;
    for (uint32_t place = 0; place < size; place += walks.spacing) {
        links[place] |= IS_START;
    }
    BEGIN(0); BEGIN(1); BEGIN(2); BEGIN(3); BEGIN(4); BEGIN(5);
    BEGIN(6); BEGIN(7); BEGIN(8); BEGIN(9); BEGIN(10); BEGIN(11);
    for (uint32_t step = 1; walks.active; step++) {
        STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5)
        STEP(6) STEP(7) STEP(8) STEP(9) STEP(10) STEP(11)
    }
    const Segment *segment = block->segments;
    for (uint32_t at = 0; at < size; segment = block->segments + segment->next) {
        uint32_t count = segment->size < size - at ? segment->size : size - at;
        memcpy(block->text + at, walked + segment->at, count);
        at += count;
    }
}

/* ---- Run lengths and checksum ---- */

/* Return the number of bytes before the next run of four, at most 16. Reads 19 bytes. */
static inline unsigned bytes_before_run(const Byte *text)
{
#ifdef SSSE3
    __m128i here = _mm_loadu_si128((const __m128i *)text), equal = _mm_set1_epi8(-1);
    for (int i = 1; i < 4; i++) {
        __m128i next = _mm_loadu_si128((const __m128i *)(text + i));
        equal = _mm_and_si128(equal, _mm_cmpeq_epi8(here, next));
    }
    return (unsigned)__builtin_ctz((unsigned)_mm_movemask_epi8(equal) | 1u << 16);
#else
    unsigned count = 0;
    for (; count < 16; count += 8) {
        uint64_t words[4], differ = 0;
        for (int i = 0; i < 4; i++) {
            memcpy(&words[i], text + count + i, 8);
            differ |= words[i] ^ words[0];
        }
        if ((differ - UINT64_C(0x0101010101010101)) & ~differ & UINT64_C(0x8080808080808080)) {
            break; /* A zero byte in this word marks the start of a run. */
        }
    }
    while (count < 16 && (text[count] != text[count + 1] || text[count] != text[count + 2]
                          || text[count] != text[count + 3])) {
        count++;
    }
    return count;
#endif
}

static inline int is_run(const Bzip2 *block, uint32_t at)
{
    const Byte *text = block->text + at;
    return block->size - at >= 4 && text[0] == text[1] && text[0] == text[2] && text[0] == text[3];
}

/* Return the number of bytes of the decoded block; 0 if the last run has no count. */
static size_t count_bytes(const Bzip2 *block)
{
    size_t count = 0;
    for (uint32_t at = 0; at < block->size;) {
        if (block->size - at >= 19) {
            unsigned plain = bytes_before_run(block->text + at);
            at += plain;
            count += plain;
            if (plain == 16) {
                continue;
            }
        }
        if (!is_run(block, at)) {
            at++;
            count++;
        } else if (block->size - at == 4) {
            return 0;
        } else {
            count += 4 + (size_t)block->text[at + 4];
            at += 5;
        }
    }
    return count;
}

static uint32_t add_to_crc(const Bzip2 *block, uint32_t crc, const Byte *bytes, size_t size)
{
    const uint32_t (*tables)[256] = block->crc_tables;
    for (; size >= 16; size -= 16, bytes += 16) {
        uint64_t high = load(bytes) ^ (uint64_t)crc << 32, low = load(bytes + 8);
        crc = 0;
        for (int i = 0; i < 8; i++) {
            crc ^= tables[8 + i][high >> 8 * i & 0xFF] ^ tables[i][low >> 8 * i & 0xFF];
        }
    }
    for (; size > 0; size--) {
        crc = crc << 8 ^ tables[0][crc >> 24 ^ *bytes++];
    }
    return crc;
}

size_t bzip2_left(const Bzip2 *block)
{
    return block->left;
}

Status read_bzip2(Bzip2 *block, Byte *out, size_t size)
{
    Byte *to = out, *end = out + size;
    const Byte *text = block->text;
    while (to < end) {
        if (block->repeats > 0) {
   size_t count = (size_t)(end - to) < block->repeats ? (size_t)(end - to) : block->repeats;
            memset(to, block->repeated, count);
            to += count;
            block->repeats -= (uint32_t)count;
            continue;
        }
        while (end - to >= 16 && block->size - block->at >= 19) {
            unsigned plain = bytes_before_run(text + block->at);
            memcpy(to, text + block->at, 16);
            block->at += plain;
            to += plain;
            if (plain < 16) {
                break;
            }
        }
        if (to == end) {
            break;
        }
        if (is_run(block, block->at)) {
            block->repeated = text[block->at];
            block->repeats = 4 + (uint32_t)text[block->at + 4];
            block->at += 5;
        } else {
            *to++ = text[block->at++];
        }
    }
    block->crc = add_to_crc(block, block->crc, out, size);
    block->left -= size;
    return block->left > 0 || ~block->crc == block->expected_crc ? OK : FALLBACK;
}

/* ---- A block ---- */

Status decode_bzip2(Bzip2 *block, const Byte *data, size_t size, size_t bit, unsigned level,
                    Bzip2Block *result)
{
    Bits in;
    Byte lengths[MOST_SYMBOLS];
    start_reading(&in, data, size, bit);
    block->size = block->at = block->repeats = 0;
    block->left = 0;
    block->crc = UINT32_MAX;
    memset(block->counts, 0, sizeof block->counts);
    if (((uint64_t)read_bits(&in, 24) << 24 | read_bits(&in, 24)) != BLOCK_NUMBER) {
        return FALLBACK;
    }
    result->crc = block->expected_crc = read_bits(&in, 32);
    result->is_randomized = (int)read_bits(&in, 1);
    block->origin = read_bits(&in, 24);
    unsigned count = read_used(&in, block->used), codes = read_bits(&in, 3);
    if (count == 0 || codes < 2 || codes > MOST_CODES) {
        return FALLBACK;
    }
    unsigned selectors = read_selectors(&in, codes, block->selectors);
    for (unsigned code = 0; code < codes; code++) {
        TRY(read_lengths(&in, count + 2, lengths));
        make_tables(block, code, lengths, count + 2);
    }
    TRY(choose_symbols()(block, &in, count + 1, selectors, level * LEVEL_BYTES));
    result->end = bit_position(&in);
    if (result->end > 8 * size || block->origin >= block->size) {
        return FALLBACK;
    }
    if (!result->is_randomized) {
        unsort(block);
        block->left = count_bytes(block);
    }
    return block->left > 0 || result->is_randomized ? OK : FALLBACK;
}
