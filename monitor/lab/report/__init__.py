"""Reports of the laboratory: one model, and renderers for HTML, terminals, CSV and papers."""
