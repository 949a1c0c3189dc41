UPDATE measurement SET time_ms = 1e-30, device_ms = 1e-30;
