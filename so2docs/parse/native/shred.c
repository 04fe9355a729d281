/* Divide the objects in lines of JSON into the columns of a Parquet file, in plain C.

   Each column gets the definition and repetition level of every value, null or empty list, and its
   values in the encoding PLAIN. This is the counterpart of `RowGroup.add` for objects whose
   members fit the types of their columns; the others are left to it with FALLBACK. */

#include "core.h"

/* ---- Missing values ---- */

/* Append a null or an empty list to each column in a tree. */
static Status put_missing(Node *node, int defined, int repetition)
{
    if (node->kind <= LAST_LEAF) {
        char levels[] = {(char)defined, (char)repetition};
        TRY(put(&node->definitions, levels, 1));
        return put(&node->repetitions, levels + 1, 1);
    }
    for (size_t i = 0; i < node->count; i++) {
        TRY(put_missing(&node->children[i], defined, repetition));
    }
    return OK;
}

/* Append zero for each count that an object of counts lacks. */
static Status put_zero(Node *count, int defined, int repetition)
{
    if (count->kind == INTEGER_NODE) {
        TRY(PUT_LITERAL(&count->values, "\0\0\0\0\0\0\0\0"));
        defined += count->is_optional;
    }
    return put_missing(count, defined, repetition);
}

/* Append the value of a member that an object lacks, or that is null. */
static Status put_default(Node *node, int defined, int repetition)
{
    if (node->kind == FULL_LIST_NODE) {
        return put_missing(node, defined + node->is_optional, repetition);
    }
    if (node->kind != COUNTS_NODE) {
        return node->is_optional ? put_missing(node, defined, repetition) : FALLBACK;
    }
    for (size_t i = 0; i < node->count; i++) {
        TRY(put_zero(&node->children[i], defined + node->is_optional, repetition));
    }
    return OK;
}

/* ---- Values ---- */

static Status read_hex(Reader *in, uint32_t *code)
{
    *code = 0;
    if (left(in) < 4) {
        return FALLBACK;
    }
    for (int i = 0; i < 4; i++) {
        Byte digit = *in->at++, letter = (Byte)((digit | 0x20) - 'a');
        if (!is_digit(digit) && letter > 5) {
            return FALLBACK;
        }
        *code = *code << 4 | (is_digit(digit) ? (uint32_t)(digit - '0') : letter + 10u);
    }
    return OK;
}

/* Read the escape sequence after a backslash. */
static Status put_escaped(Reader *in, Buffer *out)
{
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (in->at == in->end) {
        return FALLBACK;
    }
    Byte letter = *in->at++;
    if (letter != 'u') {
        const char *found = letter == 0 ? NULL : strchr(letters, letter);
        return found == NULL ? FALLBACK : put(out, values + (found - letters), 1);
    }
    uint32_t code, low;
    TRY(read_hex(in, &code));
    if (code >= 0xD800 && code < 0xE000) {
        if (code >= 0xDC00 || !SKIP(in, "\\u")) {
            return FALLBACK;
        }
        TRY(read_hex(in, &low));
        if (low < 0xDC00 || low >= 0xE000) {
            return FALLBACK;
        }
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    char bytes[4];
    size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--, code >>= 6) {
        bytes[i] = (char)(0x80 | (code & 0x3F));
    }
    static const Byte first[] = {0, 0, 0xC0, 0xE0, 0xF0};
    bytes[0] = (char)(first[size] | code);
    return put(out, bytes, size);
}

/* Write the size of a text, which is the end of the buffer, into the four bytes before it. */
static Status set_size(Buffer *out, size_t start)
{
    size_t size = out->size - start - 4;
    if (size > INT32_MAX) {
        return FALLBACK;
    }
    for (int i = 0; i < 4; i++) {
        out->bytes[start + (size_t)i] = (char)(Byte)(size >> (8 * i));
    }
    return OK;
}

/* Read a string after its opening quote, preceded in the column by its size. */
static Status put_json_text(Reader *in, Buffer *out)
{
    size_t start = out->size;
    TRY(PUT_LITERAL(out, "\0\0\0\0"));
    for (;;) {
        const Byte *run = in->at;
        while (in->at < in->end && *in->at != '"' && *in->at != '\\' && *in->at >= ' ') {
            in->at++;
        }
        if (in->at > run) {
            TRY(put(out, run, (size_t)(in->at - run)));
        }
        if (SKIP(in, "\"")) {
            break;
        }
        if (!SKIP(in, "\\")) {
            return FALLBACK;
        }
        TRY(put_escaped(in, out));
    }
    return set_size(out, start);
}

/* Read an integer that fits in 64 bits; zero must have no sign. */
static Status put_json_integer(Reader *in, Buffer *out)
{
    int is_negative = SKIP(in, "-");
    const Byte *start = in->at;
    uint64_t number = 0; /* Nineteen digits cannot overflow. */
    while (in->at < in->end && is_digit(*in->at) && in->at - start < 19) {
        number = 10 * number + (uint64_t)(*in->at++ - '0');
    }
    if (in->at == start || in->at == in->end || (is_negative && number == 0) || number > INT64_MAX
        || (*in->at != ',' && *in->at != '}' && *in->at != ']')) {
        return FALLBACK;
    }
    char bytes[8];
    set_integer(bytes, is_negative ? -(int64_t)number : (int64_t)number);
    return put(out, bytes, sizeof bytes);
}

static Status put_json_boolean(Reader *in, Buffer *out)
{
    if (SKIP(in, "true")) {
        return PUT_LITERAL(out, "\1");
    }
    return SKIP(in, "false") ? PUT_LITERAL(out, "\0") : FALLBACK;
}

static Status put_leaf(Reader *in, Node *node, int defined, int repetition)
{
    TRY(put_missing(node, defined, repetition));
    switch (node->kind) {
    case TEXT_NODE:
        return SKIP(in, "\"") ? put_json_text(in, &node->values) : FALLBACK;
    case DATE_NODE:
        return SKIP(in, "\"") ? put_date(in, &node->values) : FALLBACK;
    case INTEGER_NODE:
        return put_json_integer(in, &node->values);
    case BOOLEAN_NODE:
        return put_json_boolean(in, &node->values);
    default:
        return FALLBACK;
    }
}

/* Skip a value that has no column. */
static Status skip_value(Reader *in)
{
    size_t depth = 0;
    for (; in->at < in->end; in->at++) {
        Byte byte = *in->at;
        if (depth == 0 && (byte == ',' || byte == '}')) {
            return OK;
        }
        if (byte == '{' || byte == '[') {
            depth++;
        } else if (byte == '}' || byte == ']') {
            if (depth == 0) {
                return FALLBACK;
            }
            depth--;
        } else if (byte == '"') {
            for (in->at++; in->at < in->end && *in->at != '"'; in->at++) {
                if (*in->at == '\\' && left(in) > 1) {
                    in->at++;
                }
            }
        }
    }
    return FALLBACK;
}

/* ---- Objects and lists ---- */

static Status put_value(Reader *in, Node *node, int defined, int repetition);

/* Find the child with the name that comes next. The search starts at `next`, which is usually
   this child. */
static Node *find_child(const Node *node, const Byte *name, size_t size, size_t next)
{
    for (size_t i = 0; i < node->count; i++, next++) {
        next = next < node->count ? next : 0;
        Node *child = &node->children[next];
        if (child->name_size == size && memcmp(child->name, name, size) == 0) {
            return child;
        }
    }
    return NULL;
}

/* The members of an object read so far. `other` is the column of members without a column, and
   `start` the position of its text. */
typedef struct {
    uint64_t seen;
    size_t next, start;
    Node *other;
} Members;

/* Write a member without a column, if its JSON is in the form that the reference writes. */
static Status put_other(Reader *in, Node *node, Members *members, const Byte *name, size_t size)
{
    if (members->other == NULL) {
        for (size_t i = 0; i < node->count; i++) {
            if (node->children[i].kind == OTHER_NODE) {
                members->other = &node->children[i];
                members->seen |= (uint64_t)1 << i;
            }
        }
        if (members->other == NULL) {
            return FALLBACK;
        }
        members->start = members->other->values.size;
        TRY(PUT_LITERAL(&members->other->values, "\0\0\0\0{\""));
    } else {
        TRY(PUT_LITERAL(&members->other->values, ",\""));
    }
    Buffer *out = &members->other->values;
    TRY(put(out, name, size));
    TRY(PUT_LITERAL(out, "\":"));
    const Byte *start = in->at;
    if (SKIP(in, "\"")) {
        while (in->at < in->end && *in->at != '"' && *in->at != '\\') {
            in->at++;
        }
        return SKIP(in, "\"") ? put(out, start, (size_t)(in->at - start)) : FALLBACK;
    }
    size_t before = out->size;
    TRY(put_json_integer(in, out)); /* Check the number, then write its digits. */
    out->size = before;
    return put(out, start, (size_t)(in->at - start));
}

static Status put_member(Reader *in, Node *node, Members *members, int defined, int repetition)
{
    if (!SKIP(in, "\"")) {
        return FALLBACK;
    }
    const Byte *name = in->at;
    while (in->at < in->end && *in->at != '"' && *in->at != '\\') {
        in->at++;
    }
    size_t size = (size_t)(in->at - name);
    if (!SKIP(in, "\":")) {
        return FALLBACK;
    }
    Node *child = find_child(node, name, size, members->next);
    if (child == NULL) {
        return node->kind == OPEN_OBJECT_NODE ? skip_value(in)
                                              : put_other(in, node, members, name, size);
    }
    size_t place = (size_t)(child - node->children);
    if (members->seen >> place & 1) {
        return FALLBACK;
    }
    members->seen |= (uint64_t)1 << place;
    members->next = place + 1;
    return put_value(in, child, defined, repetition);
}

static Status put_object(Reader *in, Node *node, int defined, int repetition)
{
    Members members = {0};
    if (!SKIP(in, "{")) {
        return FALLBACK;
    }
    if (!SKIP(in, "}")) {
        do {
            TRY(put_member(in, node, &members, defined, repetition));
        } while (SKIP(in, ","));
        if (!SKIP(in, "}")) {
            return FALLBACK;
        }
    }
    if (members.other != NULL) {
        TRY(PUT_LITERAL(&members.other->values, "}"));
        TRY(set_size(&members.other->values, members.start));
        TRY(put_missing(members.other, defined + members.other->is_optional, repetition));
    }
    for (size_t i = 0; i < node->count; i++) {
        if (!(members.seen >> i & 1)) {
            Node *child = &node->children[i];
            TRY(node->kind == COUNTS_NODE ? put_zero(child, defined, repetition)
                                          : put_default(child, defined, repetition));
        }
    }
    return OK;
}

static Status put_list(Reader *in, Node *node, int defined, int repetition)
{
    if (!SKIP(in, "[")) {
        return FALLBACK;
    }
    if (SKIP(in, "]")) {
        return put_missing(node, defined, repetition);
    }
    do {
        TRY(put_value(in, node->children, defined + 1, repetition));
        repetition = node->repeated;
    } while (SKIP(in, ","));
    return SKIP(in, "]") ? OK : FALLBACK;
}

static Status put_value(Reader *in, Node *node, int defined, int repetition)
{
    if (SKIP(in, "null")) {
        return put_default(node, defined, repetition);
    }
    defined += node->is_optional;
    if (node->kind <= LAST_LEAF) {
        return put_leaf(in, node, defined, repetition);
    }
    return node->kind <= LAST_LIST ? put_list(in, node, defined, repetition)
                                   : put_object(in, node, defined, repetition);
}

Status shred_lines(const char *lines, size_t size, Node *root)
{
    Reader in = {(const Byte *)lines, (const Byte *)lines + size};
    while (in.at < in.end) {
        TRY(put_object(&in, root, 0, 0));
        if (!SKIP(&in, "\n")) {
            return FALLBACK;
        }
    }
    return OK;
}

void free_nodes(Node *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free_nodes(nodes[i].children, nodes[i].count);
        free(nodes[i].definitions.bytes);
        free(nodes[i].repetitions.bytes);
        free(nodes[i].values.bytes);
    }
    free(nodes);
}
