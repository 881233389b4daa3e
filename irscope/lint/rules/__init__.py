"""The lint rules, one file each; a new file here adds a rule."""
