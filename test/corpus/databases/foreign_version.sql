PRAGMA user_version = 2; CREATE TABLE t (x);
