"""Figures of evaluations and attacks."""
