"""Solvers whose parameters are decoupled (DREM) or filtered (spectral filtering)."""
