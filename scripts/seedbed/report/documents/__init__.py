"""Documents of plain blocks, and how they become Markdown, HTML and LaTeX."""
