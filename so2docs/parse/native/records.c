/* `sort_records` sorts the records of a bucket and is the counterpart of `merge.gather`;
   `select_records` copies the records of a part of the bucket; `add_sizes` is the counterpart of
   `merge.add_sizes`.

   No JSON is parsed: keys give the size of each object, and the sizes are checked against the block. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core.h"

enum { OFFSET_BITS = 40 };

/* Compare records: a post before its rows, rows by table, then by rank as in `nest.Row`. */
static int by_id(const void *a, const void *b)
{
    const Record *one = a, *other = b;
    int order = compare(one->question_id, other->question_id);
    order = order ? order : compare(one->post_id, other->post_id);
    int kind = kind_of(one) < COMMENT ? 0 : kind_of(one);
    order = order ? order : compare(kind, kind_of(other) < COMMENT ? 0 : kind_of(other));
    order = order || kind == 0 ? order : compare(one->rank, other->rank);
    return order ? order : compare(one->order, other->order);
}

/* Get the two buffers of a block: keys and JSON. */
static int get_block(PyObject *blocks, Py_ssize_t number, Py_buffer *keys, Py_buffer *json)
{
    PyObject *block = PyList_GetItem(blocks, number);
    if (block == NULL || !PyTuple_Check(block) || PyTuple_Size(block) != 2) {
        PyErr_SetString(PyExc_TypeError, "a block must be a tuple of two buffers");
        return -1;
    }
    if (keys != NULL && PyObject_GetBuffer(PyTuple_GetItem(block, 0), keys, PyBUF_SIMPLE) < 0) {
        return -1;
    }
    if (json != NULL && PyObject_GetBuffer(PyTuple_GetItem(block, 1), json, PyBUF_SIMPLE) < 0) {
        if (keys != NULL) {
            PyBuffer_Release(keys);
        }
        return -1;
    }
    return 0;
}

/* Return the size of a record's JSON; -1 if it exceeds the block. */
static Py_ssize_t checked_size(const char *key, Py_ssize_t left)
{
    int64_t size_and_kind = key_integer(key + 24);
    return size_and_kind < 0 || size_and_kind >> 4 > left ? -1 : (Py_ssize_t)(size_and_kind >> 4);
}

/* Add the records of a block to `sorted`, which is large enough. */
static int add_block(Record *sorted, int64_t number, int64_t order, const Py_buffer *keys,
                     Py_ssize_t left)
{
    const char *key = keys->buf;
    int64_t at = number << OFFSET_BITS;
    for (Py_ssize_t i = keys->len / KEY_BYTES; i > 0; i--, key += KEY_BYTES) {
        Py_ssize_t size = checked_size(key, left);
        if (size < 0) {
            return -1;
        }
        *sorted++ = (Record){key_integer(key),      key_integer(key + 8), key_integer(key + 16),
                             key_integer(key + 24), at,                   order++};
        left -= size;
        at += size;
    }
    return left == 0 ? 0 : -1;
}

static void *refuse(void)
{
    PyErr_SetString(PyExc_ValueError, "keys and JSON do not match");
    return NULL;
}

PyObject *sort_records(PyObject *module, PyObject *blocks)
{
    (void)module;
    if (!PyList_Check(blocks)) {
        PyErr_SetString(PyExc_TypeError, "blocks must be a list");
        return NULL;
    }
    PyObject *result = PyByteArray_FromStringAndSize(NULL, 0);
    for (Py_ssize_t i = 0; result != NULL && i < PyList_Size(blocks); i++) {
        Py_buffer keys, json;
        if (get_block(blocks, i, &keys, &json) < 0) {
            Py_CLEAR(result);
            break;
        }
        Py_ssize_t before = PyByteArray_Size(result), count = keys.len / KEY_BYTES;
        if (PyByteArray_Resize(result, before + count * (Py_ssize_t)sizeof(Record)) < 0) {
            Py_CLEAR(result);
        } else if (keys.len % KEY_BYTES || json.len >> OFFSET_BITS
                   || add_block((Record *)(PyByteArray_AsString(result) + before), i,
                                before / (Py_ssize_t)sizeof(Record), &keys, json.len) < 0) {
            Py_CLEAR(result);
            refuse();
        }
        PyBuffer_Release(&keys);
        PyBuffer_Release(&json);
    }
    if (result != NULL) {
        qsort(PyByteArray_AsString(result), (size_t)PyByteArray_Size(result) / sizeof(Record),
              sizeof(Record), by_id);
    }
    return result;
}

/* Copy the records of a range of question ids; if `keys_to` is NULL, only measure them. Returns
   -1 if the keys do not match the JSON. */
static int select_into(const char *key, Py_ssize_t count, const char *json, Py_ssize_t left,
                       const int64_t *ids, char *keys_to, char *json_to, Py_ssize_t sizes[2])
{
    for (; count > 0; count--, key += KEY_BYTES) {
        Py_ssize_t size = checked_size(key, left);
        if (size < 0) {
            return -1;
        }
        if (key_integer(key) >= ids[0] && key_integer(key) < ids[1]) {
            if (keys_to != NULL) {
                memcpy(keys_to + sizes[0], key, KEY_BYTES);
                memcpy(json_to + sizes[1], json, (size_t)size);
            }
            sizes[0] += KEY_BYTES;
            sizes[1] += size;
        }
        json += size;
        left -= size;
    }
    return left == 0 ? 0 : -1;
}

PyObject *select_records(PyObject *module, PyObject *args)
{
    const char *keys, *json;
    Py_ssize_t keys_size, json_size, sizes[2] = {0, 0}, again[2] = {0, 0};
    long long low, high;
    (void)module;
    if (!PyArg_ParseTuple(args, "(y#y#)LL:select_records", &keys, &keys_size, &json, &json_size,
                          &low, &high)) {
        return NULL;
    }
    int64_t ids[2] = {low, high};
    Py_ssize_t count = keys_size / KEY_BYTES;
    if (keys_size % KEY_BYTES
        || select_into(keys, count, json, json_size, ids, NULL, NULL, sizes) < 0) {
        return refuse();
    }
    PyObject *found_keys = PyBytes_FromStringAndSize(NULL, sizes[0]);
    PyObject *found_json = PyBytes_FromStringAndSize(NULL, sizes[1]);
    if (found_keys == NULL || found_json == NULL) {
        Py_XDECREF(found_keys);
        Py_XDECREF(found_json);
        return NULL;
    }
    select_into(keys, count, json, json_size, ids, PyBytes_AsString(found_keys),
                PyBytes_AsString(found_json), again);
    return Py_BuildValue("(NN)", found_keys, found_json);
}

PyObject *add_sizes(PyObject *module, PyObject *args)
{
    Py_buffer keys, sizes;
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*w*:add_sizes", &keys, &sizes)) {
        return NULL;
    }
    uint64_t count = (uint64_t)sizes.len / sizeof(int64_t);
    if (count == 0 || (count & (count - 1)) || sizes.len % (Py_ssize_t)sizeof(int64_t)) {
        PyErr_SetString(PyExc_ValueError, "the number of sizes must be a power of two");
    } else if (keys.len == 0 || keys.len % KEY_BYTES) {
        refuse();
    } else {
        int64_t *totals = sizes.buf, lowest = INT64_MAX, highest = INT64_MIN;
        const char *key = keys.buf, *end = key + keys.len;
        for (; key < end; key += KEY_BYTES) {
            int64_t question_id = key_integer(key);
            int64_t *total = &totals[(uint64_t)question_id & (count - 1)];
            Py_ssize_t before = *total < 0 ? 0 : (Py_ssize_t)*total;
            Py_ssize_t size = checked_size(key, PY_SSIZE_T_MAX - before);
            if (size < 0) {
                break;
            }
            *total = before + size;
            lowest = question_id < lowest ? question_id : lowest;
            highest = question_id > highest ? question_id : highest;
        }
        result = key < end ? refuse()
                           : Py_BuildValue("(LL)", (long long)lowest, (long long)highest);
    }
    PyBuffer_Release(&keys);
    PyBuffer_Release(&sizes);
    return result;
}

void release(Blocks *held)
{
    while (held->count > 0) {
        PyBuffer_Release(&held->json[--held->count]);
    }
    PyMem_Free(held->json);
}

int hold(Blocks *held, PyObject *blocks)
{
    Py_ssize_t count = PyList_Size(blocks);
    held->count = 0;
    held->json = PyMem_Calloc((size_t)count + 1, sizeof(Py_buffer));
    if (held->json == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (; held->count < count; held->count++) {
        if (get_block(blocks, held->count, NULL, &held->json[held->count]) < 0) {
            release(held);
            return -1;
        }
    }
    return 0;
}

const char *json_of(const Blocks *held, const Record *record)
{
    int64_t number = record->place >> OFFSET_BITS;
    int64_t offset = record->place & (((int64_t)1 << OFFSET_BITS) - 1);
    if (number < 0 || number >= held->count || size_of(record) < EMPTY
        || offset > held->json[number].len
        || size_of(record) > held->json[number].len - offset) {
        PyErr_SetString(PyExc_ValueError, "these are not the blocks that were sorted");
        return NULL;
    }
    return (const char *)held->json[number].buf + offset;
}
