UPDATE measurement SET workspace_bytes = workspace_bytes / 2;
