"""Work over thousands of files: finds them and processes them in several processes."""
