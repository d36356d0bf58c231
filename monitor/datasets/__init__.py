"""Data sets of Hugging Face and of lhotse, as rows of recordings; neither library is needed."""
