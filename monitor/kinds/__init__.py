"""The kinds of feature there are, and all that differs between them."""
