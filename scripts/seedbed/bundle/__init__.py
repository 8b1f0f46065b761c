"""A finished experiment as one archive, for a reviewer or another machine.

In: the folder of a finished experiment, and the lock file of sources. Out: a `.tar.gz` with what `contents`
names and the SHA-256 of every file (`archive.write`); from such a file, the checked folder of the experiment
(`archive.experiment_in`).
"""
