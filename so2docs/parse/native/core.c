/* The Python module of the compiled core, and its functions for slices of rows: `add_rows` is the
   counterpart of `rows.parse` and `posts.add`.

   `canonical.c` converts rows to JSON. This file only handles Python objects, and changes them only
   after all rows of the slice are converted. The code uses the stable ABI, which `setup.py` requests
   if available: one build then serves every Python from 3.11 on. The module has no state, and a call
   changes only its arguments, which belong to one thread, so free-threaded Python needs no lock. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core.h"

/* Extend a bytearray. Returns the new bytes, which must be filled before any Python code runs. */
static char *extend(PyObject *array, size_t more)
{
    Py_ssize_t before = PyByteArray_Size(array);
    if (more > (size_t)(PY_SSIZE_T_MAX - before)) {
        PyErr_NoMemory();
        return NULL;
    }
    if (PyByteArray_Resize(array, before + (Py_ssize_t)more) < 0) {
        return NULL;
    }
    return PyByteArray_AsString(array) + before;
}

static int append(PyObject *array, const char *bytes, size_t size)
{
    char *to = extend(array, size);
    if (to == NULL) {
        return -1;
    }
    memcpy(to, bytes, size);
    return 0;
}

static int append_pairs(PyObject *pairs, const Buffer *keys)
{
    char *to = extend(pairs, keys->size / KEY_BYTES * PAIR_BYTES);
    if (to == NULL) {
        return -1;
    }
    for (size_t at = 0; at < keys->size; at += KEY_BYTES, to += PAIR_BYTES) {
        memcpy(to, keys->bytes + at, PAIR_BYTES);
    }
    return 0;
}

/* Get the bucket with a number; the mapping makes missing buckets. Returns a new reference. */
static PyObject *find_bucket(PyObject *buckets, int64_t number)
{
    PyObject *key = PyLong_FromLongLong(number);
    PyObject *bucket = key == NULL ? NULL : PyObject_GetItem(buckets, key);
    Py_XDECREF(key);
    return bucket;
}

static int append_to_bucket(PyObject *bucket, const char *keys, size_t keys_size, const char *json,
                            size_t json_size)
{
    if (!PyTuple_Check(bucket) || PyTuple_Size(bucket) != 2
        || !PyByteArray_Check(PyTuple_GetItem(bucket, 0))
        || !PyByteArray_Check(PyTuple_GetItem(bucket, 1))) {
        PyErr_SetString(PyExc_TypeError, "a bucket must be a tuple of two bytearrays");
        return -1;
    }
    if (append(PyTuple_GetItem(bucket, 0), keys, keys_size) < 0) {
        return -1;
    }
    return append(PyTuple_GetItem(bucket, 1), json, json_size);
}

/* Shift an id right, rounding negative ids down too, as Python does. */
static int64_t bucket_number(const char *key, int bucket_bits)
{
    int64_t question_id = key_integer(key);
    return question_id >= 0 ? question_id >> bucket_bits : ~(~question_id >> bucket_bits);
}

/* Append posts to their buckets. Consecutive posts of the same bucket are copied together. */
static int append_posts(const Posts *posts, PyObject *buckets, int bucket_bits)
{
    const Buffer *keys = &posts->keys;
    size_t at = 0, json_at = 0;
    while (at < keys->size) {
        size_t first = at, json_size = 0;
        int64_t number = bucket_number(keys->bytes + at, bucket_bits);
        do {
            json_size += (size_t)(key_integer(keys->bytes + at + 24) >> 4);
            at += KEY_BYTES;
        } while (at < keys->size && bucket_number(keys->bytes + at, bucket_bits) == number);
        PyObject *bucket = find_bucket(buckets, number);
        if (bucket == NULL) {
            return -1;
        }
        int failed = append_to_bucket(bucket, keys->bytes + first, at - first,
                                      posts->json.bytes + json_at, json_size);
        Py_DECREF(bucket);
        if (failed) {
            return -1;
        }
        json_at += json_size;
    }
    return 0;
}

static PyObject *other_types(const Posts *posts)
{
    PyObject *counts = PyDict_New();
    for (size_t i = 0; counts != NULL && i < posts->other_types_count; i++) {
        PyObject *type = PyLong_FromLongLong(posts->other_types[i].type);
        PyObject *rows = PyLong_FromSize_t(posts->other_types[i].rows);
        if (type == NULL || rows == NULL || PyDict_SetItem(counts, type, rows) < 0) {
            Py_CLEAR(counts);
        }
        Py_XDECREF(type);
        Py_XDECREF(rows);
    }
    return counts;
}

static PyObject *bytes_of(const Buffer *buffer)
{
    return PyBytes_FromStringAndSize(buffer->size ? buffer->bytes : "", (Py_ssize_t)buffer->size);
}

/* Return the `Id` of the last row; None if there are no rows. */
static PyObject *last_id(size_t rows, int64_t id)
{
    return rows == 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong((long long)id);
}

/* Read the reserved names from a tuple of bytes. */
static int reserve_names(Posts *posts, PyObject *names)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(names); i++) {
        char *bytes;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(names, i), &bytes, &size) < 0) {
            return -1;
        }
        if (!reserve_name(posts, bytes, (size_t)size)) {
            PyErr_SetString(PyExc_ValueError, "too many names are reserved");
            return -1;
        }
    }
    return 0;
}

/* Convert a slice of rows. An error is set only for NO_MEMORY. */
static Status convert(PyObject *slice, Posts *posts)
{
    Status status = convert_rows(PyBytes_AsString(slice), (size_t)PyBytes_Size(slice), posts);
    if (status == NO_MEMORY) {
        PyErr_NoMemory();
    }
    return status;
}

static PyObject *add_rows(PyObject *module, PyObject *args)
{
    PyObject *slice, *buckets, *pairs, *reserved, *result = NULL;
    Posts posts = {0};
    int bucket_bits;
    (void)module;
    if (!PyArg_ParseTuple(args, "SO!O!iO!:add_rows", &slice, &PyDict_Type, &buckets,
                          &PyByteArray_Type, &pairs, &bucket_bits, &PyTuple_Type,
                          &reserved)
        || reserve_names(&posts, reserved) < 0) {
        return NULL;
    }
    if (bucket_bits < 0 || bucket_bits > 62) {
        return PyErr_Format(PyExc_ValueError, "bucket_bits is %d; it must be 0 to 62", bucket_bits);
    }
    Status status = convert(slice, &posts);
    if (status == FALLBACK) {
        result = Py_NewRef(Py_None);
    } else if (status == OK && append_posts(&posts, buckets, bucket_bits) == 0
               && append_pairs(pairs, &posts.keys) == 0) {
        /* If a part is NULL, Py_BuildValue releases the other parts and returns NULL. */
        result = Py_BuildValue("(nNNss)", (Py_ssize_t)posts.rows,
                               last_id(posts.rows, posts.last_id), other_types(&posts),
                               posts.first_day, posts.last_day);
    }
    free_posts(&posts);
    return result;
}

static PyObject *count_lines(PyObject *module, PyObject *data)
{
    char *at;
    Py_ssize_t size, count = 0;
    (void)module;
    if (PyBytes_AsStringAndSize(data, &at, &size) < 0) {
        return NULL;
    }
    for (const char *end = at + size; (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++) {
        count++;
    }
    return PyLong_FromSsize_t(count);
}

/* Find a text that starts at one of the first `starts` bytes of the data; NULL if there is none.
   Blocks are searched for its first and last byte in loops without branches, which compilers turn
   into vector instructions. */
static const char *find_text(const char *data, size_t starts, const char *text, size_t size)
{
    enum { BLOCK = 256 };
    for (size_t at = 0; at < starts; at += BLOCK) {
        if (starts - at < BLOCK && starts >= BLOCK) {
            at = starts - BLOCK; /* The last block overlaps the previous one. */
        }
        size_t count = starts < BLOCK ? starts : BLOCK;
        const char *firsts = data + at, *lasts = firsts + size - 1;
        unsigned char is_possible = 0;
        for (size_t i = 0; i < count; i++) {
            is_possible |= (unsigned char)((firsts[i] == text[0]) & (lasts[i] == text[size - 1]));
        }
        for (size_t i = 0; is_possible && i < count; i++) {
            if (firsts[i] == text[0] && memcmp(firsts + i, text, size) == 0) {
                return firsts + i;
            }
        }
    }
    return NULL;
}

/* Whether a text occurs in the first bytes of a buffer. */
static PyObject *contains(PyObject *module, PyObject *args)
{
    Py_buffer data, text;
    Py_ssize_t size;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*ny*:contains", &data, &size, &text)) {
        return NULL;
    }
    Py_ssize_t starts = Py_MIN(size, data.len) - text.len + 1;
    int found = text.len == 0 ? 1
                : starts <= 0 ? 0
                              : find_text(data.buf, (size_t)starts, text.buf, (size_t)text.len)
                                    != NULL;
    PyBuffer_Release(&data);
    PyBuffer_Release(&text);
    return PyBool_FromLong(found);
}

/* Put the low 32 bits of the id of an answer, whose type is at `type`: `{"Id":5,"PostTypeId":2`. */
static Status put_answer_id(const char *start, const char *type, Buffer *ids)
{
    static const char before[] = "{\"Id\":", after[] = ",\"";
    enum { BEFORE = sizeof(before) - 1, AFTER = sizeof(after) - 1 };
    uint32_t id = 0, power = 1;
    const char *at = type - AFTER;
    if (at < start || memcmp(at, after, AFTER) != 0) {
        return FALLBACK;
    }
    for (; at > start && at[-1] >= '0' && at[-1] <= '9'; at--, power *= 10) {
        id += (uint32_t)(at[-1] - '0') * power;
    }
    if (at > start && at[-1] == '-') {
        id = 0 - id;
        at--;
    }
    if (at - start < BEFORE || memcmp(at - BEFORE, before, BEFORE) != 0) {
        return FALLBACK;
    }
    const unsigned char bytes[] = {id & 255, id >> 8 & 255, id >> 16 & 255, id >> 24};
    return put(ids, bytes, sizeof(bytes));
}

/* The low 32 bits of the ids of all answers in documents; None if an answer does not start with its
   id and its type. Inside a JSON string, each quote follows a backslash, so no text matches. */
static PyObject *answer_ids(PyObject *module, PyObject *data)
{
    static const char type[] = "PostTypeId\":2";
    enum { SIZE = sizeof(type) - 1 };
    const char *start = PyBytes_AsString(data), *at = start, *found;
    (void)module;
    if (start == NULL) {
        return NULL;
    }
    const char *end = start + PyBytes_Size(data);
    Buffer ids = {0};
    Status status = OK;
    /* A byte follows each type. */
    while (status == OK && end - at > SIZE
           && (found = find_text(at, (size_t)(end - at) - SIZE, type, SIZE)) != NULL) {
        at = found + SIZE;
        if (*at == ',' || *at == '}') {
            status = put_answer_id(start, found, &ids);
        }
    }
    PyObject *result = status == OK         ? bytes_of(&ids)
                       : status == FALLBACK ? Py_NewRef(Py_None)
                                            : PyErr_NoMemory();
    free(ids.bytes);
    return result;
}

static PyObject *read_table(PyObject *module, PyObject *args)
{
    PyObject *slice, *result = NULL;
    Posts posts = {0};
    int table;
    (void)module;
    if (!PyArg_ParseTuple(args, "Si:read_table", &slice, &table)) {
        return NULL;
    }
    if (table < USERS || (table > VOTE && table < CLOSINGS) || table > HISTORY_TEXT) {
        return PyErr_Format(PyExc_ValueError, "table is %d; it must be 4 to 7 or 9 to 11", table);
    }
    posts.table = (Kind)table;
    Status status = convert(slice, &posts);
    if (status == FALLBACK) {
        result = Py_NewRef(Py_None);
    } else if (status == OK) {
        result = Py_BuildValue("(nNNN)", (Py_ssize_t)posts.rows, last_id(posts.rows, posts.last_id),
                               bytes_of(&posts.keys), bytes_of(&posts.json));
    }
    free_posts(&posts);
    return result;
}

/* Make the tuple `(nulls, valid, values, offsets, lists)` of each column. */
static PyObject *list_columns(const Columns *columns)
{
    PyObject *result = PyList_New((Py_ssize_t)columns->count);
    for (size_t i = 0; result != NULL && i < columns->count; i++) {
        const Column *column = &columns->columns[i];
        PyObject *parts = Py_BuildValue("(nNNNN)", (Py_ssize_t)column->nulls,
                                        bytes_of(&column->valid), bytes_of(&column->values),
                                        bytes_of(&column->offsets), bytes_of(&column->lists));
        if (parts == NULL || PyList_SetItem(result, (Py_ssize_t)i, parts) < 0) {
            Py_CLEAR(result);
        }
    }
    return result;
}

static PyObject *read_columns(PyObject *module, PyObject *args)
{
    PyObject *data, *names, *result = NULL;
    Columns columns = {0};
    const char *kinds;
    char *bytes;
    Py_ssize_t size, kinds_size;
    (void)module;
    if (!PyArg_ParseTuple(args, "SO!y#:read_columns", &data, &PyTuple_Type, &names, &kinds,
                          &kinds_size)
        || PyBytes_AsStringAndSize(data, &bytes, &size) < 0) {
        return NULL;
    }
    Py_ssize_t count = PyTuple_Size(names);
    if (count != kinds_size || count < 2 || kinds[count - 1] != OTHER_COLUMN) {
        PyErr_SetString(PyExc_ValueError, "there must be a kind for each name, the last one 5");
        return NULL;
    }
    columns.columns = PyMem_Calloc((size_t)count, sizeof(Column));
    if (columns.columns == NULL) {
        return PyErr_NoMemory();
    }
    columns.count = (size_t)count;
    for (Py_ssize_t i = 0; i < count; i++) {
        char *name;
        Py_ssize_t name_size;
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(names, i), &name, &name_size) < 0) {
            PyMem_Free(columns.columns);
            return NULL;
        }
        columns.columns[i].name = name;
        columns.columns[i].name_size = (size_t)name_size;
        columns.columns[i].kind = (ColumnKind)kinds[i];
    }
    Status status = fill_columns(bytes, (size_t)size, &columns);
    if (status == FALLBACK) {
        result = Py_NewRef(Py_None);
    } else if (status == NO_MEMORY) {
        PyErr_NoMemory();
    } else {
        result = Py_BuildValue("(nNN)", (Py_ssize_t)columns.rows,
                               last_id(columns.rows, columns.last_id), list_columns(&columns));
    }
    free_columns(&columns);
    PyMem_Free(columns.columns);
    return result;
}

/* Whether the sizes in the keys add up to the size of the JSON, and each key has a question id. */
static int are_whole(const Posts *posts, Py_ssize_t questions_size)
{
    size_t json_size = 0;
    if (posts->keys.size % KEY_BYTES || (size_t)questions_size != posts->keys.size / 4) {
        return 0;
    }
    for (size_t at = 0; at < posts->keys.size; at += KEY_BYTES) {
        int64_t size = key_integer(posts->keys.bytes + at + 24) >> 4;
        if (size < 0 || (size_t)size > posts->json.size - json_size) {
            return 0;
        }
        json_size += (size_t)size;
    }
    return json_size == posts->json.size;
}

static PyObject *file_records(PyObject *module, PyObject *args)
{
    PyObject *keys, *buckets, *result = NULL;
    const char *json, *questions;
    char *bytes;
    Py_ssize_t keys_size, json_size, questions_size;
    Posts posts = {0};
    int bucket_bits;
    (void)module;
    if (!PyArg_ParseTuple(args, "Sy#y#O!i:file_records", &keys, &json, &json_size, &questions,
                          &questions_size, &PyDict_Type, &buckets, &bucket_bits)
        || PyBytes_AsStringAndSize(keys, &bytes, &keys_size) < 0) {
        return NULL;
    }
    posts.json = (Buffer){(char *)json, (size_t)json_size, 0};
    posts.keys = (Buffer){bytes, (size_t)keys_size, 0};
    if (bucket_bits < 0 || bucket_bits > 62 || !are_whole(&posts, questions_size)) {
        PyErr_SetString(PyExc_ValueError, "keys, JSON and questions do not match");
        return NULL;
    }
    posts.keys.bytes = PyMem_Malloc((size_t)keys_size + 1);
    if (posts.keys.bytes == NULL) {
        return PyErr_NoMemory();
    }
    memcpy(posts.keys.bytes, bytes, (size_t)keys_size);
    for (Py_ssize_t at = 0; at < keys_size; at += KEY_BYTES) {
        memcpy(posts.keys.bytes + at, questions + at / 4, 8);
    }
    if (append_posts(&posts, buckets, bucket_bits) == 0) {
        result = Py_NewRef(Py_None);
    }
    PyMem_Free(posts.keys.bytes);
    return result;
}

static PyObject *count_votes_of(PyObject *module, PyObject *keys)
{
    char *bytes;
    Py_ssize_t size;
    (void)module;
    if (PyBytes_AsStringAndSize(keys, &bytes, &size) < 0) {
        return NULL;
    }
    if (size % KEY_BYTES) {
        PyErr_SetString(PyExc_ValueError, "keys are truncated");
        return NULL;
    }
    Buffer counted = {PyMem_Malloc((size_t)size + 1), (size_t)size, 0};
    if (counted.bytes == NULL) {
        return PyErr_NoMemory();
    }
    memcpy(counted.bytes, bytes, (size_t)size);
    count_votes(&counted);
    PyObject *result = PyBytes_FromStringAndSize(counted.bytes, (Py_ssize_t)counted.size);
    PyMem_Free(counted.bytes);
    return result;
}

/* Convert a body to Markdown; to text for the index if `sign` is NULL. */
static PyObject *convert_body(PyObject *body, const char *sign)
{
    Py_ssize_t size;
    PyObject *result = NULL;
    Buffer out = {0};
    const char *bytes = PyUnicode_AsUTF8AndSize(body, &size);
    if (bytes == NULL && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
        PyErr_Clear(); /* The body has half of a surrogate pair, which UTF-8 cannot encode. */
        return Py_NewRef(Py_None);
    }
    if (bytes == NULL) {
        return NULL;
    }
    Status status = sign == NULL ? put_body_as_text(bytes, (size_t)size, &out)
                                 : put_body_as_markdown(bytes, (size_t)size, sign, &out);
    if (status == FALLBACK) {
        result = Py_NewRef(Py_None);
    } else if (status == NO_MEMORY) {
        PyErr_NoMemory();
    } else {
        result = PyUnicode_FromStringAndSize(out.size ? out.bytes : "", (Py_ssize_t)out.size);
    }
    free(out.bytes);
    return result;
}

static PyObject *to_markdown(PyObject *module, PyObject *args)
{
    PyObject *body;
    const char *sign;
    (void)module;
    return PyArg_ParseTuple(args, "Us", &body, &sign) ? convert_body(body, sign) : NULL;
}

static PyObject *to_text(PyObject *module, PyObject *body)
{
    (void)module;
    return convert_body(body, NULL);
}

static PyMethodDef methods[] = {
    {"add_rows", add_rows, METH_VARARGS, NULL},
    {"count_lines", count_lines, METH_O, NULL},
    {"contains", contains, METH_VARARGS, NULL},
    {"answer_ids", answer_ids, METH_O, NULL},
    {"read_table", read_table, METH_VARARGS, NULL},
    {"read_columns", read_columns, METH_VARARGS, NULL},
    {"file_records", file_records, METH_VARARGS, NULL},
    {"count_votes", count_votes_of, METH_O, NULL},
    {"find_objects", find_objects, METH_VARARGS, NULL},
    {"find_values", find_values, METH_VARARGS, NULL},
    {"select_records", select_records, METH_VARARGS, NULL},
    {"add_sizes", add_sizes, METH_VARARGS, NULL},
    {"sort_records", sort_records, METH_O, NULL},
    {"user_ids", user_ids, METH_VARARGS, NULL},
    {"join_records", (PyCFunction)(void (*)(void))join_records, METH_VARARGS | METH_KEYWORDS, NULL},
    {"to_markdown", to_markdown, METH_VARARGS, NULL},
    {"to_text", to_text, METH_O, NULL},
    {"new_bzip2", new_bzip2_memory, METH_NOARGS, NULL},
    {"find_bzip2", find_bzip2, METH_VARARGS, NULL},
    {"decode_bzip2", decode_bzip2_block, METH_VARARGS, NULL},
    {"read_bzip2", read_bzip2_block, METH_VARARGS, NULL},
    {"new_lzma2", new_lzma2_decoder, METH_VARARGS, NULL},
    {"decode_lzma2", decode_lzma2_chunk, METH_VARARGS, NULL},
    {"read_lzma2", read_lzma2_chunk, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
#ifdef Py_MOD_PER_INTERPRETER_GIL_SUPPORTED
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#ifdef Py_MOD_GIL_NOT_USED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_core",    .m_doc = "Rows to posts, compiled.",
    .m_size = 0,           .m_methods = methods, .m_slots = slots,
};

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&module);
}
