"""Ranks as anonymity: mean rank of each speaker and share of trials at the nearest ranks."""
