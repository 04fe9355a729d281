SET TimeZone = 'UTC';
CREATE TEMP VIEW Posts AS SELECT * REPLACE (CreationDate::TIMESTAMP AS CreationDate) FROM 'Posts.parquet';

CREATE TEMP TABLE examples AS
WITH posts AS (
    SELECT post.OwnerUserId AS user_id, post.Id, post.CreationDate AS date, question.Score AS score,
        array_to_string(question.Tags, '|') AS tags, question.Title AS title,
        if(post.PostTypeId = 1, 'question', 'answer') AS type,
        regexp_replace(lower(post.Body), 'https?://\S+', ' _url_ ', 'g') AS body
    FROM Posts AS post JOIN Posts AS question ON question.Id = coalesce(post.ParentId, post.Id)
    WHERE post.PostTypeId IN (1, 2) AND post.OwnerUserId > 0
), sentences AS (
    SELECT *, unnest(regexp_extract_all(body, '[^.!?\n]+[.!?]*')) AS sentence,
        generate_subscripts(regexp_extract_all(body, '[^.!?\n]+[.!?]*'), 1) AS place
    FROM posts
), tokenized AS (
    SELECT *, regexp_replace(sentence, '[^\x00-\x7f]', '', 'g') AS ascii,
        trim(regexp_replace(regexp_replace(ascii, '([^\w\s''-])', ' \1 ', 'g'), '\s+', ' ', 'g')) AS tokens
    FROM sentences
)
SELECT user_id::VARCHAR AS client_id, strftime(date, '%Y-%m-%d %H:%M:%S.%g UTC') AS creation_date,
    score, tags, title, tokens, type, Id, place,
    CASE WHEN user_id % 10 = 0 THEN 'held_out' WHEN date < '2018-01-01' THEN 'train' ELSE 'test' END AS split
FROM tokenized WHERE tokens <> ''
QUALIFY count(*) OVER (PARTITION BY user_id) >= 100;
CREATE TEMP VIEW ordered AS FROM examples ORDER BY client_id, creation_date, Id, place;
COPY (SELECT * EXCLUDE (Id, place, split) FROM ordered WHERE split = 'train') TO 'train.parquet';
COPY (SELECT * EXCLUDE (Id, place, split) FROM ordered WHERE split = 'held_out') TO 'held_out.parquet';
COPY (SELECT * EXCLUDE (Id, place, split) FROM ordered WHERE split = 'test') TO 'test.parquet';
