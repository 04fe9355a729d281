/* Canonical rows of a dump -> keys and JSON objects: what `_core.c` asks of `_canonical.c`. */

#ifndef SO2DOCS_CANONICAL_H
#define SO2DOCS_CANONICAL_H

#include <stddef.h>
#include <stdint.h>

#define KEY_BYTES 32  /* keys.KEY: question id, post id, rank, size of the JSON << 4 | kind */
#define PAIR_BYTES 16 /* A key starts with question id and post id. */

/* libxml2 refuses values of a gigabyte. A longer slice than this is left to it. */
#define MOST_SLICE_BYTES ((size_t)1 << 28)

/* Post types that are neither questions nor answers, in one slice. Fifteen are known. */
#define MOST_OTHER_TYPES 32

typedef enum { CANONICAL, NOT_CANONICAL, NO_MEMORY } Verdict;

typedef struct {
    char *bytes;
    size_t size, capacity;
} Buffer;

typedef struct {
    int64_t type;
    size_t rows;
} OtherType;

/* What the rows are of: `schema.TABLES`. The numbers are the kinds of their records. */
typedef enum { POSTS = 0, USERS = 4, COMMENTS = 5, LINKS = 6, VOTES = 7 } Table;

/* What the rows of a slice became, in their order. All but the first three zero at the start. */
typedef struct {
    Table table;
    const char *reserved; /* A name that no attribute may have, besides those that are known. */
    size_t reserved_size;
    Buffer keys, json;
    Buffer tags; /* The text of one `Tags`, before it is split. */
    size_t rows;
    int64_t last_id; /* `Id` of the last row; of no meaning without rows. */
    OtherType other_types[MOST_OTHER_TYPES];
    size_t other_types_count;
} Posts;

/* Convert a slice of whole rows. In the keys of a table's rows, the question id is the post id until
   somebody knows better; of votes there is one key for each post and type, in ascending order; users
   have their `Id` and the size of their JSON. Unless it is CANONICAL, `posts` is of no use but to be freed. */
Verdict convert_rows(const char *slice, size_t size, Posts *posts);

void free_posts(Posts *posts);

/* The integer that stands at `bytes` in a key. */
int64_t key_integer(const char *bytes);

void set_integer(char *bytes, int64_t number);

#endif
