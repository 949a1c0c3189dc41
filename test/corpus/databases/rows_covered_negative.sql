PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF; UPDATE size SET covered_bytes = -1;
