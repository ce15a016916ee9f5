"""Attributions over bootstrap replicates: explainers, distribution, score, ranking."""
