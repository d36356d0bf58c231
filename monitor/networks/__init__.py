"""Small networks of our own, run by numpy; how they were made stands in recipes/."""
