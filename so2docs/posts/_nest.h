/* Rows of tables and users in a post: what `_join.c` asks of `_nest.c`. */

#ifndef SO2DOCS_NEST_H
#define SO2DOCS_NEST_H

#include "_canonical.h"
#include "_records.h"

#define MOST_VOTE_TYPES 64 /* Posts with others are left to the reference; 38 are known. */

/* What is nested in posts. */
typedef struct {
    int tables; /* A bit for each kind that was asked for. */
    Py_buffer user_ids; /* 64-bit integers in ascending order. */
    PyObject *users; /* A list with the JSON of each of those, or None. */
    struct {
        char *bytes; /* `"UpMod":` */
        Py_ssize_t size;
    } votes[MOST_VOTE_TYPES];
} Nest;

/* The place of an id among some in ascending order; -1 if it is not there. */
Py_ssize_t place_of(const Py_buffer *ids, int64_t id);

/* Write a post with what belongs to it: `count` records that follow it, sorted. Counts rows and
   votes by kind. NOT_CANONICAL if only the reference knows what to write. All are in `held`. */
Verdict put_post(const Record *post, Py_ssize_t count, const Blocks *held, const Nest *nest,
                 Buffer *out, int64_t *counts);

PyObject *user_ids(PyObject *module, PyObject *args);

#endif
