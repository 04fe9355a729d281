/* Convert canonical rows of any table to columns in the layout of Arrow, in plain C.

   `canonical.c` defines canonical rows; here, each value must also have the form of its column:

     date    = YYYY-MM-DDThh:mm:ss ("." [0-9]{1,3})?    a date that exists
     boolean = "True" | "False"

   No name is reserved, and only `Id` is required, if it is a column. This is the counterpart of
   `TableColumns.from_rows`, which converts the slices that this file rejects with FALLBACK. */

#include "core.h"

/* ---- Bits and integers ---- */

/* Append a bit to a bitmap of `count` bits. */
static Status put_bit(Buffer *out, size_t count, int bit)
{
    if (count % 8 == 0) {
        TRY(PUT_LITERAL(out, "\0"));
    }
    out->bytes[count / 8] |= (char)(bit << count % 8);
    return OK;
}

static Status put_offset(Buffer *out, size_t offset)
{
    /* This cannot overflow, since a slice has fewer than MOST_SLICE_BYTES bytes. */
    int32_t value = (int32_t)offset;
    return put(out, &value, sizeof value);
}

/* ---- Columns ---- */

static inline int has_text(const Column *column)
{
    return column->kind == TEXT_COLUMN || column->kind == OTHER_COLUMN || column->kind == DATE_COLUMN;
}

/* End the value of a row, or set it to null. */
static Status end_value(Column *column, int is_valid)
{
    TRY(put_bit(&column->valid, column->rows, is_valid));
    column->nulls += !is_valid;
    column->rows++;
    if (has_text(column)) {
        return put_offset(&column->offsets, column->values.size);
    }
    return column->kind == TAGS_COLUMN ? put_offset(&column->lists, column->tags) : OK;
}

/* Fill a column with nulls up to a row. */
static Status pad(Column *column, size_t rows)
{
    while (column->rows < rows) {
        if (column->kind == BOOLEAN_COLUMN) {
            TRY(put_bit(&column->values, column->rows, 0));
        } else if (column->kind == INTEGER_COLUMN) {
            TRY(PUT_LITERAL(&column->values, "\0\0\0\0\0\0\0\0"));
        }
        TRY(end_value(column, 0));
    }
    return OK;
}

/* ---- Values ---- */

/* Read `count` digits. Returns 0 if there are fewer. */
static int read_digits(Reader *in, int count, int *number)
{
    *number = 0;
    for (; count > 0; count--) {
        if (in->at == in->end || !is_digit(*in->at)) {
            return 0;
        }
        *number = 10 * *number + (*in->at++ - '0');
    }
    return 1;
}

static int days_in(int year, int month)
{
    static const signed char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && is_leap);
}

/* Append a date of the form `2008-07-31T21:42:52.667`, and skip its closing quote; zeros replace
   digits that are missing after the seconds. */
static Status put_date(Reader *in, Buffer *out)
{
    enum { WITHOUT_FRACTION = 19, WITH_FRACTION = 23 };
    const Byte *start = in->at;
    int year, month, day, hour, minute, second, digit;
    if (!read_digits(in, 4, &year) || !SKIP(in, "-") || !read_digits(in, 2, &month)
        || !SKIP(in, "-") || !read_digits(in, 2, &day) || !SKIP(in, "T")
        || !read_digits(in, 2, &hour) || !SKIP(in, ":") || !read_digits(in, 2, &minute)
        || !SKIP(in, ":") || !read_digits(in, 2, &second)) {
        return FALLBACK;
    }
    if (SKIP(in, ".")) {
        int digits = 0;
        while (digits < 3 && read_digits(in, 1, &digit)) {
            digits++;
        }
        if (digits == 0) {
            return FALLBACK;
        }
    }
    size_t size = (size_t)(in->at - start);
    if (!SKIP(in, "\"") || year < 1 || month < 1 || month > 12 || day < 1
        || day > days_in(year, month) || hour > 23 || minute > 59 || second > 59) {
        return FALLBACK;
    }
    TRY(put(out, start, size));
    return put(out, &".000"[size - WITHOUT_FRACTION], WITH_FRACTION - size);
}

static Status put_boolean(Reader *in, Column *column)
{
    if (SKIP(in, "True\"")) {
        return put_bit(&column->values, column->rows, 1);
    }
    return SKIP(in, "False\"") ? put_bit(&column->values, column->rows, 0) : FALLBACK;
}

static Status put_tag(Column *column, const char *text, size_t size)
{
    if (size > 0) { /* The buffer is NULL if it is empty. */
        TRY(put(&column->values, text, size));
    }
    column->tags++;
    return put_offset(&column->offsets, column->values.size);
}

/* Split the text of `Tags` as `posts.tags` does. */
static Status put_tag_list(Reader *in, Column *column, Buffer *buffer)
{
    buffer->size = 0;
    TRY(put_utf8(in, buffer));
    const char *text = buffer->bytes, *separator = "";
    size_t size = buffer->size, length = 0;
    if (size == 0) {
        return OK;
    }
    if (size > 1 && text[0] == '|' && text[size - 1] == '|') {
        separator = "|";
        length = 1;
    } else if (size > 1 && text[0] == '<' && text[size - 1] == '>') {
        separator = "><";
        length = 2;
    } else {
        return put_tag(column, text, size);
    }
    const char *start = text + 1, *end = text + size - 1, *at = start;
    while (at < end) {
        if ((size_t)(end - at) >= length && memcmp(at, separator, length) == 0) {
            TRY(put_tag(column, start, (size_t)(at - start)));
            at += length;
            start = at;
        } else {
            at++;
        }
    }
    return put_tag(column, start, (size_t)(end - start));
}

/* Find the column with a name. The search starts at `next`, which is usually this column. */
static inline Column *find_column(const Columns *columns, Name name, size_t next)
{
    size_t known = columns->count - 1;
    for (size_t i = 0; i < known; i++, next++) {
        next = next < known ? next : 0;
        Column *column = &columns->columns[next];
        if (column->name_size == name.size && memcmp(column->name, name.at, name.size) == 0) {
            return column;
        }
    }
    return NULL;
}

/* The names in a row that have no column. */
typedef struct {
    Name names[MOST_ATTRIBUTES];
    size_t count;
} Unknown;

static Status put_unknown(Reader *in, Name name, Unknown *unknown, Buffer *json)
{
    if (unknown->count == MOST_ATTRIBUTES) {
        return FALLBACK;
    }
    for (size_t i = 0; i < unknown->count; i++) {
        const Name *other = &unknown->names[i];
        if (other->size == name.size && memcmp(other->at, name.at, name.size) == 0) {
            return FALLBACK;
        }
    }
    unknown->names[unknown->count++] = name;
    TRY(unknown->count == 1 ? PUT_LITERAL(json, "{\"") : PUT_LITERAL(json, ",\""));
    TRY(put(json, name.at, name.size));
    TRY(PUT_LITERAL(json, "\":"));
    return put_string(in, json);
}

static Status put_in_column(Reader *in, Column *column, Columns *columns)
{
    int64_t number;
    if (column->rows > columns->rows) { /* The row has this name twice. */
        return FALLBACK;
    }
    TRY(pad(column, columns->rows));
    switch (column->kind) {
    case INTEGER_COLUMN:
        TRY(read_number(in, &number));
        TRY(put(&column->values, &number, sizeof number));
        if (column == columns->columns) {
            columns->last_id = number;
        }
        break;
    case DATE_COLUMN:
        TRY(put_date(in, &column->values));
        break;
    case BOOLEAN_COLUMN:
        TRY(put_boolean(in, column));
        break;
    case TAGS_COLUMN:
        TRY(put_tag_list(in, column, &columns->text));
        break;
    default:
        TRY(put_utf8(in, &column->values));
    }
    return end_value(column, 1);
}

/* ---- Rows ---- */

static Status fill_row(Reader *in, Columns *columns)
{
    Unknown unknown;
    unknown.count = 0;
    Column *other = &columns->columns[columns->count - 1];
    size_t next = 0;
    if (!SKIP(in, "<row")) {
        return FALLBACK;
    }
    for (;;) {
        const Byte *before = in->at;
        skip_spaces(in);
        if (SKIP(in, "/>")) {
            break;
        }
        if (in->at == before) {
            return FALLBACK;
        }
        Name name;
        TRY(read_name(in, &name));
        Column *column = find_column(columns, name, next);
        if (column == NULL) {
            TRY(pad(other, columns->rows));
            TRY(put_unknown(in, name, &unknown, &other->values));
            continue;
        }
        TRY(put_in_column(in, column, columns));
        next = (size_t)(column - columns->columns) + 1;
    }
    if (unknown.count > 0) {
        TRY(PUT_LITERAL(&other->values, "}"));
        TRY(end_value(other, 1));
    }
    columns->rows++;
    /* Without an `Id`, the first column, the row is a stray, which the reference handles. */
    return columns->columns[0].rows == columns->rows ? OK : FALLBACK;
}

Status fill_columns(const char *slice, size_t size, Columns *columns)
{
    Reader in = {(const Byte *)slice, (const Byte *)slice + size};
    if (size > MOST_SLICE_BYTES) {
        return FALLBACK;
    }
    for (size_t i = 0; i < columns->count; i++) {
        Column *column = &columns->columns[i];
        if (has_text(column) || column->kind == TAGS_COLUMN) {
            TRY(put_offset(&column->offsets, 0));
        }
        if (column->kind == TAGS_COLUMN) {
            TRY(put_offset(&column->lists, 0));
        }
    }
    skip_spaces(&in);
    while (in.at < in.end) {
        TRY(fill_row(&in, columns));
        skip_spaces(&in);
    }
    for (size_t i = 0; i < columns->count; i++) {
        TRY(pad(&columns->columns[i], columns->rows));
    }
    return OK;
}

void free_columns(Columns *columns)
{
    for (size_t i = 0; i < columns->count; i++) {
        free(columns->columns[i].valid.bytes);
        free(columns->columns[i].values.bytes);
        free(columns->columns[i].offsets.bytes);
        free(columns->columns[i].lists.bytes);
    }
    free(columns->text.bytes);
}
