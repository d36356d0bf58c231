"""What the cells say in words: trends over lengths, guides, losses, each with its limits."""
