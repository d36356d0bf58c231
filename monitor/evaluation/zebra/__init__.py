"""ZEBRA: expected and worst-case disclosure of pooled scores for any prior belief."""
