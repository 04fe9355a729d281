/* The records of a bucket, sorted: what `_join.c` asks of `_records.c`. */

#ifndef SO2DOCS_RECORDS_H
#define SO2DOCS_RECORDS_H

#include <Python.h>
#include <stdint.h>

/* Kinds: `keys.QUESTION`, `schema.COMMENT` and so on. From COMMENT on they are rows of tables. */
enum { QUESTION = 1, ANSWER = 2, COMMENT = 5, LINK = 6, VOTE = 7 };

enum { EMPTY = 2 }; /* Bytes of an object without members. */

/* A record: its key, where its JSON is, the number of the block << 40 | offset, and how many are
   before it in the dump. */
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

/* The JSON of all blocks, held while it is read. */
typedef struct {
    Py_buffer *json;
    Py_ssize_t count;
} Blocks;

int hold(Blocks *held, PyObject *blocks);
void release(Blocks *held);

/* Where the JSON of a record is; NULL, with an error set, if the blocks are not those that were
   sorted. */
const char *json_of(const Blocks *held, const Record *record);

PyObject *sort_records(PyObject *module, PyObject *blocks);
PyObject *select_records(PyObject *module, PyObject *args);

#endif
