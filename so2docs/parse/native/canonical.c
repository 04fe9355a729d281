/* Convert canonical rows of a dump to keys and JSON objects, in plain C.

   This is the counterpart of `rows.parse` and `posts.add` for rows in the form of published dumps:

     slice     = space* row*
     row       = "<row" (space+ attribute)* space* "/>" space*
     attribute = name '="' value '"'
     name      = [A-Za-z_] [A-Za-z0-9_.-]*
     value     = (character | reference)*
     character = a Char of XML 1.0 in UTF-8, but none of < & "
     reference = "&lt;" | "&gt;" | "&amp;" | "&quot;" | "&apos;"
               | "&#" [0-9]{1,7} ";" | "&#x" [0-9A-Fa-f]{1,7} ";"        that give a Char
     number    = "-"? ("0" | [1-9] [0-9]{0,17})                          but not "-0"
     space     = TAB | LF | CR | " "

   No name occurs twice in a row, starts with "xml" (in any case) or is reserved; the values of
   `schema.NUMBERS` are numbers; every row has an `Id` and a `PostTypeId`, and every answer has a
   `ParentId`. A row has at most MOST_ATTRIBUTES attributes, and a slice has at most MOST_OTHER_TYPES
   types of posts other than questions and answers. The other tables have their own numeric
   attributes and reserved names: every row has an `Id`, every row except users has a `PostId`, votes
   have a `VoteTypeId` of 32 bits, and rows of the history have a `PostHistoryTypeId`.

   The result for any other slice, well-formed or not, is FALLBACK, and the caller parses the whole
   slice with lxml. Tests compare both cores on the same bytes. */

#include "core.h"

#include <stdio.h>

/* Meaning of an attribute, by its name. A row keeps the numbers of the meanings listed before
   OTHER_NUMBER. */
typedef enum {
    ID,
    POST_TYPE_ID,
    PARENT_ID,
    ACCEPTED_ANSWER_ID,
    SCORE,
    POST_ID,
    LINK_TYPE_ID,
    VOTE_TYPE_ID,
    EVENT_TYPE_ID,
    OTHER_NUMBER,
    TAGS,
    RESERVED,
    LEFT_OUT,
    BOUNTY_AMOUNT,
    TEXT
} Meaning;

/* The current row. */
typedef struct {
    Name names[MOST_ATTRIBUTES];
    size_t count, kept; /* Number of names, and how many of them are in the JSON. */
    /* A bit for each hash of a name, which rules out repeated names in most rows. */
    uint64_t hashes;
    int64_t numbers[OTHER_NUMBER + 1];
    unsigned has; /* A bit for each Meaning that occurs in the row. */
    char day[DAY_BYTES + 1]; /* Day of the creation; empty if unknown. */
} Row;

/* ---- Attributes ---- */

#define IS(name, literal) (memcmp((name).at, literal, sizeof(literal) - 1) == 0)

/* `schema.NUMBERS` and `Tags`, grouped by size, so that one or two comparisons suffice. */
static inline Meaning meaning_in_posts(Name name)
{
    switch (name.size) {
    case 2:
        return IS(name, "Id") ? ID : TEXT;
    case 4:
        return IS(name, "Tags") ? TAGS : TEXT;
    case 5:
        return IS(name, "Score") ? SCORE : TEXT;
    case 8:
        return IS(name, "ParentId") ? PARENT_ID : TEXT;
    case 9:
        return IS(name, "ViewCount") ? OTHER_NUMBER : TEXT;
    case 10:
        return IS(name, "PostTypeId") ? POST_TYPE_ID : TEXT;
    case 11:
        return IS(name, "OwnerUserId") || IS(name, "AnswerCount") ? OTHER_NUMBER : TEXT;
    case 12:
        return IS(name, "CommentCount") ? OTHER_NUMBER : TEXT;
    case 13:
        return IS(name, "FavoriteCount") ? OTHER_NUMBER : TEXT;
    case 16:
        if (IS(name, "AcceptedAnswerId")) {
            return ACCEPTED_ANSWER_ID;
        }
        return IS(name, "LastEditorUserId") ? OTHER_NUMBER : TEXT;
    default:
        return TEXT;
    }
}

#define IS_ALL(name, literal) ((name).size == sizeof(literal) - 1 && IS(name, literal))

/* `numbers` and `reserved` for the other tables in `schema.TABLES`, and the attributes of users. */
static inline Meaning meaning_in_table(Name name, Kind table)
{
    if (IS_ALL(name, "Id")) {
        return ID;
    }
    if (table == USERS) {
        if (IS_ALL(name, "Reputation")) {
            return OTHER_NUMBER;
        }
        return IS_ALL(name, "DisplayName") || IS_ALL(name, "CreationDate") ? TEXT : LEFT_OUT;
    }
    if (IS_ALL(name, "PostId")) {
        return POST_ID;
    }
    if (table == VOTE) {
        return IS_ALL(name, "VoteTypeId")     ? VOTE_TYPE_ID
               : IS_ALL(name, "BountyAmount") ? BOUNTY_AMOUNT
                                              : LEFT_OUT;
    }
    if (table == LINK) {
        if (IS_ALL(name, "LinkTypeId")) {
            return LINK_TYPE_ID;
        }
        return IS_ALL(name, "RelatedPostId") ? OTHER_NUMBER
               : IS_ALL(name, "LinkType")    ? RESERVED
                                             : TEXT;
    }
    if (table >= CLOSINGS && IS_ALL(name, "PostHistoryTypeId")) {
        return EVENT_TYPE_ID;
    }
    if ((table == COMMENT && IS_ALL(name, "Score")) || IS_ALL(name, "UserId")) {
        return OTHER_NUMBER;
    }
    return IS_ALL(name, "User") ? RESERVED : TEXT;
}

/* `schema.CONTENT`: types of events that hold a text of the post. */
static inline int is_content(int64_t type)
{
    return type >= 1 && type <= 9;
}

/* `schema.STATES`: types of events that change the state of a post. */
static inline int is_of_state(int64_t type)
{
    return (type >= 10 && type <= 22) || (type >= 33 && type <= 38);
}

/* Meaning of the text of an event if texts of posts are not nested. RESERVED, for FALLBACK, unless
   the type precedes the text in the row. */
static inline Meaning meaning_of_text(const Row *row)
{
    if (!(row->has & 1u << EVENT_TYPE_ID)) {
        return RESERVED;
    }
    return is_content(row->numbers[EVENT_TYPE_ID]) ? LEFT_OUT : TEXT;
}

/* Hash a name to one of 64 bits, from its first byte, its last byte and its size. */
static inline uint64_t hash_of(Name name)
{
    Byte first = name.at[0], last = name.at[name.size - 1];
    return (uint64_t)1 << ((first * 5u + last * 7u + name.size * 11u) % 64);
}

int reserve_name(Posts *posts, const char *bytes, size_t size)
{
    if (posts->reserved_count == MOST_RESERVED || size == 0) {
        return 0;
    }
    posts->reserved[posts->reserved_count].bytes = bytes;
    posts->reserved[posts->reserved_count++].size = size;
    posts->reserved_hashes |= hash_of((Name){(const Byte *)bytes, size});
    return 1;
}

/* Whether a name is reserved. For most names, the hash rules this out. */
static inline int is_reserved(Name name, const Posts *posts)
{
    uint64_t hash = hash_of(name);
    for (size_t i = 0; (posts->reserved_hashes & hash) && i < posts->reserved_count; i++) {
        if (name.size == posts->reserved[i].size
            && memcmp(name.at, posts->reserved[i].bytes, name.size) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Add a name to the row, unless the row already has it. */
static inline Status add_name(Row *row, Name name)
{
    uint64_t hash = hash_of(name);
    if (row->count == MOST_ATTRIBUTES) {
        return FALLBACK;
    }
    for (size_t i = 0; (row->hashes & hash) && i < row->count; i++) {
        const Name *other = &row->names[i];
        if (other->size == name.size && memcmp(other->at, name.at, name.size) == 0) {
            return FALLBACK;
        }
    }
    row->hashes |= hash;
    row->names[row->count++] = name;
    return OK;
}

/* Keep the day at the start of a JSON string, unless the string does not start with a day. */
static void set_day(Row *row, const char *text, size_t size)
{
    static const char pattern[] = "0000-00-00";
    if (size < DAY_BYTES) {
        return;
    }
    for (int i = 0; i < DAY_BYTES; i++) {
        int is_digit = text[i] >= '0' && text[i] <= '9';
        if (pattern[i] == '-' ? text[i] != '-' : !is_digit) {
            return;
        }
    }
    memcpy(row->day, text, DAY_BYTES);
    row->day[DAY_BYTES] = 0;
}

static Status put_attribute(Reader *in, Row *row, Posts *posts)
{
    Name name;
    Buffer *json = &posts->json;
    TRY(read_name(in, &name));
    TRY(add_name(row, name));
    Meaning meaning = posts->table == POSTS ? meaning_in_posts(name)
                                            : meaning_in_table(name, posts->table);
    if (posts->table == HISTORY && IS_ALL(name, "Text")) {
        meaning = meaning_of_text(row);
    }
    row->has |= 1u << meaning;
    if (meaning == LEFT_OUT || meaning == BOUNTY_AMOUNT) {
        posts->tags.size = 0;
        return put_text(in, &posts->tags);
    }
    TRY(row->kept++ == 0 ? PUT_LITERAL(json, "{\"") : PUT_LITERAL(json, ",\""));
    TRY(put(json, name.at, name.size));
    TRY(PUT_LITERAL(json, "\":"));
    size_t start = json->size;
    switch (meaning) {
    case TEXT:
        if (is_reserved(name, posts)) {
            return FALLBACK;
        }
        TRY(put_string(in, json));
        if (posts->table == POSTS && IS_ALL(name, "CreationDate")) {
            set_day(row, json->bytes + start + 1, json->size - start - 1);
        }
        return OK;
    case TAGS:
        return put_tags(in, json, &posts->tags);
    case RESERVED:
        return FALLBACK;
    default:
        return put_number(in, json, &row->numbers[meaning]);
    }
}

/* ---- Rows ---- */

static Status count_other_type(Posts *posts, int64_t type)
{
    size_t i = 0;
    while (i < posts->other_types_count && posts->other_types[i].type != type) {
        i++;
    }
    if (i == MOST_OTHER_TYPES) {
        return FALLBACK;
    }
    if (i == posts->other_types_count) {
        posts->other_types[i].type = type;
        posts->other_types[i].rows = 0;
        posts->other_types_count++;
    }
    posts->other_types[i].rows++;
    return OK;
}

static Status put_integer(Buffer *out, int64_t number)
{
    char bytes[8];
    set_integer(bytes, number);
    return put(out, bytes, sizeof bytes);
}

/* Write the key of the post whose JSON starts at `start`. If it is neither a question nor an
   answer, drop its JSON instead. */
static Status add_post(const Row *row, size_t start, Posts *posts)
{
    const unsigned required = 1u << ID | 1u << POST_TYPE_ID;
    if ((row->has & required) != required) {
        return FALLBACK;
    }
    int64_t kind = row->numbers[POST_TYPE_ID];
    posts->rows++;
    posts->last_id = row->numbers[ID];
    if (kind != QUESTION && kind != ANSWER) {
        posts->json.size = start;
        return count_other_type(posts, kind);
    }
    if (kind == ANSWER && !(row->has & 1u << PARENT_ID)) {
        return FALLBACK;
    }
    if (row->day[0] && (!posts->first_day[0] || strcmp(row->day, posts->first_day) < 0)) {
        memcpy(posts->first_day, row->day, sizeof row->day);
    }
    if (strcmp(row->day, posts->last_day) > 0) {
        memcpy(posts->last_day, row->day, sizeof row->day);
    }
    Meaning rank = kind == QUESTION ? ACCEPTED_ANSWER_ID : SCORE;
    int64_t unranked = kind == QUESTION ? row->numbers[ID] : 0;
    TRY(put_integer(&posts->keys, row->numbers[kind == QUESTION ? ID : PARENT_ID]));
    TRY(put_integer(&posts->keys, row->numbers[ID]));
    TRY(put_integer(&posts->keys, row->has & 1u << rank ? row->numbers[rank] : unranked));
    return put_integer(&posts->keys, (int64_t)(posts->json.size - start) << 4 | kind);
}

/* Names of link types: `schema.LINK_TYPES`. */
static Status put_link_type(Buffer *json, int64_t type)
{
    if (type == 1) {
        return PUT_LITERAL(json, ",\"LinkType\":\"linked\"");
    }
    if (type == 3) {
        return PUT_LITERAL(json, ",\"LinkType\":\"duplicate\"");
    }
    char text[48];
    int size = snprintf(text, sizeof text, ",\"LinkType\":\"%lld\"", (long long)type);
    return put(json, text, (size_t)size);
}

/* Write the key of a row of a table other than posts. */
static Status add_record(const Row *row, size_t start, Posts *posts)
{
    unsigned required = 1u << ID;
    required |= posts->table == USERS ? 0 : 1u << POST_ID;
    required |= posts->table == VOTE ? 1u << VOTE_TYPE_ID : 0;
    required |= posts->table >= CLOSINGS ? 1u << EVENT_TYPE_ID : 0;
    if ((row->has & required) != required) {
        return FALLBACK;
    }
    posts->rows++;
    posts->last_id = row->numbers[ID];
    if (posts->table == CLOSINGS && !is_of_state(row->numbers[EVENT_TYPE_ID])) {
        posts->json.size = start;
        return OK;
    }
    int64_t post_id = row->numbers[posts->table == USERS ? ID : POST_ID], rank = row->numbers[ID];
    if (posts->table == VOTE) {
        posts->json.size = start;
        int64_t type = row->numbers[VOTE_TYPE_ID];
        if (type < INT32_MIN || type > INT32_MAX) {
            return FALLBACK;
        }
        /* A single vote, in the form that `table_rows.unpack_votes` reads. */
        rank = type * ((int64_t)1 << 32) + 1;
    } else if (posts->table == LINK && row->has & 1u << LINK_TYPE_ID) {
        posts->json.size--; /* Remove the closing brace to append a field. */
        TRY(put_link_type(&posts->json, row->numbers[LINK_TYPE_ID]));
        TRY(PUT_LITERAL(&posts->json, "}"));
    }
    TRY(put_integer(&posts->keys, post_id));
    TRY(put_integer(&posts->keys, post_id));
    TRY(put_integer(&posts->keys, rank));
    return put_integer(&posts->keys, (int64_t)(posts->json.size - start) << 4 | posts->table);
}

/* Order by post, then by type and number of votes. */
static int compare_votes(const void *left, const void *right)
{
    for (int at = 8; at <= 16; at += 8) {
        int64_t a = key_integer((const char *)left + at), b = key_integer((const char *)right + at);
        if (a != b) {
            return a < b ? -1 : 1;
        }
    }
    return 0;
}

void count_votes(Buffer *keys)
{
    if (keys->size == 0) {
        return;
    }
    qsort(keys->bytes, keys->size / KEY_BYTES, KEY_BYTES, compare_votes);
    char *last = keys->bytes, *end = keys->bytes + keys->size;
    for (char *key = last + KEY_BYTES; key < end; key += KEY_BYTES) {
        int64_t rank = key_integer(last + 16), more = key_integer(key + 16);
        if (memcmp(key, last, 16) == 0 && (uint64_t)more >> 32 == (uint64_t)rank >> 32) {
            set_integer(last + 16, rank + (more & UINT32_MAX));
        } else {
            last += KEY_BYTES;
            memmove(last, key, KEY_BYTES);
        }
    }
    keys->size = (size_t)(last - keys->bytes) + KEY_BYTES;
}

static Status convert_row(Reader *in, Posts *posts)
{
    Row row;
    row.count = row.kept = 0;
    row.hashes = 0;
    row.has = 0;
    row.day[0] = 0;
    size_t start = posts->json.size;
    const Byte *first = in->at;
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
        TRY(put_attribute(in, &row, posts));
    }
    TRY(row.kept == 0 ? PUT_LITERAL(&posts->json, "{}") : PUT_LITERAL(&posts->json, "}"));
    if (posts->table == POSTS) {
        return add_post(&row, start, posts);
    }
    TRY(add_record(&row, start, posts));
    /* Keep the row of a bounty for the reference, which parses it again: bounties are rare. */
    return row.has & 1u << BOUNTY_AMOUNT ? put(&posts->json, first, (size_t)(in->at - first)) : OK;
}

Status convert_rows(const char *slice, size_t size, Posts *posts)
{
    Reader in = {(const Byte *)slice, (const Byte *)slice + size};
    if (size > MOST_SLICE_BYTES) {
        return FALLBACK;
    }
    skip_spaces(&in);
    while (in.at < in.end) {
        TRY(convert_row(&in, posts));
        skip_spaces(&in);
    }
    if (posts->table == VOTE) {
        count_votes(&posts->keys);
    }
    return OK;
}

void free_posts(Posts *posts)
{
    free(posts->keys.bytes);
    free(posts->json.bytes);
    free(posts->tags.bytes);
}
