/* `find_values` looks up many ids in a map on disk; it is the counterpart of `IdMap.find`.

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
