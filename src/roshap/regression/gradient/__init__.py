"""Gradient descent references."""
