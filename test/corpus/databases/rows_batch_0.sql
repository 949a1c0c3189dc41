PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF; UPDATE OR REPLACE size SET batch = 0;
