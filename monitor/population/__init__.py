"""Who could be recognised: templates, rank laws, and the store that keeps both."""
