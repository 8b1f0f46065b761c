"""What every stage uses: errors, files and checksums, tables as CSV, words and numbers for people, logs.

In: nothing of Seedbed. Out: functions and types that know no stage.
"""
