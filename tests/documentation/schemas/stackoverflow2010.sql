-- The columns of StackOverflow2010, as published.
CREATE TABLE Badges (
    Id int,
    Name nvarchar,
    UserId int,
    Date datetime
);
CREATE TABLE Comments (
    Id int,
    CreationDate datetime,
    PostId int,
    Score int,
    Text nvarchar,
    UserId int
);
CREATE TABLE LinkTypes (
    Id int,
    Type varchar
);
CREATE TABLE PostLinks (
    Id int,
    CreationDate datetime,
    PostId int,
    RelatedPostId int,
    LinkTypeId int
);
CREATE TABLE PostTypes (
    Id int,
    Type nvarchar
);
CREATE TABLE Posts (
    Id int,
    AcceptedAnswerId int,
    AnswerCount int,
    Body nvarchar,
    ClosedDate datetime,
    CommentCount int,
    CommunityOwnedDate datetime,
    CreationDate datetime,
    FavoriteCount int,
    LastActivityDate datetime,
    LastEditDate datetime,
    LastEditorDisplayName nvarchar,
    LastEditorUserId int,
    OwnerUserId int,
    ParentId int,
    PostTypeId int,
    Score int,
    Tags nvarchar,
    Title nvarchar,
    ViewCount int
);
CREATE TABLE Users (
    Id int,
    AboutMe nvarchar,
    Age int,
    CreationDate datetime,
    DisplayName nvarchar,
    DownVotes int,
    EmailHash nvarchar,
    LastAccessDate datetime,
    Location nvarchar,
    Reputation int,
    UpVotes int,
    Views int,
    WebsiteUrl nvarchar,
    AccountId int
);
CREATE TABLE VoteTypes (
    Id int,
    Name varchar
);
CREATE TABLE Votes (
    Id int,
    PostId int,
    UserId int,
    BountyAmount int,
    VoteTypeId int,
    CreationDate datetime
);
