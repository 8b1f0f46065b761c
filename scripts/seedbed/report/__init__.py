"""What an experiment found, in words, tables and figures."""
