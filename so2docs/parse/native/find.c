/* `find_values` looks up many ids in a map on disk, as `IdMap.find` does; `find_objects` looks up
   JSON objects, as `Objects.get` does.

   Ids are looked up in ascending order, so that each block of the map is read once. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core.h"

typedef struct {
    int64_t key;
    Py_ssize_t place;
} Wanted;

enum { WORD = sizeof(int64_t) };

static int by_key(const void *a, const void *b)
{
    const Wanted *one = a, *other = b;
    return (one->key > other->key) - (one->key < other->key);
}

/* Return the number of ids up to `key` in an ascending array, by binary search from `low` on. */
static Py_ssize_t rank_of(const int64_t *ids, Py_ssize_t low, Py_ssize_t high, int64_t key)
{
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        if (ids[middle] <= key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Look up the ids in the block with the number `block`. */
static int find_in_block(PyObject *get_block, Py_ssize_t block, const Wanted *wanted,
                         const Wanted *end, int64_t *values)
{
    Py_buffer words;
    PyObject *number = PyLong_FromSsize_t(block), *found = NULL;
    if (number != NULL) {
        found = PyObject_CallFunctionObjArgs(get_block, number, NULL);
        Py_DECREF(number);
    }
    if (found == NULL || PyObject_GetBuffer(found, &words, PyBUF_SIMPLE) < 0) {
        Py_XDECREF(found);
        return -1;
    }
    const int64_t *ids = words.buf;
    Py_ssize_t count = words.len / (2 * WORD), at = 0;
    for (; wanted < end; wanted++) {
        at = rank_of(ids, at, count, wanted->key);
        if (at > 0 && ids[at - 1] == wanted->key) {
            values[wanted->place] = ids[count + at - 1];
        }
    }
    PyBuffer_Release(&words);
    Py_DECREF(found);
    return 0;
}

/* Look up all ids, in ascending order. */
static int find_all(const Py_buffer *firsts, const Wanted *wanted, const Wanted *end,
                    PyObject *get_block, int64_t *values)
{
    const int64_t *first = firsts->buf;
    Py_ssize_t blocks = firsts->len / WORD, block = 0;
    while (wanted < end) {
        block = rank_of(first, block, blocks, wanted->key);
        const Wanted *next = wanted + 1;
        while (next < end && (block == blocks || next->key < first[block])) {
            next++;
        }
        /* If `block` is 0, the key is below the first id in the map. */
        if (block > 0 && find_in_block(get_block, block - 1, wanted, next, values) < 0) {
            return -1;
        }
        wanted = next;
    }
    return 0;
}

static PyObject *find(const Py_buffer *firsts, const Py_buffer *keys, const Py_buffer *values,
                      PyObject *get_block)
{
    Py_ssize_t count = keys->len / WORD;
    if (keys->len != values->len || keys->len % WORD || firsts->len % WORD) {
        PyErr_SetString(PyExc_ValueError, "there must be as many values as ids");
        return NULL;
    }
    Wanted *wanted = PyMem_Malloc((size_t)count * sizeof(Wanted) + 1);
    if (wanted == NULL) {
        return PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        wanted[i] = (Wanted){((const int64_t *)keys->buf)[i], i};
    }
    qsort(wanted, (size_t)count, sizeof(Wanted), by_key);
    int failed = find_all(firsts, wanted, wanted + count, get_block, values->buf);
    PyMem_Free(wanted);
    return failed ? NULL : Py_NewRef(Py_None);
}

PyObject *find_values(PyObject *module, PyObject *args)
{
    Py_buffer firsts, keys, values;
    PyObject *get_block, *result;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*w*O:find_values", &firsts, &keys, &values, &get_block)) {
        return NULL;
    }
    result = find(&firsts, &keys, &values, get_block);
    PyBuffer_Release(&firsts);
    PyBuffer_Release(&keys);
    PyBuffer_Release(&values);
    return result;
}

/* Return the object with an id from a block of `store/objects.py`; None if it is missing. */
static PyObject *find_in_objects(PyObject *block, int64_t key)
{
    char *bytes;
    Py_ssize_t size;
    int64_t count, start, end, json;
    if (PyBytes_AsStringAndSize(block, &bytes, &size) < 0) {
        return NULL;
    }
    const int64_t *ids = (const int64_t *)bytes + 1;
    if (size < WORD || (count = ids[-1]) < 1 || count > (size / WORD - 1) / 2) {
        PyErr_SetString(PyExc_ValueError, "the number of objects is wrong");
        return NULL;
    }
    Py_ssize_t at = rank_of(ids, 0, (Py_ssize_t)count, key);
    if (at == 0 || ids[at - 1] != key) {
        return Py_NewRef(Py_None);
    }
    json = (2 * count + 1) * WORD;
    start = at > 1 ? ids[count + at - 2] : 0;
    end = ids[count + at - 1];
    if (start < 0 || start > end || end > size - json) {
        PyErr_SetString(PyExc_ValueError, "the ends of the objects are wrong");
        return NULL;
    }
    return PyBytes_FromStringAndSize(bytes + json + start, (Py_ssize_t)(end - start));
}

static int append_objects(const Py_buffer *firsts, const Py_buffer *keys, PyObject *get_block,
                          PyObject *objects)
{
    Py_ssize_t held = 0;
    PyObject *block = NULL;
    int failed = 0;
    for (Py_ssize_t i = 0; i < keys->len / WORD && !failed; i++) {
        int64_t key = ((const int64_t *)keys->buf)[i];
        Py_ssize_t rank = rank_of(firsts->buf, 0, firsts->len / WORD, key);
        if (rank > 0 && rank != held) {
            Py_XDECREF(block);
            block = PyObject_CallFunction(get_block, "n", rank - 1);
            held = rank;
        }
        PyObject *object = NULL;
        if (rank == 0) {
            object = Py_NewRef(Py_None);
        } else if (block != NULL) {
            object = find_in_objects(block, key);
        }
        failed = object == NULL || PyList_Append(objects, object) < 0;
        Py_XDECREF(object);
    }
    Py_XDECREF(block);
    return failed;
}

PyObject *find_objects(PyObject *module, PyObject *args)
{
    Py_buffer firsts, keys;
    PyObject *get_block, *objects = PyList_New(0);
    (void)module;
    if (objects == NULL
        || !PyArg_ParseTuple(args, "y*y*O:find_objects", &firsts, &keys, &get_block)) {
        Py_XDECREF(objects);
        return NULL;
    }
    if (append_objects(&firsts, &keys, get_block, objects)) {
        Py_CLEAR(objects);
    }
    PyBuffer_Release(&firsts);
    PyBuffer_Release(&keys);
    return objects;
}
