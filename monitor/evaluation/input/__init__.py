"""Score matrices from files: arrays, tables, score lists with trial lists, embeddings."""
