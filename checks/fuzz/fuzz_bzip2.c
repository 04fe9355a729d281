/* Fuzz `bzip2.c` against libbz2 (`make fuzz-core`). With REPLAY (`make sanitize`), run every seed
   instead, truncated at every byte and shifted by every number of bits, and print a checksum of all
   output.

   The first byte of an input gives the level and the shift. The other bytes follow the magic number
   of the first block in a stream. Checksums in inputs are rarely right, so both outputs of a block
   are compared before either decoder checks them. */

#include <bzlib.h>

#include "fuzz.h"
#include "../../so2docs/dump/native/bzip2.c"

enum { MOST_OUTPUT = 4 << 20 }; /* Larger outputs take too long. */

static void check(const Byte *stream, size_t size, const Byte *shifted, unsigned shift)
{
    static Bzip2 *memory;
    static Byte out[MOST_OUTPUT], expected[MOST_OUTPUT];
    if (memory == NULL) {
        memory = new_bzip2();
        require(memory != NULL, "there is memory for a block");
    }
    require(find_bzip2_number(shifted, size + 1, 32 + shift) == 32 + shift, "a number is found");
    Bzip2Block block = {0};
    Status status = decode_bzip2(memory, shifted, size + 1, 32 + shift, stream[3] - '0', &block);
    size_t left = bzip2_left(memory);
    if (status == OK) {
        require(block.end <= 8 * (size + 1), "a block ends in the data");
        /* The last byte has bits that are not passed to libbz2. */
        if (block.end > shift + 8 * size || block.is_randomized || left > MOST_OUTPUT) {
            return;
        }
        size_t half = left / 2;
        require(half == 0 || read_bzip2(memory, out, half) == OK, "half a block is read before its checksum");
        status = read_bzip2(memory, out + half, left - half);
        require(bzip2_left(memory) == 0, "the whole block is read");
        add_to_checksum(out, left);
    } else {
        left = 0;
    }
    bz_stream library = {.next_in = (char *)stream, .avail_in = (unsigned)size};
    require(BZ2_bzDecompressInit(&library, 0, 0) == BZ_OK, "libbz2 starts");
    library.next_out = (char *)expected;
    library.avail_out = left > 0 ? (unsigned)left : MOST_OUTPUT;
    int result = BZ2_bzDecompress(&library);
    size_t count = (size_t)((Byte *)library.next_out - expected);
    if (left > 0) {
        require(count == left && memcmp(out, expected, left) == 0, "both make the same bytes");
        char more;
        library.next_out = &more;
        library.avail_out = 1;
        result = result == BZ_OK ? BZ2_bzDecompress(&library) : result;
        require(status == OK || result == BZ_DATA_ERROR, "both find a wrong checksum");
    } else {
        /* A block that ends within a run is damaged; libbz2 reports this only after its output. */
        for (int i = 0; result == BZ_OK && library.avail_out == 0 && i < 100; i++) {
            library.next_out = (char *)expected;
            library.avail_out = MOST_OUTPUT;
            result = BZ2_bzDecompress(&library);
        }
        require(result == BZ_DATA_ERROR || (result == BZ_OK && count == 0),
                "libbz2 does not decode a rejected block");
    }
    BZ2_bzDecompressEnd(&library);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const Byte number[] = {0x31, 0x41, 0x59, 0x26, 0x53, 0x59};
    if (size < 1) {
        return 0;
    }
    unsigned shift = data[0] & 7;
    size_t stream_size = 4 + sizeof number + size - 1;
    Byte *stream = malloc(stream_size), *shifted = calloc(stream_size + 1, 1);
    require(stream != NULL && shifted != NULL, "there is memory for an input");
    memcpy(stream, "BZh", 3);
    stream[3] = (Byte)('1' + (data[0] >> 3) % 9);
    memcpy(stream + 4, number, sizeof number);
    memcpy(stream + 4 + sizeof number, data + 1, size - 1);
    for (size_t at = 0; at < stream_size; at++) {
        shifted[at] |= (Byte)(stream[at] >> shift);
        shifted[at + 1] = (Byte)(stream[at] << (8 - shift));
    }
    check(stream, stream_size, shifted, shift);
    free(stream);
    free(shifted);
    return 0;
}

#ifdef REPLAY
static void replay_seed(const uint8_t *seed, size_t size)
{
    for (size_t cut = 1; cut <= size; cut++) {
        uint8_t first = (uint8_t)(seed[0] / 8 * 8 + cut % 8);
        replay(seed, cut, first, cut);
        replay(seed, cut, first, cut * UINT64_C(2654435761) / 65536 % cut);
    }
}
#endif
