/* The compiled core as Python sees it: `add_rows`, the twin of `rows.parse` and `posts.add`.

   What is canonical, and how it becomes JSON, stands in `_canonical.c`. Here are only Python's
   objects. Nothing of theirs is changed before all rows of the slice have been converted.
   Written for the stable ABI, which `setup.py` asks for where there is one: then one build serves
   every Python from 3.11 on. Nothing is kept between calls, and a call changes nothing but the
   objects that it is given, which belong to one thread: free-threaded Python needs no lock here. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#include "_canonical.h"

/* Append to a bytearray. No Python code runs between the resize and the copy. */
static int append(PyObject *to, const char *bytes, size_t size)
{
    Py_ssize_t before = PyByteArray_Size(to);
    if (size > (size_t)(PY_SSIZE_T_MAX - before)) {
        PyErr_NoMemory();
        return -1;
    }
    if (PyByteArray_Resize(to, before + (Py_ssize_t)size) < 0) {
        return -1;
    }
    memcpy(PyByteArray_AsString(to) + before, bytes, size);
    return 0;
}

static int append_pairs(PyObject *pairs, const Buffer *keys)
{
    for (size_t at = 0; at < keys->size; at += KEY_BYTES) {
        if (append(pairs, keys->bytes + at, PAIR_BYTES) < 0) {
            return -1;
        }
    }
    return 0;
}

/* The bucket of a number, a new one if there is none; a new reference. */
static PyObject *find_bucket(PyObject *buckets, int64_t number, PyObject *new_bucket)
{
    PyObject *key = PyLong_FromLongLong(number);
    if (key == NULL) {
        return NULL;
    }
    PyObject *bucket = PyDict_GetItemWithError(buckets, key);
    if (bucket != NULL) {
        Py_INCREF(bucket);
    } else if (!PyErr_Occurred()) {
        bucket = PyObject_CallNoArgs(new_bucket);
        if (bucket != NULL && PyDict_SetItem(buckets, key, bucket) < 0) {
            Py_CLEAR(bucket);
        }
    }
    Py_DECREF(key);
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

/* A shift that rounds down for negative ids too, as Python's does. */
static int64_t bucket_number(const char *key, int bucket_bits)
{
    int64_t question_id = key_integer(key);
    return question_id >= 0 ? question_id >> bucket_bits : ~(~question_id >> bucket_bits);
}

/* Append the posts to their buckets, those in a row that share one at a time. */
static int append_posts(const Posts *posts, PyObject *buckets, PyObject *new_bucket, int bucket_bits)
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
        PyObject *bucket = find_bucket(buckets, number, new_bucket);
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

/* `(rows, last_id, other_types)` of posts that were appended. */
static PyObject *summary(const Posts *posts)
{
    PyObject *counts = other_types(posts);
    if (counts == NULL) {
        return NULL;
    }
    if (posts->rows == 0) {
        return Py_BuildValue("(nON)", (Py_ssize_t)0, Py_None, counts);
    }
    return Py_BuildValue("(nLN)", (Py_ssize_t)posts->rows, (long long)posts->last_id, counts);
}

static PyObject *add_rows(PyObject *module, PyObject *args)
{
    PyObject *data, *buckets, *pairs, *new_bucket, *result = NULL;
    Posts posts = {0};
    Py_ssize_t reserved_size = 0;
    int bucket_bits;
    (void)module;
    if (!PyArg_ParseTuple(args, "SO!O!Oiy#:add_rows", &data, &PyDict_Type, &buckets,
                          &PyByteArray_Type, &pairs, &new_bucket, &bucket_bits, &posts.reserved,
                          &reserved_size)) {
        return NULL;
    }
    if (bucket_bits < 0 || bucket_bits > 62) {
        return PyErr_Format(PyExc_ValueError, "bucket_bits is %d; it must be 0 to 62", bucket_bits);
    }
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(data, &bytes, &size) < 0) {
        return NULL;
    }
    posts.reserved_size = (size_t)reserved_size;
    Verdict verdict = convert_rows(bytes, (size_t)size, &posts);
    if (verdict == NOT_CANONICAL) {
        result = Py_NewRef(Py_None);
    } else if (verdict == NO_MEMORY) {
        PyErr_NoMemory();
    } else if (append_posts(&posts, buckets, new_bucket, bucket_bits) == 0
               && append_pairs(pairs, &posts.keys) == 0) {
        result = summary(&posts);
    }
    free_posts(&posts);
    return result;
}

PyDoc_STRVAR(add_rows_doc,
    "add_rows(data, buckets, pairs, new_bucket, bucket_bits, reserved)\n--\n\n"
    "Turn a slice of rows into posts, as `rows.parse` and `posts.add` do.\n\n"
    "Returns:\n"
    "    The number of rows, the `Id` of the last one, and the rows of other types by type; or None,\n"
    "    with nothing changed, if a row is not canonical.");

static PyMethodDef methods[] = {
    {"add_rows", add_rows, METH_VARARGS, add_rows_doc},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#ifdef Py_mod_gil
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
