UPDATE measurement SET workspace_bytes = 9223372036854775807;
