"""What people read: summary, report, tables with units, and the comparison of two experiments.

In: the tables and figures. Out: summary.md, report.html, and tables as CSV, Markdown and LaTeX.
"""
