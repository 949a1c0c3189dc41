INSERT OR IGNORE INTO size SELECT NULL, machine.id, problem.id, 1 + size.batch, 9223372036854775807, 0
  FROM machine JOIN problem JOIN size;
