"""Trainers with Transformers' Trainer: classifiers and causal models."""
