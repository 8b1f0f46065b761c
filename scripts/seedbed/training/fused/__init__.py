"""Train the runs of a recipe as one model with stacked weights."""
