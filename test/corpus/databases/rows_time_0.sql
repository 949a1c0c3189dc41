UPDATE measurement SET time_ms = 0, device_ms = 0;
