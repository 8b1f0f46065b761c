"""Fetch and check sources: archives, files, folders and repositories of the hub.

In: `resources/sources.csv` and the sources of the config. Out: `results/sources/NAME/`, the files and a
manifest.json with their SHA-256.
"""
