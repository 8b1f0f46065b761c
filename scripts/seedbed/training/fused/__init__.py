"""Train all seeds of a cell as one model with stacked weights."""
