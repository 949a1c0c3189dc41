UPDATE measurement SET time_ms = 0.02, device_ms = 0.02;
