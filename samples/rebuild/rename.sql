EXEC sp_rename 'PostTypes.Name', 'Type', 'COLUMN';
EXEC sp_rename 'LinkTypes.Name', 'Type', 'COLUMN';
