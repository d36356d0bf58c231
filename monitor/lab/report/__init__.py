"""Reports of the laboratory: one model, and a renderer each for HTML, terminals, CSV and LaTeX."""
