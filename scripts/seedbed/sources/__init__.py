"""Sources: archives, files and repositories of the hub, fetched and checked.

In: `resources/sources.csv` and the sources of the config. Out: `results/sources/NAME/`, the files and a
manifest.json that lists the SHA-256 of each.
"""
