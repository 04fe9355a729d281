/* Decode the symbols of a bzip2 block to sorted bytes: codes, run lengths and the move-to-front list.
   `bzip2.c` includes this file once for each way to keep the front of this list in registers. These
   macros define it: `Front` (the type), `LOAD_FRONT`, `MOVE` (moves one of the first 16 bytes to the
   front), `PUSH` (adds another byte at the front and drops the last byte), `FIRST`, `LAST` and
   `STORE_FIRST` (stores 16 copies of the first byte).

   Run-length digits need no branch: each digit writes its share of copies of the first byte, and a
   literal is a run of one byte. */

FOR_PROCESSOR static Status READ_SYMBOLS(Bzip2 *block, Bits *input, unsigned end_symbol,
                                         unsigned selectors, uint32_t limit)
{
    Bits in = *input;
    Front front;
    LOAD_FRONT(front, block->used);
    Byte *deeper = block->used + FRONT, *text = block->text;
    uint32_t size = 0, weight = 1;
    /* Symbols are indexes plus 1. */
    unsigned deep = end_symbol < FRONT + 1 ? end_symbol : FRONT + 1;
    for (unsigned group = 0; group < selectors; group++) {
        unsigned code = block->selectors[group];
        const uint16_t *table = block->tables[code];
        for (unsigned i = 0; i < GROUP_SYMBOLS; i++) {
            if (i % 2 == 0) {
                refill(&in); /* Enough bits for two codes. */
            }
            unsigned entry = table[in.bits >> (64 - TABLE_BITS)];
            if (UNLIKELY(entry == 0)) {
                entry = find_long_code(block, code, in.bits);
                if (entry == 0) {
                    return FALLBACK;
                }
                in.bits <<= TABLE_BITS;
                in.count -= TABLE_BITS;
            }
            unsigned length = entry & 15, symbol = entry >> 4;
            in.bits <<= length;
            in.count -= length;
            if (UNLIKELY(symbol >= deep)) {
                if (symbol == end_symbol) {
                    *input = in;
                    block->size = size;
                    return size <= limit ? OK : FALLBACK;
                }
                unsigned index = symbol - 1 - FRONT;
                Byte byte = deeper[index], last = LAST(front);
                memmove(deeper + 1, deeper, index);
                deeper[0] = last;
                PUSH(front, byte);
            } else {
                MOVE(front, symbol);
            }
            unsigned is_run = symbol < 2;
            uint32_t copies = is_run ? weight << symbol : 1;
            weight = is_run ? weight << 1 : 1;
            STORE_FIRST(front, text + size);
            if (UNLIKELY(copies > FRONT)) {
                if (copies > limit || size + copies > limit) {
                    return FALLBACK;
                }
                memset(text + size, FIRST(front), copies);
            }
            block->counts[FIRST(front)] += copies;
            size += copies;
        }
        if (size > limit) {
            return FALLBACK;
        }
    }
    return FALLBACK;
}

#undef FOR_PROCESSOR
#undef READ_SYMBOLS
#undef Front
#undef LOAD_FRONT
#undef MOVE
#undef PUSH
#undef FIRST
#undef LAST
#undef STORE_FIRST
