"""Spectral filtering."""
