-- The columns of the schema of STATS-CEB, as published.
CREATE TABLE users (
    Id int PRIMARY KEY,
    Reputation int,
    CreationDate timestamp,
    Views int,
    UpVotes int,
    DownVotes int
);
CREATE TABLE posts (
    Id int PRIMARY KEY,
    PostTypeId smallint,
    CreationDate timestamp,
    Score int,
    ViewCount int,
    OwnerUserId int,
    AnswerCount int,
    CommentCount int,
    FavoriteCount int,
    LastEditorUserId int
);
CREATE TABLE postLinks (
    Id int PRIMARY KEY,
    CreationDate timestamp,
    PostId int,
    RelatedPostId int,
    LinkTypeId smallint
);
CREATE TABLE postHistory (
    Id int PRIMARY KEY,
    PostHistoryTypeId smallint,
    PostId int,
    CreationDate timestamp,
    UserId int
);
CREATE TABLE comments (
    Id int PRIMARY KEY,
    PostId int,
    Score smallint,
    CreationDate timestamp,
    UserId int
);
CREATE TABLE votes (
    Id int PRIMARY KEY,
    PostId int,
    VoteTypeId smallint,
    CreationDate timestamp,
    UserId int,
    BountyAmount smallint
);
CREATE TABLE badges (
    Id int PRIMARY KEY,
    UserId int,
    Date timestamp
);
CREATE TABLE tags (
    Id int PRIMARY KEY,
    Count int,
    ExcerptPostId int
);
