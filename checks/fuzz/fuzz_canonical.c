/* Fuzz `canonical.c`, `columns.c`, `markdown.c` and `values.c` without Python (`make fuzz-core`).
   With REPLAY (`make sanitize`), run every seed instead, truncated at every byte, and with each
   memory allocation failing in turn. Then print a checksum of all output, which does not depend on
   how blocks are copied.

   Each input is in a buffer of exactly its size, so that the sanitizer detects a read past the end.
   Its first byte gives the number of the allocation that fails. */

#include "fuzz.h"

static unsigned requests_until_failure;

static void *failing_realloc(void *bytes, size_t size)
{
    return requests_until_failure > 0 && --requests_until_failure == 0 ? NULL
                                                                       : realloc(bytes, size);
}

#define realloc failing_realloc
#define FIRST_CAPACITY ((size_t)32) /* Small, so that buffers grow often. */
#include "../../so2docs/parse/native/canonical.c"
#include "../../so2docs/parse/native/columns.c"
#include "../../so2docs/extensions/markdown/native/markdown.c"
#include "../../so2docs/parse/native/values.c"

static void add_buffer(const Buffer *bytes)
{
    add_to_checksum(bytes->bytes, bytes->size);
}

/* Check the keys and sizes, which must be consistent for any rows. */
static void check(const Posts *posts)
{
    size_t rows = posts->keys.size / KEY_BYTES, json_size = 0, votes = 0;
    require(posts->keys.size % KEY_BYTES == 0, "keys are whole");
    for (size_t at = 0; at < posts->keys.size; at += KEY_BYTES) {
        int64_t size_and_kind = key_integer(posts->keys.bytes + at + 24);
        int kind = size_and_kind & 15;
        require(posts->table == POSTS ? kind == QUESTION || kind == ANSWER : kind == (int)posts->table,
                "kind is known");
        if (posts->table == VOTE) {
            votes += (size_t)(uint32_t)key_integer(posts->keys.bytes + at + 16);
            require(size_and_kind >> 4 == 0, "votes have no JSON");
            continue;
        }
        require(posts->json.bytes[json_size] == '{', "an object starts");
        json_size += (size_t)(size_and_kind >> 4);
        require(json_size <= posts->json.size, "an object ends in the buffer");
        require(posts->json.bytes[json_size - 1] == '}', "an object ends");
    }
    for (size_t i = 0; i < posts->other_types_count; i++) {
        rows += posts->other_types[i].rows;
    }
    require(json_size == posts->json.size || posts->table == VOTE, "all JSON belongs to a key");
    require((posts->table == VOTE ? votes : rows) == posts->rows
                || (posts->table == CLOSINGS && rows < posts->rows),
            "all rows are accounted for");
}

/* Check the buffers of every column. */
static void check_columns(const Columns *columns)
{
    for (size_t i = 0; i < columns->count; i++) {
        const Column *column = &columns->columns[i];
        size_t texts = column->kind == TAGS_COLUMN ? column->tags : column->rows;
        require(column->rows == columns->rows, "a column has all rows");
        require(column->nulls <= column->rows, "nulls are rows");
        require(column->valid.size == (column->rows + 7) / 8, "every row has its bit");
        if (has_text(column) || column->kind == TAGS_COLUMN) {
            int32_t last;
            require(column->offsets.size == 4 * (texts + 1), "every text has its offset");
            memcpy(&last, column->offsets.bytes + 4 * texts, sizeof last);
            require((size_t)last == column->values.size, "all bytes belong to a text");
        } else {
            size_t size = column->kind == BOOLEAN_COLUMN ? (column->rows + 7) / 8 : 8 * column->rows;
            require(column->values.size == size, "every row has its value");
        }
        add_buffer(&column->valid);
        add_buffer(&column->values);
        add_buffer(&column->offsets);
        add_buffer(&column->lists);
    }
}

#define COLUMN(text, of) {.name = text, .name_size = sizeof text - 1, .kind = of}

static void fill(const uint8_t *data, size_t size)
{
    Column some[] = {
        COLUMN("Id", INTEGER_COLUMN),         COLUMN("Body", TEXT_COLUMN),
        COLUMN("CreationDate", DATE_COLUMN),  COLUMN("Score", INTEGER_COLUMN),
        COLUMN("TagBased", BOOLEAN_COLUMN),   COLUMN("Tags", TAGS_COLUMN),
        COLUMN("Other", OTHER_COLUMN),
    };
    Columns columns = {.columns = some, .count = sizeof some / sizeof some[0]};
    requests_until_failure = data[0];
    if (fill_columns((const char *)data + 1, size - 1, &columns) == OK) {
        check_columns(&columns);
    }
    free_columns(&columns);
}

static void write_body(const uint8_t *data, size_t size)
{
    static const char *const SIGNS[] = {"", "$", "\\$"};
    for (size_t i = 0; i < sizeof SIGNS / sizeof *SIGNS; i++) {
        Buffer out = {0};
        requests_until_failure = data[0];
        if (put_body_as_markdown((const char *)data + 1, size - 1, SIGNS[i], &out) == OK) {
            add_buffer(&out);
        }
        free(out.bytes);
    }
    Buffer text = {0};
    requests_until_failure = data[0];
    if (put_body_as_text((const char *)data + 1, size - 1, &text) == OK) {
        add_buffer(&text);
    }
    free(text.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    static const Kind tables[] = {POSTS,    USERS,   COMMENT, LINK,
                                  VOTE,     CLOSINGS, HISTORY, HISTORY_TEXT};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        Posts posts = {.table = tables[i]};
        require(posts.table != POSTS || reserve_name(&posts, "Owner", 5), "a name is reserved");
        requests_until_failure = data[0];
        if (convert_rows((const char *)data + 1, size - 1, &posts) == OK) {
            check(&posts);
            add_buffer(&posts.keys);
            add_buffer(&posts.json);
        }
        free_posts(&posts);
    }
    fill(data, size);
    write_body(data, size);
    return 0;
}

#ifdef REPLAY
static void replay_seed(const uint8_t *seed, size_t size)
{
    for (int failure = 0; failure < 64; failure++) {
        replay(seed, size, (uint8_t)failure, size);
    }
    for (size_t cut = 1; cut < size; cut++) {
        replay(seed, cut, 0, cut);
    }
}
#endif
