UPDATE measurement SET device_ms = 1e9;
