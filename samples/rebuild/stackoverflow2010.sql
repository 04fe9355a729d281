-- The tables of a Stack Exchange dump in SQL Server, from CSV files: dates are UTC, tags are JSON.
-- Run it in the folder of the files:
--   gzip -dk *.csv.gz
--   sqlcmd -d NAME -i types.sql
--   sqlcmd -d NAME -v dir="/path/of/this/folder" -i stackoverflow2010.sql

CREATE TABLE Posts (
    Id bigint NOT NULL,
    PostTypeId bigint,
    ParentId bigint,
    AcceptedAnswerId bigint,
    CreationDate datetime2(3),
    Score bigint,
    ViewCount bigint,
    Body nvarchar(max),
    OwnerUserId bigint,
    OwnerDisplayName nvarchar(max),
    LastEditorUserId bigint,
    LastEditorDisplayName nvarchar(max),
    LastEditDate datetime2(3),
    LastActivityDate datetime2(3),
    Title nvarchar(max),
    Tags nvarchar(max),
    AnswerCount bigint,
    CommentCount bigint,
    FavoriteCount bigint,
    ClosedDate datetime2(3),
    CommunityOwnedDate datetime2(3),
    ContentLicense nvarchar(max),
    Other nvarchar(max)
);

CREATE TABLE Comments (
    Id bigint NOT NULL,
    PostId bigint,
    Score bigint,
    Text nvarchar(max),
    CreationDate datetime2(3),
    UserDisplayName nvarchar(max),
    UserId bigint,
    ContentLicense nvarchar(max),
    Other nvarchar(max)
);

CREATE TABLE PostLinks (
    Id bigint NOT NULL,
    CreationDate datetime2(3),
    PostId bigint,
    RelatedPostId bigint,
    LinkTypeId bigint,
    Other nvarchar(max)
);

CREATE TABLE Votes (
    Id bigint NOT NULL,
    PostId bigint,
    VoteTypeId bigint,
    UserId bigint,
    CreationDate datetime2(3),
    BountyAmount bigint,
    Other nvarchar(max)
);

CREATE TABLE PostHistory (
    Id bigint NOT NULL,
    PostHistoryTypeId bigint,
    PostId bigint,
    RevisionGUID nvarchar(max),
    CreationDate datetime2(3),
    UserId bigint,
    UserDisplayName nvarchar(max),
    Comment nvarchar(max),
    Text nvarchar(max),
    ContentLicense nvarchar(max),
    Other nvarchar(max)
);

CREATE TABLE Users (
    Id bigint NOT NULL,
    Reputation bigint,
    CreationDate datetime2(3),
    DisplayName nvarchar(max),
    EmailHash nvarchar(max),
    LastAccessDate datetime2(3),
    WebsiteUrl nvarchar(max),
    Location nvarchar(max),
    Age bigint,
    AboutMe nvarchar(max),
    Views bigint,
    UpVotes bigint,
    DownVotes bigint,
    ProfileImageUrl nvarchar(max),
    AccountId bigint,
    Other nvarchar(max)
);

CREATE TABLE Badges (
    Id bigint NOT NULL,
    UserId bigint,
    Name nvarchar(max),
    Date datetime2(3),
    Class bigint,
    TagBased varchar(5),
    Other nvarchar(max)
);

CREATE TABLE Tags (
    Id bigint NOT NULL,
    TagName nvarchar(max),
    Count bigint,
    ExcerptPostId bigint,
    WikiPostId bigint,
    IsModeratorOnly varchar(5),
    IsRequired varchar(5),
    Other nvarchar(max)
);

BULK INSERT Posts FROM '$(dir)/Posts.csv' WITH (
    FORMAT = 'CSV', FIRSTROW = 2, CODEPAGE = '65001', ROWTERMINATOR = '0x0a',
    KEEPNULLS, MAXERRORS = 0, TABLOCK
);
BULK INSERT Comments FROM '$(dir)/Comments.csv' WITH (
    FORMAT = 'CSV', FIRSTROW = 2, CODEPAGE = '65001', ROWTERMINATOR = '0x0a',
    KEEPNULLS, MAXERRORS = 0, TABLOCK
);
BULK INSERT PostLinks FROM '$(dir)/PostLinks.csv' WITH (
    FORMAT = 'CSV', FIRSTROW = 2, CODEPAGE = '65001', ROWTERMINATOR = '0x0a',
    KEEPNULLS, MAXERRORS = 0, TABLOCK
);
BULK INSERT Votes FROM '$(dir)/Votes.csv' WITH (
    FORMAT = 'CSV', FIRSTROW = 2, CODEPAGE = '65001', ROWTERMINATOR = '0x0a',
    KEEPNULLS, MAXERRORS = 0, TABLOCK
);
BULK INSERT PostHistory FROM '$(dir)/PostHistory.csv' WITH (
    FORMAT = 'CSV', FIRSTROW = 2, CODEPAGE = '65001', ROWTERMINATOR = '0x0a',
    KEEPNULLS, MAXERRORS = 0, TABLOCK
);
BULK INSERT Users FROM '$(dir)/Users.csv' WITH (
    FORMAT = 'CSV', FIRSTROW = 2, CODEPAGE = '65001', ROWTERMINATOR = '0x0a',
    KEEPNULLS, MAXERRORS = 0, TABLOCK
);
BULK INSERT Badges FROM '$(dir)/Badges.csv' WITH (
    FORMAT = 'CSV', FIRSTROW = 2, CODEPAGE = '65001', ROWTERMINATOR = '0x0a',
    KEEPNULLS, MAXERRORS = 0, TABLOCK
);
BULK INSERT Tags FROM '$(dir)/Tags.csv' WITH (
    FORMAT = 'CSV', FIRSTROW = 2, CODEPAGE = '65001', ROWTERMINATOR = '0x0a',
    KEEPNULLS, MAXERRORS = 0, TABLOCK
);

-- The files have true and false:
ALTER TABLE Badges ALTER COLUMN TagBased bit;
ALTER TABLE Tags ALTER COLUMN IsModeratorOnly bit;
ALTER TABLE Tags ALTER COLUMN IsRequired bit;

-- A damaged dump may repeat an Id; this is an error here, after loading:
ALTER TABLE Posts ADD PRIMARY KEY (Id);
ALTER TABLE Comments ADD PRIMARY KEY (Id);
ALTER TABLE PostLinks ADD PRIMARY KEY (Id);
ALTER TABLE Votes ADD PRIMARY KEY (Id);
ALTER TABLE PostHistory ADD PRIMARY KEY (Id);
ALTER TABLE Users ADD PRIMARY KEY (Id);
ALTER TABLE Badges ADD PRIMARY KEY (Id);
ALTER TABLE Tags ADD PRIMARY KEY (Id);
CREATE INDEX Posts_ParentId ON Posts (ParentId);
CREATE INDEX Posts_AcceptedAnswerId ON Posts (AcceptedAnswerId);
CREATE INDEX Posts_OwnerUserId ON Posts (OwnerUserId);
CREATE INDEX Posts_LastEditorUserId ON Posts (LastEditorUserId);
CREATE INDEX Comments_PostId ON Comments (PostId);
CREATE INDEX Comments_UserId ON Comments (UserId);
CREATE INDEX PostLinks_PostId ON PostLinks (PostId);
CREATE INDEX PostLinks_RelatedPostId ON PostLinks (RelatedPostId);
CREATE INDEX Votes_PostId ON Votes (PostId);
CREATE INDEX Votes_UserId ON Votes (UserId);
CREATE INDEX PostHistory_PostId ON PostHistory (PostId);
CREATE INDEX PostHistory_UserId ON PostHistory (UserId);
CREATE INDEX Badges_UserId ON Badges (UserId);
CREATE INDEX Tags_ExcerptPostId ON Tags (ExcerptPostId);
CREATE INDEX Tags_WikiPostId ON Tags (WikiPostId);

EXEC sp_rename 'PostTypes.Name', 'Type', 'COLUMN';
EXEC sp_rename 'LinkTypes.Name', 'Type', 'COLUMN';
