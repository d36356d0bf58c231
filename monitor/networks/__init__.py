"""Small networks of our own, run by numpy; recipes/ trains them."""
