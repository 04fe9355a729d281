/* Fuzz `lzma2.c` against liblzma (`make fuzz-core`). With REPLAY (`make sanitize`), run every seed
   instead, cut and damaged at many places, and print a checksum of all output.

   The first byte of an input selects whether the rest is a stream, or data that liblzma compresses
   first. In the latter case, the next bytes give the settings of the compression, the size of its
   chunks, and a byte of the stream to change. Chunks and window are small here, so that short
   inputs fill the window several times. */

#include <lzma.h>

#include "fuzz.h"

#define MOST_CHUNK 8192
#include "../../so2docs/dump/native/lzma2.c"

enum { DICTIONARY = 4096, MOST_OUTPUT = 1 << 20, HEADER = 6, STORED_BYTES = 4 };

/* Decode a stream in a window of `capacity` bytes. Returns the number of decoded bytes; SIZE_MAX if
   the stream is refused. */
static size_t decode_all(const Byte *stream, size_t size, size_t capacity, Byte *out)
{
    Byte *window = malloc(capacity); /* Sanitizers find what is written beyond its end. */
    require(window != NULL, "there is memory for a window");
    Lzma2 *decoder = new_lzma2(DICTIONARY, window, capacity);
    require(decoder != NULL, "there is memory for a decoder");
    size_t at = 0, count = 0, used = 1, start;
    int is_ended = 0, is_refused = 0;
    while (used > 0 && !is_refused && count <= MOST_OUTPUT - MOST_CHUNK) {
        is_refused = decode_lzma2(decoder, stream + at, size - at, &used) != OK;
        if (!is_refused) {
            is_ended = used > 0 ? used == 1 : is_ended;
            at += used;
            require(at <= size, "a chunk ends in the data");
            size_t more = read_lzma2(decoder, &start);
            require(more <= MOST_CHUNK, "a chunk is not larger than allowed");
            require(start + more <= capacity, "a chunk is in the window");
            memcpy(out + count, window + start, more);
            count += more;
        }
    }
    free_lzma2(decoder);
    free(window);
    return at == size && is_ended && !is_refused ? count : SIZE_MAX;
}

static size_t decode_by_library(const Byte *stream, size_t size, Byte *out)
{
    lzma_options_lzma options = {.dict_size = DICTIONARY};
    lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};
    lzma_stream library = LZMA_STREAM_INIT;
    library.next_in = stream;
    library.avail_in = size;
    library.next_out = out;
    library.avail_out = MOST_OUTPUT;
    lzma_ret result = LZMA_STREAM_END;
    while (result == LZMA_STREAM_END && library.avail_in > 0) {
        require(lzma_raw_decoder(&library, filters) == LZMA_OK, "liblzma starts");
        do {
            result = lzma_code(&library, LZMA_RUN);
        } while (result == LZMA_OK && library.avail_out > 0 && library.avail_in > 0);
    }
    size_t count = MOST_OUTPUT - library.avail_out;
    lzma_end(&library);
    return result == LZMA_STREAM_END && size > 0 ? count : SIZE_MAX;
}

static size_t check(const Byte *stream, size_t size)
{
    static Byte out[MOST_OUTPUT], whole[MOST_OUTPUT], expected[MOST_OUTPUT];
    size_t count = decode_all(stream, size, DICTIONARY + WINDOW_MARGIN + 2 * SLACK, out);
    size_t fitting = count == SIZE_MAX ? size : count + size / STORED_BYTES + 1; /* A byte a reset. */
    size_t again = decode_all(stream, size, 2 * SLACK + fitting, whole);
    require(again == count || count == SIZE_MAX, "a whole stream fits in its window");
    if (count != SIZE_MAX) {
        require(decode_by_library(stream, size, expected) == count, "both find the same end");
        require(memcmp(out, expected, count) == 0, "both make the same bytes");
        add_to_checksum(out, count);
    }
    return count;
}

/* Compress data in chunks of at most `chunk` bytes. Returns the size of the stream. */
static size_t compress(const Byte *data, size_t size, const Byte *settings, size_t chunk,
                       Byte *stream)
{
    lzma_options_lzma options;
    lzma_lzma_preset(&options, settings[0] % 7);
    options.dict_size = DICTIONARY;
    options.lc = settings[1] % 5;
    options.lp = settings[1] / 5 % (5 - options.lc);
    options.pb = settings[1] / 25 % 5;
    lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};
    lzma_stream library = LZMA_STREAM_INIT;
    require(lzma_raw_encoder(&library, filters) == LZMA_OK, "liblzma starts to compress");
    library.next_out = stream;
    library.avail_out = MOST_OUTPUT;
    for (size_t at = 0, step; at < size; at += step) {
        step = size - at < chunk ? size - at : chunk;
        library.next_in = data + at;
        library.avail_in = step;
        require(lzma_code(&library, LZMA_SYNC_FLUSH) == LZMA_STREAM_END, "liblzma ends a chunk");
    }
    require(lzma_code(&library, LZMA_FINISH) == LZMA_STREAM_END, "liblzma ends a stream");
    lzma_end(&library);
    return MOST_OUTPUT - library.avail_out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static Byte stream[MOST_OUTPUT];
    if (size < HEADER || size > MOST_OUTPUT / 8) {
        return 0;
    }
    size_t count = size - HEADER;
    if (data[0] & 1) {
        count = compress(data + HEADER, count, data + 1, 1 + data[3] * (size_t)32, stream);
        Byte *whole = malloc(count);
        require(whole != NULL, "there is memory for a stream");
        memcpy(whole, stream, count);
        require(check(whole, count) == size - HEADER, "a stream of liblzma is decoded");
        size_t damaged = (data[4] << 8 | data[5]) * UINT64_C(2654435761) % count;
        whole[damaged] ^= (Byte)(1 << data[0] / 2 % 8);
        check(whole, count);
        free(whole);
    } else {
        check(data + HEADER, count);
    }
    return 0;
}

#ifdef REPLAY
static void replay_seed(const uint8_t *seed, size_t size)
{
    for (size_t cut = HEADER; cut <= size; cut += 1 + size / 100) {
        replay(seed, cut, seed[0], size);
        replay(seed, cut, seed[0], 1 + cut * UINT64_C(2654435761) / 65536 % (cut - 1));
    }
}
#endif
