-- The columns of the schema of SQLStorm, as published.
CREATE TABLE PostTypes (
    Id smallint NOT NULL PRIMARY KEY,
    Name varchar(50) NOT NULL
);
CREATE TABLE VoteTypes (
    Id smallint NOT NULL PRIMARY KEY,
    Name varchar(50) NOT NULL
);
CREATE TABLE LinkTypes (
    Id smallint NOT NULL PRIMARY KEY,
    Name varchar(50) NOT NULL
);
CREATE TABLE PostHistoryTypes (
    Id smallint NOT NULL PRIMARY KEY,
    Name varchar(50) NOT NULL
);
CREATE TABLE CloseReasonTypes (
    Id smallint NOT NULL PRIMARY KEY,
    Name varchar(50) NOT NULL
);
CREATE TABLE Users (
    Id int NOT NULL PRIMARY KEY,
    Reputation int NOT NULL,
    CreationDate timestamp NOT NULL,
    DisplayName varchar(40),
    LastAccessDate timestamp NOT NULL,
    WebsiteUrl varchar(200),
    Location varchar(300),
    AboutMe text,
    Views int,
    UpVotes int,
    DownVotes int,
    ProfileImageUrl varchar(200),
    AccountId int
);
CREATE TABLE Badges (
    Id int NOT NULL PRIMARY KEY,
    UserId int NOT NULL,
    Name varchar(50) NOT NULL,
    Date timestamp NOT NULL,
    Class smallint NOT NULL,
    TagBased bool NOT NULL
);
CREATE TABLE Posts (
    Id int NOT NULL PRIMARY KEY,
    PostTypeId smallint,
    AcceptedAnswerId int,
    ParentId int,
    CreationDate timestamp,
    Score int,
    ViewCount int,
    Body text,
    OwnerUserId int,
    OwnerDisplayName varchar(40),
    LastEditorUserId int,
    LastEditorDisplayName varchar(40),
    LastEditDate timestamp,
    LastActivityDate timestamp,
    Title varchar(300),
    Tags varchar(4000),
    AnswerCount int,
    CommentCount int,
    FavoriteCount int,
    ClosedDate timestamp,
    CommunityOwnedDate timestamp,
    ContentLicense varchar(30)
);
CREATE TABLE Comments (
    Id int NOT NULL PRIMARY KEY,
    PostId int NOT NULL,
    Score int,
    Text varchar(2000) NOT NULL,
    CreationDate timestamp NOT NULL,
    UserDisplayName varchar(40),
    UserId int,
    ContentLicense varchar(30)
);
CREATE TABLE PostHistory (
    Id int NOT NULL PRIMARY KEY,
    PostHistoryTypeId smallint,
    PostId int,
    RevisionGUID varchar(36),
    CreationDate timestamp,
    UserId int,
    UserDisplayName varchar(40),
    Comment varchar(800),
    Text text,
    ContentLicense varchar(30)
);
CREATE TABLE PostLinks (
    Id bigint NOT NULL PRIMARY KEY,
    CreationDate timestamp NOT NULL,
    PostId int NOT NULL,
    RelatedPostId int NOT NULL,
    LinkTypeId smallint NOT NULL
);
CREATE TABLE Tags (
    Id int NOT NULL PRIMARY KEY,
    TagName varchar(35),
    Count int NOT NULL,
    ExcerptPostId int,
    WikiPostId int,
    IsModeratorOnly bool,
    IsRequired bool
);
CREATE TABLE Votes (
    Id int NOT NULL PRIMARY KEY,
    PostId int NOT NULL,
    VoteTypeId smallint NOT NULL,
    UserId int,
    CreationDate timestamp,
    BountyAmount int
);
