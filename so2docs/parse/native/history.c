/* Turn rows of a post's history into members of its JSON object: the counterpart of `history.members`.

   A row is a flat object with the attributes of dumps. Values are copied unchanged, and no string is
   decoded, because patterns match only ASCII without a backslash. In all other cases, and for rows in
   an unusual form, the result is FALLBACK, and the reference writes the question. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core.h"

#include <stdio.h>

/* Maximum number of rows of a post. Longer histories are left to the reference, since some steps
   here take quadratic time. */
enum { MOST_EVENTS = 1024 };

/* A range of JSON; `at` is NULL if the value is absent. */
typedef struct {
    const char *at;
    size_t size;
} Text;

/* Fields of an entry, in order, except id, events and user. */
typedef enum {
    GUID,
    DATE,
    USER_ID,
    USER_NAME,
    WORDS,
    OTHER_TEXT,
    TITLE,
    BODY,
    TAG_LIST,
    REASON,
    REASON_ID,
    ORIGINALS,
    PROPOSED_BY,
    APPROVED_BY,
    ROLLBACK_TO,
    URL,
    LICENCE,
    VOTERS,
    FIELDS
} Field;

/* Forms of fields. Inside a JSON string, a backslash precedes each quote of nested JSON. */
typedef enum { AS_IS, IN_QUOTES, AS_TAGS, AS_LIST, UNESCAPED } Form;

static const struct {
    const char *member;
    Form form;
} MEMBERS[FIELDS] = {
    [GUID] = {",\"RevisionGUID\":", AS_IS},
    [DATE] = {",\"CreationDate\":", AS_IS},
    [USER_ID] = {",\"UserId\":", AS_IS},
    [USER_NAME] = {",\"UserDisplayName\":", AS_IS},
    [WORDS] = {",\"Comment\":", AS_IS},
    [OTHER_TEXT] = {",\"Text\":", AS_IS},
    [TITLE] = {",\"Title\":", AS_IS},
    [BODY] = {",\"Body\":", AS_IS},
    [TAG_LIST] = {",\"Tags\":", AS_TAGS},
    [REASON] = {",\"CloseReason\":", AS_IS},
    [REASON_ID] = {",\"CloseReasonId\":", AS_IS},
    [ORIGINALS] = {",\"OriginalQuestionIds\":", AS_IS},
    [PROPOSED_BY] = {",\"ProposedBy\":", AS_IS},
    [APPROVED_BY] = {",\"ApprovedBy\":", AS_LIST},
    [ROLLBACK_TO] = {",\"RollbackTo\":", IN_QUOTES},
    [URL] = {",\"Url\":", IN_QUOTES},
    [LICENCE] = {",\"ContentLicense\":", AS_IS},
    [VOTERS] = {",\"Voters\":", UNESCAPED},
};

/* A row of the table. */
typedef struct {
    int64_t id, type;
    Text time; /* The date, without quotes or braces, for sorting rows. */
    Text guid, date, user_id, user_name, comment, text, licence;
    /* Index of the next row of the same revision, in order of `Id`; -1 for the last row. */
    int next;
} Event;

/* The rows with the same RevisionGUID. */
typedef struct {
    int first, last; /* Indexes of the first and last row, in order of `Id`. */
    const Event *earliest;
    uint64_t types[MOST_EVENT_TYPES / 64]; /* A bit for each type of event. */
} Revision;

/* ---- Rows ---- */

/* Read `literal` if `text` starts with it. */
#define TAKE(text, literal)                                                                   \
    ((text)->size >= sizeof(literal) - 1 && memcmp((text)->at, literal, sizeof(literal) - 1) == 0 \
     && ((text)->at += sizeof(literal) - 1, (text)->size -= sizeof(literal) - 1, 1))

#define IS_NAME(name, literal) \
    ((name).size == sizeof(literal) - 1 && memcmp((name).at, literal, sizeof(literal) - 1) == 0)

static Text take(Text *text, size_t size)
{
    Text taken = {text->at, size};
    text->at += size;
    text->size -= size;
    return taken;
}

static int is_escaped(const char *start, const char *quote)
{
    const char *at = quote;
    while (at > start && at[-1] == '\\') {
        at--;
    }
    return (quote - at) & 1;
}

/* Read a string, including its quotes. */
static Status read_string(Text *in, Text *string)
{
    const char *end = in->at + in->size, *quote = in->at;
    if (in->size == 0 || *quote != '"') {
        return FALLBACK;
    }
    do {
        quote = memchr(quote + 1, '"', (size_t)(end - quote - 1));
        if (quote == NULL) {
            return FALLBACK;
        }
    } while (is_escaped(in->at, quote));
    *string = take(in, (size_t)(quote + 1 - in->at));
    return OK;
}

/* Read a canonical integer at the start of a text. */
static Status read_integer(Text *in, Text *integer)
{
    size_t sign = in->size > 0 && in->at[0] == '-', size = sign;
    while (size < in->size && is_digit((Byte)in->at[size]) && size - sign < 19) {
        size++;
    }
    size_t digits = size - sign;
    if (digits == 0 || digits > 18 || (in->at[sign] == '0' && (digits > 1 || sign))) {
        return FALLBACK;
    }
    *integer = take(in, size);
    return OK;
}

static Text without_quotes(Text string)
{
    return (Text){string.at + 1, string.size - 2};
}

/* Read a date: a string, or the object that MongoDB uses. */
static Status read_date(Text *in, Event *event)
{
    Text start = *in, string;
    int is_object = TAKE(in, "{\"$date\":");
    TRY(read_string(in, &string));
    if ((is_object && !TAKE(in, "}")) || memchr(string.at, '\\', string.size) != NULL) {
        return FALLBACK;
    }
    event->time = without_quotes(string);
    event->date = (Text){start.at, start.size - in->size};
    return OK;
}

static Status read_type(Text *in, Event *event)
{
    Text digits;
    TRY(read_integer(in, &digits));
    if (digits.size > 3 || digits.at[0] == '-') {
        return FALLBACK;
    }
    for (event->type = 0; digits.size > 0; take(&digits, 1)) {
        event->type = event->type * 10 + (digits.at[0] - '0');
    }
    return event->type < MOST_EVENT_TYPES ? OK : FALLBACK;
}

static Status read_attribute(Text *in, Event *event)
{
    Text name, number;
    TRY(read_string(in, &name));
    if (!TAKE(in, ":")) {
        return FALLBACK;
    }
    switch (name.size) {
    case sizeof("\"Id\"") - 1:
        return IS_NAME(name, "\"Id\"") ? read_integer(in, &number) : FALLBACK;
    case sizeof("\"Text\"") - 1:
        return IS_NAME(name, "\"Text\"") ? read_string(in, &event->text) : FALLBACK;
    case sizeof("\"PostId\"") - 1:
        if (IS_NAME(name, "\"PostId\"")) {
            return read_integer(in, &number);
        }
        if (!IS_NAME(name, "\"UserId\"")) {
            return FALLBACK;
        }
        return read_integer(in, &event->user_id);
    case sizeof("\"Comment\"") - 1:
        return IS_NAME(name, "\"Comment\"") ? read_string(in, &event->comment) : FALLBACK;
    case sizeof("\"CreationDate\"") - 1:
        if (IS_NAME(name, "\"CreationDate\"")) {
            return read_date(in, event);
        }
        return IS_NAME(name, "\"RevisionGUID\"") ? read_string(in, &event->guid) : FALLBACK;
    case sizeof("\"ContentLicense\"") - 1:
        return IS_NAME(name, "\"ContentLicense\"") ? read_string(in, &event->licence) : FALLBACK;
    case sizeof("\"UserDisplayName\"") - 1:
        return IS_NAME(name, "\"UserDisplayName\"") ? read_string(in, &event->user_name) : FALLBACK;
    case sizeof("\"PostHistoryTypeId\"") - 1:
        return IS_NAME(name, "\"PostHistoryTypeId\"") ? read_type(in, event) : FALLBACK;
    default:
        return FALLBACK;
    }
}

static Status read_event(const Record *record, const Blocks *held, Event *event)
{
    Text in = {json_of(held, record), (size_t)size_of(record)};
    *event = (Event){.id = record->rank, .type = -1, .next = -1};
    if (!TAKE(&in, "{")) {
        return FALLBACK;
    }
    do {
        TRY(read_attribute(&in, event));
    } while (TAKE(&in, ","));
    int is_whole = event->type >= 0 && event->guid.at != NULL && event->date.at != NULL;
    return is_whole && in.size == 1 && in.at[0] == '}' ? OK : FALLBACK;
}

/* ---- Fields of a row ---- */

static void set_once(Text *fields, Text value)
{
    if (fields->at == NULL) {
        *fields = value;
    }
}

/* Parse the number of a close reason and find its name. Returns 0 for any other comment. */
static int parse_reason(Text comment, const Nest *nest, Text *fields)
{
    Text digits = without_quotes(comment);
    size_t size = digits.size, reason = 0;
    for (size_t i = 0; i < size; i++) {
        if (size > 9 || !is_digit((Byte)digits.at[i])) {
            return 0;
        }
        reason = 10 * reason + (size_t)(digits.at[i] - '0');
    }
    while (digits.size > 1 && digits.at[0] == '0') {
        take(&digits, 1);
    }
    int is_known = reason < MOST_CLOSE_REASONS && nest->reasons[reason].size > 0;
    Text known = is_known ? (Text){nest->reasons[reason].bytes, (size_t)nest->reasons[reason].size}
                          : comment;
    if (size > 0) {
        set_once(&fields[REASON], known);
        set_once(&fields[REASON_ID], digits);
    }
    return size > 0;
}

/* Parse the revision of a rollback. If more text follows, keep the whole comment. */
static int parse_rollback(Text comment, Text *fields)
{
    Text in = without_quotes(comment);
    size_t size = 0;
    if (!TAKE(&in, "Rollback to [")) {
        return 0;
    }
    while (size < in.size
           && (is_digit((Byte)in.at[size]) || in.at[size] == '-'
               || (Byte)((in.at[size] | 0x20) - 'a') < 6)) {
        size++;
    }
    if (size == 0 || in.size == size || in.at[size] != ']') {
        return 0;
    }
    set_once(&fields[ROLLBACK_TO], take(&in, size));
    return in.size == 1;
}

/* Parse the proposer and the approvers of an edit. FALLBACK for the rare forms with an anonymous
   proposer or without an approver. */
static Status parse_proposed(Text comment, Text *fields)
{
    Text in = without_quotes(comment), proposed, number;
    if (!TAKE(&in, "Proposed by ")) {
        set_once(&fields[WORDS], comment);
        return OK;
    }
    TRY(read_integer(&in, &proposed));
    if (!TAKE(&in, " approved by ")) {
        return FALLBACK;
    }
    Text approved = {in.at, 0};
    do {
        TRY(read_integer(&in, &number));
        approved.size = (size_t)(in.at - approved.at);
    } while (TAKE(&in, ", "));
    if (!TAKE(&in, " edit id of ") || in.size == 0) {
        return FALLBACK;
    }
    for (; in.size > 0; take(&in, 1)) {
        if (!is_digit((Byte)in.at[0])) {
            return FALLBACK;
        }
    }
    set_once(&fields[PROPOSED_BY], proposed);
    set_once(&fields[APPROVED_BY], approved);
    return OK;
}

/* Parse a comment that is a URL, after an optional `from` or `to`. FALLBACK unless the URL is
   ASCII. */
static Status parse_url(Text comment, Text *fields)
{
    Text in = without_quotes(comment), url;
    if (!TAKE(&in, "from ")) {
        (void)TAKE(&in, "to ");
    }
    url = in;
    int is_url = (TAKE(&in, "http://") || TAKE(&in, "https://")) && in.size > 0
                 && memchr(in.at, ' ', in.size) == NULL;
    for (size_t i = 0; is_url && i < in.size; i++) {
        if (in.at[i] == '\\' || (Byte)in.at[i] >= 0x80) {
            return FALLBACK;
        }
    }
    set_once(&fields[is_url ? URL : WORDS], is_url ? url : comment);
    return OK;
}

static Status parse_comment(const Event *event, const Nest *nest, Text *fields)
{
    switch (event->type) {
    case 10:
        if (parse_reason(event->comment, nest, fields)) {
            return OK;
        }
        break;
    case 7:
    case 8:
    case 9:
        if (parse_rollback(event->comment, fields)) {
            return OK;
        }
        break;
    case 24:
        return parse_proposed(event->comment, fields);
    case 25:
    case 35:
    case 36:
    case 37:
    case 38:
        return parse_url(event->comment, fields);
    }
    set_once(&fields[WORDS], event->comment);
    return OK;
}

/* ---- JSON in a JSON string: a backslash before each quote, and no other backslash ---- */

/* Skip a string. */
static Status skip_inner_string(Text *in)
{
    if (!TAKE(in, "\\\"")) {
        return FALLBACK;
    }
    const char *end = memchr(in->at, '\\', in->size);
    if (end == NULL) {
        return FALLBACK;
    }
    take(in, (size_t)(end - in->at));
    return TAKE(in, "\\\"") ? OK : FALLBACK;
}

/* Skip a voter: `Id`, `DisplayName` and `BindingReason`, which has one member. */
static Status skip_voter(Text *in)
{
    int has = 0, is_new;
    Text id;
    if (!TAKE(in, "{")) {
        return FALLBACK;
    }
    do {
        int before = has;
        if (TAKE(in, "\\\"Id\\\":")) {
            has |= 1;
            TRY(read_integer(in, &id));
        } else if (TAKE(in, "\\\"DisplayName\\\":")) {
            has |= 2;
            TRY(skip_inner_string(in));
        } else if (TAKE(in, "\\\"BindingReason\\\":{")) {
            has |= 4;
            TRY(skip_inner_string(in));
            if (!TAKE(in, ":")) {
                return FALLBACK;
            }
            TRY(skip_inner_string(in));
            if (!TAKE(in, "}")) {
                return FALLBACK;
            }
        }
        is_new = has != before;
    } while (is_new && TAKE(in, ","));
    return is_new && TAKE(in, "}") ? OK : FALLBACK;
}

static Status skip_id(Text *in)
{
    Text id;
    return read_integer(in, &id);
}

/* Read a list that is not empty. */
static Status read_list(Text *in, Status (*skip)(Text *in), Text *list)
{
    list->at = in->at;
    if (!TAKE(in, "[")) {
        return FALLBACK;
    }
    do {
        TRY(skip(in));
    } while (TAKE(in, ","));
    if (!TAKE(in, "]")) {
        return FALLBACK;
    }
    list->size = (size_t)(in->at - list->at);
    return OK;
}

/* Parse voters and original questions, or keep the text if it is not an object. */
static Status parse_voters(Text text, Text *fields)
{
    Text in = without_quotes(text), voters = {NULL, 0}, questions = {NULL, 0};
    if (in.size > 0 && (in.at[0] == ' ' || in.at[0] == '\\')) {
        return FALLBACK;
    }
    if (!TAKE(&in, "{")) {
        set_once(&fields[OTHER_TEXT], text);
        return OK;
    }
    do {
        if (voters.at == NULL && TAKE(&in, "\\\"Voters\\\":")) {
            TRY(read_list(&in, skip_voter, &voters));
        } else if (questions.at == NULL && TAKE(&in, "\\\"OriginalQuestionIds\\\":")) {
            TRY(read_list(&in, skip_id, &questions));
        } else {
            return FALLBACK;
        }
    } while (TAKE(&in, ","));
    if (!IS_NAME(in, "}")) {
        return FALLBACK;
    }
    if (voters.at != NULL) {
        set_once(&fields[VOTERS], voters);
    }
    if (questions.at != NULL) {
        set_once(&fields[ORIGINALS], questions);
    }
    return OK;
}

/* ---- Entries ---- */

static int is_content(int64_t type)
{
    return type >= 1 && type <= 9;
}

/* Add the fields of a row. Unless noted, fields of rows with lower ids take precedence. */
static Status parse_event(const Event *event, const Nest *nest, Text *fields)
{
    static const Field TEXTS[] = {TAG_LIST, TITLE, BODY};
    if (event->comment.at != NULL) {
        TRY(parse_comment(event, nest, fields));
    }
    if (event->text.at != NULL && is_content(event->type)) {
        /* Here, the row with the highest id takes precedence. */
        fields[TEXTS[event->type % 3]] = event->text;
    } else if (event->text.at != NULL) {
        TRY(parse_voters(event->text, fields));
    }
    set_once(&fields[GUID], event->guid);
    set_once(&fields[USER_ID], event->user_id);
    set_once(&fields[USER_NAME], event->user_name);
    set_once(&fields[LICENCE], event->licence);
    return OK;
}

static Status put_text_of(Text text, Buffer *out)
{
    return put(out, text.at, text.size);
}

/* Write text without the occurrences of a character. */
static Status put_without(Text text, char left_out, Buffer *out)
{
    while (text.size > 0) {
        const char *end = memchr(text.at, left_out, text.size);
        size_t size = end == NULL ? text.size : (size_t)(end - text.at);
        TRY(put_text_of(take(&text, size), out));
        take(&text, text.size > 0);
    }
    return OK;
}

static Status put_value(Text value, Form form, Buffer *out)
{
    switch (form) {
    case IN_QUOTES:
        TRY(PUT_LITERAL(out, "\""));
        TRY(put_text_of(value, out));
        return PUT_LITERAL(out, "\"");
    case AS_TAGS:
        value = without_quotes(value);
        return put_split_tags(out, value.at, value.size);
    case AS_LIST:
        TRY(PUT_LITERAL(out, "["));
        TRY(put_without(value, ' ', out));
        return PUT_LITERAL(out, "]");
    case UNESCAPED:
        return put_without(value, '\\', out);
    default:
        return put_text_of(value, out);
    }
}

static Status put_decimal(int64_t number, Buffer *out)
{
    char digits[24];
    return put(out, digits, (size_t)snprintf(digits, sizeof digits, "%lld", (long long)number));
}

static Status put_user_of(Text user_id, const Nest *nest, Buffer *out)
{
    if (nest->users == Py_None || user_id.at == NULL) {
        return OK;
    }
    /* Include the byte after the value, which every row has. */
    return put_user(user_id.at, user_id.at + user_id.size + 1, nest, ",\"User\":", out);
}

/* Write the entry of a revision, and return its fields. */
static Status put_entry(const Revision *revision, const Event *events, const Nest *nest,
                        Buffer *out, Text *fields)
{
    memset(fields, 0, FIELDS * sizeof(Text));
    fields[DATE] = revision->earliest->date;
    for (int i = revision->first; i >= 0; i = events[i].next) {
        TRY(parse_event(&events[i], nest, fields));
    }
    TRY(PUT_LITERAL(out, "{\"Id\":"));
    TRY(put_decimal(events[revision->first].id, out));
    for (int i = 0; i < FIELDS; i++) {
        if (i == WORDS) {
            TRY(PUT_LITERAL(out, ",\"Events\":["));
            int is_first = 1;
            for (int type = 0; type < MOST_EVENT_TYPES; type++) {
                if (revision->types[type / 64] >> type % 64 & 1) {
                    TRY(put(out, ",", !is_first));
                    TRY(put(out, nest->events[type].bytes, (size_t)nest->events[type].size));
                    is_first = 0;
                }
            }
            TRY(PUT_LITERAL(out, "]"));
        }
        if (fields[i].at != NULL) {
            TRY(put(out, MEMBERS[i].member, strlen(MEMBERS[i].member)));
            TRY(put_value(fields[i], MEMBERS[i].form, out));
        }
    }
    TRY(put_user_of(fields[USER_ID], nest, out));
    return PUT_LITERAL(out, "}");
}

/* ---- Members ---- */

/* Compare by date, then by `Id`. */
static int is_before(const Event *one, Text other_time, int64_t other_id)
{
    size_t size = one->time.size < other_time.size ? one->time.size : other_time.size;
    int order = memcmp(one->time.at, other_time.at, size);
    if (order == 0 && one->time.size != other_time.size) {
        return one->time.size < other_time.size;
    }
    return order < 0 || (order == 0 && one->id < other_id);
}

/* Sort rows by time. Insertion sort is fast here, because the rows are already sorted by `Id`,
   which gives nearly the same order. */
static void sort_events(const Event *events, int count, const Event **by_time)
{
    for (int i = 0; i < count; i++) {
        int at = i;
        for (; at > 0 && is_before(&events[i], by_time[at - 1]->time, by_time[at - 1]->id); at--) {
            by_time[at] = by_time[at - 1];
        }
        by_time[at] = &events[i];
    }
}

static Revision *find_revision(Revision *revisions, int count, Text guid)
{
    for (Revision *revision = revisions + count - 1; revision >= revisions; revision--) {
        Text other = revision->earliest->guid;
        if (other.size == guid.size && memcmp(other.at, guid.at, guid.size) == 0) {
            return revision;
        }
    }
    return NULL;
}

/* Group rows by revision, and sort the revisions by time. Returns their number. */
static int group_events(Event *events, int count, const Event *const *by_time, Revision *revisions)
{
    int groups = 0;
    for (int i = 0; i < count; i++) {
        if (find_revision(revisions, groups, by_time[i]->guid) == NULL) {
            revisions[groups++] = (Revision){-1, -1, by_time[i], {0}};
        }
    }
    for (int i = 0; i < count; i++) {
        Revision *revision = find_revision(revisions, groups, events[i].guid);
        if (revision->first < 0) {
            revision->first = i;
        } else {
            events[revision->last].next = i;
        }
        revision->last = i;
        revision->types[events[i].type / 64] |= (uint64_t)1 << events[i].type % 64;
    }
    for (int i = 1; i < groups; i++) {
        Revision moved = revisions[i];
        int at = i;
        Event last = {.time = moved.earliest->time, .id = events[moved.first].id};
        for (; at > 0 && is_before(&last, revisions[at - 1].earliest->time,
                                   events[revisions[at - 1].first].id);
             at--) {
            revisions[at] = revisions[at - 1];
        }
        revisions[at] = moved;
    }
    return groups;
}

/* Write `Closed`, if the post is closed. */
static Status put_closed(const Event *const *by_time, int count, const Nest *nest, Buffer *out)
{
    int at = count - 1;
    Text fields[FIELDS] = {{NULL, 0}};
    while (at >= 0 && by_time[at]->type != 10 && by_time[at]->type != 11) {
        at--;
    }
    if (at < 0 || by_time[at]->type == 11) {
        return OK;
    }
    TRY(parse_event(by_time[at], nest, fields));
    TRY(PUT_LITERAL(out, ",\"Closed\":{"));
    if (fields[REASON].at != NULL) {
        TRY(PUT_LITERAL(out, "\"Reason\":"));
        TRY(put_text_of(fields[REASON], out));
        TRY(PUT_LITERAL(out, ","));
    }
    TRY(PUT_LITERAL(out, "\"Date\":"));
    TRY(put_text_of(by_time[at]->date, out));
    if (fields[ORIGINALS].at != NULL) {
        TRY(PUT_LITERAL(out, ",\"OriginalQuestionIds\":"));
        TRY(put_text_of(fields[ORIGINALS], out));
    }
    return PUT_LITERAL(out, "}");
}

/* An editor, identified by id, or by name if there is no id. */
typedef struct {
    Text user_id, user_name;
} Editor;

static int is_same(const Editor *one, const Editor *other)
{
    Text a = one->user_id.at ? one->user_id : one->user_name;
    Text b = other->user_id.at ? other->user_id : other->user_name;
    return a.size == b.size && memcmp(a.at, b.at, a.size) == 0;
}

/* Add the editor of an entry, unless the list already has this editor. Returns the number of
   editors. */
static int add_editor(Editor *editors, int count, const Text *fields)
{
    Editor editor = {fields[USER_ID], fields[USER_NAME]};
    if (editor.user_id.at == NULL && editor.user_name.at == NULL) {
        return count;
    }
    for (int i = 0; i < count; i++) {
        if (is_same(&editors[i], &editor)) {
            return count;
        }
    }
    editors[count] = editor;
    return count + 1;
}

static Status put_editors(const Editor *editors, int count, const Nest *nest, Buffer *out)
{
    TRY(PUT_LITERAL(out, ",\"Editors\":["));
    for (const Editor *editor = editors; editor < editors + count; editor++) {
        TRY(put(out, ",", editor > editors));
        size_t start = out->size;
        if (editor->user_id.at != NULL) {
            TRY(PUT_LITERAL(out, ",\"UserId\":"));
            TRY(put_text_of(editor->user_id, out));
        }
        if (editor->user_name.at != NULL) {
            TRY(PUT_LITERAL(out, ",\"UserDisplayName\":"));
            TRY(put_text_of(editor->user_name, out));
        }
        TRY(put_user_of(editor->user_id, nest, out));
        TRY(PUT_LITERAL(out, "}"));
        out->bytes[start] = '{';
    }
    return PUT_LITERAL(out, "]");
}

/* Write the newest body in Markdown, if there is one. */
static Status put_newest_body(const Event *const *by_time, int count, Buffer *out)
{
    while (--count >= 0) {
        const Event *event = by_time[count];
        if (is_content(event->type) && event->type % 3 == 2 && event->text.at != NULL) {
            TRY(PUT_LITERAL(out, ",\"BodyMarkdown\":"));
            return put_text_of(event->text, out);
        }
    }
    return OK;
}

/* Buffers for the rows of a post. */
typedef struct {
    Event *events;
    const Event **by_time;
    Revision *revisions;
    Editor *editors;
} Work;

static Status put_members(int kind, const Work *work, int count, const Nest *nest, Buffer *out)
{
    /* Sets of event types: 1 to 9 (content), and 4 to 9 (edits). */
    static const uint64_t CONTENT = 0x3FE, EDITS = 0x3F0;
    sort_events(work->events, count, work->by_time);
    int revisions = group_events(work->events, count, work->by_time, work->revisions);
    int contents = 0, editors = 0;
    TRY(PUT_LITERAL(out, "\"History\":["));
    for (int i = 0; i < revisions; i++) {
        Text fields[FIELDS];
        TRY(put(out, ",", i > 0));
        TRY(put_entry(&work->revisions[i], work->events, nest, out, fields));
        contents += (work->revisions[i].types[0] & CONTENT) != 0;
        if (work->revisions[i].types[0] & EDITS) {
            editors = add_editor(work->editors, editors, fields);
        }
    }
    TRY(PUT_LITERAL(out, "]"));
    TRY(put_closed(work->by_time, count, nest, out));
    if (kind != CLOSINGS) {
        TRY(PUT_LITERAL(out, ",\"Revisions\":"));
        TRY(put_decimal(contents, out));
        TRY(put_editors(work->editors, editors, nest, out));
    }
    return kind == HISTORY_TEXT ? put_newest_body(work->by_time, count, out) : OK;
}

Status put_history(int kind, const Record *row, const Record *end, const Blocks *held,
                   const Nest *nest, Buffer *out)
{
    int count = (int)(end - row);
    Status status = OK;
    if (end - row > MOST_EVENTS) {
        return FALLBACK;
    }
    size_t each = sizeof(Event) + sizeof(Event *) + sizeof(Revision) + sizeof(Editor);
    char *memory = malloc((size_t)count * each);
    if (memory == NULL) {
        return NO_MEMORY;
    }
    Work work;
    work.events = (Event *)(void *)memory;
    work.revisions = (Revision *)(void *)(work.events + count);
    work.editors = (Editor *)(void *)(work.revisions + count);
    work.by_time = (const Event **)(void *)(work.editors + count);
    for (int i = 0; i < count && status == OK; i++) {
        int is_repeated = i > 0 && row[i].rank == row[i - 1].rank;
        status = is_repeated ? FALLBACK : read_event(row + i, held, &work.events[i]);
    }
    if (status == OK) {
        status = put_members(kind, &work, count, nest, out);
    }
    free(memory);
    return status;
}
