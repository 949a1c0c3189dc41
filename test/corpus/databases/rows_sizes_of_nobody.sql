PRAGMA foreign_keys = OFF; UPDATE measurement SET size_id = size_id + 1000000;
