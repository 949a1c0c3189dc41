PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF; UPDATE measurement SET workspace_bytes = -9223372036854775808;
