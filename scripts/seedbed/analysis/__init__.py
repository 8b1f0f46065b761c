"""From the runs of an experiment to its tables: statistics, contrasts, diagnostics."""
