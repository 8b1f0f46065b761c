"""The figures of an experiment."""
