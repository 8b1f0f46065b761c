"""What a bag counts, for those that read bags and need no scikit-learn."""

WORDS, CHARACTERS = "words", "characters"
