/* Declarations for all files of the compiled core.

   `canonical.c`, `columns.c`, `values.c`, `markdown.c`, `bzip2.c` and `lzma2.c` are plain C and
   fuzzed without Python. The other files include Python.h before this header. */

#ifndef SO2DOCS_CORE_H
#define SO2DOCS_CORE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

typedef enum { OK, FALLBACK, NO_MEMORY } Status;

#define TRY(step)                             \
    do {                                      \
        Status status_ = (step);            \
        if (status_ != OK) {          \
            return status_;                  \
        }                                     \
    } while (0)

/* ---- Keys ---- */

#define KEY_BYTES 32  /* keys.KEY: question id, post id, rank, size of the JSON << 4 | kind */
#define PAIR_BYTES 16 /* Question id and post id, at the start of a key. */

/* The kind of a record: `keys.QUESTION`, `schema.COMMENT` and so on. Rows of tables sort after posts.
   POSTS and USERS are kinds of whole tables, never of a record. */
typedef enum {
    POSTS = 0,
    QUESTION = 1,
    ANSWER = 2,
    USERS = 4,
    COMMENT = 5,
    LINK = 6,
    VOTE = 7,
    BOUNTY = 8, /* Bounties, made from votes. */
    CLOSINGS = 9, /* The history of posts, by level of detail. */
    HISTORY = 10,
    HISTORY_TEXT = 11
} Kind;

/* Read an integer of a key; keys are little-endian on every machine. */
static inline int64_t key_integer(const char *bytes)
{
    uint64_t number = 0;
    for (int i = 0; i < 8; i++) {
        number |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
    }
    int64_t result;
    memcpy(&result, &number, sizeof result);
    return result;
}

static inline void set_integer(char *bytes, int64_t number)
{
    for (int i = 0; i < 8; i++) {
        bytes[i] = (char)(unsigned char)((uint64_t)number >> (8 * i));
    }
}

/* ---- Reading and writing bytes within bounds ----

   A byte is read only after a comparison with the end of the slice, and written only after `reserve`,
   which allocates the memory. */

#ifndef FIRST_CAPACITY
/* Small, because glibc returns memory at the top of the heap to the system: with 64 KiB for each of
   the buffers of a body, Markdown took 67 instead of 270 MB/s. */
#define FIRST_CAPACITY ((size_t)4 * 1024)
#endif

typedef unsigned char Byte;

enum { HUGE_PAGE = 2 << 20 };

/* Allocate memory that is read in no order, in huge pages where the system has them. */
static inline void *allocate_huge(size_t size)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    size = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void *memory = aligned_alloc(HUGE_PAGE, size);
    if (memory != NULL) {
        madvise(memory, size, MADV_HUGEPAGE);
    }
    return memory;
#else
    return malloc(size);
#endif
}

typedef struct {
    char *bytes;
    size_t size, capacity;
} Buffer;

/* Reserve memory for `more` additional bytes. */
static inline Status reserve(Buffer *buffer, size_t more)
{
    if (buffer->capacity - buffer->size >= more) {
        return OK;
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
    return OK;
}

static inline Status put(Buffer *out, const void *bytes, size_t size)
{
    TRY(reserve(out, size));
    memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
    return OK;
}

#define PUT_LITERAL(out, literal) put(out, literal, sizeof(literal) - 1)

/* The unread part of a slice. */
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

/* ---- Names of attributes ---- */

#define MOST_ATTRIBUTES 64  /* Maximum per row; in published dumps, it is 22. */
/* Maximum size of a name; libxml2 allows at least 50,000 bytes. */
#define MOST_NAME_BYTES 256

typedef struct {
    const Byte *at;
    size_t size;
} Name;

/* Read a name, the equals sign and the opening quote. */
static inline Status read_name(Reader *in, Name *name)
{
    name->at = in->at;
    if (in->at == in->end || !is_name_start(*in->at)) {
        return FALLBACK;
    }
    while (in->at < in->end
           && (is_name_start(*in->at) || is_digit(*in->at) || *in->at == '.' || *in->at == '-')) {
        in->at++;
    }
    name->size = (size_t)(in->at - name->at);
    int is_xml = name->size >= 3 && (name->at[0] | 0x20) == 'x' && (name->at[1] | 0x20) == 'm'
                 && (name->at[2] | 0x20) == 'l';
    return !is_xml && name->size <= MOST_NAME_BYTES && SKIP(in, "=\"") ? OK : FALLBACK;
}

/* ---- values.c: values of attributes; each function also reads the closing quote ---- */

/* Write text unchanged between the quotes of a JSON string. */
Status put_text(Reader *in, Buffer *out);

/* Write text as UTF-8, with nothing escaped. */
Status put_utf8(Reader *in, Buffer *out);

/* Write text as a JSON string. */
Status put_string(Reader *in, Buffer *out);

/* Read a canonical number. */
Status read_number(Reader *in, int64_t *number);

/* Write a canonical number. */
Status put_number(Reader *in, Buffer *out, int64_t *number);

/* Write the text of `Tags` as a JSON array; `tags` is a buffer for the unsplit text. */
Status put_tags(Reader *in, Buffer *out, Buffer *tags);

/* Write the text of `Tags`, given as a JSON string without its quotes, as a JSON array. */
Status put_split_tags(Buffer *out, const char *text, size_t size);

/* ---- canonical.c: rows to keys and JSON objects ---- */

/* Longer slices are left to lxml, because libxml2 rejects values of a gigabyte. */
#define MOST_SLICE_BYTES ((size_t)1 << 28)

/* Maximum number of other post types in a slice; fifteen types are known in all. */
#define MOST_OTHER_TYPES 32

/* Maximum number of reserved names; a dozen are in use. */
#define MOST_RESERVED 64

/* Size of a day such as 2014-01-21. */
#define DAY_BYTES 10

typedef struct {
    int64_t type;
    size_t rows;
} OtherType;

/* The rows of a slice, in order. The caller sets `table` and the reserved names; all other members
   must be zero. */
typedef struct {
    Kind table;
    struct {
        const char *bytes;
        size_t size;
    } reserved[MOST_RESERVED]; /* Names that attributes must not have. */
    size_t reserved_count;
    uint64_t reserved_hashes; /* Hashes of the reserved names. */
    Buffer keys, json;
    Buffer tags; /* Buffer for a value of `Tags`, before it is split. */
    size_t rows;
    int64_t last_id; /* `Id` of the last row; undefined if there are no rows. */
    OtherType other_types[MOST_OTHER_TYPES];
    size_t other_types_count;
    char first_day[DAY_BYTES + 1], last_day[DAY_BYTES + 1]; /* Of posts; empty if unknown. */
} Posts;

/* Convert a slice of whole rows. Keys of rows of other tables have the post id in place of the
   question id. Votes have one key for each post and type, in ascending order; in place of JSON,
   they have the unchanged rows of bounties. Keys of users are the `Id` and the size of the JSON.
   Unless the result is OK, `posts` can only be freed. */
Status convert_rows(const char *slice, size_t size, Posts *posts);

/* Add a reserved name, which must live as long as `posts`. Returns 0 if there are too many. */
int reserve_name(Posts *posts, const char *bytes, size_t size);

/* Sort the keys of votes, and add up the counts for each post and type. */
void count_votes(Buffer *keys);

void free_posts(Posts *posts);

/* ---- columns.c: rows to columns ---- */

/* Kind of a column, as numbered by the caller. */
typedef enum { TEXT_COLUMN, INTEGER_COLUMN, DATE_COLUMN, BOOLEAN_COLUMN, TAGS_COLUMN, OTHER_COLUMN } ColumnKind;

/* A column in the layout of Arrow: a validity bitmap and, depending on the type, 64-bit integers,
   bits, or 32-bit offsets and bytes. Dates are texts with milliseconds. Tags are lists: `lists` contains the
   offsets into `offsets`. */
typedef struct {
    const char *name;
    size_t name_size;
    ColumnKind kind;
    size_t rows, nulls, tags; /* Counts so far. */
    Buffer valid, values, offsets, lists;
} Column;

/* The columns of a slice. The caller sets `columns`, `count`, and the name and kind of each column;
   all other members must be zero. The last column is for other attributes. */
typedef struct {
    Column *columns;
    size_t count, rows;
    int64_t last_id;
    Buffer text; /* Buffer for a value of `Tags`, before it is split. */
} Columns;

/* Convert a slice of whole rows. Unless the result is OK, `columns` can only be freed. */
Status fill_columns(const char *slice, size_t size, Columns *columns);

void free_columns(Columns *columns);

/* ---- markdown.c: bodies ---- */

/* Append the Markdown of a body in UTF-8. `sign` is the delimiter of formulas; it is empty if
   the body has no formulas. FALLBACK if the reference must convert the body. */
Status put_body_as_markdown(const char *body, size_t size, const char *sign, Buffer *out);

/* Append the text of a body without images in UTF-8, with a space for each tag that separates words.
   FALLBACK if the reference must convert the body: one with a comment, a `<` that starts no tag, or
   an unusual character reference. */
Status put_body_as_text(const char *body, size_t size, Buffer *out);

/* ---- bzip2.c: compressed archives ---- */

/* Memory to decode a bzip2 block: 5 to 16 MB. */
typedef struct Bzip2 Bzip2;

typedef struct {
    size_t end; /* Position of the first bit after the block. */
    uint32_t crc;
    int is_randomized;
} Bzip2Block;

/* Returns NULL if memory is exhausted. */
Bzip2 *new_bzip2(void);

void free_bzip2(Bzip2 *memory);

/* Find the next magic number, which starts a block or ends a stream. Returns the position of its
   first bit, at least `from`; SIZE_MAX if there is none. */
size_t find_bzip2_number(const Byte *data, size_t size, size_t from);

/* Decode the block at a bit position. FALLBACK if the block is damaged, incomplete, or larger
   than its level (1 to 9) allows; libbz2 tells these cases apart. Finds the end of a randomized
   block without decoding it. */
Status decode_bzip2(Bzip2 *memory, const Byte *data, size_t size, size_t bit, unsigned level,
                    Bzip2Block *block);

/* Return the number of unread bytes of the block. */
size_t bzip2_left(const Bzip2 *memory);

/* Read the next bytes of the block; `size` must not exceed the unread bytes. FALLBACK at the end
   of the block if its checksum is wrong. */
Status read_bzip2(Bzip2 *memory, Byte *out, size_t size);

/* ---- lzma2.c: compressed archives ---- */

/* The state of a stream of LZMA2. */
typedef struct Lzma2 Lzma2;

#define MOST_LZMA2_DICTIONARY (1 << 30)
#define LEAST_LZMA2_WINDOW 128

/* `dictionary` is its size in bytes. The window is a memory of 128 bytes more than the stream's
   output, or than the dictionary and 4 MiB; streams that do not fit are refused. Returns NULL if
   memory is exhausted. */
Lzma2 *new_lzma2(size_t dictionary, Byte *window, size_t size);

void free_lzma2(Lzma2 *decoder);

/* Decode the chunk or the end marker at the start of the data to the window. `used` receives its
   size; 0 if the data ends within the chunk, or if the previous chunk is unread. FALLBACK if the
   chunk is damaged or unusual; liblzma tells these cases apart. */
Status decode_lzma2(Lzma2 *decoder, const Byte *data, size_t size, size_t *used);

/* Read the chunk. Returns its size, and where it starts in the window. */
size_t read_lzma2(Lzma2 *decoder, size_t *start);

#ifdef Py_PYTHON_H

/* ---- records.c: the records of a bucket, sorted ---- */

enum { EMPTY = 2 }; /* Size of an object without members, `{}`. */

/* A record: its key, the position of its JSON (number of the block << 40 | offset), and its position
   in the dump. */
typedef struct {
    int64_t question_id, post_id, rank, size_and_kind, place, order;
} Record;

static inline Py_ssize_t size_of(const Record *record)
{
    return (Py_ssize_t)(record->size_and_kind >> 4);
}

static inline int kind_of(const Record *record)
{
    return (int)(record->size_and_kind & 15);
}

static inline int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Buffers with the JSON of all blocks. */
typedef struct {
    Py_buffer *json;
    Py_ssize_t count;
} Blocks;

int hold(Blocks *held, PyObject *blocks);
void release(Blocks *held);

/* Return the JSON of a record; if the record is not in these blocks, set an error and return
   NULL. */
const char *json_of(const Blocks *held, const Record *record);

/* ---- nest.c: rows of tables and users in a post ---- */

enum { KINDS = 16 }; /* A kind has four bits. */

#define MOST_VOTE_TYPES 64 /* The reference handles higher types; 38 types are known. */

/* Bytes of a Python object. */
typedef struct {
    char *bytes;
    Py_ssize_t size;
} Piece;

/* The rows to nest in posts. A set of kinds has a bit for each kind. */
typedef struct {
    int tables; /* Kinds to nest. */
    int naming; /* Kinds of rows whose `UserId` refers to a user to nest. */
    int made;   /* Kinds nested as entries made from several rows, which the reference writes. */
    /* JSON that precedes the rows, such as `"Comments":`. For kinds in `made`, the complete
       members of a post without rows. */
    Piece members[KINDS];
    Py_buffer user_ids; /* 64-bit integers in ascending order. */
    PyObject *users; /* A list with the JSON of each user; None if users are not nested. */
    Piece votes[MOST_VOTE_TYPES]; /* Names of vote types, such as `"UpMod":`. */
} Nest;

/* Write a post with its rows, which are the next `count` sorted records. Counts the rows and
   votes by kind. FALLBACK if the reference must write the post. `held` has the JSON of all
   records. */
Status put_post(const Record *post, Py_ssize_t count, const Blocks *held, const Nest *nest,
                 Buffer *out, int64_t *counts);

/* Write `name` and the user whose id is at `at`; nothing if the user is unknown. */
Status put_user(const char *at, const char *end, const Nest *nest, const char *name, Buffer *out);

/* ---- Functions for Python, described in `_core.pyi` ---- */

PyObject *add_sizes(PyObject *module, PyObject *args);
PyObject *decode_bzip2_block(PyObject *module, PyObject *args);
PyObject *decode_lzma2_chunk(PyObject *module, PyObject *args);
PyObject *find_bzip2(PyObject *module, PyObject *args);
PyObject *find_objects(PyObject *module, PyObject *args);
PyObject *find_values(PyObject *module, PyObject *args);
PyObject *join_records(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *new_bzip2_memory(PyObject *module, PyObject *ignored);
PyObject *new_lzma2_decoder(PyObject *module, PyObject *args);
PyObject *read_bzip2_block(PyObject *module, PyObject *args);
PyObject *read_lzma2_chunk(PyObject *module, PyObject *capsule);
PyObject *select_records(PyObject *module, PyObject *args);
PyObject *sort_records(PyObject *module, PyObject *blocks);
PyObject *user_ids(PyObject *module, PyObject *args);

#endif
#endif
