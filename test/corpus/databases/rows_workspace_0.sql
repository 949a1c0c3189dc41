UPDATE measurement SET workspace_bytes = 0;
