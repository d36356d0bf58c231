"""Reports of the laboratory, with renderers for HTML, terminals, CSV and papers."""
