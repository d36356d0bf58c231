"""Speaker verification: equal error rate and cost of pooled scores."""
