"""The same question asked of thousands of files: finding them, and answering in several processes."""
