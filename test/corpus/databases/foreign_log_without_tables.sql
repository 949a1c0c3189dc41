PRAGMA journal_mode = WAL; CREATE TABLE t (x); DROP TABLE t;
