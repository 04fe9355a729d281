/* Values of attributes -> JSON: what `_canonical.c` asks of `_values.c`. Each reads the quote that ends
   the value, too. */

#ifndef SO2DOCS_VALUES_H
#define SO2DOCS_VALUES_H

#include "_bytes.h"

/* Write a text as it stands between the quotes of a JSON string. */
Verdict put_text(Reader *in, Buffer *out);

/* Write a text as a JSON string. */
Verdict put_string(Reader *in, Buffer *out);

/* Write a canonical number. */
Verdict put_number(Reader *in, Buffer *out, int64_t *number);

/* Write the text of `Tags` as a JSON array; `tags` is for the text before it is split. */
Verdict put_tags(Reader *in, Buffer *out, Buffer *tags);

#endif
