"""Rates among more people than were scored, by four forms and the bracket of them."""
