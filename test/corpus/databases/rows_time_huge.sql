UPDATE measurement SET time_ms = 1.7e308, device_ms = 1.7e308;
