/* Join the records of a bucket into documents: `join_records`, the fast path of
   `merge.DocumentBuilder`.

   It joins a question, answers with distinct ids, and rows of tables for these posts. Any other group
   is returned without a document, and the reference joins that group. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core.h"

/* A post, and the number of rows of tables that follow it. */
typedef struct {
    const Record *record;
    Py_ssize_t rows;
} Post;

/* The form of documents. */
typedef struct {
    const char *opening; /* Bytes between the question's fields and its answers. */
    Py_ssize_t opening_size;
    const char *closing; /* Bytes after each document of a run; empty if there are no runs. */
    Py_ssize_t closing_size;
    int with_answers, by_votes;
    Nest nest;
} Form;

/* The result for a group: a document, a run of documents, or nothing if the reference must join it. */
typedef struct {
    int64_t question_id; /* Id of the first document. */
    Py_ssize_t records, documents, posts, size;
    int64_t counts[KINDS]; /* Numbers of rows and of votes, by kind. */
} Joined;

static int by_votes(const void *a, const void *b)
{
    const Record *one = ((const Post *)a)->record, *other = ((const Post *)b)->record;
    int order = compare(other->rank, one->rank);
    return order ? order : compare(one->post_id, other->post_id);
}

static void move_to_front(Post *posts, Py_ssize_t count)
{
    Post first = posts[count];
    memmove(posts + 1, posts, (size_t)count * sizeof(Post));
    posts[0] = first;
}

/* Whether a row belongs to the last post before it. */
static int is_nested(const Record *row, const Post *post, const Nest *nest)
{
    return post->record != NULL && row->post_id == post->record->post_id
        && (nest->tables >> kind_of(row) & 1) && (kind_of(row) == VOTE || size_of(row) >= EMPTY);
}

/* Find the posts of a group: the question, then its answers in order of id. Returns their
   number; 0 if the group has any other record. */
static Py_ssize_t find_posts(const Record *group, Py_ssize_t count, const Form *form, Post *posts)
{
    Py_ssize_t question = -1, found = 0;
    Post last = {NULL, 0};
    for (const Record *at = group; at < group + count; at++) {
        if (kind_of(at) >= COMMENT) {
            if (!is_nested(at, &last, &form->nest)) {
                return 0;
            }
            posts[found - 1].rows++;
            continue;
        }
        if ((kind_of(at) != QUESTION && kind_of(at) != ANSWER) || size_of(at) < EMPTY
            || (last.record != NULL && at->post_id == last.record->post_id)
            || (kind_of(at) == QUESTION && question >= 0)) {
            return 0;
        }
        question = kind_of(at) == QUESTION ? found : question;
        last.record = at;
        posts[found++] = last;
    }
    if (question < 0) {
        return 0;
    }
    move_to_front(posts, question);
    return found;
}

/* Sort answers by votes, the accepted one first. */
static void order_by_votes(Post *posts, Py_ssize_t count)
{
    qsort(posts + 1, (size_t)count - 1, sizeof(Post), by_votes);
    for (Py_ssize_t i = 2; i < count; i++) {
        if (posts[i].record->post_id == posts[0].record->rank) {
            move_to_front(posts + 1, i - 1);
            break;
        }
    }
}

/* Write a document without its closing brace, and add the bytes of its posts to `size`. */
static Status put_document(const Post *posts, Py_ssize_t count, const Blocks *held,
                            const Form *form, Buffer *out, Py_ssize_t *size, int64_t *counts)
{
    size_t start = out->size;
    TRY(put_post(posts[0].record, posts[0].rows, held, &form->nest, out, counts));
    *size += (Py_ssize_t)(out->size - start);
    /* Skip the comma if the question has no fields. */
    Py_ssize_t skipped = form->opening_size && out->size - start == EMPTY;
    out->size--;
    TRY(put(out, form->opening + skipped, (size_t)(form->opening_size - skipped)));
    for (Py_ssize_t i = 1; form->with_answers && i < count; i++) {
        TRY(put(out, ",", i > 1));
        size_t before = out->size;
        TRY(put_post(posts[i].record, posts[i].rows, held, &form->nest, out, counts));
        *size += (Py_ssize_t)(out->size - before);
    }
    return put(out, "]", form->with_answers != 0);
}

/* Whether the JSON of a group lies inside the blocks. */
static int are_held(const Blocks *held, const Record *group, Py_ssize_t count)
{
    for (; count > 0; count--, group++) {
        if (kind_of(group) != VOTE && json_of(held, group) == NULL) {
            return 0;
        }
    }
    return 1;
}

/* Write the document of a group. FALLBACK, with nothing changed, if the reference must join it.
   Sets an error if memory is exhausted or a record is not in these blocks. */
static Status join_group(const Record *group, Py_ssize_t count, const Blocks *held,
                          const Form *form, Buffer *out, Joined *run)
{
    Joined more = *run;
    size_t before = out->size;
    Post *posts = malloc((size_t)count * sizeof(Post));
    if (posts == NULL) {
        PyErr_NoMemory();
        return NO_MEMORY;
    }
    Py_ssize_t found = find_posts(group, count, form, posts);
    Status status = found ? OK : FALLBACK;
    if (found && !are_held(held, group, count)) {
        free(posts);
        return NO_MEMORY;
    }
    if (found) {
        if (form->by_votes) {
            order_by_votes(posts, found);
        }
        status = put_document(posts, found, held, form, out, &more.size, more.counts);
    }
    free(posts);
    if (status == OK) {
        status = put(out, form->closing, (size_t)form->closing_size);
    }
    if (status == OK) {
        more.question_id = run->documents ? run->question_id : group->question_id;
        more.records += count;
        more.posts += found;
        more.documents++;
        *run = more;
    } else {
        out->size = before;
    }
    if (status == NO_MEMORY) {
        PyErr_NoMemory();
    }
    return status;
}

/* Append the result of a group to the list, and reset it. */
static int end_run(PyObject *groups, Joined *run, Buffer *out)
{
    PyObject *document = run->documents == 0
        ? Py_NewRef(Py_None)
        : PyBytes_FromStringAndSize(out->bytes, (Py_ssize_t)out->size);
    PyObject *group = document == NULL
        ? NULL
        : Py_BuildValue("(LnnnNy#n)", (long long)run->question_id, run->records, run->posts,
                        run->size, document, (char *)run->counts, (Py_ssize_t)sizeof run->counts,
                        run->documents);
    int failed = group == NULL || PyList_Append(groups, group) < 0;
    Py_XDECREF(group);
    *run = (Joined){0};
    out->size = 0;
    return failed;
}

static PyObject *join_groups(const Record *records, Py_ssize_t count, Py_ssize_t first,
                             Py_ssize_t enough, const Blocks *held, const Form *form)
{
    PyObject *groups = PyList_New(0);
    Py_ssize_t bytes = 0;
    Buffer out = {0};
    Joined run = {0};
    int failed = groups == NULL, is_run = form->closing_size > 0;
    while (!failed && first < count && bytes < enough) {
        Py_ssize_t end = first, read = 0;
        do {
            read += size_of(&records[end++]);
        } while (end < count && records[end].question_id == records[first].question_id);
        Status status = join_group(records + first, end - first, held, form, &out, &run);
        bytes = is_run ? run.size : bytes + read + (Py_ssize_t)out.size;
        failed = status == NO_MEMORY;
        if (!failed && run.documents && (status == FALLBACK || !is_run)) {
            failed = end_run(groups, &run, &out);
        }
        if (!failed && status == FALLBACK) {
            run = (Joined){records[first].question_id, end - first, 0, 0, 0, {0}};
            failed = end_run(groups, &run, &out);
            /* Stop after a run: only the caller knows how many bytes the next run still needs. */
            bytes = is_run ? enough : bytes;
        }
        first = end;
    }
    if (!failed && run.documents) {
        failed = end_run(groups, &run, &out);
    }
    if (failed) {
        Py_CLEAR(groups);
    }
    free(out.bytes);
    return groups;
}

/* Whether the buffers contain 64-bit integers, and there are as many users as ids. */
static int is_sound(const Form *form)
{
    Py_ssize_t ids = form->nest.user_ids.len;
    int is_list = PyList_Check(form->nest.users);
    if (ids % 8 || (!is_list && form->nest.users != Py_None)
        || (is_list ? PyList_Size(form->nest.users) : 0) != ids / 8) {
        PyErr_SetString(PyExc_ValueError, "ids and users do not match");
        return 0;
    }
    return 1;
}

/* Read the bytes of a tuple of `count` objects. */
static int get_pieces(PyObject *tuple, Py_ssize_t count, Piece *pieces)
{
    if (PyTuple_Size(tuple) != count) {
        PyErr_Format(PyExc_ValueError, "there must be %zd names", count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(tuple, i), &pieces[i].bytes, &pieces[i].size)
            < 0) {
            return -1;
        }
    }
    return 0;
}

PyObject *join_records(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"blocks", "records", "first", "enough", "opening", "closing",
                            "with_answers", "by_votes", "tables", "naming", "made", "members",
                            "vote_names", "user_ids", "users", NULL};
    PyObject *blocks, *records, *members, *votes, *result = NULL;
    Form form = {0};
    Blocks held;
    Py_ssize_t first, enough;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O!O!nn$y#y#ppiiiO!O!y*O:join_records", names, &PyList_Type, &blocks,
            &PyByteArray_Type, &records, &first, &enough, &form.opening, &form.opening_size,
            &form.closing, &form.closing_size, &form.with_answers, &form.by_votes,
            &form.nest.tables, &form.nest.naming, &form.nest.made, &PyTuple_Type, &members,
            &PyTuple_Type, &votes, &form.nest.user_ids, &form.nest.users)) {
        return NULL;
    }
    Py_ssize_t count = PyByteArray_Size(records) / (Py_ssize_t)sizeof(Record);
    if (first < 0 || first > count) {
        PyErr_Format(PyExc_ValueError, "first is %zd; there are %zd records", first, count);
    } else if (is_sound(&form) && get_pieces(members, KINDS, form.nest.members) == 0
               && get_pieces(votes, MOST_VOTE_TYPES, form.nest.votes) == 0
               && hold(&held, blocks) == 0) {
        result = join_groups((const Record *)PyByteArray_AsString(records), count, first, enough,
                             &held, &form);
        release(&held);
    }
    PyBuffer_Release(&form.nest.user_ids);
    return result;
}
