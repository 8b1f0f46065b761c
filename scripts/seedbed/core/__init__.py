"""What every stage uses: errors, files and checksums, tables as CSV, words and numbers for people, logs.

It imports nothing else of Seedbed and knows no stage.
"""
