/* Common parts of the fuzzers: checks, a checksum of all output, and the replay of seeds. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(int condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "check failed: %s\n", what);
        abort();
    }
}

static uint64_t checksum = UINT64_C(14695981039346656037);

static void add_to_checksum(const void *bytes, size_t size) /* FNV-1a */
{
    for (size_t at = 0; at < size; at++) {
        checksum = (checksum ^ ((const unsigned char *)bytes)[at]) * UINT64_C(1099511628211);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifdef REPLAY
/* Run the start of a seed as one input, in a buffer of exactly its size. */
static void replay(const uint8_t *seed, size_t size, uint8_t first, size_t damaged)
{
    uint8_t *data = malloc(size);
    require(data != NULL, "there is memory for a seed");
    memcpy(data, seed, size);
    data[0] = first;
    if (damaged < size) {
        data[damaged] ^= 16;
    }
    LLVMFuzzerTestOneInput(data, size);
    free(data);
}

static void replay_seed(const uint8_t *seed, size_t size); /* Defined by each fuzzer. */

int main(int count, char **paths)
{
    static uint8_t bytes[1 << 16];
    for (int i = 1; i < count; i++) {
        FILE *file = fopen(paths[i], "rb");
        require(file != NULL, "a seed can be opened");
        size_t size = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        replay_seed(bytes, size);
    }
    printf("%d seeds: %016llx\n", count - 1, (unsigned long long)checksum);
    return 0;
}
#endif
