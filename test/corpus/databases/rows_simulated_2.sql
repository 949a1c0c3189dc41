PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF; UPDATE machine SET simulated = 2;
