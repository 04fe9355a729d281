-- The names of the types, which dumps do not contain: those of the Stack Exchange Data Explorer.

CREATE TABLE PostTypes (Id integer PRIMARY KEY, Name varchar(100));
INSERT INTO PostTypes VALUES
    (1, 'Question'),
    (2, 'Answer'),
    (3, 'Wiki'),
    (4, 'TagWikiExcerpt'),
    (5, 'TagWiki'),
    (6, 'ModeratorNomination'),
    (7, 'WikiPlaceholder'),
    (8, 'PrivilegeWiki'),
    (9, 'Article'),
    (10, 'HelpArticle'),
    (12, 'Collection'),
    (13, 'ModeratorQuestionnaireResponse'),
    (14, 'Announcement'),
    (15, 'CollectiveDiscussion'),
    (17, 'CollectiveCollection');

CREATE TABLE VoteTypes (Id integer PRIMARY KEY, Name varchar(100));
INSERT INTO VoteTypes VALUES
    (1, 'AcceptedByOriginator'),
    (2, 'UpMod'),
    (3, 'DownMod'),
    (4, 'Offensive'),
    (5, 'Favorite'),
    (6, 'Close'),
    (7, 'Reopen'),
    (8, 'BountyStart'),
    (9, 'BountyClose'),
    (10, 'Deletion'),
    (11, 'Undeletion'),
    (12, 'Spam'),
    (13, 'InformModerator'),
    (14, 'NominateModerator'),
    (15, 'ModeratorReview'),
    (16, 'ApproveEditSuggestion');

CREATE TABLE LinkTypes (Id integer PRIMARY KEY, Name varchar(100));
INSERT INTO LinkTypes VALUES
    (1, 'Linked'),
    (3, 'Duplicate');

CREATE TABLE PostHistoryTypes (Id integer PRIMARY KEY, Name varchar(100));
INSERT INTO PostHistoryTypes VALUES
    (1, 'Initial Title'),
    (2, 'Initial Body'),
    (3, 'Initial Tags'),
    (4, 'Edit Title'),
    (5, 'Edit Body'),
    (6, 'Edit Tags'),
    (7, 'Rollback Title'),
    (8, 'Rollback Body'),
    (9, 'Rollback Tags'),
    (10, 'Post Closed'),
    (11, 'Post Reopened'),
    (12, 'Post Deleted'),
    (13, 'Post Undeleted'),
    (14, 'Post Locked'),
    (15, 'Post Unlocked'),
    (16, 'Community Owned'),
    (17, 'Post Migrated'),
    (18, 'Question Merged'),
    (19, 'Question Protected'),
    (20, 'Question Unprotected'),
    (21, 'Post Disassociated'),
    (22, 'Question Unmerged'),
    (24, 'Suggested Edit Applied'),
    (25, 'Post Tweeted'),
    (31, 'Discussion moved to chat'),
    (33, 'Post Notice Added'),
    (34, 'Post Notice Removed'),
    (35, 'Post Migrated Away'),
    (36, 'Post Migrated Here'),
    (37, 'Post Merge Source'),
    (38, 'Post Merge Destination'),
    (50, 'CommunityBump'),
    (52, 'SelectedHotQuestion'),
    (53, 'RemovedHotQuestion'),
    (66, 'CreatedFromWizard');

CREATE TABLE CloseReasonTypes (Id integer PRIMARY KEY, Name varchar(100));
INSERT INTO CloseReasonTypes VALUES
    (1, 'Exact Duplicate'),
    (2, 'Off-topic'),
    (3, 'Subjective and argumentative'),
    (4, 'Not a real question'),
    (7, 'Too localized'),
    (10, 'General reference'),
    (20, 'Noise or pointless'),
    (101, 'Duplicate'),
    (102, 'Off-topic'),
    (103, 'Needs details or clarity'),
    (104, 'Needs more focus'),
    (105, 'Opinion-based');
