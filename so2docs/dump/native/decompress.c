/* Python functions for `bzip2.c` and `lzma2.c`. They release the GIL, so threads decode in
   parallel. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../../parse/native/core.h"

#define CAPSULE "so2docs.parse._core.Bzip2"
#define LZMA2_CAPSULE "so2docs.parse._core.Lzma2"

static void free_capsule(PyObject *capsule)
{
    free_bzip2(PyCapsule_GetPointer(capsule, CAPSULE));
}

PyObject *new_bzip2_memory(PyObject *module, PyObject *ignored)
{
    (void)module;
    (void)ignored;
    Bzip2 *memory = new_bzip2();
    if (memory == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(memory, CAPSULE, free_capsule);
    if (capsule == NULL) {
        free_bzip2(memory);
    }
    return capsule;
}

PyObject *find_bzip2(PyObject *module, PyObject *args)
{
    Py_buffer data;
    Py_ssize_t from;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*n:find_bzip2", &data, &from)) {
        return NULL;
    }
    size_t bit;
    Py_BEGIN_ALLOW_THREADS
    bit = find_bzip2_number(data.buf, (size_t)data.len, from < 0 ? 0 : (size_t)from);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&data);
    return bit == SIZE_MAX ? PyLong_FromLong(-1) : PyLong_FromSize_t(bit);
}

PyObject *decode_bzip2_block(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    Py_buffer data;
    Py_ssize_t bit;
    int level;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oy*ni:decode_bzip2", &capsule, &data, &bit, &level)) {
        return NULL;
    }
    Bzip2 *memory = PyCapsule_GetPointer(capsule, CAPSULE);
    PyObject *result = NULL;
    if (memory != NULL && (bit < 0 || level < 1 || level > 9)) {
        PyErr_SetString(PyExc_ValueError, "a bit must be at least 0, and a level 1 to 9");
    } else if (memory != NULL) {
        Bzip2Block block;
        Status status;
        Py_BEGIN_ALLOW_THREADS
        status = decode_bzip2(memory, data.buf, (size_t)data.len, (size_t)bit, (unsigned)level,
                              &block);
        Py_END_ALLOW_THREADS
        result = status != OK ? Py_NewRef(Py_None)
                              : Py_BuildValue("(nIi)", (Py_ssize_t)block.end,
                                              (unsigned)block.crc, block.is_randomized);
    }
    PyBuffer_Release(&data);
    return result;
}

PyObject *read_bzip2_block(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    Py_ssize_t size;
    (void)module;
    if (!PyArg_ParseTuple(args, "On:read_bzip2", &capsule, &size)) {
        return NULL;
    }
    Bzip2 *memory = PyCapsule_GetPointer(capsule, CAPSULE);
    if (memory == NULL) {
        return NULL;
    }
    size_t left = bzip2_left(memory);
   PyObject *result = PyBytes_FromStringAndSize(NULL, (size_t)size < left ? size : (Py_ssize_t)left);
    if (result == NULL || left == 0) {
        return result;
    }
    Byte *out = (Byte *)PyBytes_AsString(result);
    size_t count = (size_t)PyBytes_Size(result);
    Status status;
    Py_BEGIN_ALLOW_THREADS
    status = read_bzip2(memory, out, count);
    Py_END_ALLOW_THREADS
    if (status != OK) {
        Py_CLEAR(result);
        PyErr_SetString(PyExc_OSError, "the checksum of a block is wrong");
    }
    return result;
}

typedef struct {
    Lzma2 *state;
    Py_buffer window;
} Lzma2Decoder;

static void free_lzma2_decoder(Lzma2Decoder *decoder)
{
    if (decoder->state != NULL) {
        free_lzma2(decoder->state);
    }
    PyBuffer_Release(&decoder->window);
    free(decoder);
}

static void free_lzma2_capsule(PyObject *capsule)
{
    free_lzma2_decoder(PyCapsule_GetPointer(capsule, LZMA2_CAPSULE));
}

PyObject *new_lzma2_decoder(PyObject *module, PyObject *args)
{
    Py_ssize_t dictionary;
    Lzma2Decoder *decoder = calloc(1, sizeof *decoder);
    (void)module;
    if (decoder == NULL) {
        return PyErr_NoMemory();
    }
    if (!PyArg_ParseTuple(args, "nw*:new_lzma2", &dictionary, &decoder->window)) {
        free(decoder);
        return NULL;
    }
    PyObject *capsule = NULL;
    if (dictionary < 0 || dictionary > MOST_LZMA2_DICTIONARY) {
        PyErr_SetString(PyExc_ValueError, "a dictionary must have 0 to 2^30 bytes");
    } else if (decoder->window.len < LEAST_LZMA2_WINDOW) {
        PyErr_SetString(PyExc_ValueError, "a window must have at least 128 bytes");
    } else {
        size_t size = (size_t)decoder->window.len;
        decoder->state = new_lzma2((size_t)dictionary, decoder->window.buf, size);
        capsule = decoder->state == NULL ? PyErr_NoMemory()
                                         : PyCapsule_New(decoder, LZMA2_CAPSULE, free_lzma2_capsule);
    }
    if (capsule == NULL) {
        free_lzma2_decoder(decoder);
    }
    return capsule;
}

PyObject *decode_lzma2_chunk(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    Py_buffer data;
    Py_ssize_t at;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oy*n:decode_lzma2", &capsule, &data, &at)) {
        return NULL;
    }
    Lzma2Decoder *decoder = PyCapsule_GetPointer(capsule, LZMA2_CAPSULE);
    PyObject *result = NULL;
    if (decoder != NULL && (at < 0 || at > data.len)) {
        PyErr_SetString(PyExc_ValueError, "a chunk must start within the data");
    } else if (decoder != NULL) {
        const Byte *chunk = (const Byte *)data.buf + at;
        size_t used;
        Status status;
        Py_BEGIN_ALLOW_THREADS
        status = decode_lzma2(decoder->state, chunk, (size_t)(data.len - at), &used);
        Py_END_ALLOW_THREADS
        result = status != OK ? Py_NewRef(Py_None) : PyLong_FromSsize_t(at + (Py_ssize_t)used);
    }
    PyBuffer_Release(&data);
    return result;
}

PyObject *read_lzma2_chunk(PyObject *module, PyObject *capsule)
{
    Lzma2Decoder *decoder = PyCapsule_GetPointer(capsule, LZMA2_CAPSULE);
    size_t start;
    (void)module;
    if (decoder == NULL) {
        return NULL;
    }
    size_t size = read_lzma2(decoder->state, &start);
    return Py_BuildValue("nn", (Py_ssize_t)start, (Py_ssize_t)(start + size));
}
