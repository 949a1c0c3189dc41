PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_problem_1')
  WHERE name = 'sqlite_autoindex_machine_1';
