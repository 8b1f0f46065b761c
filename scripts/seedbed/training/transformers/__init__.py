"""training/transformers"""
