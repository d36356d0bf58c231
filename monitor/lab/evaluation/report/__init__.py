"""Reports of one system or several, compared and worded, and the documents made of them."""
