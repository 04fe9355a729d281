SET TimeZone = 'UTC';
CREATE TEMP VIEW Users AS SELECT * REPLACE (CreationDate::TIMESTAMP AS CreationDate) FROM 'Users.parquet';
CREATE TEMP VIEW Posts AS SELECT * REPLACE (CreationDate::TIMESTAMP AS CreationDate) FROM 'Posts.parquet';
CREATE TEMP VIEW PostLinks AS SELECT * REPLACE (
    CreationDate::TIMESTAMP AS CreationDate
) FROM 'PostLinks.parquet';
CREATE TEMP VIEW PostHistory AS SELECT * REPLACE (
    CreationDate::TIMESTAMP AS CreationDate
) FROM 'PostHistory.parquet';
CREATE TEMP VIEW Comments AS SELECT * REPLACE (
    CreationDate::TIMESTAMP AS CreationDate
) FROM 'Comments.parquet';
CREATE TEMP VIEW Votes AS SELECT * REPLACE (CreationDate::TIMESTAMP AS CreationDate) FROM 'Votes.parquet';
CREATE TEMP VIEW Badges AS SELECT * REPLACE (Date::TIMESTAMP AS Date) FROM 'Badges.parquet';
CREATE TEMP VIEW Tags AS FROM 'Tags.parquet';

COPY (SELECT Id, Reputation, CreationDate, Views, UpVotes, DownVotes FROM Users) TO 'users.csv';
COPY (
    SELECT Id, PostTypeId, CreationDate, Score, ViewCount, OwnerUserId, AnswerCount, CommentCount,
        FavoriteCount, LastEditorUserId
    FROM Posts
) TO 'posts.csv';
COPY (SELECT Id, CreationDate, PostId, RelatedPostId, LinkTypeId FROM PostLinks) TO 'postLinks.csv';
COPY (SELECT Id, PostHistoryTypeId, PostId, CreationDate, UserId FROM PostHistory) TO 'postHistory.csv';
COPY (SELECT Id, PostId, Score, CreationDate, UserId FROM Comments) TO 'comments.csv';
COPY (
    SELECT Id, PostId, VoteTypeId, CreationDate, UserId, BountyAmount FROM Votes
) TO 'votes.csv';
COPY (SELECT Id, UserId, Date FROM Badges) TO 'badges.csv';
COPY (SELECT Id, Count, ExcerptPostId FROM Tags) TO 'tags.csv';
