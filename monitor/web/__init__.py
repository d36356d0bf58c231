"""The page: a live or recorded run in a browser, and its figures for other programs."""
