PRAGMA application_id = -1; CREATE TABLE t (x);
