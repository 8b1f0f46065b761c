"""The trainers that use Transformers' Trainer: classifiers and causal models."""
