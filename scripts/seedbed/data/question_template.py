"""The template of a dataset of questions: from a question, and its context, to the prompt."""

LEAST = 2  # examples of a split: with one, nothing can be told of their spread


def fill(template: str, question: str, context: str | None) -> str:
    """The prompt of a question; an absent context is empty."""
    return template.format(question=question, context=context or "")
