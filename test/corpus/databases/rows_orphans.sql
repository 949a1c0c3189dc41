PRAGMA foreign_keys = OFF; DELETE FROM machine; DELETE FROM problem;
