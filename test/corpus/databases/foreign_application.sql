PRAGMA application_id = 7; CREATE TABLE t (x);
