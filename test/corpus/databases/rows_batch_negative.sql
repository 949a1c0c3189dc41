PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF; UPDATE size SET batch = -batch;
