SET TimeZone = 'UTC';
CREATE TEMP VIEW Users AS SELECT * REPLACE (
    CreationDate::TIMESTAMP AS CreationDate,
    LastAccessDate::TIMESTAMP AS LastAccessDate
) FROM 'Users.parquet';
CREATE TEMP VIEW Badges AS SELECT * REPLACE (Date::TIMESTAMP AS Date) FROM 'Badges.parquet';
CREATE TEMP VIEW Posts AS SELECT * REPLACE (
    CreationDate::TIMESTAMP AS CreationDate,
    LastEditDate::TIMESTAMP AS LastEditDate,
    LastActivityDate::TIMESTAMP AS LastActivityDate,
    ClosedDate::TIMESTAMP AS ClosedDate,
    CommunityOwnedDate::TIMESTAMP AS CommunityOwnedDate
) FROM 'Posts.parquet';
CREATE TEMP VIEW Comments AS SELECT * REPLACE (
    CreationDate::TIMESTAMP AS CreationDate
) FROM 'Comments.parquet';
CREATE TEMP VIEW PostHistory AS SELECT * REPLACE (
    CreationDate::TIMESTAMP AS CreationDate
) FROM 'PostHistory.parquet';
CREATE TEMP VIEW PostLinks AS SELECT * REPLACE (
    CreationDate::TIMESTAMP AS CreationDate
) FROM 'PostLinks.parquet';
CREATE TEMP VIEW Tags AS FROM 'Tags.parquet';
CREATE TEMP VIEW Votes AS SELECT * REPLACE (CreationDate::TIMESTAMP AS CreationDate) FROM 'Votes.parquet';

COPY (SELECT Id, Name FROM PostTypes) TO 'PostTypes.csv' (HEADER false);
COPY (SELECT Id, Name FROM VoteTypes) TO 'VoteTypes.csv' (HEADER false);
COPY (SELECT Id, Name FROM LinkTypes) TO 'LinkTypes.csv' (HEADER false);
COPY (SELECT Id, Name FROM PostHistoryTypes) TO 'PostHistoryTypes.csv' (HEADER false);
COPY (SELECT Id, Name FROM CloseReasonTypes) TO 'CloseReasonTypes.csv' (HEADER false);
COPY (
    SELECT Id, Reputation, CreationDate, DisplayName, LastAccessDate, WebsiteUrl, Location,
        replace(AboutMe, chr(13), ''), Views, UpVotes, DownVotes, ProfileImageUrl, AccountId
    FROM Users
) TO 'Users.csv' (HEADER false);
COPY (SELECT Id, UserId, Name, Date, Class, TagBased FROM Badges) TO 'Badges.csv' (HEADER false);
COPY (
    SELECT Id, PostTypeId, AcceptedAnswerId, ParentId, CreationDate, Score, ViewCount,
        replace(Body, chr(13), ''), OwnerUserId, OwnerDisplayName, LastEditorUserId,
        LastEditorDisplayName, LastEditDate, LastActivityDate, Title,
        CASE WHEN len(Tags) > 0 THEN '<' || array_to_string(Tags, '><') || '>' END,
        AnswerCount, CommentCount, FavoriteCount, ClosedDate, CommunityOwnedDate, ContentLicense
    FROM Posts
) TO 'Posts.csv' (HEADER false);
COPY (
    SELECT Id, PostId, Score, replace(Text, chr(13), ''), CreationDate, UserDisplayName, UserId,
        ContentLicense
    FROM Comments
) TO 'Comments.csv' (HEADER false);
COPY (
    SELECT Id, PostHistoryTypeId, PostId, RevisionGUID, CreationDate, UserId, UserDisplayName, Comment,
        replace(Text, chr(13), ''), ContentLicense
    FROM PostHistory
) TO 'PostHistory.csv' (HEADER false);
COPY (
    SELECT Id, CreationDate, PostId, RelatedPostId, LinkTypeId FROM PostLinks
) TO 'PostLinks.csv' (HEADER false);
COPY (
    SELECT Id, TagName, Count, ExcerptPostId, WikiPostId, IsModeratorOnly, IsRequired FROM Tags
) TO 'Tags.csv' (HEADER false);
COPY (
    SELECT Id, PostId, VoteTypeId, UserId, CreationDate, BountyAmount FROM Votes
) TO 'Votes.csv' (HEADER false);
