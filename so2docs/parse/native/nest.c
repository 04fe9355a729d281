/* Nest rows of tables and users as members of a post's JSON object: the counterpart of `nest.Nest`.

   No JSON is parsed: rows are written before the closing brace of a post, and the ids of users are
   found by the names of their members. In JSON strings, each quote has a backslash before it, so such a
   name cannot occur in a value. */

#define _GNU_SOURCE /* memrchr */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core.h"

#include <stdio.h>

enum { OWNER, LAST_EDITOR, USER, MARKED };

/* The common end of all names of members that hold user ids. */
static const char MARK[] = "UserId\":";
enum { MARK_BYTES = sizeof(MARK) - 1, MOST_ID_DIGITS = 18 };

/* Return the last capital U, which is rare in texts; NULL if there is none. */
static const char *last_capital(const char *start, const char *end)
{
#ifdef __GLIBC__
    return memrchr(start, MARK[0], (size_t)(end - start));
#else
    while (end > start) {
        if (*--end == MARK[0]) {
            return end;
        }
    }
    return NULL;
#endif
}

/* Return the end of the last mark; NULL if there is none. */
static const char *last_mark(const char *start, const char *end)
{
    for (const char *at = end; (at = last_capital(start, at)) != NULL;) {
        if (end - at >= MARK_BYTES && memcmp(at, MARK, MARK_BYTES) == 0) {
            return at + MARK_BYTES;
        }
    }
    return NULL;
}

/* Whether the mark that ends at `end` belongs to `name`, which includes its opening quote. */
static int is_of(const char *start, const char *end, const char *name, Py_ssize_t size)
{
   return end - start >= size + MARK_BYTES && memcmp(end - MARK_BYTES - size, name, (size_t)size) == 0;
}

/* Find the user ids in an object that ends at `end`; missing ids are NULL. */
static void find_users(const char *start, const char *end, int is_row, const char *users[MARKED])
{
    users[OWNER] = users[LAST_EDITOR] = users[USER] = NULL;
    while ((is_row ? users[USER] == NULL : users[OWNER] == NULL || users[LAST_EDITOR] == NULL)
           && (end = last_mark(start, end)) != NULL) {
        if (is_row) {
            users[USER] = is_of(start, end, "\"", 1) ? end : NULL;
        } else if (users[OWNER] == NULL && is_of(start, end, "\"Owner", 6)) {
            users[OWNER] = end;
        } else if (users[LAST_EDITOR] == NULL && is_of(start, end, "\"LastEditor", 11)) {
            users[LAST_EDITOR] = end;
        }
        end -= MARK_BYTES;
    }
}

/* Read an id; FALLBACK if it is not a number of up to 18 digits. */
static Status read_id(const char *at, const char *end, int64_t *id)
{
    int is_negative = at < end && *at == '-';
    const char *first = at += is_negative;
    for (*id = 0; at < end && is_digit((Byte)*at) && at - first < MOST_ID_DIGITS; at++) {
        *id = *id * 10 + (*at - '0');
    }
    *id = is_negative ? -*id : *id;
    return at > first && at < end && (*at == ',' || *at == '}') ? OK : FALLBACK;
}

/* Return the position of an id in an ascending array; -1 if it is missing. */
static Py_ssize_t place_of(const Py_buffer *ids, int64_t id)
{
    const int64_t *known = ids->buf;
    Py_ssize_t low = 0, high = ids->len / (Py_ssize_t)sizeof(int64_t);
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        if (known[middle] == id) {
            return middle;
        }
        if (known[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return -1;
}

Status put_user(const char *at, const char *end, const Nest *nest, const char *name, Buffer *out)
{
    int64_t id;
    char *user;
    Py_ssize_t size;
    if (at == NULL) {
        return OK;
    }
    TRY(read_id(at, end, &id));
    Py_ssize_t place = place_of(&nest->user_ids, id);
    if (place < 0) {
        return FALLBACK;
    }
    PyObject *json = PyList_GetItem(nest->users, place);
    if (json == Py_None) {
        return OK;
    }
    if (json == NULL || PyBytes_AsStringAndSize(json, &user, &size) < 0) {
        PyErr_Clear();
        return FALLBACK;
    }
    TRY(put(out, name, strlen(name)));
    return put(out, user, (size_t)size);
}

/* Write a row with its user. */
static Status put_row(const char *json, size_t size, const Nest *nest, Buffer *out)
{
    const char *users[MARKED] = {NULL};
    if (nest->users != Py_None) {
        find_users(json, json + size, 1, users);
    }
    TRY(put(out, json, size - 1));
    TRY(put_user(users[USER], json + size, nest, ",\"User\":", out));
    return PUT_LITERAL(out, "}");
}

/* Write the votes of one post by type, and count them. */
static Status put_votes(const Record *row, const Record *end, const Nest *nest, Buffer *out,
                         int64_t *total)
{
    TRY(PUT_LITERAL(out, "{"));
    for (int is_first = 1; row < end; is_first = 0) {
        int64_t type = row->rank >> 32, count = 0;
        char digits[24];
        if (row->rank < 0 || type >= MOST_VOTE_TYPES) {
            return FALLBACK;
        }
        for (; row < end && row->rank >> 32 == type; row++) {
            count += row->rank & UINT32_MAX;
        }
        *total += count;
        TRY(put(out, ",", !is_first));
        TRY(put(out, nest->votes[type].bytes, (size_t)nest->votes[type].size));
        TRY(put(out, digits, (size_t)snprintf(digits, sizeof digits, "%lld", (long long)count)));
    }
    return PUT_LITERAL(out, "}");
}

/* Write the rows of one post as a list. */
static Status put_list(const Record *row, const Record *end, const Blocks *held, const Nest *nest,
                        Buffer *out)
{
    TRY(PUT_LITERAL(out, "["));
    for (int is_first = 1; row < end; row++, is_first = 0) {
        const char *json = json_of(held, row);
        TRY(put(out, ",", !is_first));
        if (nest->naming >> kind_of(row) & 1) {
            TRY(put_row(json, (size_t)size_of(row), nest, out));
        } else {
            TRY(put(out, json, (size_t)size_of(row)));
        }
    }
    return PUT_LITERAL(out, "]");
}

/* Write the rows of one table as a member of their post. */
static Status put_member(int kind, const Record *row, const Record *end, const Blocks *held,
                          const Nest *nest, Buffer *out, int64_t *counts)
{
    TRY(PUT_LITERAL(out, ","));
    counts[kind] += kind == VOTE ? 0 : end - row;
    if (nest->made >> kind & 1 && row < end) {
        return FALLBACK;
    }
    TRY(put(out, nest->members[kind].bytes, (size_t)nest->members[kind].size));
    if (nest->made >> kind & 1) {
        return OK;
    }
    if (kind == VOTE) {
        return put_votes(row, end, nest, out, &counts[kind]);
    }
    return put_list(row, end, held, nest, out);
}

Status put_post(const Record *post, Py_ssize_t count, const Blocks *held, const Nest *nest,
                 Buffer *out, int64_t *counts)
{
    const char *json = json_of(held, post), *users[MARKED] = {NULL};
    const char *json_end = json + size_of(post);
    const Record *row = post + 1, *end = post + 1 + count;
    TRY(put(out, json, (size_t)size_of(post) - 1));
    size_t comma = out->size;
    for (int kind = COMMENT; kind < KINDS; kind++) {
        const Record *first = row;
        while (row < end && kind_of(row) == kind) {
            row++;
        }
        if (nest->tables >> kind & 1 && (kind != BOUNTY || first < row)) {
            TRY(put_member(kind, first, row, held, nest, out, counts));
        }
    }
    if (nest->users != Py_None) {
        find_users(json, json_end, 0, users);
        TRY(put_user(users[OWNER], json_end, nest, ",\"Owner\":", out));
        TRY(put_user(users[LAST_EDITOR], json_end, nest, ",\"LastEditor\":", out));
    }
    if (size_of(post) == EMPTY && out->size > comma) {
        /* Remove the comma before the first member. */
        memmove(out->bytes + comma, out->bytes + comma + 1, out->size - comma - 1);
        out->size--;
    }
    return PUT_LITERAL(out, "}");
}

/* ---- Users to look up ---- */

static int by_number(const void *a, const void *b)
{
    return compare(*(const int64_t *)a, *(const int64_t *)b);
}

/* Add the ids of the users of a record. */
static Status add_users(const Record *record, const Blocks *held, int naming, Buffer *ids)
{
    int kind = kind_of(record), is_row = naming >> kind & 1;
    const char *users[MARKED], *json;
    if ((!is_row && kind != QUESTION && kind != ANSWER) || size_of(record) < EMPTY) {
        return OK;
    }
    if ((json = json_of(held, record)) == NULL) {
        return FALLBACK;
    }
    find_users(json, json + size_of(record), is_row, users);
    for (int i = 0; i < MARKED; i++) {
        int64_t id;
        if (users[i] != NULL && read_id(users[i], json + size_of(record), &id) == OK) {
            TRY(put(ids, &id, sizeof id));
        }
    }
    return OK;
}

PyObject *user_ids(PyObject *module, PyObject *args)
{
    PyObject *blocks, *records, *result = NULL;
    Buffer ids = {0};
    Blocks held;
    Status status = OK;
    int naming;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!i:user_ids", &PyList_Type, &blocks, &PyByteArray_Type,
                          &records, &naming)
        || hold(&held, blocks) < 0) {
        return NULL;
    }
    const Record *record = (Record *)PyByteArray_AsString(records);
    for (size_t left = (size_t)PyByteArray_Size(records) / sizeof(Record);
         left > 0 && status == OK; left--) {
        status = add_users(record++, &held, naming, &ids);
    }
    if (status == OK) {
        int64_t *known = (int64_t *)ids.bytes;
        size_t count = ids.size / sizeof(int64_t), kept = 0;
        if (count > 0) {
            qsort(known, count, sizeof(int64_t), by_number);
        }
        for (size_t i = 0; i < count; i++) {
            if (i == 0 || known[i] != known[i - 1]) {
                known[kept++] = known[i];
            }
        }
        result = PyBytes_FromStringAndSize(ids.bytes, (Py_ssize_t)(kept * sizeof(int64_t)));
    } else if (status == NO_MEMORY) {
        PyErr_NoMemory();
    }
    free(ids.bytes);
    release(&held);
    return result;
}
