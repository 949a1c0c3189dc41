PRAGMA page_size = 65536; CREATE TABLE t (x);
