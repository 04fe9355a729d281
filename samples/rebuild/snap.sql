SET TimeZone = 'UTC';
CREATE TEMP VIEW Posts AS SELECT * REPLACE (CreationDate::TIMESTAMP AS CreationDate) FROM 'Posts.parquet';
CREATE TEMP VIEW Comments AS SELECT * REPLACE (
    CreationDate::TIMESTAMP AS CreationDate
) FROM 'Comments.parquet';

CREATE TEMP TABLE edges AS
SELECT 'a2q' AS kind, answer.OwnerUserId AS src, question.OwnerUserId AS dst,
    epoch_ms(answer.CreationDate) // 1000 AS t
FROM Posts AS answer JOIN Posts AS question ON answer.ParentId = question.Id
WHERE answer.PostTypeId = 2
UNION ALL
SELECT if(PostTypeId = 1, 'c2q', 'c2a'), UserId, OwnerUserId, epoch_ms(Comments.CreationDate) // 1000
FROM Comments JOIN Posts ON PostId = Posts.Id
WHERE PostTypeId IN (1, 2);
CREATE TEMP VIEW known AS FROM edges WHERE src > 0 AND dst > 0 ORDER BY t, src, dst, kind;
COPY (SELECT src, dst, t FROM known) TO 'sx.txt' (HEADER false, DELIMITER ' ');
COPY (SELECT src, dst, t FROM known WHERE kind = 'a2q') TO 'sx-a2q.txt' (HEADER false, DELIMITER ' ');
COPY (SELECT src, dst, t FROM known WHERE kind = 'c2q') TO 'sx-c2q.txt' (HEADER false, DELIMITER ' ');
COPY (SELECT src, dst, t FROM known WHERE kind = 'c2a') TO 'sx-c2a.txt' (HEADER false, DELIMITER ' ');
