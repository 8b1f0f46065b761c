"""All seeds of a cell trained as one model whose weights are stacked."""
