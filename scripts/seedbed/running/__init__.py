"""Runs as jobs: which run is the same as another, who owns it, on what GPU, and when it is published.

In: the params of a fine-tuning rule. Out: a run folder, put into its place in one rename.
"""
