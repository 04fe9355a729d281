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
