"""What people read: summary, report, tables with units, and the comparison of two experiments.

In: the tables and figures. Out: summary.md, summary.json, report.html; tables as CSV, Markdown and LaTeX.
Python decides what is said and hands records to `templates/NAME.j2`, which word it. Headings, headers of
tables, options of recipes and the glossary are in `data/NAME.yaml`. Both are edited without Python, see
`core.wording`.
"""
