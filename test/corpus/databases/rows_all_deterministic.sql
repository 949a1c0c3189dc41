UPDATE measurement SET deterministic = 1;
