/* Posts of a bucket to documents: `sort_posts`, the twin of `merge.gather`, and
   `join_posts`, which joins what `merge.Nesting` joins without a question asked: one question, and
   answers of different ids. Groups of any other kind are only named, for the reference.

   No JSON is read; keys say where an object starts and ends, and are not believed beyond the end
   of their block. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>
#include <string.h>

#include "_canonical.h"
#include "_join.h"

enum { QUESTION = 1, ANSWER = 2, OFFSET_BITS = 40, EMPTY = 2 };

/* A post: its key, and where its JSON is, the number of the block << OFFSET_BITS | offset. Later in
   the dump is higher. */
typedef struct {
    int64_t question_id, post_id, place, rank, size_and_kind;
} Entry;

static Py_ssize_t size_of(const Entry *post)
{
    return (Py_ssize_t)(post->size_and_kind >> 4);
}

static int kind_of(const Entry *post)
{
    return (int)(post->size_and_kind & 15);
}

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_id(const void *a, const void *b)
{
    const Entry *one = a, *other = b;
    int order = compare(one->question_id, other->question_id);
    order = order ? order : compare(one->post_id, other->post_id);
    return order ? order : compare(one->place, other->place);
}

static int by_votes(const void *a, const void *b)
{
    const Entry *one = a, *other = b;
    int order = compare(other->rank, one->rank);
    return order ? order : compare(one->post_id, other->post_id);
}

/* The two buffers of a block, keys and JSON. */
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

/* Add the posts of a block to `sorted`, which has room for them. */
static int add_block(Entry *sorted, int64_t number, const Py_buffer *keys, Py_ssize_t json_size)
{
    const char *key = keys->buf;
    int64_t at = number << OFFSET_BITS;
    for (Py_ssize_t left = keys->len; left >= KEY_BYTES; left -= KEY_BYTES, key += KEY_BYTES) {
        Entry post = {key_integer(key), key_integer(key + 8), at, key_integer(key + 16),
                      key_integer(key + 24)};
        if (post.size_and_kind < 0 || size_of(&post) > json_size) {
            return -1;
        }
        json_size -= size_of(&post);
        at += size_of(&post);
        *sorted++ = post;
    }
    return json_size == 0 ? 0 : -1;
}

PyObject *sort_posts(PyObject *module, PyObject *blocks)
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
        if (PyByteArray_Resize(result, before + count * (Py_ssize_t)sizeof(Entry)) < 0) {
            Py_CLEAR(result);
        } else if (keys.len % KEY_BYTES || json.len >> OFFSET_BITS
                   || add_block((Entry *)(PyByteArray_AsString(result) + before), i, &keys,
                                json.len) < 0) {
            PyErr_SetString(PyExc_ValueError, "keys and JSON do not belong together");
            Py_CLEAR(result);
        }
        PyBuffer_Release(&keys);
        PyBuffer_Release(&json);
    }
    if (result != NULL) {
        qsort(PyByteArray_AsString(result), (size_t)PyByteArray_Size(result) / sizeof(Entry),
              sizeof(Entry), by_id);
    }
    return result;
}

/* The JSON of all blocks, held while documents are joined. */
typedef struct {
    Py_buffer *json;
    Py_ssize_t count;
} Blocks;

static void release(Blocks *held)
{
    while (held->count > 0) {
        PyBuffer_Release(&held->json[--held->count]);
    }
    PyMem_Free(held->json);
}

static int hold(Blocks *held, PyObject *blocks)
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

/* Where the JSON of a post is; NULL if the blocks are not those that were sorted. */
static const char *json_of(const Blocks *held, const Entry *post)
{
    int64_t number = post->place >> OFFSET_BITS;
    int64_t offset = post->place & (((int64_t)1 << OFFSET_BITS) - 1);
    if (number < 0 || number >= held->count || size_of(post) < EMPTY
        || offset > held->json[number].len || size_of(post) > held->json[number].len - offset) {
        PyErr_SetString(PyExc_ValueError, "these are not the blocks that were sorted");
        return NULL;
    }
    return (const char *)held->json[number].buf + offset;
}

/* How documents are joined. */
typedef struct {
    const char *opening; /* Bytes between the fields of a question and its answers. */
    Py_ssize_t opening_size;
    int with_answers, by_votes;
} Form;

/* Put the question before its answers, and these in their order; whether nothing else is there. */
static int is_plain(Entry *group, Py_ssize_t count, const Form *form)
{
    Py_ssize_t question = -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (size_of(&group[i]) < EMPTY || (i > 0 && group[i].post_id == group[i - 1].post_id)) {
            return 0;
        }
        if (kind_of(&group[i]) == QUESTION && question < 0) {
            question = i;
        } else if (kind_of(&group[i]) != ANSWER) {
            return 0;
        }
    }
    if (question < 0) {
        return 0;
    }
    Entry first = group[question];
    memmove(group + 1, group, (size_t)question * sizeof(Entry));
    group[0] = first;
    if (form->by_votes) {
        qsort(group + 1, (size_t)count - 1, sizeof(Entry), by_votes);
        for (Py_ssize_t i = 2; i < count; i++) {
            if (group[i].post_id == first.rank) {
                Entry accepted = group[i];
                memmove(group + 2, group + 1, (size_t)(i - 1) * sizeof(Entry));
                group[1] = accepted;
                break;
            }
        }
    }
    return 1;
}

static char *write_bytes(char *to, const char *bytes, Py_ssize_t size)
{
    memcpy(to, bytes, (size_t)size);
    return to + size;
}

/* The document of a plain group, all but its closing brace. */
static PyObject *join(const Entry *group, Py_ssize_t count, const Blocks *held, const Form *form)
{
    /* After a question without fields, nothing is to be parted by a comma. */
    Py_ssize_t skipped = form->opening_size && size_of(group) == EMPTY;
    Py_ssize_t size = size_of(group) - 1 + form->opening_size - skipped + form->with_answers;
    for (Py_ssize_t i = 1; form->with_answers && i < count; i++) {
        size += size_of(&group[i]) + (i > 1);
    }
    PyObject *document = PyBytes_FromStringAndSize(NULL, size);
    if (document == NULL) {
        return NULL;
    }
    char *to = PyBytes_AsString(document);
    for (Py_ssize_t i = 0; i < (form->with_answers ? count : 1); i++) {
        const char *json = json_of(held, &group[i]);
        if (json == NULL) {
            Py_DECREF(document);
            return NULL;
        }
        if (i == 0) {
            to = write_bytes(to, json, size_of(group) - 1);
            to = write_bytes(to, form->opening + skipped, form->opening_size - skipped);
            continue;
        }
        if (i > 1) {
            *to++ = ',';
        }
        to = write_bytes(to, json, size_of(&group[i]));
    }
    if (form->with_answers) {
        *to = ']';
    }
    return document;
}

/* `(question_id, posts, size, document)` of the group that starts at `group`. */
static PyObject *joined(Entry *group, Py_ssize_t count, const Blocks *held, const Form *form)
{
    Entry *copy = malloc((size_t)count * sizeof(Entry));
    PyObject *document = NULL;
    Py_ssize_t size = 0;
    if (copy == NULL) {
        return PyErr_NoMemory();
    }
    memcpy(copy, group, (size_t)count * sizeof(Entry));
    if (is_plain(copy, count, form)) {
        for (Py_ssize_t i = 0; i < (form->with_answers ? count : 1); i++) {
            size += size_of(&copy[i]);
        }
        document = join(copy, count, held, form);
    } else {
        document = Py_NewRef(Py_None);
    }
    free(copy);
    return document == NULL ? NULL
                            : Py_BuildValue("(LnnN)", (long long)group->question_id, count, size,
                                            document);
}

static PyObject *join_groups(Entry *posts, Py_ssize_t count, Py_ssize_t first, Py_ssize_t enough,
                             const Blocks *held, const Form *form)
{
    PyObject *groups = PyList_New(0);
    Py_ssize_t bytes = 0;
    while (groups != NULL && first < count && bytes < enough) {
        Py_ssize_t end = first;
        do {
            bytes += size_of(&posts[end++]);
        } while (end < count && posts[end].question_id == posts[first].question_id);
        PyObject *group = joined(posts + first, end - first, held, form);
        if (group == NULL || PyList_Append(groups, group) < 0) {
            Py_CLEAR(groups);
        }
        Py_XDECREF(group);
        first = end;
    }
    return groups;
}

PyObject *join_posts(PyObject *module, PyObject *args)
{
    PyObject *blocks, *posts, *result = NULL;
    Form form;
    Blocks held;
    Py_ssize_t first, enough;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!nny#pp:join_posts", &PyList_Type, &blocks, &PyByteArray_Type,
                          &posts, &first, &enough, &form.opening, &form.opening_size,
                          &form.with_answers, &form.by_votes)) {
        return NULL;
    }
    Py_ssize_t count = PyByteArray_Size(posts) / (Py_ssize_t)sizeof(Entry);
    if (first < 0 || first > count) {
        return PyErr_Format(PyExc_ValueError, "first is %zd; there are %zd posts", first, count);
    }
    if (hold(&held, blocks) == 0) {
        result = join_groups((Entry *)PyByteArray_AsString(posts), count, first, enough, &held,
                             &form);
        release(&held);
    }
    return result;
}
