UPDATE measurement SET deterministic = 0;
