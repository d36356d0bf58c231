"""Linkability: D_sys, the chance to link two recordings, the chance to single somebody out."""
