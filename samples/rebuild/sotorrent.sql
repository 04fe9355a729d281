SET TimeZone = 'UTC';
CREATE TEMP VIEW Posts AS FROM 'Posts.parquet';
CREATE TEMP VIEW PostHistory AS SELECT * REPLACE (
    CreationDate::TIMESTAMP AS CreationDate
) FROM 'PostHistory.parquet';

CREATE TABLE PostVersion AS
SELECT row_number() OVER (ORDER BY h.PostId, h.CreationDate, h.Id) AS Id,
    h.PostId, p.PostTypeId, h.Id AS PostHistoryId, h.PostHistoryTypeId, h.CreationDate,
    lag(h.Id) OVER versions AS PredPostHistoryId, lead(h.Id) OVER versions AS SuccPostHistoryId,
    lead(h.Id) OVER versions IS NULL AS MostRecentVersion
FROM PostHistory AS h JOIN Posts AS p ON p.Id = h.PostId
WHERE h.PostHistoryTypeId IN (2, 5, 8) AND p.PostTypeId IN (1, 2)
WINDOW versions AS (PARTITION BY h.PostId ORDER BY h.CreationDate, h.Id);

CREATE TABLE TitleVersion AS
SELECT row_number() OVER (ORDER BY h.PostId, h.CreationDate, h.Id) AS Id,
    h.PostId, p.PostTypeId, h.Id AS PostHistoryId, h.PostHistoryTypeId, h.CreationDate, h.Text AS Title,
    lag(h.Id) OVER versions AS PredPostHistoryId,
    levenshtein(h.Text, lag(h.Text) OVER versions) AS PredEditDistance,
    lead(h.Id) OVER versions AS SuccPostHistoryId,
    levenshtein(h.Text, lead(h.Text) OVER versions) AS SuccEditDistance,
    lead(h.Id) OVER versions IS NULL AS MostRecentVersion
FROM PostHistory AS h JOIN Posts AS p ON p.Id = h.PostId
WHERE h.PostHistoryTypeId IN (1, 4, 7) AND p.PostTypeId = 1
WINDOW versions AS (PARTITION BY h.PostId ORDER BY h.CreationDate, h.Id);
